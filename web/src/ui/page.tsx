/* The parts that every page has: its sentence, tabs, sections, lists of facts, moments in time. */
import type { ComponentChildren } from "preact";
import { Fragment } from "preact";
import { useEffect, useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { age, ago, DAY, moment, now, parse, span, utc } from "../time";

const ANNOUNCE_GAP_MS = 30_000;

/** Says a changed text once, politely, at most every 30 s; the first text is the page's own. */
function useAnnounced(text: string): string {
  const said = useSignal("");
  const state = useSignal({ last: text, at: 0 });
  useEffect(() => {
    const before = state.peek();
    if (text === before.last) {
      return undefined;
    }
    const wait = Math.max(0, before.at + ANNOUNCE_GAP_MS - Date.now());
    const timer = setTimeout(() => {
      state.value = { last: text, at: Date.now() };
      said.value = text;
    }, wait);
    return () => clearTimeout(timer);
  }, [text]);
  return said.value;
}

/**
 * The page's answer in up to three parts. announce: the same without what changes every second
 * (ages), so that only news is read out.
 */
export function PageSentence(props: { parts: ComponentChildren[]; announce?: string; actions?: ComponentChildren; above?: ComponentChildren }) {
  const said = useAnnounced(props.announce ?? "");
  const parts = props.parts.filter(Boolean);
  return (
    <div class="head">
      {props.above}
      <div class="headrow">
        <h1 tabIndex={-1}>
          {parts.map((part, i) => (
            <Fragment key={i}>
              {i > 0 && (
                <span class="qd" aria-hidden="true">
                  ·
                </span>
              )}
              <span class="q">{part}</span>
            </Fragment>
          ))}
        </h1>
        {props.actions && <div class="acts">{props.actions}</div>}
      </div>
      <p class="vh" role="status">
        {said}
      </p>
    </div>
  );
}

export interface Tab {
  href: string;
  label: string;
  count?: string | undefined;
  current: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.href} href={tab.href} aria-current={tab.current ? "page" : undefined}>
          {tab.label}
          {tab.count && <span class="n"> {tab.count}</span>}
        </a>
      ))}
    </nav>
  );
}

/** A heading and what it is about; end: a link at the right. */
export function Section(props: { title: string; hint?: ComponentChildren; end?: ComponentChildren; children: ComponentChildren; class?: string }) {
  const id = useId();
  return (
    <section class={props.class ? `sec ${props.class}` : "sec"} aria-labelledby={id}>
      <header>
        <h2 id={id}>{props.title}</h2>
        {props.hint && <span class="hint">{props.hint}</span>}
        {props.end && <span class="end">{props.end}</span>}
      </header>
      {props.children}
    </section>
  );
}

export type Fact = [term: string, value: ComponentChildren] | null | false | undefined;

export function FactList({ facts, wide = false }: { facts: Fact[]; wide?: boolean }) {
  return (
    <dl class={wide ? "facts wide" : "facts"}>
      {facts.map(
        (fact) =>
          fact && (
            <Fragment key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

/** What is missing is said in words, in the third ink. */
export function Nothing({ children = "none" }: { children?: string }) {
  return <span class="t3">{children}</span>;
}

export type TimeForm = "age" | "ago" | "moment" | "left";

/** A moment; the form is what is shown, UTC is always on hover. null: what stands in its place. */
export function Time({ iso, form = "age", none = "never" }: { iso: string | null | undefined; form?: TimeForm; none?: string }) {
  const at = parse(iso);
  if (at === null) {
    return <Nothing>{none}</Nothing>;
  }
  const text = {
    age: () => age(at),
    ago: () => ago(at),
    moment: () => moment(at, now.value),
    left: () => (at > now.value ? span(at - now.value) : "overdue"),
  }[form]();
  return (
    <time dateTime={iso ?? undefined} title={utc(at)}>
      {text}
    </time>
  );
}

/** Times below a chart or strip, at even steps over [since, until]; the last one is now. Beyond two days each names its day. */
export function TimeAxis({ since, until, steps, live = true }: { since: number; until: number; steps: number; live?: boolean }) {
  const far = until - since > 2 * DAY;
  return (
    <div class="xl" aria-hidden="true">
      {Array.from({ length: steps }, (_, i) => {
        const at = since + ((until - since) * i) / steps;
        return (
          <span key={i}>
            <i>{i === 0 || far ? moment(at, until) : moment(at, at)}</i>
            {i === steps - 1 && <b>{live ? "now" : moment(until, at)}</b>}
          </span>
        );
      })}
    </div>
  );
}
