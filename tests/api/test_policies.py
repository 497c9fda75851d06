"""Repairs that a policy decides, and what holds them: admission, breakers, stops, two people (promises R5, R7 to R9, R11 to R13, R17, R18)."""
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from test_repairs import approve, commands_of, fresh_key, make_server, new_node, node_is, proposed, repair_in, repairs_of  # noqa: E402
from waiting import wait_for  # noqa: E402

DOCUMENT = Path(__file__).resolve().parents[2] / "api" / "openapi.yaml"


@pytest.fixture(scope="module")
def house():
    running = make_server()
    # each test breaks nodes of its own cluster: together they must not open the breaker of the org
    answer = running.api("POST", "/api/v1/policies", {"breaker_floor": 1000, "breaker_percent": 100}, headers=fresh_key())
    assert answer.status_code == 201, answer.text
    yield running
    running.stop()


def write_policy(house, agent, status=201, **settings):
    answer = house.api("POST", "/api/v1/policies", {"cluster_id": agent.cluster_id, **settings}, headers=fresh_key())
    assert answer.status_code == status, answer.text
    return answer.json()


# A cluster of one node is down as a whole with its first fault; these let a single node be repaired all the same.
ALONE = {"unhealthy_stop_percent": 100, "concurrency_percent": 100, "breaker_percent": 100, "breaker_floor": 50}


def read(house, repair):
    return house.api("GET", f"/api/v1/repairs/{repair['id']}").json()


def codes_are(house, repair, *wanted):
    """Waits until the reasons of a waiting repair have these codes."""
    def look():
        codes = {reason["code"] for reason in read(house, repair)["why_not"]}
        return codes if set(wanted) <= codes else None
    return wait_for(look)


def test_what_a_policy_leaves_out_has_the_default_of_the_document(house):
    agent = new_node(house)
    settings = write_policy(house, agent)["settings"]
    properties = yaml.safe_load(DOCUMENT.read_text())["components"]["schemas"]["PolicySettings"]["properties"]
    wanted = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    assert len(wanted) == 24
    del wanted["cooldown_seconds"]  # that of the server's own configuration
    assert {name: settings[name] for name in wanted} == wanted


# ---------------------------------------------------------------- automatic repairs
def test_a_policy_approves_what_admission_lets_through_and_carries_it_out(house):
    agent = new_node(house)
    policy = write_policy(house, agent, automatic=["gpu_lost:79"], **ALONE)
    # a second node of the cluster keeps it from being down as a whole
    friend = Agent(house, token=join_token(house, cluster_id=agent.cluster_id))
    agent.answer = reboots
    with Beat(agent, friend):
        node_is(house, agent, "healthy")
        node_is(house, friend, "healthy")
        agent.xid79()
        ended = repair_in(house, agent, "succeeded", "failed", "unknown")
    assert ended["state"] == "succeeded", ended
    assert ended["automatic"] is True and ended["decided_by"] == f"policy {policy['id']} {policy['version']}"
    assert commands_of(house, ended) == 1
    audit = house.sql(f"SELECT body FROM audit WHERE body::json ->> 'target' = '{ended['id']}' AND body::json ->> 'action' = 'repair.approve'")
    assert f"policy {policy['id']}" in audit


def test_R7_a_node_under_repair_is_down_and_a_whole_cluster_down_starts_nothing(house):
    agent = new_node(house)
    write_policy(house, agent, automatic=["gpu_lost"])
    with Beat(agent):  # a silent node is another reason
        repair = proposed(house, agent)
        assert "concurrency" in codes_are(house, repair, "concurrency")
        assert read(house, repair)["state"] == "proposed" and commands_of(house, repair) == 0


def test_every_reason_is_told_at_once(house):
    agent = new_node(house)
    write_policy(house, agent, mode="warn", windows=["mon 00:00-00:01"], actions=["reset_gpu"], cooldown_seconds=0)
    house.sql(f"UPDATE node SET auto_repair = false WHERE id = '{agent.node_id}'")
    with Beat(agent):
        repair = proposed(house, agent)
        codes = codes_are(house, repair, "warn_only", "action", "node_off", "concurrency")
    assert codes <= {"warn_only", "action", "node_off", "concurrency", "window"}
    assert all(reason["detail"].endswith(".") for reason in read(house, repair)["why_not"])
    assert read(house, repair)["can_approve"] is True, "a person may all the same"


