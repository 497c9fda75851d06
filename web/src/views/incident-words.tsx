/* An incident in words: how long it lasted and how it ended. */
import { now, parse, span } from "../time";
import type { Incident } from "../types";
import { byMuster } from "./repair-words";

export function lasted(incident: Incident): string {
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
