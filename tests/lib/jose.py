"""Signs tokens of every kind, good and bad, for the tests of the OIDC verifier."""

import base64
import hashlib
import hmac
import json
import os

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from cryptography.hazmat.primitives.padding import PKCS7

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

    def private_jwk(self, **more):
        """The whole pair; never to be published."""
        numbers = self.private.private_numbers()
        if isinstance(self.private, rsa.RSAPrivateKey):
            parts = {"d": numbers.d, "p": numbers.p, "q": numbers.q, "dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp}
            return self.jwk(**{k: number(v) for k, v in parts.items()}, **more)
        return self.jwk(d=number(numbers.private_value, (self.private.key_size + 7) // 8), **more)

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


# ---------------------------------------------------------------- encryption
ENCS = {"A128GCM": 16, "A192GCM": 24, "A256GCM": 32, "A128CBC-HS256": 32, "A192CBC-HS384": 48, "A256CBC-HS512": 64}


def seal_content(enc, cek, aad, text):
    """(iv, ciphertext, tag) of RFC 7518 5."""
    if "GCM" in enc:
        iv = os.urandom(12)
        sealed = AESGCM(cek).encrypt(iv, text, aad)
        return iv, sealed[:-16], sealed[-16:]
    iv, half = os.urandom(16), len(cek) // 2
    padder = PKCS7(128).padder()
    cipher = Cipher(algorithms.AES(cek[half:]), modes.CBC(iv)).encryptor()
    body = cipher.update(padder.update(text) + padder.finalize()) + cipher.finalize()
    mac = hmac.new(cek[:half], aad + iv + body + (len(aad) * 8).to_bytes(8, "big"), "sha" + enc[-3:]).digest()
    return iv, body, mac[:half]


def agree(key, alg, enc, header):
    """The key that both sides of ECDH-ES know (RFC 7518 4.6.2); adds epk to the header."""
    mine = Key(key.kind)
    header["epk"] = mine.jwk()
    secret = mine.private.exchange(ec.ECDH(), key.private.public_key())
    name, bits = (enc, ENCS[enc] * 8) if alg == "ECDH-ES" else (alg, int(alg[-5:-2]))
    field = lambda data: len(data).to_bytes(4, "big") + data
    other = field(name.encode()) + field(unb64(header.get("apu", ""))) + field(unb64(header.get("apv", ""))) + bits.to_bytes(4, "big")
    return ConcatKDFHash(hashes.SHA256(), bits // 8, other).derive(secret)


def encrypt(key, alg, enc, text, header=None, cek=None, wrapped=None, tag=None):
    """A compact JWE of the text; wrapped and tag change what would stand there: functions of it."""
    header = {"alg": alg, "enc": enc, **(header or {})}
    cek = cek or os.urandom(ENCS[enc])
    if alg.startswith("RSA"):
        digest = hashes.SHA256() if alg.endswith("256") else hashes.SHA1()
        pad = padding.PKCS1v15() if alg == "RSA1_5" else padding.OAEP(padding.MGF1(digest), digest, None)
        sealed_key = key.private.public_key().encrypt(cek, pad)
    elif alg == "ECDH-ES":
        cek, sealed_key = agree(key, alg, enc, header), b""
    elif alg.startswith("ECDH"):
        sealed_key = aes_key_wrap(agree(key, alg, enc, header), cek)
    else:
        sealed_key = b"" if alg == "dir" else aes_key_wrap(bytes(int(alg[1:4]) // 8), cek)
    head = b64(json.dumps(header).encode())
    iv, body, mac = seal_content(enc, cek, head.encode(), text.encode())
    sealed_key, mac = (wrapped or bytes)(sealed_key), (tag or bytes)(mac)
    return ".".join([head, *map(b64, (sealed_key, iv, body, mac))])
