"""Who may do what to whose things: every operation as every kind of caller, with ids swapped in path, query, body and cursor.

The table of roles stands here once more, apart from the server's: a change of one without the other fails.
"""
import uuid

import pytest
from samples import SAMPLES, send
from test_authz import ROUTES, each
from world import World

READS = {"session", "cluster.read"}
ROLES = {
    "viewer": READS,
    "script_author": READS | {"script.write"},
    "auditor": READS | {"audit.read", "issuer.read"},
    "operator": READS | {"node.write", "incident.write", "repair.request"},
    "approver": READS | {"repair.request", "repair.decide"},
    "admin": READS | {"cluster.write", "node.write", "incident.write", "repair.request", "repair.decide", "token.write", "org.write",
                      "audit.read", "member.write", "issuer.read", "issuer.write", "webhook.write", "script.write"},
}
# Only for people with a session, whatever the role; the sample brings one.
SESSIONS = {"session_switch", "session_delete", "session_delete_all", "session_list", "session_delete_one", "sign_out", "device_code_get",
            "device_code_decide"}


@pytest.fixture(scope="module")
def other(server):
    return World(server, server.add_org("bola-other"))


@pytest.fixture(scope="module")
def tokens(server):
    return {role: server.token(role) for role in ROLES}


def test_every_permission_of_the_table_is_known_here():
    assert {route["permission"] for route in ROUTES} - {"public", "platform", "agent"} == set().union(*ROLES.values())


@pytest.mark.parametrize("role", ROLES)
@each(lambda route: route["permission"] not in ("public", "agent") and route["operation"] not in SESSIONS)
def test_a_role_does_what_it_may_and_nothing_else(world, tokens, route, role):
    answer = send(world, route, SAMPLES[route["operation"]](world), token=tokens[role])
    assert answer.status_code == (route["success"] if route["permission"] in ROLES[role] else 403), answer.text


@pytest.fixture(scope="module")
def expired(world):
    """A token and a session whose time is over, and a session that nobody used for 8 hours."""
    token = world.service_token("admin")
    world.sql(f"UPDATE service_token SET expires_at = now() - interval '1 second' WHERE id = '{token['id']}'")
    over, idle = world.browser(), world.browser()
    world.sql("UPDATE session SET expires_at = now() - interval '1 second' WHERE id = (SELECT id FROM session ORDER BY created_at DESC OFFSET 1 LIMIT 1);"
              "UPDATE session SET seen_at = now() - interval '9 hours' WHERE id = (SELECT id FROM session ORDER BY created_at DESC LIMIT 1)")
    return token["token"], over, idle


@each(lambda route: route["permission"] != "public")
def test_an_expired_credential_is_401(world, expired, route):
    token, *sessions = expired
    sample = SAMPLES[route["operation"]](world)
    headers = {key: value for key, value in sample.get("headers", {}).items() if key != "Cookie"}
    assert send(world, route, sample, token=token, headers=headers).status_code == 401
    for session in sessions:
        assert send(world, route, sample, token=False, headers={**headers, **session}).status_code == 401


# Who administers an installation sees all organizations, and `musterd init` makes such a token; test_platform.py is about that.
@each(lambda route: route["permission"] not in ("public", "agent", "platform") and route["operation"] not in SESSIONS)
def test_an_administrator_of_another_org_reaches_nothing(world, other, route):
    """As in test_authz.py, from the other side: their own things they may, ours do not exist for them."""
    sample = SAMPLES[route["operation"]](world)
    if "path" not in sample:
        return  # about the caller's own org: the lists below
    before = world.told()
    answer = send(world, route, sample, token=other.org.token)
    assert answer.status_code == 404, answer.text
    assert world.told() == before


# ---------------------------------------------------------------- ids in a query, a body, a cursor
# operation: (place, field, what to put there, statuses that are right). Every uuid that the document has in a query or a body.
def cluster_of(w):
    return w.cluster()


SWAPS = {
    ("cluster_list", "query", "project_id"): lambda w: w.project(),
    ("event_list", "query", "cluster_id"): cluster_of,
    ("event_list", "query", "node_id"): lambda w: w.node(),
    ("cluster_event_list", "query", "node_id"): lambda w: w.node(),
    ("event_stream", "query", "cluster_id"): cluster_of,
    ("incident_list", "query", "cluster_id"): cluster_of,
    ("incident_list", "query", "node_id"): lambda w: w.node(),
    ("repair_list", "query", "cluster_id"): cluster_of,
    ("repair_list", "query", "node_id"): lambda w: w.node(),
    ("cluster_repair_list", "query", "node_id"): lambda w: w.node(),
    ("audit_list", "query", "target"): lambda w: w.project(),
    ("session_switch", "body", "org_id"): lambda w: w.org.id,
    ("cluster_create", "body", "project_id"): lambda w: w.project(),
    ("cluster_update", "body", "project_id"): lambda w: w.project(),
    ("event_create", "body", "node_id"): lambda w: w.node(),
    ("member_create", "body", "project_id"): lambda w: w.project(),
    ("member_create", "body", "cluster_id"): cluster_of,
    ("member_create", "body", "person_id"): lambda w: w.member()["person_id"],
    ("member_create", "body", "issuer_id"): lambda w: w.issuer()["id"],
    ("token_create", "body", "cluster_id"): cluster_of,
    ("webhook_create", "body", "cluster_id"): cluster_of,
    ("webhook_update", "body", "cluster_id"): cluster_of,
    ("policy_create", "body", "cluster_id"): cluster_of,
    ("policy_create", "body", "node_id"): lambda w: w.node(),
    ("policy_replay", "body", "cluster_id"): cluster_of,
    ("policy_replay", "body", "node_id"): lambda w: w.node(),
    ("check_override_create", "body", "cluster_id"): cluster_of,
    ("check_override_try", "body", "cluster_id"): cluster_of,
    ("check_list", "query", "cluster_id"): cluster_of,
    ("check_list", "query", "node_id"): lambda w: w.node(),
    ("custom_check_create", "body", "cluster_id"): cluster_of,
    ("custom_check_try", "body", "cluster_id"): cluster_of,
    ("expectation_create", "body", "cluster_id"): cluster_of,
    ("expectation_create", "body", "node_id"): lambda w: w.node(),
    ("agent_challenge", "body", "node_id"): lambda w: w.agent().node_id,
    ("agent_token", "body", "node_id"): lambda w: w.agent().node_id,
}


