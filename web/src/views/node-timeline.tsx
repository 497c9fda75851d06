/* What a node went through: its state, faults, repairs and use, over one time axis that the address holds. */
import { useEffect } from "preact/hooks";
import { withQuery } from "../api";
import { action, percent, sentence } from "../format";
import { bindKeys } from "../keys";
import { query, setQuery } from "../router";
import { useQuery, type Query } from "../store";
import { moment, now, parse, serverNow } from "../time";
import type { Incident, List, NodeDetail, NodeHistory, Repair, Transition } from "../types";
import { Button, Segmented } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Lanes, type Lane, type LaneItem } from "../ui/lanes";
import { Section, TimeAxis } from "../ui/page";
import { ErrorNote, Skeleton } from "../ui/states";
import { gaps, type Point } from "./history";
import { outcome } from "./repair-words";

const HOUR = 3_600_000;
const RANGES = [
  { value: "2h", label: "2 h", ms: 2 * HOUR },
  { value: "24h", label: "24 h", ms: 24 * HOUR },
  { value: "7d", label: "7 days", ms: 7 * 24 * HOUR },
  { value: "30d", label: "30 days", ms: 30 * 24 * HOUR },
] as const;
type Range = (typeof RANGES)[number];

const SAMPLE_MS = 300_000;
const EDGE_MS = 10_000; /* the right edge moves this often */
const STATE_GAP: readonly string[] = ["unknown", "pending"];

/** The smallest range in which the present state can be seen from its beginning; a day where it is older than all. */
function fitting(node: NodeDetail): Range {
  const since = now.peek() - (parse(node.state_since) ?? 0);
  if (node.state === "healthy") {
    return RANGES[1];
  }
  return RANGES.find((range) => since < range.ms * 0.9) ?? RANGES[3];
}

interface Span {
  range: Range;
  since: number;
  until: number;
  /** until the present moment, and moving with it */
  live: boolean;
}

function spanOf(node: NodeDetail): Span {
  const at = query.value;
  const range = RANGES.find((one) => one.value === at.get("range")) ?? fitting(node);
  const fixed = parse(at.get("until"));
  const until = fixed ?? Math.ceil(now.value / EDGE_MS) * EDGE_MS;
  return { range, since: until - range.ms, until, live: fixed === null };
}

function move(view: Span, by: number): void {
  const until = view.until + by * view.range.ms;
  setQuery({ range: view.range.value, until: until >= serverNow() - 60_000 ? null : new Date(until).toISOString().slice(0, 19) + "Z" });
}

/** Addresses that change once an hour while live, so that answers can be kept. */
function bounds(view: Span): { since: string; until: string | null } {
  const text = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  return { since: text(Math.floor(view.since / HOUR) * HOUR), until: view.live ? null : text(view.until) };
}

function words(from: number, to: number | null): string {
  return `from ${moment(from, now.peek())} ${to === null ? "until now" : `to ${moment(to, now.peek())}`}`;
}

/** Intervals from the changes of state; before the first the node was not there. */
function stateItems(items: Transition[], view: Span): LaneItem[] {
  const made: LaneItem[] = items.map((item, i) => {
    const from = Math.max(parse(item.at) ?? view.since, view.since);
    const next = parse(items[i + 1]?.at ?? null);
    return { from, to: next, kind: `l-${item.state}`, label: `${sentence(item.state)} ${words(from, next)}${item.reason ? `: ${item.reason}` : ""}` };
  });
  const first = parse(items[0]?.at ?? null) ?? view.until;
  if (first > view.since + 1000) {
    made.unshift({ from: view.since, to: first, kind: "l-gap", label: `No data ${words(view.since, first)}` });
  }
  return made;
}

/** Where nothing could be seen, nothing can be said about faults. */
function blind(items: LaneItem[]): LaneItem[] {
  return items.filter((item) => item.kind === "l-gap" || STATE_GAP.some((state) => item.kind === `l-${state}`)).map((item) => ({ ...item, kind: "l-gap", label: item.label.replace(/^\w+ (?=from)/, "No data ") }));
}

