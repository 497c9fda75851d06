"""What every answer keeps: callers, browsers' rules, problems, entity tags, pages, waits, files."""
import gzip
import json
import re
import subprocess
import threading
import time
import uuid

import httpx
import pytest

from raw import Raw, request
from server import Musterd
from waiting import PATIENCE_SECONDS, in_time, wait_for

NOWHERE = "0198f3c2-0000-7000-8000-00000000000a"
CONSOLE = "<!doctype html><title>Muster</title>"


@pytest.fixture(scope="module")
def org(server):
    return server.add_org("answers")


@pytest.fixture
def project(server, org):
    answer = server.api("POST", "/api/v1/projects", {"name": "p" + uuid.uuid4().hex[:12], "title": "first"}, token=org.token)
    assert answer.status_code == 201, answer.text
    return answer


def problem(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"], body["type"]) == (status, code, "/problems/" + code.replace("_", "-"))
    assert body["request_id"] == answer.headers["x-request-id"] and body["instance"] == f"/requests/{body['request_id']}"
    return body


# ---------------------------------------------------------------- callers
def test_without_a_token_it_is_401_and_says_how(server):
    answer = server.api("GET", "/api/v1/me", token=False)
    problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"] == 'Bearer realm="muster"'


def test_unknown_revoked_and_expired_tokens_look_alike(server):
    revoked, expired = server.token("viewer"), server.token("viewer")
    server.sql("UPDATE service_token SET revoked_at = now() WHERE token_hash = sha256('%s');"
               " UPDATE service_token SET expires_at = now() - interval '1 s' WHERE token_hash = sha256('%s');"
               " UPDATE installation SET auth_epoch = auth_epoch + 1" % (revoked, expired))
    bodies = []
    for token in ("mst_unknown", revoked, expired):
        answer = server.api("GET", "/api/v1/me", token=token)
        body = problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"] == 'Bearer realm="muster", error="invalid_token"'
        bodies.append({key: value for key, value in body.items() if key not in ("request_id", "instance")})
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("header", ["Basic bXN0Og==", "Bearer", "Bearer x y", "mst_x"])
def test_other_schemes_are_401(server, header):
    problem(server.api("GET", "/api/v1/me", token=False, headers={"Authorization": header}), 401, "unauthenticated")


def test_a_role_without_the_permission_is_403(server):
    viewer = server.token("viewer")
    problem(server.api("POST", "/api/v1/projects", {"name": "mine"}, token=viewer), 403, "forbidden")
    assert server.api("GET", "/api/v1/me", token=viewer).json()["roles"] == ["viewer"]


def test_a_revoked_token_is_refused_by_all_loops_within_a_second(server):
    def statuses(token):  # several connections: both loops have it in their cache
        return {httpx.get(server.url("/api/v1/me"), headers={"Authorization": f"Bearer {token}"}, timeout=60).status_code
                for _ in range(20)}

    def attempt():
        token = server.token("viewer")
        assert statuses(token) == {200}
        server.sql(f"UPDATE service_token SET revoked_at = now() WHERE token_hash = sha256('{token}');"
                   " UPDATE installation SET auth_epoch = auth_epoch + 1")
        begun, late = time.monotonic(), 0.0
        while True:
            asked = time.monotonic() - begun
            if statuses(token) == {401}:
                return late
            late = asked  # one of them was still let in so long after
            assert late < PATIENCE_SECONDS
    in_time(1, attempt)


def test_a_cached_token_is_refused_after_its_end(server):
    for life in (1, 4, 16):  # it must be used once before it ends
        token = server.token("viewer")
        server.sql(f"UPDATE service_token SET expires_at = now() + interval '{life} s' WHERE token_hash = sha256('{token}')")
        if server.api("GET", "/api/v1/me", token=token).status_code == 200:
            break
    wait_for(lambda: server.sql(f"SELECT expires_at < now() FROM service_token WHERE token_hash = sha256('{token}')") == "t")
    assert server.api("GET", "/api/v1/me", token=token).status_code == 401


def test_an_unauthenticated_body_is_not_read(server):
    answer = server.api("POST", "/api/v1/projects", token=False, content=b"not json", headers={"Content-Type": "application/json"})
    problem(answer, 401, "unauthenticated")


# ---------------------------------------------------------------- cookies
def by_cookie(server, method, path, cookie, **options):
    headers = {"Cookie": f"muster_session={cookie}", **options.pop("headers", {})}
    return server.api(method, path, token=False, headers=headers, **options)


def test_a_session_reads_by_cookie(server):
    me = by_cookie(server, "GET", "/api/v1/me", server.session(role="operator")).json()
    assert me["kind"] == "session" and me["roles"] == ["operator"]


@pytest.mark.parametrize("headers, status", [
    ({"Sec-Fetch-Site": "same-origin"}, 201),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "none"}, 403),
    ({}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Content-Type": "text/plain"}, 415),
    ({"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}, 415),
])
def test_changes_by_cookie_come_from_our_own_pages(server, headers, status):
    content = b'{"name":"c%s"}' % uuid.uuid4().hex[:10].encode()
    answer = by_cookie(server, "POST", "/api/v1/projects", server.session(), content=content,
                       headers={"Content-Type": "application/json", **headers})
    assert answer.status_code == status, answer.text


def test_a_change_by_cookie_from_our_own_origin_passes(server):
    answer = by_cookie(server, "POST", "/api/v1/projects", server.session(), json={"name": "o" + uuid.uuid4().hex[:10]},
                       headers={"Origin": server.url()})
    assert answer.status_code == 201, answer.text


def test_a_session_token_is_no_bearer_token(server):
    problem(server.api("GET", "/api/v1/me", token=server.session()), 401, "unauthenticated")


def test_signing_in_from_a_foreign_page_is_refused(server):
    answer = server.api("POST", "/api/v1/session", {"token": "msl_x"}, token=False, headers={"Sec-Fetch-Site": "cross-site"})
    problem(answer, 403, "forbidden")


def test_sign_in_by_a_link_works_once(server):
    link = server.run("sign-in-link", "--user", "admin").strip()
    assert link.startswith(server.url("/sign-in#token=msl_"))
    token = link.split("#token=")[1]
    first = server.api("POST", "/api/v1/session", {"token": token}, token=False, headers={"Sec-Fetch-Site": "same-origin"})
    assert first.status_code == 200, first.text
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("muster_session=mss_") and "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie
    assert by_cookie(server, "GET", "/api/v1/me", cookie.split("=")[1].split(";")[0]).json()["name"] == "admin"
    problem(server.api("POST", "/api/v1/session", {"token": token}, token=False), 401, "unauthenticated")
    assert server.sql("SELECT count(*) FROM audit WHERE body::json->>'action' = 'sign_in_link.create'") != "0"


def test_a_link_for_nobody_is_refused(server):
    done = server.run("sign-in-link", "--user", "nobody-here", check=False)
    assert done.returncode == 1 and "nobody-here" in done.stderr and done.stdout == ""


def test_a_used_session_stays_alive(server):
    cookie = server.session()
    server.sql(f"UPDATE session SET seen_at = now() - interval '2 hours' WHERE token_hash = sha256('{cookie}')")
    assert by_cookie(server, "GET", "/api/v1/me", cookie).status_code == 200
    wait_for(lambda: server.sql(f"SELECT seen_at > now() - interval '1 hour' FROM session WHERE token_hash = sha256('{cookie}')") == "t")


# ---------------------------------------------------------------- decoding
def test_all_faults_of_a_body_are_told_at_once(server, org):
    answer = server.api("POST", "/api/v1/projects", {"name": "Not a name", "titel": "x", "title": 5}, token=org.token)
    body = problem(answer, 422, "invalid_fields")
    assert {(e["pointer"], e["code"]) for e in body["errors"]} == {("#/name", "invalid_format"), ("#/titel", "unknown_field"),
                                                                  ("#/title", "wrong_type")}
    assert body["detail"] == "3 fields were refused."


def test_faults_of_query_and_body_come_together(server, org):
    body = problem(server.api("POST", "/api/v1/projects?x=1", {"nam": "a"}, token=org.token), 422, "invalid_fields")
    assert {e.get("parameter") or e["pointer"] for e in body["errors"]} == {"x", "#/name", "#/nam"}


def test_a_body_that_is_no_json_is_400(server, org):
    answer = server.api("POST", "/api/v1/projects", token=org.token, content=b'{"name":', headers={"Content-Type": "application/json"})
    problem(answer, 400, "bad_json")


def test_another_media_type_is_415(server, org):
    answer = server.api("POST", "/api/v1/projects", token=org.token, content=b"name=a", headers={"Content-Type": "application/x-www-form-urlencoded"})
    problem(answer, 415, "media_type")
    answer = server.api("POST", "/api/v1/projects", token=org.token, content=gzip.compress(b"{}"),
                        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})
    problem(answer, 415, "media_type")


def test_a_body_where_none_belongs_is_refused(server, org):
    answer = server.api("GET", "/api/v1/projects", {"a": 1}, token=org.token)
    assert problem(answer, 422, "invalid_fields")["errors"][0]["pointer"] == "#/a"
    assert server.api("GET", "/api/v1/projects", {}, token=org.token).status_code == 200


def test_unknown_things_and_bad_ids_are_404(server, org):
    for path in (f"/api/v1/projects/{NOWHERE}", "/api/v1/projects/gpu-17", "/api/v1/none", "/api", "/v1/compute/x", "/agent/v1/x"):
        problem(server.api("GET", path, token=org.token), 404, "not_found")


def test_another_orgs_thing_is_404_with_the_same_words(server, org, project):
    absent = problem(server.api("GET", f"/api/v1/projects/{NOWHERE}"), 404, "not_found")
    foreign = problem(server.api("GET", f"/api/v1/projects/{project.json()['id']}"), 404, "not_found")
    for body in (absent, foreign):
        del body["request_id"], body["instance"]
    assert absent == foreign


def test_a_request_id_is_echoed_when_it_is_one(server):
    mine = str(uuid.uuid4())
    assert server.api("GET", "/api/v1/me", headers={"X-Request-Id": mine}).headers["x-request-id"] == mine
    made = server.api("GET", "/api/v1/me", headers={"X-Request-Id": "x\" injected"}).headers["x-request-id"]
    assert uuid.UUID(made).version == 7


# ---------------------------------------------------------------- entity tags
def test_a_change_needs_the_present_entity_tag(server, org, project):
    path = project.headers["location"]
    etag = server.api("GET", path, token=org.token).headers["etag"]
    problem(server.api("PATCH", path, {"title": "x"}, token=org.token), 428, "precondition_required")
    stale = server.api("PATCH", path, {"title": "x"}, token=org.token, headers={"If-Match": '"999"'})
    problem(stale, 412, "precondition_failed")
    assert stale.headers["etag"] == etag
    problem(server.api("PATCH", path, {"title": "x"}, token=org.token, headers={"If-Match": 'W/"1"'}), 400, "bad_request")
    problem(server.api("PATCH", path, {"title": "x"}, token=org.token, headers={"If-Match": '"abc"'}), 412, "precondition_failed")
    done = server.api("PATCH", path, {"title": "x"}, token=org.token, headers={"If-Match": etag})
    assert done.status_code == 200 and done.headers["etag"] != etag and done.json()["title"] == "x"


def test_what_is_unchanged_is_304_without_a_body(server, org, project):
    path = project.headers["location"]
    etag = server.api("GET", path, token=org.token).headers["etag"]
    for value in (etag, f'"x", {etag}', "W/" + etag, "*"):
        answer = server.api("GET", path, token=org.token, headers={"If-None-Match": value})
        assert answer.status_code == 304 and answer.content == b"" and answer.headers["etag"] == etag
    assert server.api("GET", path, token=org.token, headers={"If-None-Match": '"0"'}).status_code == 200


def test_a_list_has_a_weak_tag_that_moves_with_events_and_readings(server, org):
    def unchanged():
        """The loop's first summary may come in between."""
        first = server.api("GET", "/api/v1/clusters", token=org.token)
        again = server.api("GET", "/api/v1/clusters", token=org.token, headers={"If-None-Match": first.headers["etag"]})
        return first if again.status_code == 304 else None
    first = wait_for(unchanged)
    assert first.headers["etag"].startswith('W/"') and first.headers["cache-control"] == "private, no-cache"
    server.sql(f"UPDATE org_head SET rollup_version = rollup_version + 1 WHERE org_id = '{org.id}'")
    moved = server.api("GET", "/api/v1/clusters", token=org.token, headers={"If-None-Match": first.headers["etag"]})
    assert moved.status_code == 200 and moved.headers["etag"] != first.headers["etag"]


def test_lists_of_two_orgs_have_different_tags(server):
    one, two = server.add_org("tag-one"), server.add_org("tag-two")
    tags = {server.api("GET", "/api/v1/events", token=org.token).headers["etag"] for org in (one, two)}
    assert len(tags) == 2


# ---------------------------------------------------------------- pages
@pytest.fixture(scope="module")
def many(server):
    org = server.add_org("pages")
    for i in range(7):
        assert server.api("POST", "/api/v1/projects", {"name": f"page-{i}"}, token=org.token).status_code == 201
    return org


def test_pages_join_without_gap_or_repetition(server, many):
    seen, path = [], "/api/v1/projects?limit=3"
    while path:
        answer = server.api("GET", path, token=many.token)
        body = answer.json()
        assert len(body["items"]) <= 3 and isinstance(body["as_of_seq"], int)
        seen += [item["name"] for item in body["items"]]
        link = answer.headers.get("link")
        assert (link is None) == (body["next_cursor"] is None)
        if link:
            assert link.endswith('; rel="next"') and body["next_cursor"] in link
        path = link and link[1:link.index(">")]
    assert len(seen) == len(set(seen)) == 8


@pytest.mark.parametrize("query", ["cursor=x", "cursor=AAAA", "cursor=%00", "cursor=" + "A" * 900])
def test_a_cursor_that_was_never_answered_is_400(server, many, query):
    answer = server.api("GET", f"/api/v1/projects?{query}", token=many.token)
    assert answer.status_code == 400, answer.text


def test_a_cursor_belongs_to_its_list_and_filters(server, many):
    cursor = server.api("GET", "/api/v1/events?limit=1", token=many.token).json()["next_cursor"]
    assert server.api("GET", f"/api/v1/events?limit=2&cursor={cursor}", token=many.token).status_code == 200
    for path in ("/api/v1/projects?", "/api/v1/events?type=note.added&"):
        problem(server.api("GET", f"{path}cursor={cursor}", token=many.token), 400, "bad_cursor")


@pytest.mark.parametrize("limit, status", [("1", 200), ("200", 200), ("100000", 200), ("0", 422), ("-1", 422), ("x", 422), ("", 422)])
def test_a_limit_is_lowered_not_refused(server, many, limit, status):
    assert server.api("GET", f"/api/v1/projects?limit={limit}", token=many.token).status_code == status


# ---------------------------------------------------------------- idempotency
def test_a_repeated_key_replays_and_another_body_is_422(server, org):
    name, headers = "k" + uuid.uuid4().hex[:10], {"Idempotency-Key": str(uuid.uuid4())}
    first = server.api("POST", "/api/v1/projects", {"name": name}, token=org.token, headers=headers)
    again = server.api("POST", "/api/v1/projects", {"name": name}, token=org.token, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201) and first.json() == again.json()
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    other = server.api("POST", "/api/v1/projects", {"name": name + "x"}, token=org.token, headers=headers)
    problem(other, 422, "idempotency_key_reused")


def test_one_key_sent_many_times_at_once_acts_once(server, org):
    name, headers, answers = "t" + uuid.uuid4().hex[:10], {"Idempotency-Key": str(uuid.uuid4())}, []

    def send():
        answers.append(httpx.post(server.url("/api/v1/projects"), json={"name": name},
                                  headers={"Authorization": f"Bearer {org.token}", **headers}, timeout=60))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status_code for a in answers} == {201} and len({a.json()["id"] for a in answers}) == 1
    assert sum("idempotent-replayed" not in a.headers for a in answers) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, 'a"b', "ä"])
