"""A node's credentials: revoked alone and at once, and what a restored backup means for agents and repairs."""
import uuid

from agent import Agent
from resource import last_event
from server import Musterd
from waiting import in_time, seconds_until
from world import World


def test_I6_a_revoked_node_is_refused_within_5_seconds_and_no_other_one(world):
    def attempt():
        nonlocal agent, other
        agent, other = world.agent(), world.agent()
        for one in (agent, other):  # every loop has both in its cache
            for _ in range(6):
                one.report_ok()
        answer = world.api("POST", f"nodes/{agent.node_id}/revoke-key", {"reason": "the disk was copied"})
        assert answer.status_code == 200
        assert answer.json() == {"node_id": agent.node_id, "name": agent.name, "generation": 1, "revoked_at": answer.json()["revoked_at"]}
        return seconds_until(lambda: {agent.report().status_code for _ in range(6)} == {401})
    agent = other = None
    in_time(5, attempt)
    assert agent.try_token(agent.challenge()).status_code == 401, "nor is there a new access token for the old key"
    other.report_ok()
    event = last_event(world)
    assert event["type"] == "node.key_revoked" and event["severity"] == "warning" and "the disk was copied" in event["summary"]


def test_a_node_without_a_key_has_none_to_revoke(world):
    node = world.node()
    assert world.api("POST", f"nodes/{node}/revoke-key", {}).status_code == 409
    agent = world.agent()
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = world.api("POST", f"nodes/{agent.node_id}/revoke-key", {}, headers=key)
    again = world.api("POST", f"nodes/{agent.node_id}/revoke-key", {}, headers=key)
    assert first.status_code == again.status_code == 200 and again.headers["idempotent-replayed"] == "true"
    assert world.api("POST", f"nodes/{agent.node_id}/revoke-key", {}).status_code == 409


def test_I7_a_revoked_node_comes_back_with_a_join_token_as_a_new_generation(world):
    agent = world.agent()
    world.api("POST", f"nodes/{agent.node_id}/revoke-key", {})
    back = Agent(world.server, agent.name).enroll(org_id=world.org.id, cluster_id=world.org.cluster_id)
    assert back.node_id == agent.node_id
    back.report_ok()
    assert back.one(f"SELECT max(generation) FROM node_key WHERE node_id = '{agent.node_id}'") == "2"
    assert agent.try_token(agent.challenge()).status_code == 401, "the old key stays dead"


def test_after_a_restore_no_old_order_acts_and_open_repairs_are_unknown():
    """Agents go on as they are: their keys and tokens are still good."""
    with Musterd() as server:
        world = World(server)
        agent = world.agent()
        repairs = {state: world.repair()["id"] for state in ("proposed", "approved", "acting", "verifying")}
        ended = world.repair()["id"]
        assert world.api("POST", f"repairs/{ended}/reject", {}).status_code == 200
        order = str(uuid.uuid4())
        server.terminate()
        for state, repair in repairs.items():  # now that no loop carries them on
            world.sql(f"UPDATE repair SET state = '{state}', version = version + 1 WHERE id = '{repair}'")
        world.sql("INSERT INTO command (org_id, id, node_id, epoch_generation, epoch_n, action, state, deadline_at)"
                  f" VALUES ('{world.org.id}', '{order}', '{agent.node_id}', 1, 99, 'reboot', 'ready', now() + interval '1 hour')")
        before = int(world.sql("SELECT restore_generation FROM installation"))
        rows = world.audits()
        server.run("migrate", "--after-restore")
        assert int(world.sql("SELECT restore_generation FROM installation")) == before + 1
        assert world.sql(f"SELECT state FROM command WHERE id = '{order}'") == "withdrawn"
        assert world.audits() == rows + 1
        server.launch()
        for repair in repairs.values():
            read = world.api("GET", f"repairs/{repair}").json()
            assert read["state"] == "unknown" and "restored" in read["steps"][-1]["detail"]
        assert world.api("GET", f"repairs/{ended}").json()["state"] == "rejected"
        answer = agent.report_ok()
        assert answer["commands"] == [], "the old order is not handed out"
        settled = world.api("POST", f"repairs/{repairs['acting']}/settle", {"outcome": "failed", "comment": "looked at it"})
        assert settled.status_code == 200, settled.text
        assert server.run("audit", "verify").count("are whole") == 1
