"""Every known case of tokens going wrong, signed here and shown to `muster oidc check`."""

import base64
import json
import re

import jose
import pytest
from conftest import ISSUER, NOW, ROOT, lines

CASES = {case["id"].replace("_", "-"): case for case in lines("cases.jsonl")}
TENANT = "11111111-1111-1111-1111-111111111111"
OTHER_TENANT = "22222222-2222-2222-2222-222222222222"
ENTRA = "https://login.microsoftonline.com/%s/v2.0"

SIGN_IN, BEARER = "tests/api/test_sign_in.py", "tests/api/test_bearer.py"
# Cases about logins, sessions, fetching and the database: a verifier of single tokens cannot show them.
ELSEWHERE = {
    **dict.fromkeys(("jwks-reused-kid-new-key", "jwks-rotation-new-kid", "idp-down-stale", "jwks-not-json", "jwks-unknown-kid-flood",
                     "ssrf-redirect"), BEARER),
    "cli-redirect-loopback-only": "tests/api/test_device_login.py", "device-slow-down": "tests/api/test_device_login.py",
    "cli-cache-key": "tests/api/test_device_login.py",
    "discovery-issuer-mixup": "tests/unit/test_oidc_discovery.c",
    **dict.fromkeys(("duplicate-callback-param", "pkce-required", "state-replay", "state-two-tabs", "open-redirect-return-to",
                     "logout-sub-only-all-sessions", "refresh-groups-removed", "refresh-no-id-token", "refresh-sub-changes"), SIGN_IN),
}


def fill(value):
    """NOW+600 and the like become numbers."""
    if isinstance(value, dict):
        return {k: fill(v) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v) for v in value]
    match = re.fullmatch(r"NOW([+-]\d+)(\.\d+)?", value) if isinstance(value, str) else None
    return value if match is None else NOW + int(match[1]) + (float(match[2]) if match[2] else 0)


def claims(**more):
    return {"iss": ISSUER, "sub": "u-1", "aud": "cp-web", "iat": NOW - 10, "exp": NOW + 600, **more}


def config(**more):
    return {"issuer": ISSUER, "audiences": ["cp-web"], **more}


class Bench:
    def __init__(self, keys, check, case):
        self.keys, self.check, self.case, self.given = keys, check, case, case["given"]
        self.key = keys()

    def verdict(self, payload, conf=None, header=None, jwks=None, key=None, token=None, **options):
        key = key or self.key
        if token is None:
            token = jose.make(key, {"alg": "RS256", "kid": key.kid, **(header or {})}, payload)
        return self.check(conf or config(), jwks if jwks is not None else [key.jwk()], token, **options)

    def valid(self, *args, **more):
        verdict = self.verdict(*args, **more)
        assert verdict["valid"] is True, verdict
        return verdict

    def refused(self, reason, *args, **more):
        verdict = self.verdict(*args, **more)
        assert verdict["valid"] is False, verdict
        assert verdict["reason"] == reason, verdict
        assert verdict["detail"]
        return verdict

    def given_claims(self):
        return fill(self.given["claims"])


@pytest.fixture
def bench(keys, check, request):
    name = request.node.name.removeprefix("test_").replace("_", "-")
    return Bench(keys, check, CASES.get(name, {"given": {}}))


def test_every_case_is_shown_here_or_named():
    shown = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert shown | set(ELSEWHERE) >= set(CASES), set(CASES) - shown - set(ELSEWHERE)
    assert not shown & set(ELSEWHERE)
    for case, path in ELSEWHERE.items():
        assert (ROOT / path).exists(), f"{case} is said to be in {path}"
    bearer = (ROOT / BEARER).read_text()
    assert [case for case, path in ELSEWHERE.items() if path == BEARER and case.replace("-", "_") not in bearer] == []


def test_the_cases_of_signing_in_are_tests_there():
    text = (ROOT / SIGN_IN).read_text()
    assert [name for name, place in ELSEWHERE.items() if place == SIGN_IN and f"def test_{name.replace('-', '_')}(" not in text] == []


