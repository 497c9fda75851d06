"""Signing in at an issuer: what protects the flow, who one is then, and how it ends."""
import json
import threading
import time
import urllib.parse

import pytest
from login import Browser, Login

DEADLINE = 30


@pytest.fixture
def login(world, idp_host):
    made = Login(world, idp_host.idp())
    made.grant("ops", "operator")
    return made


@pytest.fixture
def browser(login):
    return Browser(login)


def refused(answer, code):
    assert answer.status_code == 302, answer.text
    assert answer.headers["location"] == f"/sign-in?error={code}"


def wait(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


# ---------------------------------------------------------------- the flow
def test_I3_signing_in_gives_a_session_with_the_roles_of_ones_groups(login, browser):
    login.idp.claims.update(groups=["ops", "others"], email="a@example.com", email_verified=True)
    answer = browser.sign_in("/clusters?x=1")
    assert answer.status_code == 302 and answer.headers["location"] == "/clusters?x=1"
    session = next(line for line in answer.headers.get_list("set-cookie") if line.startswith("muster_session="))
    assert "HttpOnly" in session and "SameSite=Lax" in session and "Path=/" in session
    me = browser.me().json()
    assert (me["kind"], me["name"], me["roles"]) == ("session", login.idp.sub, ["operator"])
    assert list(browser.cookies) == ["muster_session"], "the cookie of the try is gone"


def test_a_sign_in_leaves_audit_rows_and_no_secret(login, browser):
    browser.sign_in()
    rows = login.world.sql(f"SELECT body FROM audit WHERE org_id = '{login.world.org.id}' AND actor = '{login.idp.sub}'")
    assert {json.loads(line)["action"] for line in rows.splitlines()} == {"person.create", "session.create"}
    stored = login.world.sql("SELECT row_to_json(l)::text FROM login l; SELECT row_to_json(s)::text FROM session s;"
                             " SELECT row_to_json(a)::text FROM login_attempt a; SELECT body FROM audit")
    for secret in (*login.idp.refresh_tokens, browser.cookies["muster_session"], login.idp.client_secret):
        assert secret and secret not in stored


def test_I1_the_same_person_comes_back_by_issuer_and_subject(login, browser):
    browser.sign_in()
    first = browser.me().json()["id"]
    login.idp.claims["email"] = "other@example.com"
    again = Browser(login)
    again.sign_in()
    assert again.me().json()["id"] == first
    login.idp.sub = "somebody-else"
    other = Browser(login)
    other.sign_in()
    assert other.me().json()["id"] != first


def test_a_name_that_is_taken_signs_nobody_else_in(login, browser):
    """A local person of the same name is another one."""
    person, name = login.world.person("admin")
    login.idp.sub = name
    browser.sign_in()
    me = browser.me().json()
    assert me["id"] != person and me["roles"] == []


def test_state_two_tabs(login, browser):
    one, two = browser.start("/a"), browser.start("/b")
    assert len(browser.cookies) == 2
    assert browser.back(login.idp.authorize(one)).headers["location"] == "/a"
    assert browser.back(login.idp.authorize(two)).headers["location"] == "/b"


def test_a_browser_keeps_at_most_eight_tries(browser):
    for _ in range(10):
        browser.start()
    assert len(browser.cookies) == 8


def test_state_replay(login, browser):
    query = login.idp.authorize(browser.start())
    cookies = dict(browser.cookies)
    assert browser.back(query).status_code == 302
    again = Browser(login)
    again.cookies = cookies
    answer = again.back(query)
    assert answer.status_code == 400 and "muster_session" not in again.cookies


@pytest.mark.parametrize("change", [{"state": "x" * 43}, {"state": None}, {"state": ""}])
def test_an_answer_with_another_state_is_refused(login, browser, change):
    answer = browser.sign_in(**change)
    assert answer.status_code == 400 and "muster_session" not in browser.cookies


def test_I3_an_answer_in_another_browser_is_refused_and_uses_nothing_up(login, browser):
    query = login.idp.authorize(browser.start())
    other = Browser(login)
    assert other.back(query).status_code == 400
    other.start()
    assert other.back(query).status_code == 400, "a try of its own does not help"
    assert browser.back(query).headers["location"] == "/"


def test_duplicate_callback_param(login, browser):
    query = login.idp.authorize(browser.start())
    for more in ("&code=b", "&state=s", "&iss=i"):
        assert browser.back(query + more).status_code == 400
    assert browser.back(query + "&session_state=1&scope=openid").status_code == 302, "others are ignored"


def test_pkce_required(login, browser):
    """A stolen code is worth nothing without the browser's secret."""
    mine = browser.start()
    thief = Browser(login)
    theirs = thief.start()
    query = login.idp.authorize(mine)
    code = urllib.parse.parse_qs(query)["code"][0]
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(theirs).query)["state"][0]
    answer = thief.back(urllib.parse.urlencode({"code": code, "state": state, "iss": login.idp.url}))
    refused(answer, "idp_refused")
    assert "muster_session" not in thief.cookies


