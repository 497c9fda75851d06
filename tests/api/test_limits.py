"""Limits: by credential, org and address, with headers that say what is left; one's flood is not the others' trouble."""
import json
import re
import secrets
import threading
import time

import pytest
from server import Musterd
from world import World

POLICY = '"credential";q=60;w=60, "org";q=150;w=60'


@pytest.fixture(scope="module")
def limited(server):
    """A second server over the same database, with tight limits."""
    with Musterd(pg=server.pg, init=False, rate_credential_per_minute=60, rate_org_per_minute=150, rate_sign_in_per_minute=5,
                 trusted_proxies="127.0.0.0/8", insecure_http_from="0.0.0.0/0") as second:
        second.admin, second.org_id, second.project_id, second.cluster_id = server.admin, server.org_id, server.project_id, server.cluster_id
        yield second


def org(server, limited, name):
    """A fresh org, asked through the limited server."""
    world = World(limited, server.add_org(name + "-" + secrets.token_hex(3)))
    return world


def until_refused(ask, most=400):
    for count in range(most):
        answer = ask()
        if answer.status_code == 429:
            return count, answer
        assert answer.status_code == 200, answer.text
    raise AssertionError(f"{most} requests and no end")


def test_T8_every_answer_says_what_is_left(server, limited):
    world = org(server, limited, "headers")
    first = world.api("GET", "me")
    assert first.headers["ratelimit-policy"] == POLICY
    assert re.fullmatch(r'"credential";r=59;t=1, "org";r=149;t=1', first.headers["ratelimit"])
    refused = world.api("GET", "nodes/nothing")
    assert refused.status_code == 404 and "ratelimit" not in refused.headers, "nobody was looked up for it"
    invalid = world.api("POST", "projects", {"name": "?"})
    assert invalid.status_code == 422 and re.search(r'"credential";r=5[89]', invalid.headers["ratelimit"])
    assert "ratelimit" not in limited.api("GET", "/readyz", token=False).headers


def test_T8_a_credential_that_asks_too_much_waits(server, limited):
    world = org(server, limited, "credential")
    begun = time.monotonic()
    count, answer = until_refused(lambda: world.api("GET", "me"))
    assert 60 <= count <= 60 + 1.2 * (time.monotonic() - begun) + 5, count  # one comes back each second
    problem = answer.json()
    assert (problem["code"], problem["type"], problem["violated-policies"]) == ("rate_limited", "/problems/rate-limited", ["credential"])
    assert answer.headers["retry-after"] == "1" and '"credential";r=0' in answer.headers["ratelimit"]
    other = server.token("viewer", world.org.id)
    assert world.api("GET", "me", token=other).status_code == 200, "another credential of the org goes on"


def test_T8_an_org_that_asks_too_much_waits_and_no_other_one(server, limited):
    world, other = org(server, limited, "flood"), org(server, limited, "calm")
    tokens = [server.token("viewer", world.org.id) for _ in range(6)]
    turn = iter(range(10 ** 6))
    _, answer = until_refused(lambda: world.api("GET", "me", token=tokens[next(turn) % 6]))
    assert answer.json()["violated-policies"] == ["org"]
    stop = threading.Event()

    def flood():
        while not stop.is_set():
            world.api("GET", "me", token=tokens[next(turn) % 6])
    threads = [threading.Thread(target=flood) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        statuses = {other.api("GET", "me").status_code for _ in range(40)}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == {200}


def test_T8_a_refused_change_changes_nothing(server, limited):
    world = org(server, limited, "change")
    until_refused(lambda: world.api("GET", "me"))
    before = world.told()
    answers = [world.api("POST", "projects", {"name": world.name("p")}).status_code for _ in range(3)]
    assert 429 in answers and world.told() - before == answers.count(201)


def test_T8_tries_to_sign_in_are_counted_by_address(server, limited):
    def attempt(address):
        return limited.api("POST", "/api/v1/session", {"token": "msl_" + "x" * 43}, token=False, headers={"X-Forwarded-For": address})
    answers = [attempt("192.0.2.7") for _ in range(8)]
    assert [answer.status_code for answer in answers[:5]] == [401] * 5
    assert answers[-1].status_code == 429 and answers[-1].json()["violated-policies"] == ["sign-in"]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert attempt("192.0.2.8").status_code == 401, "another address may"


def test_T8_agents_are_not_counted(server, limited):
    """They are told when to come; a limit would lose their reports."""
    agent = World(server).agent()
    agent.server = limited
    for _ in range(100):
        answer = agent.report()
        assert answer.status_code == 200 and "ratelimit" not in answer.headers


def test_T8_bodies_depth_and_pages_are_bounded(world):
    deep = "[" * 40 + "]" * 40
    answer = world.api("POST", "projects", content='{"name":' + deep + "}", headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    large = world.api("POST", "projects", content=json.dumps({"name": "x" * 70000}), headers={"Content-Type": "application/json"})
    assert large.status_code == 413
    for _ in range(3):
        world.project()
    assert len(world.api("GET", "projects?limit=100000").json()["items"]) <= 200


def test_T8_agents_that_join_are_limited_by_their_address(server):
    """With a limit of their own: what they take is not what people need to sign in."""
    with Musterd(pg=server.pg, init=False, rate_join_per_minute=20, trusted_proxies="127.0.0.0/8", insecure_http_from="0.0.0.0/0") as second:
        def ask(path, body, address):
            return second.api("POST", path, body, token=False, headers={"X-Forwarded-For": address}).status_code

        def enroll(address):
            return ask("/agent/v1/enroll", {"token": "mjt_" + "x" * 43, "name": "n", "public_key": "A" * 43}, address)
        seen = [enroll("192.0.2.7") for _ in range(40)]
        assert seen[:20] == [401] * 20 and 429 in seen[20:]
        challenge = {"node_id": "0192aaaa-0000-7000-8000-00000000000a"}
        assert 429 in [ask("/agent/v1/challenge", challenge, "192.0.2.7") for _ in range(20)], "all three count together"
        assert enroll("192.0.2.8") == 401, "another address goes on"
        assert ask("/api/v1/session", {"token": "msl_" + "x" * 43}, "192.0.2.7") == 401
