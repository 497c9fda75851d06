"""Reports of agents: docs/agent-protocol.md, Report and Commands."""
import datetime
import json
import threading
import uuid

import pytest

from agent import Agent, clear, fault, join_token, stream, wait_for


@pytest.fixture
def agent(server):
    return Agent(server, "r-" + uuid.uuid4().hex[:12]).enroll()


METRICS = {"cpu_ratio": 0.314, "mem_used_mib": 81234, "mem_total_mib": 2063000, "disk_ratio": 0.42, "net_rx_mbps": 12,
           "net_tx_mbps": 9, "fabric_rx_mbps": 21400, "fabric_tx_mbps": 21390}
GPUS = {"util": [97, None], "mem_mib": [61000, 5], "mem_total_mib": [81559, 81559], "temp_c": [61, -4], "power_w": [640, None]}


def events(agent):
    """(type, severity) of the events about this node since it joined."""
    rows = agent.one("SELECT type, severity FROM event WHERE node_id = {node} AND type <> 'node.joined'"
                     " AND type NOT LIKE 'node.%' AND type NOT LIKE 'repair.%' ORDER BY seq")
    return [tuple(row.split("|")) for row in rows.splitlines()]


# ------------------------------------------------------------ readings
def test_readings_are_stored_with_the_answer(agent):
    body = agent.report_ok(metrics=METRICS, gpus=GPUS)
    assert 9 <= body["interval_seconds"] <= 11
    assert (body["accepted"], body["rejected"], body["commands"]) == (0, [], [])
    row = agent.one("SELECT seq, boot_id, ready, cpu_permille, mem_used_mib, mem_total_mib, disk_permille, net_rx_mbps, net_tx_mbps,"
                    " fabric_rx_mbps, fabric_tx_mbps, gpu_util, gpu_mem_mib, gpu_mem_total_mib, gpu_temp_c, gpu_power_w,"
                    " seen_at > now() - interval '10 s' FROM node_latest WHERE node_id = {node}")
    assert row == (f"1|{agent.boot_id}|t|314|81234|2063000|420|12|9|21400|21390|"
                   "{97,NULL}|{61000,5}|{81559,81559}|{61,-4}|{640,NULL}|t")


def test_what_cannot_be_read_is_null(agent):
    agent.report_ok(metrics={"cpu_ratio": None, "mem_used_mib": "much"}, gpus={"util": "no"}, ready=None)
    row = agent.one("SELECT cpu_permille, mem_used_mib, disk_permille, gpu_util, ready FROM node_latest WHERE node_id = {node}")
    assert row == "||||f"


def test_an_older_seq_changes_no_reading(agent):
    agent.report_ok(metrics=METRICS)
    late = agent.body(metrics={"cpu_ratio": 0.9})
    agent.report_ok(metrics={"cpu_ratio": 0.5})
    assert agent.send(late).status_code == 200
    assert agent.one("SELECT seq, cpu_permille FROM node_latest WHERE node_id = {node}") == "3|500"


def test_seq_goes_on_across_boots(agent):
    agent.report_ok(metrics=METRICS)
    agent.boot_id = str(uuid.uuid4())
    agent.report_ok(ready=False)
    row = agent.one("SELECT seq, boot_id, ready, cpu_permille FROM node_latest WHERE node_id = {node}")
    assert row == f"2|{agent.boot_id}|f|"


# ------------------------------------------------------------ events
def test_an_event_opens_an_incident(agent):
    answer = agent.report_ok(streams=[stream(0, fault(
        1, code="79", device="0000:bb:00", action="reboot", node_fault=True, clears="new_boot", summary="GPU fell off the bus",
        count=3, lines=[{"at": "2026-12-01T14:28:03.117Z", "source": "kernel", "text": "NVRM: \"Xid\" \\ 79, \u00e9", "opened": True}]))])
    assert (answer["accepted"], answer["rejected"]) == (1, [])
    row = agent.one("SELECT no > 0, cluster_id, device, check_id, code, severity, action, node_fault, clears, boot_id, summary, count,"
                    " evidence FROM incident WHERE node_id = {node}").split("|", 12)
    assert row[:12] == ["t", agent.cluster_id, "0000:bb:00", "gpu_lost", "79", "critical", "reboot", "t", "new_boot", agent.boot_id,
                        "GPU fell off the bus", "3"]
    assert json.loads(row[12]) == [{"at": "2026-12-01T14:28:03.117Z", "source": "kernel", "text": "NVRM: \"Xid\" \\ 79, \u00e9",
                                    "opened": True}]
    assert events(agent) == [("incident.opened", "critical")]


