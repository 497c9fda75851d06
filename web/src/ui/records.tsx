/* Evidence, steps, consequences, check lines and lanes: how a fault and its repair are told. */
import type { ComponentChildren } from "preact";
import type { EvidenceLine } from "../types";
import { clock, parse, utc } from "../time";
import { Icon, type IconName, type Tone } from "./icons";

/** Log lines as a machine wrote them; those that opened the incident are tinted. */
export function Evidence({ lines, label }: { lines: EvidenceLine[]; label: string }) {
  return (
    <ol class="ev" tabIndex={0} role="group" aria-label={label}>
      {lines.map((line, i) => {
        const at = parse(line.at);
        return (
          <li key={i} class={line.opened ? "opened" : undefined}>
            <time class="t3" dateTime={line.at} title={at === null ? undefined : utc(at)}>
              {at === null ? "" : clock(at, true)}
            </time>
            <span class="t3">{line.source}</span>
            <span>
              {line.text}
              {line.opened && <span class="vh"> (opened the incident)</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

export interface Step {
  label: string;
  state: "done" | "current" | "to come" | "failed";
  detail?: ComponentChildren;
}

export function Steps({ steps, label }: { steps: Step[]; label: string }) {
  const names = { done: "done", current: "cur", "to come": undefined, failed: "bad" };
  return (
    <ol class="steps" aria-label={label}>
      {steps.map((step) => (
        <li key={step.label} class={names[step.state]} aria-current={step.state === "current" ? "step" : undefined}>
          <b>
            {step.label}
            <span class="vh">, {step.state}</span>
          </b>
          <span>{step.detail}</span>
        </li>
      ))}
    </ol>
  );
}

export type Weight = "bad" | "warn" | "good" | "neutral";

const WEIGHT_ICON: Record<Weight, [IconName, Tone, string]> = {
  bad: ["close", "bad", "harm"],
  warn: ["warn", "warn", "caution"],
  good: ["tick", "good", "fine"],
  neutral: ["minus", undefined, ""],
};

export interface Consequence {
  subject: string;
  weight: Weight;
  fact: ComponentChildren;
  detail?: ComponentChildren;
  /** the fact is new since the dialog was opened */
  changed?: boolean;
}

/** What an action touches, always in the same order: job, data, capacity, failure domain, limits. */
export function ConsequenceList({ items, label }: { items: Consequence[]; label: string }) {
  return (
    <ul class="radius" aria-label={label}>
      {items.map((item) => {
        const [icon, tone, word] = WEIGHT_ICON[item.weight];
        const names = [item.weight === "bad" ? "bad" : "", item.changed ? "changed" : ""].filter(Boolean).join(" ");
        return (
          <li key={item.subject} class={names || undefined}>
            <Icon name={icon} tone={tone} />
            <span class="k">
              {item.subject}
              {word && <span class="vh">, {word}</span>}
            </span>
            <div>
              {item.weight === "bad" ? <b>{item.fact}</b> : item.fact}
              {item.detail && <span class="sub">{item.detail}</span>}
            </div>
          </li>
        );
      })}
    </ul>
  );
}

export interface CheckLineItem {
  name: string;
  weight: Weight;
  value: ComponentChildren;
  fix?: ComponentChildren;
}

export function CheckLines({ items, label }: { items: CheckLineItem[]; label: string }) {
  return (
    <ul class="checks" aria-label={label}>
      {items.map((item) => {
        const [icon, tone, word] = WEIGHT_ICON[item.weight];
        return (
          <li key={item.name}>
            <Icon name={icon} tone={tone} />
            <span>
              {item.name}
              {word && <span class="vh">, {word}</span>}
            </span>
            <span class={item.weight === "neutral" ? "t2" : undefined}>
              {item.value}
              {item.fix && <span class="sub">{item.fix}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

export interface LaneItem {
  /** milliseconds; to null: still so, drawn up to now */
  from: number;
  to: number | null;
  /** a class of style.css: l-healthy, l-unhealthy, l-repairing, l-starting, l-paused, l-unknown, l-pending, l-gap, l-fault, l-warning, l-event */
  kind: string;
  label: string;
  /** a root cause is taller */
  tall?: boolean;
}

export interface Lane {
  label: string;
  items: LaneItem[];
  note?: string;
}

const LANE_WIDTH = 1000;

/** Intervals and marks over [since, until]; each lane's items are also a list for screen readers. */
export function Lanes(props: { lanes: Lane[]; since: number; until: number; children?: ComponentChildren }) {
  const { since, until } = props;
  const x = (ms: number) => Math.max(0, Math.min(LANE_WIDTH, ((ms - since) / Math.max(1, until - since)) * LANE_WIDTH));
  return (
    <div class="lanes">
      {props.lanes.map((lane) => (
        <div class="lane" key={lane.label}>
          <span>{lane.label}</span>
          {lane.items.length === 0 && lane.note ? (
            <span class="t3 s12">{lane.note}</span>
          ) : (
            <div>
              <svg viewBox={`0 0 ${LANE_WIDTH} 28`} preserveAspectRatio="none" aria-hidden="true">
                {lane.items.map((item, i) => {
                  const left = x(item.from);
                  const width = Math.max(6, x(item.to ?? until) - left);
                  const height = item.tall ? 20 : 12;
                  return (
                    <rect key={i} class={item.kind} x={Math.min(left, LANE_WIDTH - width)} y={14 - height / 2} width={width} height={height}>
                      <title>{item.label}</title>
                    </rect>
                  );
                })}
              </svg>
              <ol class="vh">
                {lane.items.map((item, i) => (
                  <li key={i}>{item.label}</li>
                ))}
              </ol>
            </div>
          )}
        </div>
      ))}
      {props.children}
    </div>
  );
}
