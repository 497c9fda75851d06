/*
 * A stand-in for musterd, for development and browser tests only: made-up data, kept in memory.
 *   node dev/mock-server.mjs [--port 5199] [--dist dist] [--quiet]
 * Tests steer it with POST /mock {"fail":{"<path part>":status},"stream":"up"|"down"|"silent","emit":{...},
 * "roles":"viewer"|"admin","sample":true,"reset":true}.
 */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";
import { detection } from "./mock-detection.mjs";
import { guards } from "./mock-guard.mjs";
import { identity } from "./mock-identity.mjs";
import { checksOf, historyOf, idOf, iso, makeIncident, makePlan, makeWorld, nodeDetail, ORGS, rollupOf, STATES, stripOf } from "./mock-data.mjs";

const DAY = 86_400_000;
const BEAT_MS = 15_000; /* as the server's */
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const PERMISSIONS = {
  admin: ["session", "cluster.read", "cluster.write", "node.write", "incident.write", "repair.request", "repair.decide", "token.write", "org.write", "audit.read", "member.write", "issuer.read", "issuer.write", "script.write", "webhook.write"],
  viewer: ["session", "cluster.read"],
};

class Refusal extends Error {
  constructor(status, code, title, detail, more = {}) {
    super(title);
    this.problem = { type: `/problems/${code.replace(/_/g, "-")}`, title, status, detail, code, request_id: `0198f3c2-00ff-7000-8000-${String(Date.now()).slice(-12)}`, ...more };
  }
}

const missing = () => new Refusal(404, "not_found", "There is no such thing", "It does not exist, or it belongs to another organization.");

function nodeSummary({ fault, silent, k, key, ...summary }) {
  return summary;
}

