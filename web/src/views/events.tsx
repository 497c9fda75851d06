/* Events: of one cluster as a tab, of the whole org as a page; found by type, severity, node and time. */
import { useEffect, useRef } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { ApiError, newIdempotencyKey, post, withQuery } from "../api";
import { readFilter, wanted, type Filter, type Spec } from "../filter";
import { count, counted } from "../format";
import { narrow } from "../media";
import { query as address, setQuery } from "../router";
import { may } from "../session";
import { query, refresh, useQuery, type Query } from "../store";
import { DAY, moment, now, parse, utc } from "../time";
import type { ClusterItem, Event, List, NodeSummary } from "../types";
import { Button, CopyButton, Field, Select } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { FilterBar } from "../ui/filter-bar";
import { Icon } from "../ui/icons";
import { Mark } from "../ui/marks";
import { Nothing, PageSentence } from "../ui/page";
import { Shell } from "../ui/shell";
import { ErrorNote, Note, Skeleton } from "../ui/states";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";
import { Changes, eventMark, typeWords, withoutName } from "./happened";

const PAGE = 100;

const TYPES = [
  "node.joined", "node.state_changed", "node.booted", "node.cordoned", "node.uncordoned", "node.updated", "node.removed",
  "node.key_revoked", "node.key_stopped", "cluster.key_rotated", "cluster.key_retired",
  "node.rejoin_requested", "node.rejoined", "node.rejoin_denied",
  "collector.changed", "incident.opened", "incident.changed", "incident.closed",
  "repair.proposed", "repair.approved", "repair.rejected", "repair.step", "repair.succeeded", "repair.failed",
  "repair.cancelled", "repair.resolved", "repair.unknown",
  "cluster.created", "cluster.updated", "project.created", "project.updated", "org.updated", "org.suspended", "org.resumed", "device.updated",
  "note.added", "stream.dropped", "token.created", "token.revoked",
];

const SPEC: Spec = {
  type: { ops: [":"], values: TYPES },
  severity: { ops: [":"], values: ["info", "warning", "critical"] },
  node: { ops: [":"] },
};

const SPANS = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 h" },
  { value: "7d", label: "Last 7 days" },
];
const SPAN_MS: Record<string, number> = { "1h": DAY / 24, "24h": DAY, "7d": 7 * DAY };

function withComplaints(filter: Filter): Filter {
  const nodes = wanted(filter, "node");
  const complaints = [...filter.complaints];
  if (filter.text) {
    const word = filter.text.split(" ")[0] ?? "";
    complaints.push({ message: "The words of events are not searched.", fix: { what: word, with: `node:${word}` } });
  }
  if (nodes.length > 1) {
    complaints.push({ message: "One node at a time.", fix: null });
  }
  if (filter.terms.some((term) => term.negated)) {
    complaints.push({ message: "Leaving out (-) is not possible here.", fix: null });
  }
  return { ...filter, complaints };
}

/** A relative span stays relative in the address; here it becomes a minute, so that answers can be shared. */
function rangeOf(params: URLSearchParams): { since: string | null; until: string | null } {
  const last = SPAN_MS[params.get("last") ?? ""];
  if (last) {
    const minute = Math.floor((now.value - last) / 60_000) * 60_000;
    return { since: new Date(minute).toISOString().replace(".000", ""), until: null };
  }
  return { since: params.get("since"), until: params.get("until") };
}

/** Rows of all pages read so far; new ones wait while the pointer is on the list. */
function useEvents(first: string | null): { rows: Event[]; fresh: number; release: () => void; hold: (on: boolean) => void; newest: Query<List<Event>>; older: (() => void) | null; reading: boolean } {
  const newest = useQuery<List<Event>>(first, { events: () => true });
  const more = useSignal<{ first: string | null; cursors: string[] }>({ first, cursors: [] });
  if (more.peek().first !== first) {
    more.value = { first, cursors: [] };
  }
  const held = useRef(false);
  const top = useRef<{ first: string | null; seq: number }>({ first, seq: 0 });
  const turn = useSignal(0);
  void turn.value;
  const pages = more.value.cursors.map((cursor) => query<List<Event>>(`${first}&cursor=${encodeURIComponent(cursor)}`));
  useEffect(() => {
    const last = pages[pages.length - 1];
    return last?.use({});
  }, [pages.length, first]);
  const all = [newest, ...pages].flatMap((page) => page.data.value?.items ?? []);
  const highest = newest.data.value?.items[0]?.seq ?? 0;
  if (top.current.first !== first || !held.current || top.current.seq === 0) {
    top.current = { first, seq: highest };
  }
  const seen = new Set<number>();
  const rows = all.filter((event) => event.seq <= top.current.seq && !seen.has(event.seq) && seen.add(event.seq));
  const tail = pages[pages.length - 1] ?? newest;
  const cursor = tail.data.value?.next_cursor ?? null;
  return {
    rows,
    fresh: all.filter((event) => event.seq > top.current.seq).length,
    release: () => {
      top.current = { first, seq: highest };
      turn.value += 1;
    },
    hold: (on) => {
      held.current = on;
      if (!on) {
        turn.value += 1;
      }
    },
    newest,
    older: cursor ? () => (more.value = { first, cursors: [...more.peek().cursors, cursor] }) : null,
    reading: tail.data.value === null && !tail.error.value,
  };
}

