"""Webhooks: set up, signed, told at least once with one id, tried again, given up, one sender at a time, and who may."""
import json
import re
import time
import uuid
from pathlib import Path

import pytest
from receiver import Receivers, verify
from server import Musterd
from waiting import wait_for
from world import World

ROOT = Path(__file__).resolve().parent.parent.parent

KINDS = ["incident.opened", "incident.closed", "repair.proposed", "repair.rejected", "repairs.stopped", "repairs.allowed"]


@pytest.fixture(scope="module")
def host():
    with Receivers() as running:
        yield running


@pytest.fixture(scope="module")
def own(host):
    """A server of its own that may call this machine."""
    with Musterd(outbound_allow=host.allow) as running:
        yield running


@pytest.fixture
def hooks(own, host):
    return Hooks(World(own, own.add_org("hook-" + uuid.uuid4().hex[:8])), host)


class Hooks:
    def __init__(self, world, host):
        self.world, self.host = world, host

    def made(self, receiver=None, **fields):
        receiver = receiver or self.host.receiver()
        body = {"name": self.world.name("hook"), "url": receiver.url, "ca_certificate": self.host.ca, "kinds": ["incident.opened"], **fields}
        return receiver, self.world.made("POST", "webhooks", body)

    def incident(self, **fields):
        return self.world.incident(**fields)

    def deliveries(self, hook, **query):
        return self.world.api("GET", f"webhooks/{hook['id']}/deliveries", params=query).json()["items"]

    def read(self, hook):
        return self.world.api("GET", f"webhooks/{hook['id']}").json()

    def hurry(self, hook):
        """What waits for its next try is due now, and the receiver is not rested from."""
        self.world.sql(f"UPDATE webhook_delivery SET next_at = now() WHERE webhook_id = '{hook['id']}' AND state = 'waiting';"
                       f"UPDATE webhook SET rest_until = NULL WHERE id = '{hook['id']}'")

    def wait_tries(self, hook, count):
        def tried():
            items = self.deliveries(hook)
            return items and sum(item["attempts"] for item in items) >= count and items
        return wait_for(tried)


def test_what_happens_is_told_signed_with_one_id(hooks):
    receiver, hook = hooks.made(kinds=KINDS)
    assert hook["secret"].startswith("whsec_") and hook["secret_shown_once"] is False
    incident = hooks.incident(summary="Fans stand still")
    call = wait_for(lambda: receiver.of("incident.opened"))[0]
    assert verify(hook["secret"], call) and len(call.signatures) == 1
    assert abs(int(call.timestamp) - time.time()) < 300
    data = call.json["data"]
    assert data["incident_id"] == incident and data["org"] == hooks.world.org.name and "Fans stand still" in data["summary"]
    shown = wait_for(lambda: [item for item in hooks.deliveries(hook) if item["state"] == "delivered"])[0]
    assert shown["id"] == call.id and shown["event_seq"] == data["seq"] and shown["body"] == call.json
    assert [(one["status"], one["error"]) for one in shown["tries"]] == [(204, "")]
    assert hooks.read(hook)["delivered_at"] is not None and "secret" not in hooks.read(hook)


def test_the_verification_of_the_document_works(hooks):
    receiver, hook = hooks.made()
    hooks.incident()
    call = wait_for(lambda: receiver.calls)[0]
    text = (ROOT / "docs/webhooks.md").read_text(encoding="utf-8")
    source = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    headers = {name.lower(): value for name, value in call.headers.items()}
    for body, genuine in ((call.body, True), (call.body + b" ", False)):
        names = {"secret": hook["secret"], "headers": headers, "body": body}
        exec(source, names)
        assert names["genuine"] is genuine
    document = json.loads(hooks.world.server.api("GET", "/api/v1/openapi.json").text)
    for kind in document["components"]["schemas"]["WebhookKind"]["enum"]:
        assert f"`{kind}`" in text


def test_the_kinds_are_told_and_no_others(hooks):
    receiver, hook = hooks.made(kinds=["repair.proposed", "repair.rejected", "repairs.stopped", "repairs.allowed"])
    world = hooks.world
    repair = world.repair()
    assert world.api("POST", f"repairs/{repair['id']}/reject", {"comment": "no"}).status_code == 200
    world.api("POST", f"clusters/{world.org.cluster_id}/stop-repairs", {"comment": "c"})
    world.api("POST", f"clusters/{world.org.cluster_id}/allow-repairs", {})
    wait_for(lambda: receiver.of("repairs.allowed"))
    assert [call.json["type"] for call in receiver.calls] == ["repair.proposed", "repair.rejected", "repairs.stopped", "repairs.allowed"]
    assert [call.json["data"]["repair_id"] for call in receiver.calls] == [repair["id"], repair["id"], None, None]


