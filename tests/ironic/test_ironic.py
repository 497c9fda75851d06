"""Repairs through Ironic: each effect at most once at the far end, whatever is lost, late or doubled, and whoever dies.

The peer is a stub with recorded answers; MUSTER_IRONIC=real takes Debian's Ironic (`script/test ironic`).
"""
import functools
import json
import os
import secrets
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, b64, join_token  # noqa: E402
from peers import CLASS, Hold, Network, Real, Stub  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

REAL = os.environ.get("MUSTER_IRONIC") == "real"
ENDED = ("succeeded", "failed", "unknown", "cancelled", "rejected", "resolved")
POWER_SECONDS = 6


class Machine(Agent):
    """The agent on a node's hardware: it goes with the power, and after an installation it has lost its key."""

    def __init__(self, house, name, machine, serial, joins=True):
        self.away, self.token, self.house, self.machine, self.serial = False, None, house, machine, serial
        self.seen, self.off = 0, False
        if joins:
            super().__init__(house.server, name, token=join_token(house.server, cluster_id=house.server.cluster_id))
            house.server.sql(f"UPDATE node SET host_serial = '{serial}' WHERE id = '{self.node_id}'")
        else:
            self.server, self.name, self.gpus, self.seq, self.event_seq, self.events, self.results = house.server, name, 8, 0, {}, [], []
            self.commands, self.deliveries, self.acted, self.answer, self.ready, self.connection = {}, 0, [], None, True, None
            self.lock, self.bearer, self.away = threading.RLock(), None, True

    def rejoin(self, token):
        """One try with an empty state folder."""
        self.key = getattr(self, "key", None) or b64(os.urandom(32))
        said = self.post("/agent/v1/enroll", {"token": token, "name": self.name, "public_key": self.key,
                                              "hardware": {"serial": self.serial, "gpus": []}}, bearer=False)
        if "access_token" not in said:
            return False
        self.node_id, self.bearer, self.seq, self.away, self.key = said["node_id"], said["access_token"], 0, False, None
        self.boot()
        return True

    def beat(self):
        effects = self.house.peer.effects(self.machine)
        for effect in effects[self.seen:]:
            if effect in ("power off", "undeploy"):
                self.away = True
            elif effect == "power on":
                self.away = False
                self.boot()
            else:
                self.away, self.bearer, self.key = True, None, None
        self.seen = len(effects)
        if self.bearer is None and self.house.token and self.seen:
            self.rejoin(self.house.token)
        if not self.away and self.bearer:
            self.report()


