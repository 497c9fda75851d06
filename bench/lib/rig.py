"""What a measurement needs: a private PostgreSQL, musterd, a fleet, and CPU time from /proc."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))

from pg import PrivatePostgres, clean_environment  # noqa: E402

BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    """User + system time of one process, its finished children left out."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def tree(pid):
    found = [pid]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid:
                found += tree(int(entry.name))
    return found


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


class Rig:
    """One musterd over one private PostgreSQL with default durability and 512 MB of buffers."""

    def __init__(self, **config):
        self.config = {"log_level": "warning", "rate_credential_per_minute": 0, "rate_org_per_minute": 0, "rate_join_per_minute": 0,
                       **config}
        self.folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.musterd = None

    def __enter__(self):
        self.pg = PrivatePostgres(settings={"shared_buffers": "512MB", "max_wal_size": "4GB"})
        self.pg.start()
        lines = {"listen": f"127.0.0.1:{self.port}", "keys_dir": self.folder / "keys", "web_dir": ROOT / "web" / "dist", **self.config}
        lines |= {f"database_{role}": self.pg.conninfo(role) for role in ("app", "ingest", "loop", "migrate")}
        self.conf = self.folder / "musterd.conf"
        self.conf.write_text("".join(f"{k} = {v}\n" for k, v in lines.items()))
        self.run("migrate")
        self.run("init", "--org", "bench", "--project", "default", "--cluster", "bench", "--admin", "admin",
                 "--admin-token", str(self.folder / "token"), "--healthy-delay", "1")
        self.token = (self.folder / "token").read_text().strip()
        self.log = open(self.folder / "musterd.log", "w")
        self.musterd = subprocess.Popen([BUILD / "musterd", "serve", "--config", self.conf], stderr=self.log, env=clean_environment())
        self.wait(lambda: self.get("/readyz")[0] == 200, 30)
        self.cluster = self.api("GET", "/clusters")["items"][0]["id"]
        return self

    def __exit__(self, *_):
        self.musterd.terminate()
        self.musterd.wait(30)
        self.log.close()
        self.pg.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words):
        done = subprocess.run([BUILD / "musterd", words[0], "--config", self.conf, *words[1:]], capture_output=True, text=True, check=False,
                              env=clean_environment())
        if done.returncode:
            raise RuntimeError(f"musterd {words[0]}: {done.stderr}")
        return done.stdout

    @staticmethod
    def wait(condition, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"not within {seconds} s")

    def get(self, path, headers=None):
        request = urllib.request.Request(self.url + path, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def api(self, method, path, body=None):
        request = urllib.request.Request(f"{self.url}/api/v1{path}", method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or b"null")

    def join_token(self, uses):
        return self.api("POST", f"/clusters/{self.cluster}/join-tokens", {"uses": uses})["token"]

    def sim(self, nodes, interval, duration, *more, background=False):
        """muster-sim's summary, or the process when it runs in the background."""
        command = [BUILD / "muster-sim", "--server", self.url, "--token", self.join_token(nodes), "--nodes", str(nodes),
                   "--interval", str(interval), "--duration", str(duration), "--json", *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if background:
            return process
        out, err = process.communicate()
        if not out.strip():
            raise RuntimeError(f"muster-sim: {err}")
        return json.loads(out.strip().split("\n")[-1])

    def cpu(self):
        """(server, PostgreSQL) CPU seconds so far."""
        return cpu_seconds(self.musterd.pid), sum(cpu_seconds(p) for p in tree(self.pg.process.pid))


def wrk(url, connections=64, seconds=5, headers=(), script=None):
    """requests/s, p50 and p99 in ms, number of requests, errors."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *(x for h in headers for x in ("-H", h)),
               *(["-s", str(script)] if script else []), url]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}

    def latency(percent):
        value, name = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", out).groups()
        return float(value) * unit[name]

    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return {
        "per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
        "p50_ms": latency(50), "p99_ms": latency(99),
        "count": int(re.search(r"(\d+) requests in", out).group(1)),
        "errors": int(bad.group(1)) if bad else 0,
    }
