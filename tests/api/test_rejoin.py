"""Nodes that keep nothing through a boot: they come back by a token, their hardware and a person's approval, or by the token alone."""
import shutil
import uuid

import pytest

from agent import Agent, wait_for
from machine import machine
from resource import check_list

LONG = 60


def rejoin_token(world, how="ask", **fields):
    return world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"rejoin": how, **fields})["token"]


def joined(world, serial="S1", gpus=()):
    """A node that reported once, and is silent since."""
    agent = Agent(world.server, world.name("a")).enroll(org_id=world.org.id, cluster_id=world.org.cluster_id)
    devices = [{"type": "gpu", "index": i, "serial": s, "pci": f"0000:{i:02x}:00", "model": "H100"} for i, s in enumerate(gpus)]
    agent.report_ok(inventory={"host_serial": serial, "devices": devices})
    silent(world, agent)
    return agent


def silent(world, agent):
    world.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 hour' WHERE node_id = '{agent.node_id}'")


def fresh(world, agent):
    """The same machine with an empty state folder: another key."""
    return Agent(world.server, agent.name)


def ask(agent, token, serial="S1", gpus=()):
    return agent.try_enroll(token, hardware={"serial": serial, "gpus": list(gpus)})


def decide(world, rejoin, verb, **options):
    return world.api("POST", f"rejoins/{rejoin}/{verb}", **options)


def test_I7_a_known_machine_comes_back_after_a_persons_approval(world):
    old = joined(world, gpus=["g1", "g2", "g3"])
    back, token = fresh(world, old), rejoin_token(world)
    first = ask(back, token, gpus=["g1", "g2", "g9"])
    assert first.status_code == 202 and first.json()["state"] == "pending"
    rejoin = first.json()["rejoin_id"]
    assert ask(back, token).json()["rejoin_id"] == rejoin, "asking again is the same request"
    shown = world.api("GET", f"rejoins/{rejoin}").json()
    assert (shown["node_id"], shown["state"], shown["serial_same"], shown["gpus_same"], shown["gpus_known"], shown["alive"]) == \
        (old.node_id, "pending", True, 2, 3, False)
    assert shown["public_key"] == back.public_key
    event = world.api("GET", f"events?node_id={old.node_id}&type=node.rejoin_requested").json()["items"]
    assert len(event) == 1 and "2 of 3 GPUs are the same" in event[0]["summary"] and event[0]["data"] == {"rejoin_id": rejoin}
    assert decide(world, rejoin, "approve").json()["state"] == "approved"
    body = ask(back, token).json()
    assert (body["node_id"], body["generation"]) == (old.node_id, 2)
    back.node_id, back.token = body["node_id"], body["access_token"]
    back.report_ok()
    assert back.one("SELECT seq, boot_id FROM node_latest WHERE node_id = {node}") == f"1|{back.boot_id}", "the count of reports began anew"
    wait_for(lambda: old.report().status_code == 401, LONG)
    assert decide(world, rejoin, "approve").status_code == 409
    kinds = world.sql(f"SELECT body::json ->> 'action' FROM audit WHERE target = '{old.node_id}' AND action LIKE '%rejoin%' ORDER BY seq").split()
    assert kinds == ["node.rejoin", "rejoin.approve"]


def test_events_of_a_new_generation_count_also_within_a_boot(world):
    """The agent lost its state without a reboot: its events are numbered from 1 again."""
    from agent import fault, stream
    old = joined(world)
    old.report_ok(streams=[stream(0, fault(1, code="a"), fault(2, code="b"))])
    silent(world, old)
    back, token = fresh(world, old), rejoin_token(world)
    back.boot_id = old.boot_id
    decide(world, ask(back, token).json()["rejoin_id"], "approve")
    body = ask(back, token).json()
    back.node_id, back.token = body["node_id"], body["access_token"]
    back.report_ok(streams=[stream(0, fault(1, code="c"))])
    assert back.one("SELECT count(*) FROM incident WHERE node_id = {node} AND code = 'c'") == "1"


def test_who_was_denied_is_refused(world):
    back, token = fresh(world, joined(world)), rejoin_token(world)
    rejoin = ask(back, token).json()["rejoin_id"]
    assert decide(world, rejoin, "deny").json()["state"] == "denied"
    answer = ask(back, token)
    assert answer.status_code == 403 and "said no" in answer.json()["detail"]


def test_another_machine_or_an_unknown_name_is_not_even_asked_about(world):
    old, token = joined(world, gpus=["g1", "g2"]), rejoin_token(world)
    stranger = ask(fresh(world, old), token, serial="S2", gpus=["g1", "x"])
    assert stranger.status_code == 403 and "not the machine" in stranger.json()["detail"]
    unknown = ask(Agent(world.server, world.name("new")), token)
    assert unknown.status_code == 403 and "none of this name" in unknown.json()["detail"]
    assert world.sql(f"SELECT count(*) FROM rejoin WHERE node_id = '{old.node_id}'") == "0"
    moved = ask(fresh(world, old), token, serial="S2", gpus=["g1", "g2"])
    assert moved.status_code == 202, "its GPUs in another host: a person decides"


