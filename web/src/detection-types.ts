/* The JSON of checks, their overrides and what follows a serial, as far as the console reads it. */
import type { Incident, Severity } from "./types";

export type CheckMode = "live" | "shadow" | "off";

export interface CheckOverride {
  id: string;
  check_id: string;
  cluster_id: string | null;
  /** "": every type */
  gpu_type: string;
  mode: CheckMode | null;
  severity: Severity | null;
  action: string | null;
  threshold: number | null;
  looks: number | null;
  clear_looks: number | null;
  /** in shadow until then: its change is on trial */
  shadow_until: string | null;
  reason: string;
  created_by: string;
  created_at: string;
  updated_at: string;
  version: number;
}

export interface Check {
  check_id: string;
  title: string;
  source: string;
  kind: "passive" | "active";
  severity: Severity;
  action: string;
  node_fault: boolean;
  clears: string;
  clear_rule: string;
  /** events from which on an incident counts */
  threshold: number;
  /** most that an override may set; 1: it does not count */
  threshold_max: number;
  /** looks in a row that must find it before it is told; null: not judged so */
  looks: number | null;
  /** looks in a row that must not find it before it ends */
  clear_looks: number | null;
  /** without an event for so long it clears; 0: another rule */
  window_seconds: number;
  family: string | null;
  settles: boolean;
  boot_grace: boolean;
  settable: string[];
  /** what holds for all of the organization */
  effective: { mode: CheckMode; severity: Severity; action: string; threshold: number; looks: number | null; clear_looks: number | null; shadow_until: string | null; source: string; override_id: string | null };
  overrides: CheckOverride[];
}

export interface CheckList {
  items: Check[];
  /** so long after its beginning a repair of a fault that settles is proposed */
  settle_seconds: number;
  /** so long after a boot or a change of driver what is missing is a warning */
  boot_grace_seconds: number;
}

export interface CheckCounts {
  opened: number;
  closed: number;
  shadowed: number;
  nodes_down: number;
  proposed: number;
}

export interface OverrideEffect {
  since: string;
  until: string;
  events: number;
  incidents: number;
  before: CheckCounts;
  after: CheckCounts;
}

export type SerialIncident = Pick<
  Incident,
  "id" | "no" | "cluster_id" | "node_id" | "node_name" | "device" | "check_id" | "code" | "severity" | "action" | "node_fault" | "summary" | "count" | "first_at" | "last_at" | "closed_at" | "close_reason" | "state"
>;

export interface DeviceHistory {
  type: string;
  serial: string;
  places: { device_id: string; node_id: string; node_name: string; cluster_id: string; pci: string; present: boolean; first_seen_at: string; last_seen_at: string }[];
  incidents: SerialIncident[];
}

export interface MachineHistory {
  /** "": not known; then only the node itself is shown */
  host_serial: string;
  nodes: { id: string; name: string; cluster_id: string; host_serial: string; created_at: string; joined_at: string | null; removed_at: string | null }[];
  incidents: SerialIncident[];
}

export interface SerialFound {
  kind: "device" | "node";
  type: string;
  serial: string;
  id: string;
  node_id: string;
  node_name: string;
  cluster_id: string;
  present: boolean;
  first_seen_at: string;
  last_seen_at: string;
}

/** The rule of an own check: of a metric or of a command. */
export interface OwnDefinition {
  metric?: string;
  comparison?: "above" | "below";
  threshold?: number;
  clear_threshold?: number;
  for_seconds?: number;
  argv?: string[];
  script?: string;
  user?: string;
  interval_seconds?: number;
  timeout_seconds?: number;
  output_bytes?: number;
  raise_after?: number;
  clear_after?: number;
}

export interface OwnCheck {
  id: string;
  name: string;
  check_id: string;
  title: string;
  kind: "command" | "metric";
  cluster_id: string | null;
  gpu_type: string;
  severity: Severity;
  action: string;
  mode: CheckMode;
  /** in shadow until then, whatever the mode */
  shadow_until: string | null;
  definition: OwnDefinition;
  reason: string;
  created_by: string;
  updated_by: string;
  created_at: string;
  updated_at: string;
  version: number;
}

export interface OwnCheckVersion {
  version: number;
  at: string;
  author: string;
  reason: string;
  body: Record<string, unknown>;
  changed: { field: string; before: unknown; after: unknown }[];
}

export interface OwnCheckEffect {
  since: string;
  until: string;
  nodes: number;
  incidents: number;
  worst: { node_id: string; node_name: string; incidents: number; first_at: string; last_at: string }[];
}
