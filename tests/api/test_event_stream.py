"""Event streams: no gap, no repetition, resets, samples, and an end when the credential ends."""
import json
import re
import secrets
import threading
import time

import pytest

from raw import Raw, Silence, request
from server import Musterd
from waiting import PATIENCE_SECONDS, in_time, wait_for
from world import World

EVENT = re.compile(rb"(?:id: (\d+)\n)?event: ([\w.]+)\ndata: (.*?)\n\n")


class Stream:
    """An open stream as bytes come; events are (id, type, data)."""

    def __init__(self, server, token=None, query="", *headers, cookie=None):
        auth = f"Cookie: muster_session={cookie}" if cookie else f"Authorization: Bearer {token or server.admin}"
        self.raw = Raw(server.port)
        self.raw.send(request("GET", "/api/v1/events/stream" + query, auth, "Accept: text/event-stream", *headers))
        self.head = self.raw.until(rb"\r\n\r\n")
        self.status = int(self.head.split(b" ")[1])
        self.raw.begin_chunks()

    def ready(self):
        """Waits until the stream has found its place; only for streams that begin now."""
        self.raw.until(rb"id: \d+\n\n")
        return self

    def next(self, samples=False, seconds=PATIENCE_SECONDS):
        """The next event; samples (new summaries of a cluster) come at any moment and are passed over unless asked for."""
        while True:
            number, kind, data = EVENT.search(self.raw.until(EVENT, seconds)).groups()
            if samples or kind != b"sample":
                return (int(number) if number else None), kind.decode(), json.loads(data)

    def seqs(self, count):
        return [self.next()[0] for _ in range(count)]

    def until(self, seq):
        """The event of this number; the loops tell theirs in between."""
        while True:
            event = self.next()
            if event[0] == seq:
                return event
            assert event[0] < seq, "it was passed over"

    def close(self):
        self.raw.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture(scope="module")
def quiet(server):
    """An org of its own: no node, so that nobody tells anything but the test."""
    return server.add_org("stream-quiet")


def head_of(server, org=None):
    return int(server.sql(f"SELECT event_seq FROM org_head WHERE org_id = '{org or server.org_id}'"))


def test_a_stream_begins_now_and_tells_what_comes(server, quiet):
    server.add_event(summary="before", org_id=quiet.id, cluster_id=quiet.cluster_id)
    with Stream(server, quiet.token).ready() as stream:
        seq = server.add_event("node.state_changed", "gpu-17 is healthy", org_id=quiet.id, cluster_id=quiet.cluster_id)
        number, kind, data = stream.next()
        assert (number, kind) == (seq, "node.state_changed")
        assert data["seq"] == seq and data["summary"] == "gpu-17 is healthy" and data["cluster_id"] == quiet.cluster_id
        assert set(data) == {"type", "seq", "at", "severity", "cluster_id", "node_id", "incident_id", "repair_id", "summary"}


def test_an_event_is_there_within_half_a_second(server, quiet):
    """The follower looks every 250 ms; bench/run states the time. Here a machine with other things to do has a second."""
    with Stream(server, quiet.token).ready() as stream:
        def attempt():
            seq = server.add_event(org_id=quiet.id, cluster_id=quiet.cluster_id)
            begun = time.monotonic()
            stream.until(seq)
            return time.monotonic() - begun
        in_time(1, attempt, tries=10)


@pytest.mark.parametrize("how", ["query", "header"])
def test_a_stream_goes_on_after_its_place(server, quiet, how):
    after = head_of(server, quiet.id)
    wanted = [server.add_event(org_id=quiet.id, cluster_id=quiet.cluster_id) for _ in range(3)]
    query, headers = (f"?after={after}", []) if how == "query" else ("?after=0", [f"Last-Event-ID: {after}"])
    with Stream(server, quiet.token, query, *headers) as stream:
        assert stream.seqs(3) == wanted


def test_thousands_of_events_are_caught_up_in_order(server):
    org = server.add_org("many-events")
    server.sql(f"INSERT INTO event (org_id, seq, type) SELECT '{org.id}', i, 'note.added' FROM generate_series(1, 1750) i;"
               f" UPDATE org_head SET event_seq = 1750 WHERE org_id = '{org.id}'")
    with Stream(server, org.token, "?after=0") as stream:
        assert stream.seqs(1750) == list(range(1, 1751))


