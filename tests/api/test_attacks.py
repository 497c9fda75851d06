"""What an attacker tries at the doors of identity, each a promise: nothing is planted, nothing forged, nobody locked out."""
import re
import threading
import time
import uuid

import pytest
from login import Browser, Login
from waiting import wait_for
from world import World


@pytest.fixture(scope="module")
def org(server):
    return World(server, server.add_org(f"attacked-{uuid.uuid4().hex[:8]}"))


def link(world, person, **headers):
    return world.server.api("POST", "/api/v1/session", {"token": world.link(person)}, token=False, headers=headers)


# ---------------------------------------------------------------- sessions
def test_a_cookie_that_was_planted_is_not_taken_over(org):
    """Session fixation: what the browser brings is never what it is signed in with."""
    person, _ = org.person()
    planted = "mss_" + "a" * 43
    answer = link(org, person, **{"Cookie": f"muster_session={planted}", "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200
    given = answer.headers["set-cookie"]
    assert planted not in given
    headers = {"Cookie": f"muster_session={planted}", "Sec-Fetch-Site": "same-origin"}
    assert org.server.api("GET", "/api/v1/me", token=False, headers=headers).status_code == 401


def test_two_cookies_of_one_name_are_none(org):
    headers = org.browser()
    double = {**headers, "Cookie": f"{headers['Cookie']}; muster_session=mss_{'b' * 43}"}
    assert org.server.api("GET", "/api/v1/me", token=False, headers=double).status_code == 401


def test_the_session_is_in_a_cookie_that_pages_do_not_read_and_other_sites_do_not_send(org, idp_host):
    person, _ = org.person()
    cookie = link(org, person).headers["set-cookie"]
    assert re.fullmatch(r"muster_session=mss_[\w-]+; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax", cookie), cookie
    login = Login(org, idp_host.idp())
    answer = Browser(login).sign_in()
    for line in answer.headers.get_list("set-cookie"):
        assert "HttpOnly" in line and "SameSite=Lax" in line and "Domain" not in line, line


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/json",
                                          "application/json+x", "application/jsonp"])
