"""A server that is away: nothing critical is lost, order holds, the way back is no herd."""

import os
import time

import pytest


def xid(gpu, code):
    return f"NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}, pid=1, name=python3, reason"


def test_D3_criticals_of_an_outage_arrive_once_and_in_order(node, server):
    """D3_OUTAGE_SECONDS makes it as long as the promise's own figure, 60."""
    length = float(os.environ.get("D3_OUTAGE_SECONDS", "8"))
    node.start()
    server.wait_reports(1)
    server.stop()
    begun = time.monotonic()
    wanted = []
    for gpu in range(0x10, 0x60):
        # One after the other over the outage; a line written is the event that is waited for.
        deadline(lambda due=begun + len(wanted) * length / 0x50: time.monotonic() >= due)
        node.kernel(xid(gpu, 79), xid(gpu, 31))
        wanted.append(f"0000:{gpu:02x}:00")
    server.start()
    server.wait(lambda: len(server.found("gpu_lost")) == len(wanted), 180)
    assert [e["device"] for e in server.found("gpu_lost")] == wanted
    assert server.holes == []
    assert [s for _, s, _, e in server.events if e["check_id"] == "gpu_lost"] == [0] * len(wanted)
    assert len(server.found("gpu_xid")) == len(wanted)


def test_D3_an_outage_survives_a_killed_agent(node, server):
    node.start()
    server.wait_reports(1)
    server.stop()
    for gpu in range(0x10, 0x20):
        node.kernel(xid(gpu, 79))
    spool = node.state / "spool" / node.boot_id
    deadline(lambda: sum(f.stat().st_size for f in spool.glob("0-*.log")) > 5000)
    node.stop(9)
    server.start()
    node.start()
    server.wait(lambda: len(server.found("gpu_lost")) == 16)
    server.wait_reports(2)
    assert len(server.found("gpu_lost")) == 16 and server.holes == []


def test_events_of_the_boot_before_come_first_and_under_its_id(node, server):
    node.start()
    server.wait_reports(1)
    server.stop()
    node.kernel(xid(0x10, 79), xid(0x11, 79))
    spool = node.state / "spool" / node.boot_id
    deadline(lambda: sum(f.stat().st_size for f in spool.glob("0-*.log")) > 600)
    node.stop(9)
    old = node.boot_id
    node.new_boot()
    node.boot.write_text(f"{node.boot_id}\nkmsg_seq {node.seq}\n")
    server.start()
    node.start()
    server.wait(lambda: len(server.found("gpu_lost")) == 2)
    server.wait_reports(2)
    boots = [r["boot_id"] for r in server.reports]
    assert boots.index(node.boot_id) > max(i for i, b in enumerate(boots) if b == old)
    assert {boot for boot, *_ in server.events} == {old}
    assert not spool.exists()


def test_D3_a_full_spool_drops_information_first_and_says_so(node, server):
    node.config["spool_mib"] = 1
    node.start()
    server.wait_reports(1)
    server.stop()
    for gpu in range(0x10, 0x18):
        node.kernel(xid(gpu, 79))
    # Distinct facts of about 700 bytes each: two MiB of information.
    for round_ in range(12):
        node.kernel(*[f"oom-kill:constraint=CONSTRAINT_MEMCG,{round_}" + "x" * 60 for _ in range(1)],
                    *[f"EXT4-fs error (device sd{round_}x{i}): " + "y" * 200 for i in range(250)],
                    *[f"NVRM: Xid (PCI:{round_:04x}:{i:02x}:00): 13, pid=1, name=x, " + "z" * 200 for i in range(250)])
        deadline(lambda: not engine_is_behind(node))
    server.start()
    event = server.wait_event("agent.dropped")
    assert event["count"] > 100 and event["severity"] == "info"
    server.wait(lambda: len(server.found("gpu_lost")) == 8)
    assert server.holes == []


@pytest.mark.parametrize("status", [503, 429, 500])
def test_an_overloaded_server_is_asked_again_and_loses_nothing(node, server, status):
    node.start()
    server.wait_reports(1)
    server.answer_with = status
    node.kernel(xid(0x2b, 79))
    server.wait(lambda: [t for t in server.tries if t[2] == status])
    server.answer_with = None
    server.wait_event("gpu_lost")
    assert len(server.found("gpu_lost")) == 1


def test_a_lost_access_token_is_renewed(node, server):
    node.start()
    server.wait_reports(1)
    server.tokens.clear()
    server.wait_reports(2)
    assert [p for _, p, _ in server.tries if p == "/agent/v1/token"]
    assert server.enrolled == 1


def test_a_token_is_renewed_before_it_ends(node, server):
    server.token_life = 10
    node.start()
    server.wait(lambda: len([1 for _, p, s in server.tries if p == "/agent/v1/token" and s == 200]) >= 2)
    assert not [1 for _, p, s in server.tries if s == 401]


def test_an_event_that_the_server_cannot_take_stops_neither_readings_nor_others(node, server):
    node.start()
    server.wait_reports(1)
    server.refuse = lambda body: "too many events" if sum(len(s["events"]) for s in body["streams"]) > 2 else None
    node.kernel(*[xid(gpu, 79) for gpu in range(0x10, 0x20)])
    server.wait(lambda: len(server.found("gpu_lost")) == 16, 60)
    assert server.holes == []


def deadline(what, seconds=90):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def engine_is_behind(node):
    """True while lines wait to be read: the mark moves with the rounds, which go on in an outage."""
    mark = node.state / "kmsg"
    return not mark.exists() or int(mark.read_text().split()[1]) < node.seq