def test_each_kind_is_an_event_that_exists(own):
    """Every row of the table finds its event: one of each type is written, and each comes as its kind."""
    world = World(own, own.add_org("hook-kinds-" + uuid.uuid4().hex[:8]))
    document = json.loads(own.api("GET", "/api/v1/openapi.json").text)
    kinds = document["components"]["schemas"]["WebhookKind"]["enum"]
    hook = world.webhook(kinds=kinds, enabled=True)
    types = ["repair.step" if kind == "repair.begun" else kind for kind in kinds]
    values = ", ".join(f"({place}, '{kind}')" for place, kind in enumerate(types, 1))
    world.sql(f"""WITH head AS (UPDATE org_head SET event_seq = event_seq + {len(types)} WHERE org_id = '{world.org.id}' RETURNING event_seq - {len(types)} AS base)
        INSERT INTO event (org_id, seq, type, data) SELECT '{world.org.id}', base + v.place, v.type, '{{"to": "cordoning"}}' FROM head, (VALUES {values}) v(place, type)""")
    wait_for(lambda: len(world.api("GET", f"webhooks/{hook['id']}/deliveries", params={"limit": 100}).json()["items"]) == len(kinds))
    items = world.api("GET", f"webhooks/{hook['id']}/deliveries", params={"limit": 100}).json()["items"]
    assert sorted(item["kind"] for item in items) == sorted(kinds)


def test_one_of_a_cluster_hears_of_it_and_of_all(hooks):
    world = hooks.world
    cluster = world.cluster()
    receiver, _ = hooks.made(kinds=KINDS, cluster_id=cluster)
    hooks.incident(node=world.node())
    here = hooks.incident(node=world.node(cluster))
    world.api("POST", "stop-repairs", {"comment": "c"})
    world.api("POST", "allow-repairs", {})
    wait_for(lambda: receiver.of("repairs.allowed"))
    assert [call.json["data"]["incident_id"] for call in receiver.of("incident.opened")] == [here]


def test_what_was_not_taken_comes_again_with_the_same_id_and_body(hooks):
    receiver, hook = hooks.made()
    receiver.status = [500, 302, 204]
    hooks.incident()
    hooks.wait_tries(hook, 1)
    waiting = hooks.deliveries(hook)[0]
    assert waiting["state"] == "waiting" and waiting["tries"][0]["error"] == "It answered 500." and waiting["next_at"]
    for tries in (2, 3):
        hooks.hurry(hook)
        hooks.wait_tries(hook, tries)
    assert hooks.deliveries(hook)[0]["state"] == "delivered"
    assert len({call.id for call in receiver.calls}) == 1 and len({call.body for call in receiver.calls}) == 1
    assert all(verify(hook["secret"], call) for call in receiver.calls)
    assert [one["status"] for one in hooks.deliveries(hook)[0]["tries"]] == [500, 302, 204]


def test_the_pauses_grow_to_three_days_and_then_the_webhook_is_disabled(hooks):
    receiver, hook = hooks.made()
    receiver.status = 503
    hooks.incident()
    hooks.wait_tries(hook, 1)
    delivery = hooks.deliveries(hook)[0]
    hooks.world.sql(f"UPDATE webhook_delivery SET attempts = 12, until_at = now() - interval '1 second' WHERE id = '{delivery['id']}'")
    hooks.hurry(hook)
    wait_for(lambda: not hooks.read(hook)["enabled"])
    shown = hooks.read(hook)
    assert shown["disabled_at"] and "72 hours" in shown["disabled_reason"] and "503" in shown["disabled_reason"]
    event = hooks.world.api("GET", "events?type=webhook.disabled").json()["items"]
    assert len(event) == 1 and event[0]["severity"] == "warning" and event[0]["data"]["webhook_id"] == hook["id"]
    assert hooks.deliveries(hook)[0]["state"] == "failed"
    again = hooks.world.api("POST", f"webhooks/{hook['id']}/deliveries/{delivery['id']}/redeliver")
    assert again.status_code == 409 and "Enable it first" in again.json()["detail"]
    receiver.status = 204
    headers = {"If-Match": f'"{shown["version"]}"'}
    assert hooks.world.api("PATCH", f"webhooks/{hook['id']}", {"enabled": True}, headers=headers).json()["disabled_at"] is None
    assert hooks.world.api("POST", f"webhooks/{hook['id']}/deliveries/{delivery['id']}/redeliver").status_code == 200
    wait_for(lambda: hooks.deliveries(hook)[0]["state"] == "delivered")
    assert {call.id for call in receiver.calls} == {delivery["id"]}