def test_no_event_is_lost_or_told_twice_while_streams_come_and_go(server):
    org = server.add_org("busy")
    stop = threading.Event()

    def write():
        with server.pg.connect(autocommit=True) as db:
            while not stop.is_set():
                db.execute("WITH h AS (UPDATE muster.org_head SET event_seq = event_seq + 1 WHERE org_id = %s RETURNING event_seq)"
                           " INSERT INTO muster.event (org_id, seq, type) SELECT %s, event_seq, 'note.added' FROM h", (org.id, org.id))
                time.sleep(0.002)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        failures = []

        def follow():
            last = 0
            try:
                for _ in range(6):
                    with Stream(server, org.token, "", f"Last-Event-ID: {last}") as stream:
                        for _ in range(40):
                            number, kind, _ = stream.next()
                            if number != last + 1:
                                failures.append((last, number, kind))
                            last = number
            except BaseException as error:  # a thread's own failure would be nobody's
                failures.append(error)

        followers = [threading.Thread(target=follow) for _ in range(6)]
        for follower in followers:
            follower.start()
        for follower in followers:
            follower.join(240)
            assert not follower.is_alive()
        assert not failures, failures[:5]
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_a_stream_of_a_cluster_tells_only_of_it(server):
    org = server.add_org("two-clusters")
    second = server.sql(f"INSERT INTO cluster (org_id, id, project_id, name) VALUES ('{org.id}', gen_random_uuid(), '{org.project_id}', 'second')"
                        " RETURNING id")
    with Stream(server, org.token, f"?cluster_id={second}&after=0") as stream:
        server.add_event(org_id=org.id, cluster_id=org.cluster_id)
        seq = server.add_event(org_id=org.id, cluster_id=second)
        assert stream.next()[0] == seq


def test_a_stream_never_tells_of_another_org(server):
    other = server.add_org("stranger")
    with Stream(server, other.token).ready() as stream:
        server.add_event(summary="of main")
        seq = server.add_event(org_id=other.id, cluster_id=other.cluster_id, summary="of stranger")
        number, _, data = stream.next()
        assert number == seq and data["summary"] == "of stranger"


def test_a_cluster_of_another_org_is_404(server):
    other = server.add_org("elsewhere")
    answer = server.api("GET", f"/api/v1/events/stream?cluster_id={other.cluster_id}")
    assert answer.status_code == 404
    absent = server.api("GET", "/api/v1/events/stream?cluster_id=0198f3c2-0000-7000-8000-00000000000a")
    assert absent.status_code == 404 and absent.json()["title"] == answer.json()["title"]


@pytest.mark.parametrize("query, headers, status", [("?after=x", {}, 422), ("?cluster_id=x", {}, 422), ("?nodes=1", {}, 422),
                                                    ("", {"Last-Event-ID": "x"}, 400), ("?after=-1", {}, 422)])
def test_a_wrong_place_is_refused(server, query, headers, status):
    assert server.api("GET", "/api/v1/events/stream" + query, headers=headers).status_code == status


def test_a_place_older_than_what_is_kept_resets(server):
    org = server.add_org("pruned")
    server.sql(f"INSERT INTO event (org_id, seq, type) SELECT '{org.id}', i, 'note.added' FROM generate_series(50, 60) i;"
               f" UPDATE org_head SET event_seq = 60 WHERE org_id = '{org.id}'")
    with Stream(server, org.token, "?after=10") as stream:
        assert stream.next() == (60, "reset", {"as_of_seq": 60})
        seq = server.add_event(org_id=org.id, cluster_id=org.cluster_id)
        assert stream.next()[0] == seq
    with Stream(server, org.token, "?after=49") as stream:
        assert stream.seqs(12) == list(range(50, 62))


def test_a_place_of_yesterday_is_found(server):
    org = server.add_org("yesterday")
    server.sql("INSERT INTO event (org_id, at, seq, type) SELECT '%s', now() - interval '20 hours' + i * interval '1 minute', i, 'note.added'"
               " FROM generate_series(1, 30) i; UPDATE org_head SET event_seq = 30 WHERE org_id = '%s'" % (org.id, org.id))
    with Stream(server, org.token, "?after=5") as stream:
        assert stream.seqs(25) == list(range(6, 31))


def test_a_place_that_never_was_resets(server):
    head = head_of(server)
    with Stream(server, None, f"?after={head + 1_000_000}") as stream:
        number, kind, _ = stream.next()
        assert kind == "reset" and number >= head


