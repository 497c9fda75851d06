/* The settings of a policy: what each number means, its bounds, its default and why, and what a form makes of it. */
import type { PolicyMode, PolicyNumber, PolicySettings } from "../repair-types";

export interface NumberRow {
  name: PolicyNumber;
  label: string;
  min: number;
  max: number;
  /** as the server has it; a test compares the two with the document of the API */
  fallback: number;
  unit: "" | "%" | "‰" | "s" | "days";
  /** what it is for, and why that default */
  help: string;
}

export interface NumberGroup {
  title: string;
  hint: string;
  rows: readonly NumberRow[];
}

const row = (name: PolicyNumber, label: string, min: number, max: number, fallback: number, unit: NumberRow["unit"], help: string): NumberRow => ({ name, label, min, max, fallback, unit, help });

/** Jobs stand beside the choice of what becomes of them. */
export const IDLE_ROWS: readonly NumberRow[] = [
  row("idle_wait_seconds", "Wait for jobs at most", 0, 2_592_000, 604_800, "s", "The node takes no new work meanwhile; a week outlasts nearly every job."),
  row("grace_seconds", "Grace before a job is ended", 0, 86_400, 300, "s", "Only where jobs may be ended: time to write a checkpoint."),
];

export const GROUPS: readonly NumberGroup[] = [
  {
    title: "How many at once",
    hint: "they hold for automatic repairs; approved ones wait for them too",
    rows: [
      row("concurrency_percent", "Nodes under repair", 0, 100, 2, "%", "Of the cluster; at least 1. It shrinks as more nodes are down, a node under repair counted."),
      row("concurrency_max", "Repairs at once, at most", 0, 1000, 20, "", "Whatever the share says."),
      row("unhealthy_stop_percent", "Stop when so many are down", 1, 100, 20, "%", "So many bad nodes at once have a cause that a repair of each does not cure."),
      row("domain_max", "Per rack or leaf", 1, 1000, 1, "", "Two repairs behind one switch can hide that the switch is the fault."),
    ],
  },
  {
    title: "How fast",
    hint: "counted over one hour",
    rows: [
      row("starts_percent", "Starts an hour", 0, 100, 1, "%", "Of the cluster; the greater of this and the next."),
      row("starts_min", "Starts an hour, at least", 0, 1000, 2, "", "So that small clusters are repaired too."),
      row("cooldown_seconds", "Rest after a repair", 0, 604_800, 1800, "s", "A node that was just repaired is watched before it is touched again."),
      row("settle_seconds", "Wait for neighbours", 0, 3600, 90, "s", "Where a switch or file server may be the cause, its other nodes speak up within this."),
    ],
  },
  {
    title: "Faults of one kind",
    hint: "many alike at once are one cause, not many repairs",
    rows: [
      row("same_kind_permille", "Nodes with the same fault", 1, 1000, 5, "‰", "Of the cluster; the greater of this and the next holds the kind."),
      row("same_kind_min", "Same fault, at least", 2, 1000, 5, "", "In a small cluster the share alone would be one node."),
      row("same_kind_seconds", "Counted over", 60, 86_400, 3600, "s", "Later ones count as another event."),
      row("lemon_incidents", "Faults that make a lemon", 1, 1000, 3, "", "A node that fails so often is left to a person."),
      row("lemon_days", "Counted over days", 1, 90, 30, "days", "Faults that came within ten minutes count once."),
    ],
  },
  {
    title: "Attempts in 7 days",
    hint: "for one node and check; then the next step of the ladder, at last a person",
    rows: [
      row("attempts_reset_gpu", "Reset GPU", 0, 20, 2, "", "Then a reboot is proposed."),
      row("attempts_reboot", "Reboot", 0, 20, 2, "", "Then a power cycle is proposed."),
      row("attempts_power_cycle", "Power cycle", 0, 20, 1, "", "Then a person is needed."),
      row("attempts_reprovision", "Reprovision", 0, 20, 1, "", "Only for faults of software and disks; data is lost."),
      row("attempts_failover", "Failover", 0, 20, 1, "", "It uses up a spare."),
    ],
  },
  {
    title: "Breaker",
    hint: "opens by itself, is closed by a person",
    rows: [
      row("breaker_percent", "Nodes that became unhealthy", 1, 100, 20, "%", "So many within the time below open it."),
      row("breaker_floor", "But at least nodes", 1, 1000, 3, "", "In a small cluster one node is a large share."),
      row("breaker_seconds", "Within", 10, 86_400, 300, "s", "Faults of a power feed or a switch arrive together."),
      row("breaker_failures", "Failures of the last 5", 0, 5, 5, "", "Automatic repairs within 6 hours; a step of the ladder cures 4 to 7 of 10 faults, so fewer would open it for nothing. 0: never."),
    ],
  },
];

export const NUMBERS: readonly NumberRow[] = [...IDLE_ROWS, ...GROUPS.flatMap((group) => group.rows)];

/** What may start by itself; a removal never does. */
export const STARTABLE = ["reset_gpu", "reboot", "power_cycle", "reprovision", "failover"] as const;
export const DECIDABLE = [...STARTABLE, "remove"] as const;

