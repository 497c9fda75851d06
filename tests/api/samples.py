"""A request for every operation that succeeds when an administrator sends it; the closure tests walk this table.

Each is a function of a World that makes what the request needs and gives {path, json, headers, query, token}.
"""
import base64
import json
import secrets
import time
import urllib.parse
import uuid

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from agent import Agent, b64, join_token
from login import Browser, Login
from receiver import sign
from world import World

HOOK_SECRET = "whsec_bXVzdGVyLXRlc3Qtc2VjcmV0LW9mLXRoaXJ0eS10d28="

MATCH_1 = {"If-Match": '"1"'}


def agent_enroll(w):
    return {"json": {"token": join_token(w.server, org_id=w.org.id, cluster_id=w.org.cluster_id), "name": w.name("a"),
                     "public_key": b64(secrets.token_bytes(32))}, "token": False}


def agent_challenge(w):
    return {"json": {"node_id": w.agent().node_id}, "token": False}


def agent_token(w):
    agent = Agent(w.server, w.name("a")).enroll(org_id=w.org.id, cluster_id=w.org.cluster_id)
    nonce = agent.challenge()
    signature = b64(agent.key.sign(f"muster-agent-token\n{agent.node_id}\n{nonce}".encode()))
    return {"json": {"node_id": agent.node_id, "nonce": nonce, "signature": signature}, "token": False}


def agent_report(w):
    agent = w.agent()
    return {"json": agent.body(), "token": agent.token}


