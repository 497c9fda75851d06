"""Joining and access tokens of agents: docs/agent-protocol.md, Enrol and Access token."""
import hashlib
import json
import stat
import threading
import uuid

import pytest

from agent import Agent, b64, join_token


def code(answer):
    return answer.status_code, answer.json().get("code")


def name():
    return "n-" + uuid.uuid4().hex[:12]


def uses_left(server, token):
    digest = hashlib.sha256(token.encode()).hexdigest()
    return int(server.sql(f"SELECT uses_left FROM join_token WHERE token_hash = '\\x{digest}'"))


def test_a_node_joins_with_a_token(server):
    agent = Agent(server, name())
    token = join_token(server)
    body = agent.try_enroll(token).json()
    assert body["cluster_id"] == server.cluster_id and body["org_id"] == server.org_id
    assert body["generation"] == 1 and body["expires_in_seconds"] == 3600
    assert body["access_token"].startswith("mat_")
    assert 9 <= body["interval_seconds"] <= 11
    row = server.sql(f"SELECT name, state, key_generation, interval_seconds, host_serial FROM node WHERE id = '{body['node_id']}'")
    assert row == f"{agent.name}|pending|1|10|S1"
    assert server.sql(f"SELECT type, summary FROM event WHERE node_id = '{body['node_id']}'") == f"node.joined|{agent.name} joined."
    audit = json.loads(server.sql(f"SELECT body FROM audit WHERE body::json ->> 'target' = '{body['node_id']}'"))
    assert (audit["action"], audit["outcome"], audit["target_name"], audit["address"]) == ("node.join", "done", agent.name, "127.0.0.1")
    assert uses_left(server, token) == 0


def test_the_command_key_is_kept_outside_the_database(server):
    agent = Agent(server, name()).enroll()
    path = server.folder / "keys" / f"{server.cluster_id}.ed25519"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    stored = server.sql(f"SELECT encode(command_public_key, 'hex') FROM cluster WHERE id = '{server.cluster_id}'")
    assert b64(bytes.fromhex(stored)) == agent.command_key
    assert Agent(server, name()).enroll().command_key == agent.command_key


def test_slots_are_not_shared(server):
    token = join_token(server, uses=5)
    nodes = [Agent(server, name()).enroll(token).node_id for _ in range(5)]
    slots = server.sql("SELECT count(DISTINCT slot) FROM node WHERE id IN (" + ",".join(f"'{n}'" for n in nodes) + ")")
    assert slots == "5"


def test_a_lost_answer_costs_nothing(server):
    agent = Agent(server, name())
    token = join_token(server)
    first, second = agent.try_enroll(token), agent.try_enroll(token)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["node_id"] == second.json()["node_id"]
    assert first.json()["access_token"] != second.json()["access_token"]
    assert server.sql(f"SELECT count(*) FROM event WHERE node_id = '{first.json()['node_id']}'") == "1"


def test_a_used_up_token_opens_nothing_once_the_node_reported(server):
    agent = Agent(server, name())
    token = join_token(server)
    agent.enroll(token)
    agent.report_ok()
    assert code(agent.try_enroll(token)) == (401, "unauthenticated")


def test_a_name_of_another_live_key_is_taken(server):
    agent = Agent(server, name()).enroll()
    twin = Agent(server, agent.name)
    token = join_token(server)
    assert code(twin.try_enroll(token)) == (409, "name_taken")
    assert uses_left(server, token) == 1


def test_a_node_made_by_hand_is_taken_over(server):
    agent = Agent(server, name())
    node = server.add_node(agent.name, state="pending")
    agent.enroll()
    assert agent.node_id == node
    assert server.sql(f"SELECT key_generation, joined_at IS NOT NULL FROM node WHERE id = '{node}'") == "1|t"
    agent.report_ok()


def test_a_node_whose_key_was_revoked_joins_as_a_new_generation(server):
    agent = Agent(server, name()).enroll()
    server.sql(f"UPDATE node_key SET revoked_at = now() WHERE node_id = '{agent.node_id}'")
    again = Agent(server, agent.name)
    body = again.try_enroll(join_token(server)).json()
    assert (body["node_id"], body["generation"]) == (agent.node_id, 2)


@pytest.mark.parametrize("spoil", ["revoked_at = now()", "expires_at = now()"])
def test_a_dead_token_opens_nothing(server, spoil):
    token = join_token(server)
    digest = hashlib.sha256(token.encode()).hexdigest()
    server.sql(f"UPDATE join_token SET {spoil} WHERE token_hash = '\\x{digest}'")
    assert code(Agent(server, name()).try_enroll(token)) == (401, "unauthenticated")


def test_an_unknown_token_opens_nothing(server):
    assert code(Agent(server, name()).try_enroll("mjt_" + "x" * 43)) == (401, "unauthenticated")
    assert code(Agent(server, name()).try_enroll("")) == (422, "invalid_fields")