class House:
    def __init__(self, folder):
        self.peer = Real(folder) if REAL else Stub()
        self.network = Network(self.peer)
        self.machines, self.stopped, self.token, self.server = [], threading.Event(), None, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopped.wait(0.1):
            for machine in list(self.machines):
                try:
                    machine.beat()
                except (OSError, RuntimeError, ValueError, TypeError):
                    pass  # the server is away, or says no for now

    def begin(self, server):
        self.server = server
        self.token = server.api("POST", f"/api/v1/clusters/{server.cluster_id}/join-tokens", {"rejoin": "auto", "uses": 1000},
                                headers={"Idempotency-Key": secrets.token_hex(8)}).json()["token"]
        self.thread.start()

    def node(self, name, **machine):
        self.peer.add(name, **machine)
        found = Machine(self, name, name, f"SN-{name}")
        found.boot()
        self.machines.append(found)
        wait_for(lambda: self.server.sql(f"SELECT state FROM node WHERE id = '{found.node_id}'") == "healthy")
        return found

    def spare(self, name, node=None, **machine):
        """A machine of the pool; what is installed on it is `node`."""
        self.peer.add(name, active=False, **machine)
        answer = self.server.api("POST", f"/api/v1/clusters/{self.server.cluster_id}/spares", {"machine": name, "serial": f"SN-{name}"},
                                 headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status_code == 201, answer.text
        if node is not None:
            self.machines.append(Machine(self, node.name, name, f"SN-{name}", joins=False))

    def ask(self, node, action):
        answer = self.server.api("POST", f"/api/v1/nodes/{node.node_id}/repairs", {"action": action, "reason": "a test"},
                                 headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def approve(self, item):
        return self.server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                               headers={"Idempotency-Key": secrets.token_hex(16)})

    def repair(self, node, action):
        item = self.ask(node, action)
        assert item["can_approve"] is True, item["blocked"]
        answer = self.approve(item)
        assert answer.status_code == 200, answer.text
        return item["id"]

    def read(self, repair):
        return self.server.api("GET", f"/api/v1/repairs/{repair}").json()

    def ended(self, repair):
        return wait_for(lambda: (now := self.read(repair))["state"] in ENDED and now, 200, said=lambda: self.read(repair))

    def log(self, repair):
        return " ".join(step["detail"] for step in self.read(repair)["steps"])

    def order(self, repair, what="k.state"):
        return self.server.sql(f"SELECT {what} FROM command k JOIN machine_order m ON m.command_id = k.id WHERE k.repair_id = '{repair}'")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    if REAL and Real.missing():
        pytest.skip(Real.missing())
    folder = tmp_path_factory.mktemp("ironic")
    made = House(folder)
    executors = folder / "executors.json"
    executors.write_text(json.dumps({"provisioners": [
        {"org": "main", "cluster": "local", "kind": "ironic", "url": made.network.url, "resource_class": CLASS, "image_source": "http://127.0.0.1:1/image",
         "image_checksum": "0" * 32, "timeout_seconds": 10, "power_seconds": POWER_SECONDS, "install_seconds": 60, "poll_seconds": 1}]}))
    with Musterd(interval_seconds=1, loop_period_ms=100, executors_file=str(executors), command_within_seconds=300, machine_rest_ms=500,
                 settle_seconds=0, boot_grace_seconds=0) as running:
        running.sql(f"UPDATE cluster SET healthy_delay_seconds = 1 WHERE id = '{running.cluster_id}'")
        made.begin(running)
        yield made
        made.stopped.set()
        made.thread.join()
    made.network.stop()
    made.peer.stop()


SCENARIOS = {}


def scenario(function):
    """What stands before its yield is done for all of them at once; the rest is the test."""
    SCENARIOS[function.__name__] = function

    @functools.wraps(function)
    def test(begun):
        for _ in begun[function.__name__]:
            pass
    del test.__wrapped__
    return test


@pytest.fixture(scope="module")
def begun(house):
    found = {name: function(house) for name, function in SCENARIOS.items()}
    for walk in found.values():
        next(walk)
    return found


def of(house, name):
    """A pattern of the requests about a machine."""
    return f"/v1/nodes/({name}|{house.peer.read(name)['uuid']})"


# ---------------------------------------------------------------- reprovision
@scenario
def test_reprovision_installs_once_and_the_node_comes_back_with_another_key(house):
    node = house.node("p1")
    generation = f"SELECT key_generation FROM node WHERE id = '{node.node_id}'"
    assert house.server.sql(generation) == "1"
    item = house.ask(node, "reprovision")
    assert "anew" in item["plan"]["how"] and "lost" in item["plan"]["loses"] and item["plan"]["keeps"]
    assert house.approve(item).status_code == 200
    yield
    done = house.ended(item["id"])
    assert done["state"] == "succeeded", done
    assert house.peer.effects("p1") == ["install"] and house.server.sql(generation) == "2"
    assert house.peer.read("p1")["extra"]["muster"] == {"command": house.order(item["id"], "k.id"), "repair": done["no"]}
    log = house.log(item["id"])
    assert "The mark is done." in log and "The rebuild was accepted." in log and "The rebuild is done." in log, log


@scenario
def test_a_protected_machine_is_refused(house):
    node = house.node("p2")
    house.peer.set("p2", protected=True)
    repair = house.repair(node, "reprovision")
    yield
    done = house.ended(repair)
    assert done["state"] == "failed" and "Ironic refused" in done["reason"] and "403" in done["reason"], done
    assert house.peer.effects("p2") == []


@scenario
def test_a_machine_in_maintenance_is_refused(house):
    node = house.node("p3")
    house.peer.set("p3", maintenance=True)
    repair = house.repair(node, "reprovision")
    yield
    done = house.ended(repair)
    assert done["state"] == "failed" and "refused" in done["reason"] and "maintenance" in done["reason"], done
    assert house.peer.effects("p3") == []


@scenario
def test_a_machine_that_ironic_does_not_know_is_refused(house):
    node = Machine(house, "p4", "p1", "SN-p4")
    house.server.sql(f"UPDATE node_latest SET seen_at = now(), boot_id = gen_random_uuid() WHERE node_id = '{node.node_id}'")
    repair = house.repair(node, "reprovision")
    yield
    done = house.ended(repair)
    assert done["state"] == "failed" and "404" in done["reason"], done


@scenario
def test_failure_10_a_failed_installation_is_told_and_may_be_tried_again(house):
    node = house.node("p5")
    house.peer.fault("p5", no_install=True)
    repair = house.repair(node, "reprovision")
    yield
    done = house.ended(repair)
    assert done["state"] == "failed" and "deploy failed" in done["reason"] and "the image was not there" in done["reason"], done
    house.peer.fault("p5")
    assert house.ended(house.repair(node, "reprovision"))["state"] == "succeeded"
    assert house.peer.effects("p5") == ["install"]


@scenario
def test_failure_2_a_lost_answer_is_no_second_installation(house):
    node = house.node("p6")
    house.network.fault("drop_reply", of(house, "p6") + ".*rebuild")
    repair = house.repair(node, "reprovision")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("p6") == ["install"] and house.network.sent(of(house, "p6") + ".*rebuild") == 1
    assert "not answered clearly" in house.log(repair)


@scenario
def test_failure_2_an_error_after_the_effect_is_no_second_installation(house):
    node = house.node("p7")
    house.network.fault("error_500", of(house, "p7") + ".*rebuild")
    repair = house.repair(node, "reprovision")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("p7") == ["install"] and house.network.sent(of(house, "p7") + ".*rebuild") == 1


@scenario
def test_an_order_that_was_lost_on_its_way_is_not_sent_again_and_ends_unknown(house):
    node = house.node("p8")
    house.server.sql("SELECT 1")
    house.network.fault("drop_request", of(house, "p8") + ".*rebuild")
    repair = house.repair(node, "reprovision")
    yield
    # The time of an installation is over: what is stored says so.
    wait_for(lambda: house.order(repair, "m.sent AND m.step = 1") == "t")
    house.server.sql(f"UPDATE machine_order SET step_until = now() WHERE command_id = '{house.order(repair, 'k.id')}'")
    done = house.ended(repair)
    assert done["state"] == "unknown", done
    assert house.peer.effects("p8") == [] and house.network.sent(of(house, "p8") + ".*rebuild") == 1
    assert "nothing shows that it began" in house.log(repair)


@scenario
def test_failure_8_a_locked_machine_is_waited_for_and_gets_the_order_once(house):
    node = house.node("p9")
    house.network.fault((409, {"error_message": json.dumps({"faultstring": "Node p9 is locked by host x, please retry"})}),
                        of(house, "p9") + ".*rebuild", times=2)
    repair = house.repair(node, "reprovision")
    yield
    done = house.ended(repair)
    assert done["state"] == "succeeded" and done["attempt"] == 1
    assert house.peer.effects("p9") == ["install"] and house.network.sent(of(house, "p9") + ".*rebuild") == 3


@scenario
def test_failure_8_a_conductor_without_a_free_worker_is_waited_for(house):
    node = house.node("p10")
    house.network.fault((503, {"error_message": json.dumps({"faultstring": "Requested action cannot be performed due to lack of free conductor"
                                                                           " workers."})}), of(house, "p10") + ".*rebuild", times=2)
    repair = house.repair(node, "reprovision")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("p10") == ["install"]


@scenario
def test_a_503_that_is_not_ironics_own_may_have_had_an_effect(house):
    node = house.node("p11")
    house.network.fault("page_503", of(house, "p11") + ".*rebuild")
    repair = house.repair(node, "reprovision")
    yield
    wait_for(lambda: house.order(repair, "m.sent AND m.step = 1") == "t")
    house.server.sql(f"UPDATE machine_order SET step_until = now() WHERE command_id = '{house.order(repair, 'k.id')}'")
    assert house.ended(repair)["state"] == "unknown"
    assert house.network.sent(of(house, "p11") + ".*rebuild") == 1


@scenario
def test_a_doubled_order_installs_once(house):
    node = house.node("p12")
    house.peer.fault("p12", slow=2)
    house.network.fault("twice", of(house, "p12") + ".*rebuild")
    repair = house.repair(node, "reprovision")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("p12") == ["install"]


@scenario
def test_an_old_error_is_not_taken_for_this_orders(house):
    node = house.node("p13")
    if not REAL:
        house.peer.set("p13", last_error="Failed to set node power state to power off.")
    repair = house.repair(node, "reprovision")
    yield
    assert house.ended(repair)["state"] == "succeeded"


# ---------------------------------------------------------------- power
@scenario
def test_a_power_cycle_goes_through_ironic_as_an_off_and_an_on(house):
    node = house.node("c1")
    item = house.ask(node, "power_cycle")
    assert "Ironic" in item["plan"]["how"] and house.approve(item).status_code == 200
    yield
    assert house.ended(item["id"])["state"] == "succeeded"
    assert house.peer.effects("c1") == ["power off", "power on"]


@scenario
def test_failure_3_an_error_after_the_off_still_ends_with_an_on(house):
    node = house.node("c2")
    house.network.fault("error_500", of(house, "c2") + ".*power off")
    repair = house.repair(node, "power_cycle")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("c2") == ["power off", "power on"]


@scenario
def test_failure_4_power_that_is_accepted_and_ignored_is_never_a_success(house):
    node = house.node("c3")
    house.peer.fault("c3", ignore=True)
    repair = house.repair(node, "power_cycle")
    yield
    wait_for(lambda: house.read(repair)["state"] in ("rejoining", *ENDED))
    # The time to come back is over: what is stored says so.
    house.server.sql(f"UPDATE repair SET deadline_at = now() WHERE id = '{repair}' AND state = 'rejoining'")
    assert house.ended(repair)["state"] in ("unknown", "failed")
    assert house.peer.effects("c3") == []


# ---------------------------------------------------------------- removal
@scenario
def test_remove_retires_undeploys_and_ends_the_nodes_keys(house):
    node = house.node("x1")
    repair = house.repair(node, "remove")
    yield
    done = house.ended(repair)
    assert done["state"] == "succeeded", done
    assert house.peer.effects("x1") == ["undeploy"]
    machine = house.peer.read("x1")
    assert machine["retired"] and machine["maintenance"] and machine["provision_state"] in ("available", "manageable")
    row = house.server.sql(f"SELECT removed_at IS NOT NULL, schedulable, (SELECT count(*) FROM node_key k WHERE k.node_id = n.id AND k.revoked_at IS NULL),"
                           f" (SELECT count(*) FROM agent_token t WHERE t.node_id = n.id) FROM node n WHERE id = '{node.node_id}'")
    assert row == "t|f|0|0"
    assert house.server.api("GET", f"/api/v1/nodes/{node.node_id}").status_code == 404
    with pytest.raises(RuntimeError, match="401"):
        wait_for(lambda: node.report() and False)


@scenario
def test_a_lost_answer_to_the_undeployment_is_no_second_one(house):
    node = house.node("x2")
    house.network.fault("drop_reply", of(house, "x2") + ".*deleted")
    repair = house.repair(node, "remove")
    yield
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("x2") == ["undeploy"] and house.network.sent(of(house, "x2") + ".*deleted") == 1


# ---------------------------------------------------------------- failover
def pool(house, name):
    """state|reason|for which node"""
    return house.server.sql(f"SELECT s.state, s.reason, (SELECT n.name FROM node n WHERE n.id = s.node_id) FROM spare s WHERE s.machine = '{name}'").split("|")


def test_failover_without_a_spare_is_refused_with_the_reason(house, begun):
    node = house.node("f0")
    item = house.ask(node, "failover")
    assert item["plan"]["spare"]["available"] == 0 and item["can_approve"] is False and "No spare is left" in item["blocked"]
    assert "no_spare" in [reason["code"] for reason in item["plan"]["limits"]["why_not"]]
    answer = house.approve(item)
    assert answer.status_code == 409 and "No spare is left" in answer.json()["detail"]
    assert house.peer.effects("f0") == []


def test_failover_takes_a_spare_once_and_sets_the_broken_machine_aside(house, begun):
    """What is no spare in Ironic's eyes is left out: one in maintenance, one of another class, one that somebody else has claimed."""
    node = house.node("f1")
    house.spare("f1-maintained")
    house.peer.set("f1-maintained", maintenance=True)
    house.spare("f1-other", resource_class="storage")
    house.spare("f1-taken")
    house.peer.set("f1-taken", instance_uuid="7d1d0f6e-6f3e-4a55-9c1d-0d5b1c6f8a01")
    house.spare("f1-spare", node)
    former = house.server.sql(f"SELECT public_key FROM node_key WHERE node_id = '{node.node_id}' AND revoked_at IS NULL")
    item = house.ask(node, "failover")
    assert item["plan"]["spare"] == {"available": 4, "total": 4} and "stays behind" in item["plan"]["loses"] and "spare" in item["plan"]["how"]
    assert house.approve(item).status_code == 200
    done = house.ended(item["id"])
    assert done["state"] == "succeeded", (done, house.log(item["id"]))
    assert house.peer.effects("f1-spare") == ["install"] and house.peer.effects("f1") == ["power off"]
    aside = house.peer.read("f1")
    assert aside["retired"] and aside["maintenance"] and aside["provision_state"] == "active", "its disks are as they were"
    assert pool(house, "f1-spare") == ["claimed", "", "f1"]
    assert pool(house, "f1")[0] == "broken" and "set it aside" in pool(house, "f1")[1]
    for name, why in (("f1-maintained", "maintenance"), ("f1-other", "class"), ("f1-taken", "claimed")):
        assert pool(house, name)[0] == "broken" and why in pool(house, name)[1], pool(house, name)
        assert house.peer.effects(name) == []
    assert house.server.sql(f"SELECT machine FROM node_machine WHERE node_id = '{node.node_id}'") in ("f1-spare", house.peer.read("f1-spare")["uuid"])
    assert house.server.sql(f"SELECT count(*) FROM node_key WHERE node_id = '{node.node_id}' AND revoked_at IS NULL AND public_key = '{former}'") == "0"
    with pytest.raises(RuntimeError, match="401"):
        wait_for(lambda: node.report() and False)


def test_failover_whose_spare_cannot_be_installed_leaves_the_node_as_it_is(house, begun):
    node = house.node("f2")
    house.spare("f2-spare", node)
    house.peer.fault("f2-spare", no_install=True)
    repair = house.repair(node, "failover")
    done = house.ended(repair)
    assert done["state"] == "failed" and "deploy failed" in done["reason"], done
    assert house.peer.effects("f2") == [] and not house.peer.read("f2")["maintenance"]
    assert pool(house, "f2-spare")[0] == "broken" and "deploy failed" in pool(house, "f2-spare")[1]


def test_failover_goes_on_when_the_broken_machines_power_does_not_answer(house, begun):
    node = house.node("f3")
    house.spare("f3-spare", node)
    house.network.fault((400, {"error_message": json.dumps({"faultstring": "Failed to reach its controller"})}), of(house, "f3") + "/states/power", times=9)
    repair = house.repair(node, "failover")
    wait_for(lambda: "is not proved: 400" in house.log(repair))
    house.machines.remove(node)  # a person pulled its plug
    assert house.ended(repair)["state"] == "succeeded"
    assert house.peer.effects("f3-spare") == ["install"] and house.peer.read("f3")["maintenance"]


def test_two_failovers_never_take_one_spare(house, begun):
    nodes = [house.node(f"f4{letter}") for letter in "ab"]
    house.spare("f4-spare")
    items = [house.ask(node, "failover") for node in nodes]
    answers = [house.approve(item) for item in items]
    assert 200 in [answer.status_code for answer in answers]
    taken = wait_for(lambda: house.server.sql("SELECT repair_id FROM spare WHERE machine = 'f4-spare' AND state = 'claimed'"))
    loser = next(item for item in items if item["id"] != taken)
    if house.read(loser["id"])["state"] not in ("proposed",):
        done = house.ended(loser["id"])
        assert done["state"] == "failed" and "No spare is left" in done["reason"]
    wait_for(lambda: house.peer.effects("f4-spare") == ["install"])
    # Nobody comes back from this one; a person says so.
    wait_for(lambda: house.read(taken)["state"] == "rejoining")
    house.server.sql(f"UPDATE repair SET deadline_at = now() WHERE id = '{taken}'")
    assert house.ended(taken)["state"] == "unknown"


# ---------------------------------------------------------------- crashes: these stop the server, so they come last
CRASHES = [
    # action, part of the request, whether its effect comes late, what must be there in the end; * for a spare's
    ("reprovision", "rebuild", False, {"": ["install"]}),
    ("reprovision", "rebuild", True, {"": ["install"]}),
    ("failover", '"active"', False, {"": ["power off"], "*": ["install"]}),
    ("remove", '"deleted"', True, {"": ["undeploy"]}),
    ("failover", "instance_uuid", False, {"": ["power off"], "*": ["install"]}),
    ("failover", "power off", True, {"": ["power off"], "*": ["install"]}),
    ("power_cycle", "power off", False, {"": ["power off", "power on"]}),
    ("power_cycle", '"power on"', True, {"": ["power off", "power on"]}),
]
MORE = [
    ("reprovision", "extra/muster", True, {"": ["install"]}),
    ("failover", '"active"', True, {"": ["power off"], "*": ["install"]}),
    ("failover", "/retired", False, {"": ["power off"], "*": ["install"]}),
    ("failover", "/maintenance", True, {"": ["power off"], "*": ["install"]}),
    ("remove", "/retired", False, {"": ["undeploy"]}),
    ("remove", '"deleted"', False, {"": ["undeploy"]}),
    ("remove", "/maintenance", False, {"": ["undeploy"]}),
    ("power_cycle", "power off", True, {"": ["power off", "power on"]}),
]
AT_ONCE = 4  # as many orders as a server works on at the same time


@pytest.mark.parametrize("first", range(0, len(CRASHES + MORE) if REAL else len(CRASHES), AT_ONCE))
def test_a_server_that_dies_in_a_step_has_had_each_effect_once(house, first):
    """The request is in the network when the server dies: its answer is lost, or its effect comes late."""
    cases = (CRASHES + MORE)[first:first + AT_ONCE]
    held = []
    for number, (action, part, late, effects) in enumerate(cases, first):
        name = f"k{number}"
        node = house.node(name)
        if "*" in effects:
            house.spare(f"{name}-spare", node)
        hold = Hold(before=late)
        machine = f"{name}-spare" if part in ('"active"', "instance_uuid") else name
        house.network.fault(hold, of(house, machine) + ".*" + part)
        held.append((name, hold, effects, house.repair(node, action)))
    for _, hold, *_ in held:
        wait_for(hold.here.is_set)
    house.server.kill()
    house.server.start()
    # The dead server's leases are over; the orders are the next one's, and only then comes what was late.
    house.server.sql("UPDATE machine_order SET lease_until = now() WHERE NOT ended")
    for _, hold, *_ in held:
        hold.free.set()
    for name, hold, effects, repair in held:
        wait_for(hold.over.is_set)
        done = house.ended(repair)
        assert done["state"] == "succeeded", (done, house.log(repair))
        for suffix, wanted in effects.items():
            assert house.peer.effects(name + suffix.replace("*", "-spare")) == wanted