def test_the_same_report_again_has_no_effect(agent):
    body = agent.body(streams=[stream(0, fault(1), fault(2))])
    for _ in range(3):
        assert agent.send(body).json()["accepted"] == 2
    assert agent.incident() == (2, "critical", True)
    assert events(agent) == [("incident.opened", "critical")]


def test_repeats_with_news_count_the_news_once(agent):
    agent.report_ok(streams=[stream(0, fault(1), fault(2))])
    agent.report_ok(streams=[stream(0, fault(1), fault(2), fault(3, count=5))])
    assert agent.incident() == (7, "critical", True)


def test_streams_have_marks_of_their_own(agent):
    agent.report_ok(streams=[stream(0, fault(7)), stream(1, fault(1, "disk_slow", severity="warning"))])
    agent.report_ok(streams=[stream(1, fault(1, "disk_slow", severity="warning"), fault(2, "disk_slow", severity="warning"))])
    assert agent.incident()[0] == 1
    assert agent.incident("disk_slow")[0] == 2


def test_a_gap_does_not_stop_a_stream(agent):
    agent.report_ok(streams=[stream(0, fault(1))])
    agent.report_ok(streams=[stream(0, fault(40), fault(90))])
    assert agent.incident()[0] == 3
    agent.report_ok(streams=[stream(0, fault(41))])  # behind the mark: it was given up
    assert agent.incident()[0] == 3


def test_each_boot_counts_from_one(agent):
    agent.report_ok(streams=[stream(0, fault(1), fault(2))])
    old, agent.boot_id = agent.boot_id, str(uuid.uuid4())
    agent.report_ok(streams=[stream(0, fault(1)), stream(0, fault(1), fault(2), fault(3), boot_id=old)])
    assert agent.incident()[0] == 4
    marks = agent.one("SELECT boot_id, last_seq FROM node_stream WHERE node_id = {node} ORDER BY last_seq")
    assert marks.splitlines() == [f"{agent.boot_id}|1", f"{old}|3"]


def test_an_incident_belongs_to_the_boot_of_its_newest_event(agent):
    agent.report_ok(streams=[stream(0, fault(1))])
    agent.boot_id = str(uuid.uuid4())
    agent.report_ok(streams=[stream(0, fault(1))])
    assert agent.one("SELECT boot_id FROM incident WHERE node_id = {node}") == agent.boot_id


def test_what_cannot_be_stored_is_rejected_by_name(agent):
    answer = agent.report_ok(streams=[
        stream(1, fault(1, "x" * 64), fault(2), fault(3, severity="fatal"), {"seq": 4}),
        stream(9, fault(1)), {"events": [fault(5)]}])
    assert answer["accepted"] == 1
    assert [(r["stream"], r["seq"]) for r in answer["rejected"]] == [(1, 1), (1, 3), (1, 4), (9, 1), (-1, 5)]
    assert answer["rejected"][0]["reason"] == "check_id is too long"
    assert agent.incident()[0] == 1


@pytest.mark.parametrize("body", ["", "{", "[1,]", '{"boot_id":"\\ud800"}', '{"a":"\x01"}', "\xff"])
def test_malformed_json_is_refused(agent, body):
    answer = agent.send(body.encode("latin-1"))
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")


@pytest.mark.parametrize("change", [{"boot_id": "x"}, {"seq": 0}, {"seq": "1"}, {"seq": None}, {"boot_id": None}, {"streams": {}}])
def test_a_report_needs_its_place(agent, change):
    body = {**agent.body(), **change}
    answer = agent.send({key: value for key, value in body.items() if value is not None})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_fields")


