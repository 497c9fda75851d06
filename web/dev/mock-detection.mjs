/* The stand-in's answers about checks, how they are set, and the past of parts. Made-up, kept in memory. */
import { CHECK_ROWS } from "./mock-checks.mjs";
import { idOf, iso, nodeDetail } from "./mock-data.mjs";

const DAY = 86_400_000;
/* looks in a row before a check tells and ends (server/health/traits.c): looks, clear looks, seconds */
const LOOKS = { gpu_count: [3, 2, 30], pcie_aer: [1, 6, 600], pcie_link: [3, 2, 60], nic_count: [3, 2, 30], ib_link: [1, 20, 3600], eth_link: [1, 20, 3600], mount_hung: [3, 2, 30], clock: [15, 2, 60], service: [3, 2, 30], slurm_node_state: [3, 2, 60] };
const PARTS = ["mode", "severity", "action", "threshold", "looks", "clear_looks"];
const JUDGED = ["severity", "action", "threshold", "looks"];
const TYPES = { check_override: "0020" };

function overrideId(n) {
  return `0198f3c2-${TYPES.check_override}-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

function serialIncident(one) {
  return Object.fromEntries(["id", "no", "cluster_id", "node_id", "node_name", "device", "check_id", "code", "severity", "action", "node_fault", "summary", "count", "first_at", "last_at", "closed_at", "close_reason", "state"].map((key) => [key, one[key]]));
}

export function detection({ need, page, missing, Refusal, findNode, clusters, world }) {
  let overrides = [];
  let log = [];
  let made = 0;

  const add = (fields, at, actor) => {
    const override = { id: overrideId((made += 1)), check_id: "", cluster_id: null, gpu_type: "", mode: null, severity: null, action: null, threshold: null, looks: null, clear_looks: null, shadow_until: null, reason: "", created_by: actor, created_at: iso(at), updated_at: iso(at), version: 1, ...fields };
    overrides.push(override);
    note("create", null, override, at, actor);
    return override;
  };
  const note = (verb, before, after, at, actor) => {
    const one = after ?? before;
    log.unshift({ seq: 9000 + log.length, at: iso(at), actor, kind: "session", credential: null, address: "10.4.2.9", request_id: null, action: `check_override.${verb}`, target: one.id, target_name: one.check_id, outcome: "done", reason: null, comment: null, before: before && { ...before }, after: after && { ...after } });
  };

  const reset = () => {
    [overrides, log, made] = [[], [], 0];
    const now = Date.now();
    add({ check_id: "pcie_aer", mode: "shadow", reason: "Its lines are being sorted out with the vendor" }, now - 12 * DAY, "Johan Lindqvist");
    add({ check_id: "gpu_xid", cluster_id: idOf("cluster", 2), threshold: 3, reason: "The test cluster runs beta drivers" }, now - 4 * DAY, "Maya Okafor");
    add({ check_id: "gpu_thermal", gpu_type: "NVIDIA L40S", severity: "warning", action: "none" }, now - 2 * DAY, "Maya Okafor");
  };
  reset();

  const wrong = (field, detail) => new Refusal(422, "invalid_fields", "Some fields are not valid", "1 field was refused.", { errors: [{ pointer: `#/${field}`, code: "invalid", detail }] });
  const rowOf = (id) => CHECK_ROWS.find((row) => row[0] === id);

  function judge(body) {
    const row = rowOf(body.check_id);
    if (!row || row[12].length === 0) {
      throw wrong("check_id", "It names no check that can be set; GET /api/v1/checks lists them.");
    }
    if (body.action != null && !row[12].includes("action")) {
      throw wrong("action", "This check asks for no action, so there is none to replace.");
    }
    if (body.threshold != null && (!Number.isInteger(body.threshold) || body.threshold < 1)) {
      throw wrong("threshold", "must be a whole number of at least 1");
    }
    if (body.threshold != null && !row[12].includes("threshold")) {
      throw wrong("threshold", "This check does not count events; it has no threshold.");
    }
    if ((body.looks != null || body.clear_looks != null) && !LOOKS[body.check_id]) {
      throw wrong("looks", "This check is not judged by looks in a row.");
    }
    if (PARTS.every((key) => body[key] == null)) {
      throw wrong("mode", "Set at least one of mode, severity, action, threshold, looks and clear_looks.");
    }
    if (body.shadow_seconds === 0 && !body.reason) {
      throw wrong("reason", "Without a trial (shadow_seconds 0) say why it should hold at once.");
    }
  }

  /** A changed rule is in shadow for a day, or as long as it is said. */
  const trial = (rule, before, seconds) => {
    if (["shadow", "off"].includes(rule.mode) || seconds === 0 || JUDGED.every((key) => rule[key] == null)) {
      return null;
    }
    const changed = JUDGED.some((key) => (rule[key] ?? null) !== (before?.[key] ?? null));
    return changed || seconds !== undefined ? iso(Date.now() + (seconds ?? 86_400) * 1000) : before.shadow_until;
  };

  function effective(row) {
    const [check_id, , , severity, action] = row;
    const [looks, clear_looks] = LOOKS[check_id] ?? [null, null];
    const set = overrides.find((one) => one.check_id === check_id && !one.cluster_id && !one.gpu_type);
    const tried = set?.shadow_until && Date.parse(set.shadow_until) > Date.now();
    return { mode: tried ? "shadow" : (set?.mode ?? "live"), severity: set?.severity ?? severity, action: set?.action ?? action, threshold: set?.threshold ?? 1, looks: set?.looks ?? looks, clear_looks: set?.clear_looks ?? clear_looks, shadow_until: set?.shadow_until ?? null, source: set ? "organization" : "delivered", override_id: set?.id ?? null };
  }

  function tryOut(body) {
    judge(body);
    const mine = clusters()
      .flatMap((one) => one.incidents)
      .filter((one) => one.check_id === body.check_id && one.node_id && (!body.cluster_id || one.cluster_id === body.cluster_id));
    const count = (live, fault, acts) => ({
      opened: mine.filter(live).length,
      closed: mine.filter((one) => live(one) && one.closed_at).length,
      shadowed: mine.filter((one) => !live(one)).length,
      nodes_down: new Set(mine.filter((one) => live(one) && fault(one)).map((one) => one.node_id)).size,
      proposed: mine.filter((one) => live(one) && fault(one) && acts(one)).length,
    });
    const isFault = (one) => one.node_fault;
    const after =
      body.mode === "off"
        ? { opened: 0, closed: 0, shadowed: 0, nodes_down: 0, proposed: 0 }
        : count(
            (one) => (body.mode ?? "live") === "live" && one.count >= (body.threshold ?? 1),
            (one) => isFault(one) && (body.severity ?? "critical") === "critical",
            (one) => (body.action ?? one.action) !== "none",
          );
    return { since: iso(Date.now() - 30 * DAY), until: iso(Date.now()), events: mine.reduce((sum, one) => sum + one.count, 0), incidents: mine.length, before: count((one) => one.mode === "live", isFault, (one) => one.action !== "none"), after };
  }

  const find = (id) => overrides.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const everyNode = () => clusters().flatMap((one) => one.nodes.map((node) => [one, node]));
  const gpusOf = ([one, node]) => nodeDetail(one, node, world()).gpus.map((gpu) => [one, node, gpu]);

  function partOf(deviceId) {
    const k = parseInt(deviceId.slice(-12), 16);
    const found = everyNode().find(([, node]) => node.gpus > 0 && node.k * 8 <= k && k < node.k * 8 + node.gpus);
    const gpu = found && gpusOf(found).find(([, , one]) => one.device_id === deviceId);
    if (!gpu) {
      throw missing();
    }
    return gpu;
  }

  function deviceHistory(id) {
    const [one, node, gpu] = partOf(id);
    const start = world().start;
    const here = { device_id: id, node_id: node.id, node_name: node.name, cluster_id: one.id, pci: gpu.pci, present: gpu.present, first_seen_at: iso(start - 14 * DAY), last_seen_at: iso(start) };
    const before = one.nodes.find((other) => other.key === "30-09");
    const moved = node.key === "17-03" && gpu.index === 5 && before;
    const first = one.incidents.filter((incident) => incident.node_id === node.id && incident.device === gpu.pci);
    const past = moved ? [{ ...first[0], id: idOf("incident", 95), no: 95, node_id: before.id, node_name: before.name, first_at: iso(start - 21 * DAY), last_at: iso(start - 21 * DAY), closed_at: iso(start - 20.9 * DAY), close_reason: "Repaired by repair 44.", state: "closed" }] : [];
    return {
      type: "gpu",
      serial: gpu.serial,
      places: [...(moved ? [{ ...here, device_id: idOf("device", 900001), node_id: before.id, node_name: before.name, present: false, first_seen_at: iso(start - 90 * DAY), last_seen_at: iso(start - 15 * DAY) }] : []), { ...here, ...(moved ? {} : { first_seen_at: iso(start - 90 * DAY) }) }],
      incidents: [...first, ...past].map(serialIncident),
    };
  }

  function machine(n) {
    const [one, node] = findNode(n);
    const start = world().start;
    const serial = nodeDetail(one, node, world()).host_serial;
    const earlier = node.key === "17-03" ? [{ id: idOf("node", 990001), name: "gpu-old-03", cluster_id: idOf("cluster", 2), host_serial: serial, created_at: iso(start - 300 * DAY), joined_at: iso(start - 300 * DAY), removed_at: iso(start - 91 * DAY) }] : [];
    return {
      host_serial: serial,
      nodes: [...earlier, { id: node.id, name: node.name, cluster_id: one.id, host_serial: serial, created_at: iso(start - 90 * DAY), joined_at: iso(start - 90 * DAY), removed_at: null }],
      incidents: one.incidents.filter((incident) => incident.node_id === node.id).map(serialIncident),
    };
  }

  function serials(url) {
    const q = url.searchParams.get("q") ?? "";
    const start = world().start;
    const seen = { first_seen_at: iso(start - 90 * DAY), last_seen_at: iso(start) };
    const found = [];
    for (const [one, node] of everyNode()) {
      const host = `J9${String(node.k).padStart(6, "0")}`;
      if (host.startsWith(q)) {
        found.push({ kind: "node", type: "node", serial: host, id: node.id, node_id: node.id, node_name: node.name, cluster_id: one.id, present: true, ...seen });
      }
      if (q.startsWith(`16534230${String(node.k).padStart(4, "0")}`) || (q.length < 12 && `16534230${String(node.k).padStart(4, "0")}`.startsWith(q))) {
        for (const [, , gpu] of gpusOf([one, node])) {
          if (gpu.serial.startsWith(q)) {
            found.push({ kind: "device", type: "gpu", serial: gpu.serial, id: gpu.device_id, node_id: node.id, node_name: node.name, cluster_id: one.id, present: gpu.present, ...seen });
          }
        }
      }
      if (found.length >= 50) {
        break;
      }
    }
    return { items: found.slice(0, 50) };
  }

  const routes = [
    ["GET", "/checks", () => ({
      settle_seconds: 90,
      boot_grace_seconds: 600,
      items: CHECK_ROWS.map(([check_id, title, source, severity, action, node_fault, clears, window_seconds, clear_rule, family, settles, boot_grace, can], n) => ({
        threshold_unit: "events", threshold_max: can.includes("threshold") ? 1_000_000 : 1, looks: LOOKS[check_id]?.[0] ?? null, clear_looks: LOOKS[check_id]?.[1] ?? null, look_seconds: LOOKS[check_id]?.[2] ?? null, effective: effective(CHECK_ROWS[n]),
        settable: LOOKS[check_id] ? [...can, "looks"] : can,
        check_id, title, source, kind: "passive", severity, action, node_fault, clears, clear_rule, threshold: 1, window_seconds, family, settles, boot_grace, overrides: overrides.filter((one) => one.check_id === check_id),
      })),
    })],
    ["GET", "/check-overrides", (_, url) => page(overrides, url)],
    ["POST", "/check-overrides/dry-run", (_, __, body) => tryOut(body)],
    ["POST", "/check-overrides", (_, __, body) => {
      need("cluster.write");
      judge(body);
      if (overrides.some((one) => one.check_id === body.check_id && one.cluster_id === (body.cluster_id ?? null) && one.gpu_type === (body.gpu_type ?? ""))) {
        throw new Refusal(409, "conflict", "The check is set there already", "Change that setting instead.");
      }
      const { shadow_seconds, ...rule } = body;
      return add({ ...rule, shadow_until: trial(rule, null, shadow_seconds) }, Date.now(), "Maya Okafor");
    }, 201],
    ["PATCH", "/check-overrides/:o", ({ o }, _, body, headers) => {
      need("cluster.write");
      const one = find(o);
      if (headers["if-match"] !== `"${one.version}"`) {
        throw new Refusal(412, "version_changed", "Somebody changed it meanwhile", "Read it again, then decide.");
      }
      judge({ ...one, ...body });
      const before = { ...one };
      const { shadow_seconds, ...rule } = body;
      const until = trial({ ...one, ...rule }, before, shadow_seconds);
      Object.assign(one, rule, { shadow_until: until, version: one.version + 1, updated_at: iso(Date.now()) });
      note("update", before, one, Date.now(), "Maya Okafor");
      return one;
    }],
    ["DELETE", "/check-overrides/:o", ({ o }) => {
      need("cluster.write");
      const one = find(o);
      overrides = overrides.filter((other) => other !== one);
      note("delete", one, null, Date.now(), "Maya Okafor");
      return null;
    }, 204],
    ["GET", "/devices/:d/history", ({ d }) => deviceHistory(d)],
    ["GET", "/nodes/:n/machine", ({ n }) => machine(n)],
    ["GET", "/serials", (_, url) => serials(url)],
  ];
  /* checks of the organization's own: what stands in them is kept, version by version */
  let own = [];
  let versions = new Map();
  const findOwn = (id) => own.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const keep = (one, changed) => versions.set(one.id, [{ version: one.version, at: iso(Date.now()), author: "Maya Okafor", reason: one.reason, body: {}, changed }, ...(versions.get(one.id) ?? [])]);
  const withDefaults = (kind, definition) => (kind === "command" ? { user: "nobody", interval_seconds: 300, timeout_seconds: 10, output_bytes: 4096, raise_after: 2, clear_after: 2, ...definition } : { for_seconds: 60, ...definition });
  const ownTrial = (rule, before, seconds) => {
    if ((rule.mode ?? "live") !== "live" || seconds === 0) {
      return null;
    }
    const changed = ["severity", "action", "definition", "mode"].some((key) => JSON.stringify(rule[key]) !== JSON.stringify(before[key]));
    return changed || seconds !== undefined ? iso(Date.now() + (seconds ?? 86_400) * 1000) : before.shadow_until;
  };
  const judgeOwn = (body) => {
    if (body.shadow_seconds === 0 && !body.reason) {
      throw wrong("reason", "Without a trial (shadow_seconds 0) say why it should hold at once.");
    }
    if (body.name !== undefined && !/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(body.name)) {
      throw wrong("name", "must have lower case letters, digits and dashes only");
    }
    if (body.definition?.metric && typeof body.definition.threshold !== "number") {
      throw wrong("definition/threshold", "must be a number");
    }
  };
  routes.push(
    ["GET", "/custom-checks", (_, url) => page(own, url)],
    ["POST", "/custom-checks/dry-run", (_, __, body) => {
      judgeOwn(body);
      const hot = clusters().flatMap((one) => one.nodes).filter((node) => (node.gpu_temp_max_c ?? 0) > body.definition.threshold).slice(0, 20);
      return { since: iso(Date.now() - 30 * DAY), until: iso(Date.now()), nodes: hot.length, incidents: hot.length * 2, of: "mean", worst: hot.map((node) => ({ node_id: node.id, node_name: node.name, incidents: 2, first_at: iso(Date.now() - DAY), last_at: iso(Date.now()) })) };
    }],
    ["POST", "/custom-checks", (_, __, body) => {
      need("script.write");
      judgeOwn(body);
      const { shadow_seconds, ...rule } = body;
      const at = iso(Date.now());
      const one = { id: `0198f3c2-0021-7000-8000-${(own.length + 1).toString(16).padStart(12, "0")}`, check_id: `custom:${body.name}`, title: "", cluster_id: null, gpu_type: "", action: "none", mode: "live", reason: "", created_by: "Maya Okafor", updated_by: "Maya Okafor", created_at: at, updated_at: at, version: 1, ...rule, shadow_until: ownTrial(rule, {}, shadow_seconds), definition: withDefaults(rule.kind, rule.definition) };
      own.push(one);
      keep(one, []);
      return one;
    }, 201],
    ["PATCH", "/custom-checks/:k", ({ k }, _, body, headers) => {
      need("script.write");
      const one = findOwn(k);
      if (headers["if-match"] !== `"${one.version}"`) {
        throw new Refusal(412, "version_changed", "Somebody changed it meanwhile", "Read it again, then decide.");
      }
      judgeOwn(body);
      const { shadow_seconds, ...rule } = body;
      rule.definition = rule.definition ? withDefaults(one.kind, rule.definition) : one.definition;
      const flat = ({ definition, ...rest }) => ({ ...rest, ...definition });
      const [then, next] = [flat(one), flat({ ...one, ...rule })];
      const changed = [...new Set([...Object.keys(then), ...Object.keys(next)])].filter((key) => JSON.stringify(then[key]) !== JSON.stringify(next[key]) && key !== "reason").map((field) => ({ field, before: then[field] ?? null, after: next[field] ?? null }));
      Object.assign(one, rule, { shadow_until: ownTrial({ ...one, ...rule }, one, shadow_seconds), version: one.version + 1, updated_at: iso(Date.now()) });
      keep(one, changed);
      return one;
    }],
    ["DELETE", "/custom-checks/:k", ({ k }) => {
      need("script.write");
      own = own.filter((one) => one !== findOwn(k));
      return null;
    }, 204],
    ["GET", "/custom-checks/:k/versions", ({ k }) => ({ items: versions.get(findOwn(k).id) })],
  );
  return { routes, reset: () => (reset(), (own = []), (versions = new Map())), changes: () => log };
}
