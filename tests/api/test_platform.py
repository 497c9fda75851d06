"""The platform's administrators: all organizations, and suspending one. What a suspended one still does: its nodes report, nothing else begins."""
import threading
import uuid

import pytest
from agent import Agent, fault, stream
from login import Login
from server import Musterd
from waiting import wait_for
from world import World


@pytest.fixture(scope="module")
def second(server):
    """Another replica over the same database."""
    other = Musterd(pg=server.pg, init=False, keys_dir=str(server.folder / "keys"))
    try:
        yield other.start()
    finally:
        other.stop()


def fresh(server, name):
    return World(server, server.add_org(f"{name}-{uuid.uuid4().hex[:8]}"))


def suspend(world, reason="the contract has ended", word="suspend", **options):
    return world.server.api("POST", f"/api/v1/platform/orgs/{world.org.id}/{word}", {"reason": reason}, token=world.server.admin, **options)


def pages(server, path):
    items = []
    while path:
        page = server.api("GET", path, token=server.admin)
        assert page.status_code == 200, page.text
        items += page.json()["items"]
        path = page.headers.get("link", "").partition(">")[0].removeprefix("<")
    return items


# ---------------------------------------------------------------- the list
def test_all_organizations_are_listed_with_their_counts(server):
    org = fresh(server, "listed")
    for _ in range(2):
        org.node()
    org.cluster()
    people = [org.person()[0] for _ in range(2)]
    org.sql(f"INSERT INTO membership (org_id, person_id, role) VALUES ('{org.org.id}', '{people[0]}', 'viewer')")
    gone = org.node()
    org.sql(f"UPDATE node SET removed_at = now() WHERE id = '{gone}'")
    items = pages(server, "/api/v1/platform/orgs?limit=3")
    assert [item["name"] for item in items] == sorted(item["name"] for item in items)
    mine = next(item for item in items if item["id"] == org.org.id)
    assert (mine["clusters"], mine["nodes"]) == (2, 2)
    assert mine["members"] == int(org.sql(f"SELECT count(DISTINCT person_id) FROM membership WHERE org_id = '{org.org.id}'")) >= 2
    assert (mine["suspended_at"], mine["suspended_by"], mine["suspend_reason"]) == (None, None, None)
    assert {"main", org.org.name} <= {item["name"] for item in items}
    one = server.api("GET", f"/api/v1/platform/orgs/{org.org.id}", token=server.admin)
    assert one.json() == mine and one.headers["etag"] == f'"{mine["version"]}"'


def test_only_the_platform_sees_them_and_nobody_learns_which_exist(server):
    org = fresh(server, "unseen")
    paths = [("GET", "/api/v1/platform/orgs", None)]
    for id_ in (org.org.id, str(uuid.uuid4())):
        paths += [("GET", f"/api/v1/platform/orgs/{id_}", None), ("POST", f"/api/v1/platform/orgs/{id_}/suspend", {"reason": "x"}),
                  ("POST", f"/api/v1/platform/orgs/{id_}/resume", {"reason": "x"})]
    own = server.token("admin", org.org.id)
    bodies = {}
    for method, path, body in paths:
        answer = server.api(method, path, body, token=own, headers={"X-Request-Id": "0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6f"})
        assert answer.status_code == 403, answer.text
        bodies.setdefault((method, path.rsplit("/", 1)[-1] in ("suspend", "resume")), set()).add(answer.content)
    assert all(len(found) == 1 for found in bodies.values())
    absent = server.api("POST", f"/api/v1/platform/orgs/{uuid.uuid4()}/suspend", {"reason": "x"}, token=server.admin)
    assert absent.status_code == 404


# ---------------------------------------------------------------- suspending
def test_everybody_of_a_suspended_organization_is_refused_and_told_why(server):
    org = fresh(server, "told")
    browser, token = org.browser(), org.service_token("operator")["token"]
    answer = suspend(org)
    assert answer.status_code == 200, answer.text
    assert answer.json()["suspend_reason"] == "the contract has ended" and answer.json()["suspended_at"]
    for options in ({"token": org.org.token}, {"token": token}, {"token": False, "headers": browser}):
        def refused(options=options):
            got = server.api("GET", "/api/v1/clusters", **options)
            return got if got.status_code == 403 else None
        got = wait_for(refused)
        assert got.json()["code"] == "org_suspended"
        assert "the contract has ended" in got.json()["detail"] and "administrator of the platform" in got.json()["detail"]
        changed = server.api("POST", "/api/v1/projects", {"name": "p"}, **options)
        assert changed.status_code == 403 and changed.json()["code"] == "org_suspended"
    assert suspend(org, "back again", "resume").status_code == 200
    for options in ({"token": org.org.token}, {"token": token}, {"token": False, "headers": browser}):
        wait_for(lambda options=options: server.api("GET", "/api/v1/clusters", **options).status_code == 200)