def test_a_token_may_let_known_hardware_in_by_itself(world):
    old, token = joined(world, gpus=["g1", "g2"]), rejoin_token(world, "auto")
    back = fresh(world, old)
    answer = ask(back, token, gpus=["g1", "g2"])
    assert answer.status_code == 201 and (answer.json()["node_id"], answer.json()["generation"]) == (old.node_id, 2)
    again = fresh(world, old)
    silent(world, old)
    assert ask(again, token, gpus=["g1", "g2"]).json()["generation"] == 3
    silent(world, old)
    assert ask(fresh(world, old), token, serial="S2", gpus=["g1", "g2"]).status_code == 202, "but not a new host"


def test_a_node_that_is_alive_or_stopped_is_never_taken_over_without_a_person(world):
    old, token = joined(world), rejoin_token(world, "auto")
    old.report_ok()
    answer = ask(fresh(world, old), token)
    assert answer.status_code == 202
    assert world.api("GET", f"rejoins/{answer.json()['rejoin_id']}").json()["alive"] is True
    silent(world, old)
    world.sql(f"UPDATE node SET key_stopped_at = now() WHERE id = '{old.node_id}'")
    again = ask(fresh(world, old), token)
    assert again.status_code == 202
    assert world.api("GET", f"rejoins/{answer.json()['rejoin_id']}").json()["state"] == "replaced"
    assert decide(world, again.json()["rejoin_id"], "approve").status_code == 200
    assert world.sql(f"SELECT key_stopped_at IS NULL FROM node WHERE id = '{old.node_id}'") == "t"


def test_a_token_that_lets_nodes_come_back_lives_long_and_a_join_token_does_not(world):
    path = f"clusters/{world.org.cluster_id}/join-tokens"
    token = world.made("POST", path, {"rejoin": "ask"})
    assert token["rejoin"] == "ask"
    assert world.sql(f"SELECT expires_at - created_at FROM join_token WHERE id = '{token['id']}'") == "30 days"
    assert world.made("POST", path, {"rejoin": "auto", "expires_in_days": 365})["rejoin"] == "auto"
    for body in ({"expires_in_days": 2}, {"rejoin": "ask", "expires_in_days": 2, "expires_in_seconds": 60}):
        answer = world.api("POST", path, body)
        assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == "#/expires_in_days"
    assert Agent(world.server, world.name("a")).try_enroll(world.made("POST", path, {"rejoin": None})["token"]).status_code == 201


def test_list(world):
    cluster, token = world.org.cluster_id, rejoin_token(world)
    made = [ask(fresh(world, joined(world)), token).json()["rejoin_id"] for _ in range(4)]
    items = check_list(world, f"clusters/{cluster}/rejoins", "id")
    assert [item["id"] for item in items][:4] == made[::-1]


def test_a_decision_is_taken_once(world):
    rejoin = ask(fresh(world, joined(world)), rejoin_token(world)).json()["rejoin_id"]
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = decide(world, rejoin, "approve", headers=key)
    again = decide(world, rejoin, "approve", headers=key)
    assert first.status_code == again.status_code == 200 and again.headers["idempotent-replayed"] == "true"
    assert decide(world, rejoin, "deny").status_code == 409


# ---------------------------------------------------------------- the real agent
@pytest.mark.parametrize("how", ["ask", "auto"])
def test_I7_the_real_agent_comes_back_with_an_empty_state_folder(world, tmp_path, how):
    name = world.name("netboot")
    join = world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {})["token"]
    node = machine(tmp_path, world.server, join, name)
    node.write("sys/class/dmi/id/product_serial", f"SER-{name}\n")
    generation = lambda: world.sql(f"SELECT key_generation FROM node WHERE name = '{name}'")
    try:
        node.start()
        # Its inventory is there: the serial by which it is known again.
        wait_for(lambda: world.sql(f"SELECT host_serial FROM node WHERE name = '{name}'") == f"SER-{name}", LONG)
        wait_for(lambda: world.sql(f"SELECT count(*) > 0 FROM device d JOIN node n ON n.id = d.node_id WHERE n.name = '{name}'") == "t", LONG)
        node.stop()
        shutil.rmtree(node.state)
        node.new_boot()
        node.token.write_text(rejoin_token(world, how))
        world.sql(f"UPDATE node_latest l SET seen_at = now() - interval '1 hour' FROM node n WHERE n.id = l.node_id AND n.name = '{name}'")
        node.start()
        if how == "ask":
            rejoin = wait_for(lambda: world.sql("SELECT r.id FROM rejoin r JOIN node n ON n.id = r.node_id"
                                                f" WHERE n.name = '{name}' AND r.state = 'pending'"), LONG)
            wait_for(lambda: "waits for a person's approval" in node.log.read_text(), LONG)
            assert generation() == "1"
            shown = world.api("GET", f"rejoins/{rejoin}").json()
            assert shown["serial_same"] and shown["gpus_known"] > 0 and shown["gpus_same"] == shown["gpus_known"]
            assert decide(world, rejoin, "approve").status_code == 200
        wait_for(lambda: generation() == "2" and world.sql("SELECT l.boot_id FROM node_latest l JOIN node n ON n.id = l.node_id"
                                                           f" WHERE n.name = '{name}'") == node.boot_id, LONG)
    finally:
        node.stop()