def test_a_form_of_another_site_changes_nothing(org, content_type):
    headers = {**org.browser(), "Content-Type": content_type, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    name = org.name("p")
    answer = org.server.api("POST", "/api/v1/projects", token=False, content='{"name":"%s"}' % name, headers=headers)
    assert answer.status_code in (403, 415), answer.text
    assert org.sql(f"SELECT count(*) FROM project WHERE name = '{name}'") == "0"


@pytest.mark.parametrize("origin", ["null", "http://127.0.0.1", "http://127.0.0.1.evil.example", "https://127.0.0.1:{port}", "http://x@127.0.0.1:{port}"])
def test_an_origin_that_only_looks_like_ours_is_refused(org, origin):
    headers = org.browser()
    del headers["Sec-Fetch-Site"]
    headers["Origin"] = origin.format(port=org.server.port)
    assert org.server.api("POST", "/api/v1/projects", {"name": org.name("p")}, token=False, headers=headers).status_code == 403


# ---------------------------------------------------------------- roles
def test_nobody_below_an_administrator_gives_themselves_a_role(org):
    for role in ("viewer", "operator", "approver", "script_author", "auditor"):
        person, name = org.person(role)
        answer = link(org, person)
        headers = {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
        for body in ({"person_id": person, "role": "admin"}, {"name": name, "role": "admin"}):
            assert org.server.api("POST", "/api/v1/members", body, token=False, headers=headers).status_code == 403
        assert org.server.api("POST", "/api/v1/tokens", {"name": org.name("t"), "role": "admin"}, token=False, headers=headers).status_code == 403
        assert org.sql(f"SELECT string_agg(role, ',') FROM membership WHERE person_id = '{person}'") == role


def test_an_administrator_of_a_part_gives_no_role_anywhere(org):
    cluster = org.cluster()
    person, _ = org.person("viewer")
    org.sql("INSERT INTO access_grant (org_id, id, person_id, role, cluster_id, created_by)"
            f" VALUES ('{org.org.id}', gen_random_uuid(), '{person}', 'admin', '{cluster}', 'test')")
    answer = link(org, person)
    headers = {"Cookie": answer.headers["set-cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    for path, body in (("members", {"person_id": person, "role": "admin"}), ("members", {"person_id": person, "role": "admin", "cluster_id": cluster}),
                       ("tokens", {"name": org.name("t"), "role": "admin"}), ("tokens", {"name": org.name("t"), "role": "admin", "cluster_id": cluster}),
                       ("issuers", org.issuer_body())):
        assert org.server.api("POST", f"/api/v1/{path}", body, token=False, headers=headers).status_code == 403, path


def test_no_field_makes_anybody_an_administrator_of_the_platform(org):
    for path, body in (("members", {"name": org.name("x"), "role": "admin", "platform_admin": True}),
                       ("tokens", {"name": org.name("t"), "role": "admin", "platform_admin": True}),
                       ("members", {"name": org.name("x"), "role": "platform_admin"})):
        assert org.api("POST", path, body, token=org.server.token("admin", org.org.id)).status_code == 422, path


def test_of_two_administrators_who_take_each_others_role_one_stays(server):
    world = World(server, server.add_org(f"last-{uuid.uuid4().hex[:8]}"))
    world.sql(f"DELETE FROM membership WHERE org_id = '{world.org.id}'")
    for _ in range(3):
        both = [world.member("admin")["id"] for _ in range(2)]
        gate, answers = threading.Barrier(2), []

        def take(member, gate=gate, answers=answers):
            gate.wait()
            answers.append(world.api("DELETE", f"members/{member}").status_code)
        threads = [threading.Thread(target=take, args=[member]) for member in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [204, 409]
        world.sql(f"DELETE FROM membership WHERE org_id = '{world.org.id}'")


@pytest.mark.parametrize("place", ["project_id", "cluster_id"])
def test_a_role_in_what_does_not_exist_is_refused(org, place):
    answer = org.api("POST", "members", {"name": org.name("x"), "role": "viewer", place: str(uuid.uuid4())})
    assert answer.status_code == 422, answer.text


# ---------------------------------------------------------------- tokens of issuers
def test_a_huge_claim_of_groups_is_refused_and_never_taken_for_none(org, idp_host):
    """Who names more than fits has no roles by omission, and no request hangs on it."""
    login = Login(org, idp_host.idp(), bearer=True)
    login.grant("g-1", "viewer")
    get = lambda token: org.server.api("GET", "/api/v1/clusters", token=token)
    wait_for(lambda: get(login.idp.token(groups=["g-1"])).status_code == 200)
    many = get(login.idp.token(groups=["g-1", *(f"{number}" for number in range(1001))]))
    assert many.status_code == 401 and many.json()["reason"] == "groups_overage", many.text
    long = get(login.idp.token(groups=["g" * 20000]))
    assert long.status_code in (400, 401), long.text


@pytest.mark.parametrize("subject", ["a\r\nSet-Cookie: x=y", "a\x00b", "a\x1b[31m", "x" * 3000, "", 7, None])
def test_a_subject_that_would_forge_a_line_is_nobody(org, idp_host, subject):
    login = Login(org, idp_host.idp(), bearer=True)
    wait_for(lambda: org.server.api("GET", "/api/v1/me", token=login.idp.token()).status_code == 200)
    answer = org.server.api("GET", "/api/v1/me", token=login.idp.token(sub=subject))
    assert answer.status_code == 401 and "set-cookie" not in answer.headers, answer.text
    assert org.sql(f"SELECT count(*) FROM person_identity WHERE issuer = '{login.idp.url}'") == "1"


def test_a_stream_ends_with_the_token_that_opened_it(org, idp_host):
    login = Login(org, idp_host.idp(), bearer=True)
    login.grant("ops", "viewer")
    wait_for(lambda: org.server.api("GET", "/api/v1/clusters", token=login.idp.token(groups=["ops"])).status_code == 200)
    token = login.idp.token(groups=["ops"], exp=int(time.time()) + 5)
    ended = threading.Event()

    def read(events):
        for _ in events.iter_raw():
            pass
        ended.set()
    with org.server.client.stream("GET", org.server.url("/api/v1/events/stream"), headers={"Authorization": f"Bearer {token}"}) as events:
        assert events.status_code == 200
        threading.Thread(target=read, args=[events], daemon=True).start()
        assert ended.wait(90), "the stream outlives its token"
