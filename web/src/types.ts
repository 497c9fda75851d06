/* The JSON of the API, as far as the console reads it. Enumerations are open: unknown values must show. */

export interface List<T> {
  items: T[];
  next_cursor: string | null;
  as_of_seq: number;
}

export type NodeState = "pending" | "starting" | "healthy" | "unhealthy" | "repairing" | "paused" | "unknown";
export type Severity = "info" | "warning" | "error" | "critical" | (string & {});

export interface Org {
  id: string;
  name: string;
  title: string;
  demo: boolean;
  roles?: string[];
}

export interface Me {
  kind: "session" | "service";
  id: string;
  name: string;
  org: Org;
  orgs: Org[];
  roles: string[];
  /** where the roles come from, those of groups included */
  rights?: { role: string; project_id: string | null; cluster_id: string | null; via: string; group: string | null }[];
  /** roles in parts of the org */
  grants: { role: string; project_id: string | null; cluster_id: string | null }[];
  permissions: string[];
  expires_at: string | null;
  /** the organization is, and why */
  suspended?: { at: string; reason: string } | null;
  platform_admin: boolean;
}

export interface Session {
  person: { id: string; name: string };
  org: Org;
  expires_at: string;
}

export interface Project {
  id: string;
  name: string;
  title: string;
  clusters: number;
  version: number;
}

export interface Cluster {
  id: string;
  project_id: string;
  name: string;
  scheduler: string | null;
  region: string | null;
  gpu_type: string | null;
  gpus_per_node: number | null;
  driver_version: string | null;
  network: string | null;
  os_image: string | null;
  billing_rate: number | null;
  billing_currency: string | null;
  healthy_delay_seconds: number;
  begin_within_seconds: number;
  rejoin_within_seconds: number;
  created_at: string;
  updated_at: string;
  version: number;
}

export interface Rollup {
  version: number;
  at: string;
  nodes: number;
  states: Record<NodeState, number>;
  warning: number;
  seen_20s: number;
  gpus: number;
  gpus_read: number;
  gpu_busy_ratio: number | null;
  gpu_mem_used_mib: number | null;
  gpu_mem_total_mib: number | null;
  cpu_ratio: number | null;
  mem_used_mib: number | null;
  mem_total_mib: number | null;
  /** sums over the nodes */
  net_mbps: number | null;
  fabric_mbps: number | null;
  power_w: number | null;
}

export interface ClusterItem extends Cluster {
  rollup: Rollup | null;
}

export interface WorstNode {
  node_id: string;
  name: string;
  state: NodeState;
  reason: string | null;
  state_since: string;
  warning: boolean;
  incident_id: string | null;
  repair_id: string | null;
  action: string | null;
}

export interface Drift {
  field: string;
  wanted: string;
  seen: { value: string | null; nodes: number }[];
}

export interface Overview {
  cluster: Cluster;
  rollup: Rollup | null;
  worst: WorstNode[];
  waiting: Repair[];
  waiting_count: number;
  changes: Event[];
  last_change: Event | null;
  drift: Drift[];
  as_of_seq: number;
}

export interface History {
  at: number[];
  gpu_busy_ratio: (number | null)[];
  gpu_mem_ratio: (number | null)[];
  cpu_ratio: (number | null)[];
  net_mbps: (number | null)[];
  nodes_read: (number | null)[];
}

export interface NodeHistory {
  at: number[];
  gpu_util_ratio: (number | null)[];
  gpu_mem_ratio: (number | null)[];
  cpu_ratio: (number | null)[];
  net_mbps: (number | null)[];
}

export interface StripBucket {
  at: string;
  fault: number;
  warning: number;
  repair: number;
  state: number;
  check: number;
  other: number;
}

export interface EventStrip {
  since: string;
  until: string;
  bucket_seconds: number;
  buckets: StripBucket[];
}

export interface NodeSummary {
  id: string;
  name: string;
  state: NodeState;
  reason: string | null;
  state_since: string;
  warning: boolean;
  schedulable: boolean;
  rack: string | null;
  leaf: string | null;
  partition: string | null;
  seen_at: string | null;
  interval_seconds: number;
  gpus: number;
  gpu_util_ratio: number | null;
  gpu_mem_used_mib: number | null;
  gpu_mem_total_mib: number | null;
  gpu_temp_max_c: number | null;
  cpu_ratio: number | null;
  mem_used_mib: number | null;
  mem_total_mib: number | null;
  net_mbps: number | null;
  incident_id: string | null;
  repair_id: string | null;
}

