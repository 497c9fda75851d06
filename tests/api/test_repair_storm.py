"""Two servers over one database, agents of every temper, and crashes: no order is given twice and nothing is stranded (R1, R2)."""
import http.client
import random
import sys
import threading
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from fake_agent import Agent, join_token, reboots  # noqa: E402
from server import Musterd  # noqa: E402

AGENTS = 24
SECONDS = 25
SETTINGS = {"interval_seconds": 1, "loop_period_ms": 100, "command_within_seconds": 2, "cooldown_seconds": 1, "log_level": "warning"}
ENDED = ("succeeded", "failed", "rejected", "cancelled", "resolved")


def forgets(agent, payload):
    """Acts, and its words are lost."""
    agent.acted.append(payload["command_id"])
    agent.boot_id = str(uuid.uuid4())
    agent.event_seq, agent.events = {}, []


def sleeps(agent, payload):
    """Never acts, never answers."""


def refuses(agent, payload):
    agent.result(payload, "refused", "not today")


def fails(agent, payload):
    reboots(agent, payload)
    agent.xid79()


class Fleet(threading.Thread):
    """Agents that report to a server chosen by chance and now and then break."""

    def __init__(self, agents, servers, seed):
        super().__init__(daemon=True)
        self.agents, self.servers, self.random = agents, servers, random.Random(seed)
        self.faults = True
        self.stopped = threading.Event()
        self.odd = []

    def run(self):
        while not self.stopped.is_set():
            for agent in self.agents:
                server = self.random.choice(self.servers)
                if agent.server is not server:
                    agent.server, agent.connection = server, None
                if self.faults and self.random.random() < 0.04:
                    agent.xid79(device=f"0000:{self.random.randrange(4):02x}:00")
                try:
                    agent.report()
                except (OSError, http.client.HTTPException):
                    pass  # this server is down: the next one, next time
                except RuntimeError as error:
                    if ": 503 " not in str(error):
                        self.odd.append(str(error))
            self.stopped.wait(0.1)


def approve_all(servers, random_):
    for server in servers:
        try:
            items = server.api("GET", "/api/v1/repairs?state=proposed&limit=200", timeout=5).json()["items"]
            for item in items:
                if item["can_approve"] and random_.random() < 0.7:
                    server.api("POST", f"/api/v1/repairs/{item['id']}/approve", {"plan_hash": item["plan_hash"]},
                               headers={"Idempotency-Key": str(uuid.uuid4())}, timeout=5)
        except Exception:  # a server that is being killed answers anything or nothing
            continue


def happened(server):
    """Enough for the claims at the end."""
    states = server.sql("SELECT count(*) FILTER (WHERE state = 'succeeded') > 4 AND count(*) FILTER (WHERE state = 'failed') > 0"
                        " AND (SELECT count(*) FROM command WHERE state = 'done') > 12 FROM repair")
    return states == "t"


def test_R1_R2_two_servers_and_crashes_never_give_an_order_twice():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    with Musterd(**SETTINGS) as one:
        two = Musterd(pg=one.pg, init=False, **SETTINGS)
        two.settings["keys_dir"] = str(one.folder / "keys")
        two.admin, two.org_id = one.admin, one.org_id
        two.start()
        try:
            one.sql(f"UPDATE cluster SET healthy_delay_seconds = 1, rejoin_within_seconds = 4 WHERE id = '{one.cluster_id}'")
            token = join_token(one, uses=AGENTS)
            agents = [Agent(one, f"n-{i:02d}", token) for i in range(AGENTS)]
            for i, agent in enumerate(agents):
                agent.answer = [reboots, reboots, forgets, sleeps, refuses, fails][i % 6]
            fleet = Fleet(agents, [one, two], seed)
            fleet.start()
            end = time.monotonic() + SECONDS
            # So long, and until something has happened at all: a slow machine takes longer.
            while time.monotonic() < end or (not happened(one) and time.monotonic() < end + 150):
                approve_all([one, two], chance)
                if chance.random() < 0.15:
                    victim = chance.choice([one, two])
                    victim.kill()
                    victim.launch()
                time.sleep(0.2)

            fleet.faults = False
            for agent in agents:
                agent.answer = reboots
            deadline = time.monotonic() + 120
            busy = ("SELECT count(*) FROM repair WHERE ended_at IS NULL AND state NOT IN ('proposed', 'unknown')")
            while one.sql(busy) != "0":
                assert time.monotonic() < deadline, one.sql("SELECT state, reason, state_since FROM repair WHERE ended_at IS NULL")
                time.sleep(0.2)
            fleet.stopped.set()
            fleet.join()

            assert fleet.odd == []
            states = one.sql("SELECT state || ' ' || count(*) FROM repair GROUP BY state ORDER BY state").split("\n")
            print(states)
            assert any(line.startswith("succeeded") for line in states) and any(line.startswith("failed") for line in states)
            assert one.sql("SELECT count(*) FROM (SELECT repair_id FROM command GROUP BY repair_id HAVING count(*) > 1) d") == "0"
            acted = [command for agent in agents for command in agent.acted]
            assert len(acted) == len(set(acted)) and len(acted) > 10
            known = set(one.sql("SELECT id FROM command").split("\n"))
            assert set(acted) <= known
            assert one.sql("SELECT count(*) = max(seq) AND max(seq) = (SELECT event_seq FROM org_head LIMIT 1) FROM event") == "t"
            assert one.sql("SELECT count(*) FROM (SELECT node_id FROM repair WHERE ended_at IS NULL GROUP BY node_id HAVING count(*) > 1) d") == "0"
            # What we took out of scheduling has an owner that will give it back.
            assert one.sql("SELECT count(*) FROM node WHERE NOT schedulable AND cordoned_by IS NULL") == "0"
            chain = "SELECT bool_and(n = seq) FROM (SELECT n, row_number() OVER (ORDER BY n) AS seq, repair_id FROM repair_step WHERE repair_id ="
            for repair in one.sql("SELECT id FROM repair").split("\n"):
                assert one.sql(f"{chain} '{repair}') s") == "t"
        finally:
            two.stop()
