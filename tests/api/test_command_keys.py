"""The key that signs a cluster's commands: its successors, with the real agent, at hand and away."""
import base64
import os
import stat
import uuid

import pytest

from agent import Agent, wait_for
from machine import machine
from world import World

LONG = 60


@pytest.fixture
def place(server):
    """An org of its own: nobody else's agents keep a rotation waiting."""
    return World(server, server.add_org("keys-" + uuid.uuid4().hex[:8]))


@pytest.fixture
def node(place, tmp_path):
    token = place.made("POST", f"clusters/{place.org.cluster_id}/join-tokens", {})["token"]
    running = machine(tmp_path, place.server, token, "keyed-1").start()
    running.id = wait_for(lambda: place.sql("SELECT l.node_id FROM node_latest l JOIN node n ON n.id = l.node_id WHERE n.name = 'keyed-1'"
                                            f" AND n.org_id = '{place.org.id}' AND l.seen_at IS NOT NULL"), LONG)
    yield running
    running.stop()


def rotate(place, *more, check=True):
    return place.server.run("key", "rotate", "--cluster", place.org.cluster_id, *more, check=check)


def trusted(place, node):
    return int(place.sql(f"SELECT command_key_n FROM node WHERE id = '{node.id}'"))


def retired(place):
    return place.sql(f"SELECT string_agg(n::text, ' ' ORDER BY n) FROM command_key WHERE cluster_id = '{place.org.cluster_id}'"
                     " AND retired_at IS NOT NULL")


def files(place):
    folder = place.server.folder / "keys"
    return sorted(path.name.removeprefix(place.org.cluster_id) for path in folder.glob(f"{place.org.cluster_id}*"))


def order(place, node, n):
    """A reboot as the repair engine orders it; gives its id."""
    command = str(uuid.uuid4())
    place.sql("INSERT INTO command (org_id, id, node_id, epoch_generation, epoch_n, action, boot_id, deadline_at)"
              f" VALUES ('{place.org.id}', '{command}', '{node.id}', 1, {n}, 'reboot', '{node.boot.read_text().split()[0]}', now() + interval '1 hour');"
              f" UPDATE org_head SET command_seq = command_seq + 1 WHERE org_id = '{place.org.id}'")
    return command


def until_done(place, command):
    wait_for(lambda: place.sql(f"SELECT state FROM command WHERE id = '{command}'") == "done", LONG)


def test_I7_agents_take_over_a_successor_and_the_former_key_is_retired(place, node):
    assert files(place) == [".ed25519"]
    rotate(place)
    wait_for(lambda: trusted(place, node) == 2 and retired(place) == "1" and files(place) == [".2.ed25519"], LONG)
    path = place.server.folder / "keys" / f"{place.org.cluster_id}.2.ed25519"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    until_done(place, order(place, node, 1))
    assert Agent(place.server, "keyed-2").enroll(org_id=place.org.id, cluster_id=place.org.cluster_id).command_key == b64_of(place), \
        "who joins now learns the newest"
    lines = place.server.run("key", "list", "--cluster", place.org.cluster_id).splitlines()
    assert [line.split()[1] for line in lines] == ["2", "1"] and lines[0].endswith("signs") and lines[1].endswith("retired")
    kinds = place.sql(f"SELECT type FROM event WHERE org_id = '{place.org.id}' AND type LIKE 'cluster.key%' ORDER BY seq").split()
    assert kinds == ["cluster.key_rotated", "cluster.key_retired"]
    assert place.sql(f"SELECT action FROM audit WHERE org_id = '{place.org.id}' AND action LIKE 'key.%' ORDER BY seq").split() == \
        ["key.rotate", "key.retire"]


def b64_of(place):
    key = bytes.fromhex(place.sql(f"SELECT encode(command_public_key, 'hex') FROM cluster WHERE id = '{place.org.cluster_id}'"))
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


def test_I7_an_agent_that_was_away_follows_the_chain(place, node):
    node.stop()
    rotate(place)
    assert retired(place) == "" and files(place) == [".2.ed25519", ".ed25519"], "the former one signs for who does not know the newest"
    again = rotate(place, check=False)
    assert again.returncode == 1 and "1 agents do not know the newest key" in again.stderr
    rotate(place, "--finish")
    rotate(place)
    rotate(place, "--finish")
    assert retired(place) == "1 2" and files(place) == [".3.ed25519"]
    waiting = order(place, node, 1)
    node.start()
    wait_for(lambda: trusted(place, node) == 3, LONG)
    until_done(place, waiting)
    node.stop()
    node.start()
    until_done(place, order(place, node, 2)), "and it remembers"


def test_an_agent_takes_no_key_that_the_present_one_did_not_sign(place, node):
    """As a superuser of the database would try it."""
    node.stop()
    rotate(place)
    place.sql(f"UPDATE command_key SET public_key = sha256('forged') WHERE cluster_id = '{place.org.cluster_id}' AND n = 2")
    node.start()
    wait_for(lambda: "number 2 is not signed by number 1" in node.log.read_text(), LONG)
    assert trusted(place, node) == 1
    until_done(place, order(place, node, 1)), "what is signed by the key it knows it obeys still"


def test_nobody_makes_a_successor_without_the_present_key(place):
    Agent(place.server, "keyed-3").enroll(org_id=place.org.id, cluster_id=place.org.cluster_id)
    path = place.server.folder / "keys" / f"{place.org.cluster_id}.ed25519"
    kept = path.read_bytes()
    path.write_bytes(os.urandom(32))
    refused = rotate(place, check=False)
    assert refused.returncode == 1 and "cannot sign a successor" in refused.stderr
    path.write_bytes(kept)
    assert place.server.run("key", "rotate", "--cluster", "no-such-cluster", check=False).returncode == 1
    assert place.server.run("key", "rotate", check=False).returncode == 2