# ---------------------------------------------------------------- audience and type
def test_access_token_wrong_resource(bench):
    for use in ("access", "id"):
        bench.refused("aud_mismatch", bench.given_claims(), header=bench.given["header"], use=use)


def test_azp_other_client(bench):
    bench.refused("azp_mismatch", bench.given_claims())
    bench.valid({**bench.given_claims(), "azp": "cp-web"})
    bench.refused("azp_mismatch", claims(azp="cp-web"), client_id="cp-cli")


def test_aud_single_item_array(bench):
    bench.valid(bench.given_claims())


def test_aud_multi_no_azp(bench):
    bench.refused("azp_mismatch", bench.given_claims())
    bench.valid(bench.given_claims(), use="access")


def test_access_token_as_id_token(bench):
    bench.refused("typ_mismatch", bench.given_claims(), header=bench.given["header"])
    bench.valid(bench.given_claims(), header=bench.given["header"], use="access")


def test_logout_token_as_id_token(bench):
    bench.refused("typ_mismatch", bench.given_claims(), header=bench.given["header"])
    bench.refused("typ_mismatch", bench.given_claims(), header=bench.given["header"], use="access")


def test_logout_token_no_jti_iat(bench):
    bench.refused("claim_missing", bench.given_claims(), use="logout")
    bench.refused("claim_missing", {**bench.given_claims(), "iat": NOW}, use="logout")
    bench.valid({**bench.given_claims(), "iat": NOW, "jti": "j"}, header={"typ": "logout+jwt"}, use="logout")


def test_id_token_as_logout_token(bench):
    bench.refused("typ_mismatch", bench.given_claims(), use="logout")
    bench.refused("claim_missing", claims(), use="logout")


# ---------------------------------------------------------------- keys
def test_jwks_key_removed(bench):
    bench.refused("key_not_found", claims(), jwks=[bench.keys(kid="k2").jwk()])


def test_jwks_one_unknown_kty_poisons_set(bench):
    verdict = bench.valid(claims(), jwks=[bench.given["jwks"][0], bench.key.jwk()])
    assert [(k["kid"], k["reason"]) for k in verdict["keys_skipped"]] == [("pq", "kty")]


def test_jwks_duplicate_kid(bench):
    ec, rsa = bench.keys("P-256", "k"), bench.keys("RSA", "k")
    for jwks in ([rsa.jwk(), ec.jwk()], [ec.jwk(), rsa.jwk()]):
        bench.valid(claims(), header=bench.given["header"], key=ec, jwks=jwks)
    other = jose.Key("P-256", "k")
    bench.valid(claims(), header=bench.given["header"], key=ec, jwks=[other.jwk(), ec.jwk()])


def test_jwks_without_kid(bench):
    key = bench.keys("RSA", None)
    bench.valid(claims(), token=jose.make(key, {"alg": "RS256"}, claims()), key=key)


def test_rsa_1024_key(bench):
    key = bench.keys("RSA1024", "s")
    verdict = bench.refused("key_not_found", claims(), key=key)
    assert verdict["keys_skipped"][0]["reason"] == "weak_key" and "weak_key" in verdict["detail"]


def test_rsa_exponent_1(bench):
    verdict = bench.refused("weak_key", claims(), jwks=[bench.key.jwk(e="AQ")])
    assert verdict["keys_skipped"][0]["reason"] == "weak_key"
    bench.refused("weak_key", None, token=jose.make(bench.key, {"alg": "RS256"}, claims()), jwks=[bench.key.jwk(e="AQ")])
    bench.valid(claims(), jwks=[bench.keys(kid="k2").jwk(e="AQ"), bench.key.jwk()])


def test_jwks_unsupported_curve_poisons_set(bench):
    secp = bench.keys("secp256k1", "y").jwk()
    ed448 = {"kty": "OKP", "crv": "Ed448", "kid": "x", "x": jose.b64(bytes(57))}
    verdict = bench.valid(claims(), jwks=[ed448, secp, bench.key.jwk()])
    assert [k["reason"] for k in verdict["keys_skipped"]] == ["crv", "crv"]


def test_jwk_use_enc(bench):
    verdict = bench.refused("key_not_found", claims(), jwks=[bench.key.jwk(use="enc")])
    assert verdict["keys_skipped"][0]["reason"] == "use"


