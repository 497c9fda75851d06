/* What the filter bar of nodes understands, which part the server answers, and which is looked at here. */
import type { Group } from "./heatmap";
import { wanted, satisfies, type Filter, type Spec, type Term } from "../filter";
import { withQuery } from "../api";
import type { Grid, NodeState, NodeSummary } from "../types";
import { STATES } from "../ui/verdict";

export const NODE_SPEC: Spec = {
  state: { ops: [":"], values: STATES },
  warning: { ops: [":"], values: ["yes", "no"] },
  rack: { ops: [":"] },
  leaf: { ops: [":"] },
  util: { ops: ["<", ">"], number: true },
  mem: { ops: ["<", ">"], number: true },
  temp: { ops: ["<", ">"], number: true },
  seen: { ops: [">", "<"], number: true },
};

/** What one term is held against, the same for rows of the list and tiles of the grid. */
export interface Facts {
  name: string;
  state: NodeState;
  warning: boolean;
  rack: string;
  leaf: string;
  util: number | null;
  mem: number | null;
  temp: number | null;
  seen: number | null;
}

const NUMBERS = ["util", "mem", "temp", "seen"] as const;

function holdsTerm(term: Term, facts: Facts): boolean {
  const number = NUMBERS.find((key) => key === term.key);
  if (number) {
    return satisfies(term, facts[number]);
  }
  const equal: Record<string, boolean> = {
    state: facts.state === term.value,
    warning: facts.warning === (term.value === "yes"),
    rack: facts.rack === term.value,
    leaf: facts.leaf === term.value,
  };
  return (equal[term.key] ?? true) !== term.negated;
}

/** Terms of the same key are alternatives where they are equalities; all else must hold together. */
export function holds(filter: Filter, facts: Facts): boolean {
  if (filter.text && !facts.name.startsWith(filter.text)) {
    return false;
  }
  const alternatives = new Map<string, boolean>();
  for (const term of filter.terms) {
    const held = holdsTerm(term, facts);
    if (term.negated || term.op !== ":") {
      if (!held) {
        return false;
      }
    } else {
      alternatives.set(term.key, (alternatives.get(term.key) ?? false) || held);
    }
  }
  return [...alternatives.values()].every(Boolean);
}

export function factsOf(node: NodeSummary, now: number): Facts {
  const seen = node.seen_at ? (now - Date.parse(node.seen_at)) / 1000 : null;
  return {
    name: node.name,
    state: node.state,
    warning: node.warning,
    rack: node.rack ?? "",
    leaf: node.leaf ?? "",
    util: node.gpu_util_ratio === null ? null : node.gpu_util_ratio * 100,
    mem: node.gpu_mem_used_mib === null || !node.gpu_mem_total_mib ? null : (node.gpu_mem_used_mib / node.gpu_mem_total_mib) * 100,
    temp: node.gpu_temp_max_c,
    seen,
  };
}

const LETTERS: Record<string, NodeState> = { p: "pending", s: "starting", h: "healthy", u: "unhealthy", r: "repairing", a: "paused", k: "unknown" };

export function gridFacts(grid: Grid, i: number): Facts {
  const letter = grid.state[i] ?? "k";
  const small = letter.toLowerCase();
  return {
    name: grid.names[i] ?? "",
    state: LETTERS[small] ?? "unknown",
    warning: letter !== small,
    rack: grid.rack.values[grid.rack.index[i] ?? -1] ?? "",
    leaf: grid.leaf.values[grid.leaf.index[i] ?? -1] ?? "",
    util: grid.util[i] ?? null,
    mem: grid.mem[i] ?? null,
    temp: grid.temp[i] ?? null,
    seen: grid.age[i] ?? null,
  };
}

export type Sort = "state" | "name" | "-name";

/** The address of the first page: the server answers states, the beginning of a name, one rack and the warning. */
export function nodesPath(clusterId: string, filter: Filter, sort: Sort, limit: number): string {
  const racks = wanted(filter, "rack");
  const warning = wanted(filter, "warning");
  return withQuery(`/clusters/${clusterId}/nodes`, {
    state: wanted(filter, "state").filter((state) => (STATES as readonly string[]).includes(state)),
    q: filter.text,
    rack: racks.length === 1 ? racks[0] : null,
    warning: warning.length === 1 ? String(warning[0] === "yes") : null,
    sort,
    limit,
  });
}

/** Whether the server's answer is all there is to it, or rows have to be left out here. */
export function serverKnowsAll(filter: Filter): boolean {
  const one = (key: string) => wanted(filter, key).length <= 1;
  return filter.terms.every((term) => !term.negated && ["state", "warning", "rack"].includes(term.key)) && one("rack") && one("warning");
}

/** The tiles of the grid by place; one group without a name where nothing is known of places. */
export function groupsOf(facts: Facts[], by: string): Group[] {
  if (by === "none") {
    return [{ name: "", nodes: facts.map((_, i) => i) }];
  }
  const groups = new Map<string, number[]>();
  facts.forEach((one, i) => {
    const name = by === "leaf" ? one.leaf : one.rack;
    const found = groups.get(name);
    if (found) {
      found.push(i);
    } else {
      groups.set(name, [i]);
    }
  });
  if (groups.size === 1 && groups.has("")) {
    return [{ name: "", nodes: facts.map((_, i) => i) }];
  }
  return [...groups.entries()]
    .sort(([a], [b]) => (a === "" ? 1 : b === "" ? -1 : a.localeCompare(b, "en", { numeric: true })))
    .map(([name, nodes]) => ({ name: name || (by === "leaf" ? "no leaf" : "no rack"), nodes }));
}