def resolve(contract, node):
    return contract.resolved(node) if "$ref" in node else node


def uuids_of(contract, name):
    _, _, operation = contract.operations[name]
    for parameter in operation.get("parameters", []):
        parameter = resolve(contract, parameter)
        if parameter["in"] == "query" and resolve(contract, parameter["schema"]).get("format") == "uuid":
            yield name, "query", parameter["name"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    for field, schema in (resolve(contract, body).get("properties", {}) if body else {}).items():
        if resolve(contract, schema).get("format") == "uuid":
            yield name, "body", field


def test_every_id_in_a_query_or_a_body_is_swapped_below(contract):
    found = {swap for name in contract.operations if name != "agent_report" for swap in uuids_of(contract, name)}
    assert found == set(SWAPS)


@pytest.mark.parametrize("operation, place, field", SWAPS, ids=[".".join(swap) for swap in SWAPS])
def test_a_foreign_id_names_nothing(world, other, operation, place, field):
    """Like an id that does not exist: the same status, no item, and nothing happens to its owner."""
    route = next(route for route in ROUTES if route["operation"] == operation)
    foreign = SWAPS[operation, place, field](other)
    before = other.told()
    answers = []
    for value in (foreign, str(uuid.uuid4())):
        sample = SAMPLES[operation](world)
        part = "query" if place == "query" else "json"
        sample = {**sample, part: {**sample.get(part, {}), field: value}}
        answers.append(send(world, route, sample))
    theirs, absent = answers
    assert theirs.status_code == absent.status_code, theirs.text
    if place == "query" and theirs.status_code == 200:
        assert theirs.json()["items"] == []
    elif operation == "agent_challenge":
        assert theirs.status_code == 200, "a nonce for whoever asks says nothing"
    else:
        assert theirs.status_code in (401, 404, 422), theirs.text
    assert other.told() == before


# These have no pages.
WHOLE = {"check_list", "role_list", "session_list"}
LISTS = sorted(route["operation"] for route in ROUTES
               if route["operation"].endswith("_list") and "{" not in route["path"] and route["operation"] not in WHOLE
               and route["permission"] != "platform")


@pytest.mark.parametrize("operation", LISTS)
def test_a_cursor_of_another_org_shows_none_of_its_rows(world, other, operation):
    for w in (world, other):
        for _ in range(3):
            w.project(), w.cluster(), w.event(), w.member(), w.check_override(), w.custom_check(), w.expectation(), w.service_token(), w.webhook(), w.repair(), w.incident()
    path = next(route["path"] for route in ROUTES if route["operation"] == operation)
    cursor = other.api("GET", f"{path}?limit=1").json()["next_cursor"]
    if operation == "org_list":
        assert cursor is None
        return
    answer = world.api("GET", f"{path}?limit=1&cursor={cursor}")
    assert answer.status_code in (200, 400)
    assert other.mark not in answer.text and other.org.id not in answer.text


# ---------------------------------------------------------------- agents
def test_I6_an_agent_touches_no_other_nodes_orders(world):
    """It says how another node's order ended, and is not believed."""
    mine, theirs = world.agent(), world.agent()
    order = str(uuid.uuid4())
    world.sql("INSERT INTO command (org_id, id, node_id, epoch_generation, epoch_n, action, state, deadline_at)"
              f" VALUES ('{world.org.id}', '{order}', '{theirs.node_id}', 1, 1, 'reboot', 'sent', now() + interval '1 hour')")
    answer = mine.report(results=[{"command_id": order, "state": "done", "detail": ""}])
    assert answer.status_code == 200 and answer.json()["commands"] == []
    assert world.sql(f"SELECT state FROM command WHERE id = '{order}'") == "sent"
    world.sql(f"DELETE FROM command WHERE id = '{order}'")


def test_I6_a_token_is_given_for_the_own_key_only(world):
    mine, theirs = world.agent(), world.agent()
    nonce = theirs.challenge()
    text = f"muster-agent-token\n{theirs.node_id}\n{nonce}"
    assert mine.try_token(nonce, node_id=theirs.node_id, text=text).status_code == 401
    assert mine.try_token(nonce).status_code == 401, "nor with another node's nonce"
