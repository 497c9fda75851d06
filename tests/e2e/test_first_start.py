"""From one command to a fault repaired: script/server, a real kernel line, approval, stand-in reboot, verification."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from ports import free_port  # noqa: E402

PATIENCE_SECONDS = 120
LINE = "<3>NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."


class Server:
    """script/server in a folder of its own."""

    def __init__(self, *options, data=None):
        self.data = Path(data or tempfile.mkdtemp(prefix="muster-e2e-"))
        os.chmod(self.data, 0o755)
        self.port = free_port()
        # Lines that an earlier run wrote into this kernel's log belong to a boot before.
        boot_id = self.data / "agent" / "boot_id"
        if not boot_id.exists():
            boot_id.parent.mkdir()
            subprocess.run([ROOT / "script" / "reboot-stand-in", boot_id], check=True)
        self.log = open(self.data / "script.log", "w")
        # Whoever runs the tests in the background gave them an ignored SIGINT; a shell cannot trap what was ignored at its start.
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", "script/server", "--port", str(self.port), "--data", str(self.data), *options],
            cwd=ROOT, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)

    def output(self):
        return (self.data / "script.log").read_text()

    def wait_ready(self, seconds=600):
        wait_for(lambda: "Ctrl-C stops everything." in self.output() or self.process.poll() is not None, seconds, "ready")
        assert self.process.poll() is None, self.output() + self.logs()
        return self

    def logs(self):
        return "\n".join(f"--- {p.name}\n{p.read_text()[-3000:]}" for p in sorted(self.data.glob("*.log")))

    def token(self, name="admin"):
        return (self.data / f"{name}.token").read_text().strip()

    def api(self, method, path, body=None, token=None, headers=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token or self.token()}", "Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def items(self, path, **kwargs):
        status, body = self.api("GET", path, **kwargs)
        assert status == 200, (status, body)
        return body["items"]

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(PATIENCE_SECONDS)
        self.log.close()

    def remove(self):
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)


def processes_of(folder):
    """Of a start with this folder; those that end now are given the time to."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := subprocess.run(["pgrep", "-af", str(folder)], capture_output=True, text=True).stdout) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


@pytest.fixture(scope="module")
def server():
    running = Server()
    try:
        yield running.wait_ready()
    finally:
        running.remove()


def only_node(server):
    cluster = server.items("/clusters")[0]
    nodes = server.items(f"/clusters/{cluster['id']}/nodes")
    return nodes[0] if nodes else None


def healthy_node(server):
    return wait_for(lambda: (n := only_node(server)) and n["state"] == "healthy" and n, PATIENCE_SECONDS, "this machine is a healthy node")


