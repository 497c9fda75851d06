"""Agents that speak the real protocol (docs/agent-protocol.md) and do as a test says.

    agent = Agent(server, "gpu-01")          # joins
    agent.report()                           # one report; takes commands into agent.commands
    agent.xid79(); agent.report()            # an event with the next report
    with Beat(agent, other): ...             # both report by themselves, several times in an interval
"""
import base64
import http.client
import json
import os
import secrets
import threading
import time
import uuid
from datetime import datetime, timezone


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def join_token(server, uses=1, cluster_id=None, org_id=None):
    import hashlib
    token = "mjt_" + secrets.token_urlsafe(32)
    server.sql("INSERT INTO join_token (org_id, id, cluster_id, token_hash, uses_left, created_by, expires_at) VALUES"
               f" ('{org_id or server.org_id}', '{uuid.uuid4()}', '{cluster_id or server.cluster_id}',"
               f" '\\x{hashlib.sha256(token.encode()).hexdigest()}', {uses}, 'test', now() + interval '1 hour')")
    return token


class Agent:
    def __init__(self, server, name=None, token=None, gpus=8):
        self.server = server
        self.name = name or "n-" + secrets.token_hex(4)
        self.gpus = gpus
        self.boot_id = str(uuid.uuid4())
        self.seq = 0
        self.event_seq = {}
        self.events = []
        self.results = []
        self.commands = {}      # id -> payload, each once
        self.deliveries = 0     # commands in answers, repeats included
        self.acted = []         # ids of commands that had an effect here
        self.answer = None      # a function of (agent, payload), called once for each new command
        self.ready = True
        self.connection = None
        self.lock = threading.RLock()
        joined = self.post("/agent/v1/enroll", {"token": token or join_token(server), "name": self.name,
                                                "public_key": b64(os.urandom(32)), "hardware": {}}, bearer=False)
        self.node_id, self.bearer = joined["node_id"], joined["access_token"]

    # ------------------------------------------------------------ the wire
    def post(self, path, body, bearer=True):
        headers = {"Content-Type": "application/json"}
        if bearer:
            headers["Authorization"] = f"Bearer {self.bearer}"
        for attempt in (1, 2):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
                self.connection.request("POST", path, json.dumps(body), headers)
                answer = self.connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt == 2:
                    raise
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {data[:500]!r}")
        return json.loads(data)

    def report(self):
        with self.lock:
            return self._report()

    def _report(self):
        self.seq += 1
        streams = {}
        for stream, event in self.events:
            streams.setdefault(stream, []).append(event)
        body = {"boot_id": self.boot_id, "seq": self.seq, "sent_at": now(), "nonce": b64(os.urandom(16)), "ready": self.ready,
                "metrics": {"cpu_ratio": 0.3, "mem_used_mib": 1000, "mem_total_mib": 2000, "disk_ratio": 0.4, "net_rx_mbps": 1, "net_tx_mbps": 1},
                "gpus": {"util": [90] * self.gpus, "mem_mib": [100] * self.gpus, "mem_total_mib": [200] * self.gpus,
                         "temp_c": [60] * self.gpus, "power_w": [500] * self.gpus},
                "streams": [{"stream": stream, "events": events} for stream, events in sorted(streams.items())],
                "results": self.results}
        answer = self.post("/agent/v1/report", body)
        self.events, self.results = [], []
        for command in answer.get("commands") or []:
            payload = json.loads(command["payload"])
            self.deliveries += 1
            if payload["command_id"] not in self.commands:
                self.commands[payload["command_id"]] = payload
                if self.answer:
                    self.answer(self, payload)
        return answer

    # ------------------------------------------------------------ what happens to the machine
    def event(self, stream=0, **fields):
        with self.lock:
            seq = self.event_seq.get(stream, 0) + 1
            self.event_seq[stream] = seq
            self.events.append((stream, {"seq": seq, "at": now(), "severity": "critical", "action": "none", "node_fault": False,
                                         "clears": "person", "quiet_seconds": 0, "count": 1, "device": "", "code": "", **fields}))

    def xid79(self, device="0000:bb:00", action="reboot", code="79", **fields):
        self.event(check_id="gpu_lost", code=code, device=device, action=action, node_fault=True, clears="new_boot",
                   summary=f"GPU {device} fell off the bus (Xid {code})",
                   lines=[{"at": now(), "source": "kernel", "text": f"NVRM: Xid (PCI:{device}): {code}, GPU has fallen off the bus.",
                           "opened": True}], **fields)

    def boot(self, ready=True):
        with self.lock:
            self.boot_id = str(uuid.uuid4())
            self.event_seq, self.events = {}, []
            self.ready = ready

    def result(self, payload, state, detail=""):
        with self.lock:
            self.results.append({"command_id": payload["command_id"], "state": state, "detail": detail})


def reboots(agent, payload):
    """What a good agent does with a reboot: says that it begins, is away for a moment, comes back."""
    agent.acted.append(payload["command_id"])
    agent.result(payload, "accepted")
    agent._report()
    agent.boot_id = str(uuid.uuid4())
    agent.event_seq, agent.events = {}, []
    agent.result(payload, "done")


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Beat:
    """Reports of these agents, every `every` seconds, until the end of the block; a server that is away is tried again."""

    def __init__(self, *agents, every=0.2):
        self.agents = list(agents)
        self.every = every
        self.stopped = threading.Event()
        self.failures = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.stopped.is_set():
            begin = time.monotonic()
            for agent in self.agents:
                try:
                    agent.report()
                except (OSError, http.client.HTTPException):
                    pass
                except RuntimeError as error:
                    self.failures.append(str(error))
            self.stopped.wait(max(0, begin + self.every - time.monotonic()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