def test_unknown_members_are_passed_over(agent):
    agent.report_ok(future={"a": [1, {"b": None}]}, metrics={"new_ratio": 3}, gpus={"fan": [1]},
                    streams=[stream(0, fault(1, later=[1, 2]), later={})])
    assert agent.incident()[0] == 1


def test_a_report_of_a_mebibyte_is_read_and_no_more(server, agent):
    line = {"text": "x" * 1000}
    many = [fault(n, "chatty", severity="info", lines=[line] * 10) for n in range(1, 90)]
    assert agent.report_ok(streams=[stream(2, *many)])["accepted"] == 89
    assert agent.one("SELECT jsonb_array_length(evidence), count FROM incident WHERE node_id = {node}") == "20|89"
    with server.socket() as raw:
        raw.sendall(f"POST /agent/v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {agent.token}\r\n"
                    f"Content-Length: {(1 << 20) + 1}\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413 ")


def test_too_many_events_in_one_report_are_refused_whole(agent):
    answer = agent.report(streams=[stream(2, *[fault(n, severity="info") for n in range(1, 2050)])])
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert agent.incident() is None


def test_eight_hundred_repeats_are_one_incident(agent):
    seq = 0
    for _ in range(8):
        many = [fault(seq + n, code="79", device="0000:bb:00") for n in range(1, 101)]
        seq += 100
        agent.report_ok(streams=[stream(0, *many)])
    assert agent.incident() == (800, "critical", True)
    assert events(agent) == [("incident.opened", "critical")]


def test_a_changed_severity_is_an_event_and_an_equal_one_is_not(agent):
    agent.report_ok(streams=[stream(1, fault(1, "ecc", severity="warning"))])
    agent.report_ok(streams=[stream(1, fault(2, "ecc", severity="warning"))])
    agent.report_ok(streams=[stream(1, fault(3, "ecc", severity="critical"))])
    assert agent.incident("ecc") == (3, "critical", True)
    assert events(agent) == [("incident.opened", "warning"), ("incident.changed", "critical")]


def test_evidence_is_the_first_twenty_lines(agent):
    for n in range(1, 31):
        agent.report_ok(streams=[stream(0, fault(n, lines=[{"text": f"line {n}"}]))])
    lines = json.loads(agent.one("SELECT evidence FROM incident WHERE node_id = {node}"))
    assert [line["text"] for line in lines] == [f"line {n}" for n in range(1, 21)]


def test_clear_closes_the_incident_of_its_key(agent):
    agent.report_ok(streams=[stream(0, fault(1, device="a"), fault(2, device="b"))])
    agent.report_ok(streams=[stream(0, clear(3, device="a"))])
    assert agent.one("SELECT device, closed_by FROM incident WHERE node_id = {node} ORDER BY device").splitlines() == ["a|agent", "b|"]
    assert events(agent)[-1] == ("incident.closed", "info")
    agent.report_ok(streams=[stream(0, clear(4, device="c"), fault(5, device="a"))])
    assert agent.one("SELECT count(*), count(*) FILTER (WHERE closed_at IS NULL) FROM incident WHERE node_id = {node}") == "3|2"


def test_turns_within_one_report_happen_in_their_order(agent):
    turns = [fault(n) if n % 2 else clear(n) for n in range(1, 42)]
    agent.report_ok(streams=[stream(0, *turns)])
    assert agent.one("SELECT count(*), count(*) FILTER (WHERE closed_at IS NULL), sum(count) FROM incident WHERE node_id = {node}") == "21|1|21"
    assert [t for t, _ in events(agent)] == ["incident.opened", "incident.closed"] * 20 + ["incident.opened"]


def test_dropped_events_are_told_and_open_nothing(agent):
    agent.report_ok(streams=[stream(2, {"seq": 9, "check_id": "agent.dropped", "severity": "warning", "count": 120,
                                        "summary": "120 events were dropped"})])
    assert agent.incident("agent.dropped") is None
    assert events(agent) == [("stream.dropped", "warning")]
    assert agent.one("SELECT data ->> 'count' FROM event WHERE node_id = {node} AND type = 'stream.dropped'") == "120"


