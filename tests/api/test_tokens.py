"""Service tokens: shown once, used coarsely noted, rotated with an overlap, revoked within seconds everywhere."""
import uuid

import pytest
from resource import last_event
from server import Musterd
from waiting import in_time, seconds_until, wait_for
from world import World


def status_with(server, token, path="/api/v1/me"):
    return server.api("GET", path, token=token).status_code


def test_a_token_works_with_its_role_and_is_shown_once(world):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"name": world.name("ci"), "role": "operator", "expires_in_seconds": 3600}
    answer = world.api("POST", "tokens", body, headers=key)
    made = answer.json()
    assert answer.status_code == 201 and answer.headers["location"] == f"/api/v1/tokens/{made['id']}"
    assert made["token"].startswith("mst_") and made["secret_shown_once"] is False and made["created_by"] == "administrator"
    me = world.api("GET", "me", token=made["token"]).json()
    assert (me["kind"], me["name"], me["roles"], me["platform_admin"]) == ("service", body["name"], ["operator"], False)
    assert me["expires_at"] is not None
    again = world.api("POST", "tokens", body, headers=key)
    assert again.status_code == 201 and again.headers["idempotent-replayed"] == "true"
    assert again.json() == {**made, "token": None, "secret_shown_once": True}
    read = world.api("GET", f"tokens/{made['id']}")
    assert "token" not in read.json() and made["token"] not in read.text
    assert world.sql(f"SELECT count(*) FROM idempotency WHERE body LIKE '%{made['token']}%'") == "0"
    assert world.api("POST", "tokens", {**body, "role": "viewer"}, headers=key).status_code == 422


@pytest.mark.parametrize("change, pointer", [({"role": "root"}, "#/role"), ({"name": ""}, "#/name"), ({"platform_admin": True}, "#/platform_admin"),
                                             ({"expires_in_seconds": 0}, "#/expires_in_seconds")])
def test_what_a_token_cannot_be(world, change, pointer):
    answer = world.api("POST", "tokens", {"name": world.name("t"), "role": "viewer", **change})
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == pointer


def test_a_name_is_free_again_after_the_revocation(world):
    made = world.service_token()
    twin = {"name": made["name"], "role": "viewer"}
    assert world.api("POST", "tokens", twin).json()["code"] == "name_taken"
    assert world.api("DELETE", f"tokens/{made['id']}").status_code == 204
    assert world.api("POST", "tokens", twin).status_code == 201


def test_the_list_shows_those_in_use(server):
    world = World(server, server.add_org("token-list"))
    made = [world.service_token()["id"] for _ in range(4)]
    world.api("DELETE", f"tokens/{made[3]}")
    items = []
    cursor = None
    while True:
        page = world.api("GET", "tokens?limit=2" + (f"&cursor={cursor}" if cursor else "")).json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    ids = [item["id"] for item in items]
    assert ids == sorted(ids, reverse=True) and ids[:3] == made[2::-1] and made[3] not in ids
    assert world.api("GET", f"tokens/{made[3]}").json()["revoked_at"] is not None
    assert world.api("GET", "tokens?cursor=x").status_code == 400


def test_an_expired_token_is_refused(world):
    def attempt():
        made = world.service_token(expires_in_seconds=3600)
        assert status_with(world.server, made["token"]) == 200
        world.sql(f"UPDATE service_token SET expires_at = now() - interval '1 second' WHERE id = '{made['id']}';"
                  "UPDATE installation SET auth_epoch = auth_epoch + 1")
        return seconds_until(lambda: status_with(world.server, made["token"]) == 401)
    in_time(5, attempt)


def test_a_revoked_token_is_refused_within_5_seconds_on_every_replica(world):
    with Musterd(pg=world.server.pg, init=False) as second:
        second.admin = world.server.admin

        def attempt():
            nonlocal made
            made = world.service_token()
            for server in (world.server, second):
                for _ in range(8):  # every loop has it in its cache
                    assert status_with(server, made["token"]) == 200
            assert world.api("DELETE", f"tokens/{made['id']}").status_code == 204
            return seconds_until(lambda: {status_with(server, made["token"]) for server in (world.server, second) for _ in range(8)} == {401})
        made = None
        in_time(5, attempt)
    assert world.api("DELETE", f"tokens/{made['id']}").status_code == 404
    assert last_event(world)["type"] == "token.revoked"


def test_a_rotated_token_has_a_new_secret_and_an_overlap(world):
    made = world.service_token("operator")
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answer = world.api("POST", f"tokens/{made['id']}/rotate", {"overlap_seconds": 3600}, headers=key)
    rotated = answer.json()
    assert answer.status_code == 200 and rotated["token"] != made["token"] and rotated["previous_until"] is not None
    replay = world.api("POST", f"tokens/{made['id']}/rotate", {"overlap_seconds": 3600}, headers=key).json()
    assert replay["token"] is None and replay["secret_shown_once"] is True
    assert status_with(world.server, rotated["token"]) == status_with(world.server, made["token"]) == 200
    assert world.api("GET", "me", token=made["token"]).json()["roles"] == ["operator"]
    last = world.api("POST", f"tokens/{made['id']}/rotate", {}).json()
    wait_for(lambda: {status_with(world.server, rotated["token"]), status_with(world.server, made["token"])} == {401})
    assert status_with(world.server, last["token"]) == 200 and last["previous_until"] is None
    world.api("DELETE", f"tokens/{made['id']}")
    assert world.api("POST", f"tokens/{made['id']}/rotate", {}).status_code == 404


def test_the_last_use_is_noted_coarsely(world):
    made = world.service_token()
    used = lambda: world.api("GET", f"tokens/{made['id']}").json()["last_used_at"]
    assert used() is None
    status_with(world.server, made["token"])
    wait_for(lambda: used() is not None)
    first = used()
    for _ in range(20):
        status_with(world.server, made["token"])
    assert used() == first


def test_a_lost_administrator_token_is_made_anew(world, server):
    """`musterd init` with another file, also after the old one was revoked."""
    org = server.add_org("token-lost")
    listed = server.api("GET", "/api/v1/tokens", token=org.token).json()["items"]
    assert [token["name"] for token in listed] == ["administrator"]
    assert server.api("DELETE", f"/api/v1/tokens/{listed[0]['id']}", token=org.token).status_code == 204
    (server.folder / "token-lost.token").unlink()
    assert status_with(server, server.add_org("token-lost").token) == 200
