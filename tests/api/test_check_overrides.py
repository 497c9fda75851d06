"""Checks as an org wants them: mode, severity, action and threshold, for all, one cluster or one type of GPU; and the dry run."""
import pytest
from agent import Agent, fault, join_token, stream, wait_for
from resource import check_idempotency, check_list, check_refusals, check_update
from world import World

PCI = "0000:1b:00"
LONG = 60
# Holds at once, without a trial.
NOW = {"shadow_seconds": 0, "reason": "Tried elsewhere"}


@pytest.fixture(scope="module")
def own(server):
    """An org of its own: what is set here is for all of it."""
    return World(server, server.add_org("checks-own"))


def join(world, cluster, gpu_type=None):
    agent = Agent(world.server, world.name("o")).enroll(join_token(world.server, cluster_id=cluster, org_id=world.org.id))
    agent.report_ok(inventory={"gpu_type": gpu_type} if gpu_type else None)
    # Silent only where a test says so, not by a slow machine.
    world.sql(f"UPDATE node SET interval_seconds = 3600 WHERE id = '{agent.node_id}'")
    agent.sent = 0
    return agent


def tell(agent, check, count=1, **fields):
    agent.sent += 1
    event = fault(agent.sent, check, code="1", device=PCI, summary=f"{check} fails", count=count, clears="person",
                  **{"node_fault": True, "action": "reboot", **fields})
    agent.report_ok(streams=[stream(0, event)])


def incident_of(world, agent, check):
    items = world.api("GET", f"incidents?node_id={agent.node_id}&check_id={check}").json()["items"]
    return items[0] if items else None


def node_of(world, agent):
    return world.api("GET", f"nodes/{agent.node_id}").json()


def repairs_of(world, agent):
    return world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"]


# ------------------------------------------------------------ the resource
def test_an_override_is_made_read_changed_and_taken_away(own):
    cluster = own.cluster()
    answer = own.api("POST", "check-overrides", {"check_id": "ib_link", "cluster_id": cluster, "severity": "warning", "reason": "The leaf is old"})
    made = answer.json()
    assert answer.status_code == 201 and answer.headers["location"] == f"/api/v1/check-overrides/{made['id']}"
    assert (made["check_id"], made["cluster_id"], made["gpu_type"], made["mode"], made["severity"]) == ("ib_link", cluster, "", None, "warning")
    check_update(own, f"check-overrides/{made['id']}", {"mode": "shadow"}, "mode")
    now = own.api("GET", f"check-overrides/{made['id']}")
    changed = own.api("PATCH", f"check-overrides/{made['id']}", {"severity": None}, headers={"If-Match": now.headers["etag"]}).json()
    assert (changed["severity"], changed["mode"]) == (None, "shadow"), "null takes a part away"
    shown = {check["check_id"]: check for check in own.api("GET", "checks").json()["items"]}
    assert [o["id"] for o in shown["ib_link"]["overrides"]] == [made["id"]] and shown["gpu_lost"]["overrides"] == []
    assert own.api("DELETE", f"check-overrides/{made['id']}").status_code == 204
    assert own.api("GET", f"check-overrides/{made['id']}").status_code == 404
    actions = [row["action"] for row in own.api("GET", f"audit?target={made['id']}").json()["items"]]
    assert set(actions) == {"check_override.create", "check_override.update", "check_override.delete"}


def test_lists_and_idempotency(own):
    for _ in range(3):
        own.check_override()
    check_list(own, "check-overrides", "id")
    check_idempotency(own, "check-overrides", lambda: {"check_id": "gpu_xid", "gpu_type": own.name("t"), "mode": "off"})


def test_one_place_has_one_override(own):
    body = {"check_id": "gpu_gsp", "gpu_type": own.name("t"), "mode": "off"}
    assert own.api("POST", "check-overrides", body).status_code == 201
    assert own.api("POST", "check-overrides", body).status_code == 409


def test_only_what_a_check_has_can_be_set(own):
    shown = {check["check_id"]: check["settable"] for check in own.api("GET", "checks").json()["items"]}
    assert shown["gpu_xid"] == ["mode", "severity", "action", "threshold"] and "looks" in shown["clock"] and shown["reported"] == []
    values = {"mode": "shadow", "severity": "warning", "action": "remove", "threshold": 3, "looks": 4}
    for check, settable in shown.items():
        for field, value in values.items():
            body = {"check_id": check, "gpu_type": own.name("t"), field: value}
            answer = own.api("POST", "check-overrides/dry-run", body)
            assert answer.status_code == (200 if field in settable else 422), (check, field, answer.text)
    refused = own.api("POST", "check-overrides", {"check_id": "oom", "action": "reboot"})
    assert refused.status_code == 422 and refused.json()["errors"][0]["pointer"] == "#/action"
    assert own.api("POST", "check-overrides", {"check_id": "gpu_xid"}).json()["errors"][0]["pointer"] == "#/mode"
    assert own.api("POST", "check-overrides", {"check_id": "no_such", "mode": "off"}).json()["errors"][0]["pointer"] == "#/check_id"
    check_refusals(own, "POST", "check-overrides", {"check_id": "gpu_xid", "mode": "loud", "severity": "bad", "threshold": 0},
                   ["#/mode", "#/severity", "#/threshold"])


def test_a_change_may_not_leave_nothing_set(own):
    made = own.check_override()
    answer = own.api("PATCH", f"check-overrides/{made['id']}", {"mode": None}, headers={"If-Match": '"1"'})
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == "#/mode"


