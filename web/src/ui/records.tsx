/* Evidence, steps, consequences and check lines: how a fault and its repair are told. */
import type { ComponentChildren } from "preact";
import type { EvidenceLine } from "../types";
import { clock, parse, utc } from "../time";
import { Icon, type IconName, type Tone } from "./icons";

/** Down to the millisecond where a machine gave it. */
function stamp(at: number): string {
  const ms = at % 1000;
  return clock(at, true) + (ms ? `.${String(ms).padStart(3, "0")}` : "");
}

/** Log lines as a machine wrote them; those that opened the incident are tinted. */
export function Evidence({ lines, label }: { lines: EvidenceLine[]; label: string }) {
  return (
    <div class="ev" tabIndex={0} role="region" aria-label={label}>
      <ol>
        {lines.map((line, i) => {
          const at = parse(line.at);
          return (
            <li key={i} class={line.opened ? "opened" : undefined}>
              <time class="t3" dateTime={line.at} title={at === null ? undefined : utc(at)}>
                {at === null ? "" : stamp(at)}
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
    </div>
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
