"""Identity providers that say what a test wants: https on one free port, with a certificate authority of its own.

    host = IdpHost()                              # host.authority, host.ca (PEM), host.port; until host.stop()
    idp = host.idp()                              # one of many: idp.url is https://localhost:PORT/NAME
    issuer = world.issuer(**idp.issuer())         # set up in Muster
    back = idp.authorize(location)                # what it sends the browser back with, for an authorization request
    idp.claims["groups"] = ["a"]                  # in the ID tokens to come
    idp.answer = lambda form, tokens: {...}       # replaces what the token endpoint answers

It checks PKCE, the client's secret and that codes and refresh tokens are used once. `idp.calls` counts by path.
"""
import base64
import collections
import hashlib
import http.server
import json
import secrets
import ssl
import tempfile
import threading
import time
import urllib.parse

import jose
from certs import Authority

CLIENT, SECRET = "muster", "s3cret/with:odd chars"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def log_message(self, *_):
        pass

    def serve(self, form):
        name = self.path.split("/")[1].split("?")[0]
        self.server.idps[name].serve(self, form)

    def do_GET(self):
        self.serve(None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.serve(dict(urllib.parse.parse_qsl(body.decode())))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that leaves is no news


class IdpHost:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.authority = Authority()
        self.ca = self.authority.pem
        chain, key = self.authority.issue(self.folder.name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.idps = {}
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def allow(self):
        """For the setting outbound_allow."""
        return f"localhost:{self.port}"

    def idp(self, **options):
        name = "t" + secrets.token_hex(6)
        made = FakeIdp(self, f"https://localhost:{self.port}/{name}", **options)
        self.server.idps[name] = made
        return made

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()


class FakeIdp:
    def __init__(self, host, url, client_secret=SECRET):
        self.ca, self.url, self.client_secret = host.ca, url, client_secret
        self.keys = [jose.Key("P-256", "k-" + secrets.token_hex(4))]
        self.sub = "u-" + secrets.token_hex(6)
        self.claims, self.header, self.discovery = {"groups": []}, {}, {}
        self.expires_in, self.down, self.answer = 300, False, None
        self.codes, self.refresh_tokens = {}, {}
        self.calls = collections.Counter()

    def issuer(self, **fields):
        """The body that sets it up."""
        given = {"issuer": self.url, "client_id": CLIENT, "ca_certificate": self.ca, **fields}
        if self.client_secret:
            given.setdefault("client_secret", self.client_secret)
        return given

    # ------------------------------------------------------------ what a browser does
    def authorize(self, location, **changes):
        """The query of the callback for an authorization request, with a fresh code; `changes` None = left out."""
        sent = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
        assert location.startswith(self.url + "/authorize?") and sent["response_type"] == "code", location
        assert sent["code_challenge_method"] == "S256" and "openid" in sent["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = sent
        back = {"code": code, "state": sent["state"], "iss": self.url, **changes}
        return urllib.parse.urlencode({key: value for key, value in back.items() if value is not None})

    # ------------------------------------------------------------ what it signs
    def token(self, typ=None, key=None, **claims):
        now = int(time.time())
        payload = {"iss": self.url, "sub": self.sub, "aud": CLIENT, "iat": now, "exp": now + 300, **self.claims, **claims}
        payload = {name: value for name, value in payload.items() if value is not None}
        key = key or self.keys[0]
        header = {"alg": "ES256", "kid": key.kid, **({"typ": typ} if typ else {}), **self.header}
        return jose.make(key, header, payload)

    def logout_token(self, **claims):
        event = {"http://schemas.openid.net/event/backchannel-logout": {}}
        plain = {name: None for name in self.claims}
        return self.token("logout+jwt", **{**plain, "events": event, "jti": secrets.token_hex(8), **claims})

    # ------------------------------------------------------------ what it answers
    def serve(self, handler, form):
        path = urllib.parse.urlsplit(handler.path).path.removeprefix(urllib.parse.urlsplit(self.url).path)
        self.calls[path] += 1
        if self.down:
            handler.close_connection = True
            return
        status, body = self.respond(path, form, handler.headers)
        data = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def respond(self, path, form, headers):
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "jwks_uri": self.url + "/jwks", "authorization_endpoint": self.url + "/authorize",
                         "token_endpoint": self.url + "/token", "end_session_endpoint": self.url + "/end",
                         "id_token_signing_alg_values_supported": ["RS256", "ES256"],
                         "response_types_supported": ["code"], "subject_types_supported": ["public"],
                         "code_challenge_methods_supported": ["S256"], "scopes_supported": ["openid", "email"],
                         "authorization_response_iss_parameter_supported": True, **self.discovery}
        if path == "/jwks":
            return 200, {"keys": [key.jwk(use="sig", alg="ES256") for key in self.keys]}
        if path == "/token" and form is not None:
            return self.redeem(form, headers)
        return 404, {"error": "not_found"}

    def redeem(self, form, headers):
        if not self.is_client(form, headers):
            return 401, {"error": "invalid_client"}
        nonce = None
        if form.get("grant_type") == "authorization_code":
            sent = self.codes.pop(form.get("code"), None)
            if sent is None or sent["redirect_uri"] != form.get("redirect_uri") or not self.verifies(sent, form):
                return 400, {"error": "invalid_grant"}
            nonce = sent["nonce"]
        elif self.refresh_tokens.pop(form.get("refresh_token"), None) is None:
            return 400, {"error": "invalid_grant"}
        refresh = secrets.token_urlsafe(24)
        self.refresh_tokens[refresh] = True
        tokens = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": self.expires_in,
                  "id_token": self.token(nonce=nonce, exp=int(time.time()) + max(self.expires_in, 60)), "refresh_token": refresh}
        if self.answer is not None:
            tokens = self.answer(form, tokens)
        return (tokens.pop("status", 200), tokens)

    def verifies(self, sent, form):
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        return jose.b64(digest) == sent["code_challenge"]

    def is_client(self, form, headers):
        if not self.client_secret:
            return form.get("client_id") == CLIENT and "client_secret" not in form
        if "client_secret" in form:
            return (form.get("client_id"), form["client_secret"]) == (CLIENT, self.client_secret)
        scheme, _, text = headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return False
        name, _, secret = base64.b64decode(text).decode().partition(":")
        return (urllib.parse.unquote(name), urllib.parse.unquote(secret)) == (CLIENT, self.client_secret)
