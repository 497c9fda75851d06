"""Repairs by the operator's own automation: sent once, signed, ended by call-back; done is not repaired."""
import json
import secrets
import sys
import time
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token  # noqa: E402
from receiver import Receivers, sign, verify  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

SECRET = "whsec_bXVzdGVyLXRlc3Qtc2VjcmV0LW9mLXRoaXJ0eS10d28="
NAMES = [f"h{i}" for i in range(1, 8)]


@pytest.fixture(scope="module")
def host():
    with Receivers() as running:
        yield running


@pytest.fixture(scope="module")
def receiver(host):
    return host.receiver()


@pytest.fixture(scope="module")
def server(host, receiver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("executors")
    (folder / "secret").write_text(SECRET + "\n")
    (folder / "ca.pem").write_text(host.ca)
    status = receiver.url.replace("?key=1", "/orders/{id}")
    (folder / "executors.json").write_text(json.dumps({"webhooks": [
        {"org": "main", "cluster": "local", "actions": ["reboot", "power_cycle"], "url": receiver.url, "status_url": status,
         "secret_file": str(folder / "secret"), "ca_file": str(folder / "ca.pem"), "timeout_seconds": 20}]}))
    with Musterd(interval_seconds=1, loop_period_ms=100, executors_file=str(folder / "executors.json"), command_within_seconds=300,
                 settle_seconds=0, boot_grace_seconds=0) as running:
        running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1 WHERE id = '{running.cluster_id}'")
        yield running


@pytest.fixture(scope="module")
def agents(server):
    found = {name: Agent(server, name, token=join_token(server, cluster_id=server.cluster_id)) for name in NAMES}
    with Beat(*found.values()):
        for agent in found.values():
            wait_for(lambda: server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
        yield found


@pytest.fixture(autouse=True)
def fresh(receiver):
    receiver.status, receiver.drop, receiver.state = 202, False, (404, b"{}")
    receiver.gate.set()


def repair(server, agent):
    items = server.api("GET", f"/api/v1/repairs?node_id={agent.node_id}").json()["items"]
    return items[0] if items else {"state": None}


def approved(server, agent, action="reboot"):
    agent.xid79(action=action)
    item = wait_for(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    assert item["can_approve"] is True and "automation" in item["plan"]["how"], item
    answer = server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                        headers={"Idempotency-Key": secrets.token_hex(16)})
    assert answer.status_code == 200, answer.text
    return item


def state(server, item, *wanted):
    return wait_for(lambda: (now := server.api("GET", f"/api/v1/repairs/{item['id']}").json())["state"] in wanted and now, said=lambda: str(
        server.api("GET", f"/api/v1/repairs/{item['id']}").json()))


def orders(receiver, agent):
    return [call for call in receiver.of("repair.order") if call.json["data"]["node"] == agent.name]


def call_back(order, said, secret=SECRET, at=None, **fields):
    body = json.dumps({"state": said, **fields}).encode()
    at = str(int(at or time.time()))
    headers = {"webhook-id": "cb-" + secrets.token_hex(4), "webhook-timestamp": at, "Content-Type": "application/json"}
    headers["webhook-signature"] = sign(secret, headers["webhook-id"], at, body)
    return httpx.post(order.json["data"]["callback_url"], content=body, headers=headers, timeout=30)


def test_an_order_is_signed_sent_once_and_proved_by_the_new_boot(server, receiver, agents):
    agent = agents["h1"]
    item = approved(server, agent)
    order = wait_for(lambda: orders(receiver, agent))[0]
    data = order.json["data"]
    assert verify(SECRET, order) and order.id == data["command_id"]
    assert (data["action"], data["cluster"], data["node"], data["repair_id"], data["boot_id"]) == ("reboot", "local", "h1", item["id"], agent.boot_id)
    assert data["plan_hash"] == item["plan_hash"] and data["deadline"]
    state(server, item, "rejoining")
    assert call_back(order, "progress", detail="Draining power").status_code == 204
    assert call_back(order, "done", secret="whsec_" + "QUFB" * 11).status_code == 401
    assert call_back(order, "done", at=time.time() - 400).status_code == 401
    assert call_back(order, "done", detail="Job 4711").status_code == 204
    assert call_back(order, "failed").status_code == 409, "the end is told once"
    looked = server.sql("SELECT clock_timestamp()")
    wait_for(lambda: server.sql(f"SELECT last_seen > '{looked}' FROM (SELECT seen_at AS last_seen FROM node_latest WHERE node_id = '{agent.node_id}') x") == "t")
    assert repair(server, agent)["state"] == "rejoining", "done is not repaired"
    agent.boot()
    assert state(server, item, "succeeded", "failed", "unknown")["state"] == "succeeded"
    assert len(orders(receiver, agent)) == 1
    assert server.sql(f"SELECT count(*) FROM audit WHERE action = 'command.told' AND target = '{data['command_id']}'") == "2"


def test_a_refusal_is_the_end_and_says_so(server, receiver, agents):
    receiver.status = 422
    item = approved(server, agents["h2"], "power_cycle")
    ended = state(server, item, "failed")
    assert "refused" in ended["reason"] and "422" in ended["reason"] and len(orders(receiver, agents["h2"])) == 1


def test_busy_is_asked_again_with_the_same_id(server, receiver, agents):
    agent = agents["h3"]
    receiver.status = [409, 202]
    item = approved(server, agent)
    wait_for(lambda: orders(receiver, agent))
    wait_for(lambda: server.sql(f"UPDATE command SET sent_at = sent_at - interval '11 seconds' WHERE node_id = '{agent.node_id}' AND state = 'ready'"
                                " AND sent_at IS NOT NULL RETURNING id"))
    state(server, item, "rejoining")
    assert len({order.id for order in orders(receiver, agent)}) == 1 and len(orders(receiver, agent)) == 2
    receiver.status = 202
    agent.boot()
    state(server, item, "succeeded")


def test_an_answer_that_is_not_in_the_table_is_unknown_and_not_sent_again(server, receiver, agents):
    agent = agents["h4"]
    receiver.status = 500
    item = approved(server, agent)
    state(server, item, "unknown")
    assert len(orders(receiver, agent)) == 1 and receiver.looks
    agent.boot()  # late evidence
    state(server, item, "succeeded")
    assert len(orders(receiver, agent)) == 1


def test_a_dropped_answer_is_asked_about(server, receiver, agents):
    agent = agents["h5"]
    receiver.drop, receiver.state = True, (200, b'{"state": "accepted"}')
    item = approved(server, agent)
    state(server, item, "rejoining")
    order, = orders(receiver, agent)
    assert any(order.id in look for look in receiver.looks)
    assert call_back(order, "failed", detail="The PDU does not answer").status_code == 204
    assert "PDU" in state(server, item, "failed")["reason"]


def test_a_server_that_dies_while_it_sends_sends_no_second_order(server, receiver, agents):
    agent = agents["h6"]
    receiver.gate.clear()
    receiver.state = (200, b'{"state": "accepted"}')
    item = approved(server, agent)
    wait_for(lambda: orders(receiver, agent))
    server.kill()
    receiver.gate.set()
    server.sql(f"UPDATE command SET deadline_at = now() - interval '1 second' WHERE node_id = '{agent.node_id}' AND state = 'sent'")
    server.start()
    state(server, item, "rejoining", "unknown")
    agent.boot()
    state(server, item, "succeeded")
    assert len(orders(receiver, agent)) == 1


def test_nobody_there_is_busy_not_unknown(server, receiver, agents, host):
    """Nothing was sent, so nothing happened: the order waits."""
    agent = agents["h7"]
    address = host.server.server_address
    host.server.socket.close()
    item = approved(server, agent)
    wait_for(lambda: server.sql(f"SELECT sent_at IS NOT NULL AND state = 'ready' FROM command WHERE node_id = '{agent.node_id}'") == "t")
    assert server.api("GET", f"/api/v1/repairs/{item['id']}").json()["state"] == "acting" and address
