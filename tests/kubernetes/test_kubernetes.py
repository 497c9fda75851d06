"""Repairs on nodes of a Kubernetes cluster: cordon, waiting, eviction by the policy, and what stays another's."""
import json
import secrets
import socket
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from api_server import TOKEN, ApiServer  # noqa: E402
from certs import Authority  # noqa: E402
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from server import Musterd  # noqa: E402

NAMES = [f"k{i}" for i in range(1, 7)]
REASON = "muster.dev/reason"


@pytest.fixture(scope="module")
def kube(tmp_path_factory):
    running = ApiServer(tmp_path_factory.mktemp("kube"))
    for name in NAMES:
        running.add_node(name)
    yield running
    running.close()


@pytest.fixture(scope="module")
def server(kube, tmp_path_factory):
    folder = tmp_path_factory.mktemp("executors")
    (folder / "token").write_text(TOKEN + "\n")
    path = folder / "executors.json"
    path.write_text(json.dumps({"schedulers": [{"org": "main", "cluster": "local", "kind": "kubernetes", "server": kube.url,
                                                "ca_file": str(kube.ca), "token_file": str(folder / "token")}]}))
    with Musterd(interval_seconds=1, loop_period_ms=100, scheduler_period_ms=100, executors_file=str(path),
                 command_within_seconds=60) as running:
        running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1, scheduler = 'kubernetes' WHERE id = '{running.cluster_id}'")
        yield running


