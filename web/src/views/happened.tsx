/* What happened: the strip of events over a day and the list of the newest ones. */
import type { ComponentChild } from "preact";
import { Fragment } from "preact";
import { useSignal } from "@preact/signals";
import { count, counted } from "../format";
import { navigate } from "../router";
import { moment, now, parse, utc } from "../time";
import type { Event, EventStrip, StripBucket } from "../types";
import { Mark, type MarkKind } from "../ui/marks";
import { TimeAxis } from "../ui/page";

export const KINDS = ["fault", "warning", "repair", "state", "check"] as const;
type Kind = (typeof KINDS)[number] | "other";
/* drawn from the bottom: what hurts stands on top */
const STACK: readonly Kind[] = ["other", "check", "state", "warning", "repair", "fault"];

const HEIGHT = 72;
const UNIT = 5;
const WIDTH = 1200;

export function KindKey() {
  return (
    <span class="key">
      {KINDS.map((kind) => (
        <span key={kind}>
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class={`k-${kind}`} width="8" height="8" rx="1" />
          </svg>
          {kind}
        </span>
      ))}
    </span>
  );
}

function total(bucket: StripBucket): number {
  return STACK.reduce((sum, kind) => sum + (bucket[kind] ?? 0), 0);
}

function words(bucket: StripBucket): string {
  const parts = [...STACK].reverse().filter((kind) => bucket[kind] > 0).map((kind) => `${count(bucket[kind])} ${kind}`);
  return parts.join(", ") || "nothing";
}

function Bar({ bucket, x, width, scale }: { bucket: StripBucket; x: number; width: number; scale: number }) {
  let y = HEIGHT - 2;
  return (
    <>
      {STACK.map((kind) => {
        const n = bucket[kind] ?? 0;
        if (n === 0) {
          return null;
        }
        const height = Math.max(2, n * scale - 1);
        y -= height + 1;
        return <rect key={kind} class={`k-${kind}`} x={x} y={y} width={width} height={height} />;
      })}
    </>
  );
}

/** Each bar leads to the events of its time, by pointer or by arrow keys and Enter. href: of the list of events. */
export function Strip({ strip, href }: { strip: EventStrip; href: (since: string, until: string) => string }) {
  const at = useSignal(-1);
  const since = parse(strip.since) ?? 0;
  const until = parse(strip.until) ?? since + 1;
  const step = strip.bucket_seconds * 1000;
  const filled = strip.buckets.filter((bucket) => total(bucket) > 0);
  const most = Math.max(1, ...filled.map(total));
  const scale = Math.min(UNIT, (HEIGHT - 12) / most);
  const busiest = filled.reduce<StripBucket | null>((best, b) => (total(b) > (best ? total(best) : 0) ? b : best), null);
  const all = filled.reduce((sum, b) => sum + total(b), 0);
  const say = (bucket: StripBucket) => `${moment(parse(bucket.at) ?? 0)}: ${words(bucket)}`;
  const label = busiest ? `${counted(all, "event")} since ${moment(since)}, most at ${say(busiest)}` : `No event since ${moment(since)}`;
  const open = (bucket: StripBucket) => navigate(href(bucket.at, new Date((parse(bucket.at) ?? 0) + step).toISOString().replace(".000", "")));
  const current = filled[at.value];
  const onKey = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowRight: at.value + 1, ArrowLeft: at.value < 0 ? filled.length - 1 : at.value - 1, Home: 0, End: filled.length - 1 };
    const next = moves[event.key];
    if (next !== undefined && filled.length > 0) {
      event.preventDefault();
      at.value = Math.max(0, Math.min(filled.length - 1, next));
    } else if (event.key === "Enter" && current) {
      open(current);
    }
  };
  const place = (bucket: StripBucket) => (((parse(bucket.at) ?? since) - since) / (until - since)) * WIDTH;
  const width = Math.max(2, (step / (until - since)) * WIDTH - 2);
  return (
    <div class="strip">
      <div
        class="stripbox"
        role="slider"
        tabIndex={0}
        aria-label={`${label}. Arrow keys go from bar to bar, Enter lists the events of one.`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, filled.length - 1)}
        aria-valuenow={Math.max(0, at.value)}
        aria-valuetext={current ? say(current) : label}
        onKeyDown={onKey}
        onBlur={() => (at.value = -1)}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="gl zero" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {filled.map((bucket) => (
            <g key={bucket.at} class={bucket === current ? "stripbar on" : "stripbar"} onClick={() => open(bucket)}>
              <rect class="stripback" x={place(bucket) - 1} width={width + 2} height={HEIGHT} />
              <Bar bucket={bucket} x={place(bucket)} width={width} scale={scale} />
              <title>{say(bucket)}</title>
            </g>
          ))}
        </svg>
        {current && <span class="read">{say(current)}</span>}
      </div>
      <TimeAxis since={since} until={until} steps={6} />
    </div>
  );
}

const STATES = ["pending", "starting", "healthy", "unhealthy", "repairing", "paused", "unknown"];

