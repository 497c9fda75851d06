/* Health checks: each check over time, how much of it passed and who fails it now; below, the incidents behind the cells. */
import { useMemo } from "preact/hooks";
import { withQuery } from "../api";
import { readFilter, wanted, type Filter, type Spec } from "../filter";
import { count, counted } from "../format";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import { now, span } from "../time";
import type { CheckMatrix, CheckRow, Incident } from "../types";
import { Segmented, Select } from "../ui/controls";
import { FilterBar } from "../ui/filter-bar";
import { Mark } from "../ui/marks";
import { Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { Steady } from "../ui/steady";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";
import { CellKey, CheckTable, Matrix } from "./check-matrix";
import { End, lasted } from "./incident-words";
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
  result: { ops: [":"], values: ["failed", "warning", "info"] },
  is: { ops: [":"], values: ["open", "closed"] },
};

interface Span {
  since: string;
  until: string;
  buckets: number;
  bucketMs: number;
  label: string;
}

/** Whole intervals, so that a cell keeps its place until the next one begins. */
function useSpan(): Span {
  const range = RANGES.find((one) => one.value === query.value.get("range")) ?? RANGES[1];
  const end = Math.ceil(now.value / range.bucketMs) * range.bucketMs;
  return useMemo(() => {
    const text = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
    return { since: text(end - range.buckets * range.bucketMs), until: text(end), buckets: range.buckets, bucketMs: range.bucketMs, label: range.label };
  }, [end, range]);
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

function resultOf(incident: Incident): "failed" | "warning" | "info" {
  return incident.node_fault || incident.severity === "critical" ? "failed" : incident.severity === "info" ? "info" : "warning";
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
    (results.length === 0 || results.includes(resultOf(incident))) &&
    (nodes.length === 0 || nodes.some((name) => (incident.node_name ?? "many nodes").startsWith(name)))
  );
}

const WORD = { failed: "Failed", warning: "Warning", info: "Info" } as const;

function Result({ incident }: { incident: Incident }) {
  const result = resultOf(incident);
  return (
    <span class="st">
      <Mark kind={incident.closed_at ? "healthy" : result === "failed" ? "unhealthy" : "warning"} />
      {incident.closed_at ? `${WORD[result]}, over` : WORD[result]}
    </span>
  );
}

function href(incident: Incident): string {
  if (!incident.node_id) {
    return `/clusters/${incident.cluster_id}/nodes`;
  }
  return `/clusters/${incident.cluster_id}/nodes/${incident.node_id}?dialog=incident&incident=${incident.id}`;
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
          { key: "why", head: "What was found", class: "t2 why", cell: (incident) => (incident.mode === "shadow" ? `In shadow: ${incident.summary}` : incident.summary) },
          { key: "first", head: "Began", number: true, class: "nw", cell: (incident) => <Time iso={incident.first_at} form="moment" /> },
          { key: "lasted", head: "Lasted", number: true, class: "nw", cell: lasted },
          { key: "count", head: "Times", number: true, cell: (incident) => count(incident.count) },
          { key: "end", head: "End", class: "t2 nw", cell: (incident) => <End incident={incident} /> },
          { key: "no", head: "Incident", number: true, cell: (incident) => <a href={href(incident)}>{incident.no}</a> },
        ]}
      />
      <ul class="mobile mlist">
        {rows.map((incident) => (
          <li key={incident.id}>
            <a class="r" href={href(incident)}>
              <Mark kind={incident.closed_at ? "healthy" : resultOf(incident) === "failed" ? "unhealthy" : "warning"} label={incident.closed_at ? "Over" : WORD[resultOf(incident)]} />
              <span>
                <b>{incident.node_name ?? "many nodes"}</b> {title(incident)}
              </span>
              <span class="t3 s12">
                <Time iso={incident.first_at} form="moment" />
              </span>
              <span class="sub">
                {incident.summary} · {incident.closed_at ? `lasted ${lasted(incident)}` : `open for ${lasted(incident)}`}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function Incidents({ clusterId, view, filter, titles }: { clusterId: string; view: Span; filter: Filter; titles: Map<string, string> }) {
  const exact = wanted(filter, "check").filter((id) => titles.has(id));
  const state = wanted(filter, "is");
  const path = withQuery("/incidents", {
    cluster_id: clusterId,
    since: view.since,
    check_id: exact.length === wanted(filter, "check").length ? exact : [],
    state: state.length === 1 ? (state[0] ?? null) : null,
    limit: 50,
  });
  const paged = usePaged<Incident>(path, { events: (type, event) => type.startsWith("incident.") && event.cluster_id === clusterId });
  const rows = paged.rows.filter((incident) => holds(incident, filter, titles));
  const open = rows.filter((incident) => incident.closed_at === null).length;
  const filtered = filter.terms.length > 0 || filter.text !== "";
  return (
    <Section title="Incidents" hint={rows.length > 0 ? `${counted(rows.length, "incident")}${paged.more ? " or more" : ""} in the last ${view.label}, ${count(open)} open` : `last ${view.label}`} end={<a href={withQuery(`/clusters/${clusterId}/events`, { since: view.since })}>All events</a>}>
      <Loaded query={paged.first} what="The incidents" stillWorks="The checks above do not depend on it.">
        {() =>
          rows.length > 0 ? (
            <Steady key={path + query.value.get("q")} rows={rows} one="incident">{(steady) => <IncidentTable rows={steady} titles={titles} />}</Steady>
          ) : filtered ? (
            <p class="t2">
              No {paged.more ? "loaded " : ""}incident matches.{" "}
              <button type="button" class="linkish" onClick={() => setQuery({ q: null })}>
                Clear the filter
              </button>
              {paged.rows.length > 0 ? ` to see all ${counted(paged.rows.length, "incident")}.` : "."}
            </p>
          ) : (
            <p class="t3">No check failed in the last {view.label}.</p>
          )
        }
      </Loaded>
      {paged.foot("incident")}
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
        onChange={(q) => setQuery({ q })}
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
        after={<Select label="Last" choices={RANGES.map(({ value, label }) => ({ value, label }))} value={query.value.get("range") ?? "24h"} onChange={(value) => setQuery({ range: value === "24h" ? null : value })} />}
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
              return <p class="t3">{data.rows.length === 0 ? "No check is known yet." : trouble && source === "" ? `No check failed or warned in the last ${view.label}.` : "No check matches."}</p>;
            }
            return table ? <CheckTable matrix={data} rows={rows} /> : <Matrix matrix={data} rows={rows} clusterId={clusterId} />;
          }}
        </Loaded>
      </Section>
      <Incidents clusterId={clusterId} view={view} filter={filter} titles={titles} />
    </>
  );
}

