/* The stand-in's answers to who may do what: audit, tokens, members, sessions. Made-up, kept in memory. */
import { createHash } from "node:crypto";
import { idOf, iso } from "./mock-data.mjs";
import { issuers } from "./mock-issuers.mjs";
import { webhooks } from "./mock-webhooks.mjs";

const MINUTE = 60_000;
const DAY = 86_400_000;
const PEOPLE = ["Maya Okafor", "Johan Lindqvist", "Sora Tanaka", "Rui Costa"];

/** Row i of the log: mostly decisions, some refused. */
function bodyOf(i, at) {
  const person = PEOPLE[i % PEOPLE.length];
  const base = { kind: "session", credential: idOf("session", 40 + (i % 4)), address: `10.4.2.${9 + (i % 40)}`, request_id: idOf("request", 9000 + i), actor: person };
  const node = `gpu-${String(1 + (i % 32)).padStart(2, "0")}-${String(1 + ((i * 7) % 32)).padStart(2, "0")}`;
  const plain = { target: idOf("node", i), target_name: node, outcome: "done", before: null, after: null };
  switch (i % 6) {
    case 0:
      return { ...base, ...plain, action: "repair.approve", target: idOf("repair", 100 + i), target_name: `${node} repair ${100 + i}`, before: { state: "proposed", version: 1, action: "reboot" }, after: { state: "approved", version: 2, action: "reboot", comment: "GSP time-outs twice today, job ends at 15:50" } };
    case 1:
      return { ...base, ...plain, action: "node.update", before: { schedulable: true, rack: "r08", version: 4 }, after: { schedulable: false, rack: "r08", version: 5 } };
    case 2:
      return { ...base, ...plain, action: "repair.approve", outcome: "denied", reason: "forbidden" };
    case 3:
      return { ...base, ...plain, kind: "service", actor: "ci-terraform", action: "cluster.update", target: idOf("cluster", 1), target_name: "fra-h100-a", before: { region: null, gpus_per_node: 8 }, after: { region: "Frankfurt", gpus_per_node: 8 } };
    case 4:
      return { ...base, ...plain, action: "token.create", target: idOf("token", i), target_name: "ci-deploy", after: { name: "ci-deploy", role: "viewer", secret: "(masked)", made_at: iso(at) } };
    default:
      return { ...base, ...plain, kind: null, credential: null, address: null, actor: "muster", action: "node.join" };
  }
}

function makeChain(orgId, now, rows) {
  const lines = [];
  let previous = createHash("sha256").update("muster").digest();
  for (let seq = 1; seq <= rows; seq++) {
    const at = now - (rows - seq) * 7 * MINUTE;
    const body = JSON.stringify(bodyOf(seq, at));
    const micros = `${String(at % 1000).padStart(3, "0")}250`;
    const hash = createHash("sha256").update(previous).update(`${orgId} ${seq} ${Math.floor(at / 1000)}.${micros} ${body}`).digest();
    /* as PostgreSQL writes an instant: without the zeros at the end */
    const text = `${iso(at).slice(0, 19)}.${micros.replace(/0+$/, "")}+00:00`;
    lines.push({ seq, at: text, body, prev_hash: previous.toString("hex"), hash: hash.toString("hex") });
    previous = hash;
  }
  return lines;
}