function EventTable({ rows, clusters }: { rows: Event[]; clusters: Map<string, string> | null }) {
  if (narrow.value) {
    return <Changes events={rows} rows={rows.length} />;
  }
  return (
    <Table
      name="Events"
      rows={rows}
      rowKey={(event) => String(event.seq)}
      columns={[
        {
          key: "at",
          head: "When",
          class: "nw t2",
          cell: (event) => {
            const at = parse(event.at) ?? 0;
            return (
              <time dateTime={event.at} title={utc(at)}>
                {moment(at, now.value)}
              </time>
            );
          },
        },
        ...(clusters
          ? [{ key: "cluster", head: "Cluster", class: "nw", cell: (event: Event) => (event.cluster_id ? <a href={`/clusters/${event.cluster_id}`}>{clusters.get(event.cluster_id) ?? "a cluster"}</a> : <Nothing />) }]
          : []),
        {
          key: "node",
          head: "Node",
          class: "nw",
          cell: (event) => {
            const mark = eventMark(event);
            return event.node_id ? (
              <span class="st">
                {mark ? <Mark kind={mark} /> : <span class="mk" />}
                <a class="name" href={`/nodes/${event.node_id}`}>
                  {event.node_name ?? "a node"}
                </a>
              </span>
            ) : (
              <Nothing />
            );
          },
        },
        {
          key: "what",
          head: "What",
          class: "what",
          cell: (event) => (
            <>
              {withoutName(event)}
              {event.repair_id && (
                <>
                  {" "}
                  <a href={`/repairs/${event.repair_id}`}>Repair</a>
                </>
              )}
            </>
          ),
        },
        { key: "type", head: "Type", class: "nw t2", cell: (event) => typeWords(event.type) },
        { key: "severity", head: "Severity", class: "nw", cell: (event) => <span class={event.severity === "critical" ? "c-unhealthy" : event.severity === "warning" ? "c-warning" : "t3"}>{event.severity}</span> },
        { key: "actor", head: "By", class: "nw t2", cell: (event) => event.actor || <Nothing /> },
      ]}
    />
  );
}

function NoteDialog({ clusterId, onClose }: { clusterId: string; onClose: () => void }) {
  const text = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const key = useRef(newIdempotencyKey());
  const save = async () => {
    busy.value = true;
    error.value = null;
    try {
      await post(`/clusters/${clusterId}/events`, { summary: text.value }, { idempotencyKey: key.current });
      refresh(`/clusters/${clusterId}/events`);
      onClose();
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      narrow
      title="Add a note"
      lead="It stands among the events of this cluster, with your name, and cannot be changed."
      onClose={onClose}
      buttons={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy.value} disabled={text.value.trim() ? null : "Write it first."} onClick={() => void save()}>
            Add note
          </Button>
        </>
      }
    >
      <div class="pad">
        <Field label="Note" name="summary" multiline value={text.value} onInput={(value) => (text.value = value)} error={error.value?.field("summary")} />
        {error.value && (
          <div class="gap12">
            <Note tone="bad" alert title={`${error.value.title}.`}>
              <p class="t2">{error.value.detail}</p>
            </Note>
          </div>
        )}
      </div>
    </Dialog>
  );
}

function TimeChips({ since, until }: { since: string | null; until: string | null }) {
  const chips: [key: string, text: string][] = [];
  if (since && parse(since) !== null) {
    chips.push(["since", `from ${moment(parse(since) ?? 0)}`]);
  }
  if (until && parse(until) !== null) {
    chips.push(["until", `until ${moment(parse(until) ?? 0)}`]);
  }
  return (
    <>
      {chips.map(([key, text]) => (
        <span class="chip" key={key}>
          {text}
          <button type="button" aria-label={`Remove filter ${text}`} onClick={() => setQuery({ [key]: null })}>
            <Icon name="close" />
          </button>
        </span>
      ))}
    </>
  );
}

