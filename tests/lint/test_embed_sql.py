"""The SQL embedder refuses what would break tenancy, and embeds the rest."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "db"))
import embed_sql  # noqa: E402

TABLES = {"node", "cluster"}


def embed(text, tables=TABLES):
    statements = embed_sql.parse_file("t.sql", text)
    statements = embed_sql.resolve(statements)
    for statement in statements:
        embed_sql.check(statement, tables)
    return statements


class Accepts(unittest.TestCase):
    def accept(self, sql, scope=""):
        return embed(f"-- name: t\n{scope}{sql}\n")[0]

    def test_the_org_predicate_in_every_spelling(self):
        for predicate in ("org_id = $1", "org_id=$1", "n.org_id = $1", "n.org_id=$1", "n . org_id  =  $1",
                          "ORG_ID = $1", "org_id\n = $1", "n.org_id = $1::uuid"):
            self.accept(f"SELECT name FROM node n WHERE {predicate}")

    def test_a_global_statement_without_an_org(self):
        self.assertTrue(self.accept("SELECT id FROM installation", "-- scope: global\n").is_global)

    def test_an_insert_that_gives_the_org(self):
        self.accept("INSERT INTO node (org_id, id) VALUES ($1, $2)")
        self.accept("INSERT INTO node AS n (org_id, id) SELECT $1, $2")

    def test_stars_that_read_no_table(self):
        self.accept("WITH a AS (SELECT name FROM node WHERE org_id = $1) SELECT a.* FROM a")
        self.accept("SELECT count(*), 2 * 3 FROM node WHERE org_id = $1")

    def test_an_upsert_and_a_row_lock_need_no_where(self):
        self.accept("INSERT INTO node (org_id, id) VALUES ($1, $2) ON CONFLICT (org_id, id) DO UPDATE SET name = 'x'")
        self.accept("SELECT name FROM node WHERE org_id = $1 FOR UPDATE")
        self.accept("SELECT name FROM node WHERE org_id = $1 FOR NO KEY UPDATE")

    def test_keywords_inside_literals(self):
        self.accept("SELECT 'I LIKE it; DELETE FROM x' FROM node WHERE org_id = $1")

    def test_parameters_are_counted_and_roles_kept(self):
        statement = self.accept("SELECT $3::int, $2::text FROM node WHERE org_id = $1;", "-- role: app, loop\n")
        self.assertEqual(statement.parameters, 3)
        self.assertEqual(statement.roles, ["app", "loop"])
        self.assertFalse(statement.text.endswith(";"))


class Fragments(unittest.TestCase):
    def test_a_fragment_is_put_in_wherever_it_is_named(self):
        statement, = embed("-- name: t\nSELECT {{fields}} FROM node n WHERE org_id = $1\n"
                           "-- fragment: fields\n-- what all see\nn.id,\n n.name\n")
        self.assertEqual(statement.text, "SELECT n.id,  n.name FROM node n WHERE org_id = $1")

    def test_fragments_may_use_others_but_not_themselves(self):
        statement, = embed("-- name: t\nSELECT {{a}} FROM node n WHERE org_id = $1\n-- fragment: a\n{{b}}, n.id\n-- fragment: b\nn.name\n")
        self.assertEqual(statement.text, "SELECT n.name, n.id FROM node n WHERE org_id = $1")
        with self.assertRaises(embed_sql.Refused):
            embed("-- name: t\nSELECT {{a}} FROM node n WHERE org_id = $1\n-- fragment: a\n{{a}}\n")

    def test_an_unknown_fragment_is_refused(self):
        with self.assertRaises(embed_sql.Refused) as caught:
            embed("-- name: t\nSELECT {{fields}} FROM node n WHERE org_id = $1\n")
        self.assertIn("no fragment 'fields'", str(caught.exception))

    def test_a_fragment_with_a_star_is_refused_where_it_is_used(self):
        with self.assertRaises(embed_sql.Refused):
            embed("-- name: t\nSELECT {{all}} FROM node n WHERE org_id = $1\n-- fragment: all\nn.*\n")


class Refuses(unittest.TestCase):
    def refuse(self, sql, why, scope="", tables=TABLES):
        with self.assertRaises(embed_sql.Refused) as caught:
            embed(f"-- name: t\n{scope}{sql}\n", tables)
        self.assertIn(why, str(caught.exception))

    def test_no_org(self):
        for sql in ("SELECT name FROM node", "SELECT name FROM node WHERE id = $1",
                    "SELECT $1::int, name FROM node WHERE org_id = $2",
                    "SELECT $2, $3, $4, $5, $6, $7, $8, $9, $1 FROM node WHERE org_id = $10",
                    "SELECT name FROM node -- org_id = $1\n WHERE id = $1",
                    "SELECT 'org_id = $1' FROM node WHERE id = $1",
                    "SELECT name FROM node WHERE other_org_id = $1"):
            self.refuse(sql, "org_id = $1" if "$10" not in sql else "org_id = $1")

    def test_stars(self):
        for sql in ("SELECT * FROM node WHERE org_id = $1", "SELECT n.* FROM node n WHERE n.org_id = $1",
                    "SELECT n.name, n.* FROM node AS n WHERE n.org_id = $1", "SELECT DISTINCT * FROM node WHERE org_id = $1",
                    "UPDATE node SET name = 'a' WHERE org_id = $1 RETURNING *"):
            self.refuse(sql, "name the columns")

    def test_like(self):
        for sql in ("SELECT name FROM node WHERE org_id = $1 AND name LIKE $2",
                    "SELECT name FROM node WHERE org_id = $1 AND name NOT ILIKE $2",
                    "SELECT name FROM node WHERE org_id = $1 AND name SIMILAR TO $2"):
            self.refuse(sql, "starts_with")

    def test_changes_of_whole_tables(self):
        self.refuse("DELETE FROM node", "without WHERE", "-- scope: global\n")
        self.refuse("UPDATE node SET name = 'a'", "without WHERE", "-- scope: global\n")
        self.refuse("WITH d AS (DELETE FROM node) SELECT name FROM cluster WHERE org_id = $1", "without WHERE")
        self.refuse("UPDATE node SET name = (SELECT name FROM cluster WHERE org_id = $1)", "without WHERE")

    def test_two_statements_under_one_name(self):
        self.refuse("SELECT 1 FROM node WHERE org_id = $1; SELECT 2", "more than one")

    def test_setting_the_org_by_hand(self):
        self.refuse("SELECT set_config('muster.org', $1, true) FROM node WHERE org_id = $1", "set_config")

    def test_a_gap_in_the_parameters(self):
        self.refuse("SELECT name FROM node WHERE org_id = $1 AND id = $3", "$2 is not used")

    def test_headers_it_does_not_know(self):
        self.refuse("SELECT 1", "unknown role", "-- role: root\n")
        self.refuse("SELECT 1", "unknown scope", "-- scope: all\n")
        self.refuse("SELECT 1\n-- scope: global\n", "before the statement's text")

    def test_a_name_given_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.sql", "b.sql"):
                embed_sql.write_text(os.path.join(folder, name), "-- name: t\n-- scope: global\nSELECT 1\n")
            with self.assertRaises(embed_sql.Refused) as caught:
                embed_sql.load_statements([folder], TABLES)
            self.assertIn("taken", str(caught.exception))

    def test_a_gap_in_the_migrations(self):
        with tempfile.TemporaryDirectory() as folder:
            embed_sql.write_text(os.path.join(folder, "0002_x.sql"), "SELECT 1;\n")
            with self.assertRaises(embed_sql.Refused):
                embed_sql.load_migrations([folder])


class Migrations(unittest.TestCase):
    def test_those_of_a_second_folder_follow(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            embed_sql.write_text(os.path.join(one, "0001_a.sql"), "SELECT 1;\n")
            embed_sql.write_text(os.path.join(one, "schema.sql"), "")
            embed_sql.write_text(os.path.join(two, "next_b.sql"), "SELECT 2;\n")
            self.assertEqual([m[:2] for m in embed_sql.load_migrations([one, two])], [(1, "a"), (2, "b")])


class Strips(unittest.TestCase):
    def test_the_org_predicate_in_every_spelling_but_not_in_literals(self):
        for predicate in ("org_id = $1", "org_id=$1", "n.org_id = $1", "n.org_id = $1::uuid", "N.ORG_ID=$1"):
            self.assertEqual(embed_sql.strip_org_predicate(f"WHERE {predicate} AND id = $2"),
                             "WHERE $1::uuid IS NOT NULL AND id = $2")
        self.assertEqual(embed_sql.strip_org_predicate("'org_id = $1' org_id = $10"), "'org_id = $1' org_id = $10")


class Embeds(unittest.TestCase):
    def test_text_survives_as_a_c_literal(self):
        self.assertEqual(embed_sql.c_string('a "b" \\ ??/\nc', ""), '"a \\"b\\" \\\\ \\?\\?/\\n"\n"c"')

    def test_the_repository_itself(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("ids.h", "statements.c", "deps")]
            self.assertEqual(embed_sql.main(["--sql", os.path.join(root, "db", "sql"),
                                             "--migrations", os.path.join(root, "migrations"), "--header", paths[0],
                                             "--source", paths[1], "--depfile", paths[2], "--strip-org-predicate"]), 0)
            self.assertIn("SQL_COUNT", embed_sql.read_text(paths[0]))
            self.assertIn("auth.sql", embed_sql.read_text(paths[2]))
            stripped = embed_sql.read_text(paths[1]).split("const struct migration")[0]
            self.assertIsNone(embed_sql.ORG_PREDICATE.search(stripped))


if __name__ == "__main__":
    unittest.main()
