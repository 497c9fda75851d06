"""Every embedded statement parses, plans and is permitted as each role that may run it; nothing is run."""
import sys
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "db")]
import embed_sql  # noqa: E402
from pg import PrivatePostgres  # noqa: E402
from probe import PROBE  # noqa: E402

TABLES = embed_sql.table_names(embed_sql.load_migrations([str(ROOT / "migrations")]))
STATEMENTS = embed_sql.load_statements([str(ROOT / "db" / "sql")], TABLES)


@pytest.fixture(scope="module")
def connections():
    with PrivatePostgres(migrate=[str(PROBE), "migrate"], fsync=False) as pg:
        opened = {role: pg.connect(role, autocommit=True, prepare_threshold=None) for role in embed_sql.ROLES}
        opened["migrate"].execute("SET ROLE muster_owner")
        opened["migrate"].execute("SET search_path = muster")
        for connection in opened.values():
            # A generic plan keeps every table, so that the permission of each is checked.
            connection.execute("SET plan_cache_mode = force_generic_plan")
        yield opened
        for connection in opened.values():
            connection.close()


def plan(connection, statement, text):
    """Plans and checks permissions without running."""
    connection.execute("DEALLOCATE ALL")
    connection.execute(f"PREPARE {statement.name} AS {text}".encode())
    values = f"({', '.join(['NULL'] * statement.parameters)})" if statement.parameters else ""
    connection.execute(f"EXPLAIN EXECUTE {statement.name}{values}")


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_is_planned_and_permitted(connections, statement):
    for role in statement.roles:
        try:
            plan(connections[role], statement, statement.text)
        except psycopg.Error as error:
            pytest.fail(f"{statement.path}:{statement.line}: {statement.name} as {role}: {error}", pytrace=False)


@pytest.mark.parametrize("statement", [s for s in STATEMENTS if not s.is_global], ids=lambda statement: statement.name)
def test_a_statement_without_its_org_predicate_is_planned(connections, statement):
    for role in statement.roles:
        plan(connections[role], statement, embed_sql.strip_org_predicate(statement.text))