def test_numbers_of_an_org_are_its_own_and_without_doubles(server, agent):
    other = server.add_org("numbers-" + uuid.uuid4().hex[:8])
    stranger = Agent(server, "stranger").enroll(org_id=other.id, cluster_id=other.cluster_id)
    stranger.report_ok(streams=[stream(0, fault(1), fault(2, "b"))])
    assert stranger.one("SELECT no FROM incident WHERE node_id = {node} ORDER BY no").splitlines() == ["1", "2"]
    agent.report_ok(streams=[stream(0, *[fault(n, f"check_{n}") for n in range(1, 30)])])
    assert server.sql("SELECT count(*) = count(DISTINCT no) FROM incident WHERE org_id = '" + server.org_id + "'") == "t"
    assert server.sql("SELECT count(*) = max(seq) AND min(seq) = 1 FROM event WHERE org_id = '" + server.org_id + "'") == "t"


def test_O9_a_wrong_clock_decides_nothing(agent):
    for days in (1, -1):
        wrong = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
        happened = wrong - datetime.timedelta(seconds=60)
        check = f"clock_{'ahead' if days > 0 else 'behind'}"
        agent.report_ok(sent_at=wrong.isoformat(), streams=[stream(1, fault(1 if days > 0 else 2, check, at=happened.isoformat()))])
        age = float(agent.one("SELECT extract(epoch FROM now() - last_at) FROM incident WHERE node_id = {node}"
                              f" AND check_id = '{check}'"))
        assert 59 < age < 300, "as long ago as it was by its own clock, and not a day"
    future = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)).isoformat()
    agent.report_ok(streams=[stream(1, fault(3, "future", at=future))])
    assert agent.one("SELECT last_at <= now() FROM incident WHERE node_id = {node} AND check_id = 'future'") == "t"