def test_jwks_non_object_entry(bench):
    bench.valid(claims(), jwks=[None, "x", bench.key.jwk()])


def test_es256_secp256k1_key(bench):
    bench.refused("key_not_found", claims(), header={"alg": "ES256"}, key=bench.keys("secp256k1", "e"))


# ---------------------------------------------------------------- the token's form
def test_alg_confusion_hs256_rsa_pem(bench):
    token = jose.make_hmac(bench.key.pem(), {"alg": "HS256", "kid": "k1"}, bench.given_claims())
    bench.refused("alg_not_allowed", None, token=token, jwks=[bench.key.jwk(alg="RS256")])


def test_alg_none_case_variants(bench):
    for header in [*bench.given["headers"], {"alg": "none"}]:
        for signature in (b"", None):
            token = jose.make(bench.key, header, bench.given_claims(), signature)
            bench.refused("alg_not_allowed", None, token=token)


def test_jws_b64_false(bench):
    for header in bench.given["headers"]:
        bench.refused("crit_unsupported", claims(), header=header)


def test_jws_crit_unknown(bench):
    bench.refused("crit_unsupported", claims(), header=bench.given["header"])


def test_jws_crit_malformed(bench):
    for header in bench.given["headers"]:
        bench.refused("crit_unsupported", claims(), header=header)
        bench.refused("crit_unsupported", None, token=jose.make(bench.key, header, claims(), b"x"))


def test_jws_many_dots(bench):
    for count in (3, 10000, 1 << 20):
        bench.refused("bad_format", None, token="." * count)
    bench.refused("too_large", None, token=jose.make(bench.key, {"alg": "RS256"}, claims(x="y" * 16384)))


def test_jws_json_serialization(bench):
    head, payload, signature = jose.make(bench.key, {"alg": "RS256"}, claims()).split(".")
    bench.refused("bad_format", None, token=json.dumps({"protected": head, "payload": payload, "signature": signature}))


def test_jws_padded_or_std_base64(bench):
    token = jose.make(bench.key, {"alg": "RS256", "kid": "k1"}, claims())
    head, payload, signature = token.split(".")
    assert bench.valid(None, token=token)
    last = {"A": "B", "Q": "R", "g": "h", "w": "x"}[signature[-1]]
    bad = [token + "==", token + "\n", token + " ", " " + token, f"{head}.{payload[:9]}?{payload[9:]}.{signature}",
           f"{head}.{payload}.{base64.b64encode(jose.unb64(signature)).decode()}", token[:-1] + last,
           f"{head}.{payload}.+{signature[1:]}", f"{head}.{payload}./{signature[1:]}", f"{head}=.{payload}.{signature}"]
    for text in bad:
        bench.refused("bad_format", None, token=text)


def ec_token(bench, signature):
    key = bench.keys("P-256", "e")
    return {"payload": None, "token": jose.make(key, {"alg": "ES256", "kid": "e"}, claims(), signature), "key": key}


def test_es256_zero_signature(bench):
    bench.refused("bad_signature", **ec_token(bench, bytes(64)))


def test_es256_signature_wrong_length(bench):
    key = bench.keys("P-256", "e")
    good = jose.unb64(jose.make(key, {"alg": "ES256", "kid": "e"}, claims()).split(".")[2])
    for signature in (b"\0" + good[:32] + b"\0" + good[32:], good + bytes(450), good[:-1], b""):
        bench.refused("bad_signature", **ec_token(bench, signature))


def test_es256_der_signature(bench):
    from cryptography.hazmat.primitives.asymmetric import ec as curves
    key = bench.keys("P-256", "e")
    signed = jose.make(key, {"alg": "ES256", "kid": "e"}, claims(), b"").rstrip(".")
    bench.refused("bad_signature", **ec_token(bench, key.private.sign(signed.encode(), curves.ECDSA(jose.HASHES["256"]))))


