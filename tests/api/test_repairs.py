"""A fault to its repair and back, over the API and the agents' protocol (promises R1 to R6, R11, R12, R16)."""
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

# Silent after a minute, orders good for a minute: no machine is so slow that either happens where it is not wanted.
SETTINGS = {"interval_seconds": 20, "loop_period_ms": 100, "rollup_interval_ms": 200, "command_within_seconds": 60,
            "cooldown_seconds": 600}


def make_server(**settings):
    running = Musterd(**{**SETTINGS, **settings})
    running.start()
    return running


def new_node(server):
    """An agent in a cluster of its own: the silence of nodes that other tests left behind must not count (R10)."""
    cluster = server.sql("INSERT INTO cluster (org_id, id, project_id, name, healthy_delay_seconds, rejoin_within_seconds) VALUES"
                         f" ('{server.org_id}', gen_random_uuid(), '{server.project_id}', 'c-{secrets.token_hex(4)}', 1, 120)"
                         " RETURNING id").split("\n")[0]
    agent = Agent(server, token=join_token(server, cluster_id=cluster))
    agent.cluster_id = cluster
    return agent


@pytest.fixture(scope="module")
def house():
    running = make_server()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def hasty_house():
    """Orders are good for a few seconds only."""
    running = make_server(command_within_seconds=6)
    yield running
    running.stop()


def repairs_of(server, agent):
    return server.api("GET", f"/api/v1/repairs?node_id={agent.node_id}").json()["items"]


def repair_in(server, agent, *states):
    """Waits until the node's newest repair is in one of these states."""
    seen = []

    def look():
        items = repairs_of(server, agent)
        seen[:] = [(item["no"], item["action"], item["state"], item["reason"]) for item in items]
        return items[0] if items and items[0]["state"] in states else None

    return wait_for(look, said=lambda: f"a repair that is {states}; seen: {seen}")


def node_state(server, agent):
    return server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'")


def node_is(server, agent, state):
    wait_for(lambda: node_state(server, agent) == state, said=lambda: f"{state}, but {node_state(server, agent)}")


def fresh_key():
    return {"Idempotency-Key": secrets.token_hex(16)}


def approve(server, repair, headers=None, **body):
    return server.api("POST", f"/api/v1/repairs/{repair['id']}/approve", {"plan_hash": repair["plan_hash"], **body},
                      headers=headers or fresh_key())


def verb(server, repair, name, **body):
    return server.api("POST", f"/api/v1/repairs/{repair['id']}/{name}", body, headers=fresh_key())


def commands_of(server, repair):
    return int(server.sql(f"SELECT count(*) FROM command WHERE repair_id = '{repair['id']}'"))


def proposed(server, agent, **fault):
    """A healthy node that gets a fault; gives the proposal."""
    agent.report()
    node_is(server, agent, "healthy")
    agent.xid79(**fault)
    agent.report()
    return repair_in(server, agent, "proposed")


