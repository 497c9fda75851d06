"""The crash matrix: each step of each action, cut short in each way. The real server, the real agent behind a proxy, a Redfish controller.

What is counted is counted at the far end: runs of the agent's programs and changes of power. How a repair may end is the table ENDS.
MUSTER_CRASH_MATRIX=all plays every cell (the suite crash-matrix); otherwise a few of each kind.
"""
import http.client
import json
import os
import secrets
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).resolve().parent
for name in ("lib", "agent", "machines"):
    sys.path.insert(0, str(HERE.parent / name))
from conftest import Node  # noqa: E402
from controllers import Redfish  # noqa: E402
from fake_agent import join_token  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

pytestmark = pytest.mark.timeout(900)

LEASE_SECONDS = 4
# Steps at which a repair stands still until the test lets it go on.
STEPS = {"reset_gpu": ("approved", "draining", "ordered", "taken", "verifying"),
         "reboot": ("approved", "draining", "ordered", "taken", "verifying"),
         "power_cycle": ("approved", "draining", "ordered", "taken", "verifying")}
FAULTS = ("fail", "kill_server", "kill_agent", "stop_server", "twice", "late", "lost")

# (action or None, step or None, fault): how the repair may end. The first row that fits counts.
ENDS = [
    ("power_cycle", "ordered", "fail", {"failed"}),        # a definite refusal
    ("power_cycle", "taken", "fail", {"succeeded"}),       # an error after the effect is no second one
    (None, "taken", "fail", {"failed"}),                   # the agent's program failed, and it said so
    (None, None, "fail", {"failed", "succeeded"}),
    ("power_cycle", "ordered", "kill_server", {"unknown"}),  # the next server reads the power and sends nothing
    ("power_cycle", "ordered", "stop_server", {"unknown"}),  # the one that stood still finds its lease gone
    ("reset_gpu", "taken", "kill_agent", {"unknown", "failed"}),  # it began and cannot say how it ended
    ("reboot", "taken", "kill_agent", {"succeeded"}),      # the boot says it
    (None, None, None, {"succeeded"}),
]


def ends(action, step, fault):
    return next(states for a, s, f, states in ENDS if a in (None, action) and s in (None, step) and f in (None, fault))


def cells():
    every = [(action, step, fault) for action, steps in STEPS.items() for step in steps for fault in FAULTS
             # only what acts can fail
             if not (fault == "fail" and step not in ("ordered", "taken")) and not (fault == "fail" and step == "ordered" and action != "power_cycle")]
    if os.environ.get("MUSTER_CRASH_MATRIX") == "all":
        return every
    return [("reboot", "taken", "kill_agent"), ("power_cycle", "taken", "kill_server")]


