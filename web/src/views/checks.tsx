/* Health checks: each check over time, how much of it passed and who fails it now; below, the incidents behind the cells. */
import { useMemo } from "preact/hooks";
import { withQuery } from "../api";
import { readFilter, wanted, type Filter, type Spec } from "../filter";
import { count, counted } from "../format";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import { moment, now, parse, serverNow, span } from "../time";
import type { CheckMatrix, CheckRow, Event, Incident, List } from "../types";
import { Button, Segmented, Select } from "../ui/controls";
import { FilterBar } from "../ui/filter-bar";
import { Icon } from "../ui/icons";
import { Mark } from "../ui/marks";
import { Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { Steady } from "../ui/steady";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";
import { CellKey, CheckTable, Matrix } from "./check-matrix";
import { Changes } from "./happened";
import { incidentHref } from "./incident-parts";
import { End, heldWords, incidentMark, isCommon, lasted, repeatWords, Result, resultOf, resultWords } from "./incident-words";
import { usePaged } from "./paged";

const MINUTE = 60_000;
const RANGES = [
  { value: "6h", label: "6 h", buckets: 36, bucketMs: 10 * MINUTE },
  { value: "24h", label: "24 h", buckets: 48, bucketMs: 30 * MINUTE },
  { value: "7d", label: "7 days", buckets: 56, bucketMs: 180 * MINUTE },
  { value: "30d", label: "30 days", buckets: 60, bucketMs: 720 * MINUTE },
] as const;

const SPEC: Spec = {
  check: { ops: [":"] },
  node: { ops: [":"] },
  result: { ops: [":"], values: ["failed", "warning", "info", "shadow"] },
  is: { ops: [":"], values: ["open", "closed"] },
};

interface Span {
  since: string;
  until: string;
  buckets: number;
  bucketMs: number;
  /** until the present moment */
  live: boolean;
  /** "in the last 24 h" */
  words: string;
}

/** One cell that was pressed: what happened in it is listed. */
function cellOf(view: Span): { since: string; until: string } | null {
  const at = parse(query.value.get("cell"));
  return at === null ? null : { since: stamp(at), until: stamp(at + view.bucketMs) };
}

/** Whole intervals, so that a cell keeps its place until the next one begins; until: an end in the past. */
function useSpan(): Span {
  const range = RANGES.find((one) => one.value === query.value.get("range")) ?? RANGES[1];
  const fixed = parse(query.value.get("until"));
  const end = Math.ceil((fixed ?? now.value) / range.bucketMs) * range.bucketMs;
  return useMemo(
    () => ({ since: stamp(end - range.buckets * range.bucketMs), until: stamp(end), buckets: range.buckets, bucketMs: range.bucketMs, live: fixed === null, words: fixed === null ? `in the last ${range.label}` : `in the ${range.label} until ${moment(end)}` }),
    [end, range, fixed === null],
  );
}

function stamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function move(view: Span, by: number): void {
  const until = (parse(view.until) ?? 0) + by * view.buckets * view.bucketMs;
  setQuery({ until: until >= serverNow() ? null : stamp(until), cell: null });
}

/** The time that is looked at: how long, and until when; any past day can be asked for. */
function RangeControls({ view }: { view: Span }) {
  const end = parse(view.until) ?? 0;
  const local = new Date(end - new Date(end).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return (
    <span class="row8 ranges">
      <Button kind="quiet" icon label="Earlier" onClick={() => move(view, -0.5)}>
        <Icon name="back" />
      </Button>
      <Button kind="quiet" icon label="Later" disabled={view.live ? "It ends now already." : null} showReason={false} onClick={() => move(view, 0.5)}>
        <Icon name="forward" />
      </Button>
      <label class="sel date">
        <span>Until</span>
        <input
          type="datetime-local"
          value={local}
          onChange={(event) => {
            const at = Date.parse(event.currentTarget.value);
            setQuery({ until: Number.isNaN(at) || at >= serverNow() ? null : stamp(at), cell: null });
          }}
        />
      </label>
      {!view.live && <Button onClick={() => setQuery({ until: null, cell: null })}>Now</Button>}
      <Select label="Range" choices={RANGES.map(({ value, label }) => ({ value, label }))} value={query.value.get("range") ?? "24h"} onChange={(value) => setQuery({ range: value === "24h" ? null : value, cell: null })} />
    </span>
  );
}

function troubled(row: CheckRow): boolean {
  return row.worst.length > 0 || /[wf]/.test(row.cells);
}

/** Rows that the filter asks for; a check is found by its id or by words of its title. */
function rowsOf(rows: CheckRow[], filter: Filter, trouble: boolean): CheckRow[] {
  const checks = wanted(filter, "check");
  const has = (row: CheckRow, text: string) => row.check_id.includes(text) || row.title.toLowerCase().includes(text.toLowerCase());
  return rows.filter((row) => (!trouble || troubled(row)) && (checks.length === 0 || checks.some((text) => has(row, text))) && (filter.text === "" || has(row, filter.text)));
}

function holds(incident: Incident, filter: Filter, titles: Map<string, string>): boolean {
  const checks = wanted(filter, "check");
  const title = titles.get(incident.check_id) ?? "";
  const has = (text: string) => incident.check_id.includes(text) || title.toLowerCase().includes(text.toLowerCase());
  const results = wanted(filter, "result");
  const nodes = wanted(filter, "node").map((name) => name.replace(/\*$/, ""));
  return (
    (checks.length === 0 || checks.some(has)) &&
    (filter.text === "" || has(filter.text)) &&
    (results.length === 0 || results.includes(incident.mode === "shadow" ? "shadow" : resultOf(incident))) &&
    (nodes.length === 0 || nodes.some((name) => (incident.node_name ?? "many nodes").startsWith(name)))
  );
}

/** What was found, and what makes it more than one line: what follows from it, what holds it, how often it came. */
function Found({ incident }: { incident: Incident }) {
  const more = [isCommon(incident) ? `${heldWords(incident)}${incident.closed_at ? " no more" : ""}` : incident.members.length > 0 ? `${counted(incident.members.length, "incident")} ${incident.members.length === 1 ? "follows" : "follow"} from it` : null, incident.common_id ? "part of a common cause" : null, repeatWords(incident)].filter(Boolean);
  return (
    <>
      {incident.summary}
      {more.length > 0 && <span class="sub">{more.join("; ")}</span>}
    </>
  );
}

function IncidentTable({ rows, titles }: { rows: Incident[]; titles: Map<string, string> }) {
  const title = (incident: Incident) => titles.get(incident.check_id) ?? incident.check_id;
  return (
    <>
      <Table
        name="Incidents"
        class="desk"
        rows={rows}
        rowKey={(incident) => incident.id}
        columns={[
          { key: "result", head: "Result", class: "nw", cell: (incident) => <Result incident={incident} /> },
          { key: "check", head: "Check", cell: (incident) => <span class="name">{title(incident)}</span> },
          { key: "node", head: "Node", class: "nw", cell: (incident) => (incident.node_id ? <a href={`/clusters/${incident.cluster_id}/nodes/${incident.node_id}`}>{incident.node_name}</a> : "many nodes") },
          { key: "why", head: "What was found", class: "t2 why", cell: (incident) => <Found incident={incident} /> },
          { key: "first", head: "Began", number: true, class: "nw", cell: (incident) => <Time iso={incident.first_at} form="moment" /> },
          { key: "lasted", head: "Lasted", number: true, class: "nw", cell: lasted },
          { key: "count", head: "Times", number: true, cell: (incident) => count(incident.count) },
          { key: "end", head: "End", class: "t2 nw", cell: (incident) => <End incident={incident} /> },
          { key: "no", head: "Incident", number: true, cell: (incident) => <a href={incidentHref(incident.id)}>{incident.no}</a> },
        ]}
      />
      <ul class="mobile mlist">
        {rows.map((incident) => (
          <li key={incident.id}>
            <a class="r" href={incidentHref(incident.id)}>
              <Mark kind={incidentMark(incident)} label={resultWords(incident)} />
              <span>
                <b>{incident.node_name ?? "many nodes"}</b> {title(incident)}
              </span>
              <span class="t3 s12">
                <Time iso={incident.first_at} form="moment" />
              </span>
              <span class="sub">
                <Found incident={incident} /> · {incident.closed_at ? `lasted ${lasted(incident)}` : `open for ${lasted(incident)}`}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function Incidents({ clusterId, view, filter, titles }: { clusterId: string; view: Span; filter: Filter; titles: Map<string, string> }) {
  const cell = cellOf(view);
  const exact = wanted(filter, "check").filter((id) => titles.has(id));
  const state = wanted(filter, "is");
  const path = withQuery("/incidents", {
    cluster_id: clusterId,
    since: cell?.since ?? view.since,
    until: cell?.until ?? (view.live ? null : view.until),
    check_id: exact.length === wanted(filter, "check").length ? exact : [],
    state: state.length === 1 ? (state[0] ?? null) : null,
    limit: 50,
  });
  const paged = usePaged<Incident>(path, { events: (type, event) => type.startsWith("incident.") && event.cluster_id === clusterId });
  const rows = paged.rows.filter((incident) => holds(incident, filter, titles));
  const open = rows.filter((incident) => incident.closed_at === null).length;
  const filtered = filter.terms.length > 0 || filter.text !== "";
  const time = cell ? `between ${moment(parse(cell.since) ?? 0)} and ${moment(parse(cell.until) ?? 0)}` : view.words;
  return (
    <>
    <Section
      title="Incidents"
      hint={
        <>
          {rows.length > 0 ? `${counted(rows.length, "incident")}${paged.more ? " or more" : ""} ${time}, ${count(open)} open` : time}
          {cell && (
            <>
              {" "}
              <button type="button" class="linkish" onClick={() => setQuery({ cell: null })}>
                Show the whole time
              </button>
            </>
          )}
        </>
      }
      end={<a href={withQuery(`/clusters/${clusterId}/events`, { since: cell?.since ?? view.since, until: cell?.until ?? (view.live ? null : view.until) })}>All events of this time</a>}
    >
      <Loaded query={paged.first} what="The incidents" stillWorks="The checks above do not depend on it.">
        {() =>
          rows.length > 0 ? (
            <Steady key={path + query.value.get("q")} rows={rows} one="incident">{(steady) => <IncidentTable rows={steady} titles={titles} />}</Steady>
          ) : filtered ? (
            <p class="t2">
              No {paged.more ? "loaded " : ""}incident matches.{" "}
              <button type="button" class="linkish" onClick={() => setQuery({ q: null, cell: null })}>
                Clear the filter
              </button>
              {paged.rows.length > 0 ? ` to see all ${counted(paged.rows.length, "incident")}.` : "."}
            </p>
          ) : (
            <p class="t3">No check failed {time}.</p>
          )
        }
      </Loaded>
      {paged.foot("incident")}
    </Section>
    {cell && rows.length > 0 && <CellEvents clusterId={clusterId} cell={cell} incidents={rows} />}
    </>
  );
}

/** The events of the incidents of one cell, in its time. */
function CellEvents({ clusterId, cell, incidents }: { clusterId: string; cell: { since: string; until: string }; incidents: Incident[] }) {
  const events = useQuery<List<Event>>(withQuery(`/clusters/${clusterId}/events`, { ...cell, limit: 200 }), { events: (_, event) => event.cluster_id === clusterId });
  const ids = new Set(incidents.map((one) => one.id));
  return (
    <Section title="Events of these incidents" hint={`between ${moment(parse(cell.since) ?? 0)} and ${moment(parse(cell.until) ?? 0)}, newest first`}>
      <Loaded query={events} what="The events" rows={3}>
        {(list) => {
          const mine = list.items.filter((event) => event.incident_id !== null && ids.has(event.incident_id));
          return mine.length > 0 ? <Changes events={mine} rows={50} /> : <p class="t3">{list.next_cursor ? "Not among the newest 200 events of this time." : "They began before and were still open: nothing new was told of them in this time."}</p>;
        }}
      </Loaded>
    </Section>
  );
}

function cellWords(bucketMs: number): string {
  return `${span(bucketMs)} a cell`;
}

export function ChecksTab({ clusterId }: TabProps) {
  const view = useSpan();
  const source = query.value.get("q") ?? "";
  const filter = readFilter(source, SPEC);
  const trouble = query.value.get("show") === "trouble";
  const table = query.value.get("as") === "table";
  const matrix = useQuery<CheckMatrix>(withQuery(`/clusters/${clusterId}/checks`, { since: view.since, until: view.until, buckets: view.buckets }), {
    everyMs: 60_000,
    events: (type, event) => type.startsWith("incident.") && event.cluster_id === clusterId,
  });
  const titles = new Map((matrix.data.value?.rows ?? []).map((row) => [row.check_id, row.title]));
  return (
    <>
      <FilterBar
        label="Filter checks"
        placeholder="check:gpu_xid node:gpu-17 result:failed"
        source={source}
        filter={filter}
        onChange={(q) => setQuery({ q, cell: null })}
        before={
          <Segmented
            label="Checks shown"
            choices={[
              { value: "all", label: "All" },
              { value: "trouble", label: "With trouble" },
            ]}
            value={trouble ? "trouble" : "all"}
            onChange={(value) => setQuery({ show: value === "trouble" ? value : null })}
          />
        }
        after={<RangeControls view={view} />}
      />
      <Section
        title={`Results by check, ${cellWords(view.bucketMs)}`}
        class="first"
        hint={<CellKey />}
        end={
          <button type="button" class="linkish" aria-pressed={table} onClick={() => setQuery({ as: table ? null : "table" })}>
            {table ? "As a picture" : "As a table"}
          </button>
        }
      >
        <Loaded query={matrix} what="The checks" rows={12}>
          {(data) => {
            const rows = rowsOf(data.rows, filter, trouble);
            if (rows.length === 0) {
              return <p class="t3">{data.rows.length === 0 ? "No check is known yet." : trouble && source === "" ? `No check failed or warned ${view.words}.` : "No check matches."}</p>;
            }
            return table ? <CheckTable matrix={data} rows={rows} /> : <Matrix matrix={data} rows={rows} clusterId={clusterId} />;
          }}
        </Loaded>
      </Section>
      <Incidents clusterId={clusterId} view={view} filter={filter} titles={titles} />
    </>
  );
}

