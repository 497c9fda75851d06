"""Nodes: lists in every order, one node with all that is known of it, changes, cordon, the grid."""
import uuid

import httpx
import pytest
from agent import fault, stream, wait_for
from resource import check_idempotency, check_list, check_refusals, check_update, last_audit, last_event, walk


STATES = ["unhealthy", "unknown", "repairing", "starting", "pending", "paused"] + ["healthy"] * 6


@pytest.fixture(scope="module")
def rack(world):
    """A cluster of twelve nodes in all states, two racks. The facts are such that the loops agree with the states."""
    cluster = world.cluster()
    nodes = [world.server.add_node(f"gpu-{i:02}", cluster, state=state) for i, state in enumerate(STATES)]
    world.sql(f"""
        UPDATE node SET rack = CASE WHEN name < 'gpu-06' THEN 'r1' ELSE 'r2' END, interval_seconds = 86400 WHERE cluster_id = '{cluster}';
        UPDATE node_latest l SET seen_at = now() - CASE n.name WHEN 'gpu-01' THEN interval '1 year' ELSE interval '1 second' END,
               ready = n.name <> 'gpu-03', boot_id = n.id FROM node n WHERE n.id = l.node_id AND n.cluster_id = '{cluster}' AND n.name <> 'gpu-04';
        UPDATE node SET paused_until = '2099-01-01', paused_by = 'test' WHERE id = '{nodes[5]}';
        INSERT INTO repair (org_id, id, no, cluster_id, node_id, action, state, plan, plan_hash, boot_id, deadline_at)
        VALUES ('{world.org.id}', gen_random_uuid(), 900001, '{cluster}', '{nodes[2]}', 'reboot', 'rejoining', '{{}}', repeat('0', 64), '{nodes[2]}', '2099-01-01')""")
    world.incident(nodes[0], node_fault=True)
    world.incident(nodes[7], severity="warning")
    wait_for(lambda: world.api("GET", f"clusters/{cluster}/grid").json()["state"] == "ukrspahHhhhh")
    yield cluster
    world.sql(f"DELETE FROM repair WHERE no = 900001 AND org_id = '{world.org.id}'")


def test_adding(world):
    cluster, name = world.cluster(), world.name("n")
    answer = world.api("POST", f"clusters/{cluster}/nodes", {"name": name, "rack": "r1", "leaf": "l1", "partition": "p", "gpus_expected": 8})
    assert answer.status_code == 201
    node = answer.json()
    assert (node["state"], node["rack"], node["leaf"], node["partition"], node["gpus"]) == ("pending", "r1", "l1", "p", 8)
    assert node["seen_at"] is None and node["gpu_util_ratio"] is None and node["cpu_ratio"] is None
    assert world.api("GET", answer.headers["location"]).json()["name"] == name
    event = last_event(world)
    assert (event["type"], event["node_id"], event["cluster_id"]) == ("node.created", node["id"], cluster)
    transitions = world.api("GET", f"nodes/{node['id']}/transitions").json()["items"]
    assert [t["state"] for t in transitions] == ["pending"]


def test_names_are_unique_in_a_cluster(world):
    first, second, name = world.cluster(), world.cluster(), world.name("n")
    for cluster, status in ((first, 201), (second, 201), (first, 409)):
        assert world.api("POST", f"clusters/{cluster}/nodes", {"name": name}).status_code == status


def test_slots_are_not_shared(world):
    cluster = world.cluster()
    for _ in range(3):
        world.node(cluster)
    assert world.sql(f"SELECT string_agg(slot::text, ' ' ORDER BY slot) FROM node WHERE cluster_id = '{cluster}'") == "0 1 2"


def test_refusals_come_all_at_once(world):
    path = f"clusters/{world.cluster()}/nodes"
    check_refusals(world, "POST", path, {"name": "bad name", "rack": "x" * 64, "gpus_expected": 65}, ["#/name", "#/rack", "#/gpus_expected"])
    check_refusals(world, "POST", path, {"name": "x" * 254}, ["#/name"])