def test_many_at_once_are_all_stored(server):
    token = join_token(server, uses=40)
    agents = [Agent(server, "m-" + uuid.uuid4().hex[:12]).enroll(token) for _ in range(40)]
    wrong = []

    def run(agent):
        for n in range(1, 11):
            answer = agent.report(metrics=METRICS, streams=[stream(0, fault(n), fault(n, "other") if n % 3 == 0 else clear(n, "none"))])
            # Two events with one seq: the second is a repeat of a number that is taken.
            if answer.status_code != 200 or len(answer.json()["rejected"]) != 1:
                wrong.append(answer.text)

    threads = [threading.Thread(target=run, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    for agent in agents:
        assert agent.incident() == (10, "critical", True)
        assert agent.one("SELECT seq FROM node_latest WHERE node_id = {node}") == "10"


# ------------------------------------------------------------ who may report
def test_reports_need_a_live_token(server, agent):
    for token in (False, "mat_" + "x" * 43, server.admin):
        answer = server.api("POST", "/agent/v1/report", {"boot_id": agent.boot_id, "seq": 1}, token=token)
        assert answer.status_code == (403 if token == server.admin else 401)
    assert server.api("GET", "/api/v1/clusters", token=agent.token).status_code in (403, 404)


def test_I6_a_report_is_about_the_token_s_node_whatever_it_says(server, agent):
    other = Agent(server, "other-" + uuid.uuid4().hex[:8]).enroll()
    agent.report_ok(node_id=other.node_id, org_id=str(uuid.uuid4()), metrics=METRICS, streams=[stream(0, fault(1))])
    assert other.one("SELECT seq FROM node_latest WHERE node_id = {node}") == "0"
    assert other.incident() is None


# ------------------------------------------------------------ inventory, collectors
INVENTORY = {"agent_version": "0.1.0", "kernel": "6.1.0", "os_image": "Debian 12", "driver_version": "535.1", "gpu_type": "H100",
             "host_serial": "S1", "address": "10.0.0.7", "cpus": 64, "memory_mib": 2063000, "booted_at": "2026-12-01T00:00:00Z",
             "devices": [{"type": "gpu", "index": 0, "serial": "A", "pci": "0000:1b:00", "model": "H100", "memory_mib": 81559},
                         {"type": "gpu", "index": 1, "serial": "B"}, {"type": "nic", "serial": "N"}]}


def test_inventory_is_stored(agent):
    agent.report_ok(inventory=INVENTORY)
    row = agent.one("SELECT agent_version, kernel, os_image, driver_version, gpu_type, host_serial, address, cpus, memory_mib FROM node"
                    " WHERE id = {node}")
    assert row == "0.1.0|6.1.0|Debian 12|535.1|H100|S1|10.0.0.7|64|2063000"
    devices = agent.one("SELECT type, serial, index, pci, present FROM device WHERE node_id = {node} ORDER BY type, serial")
    assert devices.splitlines() == ["gpu|A|0|0000:1b:00|t", "gpu|B|1||t", "nic|N|||t"]


def test_a_part_that_is_gone_is_marked_and_kept(agent):
    agent.report_ok(inventory=INVENTORY)
    agent.report_ok(inventory={"devices": INVENTORY["devices"][1:]})
    assert agent.one("SELECT present FROM device WHERE node_id = {node} AND serial = 'A'") == "f"
    agent.report_ok(inventory={"kernel": "6.2.0"})  # says nothing about devices, and nothing else
    assert agent.one("SELECT count(*) FROM device WHERE node_id = {node} AND present") == "2"
    assert agent.one("SELECT kernel, driver_version FROM node WHERE id = {node}") == "6.2.0|535.1"
    agent.report_ok(inventory=INVENTORY)
    assert agent.one("SELECT count(*) FROM device WHERE node_id = {node} AND present") == "3"


def test_a_changed_driver_is_an_event(agent):
    agent.report_ok(inventory=INVENTORY)
    agent.report_ok(inventory=INVENTORY)
    assert agent.one("SELECT count(*) FROM event WHERE node_id = {node} AND type = 'node.updated'") == "0"
    agent.report_ok(inventory={**INVENTORY, "driver_version": "550.2"})
    assert agent.one("SELECT data #>> '{driver,after}' FROM event WHERE node_id = {node} AND type = 'node.updated'") == "550.2"


def test_collectors_say_what_they_cannot_read(agent):
    agent.report_ok(collectors=[{"name": "kmsg", "state": "ok", "reason": ""}, {"name": "nvml", "state": "unknown", "reason": "no library"}])
    agent.report_ok(collectors=[{"name": "kmsg", "state": "absent", "reason": ""}])
    rows = agent.one("SELECT name, state, reason FROM collector WHERE node_id = {node} ORDER BY name")
    assert rows.splitlines() == ["kmsg|absent|", "nvml|unknown|no library"]
    assert [e for e in events(agent) if e[0] == "collector.changed"] == [("collector.changed", "warning"), ("collector.changed", "info")]


# ------------------------------------------------------------ commands
def order(agent, action="reboot", args="{}", boot_id=None, deadline="1 hour", n=1):
    """A command as the repair engine makes it; gives its id."""
    command = str(uuid.uuid4())
    agent.one("INSERT INTO command (org_id, id, node_id, epoch_generation, epoch_n, action, args, boot_id, deadline_at) VALUES"
              f" ('{agent.org_id}', '{command}', {{node}}, 1, {n}, '{action}', '{args}', '{boot_id or agent.boot_id}',"
              f" now() + interval '{deadline}');"
              f" UPDATE org_head SET command_seq = command_seq + 1 WHERE org_id = '{agent.org_id}'")
    return command


def state_of(agent, command):
    return agent.one(f"SELECT state, result FROM command WHERE id = '{command}'")


def fetch(agent):
    """The commands of the first report that brings any."""
    return wait_for(lambda: agent.commands(agent.report_ok()))


def test_a_command_comes_signed_and_fresh(agent):
    command = order(agent, args='{"gpu": "0000:bb:00"}')
    payloads = fetch(agent)
    assert payloads == [{"command_id": command, "org_id": agent.org_id, "cluster_id": agent.cluster_id, "node_id": agent.node_id,
                         "epoch": [1, 1], "action": "reboot", "args": {"gpu": "0000:bb:00"}, "boot_id": agent.boot_id,
                         "nonce": agent.nonce, "repair_no": None}]
    assert state_of(agent, command) == "sent|"


def test_a_command_comes_again_until_there_is_a_result(agent):
    command = order(agent)
    fetch(agent)
    first_nonce = agent.nonce
    again = agent.commands(agent.report_ok())
    assert [p["command_id"] for p in again] == [command] and again[0]["nonce"] == agent.nonce != first_nonce
    answer = agent.report_ok(results=[{"command_id": command, "state": "accepted", "detail": "about to reboot"}])
    assert answer["commands"] == []
    assert state_of(agent, command) == "accepted|about to reboot"
    assert agent.report_ok(results=[{"command_id": command, "state": "done", "detail": "new boot"}])["commands"] == []
    assert state_of(agent, command) == "done|new boot"


def test_the_first_end_of_a_command_counts(agent):
    command = order(agent)
    fetch(agent)
    agent.report_ok(results=[{"command_id": command, "state": "refused", "detail": "ceiling"}])
    agent.report_ok(results=[{"command_id": command, "state": "done", "detail": "no"}])
    assert state_of(agent, command) == "refused|ceiling"


def test_a_result_after_the_deadline_is_what_happened(agent):
    command = order(agent)
    fetch(agent)
    agent.one(f"UPDATE command SET state = 'expired' WHERE id = '{command}'")
    agent.report_ok(results=[{"command_id": command, "state": "done", "detail": "late"}])
    assert state_of(agent, command) == "done|late"


def test_I6_a_node_settles_its_own_commands_only(server, agent):
    other = Agent(server, "cmd-" + uuid.uuid4().hex[:8]).enroll()
    command = order(other)
    agent.report_ok(results=[{"command_id": command, "state": "done", "detail": ""}])
    assert state_of(other, command) == "ready|"
    assert agent.report_ok()["commands"] == []


def test_a_withdrawn_or_late_command_does_not_come(agent):
    late = order(agent, deadline="-1 second")
    gone = order(agent, n=2)
    agent.one(f"UPDATE command SET state = 'withdrawn' WHERE id = '{gone}'")
    command = order(agent, n=3)
    assert [p["command_id"] for p in fetch(agent)] == [command]
    assert state_of(agent, late) == "ready|"


def test_without_a_nonce_no_command_comes(agent):
    order(agent)
    fetch(agent)
    for nonce in (None, "", "not base64url!", "x" * 65):
        assert agent.report_ok(nonce=nonce)["commands"] == []
    assert len(agent.report_ok()["commands"]) == 1


def test_a_demo_org_commands_simulated_nodes_only(server):
    demo = server.add_org("demo-" + uuid.uuid4().hex[:8])
    server.sql(f"UPDATE org SET demo = true WHERE id = '{demo.id}'")
    agent = Agent(server, "sim-1").enroll(org_id=demo.id, cluster_id=demo.cluster_id)
    order(agent)
    simulated = order(agent, args='{"simulated": true}', n=2)
    assert [p["command_id"] for p in fetch(agent)] == [simulated]
    assert [p["command_id"] for p in agent.commands(agent.report_ok())] == [simulated]


def test_commands_wait_while_the_key_is_not_the_trusted_one(server):
    org = server.add_org("key-" + uuid.uuid4().hex[:8])
    agent = Agent(server, "key-1").enroll(org_id=org.id, cluster_id=org.cluster_id)
    trusted = server.sql(f"SELECT encode(command_public_key, 'hex') FROM cluster WHERE id = '{org.cluster_id}'")
    server.sql(f"UPDATE cluster SET command_public_key = '\\x{'00' * 32}' WHERE id = '{org.cluster_id}'")
    command = order(agent)
    wait_for(lambda: agent.report_ok()["commands"] == [] and state_of(agent, command) == "sent|")
    server.sql(f"UPDATE cluster SET command_public_key = '\\x{trusted}' WHERE id = '{org.cluster_id}'")
    assert [p["command_id"] for p in agent.commands(agent.report_ok())] == [command]


def test_nodes_follow_a_changed_interval(server):
    agent = Agent(server, "interval-" + uuid.uuid4().hex[:8]).enroll()
    agent.one("UPDATE node SET interval_seconds = 99 WHERE id = {node}")
    server.restart()
    wait_for(lambda: agent.one("SELECT interval_seconds FROM node WHERE id = {node}") == "10")
