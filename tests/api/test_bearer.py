"""Tokens of an org's issuer on the API: taken, mapped to a person and to the roles of groups, or refused with a reason."""
import json
import threading
import time
import uuid

import pytest
from idp import DISCOVERY, Idp
from server import Musterd
from world import World

WAIT_SECONDS = 30
REFETCH_SECONDS = 1


@pytest.fixture(scope="module")
def idp():
    with Idp() as running:
        yield running


@pytest.fixture(scope="module")
def site(idp):
    """A server whose operator allows the provider's address."""
    with Musterd(outbound_allow=idp.authority, issuer_refetch_seconds=REFETCH_SECONDS, loop_period_ms=50) as running:
        yield World(running)


def eventually(check, seconds=WAIT_SECONDS):
    """Waits until check() is true; gives what it gave."""
    deadline = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def keys_of(site, issuer):
    return site.api("GET", f"issuers/{issuer['id']}").json()["keys"]


@pytest.fixture(scope="module")
def made(site, idp):
    return site.made("POST", "issuers", idp.config(name=site.name("idp")))


@pytest.fixture
def issuer(site, idp, made):
    """The provider is well, and its present key is known."""
    idp.answers.clear()
    idp.broken, idp.gate, idp.max_age = False, None, None
    eventually(lambda: me(site, idp.token(sub="probe")).status_code == 200)
    site.sql(f"UPDATE issuer_key_set SET expires_at = now() + interval '1 hour' WHERE issuer_id = '{made['id']}'")
    return made


def change(site, issuer, body):
    now = site.api("GET", f"issuers/{issuer['id']}")
    assert site.api("PATCH", f"issuers/{issuer['id']}", body, headers={"If-Match": now.headers["etag"]}).status_code == 200


def me(site, token):
    return site.server.api("GET", "/api/v1/me", token=token)


def refused(site, token):
    answer = me(site, token)
    assert answer.status_code == 401, answer.text
    assert f'error_description="{answer.json()["reason"]}"' in answer.headers["www-authenticate"]
    return answer.json()["reason"]


# ---------------------------------------------------------------- people
def test_I1_issuer_and_subject_are_the_person(site, idp, issuer):
    subject = site.name("sub")
    first = me(site, idp.token(sub=subject, email="a@example.com")).json()
    assert (first["kind"], first["name"], first["roles"], first["permissions"]) == ("token", subject, [], ["session"])
    assert me(site, idp.token(sub=subject, email="b@example.com")).json()["id"] == first["id"], "the address means nothing"
    assert me(site, idp.token(sub=site.name("sub"), email="a@example.com")).json()["id"] != first["id"]
    row = site.sql(f"SELECT body FROM audit WHERE target = '{first['id']}' AND action = 'person.create'")
    assert json.loads(row)["after"]["issuer"] == idp.url and json.loads(row)["subject"] == subject


def test_I1_the_name_of_a_local_person_gives_nothing(site, idp, issuer):
    person, name = site.person("admin")
    got = me(site, idp.token(sub=name, preferred_username=name)).json()
    assert got["id"] != person and got["roles"] == []