export function createMock({ dist = null, sampleMs = 2_000, now = Date.now() } = {}) {
  let world = makeWorld(now);
  let org = ORGS[0].id;
  let role = "admin";
  let suspended = null;
  let signedIn = true;
  let fail = {};
  let slow = 0;
  let signOutUrl = null;
  let stream = "up";
  const log = [];
  const streams = new Set();
  const told = []; /* what streams were told, for those that come back with their place */

  const clusters = () => world.orgs.get(org) ?? [];
  const cluster = (id) => clusters().find((one) => one.id === id) ?? (() => { throw missing(); })();
  const allRepairs = () => clusters().flatMap((one) => one.repairs);
  const findNode = (id) => {
    for (const one of clusters()) {
      const node = one.nodes.find((candidate) => candidate.id === id);
      if (node) {
        return [one, node];
      }
    }
    throw missing();
  };
  const orgBody = (id) => ORGS.find((one) => one.id === id);
  const seq = () => world.seqs.next - 1;

  const block = (type, data, id) => `${id ? `id: ${id}\n` : ""}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;

  function send(type, data, id) {
    for (const response of streams) {
      response.write(block(type, data, id));
    }
  }

  function emit(event) {
    const full = { seq: world.seqs.next++, at: iso(Date.now()), type: "note.added", severity: "info", cluster_id: null, node_id: null, node_name: null, incident_id: null, repair_id: null, actor: "muster", summary: "", data: {}, ...event };
    clusters().find((one) => one.id === full.cluster_id)?.events.unshift(full);
    const { node_name: _, actor: __, data: ___, ...thin } = full;
    told.push(thin);
    send(full.type, thin, full.seq);
    return full;
  }

  function page(items, url, limit = 50) {
    const size = Math.min(200, Number(url.searchParams.get("limit") ?? limit));
    const from = Number(Buffer.from(url.searchParams.get("cursor") ?? "", "base64url").toString() || 0);
    const end = from + size;
    return { items: items.slice(from, end), next_cursor: end < items.length ? Buffer.from(String(end)).toString("base64url") : null, as_of_seq: seq() };
  }

  function overview(one) {
    const rank = ["unhealthy", "unknown", "repairing", "paused", "starting", "pending"];
    const worst = one.nodes
      .filter((node) => node.state !== "healthy")
      .sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || a.state_since.localeCompare(b.state_since))
      .slice(0, 5)
      .map((node) => ({ node_id: node.id, name: node.name, state: node.state, reason: node.reason, state_since: node.state_since, warning: node.warning, incident_id: node.incident_id, repair_id: node.repair_id, action: node.fault?.[5] ?? null }));
    const waiting = one.repairs.filter((repair) => repair.state === "proposed").sort((a, b) => a.created_at.localeCompare(b.created_at));
    return {
      cluster: one.config,
      rollup: rollupOf(one),
      worst,
      waiting: waiting.slice(0, 5),
      waiting_count: waiting.length,
      changes: one.events.slice(0, 20),
      last_change: one.events[0] ?? null,
      drift: one.shape.faults ? [{ field: "driver_version", wanted: "570.124.06", seen: [{ value: "570.124.06", nodes: one.nodes.length - 3 }, { value: "570.86.15", nodes: 3 }] }] : [],
      as_of_seq: seq(),
    };
  }

  function nodesOf(one, url) {
    const states = url.searchParams.getAll("state");
    const q = url.searchParams.get("q") ?? "";
    const rack = url.searchParams.get("rack");
    const warning = url.searchParams.get("warning");
    const sort = url.searchParams.get("sort") ?? "name";
    if (states.some((state) => !STATES.includes(state))) {
      throw new Refusal(422, "invalid_fields", "Some fields are not valid", "state is not one of the states.");
    }
    const found = one.nodes.filter(
      (node) => (states.length === 0 || states.includes(node.state)) && node.name.startsWith(q) && (!rack || node.rack === rack) && (!warning || String(node.warning) === warning),
    );
    const rank = ["unhealthy", "unknown", "repairing", "starting", "pending", "paused", "healthy"];
    if (sort === "-name") {
      found.reverse();
    } else if (sort === "state") {
      found.sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || a.name.localeCompare(b.name));
    }
    return page(found.map(nodeSummary), url);
  }

  function grid(one, withIds) {
    const column = (key) => {
      const values = [...new Set(one.nodes.map((node) => node[key]))].sort();
      return { values, index: one.nodes.map((node) => values.indexOf(node[key])) };
    };
    const letters = { pending: "p", starting: "s", healthy: "h", unhealthy: "u", repairing: "r", paused: "a", unknown: "k" };
    return {
      as_of_seq: seq(),
      version: one.version,
      at: iso(Date.now()),
      n: one.nodes.length,
      names: one.nodes.map((node) => node.name),
      ids: withIds ? one.nodes.map((node) => node.id.replace(/-/g, "")) : null,
      state: one.nodes.map((node) => (node.warning ? letters[node.state].toUpperCase() : letters[node.state])).join(""),
      rack: column("rack"),
      leaf: column("leaf"),
      util: one.nodes.map((node) => (node.gpu_util_ratio === null ? null : Math.round(node.gpu_util_ratio * 100))),
      mem: one.nodes.map((node) => (node.gpu_mem_used_mib === null ? null : Math.round((node.gpu_mem_used_mib / node.gpu_mem_total_mib) * 100))),
      temp: one.nodes.map((node) => node.gpu_temp_max_c),
      age: one.nodes.map((node) => (node.seen_at ? Math.round((Date.now() - Date.parse(node.seen_at)) / 1000) : null)),
    };
  }

  function eventsOf(list, url) {
    const get = (key) => url.searchParams.get(key);
    const types = url.searchParams.getAll("type");
    const severities = url.searchParams.getAll("severity");
    const found = list.filter(
      (event) =>
        (!get("cluster_id") || event.cluster_id === get("cluster_id")) &&
        (!get("node_id") || event.node_id === get("node_id")) &&
        (types.length === 0 || types.includes(event.type)) &&
        (severities.length === 0 || severities.includes(event.severity)) &&
        (!get("since") || Date.parse(event.at) >= Date.parse(get("since"))) &&
        (!get("until") || Date.parse(event.at) < Date.parse(get("until"))),
    );
    return page(found, url);
  }

  function repairsOf(list, url) {
    const states = url.searchParams.getAll("state");
    const open = url.searchParams.get("open");
    const isOpen = (repair) => repair.ended_at === null;
    return page(list.filter((repair) => (states.length === 0 || states.includes(repair.state)) && (open === null || String(isOpen(repair)) === open) && (!url.searchParams.get("node_id") || repair.node_id === url.searchParams.get("node_id"))), url);
  }

  function incidentsOf(url) {
    const get = (key) => url.searchParams.get(key);
    const checks = url.searchParams.getAll("check_id");
    const found = clusters()
      .flatMap((one) => one.incidents)
      .filter(
        (one) =>
          (!get("cluster_id") || one.cluster_id === get("cluster_id")) &&
          (!get("node_id") || one.node_id === get("node_id")) &&
          (!get("state") || one.state === get("state")) &&
          (checks.length === 0 || checks.includes(one.check_id)) &&
          (!get("since") || one.closed_at === null || Date.parse(one.closed_at) >= Date.parse(get("since"))) &&
          (!get("until") || Date.parse(one.first_at) < Date.parse(get("until"))),
      );
    return page(found, url);
  }

  const findIncident = (id) => clusters().flatMap((one) => one.incidents).find((one) => one.id === id) ?? (() => { throw missing(); })();

  const range = (url, length = DAY) => {
    const until = Date.parse(url.searchParams.get("until") ?? "") || Date.now();
    return [Date.parse(url.searchParams.get("since") ?? "") || until - length, until];
  };

  function need(permission) {
    if (!PERMISSIONS[role].includes(permission)) {
      throw new Refusal(403, "forbidden", "Your roles do not allow this", `It needs the permission ${permission}.`);
    }
  }

  function changeNode(one, node, change, type, summary, body) {
    Object.assign(node, change);
    one.version += 1;
    emit({ type, cluster_id: one.id, node_id: node.id, node_name: node.name, actor: "Maya Okafor", summary: `${node.name} ${summary}${body?.comment ? `: ${body.comment}` : ""}` });
    return nodeSummary(node);
  }

  function moveRepair(repair, state, body) {
    Object.assign(repair, { state, state_since: iso(Date.now()), version: repair.version + 1, can_approve: false, blocked: "It has been decided." });
    if (!repair.decided_by) {
      Object.assign(repair, { decided_by: "Maya Okafor", decided_at: iso(Date.now()), comment: body?.comment ?? "" });
    }
    if (["rejected", "cancelled", "succeeded", "failed"].includes(state)) {
      const at = iso(Date.now());
      const words = state === "rejected" || state === "cancelled" ? `${state[0].toUpperCase()}${state.slice(1)} by Maya Okafor${body?.comment ? `: ${body.comment}` : "."}` : `Settled by Maya Okafor${body?.comment ? `: ${body.comment}` : "."}`;
      repair.ended_at = at;
      repair.reason = words;
      repair.steps = [...repair.steps.map((step) => ({ ...step, ended_at: step.ended_at ?? at })), { n: repair.steps.length + 1, state, detail: words, actor: "Maya Okafor", started_at: at, ended_at: at }];
      const node = findNode(repair.node_id)[1];
      node.repair_id = null;
    }
    const type = state === "cordoning" ? "repair.approved" : `repair.${state}`;
    emit({ type, cluster_id: repair.cluster_id, node_id: repair.node_id, node_name: repair.node_name, repair_id: repair.id, actor: "Maya Okafor", summary: `${repair.node_name} ${repair.action} ${state === "cordoning" ? "approved" : state}` });
    return repair;
  }

  function decide(repair, verb, body, headers) {
    need("repair.decide");
    if (verb === "approve") {
      if (!headers["idempotency-key"]) {
        throw new Refusal(400, "idempotency_key_required", "An Idempotency-Key is required", "Send one with every approval.");
      }
      if (repair.state !== "proposed") {
        throw new Refusal(409, "conflict", "The repair is no longer proposed", `It is ${repair.state}.`, { state: repair.state });
      }
      if (body.plan_hash !== repair.plan_hash) {
        throw new Refusal(409, "plan_changed", "The plan has changed", "Read the new plan and decide again.", { state: repair.state });
      }
      const at = iso(Date.now());
      repair.steps = repair.steps.map((step) => ({ ...step, ended_at: step.ended_at ?? at }));
      repair.steps.push({ n: repair.steps.length + 1, state: "approved", detail: "Approved by Maya Okafor.", actor: "Maya Okafor", started_at: at, ended_at: at });
      repair.steps.push({ n: repair.steps.length + 1, state: "cordoning", detail: "The node is taken out of scheduling.", actor: "muster", started_at: at, ended_at: null });
      repair.deadline_at = iso(Date.now() + 30 * 60_000);
      return moveRepair(repair, "cordoning", body);
    }
    if (verb === "reject") {
      return moveRepair(repair, "rejected", body);
    }
    if (verb === "cancel") {
      return moveRepair(repair, "cancelled", body);
    }
    return moveRepair(repair, body.outcome, body);
  }

  const judged = detection({ need, page, missing, Refusal, findNode, clusters, world: () => world });
  const who = identity({ need, page, missing, Refusal, findNode, org: () => org });

  const guarded = guards({ need, page, missing, Refusal, findNode, clusters, emit, org: () => org, platform: () => role === "admin" });

  /* [method, pattern, handler(params, url, body, headers)]: ids are named in order */
  const routes = [
    ...judged.routes,
    ["GET", "/audit", (params, url, ...rest) => {
      /* changes of checks are told by those who keep them */
      const mine = url.searchParams.getAll("action").some((action) => action.startsWith("check_override."));
      return mine ? (need("audit.read"), page(judged.changes(), url)) : who.routes.find(([method, path]) => method === "GET" && path === "/audit")[2](params, url, ...rest);
    }],
    ...who.routes,
    ...guarded.routes,
    ["GET", "/me", () => ({ kind: "session", id: idOf("person", 1), name: "Maya Okafor", org: orgBody(org), orgs: ORGS.map((one) => ({ ...one, roles: [role] })), roles: role === "admin" ? ["admin"] : ["viewer"], grants: [], permissions: PERMISSIONS[role], expires_at: iso(Date.now() + 8 * 3_600_000), suspended: suspended && { at: iso(world.start - DAY), reason: suspended }, platform_admin: role === "admin" })],
    ["GET", "/projects", (_, url) => page([{ id: idOf("project", 1), name: "default", title: "Default", clusters: clusters().length, created_at: iso(world.start - 90 * DAY), updated_at: iso(world.start), version: 1 }], url)],
    ["GET", "/clusters", (_, url) => page(clusters().map((one) => ({ ...one.config, rollup: rollupOf(one) })), url)],
    ["POST", "/clusters", (_, __, body) => {
      need("cluster.write");
      if (!/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(body.name ?? "")) {
        throw new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer: "#/name", code: "bad_format", detail: "must start with a letter and have lower case letters, digits and dashes only" }] });
      }
      const made = makeWorld(Date.now()).orgs.get(ORGS[0].id)[4];
      made.id = idOf("cluster", 100 + clusters().length);
      made.config = { ...made.config, ...body, id: made.id };
      made.name = body.name;
      clusters().push(made);
      return made.config;
    }, 201],
    ["GET", "/clusters/:c", ({ c }) => cluster(c).config],
    ["GET", "/clusters/:c/overview", ({ c }) => overview(cluster(c))],
    ["GET", "/clusters/:c/history", ({ c }, url) => historyOf(cluster(c), ...range(url), Number(url.searchParams.get("step_seconds") ?? 300))],
    ["GET", "/clusters/:c/events-strip", ({ c }, url) => stripOf(cluster(c), ...range(url), Number(url.searchParams.get("buckets") ?? 96))],
    ["GET", "/clusters/:c/nodes", ({ c }, url) => nodesOf(cluster(c), url)],
    ["GET", "/clusters/:c/grid", ({ c }, url) => grid(cluster(c), url.searchParams.get("ids") === "true")],
    ["GET", "/clusters/:c/checks", ({ c }, url) => checksOf(cluster(c), ...range(url), Number(url.searchParams.get("buckets") ?? 48))],
    ["GET", "/clusters/:c/as-of", ({ c }, url) => {
      const at = Date.parse(url.searchParams.get("at"));
      return { at: iso(at), nodes: cluster(c).nodes.map((node) => ({ id: node.id, name: node.name, state: Date.parse(node.state_since) <= at ? node.state : "healthy" })) };
    }],
    ["GET", "/clusters/:c/events", ({ c }, url) => eventsOf(cluster(c).events, url)],
    ["POST", "/clusters/:c/events", ({ c }, _, body) => emit({ type: "note.added", cluster_id: cluster(c).id, actor: "Maya Okafor", summary: body.summary }), 201],
    ["GET", "/clusters/:c/repairs", ({ c }, url) => repairsOf(cluster(c).repairs, url)],
    ["GET", "/events", (_, url) => eventsOf(clusters().flatMap((one) => one.events).sort((a, b) => b.seq - a.seq), url)],
    ["GET", "/repairs", (_, url) => repairsOf(allRepairs(), url)],
    ["GET", "/repairs/:r", ({ r }) => allRepairs().find((one) => one.id === r) ?? (() => { throw missing(); })()],
    ["POST", "/repairs/:r/:verb", ({ r, verb }, _, body, headers) => decide(allRepairs().find((one) => one.id === r) ?? (() => { throw missing(); })(), verb, body, headers)],
    ["GET", "/incidents", (_, url) => incidentsOf(url)],
    ["GET", "/incidents/:i", ({ i }) => findIncident(i)],
    ["POST", "/nodes/:n/incidents", ({ n }, _, body) => {
      need("incident.write");
      if (!body.summary) {
        throw new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer: "#/summary", code: "required", detail: "is required" }] });
      }
      const [one, node] = findNode(n);
      const lines = [{ at: iso(Date.now()), source: "person", text: `Maya Okafor: ${body.summary}`, opened: true }];
      const incident = { ...makeIncident(one, node, 300 + one.incidents.length, Date.now(), { check: "reported", severity: body.severity, summary: body.summary, minutes: 0, lines, device: body.device ?? "", clears: "person" }), node_fault: body.node_fault ?? false, count: 1 };
      one.incidents.unshift(incident);
      if (incident.node_fault) {
        Object.assign(node, { state: "unhealthy", reason: body.summary, state_since: iso(Date.now()), incident_id: incident.id });
      }
      emit({ type: "incident.opened", severity: body.severity, cluster_id: one.id, node_id: node.id, node_name: node.name, incident_id: incident.id, actor: "Maya Okafor", summary: `${node.name}: ${body.summary}` });
      return incident;
    }, 201],
    ["POST", "/incidents/:i/close", ({ i }, _, body) => {
      need("incident.write");
      const incident = findIncident(i);
      Object.assign(incident, { state: "closed", closed_at: iso(Date.now()), close_reason: body.reason, closed_by: "Maya Okafor", version: incident.version + 1 });
      emit({ type: "incident.closed", cluster_id: incident.cluster_id, node_id: incident.node_id, node_name: incident.node_name, incident_id: incident.id, actor: "Maya Okafor", summary: `Incident ${incident.no} closed: ${incident.summary}` });
      return incident;
    }],
    ["GET", "/nodes/:n", ({ n }) => nodeDetail(...findNode(n), world)],
    ["PATCH", "/nodes/:n", ({ n }, _, body, headers) => {
      need("node.write");
      const [one, node] = findNode(n);
      if (headers["if-match"] !== `"${node.version ?? 7}"`) {
        throw new Refusal(412, "version_changed", "Somebody changed it meanwhile", "Read it again, then decide.");
      }
      Object.assign(node, body, { version: (node.version ?? 7) + 1 });
      if ("paused_until" in body) {
        Object.assign(node, { paused_by: "Maya Okafor", state: body.paused_until ? "paused" : "healthy", reason: body.paused_until ? "In maintenance, by Maya Okafor." : "", state_since: iso(Date.now()) });
      }
      emit({ type: "node.updated", cluster_id: one.id, node_id: node.id, node_name: node.name, actor: "Maya Okafor", summary: `${node.name} was changed: ${Object.keys(body).join(", ")}` });
      return nodeDetail(one, node, world);
    }],
    ["POST", "/nodes/:n/cordon", ({ n }, _, body) => { need("node.write"); return changeNode(...findNode(n), { schedulable: false }, "node.cordoned", "cordoned", body); }],
    ["POST", "/nodes/:n/uncordon", ({ n }, _, body) => { need("node.write"); return changeNode(...findNode(n), { schedulable: true }, "node.uncordoned", "uncordoned", body); }],
    ["POST", "/nodes/:n/repairs", ({ n }, url, body) => {
      need("repair.request");
      const [one, node] = findNode(n);
      if (url.searchParams.get("dry_run") === "true") {
        const open = one.incidents.filter((incident) => incident.node_id === node.id && incident.state === "open" && incident.node_fault);
        const shown = makePlan(one, node, open, body.action, Date.now());
        shown.jobs = nodeDetail(one, node, world).scheduler?.jobs ?? [];
        return { dry_run: true, action: body.action, plan: shown, plan_hash: "0".repeat(64), can_approve: shown.how !== null };
      }
      if (node.repair_id) {
        throw new Refusal(409, "conflict", "The node has an open repair already", "Decide that one first.", { state: "proposed" });
      }
      if (!body.reason) {
        throw new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer: "#/reason", code: "required", detail: "is required" }] });
      }
      const no = 900 + one.repairs.length;
      const plan = makePlan(one, node, one.incidents.filter((incident) => incident.node_id === node.id && incident.state === "open" && incident.node_fault), body.action, Date.now());
      const blocked = ["reset_gpu", "reboot", "failover"].includes(body.action) ? null : `Nothing here can carry out ${body.action.replace("_", " ")}. Do it by hand, then close the incident.`;
      const at = iso(Date.now());
      const repair = {
        id: idOf("repair", no), no, cluster_id: one.id, node_id: node.id, node_name: node.name, incident_id: plan.evidence[0]?.incident_id ?? null, action: body.action, state: "proposed", state_since: at, deadline_at: null,
        reason: body.reason, requested_by: "Maya Okafor", decided_by: null, decided_at: null, comment: "", plan, plan_hash: `${no.toString(16).padStart(4, "0")}9e107d9d372bb6826bd81d3542a419d6c1d2e3f4a5b6c7d8e9f0a1b2c3d4`, attempt: 1, created_at: at, ended_at: null, version: 1,
        steps: [{ n: 1, state: "proposed", detail: body.reason, actor: "Maya Okafor", started_at: at, ended_at: null }], can_approve: blocked === null, blocked,
      };
      one.repairs.unshift(repair);
      node.repair_id = repair.id;
      emit({ type: "repair.proposed", cluster_id: one.id, node_id: node.id, node_name: node.name, repair_id: repair.id, actor: "Maya Okafor", summary: `${node.name} ${body.action} proposed` });
      return repair;
    }, 201],
    ["GET", "/nodes/:n/history", ({ n }, url) => {
      const [one, node] = findNode(n);
      const h = historyOf(one, ...range(url), Number(url.searchParams.get("step_seconds") ?? 300));
      const dead = (i) => node.fault && h.at[i] * 1000 > Date.parse(node.state_since);
      return { at: h.at, gpu_util_ratio: h.gpu_busy_ratio.map((v, i) => (dead(i) && v !== null ? 0 : v)), gpu_mem_ratio: h.gpu_mem_ratio, cpu_ratio: h.cpu_ratio, net_mbps: h.net_mbps };
    }],
    ["GET", "/nodes/:n/transitions", ({ n }, url) => {
      const [one, node] = findNode(n);
      const [since, until] = range(url);
      const changes = one.incidents
        .filter((incident) => incident.node_id === node.id && incident.node_fault && incident.closed_at)
        .flatMap((incident) => [
          { at: incident.first_at, state: "unhealthy", reason: incident.summary },
          { at: incident.closed_at, state: "healthy", reason: "" },
        ])
        .sort((a, b) => a.at.localeCompare(b.at));
      if (node.state !== "healthy") {
        changes.push({ at: node.state_since, state: node.state, reason: node.reason });
      }
      const before = changes.filter((change) => Date.parse(change.at) <= since).pop();
      return { items: [{ at: iso(since), state: before?.state ?? "healthy", reason: before?.reason ?? "" }, ...changes.filter((change) => Date.parse(change.at) > since && Date.parse(change.at) < until)] };
    }],
    ["GET", "/nodes/:n/devices", ({ n }, url) => {
      const [one, node] = findNode(n);
      return page(nodeDetail(one, node, world).gpus.map((gpu) => ({ id: gpu.device_id, node_id: node.id, type: "gpu", serial: gpu.serial, index: gpu.index, pci: gpu.pci, model: gpu.model, firmware: "96.00.74.00.01", memory_mib: gpu.mem_total_mib, note: "", present: gpu.present, first_seen_at: iso(world.start - 90 * DAY), last_seen_at: iso(world.start), version: 1 })), url);
    }],
  ];

  function find(method, path) {
    let known = false;
    for (const [verb, pattern, handler, status] of routes) {
      const names = [];
      const found = new RegExp(`^${pattern.replace(/:([a-z]+)/g, (_, name) => (names.push(name), "([^/]+)"))}$`).exec(path);
      if (found) {
        known = true;
        if (verb === method) {
          return [handler, Object.fromEntries(names.map((name, i) => [name, found[i + 1]])), status ?? 200];
        }
      }
    }
    throw known ? new Refusal(405, "method_not_allowed", "Not this method", "") : missing();
  }

  function openStream(request, response) {
    if (stream === "down") {
      response.writeHead(503, { "Retry-After": "3" }).end();
      return;
    }
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    response.write("retry: 3000\n\n: hello\n\n");
    const after = Number(request.headers["last-event-id"] ?? Infinity);
    for (const event of told.filter(({ seq: number }) => number > after)) {
      response.write(block(event.type, event, event.seq));
    }
    streams.add(response);
    request.on("close", () => streams.delete(response));
  }

  async function bodyOf(request) {
    let text = "";
    for await (const chunk of request) {
      text += chunk;
    }
    return text ? JSON.parse(text) : {};
  }

  function answer(request, response, status, body) {
    const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
    const headers = { "Content-Type": status < 400 ? "application/json" : "application/problem+json", "Cache-Control": "private, no-cache", Date: new Date().toUTCString() };
    const gzip = text.length > 4096 && /gzip/.test(request.headers["accept-encoding"] ?? "");
    response.writeHead(status, { ...headers, ...(gzip ? { "Content-Encoding": "gzip" } : {}) }).end(gzip ? gzipSync(text, { level: 1 }) : text);
  }

  function session(request, response, body) {
    if (request.method === "DELETE") {
      signedIn = false;
      response.writeHead(204).end();
      return;
    }
    if (request.method === "PUT") {
      org = body.org_id;
    } else if (body.token !== "good") {
      throw new Refusal(401, "invalid_token", "This link cannot be used", "It has expired or was used before.");
    } else {
      signedIn = true;
    }
    answer(request, response, 200, { person: { id: idOf("person", 1), name: "Maya Okafor" }, org: orgBody(org), expires_at: iso(Date.now() + 8 * 3_600_000) });
  }

  async function api(request, response, url) {
    const path = url.pathname.replace(/^\/api\/v1/, "");
    log.push(`${request.method} ${path}${url.search}`);
    const failing = Object.entries(fail).find(([part]) => path.includes(part));
    try {
      if (slow) {
        await new Promise((resolve) => setTimeout(resolve, slow));
      }
      if (request.method !== "GET" && !/^application\/(merge-patch\+)?json/.test(request.headers["content-type"] ?? "")) {
        throw new Refusal(415, "media_type", "This media type is not accepted", "Send Content-Type: application/json; a cookie alone changes nothing.");
      }
      const body = request.method === "GET" ? {} : await bodyOf(request);
      if (path === "/auth/sign-out" && !failing) {
        signedIn = false;
        return void answer(request, response, 200, { url: signOutUrl });
      }
      if ((path === "/session" || (path === "/sessions" && request.method === "DELETE")) && !failing) {
        return void session(request, response, body);
      }
      if (request.method === "GET" && who.open[path] && !failing) {
        answer(request, response, 200, who.open[path](url));
        return;
      }
      if (!signedIn) {
        throw new Refusal(401, "unauthenticated", "Sign in first", "");
      }
      if (failing?.[1] === 403) {
        throw new Refusal(403, "forbidden", "Your roles do not allow this", "It needs the permission cluster.read.");
      }
      if (failing) {
        throw new Refusal(failing[1], "database_down", "The database did not answer within 5 s", "", {});
      }
      if (path === "/events/stream") {
        return void openStream(request, response);
      }
      const [handler, params, status] = find(request.method, path);
      answer(request, response, status, handler(params, url, body, request.headers));
    } catch (cause) {
      const problem = cause instanceof Refusal ? cause.problem : { type: "/problems/internal", title: "The mock failed", status: 500, detail: String(cause?.stack ?? cause), code: "internal", request_id: "0" };
      if (problem.status === 500) {
        console.error(cause);
      }
      answer(request, response, problem.status, problem);
    }
  }

  function file(request, response, url) {
    if (!dist) {
      response.writeHead(404).end("no console here: build it, or use vite");
      return;
    }
    let path = join(dist, normalize(url.pathname));
    if (!existsSync(path) || statSync(path).isDirectory()) {
      path = join(dist, "index.html");
    }
    const coded = /br/.test(request.headers["accept-encoding"] ?? "") && existsSync(`${path}.br`);
    response.writeHead(200, {
      "Content-Type": TYPES[extname(path)] ?? "application/octet-stream",
      "Content-Security-Policy": CSP,
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": path.includes("/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      ...(coded ? { "Content-Encoding": "br" } : {}),
    });
    createReadStream(coded ? `${path}.br` : path).pipe(response);
  }

  async function steer(request, response) {
    const wish = await bodyOf(request);
    if (wish.reset) {
      world = makeWorld(Date.now());
      [org, role, signedIn, fail, slow, stream] = [ORGS[0].id, "admin", true, {}, 0, "up"];
      log.length = 0;
      told.length = 0;
      who.reset();
      judged.reset();
      guarded.reset();
    }
    who.steer(wish);
    guarded.steer(wish);
    fail = wish.fail ?? fail;
    role = wish.roles ?? role;
    suspended = wish.suspended === undefined ? (wish.reset ? null : suspended) : wish.suspended;
    slow = wish.slow ?? slow;
    signOutUrl = wish.reset ? null : (wish.signOutUrl ?? signOutUrl);
    signedIn = wish.signedIn ?? signedIn;
    org = wish.org ?? org;
    if (wish.stream) {
      stream = wish.stream;
      if (stream === "down") {
        for (const one of streams) {
          one.destroy();
        }
      }
    }
    if (wish.node) {
      const [one, node] = findNode(wish.node.id);
      Object.assign(node, wish.node);
      one.version += 1;
    }
    if (wish.emit) {
      emit(wish.emit);
    }
    if (wish.repair) {
      Object.assign(allRepairs().find((one) => one.id === wish.repair.id), wish.repair);
    }
    if (wish.sample) {
      for (const one of clusters()) {
        one.version += 1;
        send("sample", { cluster_id: one.id, version: one.version });
      }
    }
    answer(request, response, 200, { log, streams: streams.size, seq: seq() });
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === "/mock") {
      void steer(request, response);
    } else if (url.pathname.startsWith("/api/v1/") || url.pathname === "/auth/sign-out") {
      void api(request, response, url);
    } else {
      file(request, response, url);
    }
  });

  let tick = 0;
  const timer = setInterval(() => {
    if (stream !== "up") {
      return;
    }
    tick += 1;
    for (const one of world.orgs.get(org) ?? []) {
      one.version += 1;
      for (const node of one.nodes) {
        if (!node.silent && node.seen_at) {
          node.seen_at = iso(Date.now() - 1000 - ((node.k * 7) % 9) * 1000);
          if (node.gpu_util_ratio) {
            node.gpu_util_ratio = Math.max(0.02, Math.min(0.99, node.gpu_util_ratio + (((node.k * 31 + tick * 17) % 11) - 5) / 500));
          }
        }
      }
      send("sample", { cluster_id: one.id, version: one.version });
    }
  }, sampleMs);
  const beat = setInterval(() => {
    for (const response of stream === "up" ? streams : []) {
      response.write(": beat\n\n");
    }
  }, BEAT_MS);
  for (const one of [timer, beat]) {
    one.unref();
    server.on("close", () => clearInterval(one));
  }
  return server;
}

const argument = (name, otherwise) => (process.argv.includes(`--${name}`) ? process.argv[process.argv.indexOf(`--${name}`) + 1] : otherwise);

if (process.argv[1]?.endsWith("mock-server.mjs")) {
  const port = Number(argument("port", "5199"));
  createMock({ dist: argument("dist", null) }).listen(port, "127.0.0.1", () => console.log(`mock at http://127.0.0.1:${port}/ (a world of ${idOf("org", 1)})`));
}