def device_codes(w):
    answer = w.server.api("POST", "/api/v1/device-codes", {"client": w.name("client")}, token=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


def allowed_device(w):
    codes = device_codes(w)
    done = w.server.api("POST", f"/api/v1/device-codes/{codes['user_code']}", {"decision": "approve"}, token=False, headers=w.browser())
    assert done.status_code == 200, done.text
    return codes["device_code"]


def ticket(w):
    answer = w.api("POST", "audit/export-links", {})
    assert answer.status_code == 200, answer.text
    return answer.json()["url"].rpartition("=")[2]


def rejoin(w):
    """A node whose machine lost its key and asks to come back."""
    agent = w.agent()
    w.sql(f"UPDATE node SET host_serial = 'S1' WHERE id = '{agent.node_id}'")
    token = w.made("POST", f"clusters/{w.org.cluster_id}/join-tokens", {"rejoin": "ask"})["token"]
    answer = Agent(w.server, agent.name).try_enroll(token)
    assert answer.status_code == 202, answer.text
    return answer.json()["rejoin_id"]


def repair_approve(w):
    repair = w.repair()
    return {"path": {"repair": repair["id"]}, "json": {"plan_hash": repair["plan_hash"]},
            "headers": {"Idempotency-Key": str(uuid.uuid4())}}


def login(w):
    return Login(w, w.server.idp_host.idp())


def sign_in_callback(w):
    browser = Browser(login(w))
    query = dict(urllib.parse.parse_qsl(browser.login.idp.authorize(browser.start())))
    return {"query": query, "headers": browser.headers, "token": False}


def backchannel_logout(w):
    browser = Browser(login(w))
    browser.sign_in()
    return {"path": {"issuer": browser.login.id}, "form": {"logout_token": browser.login.idp.logout_token()}, "token": False}


def session_delete_one(w):
    headers = w.browser()
    items = w.server.api("GET", "/api/v1/sessions", token=False, headers=headers).json()["items"]
    return {"path": {"session": items[0]["id"]}, "headers": headers, "token": False}


def newest(w, path):
    """If-Match of what a loop may have touched."""
    return {"If-Match": w.api("GET", path).headers["etag"]}


def node_update(w):
    node = w.node()
    return {"path": {"node": node}, "json": {"rack": "r2"}, "headers": newest(w, f"nodes/{node}")}


def batch(w):
    cluster = w.cluster()
    return {"path": {"cluster": cluster}, "json": {"node_ids": [w.node(cluster), w.node(cluster)], "action": "reboot", "reason": "r", "expected_count": 2}}


def delivery(w):
    """One that failed, as a test of a webhook that nobody answers leaves it."""
    hook = w.webhook(enabled=True)["id"]
    return {"webhook": hook, "delivery": w.api("POST", f"webhooks/{hook}/test").json()["id"]}


def order_told(w):
    """An order that the automation of the cluster `hooked` took; conftest.py names it in the executors file."""
    server, command = w.server, str(uuid.uuid4())
    server.sql(f"INSERT INTO cluster (org_id, id, project_id, name) VALUES ('{server.org_id}', gen_random_uuid(), '{server.project_id}', 'hooked')"
               " ON CONFLICT DO NOTHING")
    cluster = server.sql(f"SELECT id FROM cluster WHERE org_id = '{server.org_id}' AND name = 'hooked'").strip()
    node = World(server).node(cluster)
    server.sql("INSERT INTO command (org_id, id, node_id, epoch_generation, epoch_n, action, state, deadline_at, executor) VALUES"
               f" ('{server.org_id}', '{command}', '{node}', 1, 1, 'reboot', 'accepted', now() + interval '1 hour', 'webhook')")
    body, at = {"state": "done"}, str(int(time.time()))
    sent = httpx.Request("POST", "http://x", json=body).content
    now = int(time.time())
    claims = {"iss": "muster", "aud": "order", "sub": server.org_id, "jti": command, "iat": now, "exp": now + 600, "after": 0, "limit": 1}
    headers = {"webhook-id": command, "webhook-timestamp": at, "webhook-signature": sign(HOOK_SECRET, command, at, sent)}
    return {"query": {"ticket": forged_ticket(server, claims)}, "json": body, "headers": headers, "token": False}


def forged_ticket(server, claims):
    """With the server's own key."""
    link = server.api("POST", "/api/v1/audit/export-links", {}).json()["url"].rpartition("ticket=")[2]
    key = serialization.load_pem_private_key((server.folder / "keys" / "ticket.es256.pem").read_bytes(), None)
    head, given = link.split(".")[:2]
    good = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    text = head + "." + b64(json.dumps({**good, **{name: value for name, value in claims.items() if name != "iss"}}).encode())
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return text + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def in_cluster(w):
    return {"path": {"cluster": w.cluster()}}


def in_node(w):
    return {"path": {"node": w.node()}}


SAMPLES = {
    "healthz": lambda w: {"token": False},
    "readyz": lambda w: {"token": False},
    "metrics": lambda w: {"token": False},
    "openapi": lambda w: {"token": False},
    "problem_page": lambda w: {"path": {"slug": "not-found"}, "token": False},
    "session_create": lambda w: {"json": {"token": w.link(w.person()[0])}, "token": False},
    "session_list": lambda w: {"headers": w.browser(), "token": False},
    "session_delete_one": session_delete_one,
    "sign_in_options": lambda w: {"token": False},
    "sign_in_start": lambda w: {"path": {"issuer": login(w).id}, "token": False},
    "sign_in_callback": sign_in_callback,
    "sign_out": lambda w: {"json": {}, "headers": w.browser(), "token": False},
    "backchannel_logout": backchannel_logout,
    "session_switch": lambda w: {"json": {"org_id": w.org.id}, "headers": w.browser(), "token": False},
    "session_delete": lambda w: {"headers": w.browser(), "token": False},
    "me_get": lambda w: {},
    "device_code_create": lambda w: {"json": {"client": "a test"}, "token": False},
    "device_token_create": lambda w: {"json": {"device_code": allowed_device(w)}, "token": False},
    "device_code_get": lambda w: {"path": {"slug": device_codes(w)["user_code"]}, "headers": w.browser(), "token": False},
    "device_code_decide": lambda w: {"path": {"slug": device_codes(w)["user_code"]}, "json": {"decision": "approve"}, "headers": w.browser(),
                                     "token": False},
    "org_list": lambda w: {},
    "org_create": lambda w: {"json": {"name": w.name("o")}},
    "org_get": lambda w: {"path": {"org": w.org.id}},
    "org_update": lambda w: {"path": {"org": w.org.id}, "json": {"title": "T"},
                             "headers": newest(w, f"orgs/{w.org.id}")},
    "platform_org_list": lambda w: {},
    "platform_org_get": lambda w: {"path": {"org": w.org.id}},
    "platform_org_suspend": lambda w: {"path": {"org": other_org(w)}, "json": {"reason": "r"}},
    "platform_org_resume": lambda w: {"path": {"org": other_org(w, suspended=True)}, "json": {"reason": "r"}},
    "project_list": lambda w: {},
    "project_create": lambda w: {"json": {"name": w.name("p")}},
    "project_get": lambda w: {"path": {"project": w.project()}},
    "project_update": lambda w: {"path": {"project": w.project()}, "json": {"title": "T"}, "headers": MATCH_1},
    "cluster_list": lambda w: {},
    "cluster_create": lambda w: {"json": {"project_id": w.org.project_id, "name": w.name("c")}},
    "cluster_get": in_cluster,
    "cluster_update": lambda w: {**in_cluster(w), "json": {"region": "fra"}, "headers": MATCH_1},
    "cluster_overview": in_cluster,
    "cluster_history": in_cluster,
    "cluster_events_strip": in_cluster,
    "cluster_checks": in_cluster,
    "cluster_as_of": lambda w: {**in_cluster(w), "query": {"at": "2026-01-01T00:00:00Z"}},
    "cluster_grid": in_cluster,
    "node_list": in_cluster,
    "node_create": lambda w: {**in_cluster(w), "json": {"name": w.name("n")}},
    "node_get": in_node,
    "node_update": node_update,
    "node_cordon": lambda w: {**in_node(w), "json": {"comment": "c"}},
    "node_uncordon": lambda w: {"path": {"node": cordoned(w)}, "json": {}},
    "node_revoke_key": lambda w: {"path": {"node": w.agent().node_id}, "json": {"reason": "r"}},
    "node_history": in_node,
    "node_transitions": in_node,
    "device_list": in_node,
    "device_create": lambda w: {**in_node(w), "json": {"type": "gpu", "serial": w.name("s")}},
    "device_get": lambda w: {"path": {"device": w.device()}},
    "device_update": lambda w: {"path": {"device": w.device()}, "json": {"note": "n"}, "headers": MATCH_1},
    "device_history": lambda w: {"path": {"device": w.device()}},
    "node_machine": in_node,
    "serial_find": lambda w: {"query": {"q": w.mark + "-serial"}},
    "event_list": lambda w: {},
    "event_stream": lambda w: {},
    "cluster_event_list": in_cluster,
    "event_create": lambda w: {**in_cluster(w), "json": {"summary": "s"}},
    "incident_list": lambda w: {},
    "incident_get": lambda w: {"path": {"incident": w.incident()}},
    "incident_update": lambda w: {"path": {"incident": w.incident()}, "json": {"note": "n"}, "headers": MATCH_1},
    "incident_close": lambda w: {"path": {"incident": w.incident()}, "json": {"reason": "gone"}},
    "incident_create": lambda w: {**in_node(w), "json": {"summary": "s", "severity": "warning"}},
    "check_list": lambda w: {},
    "check_override_list": lambda w: {},
    "check_override_create": lambda w: {"json": {"check_id": "gpu_xid", "gpu_type": w.name("type"), "mode": "shadow"}},
    "check_override_try": lambda w: {"json": {"check_id": "gpu_xid", "threshold": 5}},
    "check_override_get": lambda w: {"path": {"override": w.check_override()["id"]}},
    "check_override_update": lambda w: {"path": {"override": w.check_override()["id"]}, "json": {"reason": "r"}, "headers": MATCH_1},
    "custom_check_list": lambda w: {},
    "custom_check_create": lambda w: {"json": w.custom_check_body()},
    "custom_check_try": lambda w: {"json": {"definition": {"metric": "gpu_util", "comparison": "below", "threshold": 5}}},
    "custom_check_get": lambda w: {"path": {"check": w.custom_check()["id"]}},
    "custom_check_update": lambda w: {"path": {"check": w.custom_check()["id"]}, "json": {"title": "t"}, "headers": MATCH_1},
    "custom_check_delete": lambda w: {"path": {"check": w.custom_check()["id"]}},
    "custom_check_history": lambda w: {"path": {"check": w.custom_check()["id"]}},
    "expectation_list": lambda w: {},
    "expectation_create": lambda w: {"json": {"gpu_type": w.name("type"), "gpus": 8}},
    "expectation_get": lambda w: {"path": {"expectation": w.expectation()["id"]}},
    "expectation_update": lambda w: {"path": {"expectation": w.expectation()["id"]}, "json": {"gpus": 4}, "headers": MATCH_1},
    "expectation_delete": lambda w: {"path": {"expectation": w.expectation()["id"]}},
    "node_settings": lambda w: {"path": {"node": w.node()}},
    "check_override_delete": lambda w: {"path": {"override": w.check_override()["id"]}},
    "repair_list": lambda w: {},
    "cluster_repair_list": in_cluster,
    "repair_batch_create": batch,
    "repair_statistics": in_cluster,
    "incident_report": in_cluster,
    "repair_create": lambda w: {**in_node(w), "json": {"action": "reboot", "reason": "r"}},
    "repair_get": lambda w: {"path": {"repair": w.repair()["id"]}},
    "repair_approve": repair_approve,
    "repair_reject": lambda w: {"path": {"repair": w.repair()["id"]}, "json": {}},
    "repair_cancel": lambda w: {"path": {"repair": w.repair()["id"]}, "json": {}},
    "repair_settle": lambda w: {"path": {"repair": w.unknown_repair()["id"]}, "json": {"outcome": "failed", "comment": "c"}},
    "join_token_list": in_cluster,
    "join_token_create": lambda w: {**in_cluster(w), "json": {}},
    "join_token_get": lambda w: {"path": {"token": w.token()}},
    "join_token_delete": lambda w: {"path": {"token": w.token()}},
    "spare_list": in_cluster,
    "spare_create": lambda w: {**in_cluster(w), "json": {"machine": w.name("m")}},
    "spare_get": lambda w: {"path": {"spare": w.spare()}},
    "spare_delete": lambda w: {"path": {"spare": w.spare()}},
    "rejoin_list": in_cluster,
    "rejoin_get": lambda w: {"path": {"rejoin": rejoin(w)}},
    "rejoin_approve": lambda w: {"path": {"rejoin": rejoin(w)}},
    "rejoin_deny": lambda w: {"path": {"rejoin": rejoin(w)}},
    "session_delete_all": lambda w: {"headers": w.browser(), "token": False},
    "role_list": lambda w: {},
    "person_list": lambda w: {},
    "member_list": lambda w: {},
    "member_create": lambda w: {"json": {"name": w.name("person"), "role": "viewer"}},
    "member_get": lambda w: {"path": {"member": w.member()["id"]}},
    "member_delete": lambda w: {"path": {"member": w.member()["id"]}},
    "issuer_list": lambda w: {},
    "issuer_create": lambda w: {"json": w.issuer_body()},
    "issuer_get": lambda w: {"path": {"issuer": w.issuer()["id"]}},
    "issuer_update": lambda w: {"path": {"issuer": w.issuer()["id"]}, "json": {"title": "T"}, "headers": MATCH_1},
    "issuer_discover": lambda w: {"json": {"issuer": "https://127.0.0.1"}},
    "issuer_test_token": lambda w: {"path": {"issuer": w.issuer()["id"]}, "json": {"token": "x"}},
    "issuer_refresh_keys": lambda w: {"path": {"issuer": w.issuer()["id"]}},
    "issuer_delete": lambda w: {"path": {"issuer": w.issuer()["id"]}},
    "token_list": lambda w: {},
    "token_create": lambda w: {"json": {"name": w.name("t"), "role": "viewer"}},
    "token_get": lambda w: {"path": {"token": w.service_token()["id"]}},
    "token_rotate": lambda w: {"path": {"token": w.service_token()["id"]}, "json": {}},
    "token_delete": lambda w: {"path": {"token": w.service_token()["id"]}},
    "webhook_list": lambda w: {},
    "webhook_create": lambda w: {"json": w.webhook_body()},
    "webhook_get": lambda w: {"path": {"webhook": w.webhook()["id"]}},
    "webhook_update": lambda w: {"path": {"webhook": w.webhook()["id"]}, "json": {"name": w.name("hook")}, "headers": MATCH_1},
    "webhook_delete": lambda w: {"path": {"webhook": w.webhook()["id"]}},
    "webhook_rotate": lambda w: {"path": {"webhook": w.webhook()["id"]}, "json": {}},
    "webhook_test": lambda w: {"path": {"webhook": w.webhook()["id"]}},
    "webhook_delivery_list": lambda w: {"path": {"webhook": w.webhook()["id"]}},
    "webhook_redeliver": lambda w: {"path": delivery(w)},
    "order_told": order_told,
    "policy_list": lambda w: {},
    "policy_create": lambda w: {"json": {"cluster_id": w.cluster(), "mode": "automatic"}},
    "policy_get": lambda w: {"path": {"policy": w.policy()}},
    "policy_update": lambda w: {"path": {"policy": w.policy()}, "json": {"concurrency_max": 3}, "headers": MATCH_1},
    "policy_delete": lambda w: {"path": {"policy": w.policy()}, "headers": MATCH_1},
    "policy_replay": lambda w: {"json": {"cluster_id": w.org.cluster_id, "mode": "automatic"}},
    "node_policy": in_node,
    "cluster_policy": in_cluster,
    "org_guard": lambda w: {},
    "cluster_guard": in_cluster,
    "node_stop_repairs": lambda w: {**in_node(w), "json": {"comment": "c"}},
    "node_allow_repairs": lambda w: {**in_node(w), "json": {}},
    "cluster_stop_repairs": lambda w: {**in_cluster(w), "json": {"comment": "c"}},
    "cluster_allow_repairs": lambda w: {**in_cluster(w), "json": {}},
    "org_stop_repairs": lambda w: {"json": {"comment": "c"}},
    "org_allow_repairs": lambda w: {"json": {}},
    "platform_stop_repairs": lambda w: {"json": {"comment": "c"}},
    "platform_allow_repairs": lambda w: {"json": {}},
    "cluster_breaker_reset": lambda w: {"path": {"cluster": broken(w, w.cluster(), "cluster")}, "json": {"comment": "c"}},
    "org_breaker_reset": lambda w: {**({"json": {"comment": "c"}} if broken(w, w.org.id, "org") else {})},
    "platform_breaker_reset": lambda w: {**({"json": {"comment": "c"}} if broken_platform(w) else {})},
    "audit_list": lambda w: {},
    "audit_export": lambda w: {},
    "audit_export_link": lambda w: {"json": {}},
    "audit_download": lambda w: {"query": {"ticket": ticket(w)}, "token": False},
    "agent_enroll": agent_enroll,
    "agent_challenge": agent_challenge,
    "agent_token": agent_token,
    "agent_report": agent_report,
}


def other_org(w, suspended=False):
    """A fresh one: suspending ours would stop every other test."""
    org = w.server.api("POST", "/api/v1/orgs", {"name": w.name("o")}, token=w.server.admin)
    assert org.status_code == 201, org.text
    if suspended:
        w.sql(f"UPDATE org SET suspended_at = now(), suspended_by = 'x', suspend_reason = 'r' WHERE id = '{org.json()['id']}'")
    return org.json()["id"]


def cordoned(w):
    node = w.node()
    assert w.api("POST", f"nodes/{node}/cordon", {}).status_code == 200
    return node


def broken(w, target, reach):
    """Its breaker is open, as a rule leaves it."""
    w.sql("INSERT INTO repair_guard (org_id, target_id, reach, cluster_id, opened_at, open_reason)"
          f" VALUES ('{w.org.id}', '{target}', '{reach}', {'NULL' if reach == 'org' else repr(target)}, now(), 'test')"
          " ON CONFLICT (org_id, target_id) DO UPDATE SET opened_at = now()")
    return target


def broken_platform(w):
    w.sql("UPDATE installation SET breaker_opened_at = now(), breaker_open_reason = 'test'")
    return True


# What would stop the repairs of every other test is taken back at once.
TAKEN_BACK = {
    "org_stop_repairs": "UPDATE repair_guard SET stopped_at = NULL WHERE reach = 'org'",
    "platform_stop_repairs": "UPDATE installation SET repairs_stopped_at = NULL",
    "platform_breaker_reset": "UPDATE installation SET breaker_opened_at = NULL",
}

# Changes that leave no audit row, with the reason.
WITHOUT_AUDIT = {
    "issuer_discover": "changes nothing",
    "issuer_test_token": "changes nothing",
    "issuer_refresh_keys": "reads anew what the issuer publishes",
    "agent_challenge": "changes nothing",
    "policy_replay": "changes nothing",
    "device_code_create": "nobody is known yet; what follows from it is audited",
    "agent_token": "a further access token of a key whose joining was audited",
    "agent_report": "readings; what follows from them is events",
    "check_override_try": "changes nothing",
    "custom_check_try": "changes nothing",
}


def send(world, route, sample, token=None, **changes):
    """Sends a sample; `token` and `changes` (path, headers, json) override it."""
    sample = {**sample, **changes}
    path = route["path"]
    for name, value in sample.get("path", {}).items():
        path = path.replace("{" + name + "}", value)
    if token is None:
        token = sample.get("token")
    options = {"params": sample["query"]} if sample.get("query") else {}
    if sample.get("form"):
        options["data"] = sample["form"]
    if route["operation"] == "event_stream":
        path += "?" + urllib.parse.urlencode(sample.get("query") or {})
        return begin_stream(world, path, world.org.token if token is None else token, sample.get("headers"))
    answer = world.server.api(route["method"], path, sample.get("json"), token=world.org.token if token is None else token,
                              headers=sample.get("headers"), **options)
    if route["operation"] in TAKEN_BACK:
        world.sql(TAKEN_BACK[route["operation"]])
    return answer


def begin_stream(world, path, token, headers):
    """The head of an answer that would not end."""
    headers = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    with world.server.client.stream("GET", world.server.url(path), headers=headers) as answer:
        if answer.status_code >= 400:
            answer.read()
        return answer
