"""The audit log: a row for every change and every refused one, chained so that no edit goes unseen. Ids as in docs/promises.md."""
import hashlib
import json
import re
import secrets
import threading
import time
import uuid
from datetime import datetime, timezone
from decimal import Decimal

import pytest
from resource import check_unchanged
from samples import SAMPLES, WITHOUT_AUDIT, send
from test_authz import ROUTES
from world import World

CHANGES = [route for route in ROUTES if route["method"] != "GET"]
TRICKS = "a\r\nfake line\x1b[31m \u202ereversed\u2066\u2028\x7f\x9b"


def rows_of(world, request_id, patience=60):
    """The rows of a request; waits for the first, since those of refusals are written beside the answer."""
    deadline = time.monotonic() + patience
    while True:
        text = world.sql(f"SELECT body FROM audit WHERE body::jsonb ->> 'request_id' = '{request_id}' ORDER BY seq")
        if text or time.monotonic() > deadline:
            return [json.loads(line) for line in text.splitlines()]
        time.sleep(0.02)


def sent(world, operation, **changes):
    route = next(route for route in ROUTES if route["operation"] == operation)
    return send(world, route, SAMPLES[operation](world), **changes)


def export(world, after=0, limit=200, **options):
    answer = world.api("GET", f"audit/export?after={after}&limit={limit}", **options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/jsonl"
    return [json.loads(line) for line in answer.text.splitlines()]


def export_all(world, limit=200):
    lines = []
    while page := export(world, lines[-1]["seq"] if lines else 0, limit):
        lines += page
    return lines


# ---------------------------------------------------------------- A1: no change without its row
@pytest.mark.parametrize("route", CHANGES, ids=[route["operation"] for route in CHANGES])
def test_A1_every_change_leaves_a_row_or_is_an_exception(world, route):
    """The exceptions stand in samples.py with their reasons."""
    sample, request = SAMPLES[route["operation"]](world), str(uuid.uuid4())
    answer = send(world, route, sample, headers={**(sample.get("headers") or {}), "X-Request-Id": request})
    assert answer.status_code == route["success"], answer.text
    exempt = route["operation"] in WITHOUT_AUDIT
    rows = rows_of(world, request, 0 if exempt else 60)
    assert len(rows) == 0 if exempt else len(rows) >= 1
    assert all(row["outcome"] == "done" for row in rows)


def test_A1_an_exception_is_a_change_that_exists():
    assert set(WITHOUT_AUDIT) <= {route["operation"] for route in CHANGES}


@pytest.mark.parametrize("operation", ["project_create", "node_cordon", "repair_approve", "join_token_delete", "incident_close"])
def test_A1_what_cannot_be_audited_does_not_happen(world, operation):
    """The row and the change commit together or not at all."""
    sample = SAMPLES[operation](world)
    route = next(route for route in ROUTES if route["operation"] == operation)
    before = world.told()
    world.sql("REVOKE INSERT (org_id, body) ON audit FROM muster_app")
    try:
        answer = send(world, route, sample)
    finally:
        world.sql("GRANT INSERT (org_id, body) ON audit TO muster_app")
    assert answer.status_code == 500
    assert world.told() == before
    again = send(world, route, sample)
    assert again.status_code == route["success"], again.text


@pytest.mark.parametrize("operation", sorted(r["operation"] for r in CHANGES if r["permission"] not in ("public", "session", "agent", "cluster.read")))
def test_A1_a_refused_change_leaves_a_row(world, operation):
    answer = sent(world, operation, token=world.server.token("viewer", world.org.id))
    assert answer.status_code == 403
    row, = rows_of(world, answer.headers["x-request-id"])
    assert (row["outcome"], row["reason"], row["kind"]) == ("denied", "forbidden", "service")
    assert row["action"] == ".".join(operation.rsplit("_", 1)) and row["actor"].startswith("test-")


def test_A1_a_refused_read_leaves_none(world):
    answer = world.api("GET", f"clusters/{world.org.cluster_id}/join-tokens", token=world.server.token("viewer", world.org.id))
    assert answer.status_code == 403
    mark = world.api("POST", "projects", {"name": world.name("p")}, token=world.server.token("viewer", world.org.id))
    assert rows_of(world, mark.headers["x-request-id"])
    assert not rows_of(world, answer.headers["x-request-id"], 0)


def test_A1_a_decision_that_came_too_late_leaves_a_row(world):
    repair = world.repair()
    body = {"plan_hash": "0" * 64}
    answer = world.api("POST", f"repairs/{repair['id']}/approve", body, headers={"Idempotency-Key": str(uuid.uuid4())})
    assert answer.status_code == 409
    row, = rows_of(world, answer.headers["x-request-id"])
    assert (row["action"], row["outcome"], row["reason"]) == ("repair.approve", "failed", "plan_changed")
    assert row["target"] == repair["id"] and row["target_name"].endswith(f"repair {repair['no']}")


def test_A1_a_change_to_what_is_not_theirs_leaves_a_row_in_their_own_log(world, server):
    other = World(server, server.add_org("audit-reach"))
    node = world.node()
    answer = other.api("POST", f"nodes/{node}/cordon", {})
    assert answer.status_code == 404
    row, = rows_of(other, answer.headers["x-request-id"])
    assert (row["outcome"], row["reason"], row["target"], row["target_name"]) == ("failed", "not_found", node, None)
    assert other.api("GET", f"audit?target={node}").json()["items"][0]["request_id"] == answer.headers["x-request-id"]


# ---------------------------------------------------------------- A2: what a row says
def test_A2_a_row_says_who_did_what_to_what_and_when(world):
    headers = world.browser()
    me = world.server.api("GET", "/api/v1/me", token=False, headers=headers).json()
    name = world.name("p")
    made = world.server.api("POST", "/api/v1/projects", {"name": name}, token=False, headers=headers)
    project = made.json()
    changed = world.api("PATCH", f"projects/{project['id']}", {"title": "after"}, headers={"If-Match": '"1"'})
    rows = world.api("GET", f"audit?target={project['id']}").json()["items"]
    update, create = rows
    assert create["actor"] == me["name"] and create["kind"] == "session"
    assert uuid.UUID(create["credential"]) and create["address"] == "127.0.0.1"
    assert create["request_id"] == made.headers["x-request-id"]
    assert (create["action"], create["target_name"], create["outcome"], create["reason"]) == ("project.create", name, "done", None)
    assert create["before"] is None and create["after"]["name"] == name
    assert (update["action"], update["actor"], update["kind"]) == ("project.update", "administrator", "service")
    assert (update["before"]["title"], update["after"]["title"]) == ("", "after")
    assert update["request_id"] == changed.headers["x-request-id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00", create["at"])


def test_A2_names_stay_those_of_that_time(world):
    """The actor's and the target's name are in the row, not looked up."""
    project = world.project()
    name = world.api("GET", f"projects/{project}").json()["name"]
    world.api("PATCH", f"projects/{project}", {"name": world.name("q")}, headers={"If-Match": '"1"'})
    created = world.api("GET", f"audit?target={project}&action=project.create").json()["items"][0]
    assert created["target_name"] == name


def test_A2_filters_choose_and_pages_join_up(world, server):
    other = World(server, server.add_org("audit-pages"))
    for _ in range(7):
        other.project()
    token = server.token("admin", other.org.id)
    for _ in range(3):
        other.api("POST", "projects", {"name": other.name("t")}, token=token)
    everything = other.api("GET", "audit?limit=200").json()
    assert everything["next_cursor"] is None and everything["as_of_seq"] == everything["items"][0]["seq"] == 11
    pages, cursor = [], None
    while True:
        page = other.api("GET", "audit?limit=4" + (f"&cursor={cursor}" if cursor else "")).json()
        pages += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == everything["items"]
    actor = pages[0]["actor"]
    assert {row["actor"] for row in pages} == {"administrator", actor, "musterd init"}
    assert other.api("GET", f"audit?actor={actor}").json()["items"] == pages[:3]
    assert len(other.api("GET", "audit?actor=administrator&action=project.create").json()["items"]) == 7
    assert [row["action"] for row in other.api("GET", "audit?action=org.create&action=x.y").json()["items"]] == ["org.create"]
    middle = pages[4]["at"].replace("+00:00", "Z")
    assert other.api("GET", f"audit?since={middle}").json()["items"] == pages[:5]
    assert other.api("GET", f"audit?until={middle}").json()["items"] == pages[5:]
    assert other.api("GET", f"audit?cursor={'A' * 40}").status_code == 400
    assert other.api("GET", "audit?target=x").status_code == 422


def test_A2_a_list_that_did_not_change_is_304(world):
    answer = world.api("GET", "audit?limit=1")
    check_unchanged(world, "audit?limit=1")
    world.project()
    assert world.api("GET", "audit?limit=1", headers={"If-None-Match": answer.headers["etag"]}).status_code == 200


def test_A2_auditors_and_administrators_read_it_and_nobody_else(world):
    for role, status in (("auditor", 200), ("admin", 200), ("viewer", 403), ("operator", 403), ("approver", 403), ("script_author", 403)):
        token = world.server.token(role, world.org.id)
        for path in ("audit", "audit/export"):
            assert world.api("GET", path, token=token).status_code == status, role


def test_A2_no_secret_is_in_any_row(world):
    """Neither a token nor what it is stored as, after every change was made once."""
    for route in CHANGES:
        send(world, route, SAMPLES[route["operation"]](world))
    bodies = world.sql("SELECT body FROM audit")
    assert not re.search(r"m(st|jt|at|ss|sl)_[A-Za-z0-9_-]{20,}", bodies)
    assert not re.search(r"token_hash|private_key|\"token\":", bodies)
    hashes = world.sql("SELECT encode(token_hash, 'hex') FROM service_token UNION ALL SELECT encode(token_hash, 'hex') FROM join_token"
                       " UNION ALL SELECT encode(token_hash, 'hex') FROM session UNION ALL SELECT encode(token_hash, 'hex') FROM agent_token")
    assert hashes and not any(line in bodies for line in hashes.splitlines())


# ---------------------------------------------------------------- A3: no edit goes unseen
@pytest.fixture
def logged(server):
    """An org with 12 rows in its log."""
    world = World(server, server.add_org("a3-" + secrets.token_hex(3)))
    for _ in range(11):
        world.project()
    return world


def attack(world, sql):
    """As a superuser who switches the triggers off."""
    world.sql(f"SET session_replication_role = replica; {sql.replace('ORG', world.org.id)}")


def verdict(world, *options):
    done = world.server.run("audit", "verify", "--org", world.org.name, *options, check=False)
    return done.returncode, done.stdout.strip()


REMAKE = """UPDATE audit a SET hash = sha256(prev_hash || convert_to(org_id::text || ' ' || seq || ' ' || extract(epoch FROM at)::text
            || ' ' || body, 'UTF8')) WHERE org_id = 'ORG'"""
# From row 7 on, the whole chain and its head are made anew, as who knows the code can.
REWRITE = """DO $$ DECLARE r record; h bytea; BEGIN
  UPDATE audit SET body = replace(body, '"done"', '"DONE"') WHERE org_id = 'ORG' AND seq = 7;
  SELECT hash INTO h FROM audit WHERE org_id = 'ORG' AND seq = 6;
  FOR r IN SELECT seq FROM audit WHERE org_id = 'ORG' AND seq >= 7 ORDER BY seq LOOP
    UPDATE audit SET prev_hash = h, hash = sha256(h || convert_to(org_id::text || ' ' || seq || ' ' || extract(epoch FROM at)::text || ' ' || body, 'UTF8'))
     WHERE org_id = 'ORG' AND seq = r.seq RETURNING hash INTO h;
  END LOOP;
  UPDATE audit_head SET hash = h WHERE org_id = 'ORG'; END $$"""
ATTACKS = {
    "an edit": ("UPDATE audit SET body = replace(body, 'done', 'dome') WHERE org_id = 'ORG' AND seq = 7", "row 7 is not as it was written"),
    "an edited time": ("UPDATE audit SET at = at - interval '1 microsecond' WHERE org_id = 'ORG' AND seq = 5", "row 5 is not as it was written"),
    "an edit with its hash": ("UPDATE audit SET body = replace(body, 'done', 'dome') WHERE org_id = 'ORG' AND seq = 7;" + REMAKE + " AND seq = 7",
                              "row 8 does not follow from row 7"),
    "a deletion": ("DELETE FROM audit WHERE org_id = 'ORG' AND seq = 9", "row 9 is missing: row 10 is the next one"),
    "a deletion at the front": ("DELETE FROM audit WHERE org_id = 'ORG' AND seq = 1", "row 1 is missing: row 2 is the next one"),
    "a new order": ("UPDATE audit SET seq = CASE seq WHEN 3 THEN 4 ELSE 3 END WHERE org_id = 'ORG' AND seq IN (3, 4)",
                    "row 3 is not as it was written"),
    "a cut tail": ("DELETE FROM audit WHERE org_id = 'ORG' AND seq > 10", "row 11 is missing: the log was cut off behind row 10"),
    "an invented row": ("INSERT INTO audit (org_id, seq, at, body, prev_hash, hash) SELECT org_id, 13, now(), body, hash, hash FROM audit"
                        " WHERE org_id = 'ORG' AND seq = 12;" + REMAKE + " AND seq = 13", "row 13 is behind the end that the head names"),
    "an emptied log": ("DELETE FROM audit WHERE org_id = 'ORG'", "row 1 is missing: the log was cut off behind row 0"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_A3_verify_names_the_first_bad_row(logged, name):
    assert verdict(logged)[0] == 0
    sql, sentence = ATTACKS[name]
    attack(logged, sql)
    assert verdict(logged) == (1, f"{logged.org.name}: {sentence}")


@pytest.mark.parametrize("name, sql", [
    ("rewritten", REWRITE),
    ("cut with its head", "DELETE FROM audit WHERE org_id = 'ORG' AND seq > 10; UPDATE audit_head h SET seq = 10, hash = a.hash FROM audit a"
     " WHERE a.org_id = 'ORG' AND a.seq = 10 AND h.org_id = 'ORG'")])
def test_A3_a_head_kept_elsewhere_finds_what_the_database_cannot_tell(logged, tmp_path, name, sql):
    kept = tmp_path / "heads"
    kept.write_text(logged.server.run("audit", "head", "--org", logged.org.name))
    head = json.loads(kept.read_text())
    assert (head["org"], head["seq"]) == (logged.org.id, 12)
    assert verdict(logged, "--heads", str(kept)) == (0, f"{logged.org.name}: 12 rows are whole, 1 signed heads agree")
    attack(logged, sql)
    assert verdict(logged)[0] == 0, "the chain itself is whole again"
    status, text = verdict(logged, "--heads", str(kept))
    assert status == 1 and f"{logged.org.name}: row 12 " in text
    kept.write_text(json.dumps({**head, "seq": 10}) + "\n")
    assert "line 1 of the signed heads was not signed with this key" in verdict(logged, "--heads", str(kept))[1]


def test_A3_the_runtime_roles_can_only_add(logged):
    from pg import PostgresError
    for role in ("app", "loop"):
        for sql in ("UPDATE audit SET body = ''", "DELETE FROM audit", "TRUNCATE audit", "UPDATE audit_head SET seq = 0",
                    f"INSERT INTO audit (org_id, body, seq, prev_hash, hash) VALUES ('{logged.org.id}', '{{}}', 1, '', '')"):
            with pytest.raises(PostgresError, match="permission denied"):
                logged.server.pg.psql(f"SET search_path = muster; SET muster.org = '{logged.org.id}'; {sql}", role=role)
    with pytest.raises(PostgresError, match="never changed"):
        logged.sql(f"UPDATE audit SET body = '{{}}' WHERE org_id = '{logged.org.id}'")


def test_A3_many_writers_and_rollbacks_make_one_chain(logged):
    """16 at once, every fourth of which breaks off."""
    def write(n):
        with logged.server.pg.connect("app", autocommit=False) as connection:
            connection.execute("SELECT set_config('muster.org', %s, false)", [logged.org.id])
            for i in range(20):
                connection.execute("INSERT INTO muster.audit (org_id, body) VALUES (%s, %s)",
                                   [logged.org.id, json.dumps({"actor": f"w{n}", "action": "x.y", "target": None})])
                connection.rollback() if n % 4 == 0 else connection.commit()
                connection.execute("SELECT set_config('muster.org', %s, false)", [logged.org.id])
    threads = [threading.Thread(target=write, args=[n]) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdict(logged) == (0, f"{logged.org.name}: {12 + 12 * 20} rows are whole, 0 signed heads agree")


def test_A3_an_exported_log_can_be_checked_by_others(logged):
    before = hashlib.sha256(b"muster").digest()
    lines = export_all(logged, limit=5)
    for line in lines:
        at = datetime.fromisoformat(line["at"]) - datetime(1970, 1, 1, tzinfo=timezone.utc)
        seconds = Decimal(at.days * 86400 + at.seconds) + Decimal(at.microseconds) / 1000000
        assert line["prev_hash"] == before.hex()
        before = hashlib.sha256(before + f"{logged.org.id} {line['seq']} {seconds:.6f} {line['body']}".encode()).digest()
        assert line["hash"] == before.hex()
    head = json.loads(logged.server.run("audit", "head", "--org", logged.org.name))
    assert (head["seq"], head["hash"]) == (12, before.hex())


def test_A3_an_unknown_org_is_an_error(world):
    done = world.server.run("audit", "verify", "--org", "nobody", check=False)
    assert done.returncode == 1 and "no organization" in done.stderr
    assert world.server.run("audit", "mend", check=False).returncode == 2


# ---------------------------------------------------------------- A4: nothing of an export is lost
def test_A4_an_export_goes_on_where_it_was(logged):
    """At least once: a reader that died asks again with what it kept; nothing is skipped while others write."""
    kept = export(logged, 0, 5)
    assert [line["seq"] for line in kept] == [1, 2, 3, 4, 5]
    assert export(logged, 3, 5)[:2] == kept[3:]
    stop = threading.Event()

    def write():
        while not stop.is_set():
            logged.project()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(kept) < 40:
            kept += export(logged, kept[-1]["seq"], 7)
    finally:
        stop.set()
        writer.join()
    kept += export_all(logged)[len(kept):]
    assert [line["seq"] for line in kept] == list(range(1, len(kept) + 1))
    assert export(logged, kept[-1]["seq"]) == []


def test_A4_a_reader_that_stands_still_blocks_nobody(logged):
    """It asks for the log and never reads the answer."""
    silent = logged.server.socket()
    silent.sendall(f"GET /api/v1/audit/export?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {logged.org.token}\r\n\r\n".encode())
    before = logged.audits()
    logged.project()
    assert logged.audits() == before + 1
    silent.close()


# ---------------------------------------------------------------- A5: a name plays no tricks
def test_A5_names_with_control_characters_stay_inside_their_line(logged):
    """No request can bring one in; a row from before that was so, or from another hand, is shown by its escapes."""
    refused = logged.api("POST", f"clusters/{logged.org.cluster_id}/nodes", {"name": logged.name("n"), "rack": TRICKS})
    assert refused.status_code == 422
    node = logged.node()
    logged.sql(f"UPDATE node SET rack = '{TRICKS}' WHERE id = '{node}'")
    answer = logged.api("PATCH", f"nodes/{node}", {"rack": "r1"}, headers={"If-Match": logged.api("GET", f"nodes/{node}").headers["etag"]})
    assert answer.status_code == 200, answer.text
    text = logged.api("GET", "audit/export?limit=1000").text
    assert len(text.split("\n")) == 15 and text.isprintable() is False
    assert all(c == "\n" or (c.isprintable() and c not in "\u202e\u2066\u2028\x9b\x7f") for c in text)
    row = json.loads(json.loads(text.splitlines()[-1])["body"])
    assert row["before"]["rack"] == TRICKS
    listed = logged.api("GET", "audit?limit=1")
    assert all(c.isprintable() for c in listed.text)
    assert listed.json()["items"][0]["before"]["rack"] == TRICKS


def test_A5_what_is_written_has_a_bounded_length(logged):
    """Nothing a client sends makes a row longer than the table takes."""
    name = "x" * 4000
    refused = logged.api("POST", "projects", {"name": name}, headers={"X-Request-Id": "y" * 300, "X-Forwarded-For": "z" * 300})
    assert refused.status_code == 422
    assert int(logged.sql("SELECT max(length(body)) FROM audit")) < 65536


# ---------------------------------------------------------------- signed by the hour
def test_A3_heads_are_signed_into_files_beside_the_database(server):
    from server import Musterd
    with Musterd(pg=server.pg, init=False, audit_head_seconds=1) as second:
        second.admin = server.admin
        world = World(server, server.add_org("a3-signed"))
        world.project()
        path = second.folder / "keys" / "audit" / f"{world.org.id}.jsonl"

        def wait(count):
            deadline = time.monotonic() + 90
            while not path.exists() or len(path.read_text().splitlines()) < count:
                assert time.monotonic() < deadline, second.log[-2000:]
                time.sleep(0.05)
            return [json.loads(line) for line in path.read_text().splitlines()]
        first = wait(1)
        assert first[0]["org"] == world.org.id and path.stat().st_mode & 0o777 == 0o600
        world.project()
        both = wait(len(first) + 1)
        assert both[-1]["seq"] > both[0]["seq"]
        second.write_config()
        assert "signed heads agree" in second.run("audit", "verify", "--org", "a3-signed")
        attack(world, REWRITE.replace("7", "2").replace("= 6", "= 1"))
        done = second.run("audit", "verify", "--org", "a3-signed", check=False)
        assert done.returncode == 1 and "is not what was signed at" in done.stdout
