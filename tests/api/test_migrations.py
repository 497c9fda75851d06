"""Migrations: what they make, that they are safe to repeat and to interrupt, and what start-up refuses."""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "db")]
import embed_sql  # noqa: E402
import schema  # noqa: E402
from pg import PrivatePostgres  # noqa: E402
from probe import NEXT_PROBE, PROBE, Probe, command  # noqa: E402
from waiting import wait_for  # noqa: E402

LATEST = len(embed_sql.load_migrations([str(ROOT / "migrations")]))
SEED = """
INSERT INTO muster.org (id, name) SELECT gen_random_uuid(), 'org' || n FROM generate_series(1, 8) n;
INSERT INTO muster.project (org_id, id, name) SELECT o.id, gen_random_uuid(), 'project' FROM muster.org o;
"""


@pytest.fixture
def empty():
    with PrivatePostgres() as pg:
        yield pg


@pytest.fixture
def migrated():
    with PrivatePostgres(migrate=[str(PROBE), "migrate"]) as pg:
        pg.psql(SEED)
        yield pg


# ---------------------------------------------------------------- what they make
def test_empty_to_latest_equals_schema_sql(empty):
    assert command(empty, "migrate") == (0, f"ok {LATEST}")
    wanted = (ROOT / "migrations" / "schema.sql").read_text()
    assert schema.dump(empty) == wanted, "run script/schema and commit migrations/schema.sql"


def test_applying_again_changes_nothing(migrated):
    before = schema.dump(migrated)
    rows = migrated.psql("SELECT version, sha256, applied_at FROM muster.schema_migration")
    assert command(migrated, "migrate") == (0, "ok 0")
    assert schema.dump(migrated) == before
    assert migrated.psql("SELECT version, sha256, applied_at FROM muster.schema_migration") == rows


def test_everything_belongs_to_the_owner_role(migrated):
    assert migrated.psql("SELECT DISTINCT relowner::regrole FROM pg_class WHERE relnamespace = 'muster'::regnamespace") == "muster_owner"
    assert migrated.psql("SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'muster'::regnamespace") == "muster_owner"


def test_a_data_migration_reaches_the_rows_of_every_org(migrated):
    """Row security is forced on the owner too: without its policy an UPDATE would silently change nothing."""
    assert command(migrated, "migrate", NEXT_PROBE) == (0, "ok 1")
    assert migrated.psql("SELECT count(*) FROM muster.project WHERE probe_note = 'of project'") == "8"


def test_two_at_once_take_turns(empty):
    running = [subprocess.Popen([PROBE, "migrate"], env={**os.environ, **empty.env()}, stdout=subprocess.PIPE, text=True)
               for _ in range(2)]
    outputs = sorted(process.communicate(timeout=120)[0].strip() for process in running)
    assert outputs == ["ok 0", f"ok {LATEST}"]


# ---------------------------------------------------------------- what is refused
def test_an_empty_database_is_refused_at_start(empty):
    status, text = command(empty, "check-version")
    assert status == 1 and "run `musterd migrate`" in text


def test_an_older_database_is_refused_at_start_until_it_is_migrated(migrated):
    assert command(migrated, "check-version") == (0, "ok 0")
    status, text = command(migrated, "check-version", NEXT_PROBE)
    assert status == 1 and f"is at version {LATEST}, this musterd needs {LATEST + 1}: run `musterd migrate`" in text
    assert command(migrated, "migrate", NEXT_PROBE) == (0, "ok 1")
    assert command(migrated, "check-version", NEXT_PROBE) == (0, "ok 0")


def test_a_newer_database_is_refused(migrated):
    assert command(migrated, "migrate", NEXT_PROBE) == (0, "ok 1")
    before = schema.dump(migrated)
    for name in ("check-version", "migrate"):
        status, text = command(migrated, name)
        assert status == 1 and "This musterd is older than its database" in text
    assert schema.dump(migrated) == before


def test_a_changed_migration_is_refused(migrated):
    migrated.psql("UPDATE muster.schema_migration SET sha256 = repeat('0', 64) WHERE version = 1")
    status, text = command(migrated, "migrate", NEXT_PROBE)
    assert status == 1 and "Migration 1 was applied to this database with another text" in text
    assert migrated.psql("SELECT max(version) FROM muster.schema_migration") == str(LATEST)


def test_a_database_that_is_away_gives_a_sentence(migrated):
    migrated.immediate_stop()
    for name in ("check-version", "check-roles", "migrate"):
        status, text = command(migrated, name)
        assert status == 1 and text.startswith("unavailable") and "The database cannot be" in text


# ---------------------------------------------------------------- under load
class Writer(threading.Thread):
    """Changes one org's project as muster_app without pause; notes errors and the time of each commit."""

    def __init__(self, pg, org):
        super().__init__(daemon=True)
        self.pg, self.org, self.ended = pg, org, threading.Event()
        self.commits, self.errors = [], []

    def run(self):
        with self.pg.connect("app", autocommit=True) as connection:
            connection.execute("SELECT set_config('muster.org', %s, false)", [self.org])
            while not self.ended.is_set():
                try:
                    done = connection.execute("UPDATE project SET version = version + 1 WHERE org_id = %s", [self.org])
                    assert done.rowcount == 1
                    self.commits.append(time.monotonic())
                except Exception as error:  # the test tells it
                    self.errors.append(error)
                self.ended.wait(0.02)


