"""Signs tokens of every kind, good and bad, for the tests of the OIDC verifier."""

import base64
import hashlib
import hmac
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
CURVES = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1(), "secp256k1": ec.SECP256K1()}
CURVE_OF_ALG = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(value, length=None):
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8 or 1, "big"))


class Key:
    """A key pair that knows its JWK and signs with any algorithm that its type can."""

    def __init__(self, kind, kid=None, **members):
        self.kind, self.kid = kind, kid
        if kind.startswith("RSA"):
            self.private = rsa.generate_private_key(65537, int(kind[3:] or 2048))
        elif kind == "Ed25519":
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = ec.generate_private_key(CURVES[kind])
        self.members = members

    def jwk(self, **more):
        public = self.private.public_key()
        if isinstance(self.private, rsa.RSAPrivateKey):
            numbers = public.public_numbers()
            jwk = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        elif isinstance(self.private, ed25519.Ed25519PrivateKey):
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}
        else:
            numbers, length = public.public_numbers(), (self.private.key_size + 7) // 8
            jwk = {"kty": "EC", "crv": self.kind, "x": number(numbers.x, length), "y": number(numbers.y, length)}
        if self.kid is not None:
            jwk["kid"] = self.kid
        return {**jwk, **self.members, **more}

    def private_members(self):
        """What a JWK of the whole pair has on top; never to be published."""
        return {"d": number(self.private.private_numbers().d)}

    def pem(self):
        return self.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def sign(self, alg, data):
        if isinstance(self.private, ed25519.Ed25519PrivateKey):
            return self.private.sign(data)
        digest = HASHES[alg[2:]]
        if isinstance(self.private, rsa.RSAPrivateKey):
            pad = padding.PKCS1v15() if alg[0] == "R" else padding.PSS(padding.MGF1(digest), digest.digest_size)
            return self.private.sign(data, pad, digest)
        r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(digest)))
        length = (self.private.key_size + 7) // 8
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value)


def make(key, header, payload, signature=None):
    """header and payload are objects, or the JSON text itself; signature replaces what the key would sign."""
    parts = b64(text_of(header).encode()) + "." + b64(payload if isinstance(payload, bytes) else text_of(payload).encode())
    if signature is None:
        alg = header.get("alg", "RS256") if isinstance(header, dict) else json.loads(header)["alg"]
        signature = key.sign(alg if alg[:2] in ("RS", "PS", "ES", "Ed") else "RS256", parts.encode())
    return parts + "." + b64(signature)


def make_hmac(secret, header, payload):
    parts = b64(text_of(header).encode()) + "." + b64(text_of(payload).encode())
    return parts + "." + b64(hmac.new(secret, parts.encode(), hashlib.sha256).digest())
