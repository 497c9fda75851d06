"""Issuers: set up, shown without their secret, changed field by field, removed."""
import uuid

import pytest
from world import World

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
FULL = {"title": "Our people", "preset": "keycloak", "audiences": ["a", "b"], "client_id": "c", "client_secret": "s3cret-canary",
        "algorithms": ["RS256", "ES256"], "username_claim": "email", "username_prefix": "kc:", "groups_path": "realm_access.roles",
        "groups_prefix": "kc:", "required_claims": {"hd": "example.com"}, "allowed_domains": ["example.com"], "leeway_s": 30,
        "max_lifetime_s": 3600, "quirks": ["email_verified_absent"], "discovery_url": "https://idp.invalid/d", "ca_certificate": PEM,
        "scopes": ["openid"], "sign_in": False, "bearer": True, "enabled": False, "not_before": "2026-01-01T00:00:00+00:00"}
DEFAULTS = {"title": "", "preset": "generic", "audiences": None, "client_secret_set": False, "algorithms": None, "username_claim": "sub",
            "username_prefix": None, "groups_claim": "groups", "groups_path": None, "groups_prefix": None, "required_claims": {},
            "allowed_domains": [], "entra_tenants": [], "leeway_s": 60, "max_lifetime_s": 86400, "quirks": [], "discovery_url": None,
            "ca_certificate": None, "scopes": ["openid", "profile", "email"], "sign_in": True, "bearer": False, "not_before": None}


def change(world, issuer, body, version=None):
    return world.api("PATCH", f"issuers/{issuer['id']}", body, headers={"If-Match": f'"{version or issuer["version"]}"'})


def test_an_issuer_is_shown_with_its_defaults_and_what_to_copy(world):
    body = world.issuer_body()
    answer = world.api("POST", "issuers", body)
    made = answer.json()
    assert answer.status_code == 201 and answer.headers["location"] == f"/api/v1/issuers/{made['id']}"
    assert {key: made[key] for key in DEFAULTS} == DEFAULTS
    assert made["keys"] == {"fetched_at": None, "expires_at": None, "stale": False, "count": 0, "unusable": [], "error": None}
    assert made["redirect_uri"].endswith("/auth/callback")
    assert made["backchannel_logout_uri"].endswith(f"/auth/backchannel-logout/{made['id']}")
    read = world.api("GET", f"issuers/{made['id']}")
    assert read.json() == made and read.headers["etag"] == '"1"'


def test_everything_that_is_given_is_kept_and_the_secret_is_not_shown(world):
    made = world.issuer(**FULL)
    wanted = {key: value for key, value in FULL.items() if key != "client_secret"}
    assert {key: made[key] for key in wanted} == wanted
    assert made["client_secret_set"] is True and made["groups_claim"] is None
    assert FULL["client_secret"] not in world.api("GET", f"issuers/{made['id']}").text
    sealed = world.sql(f"SELECT encode(client_secret, 'escape') FROM issuer WHERE id = '{made['id']}'")
    assert sealed and FULL["client_secret"] not in sealed
    told = world.sql(f"SELECT body FROM audit WHERE target = '{made['id']}'")
    assert '"issuer.create"' in told and FULL["client_secret"] not in told


def test_a_repetition_with_the_same_key_makes_one(world):
    key, body = {"Idempotency-Key": str(uuid.uuid4())}, world.issuer_body(client_secret="x")
    first, again = (world.api("POST", "issuers", body, headers=key) for _ in range(2))
    assert first.status_code == again.status_code == 201 and first.json() == again.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert world.api("POST", "issuers", {**body, "title": "other"}, headers=key).status_code == 422


@pytest.mark.parametrize("fields, pointer", [
    ({"issuer": "http://idp.example.com"}, "#/issuer"), ({"issuer": "https://10.0.0.1"}, "#/issuer"),
    ({"issuer": "https://127.1/"}, "#/issuer"), ({"issuer": "https://idp.example.com/?x"}, "#/issuer"),
    ({"issuer": "https://u@idp.example.com"}, "#/issuer"), ({"name": "Bad Name"}, "#/name"), ({"surprise": 1}, "#/surprise"),
    ({"algorithms": ["HS256"]}, "#/algorithms/0"), ({"algorithms": ["none"]}, "#/algorithms/0"), ({"username_prefix": ""}, "#/username_prefix"),
    ({"groups_claim": "g", "groups_path": "a.b"}, "#/groups_path"), ({"leeway_s": 61}, "#/leeway_s"), ({"client_id": None}, "#/client_id"),
    ({"discovery_url": "http://idp.example.com"}, "#/discovery_url"), ({"discovery_url": "https://[::1]/"}, "#/discovery_url"),
    ({"ca_certificate": "x"}, "#/ca_certificate"), ({"entra_tenants": ["x"]}, "#/entra_tenants"), ({"enabled": 1}, "#/enabled")])
