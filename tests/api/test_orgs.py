"""Organizations: those of a person, making one, changing the title."""
import uuid

import pytest
from world import World


@pytest.fixture(scope="module")
def second(server):
    return World(server, server.add_org("orgs-second"))


def test_a_person_sees_all_own_orgs_page_by_page(world, second):
    headers = world.browser(orgs=[second.org.id])
    names, path = [], "/api/v1/orgs?limit=1"
    while path:
        page = world.server.api("GET", path, token=False, headers=headers)
        names += [org["name"] for org in page.json()["items"]]
        path = page.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert names == sorted([world.org.name, second.org.name])


def test_a_token_sees_its_own(world):
    assert [org["id"] for org in world.api("GET", "orgs").json()["items"]] == [world.org.id]


def test_an_org_that_is_not_worked_in_is_absent(world, second):
    headers = world.browser(orgs=[second.org.id])
    assert world.server.api("GET", f"/api/v1/orgs/{second.org.id}", token=False, headers=headers).status_code == 404


def test_creating_needs_the_platform(world):
    assert world.api("POST", "orgs", {"name": world.name("o")}, token=world.server.token("admin")).status_code == 403


def test_a_new_org_is_empty_and_works(world):
    headers = world.browser()
    person = world.sql("SELECT person_id FROM session ORDER BY created_at DESC LIMIT 1")
    world.sql(f"UPDATE person SET platform_admin = true WHERE id = '{person}'")
    name = world.name("o")
    made = world.server.api("POST", "/api/v1/orgs", {"name": name, "title": "T"}, token=False, headers=headers)
    assert made.status_code == 201 and made.headers["location"] == f"/api/v1/orgs/{made.json()['id']}"
    answer = world.server.api("PUT", "/api/v1/session", {"org_id": made.json()["id"]}, token=False, headers=headers)
    cookie = {**headers, "Cookie": answer.headers["set-cookie"].split(";")[0]}
    assert world.server.api("GET", "/api/v1/projects", token=False, headers=cookie).json()["items"] == []
    assert world.server.api("POST", "/api/v1/projects", {"name": "first"}, token=False, headers=cookie).status_code == 201
    types = [e["type"] for e in world.server.api("GET", "/api/v1/events", token=False, headers=cookie).json()["items"]]
    assert types == ["project.created", "org.created"]


def test_a_taken_name_is_409(world):
    answer = world.api("POST", "orgs", {"name": "main"})
    assert answer.status_code == 409 and answer.json()["code"] == "name_taken"


def test_a_key_makes_one_org(world):
    key, name = {"Idempotency-Key": str(uuid.uuid4())}, world.name("o")
    first = world.api("POST", "orgs", {"name": name}, headers=key)
    second = world.api("POST", "orgs", {"name": name}, headers=key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content and second.headers["idempotent-replayed"] == "true"
    assert second.headers["location"] == first.headers["location"] and second.headers["etag"] == first.headers["etag"]
    other = world.api("POST", "orgs", {"name": name + "x"}, headers=key)
    assert other.status_code == 422 and other.json()["code"] == "idempotency_key_reused"


def test_changing_the_title(world):
    path = f"orgs/{world.org.id}"
    now = world.api("GET", path)
    changed = world.api("PATCH", path, {"title": "New"}, headers={"If-Match": now.headers["etag"]})
    assert changed.status_code == 200 and changed.json()["title"] == "New"
    assert world.api("PATCH", path, {"title": "X"}, headers={"If-Match": now.headers["etag"]}).status_code == 412
    assert world.api("PATCH", path, {"title": "X"}).status_code == 428
    assert world.api("PATCH", path, {"name": "x"}, headers={"If-Match": changed.headers["etag"]}).status_code == 422


def test_who_may_make_organizations_is_decided_on_the_server(world):
    """By a subcommand, in the audit log, effective with the next request; it gives no rights inside others' organizations."""
    person, name = world.person("viewer")
    answer = world.server.api("POST", "/api/v1/session", {"token": world.link(person)}, token=False)
    headers = {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}

    def make():
        return world.server.api("POST", "/api/v1/orgs", {"name": world.name("o")}, token=False, headers=headers)
    assert make().status_code == 403
    world.server.run("platform-admin", "--user", name)
    made = make()
    assert made.status_code == 201
    assert world.sql(f"SELECT role FROM membership WHERE org_id = '{made.json()['id']}' AND person_id = '{person}'") == "admin"
    assert world.server.api("POST", "/api/v1/projects", {"name": world.name("p")}, token=False, headers=headers).status_code == 403
    world.server.run("platform-admin", "--user", name, "--revoke")
    assert make().status_code == 403
    actions = world.sql(f"SELECT action FROM audit WHERE org_id = '{world.org.id}' AND target = '{person}' AND action LIKE 'platform%' ORDER BY seq").split()
    assert actions == ["platform_admin.grant", "platform_admin.revoke"]
    assert world.server.run("platform-admin", "--user", "nobody-" + name, check=False).returncode == 1
    assert world.server.run("platform-admin", check=False).returncode == 2