/** tools: need(permission), page(items, url), missing(), Refusal, org(), clusters(), findNode(id), emit(event), role(). */
export function identity(tools) {
  const { need, page, missing, Refusal } = tools;
  const providers = issuers(tools);
  const hooks = webhooks(tools);
  let chain;
  let members;
  let tokens;
  let made;
  let joins;
  let waiting;
  let sessions;
  let back;
  let orgs;

  function reset() {
    const now = Date.now();
    made = 0;
    providers.reset();
    hooks.reset();
    joins = [];
    const session = (n, more) => ({ id: idOf("session", n), org: { id: tools.org(), name: "main" }, created_at: iso(now - n * 3_600_000), seen_at: iso(now - n * 240_000), expires_at: iso(now + 8 * 3_600_000), address: `10.4.2.${n}`, user_agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", issuer: { id: idOf("issuer", 1), title: "Okta" }, current: n === 1, ...more });
    sessions = [session(1, {}), session(2, { user_agent: "muster/0.1", address: "10.4.7.21" }), session(3, { user_agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1", issuer: null })];
    back = [{ id: idOf("session", 90), cluster_id: idOf("cluster", 2), node_id: idOf("node", 200_002), node_name: "gpu-b-01-03", state: "pending", serial: "CZ2204", serial_same: true, gpus_same: 8, gpus_known: 8, alive: false, address: "10.4.8.3", public_key: "MCowBQYDK2VwAyEAq3q", decided_by: null, decided_at: null, created_at: iso(now - 60_000) }];
    waiting = { user_code: "bcdf-ghjk", client: "muster on login-1", address: "10.4.7.21", state: "pending", created_at: iso(now - 20_000), expires_at: iso(now + 580_000) };
    orgs = [[1, "main", "Halden Research", 1310], [3, "tenant-b", "", 64]].map(([n, name, title, nodes]) => ({ id: `0198f3c2-0001-7000-8000-00000000000${n}`, name, title, demo: false, created_at: iso(now - 200 * DAY), updated_at: iso(now - 200 * DAY), version: 1, suspended_at: null, suspended_by: null, suspend_reason: null, members: 7, clusters: 5, nodes }));
    chain = new Map();
    members = [
      ["Maya Okafor", 1, "admin", null, null],
      ["Johan Lindqvist", 2, "operator", null, null],
      ["Johan Lindqvist", 2, "approver", null, idOf("cluster", 1)],
      ["Sora Tanaka", 3, "approver", idOf("project", 1), null],
      ["Rui Costa", 4, "auditor", null, null],
    ].map(([name, person, role, project_id, cluster_id], i) => ({ id: idOf("member", i + 1), kind: "person", issuer_id: null, group: null, person_id: idOf("person", person), name, role, project_id, cluster_id, created_by: i ? "Maya Okafor" : "", created_at: iso(now - (90 - i) * DAY) }));
    members.push({ id: idOf("member", 20), kind: "group", person_id: null, name: "okta:gpu-operators", issuer_id: idOf("issuer", 1), group: "okta:gpu-operators", role: "operator", project_id: null, cluster_id: null, created_by: "Maya Okafor", created_at: iso(now - 30 * DAY) });
    const token = (n, name, role, more) => ({ id: idOf("service", n), name, role, cluster_id: null, platform_admin: false, created_by: "Maya Okafor", created_at: iso(now - 40 * DAY), expires_at: null, rotated_at: null, previous_until: null, last_used_at: null, revoked_at: null, ...more });
    tokens = [
      token(1, "ci-terraform", "admin", { expires_at: iso(now + 5 * DAY), last_used_at: iso(now - 4 * MINUTE) }),
      token(2, "grafana", "viewer", { last_used_at: iso(now - 20_000), previous_until: iso(now + 3 * 3_600_000 + 60_000), rotated_at: iso(now - DAY) }),
      token(3, "night-report", "auditor", { cluster_id: idOf("cluster", 1), expires_at: iso(now + 300 * DAY) }),
    ];
  }
  reset();

  const linesOf = () => {
    const org = tools.org();
    if (!chain.has(org)) {
      chain.set(org, makeChain(org, Date.now(), 130));
    }
    return chain.get(org);
  };
  const rowOf = (line) => {
    const body = JSON.parse(line.body);
    const row = { seq: line.seq, at: line.at };
    for (const key of ["actor", "kind", "credential", "address", "request_id", "action", "target", "target_name", "outcome", "reason", "before", "after"]) {
      row[key] = body[key] ?? null;
    }
    return row;
  };
  const find = (list, id) => list.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const invalid = (pointer, detail) => new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer, code: "invalid", detail }] });
  const secret = () => `mst_${String((made += 1)).padStart(2, "0")}R4kX9vT2bQ6mW0zL7cN3yHs8JdGpF1n5Kq`;

  const routes = [
    ...providers.routes,
    ...hooks.routes,
    ["GET", "/audit", (_, url) => {
      need("audit.read");
      const get = (key) => url.searchParams.get(key);
      const actions = url.searchParams.getAll("action");
      const found = linesOf().map(rowOf).reverse().filter((row) => (!get("actor") || row.actor === get("actor")) && (actions.length === 0 || actions.includes(row.action)) && (!get("target") || row.target === get("target")) && (!get("since") || Date.parse(row.at) >= Date.parse(get("since"))));
      return { ...page(found, url), as_of_seq: linesOf().length };
    }],
    ["GET", "/audit/export", (_, url) => {
      need("audit.read");
      const after = Number(url.searchParams.get("after") ?? 0);
      const limit = Number(url.searchParams.get("limit") ?? 200);
      return linesOf().filter((line) => line.seq > after).slice(0, Math.min(limit, 50)).map((line) => `${JSON.stringify(line)}\n`).join("");
    }],
    ["GET", "/roles", () => ({ items: ["viewer", "operator", "approver", "script_author", "admin", "auditor"].map((name) => ({ name, summary: "As the table says.", permissions: [{ name: "session", summary: "Sign in." }, { name: "cluster.read", summary: "See clusters, nodes, incidents, repairs and events." }, ...(name === "approver" ? [{ name: "repair.decide", summary: "Approve, reject, cancel and settle repairs, and stop all of them." }] : [])] })) })],
    ["GET", "/people", (_, url) => {
      need("member.write");
      const person = (id, name, more) => ({ id, name, disabled: false, issuer_id: null, issuer: null, subject: null, email: null, seen_at: null, roles: 1, ...more });
      const known = [...new Map(members.filter((one) => one.person_id).map((one) => [one.person_id, person(one.person_id, one.name)])).values()];
      return page([...known, person(idOf("person", 40), "okta:00u9", { issuer_id: idOf("issuer", 1), email: "n.ito@halden.example", roles: 0 })], url);
    }],
    ["GET", "/platform/orgs", (_, url) => page(orgs, url)],
    ["POST", "/platform/orgs/:o/:verb", ({ o, verb }, __, body) => {
      const one = find(orgs, o);
      const on = verb === "suspend";
      return Object.assign(one, { suspended_at: on ? iso(Date.now()) : null, suspended_by: on ? "Maya Okafor" : null, suspend_reason: on ? body.reason : null, version: one.version + 1 });
    }],
    ["GET", "/members", (_, url) => { need("member.write"); return page(members, url); }],
    ["POST", "/members", (_, __, body) => {
      need("member.write");
      if (members.some((one) => one.name === body.name && one.role === body.role && !one.cluster_id && !body.cluster_id)) {
        throw new Refusal(409, "conflict", "The person has this role already", "");
      }
      const known = members.find((one) => one.kind === "person" && (one.name === body.name || one.person_id === body.person_id));
      const member = body.group
        ? { id: idOf("member", 50 + members.length), kind: "group", person_id: null, name: body.group, issuer_id: body.issuer_id, group: body.group, role: body.role, project_id: body.project_id ?? null, cluster_id: body.cluster_id ?? null, created_by: "Maya Okafor", created_at: iso(Date.now()) }
        : { id: idOf("member", 50 + members.length), kind: "person", issuer_id: null, group: null, person_id: known?.person_id ?? body.person_id ?? idOf("person", 50 + members.length), name: body.name ?? known?.name ?? "okta:00u9", role: body.role, project_id: body.project_id ?? null, cluster_id: body.cluster_id ?? null, created_by: "Maya Okafor", created_at: iso(Date.now()) };
      members.push(member);
      return member;
    }, 201],
    ["DELETE", "/members/:m", ({ m }) => {
      need("member.write");
      const member = find(members, m);
      if (member.role === "admin" && members.filter((one) => one.role === "admin").length === 1) {
        throw new Refusal(409, "conflict", "This role stays", "This is the last administrator of the organization. Add another one first.");
      }
      members.splice(members.indexOf(member), 1);
    }, 204],
    ["GET", "/tokens", (_, url) => { need("token.write"); return page(tokens, url); }],
    ["POST", "/tokens", (_, __, body) => {
      need("token.write");
      if (tokens.some((one) => one.name === body.name)) {
        throw invalid("#/name", "A token of this name exists.");
      }
      const token = { ...tokens[0], id: idOf("service", 50 + made), name: body.name, role: body.role, cluster_id: body.cluster_id ?? null, created_at: iso(Date.now()), expires_at: body.expires_in_seconds ? iso(Date.now() + body.expires_in_seconds * 1000) : null, previous_until: null, rotated_at: null, last_used_at: null };
      tokens.unshift(token);
      return { ...token, token: secret(), secret_shown_once: false };
    }, 201],
    ["POST", "/tokens/:t/rotate", ({ t }, _, body) => {
      need("token.write");
      const token = find(tokens, t);
      Object.assign(token, { rotated_at: iso(Date.now()), previous_until: body.overlap_seconds ? iso(Date.now() + body.overlap_seconds * 1000) : null });
      return { ...token, token: secret(), secret_shown_once: false };
    }],
    ["DELETE", "/tokens/:t", ({ t }) => { need("token.write"); tokens.splice(tokens.indexOf(find(tokens, t)), 1); }, 204],
    ["GET", "/clusters/:c/join-tokens", ({ c }, url) => { need("token.write"); return page(joins.filter((one) => one.cluster_id === c).map(({ token: _, ...rest }) => rest), url); }],
    ["POST", "/clusters/:c/join-tokens", ({ c }, _, body) => {
      need("token.write");
      const n = joins.length;
      const one = { id: idOf("token", n + 1), token: `mjt_${String(n).padStart(2, "0")}7Q2fX8rT1bV6mZ0kL5cN9wHs3JdGpY4n4Kp`, uses_left: body.uses ?? 1, expires_at: iso(Date.now() + (body.expires_in_seconds ?? 3600) * 1000), host_name: body.host_name ?? null, cidr: body.cidr ?? null, created_by: "Maya Okafor", created_at: iso(Date.now()), revoked_at: null, cluster_id: c };
      joins.unshift(one);
      return one;
    }, 201],
    ["DELETE", "/join-tokens/:t", ({ t }) => { need("token.write"); find(joins, t).revoked_at = iso(Date.now()); }, 204],
    ["GET", "/sessions", () => ({ items: sessions })],
    ["DELETE", "/sessions/:s", ({ s }) => { sessions.splice(sessions.indexOf(find(sessions, s)), 1); }, 204],
    ["GET", "/clusters/:c/rejoins", ({ c }, url) => { need("token.write"); return page(back.filter((one) => one.cluster_id === c), url); }],
    ["POST", "/rejoins/:r/:verb", ({ r, verb }) => { need("token.write"); return Object.assign(find(back, r), { state: verb === "approve" ? "approved" : "denied", decided_by: "Maya Okafor", decided_at: iso(Date.now()) }); }],
    ["GET", "/device-codes/:d", ({ d }) => { if (d !== waiting.user_code) { throw missing(); } return waiting; }],
    ["POST", "/device-codes/:d", ({ d }, _, body) => {
      if (d !== waiting.user_code || waiting.state !== "pending") {
        throw missing();
      }
      waiting.state = body.decision === "approve" ? "approved" : "denied";
      return waiting;
    }],
    ["POST", "/nodes/:n/revoke-key", ({ n }) => {
      need("token.write");
      const [, node] = tools.findNode(n);
      Object.assign(node, { state: "unknown", reason: "Its key was revoked.", state_since: iso(Date.now()) });
      return { node_id: node.id, name: node.name, generation: 1, revoked_at: iso(Date.now()) };
    }],
  ];

  /** Changes a row as a superuser of the database could. */
  function tamper(seq) {
    const line = linesOf().find((one) => one.seq === seq);
    line.body = line.body.replace("Maya Okafor", "Nobody").replace("muster", "Nobody").replace("Johan Lindqvist", "Nobody").replace("Sora Tanaka", "Nobody").replace("Rui Costa", "Nobody");
  }

  return {
    routes,
    reset,
    /** what is answered without a session, by its path */
    open: { "/sign-in-options": providers.options },
    steer(wish) {
      providers.steer(wish);
      if (wish.tamper) {
        tamper(wish.tamper);
      }
    },
  };
}
