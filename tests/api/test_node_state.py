"""The state of a node, from what is heard of it (promises O2, R10; silence is never health)."""
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

# Silent after a minute: no machine is so slow that a node falls silent by itself. Whose silence is wanted, has it from the database.
SETTINGS = {"interval_seconds": 20, "loop_period_ms": 100, "rollup_interval_ms": 200}


@pytest.fixture(scope="module")
def house():
    with Musterd(**SETTINGS) as running:
        yield running


def row(server, agent, columns="state"):
    return server.sql(f"SELECT {columns} FROM node WHERE id = '{agent.node_id}'")


def is_in(server, agent, state):
    wait_for(lambda: row(server, agent) == state, said=lambda: f"{state}, but {row(server, agent)}")


def silence(server, *agents):
    """Nothing was heard of them for an hour."""
    ids = ", ".join(f"'{agent.node_id}'" for agent in agents)
    server.sql(f"UPDATE node_latest SET seen_at = now() - interval '1 hour' WHERE node_id IN ({ids})")


def new_cluster(server, name):
    """Another cluster, so that one test's silence is not another's."""
    return server.sql(f"INSERT INTO cluster (org_id, id, project_id, name) VALUES ('{server.org_id}', gen_random_uuid(), '{server.project_id}',"
                      f" '{name}') RETURNING id").split("\n")[0]


def agents_in(server, name, count):
    cluster = new_cluster(server, name)
    server.sql(f"INSERT INTO cluster_rollup (org_id, cluster_id) VALUES ('{server.org_id}', '{cluster}') ON CONFLICT DO NOTHING")
    token = join_token(server, uses=count, cluster_id=cluster)
    return cluster, [Agent(server, f"{name}-{i:03d}", token) for i in range(count)]


def test_a_node_is_pending_then_starting_then_healthy(house):
    _, (agent, other) = agents_in(house, "begins", 2)
    with Beat(other):
        is_in(house, agent, "pending")
        agent.ready = False
        agent.report()
        is_in(house, agent, "starting")
        assert row(house, agent, "ready_at IS NULL") == "t"
        agent.ready = True
        agent.report()
        is_in(house, agent, "healthy")
        assert row(house, agent, "boot_id, ready_at IS NOT NULL") == f"{agent.boot_id}|t"


def test_a_silent_node_is_unknown_whatever_it_was(house):
    _, agents = agents_in(house, "silence", 4)
    sick, fine, *others = agents
    with Beat(*others):
        sick.xid79()
        sick.report()
        fine.report()
        is_in(house, sick, "unhealthy")
        is_in(house, fine, "healthy")
        silence(house, sick, fine)
        is_in(house, sick, "unknown")
        is_in(house, fine, "unknown")
        assert "Last heard at" in row(house, fine, "reason")
        fine.report()
        is_in(house, fine, "healthy")
        sick.report()
        is_in(house, sick, "unhealthy")  # the fault lives here, not in the agent
    states = house.sql(f"SELECT string_agg(state, ' ' ORDER BY at) FROM node_transition WHERE node_id = '{sick.node_id}'").split()
    assert states[-3:] == ["unhealthy", "unknown", "unhealthy"]


def test_an_agent_that_starts_anew_is_starting_until_it_is_ready(house):
    _, (agent, other) = agents_in(house, "anew", 2)
    with Beat(other):
        agent.report()
        is_in(house, agent, "healthy")
        agent.ready = False
        agent.report()
        is_in(house, agent, "starting")


def test_a_warning_is_a_mark_on_a_healthy_node(house):
    _, (agent, other) = agents_in(house, "warns", 2)
    with Beat(agent, other):
        is_in(house, agent, "healthy")
        agent.event(stream=1, check_id="disk_space", severity="warning", clears="event", summary="The disk is 96 % full")
        wait_for(lambda: row(house, agent, "state, warning") == "healthy|t")
        assert row(house, agent, "reason") == "The disk is 96 % full"
        agent.event(stream=1, check_id="disk_space", severity="warning", clear=True)
        wait_for(lambda: row(house, agent, "state, warning, reason") == "healthy|f|")


