"""An identity provider for tests: https with its own authority, and every fault on demand.

    with Idp() as idp:
        Musterd(outbound_allow=idp.authority)
        idp.config(name="idp")                   # what POST /issuers takes
        idp.token(sub="alice", groups=["ops"])   # signed by the newest key
        idp.rotate()                             # another key; the former is withdrawn
        idp.broken = True                        # connections are closed without an answer
        idp.answers["/jwks"] = (200, {}, b"<html>")
        idp.count("/jwks")                       # how often it was asked for
"""
import datetime
import ipaddress
import json
import os
import ssl
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import jose

DISCOVERY = "/.well-known/openid-configuration"


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject, key, issuer, issuer_key, *extensions):
    now = datetime.datetime.utcnow()
    builder = (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
               .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
               .not_valid_after(now + datetime.timedelta(days=30)))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())


def make_certificates():
    """(the authority's certificate, the server's certificate and key), as PEM."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = f"test authority {os.urandom(4).hex()}"
    ca = certificate(authority, ca_key, authority, ca_key, (x509.BasicConstraints(ca=True, path_length=None), True))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = certificate("localhost", key, authority, ca_key, (names, False))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return ca.public_bytes(serialization.Encoding.PEM).decode(), server.public_bytes(serialization.Encoding.PEM) + private


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that does not like us is what tests are about."""


class Idp:
    def __init__(self):
        self.ca, chain = make_certificates()
        self.asked, self.lock = Counter(), threading.Lock()
        self.answers, self.broken, self.gate = {}, False, None
        self.max_age = None
        self.serial = 0
        self.keys = [self.new_key()]
        with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as file:
            file.write(chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file.name)
        os.unlink(file.name)
        self.server = Quiet(("127.0.0.1", 0), self.handler(context))
        self.authority = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"https://{self.authority}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def handler(self, context):
        idp = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 20

            def setup(self):
                # In this connection's own thread: a slow client holds up nobody.
                self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_GET(self):
                idp.answer(self)

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, request):
        with self.lock:
            self.asked[request.path] += 1
        if self.gate is not None:
            self.gate.wait(30)
        if self.broken:
            request.close_connection = True
            return
        status, headers, body = self.answers.get(request.path) or self.document(request.path)
        request.send_response(status)
        for key, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(body)

    def document(self, path):
        documents = {DISCOVERY: self.discovery(), "/jwks": self.jwks()}
        if path not in documents:
            return 404, {}, b"{}"
        headers = {} if self.max_age is None else {"Cache-Control": f"max-age={self.max_age}"}
        return 200, headers, json.dumps(documents[path]).encode()

    def discovery(self, **more):
        return {"issuer": self.url, "jwks_uri": f"{self.url}/jwks", "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token", "id_token_signing_alg_values_supported": ["RS256", "ES256"],
                "scopes_supported": ["openid", "groups"], **more}

    # ------------------------------------------------------------ use
    def new_key(self, kind="P-256"):
        self.serial += 1
        return jose.Key(kind, f"k{self.serial}")

    def jwks(self):
        return {"keys": [key.jwk() for key in self.keys]}

    def rotate(self, kid=None):
        """Gives the former key."""
        former, key = self.keys[-1], self.new_key()
        key.kid = kid or key.kid
        self.keys = [key]
        return former

    def token(self, key=None, header=None, **claims):
        key = key or self.keys[-1]
        now = int(time.time())
        payload = {"iss": self.url, "aud": "muster", "sub": "alice", "iat": now - 1, "exp": now + 600, **claims}
        alg = {"RSA": "RS256", "P-256": "ES256"}[key.kind]
        return jose.make(key, {"alg": alg, "kid": key.kid, **(header or {})}, {k: v for k, v in payload.items() if v is not None})

    def config(self, **fields):
        return {"name": "idp", "issuer": self.url, "audiences": ["muster"], "ca_certificate": self.ca, "bearer": True,
                "groups_prefix": "idp:", **fields}

    def count(self, path="/jwks"):
        with self.lock:
            return self.asked[path]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        if self.gate is not None:
            self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
