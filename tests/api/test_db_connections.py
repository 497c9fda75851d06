"""The database layer: orgs stay apart inside one Sync, failures stay with their call, losses heal."""
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from pg import PrivatePostgres  # noqa: E402
from probe import PROBE, Probe  # noqa: E402
from waiting import in_time, wait_for  # noqa: E402

ORG_A = "0192aaaa-0000-7000-8000-00000000000a"
ORG_B = "0192bbbb-0000-7000-8000-00000000000b"
# A call ends after 5 s at the latest; a machine with other things to do adds its own, and what hangs would never end.
CALL_MS = 30_000

SEED = f"""
SET search_path = muster;
INSERT INTO org (id, name) VALUES ('{ORG_A}', 'a'), ('{ORG_B}', 'b');
INSERT INTO project (org_id, id, name) VALUES ('{ORG_A}', gen_random_uuid(), 'of-a'), ('{ORG_B}', gen_random_uuid(), 'of-b');
CREATE TABLE probe (key text PRIMARY KEY, runs integer NOT NULL DEFAULT 0);
CREATE TABLE probe_deferred (key text UNIQUE DEFERRABLE INITIALLY DEFERRED);
GRANT SELECT, INSERT, UPDATE ON probe TO muster_app;
GRANT INSERT ON probe_deferred TO muster_app;
"""


@pytest.fixture(scope="module")
def pg():
    with PrivatePostgres(migrate=[str(PROBE), "migrate"], fsync=False) as server:
        server.psql(SEED)
        yield server


@pytest.fixture
def probe(pg):
    pg.psql("DELETE FROM muster.probe; DELETE FROM muster.probe_deferred; INSERT INTO muster.probe VALUES ('k', 0)")
    running = Probe(pg)
    yield running
    running.close()


def is_warm(probe):
    probe.submit("warm", "read", "probe_org")
    probe.submit("warm-verb", "verb", "probe_value", "-", "-", "k")
    answers = probe.run()
    return answers["warm"].err == "ok" and answers["warm-verb"].err == "ok"


def warm(probe):
    """Both connections of the loop are up and the statement is prepared."""
    wait_for(lambda: is_warm(probe))


# ---------------------------------------------------------------- orgs
def test_T2_two_orgs_and_a_naked_statement_in_one_sync_do_not_leak(probe):
    warm(probe)
    probe.submit("naked-first", "read", "probe_org")
    probe.submit("a", "read", "probe_projects", ORG_A)
    probe.submit("naked-between", "read", "probe_org")
    probe.submit("b", "read", "probe_projects", ORG_B)
    probe.submit("a-again", "read", "probe_projects", ORG_A)
    probe.submit("naked-last", "read", "probe_org")
    answers = probe.run()
    times = {answers[name].text.rsplit("|", 1)[1] for name in answers if name}
    assert len(times) == 1, "all reads of a turn are one transaction"
    assert answers["a"].text.startswith(f"of-a|{ORG_A}|")
    assert answers["a-again"].text.startswith(f"of-a|{ORG_A}|")
    assert answers["b"].text.startswith(f"of-b|{ORG_B}|")
    for name in ("naked-first", "naked-between", "naked-last"):
        assert answers[name].text.startswith("|0|"), "no org is set and no org is seen"


def test_T2_a_plain_connection_keeps_no_org(probe):
    assert probe.exec("app", "probe_projects", ORG_A).text.startswith(f"of-a|{ORG_A}|")
    assert probe.exec("app", "probe_org").text.startswith("|0|")
    assert probe.exec("app", "probe_projects", ORG_B).text.startswith(f"of-b|{ORG_B}|")


def test_T2_an_org_is_gone_after_a_failed_neighbour(probe):
    warm(probe)
    probe.submit("a", "read", "probe_projects", ORG_A)
    probe.submit("bad", "read", "probe_divide", ORG_A, "-", "0")
    probe.submit("naked", "read", "probe_org")
    answers = probe.run()
    assert answers["naked"].text.startswith("|0|")


