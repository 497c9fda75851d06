"""The real muster-agent against fake hardware and a fake server."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fake_server import FakeServer  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
AGENT = BUILD / "muster-agent"
PROGRAMS = ROOT / "tests" / "fixtures" / "bin"
FAKE_NVML = ROOT / "build" / "tests" / "fixtures" / "nvml" / "libnvidia-ml.so.1"


class Node:
    """A machine in a folder: fake /proc, /sys and /dev, a state folder, and an agent that can be started."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.root = folder / "root"
        self.state = folder / "state"
        self.nvml = folder / "nvml"
        self.boot = folder / "boot_id"
        self.kmsg = self.root / "dev" / "kmsg"
        self.deny = folder / "deny"
        self.token = folder / "join.token"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "agent.log"
        self.process = None
        self.seq = 0
        self.make_tree()
        self.token.write_text(server.join_token)
        self.new_boot()
        self.config = {
            "server_url": server.url, "state_dir": self.state, "node_name": "gpu-17-03", "join_token_file": self.token,
            "boot_id_file": self.boot, "root": self.root, "nvml_library": FAKE_NVML, "deny_file": self.deny,
            "reboot_program": f"{ROOT}/tests/agent/act-reboot {folder}", "reset_gpu_program": f"/bin/sh {folder}/reset {{gpus}}",
            # Where a probe shall hang, a test says how long it may: no machine is so slow that one does by itself.
            "probe_timeout_seconds": 60, "log_level": "debug", "programs_path": self.bin, "dcgm_url": "",
        }

    def make_tree(self):
        files = {
            "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n",
            "proc/meminfo": "MemTotal:       2113536000 kB\nMemFree:        1000000000 kB\nMemAvailable:   2030348288 kB\n",
            "proc/uptime": "86400.00 1000.00\n",
            "proc/mounts": "/dev/nvme0n1p1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n10.0.0.5:/home /home nfs4 rw 0 0\n",
            "sys/class/net/eth0/statistics/rx_bytes": "1000000\n",
            "sys/class/net/eth0/statistics/tx_bytes": "500000\n",
            "sys/class/net/eth0/device/vendor": "0x15b3\n",
            "sys/class/net/lo/statistics/rx_bytes": "77\n",
            "sys/class/net/lo/statistics/tx_bytes": "77\n",
            "dev/kmsg": "",
        }
        for name, text in files.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one piece: the agent may read at any moment.
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text)
        fresh.rename(path)

    def new_boot(self, boot_id=None):
        self.boot_id = boot_id or str(uuid.uuid4())
        self.boot.write_text(self.boot_id + "\n")

    def fake_nvml(self, text):
        fresh = self.nvml.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.nvml)

    def program(self, name, answer="", mode="answer"):
        """A fake program: answer is the name of a sample, or the text itself; mode is answer, hang, fail or text-only."""
        sample = PROGRAMS / "samples" / answer
        text = sample.read_text() if answer and "\n" not in answer and sample.is_file() else answer
        for suffix, content in ((".answer", text), (".mode", mode)):
            fresh = self.bin / f"{name}{suffix}.new"
            fresh.write_text(content)
            fresh.rename(self.bin / f"{name}{suffix}")
        if not (self.bin / name).exists():
            shutil.copy(PROGRAMS / "fake-program", self.bin / name)

    def asked(self, name):
        """The arguments of each call of a fake program."""
        path = self.bin / f"{name}.asked"
        return path.read_text().splitlines() if path.exists() else []

    def kernel(self, *lines, priority=4):
        """Kernel lines, as /dev/kmsg would give them."""
        with open(self.kmsg, "a", encoding="utf-8") as file:
            for line in lines:
                self.seq += 1
                file.write(f"{priority},{self.seq},{int(time.monotonic() * 1e6)},-;{line}\n")
        return self.seq

    def options(self):
        return [f"--{key}={value}" for key, value in self.config.items()]

    def start(self, *extra):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER")}
        environment["MUSTER_FAKE_NVML"] = str(self.nvml)
        if not self.nvml.exists():
            self.fake_nvml("count 8\n")
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([AGENT, "run", "--config", "/dev/null", *self.options(), *extra], env=environment,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(90)
        self.process = None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def children(self):
        """Names of the agent's child processes."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        names = []
        for pid in path.read_text().split():
            try:
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:
                pass
        return names


@pytest.fixture
def server():
    running = FakeServer()
    yield running
    running.stop()


@pytest.fixture
def node(tmp_path, server, request):
    machine = Node(tmp_path, server)
    yield machine
    machine.stop()
    failed = getattr(request.node, "rep_call", None)
    if failed is not None and failed.failed and machine.log.exists():
        print(machine.log.read_text()[-6000:])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    setattr(item, "rep_" + outcome.get_result().when, outcome.get_result())
