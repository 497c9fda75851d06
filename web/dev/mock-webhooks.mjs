/* The stand-in's webhooks: a list, deliveries, tests that arrive or do not. */
import { idOf, iso } from "./mock-data.mjs";

const HOUR = 3_600_000;

/** tools: need(permission), page(items, url), missing(), Refusal. */
export function webhooks({ need, page, missing, Refusal }) {
  let all;
  let deliveries;
  let made;
  const body = (kind, summary) => ({ type: kind, timestamp: iso(Date.now()), data: { org_id: idOf("org", 1), org: "main", seq: 5, severity: "warning", cluster_id: idOf("cluster", 1), cluster: "fra-h100-a", node_id: null, node: null, incident_id: null, repair_id: null, actor: "muster", summary, details: {} } });

  function make(n, fields) {
    return { id: idOf("webhook", n), name: "pager", url: "https://hooks.example.com/muster", ca_certificate: null, kinds: ["repair.proposed", "breaker.opened"], cluster_id: null, enabled: true, created_by: "Maya Okafor", created_at: iso(Date.now() - 90 * HOUR), updated_at: iso(Date.now() - 90 * HOUR), previous_until: null, delivered_at: iso(Date.now() - HOUR), failures: 0, rest_until: null, disabled_at: null, disabled_reason: "", version: 1, ...fields };
  }

  function deliver(webhook, n, kind, summary, state, error, status) {
    const at = iso(Date.now() - n * 60_000);
    return { webhook, id: idOf("delivery", n), event_seq: n, kind, state, attempts: state === "waiting" ? 3 : 1, tries: [{ at, status, duration_ms: 34, error }], next_at: state === "waiting" ? iso(Date.now() + 40_000) : null, created_at: at, ended_at: state === "waiting" ? null : at, body: body(kind, summary) };
  }

  function reset() {
    made = 0;
    all = [make(1, {}), make(2, { name: "chat", url: "https://chat.example.com/hook/7", enabled: false, failures: 17, delivered_at: null, disabled_at: iso(Date.now() - HOUR), disabled_reason: "A delivery was not taken for 72 hours; the last answer: It answered 503." })];
    deliveries = [
      deliver(all[0].id, 1, "repair.proposed", "Repair 41 is proposed: reboot of gpu-17-03. Xid 79", "waiting", "It answered 500.", 500),
      deliver(all[0].id, 2, "breaker.opened", "The breaker opened, so no repair starts by itself", "delivered", "", 204),
      deliver(all[1].id, 3, "repair.proposed", "Repair 40 is proposed: reset GPU of gpu-02-03.", "failed", "It answered 503.", 503),
    ];
  }
  reset();

  const find = (id) => all.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const shown = ({ webhook: _, ...rest }) => rest;
  const secret = () => `whsec_${Buffer.from(`secret number ${made++} of the stand-in`).toString("base64")}`;
  const routes = [
    ["GET", "/webhooks", (_, url) => { need("webhook.write"); return page(all, url); }],
    ["POST", "/webhooks", (_, __, sent) => {
      need("webhook.write");
      if (!sent.url.startsWith("https://")) {
        throw new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer: "#/url", code: "not_allowed", detail: "URL scheme must be https." }] });
      }
      const one = make(50 + made, { ...sent, delivered_at: null, created_at: iso(Date.now()) });
      all.unshift(one);
      return { ...one, secret: secret(), secret_shown_once: false };
    }, 201],
    ["GET", "/webhooks/:w", ({ w }) => { need("webhook.write"); return find(w); }],
    ["PATCH", "/webhooks/:w", ({ w }, _, sent) => {
      need("webhook.write");
      const one = find(w);
      Object.assign(one, sent, sent.enabled ? { disabled_at: null, disabled_reason: "", failures: 0 } : {}, { version: one.version + 1 });
      return one;
    }],
    ["DELETE", "/webhooks/:w", ({ w }) => { need("webhook.write"); all.splice(all.indexOf(find(w)), 1); }, 204],
    ["POST", "/webhooks/:w/rotate", ({ w }, _, sent) => {
      need("webhook.write");
      const one = Object.assign(find(w), { previous_until: iso(Date.now() + sent.overlap_seconds * 1000) });
      return { ...one, secret: secret(), secret_shown_once: false };
    }],
    ["POST", "/webhooks/:w/test", ({ w }) => {
      need("webhook.write");
      const bad = find(w).name === "chat";
      const one = deliver(w, 0, "webhook.test", "A test of the webhook.", bad ? "failed" : "delivered", bad ? "It answered 503." : "", bad ? 503 : 204);
      one.id = idOf("delivery", 100 + made++);
      deliveries.unshift(one);
      return shown(one);
    }],
    ["GET", "/webhooks/:w/deliveries", ({ w }, url) => { need("webhook.write"); return page(deliveries.filter((one) => one.webhook === w).map(shown), url); }],
    ["POST", "/webhooks/:w/deliveries/:d/redeliver", ({ w, d }) => {
      need("webhook.write");
      find(w);
      const one = deliveries.find((item) => item.id === d) ?? (() => { throw missing(); })();
      Object.assign(one, { state: "delivered", next_at: null, attempts: one.attempts + 1, tries: [...one.tries, { at: iso(Date.now()), status: 204, duration_ms: 21, error: "" }] });
      return shown(one);
    }],
  ];
  return { reset, routes };
}
