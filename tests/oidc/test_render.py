"""What is written for Kubernetes is accepted, and decides as the issuer it came from."""

import json
import subprocess

import jose
import pytest
from conftest import BUILD, NOW
from test_apiserver import validate

ISSUER = "https://idp.example.test/"
TENANTS = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
BASE = {"issuer": ISSUER, "audiences": ["cp-web"], "username_prefix": "okta:", "groups_prefix": "okta:"}


def render(tmp_path, *issuers, status=0):
    files = []
    for i, issuer in enumerate(issuers):
        files.append(tmp_path / f"issuer{i}")
        files[-1].write_text(json.dumps(issuer))
    done = subprocess.run([BUILD / "muster", "kube", "authn-config", "render", *files], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


ISSUERS = {
    "plain": BASE,
    "quoted": {**BASE, "audiences": ["a\"b", "c: d", "é"], "client_id": "a\"b", "required_claims": {"x'y": "1\n2"}},
    "email": {**BASE, "username_claim": "email", "allowed_domains": ["example.com"], "required_claims": {"hd": "example.com"}},
    "nested": {**BASE, "groups_path": 'resource_access["my.app"].roles'},
    "no groups": {**{k: v for k, v in BASE.items() if k != "groups_prefix"}, "groups_claim": None},
    "entra": {**BASE, "issuer": "https://login.microsoftonline.com/common/v2.0", "entra_tenants": TENANTS},
}


@pytest.mark.parametrize("name", ISSUERS)
def test_what_is_rendered_is_accepted(name, tmp_path):
    text = render(tmp_path, ISSUERS[name])
    result = validate(tmp_path, text)
    assert result == {"verdict": "accept", "errors": [], "warnings": []}, text


def test_several_issuers_in_one_file(tmp_path):
    text = render(tmp_path, BASE, {**BASE, "issuer": "https://second.test"})
    assert validate(tmp_path, text)["verdict"] == "accept" and text.count("- issuer:") == 2
    assert validate(tmp_path, render(tmp_path, BASE, BASE))["errors"][0]["code"] == "duplicate"


def test_a_prefix_is_needed(tmp_path):
    for field in ("username_prefix", "groups_prefix"):
        assert "prefix" in render(tmp_path, {k: v for k, v in BASE.items() if k != field}, status=1)


@pytest.mark.parametrize("more, why", [
    ({}, None), ({"azp": "cp-web"}, None), ({"azp": "x"}, "required_claim"), ({"exp": NOW + 90000}, None),
    ({"groups": ["g"]}, None), ({"hasgroups": True}, "groups_overage"),
])
def test_both_forms_decide_alike(more, why, keys, check, tmp_path):
    key = keys()
    token = jose.make(key, {"alg": "RS256", "kid": "k1"}, {"iss": ISSUER, "sub": "u", "aud": "cp-web", "iat": NOW - 10, "exp": NOW + 600, **more})
    ours = check(BASE, [key.jwk()], token)
    theirs = check(render(tmp_path, BASE), [key.jwk()], token)
    assert ours["valid"] == theirs["valid"]
    if ours["valid"]:
        assert (ours["username"], ours["groups"]) == (theirs["username"], theirs["groups"])


def test_nested_groups_come_out_with_their_prefix(keys, check, tmp_path):
    key = keys()
    claims = {"iss": ISSUER, "sub": "u", "aud": "cp-web", "iat": NOW, "exp": NOW + 600}
    config = render(tmp_path, ISSUERS["nested"])
    for more, groups in (({"resource_access": {"my.app": {"roles": ["a", "b"]}}}, ["okta:a", "okta:b"]), ({}, []), ({"resource_access": {}}, [])):
        token = jose.make(key, {"alg": "RS256", "kid": "k1"}, {**claims, **more})
        assert check(config, [key.jwk()], token)["groups"] == groups
