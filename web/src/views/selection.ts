/* Which nodes are selected: the same in list and grid, kept in the address while it is short. */
import { computed, signal } from "@preact/signals";
import { query, setQuery } from "../router";

const LONGEST_IN_ADDRESS = 25;

const kept = signal<ReadonlySet<string>>(new Set());
const keptFor = signal("");
/** ids of names that have been shown */
const ids = new Map<string, string>();

export const selection = computed<ReadonlySet<string>>(() => {
  const inAddress = query.value.get("sel");
  return inAddress ? new Set(inAddress.split(",")) : kept.value;
});

/** Another cluster begins with nothing selected. */
export function selectIn(clusterId: string): void {
  if (keptFor.peek() !== clusterId) {
    keptFor.value = clusterId;
    kept.value = new Set();
    ids.clear();
  }
}

export function learnIds(rows: Iterable<{ id: string; name: string }>): void {
  for (const row of rows) {
    ids.set(row.name, row.id);
  }
}

export function idOfName(name: string): string | null {
  return ids.get(name) ?? null;
}

export function select(names: ReadonlySet<string>): void {
  kept.value = names;
  const short = names.size > 0 && names.size <= LONGEST_IN_ADDRESS;
  setQuery({ sel: short ? [...names].join(",") : null });
}

export function toggle(name: string, on = !selection.peek().has(name)): void {
  const next = new Set(selection.peek());
  if (on) {
    next.add(name);
  } else {
    next.delete(name);
  }
  select(next);
}
