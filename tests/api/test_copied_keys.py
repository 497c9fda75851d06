"""Two machines with one key: seen by their boots, both stopped, and one let in again by a person."""
import copy
import json
import uuid

from agent import Agent, wait_for

LONG = 60


def clone(agent):
    """A machine made from a copy of the disk: the same key and count of reports, a boot of its own."""
    twin = copy.copy(agent)
    twin.boot_id = str(uuid.uuid4())
    return twin


def strikes(agent):
    return int(agent.one("SELECT strikes FROM node_latest WHERE node_id = {node}"))


def stopped(agent):
    return agent.one("SELECT key_stopped_at IS NOT NULL FROM node WHERE id = {node}") == "t"


def until_stopped(agent):
    wait_for(lambda: stopped(agent), LONG)


def fresh(world, token=None):
    return Agent(world.server, world.name("a")).enroll(token, org_id=world.org.id, cluster_id=world.org.cluster_id)


def test_I6_two_live_boots_of_one_key_stop_both(world):
    agent = fresh(world)
    agent.report_ok()
    twin = clone(agent)
    twin.seq = agent.seq = 10
    twin.report_ok()            # a later boot: nothing strange yet
    agent.seq += 1
    agent.report_ok()           # the earlier boot again: the first strike
    assert not stopped(agent)
    twin.seq += 2
    twin.report_ok()            # and the other one: the second
    until_stopped(agent)
    for one in (agent, twin):
        wait_for(lambda one=one: {one.report().status_code for _ in range(6)} == {401}, LONG)
        assert one.try_token(one.challenge()).status_code == 401
    node = wait_for(lambda: (lambda n: n if n["state"] == "unknown" else None)(world.api("GET", f"nodes/{agent.node_id}").json()), LONG)
    assert "Two machines used this node's key" in node["reason"] and "join token" in node["reason"]
    events = world.api("GET", f"events?node_id={agent.node_id}&type=node.key_stopped").json()["items"]
    assert len(events) == 1 and events[0]["severity"] == "critical" and "both were stopped" in events[0]["summary"]
    assert {events[0]["data"]["boot_id"], events[0]["data"]["other_boot_id"]} == {agent.boot_id, twin.boot_id}
    incident = [i for i in node["incidents"] if i["check_id"] == "node_key"]
    assert len(incident) == 1 and (incident[0]["code"], incident[0]["state"], incident[0]["clears"]) == ("copied", "open", "person")
    audit = json.loads(world.sql(f"SELECT body FROM audit WHERE target = '{agent.node_id}' AND action = 'node.stop_key'"))
    assert (audit["actor"], audit["outcome"], audit["target_name"]) == ("muster", "done", agent.name)


def test_I6_a_copy_that_lags_behind_is_seen_too(world):
    """Its count of reports is lower, so its readings change nothing; it is noticed all the same."""
    agent = fresh(world)
    agent.seq = 100
    agent.report_ok()
    twin = clone(agent)
    twin.seq = 40
    twin.report_ok()
    agent.report_ok()
    assert strikes(agent) == 1
    twin.report_ok()
    until_stopped(agent)


def test_I6_a_person_lets_one_in_again_as_a_new_generation(world):
    agent = fresh(world)
    agent.seq = 50
    agent.report_ok()
    twin = clone(agent)
    twin.seq = 10
    twin.report_ok()
    twin.report_ok()
    until_stopped(agent)
    back = Agent(world.server, agent.name).enroll(org_id=world.org.id, cluster_id=world.org.cluster_id)
    assert back.node_id == agent.node_id and not stopped(agent)
    back.report_ok()
    # The count of reports began anew: the boot of the new machine is the node's.
    wait_for(lambda: (lambda n: n["state"] == "healthy" and n["boot_id"] == back.boot_id)(world.api("GET", f"nodes/{agent.node_id}").json()), LONG)
    assert strikes(back) == 0
    assert agent.report().status_code == twin.report().status_code == 401


def test_reboots_and_a_late_report_are_no_copy(world):
    """However often a machine boots, it never goes back; one report that was late by a boot stops nothing."""
    agent = fresh(world)
    for _ in range(12):
        agent.report_ok()
        agent.boot_id = str(uuid.uuid4())
        agent.report_ok()
        late = clone(agent)
        late.boot_id, late.seq = str(uuid.uuid4()), agent.seq - 2
        late.report_ok()
        assert strikes(agent) == 1
    again = agent.body()
    for _ in range(3):
        assert agent.send(again).status_code == 200, "the same report sent again"
    assert strikes(agent) == 1 and not stopped(agent)


def test_a_stopped_key_stops_no_other_node(world):
    agent, other = fresh(world), fresh(world)
    agent.seq = 50
    for one in (agent, other):
        one.report_ok()
    twin = clone(agent)
    twin.seq = 10
    twin.report_ok()
    twin.report_ok()
    until_stopped(agent)
    assert not stopped(other)
    other.report_ok()