# ------------------------------------------------------------ its effect
def test_a_check_in_shadow_is_recorded_and_changes_nothing(own):
    cluster = own.cluster()
    own.check_override(check_id="gpu_ecc", cluster_id=cluster, gpu_type="")
    agent, other = join(own, cluster), join(own, own.cluster())
    tell(agent, "gpu_ecc")
    tell(other, "gpu_ecc")
    wait_for(lambda: repairs_of(own, other), LONG)
    incident = incident_of(own, agent, "gpu_ecc")
    assert (incident["mode"], incident["state"], incident["severity"]) == ("shadow", "open", "critical")
    assert node_of(own, agent)["state"] == "healthy" and repairs_of(own, agent) == [] and node_of(own, agent)["incident_id"] is None
    event = own.sql(f"SELECT severity, summary FROM event WHERE incident_id = '{incident['id']}' AND type = 'incident.opened'")
    assert event == "info|In shadow: gpu_ecc fails"


def test_a_check_that_is_off_records_nothing(own):
    cluster = own.cluster()
    own.check_override(check_id="gpu_ecc", cluster_id=cluster, gpu_type="", mode="off")
    agent = join(own, cluster)
    tell(agent, "gpu_ecc")
    assert incident_of(own, agent, "gpu_ecc") is None


def test_a_milder_severity_is_a_warning_and_not_a_fault(own):
    cluster = own.cluster()
    own.check_override(check_id="gpu_ecc", cluster_id=cluster, gpu_type="", mode=None, severity="warning", **NOW)
    agent = join(own, cluster)
    tell(agent, "gpu_ecc")
    incident = incident_of(own, agent, "gpu_ecc")
    assert (incident["severity"], incident["node_fault"]) == ("warning", False)
    node = wait_for(lambda: (n := node_of(own, agent)) and n["warning"] and n, LONG)
    assert node["state"] == "healthy" and repairs_of(own, agent) == []


def test_another_action_is_proposed(own):
    cluster = own.cluster()
    own.check_override(check_id="gpu_ecc", cluster_id=cluster, gpu_type="", mode=None, action="reset_gpu", **NOW)
    agent = join(own, cluster)
    tell(agent, "gpu_ecc")
    repair = wait_for(lambda: next(iter(repairs_of(own, agent)), None), LONG)
    assert repair["action"] == "reset_gpu" and incident_of(own, agent, "gpu_ecc")["action"] == "reset_gpu"


def test_an_incident_counts_from_the_threshold_on(own):
    cluster = own.cluster()
    own.check_override(check_id="gpu_xid", cluster_id=cluster, gpu_type="", mode=None, threshold=5, **NOW)
    agent = join(own, cluster)
    tell(agent, "gpu_xid", count=4)
    assert incident_of(own, agent, "gpu_xid")["mode"] == "shadow"
    tell(agent, "gpu_xid")
    incident = incident_of(own, agent, "gpu_xid")
    assert (incident["mode"], incident["count"]) == ("live", 5)
    wait_for(lambda: node_of(own, agent)["state"] == "unhealthy", LONG)


def test_the_nearest_override_holds(own):
    here, there = own.cluster(), own.cluster()
    kind = own.name("H100")
    own.check_override(check_id="gpu_gsp", gpu_type=kind, mode="off")
    own.check_override(check_id="gpu_gsp", cluster_id=here, gpu_type="", mode="shadow")
    agents = [join(own, here, kind), join(own, there, kind), join(own, there)]
    for agent in agents:
        tell(agent, "gpu_gsp")
    found = [incident_of(own, agent, "gpu_gsp") for agent in agents]
    assert [one and one["mode"] for one in found] == ["shadow", None, "live"], "cluster, then type of GPU, then all"


# ------------------------------------------------------------ the dry run
def test_a_dry_run_counts_and_changes_nothing(own):
    cluster = own.cluster()
    agents = [join(own, cluster) for _ in range(3)]
    for agent, count in zip(agents, (1, 2, 9)):
        tell(agent, "gpu_xid", count=count)
    closed = incident_of(own, agents[0], "gpu_xid")
    assert own.api("POST", f"incidents/{closed['id']}/close", {"reason": "x"}).status_code == 200
    old = own.incident(agents[0].node_id)
    own.sql(f"UPDATE incident SET check_id = 'gpu_xid', first_at = now() - interval '31 days' WHERE id = '{old}'")

    def effect(**fields):
        answer = own.api("POST", "check-overrides/dry-run", {"check_id": "gpu_xid", "cluster_id": cluster, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    rows = f"SELECT count(*), max(version) FROM check_override WHERE org_id = '{own.org.id}'"
    before = own.sql(rows)
    seen = effect(threshold=2)
    assert (seen["incidents"], seen["events"]) == (3, 12), "of the last 30 days"
    assert seen["before"] == {"opened": 3, "closed": 1, "shadowed": 0, "nodes_down": 3, "proposed": 3}
    assert seen["after"] == {"opened": 2, "closed": 0, "shadowed": 1, "nodes_down": 2, "proposed": 2}
    assert effect(mode="off")["after"] == {"opened": 0, "closed": 0, "shadowed": 0, "nodes_down": 0, "proposed": 0}
    assert effect(mode="shadow")["after"] == {"opened": 0, "closed": 0, "shadowed": 3, "nodes_down": 0, "proposed": 0}
    assert effect(severity="warning")["after"]["nodes_down"] == 0
    assert effect(action="none")["after"]["proposed"] == 0
    assert effect(mode="off", gpu_type=own.name("none"))["incidents"] == 0
    assert own.sql(rows) == before and incident_of(own, agents[1], "gpu_xid")["mode"] == "live"
