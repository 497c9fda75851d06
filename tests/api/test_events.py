"""Events: newest first, filtered, and followed by their sequence."""
import datetime
import threading

import pytest
from resource import check_idempotency, check_list, check_refusals, walk


@pytest.fixture(scope="module")
def told(world):
    """A cluster with ten events: five notes, five about a node."""
    cluster = world.cluster()
    node = world.node(cluster)
    for i in range(5):
        world.event(cluster)
        world.event(cluster, node_id=node)
    return cluster, node


def test_adding_a_note(world):
    cluster = world.cluster()
    node = world.node(cluster)
    answer = world.api("POST", f"clusters/{cluster}/events", {"summary": "Power work", "node_id": node})
    assert answer.status_code == 201
    event = answer.json()
    assert (event["type"], event["actor"], event["summary"], event["node_id"]) == ("note.added", "administrator", "Power work", node)
    assert event["node_name"] == world.api("GET", f"nodes/{node}").json()["name"]
    assert world.api("GET", answer.headers["location"]).json()["items"] == [event]


def test_a_note_in_no_cluster_is_404_and_blames_no_field(world):
    answer = world.api("POST", "clusters/0198f3c2-0000-7000-8000-000000000000/events", {"summary": "x"})
    assert answer.status_code == 404 and "errors" not in answer.json()


def test_a_note_names_a_node_of_the_cluster(world):
    check_refusals(world, "POST", f"clusters/{world.cluster()}/events", {"summary": "x", "node_id": world.node()}, ["#/node_id"])
    check_refusals(world, "POST", f"clusters/{world.cluster()}/events", {"summary": "", "node_id": "x"}, ["#/summary", "#/node_id"])


def test_idempotency(world):
    check_idempotency(world, f"clusters/{world.cluster()}/events", lambda: {"summary": world.name("s")})


def test_list_of_the_org(world, told):
    cluster, node = told
    items = check_list(world, f"events?cluster_id={cluster}", "seq", others=[f"events?node_id={node}", f"events?cluster_id={cluster}&type=x"])
    # By time and then by seq: of writers that ran at once the later seq may have the earlier time.
    places = [(item["at"], item["seq"]) for item in items]
    assert places == sorted(places, reverse=True)
    newest = world.api("GET", "events?limit=5").json()["items"]
    assert len(newest) == 5 and newest[0]["seq"] == max(e["seq"] for e in newest)


def test_list_of_a_cluster_and_of_a_node(world, told):
    cluster, node = told
    of_cluster = walk(world, f"clusters/{cluster}/events", 3)
    assert of_cluster == walk(world, f"events?cluster_id={cluster}", 4)
    assert {e["cluster_id"] for e in of_cluster} == {cluster}
    of_node = walk(world, f"events?node_id={node}&type=note.added", 2)
    assert len(of_node) == 5 and {e["node_id"] for e in of_node} == {node}
    assert of_node == walk(world, f"clusters/{cluster}/events?node_id={node}&type=note.added", 2)


def test_filters(world, told):
    cluster, node = told
    world.incident(node, severity="warning")
    warnings = world.api("GET", f"events?cluster_id={cluster}&severity=warning&severity=critical").json()["items"]
    assert [e["type"] for e in warnings] == ["incident.opened"]
    several = walk(world, f"events?cluster_id={cluster}&type=incident.opened&type=node.created", 1)
    assert [e["type"] for e in several] == ["incident.opened", "node.created"]
    moment = several[1]["at"].replace("+00:00", "Z")
    assert [e["type"] for e in walk(world, f"events?cluster_id={cluster}&until={moment}", 5)] == ["cluster.created"]
    assert several[1] in walk(world, f"events?cluster_id={cluster}&since={moment}", 5), "since is part, until is not"
    for query, parameter in (("severity=bad", "severity"), ("since=yesterday", "since"), ("after=-1", "after"), ("node_id=1", "node_id")):
        answer = world.api("GET", f"events?{query}")
        assert answer.status_code == 422 and answer.json()["errors"][0]["parameter"] == parameter, answer.text


def test_following_by_seq_misses_nothing(world, told):
    cluster, _ = told
    snapshot = world.api("GET", f"clusters/{cluster}/overview").json()["as_of_seq"]
    notes = [world.event(cluster)["seq"] for _ in range(5)]
    followed = walk(world, f"events?after={snapshot}&cluster_id={cluster}&type=note.added", 2)
    assert [e["seq"] for e in followed] == notes
    assert world.api("GET", f"events?after={notes[-1]}&cluster_id={cluster}").json()["items"] == []


def test_writers_at_once_leave_no_gaps(world):
    cluster = world.cluster()
    before = world.seq()
    threads = [threading.Thread(target=lambda: [world.event(cluster) for _ in range(5)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seqs = [e["seq"] for e in walk(world, f"events?after={before}", 50)]
    assert seqs == list(range(before + 1, before + 1 + len(seqs))) and len(seqs) >= 30


def test_an_unknown_cluster_is_absent(world):
    assert world.api("GET", f"events?cluster_id={world.org.id}").status_code == 404
    assert world.api("GET", f"clusters/{world.org.id}/events").status_code == 404


def test_strip(world, told):
    cluster, node = told
    strip = world.api("GET", f"clusters/{cluster}/events-strip?buckets=24").json()
    assert len(strip["buckets"]) == 24 and strip["bucket_seconds"] == 3600
    last = strip["buckets"][-1]
    assert last["other"] >= 10 and last["fault"] == 0
    world.incident(node)
    until = (datetime.datetime.utcnow() + datetime.timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert world.api("GET", f"clusters/{cluster}/events-strip?buckets=1&until={until}").json()["buckets"][0]["fault"] == 1
    assert world.api("GET", f"clusters/{cluster}/events-strip").json()["buckets"].__len__() == 96
    wrong = world.api("GET", f"clusters/{cluster}/events-strip?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z")
    assert wrong.status_code == 422 and wrong.json()["errors"][0]["parameter"] == "since"