def test_a_key_that_is_none_is_400(server, org, key):
    answer = server.api("POST", "/api/v1/projects", {"name": "never"}, token=org.token, headers={"Idempotency-Key": key.encode()})
    problem(answer, 400, "bad_request")


def test_destructive_verbs_need_a_key(server):
    answer = server.api("POST", f"/api/v1/repairs/{NOWHERE}/approve", {"plan_hash": "0" * 64})
    problem(answer, 400, "idempotency_key_required")


# ---------------------------------------------------------------- waiting
def test_a_read_waits_for_a_change(server, org, project):
    path = project.headers["location"]
    etag = server.api("GET", path, token=org.token).headers["etag"]
    answers = []

    def wait():
        answers.append(httpx.get(server.url(path), timeout=90, headers={
            "Authorization": f"Bearer {org.token}", "If-None-Match": etag, "Prefer": "wait=30"}))

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.5)
    server.api("POST", "/api/v1/projects", {"name": "w" + uuid.uuid4().hex[:10]}, token=org.token)  # moves the org, not the project
    time.sleep(0.5)
    assert waiter.is_alive()
    server.api("PATCH", path, {"title": "changed"}, token=org.token, headers={"If-Match": etag})
    begun = time.monotonic()
    waiter.join(90)
    assert time.monotonic() - begun < 20, "long before its own end"
    assert answers[0].status_code == 200 and answers[0].json()["title"] == "changed"
    assert answers[0].headers["preference-applied"] == "wait=30"


