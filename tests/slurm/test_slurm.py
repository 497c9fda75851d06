"""Repairs on nodes of a real Slurm: what runs is waited for, only our own drains are undone, and a failed reading is no reading."""
import json
import secrets
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from cluster import Slurm, missing  # noqa: E402
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from server import Musterd  # noqa: E402

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def slurm():
    with Slurm(nodes=4) as running:
        yield running


@pytest.fixture(scope="module")
def server(slurm, tmp_path_factory):
    path = tmp_path_factory.mktemp("executors") / "executors.json"
    path.write_text(json.dumps({"schedulers": [{"org": "main", "cluster": "local", "kind": "slurm", "config": str(slurm.config),
                                                "timeout_seconds": 2}]}))
    with Musterd(interval_seconds=1, loop_period_ms=100, scheduler_period_ms=100, executors_file=str(path),
                 command_within_seconds=60) as running:
        running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1, scheduler = 'slurm' WHERE id = '{running.cluster_id}'")
        yield running


@pytest.fixture(scope="module")
def agents(server, slurm):
    """All nodes report all the time."""
    found = {name: Agent(server, name, token=join_token(server, cluster_id=server.cluster_id)) for name in slurm.names}
    with Beat(*found.values()):
        for agent in found.values():
            until(lambda: server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
        yield found


def until(what, seconds=120):
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
    return value


def seen(server, agent):
    """What Muster knows of the node's place in Slurm."""
    row = server.sql("SELECT json_build_object('state', state, 'closed', closed, 'reason', reason, 'jobs', jobs, 'ours', our_reason, 'said', said)"
                     f" FROM node_scheduler WHERE node_id = '{agent.node_id}'")
    return json.loads(row) if row else {}


def repair(server, agent):
    items = server.api("GET", f"/api/v1/repairs?node_id={agent.node_id}").json()["items"]
    return items[0] if items else {"state": None}


def approve(server, item):
    answer = server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                        headers={"Idempotency-Key": secrets.token_hex(16)})
    assert answer.status_code == 200, answer.text


def cordon(server, agent, verb="cordon"):
    assert server.api("POST", f"/api/v1/nodes/{agent.node_id}/{verb}", {}).status_code == 200


def test_a_repair_waits_for_the_running_job_then_reboots_and_gives_the_node_back(server, slurm, agents, tmp_path):
    agent, gate = agents["n1"], tmp_path / "gate"
    job = slurm.submit("n1", gate)
    until(lambda: [j["id"] for j in seen(server, agent).get("jobs", [])] == [job])
    agent.answer = reboots
    agent.xid79()
    item = until(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    assert [(j["id"], j["user"], j["nodes"]) for j in item["plan"]["jobs"]] == [(job, "root", 1)]
    approve(server, item)
    until(lambda: "DRAIN" in slurm.state("n1")[1])
    assert slurm.reason("n1").startswith(f"muster:gpu_lost repair {item['no']} #")
    until(lambda: seen(server, agent)["closed"] and seen(server, agent)["state"] == "allocated")
    assert repair(server, agent)["state"] == "draining" and slurm.job(job) == "RUNNING" and agent.acted == []
    gate.touch()
    until(lambda: repair(server, agent)["state"] == "succeeded")
    assert len(agent.acted) == 1 and slurm.job(job) == "COMPLETED"
    until(lambda: "DRAIN" not in slurm.state("n1")[1])
    until(lambda: not seen(server, agent)["closed"])


def test_a_foreign_drain_is_never_undone(server, slurm, agents):
    agent = agents["n2"]
    slurm.drain("n2", "disk swap, ask alice")
    until(lambda: seen(server, agent).get("closed") is True)
    cordon(server, agent)
    until(lambda: server.sql(f"SELECT schedulable FROM node WHERE id = '{agent.node_id}'") == "f")
    cordon(server, agent, "uncordon")
    tried = server.sql("SELECT tried_at FROM cluster_scheduler")
    until(lambda: server.sql(f"SELECT count(*) FROM cluster_scheduler WHERE tried_at > timestamptz '{tried}' + interval '1 second'") == "1")
    assert "DRAIN" in slurm.state("n2")[1] and slurm.reason("n2") == "disk swap, ask alice"


def test_a_person_s_cordon_reaches_slurm_and_goes_with_the_uncordon(server, slurm, agents):
    agent = agents["n3"]
    cordon(server, agent)
    until(lambda: slurm.reason("n3") == "muster:cordon")
    cordon(server, agent, "uncordon")
    until(lambda: "DRAIN" not in slurm.state("n3")[1])


def test_our_drain_with_another_reason_is_somebody_else_s(server, slurm, agents):
    agent = agents["n4"]
    cordon(server, agent)
    until(lambda: seen(server, agent).get("closed") and slurm.reason("n4") == "muster:cordon")
    slurm.drain("n4", "keep it: bob")
    until(lambda: seen(server, agent)["reason"] == "keep it: bob")
    cordon(server, agent, "uncordon")
    tried = server.sql("SELECT tried_at FROM cluster_scheduler")
    until(lambda: server.sql(f"SELECT count(*) FROM cluster_scheduler WHERE tried_at > timestamptz '{tried}' + interval '1 second'") == "1")
    assert slurm.reason("n4") == "keep it: bob"


def test_a_controller_that_does_not_answer_leaves_nothing_known(server, slurm, agents):
    """Last: it stops the controller. Until the reading works again a repair waits in draining; it never acts."""
    agent = agents["n3"]
    slurm.end("slurmctld")
    until(lambda: server.sql("SELECT error <> '' FROM cluster_scheduler") == "t", 120)
    acted = len(agent.acted)
    agent.answer = reboots
    agent.xid79()
    item = until(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    approve(server, item)
    until(lambda: repair(server, agent)["state"] == "draining")
    tried = server.sql("SELECT tried_at FROM cluster_scheduler")
    until(lambda: server.sql(f"SELECT tried_at > '{tried}' AND error <> '' FROM cluster_scheduler") == "t", 120)
    assert repair(server, agent)["state"] == "draining" and len(agent.acted) == acted
    slurm.spawn("slurmctld", "-D")
    until(lambda: repair(server, agent)["state"] == "succeeded", 120)
    assert len(agent.acted) == acted + 1