def test_new_readings_are_told_as_samples(server):
    org = server.add_org("sampled")
    with Stream(server, org.token).ready() as stream:
        def told():
            """A stream that just began takes the present readings for known: they move again until it says so."""
            server.sql(f"UPDATE cluster_rollup SET version = version + 1 WHERE org_id = '{org.id}';"
                       f" UPDATE org_head SET rollup_version = rollup_version + 1 WHERE org_id = '{org.id}'")
            try:
                return stream.next(samples=True, seconds=2)
            except Silence:
                return None
        number, kind, data = wait_for(told)
        assert (number, kind, data["cluster_id"]) == (None, "sample", org.cluster_id)
        assert data["version"] >= 2


# ---------------------------------------------------------------- credentials
@pytest.mark.parametrize("how", ["revoked_at = now()", "expires_at = now() + interval '1 second'"], ids=["revoke", "expire"])
def test_a_stream_ends_with_its_token(server, how):
    def attempt():
        nonlocal token
        token = server.token("viewer")
        with Stream(server, token).ready() as stream, Stream(server).ready() as other:
            server.sql(f"UPDATE service_token SET {how} WHERE token_hash = sha256('{token}');"
                       " UPDATE installation SET auth_epoch = auth_epoch + 1")
            took = stream.raw.closed_within(PATIENCE_SECONDS)
            assert took is not None
            other.until(server.add_event())
            return took
    token = None
    in_time(5, attempt)
    assert server.api("GET", "/api/v1/events/stream", token=token).status_code == 401


def test_a_stream_ends_with_its_session(server):
    cookie = server.session()
    with Stream(server, cookie=cookie).ready() as stream:
        assert stream.status == 200
        server.sql(f"DELETE FROM session WHERE token_hash = sha256('{cookie}'); UPDATE installation SET auth_epoch = auth_epoch + 1")
        assert stream.raw.closed_within(PATIENCE_SECONDS) is not None


def test_a_stream_needs_a_caller_who_may_read(server):
    assert server.api("GET", "/api/v1/events/stream", token=False).status_code == 401
    assert server.api("GET", "/api/v1/events/stream", token="mst_nobody").status_code == 401


# ---------------------------------------------------------------- limits and the stop
def test_more_than_a_thousand_streams_a_loop_are_503_and_all_hear_the_same(server):
    with Musterd(pg=server.pg, init=False, event_loops=1) as other:
        other.admin = server.admin
        streams = [Stream(other) for _ in range(1000)]
        try:
            refused = other.api("GET", "/api/v1/events/stream")
            assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
            for stream in streams:
                stream.ready()
            seq = server.add_event(summary="to all")
            for stream in streams:
                stream.until(seq)
            streams.pop().close()
            assert '"streams":' in other.api("GET", "/readyz", token=False).text
            streams[0].raw.until(rb": alive\n\n", PATIENCE_SECONDS)
            wait_for(lambda: 'muster_streams{loop="0"} 999' in other.api("GET", "/metrics", token=False).text,
                     said="a stream whose client left still counts")
        finally:
            for stream in streams:
                stream.close()


def test_a_stop_ends_streams(server):
    with Musterd(pg=server.pg, init=False) as other:
        stream = Stream(other, server.admin).ready()
        other.process.terminate()
        assert stream.raw.closed_within(PATIENCE_SECONDS) is not None
        assert other.process.wait(PATIENCE_SECONDS) == 0


def test_a_stream_lives_through_a_restart_of_the_database(server):
    with Stream(server).ready() as stream:
        stream.until(server.add_event())
        server.pg.restart()
        wait_for(lambda: server.api("GET", "/readyz", token=False).status_code == 200)
        stream.until(server.add_event())


def test_T6_streams_lists_and_metrics_of_one_org_hold_nothing_of_anothers(server):
    """Both on the same event loops, told in turn; every byte that comes is looked at."""
    mark = secrets.token_hex(4)
    ours, theirs = (World(server, server.add_org(f"{name}-{mark}")) for name in ("t6-ours", "t6-theirs"))
    canaries = (theirs.org.name, theirs.org.id, theirs.org.cluster_id)
    streams = [Stream(server, ours.org.token).ready() for _ in range(20)]
    try:
        theirs.node()
        for _ in range(5):
            theirs.event()
            last = ours.event()["seq"]
        for stream in streams:
            number = None
            while number != last:
                number, _, data = stream.next(samples=True)
                assert not any(canary in json.dumps(data) for canary in canaries)
    finally:
        for stream in streams:
            stream.close()
    for path in ("/metrics", "/readyz", "/api/v1/events", "/api/v1/audit", "/api/v1/clusters", "/api/v1/orgs", "/api/v1/me",
                 f"/api/v1/clusters/{theirs.org.cluster_id}/nodes"):
        answer = ours.api("GET", path)
        text = answer.text.replace(path, "")
        assert not any(canary in text for canary in canaries), path