def test_who_one_is_other_organizations_and_signing_out_stay_open(server, world):
    org = fresh(server, "out")
    browser = org.browser(orgs=[world.org.id])  # begins in the older one

    def move(headers, to):
        answer = server.api("PUT", "/api/v1/session", {"org_id": to}, token=False, headers=headers)
        assert answer.status_code == 200, answer.text
        return {**headers, "Cookie": answer.headers["set-cookie"].split(";")[0]}

    def get(path, headers):
        return server.api("GET", f"/api/v1/{path}", token=False, headers=headers)
    here = move(browser, org.org.id)
    suspend(org)
    me = wait_for(lambda: (lambda one: one if one["suspended"] else None)(get("me", here).json()))
    assert me["suspended"]["reason"] == "the contract has ended"
    assert get("orgs", here).status_code == 200 and get("clusters", here).status_code == 403
    there = move(here, world.org.id)
    assert get("clusters", there).status_code == 200 and get("me", there).json()["suspended"] is None
    here = move(there, org.org.id)
    assert get("clusters", here).status_code == 403
    assert server.api("DELETE", "/api/v1/session", token=False, headers=here).status_code == 204


def test_suspending_is_in_the_log_of_the_organization_with_the_reason(server):
    org = fresh(server, "logged")
    first = suspend(org, "r1")
    again = suspend(org, "r2")
    assert again.status_code == 409 and again.json()["state"] == "suspended"
    second = suspend(org, "r3", "resume")
    assert suspend(org, "r4", "resume").status_code == 409
    rows = org.sql(f"SELECT action || ' ' || (body::jsonb ->> 'comment') FROM audit WHERE org_id = '{org.org.id}' AND action IN ('org.suspend', 'org.resume')"
                   " ORDER BY seq").splitlines()
    assert rows == ["org.suspend r1", "org.resume r3"]
    assert (first.status_code, second.status_code) == (200, 200)
    assert [second.json()[field] for field in ("suspended_at", "suspended_by", "suspend_reason")] == [None] * 3
    types = org.sql(f"SELECT type FROM event WHERE org_id = '{org.org.id}' AND type LIKE 'org.%' ORDER BY seq").split()
    assert types[-2:] == ["org.suspended", "org.resumed"]


def test_what_is_tried_meanwhile_is_in_the_log_too(server):
    org = fresh(server, "tried")
    suspend(org)
    answer = wait_for(lambda: (lambda a: a if a.status_code == 403 else None)(org.api("POST", "projects", {"name": org.name("p")})))
    row = wait_for(lambda: org.sql("SELECT (body::jsonb ->> 'outcome') || ' ' || (body::jsonb ->> 'reason') FROM audit WHERE"
                                   f" body::jsonb ->> 'request_id' = '{answer.headers['x-request-id']}'"))
    assert row == "denied org_suspended"


def test_the_same_key_suspends_once(server):
    org = fresh(server, "once")
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first, again = suspend(org, headers=key), suspend(org, headers=key)
    assert (first.status_code, again.status_code) == (200, 200) and again.headers["idempotent-replayed"] == "true"
    assert first.json() == again.json()
    assert suspend(org, "other", headers=key).json()["code"] == "idempotency_key_reused"


def test_a_reason_is_needed(server):
    org = fresh(server, "why")
    for body in ({}, {"reason": ""}, {"reason": "x" * 1001}, {"reason": "x", "nonsense": 1}):
        answer = server.api("POST", f"/api/v1/platform/orgs/{org.org.id}/suspend", body, token=server.admin)
        assert answer.status_code == 422, answer.text
    assert org.api("GET", "clusters").status_code == 200


