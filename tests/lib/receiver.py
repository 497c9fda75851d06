"""What a webhook is sent to: https on a free port, with a certificate authority of its own; it counts what comes.

    with Receivers() as host:                     # host.allow for outbound_allow, host.ca (PEM)
        receiver = host.receiver()                # receiver.url
        receiver.status = 500                     # what it answers from now on; a list is answered one by one
        receiver.calls                            # [Call]: id, timestamp, signatures, body (bytes), json
        receiver.gate.clear()                     # it keeps its answers back until gate.set()
        assert verify(secret, receiver.calls[0])
"""
import base64
import hashlib
import hmac
import http.server
import json
import secrets
import ssl
import tempfile
import threading
from types import SimpleNamespace

from certs import Authority


def verify(secret, call):
    """As Standard Webhooks says it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = hmac.new(key, f"{call.id}.{call.timestamp}.".encode() + call.body, hashlib.sha256).digest()
    return any(hmac.compare_digest(b"v1," + base64.b64encode(wanted), one.encode()) for one in call.signatures)


def sign(secret, id, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.receivers[self.path.split("/")[1].split("?")[0]].take(self, body)

    def do_GET(self):
        self.server.receivers[self.path.split("/")[1].split("?")[0]].look(self)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that leaves is no news


class Receivers:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        authority = Authority()
        self.ca = authority.pem
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue(self.folder.name))
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.receivers = {}
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.allow = f"localhost:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def receiver(self):
        name = "r" + secrets.token_hex(6)
        made = Receiver(f"https://localhost:{self.port}/{name}?key=1")
        self.server.receivers[name] = made
        return made

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for receiver in self.server.receivers.values():
            receiver.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()


class Receiver:
    def __init__(self, url):
        self.url, self.status, self.headers, self.drop = url, 204, {}, False
        self.answer, self.state = b"", (404, b"{}")
        self.calls, self.looks, self.gate, self.lock = [], [], threading.Event(), threading.Lock()
        self.now = self.most = 0  # calls at once
        self.gate.set()

    def take(self, request, body):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.calls.append(SimpleNamespace(id=request.headers["webhook-id"], timestamp=request.headers["webhook-timestamp"],
                                              signatures=request.headers["webhook-signature"].split(), headers=dict(request.headers),
                                              body=body, json=json.loads(body)))
            status = self.status.pop(0) if isinstance(self.status, list) else self.status
        self.gate.wait(60)
        with self.lock:
            self.now -= 1
        if self.drop:
            request.close_connection = True
            return
        self.respond(request, status, self.answer)

    def look(self, request):
        with self.lock:
            self.looks.append(request.path)
        self.respond(request, *self.state)

    def respond(self, request, status, body):
        request.send_response(status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def of(self, kind):
        with self.lock:
            return [call for call in self.calls if call.json["type"] == kind]