export const DEFAULT_SETTINGS: PolicySettings = {
  ...(Object.fromEntries(NUMBERS.map((one) => [one.name, one.fallback])) as Record<PolicyNumber, number>),
  mode: "confirm",
  automatic: [],
  confirm: [],
  warn: [],
  actions: ["reset_gpu", "reboot", "power_cycle"],
  windows: [],
  time_zone: "UTC",
  idle: "never_interrupt",
  second_approver: [],
  dry_run: false,
};

export const MODE_WORDS: Record<PolicyMode, string> = { confirm: "Ask", automatic: "Automatic", warn: "Warn only" };

/** The mode that the lists give to a fault, or null where none names it. */
export function listed(settings: PolicySettings, fault: string): PolicyMode | null {
  return (["confirm", "warn", "automatic"] as const).find((mode) => settings[mode].includes(fault)) ?? null;
}

/** The settings with one fault in another mode; null: what others have. */
export function withMode(settings: PolicySettings, fault: string, mode: PolicyMode | null): PolicySettings {
  const without = (list: string[]) => list.filter((one) => one !== fault);
  const next = { ...settings, automatic: without(settings.automatic), confirm: without(settings.confirm), warn: without(settings.warn) };
  return mode ? { ...next, [mode]: [...next[mode], fault] } : next;
}

/** Seconds are typed in the largest unit that keeps them whole. */
export function shownUnit(one: NumberRow, value: number): { factor: number; unit: string } {
  if (one.unit !== "s") {
    return { factor: 1, unit: one.unit };
  }
  return value >= 3600 && value % 3600 === 0 ? { factor: 3600, unit: "h" } : value >= 60 && value % 60 === 0 ? { factor: 60, unit: "min" } : { factor: 1, unit: "s" };
}

/** "300 s", "5 min", "20 %". */
export function amount(one: NumberRow, value: number): string {
  const { factor, unit } = shownUnit(one, value);
  return `${value / factor}${unit ? ` ${unit}` : ""}`;
}

/** What was typed: a whole number within the bounds, or what is wrong with it. */
export function readNumber(one: NumberRow, text: string, factor: number): { value: number } | { error: string } {
  const bounds = `${amount(one, one.min)} to ${amount(one, one.max)}`;
  if (!/^\d{1,9}(\.\d+)?$/.test(text.trim())) {
    return { error: `Type a number from ${bounds}.` };
  }
  const value = Number(text) * factor;
  return !Number.isInteger(value) ? { error: "It must be a whole number of seconds." } : value < one.min || value > one.max ? { error: `Allowed are ${bounds}.` } : { value };
}

const DAYS = "(?:mon|tue|wed|thu|fri|sat|sun)";
const WINDOW = new RegExp(`^${DAYS}(?:-${DAYS})?(?:,${DAYS}(?:-${DAYS})?)* (?:[01]\\d|2[0-3]):[0-5]\\d-(?:(?:[01]\\d|2[0-3]):[0-5]\\d|24:00)$`);
const MOST_WINDOWS = 14;

/** What is wrong with the lines of hours, or null. */
export function windowsError(lines: readonly string[]): string | null {
  const bad = lines.findIndex((line) => !WINDOW.test(line));
  if (bad >= 0) {
    return `Line ${bad + 1} cannot be read. Write days and hours: mon-fri 22:00-06:00, or sat,sun 00:00-24:00.`;
  }
  return lines.length > MOST_WINDOWS ? `At most ${MOST_WINDOWS} lines.` : null;
}

/** A check, or a check and a code. */
export function faultError(text: string): string | null {
  return /^[a-z0-9_.-]{1,63}(?::[^,\s]{1,63})?$/.test(text) ? null : "Write a check, or a check and a code: gpu_xid:119.";
}

export type Change = { name: string; label: string; from: string; to: string };

const LABELS: Record<string, string> = {
  mode: "Other faults", automatic: "Automatic", confirm: "Ask", warn: "Warn only", actions: "May start by themselves", windows: "Hours", time_zone: "Time zone",
  idle: "Jobs", second_approver: "Two people", dry_run: "On trial",
};

function told(name: string, value: unknown): string {
  const number = NUMBERS.find((one) => one.name === name);
  if (number && typeof value === "number") {
    return amount(number, value);
  }
  return Array.isArray(value) ? value.join(", ") || "none" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value).replace(/_/g, " ");
}

/** What differs between two policies, field by field. */
export function changesOf(before: PolicySettings, after: PolicySettings): Change[] {
  return (Object.keys(DEFAULT_SETTINGS) as (keyof PolicySettings)[])
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => ({ name, label: LABELS[name] ?? NUMBERS.find((one) => one.name === name)?.label ?? name, from: told(name, before[name]), to: told(name, after[name]) }));
}

/** Only what differs, as a body of a change. */
export function changedFields(before: PolicySettings, after: PolicySettings): Partial<PolicySettings> {
  return Object.fromEntries(changesOf(before, after).map((one) => [one.name, after[one.name as keyof PolicySettings]])) as Partial<PolicySettings>;
}
