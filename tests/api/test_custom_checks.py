"""An org's own checks, what nodes should have, trials of changes, and the settings that agents get from all of it."""
import hashlib
import json

import pytest
from agent import Agent, fault, join_token, stream, unb64, wait_for
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from resource import check_idempotency, check_list, check_refusals, check_update
from world import World

LONG = 90
NOW = {"shadow_seconds": 0, "reason": "Tried elsewhere"}
METRIC = {"metric": "gpu_temp_c", "comparison": "above", "threshold": 85, "clear_threshold": 80, "for_seconds": 120}


@pytest.fixture(scope="module")
def own(server):
    """An org of its own: what is set here is for all of it."""
    return World(server, server.add_org("custom-own"))


def join(world, cluster, gpu_type=None, settings=""):
    agent = Agent(world.server, world.name("o")).enroll(join_token(world.server, cluster_id=cluster, org_id=world.org.id))
    agent.report_ok(inventory={"gpu_type": gpu_type} if gpu_type else {}, settings=settings)
    world.sql(f"UPDATE node SET interval_seconds = 3600 WHERE id = '{agent.node_id}'")
    agent.sent = 0
    return agent


def tell(agent, check, **fields):
    agent.sent += 1
    event = fault(agent.sent, check, code="gpu_temp_c", device="0000:1b:00", summary=f"{check} fails", clears="event",
                  **{"node_fault": False, "action": "none", "severity": "warning", **fields})
    agent.report_ok(streams=[stream(0, event)])


def incident_of(world, agent, check):
    items = world.api("GET", f"incidents?node_id={agent.node_id}&check_id={check}").json()["items"]
    return items[0] if items else None


def events_of(world, kind, **data):
    rows = world.sql("SELECT coalesce(json_agg(json_build_object('summary', summary, 'data', data, 'severity', severity)), '[]')"
                     f" FROM event WHERE org_id = '{world.org.id}' AND type = '{kind}'")
    return [row for row in json.loads(rows) if all(row["data"].get(key) == value for key, value in data.items())]


def settings_of(agent, **said):
    """The document of the answer to a report, after its signature was checked; None without one."""
    answer = agent.report_ok(**said)
    if "settings" not in answer:
        return None
    text = answer["settings"]["document"]
    signed = f"muster-settings\n{agent.node_id}\n{agent.nonce}\n{text}"
    Ed25519PublicKey.from_public_bytes(unb64(agent.command_key)).verify(unb64(answer["settings"]["signature"]), signed.encode())
    return text


