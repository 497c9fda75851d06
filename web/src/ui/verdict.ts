/* What a roll-up says in one word and one sentence. */
import type { NodeState, Rollup } from "../types";
import type { MarkKind } from "./marks";

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