def test_a_bound_token_is_for_its_host_only(server):
    host = name()
    token = join_token(server, host_name=host)
    assert code(Agent(server, name()).try_enroll(token)) == (403, "forbidden")
    assert uses_left(server, token) == 1
    Agent(server, host).enroll(token)


def bound_to(world, cidr):
    return world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"cidr": cidr})


@pytest.mark.parametrize("cidr, status", [("127.0.0.0/8", 201), ("127.0.0.1", 201), ("10.0.0.0/8", 403), ("fd00::/8", 403)])
def test_I5_a_token_bound_to_a_network_is_for_its_addresses_only(world, cidr, status):
    token = bound_to(world, cidr)
    agent = Agent(world.server, name())
    answer = agent.try_enroll(token["token"])
    assert answer.status_code == status, answer.text
    left = world.api("GET", f"join-tokens/{token['id']}").json()["uses_left"]
    assert left == (0 if status == 201 else 1)
    if status == 403:
        assert "another network" in answer.json()["detail"]
        assert world.sql(f"SELECT body::json ->> 'outcome' FROM audit WHERE body::json ->> 'target_name' = '{agent.name}'") == "denied"


def test_refusals_of_a_known_token_are_audited(server):
    agent = Agent(server, name())
    agent.try_enroll(join_token(server, host_name="another"))
    assert server.sql(f"SELECT body::json ->> 'outcome' FROM audit WHERE body::json ->> 'target_name' = '{agent.name}'") == "denied"


@pytest.mark.parametrize("fields, pointer", [
    ({"name": "not a host"}, "#/name"), ({"public_key": "short"}, "#/public_key"), ({"public_key": "=" * 43}, "#/public_key"),
    ({"hardware": []}, "#/hardware"),
])
def test_fields_are_checked(server, fields, pointer):
    answer = Agent(server, name()).try_enroll(join_token(server), **fields)
    assert code(answer) == (422, "invalid_fields")
    assert [e["pointer"] for e in answer.json()["errors"]] == [pointer]


def test_unknown_fields_are_those_of_a_newer_agent(server):
    assert Agent(server, name()).try_enroll(join_token(server), nova={"a": 1}, hardware=None).status_code == 201


def test_I5_one_use_is_one_node_however_many_ask(server):
    token = join_token(server)
    agents = [Agent(server, name()) for _ in range(30)]
    answers = []
    threads = [threading.Thread(target=lambda a=a: answers.append(a.try_enroll(token).status_code)) for a in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [401] * 29


def test_I5_n_uses_are_n_nodes_however_many_ask(server):
    token = join_token(server, uses=7)
    agents = [Agent(server, name()) for _ in range(24)]
    answers = []
    threads = [threading.Thread(target=lambda a=a: answers.append(a.try_enroll(token).status_code)) for a in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] * 7 + [401] * 17
    assert uses_left(server, token) == 0


def test_the_same_machine_asking_twice_at_once_is_one_node(server):
    token = join_token(server)
    agent = Agent(server, name())
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(agent.try_enroll(token))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["node_id"] for a in answers}) == 1


# ------------------------------------------------------------ access tokens
def test_a_signed_nonce_gives_a_token(server):
    agent = Agent(server, name()).enroll()
    answer = agent.try_token(agent.challenge())
    assert answer.status_code == 200 and answer.json()["expires_in_seconds"] == 3600
    old, agent.token = agent.token, answer.json()["access_token"]
    assert agent.token != old
    agent.report_ok()
    digest = hashlib.sha256(agent.token.encode()).hexdigest()
    assert server.sql(f"SELECT count(*) FROM agent_token WHERE token_hash = '\\x{digest}'") == "1"


def test_a_nonce_is_for_its_node(server):
    agent, other = Agent(server, name()).enroll(), Agent(server, name()).enroll()
    assert code(agent.try_token(other.challenge())) == (401, "unauthenticated")


def test_a_nonce_survives_a_restart(server):
    agent = Agent(server, name()).enroll()
    nonce = agent.challenge()
    server.restart()
    assert agent.try_token(nonce).status_code == 200


def test_a_wrong_signature_gives_nothing(server):
    agent, other = Agent(server, name()).enroll(), Agent(server, name()).enroll()
    nonce = agent.challenge()
    assert code(agent.try_token(nonce, text="another text")) == (401, "unauthenticated")
    other.node_id = agent.node_id
    assert code(other.try_token(nonce)) == (401, "unauthenticated")


def test_a_revoked_key_gives_nothing(server):
    agent = Agent(server, name()).enroll()
    server.sql(f"UPDATE node_key SET revoked_at = now() WHERE node_id = '{agent.node_id}'")
    assert code(agent.try_token(agent.challenge())) == (401, "unauthenticated")


def test_an_unknown_node_is_not_told_from_a_wrong_key(server):
    agent = Agent(server, name()).enroll()
    known = agent.try_token(agent.challenge(), text="x").json()
    agent.node_id = str(uuid.uuid4())
    unknown = agent.try_token(agent.challenge()).json()
    assert (known["code"], known["detail"]) == (unknown["code"], unknown["detail"])