interface EventsProps {
  clusterId: string | null;
  clusters: Map<string, string> | null;
}

/** The node that is named in the filter, by its id; "" while it is looked up or not there. */
function useNodeId(clusterId: string | null, name: string | undefined): { id: string | null; missing: boolean } {
  const found = useQuery<List<NodeSummary>>(name && clusterId ? withQuery(`/clusters/${clusterId}/nodes`, { q: name, limit: 50 }) : null);
  if (!name) {
    return { id: null, missing: false };
  }
  const node = found.data.value?.items.find((one) => one.name === name);
  return { id: node?.id ?? "", missing: clusterId === null || (found.data.value !== null && !node) };
}

function Events({ clusterId, clusters }: EventsProps) {
  const params = address.value;
  const source = params.get("q") ?? "";
  const filter = withComplaints(readFilter(source, SPEC));
  const name = wanted(filter, "node")[0];
  const node = useNodeId(clusterId, name);
  if (node.missing) {
    filter.complaints.push({ message: clusterId ? `There is no node “${name}” in this cluster.` : "Nodes are found within a cluster: open its Events tab.", fix: null });
  }
  const range = rangeOf(params);
  const base = clusterId ? `/clusters/${clusterId}/events` : "/events";
  const first =
    node.id === ""
      ? null
      : withQuery(base, {
          node_id: node.id,
          type: wanted(filter, "type").filter((type) => TYPES.includes(type)),
          severity: wanted(filter, "severity"),
          since: range.since,
          until: range.until,
          limit: PAGE,
        });
  const { rows, fresh, release, hold, newest, older, reading } = useEvents(first);
  const noting = useSignal(false);
  const error = newest.error.value;
  const narrowed = source || range.since || range.until;
  return (
    <>
      <FilterBar
        label="Filter events"
        placeholder={clusterId ? "type:incident.opened severity:critical node:gpu-17-03" : "type:incident.opened severity:critical"}
        source={source}
        filter={filter}
        onChange={(q) => setQuery({ q })}
        after={
          <>
            {!params.get("last") && <TimeChips since={range.since} until={range.until} />}
            <Select label="Time" choices={SPANS} value={params.get("last") ?? ""} onChange={(value) => setQuery({ last: value, since: null, until: null })} />
            <CopyButton class="desk" text={() => location.href}>
              Copy link
            </CopyButton>
            {clusterId && may("node.write") && <Button onClick={() => (noting.value = true)}>Add a note…</Button>}
          </>
        }
      />
      {error && <ErrorNote error={error} what="The list of events" query={newest as Query<unknown>} stillWorks={rows.length ? "The rows below are from before." : ""} />}
      {rows.length > 0 && (
        <div onPointerEnter={() => hold(true)} onPointerLeave={() => hold(false)}>
          {fresh > 0 && (
            <p class="news">
              <Button small kind="quiet" onClick={release}>
                {count(fresh)} new, show
              </Button>
            </p>
          )}
          <EventTable rows={rows} clusters={clusters} />
          <p class="row8 foot1">
            {older && (
              <Button busy={reading} onClick={older}>
                {reading ? "Reading…" : "Show older events"}
              </Button>
            )}
            <span class="s12 t3">
              {counted(rows.length, "event")}, {older ? "newest first" : "all there are"}
            </span>
          </p>
        </div>
      )}
      {rows.length === 0 && !error && (reading && first ? (
        <Skeleton rows={8} label="events" />
      ) : (
        <div class="sec">
          <p>{narrowed ? "No event matches." : "Nothing has happened yet."}</p>
          {narrowed && (
            <p class="row8">
              <Button small onClick={() => setQuery({ q: null, since: null, until: null, last: null })}>
                Clear the filter
              </Button>
            </p>
          )}
        </div>
      ))}
      {noting.value && clusterId && <NoteDialog clusterId={clusterId} onClose={() => (noting.value = false)} />}
    </>
  );
}

export function EventsTab({ clusterId }: TabProps) {
  return <Events clusterId={clusterId} clusters={null} />;
}

export function EventsPage(_: ViewProps) {
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const names = useComputed(() => new Map(clusters.data.value?.items.map((cluster) => [cluster.id, cluster.name])));
  useEffect(() => {
    document.title = "Events · Muster";
  }, []);
  return (
    <Shell scope={{}}>
      <PageSentence parts={[<b>Events</b>, "of all clusters, newest first"]} />
      <Events clusterId={null} clusters={names.value} />
    </Shell>
  );
}
