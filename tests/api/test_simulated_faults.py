"""Faults on request in muster-sim: each kind becomes an incident of its check, nodes of one rack a common cause."""

import os
import subprocess
from pathlib import Path

import pytest
from agent import join_token, wait_for

ROOT = Path(__file__).resolve().parent.parent.parent
SIM = Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "muster-sim"


def kinds():
    """Kind and check, as `muster-sim list` shows them."""
    table = subprocess.run([SIM, "list"], capture_output=True, text=True, check=True).stdout.split("\n\n")[0].splitlines()[1:]
    return [tuple(line.split()[:2]) for line in table if not line.startswith("silence")]


class Sim:
    def __init__(self, world, folder, nodes):
        self.world = world
        self.cluster = world.cluster()
        self.state = folder / "sim"
        token = join_token(world.server, uses=nodes, cluster_id=self.cluster, org_id=world.org.id)
        self.process = subprocess.Popen([SIM, "--server", world.server.url(""), "--token", token, "--nodes", str(nodes), "--interval", "1", "--duration", "0",
                                         "--state", self.state], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: len(self.nodes("healthy")) == nodes, 90, lambda: f"healthy: {sorted(self.nodes('healthy'))}")

    def nodes(self, state):
        items = self.world.api("GET", f"clusters/{self.cluster}/nodes?state={state}&limit=200").json()["items"]
        return {node["name"]: node for node in items}

    def open(self):
        """Check and node of each open incident."""
        items, cursor = [], ""
        while cursor is not None:
            page = self.world.api("GET", f"incidents?cluster_id={self.cluster}&state=open&limit=200{cursor}").json()
            items += page["items"]
            cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None
        return {(one["check_id"], one["node_name"]) for one in items}

    def order(self, *orders):
        return subprocess.run([SIM, "break", "--state", self.state, *orders], capture_output=True, text=True)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def sim(world, tmp_path):
    started = []

    def start(nodes):
        started.append(Sim(world, tmp_path, nodes))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def name_of(n):
    return f"gpu-{(n - 1) // 32 + 1:02}-{(n - 1) % 32 + 1:02}"


def test_every_kind_of_fault_becomes_an_incident_of_its_check(sim):
    all_kinds = kinds()
    fleet = sim(len(all_kinds))
    assert fleet.order(*(f"{kind}@{n}" for n, (kind, _) in enumerate(all_kinds, 1))).returncode == 0
    want = {(check, name_of(n)) for n, (_, check) in enumerate(all_kinds, 1)}
    wait_for(lambda: want <= fleet.open(), 90, lambda: f"without an incident: {sorted(want - fleet.open())}")


def test_a_rack_that_breaks_is_a_common_cause_and_a_fault_is_mended(sim):
    fleet = sim(3)
    assert fleet.order("gpu_power_short@1-3").returncode == 0
    wait_for(lambda: ("common_cause", None) in fleet.open(), 90)
    assert fleet.order("mend@1-3").returncode == 0
    wait_for(lambda: not fleet.open(), 90)


def test_an_order_that_is_none_is_refused_by_its_word(sim, tmp_path):
    done = subprocess.run([SIM, "break", "--state", tmp_path, "gpu_lost@1", "fire@2"], capture_output=True, text=True)
    assert done.returncode == 2 and "fire@2" in done.stderr
    assert not (tmp_path / "orders").exists()
