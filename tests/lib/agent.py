"""An agent as tests need it: it speaks the protocol of docs/agent-protocol.md and keeps no spool.

    agent = Agent(server, "gpu-1").enroll()              # with a fresh join token
    answer = agent.report(streams=[stream(0, fault(1))]) # an httpx.Response; seq and nonce come by themselves
"""
import base64
import hashlib
import json
import secrets
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from waiting import wait_for


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def join_token(server, uses=1, host_name=None, cluster_id=None, org_id=None, seconds=3600):
    """A join token put into the database; gives its text."""
    token = "mjt_" + secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode()).hexdigest()
    host = f"'{host_name}'" if host_name else "NULL"
    server.sql("INSERT INTO join_token (org_id, id, cluster_id, token_hash, uses_left, host_name, created_by, expires_at) VALUES"
               f" ('{org_id or server.org_id}', '{uuid.uuid4()}', '{cluster_id or server.cluster_id}', '\\x{digest}', {uses},"
               f" {host}, 'test', now() + interval '{seconds} seconds')")
    return token


def fault(seq, check_id="gpu_lost", **fields):
    return {"seq": seq, "check_id": check_id, "severity": "critical", **fields}


def clear(seq, check_id="gpu_lost", **fields):
    return {"seq": seq, "check_id": check_id, "clear": True, **fields}


def stream(number, *events, **fields):
    return {"stream": number, "events": list(events), **fields}


class Agent:
    def __init__(self, server, name):
        self.server = server
        self.name = name
        self.key = Ed25519PrivateKey.generate()
        self.boot_id = str(uuid.uuid4())
        self.seq = 0
        self.nonce = None
        self.token = None
        self.node_id = None
        self.command_key = None

    @property
    def public_key(self):
        return b64(self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    # ------------------------------------------------------------ joining
    def try_enroll(self, token, **fields):
        body = {"token": token, "name": self.name, "public_key": self.public_key, "hardware": {"serial": "S1"}, **fields}
        return self.server.api("POST", "/agent/v1/enroll", body, token=False)

    def enroll(self, token=None, **where):
        answer = self.try_enroll(token or join_token(self.server, **where))
        assert answer.status_code == 201, answer.text
        body = answer.json()
        self.node_id, self.org_id, self.cluster_id = body["node_id"], body["org_id"], body["cluster_id"]
        self.token = body["access_token"]
        self.command_key = body["command_public_key"]
        return self

    def challenge(self):
        answer = self.server.api("POST", "/agent/v1/challenge", {"node_id": self.node_id}, token=False)
        assert answer.status_code == 200, answer.text
        return answer.json()["nonce"]

    def try_token(self, nonce, node_id=None, text=None):
        text = text or f"muster-agent-token\n{self.node_id}\n{nonce}"
        return self.server.api("POST", "/agent/v1/token", {"node_id": node_id or self.node_id, "nonce": nonce,
                                                           "signature": b64(self.key.sign(text.encode()))}, token=False)

    # ------------------------------------------------------------ reports
    def body(self, **fields):
        self.seq += 1
        self.nonce = b64(secrets.token_bytes(16))
        body = {"boot_id": self.boot_id, "seq": self.seq, "nonce": self.nonce, "ready": True, **fields}
        return {key: value for key, value in body.items() if value is not None}

    def send(self, body):
        """A body as it is: an object, or text."""
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.server.api("POST", "/agent/v1/report", token=self.token, content=text,
                               headers={"Content-Type": "application/json"})

    def report(self, **fields):
        return self.send(self.body(**fields))

    def report_ok(self, **fields):
        answer = self.report(**fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def commands(self, answer):
        """The payloads of an answer's commands, after their signatures were checked."""
        payloads = []
        for command in answer["commands"]:
            Ed25519PublicKey.from_public_bytes(unb64(self.command_key)).verify(unb64(command["signature"]),
                                                                               command["payload"].encode())
            payloads.append(json.loads(command["payload"]))
        return payloads

    # ------------------------------------------------------------ what the database says
    def one(self, sql):
        """A value about this node; {node} stands for its id in the text."""
        return self.server.sql(sql.replace("{node}", f"'{self.node_id}'"))

    def incident(self, check_id="gpu_lost"):
        """count, severity, state of the newest incident of a check."""
        row = self.one("SELECT count, severity, closed_at IS NULL FROM incident WHERE node_id = {node}"
                       f" AND check_id = '{check_id}' ORDER BY id DESC LIMIT 1")
        if not row:
            return None
        count, severity, is_open = row.split("|")
        return int(count), severity, is_open == "t"


__all__ = ["Agent", "InvalidSignature", "b64", "clear", "fault", "join_token", "stream", "unb64", "wait_for"]