def test_T1_row_security_alone_hides_other_orgs(pg):
    """The app role without any predicate of ours: nothing without an org, and only its own with one."""
    assert pg.psql("SELECT count(*) FROM muster.project", role="app") == "0"
    assert pg.psql(f"BEGIN; SET LOCAL muster.org = '{ORG_A}'; SELECT name FROM muster.project", role="app") == "of-a"


# ---------------------------------------------------------------- failures
def test_a_failing_read_does_not_fail_its_neighbours(probe):
    warm(probe)
    for number in range(30):
        probe.submit(f"r{number}", "read", "probe_divide", "-", "-", "0" if number in (7, 19) else "5")
    answers = probe.run()
    for number in range(30):
        done = answers[f"r{number}"]
        assert (done.err, done.text) == ("ok", "2") if number not in (7, 19) else done.err == "internal"


def test_a_failing_verb_does_not_fail_the_next(probe):
    warm(probe)
    probe.submit("one", "verb", "probe_write", "-", "-", "new")
    probe.submit("twin", "verb", "probe_write", "-", "-", "new")
    probe.submit("two", "verb", "probe_write", "-", "-", "other")
    answers = probe.run()
    assert [answers[name].err for name in ("one", "twin", "two")] == ["ok", "conflict", "ok"]


def test_a_commit_that_fails_is_a_failed_verb(pg, probe):
    warm(probe)
    probe.submit("one", "verb", "probe_write_deferred", "-", "-", "x")
    probe.submit("twin", "verb", "probe_write_deferred", "-", "-", "x")
    answers = probe.run()
    assert answers["one"].err == "ok" and answers["twin"].err == "conflict"
    assert probe.exec("app", "probe_write_deferred", "-", "x").err == "conflict"
    assert pg.psql("SELECT count(*) FROM muster.probe_deferred") == "1"


def test_T4_a_409_with_a_key_runs_once_more_and_without_a_key_not(pg, probe):
    warm(probe)
    probe.submit("keyed", "verb", "probe_conflict", "-", "some-key", "k")
    answers = probe.run()
    assert answers["keyed"].text == "200|2"
    probe.submit("bare", "verb", "probe_conflict", "-", "-", "k")
    answers = probe.run()
    assert answers["bare"].text == "409|3"
    # The second run answers what it finds, 409 too.
    pg.psql("UPDATE muster.probe SET runs = 10; CREATE FUNCTION muster.probe_stay() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN NEW.runs = 11; RETURN NEW; END'; CREATE TRIGGER stay BEFORE UPDATE ON muster.probe FOR EACH ROW "
            "EXECUTE FUNCTION muster.probe_stay()")
    probe.submit("twice", "verb", "probe_conflict", "-", "some-key", "k")
    assert probe.run()["twice"].text == "409|11"
    pg.psql("DROP FUNCTION muster.probe_stay CASCADE")


def test_a_transaction_of_several_statements_takes_effect_wholly_or_not(pg, probe):
    assert probe.unit("app", "probe_write:n1", "probe_divide:0", "probe_write:n2").err == "internal"
    assert pg.psql("SELECT count(*) FROM muster.probe WHERE key LIKE 'n%'") == "0"
    assert probe.unit("app", "probe_write:n1", "probe_divide:5", "probe_write:n2").err == "ok"
    assert pg.psql("SELECT count(*) FROM muster.probe WHERE key LIKE 'n%'") == "2"


