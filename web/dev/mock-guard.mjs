/* The stand-in's answers about policies, stops, breakers and figures over repairs. Made-up, kept in memory. */
import { idOf, iso } from "./mock-data.mjs";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const DEFAULTS = {
  mode: "confirm", automatic: [], confirm: [], warn: [], actions: ["reset_gpu", "reboot", "power_cycle"], windows: [], time_zone: "UTC", idle: "never_interrupt", second_approver: [], dry_run: false,
  idle_wait_seconds: 604800, grace_seconds: 300, concurrency_percent: 2, concurrency_max: 20, unhealthy_stop_percent: 20, starts_percent: 1, starts_min: 2,
  same_kind_permille: 5, same_kind_min: 5, same_kind_seconds: 3600, domain_max: 1, lemon_incidents: 3, lemon_days: 30, cooldown_seconds: 1800, settle_seconds: 90,
  attempts_reset_gpu: 2, attempts_reboot: 2, attempts_power_cycle: 1, attempts_reprovision: 1, attempts_failover: 1,
  breaker_percent: 20, breaker_floor: 3, breaker_seconds: 300, breaker_failures: 5,
};

const WHY = {
  103: [["automation_off", "No policy lets gpu_lost start by itself: a person decides."], ["budget", "This would be attempt 2; 1 of 1 is used in 7 days."]],
  104: [["window", "Repairs start by themselves mon-fri 22:00-06:00; that begins in 7 h 28 min."], ["domain", "1 repair runs in rack r22 or leaf-11, and 1 may."]],
  106: [["action", "A removal never starts by itself."]],
};

/** Puts into made repairs what admission says of them, and the jobs of a scheduler. */
export function decorate(clusters, start) {
  for (const cluster of clusters) {
    for (const repair of cluster.repairs) {
      const why = repair.state === "proposed" ? (WHY[repair.no] ?? [["automation_off", "Automation is off: a person decides."]]).map(([code, detail]) => ({ code, detail })) : [];
      Object.assign(repair, { automatic: repair.no === 102, why_not: why, would_at: null, first_approver: repair.no === 106 ? "Johan Lindqvist" : null, batch_id: null, wave: null });
      repair.plan.limits.why_not = why;
      repair.plan.policy.version = "default";
      if (repair.no === 103) {
        repair.plan.jobs = [{ id: "48213", user: "a.meyer", name: "llama-70b-pretrain", gpus: 8, started_at: iso(start - 19.7 * HOUR), nodes: 64, blocked: "" }];
      }
      if (repair.no === 104) {
        repair.plan.jobs = [{ id: "48190", user: "r.costa", name: "eval-sweep", gpus: 8, started_at: iso(start - 2 * HOUR), nodes: 8, blocked: "" }];
      }
    }
  }
}

/** What the scheduler says of a node, as the detail of a node has it. */
export function schedulerOf(cluster, node, start) {
  if (cluster.config.scheduler === "none" || !cluster.config.scheduler) {
    return null;
  }
  const plan = cluster.repairs.find((one) => one.id === node.repair_id)?.plan;
  const busy = (node.gpu_util_ratio ?? 0) > 0.2;
  const jobs = plan?.jobs?.length ? plan.jobs : busy ? [{ id: String(47_000 + (node.k % 700)), user: "s.ito", name: "finetune-8b", gpus: 8, started_at: iso(start - 3 * HOUR), nodes: 4, blocked: "" }] : [];
  return {
    kind: cluster.config.scheduler === "kubernetes" ? "kubernetes" : "slurm",
    read_at: iso(Date.now() - 8_000),
    error: node.state === "unknown" ? "slurmctld did not answer within 10 s" : "",
    state: node.silent ? "unknown" : jobs.length ? "allocated" : "idle",
    closed: node.state === "repairing" || !node.schedulable,
    reason: node.state === "repairing" ? `muster:${node.fault?.[3]} #${node.incident_id?.slice(-3)}` : "",
    said: "",
    jobs,
  };
}

