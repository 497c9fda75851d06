"""What the HTTP side refuses or closes, byte by byte: smuggling, long and slow requests, many connections, the stop."""
import re
import selectors
import socket
import ssl
import subprocess
import time

import pytest

from raw import Raw, request
from server import Musterd
from waiting import PATIENCE_SECONDS as PATIENCE
from waiting import wait_for

HEALTH = request("GET", "/healthz")


@pytest.fixture
def raw(server):
    with Raw(server.port) as connection:
        yield connection


@pytest.fixture(autouse=True)
def still_serves(server):
    yield
    assert server.api("GET", "/healthz", token=False).text == "ok\n"
    assert server.process.poll() is None


# ---------------------------------------------------------------- malformed requests
@pytest.mark.parametrize("lines, body", [
    (["Content-Length: 4", "Content-Length: 4"], b"{}{}"),
    (["Content-Length: 4", "Content-Length: 5"], b"{}{}"),
    (["Content-Length: 4", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: gzip"], b""),
    (["Transfer-Encoding: chunked, identity"], b""),
    (["Host: other"], b""),
    (["Authorization: Bearer mst_a", "Authorization: Bearer mst_b"], b""),
    (["If-Match: \"1\"", "If-Match: \"2\""], b""),
    (["Idempotency-Key: a", "Idempotency-Key: b"], b""),
    (["X-Odd: a\x01b"], b""),
    (["Content-Length: 0x4"], b""),
    (["Content-Length: -1"], b""),
    (["Content-Length: 4, 4"], b""),
])
def test_ambiguous_framing_is_400_and_the_connection_ends(raw, lines, body):
    smuggled = request("GET", "/healthz")
    raw.send(request("POST", "/api/v1/session", *lines) + body + smuggled)
    answer = raw.answer()
    assert answer.status == 400, answer
    assert raw.answer() is None, "a second request was read out of the first one's bytes"


def test_a_refusal_is_a_problem_with_a_request_id(raw):
    answer = raw.send(request("GET", "/api/v1/%00")).answer()
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == "bad_request" and problem["type"] == "/problems/bad-request"


@pytest.mark.parametrize("path", [
    "/api/v1/%00", "/api/v1/nodes%2fx", "/api/v1/nodes%2Fx", "/api/v1/nodes%5cx", "/api/v1/x?a=%00", "/api/v1/x?a=%0d%0aSet-Cookie:x",
    "/api/v1/%zz", "/api/v1/%4", "/a\\b", "/a#b", "/\x01", "/\x7f", "/\xe9", "http://other/healthz", "*",
])
def test_addresses_that_mean_two_things_are_400(raw, path):
    answer = raw.send(request("GET", path)).answer()
    assert answer is not None and answer.status == 400, answer


def test_an_encoded_slash_in_a_query_is_fine(raw):
    assert raw.send(request("GET", "/healthz?next=%2Fa")).answer().status == 200


@pytest.mark.parametrize("method, status", [("BREW", 501), ("get", 501), ("PROPFIND", 501), ("OPTIONS", 405), ("TRACE", 405),
                                            ("PUT", 405), ("DELETE", 405), ("PATCH", 405)])
def test_unknown_methods_are_501_and_others_405_with_allow(raw, method, status):
    answer = raw.send(request(method, "/healthz")).answer()
    assert answer.status == status
    assert status == 501 or answer.headers["allow"] == "GET, HEAD"


def test_head_is_get_without_a_body(raw):
    raw.send(request("HEAD", "/healthz"))
    answer = raw.answer(head=True)
    assert answer.status == 200 and answer.headers["content-length"] == "3"
    assert raw.send(HEALTH).answer().body == b"ok\n"


@pytest.mark.parametrize("length", [9000, 40000])
def test_a_long_address_is_414(raw, length):
    assert raw.send(request("GET", "/" + "a" * length)).answer().status == 414


@pytest.mark.parametrize("size", [17000, 40000, 200000])
def test_headers_that_do_not_fit_are_refused(raw, size):
    try:
        raw.send(request("GET", "/healthz", "X-Big: " + "a" * size))
        answer = raw.answer()
    except ConnectionError:
        answer = None
    assert answer is None or answer.status in (400, 413, 431), answer


def test_a_token_of_twelve_kilobytes_is_read(raw):
    answer = raw.send(request("GET", "/api/v1/me", "Authorization: Bearer " + "a" * 12000)).answer()
    assert answer.status in (401, 404)


def test_half_a_request_and_a_lost_client_harm_nobody(server):
    for part in (b"GET", HEALTH[:-2], request("POST", "/api/v1/session", "Content-Length: 100") + b"{"):
        with Raw(server.port) as connection:
            connection.send(part)
    with Raw(server.port) as connection:
        connection.send(HEALTH)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


# ---------------------------------------------------------------- bodies
def test_a_body_over_the_cap_is_413_and_a_short_one_keeps_the_connection(raw):
    body = b'{"token":"' + b"a" * 70000 + b'"}'
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", body=body))
    assert raw.answer().status == 413
    assert raw.send(HEALTH).answer().body == b"ok\n"


def test_a_body_far_over_the_cap_is_413_before_it_is_sent(raw):
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", "Content-Length: 10000000"))
    assert raw.answer().status == 413
    assert raw.closed_within(PATIENCE) is not None


def test_a_chunked_body_over_the_cap_is_413(raw):
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", "Transfer-Encoding: chunked"))
    for _ in range(10):
        raw.send(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
    raw.send(b"0\r\n\r\n")
    assert raw.answer().status == 413
    assert raw.send(HEALTH).answer().body == b"ok\n"


def test_an_endless_chunked_body_is_cut(raw):
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", "Transfer-Encoding: chunked"))
    with pytest.raises(ConnectionError):
        for _ in range(2000):
            raw.send(b"2000\r\n" + b" " * 0x2000 + b"\r\n")


def test_who_asks_to_continue_is_refused_before_the_body(raw):
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", "Expect: 100-continue", "Content-Length: 90000"))
    assert raw.answer().status == 413


def test_a_body_in_pieces_is_read(raw):
    body = b'{"token":"msl_' + b"a" * 30000 + b'"}'
    data = request("POST", "/api/v1/session", "Content-Type: application/json", body=body)
    for at in range(0, len(data), 4096):
        raw.send(data[at:at + 4096])
    assert raw.answer().status in (401, 422)


# ---------------------------------------------------------------- keep-alive and pipelining
def test_pipelined_requests_are_answered_in_order(raw):
    raw.send(HEALTH * 20 + request("GET", "/nothing.txt") + HEALTH)
    assert [raw.answer().status for _ in range(22)] == [200] * 20 + [404, 200]


def test_a_pipelined_request_after_a_body_is_its_own(raw):
    body = b'{"token":"' + b"x" * 100 + b'"}'
    raw.send(request("POST", "/api/v1/session", "Content-Type: application/json", body=body) + HEALTH)
    assert raw.answer().status in (401, 422)
    assert raw.answer().body == b"ok\n"


def test_a_pipelined_request_after_a_refused_body_is_its_own(raw):
    raw.send(request("POST", "/api/v1/nothing", body=b"GET /x HTTP/1.1\r\n\r\n") + HEALTH)
    assert raw.answer().status == 404
    assert raw.answer().body == b"ok\n"


def test_requests_that_wait_for_the_database_are_answered_in_order(raw):
    raw.send(request("GET", "/readyz") + HEALTH + request("GET", "/readyz"))
    assert [raw.answer().headers["content-type"].split(";")[0] for _ in range(3)] == ["application/json", "text/plain", "application/json"]


# ---------------------------------------------------------------- slow clients (O6)
@pytest.fixture(scope="module")
def hasty(server):
    """Another server, with deadlines of 2 s, and 4 s of idleness."""
    with Musterd(pg=server.pg, init=False, header_timeout_seconds=2, body_timeout_seconds=2, idle_timeout_seconds=4) as other:
        yield other


@pytest.fixture
def slow(hasty):
    with Raw(hasty.port) as connection:
        yield connection


def drip(connection, data, seconds):
    """Sends a byte every 0.2 s; gives the seconds until the server closed, or None: each byte renews no deadline."""
    begun = time.monotonic()
    for byte in data:
        if time.monotonic() - begun > seconds:
            return None
        try:
            connection.send(bytes([byte]))
        except ConnectionError:
            return time.monotonic() - begun
        took = connection.closed_within(0.2)
        if took is not None:
            return time.monotonic() - begun
    return None


def test_a_connection_that_says_nothing_is_closed(slow):
    took = slow.closed_within(PATIENCE)
    assert took is not None and took >= 1.5


def test_slow_headers_are_closed_by_the_deadline(slow):
    took = drip(slow, request("GET", "/healthz", *[f"X-{i}: y" for i in range(50)]), 40)
    assert took is not None and took >= 1.5


def test_a_slow_request_line_is_closed_by_the_deadline(slow):
    took = drip(slow, b"GET /" + b"a" * 300, 40)
    assert took is not None and took >= 1.5


def test_a_slow_body_is_closed_by_the_deadline(slow):
    slow.send(request("POST", "/api/v1/session", "Content-Type: application/json", "Content-Length: 1000"))
    took = drip(slow, b" " * 1000, 40)
    assert took is not None and took >= 1.5


def test_an_idle_connection_is_closed_and_not_before_its_time(slow):
    assert slow.send(HEALTH).answer().status == 200
    took = slow.closed_within(PATIENCE)
    assert took is not None and took >= 3


# ---------------------------------------------------------------- many connections
@pytest.mark.parametrize("count", [127, 128, 129, 256, 384])
def test_many_connections_at_once_are_all_answered(server, count):
    """libmicrohttpd's internal epoll mode stands still at 128 simultaneous events."""
    connections = [Raw(server.port) for _ in range(count)]
    try:
        for _ in range(5):
            with selectors.DefaultSelector() as selector:
                for connection in connections:
                    connection.send(HEALTH)
                    selector.register(connection.sock, selectors.EVENT_READ, connection)
                waiting, deadline = count, time.monotonic() + PATIENCE
                while waiting and time.monotonic() < deadline:
                    for key, _ in selector.select(0.1):
                        assert key.data.answer().status == 200
                        selector.unregister(key.fileobj)
                        waiting -= 1
                assert waiting == 0, f"{waiting} of {count} were not answered"
    finally:
        for connection in connections:
            connection.sock.close()


def test_slow_clients_do_not_hold_up_others(server):
    slow = [Raw(server.port) for _ in range(200)]
    try:
        for connection in slow:
            connection.send(b"GET /healthz HTTP/1.1\r\nHost:")
        begun = time.monotonic()
        for _ in range(100):
            assert server.api("GET", "/healthz", token=False).status_code == 200
        assert time.monotonic() - begun < 25, "the slow ones have 30 s: nobody waited for them"
    finally:
        for connection in slow:
            connection.sock.close()


# ---------------------------------------------------------------- plain http, TLS
def test_plain_http_from_elsewhere_gets_a_page_that_asks_for_tls(server):
    with Musterd(pg=server.pg, init=False, insecure_http_from="127.0.0.1/32") as other:
        with Raw(other.port, source="127.0.0.2") as strange:
            page = strange.send(request("GET", "/", "Accept: text/html,*/*")).answer()
            assert page.status == 403 and b"TLS" in page.body and page.headers["content-type"].startswith("text/html")
            problem = strange.send(request("GET", "/api/v1/me", f"Authorization: Bearer {server.admin}")).answer()
            assert problem.status == 403 and problem.json()["code"] == "tls_required"
            assert strange.send(HEALTH).answer().status == 200
        with Raw(other.port, source="127.0.0.1") as near:
            assert near.send(request("GET", "/api/v1/none")).answer().status == 404


def test_a_trusted_proxy_speaks_for_its_client(server):
    with Musterd(pg=server.pg, init=False, insecure_http_from="127.0.0.1/32", trusted_proxies="127.0.0.3/32") as other:
        with Raw(other.port, source="127.0.0.3") as proxy:
            assert proxy.send(request("GET", "/api/v1/none", "X-Forwarded-For: 203.0.113.7")).answer().status == 403
            assert proxy.send(request("GET", "/api/v1/none", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https")).answer().status == 404
        with Raw(other.port, source="127.0.0.4") as liar:
            assert liar.send(request("GET", "/api/v1/none", "X-Forwarded-Proto: https")).answer().status == 403


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("one", "two"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"],
                       check=True, capture_output=True)
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_serves_with_hsts_and_refuses_old_versions(server, certificate):
    with Musterd(pg=server.pg, init=False, tls_certificate=certificate / "one.crt", tls_key=certificate / "one.key") as other:
        answer = other.api("GET", "/api/v1/none", token=False)
        assert answer.status_code == 404 and answer.headers["strict-transport-security"] == "max-age=31536000"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Raw(other.port, wrap=old.wrap_socket)
        with Raw(other.port) as plain:
            assert plain.send(HEALTH).answer() is None


def test_a_key_of_another_certificate_is_refused_at_start(server, certificate):
    other = Musterd(pg=server.pg, init=False, tls_certificate=certificate / "one.crt", tls_key=certificate / "two.key")
    other.write_config()
    done = other.run("serve", check=False)
    assert done.returncode == 1 and "tls_key" in done.stderr


# ---------------------------------------------------------------- start and stop
def test_a_taken_port_is_refused(server):
    other = Musterd(pg=server.pg, init=False)
    other.port = server.port
    other.write_config()
    done = other.run("serve", check=False)
    assert done.returncode == 1 and "cannot listen" in done.stderr


@pytest.mark.parametrize("option, word", [("--listne", "listne"), ("--event_loops=x", "event_loops"), ("--trusted_proxies=here", "trusted_proxies"),
                                          ("--log_level=loud", "log_level")])
def test_a_wrong_option_is_named(server, option, word):
    done = server.run("check-config", *([option] if "=" in option else [option, "1"]), check=False)
    assert done.returncode == 2 and word in done.stderr


def test_a_stop_answers_what_is_under_way_and_nothing_new(server):
    with Musterd(pg=server.pg, init=False, drain_seconds=60) as other:
        assert other.api("GET", "/readyz", token=False).status_code == 200
        with Raw(other.port) as waiting, Raw(other.port) as idle:
            assert idle.send(HEALTH).answer().status == 200
            server.pg.pause()
            try:
                waiting.send(request("GET", "/readyz"))
                wait_for(lambda: is_waiting(other))
                other.process.terminate()
                assert idle.closed_within(PATIENCE) is not None, "an idle connection outlived the stop"
                wait_for(lambda: refused(other.port), said="new connections are still taken")
            finally:
                server.pg.resume()
            answer = waiting.answer()
            assert answer is not None and answer.headers["connection"].lower() == "close"
            assert waiting.closed_within(PATIENCE) is not None
        assert other.process.wait(PATIENCE) == 0


def test_a_stop_that_cannot_drain_answers_503_in_time(server):
    with Musterd(pg=server.pg, init=False, drain_seconds=1) as other:
        with Raw(other.port) as waiting:
            server.pg.pause()
            try:
                waiting.send(request("GET", "/readyz"))
                wait_for(lambda: is_waiting(other))
                other.process.terminate()
                answer = waiting.answer()
                assert answer is not None and answer.status == 503
            finally:
                server.pg.resume()
        assert other.process.wait(PATIENCE) == 0


def test_a_crash_and_a_start_over_the_same_data(server):
    with Musterd(pg=server.pg, init=False) as other:
        other.kill()
        other.start()
        assert other.api("GET", "/readyz", token=False).json()["ready"] is True


def is_waiting(server):
    """A request waits for the database on one of the loops."""
    return re.search(r'muster_database_waiting\{loop="[01]"\} [1-9]', server.api("GET", "/metrics", token=False).text)


def refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except ConnectionError:
        return True
    return False


# ---------------------------------------------------------------- lookups of callers between headers and body
@pytest.mark.parametrize("pause", [0, 0.3])
def test_a_caller_that_is_looked_up_keeps_its_body_and_its_connection(server, raw, pause):
    """Sessions are looked up each time: the connection is parked between the headers and the body."""
    cookie = f"Cookie: muster_session={server.session()}"
    for n in range(3):
        body = b'{"name":"k%d%s"}' % (n, str(time.monotonic_ns()).encode())
        data = request("POST", "/api/v1/projects", cookie, "Sec-Fetch-Site: same-origin", "Content-Type: application/json", body=body)
        raw.send(data[:-len(body)])
        time.sleep(pause)
        raw.send(body + request("GET", "/api/v1/me", cookie))
        made = raw.answer()
        assert made.status == 201, made
        assert "close" not in made.headers.get("connection", "")
        assert raw.answer().json()["kind"] == "session"


def test_a_bodyless_change_keeps_its_connection(server, raw):
    cookie = f"Cookie: muster_session={server.session()}"
    head = [cookie, "Sec-Fetch-Site: same-origin", "Content-Type: application/json"]
    raw.send(request("POST", f"/api/v1/nodes/{server.add_node('bodyless')}/cordon", *head, "Content-Length: 0"))
    answer = raw.answer()
    assert answer.status == 200, answer
    assert raw.send(HEALTH).answer().status == 200
    raw.send(request("DELETE", "/api/v1/session", *head))
    assert raw.answer().status == 204
    assert raw.send(HEALTH).answer().status == 200


def test_a_refused_caller_with_a_body_keeps_its_connection(server, raw):
    for token in ("mst_unknown", "mst_other"):
        raw.send(request("POST", "/api/v1/projects", f"Authorization: Bearer {token}", "Content-Type: application/json", body=b'{"name":"x"}'))
        assert raw.answer().status == 401
    assert raw.send(HEALTH).answer().status == 200