def version(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def changed_settings(agent, running):
    """What follows on what it runs: the loops make it, and a report brings it."""
    return wait_for(lambda: settings_of(agent, settings=version(running) if running else ""), LONG)


# ------------------------------------------------------------ the resource
def test_a_check_is_made_changed_and_deleted_with_its_versions(own):
    answer = own.api("POST", "custom-checks", {"name": "hot", "kind": "metric", "severity": "warning",
                                               "definition": {"metric": "gpu_temp_c", "comparison": "above", "threshold": 85}})
    made = answer.json()
    assert answer.status_code == 201 and answer.headers["location"] == f"/api/v1/custom-checks/{made['id']}"
    assert (made["check_id"], made["mode"], made["action"]) == ("custom:hot", "live", "none") and made["shadow_until"], "it begins in shadow"
    assert made["definition"] == {"metric": "gpu_temp_c", "comparison": "above", "threshold": 85, "clear_threshold": 85, "for_seconds": 60}
    check_update(own, f"custom-checks/{made['id']}", {"title": "Hot GPU"}, "title")
    now = own.api("GET", f"custom-checks/{made['id']}")
    changed = own.api("PATCH", f"custom-checks/{made['id']}", {"definition": METRIC, "severity": "critical", "action": "reboot", "reason": "They melt"},
                      headers={"If-Match": now.headers["etag"]}).json()
    history = own.api("GET", f"custom-checks/{made['id']}/versions").json()["items"]
    assert history[0]["version"] == changed["version"] and history[-1]["version"] == 1 and history[-1]["changed"] == []
    assert {c["field"]: (c["before"], c["after"]) for c in history[0]["changed"] if c["field"] != "shadow_until"} == {
        "severity": ("warning", "critical"), "action": ("none", "reboot"), "clear_threshold": (85, 80), "for_seconds": (60, 120)}
    assert history[0]["reason"] == "They melt"
    assert own.api("DELETE", f"custom-checks/{made['id']}").status_code == 204
    assert own.api("GET", f"custom-checks/{made['id']}").status_code == 404
    actions = {row["action"] for row in own.api("GET", f"audit?target={made['id']}").json()["items"]}
    assert actions == {"custom_check.create", "custom_check.update", "custom_check.delete"}


def test_lists_and_idempotency(own):
    for _ in range(3):
        own.custom_check()
        own.expectation()
    check_list(own, "custom-checks", "id")
    check_list(own, "expectations", "id")
    check_idempotency(own, "custom-checks", own.custom_check_body)
    check_idempotency(own, "expectations", lambda: {"gpu_type": own.name("t"), "gpus": 8})


def test_a_definition_is_checked_by_its_kind(own):
    good = own.custom_check_body()

    def pointers(definition, **fields):
        answer = own.api("POST", "custom-checks", {**good, "definition": definition, **fields})
        assert answer.status_code == 422, answer.text
        return [error["pointer"] for error in answer.json()["errors"]]

    assert pointers({"metric": "gpu_fear", "comparison": "above", "threshold": 1}) == ["#/definition/metric"]
    assert pointers({"metric": "gpu_util", "comparison": "above", "threshold": 80, "clear_threshold": 90}) == ["#/definition/clear_threshold"]
    assert pointers({"metric": "gpu_util", "comparison": "above"}) == ["#/definition/threshold"]
    assert pointers({"argv": ["/bin/true"], "script": "true"}, kind="command") == ["#/definition/argv"]
    assert pointers({"argv": ["true"]}, kind="command") == ["#/definition/argv"], "an absolute path"
    assert pointers({"argv": ["/bin/true"], "user": "a b"}, kind="command") == ["#/definition/user"]
    assert pointers({"argv": ["/bin/true"], "timeout_seconds": 300, "interval_seconds": 10}, kind="command") == ["#/definition/timeout_seconds"]
    assert pointers({"argv": ["/bin/true"]}) == ["#/definition"], "the kind says metric"
    assert pointers(good["definition"], action="reboot") == ["#/action"]
    assert pointers(good["definition"], shadow_seconds=0) == ["#/reason"]
    check_refusals(own, "POST", "custom-checks", {"name": "No", "kind": "odd", "severity": "bad", "definition": {}},
                   ["#/name", "#/kind", "#/severity"])
    command = own.custom_check(kind="command", definition={"argv": ["/usr/bin/test", "-e", "/data"]})
    assert command["definition"] == {"argv": ["/usr/bin/test", "-e", "/data"], "user": "nobody", "interval_seconds": 300, "timeout_seconds": 10,
                                     "output_bytes": 4096, "raise_after": 2, "clear_after": 2}


def test_script_authors_write_checks_and_operators_do_not(own):
    author, operator = (own.service_token(role)["token"] for role in ("script_author", "operator"))
    assert own.server.api("POST", "/api/v1/custom-checks", own.custom_check_body(), token=author).status_code == 201
    assert own.server.api("POST", "/api/v1/custom-checks", own.custom_check_body(), token=operator).status_code == 403


# ------------------------------------------------------------ its incidents
def test_a_trial_ends_by_itself_and_what_is_open_counts_from_then_on(own):
    check, agent = own.custom_check(severity="critical", action="reboot"), join(own, own.cluster())
    tell(agent, check["check_id"], severity="critical", node_fault=True, action="reboot")
    incident = incident_of(own, agent, check["check_id"])
    assert (incident["mode"], incident["severity"]) == ("shadow", "critical")
    wait_for(lambda: own.api("GET", f"nodes/{agent.node_id}").json()["state"] == "healthy", LONG)
    own.sql(f"UPDATE custom_check SET shadow_until = now() WHERE id = '{check['id']}'")
    wait_for(lambda: incident_of(own, agent, check["check_id"])["mode"] == "live", LONG)
    wait_for(lambda: own.api("GET", f"nodes/{agent.node_id}").json()["state"] == "unhealthy", LONG)
    assert len(events_of(own, "check.activated", check_id=check["check_id"])) == 1
    assert "check.activate" in {row["action"] for row in own.api("GET", f"audit?target={check['id']}").json()["items"]}


def test_what_a_check_may_do_is_what_the_server_stored(own):
    check, agent = own.custom_check(**NOW), join(own, own.cluster())
    tell(agent, check["check_id"], severity="critical", node_fault=True, action="reboot")
    incident = incident_of(own, agent, check["check_id"])
    assert (incident["severity"], incident["action"], incident["node_fault"], incident["mode"]) == ("warning", "none", False, "live")
    tell(agent, "custom:nobody-made-it")
    assert incident_of(own, agent, "custom:nobody-made-it") is None


@pytest.mark.parametrize("end", ["off", "delete"])
def test_its_incidents_end_with_it(own, end):
    check, agent = own.custom_check(**NOW), join(own, own.cluster())
    tell(agent, check["check_id"])
    if end == "off":
        assert own.api("PATCH", f"custom-checks/{check['id']}", {"mode": "off"}, headers={"If-Match": '"1"'}).status_code == 200
    else:
        assert own.api("DELETE", f"custom-checks/{check['id']}").status_code == 204
    incident = incident_of(own, agent, check["check_id"])
    assert incident["state"] == "closed" and incident["close_reason"] in ("The check was switched off.", "The check was deleted.")
    assert len(events_of(own, "incident.closed", check_id=check["check_id"])) == 1
    tell(agent, check["check_id"])
    assert incident_of(own, agent, check["check_id"])["id"] == incident["id"], "nothing more is recorded"


def test_nothing_starts_by_itself_unless_a_policy_names_the_check(own):
    check, agent = own.custom_check(severity="critical", action="reboot", **NOW), join(own, own.cluster())
    policy = own.made("POST", "policies", {"node_id": agent.node_id, "mode": "automatic"})

    def mode():
        tell(agent, check["check_id"], severity="critical", node_fault=True, action="reboot")
        found = own.api("GET", f"repairs?node_id={agent.node_id}").json()["items"]
        return found and own.api("GET", f"repairs/{found[0]['id']}").json()

    repair = wait_for(mode, LONG)
    assert repair["state"] == "proposed"
    now = own.api("GET", f"policies/{policy['id']}")
    named = own.api("PATCH", f"policies/{policy['id']}", {"automatic": [check["check_id"]]}, headers={"If-Match": now.headers["etag"]})
    assert named.status_code == 200 and check["check_id"] in named.text, named.text


# ------------------------------------------------------------ overrides on trial
def test_a_changed_rule_is_in_shadow_first_and_says_so(own):
    cluster = own.cluster()
    changed = own.check_override(check_id="gpu_ecc", cluster_id=cluster, gpu_type="", mode=None, severity="warning")
    assert changed["shadow_until"]
    agent = join(own, cluster)
    agent.sent += 1
    agent.report_ok(streams=[stream(0, fault(agent.sent, "gpu_ecc", device="0000:1b:00", node_fault=True, action="reboot"))])
    assert incident_of(own, agent, "gpu_ecc")["mode"] == "shadow"
    shown = {c["check_id"]: c["effective"] for c in own.api("GET", f"checks?cluster_id={cluster}").json()["items"]}
    assert (shown["gpu_ecc"]["mode"], shown["gpu_ecc"]["severity"], shown["gpu_ecc"]["source"]) == ("shadow", "warning", "cluster")
    assert shown["gpu_lost"]["source"] == "delivered" and shown["gpu_lost"]["override_id"] is None
    own.sql(f"UPDATE check_override SET shadow_until = now() WHERE id = '{changed['id']}'")
    wait_for(lambda: incident_of(own, agent, "gpu_ecc")["mode"] == "live", LONG)
    assert len(events_of(own, "check.activated", override_id=changed["id"])) == 1
    by_node = {c["check_id"]: c["effective"] for c in own.api("GET", f"checks?node_id={agent.node_id}").json()["items"]}
    assert by_node["gpu_ecc"]["override_id"] == changed["id"] and by_node["gpu_ecc"]["mode"] == "live"
    everywhere = {c["check_id"]: c["effective"] for c in own.api("GET", "checks").json()["items"]}
    assert everywhere["gpu_ecc"]["source"] == "delivered"


def test_without_a_trial_a_reason_is_needed(own):
    body = {"check_id": "gpu_ecc", "gpu_type": own.name("t"), "severity": "warning", "shadow_seconds": 0}
    assert own.api("POST", "check-overrides", body).json()["errors"][0]["pointer"] == "#/reason"
    assert own.api("POST", "check-overrides", {**body, "reason": "Known harmless"}).json()["shadow_until"] is None


# ------------------------------------------------------------ settings of agents
def test_an_agent_gets_the_nearest_of_all_that_is_set_once(own):
    kind, cluster = own.name("H100"), own.cluster()
    agent = join(own, cluster, kind)
    first = changed_settings(agent, None)
    assert own.api("GET", f"nodes/{agent.node_id}/settings").json()["wanted"] == version(first)
    own.expectation(gpu_type=kind, gpus=8)
    own.expectation(cluster_id=cluster, gpu_type="", port_gbps=400)
    own.expectation(node_id=agent.node_id, gpu_type="", gpus=4)
    own.check_override(check_id="clock", gpu_type=kind, mode=None, looks=5, clear_looks=3, **NOW)
    own.check_override(check_id="oom", gpu_type=kind, mode="off")
    check = own.custom_check(gpu_type=kind, definition=METRIC)

    def whole():
        text = settings_of(agent, settings=version(first))
        found = text and json.loads(text)
        good = found and found.get("expected") == {"gpus": 4, "port_gbps": 400} and found.get("off") == ["oom"]
        return text if good and check["name"] in [c["name"] for c in found["checks"]] else None

    text = wait_for(whole, LONG)
    document = json.loads(text)
    assert {"check_id": "clock", "raise": 5, "clear": 3} in document["looks"]
    mine = next(c for c in document["checks"] if c["name"] == check["name"])
    assert (mine["kind"], mine["version"], mine["threshold"], mine["clear_threshold"], mine["severity"]) == ("metric", 1, 85, 80, "warning")
    assert settings_of(agent, settings=version(text)) is None, "what it runs is not sent again"
    shown = wait_for(lambda: (s := own.api("GET", f"nodes/{agent.node_id}/settings").json())["running"] == version(text) and s, LONG)
    assert shown["wanted"] == shown["running"] and shown["document"] == document and shown["refused"] == ""


def test_settings_that_an_agent_refused_are_not_sent_for_ever(own):
    agent = join(own, own.cluster())
    text = changed_settings(agent, None)
    assert settings_of(agent, settings="", settings_refused=version(text)) is None
    assert own.api("GET", f"nodes/{agent.node_id}/settings").json()["refused"] == version(text)


def test_an_agent_that_lost_its_settings_gets_them_when_it_begins(own):
    agent = join(own, own.cluster())
    text = changed_settings(agent, None)
    agent.report_ok(settings=version(text))
    assert settings_of(agent, settings="", inventory={}) == text


def test_an_agent_that_takes_no_settings_gets_none(own):
    agent = join(own, own.cluster(), settings=None)
    assert settings_of(agent) is None
    shown = own.api("GET", f"nodes/{agent.node_id}/settings").json()
    assert (shown["takes_settings"], shown["wanted"], shown["document"]) == (False, None, None)


# ------------------------------------------------------------ the dry run
def test_a_metric_is_tried_on_what_was_stored(own):
    cluster = own.cluster()
    hot, cool = join(own, cluster), join(own, cluster)
    slots = {agent: int(own.sql(f"SELECT slot FROM node WHERE id = '{agent.node_id}'")) for agent in (hot, cool)}
    own.sql(f"UPDATE node SET created_at = now() - interval '2 days' WHERE cluster_id = '{cluster}'")
    for minutes in range(0, 60, 5):
        values = [0] * (max(slots.values()) + 1)
        values[slots[hot]], values[slots[cool]] = 97, 20
        own.sql("INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps)"
                f" VALUES ('{own.org.id}', '{cluster}', now() - interval '{minutes + 60} minutes', 0, ARRAY{values}::smallint[], '{{}}', '{{}}', '{{}}')")

    def effect(**definition):
        answer = own.api("POST", "custom-checks/dry-run", {"cluster_id": cluster, "definition": {"metric": "gpu_util", "comparison": "above", **definition}})
        assert answer.status_code == 200, answer.text
        return answer.json()

    seen = effect(threshold=90, for_seconds=1800)
    assert (seen["nodes"], seen["incidents"]) == (1, 1) and seen["worst"][0]["node_id"] == hot.node_id
    assert effect(threshold=90, for_seconds=7200)["nodes"] == 0, "not for so long"
    assert effect(threshold=10, for_seconds=60)["nodes"] == 2
    refused = own.api("POST", "custom-checks/dry-run", {"definition": {"metric": "gpu_temp_c", "comparison": "above", "threshold": 85}})
    assert refused.status_code == 422 and refused.json()["errors"][0]["pointer"] == "#/definition/metric"
