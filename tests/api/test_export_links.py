"""Links that download a part of the audit log once: signed by the server's own key, carried by others."""
import base64
import hashlib
import hmac
import json
import stat
import threading
import time
import uuid

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
import pytest


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def link(world, **body):
    answer = world.api("POST", "audit/export-links", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ticket_of(made):
    return made["url"].rpartition("ticket=")[2]


def download(world, ticket):
    return world.server.api("GET", "/downloads/audit", token=False, params={"ticket": ticket})


def parts(ticket):
    head, claims, signature = ticket.split(".")
    return json.loads(unb64(head)), json.loads(unb64(claims)), unb64(signature)


def signed(world, head=None, claims=None, key=None):
    """A ticket of our own making; by the server's key unless another is given."""
    pem = (world.server.folder / "keys" / "ticket.es256.pem").read_bytes()
    key = key or serialization.load_pem_private_key(pem, None)
    good_head, good_claims, _ = parts(ticket_of(link(world)))
    text = b64(json.dumps({**good_head, **(head or {})}).encode()) + "." + b64(json.dumps({**good_claims, **(claims or {})}).encode())
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return text + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def test_a_link_downloads_the_log_without_a_credential_once(world):
    made = link(world)
    assert made["url"].startswith(world.server.url("/downloads/audit?ticket="))
    answer = world.server.client.get(made["url"])
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["content-disposition"] == 'attachment; filename="audit.jsonl"' and answer.headers["cache-control"] == "no-store"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1)) and len(lines) > 1
    again = world.server.client.get(made["url"])
    assert again.status_code == 401 and "was used" in again.json()["detail"]
    actions = world.sql(f"SELECT action FROM audit WHERE target = '{made['id']}' ORDER BY seq").split()
    assert actions == ["audit.export_link", "audit.download"]


def test_a_link_shows_its_own_part_of_its_own_org_only(world, server):
    from world import World
    other = World(server, server.add_org("links-" + uuid.uuid4().hex[:8]))
    other.project()
    lines = [json.loads(line) for line in download(world, ticket_of(link(other, after=1, limit=1))).text.splitlines()]
    assert [line["seq"] for line in lines] == [2]
    assert world.org.id not in json.dumps(lines)


def test_one_of_many_at_once_gets_it(world):
    ticket = ticket_of(link(world))
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(download(world, ticket).status_code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [401] * 7


def test_a_link_is_over_after_ten_minutes(world):
    made = link(world)
    head, claims, signature = parts(ticket_of(made))
    assert head == {"alg": "ES256", "typ": "JWT", "cty": "muster+jwt"} and len(signature) == 64
    assert claims["exp"] - claims["iat"] == 600 and claims["sub"] == world.org.id and claims["jti"] == made["id"]
    world.sql(f"UPDATE export_link SET expires_at = now() WHERE id = '{made['id']}'")
    assert download(world, ticket_of(made)).status_code == 401
    assert download(world, signed(world, claims={"exp": int(time.time()) - 1})).status_code == 401


@pytest.mark.parametrize("change", [
    {"head": {"cty": "JWT"}}, {"head": {"cty": None}}, {"head": {"alg": "ES384"}}, {"claims": {"aud": "webhook"}}, {"claims": {"iss": "x"}},
    {"claims": {"sub": "0192aaaa-0000-7000-8000-00000000000a"}}, {"claims": {"jti": str(uuid.uuid4())}}, {"claims": {"jti": 5}},
    {"claims": {"exp": "soon"}}, {"claims": {"after": -1}}, {"claims": {"limit": "all"}},
])
def test_I2_a_ticket_that_says_something_else_opens_nothing(world, change):
    assert download(world, signed(world)).status_code == 200, "one of the same making is good"
    assert download(world, signed(world, **change)).status_code == 401


def test_I2_a_ticket_of_another_key_or_algorithm_opens_nothing(world):
    assert download(world, signed(world, key=ec.generate_private_key(ec.SECP256R1()))).status_code == 401
    good = ticket_of(link(world))
    head, claims, signature = good.split(".")
    none = b64(json.dumps({"alg": "none", "typ": "JWT", "cty": "muster+jwt"}).encode())
    pem = (world.server.folder / "keys" / "ticket.es256.pem").read_bytes()
    mac_head = b64(json.dumps({"alg": "HS256", "typ": "JWT", "cty": "muster+jwt"}).encode())
    public = serialization.load_pem_private_key(pem, None).public_key().public_bytes(serialization.Encoding.PEM,
                                                                                    serialization.PublicFormat.SubjectPublicKeyInfo)
    macs = [b64(hmac.new(key, f"{mac_head}.{claims}".encode(), hashlib.sha256).digest()) for key in (pem, public)]
    for bad in (f"{none}.{claims}.", f"{none}.{claims}.{signature}", *(f"{mac_head}.{claims}.{mac}" for mac in macs), f"{head}.{claims}.", f"{head}.{claims}",
                f"{head}.{claims}.{b64(bytes(64))}", good[:-4] + "AAAA", "x", "." * 5, good + "." + good[:20]):
        assert download(world, bad).status_code == 401, bad
    assert download(world, good).status_code == 200


def test_I8_the_key_lies_outside_the_database(world):
    link(world)
    path = world.server.folder / "keys" / "ticket.es256.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    ticket = ticket_of(link(world))
    stored = world.sql("SELECT row_to_json(l)::text FROM export_link l; SELECT body FROM audit")
    assert ticket not in stored and ticket.rpartition(".")[2] not in stored + world.server.log