@pytest.mark.parametrize("nonce", [None, "n2"])
def test_nonce_missing_or_wrong(login, browser, nonce):
    login.idp.answer = lambda form, tokens: {**tokens, "id_token": login.idp.token(nonce=nonce)}
    refused(browser.sign_in(), "nonce_mismatch")
    assert "muster_session" not in browser.cookies


@pytest.mark.parametrize("iss", [None, "https://evil.example.test"])
def test_I3_an_answer_of_another_issuer_is_refused(login, browser, iss):
    """RFC 9207: the code would go to the wrong token endpoint."""
    refused(browser.sign_in(iss=iss), "iss_mismatch")
    assert login.idp.calls["/token"] == 0


@pytest.mark.parametrize("wanted", ["//evil.example.test", "/\\evil.example.test", "https://evil.example.test",
                                    "/%2f%5cevil.example.test/a?https://cp.example.test/", "javascript:alert(1)"])
def test_open_redirect_return_to(browser, wanted):
    assert browser.sign_in(wanted).headers["location"] == "/"


@pytest.mark.parametrize("error, code", [("access_denied", "access_denied"), ("<script>", "idp_refused")])
def test_what_the_issuer_refuses_is_shown_by_its_code(browser, error, code):
    refused(browser.sign_in(code=None, error=error), code)


def test_an_expired_try_is_refused(login, browser):
    query = login.idp.authorize(browser.start())
    login.world.sql(f"UPDATE login_attempt SET expires_at = now() - interval '1 second' WHERE issuer_id = '{login.id}'")
    assert browser.back(query).status_code == 400


@pytest.mark.parametrize("claims, code", [
    ({"aud": "other"}, "aud_mismatch"), ({"iss": "https://evil.example.test"}, "iss_mismatch"), ({"exp": 1000}, "expired"),
    ({"sub": None}, "claim_missing"), ({"_claim_names": {"groups": "src1"}, "groups": None}, "groups_overage")])
def test_a_bad_id_token_signs_nobody_in_and_is_audited(login, browser, claims, code):
    def answer(form, tokens):
        nonce = urllib.parse.parse_qs(urllib.parse.urlsplit(location).query)["nonce"][0]
        return {**tokens, "id_token": login.idp.token(nonce=nonce, **claims)}
    location = browser.start()
    login.idp.answer = answer
    refused(browser.back(login.idp.authorize(location)), code)
    assert "muster_session" not in browser.cookies
    row = login.world.sql(f"SELECT body FROM audit WHERE org_id = '{login.world.org.id}' AND target = '{login.id}'"
                          " AND action = 'session.create'")
    assert json.loads(row)["outcome"] == "denied" and json.loads(row)["reason"] == code


def test_a_token_endpoint_that_is_away_is_said(login, browser):
    location = browser.start()
    login.idp.answer = lambda form, tokens: {"status": 503}
    refused(browser.back(login.idp.authorize(location)), "idp_unavailable")