def test_the_platform_is_administered_from_a_suspended_organization_too(server):
    """Or the last administrator could lock everybody out."""
    org = fresh(server, "self")
    token = server.token("admin", org.org.id, platform_admin=True)
    mine = server.api("POST", f"/api/v1/platform/orgs/{org.org.id}/suspend", {"reason": "x"}, token=token)
    assert mine.status_code == 200
    wait_for(lambda: server.api("GET", "/api/v1/clusters", token=token).status_code == 403)
    assert server.api("GET", "/api/v1/platform/orgs", token=token).status_code == 200
    assert server.api("POST", f"/api/v1/platform/orgs/{org.org.id}/resume", {"reason": "x"}, token=token).status_code == 200


def test_tokens_of_its_issuers_are_refused_too(server, idp_host):
    org = fresh(server, "bearer")
    login = Login(org, idp_host.idp(), bearer=True)
    login.grant("ops", "viewer")
    token = login.idp.token(groups=["ops"])

    def get(status):
        return wait_for(lambda: (lambda answer: answer if answer.status_code == status else None)(server.api("GET", "/api/v1/clusters", token=token)))
    get(200)
    suspend(org)
    assert get(403).json()["code"] == "org_suspended"
    fresh_token = login.idp.token(groups=["ops"], sub="another")
    first = server.api("GET", "/api/v1/clusters", token=fresh_token)
    assert first.status_code == 403 and first.json()["code"] == "org_suspended", "who comes for the first time is told the same"
    suspend(org, "x", "resume")
    get(200)


def test_a_link_of_the_audit_log_opens_nothing_while_suspended(server):
    org = fresh(server, "link")
    url = org.api("POST", "audit/export-links", {}).json()["url"]
    path = url[url.index("/downloads/"):]
    suspend(org)
    assert server.api("GET", path, token=False).status_code == 401
    suspend(org, "x", "resume")
    assert server.api("GET", path, token=False).status_code == 200, "it was not used up"


# ---------------------------------------------------------------- every replica, open streams
def test_T7_the_other_replica_refuses_too_and_its_open_streams_end(server, second):
    org = fresh(server, "both")
    ended = threading.Event()

    def read(events):
        for _ in events.iter_raw():
            pass
        ended.set()
    bearer = {"Authorization": f"Bearer {org.org.token}"}
    with second.client.stream("GET", second.url("/api/v1/events/stream"), headers=bearer) as events:
        assert events.status_code == 200
        threading.Thread(target=read, args=[events], daemon=True).start()
        assert suspend(org).status_code == 200
        assert ended.wait(60), "the stream goes on"
    refused = wait_for(lambda: (lambda answer: answer if answer.status_code == 403 else None)(second.api("GET", "/api/v1/clusters", token=org.org.token)))
    assert refused.json()["code"] == "org_suspended"


# ---------------------------------------------------------------- nodes
def test_nodes_go_on_reporting_and_nothing_is_lost(server):
    org = fresh(server, "nodes")
    agent = org.agent()
    suspend(org)
    wait_for(lambda: org.api("GET", "clusters").status_code == 403)
    before = org.sql(f"SELECT seq FROM node_latest WHERE node_id = '{agent.node_id}'")
    answer = agent.report(streams=[stream(0, fault(2, device="0000:1c:00"))], metrics={"cpu_ratio": 0.75})
    assert answer.status_code == 200, answer.text
    assert answer.json()["interval_seconds"] > 0
    assert org.sql(f"SELECT seq > {before} FROM node_latest WHERE node_id = '{agent.node_id}'") == "t"
    fresh_token = agent.try_token(agent.challenge())  # one lives an hour: without another the node would fall silent
    assert fresh_token.status_code == 200, fresh_token.text
    agent.token = fresh_token.json()["access_token"]
    assert agent.report().status_code == 200
    suspend(org, "x", "resume")
    node = wait_for(lambda: (lambda got: got.json() if got.status_code == 200 else None)(org.api("GET", f"nodes/{agent.node_id}")))
    assert {incident["device"] for incident in node["incidents"]} >= {"0000:1b:00", "0000:1c:00"}


def test_no_node_joins_and_its_token_is_not_used_up(server):
    org = fresh(server, "join")
    token = org.made("POST", f"clusters/{org.org.cluster_id}/join-tokens", {"uses": 1})["token"]
    suspend(org)
    agent = Agent(server, org.name("a"))
    refused = agent.try_enroll(token)
    assert refused.status_code == 403 and refused.json()["code"] == "org_suspended"
    suspend(org, "x", "resume")
    assert agent.try_enroll(token).status_code == 201