def test_a_wait_ends_with_304(server, org, project):
    path = project.headers["location"]
    etag = server.api("GET", path, token=org.token).headers["etag"]
    begun = time.monotonic()
    answer = server.api("GET", path, token=org.token, headers={"If-None-Match": etag, "Prefer": "respond-async, wait=1"})
    assert answer.status_code == 304 and 0.9 <= time.monotonic() - begun < 30


def test_who_has_an_old_version_does_not_wait(server, org, project):
    begun = time.monotonic()
    answer = server.api("GET", project.headers["location"], token=org.token, headers={"If-None-Match": '"0"', "Prefer": "wait=30"})
    assert answer.status_code == 200 and time.monotonic() - begun < 20


# ---------------------------------------------------------------- the server itself
def test_answers_are_not_stored_and_not_sniffed(server):
    headers = server.api("GET", "/api/v1/me").headers
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_metrics_count_requests(server):
    server.api("GET", "/api/v1/me")
    text = server.api("GET", "/metrics", token=False).text
    assert 'muster_http_requests_total{operation="me_get",status="200"}' in text
    for name in ("muster_http_request_duration_seconds_bucket", "muster_loop_lag_seconds", "muster_database_waiting", "muster_streams",
                 "muster_reports_total", "process_resident_memory_bytes"):
        assert name in text


