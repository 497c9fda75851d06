"""Secrets at rest: sealed for their row, out of reach of who reads the database, and a new master key while the server serves."""
import secrets
import subprocess
import threading
import time

import pytest
from login import Browser, Login
from server import Musterd
from waiting import wait_for
from world import World


@pytest.fixture(scope="module")
def own(idp_host):
    """A server of its own: its keys are turned."""
    with Musterd(outbound_allow=idp_host.allow) as running:
        yield running


@pytest.fixture
def login(own, idp_host):
    return Login(World(own), idp_host.idp())


def masters(server):
    return server.sql("SELECT encode(k.master, 'hex') FROM org_key k UNION SELECT encode(m.key_id, 'hex') FROM secret_master m").split()


def test_I8_no_secret_is_in_the_database_or_the_log(own, login):
    Browser(login).sign_in()
    canaries = [login.idp.client_secret, *login.idp.refresh_tokens]
    dump = own.sql("SELECT string_agg(query_to_xml('SELECT * FROM muster.' || quote_ident(tablename), true, false, '')::text, '')"
                   " FROM pg_tables WHERE schemaname = 'muster'")
    for canary in canaries:
        assert canary not in dump and canary.encode().hex() not in dump and canary not in own.log


def test_I8_two_sealed_secrets_that_changed_places_do_not_open(own, login, idp_host):
    other = Login(login.world, idp_host.idp())
    assert Browser(other).sign_in().headers["location"] == "/"
    own.sql(f"UPDATE issuer SET client_secret = (SELECT client_secret FROM issuer WHERE id = '{other.id}') WHERE id = '{login.id}'")
    answer = Browser(login).api("GET", f"/auth/sign-in/{login.id}")
    assert answer.headers["location"] == "/sign-in?error=not_configured"
    assert "does not open" in own.log


def test_I8_the_key_of_another_org_does_not_open(own, login, idp_host):
    org = World(own, own.add_org("secrets-other-" + secrets.token_hex(3)))
    other = Login(org, idp_host.idp())
    kept = own.sql(f"SELECT encode(wrapped, 'hex') FROM org_key WHERE org_id = '{org.org.id}'")
    own.sql(f"UPDATE org_key SET wrapped = (SELECT wrapped FROM org_key WHERE org_id = '{login.world.org.id}') WHERE org_id = '{org.org.id}'")
    assert "error=" in Browser(other).api("GET", f"/auth/sign-in/{other.id}").headers["location"]
    own.sql(f"UPDATE org_key SET wrapped = decode('{kept}', 'hex') WHERE org_id = '{org.org.id}'")
    assert Browser(other).sign_in().headers["location"] == "/"


