"""musterd on a free port over a private PostgreSQL, for black-box tests.

    with Musterd() as server:
        server.api("GET", "/api/v1/me").json()                       # as the administrator of org `main`
        server.api("POST", "/api/v1/projects", {"name": "x"}, headers={"Idempotency-Key": "1"})
        server.api("GET", "/api/v1/me", token=server.token("viewer"))
        other = server.add_org("other")                              # .id, .token, .project_id, .cluster_id
        server.kill(); server.start()                                # a crash, and a start over the same data

The administrator's token is `server.admin`; `server.org_id`, `server.project_id` and `server.cluster_id` name
what `musterd init` made. Settings are keyword arguments: Musterd(header_timeout_seconds=1).
"""
import hashlib
import http.cookiejar
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import httpx

from pg import PrivatePostgres
from ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS = 120
STOP_SECONDS = 90


class MusterdError(Exception):
    """musterd refused; the text has its log."""


class Musterd:
    # Called with every answer that a client here gets: tests/api holds them against the API's document.
    response_hooks = []

    def __init__(self, pg=None, program=None, listen="127.0.0.1", init=True, durable=False, **settings):
        self.own_pg = pg is None
        self.program = str(program or ROOT / os.environ.get("MUSTERD", "build/musterd"))
        # Waiting for the disk proves nothing where no test pulls the plug; the crash suite asks for it.
        self.pg = pg or PrivatePostgres(migrate=[self.program, "migrate"], fsync=durable)
        self.listen = listen
        self.init = init
        self.settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="muster-api-"))
        self.port = free_port()
        self.process = None
        self.client = None
        self.admin = None

    # ------------------------------------------------------------ life
    def start(self):
        if self.pg.process is None:
            self.pg.start()
        self.write_config()
        if self.init and self.admin is None:
            self.run("init", "--org", "main", "--project", "default", "--cluster", "local", "--admin-token",
                     str(self.folder / "admin.token"))
            self.admin = (self.folder / "admin.token").read_text().strip()
            row = self.sql("SELECT o.id, p.id, c.id FROM org o JOIN project p ON p.org_id = o.id"
                           " JOIN cluster c ON c.org_id = o.id WHERE o.name = 'main'")
            self.org_id, self.project_id, self.cluster_id = row.split("|")
        self.launch()
        return self

    def launch(self):
        """Starts the process and waits until it is ready."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", "--config", str(self.config)], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, env=self.env())
        if self.client is None:
            # A connection is not kept so long that the server may be about to close it.
            self.client = httpx.Client(timeout=60, verify=False, trust_env=False, limits=httpx.Limits(keepalive_expiry=1),
                                       event_hooks={"response": list(self.response_hooks)})
            # A cookie of one answer must not go with the next request: tests say who they are.
            self.client.cookies.jar.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                if self.client.get(self.url("/readyz")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise MusterdError(f"musterd did not become ready:\n{self.log[-3000:]}")
            time.sleep(0.02)

    def stop(self):
        """Ends everything and removes its data."""
        self.terminate()
        if self.client is not None:
            self.client.close()
            self.client = None
        if self.own_pg:
            self.pg.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def terminate(self, how=signal.SIGTERM, timeout=STOP_SECONDS):
        """A graceful stop; gives the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None
        return status

    def kill(self):
        """As a crash."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def restart(self):
        self.terminate()
        self.start()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------ use
    @property
    def config(self):
        return self.folder / "musterd.conf"

    @property
    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def url(self, path=""):
        scheme = "https" if self.settings.get("tls_certificate") else "http"
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def api(self, method, path, json=None, token=None, headers=None, **options):
        """A request as the administrator, or with another token; token=False sends none."""
        headers = dict(headers or {})
        self.client.cookies.clear()  # a session is sent only where a test says so
        if token is not False:
            headers.setdefault("Authorization", f"Bearer {token or self.admin}")
        return self.client.request(method, self.url(path), json=json, headers=headers, **options)

    def run(self, *command, check=True):
        """A subcommand with this server's settings; gives its output."""
        done = subprocess.run([self.program, *command, *([] if command[0] in ("routes", "version", "help") else
                                                         ["--config", str(self.config)])],
                              env=self.env(), capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise MusterdError(f"musterd {' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout if check else done

    def sql(self, sql):
        """As the superuser, who sees all orgs."""
        return self.pg.psql("SET search_path = muster;\n" + sql)

    def socket(self, timeout=60):
        """A raw connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def env(self):
        """No setting of whoever runs the tests reaches the server."""
        return {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}

    def write_config(self):
        conf = {"listen": f"{self.listen}:{self.port}", "web_dir": "", "keys_dir": str(self.folder / "keys"),
                "event_loops": 2, "log_level": "debug", "start_grace_seconds": 0, "settle_seconds": 0, "boot_grace_seconds": 0,
                "rate_credential_per_minute": 0, "rate_org_per_minute": 0, "rate_sign_in_per_minute": 0, "rate_join_per_minute": 0, "rate_logout_per_minute": 0,
                **{key.removeprefix("MUSTER_").lower(): value for key, value in self.pg.env().items()}, **self.settings}
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in conf.items()))

    # ------------------------------------------------------------ what tests need beside the API
    def token(self, role="viewer", org_id=None, platform_admin=False):
        """A new service token with a role, in org `main` unless another is named."""
        token = "mst_" + secrets.token_urlsafe(32)
        digest = hashlib.sha256(token.encode()).hexdigest()
        self.sql("INSERT INTO service_token (org_id, id, name, role, platform_admin, token_hash, created_by) VALUES"
                 f" ('{org_id or self.org_id}', '{uuid.uuid4()}', 'test-{secrets.token_hex(6)}', '{role}',"
                 f" {platform_admin}, '\\x{digest}', 'test')")
        return token

    def session(self, name=None, role="admin", org_id=None):
        """A signed-in person: gives the cookie's value."""
        token = "mss_" + secrets.token_urlsafe(32)
        digest = hashlib.sha256(token.encode()).hexdigest()
        person, org = uuid.uuid4(), org_id or self.org_id
        self.sql(f"INSERT INTO person (id, name) VALUES ('{person}', '{name or person}');"
                 f"INSERT INTO membership (org_id, person_id, role) VALUES ('{org}', '{person}', '{role}');"
                 "INSERT INTO session (org_id, id, token_hash, person_id, expires_at) VALUES"
                 f" ('{org}', '{uuid.uuid4()}', '\\x{digest}', '{person}', now() + interval '7 days')")
        return token

    def add_org(self, name):
        """Another org as `musterd init` makes it: .id, .token (an administrator), .project_id, .cluster_id."""
        path = self.folder / f"{name}.token"
        self.run("init", "--org", name, "--project", "default", "--cluster", "local", "--admin-token", str(path))
        org, project, cluster = self.sql("SELECT o.id, p.id, c.id FROM org o JOIN project p ON p.org_id = o.id"
                                         f" JOIN cluster c ON c.org_id = o.id WHERE o.name = '{name}'").split("|")
        return SimpleNamespace(id=org, token=path.read_text().strip(), project_id=project, cluster_id=cluster, name=name)

    def add_node(self, name, cluster_id=None, org_id=None, state="healthy"):
        """A node that never reported; gives its id."""
        node, org, cluster = uuid.uuid4(), org_id or self.org_id, cluster_id or self.cluster_id
        self.sql("WITH slot AS (UPDATE cluster SET next_slot = next_slot + 1"
                 f" WHERE org_id = '{org}' AND id = '{cluster}' RETURNING next_slot - 1 AS slot)"
                 " INSERT INTO node (org_id, id, cluster_id, name, slot, state)"
                 f" SELECT '{org}', '{node}', '{cluster}', '{name}', slot, '{state}' FROM slot;"
                 f"INSERT INTO node_latest (org_id, node_id) VALUES ('{org}', '{node}')")
        return str(node)

    def add_event(self, type_="note.added", summary="", cluster_id=None, org_id=None):
        """An event as any writer adds it; gives its seq."""
        org = org_id or self.org_id
        cluster = f"'{cluster_id or self.cluster_id}'"
        return int(self.sql("WITH head AS (UPDATE org_head SET event_seq = event_seq + 1"
                            f" WHERE org_id = '{org}' RETURNING event_seq)"
                            " INSERT INTO event (org_id, seq, type, cluster_id, summary)"
                            f" SELECT '{org}', event_seq, '{type_}', {cluster}, '{summary}' FROM head RETURNING seq"))
