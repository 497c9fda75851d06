/* Made-up clusters for development and browser tests: always the same for the same moment of start. */

import { decorate, schedulerOf } from "./mock-guard.mjs";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const pad = (n, size = 2) => String(n).padStart(size, "0");
export const iso = (ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** A fraction that depends on its arguments only. */
export function chance(...keys) {
  let x = 2166136261;
  for (const key of keys) {
    for (const letter of String(key)) {
      x = Math.imul(x ^ letter.charCodeAt(0), 16777619);
    }
  }
  x = Math.imul(x ^ (x >>> 13), 1274126177);
  return ((x ^ (x >>> 16)) >>> 0) / 4294967296;
}

/** An id in the form of UUIDv7 that names its kind and number. */
export function idOf(kind, n) {
  const kinds = { org: 1, project: 2, cluster: 3, node: 4, incident: 5, repair: 6, device: 7, token: 8, person: 9, session: 10, request: 11, member: 12, service: 13, issuer: 14, webhook: 15, delivery: 16, policy: 17 };
  return `0198f3c2-${pad(kinds[kind].toString(16), 4)}-7000-8000-${pad(n.toString(16), 12)}`;
}

/* what is wrong in the large cluster: name -> state, reason, minutes, check, action */
const FAULTS = {
  "17-03": ["unhealthy", "GPU 5 off the bus (Xid 79)", 4, "gpu_lost", 79, "failover"],
  "22-14": ["unhealthy", "InfiniBand rail 5 down, mlx5_5", 12, "ib_link", "down", "failover"],
  "04-22": ["unhealthy", "GPU 2 uncorrectable ECC (Xid 48)", 38, "gpu_ecc", 48, "reset_gpu"],
  "11-30": ["unhealthy", "/data mounted read-only", 65, "fs_readonly", "ro", "reprovision"],
  "29-07": ["unhealthy", "GPU 0 row remap failed", 192, "gpu_row_remap", "failed", "remove"],
  "08-02": ["repairing", "Reboot: draining", 8, "gpu_gsp", 119, "reboot"],
  "13-19": ["repairing", "Reprovision: acting", 14, "fs_readonly", "ro", "reprovision"],
  "26-25": ["repairing", "Reboot: verifying", 16, "gpu_ecc", 95, "reboot"],
  "31-01": ["starting", "Acceptance checks run", 11],
  "31-02": ["starting", "Acceptance checks run", 11],
  "32-32": ["pending", "Waits for the host; no agent yet", 110],
  "02-09": ["paused", "By J. Lindqvist: PDU swap", 52],
  "02-10": ["paused", "By J. Lindqvist: PDU swap", 52],
  "19-05": ["unknown", "Agent silent; last seen healthy", 2.7],
  "19-06": ["unknown", "Agent silent; last seen healthy", 2.7],
};
const WARNINGS = ["03-17", "05-04", "09-28", "14-12", "14-13", "18-20", "21-31", "24-06", "27-15"];
const PCI = ["0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0", "0000:5d:00.0", "0000:9b:00.0", "0000:b7:00.0", "0000:cb:00.0", "0000:db:00.0"];
const DEVICES = { "17-03": PCI[5], "22-14": "mlx5_5", "04-22": PCI[2], "29-07": PCI[0], "08-02": PCI[7], "26-25": PCI[1] };
/* what the incident says, where the node's reason is the repair's */
const FOUND = { "08-02": "GPU 7 stopped answering (Xid 119)", "13-19": "/data mounted read-only", "26-25": "GPU 1 uncontained ECC error (Xid 95)" };
/* warnings that are open, and faults that are over: [node, check, severity, summary, began minutes ago, lasted minutes, how it ended] */
const OTHERS = [
  ["03-17", "gpu_thermal", "warning", "GPU 4 slows down at 87 °C", 95, null, null],
  ["09-28", "gpu_ecc", "warning", "GPU 6: 2 corrected ECC errors in an hour", 340, null, null],
  ["17-03", "eth_link", "warning", "eth1 down", 140, null, null],
  ["17-03", "gpu_lost", "critical", "GPU 5 off the bus (Xid 79)", 12 * 1440 + 22, 31, "Repaired by repair 61. The node booted again and the fault did not come back."],
  ["17-03", "nic_watchdog", "warning", "eth0: transmit queue timed out", 1320, 60, "No new event for 3600 s."],
  ["10-05", "kernel_hung_task", "critical", "Task python3 blocked for more than 120 s", 26, 22, "Repaired by repair 107. The node booted again and the fault did not come back."],
  ["30-09", "gpu_nvlink", "critical", "NVLink 3 of GPU 1 inactive", 910, 12, "The agent reads that the condition is gone."],
  ["12-12", "ib_link", "critical", "InfiniBand rail 2 down, mlx5_2", 1300, 20, "The agent reads that the condition is gone."],
  ["20-01", "fs_readonly", "critical", "/scratch mounted read-only", 400, 75, "Repaired by repair 110. The node booted again and the fault did not come back."],
  ["21-31", "clock", "warning", "Clock 0.8 s off", 610, 45, "The agent reads that the condition is gone."],
];

const LOGS = {
  79: [
    "NVRM: Xid (PCI:0000:b7:00): 79, pid=21904, name=python3, GPU has fallen off the bus.",
    "NVRM: GPU 0000:b7:00.0: GPU has fallen off the bus.",
    "NVRM: GPU serial number is 1653423005145.",
    "nvml: device 5 lost (NVML_ERROR_GPU_IS_LOST); sysfs 0000:b7:00.0 absent",
  ],
  48: ["NVRM: Xid (PCI:0000:5e:00): 48, pid='<unknown>', name=<unknown>, DBE (double bit error) ECC Error", "NVRM: GPU at PCI:0000:5e:00: GPU-1c22d07e-9931-52ab-8af1-b07c6d11e5f8"],
  down: ["mlx5_core 0000:9c:00.0 ibp156s0: Link down", "mlx5_5: port 1: ACTIVE -> DOWN"],
  ro: ["EXT4-fs error (device nvme1n1): ext4_journal_check_start:83: Detected aborted journal", "EXT4-fs (nvme1n1): Remounting filesystem read-only"],
  failed: ["NVRM: Xid (PCI:0000:19:00): 64, pid='<unknown>', Row Remapper: Remapping failed"],
  119: ["NVRM: Xid (PCI:0000:dc:00): 119, pid=8812, Timeout after 45s of waiting for RPC response from GPU7 GSP!"],
  95: ["NVRM: Xid (PCI:0000:3a:00): 95, pid='<unknown>', Uncontained ECC error"],
};

function nodeName(prefix, rack, slot) {
  return `${prefix}-${pad(rack)}-${pad(slot)}`;
}

function busyOf(rack, slot, fault) {
  if (fault && fault[0] !== "repairing" && !(rack === 22)) {
    return 0;
  }
  const f = chance("busy", rack, slot);
  if (rack === 6 || rack === 7) {
    return f * 0.12;
  }
  return Math.min(0.99, 0.74 + f * 0.25 - (chance("low", rack) > 0.8 ? 0.22 : 0));
}

function makeNode(shape, k, start) {
  const rack = Math.floor(k / 32) + 1;
  const slot = (k % 32) + 1;
  const key = `${pad(rack)}-${pad(slot)}`;
  const fault = shape.faults ? FAULTS[key] : undefined;
  const warning = Boolean(shape.faults) && WARNINGS.includes(key);
  const silent = fault?.[0] === "pending" || fault?.[0] === "unknown" || (fault && key === "13-19");
  const busy = busyOf(rack, slot, fault);
  const since = fault ? start - fault[2] * MINUTE : start - 2 * DAY - chance("up", k) * 20 * DAY;
  const gpus = shape.gpusPerNode;
  return {
    k,
    key,
    id: idOf("node", shape.index * 100_000 + k),
    name: shape.names?.[k] ?? nodeName(shape.prefix, rack, slot),
    state: fault?.[0] ?? "healthy",
    reason: fault?.[1] ?? (warning ? "2 corrected ECC errors in an hour" : ""),
    state_since: iso(since),
    warning,
    schedulable: fault?.[0] !== "paused" && fault?.[0] !== "repairing",
    rack: shape.racks === false ? "" : `r${pad(rack)}`,
    leaf: shape.racks === false ? "" : `leaf-${pad(Math.ceil(rack / 2))}`,
    partition: shape.racks === false ? "" : ["train", "train", "batch", "interactive"][rack % 4],
    seen_at: fault?.[0] === "pending" ? null : iso(start - (silent ? (fault?.[2] ?? 3) * MINUTE : 1000 + chance("seen", k) * 9000)),
    silent: Boolean(silent),
    interval_seconds: 10,
    gpus,
    gpu_util_ratio: silent || gpus === 0 ? null : Number(busy.toFixed(3)),
    gpu_mem_used_mib: silent || gpus === 0 ? null : Math.round(gpus * 81559 * (busy ? 0.6 + 0.3 * chance("mem", k) : 0.01)),
    gpu_mem_total_mib: gpus === 0 ? null : gpus * 81559,
    gpu_temp_max_c: silent || gpus === 0 ? null : Math.round(31 + busy * 38 + chance("temp", k) * 5),
    cpu_ratio: silent ? null : Number((0.08 + 0.3 * chance("cpu", k)).toFixed(3)),
    mem_used_mib: silent ? null : Math.round((shape.memory ?? 2_063_000) * (0.2 + 0.3 * chance("ram", k))),
    mem_total_mib: shape.memory ?? 2_063_000,
    net_mbps: silent ? null : Math.round(busy * 260_000 * (0.8 + 0.4 * chance("net", k)) + 40),
    incident_id: null,
    repair_id: null,
    fault,
  };
}

const ORDER = ["proposed", "cordoning", "draining", "acting", "rejoining", "verifying"];

/* most severe lines open an incident: the first, and what the agent adds of its own */
function makeLines(code, at) {
  const texts = LOGS[code] ?? ["the check failed"];
  return texts.map((text, i) => ({ at: new Date(at + i * 4 + (text.startsWith("nvml") ? 3400 : 0)).toISOString(), source: text.startsWith("nvml") ? "agent" : "kernel", text, opened: i === 0 || text.startsWith("nvml") }));
}

const CLEAR_RULES = {
  new_boot: "Clears when the node has booted again and the fault did not return.",
  event: "Clears when the agent reads that the condition is gone.",
  quiet: "Clears after 60 min without a new event.",
  person: "Clears when a person closes it.",
};

export function makeIncident(cluster, node, no, start, told) {
  const { check, code = "", severity = "critical", action = "none", summary, minutes, lasted = null, reason = null, lines, device = DEVICES[node.key] ?? "", clears = "new_boot" } = told;
  const at = start - minutes * MINUTE;
  const over = lasted === null ? null : iso(at + lasted * MINUTE);
  return {
    id: idOf("incident", no),
    no,
    cluster_id: cluster.id,
    node_id: node.id,
    node_name: node.name,
    device,
    check_id: check,
    code: String(code),
    severity,
    action,
    node_fault: severity === "critical" && action !== "none",
    clears,
    quiet_seconds: clears === "quiet" ? 3600 : 0,
    clear_rule: CLEAR_RULES[clears],
    summary,
    evidence: lines ?? [{ at: iso(at - 5_000), source: "kernel", text: "pcieport 0000:b5:01.0: AER: Corrected error received: 0000:b7:00.0", opened: false }, ...makeLines(code, at)],
    count: 1 + Math.floor(chance("count", no) * 4),
    first_at: iso(at),
    last_at: over ?? iso(at + 1000),
    closed_at: over,
    close_reason: reason,
    closed_by: over ? "muster" : null,
    note: "",
    state: over ? "closed" : "open",
    repair_id: null,
    mode: "live",
    root_id: null,
    common_id: null,
    members: [],
    serial: "",
    repeats: 1,
    action_reason: "",
    version: 1,
  };
}

const memberOf = ({ id, no, node_id, node_name, check_id, code, device, severity, summary, count, state }) => ({ id, no, node_id, node_name, check_id, code, device, severity, summary, count, state });

/** What stands for more than one line: a root with its echo, three nodes of one rack, a check in shadow. */
function addStories(cluster, start) {
  const at = (key) => cluster.nodes.find((node) => node.key === key);
  const lost = cluster.incidents.find((one) => one.node_name === "gpu-17-03" && one.check_id === "gpu_lost" && one.state === "open");
  if (!lost || !at("14-14")) {
    return;
  }
  const echo = makeIncident(cluster, at("17-03"), 411, start, { check: "gpu_count", severity: "critical", action: "reboot", summary: "7 of 8 GPUs are there", minutes: 3.9, lines: [{ at: iso(start - 3.9 * MINUTE), source: "agent", text: "NVML counts 7 GPUs, 8 are expected", opened: true }], device: "", clears: "event" });
  Object.assign(echo, { node_fault: false, root_id: lost.id, count: 3, state: "closed", closed_at: iso(start - 2 * MINUTE), last_at: iso(start - 2 * MINUTE), close_reason: "The agent reads that the condition is gone.", closed_by: "muster" });
  Object.assign(lost, { members: [memberOf(echo)], serial: "16534230054405", repeats: 2 });
  const brakes = ["14-12", "14-13", "14-14"].map((key, i) =>
    makeIncident(cluster, at(key), 402 + i, start, { check: "gpu_power_brake", severity: "warning", summary: "GPU 0 is braked: the power of the rack is short", minutes: 22 - i / 10, lines: [{ at: iso(start - (22 - i / 10) * MINUTE), source: "agent", text: "clocks event reasons 0x80: hardware power brake slowdown", opened: true }], device: PCI[0], clears: "event" }),
  );
  const common = { ...makeIncident(cluster, at("14-12"), 401, start, { check: "common_cause", code: "rack r14", summary: "3 nodes of rack r14 failed within a minute", minutes: 22, lines: [], device: "", clears: "event" }), node_id: null, node_name: null, node_fault: false, count: 3 };
  common.members = brakes.map(memberOf);
  for (const one of brakes) {
    one.common_id = common.id;
  }
  const shadow = { ...makeIncident(cluster, at("05-04"), 410, start, { check: "pcie_aer", severity: "warning", summary: "Corrected PCIe errors of GPU 3", minutes: 51, lines: [{ at: iso(start - 51 * MINUTE), source: "kernel", text: "pcieport 0000:5c:01.0: AER: Corrected error received: 0000:5d:00.0", opened: true }], device: PCI[3], clears: "quiet" }), mode: "shadow" };
  cluster.incidents.push(echo, common, ...brakes, shadow);
}

const ACTIONS = {
  reset_gpu: { seconds: 60, attempts: 2, keeps: "The node stays up and its disks keep their data. Programs that use its GPUs end.", loses: null, how: "The node's agent resets the GPUs named in the evidence." },
  reboot: { seconds: 420, attempts: 2, keeps: "The disks keep their data. Every program on the node ends.", loses: null, how: "The node's agent restarts the operating system." },
  power_cycle: { seconds: 600, attempts: 1, keeps: "The disks keep what was flushed to them. Every program on the node ends at once.", loses: null, how: null },
  reprovision: { seconds: 2700, attempts: 1, keeps: "The node keeps its name, its place and its hardware.", loses: "All data on its local disks is lost.", how: null },
  failover: { seconds: 1800, attempts: 1, keeps: "A spare node takes over the name and the work.", loses: "Data on the old node's local disks stays behind.", how: "A webhook asks the site's inventory for the spare." },
  remove: { seconds: 300, attempts: 1, keeps: "The hardware stays where it is.", loses: "The node leaves the cluster, with all data on its local disks.", how: null },
};

/** As the server limits repairs: 2 % of the nodes, at most 20, less the more are down. */
function maxRunning(nodes, down) {
  const base = Math.min(20, Math.max(1, Math.floor(nodes / 50)));
  return down * 5 >= nodes ? 0 : Math.ceil(base * (1 - (down * 5) / nodes));
}

export function makePlan(cluster, node, incidents, action, start) {
  const info = ACTIONS[action] ?? ACTIONS.reboot;
  const count = (state) => cluster.nodes.filter((one) => one.state === state).length;
  const healthy = count("healthy");
  const down = count("unhealthy") + count("repairing");
  const others = cluster.nodes.filter((one) => one !== node && one.rack && one.rack === node.rack && ["unhealthy", "repairing", "unknown"].includes(one.state)).length;
  const first = incidents[0];
  return {
    node: { id: node.id, name: node.name },
    boot_id: "6a1f2c9e-53f0-4d34-9b52-1f0c8e6f4a11",
    action,
    how: info.how,
    keeps: info.keeps,
    loses: info.loses,
    seconds_expected: info.seconds,
    evidence: incidents.map((one) => ({ incident_id: one.id, no: one.no, check_id: one.check_id, code: one.code, device: one.device, summary: one.summary, first_at: one.first_at, count: one.count, lines: one.evidence })),
    jobs: [],
    capacity: { healthy_before: healthy, healthy_after: healthy - (node.state === "healthy" ? 1 : 0), nodes: cluster.nodes.length },
    domain: { rack: node.rack, leaf: node.leaf, others_down: others },
    limits: {
      running: 3,
      max_running: maxRunning(cluster.nodes.length, down),
      attempt: 1,
      attempts_max: info.attempts,
      why_not: [{ code: "automation_off", detail: "Automation is off: a person decides." }],
    },
    rule: { check_id: first?.check_id ?? "", right: first ? 31 : 0, total: first ? 34 : 0, days: 90 },
    made_at: iso(start - 14_000),
    policy: { healthy_delay_seconds: 600, begin_within_seconds: 1800, rejoin_within_seconds: 1800 },
  };
}

const STEP_WORDS = {
  cordoning: "The node takes no new work. No scheduler is known, so nothing is waited for.",
  draining: "Waiting 120 s for work to end.",
  acting: "The order was taken; waiting for the node to come back.",
  rejoining: "The node has booted; its agent looks around.",
  verifying: "The node is back; watching it for 600 s.",
};
const LENGTHS = { cordoning: 2_000, draining: 120_000, acting: 242_000, rejoining: 38_000, verifying: 600_000 };

/* when its steps began, counted back from the present one */
function makeSteps(repair, upTo, since, ended) {
  const steps = [{ n: 1, state: "proposed", detail: repair.told, actor: "muster", started_at: repair.created_at, ended_at: repair.decided_at }];
  if (repair.decided_at) {
    steps.push({ n: 2, state: "approved", detail: `Approved by ${repair.decided_by}${repair.comment ? `: ${repair.comment}` : "."}`, actor: repair.decided_by, started_at: repair.decided_at, ended_at: repair.decided_at });
  }
  const names = ORDER.slice(1, ORDER.indexOf(upTo) + 1);
  const before = names.slice(0, -1).reduce((sum, name) => sum + LENGTHS[name], 0);
  let from = since - before;
  names.forEach((name, i) => {
    const last = i === names.length - 1;
    const to = last ? ended : from + LENGTHS[name];
    steps.push({ n: steps.length + 1, state: name, detail: STEP_WORDS[name], actor: "muster", started_at: iso(from), ended_at: to === null ? null : iso(to) });
    from = to ?? from;
  });
  return steps;
}

const BLOCKED = { remove: "Nothing here can carry out remove. Do it by hand, then close the incident." };

function makeRepair(cluster, node, incidents, told, start) {
  const { no, action, state, summary, minutes, upTo = null, worked = 0, ending = null, decider = "S. Tanaka", comment = "" } = told;
  const created = start - minutes * MINUTE;
  const decided = state !== "proposed" && state !== "resolved" ? created + 70_000 : null;
  const open = ORDER.includes(state) || state === "unknown";
  const ended = open ? null : created + 70_000 + worked * MINUTE;
  const repair = {
    id: idOf("repair", no),
    no,
    cluster_id: cluster.id,
    node_id: node.id,
    node_name: node.name,
    incident_id: incidents[0]?.id ?? null,
    action,
    state,
    state_since: iso(ended ?? (upTo ? start - worked * MINUTE : created)),
    deadline_at: open && state !== "proposed" && state !== "unknown" ? iso(start + 22 * MINUTE) : null,
    reason: ending ?? summary,
    requested_by: "muster",
    decided_by: decided ? decider : null,
    decided_at: decided ? iso(decided) : null,
    comment,
    plan: makePlan(cluster, node, incidents, action, created),
    plan_hash: `${pad((no * 7919).toString(16), 4)}9e107d9d372bb6826bd81d3542a419d6c1d2e3f4a5b6c7d8e9f0a1b2c3d4`.slice(0, 64),
    attempt: 1,
    created_at: iso(created),
    ended_at: ended === null ? null : iso(ended),
    version: 3,
    can_approve: state === "proposed" && !BLOCKED[action],
    blocked: state === "proposed" ? (BLOCKED[action] ?? null) : `Only a proposed repair can be approved; this one is ${state}.`,
    told: summary,
  };
  repair.plan.made_at = iso(state === "proposed" ? start - 14_000 : created);
  repair.steps = makeSteps(repair, upTo, open ? start - worked * MINUTE : (ended ?? start) - 600_000, open && state !== "unknown" ? null : (ended ?? start));
  if (!open || state === "unknown") {
    repair.steps.push({ n: repair.steps.length + 1, state, detail: ending ?? "", actor: state === "rejected" || state === "cancelled" ? decider : "muster", started_at: repair.state_since, ended_at: repair.ended_at });
  }
  delete repair.told;
  return repair;
}

/* node, action, state, proposed minutes ago, minutes of work, why, last step, how it ended */
const HISTORY = [
  ["10-05", "reboot", "succeeded", 26, 20, "Task python3 blocked for more than 120 s", "verifying", "The fault is gone and stayed away for 600 s."],
  ["04-22", "reset_gpu", "failed", 80, 26, "GPU 2 uncorrectable ECC (Xid 48)", "verifying", "The fault came back: GPU 2 uncorrectable ECC (Xid 48)."],
  ["15-11", "reboot", "unknown", 95, 30, "GPU 3 stopped answering (Xid 119)", "acting", "The order was handed out and nothing was heard of it since."],
  ["20-01", "reprovision", "succeeded", 400, 75, "/scratch mounted read-only", "verifying", "The fault is gone and stayed away for 600 s."],
  ["02-18", "failover", "rejected", 700, 0, "InfiniBand rail 5 down, mlx5_5", null, "Rejected by M. Okafor: the cable is being changed today"],
  ["30-09", "reset_gpu", "resolved", 910, 0, "NVLink 3 of GPU 1 inactive", null, "Its incidents closed before anything was done."],
  ["12-12", "reboot", "cancelled", 1300, 3, "InfiniBand rail 2 down, mlx5_2", "draining", "Cancelled by J. Lindqvist: leaf-06 came back"],
];

function addOthers(cluster, start, numbers) {
  for (const [key, check, severity, summary, minutes, lasted, reason] of OTHERS) {
    const node = cluster.nodes.find((one) => one.key === key);
    if (!node) {
      continue;
    }
    const lines = [{ at: iso(start - minutes * MINUTE), source: check.startsWith("gpu") ? "agent" : "kernel", text: summary, opened: true }];
    const incident = makeIncident(cluster, node, numbers.incident++, start, { check, severity, action: severity === "critical" ? "reboot" : "none", summary, minutes, lasted, reason, lines, device: "", clears: severity === "critical" ? "new_boot" : "quiet" });
    cluster.incidents.push(incident);
    if (lasted === null && node.incident_id === null) {
      node.incident_id = incident.id;
    }
  }
}

const UNDER_WAY = { "08-02": ["draining", 1.2, "Seen the same on this host in March."], "13-19": ["acting", 11, "Node is idle."], "26-25": ["verifying", 6, "Pending row remap."] };
const WAITING = ["17-03", "22-14", "29-07"];

function addFaults(cluster, start, numbers) {
  addOthers(cluster, start, numbers);
  for (const node of cluster.nodes) {
    if (!node.fault?.[5]) {
      continue;
    }
    const [, reason, minutes, check, code, action] = node.fault;
    const summary = FOUND[node.key] ?? reason;
    const incident = makeIncident(cluster, node, numbers.incident++, start, { check, code, action, summary, minutes });
    cluster.incidents.push(incident);
    node.incident_id = incident.id;
    const under = UNDER_WAY[node.key];
    if (under || WAITING.includes(node.key)) {
      const told = { no: numbers.repair++, action, summary, minutes: minutes - 0.05, state: under?.[0] ?? "proposed", upTo: under?.[0] ?? null, worked: under?.[1] ?? 0, comment: under?.[2] ?? "" };
      const repair = makeRepair(cluster, node, [incident], told, start);
      cluster.repairs.push(repair);
      node.repair_id = repair.id;
      incident.repair_id = repair.id;
    }
  }
  for (const [key, action, state, minutes, worked, summary, upTo, ending] of HISTORY) {
    const node = cluster.nodes.find((one) => one.key === key);
    if (!node) {
      continue;
    }
    const decider = state === "rejected" ? "M. Okafor" : state === "cancelled" ? "J. Lindqvist" : "S. Tanaka";
    const incident = cluster.incidents.find((one) => one.node_id === node.id && one.summary === summary);
    const repair = makeRepair(cluster, node, incident ? [incident] : [], { no: numbers.repair++, action, state, summary, minutes, worked, upTo, ending, decider }, start);
    cluster.repairs.push(repair);
    if (repair.ended_at === null) {
      node.repair_id = repair.id;
    }
    if (incident && !incident.repair_id) {
      incident.repair_id = repair.id;
    }
  }
  addStories(cluster, start);
  cluster.incidents.sort((a, b) => b.first_at.localeCompare(a.first_at));
  cluster.repairs.sort((a, b) => b.created_at.localeCompare(a.created_at));
}

function makeEvents(cluster, start) {
  const made = [];
  const add = (ms, type, severity, node, summary, extra = {}) =>
    made.push({ seq: 0, at: iso(ms), type, severity, cluster_id: cluster.id, node_id: node?.id ?? null, node_name: node?.name ?? null, incident_id: null, repair_id: null, actor: "muster", summary, data: {}, ...extra });
  for (const node of cluster.nodes) {
    if (!node.fault) {
      continue;
    }
    const at = start - node.fault[2] * MINUTE;
    if (node.fault[0] === "unhealthy") {
      add(at, "incident.opened", "critical", node, `${node.name} ${node.reason}`, { incident_id: node.incident_id });
      add(at + 1000, "node.state_changed", "warning", node, `${node.name} healthy → unhealthy: ${node.reason}`, { data: { from: "healthy", to: "unhealthy" } });
    } else if (node.fault[0] === "repairing") {
      add(at, "repair.step", "info", node, `${node.name} ${node.reason.toLowerCase()}`, { repair_id: node.repair_id, actor: "S. Tanaka" });
    } else if (node.fault[0] === "paused") {
      add(at, "node.cordoned", "info", node, `${node.name} paused: PDU swap`, { actor: "J. Lindqvist" });
    } else if (node.fault[0] === "unknown") {
      add(at, "node.state_changed", "warning", node, `${node.name} healthy → unknown: agent silent`, { data: { from: "healthy", to: "unknown" } });
    }
  }
  for (const repair of cluster.repairs) {
    const node = cluster.nodes.find((one) => one.id === repair.node_id);
    const at = Date.parse(repair.created_at);
    add(at + 2000, "repair.proposed", "info", node, `${node.name} ${repair.action.replace("_", " ")} proposed: ${repair.reason}`, { repair_id: repair.id });
    if (repair.ended_at) {
      add(Date.parse(repair.ended_at), `repair.${repair.state}`, repair.state === "failed" ? "warning" : "info", node, `${node.name} ${repair.action.replace("_", " ")} ${repair.state}`, { repair_id: repair.id });
    }
  }
  const n = cluster.nodes.length > 1 ? 360 : 6;
  for (let i = 0; i < n; i++) {
    const storm = chance("storm", i) < 0.25 && cluster.nodes.length > 100;
    const at = start - (storm ? 5.6 * HOUR + chance("when", i) * 1.2 * HOUR : chance("when", i) * DAY);
    const node = cluster.nodes[Math.floor(chance("who", i) * cluster.nodes.length)];
    if (!node) {
      continue;
    }
    const kind = chance("kind", i);
    if (storm) {
      add(at, "incident.changed", kind < 0.5 ? "critical" : "warning", node, `${node.name} InfiniBand errors on leaf switch 17`, {});
    } else if (kind < 0.55) {
      add(at, "collector.changed", "info", node, `${node.name} collector dcgm answers again`, {});
    } else if (kind < 0.9) {
      add(at, "node.state_changed", "info", node, `${node.name} starting → healthy`, { data: { from: "starting", to: "healthy" } });
    } else {
      add(at, "node.booted", "info", node, `${node.name} booted`, {});
    }
  }
  return made.sort((a, b) => b.at.localeCompare(a.at));
}

/** One sequence over all clusters of an org, in the order of time. */
function numberEvents(clusters, seqs) {
  const all = clusters.flatMap((cluster) => cluster.events).sort((a, b) => a.at.localeCompare(b.at));
  for (const event of all) {
    event.seq = seqs.next++;
  }
  for (const cluster of clusters) {
    cluster.events.sort((a, b) => b.seq - a.seq);
  }
}

function makeCluster(shape, start, numbers) {
  const cluster = {
    id: idOf("cluster", shape.index),
    name: shape.name,
    shape,
    config: {
      id: idOf("cluster", shape.index),
      project_id: idOf("project", 1),
      name: shape.name,
      scheduler: shape.scheduler ?? "slurm",
      region: shape.region ?? "eu-fra-2",
      gpu_type: shape.gpuType ?? "H100 SXM 80 GB",
      gpus_per_node: shape.gpusPerNode || null,
      driver_version: shape.gpusPerNode ? "570.124.06" : "",
      network: shape.gpusPerNode ? "InfiniBand NDR, 8 × 400 Gb/s" : "",
      os_image: shape.gpusPerNode ? "ubuntu-22.04-gpu 2026.11.2" : "",
      billing_rate: shape.gpusPerNode ? 2.19 : null,
      billing_currency: "EUR",
      healthy_delay_seconds: 600,
      begin_within_seconds: 1800,
      rejoin_within_seconds: 1800,
      created_at: iso(start - (shape.n ? 90 * DAY : 2 * MINUTE)),
      updated_at: iso(start - DAY),
      version: 3,
    },
    nodes: Array.from({ length: shape.n }, (_, k) => makeNode(shape, k, start)),
    incidents: [],
    repairs: [],
    events: [],
    version: 1,
  };
  if (shape.faults) {
    addFaults(cluster, start, numbers);
  }
  if (shape.silent) {
    for (const node of cluster.nodes) {
      Object.assign(node, { state: "unknown", reason: "Agent silent", silent: true, gpu_util_ratio: null, gpu_mem_used_mib: null, gpu_temp_max_c: null, cpu_ratio: null, net_mbps: null, state_since: iso(start - 6 * HOUR), seen_at: iso(start - 6 * HOUR) });
    }
  }
  cluster.events = makeEvents(cluster, start);
  return cluster;
}

export const ORGS = [
  { id: idOf("org", 1), name: "main", title: "Halden AI", demo: false },
  { id: idOf("org", 2), name: "demo", title: "Demo fleet", demo: true },
];

/** All clusters of the world, by org. */
export function makeWorld(start = Date.now()) {
  const numbers = { incident: 201, repair: 101 };
  const seqs = { next: 1000 };
  const make = (shape) => makeCluster(shape, start, numbers);
  const main = [
    make({ index: 1, name: "fra-h100-a", prefix: "gpu", n: 1024, gpusPerNode: 8, faults: true }),
    make({ index: 2, name: "fra-h100-b", prefix: "gpu-b", n: 256, gpusPerNode: 8 }),
    make({ index: 3, name: "local", n: 1, names: ["workstation"], gpusPerNode: 0, racks: false, region: "", gpuType: "", scheduler: "none", memory: 24_576 }),
    make({ index: 4, name: "lab-l40s", prefix: "lab", n: 6, gpusPerNode: 4, silent: true, region: "office", gpuType: "L40S", scheduler: "kubernetes" }),
    make({ index: 5, name: "new-cluster", prefix: "gpu", n: 0, gpusPerNode: 0, region: "", gpuType: "", scheduler: "none" }),
  ];
  const demo = [make({ index: 9, name: "ten-thousand", prefix: "n", n: 10_000, gpusPerNode: 8, faults: true })];
  for (const clusters of [main, demo]) {
    decorate(clusters, start);
  }
  numberEvents(main, seqs);
  numberEvents(demo, seqs);
  return { start, seqs, orgs: new Map([[ORGS[0].id, main], [ORGS[1].id, demo]]) };
}

export const STATES = ["pending", "starting", "healthy", "unhealthy", "repairing", "paused", "unknown"];

export function rollupOf(cluster) {
  const states = Object.fromEntries(STATES.map((state) => [state, 0]));
  const sum = { warning: 0, seen: 0, gpus: 0, read: 0, busy: 0, memUsed: 0, memTotal: 0, cpu: 0, cpuN: 0, ramUsed: 0, ramTotal: 0, net: 0 };
  for (const node of cluster.nodes) {
    states[node.state] += 1;
    sum.warning += node.warning && node.state === "healthy" ? 1 : 0;
    sum.seen += node.silent ? 0 : 1;
    sum.gpus += node.gpus;
    if (node.gpu_util_ratio !== null) {
      sum.read += node.gpus;
      sum.busy += node.gpu_util_ratio * node.gpus;
      sum.memUsed += node.gpu_mem_used_mib;
    }
    sum.memTotal += node.gpu_mem_total_mib ?? 0;
    if (node.cpu_ratio !== null) {
      sum.cpu += node.cpu_ratio;
      sum.cpuN += 1;
      sum.ramUsed += node.mem_used_mib ?? 0;
    }
    sum.ramTotal += node.mem_total_mib ?? 0;
    sum.net += node.net_mbps ?? 0;
  }
  return {
    version: cluster.version,
    at: iso(Date.now() - 1000),
    nodes: cluster.nodes.length,
    states,
    warning: sum.warning,
    seen_20s: sum.seen,
    gpus: sum.gpus,
    gpus_read: sum.read,
    gpu_busy_ratio: sum.read ? sum.busy / sum.read : null,
    gpu_mem_used_mib: sum.memUsed,
    gpu_mem_total_mib: sum.memTotal,
    cpu_ratio: sum.cpuN ? sum.cpu / sum.cpuN : null,
    mem_used_mib: sum.ramUsed,
    mem_total_mib: sum.ramTotal,
    net_mbps: cluster.nodes.length ? sum.net / cluster.nodes.length : null,
    fabric_mbps: null,
    power_w: sum.read ? sum.read * 430 : null,
  };
}

/** A day's swing of use, with a dip and a hole of half an hour. */
export function historyOf(cluster, since, until, stepSeconds) {
  const out = { at: [], gpu_busy_ratio: [], gpu_mem_ratio: [], cpu_ratio: [], net_mbps: [], nodes_read: [] };
  const step = stepSeconds * 1000;
  const now = Date.now();
  const young = cluster.nodes.length <= 1 ? now - 3 * HOUR : 0;
  const current = rollupOf(cluster).gpu_busy_ratio ?? 0;
  for (let at = Math.ceil(since / step) * step; at <= until; at += step) {
    if (at < young) {
      continue;
    }
    const ago = now - at;
    const hole = ago > 13.4 * HOUR && ago < 14.3 * HOUR;
    const dip = ago < 5.6 * HOUR && ago > 4 * HOUR ? -0.22 : 0;
    const noise = (chance("h", Math.round(at / step)) - 0.5) * 0.08;
    const calm = Math.min(1, ago / (2 * HOUR));
    const busy = Math.max(0, Math.min(1, current + calm * (0.05 * Math.sin(at / (5 * HOUR)) + noise + dip)));
    const value = (n) => (hole ? null : Number(n.toFixed(4)));
    out.at.push(Math.round(at / 1000));
    out.gpu_busy_ratio.push(cluster.shape.gpusPerNode ? value(busy) : null);
    out.gpu_mem_ratio.push(cluster.shape.gpusPerNode ? value(0.68 + noise / 3) : null);
    out.cpu_ratio.push(value(0.2 + Math.abs(noise)));
    out.net_mbps.push(value(cluster.shape.gpusPerNode ? 180_000 + 500_000 * noise + 60_000 * Math.sin(at / (4 * HOUR)) : 4 + 40 * Math.abs(noise)));
    out.nodes_read.push(hole ? 0 : cluster.nodes.length);
  }
  return out;
}

const KIND_OF = (event) => {
  if (event.type.startsWith("incident.")) {
    return event.severity === "critical" ? "fault" : event.severity === "warning" ? "warning" : "check";
  }
  if (event.type.startsWith("repair.")) {
    return "repair";
  }
  if (event.type.startsWith("node.")) {
    return "state";
  }
  return event.type.startsWith("collector.") ? "check" : "other";
};

export function stripOf(cluster, since, until, n) {
  const bucket = Math.ceil((until - since) / n / 1000);
  const buckets = Array.from({ length: n }, (_, i) => ({ at: iso(since + i * bucket * 1000), fault: 0, warning: 0, repair: 0, state: 0, check: 0, other: 0 }));
  for (const event of cluster.events) {
    const i = Math.floor((Date.parse(event.at) - since) / (bucket * 1000));
    if (buckets[i]) {
      buckets[i][KIND_OF(event)] += 1;
    }
  }
  return { since: iso(since), until: iso(until), bucket_seconds: bucket, buckets };
}

const repairSummary = ({ plan: _, steps: __, can_approve: ___, blocked: ____, why_not: _____, ...summary }) => summary;

export function nodeDetail(cluster, node, world) {
  const model = cluster.config.gpu_type ? `NVIDIA ${cluster.config.gpu_type}` : null;
  const lost = node.key === "17-03" ? 5 : -1;
  const incidents = cluster.incidents.filter((one) => one.node_id === node.id && one.state === "open");
  const { fault, silent, k, key, ...summary } = node;
  const faulty = (i) => incidents.find((one) => one.device === PCI[i]);
  const repair = cluster.repairs.find((one) => one.id === node.repair_id && one.ended_at === null);
  return {
    ...summary,
    cluster_id: cluster.id,
    scheduler: schedulerOf(cluster, node, world.start),
    boot_id: "6a1f2c9e-53f0-4d34-9b52-1f0c8e6f4a11",
    booted_at: iso(world.start - 6 * DAY),
    ready_at: iso(world.start - 6 * DAY + 4 * MINUTE),
    agent_version: "0.1.0",
    driver_version: node.gpus ? "570.124.06" : "",
    kernel: "6.8.0-57-generic",
    os_image: cluster.config.os_image,
    gpu_type: model ?? "",
    host_serial: `J9${pad(node.k, 6)}`,
    address: `10.20.${Math.floor(node.k / 32) + 1}.${(node.k % 32) + 1}`,
    cpus: node.gpus ? 192 : 2,
    memory_mib: node.mem_total_mib,
    gpus_expected: node.gpus,
    auto_repair: node.auto_repair ?? true,
    paused_until: node.state === "paused" ? (node.paused_until ?? iso(world.start + 88 * MINUTE)) : null,
    paused_by: node.state === "paused" ? (node.paused_by ?? "J. Lindqvist") : null,
    driver_changed_at: node.key === "31-01" ? iso(world.start - 4 * MINUTE) : null,
    joined_at: iso(world.start - 90 * DAY),
    created_at: iso(world.start - 90 * DAY),
    updated_at: node.state_since,
    version: node.version ?? 7,
    latest: { seen_at: node.seen_at, cpu_ratio: node.cpu_ratio, mem_used_mib: node.mem_used_mib, mem_total_mib: node.mem_total_mib, disk_ratio: 0.41, net_rx_mbps: 820, net_tx_mbps: 640, fabric_rx_mbps: node.net_mbps, fabric_tx_mbps: node.net_mbps },
    gpus: Array.from({ length: node.gpus }, (_, i) => {
      const gone = i === lost;
      const quiet = gone || silent;
      return {
        index: i,
        device_id: idOf("device", node.k * 8 + i),
        serial: `16534230${pad(node.k, 4)}${i}`,
        uuid: `GPU-8d1f53c2-77aa-0e91-b2a0-4c1d9e7f${pad(node.k, 3)}${i}`,
        pci: PCI[i] ?? "0000:e0:00.0",
        model,
        present: !gone,
        util_ratio: quiet ? null : Math.max(0, Math.min(1, (node.gpu_util_ratio ?? 0) + (chance("gpu", node.k, i) - 0.5) * 0.1)),
        mem_used_mib: quiet ? null : Math.round((node.gpu_mem_used_mib ?? 0) / 8),
        mem_total_mib: 81559,
        temp_c: quiet ? null : Math.round((node.gpu_temp_max_c ?? 40) - chance("t", node.k, i) * 6),
        power_w: quiet ? null : Math.round(90 + (node.gpu_util_ratio ?? 0) * 560),
        state: gone || faulty(i)?.node_fault ? "fault" : faulty(i) || (node.warning && i === 2) ? "warning" : silent ? "unknown" : "ok",
        incident_id: faulty(i)?.id ?? null,
      };
    }),
    collectors: [
      { name: "kmsg", state: "ok", reason: "", since: iso(world.start - 6 * DAY) },
      { name: "nvml", state: node.gpus ? "ok" : "absent", reason: node.gpus ? "" : "no NVIDIA driver on this machine", since: iso(world.start - 6 * DAY) },
      { name: "infiniband", state: node.gpus ? "ok" : "absent", reason: node.gpus ? "" : "no InfiniBand device", since: iso(world.start - 6 * DAY) },
      { name: "smart", state: "unknown", reason: "smartctl is not installed", since: iso(world.start - 6 * DAY) },
    ],
    incidents,
    repair: repair ? repairSummary(repair) : null,
    ssh_command: `ssh 10.20.${Math.floor(node.k / 32) + 1}.${(node.k % 32) + 1}`,
  };
}

/* id, title; the last ones have no source in these clusters */
const CHECKS = [
  ["gpu_lost", "GPU off the bus"],
  ["gpu_count", "Number of GPUs"],
  ["gpu_unresponsive", "GPU driver answers"],
  ["gpu_xid", "Xid of a GPU"],
  ["gpu_gsp", "GPU system processor"],
  ["gpu_ecc", "GPU memory errors"],
  ["gpu_row_remap", "GPU memory row remapping"],
  ["gpu_nvlink", "NVLink"],
  ["gpu_pcie", "PCIe link of a GPU"],
  ["gpu_thermal", "GPU thermal slowdown"],
  ["gpu_power_brake", "GPU power brake"],
  ["pcie_aer", "PCIe errors"],
  ["nic_watchdog", "Network adapter"],
  ["ib_link", "InfiniBand link"],
  ["eth_link", "Ethernet link"],
  ["disk_nvme", "NVMe disk"],
  ["fs_readonly", "Read-only file system"],
  ["memory_ecc", "Host memory errors"],
  ["kernel_hung_task", "Blocked task"],
  ["kernel_panic", "Kernel panic"],
  ["clock", "Clock"],
  ["nvswitch_sxid", "SXid of an NVSwitch"],
  ["fabric_manager", "Fabric manager"],
  ["slurm_node_state", "Slurm's state of the node"],
];
const NO_SOURCE = ["nvswitch_sxid", "fabric_manager", "slurm_node_state"];

export function checksOf(cluster, since, until, n) {
  const bucket = Math.ceil((until - since) / n / 1000);
  const hole = (i) => {
    const ago = Date.now() - (since + i * bucket * 1000);
    return ago > 13.4 * HOUR && ago < 14.3 * HOUR;
  };
  const rows = CHECKS.map(([check_id, title]) => {
    const mine = cluster.incidents.filter((one) => one.check_id === check_id && one.mode === "live" && one.node_id);
    const failed = (one) => one.node_fault || one.severity === "critical";
    const open = mine.filter((one) => one.state === "open");
    const silent = NO_SOURCE.includes(check_id) || (check_id.startsWith("gpu") && !cluster.shape.gpusPerNode) || cluster.shape.silent;
    let cells = "";
    let lost = 0;
    for (let i = 0; i < n; i++) {
      const from = since + i * bucket * 1000;
      const to = from + bucket * 1000;
      const here = mine.filter((one) => Date.parse(one.first_at) < to && Date.parse(one.closed_at ?? iso(Date.now())) >= from);
      lost += here.length;
      cells += hole(i) || silent ? "." : from > Date.now() ? "." : here.some(failed) ? "f" : here.length ? "w" : "p";
    }
    const all = Math.max(1, cluster.nodes.length) * n;
    return {
      check_id,
      title,
      kind: "passive",
      cells,
      passed_ratio: silent ? null : (all - lost) / all,
      worst: open.sort((a, b) => Number(failed(b)) - Number(failed(a))).slice(0, 3).map((one) => ({ node_id: one.node_id, name: one.node_name, summary: one.summary })),
    };
  });
  return { since: iso(since), until: iso(until), bucket_seconds: bucket, coverage: Array.from({ length: n }, (_, i) => (hole(i) ? "." : "d")).join(""), rows };
}
