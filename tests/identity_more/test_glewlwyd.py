"""Signing in at glewlwyd, over TLS: login, refresh, a used code and token, new keys after a restart, outage."""
import time
import urllib.parse

import pytest
from browser import Browser

DEADLINE = 60
# It takes a secret as it stands, not encoded as RFC 6749 2.3.1 says: letters and digits are the same both ways.
CLIENT, SECRET = "muster", "a-secret-of-letters"


def wait(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def issuer(world, provider, authority):
    made = world.issuer(name="glewlwyd", enabled=True, issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET,
                        ca_certificate=authority.pem, scopes=["openid"])
    provider.add_client(CLIENT, SECRET, made["redirect_uri"])
    world.sql("INSERT INTO group_grant (org_id, id, issuer_id, group_name, role, created_by)"
              f" VALUES ('{world.org.id}', gen_random_uuid(), '{made['id']}', 'ops', 'operator', 'test')")
    return made["id"]


@pytest.fixture
def user(provider, issuer):
    name = f"u{time.monotonic_ns()}"
    provider.add_user(name, "ops")
    return name


@pytest.fixture
def browser(server, provider):
    made = Browser(server, str(provider.trust))
    yield made
    made.close()


def sign_in(browser, provider, issuer, user):
    """The answer of the callback, and its address."""
    sent = browser.request("GET", browser.server.url(f"/auth/sign-in/{issuer}?return_to=/clusters")).headers["location"]
    assert sent.startswith(provider.issuer + "/auth?"), sent
    back = provider.authorize(user, CLIENT, sent)
    return browser.request("GET", back), back


def login_of(world, browser):
    return f"(SELECT s.login_id FROM session s WHERE s.person_id = '{browser.me().json()['id']}')"


def test_login_with_the_roles_of_ones_groups(provider, issuer, user, browser):
    answer, _ = sign_in(browser, provider, issuer, user)
    assert answer.status_code == 302 and answer.headers["location"] == "/clusters"
    me = browser.me().json()
    assert me["kind"] == "session" and me["roles"] == ["operator"]
    assert list(browser.jars[urllib.parse.urlsplit(browser.server.url("/")).netloc]) == ["__Host-muster"]


def test_a_callback_acts_once(provider, issuer, user, browser):
    _, back = sign_in(browser, provider, issuer, user)
    assert browser.request("GET", back).status_code == 400


def test_refresh_keeps_the_session(world, provider, issuer, user, browser):
    sign_in(browser, provider, issuer, user)
    login = login_of(world, browser)
    for _ in range(2):
        before = world.sql(f"SELECT coalesce(refreshed_at::text, '') FROM login WHERE id = {login}")
        world.sql(f"UPDATE login SET refresh_at = now() WHERE id = {login}")
        wait(lambda: world.sql(f"SELECT coalesce(refreshed_at::text, '') FROM login WHERE id = {login}") != before, "it was refreshed")
    assert browser.me().status_code == 200


def test_reuse_of_a_refresh_token_ends_the_session(world, provider, issuer, user, browser):
    sign_in(browser, provider, issuer, user)
    login = world.sql(f"SELECT {login_of(world, browser)}")
    kept = world.sql(f"SELECT encode(refresh_token, 'hex') FROM login WHERE id = '{login}'")
    world.sql(f"UPDATE login SET refresh_at = now() WHERE id = '{login}'")
    wait(lambda: world.sql(f"SELECT encode(refresh_token, 'hex') FROM login WHERE id = '{login}'") != kept, "the token was rotated")
    world.sql(f"UPDATE login SET refresh_token = decode('{kept}', 'hex'), refresh_at = now() WHERE id = '{login}'")
    wait(lambda: browser.me().status_code == 401, "the provider refuses, the session ends")


def test_an_outage_signs_nobody_out(world, provider, issuer, user, browser):
    sign_in(browser, provider, issuer, user)
    login = world.sql(f"SELECT {login_of(world, browser)}")
    provider.stop()
    try:
        world.sql(f"UPDATE login SET refresh_at = now() WHERE id = '{login}'")
        wait(lambda: world.sql(f"SELECT tries FROM login WHERE id = '{login}'") != "0", "a refresh was tried")
        assert browser.me().status_code == 200
    finally:
        assert provider.start()
    world.sql(f"UPDATE login SET refresh_at = now() WHERE id = '{login}'")
    wait(lambda: world.sql(f"SELECT tries = 0 AND refreshed_at IS NOT NULL FROM login WHERE id = '{login}'") == "t", "it goes on")


def test_signing_out_leads_to_the_providers_page(provider, issuer, user, browser):
    sign_in(browser, provider, issuer, user)
    url = browser.api("POST", "/auth/sign-out", {}).json()["url"]
    assert url.startswith(provider.issuer + "/end_session?") and browser.me().status_code == 401
