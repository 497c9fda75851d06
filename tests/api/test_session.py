"""Signing in by a one-time link, another organization, signing out; who one is."""
import json

import pytest
from world import World


@pytest.fixture(scope="module")
def second(server):
    return World(server, server.add_org("session-second"))


def sign_in(world, token, **options):
    return world.server.api("POST", "/api/v1/session", {"token": token}, token=False, **options)


def me(world, headers):
    return world.server.api("GET", "/api/v1/me", token=False, headers=headers)


def cookie_of(answer):
    return {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


def test_a_link_signs_in_once(world):
    person, name = world.person()
    link = world.link(person)
    answer = sign_in(world, link)
    assert answer.status_code == 200
    assert answer.json()["person"] == {"id": person, "name": name}
    assert answer.json()["org"]["name"] == world.org.name
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("muster_session=mss_") and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    who = me(world, cookie_of(answer)).json()
    assert (who["kind"], who["id"], who["name"], who["roles"]) == ("session", person, name, ["admin"])
    again = sign_in(world, link)
    assert again.status_code == 401 and "set-cookie" not in again.headers


def test_links_that_are_none_answer_alike(world):
    person, _ = world.person()
    expired = sign_in(world, world.link(person, minutes=-1))
    unknown = sign_in(world, "msl_" + "x" * 43)
    disabled = world.link(person)
    world.sql(f"UPDATE person SET disabled_at = now() WHERE id = '{person}'")
    for answer in (expired, unknown, sign_in(world, disabled)):
        assert answer.status_code == 401 and answer.json()["detail"] == expired.json()["detail"]


def test_no_secret_is_stored(world):
    person, _ = world.person()
    link = world.link(person)
    secret = sign_in(world, link).headers["set-cookie"].split(";")[0].split("=")[1]
    rows = world.sql("SELECT row_to_json(s)::text FROM session s; SELECT body FROM audit; SELECT row_to_json(l)::text FROM sign_in_link l")
    assert secret not in rows and link not in rows


def test_a_session_begins_in_a_real_org_before_a_demo(world, server):
    demo = World(server, server.add_org("session-a-demo"))
    world.sql(f"UPDATE org SET demo = true WHERE id = '{demo.org.id}'")
    person, _ = world.person(orgs=[demo.org.id])
    assert sign_in(world, world.link(person)).json()["org"]["name"] == world.org.name


def test_switching_goes_to_another_org_with_a_new_secret(world, second):
    headers = world.browser("viewer", orgs=[second.org.id])
    old_end = world.sql("SELECT expires_at FROM session ORDER BY created_at DESC LIMIT 1")
    answer = world.server.api("PUT", "/api/v1/session", {"org_id": second.org.id}, token=False, headers=headers)
    assert answer.status_code == 200 and answer.json()["org"]["id"] == second.org.id
    assert me(world, headers).status_code == 401, "the old secret is void"
    who = me(world, cookie_of(answer)).json()
    assert who["org"]["id"] == second.org.id
    assert {org["name"] for org in who["orgs"]} == {world.org.name, second.org.name}
    assert world.sql("SELECT expires_at FROM session ORDER BY created_at DESC LIMIT 1") == old_end, "it does not live longer"


def test_switching_needs_a_membership(world, second):
    headers = world.browser()
    answer = world.server.api("PUT", "/api/v1/session", {"org_id": second.org.id}, token=False, headers=headers)
    assert answer.status_code == 404 and "set-cookie" not in answer.headers
    assert me(world, headers).status_code == 200, "the session goes on"


def test_a_token_neither_switches_nor_signs_out(world):
    assert world.api("PUT", "session", {"org_id": world.org.id}).status_code == 403
    assert world.api("DELETE", "session").status_code == 403


def test_signing_out_ends_the_session(world):
    headers = world.browser()
    answer = world.server.api("DELETE", "/api/v1/session", token=False, headers=headers)
    assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
    assert me(world, headers).status_code == 401


def test_sessions_leave_audit_rows(world):
    headers = world.browser()
    name = me(world, headers).json()["name"]
    world.server.api("DELETE", "/api/v1/session", token=False, headers=headers)
    rows = [json.loads(line) for line in
            world.sql(f"SELECT body FROM audit WHERE org_id = '{world.org.id}' AND body::json ->> 'actor' = '{name}' ORDER BY seq DESC").split("\n")]
    assert [row["action"] for row in rows] == ["session.delete", "session.create"]
    assert all(row["actor"].startswith(world.mark) and row["address"] == "127.0.0.1" and row["request_id"] for row in rows)


def test_a_service_token_sees_its_own_org(world):
    who = world.api("GET", "me", token=world.server.token("operator")).json()
    assert who["kind"] == "service" and who["roles"] == ["operator"] and not who["platform_admin"]
    assert [(org["id"], org["roles"]) for org in who["orgs"]] == [(world.org.id, ["operator"])]
    assert "node.write" in who["permissions"] and "token.write" not in who["permissions"]
