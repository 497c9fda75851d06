"""Power cycles by real controllers' protocols: a real ipmitool against OpenIPMI's simulator, and Redfish over TLS."""
import json
import secrets
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from controllers import Ipmi, Redfish  # noqa: E402
from fake_agent import Agent, Beat, join_token  # noqa: E402
from ports import free_port  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

ipmi_only = pytest.mark.skipif(Ipmi.missing() is not None, reason=str(Ipmi.missing()))
NAMES = {"i1": "ipmi", "i2": "ipmi", "r1": "redfish", "r2": "redfish", "r3": "redfish", "r4": "redfish"}


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    found = {}
    for name, kind in NAMES.items():
        if kind == "redfish":
            found[name] = Redfish(folder / name, serial=f"SN-{name}")
        elif Ipmi.missing() is None:
            found[name] = Ipmi(folder / name, free_port())
    yield found
    for machine in found.values():
        machine.stop()


@pytest.fixture(scope="module")
def server(machines, tmp_path_factory):
    path = tmp_path_factory.mktemp("executors") / "executors.json"
    path.write_text(json.dumps({"machines": [
        {"org": "main", "cluster": "local", "node": name, "user": "muster", "password_file": str(machine.folder / "password"),
         "timeout_seconds": 5, **machine.target()} for name, machine in machines.items()]}))
    with Musterd(interval_seconds=1, loop_period_ms=100, executors_file=str(path), command_within_seconds=300, machine_rest_ms=1500,
                 settle_seconds=0, boot_grace_seconds=0) as running:
        running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1 WHERE id = '{running.cluster_id}'")
        yield running


class Life(threading.Thread):
    """A node boots anew whenever its machine was off and is on again."""

    def __init__(self, agent, machine):
        super().__init__(daemon=True)
        self.agent, self.machine, self.ended, self.boots = agent, machine, threading.Event(), 0

    def run(self):
        seen = 0
        while not self.ended.wait(0.05):
            effects = self.machine.effects
            if effects[seen:].count("power 1"):
                seen = len(effects)
                self.boots += 1
                self.agent.boot()


@pytest.fixture(scope="module")
def agents(server, machines):
    found = {name: Agent(server, name, token=join_token(server, cluster_id=server.cluster_id)) for name in machines}
    lives = [Life(found[name], machines[name]) for name in machines]
    with Beat(*found.values()):
        for life in lives:
            life.start()
        for agent in found.values():
            wait_for(lambda: server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
        yield found
        for life in lives:
            life.ended.set()
            life.join()


def repair(server, agent):
    items = server.api("GET", f"/api/v1/repairs?node_id={agent.node_id}").json()["items"]
    return items[0] if items else {"state": None}


def cycled(server, agent):
    """A fault that asks for a power cycle, approved."""
    agent.xid79(action="power_cycle")
    item = wait_for(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    assert item["action"] == "power_cycle" and item["can_approve"] is True, item["blocked"]
    assert "controller" in item["plan"]["how"]
    answer = server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                        headers={"Idempotency-Key": secrets.token_hex(16)})
    assert answer.status_code == 200, answer.text
    return item


def ended(server, item):
    return wait_for(lambda: (now := server.api("GET", f"/api/v1/repairs/{item['id']}").json())["state"] in
                    ("succeeded", "failed", "unknown", "cancelled") and now, 200)


@ipmi_only
def test_ipmi_powers_off_and_on_once_and_the_new_boot_proves_it(server, machines, agents):
    done = ended(server, cycled(server, agents["i1"]))
    assert done["state"] == "succeeded", done
    assert machines["i1"].effects == ["power 0", "power 1"]


def test_redfish_powers_off_and_on_once_and_the_new_boot_proves_it(server, machines, agents):
    done = ended(server, cycled(server, agents["r1"]))
    assert done["state"] == "succeeded", done
    assert machines["r1"].effects == ["power 0", "power 1"]


def test_an_error_after_the_effect_is_no_second_effect(server, machines, agents):
    with machines["r2"].lock:
        machines["r2"].faults.add("after_500")
    done = ended(server, cycled(server, agents["r2"]))
    assert done["state"] == "succeeded", done
    assert machines["r2"].effects == ["power 0", "power 1"]


def test_a_controller_of_another_machine_is_refused_before_anything_is_done(server, machines, agents):
    server.sql(f"UPDATE node SET host_serial = 'SN-other' WHERE id = '{agents['r3'].node_id}'")
    done = ended(server, cycled(server, agents["r3"]))
    assert done["state"] == "failed" and "SN-r3" in done["reason"], done
    assert machines["r3"].effects == []


def test_a_node_without_a_controller_has_nothing_to_carry_it_out(server, agents):
    agent = Agent(server, "bare", token=join_token(server, cluster_id=server.cluster_id))
    with Beat(agent):
        wait_for(lambda: server.sql(f"SELECT state FROM node WHERE id = '{agent.node_id}'") == "healthy")
        agent.xid79(action="power_cycle")
        item = wait_for(lambda: (found := repair(server, agent))["state"] == "proposed" and found)
    assert item["can_approve"] is False and "power cycle" in item["blocked"]


@ipmi_only
def test_a_controller_that_is_dead_did_nothing(server, machines, agents):
    machines["i2"].pause()
    try:
        done = ended(server, cycled(server, agents["i2"]))
    finally:
        machines["i2"].resume()
    assert done["state"] == "failed" and "cannot be read" in done["reason"], done
    assert machines["i2"].effects == [] and machines["i2"].on


def test_a_server_that_dies_between_off_and_on_leaves_nothing_off(server, machines, agents):
    """Last: it kills the server. What it left off is powered on by the next one; the boot id says how it ended."""
    machine = machines["r4"]
    item = cycled(server, agents["r4"])
    wait_for(lambda: not machine.on)
    server.kill()
    assert not machine.on
    server.start()
    server.sql("UPDATE command SET deadline_at = now() - interval '1 second' WHERE executor = 'machine' AND state = 'sent' AND ended_at IS NULL")
    wait_for(lambda: machine.on)
    done = wait_for(lambda: (now := server.api("GET", f"/api/v1/repairs/{item['id']}").json())["state"] == "succeeded" and now, 200)
    assert machine.effects == ["power 0", "power 1"], done