/** The mark of an event: the state that it led to, or what it stands for. */
export function eventMark(event: Event): MarkKind | null {
  const state = event.data?.state ?? event.data?.to ?? event.data?.new_state;
  if (event.type === "node.state_changed" && typeof state === "string" && STATES.includes(state)) {
    return state as MarkKind;
  }
  if (event.type === "repair.failed" || event.type === "incident.opened") {
    return event.severity === "warning" ? "warning" : event.severity === "info" ? null : "unhealthy";
  }
  if (event.type === "repair.succeeded" || event.type === "incident.closed" || event.type === "repair.resolved") {
    return "healthy";
  }
  if (event.type.startsWith("repair.")) {
    return event.type === "repair.unknown" ? "unknown" : "repairing";
  }
  if (event.type === "node.cordoned") {
    return "paused";
  }
  return event.type === "node.joined" || event.type === "node.booted" ? "starting" : null;
}

/** What happened, as a sentence in which the node's name is a link and stands once. */
export function Told({ event }: { event: Event }) {
  const { node_name: name, node_id: id, summary } = event;
  if (!name || !id) {
    return <>{summary}</>;
  }
  const at = summary.split(/[\s:,.]+/).includes(name) ? summary.indexOf(name) : -1;
  const link = <a href={`/nodes/${id}`}>{name}</a>;
  return at < 0 ? (
    <>
      {link}: {summary}
    </>
  ) : (
    <>
      {summary.slice(0, at)}
      {link}
      {summary.slice(at + name.length)}
    </>
  );
}

/** The same without a link. */
export function told(event: Event): string {
  const { node_name: name, summary } = event;
  return !name || summary.split(/[\s:,.]+/).includes(name) ? summary : `${name}: ${summary}`;
}

/** A summary without the name that is already the link before it. */
export function withoutName(event: Event): string {
  const name = event.node_name;
  return name && event.summary.startsWith(`${name} `) ? event.summary.slice(name.length + 1) : name && event.summary.startsWith(`${name}: `) ? event.summary.slice(name.length + 2) : event.summary;
}

const TYPE_WORDS: Record<string, string> = {
  "node.state_changed": "state",
  "incident.opened": "incident opened",
  "incident.changed": "incident changed",
  "incident.closed": "incident closed",
  "stream.dropped": "events dropped",
};

export function typeWords(type: string): string {
  return TYPE_WORDS[type] ?? type.replace(".", " ").replace(/_/g, " ");
}

interface Row {
  event: Event;
  more: Event[];
}

/** One storm is one row: neighbours of the same type and words within ten minutes, on other nodes. */
export function folded(events: Event[]): Row[] {
  const rows: Row[] = [];
  for (const event of events) {
    const last = rows[rows.length - 1];
    const same =
      last &&
      event.node_id &&
      last.event.node_id !== event.node_id &&
      last.event.type === event.type &&
      withoutName(last.event) === withoutName(event) &&
      Math.abs((parse(last.event.at) ?? 0) - (parse(event.at) ?? 0)) < 600_000;
    if (same) {
      last.more.push(event);
    } else {
      rows.push({ event, more: [] });
    }
  }
  return rows;
}

/** Several nodes to which the same happened, as one. */
function Together({ row }: { row: Row }) {
  const all = [row.event, ...row.more];
  return (
    <>
      {all.slice(0, 3).map((one, i) => (
        <Fragment key={one.seq}>
          {i > 0 && ", "}
          <a href={`/nodes/${one.node_id}`}>{one.node_name}</a>
        </Fragment>
      ))}
      {all.length > 3 && ` and ${counted(all.length - 3, "other node")}`}: {withoutName(row.event)}
    </>
  );
}

/** of: the node whose page this is; its name is not said again. */
export function Changes({ events, rows = 20, of }: { events: Event[]; rows?: number; of?: string }) {
  if (events.length === 0) {
    return <p class="t3">Nothing has happened yet.</p>;
  }
  return (
    <ol class="log marked">
      {folded(events)
        .slice(0, rows)
        .map((row) => {
          const at = parse(row.event.at);
          const mark = eventMark(row.event);
          const extra: ComponentChild[] = [];
          if (row.event.actor && row.event.actor !== "muster") {
            extra.push(`by ${row.event.actor}`);
          }
          if (row.event.repair_id) {
            extra.push(<a href={`/repairs/${row.event.repair_id}`}>repair</a>);
          }
          return (
            <li key={row.event.seq}>
              <time dateTime={row.event.at} title={at === null ? undefined : utc(at)}>
                {at === null ? "" : moment(at, now.value)}
              </time>
              {mark ? <Mark kind={mark} /> : <span />}
              <span class="what">
                {row.more.length > 0 ? <Together row={row} /> : row.event.node_name === of ? withoutName(row.event) : <Told event={row.event} />}
                <span class="sub">
                  {typeWords(row.event.type)}
                  {extra.map((part, i) => (
                    <Fragment key={i}> · {part}</Fragment>
                  ))}
                </span>
              </span>
            </li>
          );
        })}
    </ol>
  );
}