def test_a_fault_is_proposed_approved_carried_out_and_proved(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    node_is(house, agent, "unhealthy")
    assert repair["action"] == "reboot" and repair["requested_by"] == "muster"
    assert repair["can_approve"] is True and repair["blocked"] is None
    plan = repair["plan"]
    assert plan["boot_id"] == agent.boot_id and plan["node"] == {"id": agent.node_id, "name": agent.name}
    evidence, = plan["evidence"]
    assert evidence["check_id"] == "gpu_lost" and evidence["code"] == "79" and "fallen off the bus" in evidence["lines"][0]["text"]
    assert [reason["code"] for reason in plan["limits"]["why_not"]][0] == "automation_off"

    agent.answer = reboots
    done = approve(house, repair, comment="go")
    assert done.status_code == 200, done.text
    assert done.json()["state"] == "approved" and done.json()["comment"] == "go"
    with Beat(agent):
        node_is(house, agent, "repairing")
        ended = repair_in(house, agent, "succeeded", "failed", "unknown")
        assert ended["state"] == "succeeded", ended
        node_is(house, agent, "healthy")
    assert [step["state"] for step in ended["steps"]] == ["proposed", "approved", "cordoning", "draining", "acting", "rejoining",
                                                          "verifying", "succeeded"]
    assert all(step["ended_at"] for step in ended["steps"])
    command, = agent.commands.values()
    assert command["action"] == "reboot" and command["boot_id"] == plan["boot_id"] and command["repair_no"] == repair["no"]
    assert house.sql(f"SELECT schedulable, cordoned_by IS NULL FROM node WHERE id = '{agent.node_id}'") == "t|t"
    assert house.sql(f"SELECT closed_at IS NOT NULL FROM incident WHERE node_id = '{agent.node_id}'") == "t"
    types = house.sql(f"SELECT string_agg(DISTINCT type, ' ' ORDER BY type) FROM event WHERE node_id = '{agent.node_id}'").split()
    assert {"incident.opened", "repair.proposed", "repair.approved", "repair.step", "repair.succeeded", "node.cordoned", "node.uncordoned",
            "node.booted", "node.state_changed", "incident.closed"} <= set(types)


def test_an_approval_is_replayed_by_its_key_and_refused_by_another(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    key = fresh_key()
    first = approve(house, repair, headers=key)
    again = approve(house, repair, headers=key)
    assert first.status_code == again.status_code == 200
    assert again.headers["Idempotent-Replayed"] == "true" and again.json() == first.json()
    other = approve(house, repair)
    assert other.status_code == 409 and other.json()["state"] != "proposed"
    reused = approve(house, repair, headers=key, comment="another body")
    assert reused.status_code == 422 and reused.json()["code"] == "idempotency_key_reused"
    bare = house.api("POST", f"/api/v1/repairs/{repair['id']}/approve", {"plan_hash": repair["plan_hash"]})
    assert bare.status_code == 400 and bare.json()["code"] == "idempotency_key_required"


def test_a_rejected_repair_is_not_proposed_again_until_something_worse_happens(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent)
        answer = verb(house, repair, "reject", comment="known, the vendor comes on Monday")
        assert answer.status_code == 200 and answer.json()["state"] == "rejected"
        agent.xid79()  # the same fault again
        wait_for(lambda: house.sql(f"SELECT count FROM incident WHERE node_id = '{agent.node_id}'") == "2")
        assert len(repairs_of(house, agent)) == 1
        agent.xid79(device="0000:cb:00", action="power_cycle", code="48")
        worse = repair_in(house, agent, "proposed")
        assert worse["action"] == "power_cycle" and worse["no"] != repair["no"]
    assert worse["can_approve"] is False and "by hand" in worse["blocked"]
    refused = approve(house, worse)
    assert refused.status_code == 409 and "power cycle" in refused.json()["detail"]
    assert verb(house, repair, "reject").status_code == 409


def test_a_proposal_ends_by_itself_when_its_fault_is_gone(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent)
        agent.boot()  # somebody pressed the button
        ended = repair_in(house, agent, "resolved")
        assert ended["no"] == repair["no"] and commands_of(house, repair) == 0
        node_is(house, agent, "healthy")


def test_a_worse_fault_escalates_the_waiting_proposal_in_place(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent, action="reset_gpu", code="119")
        agent.xid79(device="0000:cb:00")
        wait_for(lambda: repairs_of(house, agent)[0]["action"] == "reboot")
        now, = repairs_of(house, agent)
        assert now["id"] == repair["id"] and now["plan_hash"] != repair["plan_hash"] and len(now["plan"]["evidence"]) == 2
        stale = approve(house, repair)
        assert stale.status_code == 409 and stale.json()["code"] == "plan_changed"
        assert stale.json()["state"] == "proposed"


@pytest.mark.parametrize("change", ["boot", "incident", "policy"])
def test_R4_a_plan_that_changed_between_reading_and_approving_is_refused(house, change):
    agent = new_node(house)
    repair = proposed(house, agent)
    if change == "boot":  # in one report, before any loop has looked
        house.sql(f"UPDATE node_latest SET boot_id = gen_random_uuid(), ready = false WHERE node_id = '{agent.node_id}'")
    elif change == "incident":
        agent.xid79(device="0000:cb:00")
        agent.report()
    else:
        house.sql(f"UPDATE cluster SET begin_within_seconds = begin_within_seconds + 1 WHERE id = '{agent.cluster_id}'")
    answer = approve(house, repair)
    assert answer.status_code == 409 and answer.json()["code"] == "plan_changed", answer.text
    assert commands_of(house, repair) == 0


def test_R4_of_fifty_people_who_approve_at_once_one_succeeds(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: approve(house, repair).status_code, range(50)))
    assert sorted(answers) == [200] + [409] * 49
    assert house.sql(f"SELECT count(*) FROM event WHERE repair_id = '{repair['id']}' AND type = 'repair.approved'") == "1"
    repair_in(house, agent, "acting")
    wait_for(lambda: commands_of(house, repair) == 1)


def test_a_node_that_never_takes_the_order_fails_the_repair_and_the_next_rung_is_proposed(hasty_house):
    house, agent = hasty_house, new_node(hasty_house)
    repair = proposed(house, agent)
    # The agent hears nothing: only its readings go on, so that the node is not silent.
    assert approve(house, repair).status_code == 200

    def state():
        house.sql(f"UPDATE node_latest SET seen_at = now() WHERE node_id = '{agent.node_id}'")
        return house.api("GET", f"/api/v1/repairs/{repair['id']}").json()["state"]
    wait_for(lambda: state() == "failed")
    following = repair_in(house, agent, "proposed")
    assert following["action"] == "power_cycle" and "reboot" in following["reason"]
    assert house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") == "expired"
    assert house.sql(f"SELECT schedulable FROM node WHERE id = '{agent.node_id}'") == "f", "a node with a fault takes no work"


def test_R3_an_order_without_an_answer_is_unknown_and_a_person_settles_it(hasty_house):
    house, agent = hasty_house, new_node(hasty_house)
    with Beat(agent):
        repair = proposed(house, agent)
        assert approve(house, repair).status_code == 200
        unknown = repair_in(house, agent, "unknown")
        assert len(agent.commands) == 1 and commands_of(house, repair) == 1
        assert node_state(house, agent) in ("unhealthy", "repairing")
        assert verb(house, unknown, "cancel").status_code == 409
        settled = verb(house, unknown, "settle", outcome="failed", comment="the console shows the old kernel")
        assert settled.status_code == 200 and settled.json()["state"] == "failed"
        assert repair_in(house, agent, "proposed")["action"] == "power_cycle"


def test_R3_late_evidence_settles_an_unknown_outcome(hasty_house):
    house, agent = hasty_house, new_node(hasty_house)
    with Beat(agent):
        repair = proposed(house, agent)
        assert approve(house, repair).status_code == 200
        repair_in(house, agent, "unknown")
        agent.boot()  # it did act after all; its words were lost
        assert repair_in(house, agent, "succeeded")["no"] == repair["no"]
        node_is(house, agent, "healthy")
    assert commands_of(house, repair) == 1


def test_R16_a_fault_that_comes_back_after_the_reboot_fails_the_repair(house):
    agent = new_node(house)

    def reboots_in_vain(agent, payload):
        reboots(agent, payload)
        agent.xid79()

    with Beat(agent):
        repair = proposed(house, agent)
        agent.answer = reboots_in_vain
        assert approve(house, repair).status_code == 200
        following = repair_in(house, agent, "proposed")
        assert following["action"] == "power_cycle" and following["no"] != repair["no"]
        assert house.api("GET", f"/api/v1/repairs/{repair['id']}").json()["state"] == "failed"
        node_is(house, agent, "unhealthy")
    assert len(agent.acted) == 1


def test_R6_a_fault_that_came_during_a_repair_is_taken_up_when_that_ends(house):
    agent = new_node(house)

    def meets_another_fault(agent, payload):
        agent.event(stream=1, check_id="disk_io", code="", device="nvme0n1", action="reprovision", node_fault=True, clears="person",
                    summary="The disk nvme0n1 gives I/O errors")
        reboots(agent, payload)

    with Beat(agent):
        repair = proposed(house, agent)
        agent.answer = meets_another_fault
        assert approve(house, repair).status_code == 200
        following = repair_in(house, agent, "proposed")
        assert following["action"] == "reprovision" and following["no"] != repair["no"]
        assert house.api("GET", f"/api/v1/repairs/{repair['id']}").json()["state"] == "succeeded"
    assert house.sql(f"SELECT schedulable FROM node WHERE id = '{agent.node_id}'") == "f", "the other fault keeps it out"


def test_R5_what_a_boot_ended_while_the_server_was_away_starts_nothing(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    house.kill()
    agent.boot()
    house.start()
    with Beat(agent):
        ended = repair_in(house, agent, "resolved")
        node_is(house, agent, "healthy")
    assert ended["no"] == repair["no"] and len(repairs_of(house, agent)) == 1 and agent.commands == {}


def test_a_refusal_of_the_agent_fails_the_repair(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent)
        agent.answer = lambda a, payload: a.result(payload, "refused", "the file /etc/muster/deny exists")
        assert approve(house, repair).status_code == 200
        repair_in(house, agent, "proposed")
        ended = house.api("GET", f"/api/v1/repairs/{repair['id']}").json()
        assert ended["state"] == "failed" and "deny" in ended["reason"]


def test_a_person_can_ask_for_a_repair_of_a_healthy_node(house):
    agent = new_node(house)
    with Beat(agent):
        node_is(house, agent, "healthy")
        path = f"/api/v1/nodes/{agent.node_id}/repairs"
        asked = house.api("POST", path, {"action": "reboot", "reason": "new kernel"}, headers=fresh_key())
        assert asked.status_code == 201 and asked.headers["Location"] == f"/api/v1/repairs/{asked.json()['id']}", asked.text
        repair = asked.json()
        assert repair["requested_by"] != "muster" and repair["incident_id"] is None and repair["plan"]["evidence"] == []
        assert house.api("POST", path, {"action": "reboot", "reason": "again"}).status_code == 409
        assert house.api("POST", path, {"action": "explode", "reason": "x"}).status_code == 422
        agent.answer = reboots
        assert approve(house, repair).status_code == 200
        assert repair_in(house, agent, "succeeded", "failed", "unknown")["state"] == "succeeded"
        # Nothing named is nothing done, never everything.
        reset = house.api("POST", path, {"action": "reset_gpu", "reason": "which one?"})
        assert reset.status_code == 409
    assert house.api("POST", "/api/v1/nodes/0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6f/repairs", {"action": "reboot", "reason": "x"}).status_code == 404


def test_a_reset_names_the_gpu_and_is_proved_by_the_agents_word(house):
    agent = new_node(house)

    def resets(agent, payload):
        agent.acted.append(payload["args"])
        agent.result(payload, "accepted")
        agent.result(payload, "done")

    with Beat(agent):
        agent.report()
        node_is(house, agent, "healthy")
        agent.event(check_id="gpu_xid", code="119", device="0000:1b:00", action="reset_gpu", node_fault=True, clears="event",
                    summary="GPU 0000:1b:00: GSP does not answer (Xid 119)")
        repair = repair_in(house, agent, "proposed")
        agent.answer = resets
        assert approve(house, repair).status_code == 200
        repair_in(house, agent, "verifying")
        agent.event(check_id="gpu_xid", code="119", device="0000:1b:00", clear=True)
        assert repair_in(house, agent, "succeeded", "failed", "unknown")["state"] == "succeeded"
        node_is(house, agent, "healthy")
    assert agent.acted == [{"gpus": ["0000:1b:00"]}]


def test_closing_the_incident_by_hand_ends_the_proposal(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent)
        path = f"/api/v1/incidents/{repair['incident_id']}/close"
        closed = house.api("POST", path, {"reason": "the part was replaced"}, headers=fresh_key())
        assert closed.status_code == 200 and closed.json()["state"] == "closed", closed.text
        assert house.api("POST", path, {"reason": "again"}).status_code == 409
        repair_in(house, agent, "resolved")
        node_is(house, agent, "healthy")


def test_lists_are_filtered_and_paged(house):
    agents = [new_node(house) for _ in range(3)]
    for agent in agents:
        proposed(house, agent)
    page = house.api("GET", "/api/v1/repairs?open=true&state=proposed&limit=2").json()
    assert len(page["items"]) == 2 and page["next_cursor"]
    rest = house.api("GET", f"/api/v1/repairs?open=true&state=proposed&limit=2&cursor={page['next_cursor']}").json()
    assert not {item["id"] for item in page["items"]} & {item["id"] for item in rest["items"]}
    here = house.api("GET", f"/api/v1/clusters/{agents[0].cluster_id}/repairs?node_id={agents[0].node_id}").json()["items"]
    assert [item["node_id"] for item in here] == [agents[0].node_id]
    assert house.api("GET", "/api/v1/clusters/0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6f/repairs").status_code == 404
    assert house.api("GET", "/api/v1/repairs?state=broken").status_code == 422
    assert house.api("GET", "/api/v1/repairs?open=false&state=proposed").json()["items"] == []


def test_only_those_who_may_decide_do(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    body = {"plan_hash": repair["plan_hash"]}
    for role in ("viewer", "operator", "auditor"):
        answer = house.api("POST", f"/api/v1/repairs/{repair['id']}/approve", body, token=house.token(role), headers=fresh_key())
        assert answer.status_code == 403, role
    other = house.add_org("elsewhere-" + secrets.token_hex(3))
    assert house.api("POST", f"/api/v1/repairs/{repair['id']}/approve", body, token=other.token, headers=fresh_key()).status_code == 404
    assert house.api("GET", f"/api/v1/repairs/{repair['id']}", token=other.token).status_code == 404
    assert repairs_of(house, agent)[0]["state"] == "proposed"


# ---------------------------------------------------------------- time to cancel, and crashes
@pytest.fixture(scope="module")
def slow_house():
    running = make_server(drain_wait_seconds=2)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def draining_house():
    """A drain lasts until the test has done with it."""
    running = make_server(drain_wait_seconds=300)
    yield running
    running.stop()


def test_a_repair_can_be_cancelled_while_the_node_drains(draining_house):
    house, agent = draining_house, new_node(draining_house)
    with Beat(agent):
        repair = proposed(house, agent)
        assert approve(house, repair).status_code == 200
        repair_in(house, agent, "draining")
        assert house.sql(f"SELECT schedulable FROM node WHERE id = '{agent.node_id}'") == "f"
        answer = verb(house, repair, "cancel", comment="a job came")
        assert answer.status_code == 200 and answer.json()["state"] == "cancelled"
        assert house.sql(f"SELECT schedulable, cordoned_by IS NULL FROM node WHERE id = '{agent.node_id}'") == "t|t"
        node_is(house, agent, "unhealthy")
    assert commands_of(house, repair) == 0 and agent.commands == {}


def test_a_boot_during_the_drain_withdraws_the_repair(draining_house):
    house, agent = draining_house, new_node(draining_house)
    with Beat(agent):
        repair = proposed(house, agent)
        assert approve(house, repair).status_code == 200
        repair_in(house, agent, "draining")
        agent.boot()
        ended = repair_in(house, agent, "resolved", "cancelled")
        assert ended["no"] == repair["no"] and commands_of(house, repair) == 0
        wait_for(lambda: house.sql(f"SELECT schedulable FROM node WHERE id = '{agent.node_id}'") == "t")


def test_R5_an_approval_that_cannot_begin_in_time_waits_for_a_decision_again(slow_house):
    house, agent = slow_house, new_node(slow_house)
    house.sql(f"UPDATE cluster SET begin_within_seconds = 1 WHERE id = '{agent.cluster_id}'")
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 hour' WHERE node_id = '{agent.node_id}'")
    node_is(house, agent, "unknown")  # silent: no agent can take an order
    assert approve(house, repair).status_code == 200
    again = repair_in(house, agent, "proposed")
    assert again["no"] == repair["no"] and again["decided_by"] is None and "in time" in again["reason"]
    assert commands_of(house, repair) == 0


@pytest.mark.parametrize("moment", ["approved", "draining", "acting", "rejoining", "verifying"])
def test_R1_R2_a_crash_at_any_step_resumes_and_the_order_is_given_once(slow_house, moment):
    house, agent = slow_house, new_node(slow_house)
    order = ["approved", "cordoning", "draining", "acting", "rejoining", "verifying", "succeeded"]

    def slowly(agent, payload):
        agent.acted.append(payload["command_id"])
        if moment == "rejoining":  # says that it begins, and takes its time
            agent.result(payload, "accepted")
        elif moment != "acting":   # for acting: no word until after the crash
            reboots(agent, payload)
            agent.acted.pop()

    with Beat(agent):
        repair = proposed(house, agent)
        agent.answer = slowly
        assert approve(house, repair).status_code == 200
        if moment != "approved":
            repair_in(house, agent, *order[order.index(moment):])
        house.kill()
        house.start()
        if moment in ("acting", "rejoining"):
            wait_for(lambda: agent.acted)
            agent.boot()
        ended = repair_in(house, agent, "succeeded", "failed", "unknown", "cancelled")
        assert ended["state"] == "succeeded" and ended["no"] == repair["no"], ended
        node_is(house, agent, "healthy")
    assert commands_of(house, repair) == 1 and len(agent.commands) == 1 and len(agent.acted) == 1
    assert house.sql(f"SELECT bool_and(n = place) FROM (SELECT n, row_number() OVER (ORDER BY n) AS place FROM repair_step"
                     f" WHERE repair_id = '{repair['id']}') s") == "t"