def test_I8_the_master_key_is_turned_under_load_and_no_request_fails(own, login, idp_host):
    for number in range(3):
        Login(World(own, own.add_org(f"secrets-{number}-{secrets.token_hex(3)}")), idp_host.idp())
    stop, failures, done = threading.Event(), [], [0]

    def work():
        while not stop.is_set():
            answer = Browser(login).sign_in()
            if answer.status_code != 302 or answer.headers["location"] != "/":
                failures.append((answer.status_code, answer.headers.get("location"), answer.text[:200]))
            done[0] += 1

    def make():
        while not stop.is_set():
            made = login.world.api("POST", "issuers", login.world.issuer_body(client_secret="s"))
            if made.status_code != 201:
                failures.append((made.status_code, made.text[:200]))

    threads = [threading.Thread(target=target) for target in (work, make)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            before, at = masters(own), done[0]
            own.run("key", "rotate-master")
            after = masters(own)
            assert len(after) == 1 and after != before, "all keys are wrapped by the one that the database names"
            deadline = time.monotonic() + 60
            while done[0] <= at + 1 and not failures:
                assert time.monotonic() < deadline, "sign-ins go on"
                stop.wait(0.05)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == [] and done[0] > 3
    assert sorted(path.name for path in (own.folder / "keys").glob("master*")) == ["master.key"]
    assert (own.folder / "keys" / "master.key").stat().st_mode & 0o777 == 0o600
    rows = own.sql("SELECT count(*) FROM audit WHERE action = 'key.rotate_master'")
    assert int(rows) >= 3 * 4, "each org is told of each turn"


def test_a_rotation_that_was_cut_off_goes_on(own, login):
    """The files are there, the database does not know of them yet."""
    folder = own.folder / "keys"
    before = masters(own)
    (folder / "master.previous.key").write_bytes((folder / "master.key").read_bytes())
    (folder / "master.key").write_bytes(secrets.token_bytes(32))
    assert Browser(login).sign_in().headers["location"] == "/", "the former key still opens"
    own.run("key", "rotate-master")
    assert masters(own) != before and not (folder / "master.previous.key").exists()
    assert Browser(login).sign_in().headers["location"] == "/"


def test_a_foreign_master_key_is_refused_and_nothing_is_lost(own, login):
    path = own.folder / "keys" / "master.key"
    kept, before = path.read_bytes(), masters(own)
    path.write_bytes(secrets.token_bytes(32))
    refused = own.run("key", "rotate-master", check=False)
    path.write_bytes(kept)
    assert refused.returncode == 1 and "not the one" in refused.stderr
    assert masters(own) == before
    assert Browser(login).sign_in().headers["location"] == "/"


# ---------------------------------------------------------------- data keys
def versions(server, org):
    """{version: how many secrets} of what is sealed in an org."""
    text = server.sql("SELECT get_byte(x.s, 4), count(*) FROM (SELECT client_secret AS s FROM issuer WHERE org_id = '{0}' AND client_secret IS NOT NULL"
                      " UNION ALL SELECT refresh_token FROM login WHERE org_id = '{0}' AND refresh_token IS NOT NULL"
                      " UNION ALL SELECT id_token FROM login WHERE org_id = '{0}' AND id_token IS NOT NULL) x GROUP BY 1".format(org))
    return {int(version): int(count) for version, count in (line.split("|") for line in text.split())}


def newest(server, org):
    return int(server.sql(f"SELECT max(version) FROM org_key WHERE org_id = '{org}'"))


def test_I8_data_keys_are_turned_under_load_and_no_request_fails(own, idp_host):
    """What former versions sealed opens all the while, and in the end nothing of them is left."""
    world = World(own, own.add_org("turned-" + secrets.token_hex(3)))
    login = Login(world, idp_host.idp())
    assert Browser(login).sign_in().headers["location"] == "/"
    stop, failures, done = threading.Event(), [], [0]

    def work():
        while not stop.is_set():
            answer = Browser(login).sign_in()
            if answer.status_code != 302 or answer.headers["location"] != "/":
                failures.append((answer.status_code, answer.headers.get("location"), answer.text[:200]))
            done[0] += 1
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(3):
            before, at = newest(own, world.org.id), done[0]
            own.run("key", "rotate-data", "--org", world.org.name)
            # what was sealed in the very moment of the turn is taken by the same command once more, before it makes another version
            assert newest(own, world.org.id) >= before
            deadline = time.monotonic() + 60
            while done[0] <= at + 1 and not failures:
                assert time.monotonic() < deadline, "sign-ins go on"
                stop.wait(0.05)
    finally:
        stop.set()
        thread.join()
    assert failures == [] and newest(own, world.org.id) > 1
    last = newest(own, world.org.id)
    own.run("key", "rotate-data", "--org", world.org.name)
    if newest(own, world.org.id) == last:  # it ended the turn before
        own.run("key", "rotate-data", "--org", world.org.name)
    assert set(versions(own, world.org.id)) == {newest(own, world.org.id)}
    assert Browser(login).sign_in().headers["location"] == "/"
    actions = own.sql(f"SELECT DISTINCT action FROM audit WHERE org_id = '{world.org.id}' AND action LIKE 'key.%'").split()
    assert sorted(actions) == ["key.data_rotated", "key.rotate_data"]


def test_I8_a_turn_of_a_data_key_that_was_killed_goes_on(own, idp_host):
    world = World(own, own.add_org("killed-" + secrets.token_hex(3)))
    logins = [Login(world, idp_host.idp()) for _ in range(4)]
    for login in logins:
        assert Browser(login).sign_in().headers["location"] == "/"
    sealed = sum(versions(own, world.org.id).values())
    held = max(login.id for login in logins)
    with own.pg.connect() as lock:
        lock.cursor().execute(f"SELECT 1 FROM muster.issuer WHERE id = '{held}' FOR UPDATE")
        turn = subprocess.Popen([own.program, "key", "rotate-data", "--org", world.org.name, "--config", str(own.config)], env=own.env(),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: versions(own, world.org.id).get(2, 0) >= 3)
            both = versions(own, world.org.id)
        finally:
            turn.kill()
            turn.wait()
        assert set(both) == {1, 2}
        lock.rollback()
    for login in logins:
        assert Browser(login).sign_in().headers["location"] == "/", "both versions open"
    own.run("key", "rotate-data", "--org", world.org.name)
    assert newest(own, world.org.id) == 2, "the same turn, ended"
    assert set(versions(own, world.org.id)) == {2} and sum(versions(own, world.org.id).values()) >= sealed
    own.run("key", "rotate-data", "--org", world.org.name)
    assert newest(own, world.org.id) == 3
    assert Browser(logins[0]).sign_in().headers["location"] == "/"


def test_a_secret_that_does_not_open_stops_no_turn(own, idp_host):
    world = World(own, own.add_org("broken-" + secrets.token_hex(3)))
    good, bad = Login(world, idp_host.idp()), Login(world, idp_host.idp())
    own.sql(f"UPDATE issuer SET client_secret = (SELECT client_secret FROM issuer WHERE id = '{good.id}') WHERE id = '{bad.id}'")
    done = own.run("key", "rotate-data", "--org", world.org.name, check=False)
    assert done.returncode == 0 and "1 secrets" in done.stderr and "do not open" in done.stderr, done.stderr
    assert newest(own, world.org.id) == 2
    assert Browser(good).sign_in().headers["location"] == "/"
    unknown = own.run("key", "rotate-data", "--org", "nobody-" + secrets.token_hex(3), check=False)
    assert unknown.returncode == 1 and "there is no organization" in unknown.stderr


def test_key_takes_what_it_knows(own):
    assert own.run("key", "turn", check=False).returncode == 2