export interface Gpu {
  index: number;
  device_id: string | null;
  serial: string | null;
  uuid: string | null;
  pci: string | null;
  model: string | null;
  present: boolean;
  util_ratio: number | null;
  mem_used_mib: number | null;
  mem_total_mib: number | null;
  temp_c: number | null;
  power_w: number | null;
  state: "ok" | "fault" | "warning" | "unknown";
  incident_id: string | null;
}

export interface Collector {
  name: string;
  state: string;
  reason: string | null;
  since: string | null;
}

/* gpus counts in a summary and lists in the detail */
export interface NodeDetail extends Omit<NodeSummary, "gpus"> {
  cluster_id: string;
  boot_id: string | null;
  booted_at: string | null;
  ready_at: string | null;
  agent_version: string | null;
  driver_version: string | null;
  kernel: string | null;
  os_image: string | null;
  gpu_type: string | null;
  host_serial: string | null;
  address: string | null;
  cpus: number | null;
  memory_mib: number | null;
  gpus_expected: number | null;
  auto_repair: boolean;
  paused_until: string | null;
  paused_by: string | null;
  driver_changed_at: string | null;
  joined_at: string | null;
  created_at: string;
  updated_at: string;
  version: number;
  latest: {
    seen_at: string | null;
    cpu_ratio: number | null;
    mem_used_mib: number | null;
    mem_total_mib: number | null;
    disk_ratio: number | null;
    net_rx_mbps: number | null;
    net_tx_mbps: number | null;
    fabric_rx_mbps: number | null;
    fabric_tx_mbps: number | null;
  } | null;
  gpus: Gpu[];
  collectors: Collector[];
  incidents: Incident[];
  repair: RepairSummary | null;
  /** what Slurm or Kubernetes said of it when last read; null: none is asked */
  scheduler?: NodeScheduler | null;
  ssh_command: string | null;
}

export interface NodeScheduler {
  kind: "slurm" | "kubernetes";
  read_at: string | null;
  /** why the last try to read failed; empty when it did not */
  error: string;
  state: "idle" | "allocated" | "down" | "unknown";
  /** it takes no new work, whoever said so */
  closed: boolean;
  reason: string;
  /** why what Muster asked for last was not done; empty when it was */
  said: string;
  jobs: SchedulerJob[];
}

export interface Transition {
  at: string;
  state: NodeState;
  reason: string | null;
}

export interface Grid {
  as_of_seq: number;
  version: number;
  at: string;
  n: number;
  names: string[];
  /** null unless asked for */
  ids: string[] | null;
  state: string;
  rack: { values: (string | null)[]; index: number[] };
  leaf: { values: (string | null)[]; index: number[] };
  util: (number | null)[];
  mem: (number | null)[];
  temp: (number | null)[];
  age: (number | null)[];
}

export interface Device {
  id: string;
  node_id: string;
  type: string;
  serial: string;
  index: number | null;
  pci: string | null;
  model: string | null;
  firmware: string | null;
  memory_mib: number | null;
  note: string | null;
  present: boolean;
  first_seen_at: string;
  last_seen_at: string;
  version: number;
}

export interface Event {
  seq: number;
  at: string;
  type: string;
  severity: Severity;
  cluster_id: string | null;
  node_id: string | null;
  node_name: string | null;
  incident_id: string | null;
  repair_id: string | null;
  actor: string | null;
  summary: string;
  data: Record<string, unknown> | null;
}

export interface EvidenceLine {
  at: string;
  source: string;
  text: string;
  opened: boolean;
}

export interface Incident {
  id: string;
  no: number;
  cluster_id: string;
  /** null: a cause that many nodes share */
  node_id: string | null;
  node_name: string | null;
  mode: "live" | "shadow";
  device: string | null;
  check_id: string;
  code: string | number | null;
  severity: Severity;
  action: string | null;
  node_fault: boolean;
  clears: string;
  quiet_seconds: number | null;
  clear_rule: string;
  summary: string;
  evidence: EvidenceLine[];
  count: number;
  first_at: string;
  last_at: string;
  closed_at: string | null;
  close_reason: string | null;
  closed_by: string | null;
  note: string | null;
  state: "open" | "closed";
  repair_id: string | null;
  /** the incident of the same node that this one follows from */
  root_id: string | null;
  /** the common cause that it belongs to: repairs that start by themselves are held */
  common_id: string | null;
  members: IncidentMember[];
  /** of the part; "": not known */
  serial: string;
  /** such incidents of this part in 30 days, this one included */
  repeats: number;
  /** why another action than the check's holds; "": it does not */
  action_reason: string;
  version: number;
}

