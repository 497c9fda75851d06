"""Incidents: reported, listed, noted on, closed; and the catalogue of checks."""
import pytest
from agent import fault, stream
from resource import check_idempotency, check_list, check_refusals, check_update, last_event, walk


def test_reporting(world):
    node = world.node()
    answer = world.api("POST", f"nodes/{node}/incidents", {"summary": "Fan 3 is loud", "severity": "warning", "device": "fan3"})
    assert answer.status_code == 201
    incident = answer.json()
    assert (incident["check_id"], incident["clears"], incident["action"], incident["state"]) == ("reported", "person", "none", "open")
    assert (incident["count"], incident["node_fault"], incident["node_id"]) == (1, False, node)
    assert incident["evidence"][0]["text"] == "administrator: Fan 3 is loud" and incident["evidence"][0]["opened"]
    assert world.api("GET", answer.headers["location"]).json() == incident
    event = last_event(world)
    assert (event["type"], event["severity"], event["incident_id"]) == ("incident.opened", "warning", incident["id"])


def test_the_same_report_again_is_counted(world):
    node = world.node()
    body = {"summary": "Smoke", "severity": "warning", "device": "psu1"}
    first = world.made("POST", f"nodes/{node}/incidents", body)
    second = world.made("POST", f"nodes/{node}/incidents", {**body, "severity": "critical", "node_fault": True})
    assert second["id"] == first["id"] and second["count"] == 2 and second["no"] == first["no"]
    assert (second["severity"], second["node_fault"], second["version"]) == ("critical", True, 2)
    assert [line["opened"] for line in second["evidence"]] == [True, False]
    assert last_event(world)["type"] == "incident.changed"
    assert world.made("POST", f"nodes/{node}/incidents", {**body, "device": "psu2"})["id"] != first["id"]


def test_numbers_grow(world):
    node = world.node()
    numbers = [world.api("GET", f"incidents/{world.incident(node)}").json()["no"] for _ in range(3)]
    assert numbers == sorted(set(numbers))


def test_refusals_come_all_at_once(world):
    check_refusals(world, "POST", f"nodes/{world.node()}/incidents", {"severity": "bad", "node_fault": "yes"},
                   ["#/summary", "#/severity", "#/node_fault"])


def test_idempotency(world):
    node = world.node()
    check_idempotency(world, f"nodes/{node}/incidents", lambda: {"summary": "s", "severity": "info", "device": world.name("d")})


@pytest.fixture(scope="module")
def faults(world):
    """A cluster with two nodes: three open incidents, one closed."""
    cluster = world.cluster()
    first, second = world.node(cluster), world.node(cluster)
    made = [world.incident(first), world.incident(first), world.incident(second), world.incident(second)]
    assert world.api("POST", f"incidents/{made[-1]}/close", {"reason": "Replaced"}).status_code == 200
    return cluster, first, second, made


def test_list(world, faults):
    cluster, first, second, made = faults
    items = check_list(world, f"incidents?cluster_id={cluster}", "id", others=[f"incidents?node_id={first}", f"incidents?cluster_id={cluster}&state=open"])
    assert [item["id"] for item in items] == made[::-1]
    assert [item["id"] for item in walk(world, f"incidents?node_id={second}", 1)] == made[:1:-1]
    assert [item["id"] for item in walk(world, f"incidents?cluster_id={cluster}&node_id={first}", 1)] == made[1::-1]
    assert made[3] in [item["id"] for item in walk(world, "incidents", 50)]


def test_filters(world, faults):
    cluster, first, _, made = faults
    ids = lambda query: [item["id"] for item in walk(world, f"incidents?cluster_id={cluster}&{query}", 2)]
    assert ids("state=open") == made[2::-1] and ids("state=closed") == made[3:]
    assert ids("check_id=reported") == made[::-1] and ids("check_id=gpu_lost&check_id=oom") == []
    assert ids("since=2099-01-01T00:00:00Z") == made[2::-1], "what is open lasts"
    assert ids("until=2020-01-01T00:00:00Z") == []
    answer = world.api("GET", "incidents?state=ended")
    assert answer.status_code == 422 and answer.json()["errors"][0]["parameter"] == "state"


def test_noting(world):
    check_update(world, f"incidents/{world.incident()}", {"note": "Vendor case 4711"}, "note")


