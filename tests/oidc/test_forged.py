"""Promise I2: forged and careless tokens, each refused with its reason; the good one beside them passes."""

import base64
import hashlib
import json

import jose
import pytest
from conftest import ISSUER, NOW
from cryptography.hazmat.primitives import serialization

CONFIG = {"issuer": ISSUER, "audiences": ["cp-web"]}
GOOD = {"iss": ISSUER, "sub": "u-1", "aud": "cp-web", "iat": NOW - 10, "exp": NOW + 600}


def claims(**more):
    return {k: v for k, v in {**GOOD, **more}.items() if v is not ...}


def forged(keys):
    """(name, token, reason)"""
    key, evil, ec = keys(), jose.Key("RSA", "k1"), keys("P-256", "e1")
    token = lambda payload=None, **header: jose.make(key, {"alg": "RS256", "kid": "k1", **header}, payload or GOOD)
    by_evil = lambda **header: jose.make(evil, {"alg": "RS256", "kid": "k1", **header}, GOOD)
    head, body, signature = token().split(".")
    der = key.private.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    # ------------------------------------------------ whose key
    yield "another key, same kid", by_evil(), "bad_signature"
    yield "key in the header", by_evil(jwk=evil.jwk()), "bad_signature"
    yield "key in the header, no kid", jose.make(evil, {"alg": "RS256", "jwk": evil.jwk()}, GOOD), "bad_signature"
    for name in ("jku", "x5u"):
        yield f"{name} of the attacker", by_evil(**{name: "https://evil.test/keys"}), "bad_signature"
    yield "x5c of the attacker", by_evil(x5c=[base64.b64encode(der).decode()]), "bad_signature"
    for kid in ("k2", "", "K1", "k1 ", "../k1", "' OR 1=1 --", "k1.pem", "é", "x" * 2000):
        yield f"kid {kid[:12]!r}", jose.make(evil, {"alg": "RS256", "kid": kid}, GOOD), "key_not_found"
    for kid in (1, None, True, ["k1"], {"a": 1}, "k1\0", "k1\n"):
        yield f"kid {kid!r}", token(kid=kid), "bad_format"

    # ------------------------------------------------ algorithm
    secrets = {"pem": key.pem(), "pem without line end": key.pem().rstrip(), "der": der, "jwk": json.dumps(key.jwk()).encode(),
               "modulus": jose.unb64(key.jwk()["n"]), "nothing": b"", "sha256 of pem": hashlib.sha256(key.pem()).digest()}
    for name, secret in secrets.items():
        yield f"HS256 with {name}", jose.make_hmac(secret, {"alg": "HS256", "kid": "k1"}, GOOD), "alg_not_allowed"
    for alg in ("none", "None", "NONE", "nOnE", "", "rs256", "RS256 ", "RS1", "HS384", "HS512", "ES256K", "Ed25519", "RSA-OAEP", "dir", "A128KW"):
        yield f"alg {alg!r}", jose.make(key, {"alg": alg, "kid": "k1"}, GOOD, b""), "alg_not_allowed"
    for alg in (1, None, ["RS256"], {"RS256": 1}, "RS256\0"):
        yield f"alg {alg!r}", jose.make(key, {"alg": alg, "kid": "k1"}, GOOD, b"x"), "bad_format"
    yield "alg of another type", jose.make(key, {"alg": "ES256", "kid": "k1"}, GOOD, bytes(64)), "alg_key_mismatch"
    yield "alg of the other key", jose.make(key, {"alg": "RS256", "kid": "e1"}, GOOD), "alg_key_mismatch"
    yield "curve of another size", jose.make(ec, {"alg": "ES384", "kid": "e1"}, GOOD, bytes(96)), "alg_key_mismatch"

    # ------------------------------------------------ signature and form
    flipped = bytearray(jose.unb64(signature))
    flipped[100] ^= 1
    yield "a bit of the signature", f"{head}.{body}.{jose.b64(bytes(flipped))}", "bad_signature"
    yield "no signature", f"{head}.{body}.", "bad_signature"
    yield "short signature", f"{head}.{body}.{jose.b64(jose.unb64(signature)[:-1])}", "bad_signature"
    yield "long signature", f"{head}.{body}.{jose.b64(jose.unb64(signature) + b'x')}", "bad_signature"
    yield "signature of another token", f"{head}.{jose.b64(json.dumps(claims(sub='admin')).encode())}.{signature}", "bad_signature"
    yield "all zero", f"{head}.{body}.{jose.b64(bytes(256))}", "bad_signature"
    yield "ES256 r = 0", jose.make(ec, {"alg": "ES256", "kid": "e1"}, GOOD, bytes(32) + b"\1" * 32), "bad_signature"
    yield "ES256 s = 0", jose.make(ec, {"alg": "ES256", "kid": "e1"}, GOOD, b"\1" * 32 + bytes(32)), "bad_signature"
    yield "ES256 r = n", jose.make(ec, {"alg": "ES256", "kid": "e1"}, GOOD, bytes.fromhex(
        "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") + b"\1" * 32), "bad_signature"
    for name, text in {"nothing": "", "one part": head, "two parts": f"{head}.{body}", "four parts": f"{head}.{body}.{signature}.x",
                       "six parts": f"{head}.{body}.{signature}.x.y.z", "no header": f".{body}.{signature}", "no payload": f"{head}..{signature}",
                       "spaces": f"{head} .{body}.{signature}", "Bearer": f"Bearer {head}.{body}.{signature}", "padding": f"{head}.{body}.{signature}==",
                       "quotes": f'"{head}.{body}.{signature}"', "unicode": f"{head}.{body}.{signature}é"}.items():
        yield f"form: {name}", text, "bad_format"
    for name, text in {"not UTF-8": b'{"iss":"\xff"}', "comment": b'{}/**/', "trailing": b'{} x', "array": b'[{}]', "string": b'"x"', "null": b"null",
                       "half a pair": b'{"iss":"\\ud800"}', "NUL": b'{"a":1\0}', "single quotes": b"{'iss':1}", "NaN": b'{"exp":NaN}'}.items():
        yield f"payload: {name}", jose.make(key, {"alg": "RS256", "kid": "k1"}, text), "bad_format"
    for name, text in {"array": '["RS256"]', "doubled alg": '{"alg":"RS256","alg":"RS256"}', "doubled kid": '{"alg":"RS256","kid":"a","kid":"k1"}'}.items():
        yield f"header: {name}", jose.make(key, text, GOOD, b"x"), "bad_format"
    yield "too large", token(claims(x="y" * 16384)), "too_large"
    for value in (["exp"], [], "exp", None, 0):
        yield f"crit {value!r}", token(crit=value), "crit_unsupported"

    # ------------------------------------------------ issuer and audience
    for iss in (ISSUER + "/", ISSUER.upper(), ISSUER + ":443", ISSUER.replace("https", "http"), ISSUER + ".evil.test", "", ISSUER + "\0", "idp.example.test",
                "accounts.google.com", 1, None, [ISSUER], ...):
        yield f"iss {iss!r}", token(claims(iss=iss)), "iss_mismatch"
    for aud in ("cp-web ", "CP-WEB", "cp", "cp-web\0", "", ["x"], [], ...):
        yield f"aud {aud!r}", token(claims(aud=aud)), "aud_mismatch"
    for aud in (1, True, {"cp-web": 1}, [1], ["cp-web", 1], None):
        yield f"aud {aud!r}", token(claims(aud=aud)), "claim_type"
    for azp in ("x", "", 1, None, ["cp-web"]):
        yield f"azp {azp!r}", token(claims(azp=azp)), "azp_mismatch"
    for typ in ("at+jwt", "logout+jwt", "application/at+jwt", "muster+jwt", "secevent+jwt", "x", ""):
        yield f"typ {typ!r}", token(typ=typ), "typ_mismatch"

    # ------------------------------------------------ time
    for exp in (NOW - 61, NOW - 60, 0, NOW - 60.5):
        yield f"exp {exp}", token(claims(exp=exp, iat=NOW - 600)), "expired"
    for exp in ("x", str(NOW + 600), True, None, [NOW + 600], -1, 1e18):
        yield f"exp {exp!r}", token(claims(exp=exp)), "claim_type"
    yield "no exp", token(claims(exp=...)), "exp_missing"
    yield "nbf", token(claims(nbf=NOW + 61)), "not_yet_valid"
    yield "nbf as text", token(claims(nbf="x")), "claim_type"
    yield "iat", token(claims(iat=NOW + 61)), "iat_future"
    yield "iat as text", token(claims(iat=str(NOW))), "claim_type"
    yield "long life", token(claims(exp=NOW + 86400)), "lifetime_too_long"

    # ------------------------------------------------ names
    yield "no sub", token(claims(sub=...)), "claim_missing"
    for sub in ("", 1, None, ["u"], "a\0b", "a\nb", "a\x7fb", "a\u0085b", "x" * 3000):
        yield f"sub {str(sub)[:8]!r}", token(claims(sub=sub)), "claim_type"
    yield "reserved name", token(claims(sub="system:admin")), "reserved_name"
    yield "reserved group", token(claims(groups=["system:masters"])), "reserved_name"
    for groups in (1, True, {"g": 1}, [1], ["a", None], [["a"]], ["a\0"], ["x" * 1025]):
        yield f"groups {str(groups)[:12]}", token(claims(groups=groups)), "claim_type"
    yield "groups elsewhere", token(claims(_claim_names={"groups": "s"}, _claim_sources={"s": {"endpoint": "https://evil.test"}})), "groups_overage"


