/* How a check judges, in words: where it reads, from how many events it counts, when it clears, how it is set and where. */
import type { Check, CheckMode, CheckOverride } from "../detection-types";
import { action, count, counted } from "../format";
import { moment, now, parse, span } from "../time";
import type { ClusterItem } from "../types";

const SOURCES: Record<string, string> = {
  kmsg: "kernel log",
  gpu: "NVML",
  fabric_manager: "fabric manager",
  expected: "inventory",
  fabric: "InfiniBand counters",
  links: "Ethernet links",
  pcie: "PCIe",
  smart: "SMART",
  disk: "disks",
  mounts: "mounts",
  processes: "processes",
  chrony: "chrony",
  services: "systemd",
  slurm: "Slurm",
  agent: "the agent",
  server: "the server",
  person: "a person",
};

export function sourceWords(source: string): string {
  return SOURCES[source] ?? source.replace(/_/g, " ");
}

/** From how much on an incident counts: as delivered, or as it holds. */
export function thresholdWords(rule: Pick<Check, "threshold" | "looks">): string {
  return [rule.threshold > 1 ? `from ${count(rule.threshold)} events` : rule.looks === null ? "the first event" : null, rule.looks && counted(rule.looks, "look") + (rule.looks > 1 ? " in a row" : "")].filter(Boolean).join(", ");
}

export function windowWords(check: Check): string {
  return check.window_seconds > 0 ? span(check.window_seconds * 1000) : "";
}

export function actionWords(name: string | null): string {
  return !name || name === "none" ? "nothing" : action(name);
}

/** "Clears when …" without its first word, for a column that says so. */
export function clearWords(check: Check): string {
  return check.clear_rule.replace(/^Clears /, "").replace(/\.$/, "");
}

/** How near an override is to a node: the nearest holds. */
export function rank(override: CheckOverride): number {
  return (override.cluster_id ? 2 : 0) + (override.gpu_type ? 1 : 0);
}

export function placeWords(override: Pick<CheckOverride, "cluster_id" | "gpu_type">, clusters: readonly ClusterItem[], org: string): string {
  const cluster = override.cluster_id ? (clusters.find((one) => one.id === override.cluster_id)?.name ?? "a cluster") : null;
  const where = cluster ? `cluster ${cluster}` : `all of ${org}`;
  return override.gpu_type ? `${override.gpu_type} in ${where}` : where;
}

/** The end of a trial that still runs, in milliseconds; null: none runs. */
export function trialEnd(shadowUntil: string | null): number | null {
  const at = parse(shadowUntil);
  return at !== null && at > now.value ? at : null;
}

/** How an override stands: in its trial it is in shadow, whatever its mode. */
export function modeOf(override: Pick<CheckOverride, "mode" | "shadow_until">): CheckMode | null {
  return trialEnd(override.shadow_until) !== null ? "shadow" : override.mode;
}

/** "in shadow until Thu 14:28". */
export function untilWords(end: number): string {
  return `in shadow until ${moment(end, now.value)}`;
}

export const MODE_WORD: Record<string, string> = { live: "Live", shadow: "In shadow", off: "Off" };

const FAMILIES: Record<string, string> = { gpu: "GPU", network: "network", disk: "disks", files: "file systems", power: "power", cooling: "cooling", kernel: "kernel" };

export function familyWords(family: string | null): string {
  return family === "*" ? "any fault: it follows from one" : family ? `checks of the ${FAMILIES[family] ?? family} on the same part` : "";
}

/** What an override sets, in words: "shadow; at most warning; from 5 events". */
export function setWords(override: Pick<CheckOverride, "mode" | "severity" | "action" | "threshold" | "looks" | "clear_looks" | "shadow_until">): string {
  const trial = trialEnd(override.shadow_until);
  const parts = [
    trial !== null ? untilWords(trial) : override.mode && (override.mode === "live" ? "live" : override.mode === "shadow" ? "in shadow" : "off"),
    override.severity && `at most ${override.severity}`,
    override.action && `asks for ${actionWords(override.action)}`,
    override.threshold && `from ${counted(override.threshold, "event")}`,
    override.looks && `told after ${counted(override.looks, "look")}`,
    override.clear_looks && `ends after ${counted(override.clear_looks, "look")} without it`,
  ].filter(Boolean);
  return parts.join("; ") || "nothing";
}

/** How it stands where nothing nearer is set, until when if that is a trial, and whether some place differs. */
export function standing(check: Check): { everywhere: CheckMode; until: number | null; elsewhere: number } {
  return { everywhere: check.effective.mode, until: check.effective.mode === "shadow" ? trialEnd(check.effective.shadow_until) : null, elsewhere: check.overrides.filter((one) => rank(one) > 0).length };
}

export interface CheckFilter {
  text: string;
  source: string;
  severity: string;
  set: string;
}

export function shown(check: Check, filter: CheckFilter): boolean {
  const words = `${check.check_id} ${check.title} ${check.clear_rule} ${sourceWords(check.source)}`.toLowerCase();
  const wanted = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const modes = check.overrides.map(modeOf);
  const set = { "": true, set: check.overrides.length > 0, shadow: modes.includes("shadow"), off: modes.includes("off"), faults: check.node_fault }[filter.set] ?? true;
  return wanted.every((word) => words.includes(word)) && (!filter.source || check.source === filter.source) && (!filter.severity || check.effective.severity === filter.severity) && set;
}

function change(now: number, then: number): string {
  const by = then - now;
  return by === 0 ? "as now" : `${count(Math.abs(by))} ${by < 0 ? "fewer" : "more"} than now`;
}

/** "It would have opened 4 incidents, 1 fewer than now, and put 3 nodes out of use, as now." */
export function effectWords(effect: { before: { opened: number; nodes_down: number }; after: { opened: number; nodes_down: number } }): [fact: string, rest: string, second: string, tail: string] {
  return [
    counted(effect.after.opened, "incident"),
    `, ${change(effect.before.opened, effect.after.opened)}`,
    counted(effect.after.nodes_down, "node"),
    `, ${change(effect.before.nodes_down, effect.after.nodes_down)}`,
  ];
}
