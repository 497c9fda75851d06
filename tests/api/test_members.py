"""Members: roles in an org, a project or a cluster, and that who has only a part sees only that part."""
import threading
import time
import uuid

import pytest
from resource import walk
from samples import SAMPLES, send
from test_authz import ROUTES
from waiting import PATIENCE_SECONDS, wait_for
from world import World


@pytest.fixture(scope="module")
def parts(server):
    """An org with two projects of one cluster each, and a token for each cluster."""
    world = World(server, server.add_org("parts"))
    here = world.cluster()
    there_project = world.project()
    there = world.made("POST", "clusters", {"project_id": there_project, "name": world.name("c")})["id"]
    world.here, world.there, world.there_project = here, there, there_project
    world.scoped = world.service_token("admin", cluster_id=here)["token"]
    return world


def headers_of(world, name):
    """Signs a person in by a link."""
    person = world.sql(f"SELECT id FROM person WHERE name = '{name}'")
    answer = world.server.api("POST", "/api/v1/session", {"token": world.link(person)}, token=False)
    assert answer.status_code == 200, answer.text
    return {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


def as_person(world, headers, method, path, json=None):
    return world.server.api(method, f"/api/v1/{path}", json, token=False, headers=headers)


# ---------------------------------------------------------------- roles in the org
def test_a_member_is_made_by_name_and_has_the_role(world):
    name = world.name("person")
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answer = world.api("POST", "members", {"name": name, "role": "operator"}, headers=key)
    made = answer.json()
    assert answer.status_code == 201 and answer.headers["location"] == f"/api/v1/members/{made['id']}"
    assert (made["name"], made["role"], made["project_id"], made["cluster_id"], made["created_by"]) == (name, "operator", None, None, "administrator")
    assert world.api("POST", "members", {"name": name, "role": "operator"}, headers=key).headers["idempotent-replayed"] == "true"
    assert world.api("POST", "members", {"name": name, "role": "operator"}).status_code == 409
    second = world.api("POST", "members", {"name": name, "role": "auditor"}).json()
    assert second["person_id"] == made["person_id"]
    me = as_person(world, headers_of(world, name), "GET", "me").json()
    assert me["roles"] == ["operator", "auditor"] and me["grants"] == [] and "node.write" in me["permissions"]
    assert world.api("GET", f"members/{made['id']}").json() == made


def test_the_list_shows_every_role_once(parts):
    for _ in range(3):
        parts.member()
    everything = parts.api("GET", "members?limit=200").json()["items"]
    pages, cursor = [], None
    while True:
        page = parts.api("GET", "members?limit=2" + (f"&cursor={cursor}" if cursor else "")).json()
        pages += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == everything and len({row["id"] for row in pages}) == len(pages) >= 4
    assert "admin" in {row["name"] for row in pages}


@pytest.mark.parametrize("change, pointer", [({"role": "root"}, "#/role"), ({"name": ""}, "#/name"), ({"cluster_id": str(uuid.uuid4())}, "#/cluster_id"),
                                             ({"project_id": str(uuid.uuid4())}, "#/project_id")])
def test_what_a_member_cannot_be(world, change, pointer):
    answer = world.api("POST", "members", {"name": world.name("p"), "role": "viewer", **change})
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == pointer


def test_a_place_of_another_org_cannot_be_named(world, parts):
    answer = world.api("POST", "members", {"name": world.name("p"), "role": "viewer", "cluster_id": parts.here})
    assert answer.status_code == 422
    both = parts.api("POST", "members", {"name": parts.name("p"), "role": "viewer", "cluster_id": parts.here, "project_id": parts.org.project_id})
    assert both.status_code == 422


def test_who_lost_the_last_role_is_signed_out(world):
    member = world.member("viewer")
    headers = headers_of(world, member["name"])
    assert as_person(world, headers, "GET", "clusters").status_code == 200
    assert world.api("DELETE", f"members/{member['id']}").status_code == 204
    assert as_person(world, headers, "GET", "me").status_code == 401
    assert world.api("DELETE", f"members/{member['id']}").status_code == 404
    assert world.api("GET", f"members/{member['id']}").status_code == 404


def test_the_last_administrator_stays(server):
    world = World(server, server.add_org("last-admin"))
    first = next(row for row in world.api("GET", "members").json()["items"] if row["role"] == "admin")
    assert world.api("DELETE", f"members/{first['id']}").status_code == 409
    second = world.member("admin")
    answers = []
    threads = [threading.Thread(target=lambda id=row["id"]: answers.append(world.api("DELETE", f"members/{id}").status_code))
               for row in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [204, 409], "of two at once one stays"


def test_sign_out_everywhere_ends_every_session(world, server):
    other = World(server, server.add_org("everywhere"))
    person, _ = world.person(orgs=[other.org.id])
    one, two = (as_headers(world, person) for _ in range(2))
    switched = server.api("PUT", "/api/v1/session", {"org_id": other.org.id}, token=False, headers=two)
    assert switched.status_code == 200
    two = {**two, "Cookie": switched.headers["set-cookie"].split(";")[0]}
    answer = as_person(world, one, "DELETE", "sessions")
    assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
    assert as_person(world, one, "GET", "me").status_code == as_person(world, two, "GET", "me").status_code == 401
    for log in (world, other):
        row = log.api("GET", f"audit?target={person}&action=session.delete_all").json()["items"][0]
        assert row["request_id"] == answer.headers["x-request-id"]
    assert world.api("DELETE", "sessions").status_code == 403, "a token does not sign out"


def as_headers(world, person):
    answer = world.server.api("POST", "/api/v1/session", {"token": world.link(person)}, token=False)
    return {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


# ---------------------------------------------------------------- a part of an org
def in_cluster(world, cluster):
    """The world's things in this cluster."""
    inner = World(world.server, world.org)
    inner.org = type(world.org)(**{**vars(world.org), "cluster_id": cluster})
    inner.cluster = lambda **_: cluster
    return inner


OF_CLUSTERS = [route for route in ROUTES if any(f"{{{name}}}" in route["path"] for name in ("cluster", "node", "device", "incident", "repair"))
               or route["operation"].startswith("join_token_")]
OF_ORG = {"member_list", "member_create", "member_get", "member_delete", "token_list", "token_create", "token_get", "token_rotate",
          "token_delete", "audit_list", "audit_export", "org_update", "project_create", "event_stream"}


@pytest.mark.parametrize("route", OF_CLUSTERS, ids=[route["operation"] for route in OF_CLUSTERS])
def test_a_role_in_one_cluster_ends_at_its_border(parts, route):
    """The same act succeeds in the cluster, and beside it answers as if there were nothing, and nothing happens."""
    inside = SAMPLES[route["operation"]](in_cluster(parts, parts.here))
    good = send(parts, route, inside, token=parts.scoped)
    assert good.status_code == route["success"], good.text
    beside = SAMPLES[route["operation"]](in_cluster(parts, parts.there))
    before = parts.told()
    hidden = send(parts, route, beside, token=parts.scoped)
    absent = send(parts, route, beside, token=parts.scoped, path={name: str(uuid.uuid4()) for name in beside["path"]})
    assert hidden.status_code == absent.status_code == 404, hidden.text
    without_id = lambda answer: {k: v for k, v in answer.json().items() if k not in ("instance", "request_id")}
    assert without_id(hidden) == without_id(absent)
    assert parts.told() == before


@pytest.mark.parametrize("operation", sorted(OF_ORG))
def test_a_role_in_a_part_does_nothing_to_the_whole(parts, operation):
    route = next(route for route in ROUTES if route["operation"] == operation)
    answer = send(parts, route, SAMPLES[operation](parts), token=parts.scoped)
    assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("path", ["clusters", "projects", "events", "incidents", "repairs"])
def test_lists_show_the_part_only(parts, path):
    for cluster in (parts.here, parts.there):
        inner = in_cluster(parts, cluster)
        inner.event(cluster)
        inner.repair(inner.node(cluster))
        inner.incident(inner.node(cluster))
    place = {"clusters": "id", "projects": "id"}.get(path, "cluster_id")
    wanted = parts.org.project_id if path == "projects" else parts.here
    of_all = lambda item: {**item, "clusters": None}  # counted over what is seen

    def look():
        items = parts.api("GET", f"{path}?limit=200", token=parts.scoped).json()["items"]
        everything = parts.api("GET", f"{path}?limit=200").json()["items"]
        assert {item[place] for item in items} == {wanted}
        assert {item[place] for item in everything} > {wanted}
        # The loops may move something between the two looks.
        return list(map(of_all, items)) == [of_all(item) for item in everything if item[place] == wanted]
    wait_for(look, said="the same items as in the whole list")


@pytest.mark.parametrize("path", ["events?cluster_id=", "incidents?cluster_id=", "repairs?cluster_id=", "events/stream?cluster_id="])
def test_an_id_in_a_query_opens_no_door(parts, path):
    in_cluster(parts, parts.there).repair(parts.node(parts.there))
    answer = parts.api("GET", path + parts.there, token=parts.scoped)
    assert answer.status_code == 404 or answer.json()["items"] == []


def test_a_project_of_a_cluster_is_seen_and_no_more(parts):
    """The way up is shown, and nothing can be put there."""
    assert parts.api("GET", f"projects/{parts.org.project_id}", token=parts.scoped).status_code == 200
    assert parts.api("GET", f"projects/{parts.there_project}", token=parts.scoped).status_code == 404
    body = {"project_id": parts.org.project_id, "name": parts.name("c")}
    assert parts.api("POST", "clusters", body, token=parts.scoped).status_code in (404, 422)
    patched = parts.api("PATCH", f"projects/{parts.org.project_id}", {"title": "t"}, token=parts.scoped, headers={"If-Match": '"1"'})
    assert patched.status_code == 404


def test_a_role_in_a_project_holds_for_its_clusters_and_new_ones(parts):
    member = parts.member("admin", project_id=parts.there_project)
    headers = headers_of(parts, member["name"])
    me = as_person(parts, headers, "GET", "me").json()
    assert me["roles"] == [] and me["grants"] == [{"role": "admin", "project_id": parts.there_project, "cluster_id": None}]
    assert {"cluster.write", "node.write"} <= set(me["permissions"])
    ids = lambda: {row["id"] for row in as_person(parts, headers, "GET", "clusters").json()["items"]}
    assert ids() == {parts.there}
    made = as_person(parts, headers, "POST", "clusters", {"project_id": parts.there_project, "name": parts.name("c")})
    assert made.status_code == 201, made.text
    assert ids() == {parts.there, made.json()["id"]}
    assert as_person(parts, headers, "POST", "clusters", {"project_id": parts.org.project_id, "name": parts.name("c")}).status_code in (404, 422)
    parts.api("DELETE", f"members/{member['id']}")
    assert as_person(parts, headers, "GET", "me").status_code == 401


def test_roles_add_up_by_place(parts):
    """A viewer of the whole who operates one cluster."""
    member = parts.member("viewer")
    parts.made("POST", "members", {"name": member["name"], "role": "operator", "cluster_id": parts.here})
    headers = headers_of(parts, member["name"])
    here, there = parts.node(parts.here), parts.node(parts.there)
    for node, status in ((here, 200), (there, 404)):
        assert as_person(parts, headers, "GET", f"nodes/{node}").status_code == 200
        assert as_person(parts, headers, "POST", f"nodes/{node}/cordon", {}).status_code == status
    assert as_person(parts, headers, "POST", f"clusters/{parts.here}/join-tokens", {}).status_code == 403


def test_a_stream_of_a_part_ends_with_the_role(parts):
    import httpx
    member = parts.member("viewer", cluster_id=parts.here)
    headers = headers_of(parts, member["name"])
    url = parts.server.url("/api/v1/events/stream")
    with parts.server.client.stream("GET", f"{url}?cluster_id={parts.here}", headers=headers, timeout=httpx.Timeout(60)) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines).strip() == "retry: 3000"
        parts.event(parts.there)
        parts.event(parts.here)
        told = next(line for line in lines if line.startswith("data:"))
        assert parts.here in told and parts.there not in told
        parts.api("DELETE", f"members/{member['id']}")
        deadline = time.monotonic() + PATIENCE_SECONDS
        for _ in lines:  # until the server ends it; the client's own limit is between two heartbeats
            assert time.monotonic() < deadline, "the stream goes on"


# ---------------------------------------------------------------- roles and people
def test_roles_are_data_each_with_what_it_may_do(world):
    roles = {role["name"]: role for role in world.api("GET", "roles").json()["items"]}
    assert set(roles) == {"viewer", "operator", "approver", "script_author", "admin", "auditor"}
    for role in roles.values():
        assert role["summary"].endswith(".") and all(one["summary"].endswith(".") for one in role["permissions"])
    names = {name: {one["name"] for one in role["permissions"]} for name, role in roles.items()}
    assert "repair.decide" in names["approver"] and "repair.decide" not in names["operator"]
    assert not any(names[role] & {"platform", "agent"} for role in names)
    token = world.service_token("approver")["token"]
    assert set(world.api("GET", "me", token=token).json()["permissions"]) == names["approver"], "what is shown is what is granted"


def test_people_are_listed_with_and_without_roles(world):
    local, name = world.person("viewer")
    bare = str(uuid.uuid4())
    issuer = world.issuer()
    world.sql(f"INSERT INTO person (id, name, federated) VALUES ('{bare}', 'okta:1', true);"
              "INSERT INTO person_identity (org_id, issuer, subject, issuer_id, person_id, email) VALUES"
              f" ('{world.org.id}', '{issuer['issuer']}', 's1', '{issuer['id']}', '{bare}', 'a@example.com')")
    people = {one["id"]: one for one in walk(world, "people", 50)}
    assert (people[local]["name"], people[local]["roles"], people[local]["issuer_id"]) == (name, 1, None)
    assert (people[bare]["roles"], people[bare]["issuer_id"], people[bare]["email"]) == (0, issuer["id"], "a@example.com")
    member = world.made("POST", "members", {"person_id": bare, "role": "operator", "cluster_id": world.org.cluster_id})
    assert (member["person_id"], member["role"]) == (bare, "operator")
    assert {one["id"]: one for one in walk(world, "people", 50)}[bare]["roles"] == 1


def test_people_of_another_organization_are_not_listed(world, server):
    other = World(server, server.add_org("people-other"))
    theirs, _ = other.person()
    assert theirs not in {one["id"] for one in walk(world, "people", 50)}
    assert theirs in {one["id"] for one in walk(other, "people", 50)}
