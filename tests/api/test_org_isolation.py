"""Two organizations full of things: whatever one asks for, no byte of the other's comes back, and nothing of it changes.

The same holds with either belt off: with a musterd whose statements do not name the org (MUSTERD_STRIPPED), where only row
security is left, and with row security disabled, where only the statements are left.
"""
import json
import os
import re
import secrets
import uuid
from pathlib import Path

import pytest
from samples import SAMPLES, send
from server import Musterd
from world import World

READS = {"session_delete", "session_create", "session_switch"}  # about the caller, not about things
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class House:
    """A server with the orgs `main` and `bravo`, and everything that bravo's things are called."""

    def __init__(self, server):
        self.server = server
        self.ours = World(server)
        self.theirs = World(server, server.add_org("bravo"))
        # Who administers the installation sees all organizations; an organization's own administrator sees one.
        self.ours.org.token = server.token("admin")
        for world in (self.ours, self.theirs):
            world.things = self.fill(world)
        self.routes = [json.loads(line) for line in server.run("routes").splitlines()]

    @staticmethod
    def fill(world):
        agent = world.agent()
        cluster = agent.cluster_id
        world.sql("INSERT INTO cluster_history (org_id, cluster_id, at, chunk, gpu_util, gpu_mem_permille, cpu_permille, net_mbps)"
                  f" VALUES ('{world.org.id}', '{cluster}', now() - interval '5 minutes', 0, '{{50}}', '{{50}}', '{{50}}', '{{1}}')")
        return {"org": world.org.id, "project": world.project(), "cluster": cluster, "node": agent.node_id, "other": world.node(),
                "device": world.device(), "incident": world.incident(agent.node_id), "repair": world.repair(agent.node_id)["id"],
                "token": world.token(), "event": str(world.event(node_id=agent.node_id)["seq"]), "agent": agent}

    def secrets_of_theirs(self):
        """Every id of bravo in the database, and its mark, which is in all of its names."""
        ids = set()
        tables = self.theirs.sql("SELECT table_name FROM information_schema.columns WHERE table_schema = 'muster' AND column_name = 'org_id'"
                                 " AND table_name !~ '_[0-9]{8}$'").split()
        ids |= set(UUID.findall(self.theirs.sql(";".join(f"SELECT row_to_json(t)::text FROM {table} t WHERE org_id = '{self.theirs.org.id}'"
                                                         for table in tables))))
        persons = set(UUID.findall(self.theirs.sql("SELECT id FROM person")))
        assert len(ids) > 20, f"too few to prove anything: {len(ids)}"
        return (ids - persons - {self.ours.org.id}) | {i.replace("-", "") for i in ids - persons} | {"bravo"}