def test_a_deadlock_is_tried_again(pg, probe):
    """Another session holds `b` and wants `a`; ours holds `a` and wants `b`; ours is the victim and runs again."""
    pg.psql("INSERT INTO muster.probe VALUES ('a', 0), ('b', 0)")
    for _ in range(10):
        seen = pg.log.count("deadlock detected")
        with pg.connect() as other, pg.connect(autocommit=True) as watch:
            other.execute("SET deadlock_timeout = '60s'")
            other.execute("UPDATE muster.probe SET runs = runs WHERE key = 'b'")
            probe.send("unit app probe_conflict:a probe_conflict:b")
            # PostgreSQL looks for a deadlock once, 1 s after the wait began: no process is started in between.
            wait_for(lambda: watch.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%probe%'"
                                           " AND usename = 'muster_app'").fetchone()[0] > 0)
            other.execute("UPDATE muster.probe SET runs = runs WHERE key = 'a'")
            other.commit()
        done = probe.line()
        if pg.log.count("deadlock detected") > seen:
            break
        # This machine let the second pass before there was a deadlock; ours ended by its lock time-out. Once more.
        pg.psql("UPDATE muster.probe SET runs = 0 WHERE key IN ('a', 'b')")
    assert done.startswith("unit ok "), done
    assert pg.psql("SELECT key || runs FROM muster.probe WHERE key IN ('a', 'b') ORDER BY key") == "a1\nb1"


def test_a_changed_column_type_is_prepared_anew(pg, probe):
    warm(probe)
    assert probe.exec("app", "probe_value", "-", "k").text == "0"
    probe.submit("before", "read", "probe_value", "-", "-", "k")
    assert probe.run()["before"].text == "0"
    pg.psql("ALTER TABLE muster.probe ALTER runs TYPE bigint")
    probe.submit("loop", "read", "probe_value", "-", "-", "k")
    probe.submit("neighbour", "read", "probe_org")
    answers = probe.run()
    assert answers["loop"].text == "0" and answers["neighbour"].err == "ok"
    assert probe.exec("app", "probe_value", "-", "k").text == "0"
    assert "cached plan must not change result type" in pg.log
    pg.psql("ALTER TABLE muster.probe ALTER runs TYPE integer")


def test_statements_that_the_server_forgot_are_prepared_anew(pg, probe):
    warm(probe)
    assert probe.exec("app", "probe_org").err == "ok"
    assert probe.exec("app", "probe_forget").err == "ok"
    probe.submit("forget", "verb", "probe_forget")
    assert probe.run()["forget"].err == "ok"
    assert probe.exec("app", "probe_org").err == "ok"
    probe.submit("verb", "verb", "probe_value", "-", "-", "k")
    assert probe.run()["verb"].text == "0"
    assert 'prepared statement "muster_org" does not exist' in pg.log


def test_values_survive_the_way_there_and_back(probe):
    probe.send("types")
    assert probe.line() == "types ok"


def test_too_many_waiting_calls_are_refused(pg, probe):
    warm(probe)
    for number in range(4100):
        probe.submit(f"r{number}", "read", "probe_divide", "-", "-", "5")
    answers = probe.run(20000)
    errors = [done.err for done in answers.values() if done.id]
    assert errors.count("overloaded") == 4 and errors.count("ok") == 4096


# ---------------------------------------------------------------- time-outs and losses
def test_a_statement_that_takes_too_long_ends_by_itself(probe):
    done = probe.exec("app", "probe_sleep", "-", "30")
    assert done.err == "unavailable" and done.ms < 25000, "long before it would have ended"
    assert probe.exec("app", "probe_org").err == "ok"


def test_a_restart_of_the_server_is_healed(pg, probe):
    warm(probe)
    assert probe.exec("app", "probe_org").err == "ok"
    pg.restart()
    probe.submit("read", "read", "probe_org")
    probe.submit("verb", "verb", "probe_value", "-", "-", "k")
    answers = probe.run()
    assert answers["read"].err == "ok" and answers["verb"].err == "ok" and answers[None].text == "ready"
    assert probe.exec("app", "probe_org").err == "ok"


