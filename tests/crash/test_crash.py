"""Crashes under load: what was answered 2xx is stored, once; a lost database is an answer, not a silence.

The seed is printed; CRASH_SEED repeats a schedule and CRASH_SECONDS lengthens it (default 30).
Each event has an id of its client's own (it is the incident's code, so each opens one incident with count 1), and a
report also repeats one common fault, whose count must come out exactly.
"""
import http.client
import json
import os
import random
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from agent import Agent, fault, join_token, stream, wait_for  # noqa: E402
from server import Musterd  # noqa: E402

SECONDS = float(os.environ.get("CRASH_SECONDS", "30"))
SEED = int(os.environ.get("CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
WRITERS = 6
# Answers take 5 s at most: half of all refusals must show it, even on a machine with other things to do, which may be late with some.
PROMISED_SECONDS = 6
ANSWER_SECONDS = 25
PATIENCE_SECONDS = 90

pytestmark = pytest.mark.timeout(300 + 3 * SECONDS)


@pytest.fixture
def server():
    with Musterd(durable=True, database_wait_seconds=60) as running:
        yield running


class Writer(threading.Thread):
    """An agent with a spool in memory: events stay in it until a report with them was answered 200."""

    def __init__(self, server, name, token):
        super().__init__(daemon=True)
        self.agent = Agent(server, name).enroll(token)
        self.port = server.port
        self.random = random.Random(f"{SEED} {name}")
        self.spool = []
        self.made = 0
        self.acked = []          # ids of events in reports that were answered 200
        self.acked_seq = 0       # newest report that was answered 200
        self.answers = []        # (status, seconds, retry_after) of each try; status 0 = the connection broke
        self.broken = []         # an answer that was none
        self.stopping = threading.Event()
        self.connection = None

    def post(self, body):
        begun = time.monotonic()
        retry_after = None
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self.connection.request("POST", "/agent/v1/report", json.dumps(body),
                                    {"Authorization": f"Bearer {self.agent.token}", "Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
            status, retry_after = answer.status, answer.getheader("Retry-After")
            try:
                json.loads(text)
            except ValueError:
                self.broken.append(text)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, http.client.IncompleteRead):
                self.broken.append(str(error))
            status = 0
            self.connection.close()
            self.connection = None
        self.answers.append((status, time.monotonic() - begun, retry_after))
        return status

    def add_events(self):
        for _ in range(self.random.randrange(1, 4)):
            self.made += 1
            own = self.random.random() < 0.5
            # Without an id of their own they repeat the common fault.
            self.spool.append(fault(self.made, "crash", code=f"{self.agent.name}-{self.made}") if own
                              else fault(self.made, "common"))

    def send_spool(self):
        sent = list(self.spool)
        if self.post(self.agent.body(streams=[stream(0, *sent)])) == 200:
            self.acked_seq = self.agent.seq
            self.acked += sent
            self.spool = self.spool[len(sent):]
            return True
        return False

    def run(self):
        while not self.stopping.is_set():
            if len(self.spool) < 50:
                self.add_events()
            if not self.send_spool():
                # As an agent does, only faster: the crash is over soon.
                time.sleep(self.random.uniform(0.01, 0.1))

    def finish(self):
        self.stopping.set()
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), "a request hangs"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.spool and time.monotonic() < deadline:
            if not self.send_spool():
                time.sleep(0.1)
        assert not self.spool, f"the server does not take reports again: {self.answers[-3:]}"


def start_writers(server):
    token = join_token(server, uses=WRITERS)
    writers = [Writer(server, f"w{n}-{uuid.uuid4().hex[:6]}", token) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    return writers


def check_stored(server, writers):
    """Each acknowledged event is there exactly once, and nothing else is."""
    for writer in writers:
        agent = writer.agent
        own = {e["code"] for e in writer.acked if e["check_id"] == "crash"}
        rows = agent.one("SELECT code, sum(count) FROM incident WHERE node_id = {node} AND check_id = 'crash' GROUP BY code")
        stored = dict(row.split("|") for row in rows.splitlines())
        assert own - set(stored) == set(), "acknowledged, and lost"
        assert set(stored) - own == set()
        assert {code: count for code, count in stored.items() if count != "1"} == {}, "stored twice"
        common = sum(1 for e in writer.acked if e["check_id"] == "common")
        assert int(agent.one("SELECT coalesce(sum(count), 0) FROM incident WHERE node_id = {node} AND check_id = 'common'")) == common
        assert int(agent.one("SELECT seq FROM node_latest WHERE node_id = {node}")) >= writer.acked_seq
        assert agent.one("SELECT last_seq FROM node_stream WHERE node_id = {node}") == str(writer.made)
    gaps = server.sql(f"SELECT count(*), max(seq), count(DISTINCT seq) FROM event WHERE org_id = '{server.org_id}'").split("|")
    assert len(set(gaps)) == 1, f"the org's events have gaps or doubles: {gaps}"


def test_D1_D2_acknowledged_reports_survive_crashes_and_count_once(server):
    print(f"CRASH_SEED={SEED} CRASH_SECONDS={SECONDS:g}")
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert server.sql(f"SHOW {setting}") == "on"
    schedule = random.Random(SEED)
    writers = start_writers(server)
    crashes = {"server": 0, "database": 0, "both": 0}
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(schedule.uniform(1, 3))
        what = schedule.choice(["server", "database", "both"])
        crashes[what] += 1
        if what in ("server", "both"):
            server.process.kill()
        if what in ("database", "both"):
            server.pg.immediate_stop()
            server.pg.start()
        if what in ("server", "both"):
            server.process.wait()
            server.launch()
    for writer in writers:
        writer.finish()
    acked = sum(len(writer.acked) for writer in writers)
    tries = sum(len(writer.answers) for writer in writers)
    failed = sum(1 for writer in writers for status, _, _ in writer.answers if status != 200)
    print(f"{crashes}: {acked} events acknowledged in {tries} reports, {failed} of them failed")
    assert acked > 100 and failed > 0
    assert [b for writer in writers for b in writer.broken] == []
    check_stored(server, writers)


def check_answers(writers):
    """Only 200 and 503 with Retry-After, all in time, on connections that never broke."""
    answers = [answer for writer in writers for answer in writer.answers]
    assert {status for status, _, _ in answers} <= {200, 503}
    assert all(retry_after for status, _, retry_after in answers if status == 503)
    assert max(seconds for _, seconds, _ in answers) < ANSWER_SECONDS
    refusals = sorted(seconds for status, seconds, _ in answers if status == 503)
    assert not refusals or refusals[len(refusals) // 2] < PROMISED_SECONDS
    assert [b for writer in writers for b in writer.broken] == []


@pytest.mark.parametrize("how", ["fast_stop", "immediate_stop"])
def test_D4_a_restarted_database_needs_no_restarted_server(server, how):
    writers = start_writers(server)
    refused = lambda: any(status == 503 for writer in writers for status, _, _ in list(writer.answers))
    for n in range(30):
        time.sleep(0.7)
        getattr(server.pg, how)()
        time.sleep(0.7)
        server.pg.start()
        if n >= 2 and refused():
            break
    for writer in writers:
        writer.finish()
    assert refused()
    check_answers(writers)
    check_stored(server, writers)


def test_D4_a_database_that_hangs_is_an_answer_in_time(server):
    writers = start_writers(server)
    time.sleep(0.7)
    server.pg.pause()
    try:
        # Each waits for an answer, and gets one while the database still stands.
        wait_for(lambda: all(any(status == 503 for status, _, _ in list(writer.answers)) for writer in writers))
    finally:
        server.pg.resume()
    for writer in writers:
        writer.finish()
    check_answers(writers)
    check_stored(server, writers)


def test_a_stopping_server_answers_what_it_took(server):
    writers = start_writers(server)
    time.sleep(1)
    assert server.terminate() == 0
    for writer in writers:
        writer.stopping.set()
        writer.join(PATIENCE_SECONDS)
    server.launch()
    for writer in writers:
        writer.finish()
    check_stored(server, writers)
