/* How a check judges, in words: where it reads, from how many events it counts, when it clears, how it is set and where. */
import type { Check, CheckOverride } from "../detection-types";
import { action, count, counted } from "../format";
import { span } from "../time";
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

export function thresholdWords(check: Check): string {
  return check.threshold > 1 ? `from ${count(check.threshold)} events` : "the first event";
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

export const MODE_WORD: Record<string, string> = { live: "Live", shadow: "In shadow", off: "Off" };

const FAMILIES: Record<string, string> = { gpu: "GPU", network: "network", disk: "disks", files: "file systems", power: "power", cooling: "cooling", kernel: "kernel" };

export function familyWords(family: string | null): string {
  return family === "*" ? "any fault: it follows from one" : family ? `checks of the ${FAMILIES[family] ?? family} on the same part` : "";
}

/** What an override sets, in words: "shadow; at most warning; from 5 events". */
export function setWords(override: Pick<CheckOverride, "mode" | "severity" | "action" | "threshold">): string {
  const parts = [
    override.mode && (override.mode === "live" ? "live" : override.mode === "shadow" ? "in shadow" : "off"),
    override.severity && `at most ${override.severity}`,
    override.action && `asks for ${actionWords(override.action)}`,
    override.threshold && `from ${counted(override.threshold, "event")}`,
  ].filter(Boolean);
  return parts.join("; ") || "nothing";
}

export type Standing = "live" | "shadow" | "off" | "mixed";

/** How it stands where nothing nearer is set, and whether some place differs. */
export function standing(check: Check): { everywhere: "live" | "shadow" | "off"; elsewhere: number } {
  const base = check.overrides.find((one) => rank(one) === 0);
  return { everywhere: base?.mode ?? "live", elsewhere: check.overrides.filter((one) => rank(one) > 0).length };
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
  const modes = check.overrides.map((one) => one.mode);
  const set = { "": true, set: check.overrides.length > 0, shadow: modes.includes("shadow"), off: modes.includes("off"), faults: check.node_fault }[filter.set] ?? true;
  return wanted.every((word) => words.includes(word)) && (!filter.source || check.source === filter.source) && (!filter.severity || check.severity === filter.severity) && set;
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
