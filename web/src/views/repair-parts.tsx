/* Pieces that every view of a repair has: the five steps, the evidence, how it ended, and its dialogs by address. */
import type { ComponentChildren } from "preact";
import { query, setQuery } from "../router";
import { may, me } from "../session";
import { clock, moment, now, parse, span } from "../time";
import type { EvidenceLine, Plan, Repair } from "../types";
import { Icon } from "../ui/icons";
import { Evidence, Steps, type Step } from "../ui/records";
import { OUTCOME_WEIGHT, outcome, stepName, WORK } from "./repair-words";

export type DialogName = "approve" | "cancel" | "settle";

/** Opens a dialog by its address, so that it can be sent to somebody; Back closes it. */
export function openDialog(name: string, more: Record<string, string | null> = {}): void {
  setQuery({ dialog: name, ...more }, {});
}

export function closeDialog(): void {
  setQuery({ dialog: null, repair: null, incident: null });
}

export function dialogNow(): { name: string | null; repair: string | null; incident: string | null } {
  const at = query.value;
  return { name: at.get("dialog"), repair: at.get("repair"), incident: at.get("incident") };
}

/** Why a control cannot be used by this person, or null. */
export function lacks(permission: string, doing: string): string | null {
  return may(permission) ? null : `${doing} needs the permission ${permission}. Somebody with the role admin in ${me.value?.org.title || me.value?.org.name} can give it.`;
}

function lower(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

function stepDetail(repair: Repair, at: number): ComponentChildren {
  const step = repair.steps[at];
  if (!step) {
    return null;
  }
  const from = parse(step.started_at) ?? now.value;
  const to = parse(step.ended_at);
  if (to !== null) {
    return span(to - from);
  }
  const deadline = parse(repair.deadline_at);
  const until = deadline === null ? "" : deadline > now.value ? `at most until ${moment(deadline, now.value)}` : `was due at ${clock(deadline)}`;
  const waits = lower(step.detail?.replace(/\.$/, "") ?? "");
  return `${span(now.value - from)}${waits ? `; ${waits}` : ""}${until ? `${waits ? ", " : "; "}${until}` : ""}`;
}

/** Cordon, drain, act, rejoin, verify: how long each took, or what it waits for and until when. */
export function RepairSteps({ repair }: { repair: Repair }) {
  const ended = repair.ended_at !== null || repair.state === "unknown";
  const steps: Step[] = WORK.map((state) => {
    const at = repair.steps.map((step) => step.state).lastIndexOf(state);
    const label = stepName(state);
    if (at < 0) {
      return { label, state: "to come" };
    }
    const last = !WORK.slice(WORK.indexOf(state) + 1).some((later) => repair.steps.some((step) => step.state === later));
    const bad = last && ended && (repair.state === "failed" || repair.state === "unknown");
    const current = state === repair.state;
    return { label, state: current ? "current" : bad ? "failed" : "done", detail: stepDetail(repair, at) };
  });
  return <Steps steps={steps} label={`Steps of repair ${repair.no}`} />;
}

/** Lines of a plan; an older server gave them as bare text. */
function linesOf(plan: Plan): EvidenceLine[] {
  return plan.evidence.flatMap((one) =>
    one.lines.map((line, i) => (typeof line === "string" ? { at: one.first_at, source: one.check_id, text: line, opened: i === 0 } : line)),
  );
}

/** The lines that say most, in order of time; most: the lines that opened an incident come first into the choice. */
export function PlanEvidence({ plan, most }: { plan: Plan; most?: number }) {
  const all = linesOf(plan);
  const chosen = most === undefined ? all : [...all.filter((line) => line.opened), ...all.filter((line) => !line.opened)].slice(0, most);
  const lines = chosen.sort((a, b) => (parse(a.at) ?? 0) - (parse(b.at) ?? 0));
  return lines.length ? <Evidence lines={lines} label="Evidence lines" /> : <p class="t3 s12">No line was kept: a person asked for it.</p>;
}

/** Tick, cross, triangle or dash, and the outcome in words. */
export function Outcome({ repair, children }: { repair: Repair; children?: ComponentChildren }) {
  const weight = OUTCOME_WEIGHT[repair.state];
  return (
    <span class="st wrap">
      <Icon name={weight === "good" ? "tick" : weight === "bad" ? "close" : weight === "warn" ? "warn" : "minus"} tone={weight === "neutral" ? undefined : weight} />
      <span>
        {outcome(repair)}
        {children}
      </span>
    </span>
  );
}