def test_a_public_client_and_one_that_posts_its_secret_sign_in(world, idp_host):
    public = Login(world, idp_host.idp(client_secret=None))
    assert Browser(public).sign_in().headers["location"] == "/"
    idp = idp_host.idp()
    idp.discovery["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert Browser(Login(world, idp)).sign_in().headers["location"] == "/"


def test_an_issuer_that_is_off_or_unknown_is_404(world, idp_host):
    for fields in ({"enabled": False}, {"sign_in": False}):
        login = Login(world, idp_host.idp(), **fields)
        assert Browser(login).api("GET", f"/auth/sign-in/{login.id}").status_code == 404
    assert world.api("GET", "/auth/sign-in/0192aaaa-0000-7000-8000-00000000ffff", token=False).status_code == 404


def test_a_disabled_person_does_not_sign_in(login, browser):
    browser.sign_in()
    login.world.sql(f"UPDATE person SET disabled_at = now() WHERE name = '{login.idp.sub}'")
    assert browser.me().status_code == 401
    refused(Browser(login).sign_in(), "person_disabled")


# ---------------------------------------------------------------- sessions
def test_sessions_tell_where_and_with_what(login, browser):
    browser.sign_in()
    second = Browser(login, "Other/2.0")
    second.sign_in()
    items = second.api("GET", "/api/v1/sessions").json()["items"]
    assert [(i["address"], i["user_agent"], i["current"], i["issuer"]["id"]) for i in items] == \
        [("127.0.0.1", "Other/2.0", True, login.id), ("127.0.0.1", "Test Browser/1.0", False, login.id)]
    assert second.api("DELETE", f"/api/v1/sessions/{items[1]['id']}").status_code == 204
    assert browser.me().status_code == 401 and second.me().status_code == 200
    assert second.api("DELETE", f"/api/v1/sessions/{items[1]['id']}").status_code == 404


def test_nobody_ends_anothers_session(login, browser, idp_host):
    browser.sign_in()
    mine = browser.api("GET", "/api/v1/sessions").json()["items"][0]["id"]
    login.idp.sub = "another-person"
    other = Browser(login)
    other.sign_in()
    assert other.api("DELETE", f"/api/v1/sessions/{mine}").status_code == 404
    assert [i["id"] for i in other.api("GET", "/api/v1/sessions").json()["items"]] != [mine]
    assert browser.me().status_code == 200


def test_a_service_token_has_no_sessions(world):
    assert world.api("GET", "sessions").status_code == 403
    assert world.api("DELETE", "sessions/0192aaaa-0000-7000-8000-00000000ffff").status_code == 403
    assert world.api("POST", "/auth/sign-out", {}).status_code == 403


def test_a_session_ends_with_its_issuer(login, browser):
    browser.sign_in()
    issuer = login.world.api("GET", f"issuers/{login.id}")
    login.world.api("PATCH", f"issuers/{login.id}", {"enabled": False}, headers={"If-Match": issuer.headers["etag"]})
    assert browser.me().status_code == 401


def test_signing_out_ends_the_session_and_names_the_issuers_page(login, browser):
    browser.sign_in()
    answer = browser.api("POST", "/auth/sign-out", {})
    assert answer.status_code == 200 and "muster_session" not in browser.cookies
    url = urllib.parse.urlsplit(answer.json()["url"])
    query = urllib.parse.parse_qs(url.query)
    assert f"{url.scheme}://{url.netloc}{url.path}" == login.idp.url + "/end"
    assert query["client_id"] == ["muster"] and query["post_logout_redirect_uri"][0].endswith("/sign-in")
    assert query["id_token_hint"][0].count(".") == 2
    assert login.sessions() == 0


def test_signing_out_of_a_one_time_link_goes_nowhere_else(world):
    headers = world.browser()
    answer = world.server.api("POST", "/auth/sign-out", {}, token=False, headers=headers)
    assert answer.status_code == 200 and answer.json() == {"url": None}
    assert world.server.api("GET", "/api/v1/me", token=False, headers=headers).status_code == 401


def test_signing_out_takes_no_foreign_page(login, browser):
    browser.sign_in()
    headers = {**browser.headers, "Sec-Fetch-Site": "cross-site"}
    assert login.world.server.api("POST", "/auth/sign-out", {}, token=False, headers=headers).status_code == 403
    assert browser.me().status_code == 200


# ---------------------------------------------------------------- back-channel logout
def logout(login, token=None, **claims):
    body = urllib.parse.urlencode({"logout_token": token or login.idp.logout_token(**claims)})
    return login.world.server.client.post(login.world.server.url(f"/auth/backchannel-logout/{login.id}"), content=body,
                                          headers={"Content-Type": "application/x-www-form-urlencoded"})


def three(login, **sids):
    browsers = []
    for sid in ("s-1", "s-2", "s-3"):
        login.idp.claims["sid"] = sid
        browsers.append(Browser(login))
        browsers[-1].sign_in()
    del login.idp.claims["sid"]
    return browsers


def test_a_logout_of_one_session_of_the_issuer_ends_that_one(login):
    browsers = three(login)
    assert logout(login, sid="s-2").status_code == 200
    assert [b.me().status_code for b in browsers] == [200, 401, 200]


def test_logout_sub_only_all_sessions(login):
    browsers = three(login)
    assert logout(login).status_code == 200
    assert [b.me().status_code for b in browsers] == [401, 401, 401]
    rows = login.world.sql(f"SELECT body FROM audit WHERE org_id = '{login.world.org.id}' AND body LIKE '%{login.idp.sub}%'"
                           " AND action = 'session.end'")
    assert json.loads(rows.splitlines()[-1])["reason"] == "backchannel_logout"


def test_a_logout_token_acts_once(login, browser):
    token = login.idp.logout_token()
    assert logout(login, token).status_code == 200
    login.idp.claims["sid"] = "s-9"
    browser.sign_in()
    again = logout(login, token)
    assert again.status_code == 400 and "replay" in again.json()["detail"]
    assert browser.me().status_code == 200


@pytest.mark.parametrize("claims, code", [
    ({"events": None}, "claim_missing"), ({"nonce": "n"}, "typ_mismatch"), ({"jti": None}, "claim_missing"), ({"iat": None}, "claim_missing"),
    ({"aud": "other"}, "aud_mismatch"), ({"sub": None, "sid": None}, "claim_missing")])
def test_a_logout_token_that_is_none_ends_nothing(login, browser, claims, code):
    browser.sign_in()
    answer = logout(login, **claims)
    assert answer.status_code == 400 and code in answer.json()["detail"], answer.text
    assert browser.me().status_code == 200


def test_an_id_token_is_no_logout_token(login, browser):
    browser.sign_in()
    assert logout(login, login.idp.token()).status_code == 400
    assert browser.me().status_code == 200


def test_a_logout_form_with_two_tokens_or_none_is_refused(login):
    server = login.world.server
    for body in ("", "logout_token=a&logout_token=b", "logout_token="):
        assert server.client.post(server.url(f"/auth/backchannel-logout/{login.id}"), content=body).status_code == 400


# ---------------------------------------------------------------- refresh
def due(login):
    """Its tokens end now."""
    login.world.sql(f"UPDATE login SET refresh_at = now() WHERE issuer_id = '{login.id}'")


def refreshed(login):
    return login.world.sql(f"SELECT count(*) FROM login WHERE issuer_id = '{login.id}' AND refreshed_at IS NOT NULL") != "0"


def test_refresh_groups_removed(login, browser):
    login.idp.claims["groups"] = ["ops"]
    browser.sign_in()
    assert browser.me().json()["roles"] == ["operator"]
    login.idp.claims["groups"] = []
    due(login)
    wait(lambda: browser.me().json()["roles"] == [], "the groups of the refreshed token count")
    row = login.world.sql(f"SELECT body FROM audit WHERE org_id = '{login.world.org.id}' AND action = 'person.groups'"
                          f" AND body LIKE '%{login.idp.sub}%'")
    assert json.loads(row)["before"] == {"groups": ["ops"]} and json.loads(row)["after"] == {"groups": []}


def test_refresh_no_id_token(login, browser):
    login.idp.claims["groups"] = ["ops"]
    browser.sign_in()
    login.idp.claims["groups"] = ["ops", "more"]
    login.idp.answer = lambda form, tokens: {"access_token": "a", "expires_in": 300}
    due(login)
    wait(lambda: refreshed(login), "it was refreshed")
    assert browser.me().json()["roles"] == ["operator"]


def test_refresh_sub_changes(login, browser):
    browser.sign_in()
    login.idp.sub = "u-2"
    due(login)
    wait(lambda: browser.me().status_code == 401, "the session of another subject ends")
    row = login.world.sql(f"SELECT body FROM audit WHERE org_id = '{login.world.org.id}' AND action = 'session.end'"
                          " AND body LIKE '%subject_changed%' ORDER BY seq DESC LIMIT 1")
    assert row


def test_a_refresh_that_is_refused_signs_out(login, browser):
    browser.sign_in()
    login.idp.refresh_tokens.clear()
    due(login)
    wait(lambda: browser.me().status_code == 401, "the session ends")


def test_a_bad_refreshed_token_signs_out(login, browser):
    browser.sign_in()
    login.idp.answer = lambda form, tokens: {**tokens, "id_token": login.idp.token(aud="other")}
    due(login)
    wait(lambda: browser.me().status_code == 401, "the session ends")


def test_an_issuer_that_is_away_signs_nobody_out(login, browser):
    browser.sign_in()
    login.idp.down = True
    due(login)
    wait(lambda: login.world.sql(f"SELECT min(tries) > 0 FROM login WHERE issuer_id = '{login.id}'") == "t", "it was tried")
    assert browser.me().status_code == 200
    login.idp.down = False
    due(login)
    wait(lambda: refreshed(login), "it is tried again")
    assert browser.me().status_code == 200


def test_each_refresh_uses_the_newest_token(login, browser):
    browser.sign_in()
    for _ in range(3):
        before = login.idp.calls["/token"]
        due(login)
        wait(lambda: login.idp.calls["/token"] > before, "it was refreshed")
        wait(lambda: login.world.sql(f"SELECT min(tries) FROM login WHERE issuer_id = '{login.id}'") == "0", "it was stored")
    assert browser.me().status_code == 200 and login.idp.calls["/token"] == 4


# ---------------------------------------------------------------- what is offered
def test_the_sign_in_page_offers_the_issuers_of_an_org(world, server, idp_host):
    from world import World
    org = World(server, server.add_org("sign-in-offers"))
    shown = Login(org, idp_host.idp(), title="Shown", preset="okta")
    Login(org, idp_host.idp(), title="Off", sign_in=False)
    answer = server.api("GET", "/api/v1/sign-in-options?org=sign-in-offers", token=False)
    assert answer.json() == {"items": [{"issuer_id": shown.id, "title": "Shown", "preset": "okta", "url": f"/auth/sign-in/{shown.id}"}]}
    assert server.api("GET", "/api/v1/sign-in-options?org=none-of-this-name", token=False).json() == {"items": []}


def test_two_first_sign_ins_at_once_make_one_person(login):
    browsers = [Browser(login) for _ in range(6)]
    queries = [login.idp.authorize(browser.start()) for browser in browsers]
    answers = []
    threads = [threading.Thread(target=lambda b=b, q=q: answers.append(b.back(q).status_code)) for b, q in zip(browsers, queries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [302] * 6
    assert len({browser.me().json()["id"] for browser in browsers}) == 1
    assert login.world.sql(f"SELECT count(*) FROM person WHERE name = '{login.idp.sub}'") == "1"