@pytest.mark.parametrize("coding", ["br", "gzip", "identity"])
def test_a_large_answer_comes_compressed_when_accepted(server, coding):
    answer = server.api("GET", "/api/v1/openapi.json", token=False, headers={"Accept-Encoding": coding})
    assert answer.headers.get("content-encoding", "identity") == coding and answer.headers["vary"] == "Accept-Encoding"
    if coding != "br":  # httpx reads br only with a package that may be missing
        assert answer.json()["openapi"].startswith("3.")


def test_every_problem_has_a_page(server):
    page = server.api("GET", "/problems/not-found", token=False)
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/markdown")
    problem(server.api("GET", "/problems/none", token=False), 404, "not_found")


def test_without_its_database_the_server_says_503_and_comes_back(server):
    with Musterd(event_loops=1) as other:
        assert other.api("GET", "/api/v1/me").status_code == 200
        other.pg.fast_stop()
        wait_for(lambda: other.api("GET", "/readyz", token=False).status_code != 200)
        answer = other.api("GET", "/api/v1/projects")
        problem(answer, 503, "unavailable")
        assert int(answer.headers["retry-after"]) >= 1 and "SQL" not in answer.text and "socket" not in answer.text
        assert other.api("GET", "/healthz", token=False).status_code == 200
        ready = other.api("GET", "/readyz", token=False).json()
        assert ready["ready"] is False and ready["database"] is False
        other.pg.start()
        wait_for(lambda: other.api("GET", "/readyz", token=False).status_code == 200)
        assert other.api("GET", "/api/v1/projects").status_code == 200


