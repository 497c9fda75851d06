"""Hours in minutes: under a fleet, readers, streams, strangers and lost connections, memory and descriptors stay flat.

SOAK_SECONDS (default 600) is how long; the first third warms up. What counts is the second third against the last:
whoever loses memory or descriptors has lost more of them later.
"""
import contextlib
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import join_token  # noqa: E402
from machine import machine  # noqa: E402
from server import Musterd  # noqa: E402
from waiting import wait_for  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
SIM = Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "muster-sim"
SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
NODES = 200
NOISE_LINES = 4500      # a minute, from one node
REPEATS = 800_000
# An allocator keeps and returns pages as it likes: less than this is not seen. A leak of 1 KB a request would show
# hundreds of MiB over the run.
SLACK_KIB = 4096
# Connections come and go while a sample is taken.
SLACK_DESCRIPTORS = 24

pytestmark = pytest.mark.timeout(SECONDS + 2400)


class Figures(threading.Thread):
    """Takes a process's memory and descriptors every half second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.begun = time.monotonic()
        self.samples = []
        self.stopping = threading.Event()

    def sample(self):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return int(fields["VmRSS"].split()[0]), len(os.listdir(f"/proc/{self.pid}/fd"))

    def run(self):
        while not self.stopping.wait(0.5):
            with contextlib.suppress(OSError, KeyError):
                self.samples.append((time.monotonic() - self.begun, *self.sample()))

    def third(self, number, column):
        """The median of one third of the run."""
        low, high = SECONDS * number / 3, SECONDS * (number + 1) / 3
        return statistics.median(sample[column] for sample in self.samples if low <= sample[0] < high)

    def check_flat(self, who):
        self.stopping.set()
        self.join()
        memory, descriptors = [self.third(n, 1) for n in (1, 2)], [self.third(n, 2) for n in (1, 2)]
        print(f"  {who}: {memory[0] / 1024:.1f} -> {memory[1] / 1024:.1f} MiB,"
              f" {descriptors[0]:.0f} -> {descriptors[1]:.0f} descriptors, {len(self.samples)} samples")
        assert memory[1] <= memory[0] + SLACK_KIB, f"{who} grows: {memory[0]} -> {memory[1]} KiB"
        assert descriptors[1] <= descriptors[0] + SLACK_DESCRIPTORS, f"{who} loses descriptors: {descriptors}"


class Caller(threading.Thread):
    """Does a thing again and again until it is told to stop; `done` is how often."""

    def __init__(self, what):
        super().__init__(daemon=True)
        self.what, self.done, self.failures = what, 0, []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            try:
                self.what()
                self.done += 1
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test shows it
                self.failures.append(repr(failure))
                if len(self.failures) > 20:
                    return


def reader(server):
    """All pages that a console asks for, with one connection kept."""
    client = httpx.Client(timeout=60, trust_env=False, headers={"Authorization": f"Bearer {server.admin}"})
    root = f"/api/v1/clusters/{server.cluster_id}"
    paths = ["/api/v1/me", root, f"{root}/overview", f"{root}/nodes?limit=100", f"{root}/grid", f"{root}/history", f"{root}/events?limit=100",
             "/api/v1/incidents?limit=100", "/api/v1/repairs?limit=100", "/api/v1/audit?limit=100", "/api/v1/checks"]

    def read():
        for path in paths:
            answer = client.get(server.url(path))
            assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:200]}"
    return read


def writer(server):
    """Things are made, changed and refused."""
    client = httpx.Client(timeout=60, trust_env=False, headers={"Authorization": f"Bearer {server.admin}"})

    def write():
        name = "m-" + uuid.uuid4().hex[:12]
        made = client.post(server.url("/api/v1/tokens"), json={"name": name, "role": "viewer"}, headers={"Idempotency-Key": name})
        assert made.status_code == 201, made.text
        assert client.post(server.url("/api/v1/tokens"), json={"role": 7}).status_code == 422
        gone = client.delete(server.url(f"/api/v1/tokens/{made.json()['id']}"))
        assert gone.status_code in (200, 204), gone.text
    return write


def stranger(server):
    """Connections with garbage, half requests, wrong tokens and bodies that are too deep or too long."""
    rng = random.Random(1)
    texts = [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x00\xee", b"POST /agent/v1/report HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n{",
             b"GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mst_" + b"x" * 43 + b"\r\n\r\n",
             b"POST /api/v1/projects HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n\r\n" + b"[" * 2000,
             b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"]

    def knock():
        with contextlib.suppress(OSError), server.socket() as connection:
            connection.sendall(rng.choice(texts))
            connection.settimeout(0.2)
            with contextlib.suppress(socket.timeout):
                connection.recv(4096)
    return knock


def listener(server):
    """A stream of events that is opened, read for a moment and dropped."""
    head = (f"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.admin}\r\n"
            "Accept: text/event-stream\r\n\r\n").encode()

    def listen():
        with server.socket() as connection:
            connection.sendall(head)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            connection.settimeout(0.3)
            with contextlib.suppress(socket.timeout):
                while connection.recv(65536):
                    pass
    return listen


@pytest.fixture
def server():
    with Musterd(log_level="warning") as running:
        yield running


@contextlib.contextmanager
def fleet(server):
    """Simulated nodes that report each second and break often."""
    command = [SIM, "--server", server.url(), "--token", join_token(server, uses=NODES), "--nodes", str(NODES),
               "--interval", "1", "--duration", "0", "--demo"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def node(server, tmp_path):
    one = machine(tmp_path, server, join_token(server), "soaked")
    yield one
    one.stop()


def test_memory_and_descriptors_stay_flat(server, node):
    with fleet(server) as simulated:
        node.start()
        wait_for(lambda: int(server.sql("SELECT count(*) FROM node_latest WHERE seen_at IS NOT NULL")) > NODES)
        watched = {"musterd": Figures(server.process.pid), "muster-agent": Figures(node.process.pid)}
        callers = {what.__name__: Caller(what(server)) for what in (reader, writer, stranger, listener)}
        callers["kernel"] = Caller(lambda: (node.kernel("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=python, Ch 00000008"),
                                            time.sleep(0.05)))
        for thread in (*watched.values(), *callers.values()):
            thread.start()
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends and server.process.poll() is None and node.alive() and simulated.poll() is None:
            time.sleep(0.5)
        for caller in callers.values():
            caller.stopping.set()
        for name, caller in callers.items():
            caller.join()
            print(f"  {name}: {caller.done} times")
        assert simulated.poll() is None and server.process.poll() is None and node.alive()
        assert not [failure for caller in callers.values() for failure in caller.failures[:3]]
        assert all(caller.done for caller in callers.values())
    for who, figures in watched.items():
        figures.check_flat(who)


def cpu_seconds(pid):
    """Of a process, with its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def incidents(server, where):
    """(code, count) of each incident."""
    rows = server.sql(f"SELECT code, count FROM incident WHERE {where} ORDER BY id").splitlines()
    return [(code, int(count)) for code, count in (row.split("|") for row in rows)]