def test_the_same_subject_at_once_is_one_person(site, idp, issuer):
    subject, found = site.name("sub"), []
    tokens = [idp.token(sub=subject, jti=str(n)) for n in range(8)]
    threads = [threading.Thread(target=lambda token=token: found.append(me(site, token).json()["id"])) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_a_disabled_person_and_one_signed_out_everywhere_are_refused(site, idp, issuer):
    subject = site.name("sub")
    person = me(site, idp.token(sub=subject)).json()["id"]
    site.sql(f"UPDATE person_identity SET not_before = now() WHERE person_id = '{person}'")
    assert refused(site, idp.token(sub=subject, iat=int(time.time()) - 60)) == "expired"
    assert me(site, idp.token(sub=subject, iat=int(time.time()) + 5)).status_code == 200
    site.sql(f"UPDATE person SET disabled_at = now() WHERE id = '{person}'")
    assert refused(site, idp.token(sub=subject, iat=int(time.time()) + 6)) == "expired"


def test_an_audited_change_names_issuer_and_subject(site, idp, issuer):
    subject, name = site.name("sub"), site.name("p")
    person = me(site, idp.token(sub=subject)).json()["id"]
    site.sql(f"INSERT INTO membership (org_id, person_id, role) VALUES ('{site.org.id}', '{person}', 'admin')")
    made = site.api("POST", "projects", {"name": name}, token=idp.token(sub=subject, jti="2"))
    assert made.status_code == 201, made.text
    rows = site.api("GET", "audit", params={"target": made.json()["id"], "action": "project.create"}).json()["items"]
    assert [(row["actor"], row["kind"], row["issuer"], row["subject"]) for row in rows] == [(subject, "token", idp.url, subject)]


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize("claims, reason", [
    ({"aud": "other"}, "aud_mismatch"), ({"exp": 1}, "expired"), ({"exp": None}, "exp_missing"), ({"sub": None}, "claim_missing"),
    ({"iss": "https://elsewhere.example"}, "iss_mismatch"), ({"nbf": 9999999999}, "not_yet_valid"), ({"groups": 7}, "claim_type"),
    ({"exp": 9999999999}, "lifetime_too_long")])
def test_I2_a_token_is_refused_with_its_reason(site, idp, issuer, claims, reason):
    assert refused(site, idp.token(**claims)) == reason


def test_I2_forms_and_algorithms(site, idp, issuer):
    good = idp.token()
    assert refused(site, good[:-4] + "AAAA") == "bad_signature"
    assert refused(site, good + ".x") == "bad_format"
    assert refused(site, good.rsplit(".", 1)[0] + ".") in ("bad_format", "bad_signature")
    assert refused(site, idp.token(header={"alg": "none"})) == "alg_not_allowed"
    assert refused(site, idp.token(header={"alg": "HS256"})) == "alg_not_allowed"
    assert refused(site, idp.token(header={"typ": "logout+jwt"})) == "typ_mismatch"
    assert me(site, idp.token(pad="x" * 17000)).status_code == 400, "a header has at most 16 KiB"
    assert me(site, idp.token(header={"typ": "at+jwt"})).status_code == 200


def test_only_issuers_for_the_api_are_asked_and_not_before_cuts_off(site, idp, issuer):
    token = idp.token(sub=site.name("sub"))
    assert me(site, token).status_code == 200
    change(site, issuer, {"bearer": False})
    eventually(lambda: me(site, token).status_code == 401)
    change(site, issuer, {"bearer": True, "not_before": "2100-01-01T00:00:00Z"})
    eventually(lambda: me(site, token).json().get("reason") == "expired")
    change(site, issuer, {"not_before": None})
    eventually(lambda: me(site, token).status_code == 200)


def test_another_org_with_the_same_issuer_has_its_own_people(site, idp, issuer):
    """Where two accept a token the older one is meant, unless the request names the other."""
    other = World(site.server, site.server.add_org("bearer-other"))
    twin = other.made("POST", "issuers", idp.config(name="twin"))
    token, header = idp.token(sub=site.name("sub")), {"Muster-Org": other.org.id}
    assert me(site, token).json()["org"]["id"] == site.org.id

    def named():
        return site.server.api("GET", "/api/v1/me", token=idp.token(sub=site.name("sub"), jti=str(uuid.uuid4())), headers=header)
    assert eventually(lambda: named().status_code == 200)
    assert named().json()["org"]["id"] == other.org.id
    assert other.api("DELETE", f"issuers/{twin['id']}").status_code == 204


# ---------------------------------------------------------------- keys: the cases of the cache
def fetched(idp):
    return idp.count("/jwks")


class Fetches:
    """How many there were since; one, and one more for each pause that went by meanwhile."""

    def __init__(self, idp):
        self.idp, self.before, self.began = idp, fetched(idp), time.monotonic()

    def are_one(self):
        pauses = int((time.monotonic() - self.began) / REFETCH_SECONDS)
        return 1 <= fetched(self.idp) - self.before <= 1 + pauses


def error_says(site, issuer, text):
    return eventually(lambda: text in (keys_of(site, issuer)["error"] or "") and keys_of(site, issuer)["error"])


def past_the_pause(site, issuer):
    """Until a fetch may be tried again, as the server sees it."""
    eventually(lambda: site.sql(f"SELECT coalesce(tried_at, '-infinity') < now() - interval '{REFETCH_SECONDS * 1.3} seconds' FROM issuer_key_set"
                                f" WHERE issuer_id = '{issuer['id']}'") == "t")


def test_jwks_rotation_new_kid(site, idp, issuer):
    past_the_pause(site, issuer)
    fetches, former = Fetches(idp), idp.rotate()
    assert me(site, idp.token(sub=site.name("sub"))).status_code == 200, "no error for whoever brought the news"
    assert fetches.are_one()
    assert refused(site, idp.token(key=former, sub=site.name("sub"))) == "key_not_found"


def test_jwks_reused_kid_new_key(site, idp, issuer):
    past_the_pause(site, issuer)
    fetches = Fetches(idp)
    idp.rotate(kid=idp.keys[-1].kid)
    assert me(site, idp.token(sub=site.name("sub"))).status_code == 200
    assert fetches.are_one()


def test_I2_jwks_unknown_kid_flood(site, idp, issuer):
    """50 at once that nobody signed: one fetch, whatever the loops do."""
    past_the_pause(site, issuer)
    fetches, stranger, reasons = Fetches(idp), idp.new_key(), []
    tokens = [idp.token(key=stranger, header={"kid": f"unknown-{n}"}) for n in range(50)]
    threads = [threading.Thread(target=lambda part=part: reasons.extend(refused(site, token) for token in part))
               for part in (tokens[n::5] for n in range(5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reasons == ["key_not_found"] * 50 and fetches.are_one()


def test_jwks_not_json(site, idp, issuer):
    """What is no key set does not replace one."""
    past_the_pause(site, issuer)
    idp.answers["/jwks"] = (200, {"Content-Type": "text/html"}, b"<html>canary-body</html>")
    assert refused(site, idp.token(header={"kid": "unknown"})) == "key_not_found"
    assert "canary" not in error_says(site, issuer, "not a JSON object")
    assert me(site, idp.token(sub=site.name("sub"))).status_code == 200
    assert "canary-body" not in site.server.log


@pytest.mark.parametrize("jwks, unusable", [
    ({"keys": [{"kty": "AKP", "kid": "pq"}]}, [("pq", "kty")]), ({"keys": [{"kty": "oct", "kid": "s", "k": "AAAA"}, 7]}, [("s", "secret"), (None, "not_object")])])
def test_an_unusable_key_is_left_out_and_named(site, idp, issuer, jwks, unusable):
    past_the_pause(site, issuer)
    idp.answers["/jwks"] = (200, {}, json.dumps({"keys": jwks["keys"] + idp.jwks()["keys"]}).encode())
    assert refused(site, idp.token(header={"kid": "unknown"})) == "key_not_found"
    keys = eventually(lambda: keys_of(site, issuer)["unusable"] and keys_of(site, issuer))
    assert keys["count"] == 1
    assert [(key["kid"], key["reason"]) for key in keys["unusable"]][:1] == unusable[:1]
    assert me(site, idp.token(sub=site.name("sub"))).status_code == 200


@pytest.mark.parametrize("max_age, low, high", [(None, 550, 600), (5, 50, 60), (3600, 3500, 3600), (10 ** 9, 86000, 86400)])
def test_the_age_that_an_issuer_states_is_kept_within_bounds(site, idp, issuer, max_age, low, high):
    past_the_pause(site, issuer)
    before, idp.max_age = fetched(idp), max_age
    assert refused(site, idp.token(header={"kid": "unknown"})) == "key_not_found"
    assert fetched(idp) > before
    left = float(site.sql(f"SELECT extract(epoch FROM expires_at - fetched_at) FROM issuer_key_set WHERE issuer_id = '{issuer['id']}'"))
    assert low <= left <= high


def test_keys_past_their_time_are_fetched_without_a_token(site, idp, issuer):
    past_the_pause(site, issuer)
    before = fetched(idp)
    site.sql(f"UPDATE issuer_key_set SET expires_at = now() WHERE issuer_id = '{issuer['id']}'")
    eventually(lambda: fetched(idp) > before)


def test_idp_down_stale(site, idp, issuer):
    """Yesterday's keys work through an outage and a restart in it; older ones are no reason to say that a token is wrong."""
    idp.broken = True
    site.sql(f"UPDATE issuer_key_set SET expires_at = now() - interval '1 hour', fetched_at = now() - interval '23 hours'"
             f" WHERE issuer_id = '{issuer['id']}'")
    eventually(lambda: keys_of(site, issuer)["stale"])
    assert me(site, idp.token(sub=site.name("sub"))).status_code == 200
    site.server.restart()
    eventually(lambda: me(site, idp.token(sub=site.name("sub"))).status_code == 200)
    site.sql(f"UPDATE issuer_key_set SET fetched_at = now() - interval '25 hours' WHERE issuer_id = '{issuer['id']}'")
    answer = eventually(lambda: (lambda a: a.status_code == 503 and a)(me(site, idp.token(sub=site.name("sub")))))
    assert answer.json()["reason"] == "idp_unavailable" and int(answer.headers["retry-after"]) >= 1
    idp.broken = False
    eventually(lambda: me(site, idp.token(sub=site.name("sub"))).status_code == 200)


def test_two_replicas_fetch_once(site, idp, issuer):
    """One fetches and the other waits for what comes of it."""
    with Musterd(pg=site.server.pg, init=False, outbound_allow=idp.authority, issuer_refetch_seconds=60, loop_period_ms=50) as second:
        def ask(reasons):
            reasons.append(second.api("GET", "/api/v1/me", token=idp.token(header={"kid": str(uuid.uuid4())})).json()["reason"])

        eventually(lambda: second.api("GET", "/api/v1/me", token=idp.token(sub=site.name("sub"))).status_code == 200)
        past_the_pause(site, issuer)
        idp.gate = threading.Event()
        first, before, fetches, reasons = [], fetched(idp), Fetches(idp), []
        holder = threading.Thread(target=lambda: first.append(refused(site, idp.token(header={"kid": "unknown"}))))
        holder.start()
        eventually(lambda: fetched(idp) > before)
        threads = [threading.Thread(target=ask, args=(reasons,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        idp.gate.set()
        for thread in [holder, *threads]:
            thread.join()
        assert first + reasons == ["key_not_found"] * 7 and fetches.are_one()


# ---------------------------------------------------------------- fetching
def test_I9_ssrf_redirect(site, idp, issuer):
    """A redirect is not followed, wherever it leads."""
    past_the_pause(site, issuer)
    before = idp.count("/secret")
    idp.answers["/jwks"] = (302, {"Location": f"{idp.url}/secret"}, b"")
    assert refused(site, idp.token(header={"kid": "unknown"})) == "key_not_found"
    assert error_says(site, issuer, "redirect")
    assert idp.count("/secret") == before


@pytest.mark.parametrize("jwks_uri", ["https://127.0.0.1:1/jwks", "https://169.254.169.254/latest/meta-data", "https://localhost:1/jwks",
                                      "https://[::1]:1/jwks", "https://10.0.0.1/jwks"])
def test_I9_a_key_set_at_a_private_address_is_not_fetched(site, idp, issuer, jwks_uri):
    """The operator allowed one host and port; the document of that host names another."""
    idp.answers[DISCOVERY] = (200, {}, json.dumps(idp.discovery(jwks_uri=jwks_uri)).encode())
    site.sql(f"UPDATE issuer_key_set SET discovery_at = NULL, tried_at = NULL, expires_at = now(), error = '' WHERE issuer_id = '{issuer['id']}'")
    assert error_says(site, issuer, "not a public one")


def test_I9_too_much_is_cut_off(site, idp, issuer):
    past_the_pause(site, issuer)
    idp.answers["/jwks"] = (200, {}, b'{"keys":[' + b" " * (1 << 20) + b"]}")
    assert refused(site, idp.token(header={"kid": "unknown"})) == "key_not_found"
    assert error_says(site, issuer, "larger than")


def test_I9_another_authority_is_not_believed(site, idp, issuer):
    with Idp() as stranger:
        past_the_pause(site, issuer)
        change(site, issuer, {"ca_certificate": stranger.ca})
        assert error_says(site, issuer, "certificate")
        answer = me(site, idp.token(sub=site.name("sub")))
        assert answer.status_code == 503 and answer.json()["reason"] == "idp_unavailable"
    change(site, issuer, {"ca_certificate": idp.ca})
    eventually(lambda: me(site, idp.token(sub=site.name("sub"))).status_code == 200)


# ---------------------------------------------------------------- trying an issuer
def lines_of(site, body):
    answer = site.api("POST", "issuers/discover", body)
    assert answer.status_code == 200, answer.text
    return {line["check"]: line for line in answer.json()["lines"]}, answer.json()["found"]


def test_discovery_is_shown_as_lines(site, idp, issuer):
    lines, found = lines_of(site, {"issuer": idp.url, "ca_certificate": idp.ca})
    assert [line["passed"] for line in lines.values()] == [True] * 6, lines
    assert found["jwks_uri"] == f"{idp.url}/jwks" and found["scopes_supported"] == ["openid", "groups"]
    assert found["algorithms"] == ["RS256", "ES256"] and found["end_session_endpoint"] is None


def passed(lines):
    return [lines[check]["passed"] for check in ("address", "reachable", "issuer", "endpoints", "keys", "algorithms")]


def test_the_issuer_is_compared_byte_for_byte(site, idp, issuer):
    lines, found = lines_of(site, {"issuer": idp.url + "/", "ca_certificate": idp.ca})
    assert passed(lines) == [True, True, False, None, None, None] and found is None
    assert idp.url in lines["issuer"]["detail"]


@pytest.mark.parametrize("url, wanted", [("http://idp.example.com", [False] + [None] * 5), ("https://10.0.0.1", [False] + [None] * 5),
                                         ("https://localhost:1", [True, False] + [None] * 4)])
def test_I9_discovery_asks_nobody_private(site, url, wanted):
    assert passed(lines_of(site, {"issuer": url})[0]) == wanted


def test_discovery_says_that_keys_cannot_be_used(site, idp, issuer):
    idp.answers["/jwks"] = (200, {}, json.dumps({"keys": [{"kty": "AKP", "kid": "pq"}]}).encode())
    lines, _ = lines_of(site, {"issuer": idp.url, "ca_certificate": idp.ca})
    assert passed(lines) == [True, True, True, True, False, None] and "1 are left out" in lines["keys"]["detail"]


def verdict_of(site, issuer, token):
    answer = site.api("POST", f"issuers/{issuer['id']}/test-token", {"token": token})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_token_is_tested_and_forgotten(site, idp, issuer):
    group, token = site.name("team"), None
    project = site.project()
    site.made("POST", "members", {"issuer_id": issuer["id"], "group": f"idp:{group}", "role": "viewer", "project_id": project})
    token = idp.token(sub=site.name("sub"), groups=[group])
    got = verdict_of(site, issuer, token)
    assert got["valid"] is True and got["reason"] is None and got["groups"] == [f"idp:{group}"] and got["person"] is None
    assert all(line["passed"] for line in got["checks"])
    assert [(r["role"], r["scope"], r["id"], r["via"]) for r in got["roles"]] == [("viewer", "project", project, "group")]
    person = me(site, token).json()["id"]
    assert verdict_of(site, issuer, token)["person"]["id"] == person
    assert token not in site.server.log and token.rsplit(".", 1)[1] not in site.server.log


def test_the_line_at_which_a_token_fails_is_shown(site, idp, issuer):
    got = verdict_of(site, issuer, idp.token(aud="other"))
    assert (got["valid"], got["reason"], got["username"], got["roles"]) == (False, "aud_mismatch", None, [])
    at = [line["check"] for line in got["checks"]].index("audience")
    assert [line["passed"] for line in got["checks"]] == [True] * at + [False] + [None] * (len(got["checks"]) - at - 1)
    assert verdict_of(site, issuer, "x" * 20000)["reason"] == "too_large"


def test_keys_are_fetched_when_asked_but_not_again_at_once(site, idp, issuer):
    past_the_pause(site, issuer)
    fetches = Fetches(idp)
    for _ in range(5):
        answer = site.api("POST", f"issuers/{issuer['id']}/refresh-keys")
        assert answer.status_code == 200 and answer.json()["keys"]["count"] == 1
    assert fetches.are_one()


# ---------------------------------------------------------------- groups
def test_a_group_gives_its_role_to_whoever_is_in_it(site, idp, issuer):
    subject, group = site.name("sub"), site.name("ops")
    grant = site.made("POST", "members", {"issuer_id": issuer["id"], "group": f"idp:{group}", "role": "operator"})
    assert (grant["kind"], grant["person_id"], grant["name"], grant["group"]) == ("group", None, f"idp:{group}", f"idp:{group}")
    assert grant["id"] in {item["id"] for item in site.api("GET", "members", params={"limit": 200}).json()["items"]}
    inside = idp.token(sub=subject, groups=[group, "other"])
    got = eventually(lambda: (lambda m: m["roles"] and m)(me(site, inside).json()))
    assert got["roles"] == ["operator"] and "node.write" in got["permissions"]
    assert got["rights"] == [{"role": "operator", "project_id": None, "cluster_id": None, "via": "group", "group": f"idp:{group}"}]
    assert me(site, idp.token(sub=site.name("sub"), groups=["other"])).json()["roles"] == []
    assert me(site, idp.token(sub=site.name("sub"), groups=[f"idp:{group}"])).json()["roles"] == [], "the prefix is part of the name"
    assert site.api("DELETE", f"members/{grant['id']}").status_code == 204
    eventually(lambda: me(site, inside).json()["roles"] == [])


def test_a_group_of_a_cluster_sees_that_cluster_only(site, idp, issuer):
    here, there, group = site.cluster(), site.cluster(), site.name("team")
    site.made("POST", "members", {"issuer_id": issuer["id"], "group": f"idp:{group}", "role": "viewer", "cluster_id": here})
    token = idp.token(sub=site.name("sub"), groups=group)
    eventually(lambda: site.server.api("GET", f"/api/v1/clusters/{here}", token=token).status_code == 200)
    assert site.server.api("GET", f"/api/v1/clusters/{there}", token=token).status_code == 404
    assert site.server.api("GET", "/api/v1/issuers", token=token).status_code == 403


def test_a_person_of_an_issuer_gets_a_role_by_id(site, idp, issuer):
    subject = site.name("sub")
    token = idp.token(sub=subject)
    person = me(site, token).json()["id"]
    made = site.made("POST", "members", {"person_id": person, "role": "auditor"})
    assert (made["kind"], made["person_id"], made["name"]) == ("person", person, subject)
    eventually(lambda: me(site, token).json()["roles"] == ["auditor"])


@pytest.mark.parametrize("body, pointer", [({}, "#/name"), ({"name": "x", "group": "g"}, "#/name"), ({"group": "g"}, "#/name"),
                                           ({"person_id": str(uuid.uuid4())}, "#/person_id"),
                                           ({"issuer_id": str(uuid.uuid4()), "group": "g"}, "#/issuer_id")])
def test_a_role_is_for_one_whom_the_org_knows(site, body, pointer):
    answer = site.api("POST", "members", {"role": "viewer", **body})
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == pointer
