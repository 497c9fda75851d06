"""Tokens changed in every way, judged by us and by cjose; where the two differ is listed with its reason."""

import json
import random

import jose
import pytest

PAYLOAD = {"iss": "https://idp.example.test", "sub": "u-1"}


def differs(name, row, verdict):
    """Why we refuse what cjose accepts, or None. cjose checks signatures only, with whatever key it is given."""
    token, keys = row["token"], row["jwks"]["keys"]
    head, _, signature = (token.split(".") + ["", ""])[:3]
    if verdict["ours"] == "bad_format" and "=" in token:
        return "padding"
    if verdict["ours"] == "bad_format" and name in ("duplicate alg", "duplicate kid"):
        return "doubled header members"
    if verdict["ours"] == "bad_format" and any(c in signature for c in "+/"):
        return "the other base64 alphabet"
    if verdict["ours"] == "bad_format" and name == "last bits":
        return "unused bits that are not zero: two spellings of one token"
    if verdict["ours"] == "crit_unsupported" and name.startswith("crit"):
        return "extensions that must be understood"
    if verdict["ours"] in ("key_not_found", "alg_key_mismatch") and any("use" in k or "key_ops" in k or "alg" in k for k in keys):
        return "what the key says it is for"
    if verdict["ours"] in ("key_not_found", "weak_key") and name in ("RSA 1024", "exponent 1"):
        return "weak keys"
    if verdict["ours"] == "alg_not_allowed" and json.loads(jose.unb64(head)).get("alg") == "HS256":
        return "symmetric keys"
    if verdict["ours"] == "too_large":
        return "size"
    if verdict["ours"] == "bad_signature" and "ES256" in jose.unb64(head).decode(errors="replace") and len(jose.unb64(signature)) != 64:
        return "signatures of another length than the curve's"
    return None


def cases(keys):
    rsa, ec, ed = keys("RSA", "k1"), keys("P-256", "e1"), keys("Ed25519", "ed")
    good = jose.make(rsa, {"alg": "RS256", "kid": "k1"}, PAYLOAD)
    head, body, signature = good.split(".")
    last = signature[:-1] + {"A": "B", "Q": "R", "g": "h", "w": "x"}[signature[-1]]
    for alg in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"):
        yield alg, [rsa.jwk()], jose.make(rsa, {"alg": alg, "kid": "k1"}, PAYLOAD)
        yield "bound", [rsa.jwk(alg="RS256")], jose.make(rsa, {"alg": alg, "kid": "k1"}, PAYLOAD)
    for alg, curve in jose.CURVE_OF_ALG.items():
        key = keys(curve, curve)
        yield alg, [key.jwk()], jose.make(key, {"alg": alg, "kid": curve}, PAYLOAD)
    yield "EdDSA", [ed.jwk()], jose.make(ed, {"alg": "EdDSA", "kid": "ed"}, PAYLOAD)
    yield "use enc", [rsa.jwk(use="enc")], good
    yield "key_ops", [rsa.jwk(key_ops=["encrypt"])], good
    yield "padding", [rsa.jwk()], good + "=="
    yield "padding", [rsa.jwk()], f"{head}=.{body}.{signature}"
    yield "alphabet", [rsa.jwk()], f"{head}.{body}.{signature.replace('-', '+').replace('_', '/')}"
    yield "last bits", [rsa.jwk()], f"{head}.{body}.{last}"
    yield "duplicate alg", [rsa.jwk()], jose.make(rsa, '{"alg":"none","alg":"RS256"}', PAYLOAD)
    yield "duplicate kid", [rsa.jwk()], jose.make(rsa, '{"alg":"RS256","kid":"x","kid":"k1"}', PAYLOAD)
    yield "crit", [rsa.jwk()], jose.make(rsa, {"alg": "RS256", "crit": ["x"], "x": 1}, PAYLOAD)
    yield "crit b64", [rsa.jwk()], jose.make(rsa, {"alg": "RS256", "b64": False}, PAYLOAD)
    yield "RSA 1024", [keys("RSA1024", "s").jwk()], jose.make(keys("RSA1024", "s"), {"alg": "RS256", "kid": "s"}, PAYLOAD)
    yield "exponent 1", [rsa.jwk(e="AQ")], good
    secret = {"kty": "oct", "kid": "o", "k": jose.b64(bytes(32))}
    yield "HS256", [secret], jose.make_hmac(bytes(32), {"alg": "HS256", "kid": "o"}, PAYLOAD)
    r_s = jose.unb64(jose.make(ec, {"alg": "ES256", "kid": "e1"}, PAYLOAD).split(".")[2])
    for name, changed in (("r and s too long", r_s + bytes(450)), ("leading zero octets", b"\0" + r_s[:32] + b"\0" + r_s[32:]),
                          ("zero", bytes(64)), ("short", r_s[:63])):
        yield name, [ec.jwk()], jose.make(ec, {"alg": "ES256", "kid": "e1"}, PAYLOAD, changed)
    yield "large", [rsa.jwk()], jose.make(rsa, {"alg": "RS256", "kid": "k1"}, {**PAYLOAD, "x": "y" * 20000})
    yield "no kid", [ec.jwk(), rsa.jwk()], jose.make(rsa, {"alg": "RS256"}, PAYLOAD)
    yield "other kid", [rsa.jwk()], jose.make(rsa, {"alg": "RS256", "kid": "k2"}, PAYLOAD)