def test_one_that_answers_410_is_disabled_at_once(hooks):
    receiver, hook = hooks.made()
    receiver.status = 410
    hooks.incident()
    wait_for(lambda: not hooks.read(hook)["enabled"])
    assert "410" in hooks.read(hook)["disabled_reason"]


def test_order_is_kept_and_one_is_sent_at_a_time(hooks):
    receiver, hook = hooks.made()
    receiver.gate.clear()
    made = [hooks.incident() for _ in range(6)]
    wait_for(lambda: receiver.calls)
    receiver.gate.set()
    wait_for(lambda: len(receiver.calls) == 6)
    assert [call.json["data"]["incident_id"] for call in receiver.calls] == made and receiver.most == 1


def test_a_slow_receiver_does_not_hold_up_another(hooks):
    slow, _ = hooks.made()
    quick, _ = hooks.made()
    slow.gate.clear()
    hooks.incident()
    wait_for(lambda: slow.calls)
    more = [hooks.incident() for _ in range(3)]
    wait_for(lambda: len(quick.calls) == 4)
    assert [call.json["data"]["incident_id"] for call in quick.calls[1:]] == more
    assert len(slow.calls) == 1
    slow.gate.set()


def test_a_lost_answer_is_sent_again_by_the_next_server(hooks, own):
    """The server dies between the send and the note of it: the same id comes once more, from another."""
    receiver, hook = hooks.made()
    receiver.gate.clear()
    hooks.incident()
    wait_for(lambda: receiver.calls)
    own.kill()
    receiver.gate.set()
    hooks.world.sql(f"UPDATE webhook SET leased_until = now() WHERE id = '{hook['id']}'")
    own.start()
    wait_for(lambda: hooks.deliveries(hook)[0]["state"] == "delivered")
    assert len(receiver.calls) == 2 and len({call.id for call in receiver.calls}) == 1


def test_two_servers_do_not_send_twice(hooks, own, host):
    receiver, hook = hooks.made()
    other = Musterd(pg=own.pg, init=False, outbound_allow=host.allow, keys_dir=str(own.folder / "keys"))
    other.start()
    try:
        made = [hooks.incident() for _ in range(12)]
        wait_for(lambda: len(receiver.calls) >= 12)
        wait_for(lambda: all(item["state"] == "delivered" for item in hooks.deliveries(hook)))
    finally:
        other.stop()
    assert sorted(call.json["data"]["incident_id"] for call in receiver.calls) == sorted(made) and receiver.most == 1


def test_a_new_secret_signs_beside_the_old_one_for_a_time(hooks):
    receiver, hook = hooks.made()
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answer = hooks.world.api("POST", f"webhooks/{hook['id']}/rotate", {"overlap_seconds": 600}, headers=key)
    fresh = answer.json()
    assert fresh["secret"] != hook["secret"] and fresh["previous_until"] is not None
    replay = hooks.world.api("POST", f"webhooks/{hook['id']}/rotate", {"overlap_seconds": 600}, headers=key).json()
    assert replay["secret"] is None and replay["secret_shown_once"] is True
    hooks.incident()
    call = wait_for(lambda: receiver.calls)[0]
    assert len(call.signatures) == 2 and verify(hook["secret"], call) and verify(fresh["secret"], call)
    hooks.world.sql(f"UPDATE webhook SET previous_until = now() WHERE id = '{hook['id']}'")
    hooks.incident()
    call = wait_for(lambda: receiver.calls[1:])[0]
    assert len(call.signatures) == 1 and verify(fresh["secret"], call) and not verify(hook["secret"], call)


def test_secrets_are_sealed_and_stay_in_their_row(hooks, own):
    receiver, hook = hooks.made()
    other, twin = hooks.made()
    dump = own.sql("SELECT string_agg(query_to_xml('SELECT * FROM muster.' || quote_ident(tablename), true, false, '')::text, '')"
                   " FROM pg_tables WHERE schemaname = 'muster'")
    assert hook["secret"] not in dump and hook["secret"][6:] not in dump and hook["secret"] not in own.log
    hooks.world.sql(f"UPDATE webhook SET secret = (SELECT secret FROM webhook WHERE id = '{twin['id']}') WHERE id = '{hook['id']}'")
    hooks.incident()
    tried = hooks.wait_tries(hook, 1)
    assert "does not open" in tried[0]["tries"][0]["error"] and receiver.calls == []
    wait_for(lambda: other.calls)