def test_used_up_attempts_make_the_waiting_proposal_the_next_step_for_a_person(house):
    agent = new_node(house)
    with Beat(agent):
        repair = proposed(house, agent, action="reset_gpu", code="119")
        assert repair["action"] == "reset_gpu"
        # the same was done yesterday
        house.sql("INSERT INTO repair (org_id, id, no, cluster_id, node_id, incident_id, incident_ids, action, state, reason, plan, plan_hash, boot_id,"
                  " attempt, executor, created_at, ended_at) SELECT org_id, gen_random_uuid(), no + 100000, cluster_id, node_id, incident_id, incident_ids,"
                  " action, 'succeeded', reason, plan, plan_hash, boot_id, attempt, executor, now() - interval '1 day', now() - interval '1 day'"
                  f" FROM repair WHERE id = '{repair['id']}'")
        write_policy(house, agent, automatic=["gpu_lost"], attempts_reset_gpu=1, **ALONE)
        wait_for(lambda: read(house, repair)["action"] == "reboot")
        codes_are(house, repair, "budget")
        now = read(house, repair)
    assert now["state"] == "proposed" and now["id"] == repair["id"], now
    assert "used up: reset GPU. A person decides." in now["reason"], now["reason"]


def test_R18_a_policy_on_trial_decides_the_same_and_starts_nothing(house):
    agent = new_node(house)
    write_policy(house, agent, automatic=["gpu_lost"], dry_run=True, **{**ALONE, "unhealthy_stop_percent": 100})
    house.api("POST", f"/api/v1/clusters/{agent.cluster_id}/nodes", {"name": "n-" + secrets.token_hex(4)}).raise_for_status()
    with Beat(agent):
        repair = proposed(house, agent)
        wait_for(lambda: read(house, repair)["would_at"])
    now = read(house, repair)
    assert now["state"] == "proposed" and now["decided_by"] is None and now["why_not"] == [] and commands_of(house, repair) == 0
    assert house.sql(f"SELECT count(*) FROM event WHERE repair_id = '{repair['id']}' AND type = 'repair.would_start'") == "1"


# ---------------------------------------------------------------- stops
def stop(house, path, verb="stop", **body):
    answer = house.api("POST", f"/api/v1/{path}{verb}-repairs", {"comment": "a demonstration", **body}, headers=fresh_key())
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("reach", ["node", "cluster", "org", "platform"])
def test_R13_a_stop_holds_what_was_approved_until_it_is_lifted(house, reach):
    agent = new_node(house)
    path = {"node": f"nodes/{agent.node_id}/", "cluster": f"clusters/{agent.cluster_id}/", "org": "", "platform": "platform/"}[reach]
    agent.answer = reboots
    with Beat(agent):
        repair = proposed(house, agent)
        stop(house, path)
        try:
            refused = approve(house, repair)
            assert refused.status_code == 409 and "stopped" in refused.json()["detail"]
            assert "stopped" in read(house, repair)["blocked"]
            codes_are(house, repair, "stopped")
            guard = house.api("GET", f"/api/v1/clusters/{agent.cluster_id}/guard").json()
            assert guard["stopped"] is (reach != "node")
            assert guard["waiting"] == 1
        finally:
            stop(house, path, "allow")
        assert approve(house, repair).status_code == 200
        assert repair_in(house, agent, "succeeded", "failed", "unknown")["state"] == "succeeded"


def test_R13_nothing_starts_after_a_stop_was_acknowledged(house):
    agents = [new_node(house) for _ in range(4)]
    for agent in agents:
        agent.answer = reboots
    with Beat(*agents):
        repairs = [proposed(house, agent) for agent in agents]
        with ThreadPoolExecutor(5) as pool:
            answers = [pool.submit(approve, house, repair) for repair in repairs]
            stop(house, "")
            known = set(house.sql("SELECT id FROM command WHERE state <> 'ready'").split())
            try:
                for answer in answers:
                    answer.result()
                wait_for(lambda: house.sql("SELECT count(*) FROM command WHERE state = 'ready'") == "0")
                now = set(house.sql("SELECT id FROM command WHERE state IN ('sent', 'accepted', 'done')").split())
                assert now <= known
            finally:
                stop(house, "", "allow")


