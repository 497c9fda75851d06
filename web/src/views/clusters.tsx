/* All clusters of the org, those that need attention first. */
import { useEffect } from "preact/hooks";
import { useComputed } from "@preact/signals";
import { count, counted, NO_DATA, percent } from "../format";
import { readFilter, satisfies, wanted, type Filter, type Spec } from "../filter";
import { query, setQuery } from "../router";
import { may, me } from "../session";
import { useQuery } from "../store";
import { parse, now, span } from "../time";
import type { ClusterItem, Event, History, List, Repair } from "../types";
import { Select } from "../ui/controls";
import { FilterBar } from "../ui/filter-bar";
import { Mark, STATE_WORD } from "../ui/marks";
import { Nothing, PageSentence, Time } from "../ui/page";
import { Shell } from "../ui/shell";
import { Empty, Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { clusterMark, notHealthy } from "../ui/verdict";
import { told } from "./happened";

const SPEC: Spec = {
  state: { ops: [":"], values: ["healthy", "warning", "unhealthy", "repairing", "starting", "pending", "paused", "unknown"] },
  region: { ops: [":"] },
  gpu: { ops: [":"] },
  busy: { ops: ["<", ">"], number: true },
};

const SORTS = [
  { value: "need", label: "Needs attention first" },
  { value: "name", label: "Name" },
  { value: "nodes", label: "Most nodes first" },
];

const NEED = ["unhealthy", "unknown", "repairing", "warning", "starting", "paused", "healthy", "pending"];

function holds(cluster: ClusterItem, filter: Filter): boolean {
  const has = (text: string | null, value: string) => (text ?? "").toLowerCase().includes(value.toLowerCase());
  const busy = cluster.rollup?.gpu_busy_ratio;
  return (
    cluster.name.startsWith(filter.text) &&
    (wanted(filter, "state").length === 0 || wanted(filter, "state").includes(clusterMark(cluster.rollup))) &&
    wanted(filter, "region").every((value) => has(cluster.region, value)) &&
    wanted(filter, "gpu").every((value) => has(cluster.gpu_type, value)) &&
    filter.terms.filter((term) => term.key === "busy").every((term) => satisfies(term, busy == null ? null : busy * 100))
  );
}

function sorted(items: ClusterItem[], by: string): ClusterItem[] {
  const byName = (a: ClusterItem, b: ClusterItem) => a.name.localeCompare(b.name, "en", { numeric: true });
  if (by === "name") {
    return [...items].sort(byName);
  }
  if (by === "nodes") {
    return [...items].sort((a, b) => (b.rollup?.nodes ?? 0) - (a.rollup?.nodes ?? 0) || byName(a, b));
  }
  const need = (c: ClusterItem) => NEED.indexOf(clusterMark(c.rollup));
  return [...items].sort((a, b) => need(a) - need(b) || (b.rollup ? notHealthy(b.rollup) : 0) - (a.rollup ? notHealthy(a.rollup) : 0) || byName(a, b));
}

function ShareBar({ cluster }: { cluster: ClusterItem }) {
  const nodes = cluster.rollup?.nodes ?? 0;
  const healthy = nodes ? ((cluster.rollup?.states.healthy ?? 0) / nodes) * 72 : 0;
  const bad = nodes ? (cluster.rollup?.states.unhealthy ?? 0) / nodes : 0;
  const badWidth = bad > 0 ? Math.max(2, bad * 72) : 0;
  return (
    <svg class="sharebar" viewBox="0 0 72 6" aria-hidden="true">
      <rect class="b0" width="72" height="6" rx="1" />
      <rect class="f-healthy" width={Math.min(healthy, 72 - badWidth)} height="6" rx="1" />
      {badWidth > 0 && <rect class="f-unhealthy" x={Math.min(healthy, 72 - badWidth)} width={badWidth} height="6" />}
    </svg>
  );
}

/* each line of a day is a request of its own */
const MOST_SPARKS = 12;
const SPARK_STEP_SECONDS = 1_800;

/** A day of use as a thin line, next to its figure. */
function Spark({ clusterId }: { clusterId: string }) {
  const history = useQuery<History>(`/clusters/${clusterId}/history?step_seconds=${SPARK_STEP_SECONDS}`, { everyMs: 600_000 });
  const data = history.data.value;
  const first = data?.at[0] ?? 0;
  let path = "";
  let pen = false;
  data?.gpu_busy_ratio.forEach((value, i) => {
    const x = (((data.at[i] ?? 0) - first) / 86_400) * 96;
    path += value === null ? "" : `${pen ? "L" : "M"}${x.toFixed(1)} ${(19 - value * 18).toFixed(1)}`;
    pen = value !== null;
  });
  return (
    <svg class="spark" viewBox="0 0 96 20" aria-hidden="true">
      <path class="ln" d={path} />
    </svg>
  );
}

function LastChange({ event }: { event: Event | undefined }) {
  if (!event) {
    return <Nothing>none of late</Nothing>;
  }
  return (
    <span class="t2">
      <Time iso={event.at} form="ago" />: {told(event)}
    </span>
  );
}

function ClusterTable({ items, waiting, last }: { items: ClusterItem[]; waiting: Map<string, number>; last: Map<string, Event> }) {
  return (
    <>
      <Table
        name="Clusters"
        class="desk"
        rows={items}
        rowKey={(cluster) => cluster.id}
        columns={[
          {
            key: "name",
            head: "Cluster",
            class: "h44",
            cell: (cluster) => (
              <span class="st">
                <Mark kind={clusterMark(cluster.rollup)} label={STATE_WORD[clusterMark(cluster.rollup)]} />
                <a class="name" href={`/clusters/${cluster.id}`}>
                  {cluster.name}
                </a>
              </span>
            ),
          },
          { key: "region", head: "Region", cell: (cluster) => cluster.region || <Nothing /> },
          { key: "runs", head: "Runs", class: "wide-only", cell: (cluster) => (cluster.scheduler && cluster.scheduler !== "none" ? cluster.scheduler : <Nothing>no scheduler</Nothing>) },
          { key: "gpu", head: "GPU", cell: (cluster) => cluster.gpu_type || <Nothing>not seen yet</Nothing> },
          {
            key: "healthy",
            head: "Healthy",
            number: true,
            class: "nw",
            cell: (cluster) =>
              cluster.rollup?.nodes ? (
                <>
                  <b>{count(cluster.rollup.states.healthy)}</b> of {count(cluster.rollup.nodes)}
                </>
              ) : (
                <Nothing>no node yet</Nothing>
              ),
          },
          { key: "share", head: <span class="vh">Share of healthy nodes</span>, cell: (cluster) => <ShareBar cluster={cluster} /> },
          {
            key: "busy",
            head: "GPU busy, 24 h",
            number: true,
            class: "nw",
            cell: (cluster) =>
              cluster.rollup?.gpu_busy_ratio == null ? (
                <Nothing>{NO_DATA}</Nothing>
              ) : (
                <span class="barcell">
                  {items.indexOf(cluster) < MOST_SPARKS && <Spark clusterId={cluster.id} />}
                  <span>{percent(cluster.rollup.gpu_busy_ratio)}</span>
                </span>
              ),
          },
          {
            key: "approvals",
            head: "Approvals",
            number: true,
            cell: (cluster) => {
              const n = waiting.get(cluster.id) ?? 0;
              return n ? <a href={`/clusters/${cluster.id}/repairs`}>{count(n)}</a> : <Nothing>0</Nothing>;
            },
          },
          { key: "last", head: "Last change", class: "last", cell: (cluster) => <LastChange event={last.get(cluster.id)} /> },
        ]}
      />
      <ul class="mobile mlist">
        {items.map((cluster) => (
          <li key={cluster.id}>
            <a class="r" href={`/clusters/${cluster.id}`}>
              <Mark kind={clusterMark(cluster.rollup)} label={STATE_WORD[clusterMark(cluster.rollup)]} />
              <b>{cluster.name}</b>
              <span class="t3 s12">{percent(cluster.rollup?.gpu_busy_ratio)} busy</span>
              <span class="sub">
                {cluster.rollup?.nodes ? `${count(cluster.rollup.states.healthy)} of ${counted(cluster.rollup.nodes, "node")} healthy` : "no node yet"}
                {waiting.get(cluster.id) ? ` · ${counted(waiting.get(cluster.id) ?? 0, "repair")} to approve` : ""}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function sentenceOf(items: ClusterItem[], waiting: number): (string | preact.ComponentChild)[] {
  const nodes = items.reduce((sum, c) => sum + (c.rollup?.nodes ?? 0), 0);
  const healthy = items.reduce((sum, c) => sum + (c.rollup?.states.healthy ?? 0), 0);
  const silent = items.filter((c) => (c.rollup?.nodes ?? 0) > 0 && clusterMark(c.rollup) === "unknown");
  return [
    nodes ? (
      <>
        <b>
          {count(healthy)} of {counted(nodes, "node")} healthy
        </b>{" "}
        in {counted(items.length, "cluster")}
      </>
    ) : (
      <>
        <b>No node has joined yet</b> in {counted(items.length, "cluster")}
      </>
    ),
    waiting ? (
      <>
        <a href="/repairs">
          <b>{counted(waiting, "repair")}</b>
        </a>{" "}
        {waiting === 1 ? "waits" : "wait"} for approval
      </>
    ) : (
      "no repair waits for approval"
    ),
    silent.length > 0 && (
      <>
        <b>{silent.map((c) => c.name).join(", ")}</b> {silent.length === 1 ? "is" : "are"} silent
      </>
    ),
  ];
}

export function ClustersPage() {
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200", {
    samplesOf: "*",
    sampleGapMs: 5_000,
    events: (type) => /^(?:node|cluster|repair)\./.test(type),
  });
  const repairs = useQuery<List<Repair>>("/repairs?state=proposed&limit=200", { events: (type) => type.startsWith("repair.") });
  const waiting = useComputed(() => {
    const by = new Map<string, number>();
    for (const repair of repairs.data.value?.items ?? []) {
      by.set(repair.cluster_id, (by.get(repair.cluster_id) ?? 0) + 1);
    }
    return by;
  });
  const events = useQuery<List<Event>>("/events?limit=200", { events: () => true });
  const last = useComputed(() => {
    const by = new Map<string, Event>();
    for (const event of events.data.value?.items ?? []) {
      if (event.cluster_id && !by.has(event.cluster_id)) {
        by.set(event.cluster_id, event);
      }
    }
    return by;
  });
  useEffect(() => {
    document.title = "Clusters · Muster";
  }, []);
  const source = query.value.get("q") ?? "";
  const filter = readFilter(source, SPEC);
  const sort = query.value.get("sort") ?? "need";
  const items = clusters.data.value?.items;
  const add = may("cluster.write");
  if (items && items.length === 0) {
    return (
      <Shell scope={{}}>
        <Empty level={1} title={add ? "Add your first cluster" : "There is no cluster yet"}>
          <p>A cluster is a set of GPU nodes. Give it a name; then run one command on each node, and they appear here within 10 seconds.</p>
          {add ? (
            <p class="row8 gap16">
              <a class="btn primary" href="/clusters/new">
                Add a cluster…
              </a>
            </p>
          ) : (
            <p class="gap8">Adding one needs the permission cluster.write. Somebody with the role admin in {me.value?.org.title || me.value?.org.name} can give it.</p>
          )}
        </Empty>
      </Shell>
    );
  }
  const parts = items ? sentenceOf(items, repairs.data.value?.items.length ?? 0) : ["Clusters"];
  const shown = items ? sorted(items.filter((cluster) => holds(cluster, filter)), sort) : [];
  return (
    <Shell scope={{}}>
      <PageSentence
        parts={parts as preact.ComponentChild[]}
        actions={
          add ? (
            <a class="btn primary" href="/clusters/new">
              Add a cluster…
            </a>
          ) : undefined
        }
      />
      <FilterBar
        label="Filter clusters"
        placeholder="fra region:eu gpu:h100 state:unhealthy"
        source={source}
        filter={filter}
        onChange={(q) => setQuery({ q })}
        after={<Select label="Sort" choices={SORTS} value={sort} onChange={(value) => setQuery({ sort: value === "need" ? null : value })} />}
      />
      <Loaded query={clusters} what="The list of clusters" rows={5}>
        {(list) => (
          <>
            {shown.length > 0 ? (
              <ClusterTable items={shown} waiting={waiting.value} last={last.value} />
            ) : (
              <p class="t2">
                No cluster matches.{" "}
                <button type="button" class="linkish" onClick={() => setQuery({ q: null })}>
                  Clear the filter
                </button>{" "}
                to see all {counted(list.items.length, "cluster")}.
              </p>
            )}
            <p class="s12 t3 foot1">
              {shown.length === list.items.length ? counted(list.items.length, "cluster") : `${count(shown.length)} of ${counted(list.items.length, "cluster")}`}
              {list.next_cursor ? ", only the first 200 are shown" : ""}. {oldest(list.items)}
            </p>
          </>
        )}
      </Loaded>
    </Shell>
  );
}

function oldest(items: ClusterItem[]): string {
  const times = items.map((c) => parse(c.rollup?.at)).filter((at): at is number => at !== null);
  if (times.length === 0) {
    return "";
  }
  return `Figures are at most ${span(now.value - Math.min(...times))} old.`;
}
