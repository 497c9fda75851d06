"""The whole table of routes: who may do what, and what is seen of other organizations. A row without a sample fails."""
import json
import re
import subprocess
import uuid
from pathlib import Path

import pytest
from samples import SAMPLES, send
from world import World

ROOT = Path(__file__).resolve().parent.parent.parent
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def read_routes():
    import os
    program = ROOT / os.environ.get("MUSTERD", "build/musterd")
    if os.environ.get("MUSTER_BUILD"):
        program = Path(os.environ["MUSTER_BUILD"]) / "musterd"
    text = subprocess.run([program, "routes"], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in text.splitlines()]


ROUTES = read_routes()
PUBLIC = {"order_told", "audit_download", "device_code_create", "device_token_create", "healthz", "readyz", "metrics", "openapi", "problem_page", "session_create", "sign_in_options", "sign_in_start",
          "sign_in_callback", "backchannel_logout", "agent_enroll", "agent_challenge",
          "agent_token"}


def each(condition=lambda route: True):
    chosen = [route for route in ROUTES if condition(route)]
    return pytest.mark.parametrize("route", chosen, ids=[route["operation"] for route in chosen])


@pytest.fixture(scope="module")
def other(server):
    """Another organization, with the same kinds of things."""
    return World(server, server.add_org("authz-other"))


@pytest.fixture(scope="module")
def nobody(world):
    """A person who is signed in and has no role any more."""
    headers = world.browser("viewer")
    me = world.server.api("GET", "/api/v1/me", token=False, headers=headers).json()
    world.sql(f"DELETE FROM membership WHERE person_id = '{me['id']}'")
    return headers


def test_every_row_has_a_sample():
    assert {route["operation"] for route in ROUTES} == set(SAMPLES)


def test_the_public_rows_are_these():
    assert {route["operation"] for route in ROUTES if route["permission"] == "public"} == PUBLIC


@each()
def test_an_administrator_may(world, route):
    """The sample itself is good, and success is what the table says. That changes leave audit rows is in test_audit.py."""
    sample = SAMPLES[route["operation"]](world)
    answer = send(world, route, sample)
    assert answer.status_code == route["success"], answer.text


@each(lambda route: route["permission"] != "public")
def test_anonymous_is_401(world, route):
    sample = SAMPLES[route["operation"]](world)
    headers = {k: v for k, v in sample.get("headers", {}).items() if k != "Cookie"}
    answer = send(world, route, sample, token=False, headers=headers)
    assert answer.status_code == 401, answer.text
    assert answer.json()["code"] == "unauthenticated"
    invalid = send(world, route, sample, token="mst_" + "x" * 43, headers=headers)
    assert invalid.status_code == 401 and "invalid_token" in invalid.headers["www-authenticate"]


@each(lambda route: route["permission"] not in ("public", "session"))
def test_without_the_permission_it_is_403(world, nobody, route):
    """The permission comes before everything else: nothing is said about what the request names."""
    sample = SAMPLES[route["operation"]](world)
    headers = {**sample.get("headers", {}), **nobody}
    answer = send(world, route, sample, token=False, headers=headers)
    assert answer.status_code == 403, answer.text
    assert answer.json()["code"] == "forbidden"
    if route["permission"] != "cluster.read":
        viewer = send(world, route, sample, token=world.server.token("viewer", world.org.id))
        assert viewer.status_code == 403, viewer.text


def with_ids(route):
    return "{" in route["path"] and "{slug}" not in route["path"]


# Whose issuer one signs in at is public; organizations are what administrators of the platform see (test_platform.py); sessions are people's, and test_sign_in.py shows that nobody ends another's.
@each(lambda route: with_ids(route) and route["permission"] not in ("public", "platform") and route["operation"] != "session_delete_one")
def test_T4_what_others_own_is_404_like_what_does_not_exist(world, other, route):
    """The same bytes, so that nobody learns which ids exist. And nothing happens to it."""
    sample = SAMPLES[route["operation"]](other)
    headers = {**sample.get("headers", {}), "X-Request-Id": "0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6f", "If-Match": '"1"'}
    before = other.told()
    theirs = send(world, route, sample, token=world.org.token, headers=headers)
    absent = send(world, route, sample, token=world.org.token, headers={**headers},
                  path={name: str(uuid.uuid4()) for name in sample["path"]})
    assert theirs.status_code == absent.status_code == 404, theirs.text
    assert theirs.content == absent.content
    drop = lambda h: {k: v for k, v in h.items() if k not in ("date", "etag")}  # a list's tag moves with what the loops write
    assert drop(theirs.headers) == drop(absent.headers)
    assert other.told() == before


@each(with_ids)
def test_an_id_that_is_none_names_nothing(world, route):
    sample = SAMPLES[route["operation"]](world)
    for text in ("1", "main", "0198f3c2-5e1a-7cc3-98f4-1f2b3c4d5e6g"):
        answer = send(world, route, sample, path={name: text for name in sample["path"]})
        assert answer.status_code == 404, answer.text


@pytest.mark.parametrize("path", sorted({route["path"] for route in ROUTES}))
def test_other_methods_are_405_with_allow(world, path):
    offered = {route["method"] for route in ROUTES if route["path"] == path}
    sample = SAMPLES[next(route["operation"] for route in ROUTES if route["path"] == path)](world)
    target = path
    for name, value in sample.get("path", {}).items():
        target = target.replace("{" + name + "}", value)
    wanted = [("GET, HEAD" if method == "GET" else method) for method in METHODS if method in offered]
    for method in METHODS:
        if method in offered or path == "/healthz":
            continue
        answer = world.server.api(method, target, token=world.org.token)
        assert answer.status_code == 405, f"{method} {target}: {answer.text}"
        assert answer.headers["allow"] == ", ".join(wanted)


@each(lambda route: route["permission"] not in ("public", "agent"))
def test_an_agent_is_no_person(world, route, agent_token):
    sample = SAMPLES[route["operation"]](world)
    answer = send(world, route, sample, token=agent_token, headers={k: v for k, v in sample.get("headers", {}).items() if k != "Cookie"})
    assert answer.status_code == 403, answer.text


@pytest.fixture(scope="module")
def agent_token(world):
    return world.agent().token


def test_a_browser_of_another_site_changes_nothing(world):
    headers = world.browser()
    body = {"name": world.name("p")}
    for change in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert world.server.api("POST", "/api/v1/projects", body, token=False, headers={**headers, **change}).status_code == 403
    form = world.server.api("POST", "/api/v1/projects", token=False, content="name=x",
                            headers={**headers, "Content-Type": "application/x-www-form-urlencoded"})
    assert form.status_code == 415
    assert world.server.api("POST", "/api/v1/projects", body, token=False, headers=headers).status_code == 201


def test_the_permissions_of_me_are_those_of_the_table(world):
    """The console disables what /me does not list."""
    listed = set(world.api("GET", "me").json()["permissions"])
    used = {route["permission"] for route in ROUTES} - {"public", "agent"}
    assert used <= listed
    assert all(re.fullmatch(r"[a-z]+(\.[a-z]+)?", name) for name in listed)