def test_idempotency(world):
    check_idempotency(world, f"clusters/{world.cluster()}/nodes", lambda: {"name": world.name("n")})


def test_list(world, rack):
    others = [f"clusters/{rack}/nodes?q=gpu", f"clusters/{rack}/nodes?sort=-name", f"clusters/{world.cluster()}/nodes?x=1".replace("?x=1", "?q=")]
    items = check_list(world, f"clusters/{rack}/nodes", "name", others)
    assert [item["name"] for item in items] == [f"gpu-{i:02}" for i in range(12)]


def names(world, rack, query):
    return [item["name"] for item in walk(world, f"clusters/{rack}/nodes?{query}", limit=3)]


def test_list_backwards(world, rack):
    assert names(world, rack, "sort=-name") == [f"gpu-{i:02}" for i in reversed(range(12))]
    assert names(world, rack, "sort=-name&q=gpu-1") == ["gpu-11", "gpu-10"]
    assert names(world, rack, "sort=-name&state=healthy&rack=r2") == [f"gpu-{i:02}" for i in range(11, 5, -1)]


def test_list_worst_first(world, rack):
    states = [item["state"] for item in walk(world, f"clusters/{rack}/nodes?sort=state", limit=3)]
    assert states == ["unhealthy", "unknown", "repairing", "starting", "pending", "paused"] + ["healthy"] * 6
    assert names(world, rack, "sort=state&state=healthy&state=unknown") == ["gpu-01"] + [f"gpu-{i:02}" for i in range(6, 12)]


def test_filters(world, rack):
    assert names(world, rack, "state=unhealthy") == ["gpu-00"]
    assert names(world, rack, "state=paused&state=unknown") == ["gpu-01", "gpu-05"]
    assert names(world, rack, "q=gpu-1") == ["gpu-10", "gpu-11"]
    assert names(world, rack, "q=GPU") == [] and names(world, rack, "q=%25") == []
    assert names(world, rack, "warning=true") == ["gpu-07"]
    assert names(world, rack, "rack=r1&state=starting&q=gpu-0&warning=false") == ["gpu-03"]
    assert len(names(world, rack, "warning=false")) == 11
    for query, parameter in (("state=broken", "state"), ("sort=rack", "sort"), ("warning=maybe", "warning")):
        answer = world.api("GET", f"clusters/{rack}/nodes?{query}")
        assert answer.status_code == 422 and answer.json()["errors"][0]["parameter"] == parameter


def test_a_page_is_lowered_to_200(world, rack):
    assert len(world.api("GET", f"clusters/{rack}/nodes?limit=100000").json()["items"]) == 12


def test_a_summary_is_the_same_in_list_and_verb(world):
    """The list is written in C, verbs in SQL: one shape, times aside."""
    agent = world.agent(world.cluster())
    cluster = agent.cluster_id
    world.api("POST", f"nodes/{agent.node_id}/cordon", {})
    verb = world.api("POST", f"nodes/{agent.node_id}/uncordon", {}).json()
    listed = world.api("GET", f"clusters/{cluster}/nodes").json()["items"][0]
    moving = {"seen_at", "state_since", "state", "reason", "version", "warning"}
    assert {k: v for k, v in verb.items() if k not in moving} == {k: v for k, v in listed.items() if k not in moving}
    assert listed["gpus"] == 2 and listed["gpu_util_ratio"] == 0.5 and listed["gpu_temp_max_c"] == 61
    assert listed["gpu_mem_used_mib"] == 100 and listed["gpu_mem_total_mib"] == 400 and listed["cpu_ratio"] == 0.25