def mutations(keys, count):
    """Bytes of good tokens changed, dropped, doubled; segments swapped."""
    chance = random.Random(20261201)
    rsa, ec = keys("RSA", "k1"), keys("P-256", "e1")
    good = [jose.make(rsa, {"alg": "RS256", "kid": "k1"}, PAYLOAD), jose.make(rsa, {"alg": "PS256", "kid": "k1"}, PAYLOAD),
            jose.make(ec, {"alg": "ES256", "kid": "e1"}, PAYLOAD)]
    jwks = [rsa.jwk(), ec.jwk()]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n"
    for _ in range(count):
        token = chance.choice(good)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at = chance.randrange(len(token))
            how = chance.randrange(4)
            if how == 0:
                token = token[:at] + chance.choice(alphabet) + token[at + 1:]
            elif how == 1:
                token = token[:at] + token[at + 1:]
            elif how == 2:
                token = token[:at] + token[at] + token[at:]
            else:
                parts = token.split(".")
                chance.shuffle(parts)
                token = ".".join(parts)
        yield "mutation", jwks, token


@pytest.fixture(scope="module")
def judged(keys, probe):
    rows = [(name, {"jwks": {"keys": jwks}, "token": token})
            for name, jwks, token in [*cases(keys), *mutations(keys, 3000)]]
    return [(name, row, verdict) for (name, row), verdict in zip(rows, probe([row for _, row in rows]))]


def test_what_cjose_accepts_is_accepted_but_for_listed_reasons(judged):
    reasons, unexplained = set(), []
    for name, row, verdict in judged:
        if verdict["cjose"] and verdict["ours"] != "ok":
            why = differs(name, row, verdict)
            # A changed token that cjose still takes: only its last character's unused bits, or padding.
            if why is None and name == "mutation" and verdict["ours"] == "bad_format":
                why = "two spellings of one token"
            reasons.add(why)
            if why is None:
                unexplained.append((name, row["token"], verdict))
    assert unexplained == []
    assert reasons >= {"padding", "doubled header members", "extensions that must be understood", "what the key says it is for",
                       "weak keys", "symmetric keys", "size", "signatures of another length than the curve's"}


def test_what_we_accept_is_accepted_by_cjose_but_eddsa(judged):
    assert {name for name, _, verdict in judged if verdict["ours"] == "ok" and not verdict["cjose"]} <= {"EdDSA"}
    accepted = {name for name, _, verdict in judged if verdict["ours"] == "ok"}
    assert accepted >= {"RS256", "PS384", "ES512", "EdDSA", "no kid"}
