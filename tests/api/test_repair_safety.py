"""What a repair must never do: the last of a role, a job that began meanwhile, a herd, a database that is away (promises R8, R13, R15, O1)."""
import secrets
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, Beat, join_token, reboots  # noqa: E402
from test_policies import ALONE, codes_are, read, write_policy  # noqa: E402
from test_repairs import approve, commands_of, fresh_key, make_server, new_node, node_is, proposed, repair_in  # noqa: E402
from waiting import wait_for  # noqa: E402


@pytest.fixture(scope="module")
def house():
    running = make_server()
    # each test breaks nodes of its own cluster: together they must not open the breaker of the org
    answer = running.api("POST", "/api/v1/policies", {"breaker_floor": 1000, "breaker_percent": 100}, headers=fresh_key())
    assert answer.status_code == 201, answer.text
    yield running
    running.stop()


def change(house, agent, **fields):
    """Nodes change by themselves all the time: what is stale is read anew."""
    path = f"/api/v1/nodes/{agent.node_id}"

    def done():
        version = house.api("GET", path).json()["version"]
        answer = house.api("PATCH", path, fields, headers={"If-Match": f'"{version}"'})
        assert answer.status_code in (200, 412), answer.text
        return answer.json() if answer.status_code == 200 else None
    return wait_for(done)


def neighbours(house, count):
    """Nodes of one cluster of their own."""
    first = new_node(house)
    token = join_token(house, uses=max(1, count - 1), cluster_id=first.cluster_id)
    return [first] + [Agent(house, token=token) for _ in range(count - 1)]


# ---------------------------------------------------------------- roles
def test_R8_the_last_healthy_node_of_a_role_is_left_to_a_person(house):
    agents = neighbours(house, 3)
    login, other, _ = agents
    write_policy(house, login, automatic=["gpu_lost"], **ALONE)
    assert change(house, login, role="login")["role"] == "login"
    login.answer = reboots
    with Beat(*agents):
        for agent in agents:
            node_is(house, agent, "healthy")
        login.xid79()
        repair = repair_in(house, login, "proposed")
        assert codes_are(house, repair, "last_of_role") == {"last_of_role"}
        assert read(house, repair)["state"] == "proposed" and read(house, repair)["can_approve"] is True
        assert commands_of(house, repair) == 0
        change(house, other, role="login")  # now there is another one
        assert repair_in(house, login, "succeeded", "failed", "unknown")["state"] == "succeeded"


def test_a_role_is_a_short_text_that_can_be_taken_away(house):
    agent = new_node(house)
    path = f"/api/v1/nodes/{agent.node_id}"
    version = house.api("GET", path).json()["version"]
    assert house.api("PATCH", path, {"role": "x" * 64}, headers={"If-Match": f'"{version}"'}).status_code == 422
    assert house.api("GET", path).json()["role"] == ""
    assert change(house, agent, role="controller", rack="r1", leaf="l1", pdu="p1", file_server="nfs-1")["role"] == "controller"
    assert change(house, agent, role="")["role"] == ""