def test_closing(world):
    incident = world.incident()
    answer = world.api("POST", f"incidents/{incident}/close", {"reason": "Cable replaced"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["state"], body["close_reason"], body["closed_by"]) == ("closed", "Cable replaced", "administrator")
    again = world.api("POST", f"incidents/{incident}/close", {"reason": "Again"})
    assert again.status_code == 409 and again.json()["state"] == "closed"


def test_after_closing_the_same_fault_is_a_new_incident(world):
    node, body = world.node(), {"summary": "Smoke", "severity": "critical"}
    first = world.made("POST", f"nodes/{node}/incidents", body)
    world.api("POST", f"incidents/{first['id']}/close", {"reason": "x"})
    second = world.made("POST", f"nodes/{node}/incidents", body)
    assert second["id"] != first["id"] and second["no"] > first["no"]


def test_an_incident_names_its_repair(world):
    agent = world.agent(world.cluster())
    agent.report_ok(streams=[stream(0, fault(2, "gpu_xid", device="0000:1b:00", code="95", action="reboot", node_fault=True))])
    # The loop may have proposed it already.
    assert world.api("POST", f"nodes/{agent.node_id}/repairs", {"action": "reboot", "reason": "Xid 95"}).status_code in (201, 409)
    repair = world.api("GET", f"repairs?node_id={agent.node_id}").json()["items"][0]
    incident = world.api("GET", f"incidents?node_id={agent.node_id}&check_id=gpu_xid").json()["items"][0]
    assert incident["repair_id"] == repair["id"] and incident["clear_rule"].startswith("Clears ")


def test_catalogue(world):
    checks = {check["check_id"]: check for check in world.api("GET", "checks").json()["items"]}
    assert checks["gpu_lost"]["action"] == "reboot" and checks["reported"]["clears"] == "person"
    assert all(check["clear_rule"].startswith("Clears ") for check in checks.values())


def test_matrix(world):
    agent = world.agent(world.cluster())
    path = f"clusters/{agent.cluster_id}/checks"
    world.sql(f"UPDATE cluster_rollup SET nodes = 1 WHERE cluster_id = '{agent.cluster_id}'")
    world.sql("INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps)"
              f" SELECT '{world.org.id}', '{agent.cluster_id}', now() - i * interval '1 minute', 0, '{{50}}', '{{50}}', '{{50}}', '{{1}}'"
              " FROM generate_series(1, 50) i")
    world.sql(f"UPDATE incident SET first_at = now() - interval '10 minutes' WHERE node_id = '{agent.node_id}'")
    matrix = world.api("GET", f"{path}?buckets=24").json()
    assert matrix["coverage"][-1] == "d" and matrix["coverage"].startswith("..........")
    rows = {row["check_id"]: row for row in matrix["rows"]}
    assert rows["gpu_lost"]["cells"][-1] == "f" and rows["gpu_lost"]["worst"][0]["node_id"] == agent.node_id
    assert 0 < rows["gpu_lost"]["passed_ratio"] < 1
    assert rows["oom"]["cells"][-1] == "p" and rows["oom"]["passed_ratio"] == 1 and rows["oom"]["worst"] == []
    assert len(world.api("GET", path).json()["coverage"]) == 48
    empty = world.api("GET", f"clusters/{world.cluster()}/checks?buckets=3").json()
    assert {row["cells"] for row in empty["rows"]} == {"..."} and {row["passed_ratio"] for row in empty["rows"]} == {None}


def test_what_no_collector_reads_has_not_passed(world):
    agent = world.agent(world.cluster())
    agent.report_ok(collectors=[{"name": "kmsg", "state": "unknown", "reason": "permission denied"}])
    world.sql("INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps)"
              f" VALUES ('{world.org.id}', '{agent.cluster_id}', now() - interval '1 minute', 0, '{{50}}', '{{50}}', '{{50}}', '{{1}}')")
    rows = {row["check_id"]: row for row in world.api("GET", f"clusters/{agent.cluster_id}/checks?buckets=2").json()["rows"]}
    assert rows["oom"]["cells"] == ".." and rows["oom"]["passed_ratio"] is None
    assert rows["gpu_lost"]["cells"][-1] == "f", "what was seen before it went blind stays seen"