def xid(gpu, code, n):
    return f"NVRM: Xid (PCI:0000:{0x10 + gpu:02x}:00): {code}, pid={n % 30000}, name=python, Ch {n % 256:08x}"


def test_a_minute_of_noise_hides_nothing_and_folds(server, node):
    """4,500 lines of users' bugs in a minute, and between them a fault on each of eight GPUs."""
    node.start()
    wait_for(lambda: server.sql("SELECT count(*) FROM node_latest WHERE seen_at IS NOT NULL") == "1")
    used, begun = cpu_seconds(node.process.pid), time.monotonic()
    faults = {NOISE_LINES * (2 * gpu + 1) // 16: gpu for gpu in range(8)}
    for n in range(NOISE_LINES):
        lines = [xid(n % 8, (13, 31, 43)[n % 3], n)]
        if n in faults:
            lines.append(f"NVRM: Xid (PCI:0000:{0x10 + faults[n]:02x}:00): 79, pid=1, name=python, GPU has fallen off the bus.")
        node.kernel(*lines)
        time.sleep(max(0, begun + 60 * n / NOISE_LINES - time.monotonic()))
    wait_for(lambda: sum(count for _, count in incidents(server, "code IN ('13', '31', '43')")) >= NOISE_LINES, seconds=300)
    share = (cpu_seconds(node.process.pid) - used) / (time.monotonic() - begun)
    noise, real = incidents(server, "code IN ('13', '31', '43')"), incidents(server, "code = '79'")
    print(f"  noise: {len(noise)} incidents of {sum(count for _, count in noise)} lines, {len(real)} faults,"
          f" {share * 100:.2f} % of a core, {Figures(node.process.pid).sample()[0] / 1024:.1f} MiB")
    assert sum(count for _, count in noise) == NOISE_LINES and len(noise) == 24
    assert len(real) == 8


def test_one_line_800000_times_is_one_incident(server, node):
    """The agent reads about a thousand lines a second, so that a storm costs the node's work nothing: this takes its time."""
    node.start()
    wait_for(lambda: server.sql("SELECT count(*) FROM node_latest WHERE seen_at IS NOT NULL") == "1")
    begun = time.monotonic()
    for _ in range(0, REPEATS, 8000):
        node.kernel(*[xid(3, 31, 1)] * 8000)
    wait_for(lambda: sum(count for _, count in incidents(server, "code = '31'")) >= REPEATS, seconds=2400)
    print(f"  repeats: {time.monotonic() - begun:.0f} s, {Figures(node.process.pid).sample()[0] / 1024:.1f} MiB")
    assert incidents(server, "code = '31'") == [("31", REPEATS)]
    assert Figures(node.process.pid).sample()[0] <= 20 * 1024
