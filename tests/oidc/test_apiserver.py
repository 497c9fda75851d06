"""The verdicts of a real kube-apiserver 1.36.2 beside ours; every difference is meant and listed."""

import json
import re
import subprocess

import jose
import pytest
from conftest import BUILD, NOW, lines

ISSUER = "https://localhost:9445"
SUB = {"claim": "sub", "prefix": "oidc:"}
CONFIGS = {
    "sub": {"claimMappings": {"username": SUB, "groups": {"claim": "groups", "prefix": "oidc:"}}},
    "raw": {"claimMappings": {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}},
    "mail": {"claimMappings": {"username": {"claim": "email", "prefix": ""}}},
    "expr": {"claimMappings": {"username": {"expression": '"oidc:"+claims.sub'},
                               "groups": {"expression": 'claims["https://example.test/groups"]'}}},
    "hd": {"claimMappings": {"username": SUB}, "claimValidationRules": [{"claim": "hd", "requiredValue": "example.com"}]},
}

# What the API server accepts and we refuse (or the other way round), and why.
DIFFERENT = {
    "email_verified missing": ("email_unverified", "a missing email_verified is no yes"),
    "sub system:admin no prefix": ("reserved_name", "system: is Kubernetes' own"),
    "groups system:masters no prefix": ("reserved_name", "system: is Kubernetes' own"),
    "dup iss evil first": ("bad_format", "two readers would see two issuers"),
    "dup sub": ("bad_format", "two readers would see two users"),
    "aggregated JWT claim source": ("groups_overage", "groups that are elsewhere are not no groups"),
    "signed by other published key (use=enc)": ("key_not_found", "a key for encryption signs nothing"),
    "typ at+jwt": ("typ_mismatch", "an access token is no ID token"),
    "typ logout+jwt": ("typ_mismatch", "a logout token is no ID token"),
    "exp string": ("claim_type", "a time is a number"),
    "PS256 with RS256 key": ("alg_key_mismatch", "the key says RS256"),
    "RS384": ("alg_key_mismatch", "the key says RS256"),
    "lifetime 10 years": ("lifetime_too_long", "a day is the longest unless the issuer says otherwise"),
    "aud array + azp other": ("azp_mismatch", "issued to another client"),
    "entra hasgroups": ("groups_overage", "groups that are elsewhere are not no groups"),
    "ISS upper-case key": ("iss_mismatch", "claim names are case-sensitive"),
    "iat in future 1 h": ("iat_future", "a clock is wrong, or a token made in advance"),
    "EdDSA published": (None, "EdDSA is among the algorithms"),
    "expired 1 s": (None, "60 s are forgiven; a warning tells of the API server"),
    "expired 30 s": (None, "60 s are forgiven; a warning tells of the API server"),
}
# Where both accept: our names leave out doubles and empty ones.
OTHER_GROUPS = {"groups dup": ["oidc:a"], "groups empty string": ["oidc:a"]}
# Both refuse; the codes of ours, so that a refusal for a wrong reason is seen.
REASONS = {
    "namespaced claim missing": "claim_missing", "hd array": "required_claim", "hd missing": "required_claim",
    "hd other": "required_claim", "email_verified 1": "claim_type", 'email_verified "true"': "claim_type",
    "email unverified": "email_unverified", "email missing": "claim_missing",
    "unpublished key, known kid": "bad_signature", "aud wrong": "aud_mismatch", "exp 1e300": "claim_type",
    "embedded jwk header of attacker": "bad_signature", "JWS JSON serialization": "bad_format", "exp missing": "exp_missing",
    "payload array": "bad_format", "groups mixed types": "claim_type", "nbf +400 s": "not_yet_valid",
    "sub missing": "claim_missing", "iss trailing slash": "iss_mismatch", "exp > int64": "claim_type",
    "groups number": "claim_type", "nbf +290 s": "not_yet_valid", "sub number": "claim_type", "groups objects": "claim_type",
    "entra overage": "groups_overage", "iss missing": "iss_mismatch", "alg none": "alg_not_allowed",
    "trailing 4th segment": "bad_format", "aud empty array": "aud_mismatch",
}

TOKENS = lines("apiserver_tokens.jsonl")
CONFIGURATIONS = lines("apiserver_authnconfig.jsonl")


