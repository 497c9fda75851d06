"""Partitions that have outlived their table's period are dropped; the audit log is kept."""
import datetime
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

TABLES = ("event", "node_transition", "cluster_history", "audit")
TODAY = datetime.datetime.now(datetime.timezone.utc).date()


def name_of(table, days_ago):
    return f"{table}_{TODAY - datetime.timedelta(days=days_ago):%Y%m%d}"


def make(server, table, days_ago):
    """A partition of one day, as partitions_make makes them, so many days ago."""
    day = TODAY - datetime.timedelta(days=days_ago)
    part = name_of(table, days_ago)
    server.sql(f"SET ROLE muster_owner; CREATE TABLE {part} PARTITION OF {table} FOR VALUES FROM ('{day} 00:00+00')"
               f" TO ('{day + datetime.timedelta(days=1)} 00:00+00'); ALTER TABLE {part} ENABLE ROW LEVEL SECURITY;"
               f" ALTER TABLE {part} FORCE ROW LEVEL SECURITY")


def parts(server):
    return set(server.sql("SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'muster'"
                          " WHERE c.relkind = 'r'").split("\n"))


@pytest.fixture(scope="module")
def server():
    with Musterd(event_keep_days=30, history_keep_days=60) as running:
        for days_ago in (20, 40, 80):
            for table in TABLES:
                make(running, table, days_ago)
        running.restart()  # housekeeping looks at everything when it starts
        yield running


def test_what_is_older_than_its_period_is_dropped_and_the_rest_is_kept(server):
    gone = {name_of("event", 40), name_of("event", 80), name_of("node_transition", 80), name_of("cluster_history", 80)}
    wait_for(lambda: not gone & parts(server), said=lambda: gone & parts(server))
    kept = {name_of(table, days) for table in TABLES for days in (20, 40, 80)} - gone
    assert kept <= parts(server)


def test_the_audit_log_loses_no_partition(server):
    wait_for(lambda: name_of("event", 80) not in parts(server))
    assert {name_of("audit", days) for days in (20, 40, 80)} <= parts(server)


def test_the_oldest_partition_of_each_table_is_a_metric(server):
    def said():
        return server.client.get(server.url("/metrics")).text

    expected = {"event": 20, "node_transition": 40, "cluster_history": 40, "audit": 80}
    wait_for(lambda: all(f'muster_partition_oldest_days{{table="{table}"}} {days}\n' in said() for table, days in expected.items()), said=said)


def test_only_one_replica_drops(server):
    make(server, "event", 41)
    with server.pg.connect() as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('muster.partition_drop'))")
        assert server.sql("SELECT muster.partition_drop(30, 60)") == ""
        assert name_of("event", 41) in parts(server)
    assert server.sql("SELECT muster.partition_drop(30, 60)") == name_of("event", 41)


def test_a_reader_is_not_waited_for(server):
    make(server, "event", 42)
    with server.pg.connect() as other:
        other.execute("SELECT count(*) FROM muster.event")
        assert server.sql("SELECT muster.partition_drop(30, 60)") == ""
    assert server.sql("SELECT muster.partition_drop(30, 60)") == name_of("event", 42)


def test_nothing_is_dropped_where_all_is_kept(server):
    make(server, "event", 43)
    assert server.sql("SELECT muster.partition_drop(0, 0)") == ""
    assert name_of("event", 43) in parts(server)


def test_a_period_that_is_too_short_is_refused(server):
    done = subprocess.run([server.program, "check-config", "--config", str(server.config), "--event_keep_days", "3"], capture_output=True, text=True,
                          env=server.env(), check=False)
    assert done.returncode != 0 and "event_keep_days" in done.stderr