function faultItems(incidents: Incident[]): LaneItem[] {
  const sorted = [...incidents].sort((a, b) => a.first_at.localeCompare(b.first_at));
  return sorted.flatMap((one) => {
    const from = parse(one.first_at) ?? 0;
    const to = parse(one.closed_at);
    const bad = one.node_fault || one.severity === "critical";
    const shadow = one.mode === "shadow";
    const kind = shadow ? "l-pending" : bad ? "l-fault" : "l-warning";
    const label = `${shadow ? "In shadow: " : ""}${one.summary} ${words(from, to)}${one.count > 1 ? `, ${one.count} times` : ""}`;
    const interval: LaneItem = { from, to, kind, label };
    return one.node_fault && !shadow ? [interval, { from, to: from, kind, label: `Incident ${one.no} began at ${moment(from, now.peek())}`, size: "tall" as const }] : [interval];
  });
}

function repairItems(repairs: Repair[]): LaneItem[] {
  return repairs.flatMap((one) => {
    const from = parse(one.created_at) ?? 0;
    const decided = parse(one.decided_at);
    const ended = parse(one.ended_at);
    const name = sentence(action(one.action));
    const worked = decided !== null && one.state !== "rejected" && one.state !== "proposed";
    const waiting: LaneItem = { from, to: worked ? decided : ended, kind: "l-repairing", size: "thin", label: `${name} proposed, waited ${words(from, worked ? decided : ended)}` };
    return worked ? [waiting, { from: decided, to: ended, kind: "l-repairing", label: `${name} ${words(decided, ended)}: ${outcome(one)}` }] : [waiting];
  });
}

function useLane(history: NodeHistory | null, node: NodeDetail, view: Span): { line: Lane["line"]; holes: LaneItem[]; label: string } {
  const gpus = node.gpus.length > 0 || (node.gpus_expected ?? 0) > 0;
  const label = gpus ? "GPU busy" : "CPU busy";
  const whole: LaneItem = { from: view.since, to: view.until, kind: "l-gap", label: `No data ${words(view.since, view.live ? null : view.until)}` };
  if (!history) {
    return { line: undefined, holes: [], label };
  }
  const values = gpus ? history.gpu_util_ratio : history.cpu_ratio;
  const width = view.until - view.since;
  const points: Point[] = history.at.map((at, i) => ({ x: (at * 1000 - view.since) / width, y: values[i] ?? null })).filter((point) => point.x >= 0 && point.x <= 1);
  const known = points.filter((point) => point.y !== null);
  const first = known[0];
  if (!first) {
    return { line: undefined, holes: [whole], label };
  }
  const apart = known.length > 1 ? Math.min(...known.slice(1).map((point, i) => point.x - (known[i]?.x ?? 0))) : 0;
  const step = Math.max(apart, SAMPLE_MS / width);
  const at = (x: number) => view.since + x * width;
  const holes: LaneItem[] = gaps(points, step).map(([from, to]) => ({ from: at(from), to: at(to), kind: "l-gap", label: `No data ${words(at(from), to === 1 && view.live ? null : at(to))}` }));
  if (first.x > step * 2.5) {
    holes.unshift({ from: view.since, to: at(first.x), kind: "l-gap", label: `No data ${words(view.since, at(first.x))}` });
  }
  let path = "";
  let last = -1;
  for (const point of known) {
    path += `${last >= 0 && point.x - last <= step * 1.9 ? "L" : "M"}${(point.x * 1000).toFixed(1)} ${(25 - (point.y ?? 0) * 22).toFixed(1)}`;
    last = point.x;
  }
  const numbers = known.map((point) => point.y ?? 0);
  return { line: { path, label: `${label} between ${percent(Math.min(...numbers))} and ${percent(Math.max(...numbers))}, at the end ${percent(numbers[numbers.length - 1])}` }, holes, label };
}