def configuration(name):
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{"issuer": {"url": ISSUER, "audiences": ["kubectl"]}, **CONFIGS[name]}]}


@pytest.fixture(scope="module")
def published(keys):
    made = {"k1": keys("RSA", "k1", use="sig", alg="RS256"), "k2": keys("RSA", "k2", use="enc", alg="RSA-OAEP"),
            "e1": keys("P-256", "e1", alg="ES256"), "ed": keys("Ed25519", "ed"), "small": keys("RSA1024", "small")}
    return made


def payload_of(case):
    text = case["claims"] if isinstance(case["claims"], str) else json.dumps(case["claims"]).replace("…long…", "x" * 2000)
    if not isinstance(case["claims"], str):
        text = text.replace("\\u2026long\\u2026", "x" * 2000)
    text = re.sub(r'"NOW([+-]\d+)(\.\d+)?"', lambda m: str(NOW + int(m[1])) + (m[2] or ""), text)
    text = re.sub(r"NOW([+-]\d+)", lambda m: str(NOW + int(m[1])), text)
    # Two tokens were made with a fixed end.
    return text.replace("1796139279", str(NOW + 600)).replace("1.796139279e9", f"{(NOW + 600) / 1e9:.9f}e9")


def token_of(case, published):
    key = published[case["header"]["kid"]]
    payload = payload_of(case)
    if case["id"] == "alg none":
        return jose.make(key, {**case["header"], "alg": "none"}, payload, b"")
    if case["id"] in ("unpublished key, known kid", "embedded jwk header of attacker"):
        return jose.make(jose.Key("RSA"), case["header"], payload)
    token = jose.make(key, case["header"], payload)
    if case["id"] == "trailing 4th segment":
        return token + ".e30"
    if case["id"] == "JWS JSON serialization":
        return json.dumps(dict(zip(("protected", "payload", "signature"), token.split("."))))
    return token


@pytest.mark.parametrize("case", TOKENS, ids=lambda c: c["id"])
def test_tokens(case, published, check):
    jwks = [key.jwk() for key in published.values()]
    verdict = check(configuration(case["config"]), jwks, token_of(case, published))
    accepted = case["http"] == 201
    if case["id"] in DIFFERENT:
        reason, _ = DIFFERENT[case["id"]]
        assert accepted != verdict["valid"], verdict
        assert verdict.get("reason") == reason, verdict
        if case["id"].startswith("expired"):
            assert "kube-apiserver" in verdict["warnings"][0]
        return
    assert verdict["valid"] is accepted, verdict
    if not accepted:
        assert verdict["reason"] == REASONS[case["id"]], verdict
        return
    assert verdict["username"] == case["user"]["username"]
    groups = [g for g in case["user"]["groups"] if g != "system:authenticated"]
    assert verdict["groups"] == OTHER_GROUPS.get(case["id"], groups)


# ---------------------------------------------------------------- AuthenticationConfiguration
# The API server loads these and then refuses every login.
REFUSED_BY_US = {
    "issuer entra template": ("jwt[0].issuer.url", "invalid"),
    "username expr non-string type": ("jwt[0].claimMappings.username.expression", "invalid"),
}
CODES = {"Required value": "required", "Invalid value": "invalid", "Duplicate value": "duplicate", "Too many": "too_many"}


def expected_error(case):
    message = case["message"]
    unknown = re.search(r'unknown field "([^"]+)', message)
    if unknown:
        return unknown[1], "unknown_field"
    if "no kind" in message:
        return "apiVersion", "not_supported"
    field, code = re.match(r"(?:invalid authentication configuration: )?(\S+): ([A-Z][a-z]+ [a-z]+|Too many)", message).groups()
    return field, CODES[code]