# ---------------------------------------------------------------- encrypted tokens
@pytest.fixture
def sealed(bench, tmp_path):
    """sealed(alg, enc, ...) -> arguments of a verdict on an encrypted good token."""
    mine = bench.keys("RSA", "enc"), bench.keys("P-256", "enc")
    (tmp_path / "private").write_text(json.dumps({"keys": [key.private_jwk(use="enc") for key in mine]}))
    inner = jose.make(bench.key, {"alg": "RS256", "kid": "k1"}, claims())

    def make(alg, enc, text=inner, **more):
        key = mine[1 if alg.startswith("ECDH") else 0]
        return {"payload": None, "token": jose.encrypt(key, alg, enc, text, **more), "decrypt": tmp_path / "private"}

    return make


def test_jwe_gcm_short_tag(bench, sealed):
    for length in (*bench.given["tag_octets"], 15, 17):
        bench.refused("bad_signature", **sealed("RSA-OAEP", "A128GCM", tag=lambda t, n=length: (t + b"x")[:n]))
    for alg in ("RSA-OAEP", "RSA-OAEP-256", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"):
        for enc in jose.ENCS:
            bench.valid(**sealed(alg, enc))
            bench.refused("bad_signature", **sealed(alg, enc, tag=lambda t: bytes([t[0] ^ 1]) + t[1:]))


def test_jwe_rsa1_5(bench, sealed):
    bench.refused("alg_not_allowed", **sealed("RSA1_5", "A128GCM"))
    bench.refused("alg_not_allowed", None, token=sealed("RSA1_5", "A128GCM")["token"])
    bench.refused("key_not_found", None, token=sealed("RSA-OAEP", "A128GCM")["token"])


def test_jwe_zero_cek(bench, sealed):
    bench.refused("bad_signature", **sealed("RSA-OAEP", "A128CBC-HS256", cek=bytes(32)))


def test_jwe_aeskw_overlong_key(bench, sealed):
    bench.refused("alg_not_allowed", **sealed("A128KW", "A128GCM", wrapped=lambda k: bytes(512)))
    for alg in ("ECDH-ES+A128KW", "ECDH-ES", "RSA-OAEP"):
        for length in (1, 8, 512, 8192):
            bench.refused("bad_signature", **sealed(alg, "A128GCM", wrapped=lambda k, n=length: bytes(n)))


def test_jwe_zip_bomb(bench, sealed):
    bench.refused("crit_unsupported", **sealed("RSA-OAEP", "A128GCM", header=bench.given["header"]))


def test_what_is_inside_an_encrypted_token_is_judged_like_any_other(bench, sealed):
    bench.refused("bad_format", **sealed("RSA-OAEP", "A128GCM", text=json.dumps(claims())))
    forged = jose.make(jose.Key("RSA"), {"alg": "RS256", "kid": "k1"}, claims())
    bench.refused("bad_signature", **sealed("RSA-OAEP", "A128GCM", text=forged))
    twice = jose.encrypt(bench.keys("RSA", "enc"), "RSA-OAEP", "A128GCM", forged)
    bench.refused("bad_format", **sealed("RSA-OAEP", "A128GCM", text=twice))


# ---------------------------------------------------------------- claims
def test_jwt_payload_not_object(bench):
    bench.refused("bad_format", bench.given["payload_text"])


def test_jwt_duplicate_claim(bench):
    body = json.dumps(claims())
    bench.refused("bad_format", '{"iss":"https://evil.example.test",' + body[1:])
    bench.refused("bad_format", '{"\\u0069ss":"https://evil.example.test",' + body[1:])


def test_jwt_claim_name_case(bench):
    payload = claims()
    payload["ISS"] = payload.pop("iss")
    bench.refused("iss_mismatch", payload)


def test_jwt_nul_in_string(bench):
    bench.refused("claim_type", bench.given_claims())


def test_sub_control_chars(bench):
    verdict = bench.refused("claim_type", bench.given_claims())
    assert "\n" not in verdict["detail"]


def test_empty_username(bench):
    bench.refused("claim_type", bench.given_claims())
    bench.refused("claim_type", bench.given_claims(), conf=config(username_prefix="oidc:"))


# ---------------------------------------------------------------- email
def test_email_account_linking(bench):
    both = [bench.valid(claims(iss=iss, sub=sub, email="admin@example.test", email_verified=True), conf=config(issuer=iss))
            for iss, sub in (("https://a.test", "1"), ("https://b.test", "9"))]
    assert [(v["issuer"], v["subject"], v["username"]) for v in both] == [("https://a.test", "1", "1"), ("https://b.test", "9", "9")]


def test_email_domain_double_at(bench):
    conf = config(allowed_domains=bench.given["allowed_domains"])
    bench.refused("claim_type", bench.given_claims(), conf=conf)
    bench.refused("required_claim", claims(email="a@evil.test", email_verified=True), conf=conf)
    bench.valid(claims(email="a@Company.test", email_verified=True), conf=conf)


def test_email_verified_false(bench):
    bench.refused("email_unverified", bench.given_claims(), conf=config(username_claim="email"))


def test_email_verified_absent(bench):
    bench.refused("email_unverified", bench.given_claims(), conf=config(username_claim="email"))
    lenient = config(username_claim="email", quirks=["email_verified_absent"])
    assert bench.valid(bench.given_claims(), conf=lenient)["username"] == "u@example.test"
    bench.refused("claim_type", {**bench.given_claims(), "email_verified": "true"}, conf=lenient)
    text = config(username_claim="email", quirks=["email_verified_string"])
    bench.valid({**bench.given_claims(), "email_verified": "true"}, conf=text)
    bench.refused("claim_type", {**bench.given_claims(), "email_verified": "false"}, conf=text)


# ---------------------------------------------------------------- Google and Entra
GOOGLE = "https://accounts.google.com"


def test_google_no_groups(bench):
    conf = {**bench.given["config"], "audiences": ["cp-web"]}
    verdict = bench.valid({**bench.given_claims(), "iss": GOOGLE}, conf=conf)
    assert verdict["groups"] == [] and "Google" in verdict["warnings"][0]


def test_google_hd_required(bench):
    conf = {**bench.given["config"], "audiences": ["cp-web"]}
    for expected, payload in zip(bench.case["expect"]["result"], bench.given_claims()):
        payload["iss"] = GOOGLE
        if expected == "accept":
            bench.valid(payload, conf=conf)
        else:
            bench.refused("required_claim", payload, conf=conf)


def test_iss_google_legacy(bench):
    bench.valid(bench.given_claims(), conf={**bench.given["config"], "audiences": ["cp-web"]})
    bench.refused("iss_mismatch", bench.given_claims())


def test_iss_entra_tid_mismatch(bench):
    payload = {**bench.given_claims(), "iss": ENTRA % OTHER_TENANT, "tid": TENANT}
    bench.refused("iss_mismatch", payload, conf=config(issuer=ENTRA % "common", entra_tenants=[TENANT]))
    bench.refused("iss_mismatch", payload, conf=config(issuer=ENTRA % "{tenantid}", entra_tenants=[TENANT]))


def test_iss_entra_v1_token(bench):
    payload = {**bench.given_claims(), "iss": f"https://sts.windows.net/{TENANT}/"}
    verdict = bench.refused("iss_mismatch", payload, conf=config(issuer=ENTRA % TENANT))
    assert bench.case["expect"]["message_must_name"].split(": ")[1] in verdict["detail"] and "v1 token" in verdict["detail"]


def test_iss_entra_common_template(bench):
    conf = config(issuer=bench.given["config"]["issuer"])
    bench.refused("iss_mismatch", bench.given_claims(), conf=conf)
    bench.valid(bench.given_claims(), conf={**conf, "entra_tenants": [TENANT]})
    bench.refused("tenant_not_allowed", bench.given_claims(), conf={**conf, "entra_tenants": [OTHER_TENANT]})
    bench.refused("iss_mismatch", {**bench.given_claims(), "iss": conf["issuer"]}, conf={**conf, "entra_tenants": [TENANT]})


def test_iss_trailing_slash_auth0(bench):
    conf = {**bench.given["config"], "audiences": ["cp-web"]}
    bench.valid(bench.given_claims(), conf=conf)
    bench.refused("iss_mismatch", {**bench.given_claims(), "iss": conf["issuer"].rstrip("/")}, conf=conf)


# ---------------------------------------------------------------- groups and names
def test_groups_500(bench):
    groups = [f"g{i}" for i in range(500)]
    assert bench.valid(claims(groups=groups))["groups"] == groups


def test_groups_single_string(bench):
    assert bench.valid(bench.given_claims())["groups"] == ["one"]


def test_entra_hasgroups(bench):
    bench.refused("groups_overage", bench.given_claims())
    bench.valid(bench.given_claims(), conf=config(groups_claim="roles"))


def test_entra_overage(bench):
    bench.refused("groups_overage", bench.given_claims())
    bench.valid(bench.given_claims(), conf=config(groups_claim=None))


def test_okta_groups_filter_absent(bench):
    verdict = bench.valid(bench.given_claims())
    assert verdict["groups"] == [] and "Okta" in verdict["warnings"][0]


def test_two_idps_same_sub(bench):
    names = []
    for iss in ("https://a.test", "https://b.test"):
        prefix = iss[8] + ":"
        conf = config(issuer=iss, username_prefix=prefix, groups_prefix=prefix)
        verdict = bench.valid(claims(iss=iss, sub="1", groups=["g"]), conf=conf)
        names.append((verdict["issuer"], verdict["username"], verdict["groups"]))
    assert names == [("https://a.test", "a:1", ["a:g"]), ("https://b.test", "b:1", ["b:g"])]


def test_nested_keycloak_roles(bench):
    assert bench.valid(bench.given_claims(), conf=config(groups_path=bench.given["groups_path"]))["groups"] == ["a"]
    deep = claims(resource_access={"my.app": {"roles": ["x", "", "x"]}})
    assert bench.valid(deep, conf=config(groups_path='resource_access["my.app"].roles'))["groups"] == ["x"]


def test_reserved_system_masters(bench):
    assert "groups_prefix" in bench.verdict(claims(), conf=config(groups_prefix=""), status=1)
    bench.refused("reserved_name", bench.given_claims())
    bench.valid(bench.given_claims(), conf=config(groups_prefix="oidc:"))
    bench.refused("reserved_name", claims(sub="system:admin"))


# ---------------------------------------------------------------- times and nonce
def test_exp_string(bench):
    bench.refused("claim_type", {**bench.given_claims(), "exp": str(NOW + 600)})


def test_exp_1e300(bench):
    for exp in ("1e300", "99999999999999999999", "-1", "1e400"):
        payload = json.dumps(claims()).replace(str(NOW + 600), exp)
        assert bench.verdict(payload)["reason"] == ("bad_format" if exp == "1e400" else "claim_type")


def test_exp_float(bench):
    bench.valid(bench.given_claims())


def test_exp_exponent_notation(bench):
    payload = json.dumps(claims(iat=1900000000 - 60)).replace(str(NOW + 600), "1.9e9")
    bench.valid(payload, now=1900000000 - 30)


def test_exp_skew_edge(bench):
    accepted, late = bench.given_claims()
    bench.valid({**accepted, "iat": NOW - 600})
    bench.refused("expired", {**late, "iat": NOW - 600})
    bench.refused("expired", {**accepted, "iat": NOW - 600}, conf=config(leeway_s=0))


def test_nbf_future(bench):
    near, far = bench.given_claims()
    bench.valid(near)
    bench.refused("not_yet_valid", far)


def test_lifetime_cap(bench):
    bench.refused("lifetime_too_long", bench.given_claims(), conf=config(max_lifetime_s=86400))
    bench.refused("lifetime_too_long", bench.given_claims())


def test_nonce_missing_or_wrong(bench):
    bench.refused("nonce_mismatch", claims(), nonce="n1")
    bench.refused("nonce_mismatch", claims(nonce="n2"), nonce="n1")
    bench.valid(claims(nonce="n1"), nonce="n1")


# ---------------------------------------------------------------- configuration
def test_ssrf_issuer_private(bench):
    for row in bench.given["config"]:
        assert "#/issuer" in bench.verdict(claims(), conf={**row, "audiences": ["cp-web"]}, status=1)
    inner = "https://10.1.2.3"
    bench.valid(claims(iss=inner), conf=config(issuer=inner), allow_private=True)