def test_I2_forged_tokens_are_refused_each_with_its_reason(keys, check):
    jwks = [keys().jwk(), keys("P-256", "e1").jwk()]
    assert check(CONFIG, jwks, jose.make(keys(), {"alg": "RS256", "kid": "k1"}, GOOD))["valid"]
    wrong, count = [], 0
    for name, token, reason in forged(keys):
        verdict = check(CONFIG, jwks, token)
        count += 1
        if verdict["valid"] or verdict["reason"] != reason:
            wrong.append((name, reason, verdict))
    assert wrong == []
    assert count >= 120


@pytest.mark.parametrize("more", [{"jku": "https://evil.test/k"}, {"x5u": "https://evil.test/c"}, {"x5c": ["AAAA"]}, {"jwk": {"kty": "oct", "k": "AAAA"}},
                                  {"typ": "jwt"}, {"typ": "application/JWT"}, {"cty": "x"}, {"unknown": [1]}])
def test_I2_what_a_header_says_of_keys_is_not_even_read(more, keys, check):
    assert check(CONFIG, [keys().jwk()], jose.make(keys(), {"alg": "RS256", "kid": "k1", **more}, GOOD))["valid"]


@pytest.mark.parametrize("iss, sub, email, verified", [
    (ISSUER, "9", "admin@example.test", True), ("https://other.test", "1", "admin@example.test", True), (ISSUER, "9", "admin@example.test", False),
])
def test_I1_a_user_is_issuer_and_subject_never_an_address(iss, sub, email, verified, keys, check):
    """The same address under another subject or issuer is somebody else."""
    token = jose.make(keys(), {"alg": "RS256", "kid": "k1"}, {**GOOD, "iss": iss, "sub": sub, "email": email, "email_verified": verified})
    verdict = check({**CONFIG, "issuer": iss}, [keys().jwk()], token)
    assert (verdict["issuer"], verdict["subject"], verdict["username"]) == (iss, sub, sub)
    assert (iss, sub) != (ISSUER, "1") and email not in json.dumps(verdict)