class Proxy:
    """Between an agent and the servers. lose: answers to reports are swallowed; twice: each request goes out twice; open: nothing passes."""

    def __init__(self, server):
        self.target, self.mode = server, "pass"
        self.open = threading.Event()
        self.open.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                owner.open.wait(300)
                try:
                    for _ in range(2 if owner.mode == "twice" else 1):
                        status, headers, data = owner.forward(self.path, dict(self.headers), body)
                except (OSError, http.client.HTTPException):
                    self.close_connection = True
                    return
                if owner.mode == "lose" and self.path.endswith("/report"):
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """An agent that was killed leaves broken connections."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def forward(self, path, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=60)
        try:
            connection.request("POST", path, body, {k: v for k, v in headers.items() if k.lower() not in ("host", "connection")})
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def stop(self):
        self.open.set()
        self.http.shutdown()
        self.http.server_close()


class Machine(Node):
    """A real agent whose programs count, and stand still while a file `gate` is there."""

    def __init__(self, folder, name, server):
        self.proxy = Proxy(server)
        super().__init__(folder, SimpleNamespace(url=self.proxy.url, join_token=join_token(server)))
        self.name = name
        # cards of its own: one that fails in several nodes is another kind of fault
        self.fake_nvml(f"count 8\nserial {secrets.randbelow(10**8) * 8}\n")
        program = folder / "act"
        program.write_text("#!/bin/sh\n"
                           'cd "$(dirname "$0")" || exit 1\n'
                           ": >begun\n"
                           "while [ -e gate ]; do sleep 0.05; done\n"
                           "[ -e broken ] && exit 3\n"
                           "echo $$ >>effects\n"
                           '[ "$1" = reset ] && exit 0\n'
                           'echo "$(cat /proc/sys/kernel/random/uuid)" >boot.new\n'
                           'echo "kmsg_seq $(tail -n 1 root/dev/kmsg | cut -d, -f2)" >>boot.new\n'
                           "mv boot.new boot_id\n")
        program.chmod(0o755)
        self.config |= {"node_name": name, "reboot_program": str(program), "reset_gpu_program": f"{program} reset {{gpus}}",
                        "accept_user_kmsg": "true"}

    @property
    def effects(self):
        path = self.folder / "effects"
        return len(path.read_text().split()) if path.exists() else 0

    def gate(self, shut):
        if shut:
            (self.folder / "gate").write_text("")
        else:
            (self.folder / "gate").unlink(missing_ok=True)

    def breaks(self, action):
        self.kernel({"reset_gpu": "NVRM: Xid (PCI:0000:2b:00): 119, pid=1, name=x, Timeout waiting for RPC from GSP!",
                     "reboot": "NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus."}[action])


class House:
    def __init__(self, folder):
        self.folder = folder
        self.redfish = {f"m{i}": Redfish(folder / f"m{i}", serial="") for i in range(len(STEPS["power_cycle"]) * len(FAULTS))}
        self.free = list(self.redfish)
        path = folder / "executors.json"
        path.write_text(json.dumps({"machines": [
            {"org": "main", "cluster": "local", "node": name, "user": "muster", "password_file": str(machine.folder / "password"),
             "timeout_seconds": 30, **machine.target()} for name, machine in self.redfish.items()]}))
        self.settings = {"interval_seconds": 1, "loop_period_ms": 100, "executors_file": str(path), "command_within_seconds": 300,
                         "machine_rest_ms": 1500, "lease_seconds": LEASE_SECONDS, "drain_wait_seconds": 2, "settle_seconds": 0,
                         "boot_grace_seconds": 0}
        self.one = Musterd(**self.settings)
        self.one.start()
        self.one.sql(f"UPDATE cluster SET healthy_delay_seconds = 3, rejoin_within_seconds = 600 WHERE id = '{self.one.cluster_id}'")
        self.two = Musterd(pg=self.one.pg, init=False, keys_dir=str(self.one.folder / "keys"), **self.settings)
        self.two.admin, self.two.org_id, self.two.cluster_id = self.one.admin, self.one.org_id, self.one.cluster_id

    def stop(self):
        self.two.stop()
        self.one.stop()
        for machine in self.redfish.values():
            machine.stop()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    running = House(tmp_path_factory.mktemp("house"))
    yield running
    running.stop()


class Life(threading.Thread):
    """A machine that was powered on boots: another boot id, another agent."""

    def __init__(self, machine, controller):
        super().__init__(daemon=True)
        self.machine, self.controller, self.ended = machine, controller, threading.Event()

    def run(self):
        seen = 0
        while not self.ended.wait(0.05):
            effects = self.controller.effects
            if effects[seen:].count("power 1"):
                self.machine.stop(signal.SIGKILL)
                self.machine.new_boot()
                self.machine.boot.write_text(f"{self.machine.boot_id}\nkmsg_seq {self.machine.seq}\n")
                self.machine.start()
            seen = len(effects)


class Cell:
    def __init__(self, house, folder, action, step, fault):
        self.house, self.action, self.step, self.fault = house, action, step, fault
        self.server = house.one
        self.controller, self.life = None, None
        name = "n-" + secrets.token_hex(4)
        if action == "power_cycle":
            name = house.free.pop()
            self.controller = house.redfish[name]
        self.machine = Machine(folder, name, house.one)
        self.machine.start()
        self.node = wait_for(lambda: house.one.sql(f"SELECT id FROM node WHERE name = '{name}' AND state = 'healthy'"), 150)
        if self.controller:
            self.life = Life(self.machine, self.controller)
            self.life.start()

    def end(self):
        if self.life:
            self.life.ended.set()
            self.life.join()
        self.machine.gate(False)
        self.machine.stop(signal.SIGKILL)
        self.machine.proxy.stop()
        self.server.sql(f"UPDATE node SET removed_at = now() WHERE id = '{self.node}'")

    # ------------------------------------------------------------ seeing
    def repair(self):
        return self.server.api("GET", f"/api/v1/repairs/{self.id}").json()

    def state_is(self, *states):
        return wait_for(lambda: (now := self.repair())["state"] in states and now, 240, said=lambda: f"{states}: {self.repair()}")

    def command(self, condition):
        return self.server.sql(f"SELECT count(*) FROM command WHERE repair_id = '{self.id}' AND {condition}") == "1"

    @property
    def effects(self):
        if self.controller:
            return max(self.controller.effects.count("power 0"), self.controller.effects.count("power 1"))
        return self.machine.effects

    # ------------------------------------------------------------ going on until the step
    def begin(self):
        before = self.step in ("ordered", "taken")
        self.machine.gate(before)
        if self.controller and self.step == "ordered":
            self.controller.lock.acquire()  # it does not answer, so nothing was done to it yet
        if self.controller:
            self.id = self.ask()
        else:
            self.machine.breaks(self.action)
            self.id = self.proposed()
        repair = self.repair()
        assert repair["action"] == self.action, repair
        if not self.controller and self.step == "ordered":
            self.machine.proxy.mode = "lose"  # the order leaves the server and arrives nowhere
        answer = self.server.api("POST", f"/api/v1/repairs/{self.id}/approve", {"plan_hash": repair["plan_hash"]},
                                 headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status_code == 200, answer.text

    def ask(self):
        answer = self.server.api("POST", f"/api/v1/nodes/{self.node}/repairs", {"action": "power_cycle", "reason": "matrix"},
                                 headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def proposed(self):
        def look():
            items = self.server.api("GET", f"/api/v1/repairs?node_id={self.node}").json()["items"]
            return items and items[0]["state"] == "proposed" and items[0]["id"]
        return wait_for(look, 150)

    def reach(self):
        if self.step == "draining":
            self.state_is("draining", "acting")
        elif self.step == "ordered":
            wait_for(lambda: self.command("state = 'sent'"), 150)
        elif self.step == "taken" and self.controller:
            wait_for(lambda: not self.controller.on, 150)
        elif self.step == "taken":
            wait_for((self.machine.folder / "begun").exists, 150)
        elif self.step == "verifying":
            self.state_is("verifying", "succeeded")

    # ------------------------------------------------------------ what goes wrong
    def release(self):
        if self.controller and self.controller.lock.locked() and self.step == "ordered":
            self.controller.lock.release()
        if self.machine.proxy.mode == "lose" and self.fault != "lost":
            self.machine.proxy.mode = "pass"
        self.machine.gate(False)

    def break_it(self):
        getattr(self, self.fault)()

    def fail(self):
        if not self.controller:
            (self.machine.folder / "broken").write_text("")
        elif self.step == "ordered":
            self.controller.faults.add("refuse")
        else:
            self.controller.faults.add("after_500")
        self.release()

    def kill_server(self):
        self.server.kill()
        self.release()
        self.server.start()

    def kill_agent(self):
        self.machine.stop(signal.SIGKILL)
        self.release()
        self.machine.start()

    def stop_server(self):
        """It stands still until its lease is over and another one has looked, and then goes on as if nothing had been."""
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            self.server = self.machine.proxy.target = self.house.two
            self.house.two.start()
            if self.controller and self.step in ("ordered", "taken"):
                if self.step == "ordered":
                    self.controller.lock.release()
                wait_for(lambda: self.house.two.sql(f"SELECT lease_until < now() OR result <> '' FROM command WHERE repair_id = '{self.id}'") == "t")
                wait_for(lambda: self.repair()["state"] != "acting" or not self.command("result = ''"), 150)
        finally:
            self.house.one.process.send_signal(signal.SIGCONT)
        self.release()

    def twice(self):
        self.machine.proxy.mode = "twice"
        self.release()
        self.machine.proxy.mode = "twice"

    def late(self):
        """Nothing goes through for a while: what was said before arrives after what came later."""
        self.machine.proxy.open.clear()
        self.release()
        timer = threading.Timer(3, self.machine.proxy.open.set)
        timer.daemon = True
        timer.start()

    def lost(self):
        """The answers to some reports get lost, with whatever they carried."""
        self.machine.proxy.mode = "lose"
        self.release()
        have = self.server.sql(f"SELECT seq FROM node_latest WHERE node_id = '{self.node}'")
        wait_for(lambda: int(self.server.sql(f"SELECT seq FROM node_latest WHERE node_id = '{self.node}'")) != int(have), 150)
        self.machine.proxy.mode = "pass"


@pytest.mark.parametrize("action, step, fault", cells())
def test_R1_R2_R3_one_effect_at_most_and_a_declared_end(house, tmp_path, action, step, fault):
    allowed = ends(action, step, fault)
    cell = Cell(house, tmp_path, action, step, fault)
    try:
        cell.begin()
        cell.reach()
        cell.break_it()
        # unknown is an end only where nothing can be seen; elsewhere evidence settles it
        ended = cell.state_is("succeeded", "failed", "cancelled", "resolved", *({"unknown"} & allowed))
        assert ended["state"] in allowed, ended
        assert cell.effects <= 1
        assert cell.effects == 1 or ended["state"] != "succeeded"
        assert cell.server.sql(f"SELECT count(*) FROM command WHERE repair_id = '{cell.id}'") in ("0", "1")
        if cell.controller:
            assert cell.controller.on, "nothing is left off"
    finally:
        cell.release()
        cell.end()
        if house.two.process is not None:
            house.two.terminate()
