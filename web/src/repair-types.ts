/* The JSON of policies, stops, breakers and figures over repairs, as far as the console reads it. */
import type { Plan } from "./types";

export interface GuardItem {
  reach: "org" | "cluster" | "node" | (string & {});
  target_id: string;
  cluster_id: string | null;
  name: string | null;
  /** null: no person has stopped repairs */
  stopped_at: string | null;
  stopped_by: string;
  stop_comment: string;
  lifted_at: string | null;
  /** null: the breaker is closed */
  opened_at: string | null;
  open_reason: string;
  reset_at: string | null;
  reset_by: string;
  reset_comment: string;
  version: number;
}

/** What holds repairs back. */
export interface Guard {
  platform: Pick<GuardItem, "stopped_at" | "stopped_by" | "stop_comment" | "opened_at" | "open_reason">;
  items: GuardItem[];
  stopped: boolean;
  breaker_open: boolean;
  /** repairs that wait for a person */
  waiting: number;
}

export type PolicyMode = "confirm" | "automatic" | "warn";

export type PolicyNumber =
  | "idle_wait_seconds" | "grace_seconds" | "concurrency_percent" | "concurrency_max" | "unhealthy_stop_percent" | "starts_percent" | "starts_min"
  | "same_kind_permille" | "same_kind_min" | "same_kind_seconds" | "domain_max" | "lemon_incidents" | "lemon_days" | "cooldown_seconds" | "settle_seconds"
  | "attempts_reset_gpu" | "attempts_reboot" | "attempts_power_cycle" | "attempts_reprovision" | "attempts_failover"
  | "breaker_percent" | "breaker_floor" | "breaker_seconds" | "breaker_failures";

export type PolicySettings = Record<PolicyNumber, number> & {
  mode: PolicyMode;
  automatic: string[];
  confirm: string[];
  warn: string[];
  actions: string[];
  windows: string[];
  time_zone: string;
  idle: "never_interrupt" | "grace";
  second_approver: string[];
  dry_run: boolean;
};

export interface Policy {
  id: string;
  cluster_id: string | null;
  node_id: string | null;
  cluster_name: string | null;
  node_name: string | null;
  settings: PolicySettings;
  updated_by: string;
  created_at: string;
  updated_at: string;
  version: number;
}

export interface PolicyEffective {
  policy_id: string | null;
  reach: "default" | "org" | "cluster" | "node";
  version: number;
  settings: PolicySettings;
}

export interface ReplayItem {
  cluster_id: string;
  node_id: string;
  node_name: string;
  check_id: string;
  code: string;
  action: string;
  at: string;
  decision: "start" | "held" | "closed";
  started_at: string | null;
  running_job: boolean;
  why_not: string[];
}

export interface PolicyReplay {
  since: string;
  until: string;
  faults: number;
  starts: number;
  with_running_job: number;
  closed_before: number;
  breaker_trips: number;
  complete: boolean;
  by_action: { action: string; starts: number }[];
  by_reason: { code: string; faults: number }[];
  unmatched: string[];
  items: ReplayItem[];
}

export interface RepairStatistics {
  since: string;
  until: string;
  by_action: {
    action: string;
    repairs: number;
    succeeded: number;
    automatic: number;
    mean_to_repair_seconds: number | null;
    median_to_repair_seconds: number | null;
    mean_to_decide_seconds: number | null;
    mean_to_carry_out_seconds: number | null;
  }[];
  by_rule: { check_id: string; code: string; repairs: number; right: number; right_ratio: number }[];
  incidents: number;
  node_faults: number;
  lost_node_hours: number;
  lost_gpu_hours: number;
  lost_most: { node_id: string; node_name: string; hours: number }[];
}

export interface RepairPreview {
  dry_run: boolean;
  action: string;
  plan: Plan;
  plan_hash: string;
  can_approve: boolean;
}