def validate(tmp_path, text):
    (tmp_path / "authn").write_text(text)
    done = subprocess.run([BUILD / "muster", "kube", "authn-config", "validate", tmp_path / "authn"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CONFIGURATIONS, ids=lambda c: c["id"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_configurations(case, form, tmp_path):
    yaml = pytest.importorskip("yaml")
    text = json.dumps(case["config"]) if form == "json" else yaml.safe_dump(case["config"], sort_keys=False)
    result = validate(tmp_path, text)
    errors = [(e["field"], e["code"]) for e in result["errors"]]
    if case["id"] in REFUSED_BY_US:
        assert case["verdict"] == "accept"
        assert (result["verdict"], errors) == ("reject", [REFUSED_BY_US[case["id"]]])
    elif case["verdict"] == "accept":
        assert (result["verdict"], errors) == ("accept", [])
    else:
        assert result["verdict"] == "reject"
        assert errors == [expected_error(case)]
        assert all(e["message"] for e in result["errors"])


def test_email_by_index_needs_email_verified_too(tmp_path):
    conf = configuration("sub")
    conf["jwt"][0]["claimMappings"] = {"username": {"expression": 'claims["email"]'}}
    assert validate(tmp_path, json.dumps(conf))["errors"][0]["field"] == "jwt[0].claimMappings.username.expression"


def test_a_prefix_left_empty_is_warned_of(tmp_path):
    result = validate(tmp_path, json.dumps(configuration("raw")))
    assert result["verdict"] == "accept"
    assert [w["field"] for w in result["warnings"]] == ["jwt[0].claimMappings.username.prefix", "jwt[0].claimMappings.groups.prefix"]
    conf = configuration("raw")
    conf["jwt"][0]["userValidationRules"] = [{"expression": "!user.username.startsWith('system:')"},
                                             {"expression": "user.groups.all(g, !g.startsWith('system:'))"}]
    assert validate(tmp_path, json.dumps(conf))["warnings"] == []


@pytest.mark.parametrize("text, word", [
    ("a: &x 1\nb: *x\n", "anchors"), ("a: 1\na: 2\n", "twice"), ("a: 1\n---\nb: 2\n", "second document"), ("", "empty"),
    ("a: !!str 1\n", "tags"), ("[" * 40, "deep"), ("{\"a\":1", "JSON"), ("a:\n\t- b", "YAML"),
])
def test_what_is_no_plain_yaml_is_refused(text, word, tmp_path):
    result = validate(tmp_path, text)
    assert result["verdict"] == "reject" and result["errors"][0]["code"] == "invalid"
    assert word in result["errors"][0]["message"]


def test_several_issuers_are_told_apart(keys, check):
    conf = configuration("sub")
    second = json.loads(json.dumps(conf["jwt"][0]))
    second["issuer"]["url"] = "https://second.test"
    second["claimMappings"]["username"]["prefix"] = "second:"
    conf["jwt"].append(second)
    key = keys()
    token = jose.make(key, {"alg": "RS256", "kid": "k1"}, {"iss": "https://second.test", "sub": "u", "aud": "kubectl", "exp": NOW + 60})
    assert check(conf, [key.jwk()], token)["username"] == "second:u"


RULES = [
    # expression, what the claims are, whether the rule holds (None = it fails)
    ("!has(claims.azp) || claims.azp in ['a', 'kubectl']", {}, True),
    ("!has(claims.azp) || claims.azp in ['a', 'kubectl']", {"azp": "kubectl"}, True),
    ("claims.exp - claims.iat <= 86400", {}, True),
    ("claims.exp - claims.iat <= 10", {}, False),
    ("claims.?email_verified.orValue(true) == true", {}, True),
    ("claims.?email_verified.orValue(true) == true", {"email_verified": False}, False),
    ("claims.missing == 'x'", {}, False),
    ("dyn(claims.list).exists(x, x == 'b')", {"list": ["a", "b"]}, True),
    ("dyn(claims.list).all(x, x.startsWith('a'))", {"list": ["a", "b"]}, False),
    ("size(dyn(claims.list).filter(x, x > 1)) == 2", {"list": [1, 2, 3]}, True),
    ("claims.a.b['c'][0] == 5 && claims.a.b.c.size() == 1", {"a": {"b": {"c": [5]}}}, True),
    ("claims.email.split('@')[1] == 'example.com' ? true : false", {"email": "x@example.com"}, True),
    ("[1,2,3].map(x, x * 2).exists_one(x, x == 4)", {}, True),
    ("claims.missing == 'x' || true", {}, True),
    ("false && claims.missing == 'x'", {}, False),
    ("'a' + string(claims.n) + \"\\u00e9\" == 'a1\\u00e9'", {"n": 1}, True),
    ("{'k': 1}.k == 1 && 'k' in {'k': 1}", {}, True),
    ("1/0 == 1", {}, False),
    ("claims.?a.?b.hasValue() == false", {"a": {}}, True),
    ("[0,1,2,3,4,5,6,7,8,9].all(a,[0,1,2,3,4,5,6,7,8,9].all(b,[0,1,2,3,4,5,6,7,8,9].all(c,a+b+c>=0)))", {}, True),
]


@pytest.mark.parametrize("expression, more, holds", RULES)
def test_expressions(expression, more, holds, keys, check):
    conf = configuration("sub")
    conf["jwt"][0]["claimValidationRules"] = [{"expression": expression, "message": "rule"}]
    key = keys()
    token = jose.make(key, {"alg": "RS256", "kid": "k1"}, {"iss": ISSUER, "sub": "u", "aud": "kubectl", "iat": NOW, "exp": NOW + 60, **more})
    verdict = check(conf, [key.jwk()], token)
    assert verdict["valid"] is holds, verdict
    assert holds or verdict["reason"] == "required_claim"


def test_an_expression_without_end_is_stopped(keys, check):
    conf = configuration("sub")
    many = "[" + ",".join("0123456789") + "]"
    loops = "".join(f"{many}.all({v}," for v in "abcdef") + "true" + ")" * 6
    conf["jwt"][0]["claimValidationRules"] = [{"expression": loops}]
    key = keys()
    token = jose.make(key, {"alg": "RS256", "kid": "k1"}, {"iss": ISSUER, "sub": "u", "aud": "kubectl", "exp": NOW + 60})
    verdict = check(conf, [key.jwk()], token)
    assert verdict["reason"] == "required_claim" and "takes too m" in verdict["detail"]


def test_an_expression_that_is_not_run_here_is_refused_clearly(keys, check, tmp_path):
    conf = configuration("sub")
    conf["jwt"][0]["claimValidationRules"] = [{"expression": "claims.sub.matches('^u')"}]
    assert validate(tmp_path, json.dumps(conf))["verdict"] == "accept"
    assert "matches" in check(conf, [keys().jwk()], "x", status=1)


def test_user_rules_uid_and_extra(keys, check):
    conf = configuration("sub")
    conf["jwt"][0]["claimMappings"] |= {"uid": {"claim": "oid"}, "extra": [
        {"key": "example.org/tenant", "valueExpression": "claims.tid"}, {"key": "example.org/roles", "valueExpression": "claims.roles"}]}
    conf["jwt"][0]["userValidationRules"] = [
        {"expression": "user.username.startsWith('oidc:') && user.uid == 'o' && 'oidc:g' in user.groups"},
        {"expression": "user.extra['example.org/roles'].size() == 2 && user.extra['example.org/tenant'][0] == 't'", "message": "no roles"}]
    key = keys()
    good = {"iss": ISSUER, "sub": "u", "aud": "kubectl", "exp": NOW + 60, "oid": "o", "tid": "t", "roles": ["a", "b"], "groups": ["g"]}
    verdict = check(conf, [key.jwk()], jose.make(key, {"alg": "RS256", "kid": "k1"}, good))
    assert verdict["uid"] == "o" and verdict["extra"] == {"example.org/tenant": ["t"], "example.org/roles": ["a", "b"]}
    verdict = check(conf, [key.jwk()], jose.make(key, {"alg": "RS256", "kid": "k1"}, {**good, "roles": ["a"]}))
    assert (verdict["reason"], verdict["detail"]) == ("username_invalid", "no roles")


def test_a_file_that_would_load_and_refuse_all_is_shown_refusing(keys, check):
    key = keys()
    tenant = "11111111-1111-1111-1111-111111111111"
    token = lambda iss: jose.make(key, {"alg": "RS256", "kid": "k1"}, {"iss": iss, "sub": "u", "aud": "kubectl", "exp": NOW + 60, "tid": tenant})
    conf = configuration("sub")
    conf["jwt"][0]["issuer"]["url"] = "https://login.microsoftonline.com/common/v2.0"
    verdict = check(conf, [key.jwk()], token(f"https://login.microsoftonline.com/{tenant}/v2.0"))
    assert verdict["reason"] == "iss_mismatch"
    conf = configuration("sub")
    conf["jwt"][0]["claimMappings"]["username"] = {"expression": "1 == 1"}
    assert check(conf, [key.jwk()], token(ISSUER))["reason"] == "username_invalid"
