/* An incident in words: how grave it is, how long it lasted, how it ended, how often its part failed. */
import { counted } from "../format";
import { now, parse, span } from "../time";
import type { Incident } from "../types";
import { Mark, type MarkKind } from "../ui/marks";
import { byMuster } from "./repair-words";

export function lasted(incident: Pick<Incident, "first_at" | "closed_at">): string {
  return span((parse(incident.closed_at) ?? now.value) - (parse(incident.first_at) ?? 0));
}

const BY_ITSELF: Record<string, string> = { new_boot: "new boot", event: "condition gone", quiet: "quiet since" };

/** In two or three words; the whole reason is in the incident. */
export function endWords(incident: Incident): string {
  if (incident.closed_at === null) {
    return "open";
  }
  const repair = /repair (\d+)/.exec(incident.close_reason ?? "");
  if (repair) {
    return `repair ${repair[1]}`;
  }
  return byMuster(incident.closed_by) ? (BY_ITSELF[incident.clears] ?? "closed") : `by ${incident.closed_by}`;
}

export function End({ incident }: { incident: Incident }) {
  return incident.closed_at === null ? <b>open</b> : <span title={incident.close_reason ?? undefined}>{endWords(incident)}</span>;
}

type Judged = Pick<Incident, "node_fault" | "severity" | "closed_at"> & { mode?: Incident["mode"] };

export function resultOf(incident: Pick<Incident, "node_fault" | "severity">): "failed" | "warning" | "info" {
  return incident.node_fault || incident.severity === "critical" ? "failed" : incident.severity === "info" ? "info" : "warning";
}

const WORD = { failed: "Failed", warning: "Warning", info: "Info" } as const;

/** A dashed frame is what is recorded only: it changes nothing, so it wears no colour. */
export function incidentMark(incident: Judged): MarkKind {
  return incident.mode === "shadow" ? "pending" : incident.closed_at ? "healthy" : resultOf(incident) === "failed" ? "unhealthy" : "warning";
}

export function resultWords(incident: Judged): string {
  const word = incident.mode === "shadow" ? "In shadow" : WORD[resultOf(incident)];
  return incident.closed_at ? `${word}, over` : word;
}

export function Result({ incident }: { incident: Judged }) {
  return (
    <span class="st">
      <Mark kind={incidentMark(incident)} />
      {resultWords(incident)}
    </span>
  );
}

const NTH = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

export function nth(n: number): string {
  return NTH[n] ?? `${n}th`;
}

/** "third time in 30 days for this part", or null where it is the first. */
export function repeatWords(incident: Pick<Incident, "repeats" | "serial">): string | null {
  return incident.repeats > 1 ? `${nth(incident.repeats)} time in 30 days for ${incident.serial ? "this serial" : "this part"}` : null;
}

/** A part is a person's from its third fault on: what was tried twice is not tried again by itself. */
export const REPEATS_OF_A_LEMON = 3;

export function isCommon(incident: Pick<Incident, "node_id">): boolean {
  return incident.node_id === null;
}

/** The shared part of a common cause: its code is "rack r17", "PDU p3", "leaf leaf-06", "file server nas-1". */
export function sharedPart(incident: Incident): string {
  return String(incident.code ?? "") || "one part";
}

export function nodesOf(incident: Incident): { id: string; name: string }[] {
  const found = new Map<string, string>();
  for (const member of incident.members) {
    if (member.node_id) {
      found.set(member.node_id, member.node_name ?? member.node_id);
    }
  }
  return [...found].map(([id, name]) => ({ id, name })).sort((a, b) => a.name.localeCompare(b.name));
}

export function heldWords(incident: Incident): string {
  const n = nodesOf(incident).length || incident.count;
  return `Automatic repair of ${counted(n, "node")} is held`;
}