/** tools: need(permission), page(items, url), missing(), Refusal, org(), orgs, clusters(), findNode(id), emit(event), platform(). */
export function guards(tools) {
  const { need, page, missing, Refusal, clusters, emit } = tools;
  let policies;
  let held;
  let whole;

  const reset = () => {
    const base = { cluster_name: null, node_name: null, created_at: iso(Date.now() - 40 * DAY), updated_by: "Maya Okafor" };
    policies = [
      { ...base, id: idOf("policy", 1), cluster_id: idOf("cluster", 1), node_id: null, cluster_name: "fra-h100-a", settings: { ...DEFAULTS, automatic: ["gpu_ecc", "gpu_xid:119"], warn: ["gpu_thermal"], windows: ["mon-fri 22:00-06:00"], time_zone: "Europe/Berlin", second_approver: ["remove"], concurrency_max: 8 }, updated_at: iso(Date.now() - 2 * DAY), version: 12 },
    ];
    held = new Map();
    whole = { stopped_at: null, stopped_by: "", stop_comment: "", opened_at: null, open_reason: "", reset_at: null, reset_by: "", reset_comment: "" };
  };
  reset();

  const item = (reach, id, clusterId, name) => {
    if (!held.has(id)) {
      held.set(id, { reach, target_id: id, cluster_id: clusterId, name, stopped_at: null, stopped_by: "", stop_comment: "", lifted_at: null, opened_at: null, open_reason: "", reset_at: null, reset_by: "", reset_comment: "", version: 1 });
    }
    return held.get(id);
  };
  const places = {
    org: () => item("org", tools.org(), null, null),
    cluster: (id) => item("cluster", id, id, (clusters().find((one) => one.id === id) ?? (() => { throw missing(); })()).name),
    node: (id) => { const [one, node] = tools.findNode(id); return item("node", id, one.id, node.name); },
  };
  const waiting = (only) => clusters().filter((one) => !only || one.id === only).flatMap((one) => one.repairs).filter((one) => one.state === "proposed").length;
  const guard = (clusterId) => {
    const here = [...held.values()].filter((one) => (one.stopped_at || one.opened_at || one.reach === "org" || one.target_id === clusterId) && (!clusterId || !one.cluster_id || one.cluster_id === clusterId) && (one.reach !== "org" || one.target_id === tools.org()));
    return { platform: whole, items: here, stopped: Boolean(whole.stopped_at) || here.some((one) => one.reach !== "node" && one.stopped_at), breaker_open: Boolean(whole.opened_at) || here.some((one) => one.opened_at), waiting: waiting(clusterId) };
  };
  const turn = (target, stops, body) => {
    need("repair.decide");
    Object.assign(target, stops ? { stopped_at: iso(Date.now()), stopped_by: "Maya Okafor", stop_comment: body.comment ?? "" } : { stopped_at: null, lifted_at: iso(Date.now()), stopped_by: "" }, { version: (target.version ?? 0) + 1 });
    emit({ type: stops ? "repairs.stopped" : "repairs.allowed", severity: "warning", cluster_id: target.cluster_id ?? null, actor: "Maya Okafor", summary: `Repairs of ${target.name ?? "all"} ${stops ? "were stopped" : "are allowed again"} by Maya Okafor` });
    return target;
  };
  const close = (target, body) => {
    need("cluster.write");
    if (!target.opened_at) {
      throw new Refusal(409, "conflict", "It is not so any more", "This breaker is not open.", { state: "closed" });
    }
    Object.assign(target, { opened_at: null, open_reason: "", reset_at: iso(Date.now()), reset_by: "Maya Okafor", reset_comment: body.comment, version: (target.version ?? 0) + 1 });
    emit({ type: "breaker.reset", severity: "warning", cluster_id: target.cluster_id ?? null, actor: "Maya Okafor", summary: `The breaker was reset by Maya Okafor: ${body.comment}` });
    return target;
  };
  const onPlatform = (stops) => (_, __, body) => {
    if (!tools.platform()) {
      throw new Refusal(403, "forbidden", "Your roles do not allow this", "Only an administrator of the installation may.");
    }
    return turn(whole, stops, body);
  };

  const checked = (body) => {
    const errors = [];
    for (const [name, value] of Object.entries(body)) {
      if (typeof DEFAULTS[name] === "number" && (!Number.isInteger(value) || value < 0)) {
        errors.push({ pointer: `#/${name}`, code: "out_of_range", detail: "must be a whole number from 0" });
      }
    }
    (body.windows ?? []).forEach((text, i) => /^[a-z,-]+ \d\d:\d\d-\d\d:\d\d$/.test(text) || errors.push({ pointer: `#/windows/${i}`, code: "invalid_format", detail: "must be days and hours: mon-fri 22:00-06:00" }));
    if (errors.length) {
      throw new Refusal(422, "invalid_fields", "Some fields are not valid", `${errors.length} field was refused.`, { errors });
    }
    return body;
  };
  const findPolicy = (id) => policies.find((one) => one.id === id) ?? (() => { throw missing(); })();
  const effective = (clusterId, nodeId = null) => {
    const found = policies.find((one) => one.node_id === nodeId && nodeId) ?? policies.find((one) => one.cluster_id === clusterId && !one.node_id) ?? policies.find((one) => !one.cluster_id && !one.node_id);
    return { policy_id: found?.id ?? null, reach: !found ? "default" : found.node_id ? "node" : found.cluster_id ? "cluster" : "org", version: found?.version ?? 0, settings: found?.settings ?? DEFAULTS };
  };

  function replay(body) {
    const settings = { ...DEFAULTS, ...checked(body) };
    const names = ["gpu-08-14", "gpu-15-27", "gpu-21-06", "gpu-03-30"];
    const auto = settings.automatic.some((one) => one.startsWith("gpu_gsp") || one === "gpu_xid" || one === "gpu_xid:119") || settings.mode === "automatic";
    const since = Date.now() - 30 * DAY;
    const event = (i, name, decision, running, why) => ({ cluster_id: idOf("cluster", 1), node_id: idOf("node", 100_000 + i), node_name: name, check_id: "gpu_xid", code: "119", action: "reboot", at: iso(since + (i + 1) * 1.6 * DAY), decision, started_at: decision === "start" ? iso(since + (i + 1) * 1.6 * DAY + 90_000) : null, running_job: running, why_not: why });
    const starts = auto ? names.map((name, i) => event(i, name, "start", i === 0, [])) : [];
    const stopped = Array.from({ length: 9 }, (_, i) => event(i + 5, `gpu-17-${String(9 + i).padStart(2, "0")}`, "held", false, auto ? [["same_kind", "common_cause", "budget"][i % 3]] : ["automation_off"]));
    return {
      since: iso(since), until: iso(Date.now()), faults: 2881, starts: starts.length, with_running_job: starts.filter((one) => one.running_job).length, closed_before: 11, breaker_trips: auto ? 1 : 0, complete: true,
      by_action: starts.length ? [{ action: "reboot", starts: starts.length }] : [],
      by_reason: auto ? [{ code: "same_kind", faults: 24 }, { code: "common_cause", faults: 18 }, { code: "budget", faults: 3 }] : [{ code: "automation_off", faults: 45 }],
      unmatched: settings.automatic.filter((one) => one === "gpu_ecc"),
      items: [...starts, ...stopped],
    };
  }

  function statistics(url) {
    const until = Date.parse(url.searchParams.get("until") ?? "") || Date.now();
    const since = Date.parse(url.searchParams.get("since") ?? "") || until - 30 * DAY;
    const row = (action, repairs, succeeded, automatic, decide, work) => ({ action, repairs, succeeded, automatic, mean_to_repair_seconds: decide + work + 240, median_to_repair_seconds: decide + work, mean_to_decide_seconds: decide, mean_to_carry_out_seconds: work });
    return {
      since: iso(since), until: iso(until),
      by_action: [row("reset_gpu", 31, 24, 18, 340, 780), row("reboot", 62, 47, 20, 1260, 1380), row("reprovision", 7, 7, 0, 5400, 4200), row("failover", 4, 3, 0, 7900, 3100)],
      by_rule: [["gpu_ecc", "48", 22, 18], ["gpu_lost", "79", 34, 31], ["gpu_xid", "119", 47, 44], ["ib_link", "down", 16, 9], ["fs_readonly", "ro", 12, 12]].map(([check_id, code, repairs, right]) => ({ check_id, code, repairs, right, right_ratio: Number((right / repairs).toFixed(3)) })),
      incidents: 391, node_faults: 131, lost_node_hours: 96.4, lost_gpu_hours: 771.2,
      lost_most: [["gpu-29-07", 22.1], ["gpu-17-03", 14.8], ["gpu-04-22", 11.3], ["gpu-22-14", 9.6], ["gpu-11-30", 6.2]].map(([node_name, hours], i) => ({ node_id: idOf("node", 100_500 + i), node_name, hours })),
    };
  }

  const report = (url) => `# Incidents of fra-h100-a\n\n${url.searchParams.get("since") ?? ""} to ${url.searchParams.get("until") ?? ""}: 2 incidents.\n\n## 204 GPU 5 off the bus (Xid 79)\n\n- Node: gpu-17-03\n- First seen: 2026-12-01T14:28:03Z\n\n\`\`\`\nNVRM: Xid (PCI:0000:b7:00.0): 79, GPU has fallen off the bus.\n\`\`\`\n\n**Repair 103**, failover: waits for approval.\n`;

  return {
    reset,
    /** a stop or a breaker from outside: {reach, id?, opened_at?, stopped_at?, ...} */
    steer: (wish) => {
      for (const one of wish.guard ? [wish.guard].flat() : []) {
        const { reach, id, ...change } = one;
        Object.assign(reach === "platform" ? whole : places[reach](id), change);
      }
    },
    routes: [
      ["GET", "/guard", () => guard(null)],
      ["GET", "/clusters/:c/guard", ({ c }) => { places.cluster(c); return guard(c); }],
      ["POST", "/stop-repairs", (_, __, body) => turn(places.org(), true, body)],
      ["POST", "/allow-repairs", (_, __, body) => turn(places.org(), false, body)],
      ["POST", "/platform/stop-repairs", onPlatform(true)],
      ["POST", "/platform/allow-repairs", onPlatform(false)],
      ["POST", "/clusters/:c/stop-repairs", ({ c }, _, body) => turn(places.cluster(c), true, body)],
      ["POST", "/clusters/:c/allow-repairs", ({ c }, _, body) => turn(places.cluster(c), false, body)],
      ["POST", "/nodes/:n/stop-repairs", ({ n }, _, body) => turn(places.node(n), true, body)],
      ["POST", "/nodes/:n/allow-repairs", ({ n }, _, body) => turn(places.node(n), false, body)],
      ["POST", "/clusters/:c/breaker/reset", ({ c }, _, body) => close(places.cluster(c), body)],
      ["POST", "/breaker/reset", (_, __, body) => close(places.org(), body)],
      ["POST", "/platform/breaker/reset", (_, __, body) => close(whole, body)],
      ["GET", "/policies", (_, url) => page(policies.filter((one) => !one.cluster_id || clusters().some((c) => c.id === one.cluster_id)), url)],
      ["POST", "/policies/dry-run", (_, __, body) => { need("cluster.write"); return replay(body); }],
      ["POST", "/policies", (_, __, body) => {
        need("cluster.write");
        const { cluster_id = null, node_id = null, ...settings } = checked(body);
        const made = { id: idOf("policy", policies.length + 1), cluster_id, node_id, cluster_name: clusters().find((one) => one.id === cluster_id)?.name ?? null, node_name: node_id ? tools.findNode(node_id)[1].name : null, settings: { ...DEFAULTS, ...settings }, updated_by: "Maya Okafor", created_at: iso(Date.now()), updated_at: iso(Date.now()), version: 1 };
        policies.push(made);
        return made;
      }, 201],
      ["GET", "/policies/:p", ({ p }) => findPolicy(p)],
      ["PATCH", "/policies/:p", ({ p }, _, body, headers) => {
        need("cluster.write");
        const one = findPolicy(p);
        if (headers["if-match"] !== `"${one.version}"`) {
          throw new Refusal(412, "version_changed", "Somebody changed it meanwhile", "Read it again, then decide.");
        }
        Object.assign(one, { settings: { ...one.settings, ...checked(body) }, version: one.version + 1, updated_at: iso(Date.now()), updated_by: "Maya Okafor" });
        return one;
      }],
      ["DELETE", "/policies/:p", ({ p }) => { need("cluster.write"); policies = policies.filter((one) => one.id !== p); return {}; }],
      ["GET", "/clusters/:c/policy", ({ c }) => effective(c)],
      ["GET", "/nodes/:n/policy", ({ n }) => effective(tools.findNode(n)[0].id, n)],
      ["GET", "/clusters/:c/repair-statistics", (_, url) => statistics(url)],
      ["GET", "/clusters/:c/incident-report", (_, url) => report(url)],
    ],
  };
}
