"""Signing in at oidc-provider, over TLS: login, refresh with reuse detection, new keys, outage, both logouts."""
import time
import urllib.parse

import pytest
from browser import Browser

DEADLINE = 60
CLIENT, SECRET = "muster", "a secret / with odd:characters"


def wait(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def issuer(world, server, provider, authority):
    made = world.issuer(name="real", enabled=True, issuer=provider.url, client_id=CLIENT, client_secret=SECRET, preset="generic",
                        ca_certificate=authority.pem, scopes=["openid", "profile", "email", "offline_access"])
    provider.tell("configure", user="alice", users={"alice": {"groups": ["ops"], "email": "alice@example.com", "email_verified": True}},
                  clients=[{"client_id": CLIENT, "client_secret": SECRET, "redirect_uris": [made["redirect_uri"]],
                            "post_logout_redirect_uris": [server.url("/sign-in")], "grant_types": ["authorization_code", "refresh_token"],
                            "response_types": ["code"], "backchannel_logout_uri": made["backchannel_logout_uri"],
                            "backchannel_logout_session_required": True}])
    world.sql("INSERT INTO group_grant (org_id, id, issuer_id, group_name, role, created_by)"
              f" VALUES ('{world.org.id}', gen_random_uuid(), '{made['id']}', 'ops', 'operator', 'test')")
    return made["id"]


@pytest.fixture
def user(provider, issuer):
    """A person of this test, alone with the provider's attention."""
    name = f"u{time.monotonic_ns()}"
    provider.tell("configure", user=name, users={name: {"groups": ["ops"], "email": f"{name}@example.com", "email_verified": True}}, lives={})
    return name


@pytest.fixture
def make_browser(server, folder, user):
    made = []

    def make():
        made.append(Browser(server, str(folder / "ca.pem")))
        return made[-1]
    yield make
    for browser in made:
        browser.close()


def due(world, user):
    world.sql(f"UPDATE login SET refresh_at = now() WHERE subject = '{user}'")


def refreshed(world, user):
    return int(world.sql(f"SELECT count(*) FROM login WHERE subject = '{user}' AND refreshed_at > created_at AND tries = 0"))


def test_login_gives_a_host_cookie_and_the_roles_of_ones_groups(issuer, user, make_browser):
    browser = make_browser()
    assert browser.sign_in(issuer, "/clusters") == "/clusters"
    me = browser.me().json()
    assert (me["kind"], me["name"], me["roles"]) == ("session", user, ["operator"])
    jar = browser.jars[urllib.parse.urlsplit(browser.server.url("/")).netloc]
    assert list(jar) == ["__Host-muster"]


def test_two_tabs_sign_in_side_by_side(issuer, make_browser):
    browser = make_browser()
    one, two = (browser.request("GET", browser.server.url(f"/auth/sign-in/{issuer}?return_to=/{tab}")).headers["location"] for tab in "ab")
    assert browser.follow(one).headers["location"] == "/a"
    assert browser.follow(two).headers["location"] == "/b"


def test_refresh_maps_the_groups_anew_and_rotates_the_token(world, provider, issuer, user, make_browser):
    browser = make_browser()
    browser.sign_in(issuer)
    provider.tell("configure", users={user: {"groups": []}})
    due(world, user)
    wait(lambda: browser.me().json()["roles"] == [], "the groups of the new ID token")
    before = world.sql(f"SELECT refreshed_at FROM login WHERE subject = '{user}'")
    due(world, user)
    wait(lambda: world.sql(f"SELECT refreshed_at FROM login WHERE subject = '{user}'") != before, "the rotated token is good too")


def test_reuse_of_a_refresh_token_ends_the_session(world, provider, issuer, user, make_browser):
    """Who stole the former token and uses it kills the grant at the provider; the session does not outlive it."""
    browser = make_browser()
    browser.sign_in(issuer)
    kept = world.sql(f"SELECT encode(refresh_token, 'hex') FROM login WHERE subject = '{user}'")
    due(world, user)
    wait(lambda: refreshed(world, user) == 1, "it was refreshed")
    world.sql(f"UPDATE login SET refresh_token = decode('{kept}', 'hex'), refresh_at = now() WHERE subject = '{user}'")
    wait(lambda: browser.me().status_code == 401, "the provider refuses, the session ends")
    assert "invalid_grant" in world.sql(f"SELECT body FROM audit WHERE org_id = '{world.org.id}' AND action = 'session.end'"
                                        f" AND body LIKE '%{user}%'")


def test_new_keys_are_found_when_a_token_names_them(provider, issuer, make_browser):
    make_browser().sign_in(issuer)
    for keep in (True, False):
        provider.tell("rotate", keep=keep)
        browser = make_browser()
        # Keys of one issuer are fetched once a second here: a try in between is refused.
        wait(lambda: browser.sign_in(issuer) == "/", "the new key is found")
        assert browser.me().status_code == 200


def test_an_outage_signs_nobody_out_and_new_ones_are_told(world, provider, issuer, user, make_browser):
    browser, late = make_browser(), make_browser()
    browser.sign_in(issuer)
    provider.tell("down", value=True)
    try:
        due(world, user)
        wait(lambda: world.sql(f"SELECT max(tries) FROM login WHERE subject = '{user}'") != "0", "a refresh was tried")
        assert browser.me().status_code == 200
        sent = late.request("GET", late.server.url(f"/auth/sign-in/{issuer}"))
        assert sent.status_code == 302 and sent.headers["location"].startswith(provider.url), "its addresses are still known"
    finally:
        provider.tell("down", value=False)
    due(world, user)
    wait(lambda: refreshed(world, user) == 1, "it goes on")
    assert browser.me().status_code == 200


def test_logout_here_leads_to_the_providers_and_back(server, issuer, user, make_browser):
    browser = make_browser()
    browser.sign_in(issuer)
    url = browser.api("POST", "/auth/sign-out", {}).json()["url"]
    assert browser.me().status_code == 401
    page = browser.follow(url)
    assert page.status_code == 200 and 'name="xsrf"' in page.text, "the hint is good: it asks whether to end its session"
    xsrf = page.text.split('name="xsrf" value="')[1].split('"')[0]
    action = page.text.split('action="')[1].split('"')[0]
    done = browser.request("POST", action, data={"xsrf": xsrf, "logout": "yes"})
    assert done.status_code in (302, 303) and done.headers["location"].startswith(server.url("/sign-in"))


def test_logout_at_the_provider_ends_all_sessions_of_its_session(world, server, provider, issuer, user, make_browser):
    """Back-channel logout: the provider calls Muster itself."""
    first, other = make_browser(), make_browser()
    first.sign_in(issuer)
    other.sign_in(issuer)
    jar = dict(first.jars[urllib.parse.urlsplit(server.url("/")).netloc])
    url = first.api("POST", "/auth/sign-out", {}).json()["url"]
    first.sign_in(issuer)
    assert jar and first.me().status_code == 200
    page = first.follow(url)
    xsrf = page.text.split('name="xsrf" value="')[1].split('"')[0]
    first.request("POST", page.text.split('action="')[1].split('"')[0], data={"xsrf": xsrf, "logout": "yes"})
    wait(lambda: first.me().status_code == 401, "the provider told it")
    assert other.me().status_code == 200, "another session of the provider goes on"
