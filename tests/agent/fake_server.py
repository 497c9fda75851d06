"""A server as the agent sees it: the protocol of docs/agent-protocol.md, with everything it received kept for tests."""

import base64
import hashlib
import json
import secrets
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from ports import free_port  # noqa: E402
from waiting import PATIENCE_SECONDS  # noqa: E402


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class FakeServer:
    def __init__(self, interval=0.3):
        self.interval = interval
        self.org_id, self.cluster_id, self.node_id = (str(uuid.uuid4()) for _ in range(3))
        self.command_key = Ed25519PrivateKey.generate()
        self.command_public = b64(self.command_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self.public_key = None
        self.join_token = "mjt_" + secrets.token_urlsafe(32)
        self.lock = threading.Condition(threading.RLock())
        self.reports = []  # bodies that were answered with 200
        self.tries = []  # (monotonic time, path, status)
        self.events = []  # (boot id, stream, seq, event), exactly once
        self.marks = {}  # (boot id, stream) -> highest seq
        self.holes = []  # numbers that were skipped
        self.tokens = set()
        self.token_life = 3600
        self.commands = []  # (function of the report -> payload dict, key) for the next answer
        self.answer_with = None  # a status to answer reports with instead of 200
        self.lose_answers = 0  # so many reports are taken, but their answer is cut off
        self.lose_after_order = 0  # the same, for the reports that follow an answer with an order
        self.refuse = None  # called with the report's body; a string is a 422
        self.always_order = None  # the id of an order that goes with each answer
        self.extra = {}  # more members of the answer
        self.settings = None  # the document that the agent should run
        self.settings_key = self.command_key
        self.settings_offers = 0
        self.enrolled = 0
        self.httpd = None
        self.port = free_port()  # its own also while it is away
        self.start()

    # ------------------------------------------------------------ life
    def start(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                outer.handle(self)

        ThreadingHTTPServer.allow_reuse_address = True
        ThreadingHTTPServer.daemon_threads = True
        self.httpd = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.httpd.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        if self.httpd:
            self.httpd.shutdown()
            self.httpd.server_close()
            self.httpd = None
            self.generation = object()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # ------------------------------------------------------------ requests
    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        if self.httpd is None:  # a kept connection of a server that is away
            request.close_connection = True
            return
        with self.lock:
            status, answer = self.dispatch(request, json.loads(body))
            self.tries.append((time.monotonic(), request.path, status))
            cut = request.path == "/agent/v1/report" and status == 200 and self.lose_answers > 0
            if cut:
                self.lose_answers -= 1
            elif status == 200 and answer.get("commands"):
                self.lose_answers, self.lose_after_order = self.lose_after_order, 0
            self.lock.notify_all()
        if cut:
            request.close_connection = True
            return
        text = json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def dispatch(self, request, body):
        route = {"/agent/v1/enroll": self.enroll, "/agent/v1/challenge": self.challenge, "/agent/v1/token": self.token,
                 "/agent/v1/report": self.report}[request.path]
        return route(body, request.headers.get("Authorization", ""))

    @staticmethod
    def problem(status, detail):
        return status, {"status": status, "title": "No", "detail": detail}

    def new_token(self):
        token = "mat_" + secrets.token_urlsafe(32)
        self.tokens.add(token)
        return {"access_token": token, "expires_in_seconds": self.token_life}

    def enroll(self, body, _):
        if body["token"] != self.join_token:
            return self.problem(401, "The join token is not valid.")
        if self.public_key not in (None, body["public_key"]):
            return self.problem(409, "The name is taken.")
        self.public_key = body["public_key"]
        self.enrolment = body
        self.enrolled += 1
        return 201, {"node_id": self.node_id, "cluster_id": self.cluster_id, "org_id": self.org_id, "generation": 1,
                     "command_public_key": self.command_public, "interval_seconds": self.interval, **self.new_token()}

    def challenge(self, body, _):
        if body["node_id"] != self.node_id:
            return self.problem(401, "No such node.")
        self.nonce = b64(secrets.token_bytes(32))
        return 200, {"nonce": self.nonce, "expires_in_seconds": 60}

    def token(self, body, _):
        key = Ed25519PublicKey.from_public_bytes(unb64(self.public_key))
        try:
            key.verify(unb64(body["signature"]), f"muster-agent-token\n{self.node_id}\n{body['nonce']}".encode())
        except InvalidSignature:
            return self.problem(401, "The signature is wrong.")
        return 200, self.new_token()

    def report(self, body, authorization):
        if authorization.removeprefix("Bearer ") not in self.tokens:
            return self.problem(401, "The access token is not valid.")
        if self.answer_with:
            return self.problem(self.answer_with, "Not now.")
        if self.refuse and (why := self.refuse(body)):
            return self.problem(422, why)
        accepted = 0
        for stream in body["streams"]:
            for event in stream["events"]:
                accepted += self.take_event(body["boot_id"], stream["stream"], event)
        body["received"] = time.monotonic()
        self.reports.append(body)
        if self.always_order:
            self.order("reboot", command_id=self.always_order)
        commands, self.commands = self.commands, []
        self.offer_settings(body)
        return 200, {"interval_seconds": self.interval, "accepted": accepted, "rejected": [], "reconnect": False,
                     "commands": [self.sign(make(body), key) for make, key in commands], "future_member": {"a": [1]}, **self.extra}

    def take_event(self, boot, stream, event):
        high = self.marks.get((boot, stream), 0)
        if event["seq"] <= high:
            return 0
        if event["seq"] != high + 1:
            self.holes.append((boot, stream, high, event["seq"]))
        self.marks[(boot, stream)] = event["seq"]
        self.events.append((boot, stream, event["seq"], event))
        return 1

    # ------------------------------------------------------------ settings
    def set_settings(self, **parts):
        with self.lock:
            self.settings = json.dumps(parts)
        return self.version()

    def version(self):
        return hashlib.sha256(self.settings.encode()).hexdigest()[:32]

    def offer_settings(self, body):
        """With each answer until the agent runs it or says that it cannot."""
        self.extra.pop("settings", None)
        if self.settings is not None and body.get("settings") is not None and self.version() not in (body["settings"], body.get("settings_refused")):
            signed = f"muster-settings\n{self.node_id}\n{body['nonce']}\n{self.settings}"
            self.extra["settings"] = {"document": self.settings, "signature": b64(self.settings_key.sign(signed.encode()))}
            self.settings_offers += 1

    def wait_settings(self):
        self.wait(lambda: self.reports and self.reports[-1].get("settings") == self.version())

    # ------------------------------------------------------------ commands
    @staticmethod
    def sign(payload, key):
        text = payload if isinstance(payload, str) else json.dumps(payload)
        return {"payload": text, "signature": b64(key.sign(text.encode()))}

    def order(self, action="reboot", key=None, **fields):
        """An order in the answer to the next report; fields replace members of its payload. Returns the command's id."""
        command_id = fields.pop("command_id", str(uuid.uuid4()))

        def make(report):
            payload = {"command_id": command_id, "org_id": self.org_id, "cluster_id": self.cluster_id, "node_id": self.node_id,
                       "epoch": [1, self.next_epoch()], "action": action, "args": {}, "boot_id": report["boot_id"],
                       "nonce": report["nonce"], "repair_no": 17}
            payload.update(fields)
            return payload

        with self.lock:
            self.commands.append((make, key or self.command_key))
        return command_id

    def next_epoch(self):
        self.epoch = getattr(self, "epoch", 0) + 1
        return self.epoch

    # ------------------------------------------------------------ waiting
    def wait(self, what, seconds=PATIENCE_SECONDS):
        """The first true value of what(), looked at after each request."""
        deadline = time.monotonic() + seconds
        with self.lock:
            while True:
                value = what()
                if value:
                    return value
                left = deadline - time.monotonic()
                assert left > 0, "it did not come true in time"
                self.lock.wait(min(left, 0.5))

    def wait_reports(self, n=1, seconds=PATIENCE_SECONDS):
        """n more reports; gives the last."""
        have = len(self.reports)
        self.wait(lambda: len(self.reports) >= have + n, seconds)
        return self.reports[have + n - 1]

    def found(self, check, **fields):
        return [e for _, _, _, e in self.events
                if e["check_id"] == check and all(e.get(k) == v for k, v in fields.items())]

    def wait_event(self, check, seconds=PATIENCE_SECONDS, **fields):
        return self.wait(lambda: self.found(check, **fields), seconds)[0]

    def results(self, command_id):
        return [r["state"] for report in self.reports for r in report.get("results", []) if r["command_id"] == command_id]

    def wait_result(self, command_id, state, seconds=PATIENCE_SECONDS):
        def look():
            return [r for report in self.reports for r in report.get("results", [])
                    if r["command_id"] == command_id and r["state"] == state]
        return self.wait(look, seconds)[0]

    def wait_collector(self, name, **fields):
        """The last state that was told, once it is this."""
        return self.wait(lambda: (told := self.collector(name)) and all(told[k] == v for k, v in fields.items()) and told)

    def wait_readings(self):
        """A report with the readings of all GPUs; gives it. The first probe may take longer than the first reports."""
        def look():
            for report in reversed(self.reports):
                gpus = report.get("gpus")
                if gpus and all(value is not None for value in gpus["util"]):
                    return report
            return None
        return self.wait(look)

    def collector(self, name):
        """The last state that was told."""
        told = [c for report in self.reports for c in report["collectors"] if c["name"] == name]
        return told[-1] if told else None