@pytest.fixture(scope="module")
def agents(server):
    found = {name: Agent(server, name, token=join_token(server, cluster_id=server.cluster_id)) for name in NAMES}
    with Beat(*found.values()):
        for agent in found.values():
            until(lambda: server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
            agent.answer = reboots
        yield found


def until(what, seconds=120):
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
    return value


def seen(server, agent):
    row = server.sql("SELECT json_build_object('state', state, 'closed', closed, 'reason', reason, 'jobs', jobs, 'said', said)"
                     f" FROM node_scheduler WHERE node_id = '{agent.node_id}'")
    return json.loads(row) if row else {}


def repair(server, agent):
    items = server.api("GET", f"/api/v1/repairs?node_id={agent.node_id}").json()["items"]
    return items[0] if items else {"state": None}


def approved(server, agent):
    agent.xid79()
    item = until(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    answer = server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                        headers={"Idempotency-Key": secrets.token_hex(16)})
    assert answer.status_code == 200, answer.text
    return item


def policy(server, agent, **settings):
    """A policy of this node alone."""
    server.sql("INSERT INTO policy (org_id, id, cluster_id, node_id, settings, updated_by) VALUES"
               f" ('{server.org_id}', gen_random_uuid(), '{server.cluster_id}', '{agent.node_id}', '{json.dumps(settings)}', 'test')")


def unschedulable(kube, name):
    return kube.nodes[name]["spec"].get("unschedulable", False)


def test_a_repair_cordons_waits_for_the_pod_and_uncordons(server, kube, agents):
    agent = agents["k1"]
    kube.add_pod("k1", "train-0", gpus=8)
    kube.add_pod("k1", "node-exporter", owner="DaemonSet")
    until(lambda: [job["id"] for job in seen(server, agent).get("jobs", [])] == ["team-a/train-0"])
    item = approved(server, agent)
    job, = item["plan"]["jobs"]
    assert (job["user"], job["name"], job["gpus"], job["started_at"]) == ("team-a", "Job train-0-owner", 8, "2026-12-01T10:00:00.000000Z")
    until(lambda: unschedulable(kube, "k1") and seen(server, agent)["closed"])
    assert kube.nodes["k1"]["metadata"]["annotations"][REASON].startswith(f"muster:gpu_lost repair {item['no']} #")
    assert repair(server, agent)["state"] == "draining" and agent.acted == [] and kube.tries.get("train-0") is None
    kube.end_pod("train-0")
    until(lambda: repair(server, agent)["state"] == "succeeded")
    until(lambda: not unschedulable(kube, "k1"))
    assert REASON not in kube.nodes["k1"]["metadata"]["annotations"] and len(agent.acted) == 1


def test_a_policy_with_grace_evicts_each_pod_once(server, kube, agents):
    agent = agents["k2"]
    policy(server, agent, idle="grace", idle_wait_seconds=0, grace_seconds=30)
    pod = kube.add_pod("k2", "serve-0", owner="ReplicaSet", volumes=[{"emptyDir": {"medium": "Memory"}}])
    until(lambda: len(seen(server, agent).get("jobs", [])) == 1)
    approved(server, agent)
    until(lambda: ("serve-0", pod["metadata"]["uid"]) in kube.evicted)
    assert repair(server, agent)["state"] == "draining" and agent.acted == []
    kube.end_pod("serve-0")
    until(lambda: repair(server, agent)["state"] == "succeeded")
    assert [name for name, _ in kube.evicted].count("serve-0") == 1 and kube.tries["serve-0"] == 1


def test_a_disruption_budget_is_respected_and_named(server, kube, agents):
    agent = agents["k3"]
    policy(server, agent, idle="grace", idle_wait_seconds=0, grace_seconds=30)
    kube.budget.add("db-0")
    kube.add_pod("k3", "db-0", owner="StatefulSet")
    until(lambda: len(seen(server, agent).get("jobs", [])) == 1)
    approved(server, agent)
    until(lambda: "disruption budget" in seen(server, agent)["said"])
    until(lambda: kube.tries["db-0"] >= 2)
    assert repair(server, agent)["state"] == "draining" and agent.acted == []
    kube.budget.clear()
    until(lambda: "db-0" in dict(kube.evicted))
    kube.end_pod("db-0")
    until(lambda: repair(server, agent)["state"] == "succeeded")


def test_a_drain_that_would_stop_half_way_does_not_begin(server, kube, agents):
    agent = agents["k4"]
    policy(server, agent, idle="grace", idle_wait_seconds=0, grace_seconds=30)
    kube.add_pod("k4", "good-0")
    kube.add_pod("k4", "naked", owner=None)
    kube.add_pod("k4", "scratch-0", volumes=[{"emptyDir": {}}])
    until(lambda: len(seen(server, agent).get("jobs", [])) == 3)
    item = approved(server, agent)
    assert {job["id"]: job["blocked"] != "" for job in item["plan"]["jobs"]} == {
        "team-a/good-0": False, "team-a/naked": True, "team-a/scratch-0": True}
    until(lambda: "stays until a person ends it" in seen(server, agent)["said"])
    assert kube.tries.get("good-0") is None and repair(server, agent)["state"] == "draining" and agent.acted == []
    for name in ("good-0", "naked", "scratch-0"):
        kube.end_pod(name)
    until(lambda: repair(server, agent)["state"] == "succeeded")


def test_a_policy_that_interrupts_nothing_gives_the_node_back(server, kube, agents):
    agent = agents["k5"]
    policy(server, agent, idle="never_interrupt", idle_wait_seconds=1)
    kube.add_pod("k5", "long-0")
    until(lambda: len(seen(server, agent).get("jobs", [])) == 1)
    item = approved(server, agent)
    found = until(lambda: (now := server.api("GET", f"/api/v1/repairs/{item['id']}").json())["state"] not in ("approved", "cordoning", "draining") and now)
    assert found["state"] == "cancelled" and "outlived" in found["reason"] and agent.acted == []
    until(lambda: not unschedulable(kube, "k5"))
    assert kube.tries.get("long-0") is None


def test_a_cordon_of_somebody_else_stays(server, kube, agents):
    agent = agents["k6"]
    with kube.lock:
        kube.nodes["k6"]["spec"]["unschedulable"] = True
    until(lambda: seen(server, agent).get("closed") is True)
    for verb in ("cordon", "uncordon"):
        assert server.api("POST", f"/api/v1/nodes/{agent.node_id}/{verb}", {}).status_code == 200
    tried = server.sql("SELECT tried_at FROM cluster_scheduler")
    until(lambda: server.sql(f"SELECT tried_at > timestamptz '{tried}' + interval '1 second' FROM cluster_scheduler") == "t")
    assert unschedulable(kube, "k6") and not [name for name, _ in kube.patched if name == "k6"]
    with kube.lock:
        kube.nodes["k6"]["spec"].pop("unschedulable")


def test_a_200_that_changed_nothing_is_no_cordon(server, kube, agents):
    agent = agents["k6"]
    until(lambda: seen(server, agent).get("closed") is False)
    with kube.lock:
        kube.drops_fields = True
    approved(server, agent)
    until(lambda: "as it was" in seen(server, agent)["said"])
    assert repair(server, agent)["state"] == "draining" and agent.acted == []
    with kube.lock:
        kube.drops_fields, kube.down = False, True
    until(lambda: "unable to handle" in server.sql("SELECT error FROM cluster_scheduler"))
    assert repair(server, agent)["state"] == "draining" and agent.acted == []
    with kube.lock:
        kube.down = False
    until(lambda: repair(server, agent)["state"] == "succeeded")


def test_a_scheduler_that_hangs_does_not_delay_another(kube, tmp_path):
    """One accepts and never answers; while its call is open the other is read again and again."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        (tmp_path / "token").write_text(TOKEN)
        common = {"org": "main", "kind": "kubernetes", "ca_file": str(kube.ca), "token_file": str(tmp_path / "token"), "timeout_seconds": 60}
        path = tmp_path / "executors.json"
        path.write_text(json.dumps({"schedulers": [{**common, "cluster": "dead", "server": f"https://127.0.0.1:{dead.getsockname()[1]}"},
                                                   {**common, "cluster": "local", "server": kube.url}]}))
        with Musterd(scheduler_period_ms=100, executors_file=str(path)) as server:
            answer = server.api("POST", "/api/v1/clusters", {"project_id": server.project_id, "name": "dead"})
            assert answer.status_code == 201, answer.text
            dead.settimeout(120)
            call, _ = dead.accept()
            for _ in range(3):  # each reading is a later one
                now = server.sql("SELECT clock_timestamp()")
                until(lambda: server.sql(f"SELECT count(*) FROM cluster_scheduler WHERE cluster_id = '{server.cluster_id}' AND read_at > '{now}'") == "1")
            call.settimeout(0.2)
            received = b""
            with pytest.raises(TimeoutError):  # the hung call is still open: not closed, only silent
                while chunk := call.recv(65536):
                    received += chunk
            call.close()


def test_a_client_certificate_is_enough_and_another_authority_s_is_not(kube, tmp_path):
    clusters = {}
    for name, authority in (("local", kube.clients), ("stranger", Authority("somebody else"))):
        chain, key = authority.issue(tmp_path, name)
        clusters[name] = {"org": "main", "cluster": name, "kind": "kubernetes", "server": kube.url, "ca_file": str(kube.ca), "certificate_file": chain,
                          "key_file": key}
    path = tmp_path / "executors.json"
    path.write_text(json.dumps({"schedulers": list(clusters.values())}))
    with Musterd(scheduler_period_ms=100, executors_file=str(path)) as server:
        answer = server.api("POST", "/api/v1/clusters", {"project_id": server.project_id, "name": "stranger"})
        assert answer.status_code == 201, answer.text
        until(lambda: server.sql(f"SELECT read_at IS NOT NULL AND error = '' FROM cluster_scheduler WHERE cluster_id = '{server.cluster_id}'") == "t")
        until(lambda: server.sql("SELECT read_at IS NULL AND error <> '' FROM cluster_scheduler"
                                 f" WHERE cluster_id = '{answer.json()['id']}'") == "t")