/** What follows from an incident. */
export interface IncidentMember {
  id: string;
  no: number;
  node_id: string | null;
  node_name: string | null;
  check_id: string;
  code: string;
  device: string;
  severity: Severity;
  summary: string;
  count: number;
  state: "open" | "closed";
}

/** A reason why a repair does not start. */
export interface WhyNot {
  code: string;
  detail: string;
}

/** What a scheduler says that runs on a node. */
export interface SchedulerJob {
  id: string;
  user: string;
  name: string;
  /** on this node; null: not known */
  gpus: number | null;
  started_at: string | null;
  /** how many it runs on, this one included */
  nodes: number;
  /** why it is not moved away without a person; empty when it can be */
  blocked: string;
}

export interface Plan {
  node: { id: string; name: string };
  boot_id: string | null;
  action: string;
  /** how it is carried out; null: nothing here can */
  how?: string | null;
  keeps: string;
  loses: string | null;
  seconds_expected: number;
  evidence: {
    incident_id: string;
    no: number;
    check_id: string;
    code: string | number | null;
    device: string | null;
    summary: string;
    first_at: string;
    count: number;
    lines: (string | EvidenceLine)[];
  }[];
  jobs: SchedulerJob[];
  capacity: { healthy_before: number; healthy_after: number; nodes: number };
  domain: { rack: string | null; leaf: string | null; others_down: number };
  /** the cluster's pool; null where nothing installs machines, absent in older plans */
  spare?: { available: number; total: number } | null;
  limits: { running: number; max_running: number; attempt: number; attempts_max: number; why_not?: WhyNot[] };
  rule: { check_id: string; right: number; total: number; days: number } | null;
  made_at: string;
  policy: { healthy_delay_seconds: number; begin_within_seconds: number; rejoin_within_seconds: number; version?: string };
}

export type RepairState =
  | "proposed" | "approved" | "cordoning" | "draining" | "acting" | "rejoining" | "verifying"
  | "unknown" | "succeeded" | "failed" | "rejected" | "cancelled" | "resolved";

export interface RepairStep {
  n: number;
  state: RepairState;
  detail: string | null;
  actor: string | null;
  started_at: string;
  ended_at: string | null;
}

export interface Repair {
  id: string;
  no: number;
  cluster_id: string;
  node_id: string;
  node_name: string;
  incident_id: string | null;
  action: string;
  state: RepairState;
  state_since: string;
  deadline_at: string | null;
  reason: string;
  requested_by: string;
  decided_by: string | null;
  decided_at: string | null;
  comment: string | null;
  plan: Plan | null;
  plan_hash: string;
  attempt: number;
  created_at: string;
  ended_at: string | null;
  version: number;
  steps: RepairStep[];
  can_approve: boolean;
  blocked: string | null;
  /** a policy decided it */
  automatic?: boolean;
  why_not?: WhyNot[];
  /** when a policy on trial would have approved it */
  would_at?: string | null;
  /** of two people: the first */
  first_approver?: string | null;
  batch_id?: string | null;
  wave?: number | null;
}

/** An open repair as its node shows it. */
export type RepairSummary = Omit<Repair, "plan" | "steps" | "can_approve" | "blocked" | "automatic" | "why_not" | "would_at" | "first_approver" | "batch_id" | "wave">;

export interface CheckRow {
  check_id: string;
  title: string;
  kind: "passive" | "active";
  cells: string;
  passed_ratio: number | null;
  worst: { node_id: string; name: string; summary: string }[];
}

export interface CheckMatrix {
  since: string;
  until: string;
  bucket_seconds: number;
  coverage: string;
  rows: CheckRow[];
}

export interface JoinToken {
  id: string;
  token: string;
  uses_left: number;
  expires_at: string;
  host_name: string | null;
  cidr: string | null;
  rejoin: "ask" | "auto" | null;
  created_by: string;
  created_at: string;
}

/** What a stream sends for an event: thin, the rest is re-read. */
export interface StreamEvent {
  type: string;
  seq: number;
  at: string;
  severity: Severity;
  cluster_id: string | null;
  node_id: string | null;
  incident_id: string | null;
  repair_id: string | null;
  summary: string;
}