def test_quiet_closes_what_clears_by_quiet_and_only_while_the_node_is_heard(house):
    _, (agent, other, third) = agents_in(house, "quiet", 3)
    incident = lambda: house.sql(f"SELECT closed_at IS NOT NULL FROM incident WHERE node_id = '{agent.node_id}'")
    with Beat(other, third):
        agent.event(stream=1, check_id="gpu_throttle", severity="warning", clears="quiet", quiet_seconds=5, summary="Hot")
        agent.report()
        is_in(house, agent, "healthy")
        silence(house, agent)
        is_in(house, agent, "unknown")
        quiet = "SELECT last_at < now() - interval '5.5 s' FROM incident WHERE node_id = '" + agent.node_id + "'"
        wait_for(lambda: house.sql(quiet) == "t")
        assert incident() == "f"
        agent.report()
        wait_for(lambda: incident() == "t")


def test_maintenance_is_paused_and_ends_by_itself(house):
    _, (agent, other) = agents_in(house, "pause", 2)
    with Beat(agent, other):
        is_in(house, agent, "healthy")
        house.sql(f"UPDATE node SET paused_until = now() + interval '1 hour', paused_by = 'M. Okafor' WHERE id = '{agent.node_id}'")
        is_in(house, agent, "paused")
        assert "M. Okafor" in row(house, agent, "reason")
        house.sql(f"UPDATE node SET paused_until = now() + interval '1 s' WHERE id = '{agent.node_id}'")
        is_in(house, agent, "healthy")


def test_R10_when_nearly_all_fall_silent_together_nothing_happens_but_unknown(house):
    cluster, agents = agents_in(house, "cutoff", 20)
    one = agents[0]
    with Beat(*agents):
        wait_for(lambda: house.sql(f"SELECT count(*) FROM node WHERE cluster_id = '{cluster}' AND state = 'healthy'") == "20")
    with Beat(one):  # 19 of 20 silent
        silence(house, *agents[1:])
        wait_for(lambda: house.sql(f"SELECT count(*) FROM node WHERE cluster_id = '{cluster}' AND state = 'unknown'") == "19")
        assert "cut off" in row(house, agents[7], "reason")
        one.xid79()
        is_in(house, one, "unhealthy")
        time.sleep(0.5)  # several rounds of the loop that would propose
        assert house.sql(f"SELECT count(*) FROM repair WHERE cluster_id = '{cluster}'") == "0"
        assert house.sql(f"SELECT count(*) FROM incident WHERE cluster_id = '{cluster}'") == "1"
    with Beat(*agents):  # heals: no storm, and the real fault is taken up
        wait_for(lambda: house.sql(f"SELECT count(*) FROM node WHERE cluster_id = '{cluster}' AND state = 'healthy'") == "19")
        wait_for(lambda: house.sql(f"SELECT count(*) FROM repair WHERE cluster_id = '{cluster}'") == "1")


def test_O2_after_a_start_no_node_is_called_down_within_the_grace():
    with Musterd(**SETTINGS, start_grace_seconds=600) as house:
        cluster, agents = agents_in(house, "grace", 200)
        count = lambda state: int(house.sql(f"SELECT count(*) FROM node WHERE cluster_id = '{cluster}' AND state = '{state}'"))
        with Beat(*agents, every=0.8):
            wait_for(lambda: count("healthy") == 200)
        house.terminate()
        silence(house, *agents)  # for more than three intervals
        house.start()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert count("healthy") == 200
            time.sleep(0.2)
        moved = house.sql(f"SELECT count(*) FROM event WHERE cluster_id = '{cluster}' AND type = 'node.state_changed'"
                          " AND data ->> 'to' IN ('unhealthy', 'unknown')")
        assert moved == "0"
        with Beat(*agents, every=0.8):
            wait_for(lambda: house.sql(f"SELECT count(*) FROM node_latest l JOIN node n ON n.id = l.node_id WHERE n.cluster_id = '{cluster}'"
                                    " AND l.seen_at > now() - interval '30 min'") == "200")
        assert count("healthy") == 200
