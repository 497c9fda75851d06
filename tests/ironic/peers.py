"""Ironic for tests: a stub that answers as a real one was recorded to, a real one from Debian's packages, and a network between."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from ports import free_port  # noqa: E402
from waiting import wait_for  # noqa: E402

CLASS = "gpu-node"
VERSION = {"X-OpenStack-Ironic-API-Version": "1.82"}
FIELDS = ("uuid", "provision_state", "target_provision_state", "power_state", "target_power_state", "reservation", "maintenance", "fault",
          "retired", "protected", "instance_uuid", "resource_class", "provision_updated_at", "last_error", "extra")


class Served:
    """An HTTP server of a test: `answer(method, path, headers, body)` gives (status, object); None drops the connection."""

    def serve(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                length = int(self.headers.get("Content-Length") or 0)
                answer = owner.answer(self.command, self.path, self.headers, self.rfile.read(length) if length else b"")
                if answer is None:
                    self.close_connection = True
                    self.connection.close()
                    return
                data = b"" if answer[1] is None else answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = handle_one

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # who was cut off does not mind

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Hold:
    """A request that stays in the network until it is let go: before its effect (it comes late then), or after."""

    def __init__(self, before):
        self.before, self.here, self.free, self.over = before, threading.Event(), threading.Event(), threading.Event()

    def carry(self, forward):
        said = None if self.before else forward()
        self.here.set()
        self.free.wait(120)
        if self.before:
            forward()
        self.over.set()
        return said  # for a before: dropped


class Network(Served):
    """Carries requests to a peer; faults: (method, pattern of the path and body) -> what happens to the next such request."""

    def __init__(self, peer):
        self.peer, self.faults, self.requests, self.lock = peer, [], [], threading.Lock()
        self.serve()

    def fault(self, kind, pattern, times=1):
        """kind: drop_reply, drop_request, error_500, page_503, twice, a (status, object), or a Hold."""
        with self.lock:
            self.faults.append([re.compile(pattern), kind, times])

    def pop(self, line):
        with self.lock:
            self.requests.append(line)
            for fault in self.faults:
                if fault[2] > 0 and fault[0].search(line):
                    fault[2] -= 1
                    return fault[1]
        return None

    def sent(self, pattern):
        with self.lock:
            return len([line for line in self.requests if re.search(pattern, line)])

    def forward(self, method, path, headers, body):
        host = re.sub("^http://", "", self.peer.url)
        connection = http.client.HTTPConnection(host, timeout=60)
        kept = {k: v for k, v in headers.items() if k.lower() not in ("host", "connection", "content-length")}
        try:
            connection.request(method, path, body or None, kept)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return None
        finally:
            connection.close()

    def answer(self, method, path, headers, body):
        kind = self.pop(f"{method} {path} {body.decode(errors='replace')}")
        if kind == "drop_request":
            return None
        if isinstance(kind, tuple):
            return kind
        if isinstance(kind, Hold):
            return kind.carry(lambda: self.forward(method, path, headers, body))
        if kind == "page_503":
            return 503, b"<html>no server is available</html>"
        said = self.forward(method, path, headers, body)
        if kind == "twice":
            self.forward(method, path, headers, body)
        if kind == "drop_reply":
            return None
        return (500, {"error_message": json.dumps({"faultstring": "Internal"})}) if kind == "error_500" else said


def fault_body(text):
    return {"error_message": json.dumps({"faultstring": text, "faultcode": "Client", "debuginfo": None})}


class Stub(Served):
    """States, answers and texts as recorded from Ironic 21.4.4 (API 1.82). Work takes `delay` seconds."""

    real = False

    def __init__(self, _folder=None):
        self.machines, self.done, self.lock, self.delay = {}, {}, threading.RLock(), 0.05
        self.serve()

    def add(self, name, active=True, resource_class=CLASS):
        machine = dict.fromkeys(FIELDS)
        machine.update(uuid=str(uuid.uuid4()), name=name, provision_state="active" if active else "available", maintenance=False, retired=False,
                       protected=False, power_state="power on" if active else "power off", resource_class=resource_class, extra={},
                       provision_updated_at=stamp(), instance_uuid=str(uuid.uuid4()) if active else None, instance_info={})
        with self.lock:
            self.machines[name], self.done[name] = machine, []
        return machine["uuid"]

    def set(self, name, **fields):
        with self.lock:
            self.machines[name].update(fields)

    def fault(self, name, **faults):
        with self.lock:
            self.machines[name]["extra"]["fault"] = faults

    def read(self, name):
        with self.lock:
            return dict(self.machines[name])

    def effects(self, name):
        with self.lock:
            return list(self.done[name])

    # ------------------------------------------------------------ answers
    def find(self, key):
        return next((m for m in self.machines.values() if key in (m["uuid"], m["name"])), None)

    def answer(self, method, path, headers, body):
        if path == "/v1":
            return 200, {"id": "v1", "version": {"id": "v1", "status": "CURRENT", "min_version": "1.1", "version": "1.82"}}
        found = re.fullmatch(r"/v1/nodes/([^/?]+)([^?]*)(\?.*)?", path)
        if not found or headers.get("X-OpenStack-Ironic-API-Version") != "1.82":
            return 404, fault_body("Not found.")
        with self.lock:
            machine = self.find(found[1])
            if machine is None:
                return 404, fault_body(f"Node {found[1]} could not be found.")
            if method == "GET":
                return 200, {key: machine[key] for key in FIELDS}
            if machine["reservation"]:
                return 409, fault_body(f"Node {machine['uuid']} is locked by host muster-test, please retry after the current operation is completed.")
            return self.write(machine, method, found[2], json.loads(body))

    def write(self, machine, method, path, body):
        if method == "PATCH":
            return self.patch(machine, body)
        if path == "/maintenance":
            machine["maintenance"] = True
            return 202, None
        if path == "/states/power":
            machine["target_power_state"] = body["target"]
            return self.begin(machine, self.power, body["target"])
        return self.provision(machine, body["target"])

    def patch(self, machine, ops):
        for op in ops:
            if op["path"] == "/instance_uuid" and machine["instance_uuid"] not in (None, op["value"]):
                return 409, fault_body(f"Node {machine['uuid']} is associated with instance {machine['instance_uuid']}.")
            if op["path"] == "/retired" and machine["provision_state"] == "available":
                return 409, fault_body("Node in available state can not be retired.")
        for op in ops:
            *parents, last = op["path"].strip("/").split("/")
            target = machine
            for parent in parents:
                target = target[parent]
            target[last] = op["value"]
        return 200, {}

    def provision(self, machine, target):
        state, allowed = machine["provision_state"], {"rebuild": ("active", "deploy failed", "error"), "active": ("available", "deploy failed"),
                                                      "deleted": ("active", "deploy failed", "error")}
        if machine["protected"] and target in ("rebuild", "deleted"):
            return 403, fault_body(f"Node {machine['uuid']} is protected and cannot be undeployed, rebuilt or deleted.")
        if state not in allowed[target]:
            return 400, fault_body(f'The requested action "{target}" can not be performed on node "{machine["uuid"]}" while it is in state "{state}".')
        if machine["maintenance"] and target != "deleted":
            return 400, fault_body(f"The {target} operation can't be performed on node {machine['uuid']} because it's in maintenance mode.")
        if target == "deleted":
            machine.update(provision_state="deleting", target_provision_state="available", provision_updated_at=stamp())
            return self.begin(machine, self.undeploy, None)
        machine.update(provision_state="deploying", target_provision_state="active", provision_updated_at=stamp(), last_error=None)
        return self.begin(machine, self.install, None)

    # ------------------------------------------------------------ work
    def begin(self, machine, work, arg):
        machine["reservation"] = "muster-test"
        delay = max(self.delay, (machine["extra"].get("fault") or {}).get("slow", 0))
        threading.Timer(delay, self.finish, (machine, work, arg)).start()
        return 202, None

    def finish(self, machine, work, arg):
        with self.lock:
            work(machine, machine["extra"].get("fault") or {}, arg)
            machine["reservation"] = None

    def power(self, machine, faults, target):
        if target != machine["power_state"]:
            if not faults.get("ignore"):
                self.done[machine["name"]].append(target)
            machine["power_state"] = target
            machine["last_error"] = "the controller answered with an error" if faults.get("error_after") else None
        machine["target_power_state"] = None

    def install(self, machine, faults, _):
        if faults.get("no_install"):
            machine.update(provision_state="deploy failed", provision_updated_at=stamp(), last_error="the image was not there")
            return
        self.done[machine["name"]].append("install")
        machine.update(provision_state="active", target_provision_state=None, provision_updated_at=stamp(), power_state="power on")

    def undeploy(self, machine, _faults, __):
        self.done[machine["name"]].append("undeploy")
        machine.update(provision_state="available", target_provision_state=None, provision_updated_at=stamp(), power_state="power off",
                       instance_uuid=None)

    def crash(self):
        """As a conductor that was killed and is there again: what it worked on has failed."""
        with self.lock:
            for machine in self.machines.values():
                if machine["provision_state"] == "deploying":
                    machine.update(provision_state="deploy failed", provision_updated_at=stamp(), reservation=None,
                                   last_error="The deployment can't be resumed by conductor muster-test.")


def stamp():
    return datetime.now(timezone.utc).isoformat()


CONF = """[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = muster-test
my_ip = 127.0.0.1
state_path = {folder}
tempdir = {folder}
default_resource_class = gpu-node
log_file = {folder}/ironic.log
use_stderr = false
enabled_hardware_types = fake-hardware,muster-test
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake,muster-test
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake,noop
enabled_network_interfaces = noop
enabled_power_interfaces = fake,muster-test
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = noop,fake
enabled_vendor_interfaces = fake,no-vendor
[oslo_concurrency]
lock_path = {folder}
[database]
connection = sqlite:///{folder}/ironic.sqlite
[api]
host_ip = 127.0.0.1
port = {port}
api_workers = 1
[conductor]
automated_clean = false
sync_power_state_interval = 2
node_locked_retry_attempts = 2
node_locked_retry_interval = 1
heartbeat_interval = 2
heartbeat_timeout = 20
send_sensor_data = false
check_provision_state_interval = 2
[deploy]
http_root = {folder}
http_url = http://127.0.0.1:1
[pxe]
tftp_root = {folder}
tftp_master_path = {folder}/master
images_path = {folder}/images
instance_master_path = {folder}/images/master
[dhcp]
dhcp_provider = none
[inspector]
require_managed_boot = false
"""


class Real:
    """Debian's ironic-api and ironic-conductor as one process over SQLite, with machines that are files (driver/)."""

    real = True

    @staticmethod
    def missing():
        absent = [program for program in ("/usr/bin/ironic", "/usr/bin/ironic-dbsync") if not os.path.exists(program)]
        return f"{absent[0]} is not there (apt-get install --no-install-recommends ironic-api ironic-conductor)" if absent else None

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.conf = folder / "ironic.conf"
        self.conf.write_text(CONF.format(folder=folder, port=self.port))
        subprocess.run(["/usr/bin/ironic-dbsync", "--config-file", str(self.conf), "create_schema"], check=True, capture_output=True)
        self.start()

    def start(self):
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent / "driver"), "MACHINES": str(self.folder)}
        with open(self.folder / "out", "ab") as out:
            self.process = subprocess.Popen(["/usr/bin/ironic", "--config-file", str(self.conf)], env=env, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, start_new_session=True)
        wait_for(lambda: self.call("GET", "/v1/drivers/muster-test")[0] == 200, said=lambda: (self.folder / "out").read_text()[-2000:])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {**VERSION, "Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if data else None
        except OSError:
            return 0, None
        finally:
            connection.close()

    def wait_state(self, name, state):
        wait_for(lambda: (m := self.read(name))["provision_state"] == state and m["reservation"] is None, said=lambda: self.read(name))

    def to(self, name, target, state):
        status, body = self.call("PUT", f"/v1/nodes/{name}/states/provision", {"target": target})
        assert status == 202, body
        self.wait_state(name, state)

    def add(self, name, active=True, resource_class=CLASS):
        status, machine = self.call("POST", "/v1/nodes", {"name": name, "driver": "muster-test", "resource_class": resource_class})
        assert status == 201, machine
        self.to(name, "manage", "manageable")
        self.to(name, "provide", "available")
        if active:
            self.patch(name, ("/instance_uuid", str(uuid.uuid4())), ("/instance_info/image_source", "http://127.0.0.1:1/image"))
            self.to(name, "active", "active")
            (self.folder / f"{name}.effects").write_text("")
        return machine["uuid"]

    def patch(self, name, *pairs):
        ops = [{"op": "add", "path": path, "value": value} for path, value in pairs]
        wait_for(lambda: self.call("PATCH", f"/v1/nodes/{name}", ops)[0] == 200)

    def set(self, name, **fields):
        if fields.pop("maintenance", False):
            assert self.call("PUT", f"/v1/nodes/{name}/maintenance", {"reason": "a test"})[0] == 202
        if fields:
            self.patch(name, *((f"/{key}", value) for key, value in fields.items()))

    def fault(self, name, **faults):
        self.patch(name, ("/extra/fault", faults))

    def read(self, name):
        return self.call("GET", f"/v1/nodes/{name}?fields={','.join(FIELDS)}")[1]

    def effects(self, name):
        path = self.folder / f"{name}.effects"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def crash(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.start()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