def test_a_crash_under_way_ends_verbs_and_repeats_reads(pg, probe):
    for _ in range(5):
        wait_for(lambda: is_warm(probe))
        probe.submit("read", "read", "probe_sleep", "-", "-", "1.5")
        probe.submit("verb", "verb", "probe_sleep", "-", "-", "1.5")
        with pg.connect(autocommit=True) as watch:
            probe.send("run 10000")
            end = time.monotonic() + 1.4
            both = lambda: watch.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchone()[0] == 2
            while not (seen := both()) and time.monotonic() < end:
                pass
        pg.immediate_stop()
        pg.start()
        answers = probe.collect()
        # Both must have been under way, and the database back before the read's 5 s were over.
        if seen and answers["read"].err == "ok" and answers["verb"].err != "ok":
            break
    assert answers["verb"].err == "unavailable", "nobody knows whether it took effect"
    assert answers["read"].err == "ok"
    wait_for(lambda: is_warm(probe))


def test_calls_end_within_their_time_while_the_server_is_away(pg, probe):
    warm(probe)
    assert probe.exec("app", "probe_org").err == "ok"
    pg.immediate_stop()
    try:
        probe.submit("read", "read", "probe_org")
        probe.submit("verb", "verb", "probe_value", "-", "-", "k")
        answers = probe.run(8000)
        for name in ("read", "verb"):
            assert answers[name].err == "unavailable" and answers[name].ms < CALL_MS
        assert answers[None].text == "not-ready"

        # It has been away for long: later calls do not wait.
        def late():
            probe.submit("late", "read", "probe_org")
            done = probe.run(8000)["late"]
            assert done.err == "unavailable"
            return done.ms / 1000
        in_time(1.5, late)
        assert probe.exec("app", "probe_org").err == "unavailable"
    finally:
        pg.start()
    warm(probe)
    wait_for(lambda: probe.exec("app", "probe_org").err == "ok")


def test_a_server_that_hangs_blocks_nobody_for_long(pg, probe):
    warm(probe)
    assert probe.exec("app", "probe_org").err == "ok"
    pg.pause()
    try:
        probe.submit("read", "read", "probe_org")
        probe.submit("verb", "verb", "probe_value", "-", "-", "k")
        answers = probe.run(8000)
        for name in ("read", "verb"):
            assert answers[name].err == "unavailable" and answers[name].ms < CALL_MS
        done = probe.exec("app", "probe_org")
        assert done.err == "unavailable" and done.ms < CALL_MS
    finally:
        pg.resume()
    warm(probe)
    wait_for(lambda: probe.exec("app", "probe_org").err == "ok")


def test_a_verb_that_waits_for_a_lock_does_not_hold_up_reads(pg, probe):
    warm(probe)
    with pg.connect() as other:
        other.execute("UPDATE muster.probe SET runs = runs WHERE key = 'k'")
        probe.submit("verb", "verb", "probe_conflict", "-", "-", "k")
        probe.submit("read", "read", "probe_org")
        answers = probe.run()
        other.rollback()
    assert answers["verb"].err == "unavailable" and answers["verb"].ms < CALL_MS, "lock_timeout is 2 s"
    assert answers["read"].err == "ok" and answers["read"].ms < answers["verb"].ms


def test_an_idle_pipeline_holds_no_locks(pg, probe):
    """What is queued leaves with its Sync: nothing of ours is ever in a transaction while we do nothing."""
    warm(probe)
    assert probe.exec("app", "probe_write", "-", "idle").err == "ok"
    assert pg.psql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'muster_app' AND xact_start IS NOT NULL") == "0"


def test_many_callers_at_once(pg, probe):
    """Several probes against one row: all verbs take effect exactly once."""
    pg.psql("UPDATE muster.probe SET runs = 0")
    probes = [Probe(pg) for _ in range(3)]
    results = []

    def work(each):
        for number in range(40):
            each.submit(f"v{number}", "verb", "probe_conflict", "-", "-", "k")
        results.append(each.run(20000))

    threads = [threading.Thread(target=work, args=(each,)) for each in probes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in probes:
        each.close()
    assert all(done.err == "ok" for answers in results for done in answers.values() if done.id)
    assert pg.psql("SELECT runs FROM muster.probe WHERE key = 'k'") == "120"