/** One lane that cannot be read says so, and leaves the others alone. */
function lane<T>(label: string, source: Query<T>, items: (data: T) => LaneItem[], empty: string, behind: LaneItem[] = []): Lane {
  const data = source.data.value;
  if (data === null) {
    return { label, items: [], note: source.error.value ? `could not be loaded: ${source.error.value.title}` : "" };
  }
  const made = items(data);
  return { label, items: [...behind, ...made], note: empty };
}

export function NodeTimeline({ node }: { node: NodeDetail }) {
  const view = spanOf(node);
  const { since, until } = bounds(view);
  const mine = (_: string, event: { node_id: string | null }) => event.node_id === node.id;
  const transitions = useQuery<{ items: Transition[] }>(withQuery(`/nodes/${node.id}/transitions`, { since, until }), { events: mine });
  const incidents = useQuery<List<Incident>>(withQuery("/incidents", { node_id: node.id, since, until, limit: 200 }), { events: mine });
  const repairs = useQuery<List<Repair>>(withQuery("/repairs", { node_id: node.id, until, limit: 50 }), { events: mine });
  const history = useQuery<NodeHistory>(withQuery(`/nodes/${node.id}/history`, { since, until }), { everyMs: SAMPLE_MS });
  useEffect(
    () =>
      bindKeys([
        { keys: "[", does: "Timeline: back in time", run: () => move(spanOf(node), -0.5) },
        { keys: "]", does: "Timeline: forward in time", run: () => move(spanOf(node), 0.5) },
      ]),
    [node.id],
  );
  const states = transitions.data.value ? stateItems(transitions.data.value.items, view) : [];
  const unseen = blind(states);
  const use = useLane(history.data.value, node, view);
  const lanes: Lane[] = [
    lane("State", transitions, () => states, ""),
    lane("Faults", incidents, (list) => faultItems(list.items), "none", unseen),
    lane("Repairs", repairs, (list) => repairItems(list.items.filter((one) => (parse(one.ended_at) ?? Infinity) > view.since)), "none"),
    history.error.value && !history.data.value
      ? { label: use.label, items: [], note: `could not be loaded: ${history.error.value.title}` }
      : { label: use.label, items: use.holes, ...(use.line ? { line: use.line } : {}) },
  ];
  const failed = [transitions, incidents, repairs, history].every((one) => one.data.value === null && one.error.value);
  const waiting = transitions.data.value === null && !transitions.error.value;
  const total = incidents.data.value?.next_cursor ? "; only the newest 200 faults are drawn" : "";
  return (
    <Section
      title="Timeline"
      class="timeline"
      hint={`${view.live ? `last ${view.range.label}` : `${view.range.label} until ${moment(view.until, now.value)}`}; hatched is no data${total}`}
      end={
        <span class="ranges">
          <Button kind="quiet" small icon label="Earlier" onClick={() => move(view, -0.5)}>
            <Icon name="back" />
          </Button>
          <Button kind="quiet" small icon label="Later" disabled={view.live ? "It ends now already." : null} showReason={false} onClick={() => move(view, 0.5)}>
            <Icon name="forward" />
          </Button>
          <Segmented label="Range" choices={RANGES.map(({ value, label }) => ({ value, label }))} value={view.range.value} onChange={(value) => setQuery({ range: value, until: null })} />
        </span>
      }
    >
      {failed && transitions.error.value ? (
        <ErrorNote error={transitions.error.value} what="The timeline" query={transitions as Query<unknown>} stillWorks="The rest of this page does not depend on it." />
      ) : waiting ? (
        <Skeleton rows={4} height={28} label="the timeline" />
      ) : (
        <Lanes lanes={lanes} since={view.since} until={view.until}>
          <TimeAxis since={view.since} until={view.until} steps={6} live={view.live} />
        </Lanes>
      )}
    </Section>
  );
}