def test_a_server_without_migrations_says_what_to_run(server):
    from pg import PrivatePostgres
    with PrivatePostgres() as pg:
        other = Musterd(pg=pg, init=False, database_wait_seconds=2)
        other.write_config()
        done = other.run("serve", check=False)
        assert done.returncode == 1 and "musterd migrate" in done.stderr


# ---------------------------------------------------------------- files
@pytest.fixture(scope="module")
def web(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(CONSOLE)
    script = "let a = 1;\n" * 200
    (folder / "assets" / "app-1234.js").write_text(script)
    (folder / "assets" / "app-1234.js.gz").write_bytes(gzip.compress(script.encode()))
    subprocess.run(["brotli", "-k", folder / "assets" / "app-1234.js"], check=True)
    (folder / ".hidden").write_text("secret")
    with Musterd(pg=server.pg, init=False, web_dir=folder) as running:
        yield running


def test_the_console_is_served_with_its_policy(web):
    page = web.api("GET", "/", token=False)
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache" and page.headers["referrer-policy"] == "no-referrer"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    again = web.api("GET", "/", token=False, headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304 and again.content == b""


@pytest.mark.parametrize("coding", ["br", "gzip", "identity"])
def test_assets_are_immutable_and_come_in_their_variant(web, coding):
    answer = web.api("GET", "/assets/app-1234.js", token=False, headers={"Accept-Encoding": coding})
    assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
    assert answer.headers.get("content-encoding", "identity") == coding
    assert answer.headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path, status", [("/clusters", 200), ("/clusters/x/nodes", 200), ("/sign-in", 200), ("/missing.js", 404), ("/assets/app-1234.js.br", 404),
                                          ("/.hidden", 404), ("/../etc/passwd.txt", 404), ("/api/v1/missing", 404), ("/problems/", 404), ("/agent/v1", 404)])
def test_paths_of_the_console_fall_back_to_its_page(web, path, status):
    with Raw(web.port) as raw:
        answer = raw.send(request("GET", path)).answer()
    assert answer.status == status
    assert (answer.body == CONSOLE.encode()) == (status == 200)


def test_the_console_hides_no_operation(web):
    routes = [json.loads(line) for line in web.run("routes").splitlines()]
    hidden = [route["path"] for route in routes
              if web.api(route["method"], re.sub(r"\{[^}]*\}", NOWHERE, route["path"]), token=False).content == CONSOLE.encode()]
    assert len(routes) > 100 and hidden == []


def test_the_console_is_only_read(web):
    problem(web.api("POST", "/", {}, token=False), 404, "not_found")