def waits_for_lock(pg):
    return pg.psql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'muster_migrate' AND wait_event_type = 'Lock'") != "0"


def test_D8_a_migration_waits_for_a_long_reader_without_stopping_writers(migrated):
    orgs = migrated.psql("SELECT id FROM muster.org ORDER BY id").split("\n")
    writers = [Writer(migrated, org) for org in orgs]
    server = Probe(migrated)
    assert server.exec("app", "probe_projects", orgs[0]).err == "ok"
    with migrated.connect() as reader:
        reader.execute("SELECT count(*) FROM muster.project")
        begin = time.monotonic()
        for writer in writers:
            writer.start()
        wait_for(lambda: all(writer.commits for writer in writers))
        migration = subprocess.Popen([NEXT_PROBE, "migrate"], env={**os.environ, **migrated.env()},
                                     stdout=subprocess.PIPE, text=True)
        wait_for(lambda: waits_for_lock(migrated))
        assert migration.poll() is None
        waiting = time.monotonic()
        time.sleep(max(0, begin + 10 - time.monotonic()))  # the reader's ten seconds are the promise's own
        assert migration.poll() is None, "the reader still holds its lock"
        let_go = time.monotonic()
        reader.rollback()
    assert migration.communicate(timeout=120)[0].strip() == "ok 1"
    after = time.monotonic()
    wait_for(lambda: all(writer.commits[-1] > after for writer in writers))
    for writer in writers:
        writer.ended.set()
        writer.join()
    assert [error for writer in writers for error in writer.errors] == []
    # The migration lets go after 1.5 s each time: each writer went on all the while, and not only before and after.
    assert min(sum(waiting < commit < let_go for commit in writer.commits) for writer in writers) >= 3
    # A server of the release before goes on working.
    assert server.exec("app", "probe_projects", orgs[0]).err == "ok"
    server.close()


def test_D8_a_killed_migration_can_be_run_again(migrated):
    with migrated.connect() as reader:
        reader.execute("SELECT count(*) FROM muster.project")
        migration = subprocess.Popen([NEXT_PROBE, "migrate"], env={**os.environ, **migrated.env()},
                                     stdout=subprocess.DEVNULL)
        wait_for(lambda: waits_for_lock(migrated))
        migration.send_signal(signal.SIGKILL)
        migration.wait()
        reader.rollback()
    assert migrated.psql("SELECT max(version) FROM muster.schema_migration") in (str(LATEST), str(LATEST + 1))
    status, text = command(migrated, "migrate", NEXT_PROBE)
    assert status == 0 and text in ("ok 0", "ok 1")
    assert migrated.psql("SELECT max(version) FROM muster.schema_migration") == str(LATEST + 1)
    assert migrated.psql("SELECT count(*) FROM muster.project WHERE probe_note = 'of project'") == "8"


def test_D8_a_crash_of_the_database_leaves_a_migration_wholly_undone(migrated):
    reader = migrated.connect()
    reader.execute("SELECT count(*) FROM muster.project")
    migration = subprocess.Popen([NEXT_PROBE, "migrate"], env={**os.environ, **migrated.env()},
                                 stdout=subprocess.PIPE, text=True)
    wait_for(lambda: waits_for_lock(migrated))
    migrated.immediate_stop()
    reader.close()
    assert migration.communicate(timeout=120)[0].startswith("unavailable")
    migrated.start()
    assert migrated.psql("SELECT max(version) FROM muster.schema_migration") == str(LATEST)
    assert command(migrated, "migrate", NEXT_PROBE) == (0, "ok 1")


# ---------------------------------------------------------------- roles at start
def test_T1_start_refuses_roles_that_void_row_security(migrated):
    assert command(migrated, "check-roles") == (0, "ok 0")
    for grant, revoke, word in (
            ("ALTER ROLE muster_app SUPERUSER", "ALTER ROLE muster_app NOSUPERUSER", "superuser"),
            ("ALTER ROLE muster_loop BYPASSRLS", "ALTER ROLE muster_loop NOBYPASSRLS", "bypass row security"),
            ("GRANT muster_owner TO muster_ingest", "REVOKE muster_owner FROM muster_ingest", "owner"),
            ("GRANT muster_backup TO muster_app", "REVOKE muster_backup FROM muster_app", "bypass row security"),
            ("ALTER TABLE muster.node OWNER TO muster_app", "ALTER TABLE muster.node OWNER TO muster_owner", "owns"),
            ("GRANT TRUNCATE ON muster.node TO muster_loop", "REVOKE TRUNCATE ON muster.node FROM muster_loop", "TRUNCATE"),
            ("GRANT CREATE ON SCHEMA muster TO muster_app", "REVOKE CREATE ON SCHEMA muster FROM muster_app", "create objects")):
        migrated.psql(grant)
        status, text = command(migrated, "check-roles")
        migrated.psql(revoke)
        assert status == 1 and text.startswith("forbidden") and word in text, grant
    assert command(migrated, "check-roles") == (0, "ok 0")


def test_D1_a_database_that_is_not_durable_is_stated():
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        with PrivatePostgres(migrate=[str(PROBE), "migrate"], settings={setting: "off"}) as pg:
            status, text = command(pg, "check-roles")
            assert status == 0 and f"{setting} is off" in text
