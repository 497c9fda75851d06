"""Project Wycheproof's vectors, read from MUSTER_WYCHEPROOF or a folder beside the checkout; they are not copied."""

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT

PLACES = [os.environ.get("MUSTER_WYCHEPROOF"), ROOT / ".." / "shared" / "oidc" / "wycheproof"]

# The group's JWK says ES521 or PS256 for a signature of ES512 or PS384, which tc338 of the signatures and tc19 of the keys forbid.
CONTRADICTIONS = {("json_web_signature", 346), ("json_web_signature", 347), ("json_web_signature", 350), ("json_web_signature", 351)}
# Valid there with base64 that RFC 7515 2 forbids.
LAX_BASE64 = {("json_web_signature", 372), ("json_web_signature", 373)}


def vectors(name):
    for place in PLACES:
        if place and (Path(place) / f"{name}_test.json").exists():
            return json.loads((Path(place) / f"{name}_test.json").read_text())
    pytest.skip("Wycheproof's vectors are not here: set MUSTER_WYCHEPROOF to a folder that has them")


def keys_of(group):
    key = group.get("public") or group["private"]
    return key if "keys" in key else {"keys": [key]}


def is_symmetric(group):
    return "public" not in group and all(k.get("kty") == "oct" for k in keys_of(group)["keys"])


def rows_of(name, kind):
    rows = []
    for group in vectors(name)["testGroups"]:
        for test in group["tests"]:
            if kind in test:
                token = test[kind] if isinstance(test[kind], str) else json.dumps(test[kind])
                rows.append((test, group, {"jwks": keys_of(group), "token": token}))
    return rows


@pytest.mark.parametrize("name, count", [("json_web_signature", 401), ("json_web_key", 26), ("json_web_crypto", 49)])
def test_signatures(name, count, probe):
    rows = rows_of(name, "jws")
    assert len(rows) == count
    wrong, contradictions, by_policy = [], set(), 0
    for (test, group, _), verdict in zip(rows, probe([row for *_, row in rows])):
        accepted, valid = verdict["ours"] == "ok", test["result"] == "valid"
        if valid and not accepted and is_symmetric(group):
            assert verdict["ours"] == ("bad_format" if (name, test["tcId"]) in LAX_BASE64 else "alg_not_allowed")
            by_policy += 1
        elif valid and not accepted and (name, test["tcId"]) in CONTRADICTIONS:
            contradictions.add((name, test["tcId"]))
        elif accepted != valid:
            wrong.append((test["tcId"], test["comment"], test["result"], verdict["ours"]))
    assert wrong == []
    assert contradictions == {c for c in CONTRADICTIONS if c[0] == name}
    print(f"{name}: {count} vectors, {by_policy} valid symmetric ones refused by policy, {len(contradictions)} contradictions")


def test_encryption(probe):
    """The encrypted tokens of json_web_crypto: 17 for an EC key, 17 for a symmetric one."""
    rows = rows_of("json_web_crypto", "jwe")
    assert len(rows) == 34
    wrong, by_policy = [], 0
    asked = [{"private": row["jwks"], "token": row["token"]} for *_, row in rows]
    for (test, group, _), verdict in zip(rows, probe(asked)):
        accepted, valid = verdict["ours"] == "ok", test["result"] == "valid"
        if is_symmetric(group):
            assert not accepted
            by_policy += valid
        elif accepted != valid:
            wrong.append((test["tcId"], test["comment"], test["result"], verdict["ours"]))
    assert wrong == []
    assert by_policy == 1