def can_write_kmsg():
    """Tried, since root may be told yes and refused by the container."""
    try:
        os.close(os.open("/dev/kmsg", os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def test_this_machine_is_a_node_with_live_readings(server):
    node = healthy_node(server)
    assert node["name"] == socket.gethostname()
    assert node["mem_total_mib"] > 0
    first = node["seen_at"]
    wait_for(lambda: only_node(server)["seen_at"] > first, PATIENCE_SECONDS, "the next report")


@pytest.mark.skipif(not can_write_kmsg(), reason="/dev/kmsg is not writable: needs root on a machine that allows it")
def test_a_kernel_line_becomes_a_repair_that_is_approved_carried_out_and_verified(server):
    node = healthy_node(server)
    boot = server.api("GET", f"/nodes/{node['id']}")[1]["boot_id"]
    Path("/dev/kmsg").write_text(LINE + "\n")

    incident = wait_for(lambda: [i for i in server.items(f"/incidents?node_id={node['id']}&state=open") if i["check_id"] == "gpu_lost"], PATIENCE_SECONDS,
                        "an incident")[0]
    assert (incident["code"], incident["severity"], incident["action"], incident["device"]) == ("79", "critical", "reboot", "0000:3b:00")
    assert any("fallen off the bus" in line["text"] for line in incident["evidence"])
    assert only_node(server)["state"] in ("unhealthy", "healthy")
    wait_for(lambda: only_node(server)["state"] == "unhealthy", PATIENCE_SECONDS, "the node is unhealthy")

    summary = wait_for(lambda: server.items(f"/repairs?node_id={node['id']}&state=proposed"), PATIENCE_SECONDS, "a proposed repair")[0]
    repair = server.api("GET", f"/repairs/{summary['id']}")[1]
    assert repair["action"] == "reboot" and repair["can_approve"], repair
    assert repair["plan"]["evidence"][0]["incident_id"] == incident["id"]

    status, body = server.api("POST", f"/repairs/{repair['id']}/approve", {"plan_hash": repair["plan_hash"], "comment": "end to end"},
                              headers={"Idempotency-Key": str(uuid.uuid4())})
    assert status == 200, body
    done = wait_for(lambda: (r := server.api("GET", f"/repairs/{repair['id']}")[1])["ended_at"] and r, 2 * PATIENCE_SECONDS, "the repair ends")
    assert done["state"] == "succeeded", done
    assert [s["state"] for s in done["steps"]][-5:] == ["cordoning", "draining", "acting", "rejoining", "verifying"] or \
        {"acting", "rejoining", "verifying"} <= {s["state"] for s in done["steps"]}

    after = server.api("GET", f"/nodes/{node['id']}")[1]
    assert after["boot_id"] != boot and after["schedulable"]
    wait_for(lambda: only_node(server)["state"] == "healthy", PATIENCE_SECONDS, "healthy again")
    assert server.api("GET", f"/incidents/{incident['id']}")[1]["state"] == "closed"
    types = {e["type"] for e in server.items(f"/events?node_id={node['id']}&limit=200")}
    assert {"incident.opened", "repair.proposed", "repair.approved", "repair.succeeded", "incident.closed"} <= types


def test_a_sign_in_link_works_once(server):
    token = re.search(r"#token=([\w-]+)", server.output()).group(1)
    def sign_in():
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/session", method="POST",
                                         data=json.dumps({"token": token}).encode(),
                                         headers={"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{server.port}",
                                                  "Sec-Fetch-Site": "same-origin"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers.get("Set-Cookie", "")
        except urllib.error.HTTPError as error:
            return error.code, ""
    status, cookie = sign_in()
    assert status == 200 and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    assert sign_in()[0] == 401


def refusal(*options):
    done = subprocess.run(["script/server", *map(str, options)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip().count("\n") == 0, done.stderr
    return done.stderr


def test_a_taken_port_is_one_line(server, tmp_path):
    assert "is taken" in refusal("--port", server.port, "--data", tmp_path)


def test_a_folder_in_use_and_one_that_cannot_be_made_are_one_line(server):
    assert "already uses" in refusal("--port", free_port(), "--data", server.data)
    assert "cannot be written" in refusal("--port", free_port(), "--data", "/proc/muster")


def test_a_start_after_the_script_was_killed_takes_over_what_it_left_running():
    folder = Path(tempfile.mkdtemp(prefix="muster-e2e-")) / "a blank and \u00fcml\u00e4uts"
    folder.mkdir()
    os.chmod(folder.parent, 0o755)
    first = Server(data=folder).wait_ready()
    second = None
    try:
        node = healthy_node(first)
        first.process.kill()
        first.process.wait(PATIENCE_SECONDS)
        second = Server(data=folder).wait_ready()
        assert healthy_node(second)["id"] == node["id"]
        second.stop()
        assert not processes_of(folder), "the second start left processes behind"
    finally:
        (second or first).remove()
        shutil.rmtree(folder.parent, ignore_errors=True)


def test_a_second_start_goes_on_with_the_same_data():
    first = Server("--demo", "5").wait_ready()
    try:
        node = healthy_node(first)
        token = first.token()
        demo = first.token("demo")
        wait_for(lambda: len(first.items(f"/clusters/{first.items('/clusters', token=demo)[0]['id']}/nodes?state=healthy", token=demo)) == 5, PATIENCE_SECONDS,
                 "five simulated nodes")
        first.stop()
        assert not processes_of(first.data), "Ctrl-C left processes behind"
        second = Server(data=first.data)
        try:
            second.wait_ready()
            assert second.token() == token
            assert healthy_node(second)["id"] == node["id"]
        finally:
            second.stop()
    finally:
        first.remove()


@pytest.mark.parametrize("options, names", [(["--prot", "1"], "--prot"), (["--port", "x"], "x"), (["--port", "080"], "080"),
                                            (["--demo", "-1"], "-1"), (["--demo", "09"], "09"), (["--data"], "--data")])
def test_unknown_options_are_named(options, names):
    done = subprocess.run(["script/server", *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and names in done.stderr
    assert done.stderr.strip().count("\n") == 0, done.stderr