def test_a_node_with_all_that_is_known(world):
    agent = world.agent(world.cluster())
    repair = world.repair(agent.node_id)
    node = world.api("GET", f"nodes/{agent.node_id}").json()
    first, second = node["gpus"]
    assert (first["pci"], first["util_ratio"], first["state"], first["present"]) == ("0000:1b:00", 0.5, "fault", True)
    assert first["incident_id"] == node["incidents"][0]["id"] == node["incident_id"]
    assert (second["util_ratio"], second["device_id"], second["state"]) == (None, None, "unknown")
    assert node["incidents"][0]["check_id"] == "gpu_lost"
    assert node["repair"]["id"] == repair["id"] == node["repair_id"]
    assert node["collectors"][0]["name"] == "kmsg" and node["latest"]["cpu_ratio"] == 0.25
    assert node["ssh_command"].startswith("ssh ")


def test_old_readings_are_gaps(world):
    """The last value of a silent node is not a value."""
    agent = world.agent(world.cluster())
    world.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 hour' WHERE node_id = '{agent.node_id}'")
    summary = world.api("GET", f"clusters/{agent.cluster_id}/nodes").json()["items"][0]
    node = world.api("GET", f"nodes/{agent.node_id}").json()
    grid = world.api("GET", f"clusters/{agent.cluster_id}/grid").json()
    assert summary["gpu_util_ratio"] is summary["cpu_ratio"] is node["gpu_util_ratio"] is node["gpus"][0]["util_ratio"] is None
    assert (grid["util"], grid["mem"], grid["temp"]) == ([None], [None], [None]) and grid["age"][0] >= 3600
    assert node["latest"]["cpu_ratio"] == 0.25, "with its time, what was read last"


def test_a_part_that_was_replaced_is_not_shown_as_lost(world):
    agent = world.agent(world.cluster())
    devices = lambda *serials: {"devices": [{"type": "gpu", "index": i, "serial": s, "pci": f"0000:{i:02}:00", "model": "H100",
                                             "firmware": "", "memory_mib": 200} for i, s in enumerate(serials) if s]}
    shown = lambda: [(gpu["serial"], gpu["present"]) for gpu in world.api("GET", f"nodes/{agent.node_id}").json()["gpus"]]
    agent.report_ok(inventory=devices("one", "two"), gpus={"util": [1, 2]})
    agent.report_ok(inventory=devices("one", None), gpus={"util": [1]})
    assert shown() == [("one", True), ("two", False)], "a lost part keeps its row"
    agent.report_ok(inventory=devices("one", "three"), gpus={"util": [1, 2]})
    assert shown() == [("one", True), ("three", True)]


def test_an_address_that_is_none_is_not_put_into_the_command(world):
    node = world.node()
    world.sql(f"UPDATE node SET address = 'x; rm -rf /' WHERE id = '{node}'")
    body = world.api("GET", f"nodes/{node}").json()
    assert body["ssh_command"] == f"ssh {body['name']}"


def patch(world, node, change):
    """A change on what the node is now; a loop may change it in between."""
    for _ in range(20):
        answer = world.api("PATCH", f"nodes/{node}", change, headers={"If-Match": world.api("GET", f"nodes/{node}").headers["etag"]})
        if answer.status_code != 412:
            assert answer.status_code == 200, answer.text
            return answer.json()
    raise AssertionError("always 412")


def test_updating(world):
    node = world.node(gpus_expected=8)
    body = check_update(world, f"nodes/{node}", {"rack": "r2"}, "rack")
    assert body["rack"] == "r2"
    changed = patch(world, node, {"gpus_expected": None, "schedulable": False, "auto_repair": False, "paused_until": "2099-01-01T00:00:00Z"})
    assert (changed["gpus_expected"], changed["schedulable"], changed["auto_repair"]) == (None, False, False)
    assert changed["paused_until"].startswith("2099-01-01T00:00:00") and changed["paused_by"] == "administrator"
    cleared = patch(world, node, {"paused_until": None})
    assert cleared["paused_until"] is None and cleared["paused_by"] is None


