"""Glewlwyd (Debian), a second provider written apart from the first: TLS on a free port, SQLite in the test's folder."""
import gzip
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.parse
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SCHEMA = Path("/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz")
PACKAGES = "apt-get install --no-install-recommends dbconfig-sqlite3 glewlwyd"
READY_SECONDS = 60
PORT_TRIES = 5
CONFIG = """
port={port}
bind_address="127.0.0.1"
external_url="{url}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_domain="localhost"
cookie_secure=1
session_expiration=86400
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
use_secure_connection=true
secure_connection_key_file="{key}"
secure_connection_pem_file="{certificate}"
hash_algorithm="SHA512"
database = {{ type = "sqlite3" path = "{database}" }};
"""
# Who is in which group lies in the only free property of its database's people.
PLUGIN = {
    "jwt-type": "rsa", "jwt-key-size": "256", "access-token-duration": 300, "refresh-token-duration": 86400, "code-duration": 600,
    "refresh-token-rolling": True, "refresh-token-one-use": "always", "allow-non-oidc": False, "auth-type-code-enabled": True, "auth-type-token-enabled": False,
    "auth-type-id-token-enabled": True, "auth-type-none-enabled": False, "auth-type-password-enabled": False,
    "auth-type-client-enabled": False, "auth-type-refresh-enabled": True, "pkce-allowed": True, "pkce-method-plain-allowed": False,
    "jwks-show": True, "session-management-allowed": True, "back-channel-logout-allowed": True, "session-cookie-name": "GLEWLWYD2_OIDC_SID",
    "session-cookie-expiration": 86400, "claims": [{"name": "groups", "user-property": "email", "type": "string", "mandatory": True,
                                                    "scope": ["openid"]}],
}


def missing():
    """What is not there, or None."""
    return None if shutil.which("glewlwyd") and SCHEMA.exists() else f"glewlwyd is not installed ({PACKAGES})"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Glewlwyd:
    def __init__(self, authority, folder):
        self.folder = Path(folder)
        self.trust = self.folder / "ca.pem"
        self.trust.write_text(authority.pem)
        self.certificate, self.key = authority.issue(folder, "glewlwyd")
        self.database = self.folder / "glewlwyd.db"
        sqlite3.connect(self.database).executescript(gzip.open(SCHEMA, "rt").read())
        self.process = None
        self.cookies = {}  # of who signed in, for leaving
        for _ in range(PORT_TRIES):
            self.port = free_port()
            self.url = f"https://localhost:{self.port}"
            self.issuer = f"{self.url}/api/oidc"
            if self.start():
                break
        self.admin = self.session("admin", "password")
        self.post(self.admin, "/api/mod/plugin/", **self.plugin())

    def plugin(self):
        return {"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": {**PLUGIN, **self.signing_key(), "iss": self.issuer}}

    def new_key(self):
        """It signs with another key from now on and publishes that one only."""
        answer = self.admin.put("/api/mod/plugin/oidc", json=self.plugin())
        assert answer.status_code == 200, answer.text
        answer = self.admin.put("/api/mod/plugin/oidc/reset")
        assert answer.status_code == 200, answer.text

    def key_ids(self):
        answer = httpx.get(f"{self.issuer}/jwks", verify=str(self.trust), trust_env=False)
        return {(key.get("kid"), key["n"]) for key in answer.json()["keys"]}

    @staticmethod
    def signing_key():
        private = rsa.generate_private_key(65537, 2048)
        return {"key": private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                             serialization.NoEncryption()).decode(),
                "cert": private.public_key().public_bytes(serialization.Encoding.PEM,
                                                          serialization.PublicFormat.SubjectPublicKeyInfo).decode()}

    def start(self):
        """False when it ended: somebody else has the port."""
        config = self.folder / "glewlwyd.conf"
        config.write_text(CONFIG.format(port=self.port, url=self.url, key=self.key, certificate=self.certificate, database=self.database))
        with open(self.folder / "glewlwyd.log", "ab") as log:
            self.process = subprocess.Popen(["glewlwyd", f"--config-file={config}"], stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                httpx.get(self.url + "/config", verify=str(self.trust), trust_env=False)
                return True
            except httpx.TransportError:
                time.sleep(0.05)
        return False

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # ------------------------------------------------------------ its own API
    def session(self, name, password):
        """A client with a cookie; its jar does not send one for a host without a dot."""
        client = httpx.Client(base_url=self.url, verify=str(self.trust), trust_env=False, timeout=30)
        answer = client.post("/api/auth/", json={"username": name, "password": password})
        assert answer.status_code == 200, answer.text
        client.headers["Cookie"] = answer.headers["set-cookie"].split(";")[0]
        return client

    @staticmethod
    def post(client, path, **body):
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text

    def add_client(self, name, secret, redirect_uri):
        self.post(self.admin, "/api/client", client_id=name, name=name, confidential=True, client_secret=secret, enabled=True,
                  redirect_uri=[redirect_uri], authorization_type=["code", "refresh_token"], scope=["openid"],
                  token_endpoint_auth_method=["client_secret_basic", "client_secret_post"])

    def tell_logouts(self, name, uri):
        """The client is told of the end of sessions there."""
        answer = self.admin.get(f"/api/client/{name}")
        answer = self.admin.put(f"/api/client/{name}", json={**answer.json(), "backchannel_logout_uri": uri, "backchannel_logout_session_required": "true"})
        assert answer.status_code == 200, answer.text

    def leave(self, name, sid):
        """What its own page does when a person confirms the end of a session."""
        answer = httpx.delete(f"{self.issuer}/session/{sid}/", headers={"Cookie": self.cookies[name]}, verify=str(self.trust), trust_env=False)
        assert answer.status_code == 200, answer.text

    def add_user(self, name, group):
        self.post(self.admin, "/api/user", username=name, name=name, email=group, password=f"{name}-password", scope=["openid"], enabled=True)

    def set_group(self, name, group):
        answer = self.admin.put(f"/api/user/{name}", json={"name": name, "email": group, "scope": ["openid"], "enabled": True})
        assert answer.status_code == 200, answer.text

    def authorize(self, name, client_id, location):
        """Where somebody who is signed in there, and lets the client in, is sent back to."""
        client = self.session(name, f"{name}-password")
        try:
            granted = client.put(f"/api/auth/grant/{client_id}", json={"scope": "openid"})
            assert granted.status_code == 200, granted.text
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
            answer = client.get("/api/oidc/auth", params={**query, "g_continue": ""})
            assert answer.status_code == 302, answer.text
            cookies = [client.headers["Cookie"], *(line.split(";")[0] for line in answer.headers.get_list("set-cookie"))]
            self.cookies[name] = "; ".join(cookies)
            return answer.headers["location"]
        finally:
            client.close()
