"""Join tokens: shown once, listed without the secret, revoked."""
import datetime
import hashlib
import uuid

from agent import Agent
from resource import check_idempotency, check_list, check_refusals, last_event


def test_creating(world):
    cluster = world.cluster()
    answer = world.api("POST", f"clusters/{cluster}/join-tokens", {"uses": 16, "expires_in_seconds": 60, "host_name": "gpu-1"})
    assert answer.status_code == 201
    token = answer.json()
    assert token["token"].startswith("mjt_") and token["secret_shown_once"] is False
    assert (token["uses_left"], token["host_name"], token["created_by"], token["cluster_id"]) == (16, "gpu-1", "administrator", cluster)
    life = datetime.datetime.fromisoformat(token["expires_at"]) - datetime.datetime.fromisoformat(token["created_at"])
    assert life.total_seconds() == 60
    event = last_event(world)
    assert (event["type"], event["cluster_id"], event["data"]) == ("token.created", cluster, {"token_id": token["id"]})


def test_defaults(world):
    token = world.made("POST", f"clusters/{world.cluster()}/join-tokens", {})
    life = datetime.datetime.fromisoformat(token["expires_at"]) - datetime.datetime.fromisoformat(token["created_at"])
    assert (token["uses_left"], token["host_name"], life.total_seconds()) == (1, None, 3600)


def test_the_secret_is_nowhere_but_in_the_first_answer(world):
    cluster, key = world.cluster(), {"Idempotency-Key": str(uuid.uuid4())}
    first = world.api("POST", f"clusters/{cluster}/join-tokens", {}, headers=key).json()
    again = world.api("POST", f"clusters/{cluster}/join-tokens", {}, headers=key)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == {**first, "token": None, "secret_shown_once": True}
    listed = world.api("GET", f"clusters/{cluster}/join-tokens").text + world.api("GET", f"join-tokens/{first['id']}").text
    stored = world.sql("SELECT row_to_json(t)::text FROM join_token t; SELECT body FROM audit; SELECT body FROM idempotency; SELECT data FROM event")
    assert first["token"] not in listed + stored + world.server.log
    assert hashlib.sha256(first["token"].encode()).hexdigest() in stored


def test_a_network_is_kept_without_its_host_bits(world):
    token = world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"cidr": "10.20.30.40/16"})
    assert token["cidr"] == "10.20.0.0/16"


def test_what_is_no_network_is_refused(world):
    for bad in ("10.0.0.0/33", "10.0.0.0/8,10.1.0.0/16", "10.0.0.0 /8", "here", "10.0.0.0/8/8", "::/129"):
        answer = world.api("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"cidr": bad})
        assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == "#/cidr", bad


def test_refusals_come_all_at_once(world):
    check_refusals(world, "POST", f"clusters/{world.cluster()}/join-tokens", {"uses": 0, "expires_in_seconds": 86401, "host_name": "a b"},
                   ["#/uses", "#/expires_in_seconds", "#/host_name"])


def test_idempotency(world):
    cluster = world.cluster()
    count = lambda: int(world.sql(f"SELECT count(*) FROM join_token WHERE cluster_id = '{cluster}'"))
    check_idempotency(world, f"clusters/{cluster}/join-tokens", lambda: {"host_name": world.name("h")}, rows=count)


def test_list(world):
    cluster = world.cluster()
    made = [world.token(cluster) for _ in range(4)]
    items = check_list(world, f"clusters/{cluster}/join-tokens", "id")
    assert [item["id"] for item in items] == made[::-1]


def test_revoking_ends_it(world):
    token = world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"uses": 5})
    assert world.api("DELETE", f"join-tokens/{token['id']}").status_code == 204
    assert world.api("DELETE", f"join-tokens/{token['id']}").status_code == 404, "what is revoked is gone"
    assert world.api("GET", f"join-tokens/{token['id']}").json()["revoked_at"] is not None
    assert Agent(world.server, world.name("a")).try_enroll(token["token"]).status_code == 401


def test_a_use_is_counted(world):
    token = world.made("POST", f"clusters/{world.org.cluster_id}/join-tokens", {"uses": 2})
    Agent(world.server, world.name("a")).enroll(token["token"])
    assert world.api("GET", f"join-tokens/{token['id']}").json()["uses_left"] == 1
