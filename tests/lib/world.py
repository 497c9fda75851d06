"""Things to test with, made fresh each time in one organization.

    world = World(server)                    # or World(server, server.add_org("bravo"))
    node = world.node(cluster)               # ids, as text
    world.api("GET", f"/api/v1/nodes/{node}")
"""
import hashlib
import secrets
import uuid
from types import SimpleNamespace

from agent import Agent
from agent import fault as agent_fault
from agent import stream


class World:
    def __init__(self, server, org=None):
        self.server = server
        self.org = org or SimpleNamespace(id=server.org_id, token=server.admin, project_id=server.project_id,
                                          cluster_id=server.cluster_id, name="main")
        self.mark = self.org.name  # in every name, so that a leak of one shows

    # ------------------------------------------------------------ speaking
    def api(self, method, path, json=None, **options):
        """As the org's administrator. A path without / in front is below /api/v1."""
        path = path if path.startswith("/") else f"/api/v1/{path}"
        return self.server.api(method, path, json, token=options.pop("token", self.org.token), **options)

    def made(self, method, path, json):
        answer = self.api(method, path, json)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def sql(self, sql):
        return self.server.sql(sql).strip()

    def name(self, kind):
        return f"{self.mark}-{kind}-{secrets.token_hex(4)}"

    def seq(self):
        """The org's newest event: a place to go on from, never a count, since the background loops add theirs at any moment."""
        return int(self.sql(f"SELECT event_seq FROM org_head WHERE org_id = '{self.org.id}'"))

    def told(self):
        """How many events callers made; what the background loops tell meanwhile is not counted."""
        return int(self.sql(f"SELECT count(*) FROM event WHERE org_id = '{self.org.id}' AND actor <> 'muster'"))

    def audits(self):
        return int(self.sql(f"SELECT count(*) FROM audit WHERE org_id = '{self.org.id}'"))

    # ------------------------------------------------------------ things
    def project(self):
        return self.made("POST", "projects", {"name": self.name("p"), "title": self.name("title")})["id"]

    def cluster(self, **fields):
        return self.made("POST", "clusters", {"project_id": self.org.project_id, "name": self.name("c"), **fields})["id"]

    def node(self, cluster=None, **fields):
        path = f"clusters/{cluster or self.org.cluster_id}/nodes"
        return self.made("POST", path, {"name": self.name("n"), "rack": self.name("rack"), **fields})["id"]

    def device(self, node=None):
        return self.made("POST", f"nodes/{node or self.node()}/devices", {"type": "gpu", "serial": self.name("serial")})["id"]

    def spare(self, cluster=None, **fields):
        path = f"clusters/{cluster or self.org.cluster_id}/spares"
        return self.made("POST", path, {"machine": self.name("m"), "serial": self.name("serial"), **fields})["id"]

    def incident(self, node=None, **fields):
        body = {"summary": self.name("fault"), "severity": "critical", "device": self.name("device"), **fields}
        return self.made("POST", f"nodes/{node or self.node()}/incidents", body)["id"]

    def repair(self, node=None):
        """Proposed, with its whole representation; its node has an agent, or nobody could approve it."""
        node = node or self.node()
        self.sql(f"UPDATE node SET joined_at = coalesce(joined_at, now()) WHERE id = '{node}'")
        return self.made("POST", f"nodes/{node}/repairs", {"action": "reboot", "reason": self.name("reason")})

    def policy(self, **fields):
        """Of a cluster of its own unless another place is named."""
        place = {} if "cluster_id" in fields or "node_id" in fields else {"cluster_id": self.cluster()}
        return self.made("POST", "policies", {**place, **fields})["id"]

    def unknown_repair(self):
        """One whose end nobody knows, as a lost node leaves it."""
        repair = self.repair()
        self.sql(f"UPDATE repair SET state = 'unknown', version = version + 1 WHERE id = '{repair['id']}'")
        return repair

    def token(self, cluster=None):
        return self.made("POST", f"clusters/{cluster or self.org.cluster_id}/join-tokens", {"uses": 3})["id"]

    def member(self, role="viewer", **fields):
        return self.made("POST", "members", {"name": self.name("person"), "role": role, **fields})

    def issuer_body(self, **fields):
        """Nobody is there: the address is refused when it is connected to."""
        name = self.name("idp")
        return {"name": name, "issuer": f"https://{name}.invalid", "client_id": "muster", "enabled": False, **fields}

    def issuer(self, **fields):
        return self.made("POST", "issuers", self.issuer_body(**fields))

    def webhook_body(self, **fields):
        """Nobody is there: the address is refused when it is connected to."""
        name = self.name("hook")
        return {"name": name, "url": f"https://{name}.invalid/in", "kinds": ["repair.proposed"], "enabled": False, **fields}

    def webhook(self, **fields):
        """With its secret, as `secret`."""
        return self.made("POST", "webhooks", self.webhook_body(**fields))

    def service_token(self, role="viewer", **fields):
        """With its secret, as `token`."""
        return self.made("POST", "tokens", {"name": self.name("t"), "role": role, **fields})

    def check_override(self, **fields):
        return self.made("POST", "check-overrides", {"check_id": "gpu_xid", "gpu_type": self.name("type"), "mode": "shadow", **fields})

    def custom_check_body(self, **fields):
        """An organization may have 50: all but the newest samples go."""
        self.sql(f"DELETE FROM custom_check WHERE org_id = '{self.org.id}' AND name LIKE 'sample-%' AND id NOT IN"
                 f" (SELECT id FROM custom_check WHERE org_id = '{self.org.id}' ORDER BY created_at DESC LIMIT 20)")
        return {"name": f"sample-{secrets.token_hex(8)}", "kind": "metric", "severity": "warning",
                "definition": {"metric": "gpu_temp_c", "comparison": "above", "threshold": 85}, **fields}

    def custom_check(self, **fields):
        return self.made("POST", "custom-checks", self.custom_check_body(**fields))

    def expectation(self, **fields):
        return self.made("POST", "expectations", {"gpu_type": self.name("type"), "gpus": 8, **fields})

    def event(self, cluster=None, **fields):
        return self.made("POST", f"clusters/{cluster or self.org.cluster_id}/events", {"summary": self.name("note"), **fields})

    def agent(self, cluster=None):
        """A joined agent that reported once: readings, a part, collectors and a fault."""
        token = self.made("POST", f"clusters/{cluster or self.org.cluster_id}/join-tokens", {})["token"]
        agent = Agent(self.server, self.name("a")).enroll(token)
        answer = agent.report(streams=[stream(0, agent_fault(1, device="0000:1b:00"))], metrics={"cpu_ratio": 0.25},
                              gpus={"util": [50, None], "mem_mib": [100, None], "mem_total_mib": [200, 200], "temp_c": [61, None]},
                              collectors=[{"name": "kmsg", "state": "ok", "reason": ""}],
                              inventory={"devices": [{"type": "gpu", "index": 0, "serial": self.name("s"), "pci": "0000:1b:00",
                                                      "model": "H100", "firmware": "", "memory_mib": 200}]})
        assert answer.status_code == 200, answer.text
        return agent

    # ------------------------------------------------------------ people
    def person(self, role="admin", orgs=()):
        """(id, name) of a new member of this org and of others."""
        person, name = str(uuid.uuid4()), self.name("person")
        rows = ", ".join(f"('{org}', '{person}', '{role}')" for org in (self.org.id, *orgs))
        self.sql(f"INSERT INTO person (id, name) VALUES ('{person}', '{name}');"
                 f"INSERT INTO membership (org_id, person_id, role) VALUES {rows}")
        return person, name

    def link(self, person, minutes=10):
        """The token of a one-time link."""
        token = "msl_" + secrets.token_urlsafe(32)
        self.sql("INSERT INTO sign_in_link (token_hash, person_id, expires_at) VALUES"
                 f" ('\\x{hashlib.sha256(token.encode()).hexdigest()}', '{person}', now() + interval '{minutes} minutes')")
        return token

    def browser(self, role="admin", orgs=()):
        """Headers of a signed-in browser."""
        person, _ = self.person(role, orgs)
        answer = self.server.api("POST", "/api/v1/session", {"token": self.link(person)}, token=False)
        assert answer.status_code == 200, answer.text
        cookie = answer.headers["set-cookie"].split(";")[0]
        return {"Cookie": cookie, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