def test_I9_what_an_issuer_cannot_be(world, fields, pointer):
    answer = world.api("POST", "issuers", world.issuer_body(**fields))
    assert answer.status_code == 422, answer.text
    assert pointer in {error["pointer"] for error in answer.json()["errors"]}


def test_name_and_url_are_unique_in_an_org_only(world, server):
    made = world.issuer()
    assert world.api("POST", "issuers", world.issuer_body(name=made["name"])).json()["code"] == "name_taken"
    assert world.api("POST", "issuers", world.issuer_body(issuer=made["issuer"])).status_code == 409
    other = World(server, server.add_org("issuer-twin"))
    assert other.issuer(name=made["name"], issuer=made["issuer"])["id"] != made["id"]


def test_a_change_keeps_what_it_does_not_name_and_null_gives_the_default(world):
    made = world.issuer(**FULL)
    answer = change(world, made, {"title": "T", "leeway_s": None, "groups_path": None, "bearer": False})
    assert answer.status_code == 200 and answer.headers["etag"] == '"2"'
    now = answer.json()
    assert (now["title"], now["leeway_s"], now["groups_path"], now["groups_claim"], now["bearer"]) == ("T", 60, None, "groups", False)
    kept = [key for key in FULL if key not in ("title", "leeway_s", "groups_path", "bearer", "client_secret")]
    assert {key: now[key] for key in kept} == {key: FULL[key] for key in kept} and now["client_secret_set"] is True
    assert change(world, made, {"title": "U"}).status_code == 412
    assert change(world, made, {"groups_claim": None}, 2).json()["groups_claim"] is None
    assert change(world, made, {"client_secret": None}, 3).json()["client_secret_set"] is False
    assert change(world, made, {"client_secret": "again"}, 4).json()["client_secret_set"] is True


@pytest.mark.parametrize("body, status", [({"issuer": "http://x"}, 422), ({"name": None}, 422), ({"id": str(uuid.uuid4())}, 422), ([], 422)])
def test_a_change_is_judged_like_a_new_one(world, body, status):
    made = world.issuer()
    assert change(world, made, body).status_code == status
    assert world.api("GET", f"issuers/{made['id']}").json() == made


def test_a_change_that_is_no_json_or_says_a_thing_twice_is_refused(world):
    made = world.issuer()
    for text in ("{", '{"title": "a", "title": "b"}'):
        answer = world.server.client.patch(world.server.url(f"/api/v1/issuers/{made['id']}"), content=text, headers={
            "Authorization": f"Bearer {world.org.token}", "Content-Type": "application/json", "If-Match": '"1"'})
        assert answer.status_code == 400, answer.text


def test_another_address_drops_the_keys(world):
    made = world.issuer()
    world.sql(f"UPDATE issuer_key_set SET keys = '{{}}', fetched_at = now(), count = 1 WHERE issuer_id = '{made['id']}'")
    assert change(world, made, {"title": "T"}).json()["keys"]["count"] == 1
    now = change(world, made, {"issuer": made["issuer"] + "/x"}, 2).json()
    assert (now["keys"]["count"], now["keys"]["fetched_at"]) == (0, None)


def test_a_removed_issuer_is_gone_and_audited(world):
    made = world.issuer()
    assert world.api("DELETE", f"issuers/{made['id']}").status_code == 204
    assert world.api("GET", f"issuers/{made['id']}").status_code == 404
    assert change(world, made, {"title": "T"}).status_code == 404
    assert made["id"] not in {item["id"] for item in world.api("GET", "issuers", params={"limit": 200}).json()["items"]}
    assert world.sql(f"SELECT string_agg(action, ' ' ORDER BY seq) FROM audit WHERE target = '{made['id']}' AND body::json->>'outcome' = 'done'") \
        == "issuer.create issuer.delete"


def test_the_list_has_pages(server):
    world = World(server, server.add_org("issuer-list"))
    made = [world.issuer()["id"] for _ in range(3)]
    first = world.api("GET", "issuers", params={"limit": 2}).json()
    second = world.api("GET", "issuers", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + second["items"]] == made and second["next_cursor"] is None
