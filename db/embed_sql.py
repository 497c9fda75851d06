#!/usr/bin/env python3
"""Checks the named statements of db/sql and embeds them, and the migrations, as C.

    embed_sql.py --sql DIR --migrations DIR --header sql_ids.h --source statements.c
                 [--depfile FILE] [--strip-org-predicate]

A statement:

    -- name: node_get
    -- role: app, loop      (app, ingest, loop, migrate; app when absent)
    -- scope: global        (only where no org is known)
    SELECT ... WHERE org_id = $1 ...

Text that several statements share (the fields of a resource) is a fragment, used as {{node_fields}}:

    -- fragment: node_fields
    n.id, n.name, ...

Every refusal names the file, the line and what to do. --strip-org-predicate replaces `org_id = $1`
by `$1::uuid IS NOT NULL`: such a build proves that row security alone keeps orgs apart.
"""
import argparse
import hashlib
import os
import re
import sys

ROLES = ("app", "ingest", "loop", "migrate")
PARAMETERS_MAX = 24  # DB_ARGS_MAX

TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
      | (?P<ident>"(?:[^"]|"")*")
      | (?P<param>\$\d+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
      | (?P<number>\d[\d.]*)
      | (?P<space>\s+)
      | (?P<char>.)""",
    re.VERBOSE | re.DOTALL,
)

ORG_PREDICATE = re.compile(
    r"(?<![A-Za-z0-9_$.])(?:[A-Za-z_][A-Za-z0-9_]*\s*\.\s*)?org_id\s*=\s*\$1(?!\d)(?:\s*::\s*uuid)?",
    re.IGNORECASE,
)
# A new row names its org too: INSERT INTO t (org_id, ...) VALUES ($1, ...) or SELECT $1, ...
ORG_INSERT = re.compile(
    r"\bINSERT\s+INTO\s+\w+(?:\s+AS\s+\w+)?\s*\(\s*org_id\b[^()]*\)\s*(?:VALUES\s*\(|SELECT)\s*\$1(?!\d)",
    re.IGNORECASE,
)


class Refused(Exception):
    """A statement or file that may not be embedded."""


class Token:
    def __init__(self, kind, text):
        self.kind = kind
        self.text = text
        self.upper = text.upper() if kind == "word" else text


class Statement:
    def __init__(self, path, line, name):
        self.path = path
        self.line = line
        self.name = name
        self.roles = ["app"]
        self.is_global = False
        self.is_fragment = False
        self.lines = []
        self.text = ""
        self.parameters = 0

    def refuse(self, why):
        raise Refused(f"{self.path}:{self.line}: {self.name}: {why}")


def lex(text):
    tokens = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "tag" else "string"
        tokens.append(Token(kind, match.group(0)))
    return tokens


def without_comments(text):
    plain = "".join(" " if t.kind == "comment" else t.text for t in lex(text))
    lines = [line.rstrip() for line in plain.split("\n")]
    return "\n".join(line for line in lines if line).strip()


def blank_strings(text):
    """The text with the inside of literals removed, so that words in them are not keywords."""
    return "".join("''" if t.kind == "string" else t.text for t in lex(text))


def parse_header(statement, key, value):
    if key == "role":
        roles = [role.strip() for role in value.split(",")]
        for role in roles:
            if role not in ROLES:
                statement.refuse(f"unknown role {role!r}; use one of: {', '.join(ROLES)}")
        statement.roles = roles
    elif key == "scope":
        if value != "global":
            statement.refuse(f"unknown scope {value!r}; the only one is: global")
        statement.is_global = True


def parse_file(path, text):
    statements = []
    current = None
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"--\s*(name|fragment|role|scope):\s*(.*?)\s*(?:\(.*\)\s*)?$", line)
        if header and header.group(1) in ("name", "fragment"):
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", header.group(2)):
                raise Refused(f"{path}:{number}: {header.group(2)!r} is no name (lower_snake)")
            current = Statement(path, number, header.group(2))
            current.is_fragment = header.group(1) == "fragment"
            statements.append(current)
        elif current is None:
            if line.strip() and not line.startswith("--"):
                raise Refused(f"{path}:{number}: SQL before the first `-- name:`")
        elif header and not without_comments("\n".join(current.lines)):
            parse_header(current, header.group(1), header.group(2))
        elif header:
            current.refuse(f"`-- {header.group(1)}:` belongs before the statement's text")
        else:
            current.lines.append(line)
    return statements


def check_parameters(statement, tokens):
    seen = {int(t.text[1:]) for t in tokens if t.kind == "param"}
    statement.parameters = max(seen, default=0)
    missing = sorted(set(range(1, statement.parameters + 1)) - seen)
    if missing:
        statement.refuse(f"${missing[0]} is not used, but ${statement.parameters} is")
    if statement.parameters > PARAMETERS_MAX:
        statement.refuse(f"{statement.parameters} parameters; at most {PARAMETERS_MAX} are possible")


def starts_update(tokens, i):
    """True for UPDATE and DELETE that change a table (not FOR UPDATE, nor ON CONFLICT DO UPDATE)."""
    before = tokens[i - 1].upper if i else ""
    if tokens[i].upper == "DELETE":
        return i + 1 < len(tokens) and tokens[i + 1].upper == "FROM"
    return tokens[i].upper == "UPDATE" and before not in ("FOR", "KEY", "DO")


def has_where(tokens, i):
    depth = 0
    for token in tokens[i:]:
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth < 0:
                return False
        elif token.upper == "WHERE" and depth == 0:
            return True
    return False


def check_words(statement, tokens):
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        after = tokens[i + 1] if i + 1 < len(tokens) else Token("char", "")
        if token.upper in ("LIKE", "ILIKE") or (token.upper == "SIMILAR" and after.upper == "TO"):
            statement.refuse(f"{token.upper} is not leakproof, so it uses no index under row security; "
                             "use starts_with()")
        if token.upper in ("UPDATE", "DELETE") and starts_update(tokens, i) and not has_where(tokens, i):
            statement.refuse(f"{token.upper} without WHERE")
        if token.upper == "SET_CONFIG":
            statement.refuse("set_config is the database layer's own; remove it")
        if token.upper == "TRUNCATE":
            statement.refuse("TRUNCATE is never granted; use DELETE with WHERE")


def table_aliases(tokens, tables):
    """Names under which real tables are read in this statement."""
    names = {}
    for i, token in enumerate(tokens[:-1]):
        if token.upper in ("FROM", "JOIN", "INTO", "UPDATE", "USING"):
            table = tokens[i + 1].text.lower()
            if table not in tables:
                continue
            rest = [t for t in tokens[i + 2:i + 4]]
            names[table] = table
            if rest and rest[0].upper == "AS":
                rest = rest[1:]
            if rest and rest[0].kind == "word":
                names[rest[0].text.lower()] = table
    return names


def check_stars(statement, tokens, tables):
    names = table_aliases(tokens, tables)
    for i, token in enumerate(tokens):
        if token.text != "*" or i == 0:
            continue
        before = tokens[i - 1]
        if before.upper in ("SELECT", "RETURNING", "DISTINCT", "ALL"):
            statement.refuse(f"{before.upper} * breaks prepared statements when a column is added; name the columns")
        if before.text == "." and tokens[i - 2].text.lower() in names:
            statement.refuse(f"{tokens[i - 2].text}.* breaks prepared statements when a column is added; name the columns")


def expand(statement, fragments, depth=0):
    """The statement's lines with all fragments in place; a fragment may use others."""
    text = "\n".join(statement.lines)
    if depth > 8:
        statement.refuse("fragments that use each other")

    def put(match):
        inner = fragments.get(match.group(1))
        if inner is None:
            statement.refuse(f"there is no fragment {match.group(1)!r} in this folder")
        return " ".join(without_comments(expand(inner, fragments, depth + 1)).split("\n"))

    return re.sub(r"\{\{(\w*)\}\}", put, text)


def resolve(statements):
    """Puts the fragments in; gives the statements back without them."""
    fragments = {}
    for fragment in (s for s in statements if s.is_fragment):
        if fragment.name in fragments:
            fragment.refuse("there is a fragment of this name")
        fragments[fragment.name] = fragment
    for statement in statements:
        statement.text = expand(statement, fragments)
    return [s for s in statements if not s.is_fragment]


def check(statement, tables):
    statement.text = without_comments(statement.text).rstrip(";").rstrip()
    if not statement.text:
        statement.refuse("has no text")
    tokens = [t for t in lex(statement.text) if t.kind != "space"]
    if any(t.text == ";" for t in tokens):
        statement.refuse("holds more than one statement; give each its own name")
    check_parameters(statement, tokens)
    check_words(statement, tokens)
    check_stars(statement, tokens, tables)
    plain = blank_strings(statement.text)
    if not statement.is_global and not ORG_PREDICATE.search(plain) and not ORG_INSERT.search(plain):
        statement.refuse("does not say `org_id = $1`; add it, or `-- scope: global` where no org is known")


def strip_org_predicate(text):
    pieces = re.split(r"('(?:[^']|'')*')", text)
    return "".join(piece if piece.startswith("'") else ORG_PREDICATE.sub("$1::uuid IS NOT NULL", piece)
                   for piece in pieces)


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sql_files(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if name.endswith(".sql") and not name.startswith(".")]


def load_statements(folders, tables):
    parsed = [statement for folder in folders for path in sql_files(folder)
              for statement in parse_file(path, read_text(path))]
    statements = resolve(parsed)
    where = {}
    for statement in statements:
        if statement.name in where:
            statement.refuse(f"this name is taken by {where[statement.name]}")
        where[statement.name] = f"{statement.path}:{statement.line}"
        check(statement, tables)
    if not statements:
        raise Refused(f"{folders[0]}: no statement")
    return statements


def load_migrations(folders):
    """NNNN_name.sql without gaps; in the folders after the first also next_name.sql, which takes the next number."""
    migrations = []
    for number, folder in enumerate(folders):
        for path in sql_files(folder):
            name = os.path.basename(path)
            if name == "schema.sql":
                continue
            match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql" if number == 0 else r"(next)_([a-z0-9_]+)\.sql", name)
            if not match:
                raise Refused(f"{path}: a migration is called NNNN_name.sql")
            version = len(migrations) + 1
            if match.group(1) not in ("next", f"{version:04d}"):
                raise Refused(f"{path}: expected number {version:04d} here (no gaps, no doubles)")
            migrations.append((version, match.group(2), read_text(path)))
    return migrations


def table_names(migrations):
    names = set()
    for _, _, text in migrations:
        for match in re.finditer(r"^\s*CREATE TABLE (?:IF NOT EXISTS )?(?:muster\.)?(\w+)", text, re.MULTILINE):
            names.add(match.group(1).lower())
    return names


def c_string(text, indent):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("?", "\\?")
    lines = escaped.split("\n")
    return "\n".join(f'{indent}"{line}{chr(92) + "n" if i + 1 < len(lines) else ""}"' for i, line in enumerate(lines))


def header_text(statements):
    names = "".join(f"    SQL_{s.name.upper()},\n" for s in statements)
    return ("/* Generated by db/embed_sql.py from db/sql: one value a named statement. */\n"
            "#ifndef DB_SQL_IDS_H\n#define DB_SQL_IDS_H\n\n"
            f"enum sql_id {{\n{names}    SQL_COUNT\n}};\n\n#endif\n")


def source_text(statements, migrations, strip):
    out = ["/* Generated by db/embed_sql.py from db/sql and migrations. */\n"
           '#include "db/statements.h"\n\n'
           "/* One literal a text: longer than what ISO C promises, fine for gcc and clang. */\n"
           '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n'
           "const struct statement statements[SQL_COUNT] = {\n"]
    for s in statements:
        roles = " | ".join(f"STATEMENT_{role.upper()}" for role in s.roles)
        text = strip_org_predicate(s.text) if strip else s.text
        out.append(f"    [SQL_{s.name.upper()}] = {{\n        .name = \"{s.name}\",\n"
                   f"        .text =\n{c_string(text, ' ' * 12)},\n        .parameters = {s.parameters},\n"
                   f"        .roles = {roles},\n        .is_global = {'true' if s.is_global else 'false'},\n    }},\n")
    out.append("};\n\nconst struct migration migrations[] = {\n")
    for version, name, text in migrations:
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        out.append(f"    {{\n        .version = {version},\n        .name = \"{name}\",\n"
                   f"        .sha256 = \"{digest}\",\n        .text =\n{c_string(text, ' ' * 12)},\n    }},\n")
    out.append(f"}};\n\nconst int migrations_count = {len(migrations)};\n")
    return "".join(out)


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(argv):
    parser = argparse.ArgumentParser(description="Checks and embeds SQL.")
    parser.add_argument("--sql", required=True, action="append", help="a folder; may be given again")
    parser.add_argument("--migrations", required=True, action="append", help="a folder; may be given again")
    parser.add_argument("--header", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--depfile")
    parser.add_argument("--strip-org-predicate", action="store_true")
    args = parser.parse_args(argv)
    try:
        migrations = load_migrations(args.migrations)
        statements = load_statements(args.sql, table_names(migrations))
    except Refused as refused:
        print(f"embed_sql: {refused}", file=sys.stderr)
        return 1
    write_text(args.header, header_text(statements))
    write_text(args.source, source_text(statements, migrations, args.strip_org_predicate))
    if args.depfile:
        # The folders stand there too: a file that is added or removed is noticed.
        folders = args.sql + args.migrations
        inputs = folders + [path for folder in folders for path in sql_files(folder)]
        write_text(args.depfile, f"{args.header} {args.source}: {' '.join(inputs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
