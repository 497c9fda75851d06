"""The past of a cluster and of a node: samples with their gaps, transitions, the state at any moment."""
import datetime
import functools
import time

import pytest

STEP = 300


@functools.cache
def now():
    """One moment for all of this file, from its first test on: what is written and what is asked for agree."""
    return int(time.time())


def last():
    """The last sample."""
    return now() // STEP * STEP - STEP


def instant(seconds):
    return datetime.datetime.utcfromtimestamp(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def sampled(world):
    """Two nodes, ten samples five minutes apart; the fifth is missing, and the second node has none before the eighth."""
    cluster = world.cluster()
    first, second = world.node(cluster), world.node(cluster)
    world.sql(f"UPDATE node SET created_at = now() - interval '2 hours' WHERE cluster_id = '{cluster}'")
    rows = []
    for i in range(10):
        if i != 4:
            other = "NULL" if i < 7 else "100"
            rows.append(f"('{world.org.id}', '{cluster}', to_timestamp({last() - (9 - i) * STEP}), 0, '{{{50 + i},{other}}}',"
                        f" '{{500,{other}}}', '{{250,NULL}}', '{{1000,NULL}}')")
    world.sql("INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps) VALUES "
              + ", ".join(rows))
    return cluster, first, second


def span():
    return f"since={instant(last() - 9 * STEP)}&until={instant(last() + 1)}"


def test_means_over_a_cluster(world, sampled):
    cluster, _, _ = sampled
    body = world.api("GET", f"clusters/{cluster}/history?{span()}").json()
    assert body["at"] == [last() - (9 - i) * STEP for i in range(10)]
    assert body["gpu_busy_ratio"] == [0.5, 0.51, 0.52, 0.53, None, 0.55, 0.56, 0.785, 0.79, 0.795], "a missing sample is a gap"
    assert body["nodes_read"] == [1, 1, 1, 1, 0, 1, 1, 2, 2, 2]
    assert body["cpu_ratio"][0] == 0.25 and body["net_mbps"][0] == 1000 and body["cpu_ratio"][4] is None


def test_readings_of_a_node(world, sampled):
    _, first, second = sampled
    body = world.api("GET", f"nodes/{first}/history?{span()}").json()
    assert body["gpu_util_ratio"] == [0.5, 0.51, 0.52, 0.53, None, 0.55, 0.56, 0.57, 0.58, 0.59]
    other = world.api("GET", f"nodes/{second}/history?{span()}").json()
    assert other["gpu_util_ratio"] == [None] * 7 + [1, 1, 1] and other["cpu_ratio"] == [None] * 10


def test_a_longer_step_means_over_it(world, sampled):
    cluster, first, _ = sampled
    start = (last() - 9 * STEP) // 600 * 600
    body = world.api("GET", f"nodes/{first}/history?since={instant(start)}&until={instant(last() + 1)}&step_seconds=600").json()
    assert all(at % 600 == 0 for at in body["at"])
    assert [v is None for v in body["gpu_util_ratio"]].count(True) <= 1


def test_the_default_is_a_day_of_five_minutes(world):
    body = world.api("GET", f"clusters/{world.cluster()}/history").json()
    assert len(body["at"]) in (288, 289) and set(body["gpu_busy_ratio"]) == {None} and set(body["nodes_read"]) == {0}
    assert body["at"][1] - body["at"][0] == 300


def test_at_most_2016_points(world):
    cluster = world.cluster()
    month = f"since={instant(now() - 30 * 86400)}&until={instant(now())}"
    body = world.api("GET", f"clusters/{cluster}/history?{month}").json()
    assert 1000 < len(body["at"]) <= 2016 and (body["at"][1] - body["at"][0]) % 300 == 0
    answer = world.api("GET", f"clusters/{cluster}/history?{month}&step_seconds=60")
    assert answer.status_code == 422 and answer.json()["errors"][0]["parameter"] == "step_seconds"
    for query, parameter in (("step_seconds=0", "step_seconds"), ("since=2099-01-01T00:00:00Z", "since")):
        answer = world.api("GET", f"clusters/{cluster}/history?{query}")
        assert answer.status_code == 422 and answer.json()["errors"][0]["parameter"] == parameter


@pytest.fixture(scope="module")
def moved(world):
    """A node whose states are known: an anchor, then changes."""
    cluster = world.cluster()
    node, gone = world.node(cluster), world.node(cluster)
    world.sql(f"DELETE FROM node_transition WHERE cluster_id = '{cluster}'; DELETE FROM state_anchor WHERE cluster_id = '{cluster}'")
    world.sql(f"INSERT INTO state_anchor (org_id, cluster_id, at, node_ids, states) VALUES ('{world.org.id}', '{cluster}',"
              f" to_timestamp({now() - 3 * 3600}), ARRAY['{node}', '{gone}']::uuid[], ARRAY['healthy', 'healthy'])")
    for minutes, who, state in ((179, node, "healthy"), (120, node, "unhealthy"), (60, node, "repairing"), (30, node, "healthy"), (90, gone, "removed")):
        world.sql("INSERT INTO node_transition (org_id, cluster_id, node_id, at, state, reason) VALUES"
                  f" ('{world.org.id}', '{cluster}', '{who}', to_timestamp({now() - minutes * 60}), '{state}', 'because')")
    return cluster, node, gone


def states_at(world, cluster, minutes):
    body = world.api("GET", f"clusters/{cluster}/as-of?at={instant(now() - minutes * 60)}").json()
    return {node["id"]: node["state"] for node in body["nodes"]}


def test_the_state_at_a_moment(world, moved):
    cluster, node, gone = moved
    assert states_at(world, cluster, 150) == {node: "healthy", gone: "healthy"}
    assert states_at(world, cluster, 100) == {node: "unhealthy", gone: "healthy"}
    assert states_at(world, cluster, 45) == {node: "repairing"}, "what was removed is gone"
    assert states_at(world, cluster, 10) == {node: "healthy"}
    assert states_at(world, cluster, 60 * 24 * 365) == {}
    missing = world.api("GET", f"clusters/{cluster}/as-of")
    assert missing.status_code == 422 and missing.json()["errors"][0] == {"parameter": "at", "code": "required", "detail": missing.json()["errors"][0]["detail"]}


def test_transitions_begin_with_the_state_at_since(world, moved):
    _, node, _ = moved
    body = world.api("GET", f"nodes/{node}/transitions?since={instant(now() - 100 * 60)}&until={instant(now())}").json()
    assert [t["state"] for t in body["items"]] == ["unhealthy", "repairing", "healthy"]
    assert body["items"][0]["at"].startswith(instant(now() - 100 * 60)[:-1])
