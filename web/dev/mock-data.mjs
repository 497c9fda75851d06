/* Made-up clusters for development and browser tests: always the same for the same moment of start. */

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
  const kinds = { org: 1, project: 2, cluster: 3, node: 4, incident: 5, repair: 6, device: 7, token: 8, person: 9 };
  return `0198f3c2-${pad(kinds[kind].toString(16), 4)}-7000-8000-${pad(n.toString(16), 12)}`;
}

/* what is wrong in the large cluster: name -> state, reason, minutes, check, action */
const FAULTS = {
  "17-03": ["unhealthy", "GPU 5 off the bus (Xid 79)", 4, "gpu_xid", 79, "failover"],
  "22-14": ["unhealthy", "InfiniBand rail 5 down, mlx5_5", 12, "ib_link", "down", "failover"],
  "04-22": ["unhealthy", "GPU 2 uncorrectable ECC (Xid 48)", 38, "gpu_xid", 48, "reset_gpu"],
  "11-30": ["unhealthy", "/data mounted read-only", 65, "fs_readonly", "ro", "reprovision"],
  "29-07": ["unhealthy", "GPU 0 row remap failed", 192, "gpu_row_remap", "failed", "remove"],
  "08-02": ["repairing", "Reboot: draining", 8, "gpu_xid", 119, "reboot"],
  "13-19": ["repairing", "Reprovision: acting", 14, "fs_readonly", "ro", "reprovision"],
  "26-25": ["repairing", "Reboot: verifying", 6, "gpu_xid", 95, "reboot"],
  "31-01": ["starting", "Acceptance checks run", 11],
  "31-02": ["starting", "Acceptance checks run", 11],
  "32-32": ["pending", "Waits for the host; no agent yet", 110],
  "02-09": ["paused", "By J. Lindqvist: PDU swap", 52],
  "02-10": ["paused", "By J. Lindqvist: PDU swap", 52],
  "19-05": ["unknown", "Agent silent; last seen healthy", 2.7],
  "19-06": ["unknown", "Agent silent; last seen healthy", 2.7],
};
const WARNINGS = ["03-17", "05-04", "09-28", "14-12", "14-13", "18-20", "21-31", "24-06", "27-15"];
const DEVICES = { "17-03": "GPU 5", "22-14": "mlx5_5", "04-22": "GPU 2", "29-07": "GPU 0", "08-02": "GPU 7", "26-25": "GPU 1" };

