"""Clusters: settings, the list with roll-ups, the overview."""
import pytest
from agent import wait_for
from resource import check_idempotency, check_list, check_refusals, check_unchanged, check_update, last_audit, last_event
from world import World

SETTINGS = {"scheduler": "slurm", "region": "fra", "gpu_type": "H100", "gpus_per_node": 8, "driver_version": "550.54.15",
            "network": "ib", "os_image": "ubuntu-22", "billing_rate": 2.5, "billing_currency": "EUR",
            "healthy_delay_seconds": 60, "begin_within_seconds": 900, "rejoin_within_seconds": 1200}


def test_creating_with_all_settings(world):
    body = {"project_id": world.org.project_id, "name": world.name("c"), **SETTINGS}
    answer = world.api("POST", "clusters", body)
    assert answer.status_code == 201
    cluster = answer.json()
    assert {key: cluster[key] for key in body} == body
    assert world.api("GET", answer.headers["location"]).json() == cluster
    assert last_event(world)["cluster_id"] == cluster["id"]


def test_defaults(world):
    cluster = world.api("GET", f"clusters/{world.cluster()}").json()
    assert (cluster["scheduler"], cluster["gpus_per_node"], cluster["billing_currency"]) == ("none", None, "USD")
    assert (cluster["healthy_delay_seconds"], cluster["begin_within_seconds"], cluster["rejoin_within_seconds"]) == (600, 1800, 1800)


def test_refusals_come_all_at_once(world):
    check_refusals(world, "POST", "clusters", {"scheduler": "pbs", "gpus_per_node": 65, "billing_rate": -1, "healthy_delay_seconds": 1.5},
                   ["#/project_id", "#/name", "#/scheduler", "#/gpus_per_node", "#/billing_rate", "#/healthy_delay_seconds"])


def test_a_project_of_nobody_or_of_others_is_refused(world, server):
    other = World(server, server.add_org("clusters-other"))
    for project in (world.org.id, other.org.project_id):
        check_refusals(world, "POST", "clusters", {"project_id": project, "name": world.name("c")}, ["#/project_id"])
        check_refusals(world, "PATCH", f"clusters/{world.cluster()}", {"project_id": project}, ["#/project_id"], {"If-Match": '"1"'})


def test_a_currency_has_three_capitals(world):
    check_refusals(world, "POST", "clusters", {"project_id": world.org.project_id, "name": world.name("c"), "billing_currency": "eur"},
                   ["#/billing_currency"])
    check_refusals(world, "PATCH", f"clusters/{world.cluster()}", {"billing_currency": "E1R"}, ["#/billing_currency"], {"If-Match": '"1"'})


def test_a_name_is_taken_once(world):
    name = world.name("c")
    world.cluster(name=name)
    answer = world.api("POST", "clusters", {"project_id": world.org.project_id, "name": name})
    assert answer.status_code == 409 and answer.json()["code"] == "name_taken"


def test_idempotency(world):
    check_idempotency(world, "clusters", lambda: {"name": world.name("c"), "project_id": world.org.project_id})


def test_list_and_filter(world):
    project = world.project()
    made = {world.cluster(project_id=project) for _ in range(3)}
    check_list(world, "clusters", "id", others=[f"clusters?project_id={project}"])
    mine = world.api("GET", f"clusters?project_id={project}").json()["items"]
    assert {item["id"] for item in mine} == made
    assert all(item["rollup"]["nodes"] == 0 for item in mine)


def test_updating(world):
    cluster = world.cluster(**SETTINGS)
    check_update(world, f"clusters/{cluster}", {"region": "ams"}, "region")


def test_null_clears_and_absent_leaves(world):
    cluster = world.cluster(**SETTINGS)
    changed = world.api("PATCH", f"clusters/{cluster}", {"gpus_per_node": None, "billing_rate": None}, headers={"If-Match": '"1"'}).json()
    assert changed["gpus_per_node"] is None and changed["billing_rate"] is None and changed["gpu_type"] == "H100"
    check_refusals(world, "PATCH", f"clusters/{cluster}", {"region": None}, ["#/region"], {"If-Match": '"2"'})


def test_the_audit_row_has_both_sides(world):
    cluster = world.cluster(region="fra")
    world.api("PATCH", f"clusters/{cluster}", {"region": "ams"}, headers={"If-Match": '"1"'})
    row = last_audit(world, cluster)
    assert (row["action"], row["target"], row["outcome"]) == ("cluster.update", cluster, "done")
    assert (row["before"]["region"], row["after"]["region"]) == ("fra", "ams")
    assert row["actor"] == "administrator" and row["credential"] and row["request_id"]


@pytest.fixture(scope="module")
def busy(world):
    """A cluster with an agent's fault, a waiting repair, and nodes in other states."""
    cluster = world.cluster()
    agent = world.agent(cluster)
    for state in ("unknown", "repairing", "starting", "paused", "unhealthy", "unhealthy"):
        node = world.node(cluster)
        world.sql(f"UPDATE node SET state = '{state}', state_since = now() - interval '1 hour' WHERE id = '{node}'")
    world.repair(agent.node_id)
    return cluster, agent


def test_overview(world, busy):
    cluster, agent = busy
    body = world.api("GET", f"clusters/{cluster}/overview").json()
    assert body["cluster"]["id"] == cluster
    assert [node["state"] for node in body["worst"]][:2] != [] and len(body["worst"]) <= 5
    order = ["unhealthy", "unknown", "repairing", "starting", "paused", "pending"]
    ranks = [order.index(node["state"]) for node in body["worst"]]
    assert ranks == sorted(ranks)
    assert body["waiting_count"] == 1 and body["waiting"][0]["node_id"] == agent.node_id
    assert body["changes"][0] == body["last_change"]
    seqs = [event["seq"] for event in body["changes"]]
    assert seqs == sorted(seqs, reverse=True) and body["as_of_seq"] > 0


def test_an_overview_is_never_older_than_its_events(world, busy):
    """What a loop keeps ends with the next event."""
    cluster, _ = busy
    path = f"clusters/{cluster}/overview"
    for _ in range(3):
        world.api("GET", path)
        note = world.event(cluster)
        for _ in range(4):  # both loops
            assert world.api("GET", path).json()["last_change"]["seq"] >= note["seq"]


def test_drift_is_what_nodes_say_and_the_cluster_does_not_want(world):
    cluster = world.cluster(driver_version="550.1", os_image="ubuntu-22")
    for driver in ("550.1", "535.2", "535.2", "545.0", ""):
        node = world.node(cluster)
        world.sql(f"UPDATE node SET driver_version = '{driver}', os_image = 'ubuntu-22' WHERE id = '{node}'")
    drift = lambda: world.api("GET", f"clusters/{cluster}/overview").json()["drift"]
    wait_for(lambda: drift() == [{"field": "driver_version", "wanted": "550.1",
                                  "seen": [{"value": "535.2", "nodes": 2}, {"value": "545.0", "nodes": 1}]}])


def test_the_overview_of_a_cluster_without_nodes(world):
    body = world.api("GET", f"clusters/{world.cluster()}/overview").json()
    assert (body["worst"], body["waiting"], body["waiting_count"], body["drift"]) == ([], [], 0, [])
    assert body["rollup"]["gpu_busy_ratio"] is None, "nothing was read"


def test_the_overview_answers_304(world):
    path = f"clusters/{world.cluster()}/overview"
    check_unchanged(world, path)