def test_R13_an_order_that_was_not_fetched_is_withdrawn_by_a_stop(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() + interval '1 minute' WHERE node_id = '{agent.node_id}'")
    assert approve(house, repair).status_code == 200
    wait_for(lambda: house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") in ("ready", "withdrawn"))
    stop(house, f"nodes/{agent.node_id}/")
    wait_for(lambda: read(house, repair)["state"] in ("cancelled", "failed"))
    assert house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") == "withdrawn"
    agent.report()
    assert agent.commands == {}
    stop(house, f"nodes/{agent.node_id}/", "allow")


def test_R13_a_suspended_organization_begins_nothing_and_its_orders_are_withdrawn(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    house.sql(f"UPDATE node_latest SET seen_at = now() + interval '1 minute' WHERE node_id = '{agent.node_id}'")
    assert approve(house, repair).status_code == 200
    wait_for(lambda: house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") in ("ready", "expired"))
    path = f"/api/v1/platform/orgs/{house.org_id}"
    assert house.api("POST", f"{path}/suspend", {"reason": "unpaid"}).status_code == 200
    try:
        wait_for(lambda: house.sql(f"SELECT state FROM repair WHERE id = '{repair['id']}'") in ("cancelled", "failed"))
        assert house.sql(f"SELECT state FROM command WHERE repair_id = '{repair['id']}'") == "expired"
        agent.report()
        assert agent.commands == {}
    finally:
        assert house.api("POST", f"{path}/resume", {"reason": "paid"}).status_code == 200


# ---------------------------------------------------------------- breakers
def test_R9_the_breaker_opens_by_rule_and_a_reset_replays_nothing(house):
    first = new_node(house)
    write_policy(house, first, automatic=["gpu_lost"], breaker_floor=2, breaker_percent=50, unhealthy_stop_percent=100, concurrency_percent=100,
                 same_kind_min=1000, windows=["mon 00:00-00:01", "tue 00:00-00:01"])
    token = join_token(house, uses=3, cluster_id=first.cluster_id)
    agents = [first] + [Agent(house, token=token) for _ in range(3)]
    path = f"/api/v1/clusters/{first.cluster_id}"
    with Beat(*agents):
        for agent in agents:
            node_is(house, agent, "healthy")
        for agent in agents[:3]:
            agent.xid79()
        wait_for(lambda: house.api("GET", f"{path}/guard").json()["breaker_open"])
        repair = repair_in(house, first, "proposed")
        codes_are(house, repair, "breaker")
        assert house.api("POST", f"{path}/breaker/reset", {}, headers=fresh_key()).status_code == 422, "a comment is asked for"
        answer = house.api("POST", f"{path}/breaker/reset", {"comment": "the switch is back"}, headers=fresh_key())
        assert answer.status_code == 200 and answer.json()["opened_at"] is None, answer.text
        policy, = [p for p in house.api("GET", "/api/v1/policies?limit=200").json()["items"] if p["cluster_id"] == first.cluster_id]
        changed = house.api("PATCH", f"/api/v1/policies/{policy['id']}", {"windows": []}, headers={"If-Match": f'"{policy["version"]}"'})
        assert changed.status_code == 200, changed.text
        codes_are(house, repair, "waited")
        assert house.api("POST", f"{path}/breaker/reset", {"comment": "again"}, headers=fresh_key()).status_code == 409
    assert read(house, repair)["state"] == "proposed" and commands_of(house, repair) == 0
    assert house.sql(f"SELECT count(*) FROM event WHERE cluster_id = '{first.cluster_id}' AND type = 'breaker.opened'") == "1"


# ---------------------------------------------------------------- two people
def test_R12_two_people_approve_and_neither_asked_for_it(house):
    agent = new_node(house)
    write_policy(house, agent, second_approver=["reboot"])
    one, two = house.token("approver"), house.token("admin")
    with Beat(agent):
        node_is(house, agent, "healthy")
        asked = house.api("POST", f"/api/v1/nodes/{agent.node_id}/repairs", {"action": "reboot", "reason": "kernel"}, token=one, headers=fresh_key())
        assert asked.status_code == 201, asked.text
        path, body = f"/api/v1/repairs/{asked.json()['id']}/approve", {"plan_hash": asked.json()["plan_hash"]}
        by = lambda token: house.api("POST", path, body, token=token, headers=fresh_key())  # noqa: E731
        assert by(one).status_code == 409, "the requester"
        first = by(two)
        assert first.status_code == 200 and first.json()["state"] == "proposed" and first.json()["first_approver"], first.text
        assert by(two).status_code == 409, "the same person again"
        assert by(one).status_code == 409
        assert read(house, asked.json())["state"] == "proposed"
        second = by(None)
        assert second.status_code == 200 and second.json()["state"] == "approved", second.text


def test_a_trial_run_of_an_approval_changes_nothing(house):
    agent = new_node(house)
    repair = proposed(house, agent)
    trial = house.api("POST", f"/api/v1/repairs/{repair['id']}/approve?dry_run=true", {"plan_hash": repair["plan_hash"]}, headers=fresh_key())
    assert trial.status_code == 200 and trial.json()["state"] == "proposed", trial.text
    stale = house.api("POST", f"/api/v1/repairs/{repair['id']}/approve?dry_run=true", {"plan_hash": "0" * 64}, headers=fresh_key())
    assert stale.status_code == 409 and stale.json()["code"] == "plan_changed"
    assert read(house, repair)["decided_by"] is None


def test_a_trial_run_of_a_request_shows_its_plan(house):
    agent = new_node(house)
    with Beat(agent):
        node_is(house, agent, "healthy")
        trial = house.api("POST", f"/api/v1/nodes/{agent.node_id}/repairs?dry_run=true", {"action": "reboot", "reason": "x"})
    assert trial.status_code == 200 and trial.json()["can_approve"] is True and trial.json()["plan"]["action"] == "reboot", trial.text
    assert repairs_of(house, agent) == []


# ---------------------------------------------------------------- the resource
def test_the_most_specific_policy_counts(house):
    agent = new_node(house)
    of_node, of_cluster = f"/api/v1/nodes/{agent.node_id}/policy", f"/api/v1/clusters/{agent.cluster_id}/policy"
    assert house.api("GET", of_node).json()["reach"] == "org"
    cluster = write_policy(house, agent, concurrency_max=7)
    assert house.api("GET", of_node).json()["settings"]["concurrency_max"] == 7
    node = house.api("POST", "/api/v1/policies", {"node_id": agent.node_id, "mode": "warn"}, headers=fresh_key()).json()
    assert node["cluster_id"] == agent.cluster_id
    effective = house.api("GET", of_node).json()
    assert effective["reach"] == "node" and effective["settings"]["mode"] == "warn" and effective["settings"]["concurrency_max"] == 20
    assert house.api("GET", of_cluster).json()["policy_id"] == cluster["id"]
    gone = house.api("DELETE", f"/api/v1/policies/{node['id']}", headers={"If-Match": '"1"'})
    assert gone.status_code == 204 and house.api("GET", of_node).json()["reach"] == "cluster"


def test_a_policy_is_changed_by_its_version_only(house):
    agent = new_node(house)
    policy = write_policy(house, agent)
    path = f"/api/v1/policies/{policy['id']}"
    assert house.api("PATCH", path, {"mode": "warn"}).status_code == 428
    done = house.api("PATCH", path, {"mode": "warn"}, headers={"If-Match": '"1"'})
    assert done.status_code == 200 and done.json()["version"] == 2 and done.json()["settings"]["mode"] == "warn"
    assert done.json()["settings"]["concurrency_max"] == 20, "what is absent stays"
    assert house.api("PATCH", path, {"mode": "confirm"}, headers={"If-Match": '"1"'}).status_code == 412
    assert house.api("DELETE", path, headers={"If-Match": '"1"'}).status_code == 412
    write_policy(house, agent, status=409)


def test_R17_a_rule_that_could_never_act_is_refused(house):
    agent = new_node(house)
    for settings, pointer in (({"automatic": ["gpu_lots"]}, "#/automatic"), ({"automatic": ["'gpu_lost'"]}, "#/automatic/0"),
                              ({"time_zone": "Mars/Olympus"}, "#/time_zone"), ({"windows": ["always"]}, "#/windows/0"),
                              ({"actions": ["remove"]}, "#/actions/0"), ({"concurrency_percent": 101}, "#/concurrency_percent"),
                              ({"node_id": "0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6f"}, "#/node_id")):
        refused = write_policy(house, agent, status=422, **settings)
        assert refused["errors"][0]["pointer"] == pointer, refused
    assert write_policy(house, agent, automatic=["gpu_lost"], time_zone="Europe/Berlin")["version"] == 1


def test_R4_a_plan_made_under_another_version_of_the_policy_is_refused(house):
    agent = new_node(house)
    policy = write_policy(house, agent)
    repair = proposed(house, agent)
    house.api("PATCH", f"/api/v1/policies/{policy['id']}", {"grace_seconds": 1}, headers={"If-Match": '"1"'})
    answer = approve(house, repair)
    assert answer.status_code == 409 and answer.json()["code"] == "plan_changed"


# ---------------------------------------------------------------- replay
def test_a_policy_is_played_against_what_really_happened(house):
    first = new_node(house)
    token = join_token(house, uses=5, cluster_id=first.cluster_id)
    agents = [first] + [Agent(house, token=token) for _ in range(5)]
    for agent in agents:
        agent.report()
    for agent in agents[:2]:
        agent.xid79()
        agent.report()
    agents[2].xid79(code="48", action="power_cycle")
    agents[2].report()
    wait_for(lambda: house.sql(f"SELECT count(*) FROM incident WHERE cluster_id = '{first.cluster_id}'") == "3")
    play = lambda **settings: house.api("POST", "/api/v1/policies/dry-run", {"cluster_id": first.cluster_id, **settings})  # noqa: E731
    told = len(house.api("GET", "/api/v1/policies?limit=200").json()["items"])
    nothing = play()
    assert nothing.status_code == 200, nothing.text
    assert (nothing.json()["faults"], nothing.json()["starts"]) == (3, 0)
    assert {reason["code"]: reason["faults"] for reason in nothing.json()["by_reason"]}["automation_off"] == 3
    wide = {**ALONE, "starts_min": 100, "breaker_percent": 100}
    some = play(automatic=["gpu_lost:79", "disk_nvme"], **wide).json()
    assert some["starts"] == 2 and some["by_action"] == [{"action": "reboot", "starts": 2}] and some["unmatched"] == ["disk_nvme"]
    assert [item["decision"] for item in some["items"]] == ["start", "start", "held"]
    assert {item["node_id"] for item in some["items"][:2]} == {agent.node_id for agent in agents[:2]}
    assert play(automatic=["gpu_lost"], time_zone="Mars/Olympus").status_code == 422
    assert play(automatic=["gpu lost"]).status_code == 422
    assert len(house.api("GET", "/api/v1/policies?limit=200").json()["items"]) == told, "nothing was saved"


# ---------------------------------------------------------------- several nodes at once
def ask(house, cluster, nodes, expected=None, **fields):
    body = {"node_ids": nodes, "action": "reboot", "reason": "kernel", "expected_count": len(nodes) if expected is None else expected, **fields}
    return house.api("POST", f"/api/v1/clusters/{cluster}/repairs", body, headers=fresh_key())


def test_R14_nobody_named_is_nobody_and_a_wrong_count_is_refused(house):
    one, other = new_node(house), new_node(house)
    asked = lambda: house.sql(f"SELECT count(*) FROM repair WHERE node_id IN ('{one.node_id}', '{other.node_id}')")  # noqa: E731
    assert ask(house, one.cluster_id, [], 1).status_code == 422
    assert house.api("POST", f"/api/v1/clusters/{one.cluster_id}/repairs", {"action": "reboot", "reason": "x", "expected_count": 1}).status_code == 422
    missing = house.api("POST", f"/api/v1/clusters/{one.cluster_id}/repairs", {"node_ids": [one.node_id], "action": "reboot", "reason": "x"})
    assert missing.status_code == 422, "the expected count is asked for"
    for nodes, expected in (([one.node_id], 2), ([one.node_id, one.node_id], 2), ([one.node_id, other.node_id], 2)):
        refused = ask(house, one.cluster_id, nodes, expected)
        assert refused.status_code == 422 and refused.json()["errors"][0]["pointer"] == "#/expected_count", refused.text
    assert ask(house, one.cluster_id, [one.node_id] * 26, 26).status_code == 422
    assert ask(house, one.cluster_id, [one.node_id], action="remove").status_code == 422
    assert asked() == "0"


def test_R14_waves_begin_one_after_the_other(house):
    first = new_node(house)
    agents = [first, Agent(house, token=join_token(house, cluster_id=first.cluster_id))]
    for agent in agents:
        agent.answer = reboots
    house.sql(f"UPDATE node SET rack = 'r1' WHERE cluster_id = '{first.cluster_id}'")
    with Beat(*agents):
        for agent in agents:
            node_is(house, agent, "healthy")
        answer = ask(house, first.cluster_id, [agent.node_id for agent in agents])
        assert answer.status_code == 201 and answer.json()["waves"] == 2, answer.text
        one, two = answer.json()["items"]
        assert (one["wave"], two["wave"]) == (1, 2) and one["batch_id"] == two["batch_id"] == answer.json()["batch_id"]
        assert ask(house, first.cluster_id, [first.node_id]).status_code == 409, "it has an open repair"
        assert approve(house, two).status_code == 200
        assert approve(house, one).status_code == 200
        wait_for(lambda: read(house, two)["state"] == "succeeded")
    assert read(house, one)["state"] == "succeeded"
    assert house.sql(f"SELECT (SELECT ended_at FROM repair WHERE id = '{one['id']}') <= (SELECT started_at FROM repair_step WHERE repair_id = '{two['id']}'"
                     " AND state = 'cordoning')") == "t"