def no_row_security(server):
    tables = server.sql("SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                        " WHERE n.nspname = 'muster' AND c.relrowsecurity").split()
    server.sql(";".join(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY" for table in tables))
    assert server.sql("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                      " WHERE n.nspname = 'muster' AND c.relrowsecurity") == "0"


@pytest.fixture(scope="module", params=["both belts", "statements name no org", "no row security"])
def house(request):
    program = None
    if request.param == "statements name no org":
        program = os.environ.get("MUSTERD_STRIPPED")
        if not program or not Path(program).exists():
            pytest.skip("MUSTERD_STRIPPED names no musterd built with -Dorg_predicate=false")
    with Musterd(program=program) as server:
        house = House(server)
        if request.param == "no row security":
            no_row_security(server)
        house.mode = request.param
        yield house


def queries(house):
    """Reads that name bravo's things in every way that a query can."""
    t = house.theirs.things
    c, mine = t["cluster"], house.ours.things["cluster"]
    yield from (f"events?cluster_id={c}", f"events?node_id={t['node']}", f"events?after=0&cluster_id={c}", f"events?after=0&node_id={t['node']}",
                f"events?after=0&limit=200", "events?limit=200", f"clusters/{mine}/events?node_id={t['node']}",
                f"incidents?cluster_id={c}", f"incidents?node_id={t['node']}", "incidents?limit=200", f"clusters?project_id={t['project']}",
                f"repairs?cluster_id={c}", f"repairs?node_id={t['node']}", "repairs?limit=200", f"clusters/{mine}/repairs?node_id={t['node']}",
                f"clusters/{mine}/nodes?limit=200", f"clusters/{mine}/nodes?sort=state", f"clusters/{mine}/nodes?sort=-name",
                f"clusters/{mine}/nodes?state=healthy&state=unhealthy&state=starting&state=pending", f"clusters/{mine}/nodes?q=bravo",
                f"clusters/{mine}/grid?ids=true", f"clusters/{mine}/nodes?rack=bravo")


def test_reads_show_nothing_of_others(house):
    """Every GET of the table on our own things, and every way to name theirs."""
    ours, secrets_of_theirs = house.ours, house.secrets_of_theirs()
    asked = 0
    for route in house.routes:
        if route["method"] != "GET" or route["operation"] in ("event_stream", "metrics"):
            continue
        for owner in (house.ours, house.theirs):
            path = re.sub(r"\{(\w+)\}", lambda m: owner.things.get(m[1], "not-found"), route["path"])
            query = "?at=2099-01-01T00:00:00Z" if route["operation"] == "cluster_as_of" else ""
            leaks(ours.api("GET", path + query), secrets_of_theirs, path)
            asked += 1
    for query in queries(house):
        leaks(ours.api("GET", query), secrets_of_theirs, query)
        asked += 1
    assert asked > 80


def leaks(answer, secrets_of_theirs, where):
    text = answer.text + json.dumps(dict(answer.headers))
    # What the request itself named may stand in Link, never in the body.
    body = answer.text
    found = [secret for secret in secrets_of_theirs if secret in body]
    assert not found, f"{where} -> {answer.status_code} shows {found[:3]}: {body[:500]}"
    assert answer.status_code < 500, f"{where}: {text[:500]}"


def test_a_list_page_by_page_shows_nothing_of_others(house):
    secrets_of_theirs = house.secrets_of_theirs()
    for path in ("projects", "clusters", "events", "incidents", "repairs", "orgs"):
        url = f"{path}?limit=1"
        for _ in range(60):
            answer = house.ours.api("GET", url)
            leaks(answer, secrets_of_theirs, url)
            if not answer.json()["next_cursor"]:
                break
            url = answer.headers["link"].partition(">")[0].removeprefix("<")


def test_a_cursor_of_others_does_not_open_their_list(house):
    secrets_of_theirs = house.secrets_of_theirs()
    cursor = house.theirs.api("GET", "projects?limit=1").json()["next_cursor"]
    leaks(house.ours.api("GET", f"projects?limit=200&cursor={cursor}"), secrets_of_theirs, "projects with a cursor of bravo's")


def test_changes_do_not_reach_others(house):
    """Every change in the table, on their things with our token: absent, and nothing of theirs has moved."""
    ours, theirs = house.ours, house.theirs
    for route in house.routes:
        if route["method"] == "GET" or "{" not in route["path"] or route["permission"] == "public":
            continue  # what is public asks for no token of anybody
        sample = SAMPLES[route["operation"]](theirs)
        before = picture(theirs)
        answer = send(ours, route, sample, token=ours.org.token)
        # A session is its person's, and orders follow the platform: whoever comes with an org's token has neither.
        wanted = 403 if route["permission"] in ("session", "platform") else 404
        assert answer.status_code == wanted, f"{route['operation']}: {answer.status_code} {answer.text}"
        assert picture(theirs) == before, route["operation"]


# What the loops write of an incident, and the incidents that are theirs alone.
LOOPS_WRITE = "ARRAY['root_id', 'common_id', 'serial', 'repeats', 'action_set', 'action_reason', 'version', 'closed_at', 'closed_by', 'close_reason']"
LOOPS_OPEN = "('common_cause', 'node_key', 'node_silent')"


def incidents(world):
    """All of an org's incidents but what the loops write."""
    return (f"SELECT 'incidents ' || md5(coalesce(string_agg((to_jsonb(i) - {LOOPS_WRITE})::text || coalesce(nullif(i.closed_by, 'muster'), ''), '|'"
            f" ORDER BY i.id), '')) FROM incident i WHERE i.org_id = '{world.org.id}' AND i.check_id NOT IN {LOOPS_OPEN}")


def picture(world):
    """All that people change, without what the loops and the clock move."""
    tables = ("org", "project", "cluster", "device", "join_token", "idempotency")
    key = lambda table: "id" if table == "org" else "org_id"
    return world.sql(";".join(
        [f"SELECT '{table} ' || md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t WHERE {key(table)} = '{world.org.id}'" for table in tables]
        + [incidents(world)]
        + [f"SELECT string_agg(n.id::text || n.rack || n.schedulable || coalesce(n.paused_by, ''), '|' ORDER BY n.id) FROM node n WHERE org_id = '{world.org.id}'"])).split("\n")


def test_bodies_that_name_others_are_refused(house):
    ours, theirs = house.ours, house.theirs.things
    created = ours.api("POST", "clusters", {"project_id": theirs["project"], "name": ours.name("c")})
    moved = ours.api("PATCH", f"clusters/{ours.cluster()}", {"project_id": theirs["project"]}, headers={"If-Match": '"1"'})
    noted = ours.api("POST", f"clusters/{ours.things['cluster']}/events", {"summary": "x", "node_id": theirs["node"]})
    assert [a.status_code for a in (created, moved, noted)] == [422, 422, 422], (created.text, moved.text, noted.text)


def test_names_and_keys_of_others_are_free(house):
    """Nobody learns from a conflict what others have."""
    ours, theirs = house.ours, house.theirs
    name, key = ours.name("same"), {"Idempotency-Key": str(uuid.uuid4())}
    first = theirs.api("POST", "projects", {"name": name}, headers=key)
    second = ours.api("POST", "projects", {"name": name}, headers=key)
    assert first.status_code == second.status_code == 201
    assert first.json()["id"] != second.json()["id"] and "idempotent-replayed" not in second.headers
    serial = secrets.token_hex(4)
    for world in (theirs, ours):
        assert world.api("POST", f"nodes/{world.things['other']}/devices", {"type": "gpu", "serial": serial}).status_code == 201


def test_numbers_and_sequences_of_orgs_are_their_own(house):
    ours = house.ours
    before = ours.seq()
    for _ in range(3):
        house.theirs.event()
    assert ours.api("GET", "events?limit=1").json()["as_of_seq"] == before or house.mode, "loops may add to ours"
    seqs = [e["seq"] for e in ours.api("GET", "events?limit=200").json()["items"]]
    assert seqs == sorted(set(seqs), reverse=True) and max(seqs) - min(seqs) == len(seqs) - 1, "no gaps that others fill"


def test_an_agent_reports_for_its_own_node_only(house):
    """The node is the token's; nothing in a report can name another."""
    agent = house.ours.things["agent"]
    before = house.theirs.sql(incidents(house.theirs))
    agent.report_ok(node_id=house.theirs.things["node"], org_id=house.theirs.org.id)
    assert house.theirs.sql(incidents(house.theirs)) == before


def test_without_both_belts_this_would_be_noticed():
    """The check itself can fail."""
    program = os.environ.get("MUSTERD_STRIPPED")
    if not program or not Path(program).exists():
        pytest.skip("MUSTERD_STRIPPED names no musterd built with -Dorg_predicate=false")
    with Musterd(program=program) as server:
        theirs = World(server, server.add_org("bravo"))
        theirs.project()
        no_row_security(server)
        with pytest.raises(AssertionError, match="bravo"):
            leaks(World(server).api("GET", "projects?limit=200"), {"bravo"}, "projects")