const LOGS = {
  79: ["NVRM: Xid (PCI:0000:b7:00): 79, pid=21904, GPU has fallen off the bus.", "NVRM: GPU at PCI:0000:b7:00: GPU-8d1f53c2-77aa-0e91-b2a0-4c1d9e7f0a63"],
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

function makeIncident(cluster, node, no, start) {
  const [, reason, minutes, check, code, action] = node.fault;
  const at = start - minutes * MINUTE;
  const lines = (LOGS[code] ?? ["the check failed"]).map((text, i) => ({ at: iso(at + i * 1000), source: "kmsg", text, opened: i === 0 }));
  return {
    id: idOf("incident", no),
    no,
    cluster_id: cluster.id,
    node_id: node.id,
    node_name: node.name,
    device: DEVICES[node.key] ?? "",
    check_id: check,
    code: String(code),
    severity: "critical",
    action,
    node_fault: true,
    clears: "new_boot",
    quiet_seconds: 600,
    clear_rule: "Clears after a new boot without the fault for 10 min.",
    summary: reason,
    evidence: [{ at: iso(at - 40_000), source: "kmsg", text: "nvidia-nvlink: link 3 recovery requested", opened: false }, ...lines],
    count: 1 + Math.floor(chance("count", no) * 4),
    first_at: iso(at),
    last_at: iso(at + 1000),
    closed_at: null,
    close_reason: null,
    closed_by: null,
    note: "",
    state: "open",
    repair_id: null,
    created_at: iso(at),
    updated_at: iso(at),
    version: 1,
  };
}

const EXPECTED = { reset_gpu: 120, reboot: 540, power_cycle: 720, reprovision: 2700, failover: 300, remove: 60 };
const KEEPS = {
  reset_gpu: "Everything on the node's disks; other GPUs go on.",
  reboot: "Everything on the node's disks.",
  reprovision: "Nothing on the node's own disks.",
  failover: "Nothing on the node's own disks; shared storage is not touched.",
  remove: "The host as it is; Muster forgets the node.",
};

export function makePlan(cluster, node, incident, action, start) {
  const loses = action === "reprovision" || action === "failover" ? "Everything on /scratch and the operating system disk." : null;
  return {
    node: { id: node.id, name: node.name },
    boot_id: "6a1f2c9e-53f0-4d34-9b52-1f0c8e6f4a11",
    action,
    keeps: KEEPS[action] ?? "",
    loses,
    seconds_expected: EXPECTED[action] ?? 600,
    evidence: incident
      ? [{ incident_id: incident.id, no: incident.no, check_id: incident.check_id, code: incident.code, device: incident.device, summary: incident.summary, first_at: incident.first_at, count: incident.count, lines: incident.evidence.map((line) => line.text) }]
      : [],
    jobs: [],
    capacity: { healthy_before: 1009, healthy_after: action === "remove" ? 1009 : 1009, nodes: cluster.nodes.length },
    domain: { rack: node.rack, leaf: node.leaf, others_down: node.rack === "r19" ? 2 : 0 },
    limits: { running: 3, max_running: 8, attempt: 1, attempts_max: 2 },
    rule: incident ? { check_id: incident.check_id, right: 31, total: 34, days: 90 } : null,
    made_at: iso(start - 2 * MINUTE),
    policy: { healthy_delay_seconds: 600, begin_within_seconds: 1800, rejoin_within_seconds: 1800 },
  };
}

function makeSteps(state, since, start) {
  const upTo = ORDER.indexOf(state);
  return ORDER.slice(1, upTo + 1).map((name, i) => {
    const from = since + i * 90_000;
    const last = i === upTo - 1;
    return { n: i + 1, state: name, detail: last ? "waits for the node" : "", actor: "muster", started_at: iso(Math.min(from, start)), ended_at: last ? null : iso(Math.min(from + 90_000, start)) };
  });
}

function makeRepair(cluster, node, incident, no, state, start) {
  const action = node.fault[5];
  const at = start - node.fault[2] * MINUTE;
  const open = ORDER.includes(state);
  const decided = state !== "proposed";
  const blocked = action === "remove" ? "No executor carries out remove in this cluster yet." : null;
  return {
    id: idOf("repair", no),
    no,
    cluster_id: cluster.id,
    node_id: node.id,
    node_name: node.name,
    incident_id: incident?.id ?? null,
    action,
    state,
    state_since: iso(at),
    deadline_at: state === "proposed" ? null : open ? iso(start + 25 * MINUTE) : null,
    reason: node.fault[1],
    requested_by: "muster",
    decided_by: decided ? "S. Tanaka" : null,
    decided_at: decided ? iso(at + MINUTE) : null,
    comment: decided ? "Seen the same on this host in March." : "",
    plan: makePlan(cluster, node, incident, action, start),
    plan_hash: `${pad(no.toString(16), 4)}9e107d9d372bb6826bd81d3542a419d6c1d2e3f4a5b6c7d8e9f0a1b2c3d4`.slice(0, 64),
    attempt: 1,
    created_at: iso(at),
    ended_at: open || state === "unknown" ? null : iso(at + 12 * MINUTE),
    updated_at: iso(at),
    version: 3,
    steps: makeSteps(state, at, start),
    can_approve: state === "proposed" && !blocked,
    blocked: state === "proposed" ? blocked : "It has been decided.",
  };
}

const HISTORY = [
  ["10-05", "reboot", "succeeded", 20],
  ["04-22", "reset_gpu", "failed", 55],
  ["15-11", "reboot", "unknown", 95],
  ["20-01", "reprovision", "succeeded", 340],
  ["02-18", "failover", "rejected", 700],
  ["30-09", "reset_gpu", "resolved", 910],
  ["12-12", "reboot", "cancelled", 1300],
];

function addFaults(cluster, start, numbers) {
  for (const node of cluster.nodes) {
    if (!node.fault?.[5]) {
      continue;
    }
    const incident = makeIncident(cluster, node, numbers.incident++, start);
    cluster.incidents.push(incident);
    node.incident_id = incident.id;
    const running = { "08-02": "draining", "13-19": "acting", "26-25": "verifying" }[node.key];
    const state = running ?? (["17-03", "22-14", "29-07"].includes(node.key) ? "proposed" : null);
    if (state) {
      const repair = makeRepair(cluster, node, incident, numbers.repair++, state, start);
      cluster.repairs.push(repair);
      node.repair_id = repair.id;
      incident.repair_id = repair.id;
    }
  }
  for (const [key, action, state, minutes] of HISTORY) {
    const node = cluster.nodes.find((one) => one.key === key);
    const past = { ...node, fault: [state, node.fault?.[1] ?? "GPU 3 stopped answering (Xid 119)", minutes, "gpu_xid", 119, action] };
    const repair = makeRepair(cluster, past, null, numbers.repair++, state, start);
    repair.steps = state === "rejected" || state === "resolved" ? [] : makeSteps("verifying", start - minutes * MINUTE, start).map((step) => ({ ...step, ended_at: step.ended_at ?? repair.ended_at }));
    repair.blocked = "It has ended.";
    cluster.repairs.push(repair);
  }
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

export function nodeDetail(cluster, node, world) {
  const model = cluster.config.gpu_type ? `NVIDIA ${cluster.config.gpu_type}` : null;
  const lost = node.key === "17-03" ? 5 : -1;
  const incidents = cluster.incidents.filter((one) => one.node_id === node.id && one.state === "open");
  const { fault, silent, k, key, ...summary } = node;
  return {
    ...summary,
    cluster_id: cluster.id,
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
    auto_repair: true,
    paused_until: node.state === "paused" ? iso(world.start + 88 * MINUTE) : null,
    paused_by: node.state === "paused" ? "J. Lindqvist" : null,
    joined_at: iso(world.start - 90 * DAY),
    created_at: iso(world.start - 90 * DAY),
    updated_at: node.state_since,
    version: 7,
    latest: { seen_at: node.seen_at, cpu_ratio: node.cpu_ratio, mem_used_mib: node.mem_used_mib, mem_total_mib: node.mem_total_mib, disk_ratio: 0.41, net_rx_mbps: 820, net_tx_mbps: 640, fabric_rx_mbps: node.net_mbps, fabric_tx_mbps: node.net_mbps },
    gpus: Array.from({ length: node.gpus }, (_, i) => {
      const gone = i === lost;
      const quiet = gone || silent;
      return {
        index: i,
        device_id: idOf("device", node.k * 8 + i),
        serial: `16534230${pad(node.k, 4)}${i}`,
        uuid: `GPU-8d1f53c2-77aa-0e91-b2a0-4c1d9e7f${pad(node.k, 3)}${i}`,
        pci: `0000:${["19", "3b", "4c", "5d", "9b", "b7", "cb", "db"][i] ?? "e0"}:00.0`,
        model,
        present: !gone,
        util_ratio: quiet ? null : Math.max(0, Math.min(1, (node.gpu_util_ratio ?? 0) + (chance("gpu", node.k, i) - 0.5) * 0.1)),
        mem_used_mib: quiet ? null : Math.round((node.gpu_mem_used_mib ?? 0) / 8),
        mem_total_mib: 81559,
        temp_c: quiet ? null : Math.round((node.gpu_temp_max_c ?? 40) - chance("t", node.k, i) * 6),
        power_w: quiet ? null : Math.round(90 + (node.gpu_util_ratio ?? 0) * 560),
        state: gone ? "fault" : silent ? "unknown" : node.warning && i === 2 ? "warning" : "ok",
        incident_id: gone ? (incidents[0]?.id ?? null) : null,
      };
    }),
    collectors: [
      { name: "kmsg", state: "ok", reason: "", since: iso(world.start - 6 * DAY) },
      { name: "nvml", state: node.gpus ? "ok" : "absent", reason: node.gpus ? "" : "no NVIDIA driver on this machine", since: iso(world.start - 6 * DAY) },
      { name: "infiniband", state: node.gpus ? "ok" : "absent", reason: node.gpus ? "" : "no InfiniBand device", since: iso(world.start - 6 * DAY) },
      { name: "smart", state: "unknown", reason: "smartctl is not installed", since: iso(world.start - 6 * DAY) },
    ],
    incidents,
    repair: cluster.repairs.find((one) => one.id === node.repair_id) ?? null,
    ssh_command: `ssh 10.20.${Math.floor(node.k / 32) + 1}.${(node.k % 32) + 1}`,
  };
}

const CHECKS = [
  ["gpu_xid", "GPU errors in the kernel log (Xid)", "passive"],
  ["gpu_count", "All GPUs are there", "passive"],
  ["gpu_ecc", "GPU memory errors", "passive"],
  ["gpu_row_remap", "GPU row remapping", "passive"],
  ["gpu_thermal", "GPU temperature", "passive"],
  ["nvlink", "NVLink errors", "passive"],
  ["ib_link", "InfiniBand links", "passive"],
  ["fs_readonly", "File systems can be written", "passive"],
  ["disk_smart", "Disks (SMART)", "passive"],
  ["clock", "Clock", "passive"],
];

export function checksOf(cluster, since, until, n) {
  const bucket = Math.ceil((until - since) / n / 1000);
  const hole = (i) => {
    const ago = Date.now() - (since + i * bucket * 1000);
    return ago > 13.4 * HOUR && ago < 14.3 * HOUR;
  };
  const rows = CHECKS.map(([check_id, title, kind]) => {
    const failing = cluster.incidents.filter((one) => one.check_id === check_id);
    const first = Math.min(Infinity, ...failing.map((one) => Date.parse(one.first_at)));
    let cells = "";
    for (let i = 0; i < n; i++) {
      const end = since + (i + 1) * bucket * 1000;
      cells += hole(i) ? "." : end > first ? "f" : chance(check_id, i) < 0.02 && cluster.nodes.length > 10 ? "w" : "p";
    }
    const nodes = Math.max(1, cluster.nodes.length);
    return { check_id, title, kind, cells, passed_ratio: (nodes - failing.length) / nodes, worst: failing.slice(0, 3).map((one) => ({ node_id: one.node_id, name: one.node_name, summary: one.summary })) };
  });
  return { since: iso(since), until: iso(until), bucket_seconds: bucket, coverage: Array.from({ length: n }, (_, i) => (hole(i) ? "." : "d")).join(""), rows };
}
