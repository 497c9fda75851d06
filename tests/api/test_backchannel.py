"""Back-channel logout with two servers over one database: what one is told, the other obeys; each token acts once; a limit of its own."""
import threading
import uuid

import pytest
from login import Browser, Login
from server import Musterd
from waiting import wait_for
from world import World


@pytest.fixture(scope="module")
def second(server, idp_host):
    other = Musterd(pg=server.pg, init=False, keys_dir=str(server.folder / "keys"), outbound_allow=idp_host.allow, rate_logout_per_minute=5,
                    trusted_proxies="127.0.0.0/8", insecure_http_from="0.0.0.0/0")
    try:
        yield other.start()
    finally:
        other.stop()


@pytest.fixture
def login(server, idp_host):
    return Login(World(server), idp_host.idp())


def logout(at, login, token=None, address="192.0.2.1", **claims):
    return at.client.post(at.url(f"/auth/backchannel-logout/{login.id}"), data={"logout_token": token or login.idp.logout_token(**claims)},
                          headers={"X-Forwarded-For": address})


def test_a_logout_that_one_server_is_told_ends_the_session_on_the_other(server, second, login):
    """Requests and an open stream alike: the other server looks every 250 ms."""
    login.grant("ops", "viewer")
    login.idp.claims["groups"] = ["ops"]
    browser = Browser(login)
    browser.sign_in()
    ended = threading.Event()

    def read(events):
        for _ in events.iter_raw():
            pass
        ended.set()
    assert second.api("GET", "/api/v1/me", token=False, headers=browser.headers).status_code == 200
    with server.client.stream("GET", server.url("/api/v1/events/stream"), headers=browser.headers) as events:
        assert events.status_code == 200
        threading.Thread(target=read, args=[events], daemon=True).start()
        assert logout(second, login).status_code == 200
        wait_for(lambda: browser.me().status_code == 401)
        assert ended.wait(60), "the stream goes on"


def test_a_token_that_one_server_took_is_refused_by_the_other(server, second, login):
    token = login.idp.logout_token()
    Browser(login).sign_in()
    assert logout(second, login, token, address="192.0.2.2").status_code == 200
    browser = Browser(login)
    browser.sign_in()
    again = logout(server, login, token)
    assert again.status_code == 400 and "replay" in again.json()["detail"]
    assert browser.me().status_code == 200
    assert login.sessions() == 1


def test_of_the_same_token_at_both_servers_at_once_one_acts(server, second, login):
    for number in range(4):
        token, answers = login.idp.logout_token(), []
        gate = threading.Barrier(2)

        def send(at, token=token, answers=answers, gate=gate, number=number):
            gate.wait()
            answers.append(logout(at, login, token, address=f"192.0.2.{20 + number}").status_code)
        threads = [threading.Thread(target=send, args=[at]) for at in (server, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200, 400], answers


def test_T8_logouts_are_counted_by_issuer_and_address(second, login, server, idp_host):
    """A flood for one issuer, or from one address, leaves the others theirs; and it asks the issuer for no keys."""
    other = Login(World(server), idp_host.idp())

    def send(at, address):
        return logout(second, at, token="x.y.z", address=address)
    answers = [send(login, "198.51.100.7") for _ in range(30)]
    assert [answer.status_code for answer in answers[:5]] == [400] * 5
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and refused[0].json()["violated-policies"] == ["logout"] and int(refused[0].headers["retry-after"]) >= 1
    assert send(login, "198.51.100.8").status_code == 400, "another address goes on"
    assert send(other, "198.51.100.7").status_code == 400, "another issuer too"
    assert second.api("POST", "/api/v1/session", {"token": "msl_" + "x" * 43}, token=False,
                      headers={"X-Forwarded-For": "198.51.100.7"}).status_code == 401, "and people sign in"


def test_T8_made_up_issuers_give_an_address_no_further_logouts(second):
    def send(address="198.51.100.40"):
        return second.client.post(second.url(f"/auth/backchannel-logout/{uuid.uuid4()}"), data={"logout_token": "x.y.z"},
                                  headers={"X-Forwarded-For": address})
    assert [send().status_code for _ in range(50)] == [404] * 50
    # one comes back in a little more than a second
    refused = next(answer for answer in (send() for _ in range(5000)) if answer.status_code == 429)
    assert refused.json()["violated-policies"] == ["logout-address"]
    assert send("198.51.100.41").status_code == 404
