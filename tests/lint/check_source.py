"""House rules that a program can check: who includes whom, banned calls, sizes, first lines, format."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("base", "oidc", "db", "server", "agent", "cli", "bench")

# A file under the first prefix that matches may include headers under these prefixes only.
MAY_INCLUDE = [
    ("base/", ["base/"]),
    ("oidc/", ["base/", "oidc/"]),
    ("db/", ["base/", "db/"]),
    ("server/handlers/", ["base/", "oidc/", "db/", "server/"]),
    ("server/", ["base/", "oidc/", "db/", "server/"]),
    ("agent/", ["base/", "agent/"]),
    ("cli/", ["base/", "oidc/", "cli/"]),
    ("bench/", ["base/", "oidc/", "bench/"]),
]
# The server's inner rooms know nothing of the outer ones.
INNER = {"request", "respond", "router", "auth", "perms", "cursor", "encoding"}
OUTER = ("server/handlers/", "server/loops/", "server/repair/", "server/health/", "server/oidc/")
# Libraries that stay in their rooms.
LIBRARY_ROOMS = {
    "libpq-fe.h": ("db/",),
    "microhttpd.h": ("server/http.c", "server/http.h", "server/loop.c", "server/respond.c", "server/handlers/events.c"),
    "curl/curl.h": ("base/http_client.c",),
    "jwt.h": ("oidc/", "server/oidc/", "server/ticket.c"),
    "cjose/cjose.h": ("oidc/",),
    "yaml.h": ("oidc/yaml_read.c",),
}
BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gets|alloca|rand|system|localtime|gmtime)\s*\(")
BANNED_OUTSIDE_BASE = re.compile(r"\b(strtol|strtoul|strtoll|strtoull|malloc)\s*\(")
FUNCTION_LINES, FILE_LINES = 70, 600


def strip(text):
    """Comments and strings blanked, lines kept."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_includes(path, text, problems):
    own = path.with_suffix(".h")
    includes = re.findall(r'^#include ["<]([^">]+)[">]', text, re.M)
    if path.suffix == ".c" and (ROOT / own).exists() and (not includes or includes[0] != str(own)):
        problems.append(f"{path}: the first include is its own header {own}")
    allowed = next(rules for prefix, rules in MAY_INCLUDE if str(path).startswith(prefix))
    for name in includes:
        ours = name.split("/")[0] in FOLDERS and "/" in name
        if ours and not any(name.startswith(prefix) for prefix in allowed):
            problems.append(f"{path}: may not include {name}")
        if ours and path.parent == Path("server") and path.stem in INNER and name.startswith(OUTER):
            problems.append(f"{path}: the inner rooms may not include {name}")
        if str(path).startswith("server/handlers/") and name.startswith("server/handlers/") and name != str(own):
            problems.append(f"{path}: handlers never include each other ({name})")
        rooms = LIBRARY_ROOMS.get(name)
        if rooms and not str(path).startswith(rooms):
            problems.append(f"{path}: {name} stays in {', '.join(rooms)}")


def check_functions(path, code, problems):
    start = None
    for number, line in enumerate(code.split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            if number - start - 1 > FUNCTION_LINES:
                problems.append(f"{path}:{start}: a function of {number - start - 1} lines (at most {FUNCTION_LINES})")
            start = None


def check_file(path, problems):
    text = (ROOT / path).read_text()
    code = strip(text)
    if not text.startswith("/*"):
        problems.append(f"{path}:1: the first line is a comment that says what the file is for")
    if text.count("\n") > FILE_LINES:
        problems.append(f"{path}: {text.count(chr(10))} lines (at most {FILE_LINES})")
    for number, line in enumerate(code.split("\n"), 1):
        if BANNED.search(line) or (not str(path).startswith("base/") and BANNED_OUTSIDE_BASE.search(line)):
            problems.append(f"{path}:{number}: a banned call: {line.strip()}")
        if "//" in line:
            problems.append(f"{path}:{number}: comments are /* */")
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not re.search(r"#\d+", line):
            problems.append(f"{path}:{number}: an unfinished note without an issue number")
    check_includes(path, text, problems)
    check_functions(path, code, problems)


def check_format(files, problems):
    try:
        done = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *map(str, files)], cwd=ROOT,
                              capture_output=True, text=True, check=False)
    except FileNotFoundError:
        print("clang-format-14 is not installed: format not checked")
        return
    for line in done.stderr.split("\n"):
        if "error:" in line:
            problems.append(line.split(" [")[0])


def main():
    listed = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(p) for p in listed.stdout.split() if p.split("/")[0] in FOLDERS]
    problems = []
    for path in files:
        check_file(path, problems)
    check_format(files, problems)
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
