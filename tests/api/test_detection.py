"""Every labelled case through the whole path: the agent's own judgement and events, its report, the server, the incident.

The cases are judged by `muster-agent classify --events`, which runs the agent's rules over the lines and writes the events as a
report carries them; each case goes to a node of its own.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest
from agent import Agent, join_token, stream
from resource import walk

ROOT = Path(__file__).resolve().parent.parent.parent
AGENT = ROOT / os.environ.get("MUSTER_BUILD", "build") / "muster-agent"
CASES = [json.loads(line) for line in (ROOT / "tests/fixtures/detection_cases.jsonl").read_text().splitlines()]
STREAMS = {"critical": 0, "warning": 1, "info": 2}


def classify(case):
    """The events that the agent makes of a case's lines."""
    command = [AGENT, "classify", "--events", "--source", case["source"], "--context", json.dumps(case.get("context", {}))]
    done = subprocess.run(command, input=case["input"].encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def send(agent, events):
    streams = {}
    for event in events:
        mine = streams.setdefault(STREAMS[event["severity"]], [])
        mine.append({**event, "seq": len(mine) + 1})
    answer = agent.report_ok(streams=[stream(number, *mine) for number, mine in sorted(streams.items())])
    assert answer["accepted"] == len(events) and answer["rejected"] == []


@pytest.fixture(scope="module")
def incidents(world):
    """By case: the incidents that the API shows of its node."""
    cluster = world.cluster()
    token = join_token(world.server, uses=len(CASES), cluster_id=cluster, org_id=world.org.id)
    nodes = {}
    for number, case in enumerate(CASES):
        agent = Agent(world.server, world.name(f"case{number}")).enroll(token)
        send(agent, classify(case))
        nodes[agent.node_id] = case["id"]
    found = {case["id"]: [] for case in CASES}
    for incident in walk(world, f"incidents?cluster_id={cluster}", 200):
        if incident["node_id"] in nodes:
            found[nodes[incident["node_id"]]].append(incident)
    return found


def shown(incident):
    return {"check": incident["check_id"], "severity": incident["severity"], "action": incident["action"],
            "node_fault": incident["node_fault"], "count": incident["count"]}


def wanted_code(expect):
    code = expect.get("code")
    return "" if code is None else str(code)


def is_code(incident, expect):
    """A code with a number that changes ("ce 262") folds under its first word, and what ends a fault under the code that it ends."""
    code = wanted_code(expect)
    if expect.get("clears"):
        return incident["severity"] == "info"
    return incident["code"] == code or (incident["code"] != "" and code.startswith(incident["code"]))


def test_there_are_139_cases_each_with_a_verdict():
    assert len(CASES) == 139 and len({case["id"] for case in CASES}) == 139


def test_every_case_becomes_the_incident_it_should(incidents):
    wrong = []
    for case in CASES:
        expect, found = case["expect"], incidents[case["id"]]
        if expect["check"] == "none":
            if found:
                wrong.append((case["id"], "no incident", [shown(one) for one in found]))
            continue
        mine = [one for one in found if one["check_id"] == expect["check"] and is_code(one, expect)
                and (expect.get("gpu") is None or one["device"] == expect["gpu"])]
        want = {"check": expect["check"], "severity": expect["severity"], "action": expect["action"],
                "node_fault": expect["node_fault"], "count": expect.get("count", mine[0]["count"] if mine else 1)}
        if len(mine) != 1 or shown(mine[0]) != want:
            wrong.append((case["id"], want, expect.get("code"), expect.get("gpu"), found and [
                (shown(one), one["code"], one["device"]) for one in found]))
    assert wrong == []


def test_no_near_miss_is_a_node_fault_and_no_fault_is_missed(incidents):
    faults = {case["id"] for case in CASES if any(one["node_fault"] for one in incidents[case["id"]])}
    assert faults == {case["id"] for case in CASES if case["expect"]["node_fault"]}


def test_a_case_is_one_incident(incidents):
    assert {case_id: len(found) for case_id, found in incidents.items() if len(found) > 1} == {}


def test_every_incident_says_how_it_ends(incidents):
    assert all(one["clear_rule"].startswith("Clears ") for found in incidents.values() for one in found)
