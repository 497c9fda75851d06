/* States in words and in order, and what a roll-up says in one word. Nothing here needs a page. */
import type { NodeState, Rollup } from "../types";

/** The order of states everywhere: worst news first after the healthy ones. */
export const STATES: readonly NodeState[] = ["healthy", "unhealthy", "repairing", "starting", "pending", "paused", "unknown"];
export const NOT_HEALTHY: readonly NodeState[] = STATES.slice(1);

export type MarkKind = NodeState | "warning";

export const STATE_WORD: Record<MarkKind, string> = {
  healthy: "Healthy",
  warning: "Healthy, warning",
  unhealthy: "Unhealthy",
  repairing: "Repairing",
  starting: "Starting",
  paused: "Paused",
  pending: "Pending",
  unknown: "Unknown",
};

export function markKind(state: NodeState, warning: boolean): MarkKind {
  return state === "healthy" && warning ? "warning" : state;
}

const BAR_SMALLEST = 8; /* a state that exists can be seen */
export const BAR_GAP = 2;

/** Widths of the segments; a state with nodes is never below the smallest. */
export function barWidths(counts: number[], width: number, smallest = BAR_SMALLEST, gap = BAR_GAP): number[] {
  const total = counts.reduce((sum, n) => sum + n, 0);
  const shown = counts.filter((n) => n > 0).length;
  const room = width - gap * Math.max(0, shown - 1);
  if (total === 0) {
    return counts.map(() => 0);
  }
  const raised = counts.map((n) => (n > 0 ? Math.max(smallest, (n / total) * room) : 0));
  const over = raised.reduce((sum, n) => sum + n, 0) - room;
  const largest = raised.indexOf(Math.max(...raised));
  return raised.map((n, i) => (i === largest ? n - over : n));
}

const WORST_FIRST: readonly NodeState[] = ["unhealthy", "unknown", "repairing", "starting", "paused", "pending"];

/** The mark of a whole cluster: its worst news; unknown where nobody has been heard. */
export function clusterMark(rollup: Rollup | null): MarkKind {
  if (!rollup || rollup.nodes === 0) {
    return "pending";
  }
  if (rollup.states.unknown === rollup.nodes) {
    return "unknown";
  }
  return WORST_FIRST.find((state) => rollup.states[state] > 0) ?? (rollup.warning > 0 ? "warning" : "healthy");
}

export function notHealthy(rollup: Rollup): number {
  return rollup.nodes - rollup.states.healthy;
}