def test_maintenance_ends_in_the_future(world):
    node = world.node()
    etag = {"If-Match": world.api("GET", f"nodes/{node}").headers["etag"]}
    check_refusals(world, "PATCH", f"nodes/{node}", {"paused_until": "2020-01-01T00:00:00Z"}, ["#/paused_until"], etag)
    check_refusals(world, "PATCH", f"nodes/{node}", {"paused_until": "soon", "rack": None}, ["#/paused_until", "#/rack"], etag)


def test_cordon_is_told_once(world):
    node = world.node()
    first = world.api("POST", f"nodes/{node}/cordon", {"comment": "Cable swap"})
    assert first.status_code == 200 and first.json()["schedulable"] is False
    seq = world.seq()
    assert world.api("POST", f"nodes/{node}/cordon").json()["schedulable"] is False
    event = world.api("GET", f"events?node_id={node}&type=node.cordoned").json()["items"]
    assert len(event) == 1 and event[0]["data"]["comment"] == "Cable swap" and event[0]["seq"] <= seq
    assert world.api("POST", f"nodes/{node}/uncordon", {}).json()["schedulable"] is True


def test_a_persons_cordon_takes_over_a_repairs(world):
    node = world.node()
    world.sql(f"UPDATE node SET schedulable = false, cordoned_by = gen_random_uuid() WHERE id = '{node}'")
    assert world.api("POST", f"nodes/{node}/cordon", {}).json()["schedulable"] is False
    assert world.sql(f"SELECT cordoned_by IS NULL FROM node WHERE id = '{node}'") == "t"


def test_a_cordon_with_a_key_is_replayed(world):
    node, key = world.node(), {"Idempotency-Key": str(uuid.uuid4())}
    first = world.api("POST", f"nodes/{node}/cordon", {}, headers=key)
    world.api("POST", f"nodes/{node}/uncordon", {})
    again = world.api("POST", f"nodes/{node}/cordon", {}, headers=key)
    assert again.headers["idempotent-replayed"] == "true" and again.json() == first.json()
    assert world.api("GET", f"nodes/{node}").json()["schedulable"] is True


def test_a_removed_node_is_absent(world):
    cluster = world.cluster()
    node = world.node(cluster)
    world.sql(f"UPDATE node SET removed_at = now() WHERE id = '{node}'")
    assert world.api("GET", f"nodes/{node}").status_code == 404
    assert world.api("GET", f"clusters/{cluster}/nodes").json()["items"] == []
    assert world.api("GET", f"clusters/{cluster}/grid").json()["n"] == 0
    assert world.api("POST", f"nodes/{node}/cordon", {}).status_code == 404


def test_grid(world, rack):
    answer = world.api("GET", f"clusters/{rack}/grid?ids=true")
    grid = answer.json()
    assert answer.json()["ids"] is not None and world.api("GET", f"clusters/{rack}/grid").json()["ids"] is None
    assert grid["n"] == 12 and grid["names"] == [f"gpu-{i:02}" for i in range(12)]
    assert grid["state"] == "ukrspahHhhhh"
    assert grid["rack"] == {"values": ["r1", "r2"], "index": [0] * 6 + [1] * 6}
    listed = {item["name"]: item["id"].replace("-", "") for item in walk(world, f"clusters/{rack}/nodes", 50)}
    assert grid["ids"] == [listed[name] for name in grid["names"]]