def test_a_test_is_sent_once_and_its_end_is_the_answer(hooks):
    receiver, hook = hooks.made(enabled=False)
    sent = hooks.world.api("POST", f"webhooks/{hook['id']}/test").json()
    assert (sent["state"], sent["kind"], sent["attempts"], sent["tries"][0]["status"]) == ("delivered", "webhook.test", 1, 204)
    assert verify(hook["secret"], receiver.of("webhook.test")[0])
    receiver.status = 500
    sent = hooks.world.api("POST", f"webhooks/{hook['id']}/test").json()
    assert sent["state"] == "failed" and sent["next_at"] is None and hooks.read(hook)["failures"] == 0
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = hooks.world.api("POST", f"webhooks/{hook['id']}/test", headers=key).json()
    again = hooks.world.api("POST", f"webhooks/{hook['id']}/test", headers=key)
    assert again.json()["id"] == first["id"] and again.headers["idempotent-replayed"] == "true" and len(receiver.calls) == 3


@pytest.mark.parametrize("url", ["http://example.com/x", "https://127.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/latest", "https://10.0.0.8/x",
                                 "https://user:pw@example.com/x", "ftp://example.com/x", "https://exa mple.com/x", "https:///nohost"])
def test_an_address_inside_is_refused(hooks, url):
    answer = hooks.world.api("POST", "webhooks", hooks.world.webhook_body(url=url))
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == "#/url", answer.text


def test_a_name_that_leads_inside_is_refused_when_it_is_connected_to(hooks):
    hook = hooks.world.webhook(url="https://localhost/x")
    sent = hooks.world.api("POST", f"webhooks/{hook['id']}/test").json()
    assert sent["state"] == "failed" and sent["tries"][0]["status"] is None and sent["tries"][0]["error"].startswith("No answer")


@pytest.mark.parametrize("change, pointer", [({"kinds": []}, "#/kinds"), ({"kinds": ["repair.exploded"]}, "#/kinds/0"), ({"name": ""}, "#/name"),
                                             ({"cluster_id": str(uuid.uuid4())}, "#/cluster_id"), ({"ca_certificate": "x"}, "#/ca_certificate"),
                                             ({"secret": "x"}, "#/secret")])
def test_what_a_webhook_cannot_be(hooks, change, pointer):
    answer = hooks.world.api("POST", "webhooks", hooks.world.webhook_body(**change))
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == pointer, answer.text


def test_changes_are_conditional_audited_and_told(hooks):
    world = hooks.world
    hook = world.webhook()
    assert world.api("POST", "webhooks", world.webhook_body(name=hook["name"])).json()["code"] == "name_taken"
    changed = world.api("PATCH", f"webhooks/{hook['id']}", {"kinds": ["breaker.opened"], "url": "https://example.com/y"}, headers={"If-Match": '"1"'}).json()
    assert changed["kinds"] == ["breaker.opened"] and changed["version"] == 2
    assert world.api("PATCH", f"webhooks/{hook['id']}", {"name": "x"}, headers={"If-Match": '"1"'}).status_code == 412
    assert world.api("PATCH", f"webhooks/{hook['id']}", {"url": "https://127.0.0.1/"}, headers={"If-Match": '"2"'}).status_code == 422
    assert world.api("DELETE", f"webhooks/{hook['id']}").status_code == 204
    assert world.api("GET", f"webhooks/{hook['id']}").status_code == 404
    actions = world.sql(f"SELECT body::json ->> 'action' FROM audit WHERE org_id = '{world.org.id}' AND target = '{hook['id']}' ORDER BY seq").split()
    assert actions == ["webhook.create", "webhook.update", "webhook.delete"]
    kinds = world.sql(f"SELECT type FROM event WHERE org_id = '{world.org.id}' AND data ->> 'webhook_id' = '{hook['id']}' ORDER BY seq").split()
    assert kinds == ["webhook.created", "webhook.updated", "webhook.removed"]


def test_one_behind_which_too_much_waits_is_disabled(hooks):
    receiver, hook = hooks.made()
    hooks.world.sql(f"""UPDATE webhook SET rest_until = now() + interval '1 hour' WHERE id = '{hook['id']}';
        INSERT INTO webhook_delivery (org_id, id, webhook_id, event_seq, kind, body, state, next_at, until_at)
        SELECT '{hooks.world.org.id}', gen_random_uuid(), '{hook['id']}', -n, 'incident.opened', '{{}}', 'waiting', now(), now() + interval '1 hour'
          FROM generate_series(1, 10000) n""")
    hooks.incident()
    wait_for(lambda: not hooks.read(hook)["enabled"])
    assert "10000" in hooks.read(hook)["disabled_reason"] and receiver.calls == []
