"""Two replicas over one database, and what a replica does when more is asked than it can do."""

import concurrent.futures
import re
import time
from pathlib import Path

import httpx
import pytest

from server import Musterd
from test_event_stream import Stream
from waiting import wait_for


@pytest.fixture(scope="module")
def first():
    with Musterd() as running:
        yield running


@pytest.fixture(scope="module")
def second(first):
    """Another process over the first one's database and keys."""
    other = Musterd(pg=first.pg, init=False, keys_dir=str(first.folder / "keys"))
    other.admin, other.org_id, other.cluster_id = first.admin, first.org_id, first.cluster_id
    try:
        yield other.start()
    finally:
        other.stop()


def test_O8_an_event_written_through_one_replica_is_on_a_stream_of_the_other(first, second):
    """The follower looks every 250 ms; the deadline here is generous, bench/run states the time."""
    with Stream(second).ready() as stream:
        answer = first.api("POST", f"/api/v1/clusters/{first.cluster_id}/events", {"summary": "through the first"})
        assert answer.status_code == 201
        number, kind, data = stream.next()
        assert (kind, data["summary"], number) == ("note.added", "through the first", answer.json()["seq"])


def test_O8_no_listen_or_notify_is_used():
    root = Path(__file__).resolve().parent.parent.parent
    for path in [*root.glob("db/**/*.sql"), *root.glob("db/*.c"), *root.glob("migrations/*.sql"), *root.glob("server/**/*.c")]:
        assert not re.search(r"\b(pg_notify|NOTIFY|LISTEN)\b", path.read_text()), path


def test_what_one_replica_revokes_the_other_refuses(first, second):
    token = first.api("POST", f"/api/v1/clusters/{first.cluster_id}/join-tokens", {"uses": 1}).json()
    assert second.api("DELETE", f"/api/v1/join-tokens/{token['id']}").status_code == 204
    refused = first.api("POST", "/agent/v1/enroll", {"token": token["token"], "name": "late", "public_key": "A" * 43}, token=False)
    assert refused.status_code == 401


def rss_kib(server):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text()).group(1))


def test_O3_more_than_the_database_can_take_is_503_with_retry_after_and_bounded_memory(first):
    """The database stands still while 400 clients ask again and again: all are answered, none waits for ever."""
    assert first.api("GET", "/api/v1/clusters").status_code == 200
    before = rss_kib(first)

    def ask(_):
        with httpx.Client(timeout=120, trust_env=False) as client:
            begun, answers = time.monotonic(), []
            for _ in range(3):
                answers.append(client.get(first.url("/api/v1/clusters"), headers={"Authorization": f"Bearer {first.admin}"}))
            return time.monotonic() - begun, [(a.status_code, "retry-after" in a.headers) for a in answers]

    first.pg.pause()
    try:
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            results = list(pool.map(ask, range(400)))
    finally:
        first.pg.resume()
    seen = {answer for _, answers in results for answer in answers}
    assert seen == {(503, True)}, seen
    assert rss_kib(first) - before < 64 * 1024
    wait_for(lambda: first.api("GET", "/api/v1/clusters").status_code == 200, said="it did not recover")


def test_O3_health_is_answered_while_the_database_stands_still(first):
    first.pg.pause()
    try:
        assert first.api("GET", "/healthz", token=False).status_code == 200
    finally:
        first.pg.resume()