def test_a_large_grid_is_small_on_the_wire(world):
    cluster = world.cluster()
    # Ids as they are made: the time in front, 74 random bits behind.
    uuid7 = "overlay(overlay(gen_random_uuid()::text placing '01a232cf-e4c' from 1) placing '7' from 15)::uuid"
    # One transaction with its statistics: no loop plans on a table that it takes to be small.
    world.sql(f"""BEGIN;
                  INSERT INTO node (org_id, id, cluster_id, name, slot, state, rack, leaf, boot_id, ready_at, interval_seconds)
                  SELECT '{world.org.id}', {uuid7}, '{cluster}', 'gpu-' || lpad(i::text, 5, '0'), i, 'healthy', 'r' || i / 32, 'l' || i / 128, '{cluster}', now(), 86400
                    FROM generate_series(0, 9999) i;
                  INSERT INTO node_latest (org_id, node_id, seen_at, boot_id, ready, gpu_util, gpu_util_permille, gpu_mem_used_mib, gpu_mem_all_mib, gpu_temp_max_c)
                  SELECT org_id, id, now(), boot_id, true, '{{1,2,3,4,5,6,7,8}}', (random() * 1000)::int, (random() * 600000)::int, 652472, 50 + (random() * 30)::int
                    FROM node WHERE cluster_id = '{cluster}';
                  ANALYZE node; ANALYZE node_latest;
                  COMMIT""")
    sizes = {}
    for encoding in ("br", "gzip"):
        with httpx.stream("GET", world.server.url(f"/api/v1/clusters/{cluster}/grid"), trust_env=False, timeout=60,
                          headers={"Authorization": f"Bearer {world.org.token}", "Accept-Encoding": encoding}) as answer:
            sizes[encoding] = len(b"".join(answer.iter_raw()))
        assert answer.status_code == 200 and answer.headers["content-encoding"] == encoding
    # The readings here are random: real ones are smaller.
    assert max(sizes.values()) <= 120_000
    world.sql(f"DELETE FROM node_latest l USING node n WHERE n.id = l.node_id AND n.cluster_id = '{cluster}'; DELETE FROM node WHERE cluster_id = '{cluster}'")


def test_a_cluster_that_grew_is_read_at_once(world):
    """Plans made for an empty table would compare 4,000 nodes with each other: they go within seconds, not with autovacuum."""
    cluster = world.cluster()
    for _ in range(6):
        world.api("GET", f"clusters/{cluster}/grid")
    world.sql(f"""INSERT INTO node (org_id, id, cluster_id, name, slot, boot_id, ready_at, state, interval_seconds)
                  SELECT '{world.org.id}', gen_random_uuid(), '{cluster}', 'g-' || i, i, '{cluster}', now(), 'healthy', 86400
                    FROM generate_series(0, 3999) i;
                  INSERT INTO node_latest (org_id, node_id, seen_at, boot_id, ready)
                  SELECT org_id, id, now(), boot_id, true FROM node WHERE cluster_id = '{cluster}'""")
    tuples = lambda: float(world.sql("SELECT reltuples FROM pg_class WHERE oid = 'muster.node_latest'::regclass"))
    wait_for(lambda: tuples() >= 4000)
    assert world.api("GET", f"clusters/{cluster}/grid").json()["n"] == 4000
    world.sql(f"DELETE FROM node_latest l USING node n WHERE n.id = l.node_id AND n.cluster_id = '{cluster}'; DELETE FROM node WHERE cluster_id = '{cluster}'")


def test_a_fault_shows_in_the_list(world):
    agent = world.agent(world.cluster())
    agent.report_ok(streams=[stream(1, fault(1, "nic_mlx5", device="mlx5_0", severity="warning", node_fault=False))])
    incident = world.api("GET", f"incidents?node_id={agent.node_id}&check_id=gpu_lost").json()["items"][0]["id"]
    world.sql(f"UPDATE node SET state = 'unhealthy' WHERE id = '{agent.node_id}'")
    assert world.api("GET", f"clusters/{agent.cluster_id}/nodes").json()["items"][0]["incident_id"] == incident


def test_the_audit_row_of_a_cordon_names_the_node(world):
    node = world.node()
    world.api("POST", f"nodes/{node}/cordon", {"comment": "why"})
    row = last_audit(world, node)
    assert (row["action"], row["target"], row["comment"]) == ("node.cordon", node, "why")
    assert row["target_name"] == world.api("GET", f"nodes/{node}").json()["name"]
    assert (row["before"]["schedulable"], row["after"]["schedulable"]) == (True, False)
