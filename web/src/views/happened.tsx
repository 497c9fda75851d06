/* What happened: the strip of events over a day and the list of the newest ones. */
import type { ComponentChild } from "preact";
import { Fragment } from "preact";
import { count, counted } from "../format";
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

/** Each bar leads to the events of its time. href: of the list of events, with since and until. */
export function Strip({ strip, href }: { strip: EventStrip; href: (since: string, until: string) => string }) {
  const since = parse(strip.since) ?? 0;
  const until = parse(strip.until) ?? since + 1;
  const most = Math.max(1, ...strip.buckets.map(total));
  const scale = Math.min(UNIT, (HEIGHT - 12) / most);
  const busiest = strip.buckets.reduce<StripBucket | null>((best, b) => (total(b) > (best ? total(best) : 0) ? b : best), null);
  const all = strip.buckets.reduce((sum, b) => sum + total(b), 0);
  const label = busiest
    ? `${counted(all, "event")} since ${moment(since)}; most from ${moment(parse(busiest.at) ?? 0)}: ${words(busiest)}`
    : `No event since ${moment(since)}`;
  const step = strip.bucket_seconds * 1000;
  return (
    <div class="strip">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <path class="gl zero" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
        {strip.buckets.map((bucket) => {
          const at = parse(bucket.at) ?? since;
          const x = ((at - since) / (until - since)) * WIDTH;
          const width = Math.max(2, (step / (until - since)) * WIDTH - 2);
          return total(bucket) ? (
            <a key={bucket.at} href={href(bucket.at, new Date(at + step).toISOString())} tabIndex={-1} aria-hidden="true">
              <rect x={x} width={width} height={HEIGHT} fill="transparent" />
              <Bar bucket={bucket} x={x} width={width} scale={scale} />
              <title>{`${moment(at)}: ${words(bucket)}`}</title>
            </a>
          ) : null;
        })}
      </svg>
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

function Subject({ row, of }: { row: Row; of: string | undefined }) {
  const { event, more } = row;
  if (!event.node_id || !event.node_name || event.node_name === of) {
    return null;
  }
  const shown = [event, ...more].slice(0, 3);
  return (
    <>
      {shown.map((one, i) => (
        <Fragment key={one.seq}>
          {i > 0 && ", "}
          <a href={`/nodes/${one.node_id}`}>{one.node_name}</a>
        </Fragment>
      ))}
      {more.length > 2 && ` and ${count(more.length - 2)} more`}{" "}
    </>
  );
}

/** of: the node whose events they are, so that its name is not said in each. */
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
                <Subject row={row} of={of} />
                {withoutName(row.event)}
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
