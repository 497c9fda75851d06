/* Overview: is it healthy, is it used, what happened, and is it set up as wanted. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { withQuery } from "../api";
import { action, count, counted, mebibytesOf, megabits, NO_DATA, percent, sentence, watts } from "../format";
import { roundTop } from "../round";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import { clock, DAY, now, parse, serverNow, span } from "../time";
import type { Drift, EventStrip, History, Overview, Repair, Rollup, WorstNode } from "../types";
import { Chart, HoursTable, type ChartProps } from "../ui/chart";
import { Mark, markKind, STATE_WORD, StateBar, StateCounts, StateMark } from "../ui/marks";
import { FactList, Nothing, Section, Time, type Fact } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { notHealthy } from "../ui/verdict";
import type { TabProps } from "./cluster";
import { Changes, KindKey, Strip } from "./happened";
import { comparedToDayBefore, historyPath, lastKnown, peak, splitDays, windowFor } from "./history";

const NOT_HEALTHY_QUERY = "state:unhealthy state:repairing state:starting state:pending state:paused state:unknown";

function nodesHref(clusterId: string, filter: string): string {
  return `/clusters/${clusterId}/nodes?q=${encodeURIComponent(filter).replace(/%3A/g, ":").replace(/%20/g, "+")}`;
}

function seenWords(rollup: Rollup): string {
  const at = parse(rollup.at);
  const late = rollup.nodes - rollup.seen_20s;
  const when = at === null ? "" : `${clock(at, true)}, `;
  return late <= 0 ? `${when}every node seen in the last 20 s` : `${when}every node seen in the last 20 s but ${count(late)}`;
}

function Health({ overview, clusterId }: { overview: Overview; clusterId: string }) {
  const rollup = overview.rollup as Rollup;
  return (
    <Section title="Health" hint={seenWords(rollup)}>
      <StateBar states={rollup.states} />
      <StateCounts rollup={rollup} href={(filter) => nodesHref(clusterId, filter)} />
    </Section>
  );
}

function recommended(node: WorstNode): ComponentChildren {
  if (node.repair_id) {
    return (
      <a href={`/repairs/${node.repair_id}?dialog=approve&repair=${node.repair_id}`} class="nw">
        {sentence(action(node.action ?? "repair"))}…
      </a>
    );
  }
  return node.action && node.action !== "none" ? <span class="t2">{sentence(action(node.action))}</span> : <Nothing />;
}

function Worst({ overview, clusterId }: { overview: Overview; clusterId: string }) {
  const n = overview.rollup ? notHealthy(overview.rollup) : 0;
  return (
    <Section title="Worst nodes" end={n > 0 && <a href={nodesHref(clusterId, NOT_HEALTHY_QUERY)}>{n === 1 ? "1 not healthy" : `All ${count(n)} not healthy`}</a>}>
      {overview.worst.length === 0 ? (
        <p class="t3">Every node is healthy.</p>
      ) : (
        <>
          <Table
            name="Worst nodes"
            class="desk"
            rows={overview.worst}
            rowKey={(node) => node.node_id}
            columns={[
              {
                key: "name",
                head: "Node",
                cell: (node) => (
                  <StateMark state={node.state} warning={node.warning}>
                    <a class="name" href={`/nodes/${node.node_id}`}>
                      {node.name}
                    </a>
                  </StateMark>
                ),
              },
              { key: "why", head: "Why", class: "why", cell: (node) => node.reason || <Nothing>no reason given</Nothing> },
              { key: "since", head: "Since", number: true, class: "nw", cell: (node) => <Time iso={node.state_since} /> },
              { key: "do", head: "Recommended", cell: recommended },
            ]}
          />
          <ul class="mobile mlist">
            {overview.worst.map((node) => (
              <li key={node.node_id}>
                <a class="r" href={`/nodes/${node.node_id}`}>
                  <Mark kind={markKind(node.state, node.warning)} label={STATE_WORD[markKind(node.state, node.warning)]} />
                  <b>{node.name}</b>
                  <span class="t3 s12">
                    <Time iso={node.state_since} />
                  </span>
                  <span class="sub">
                    {node.reason || "no reason given"}
                    {node.action && node.action !== "none" ? ` · ${action(node.action)}` : ""}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

function touches(repair: Repair): string {
  const plan = repair.plan;
  const parts: string[] = [];
  if (repair.reason) {
    parts.push(repair.reason);
  }
  if (plan?.loses) {
    parts.push(plan.loses);
  }
  if (plan && plan.capacity.healthy_after !== plan.capacity.healthy_before) {
    parts.push(`capacity falls to ${counted(plan.capacity.healthy_after, "node")}`);
  }
  return parts.join("; ");
}

/* as high as the five worst nodes beside it, so that the charts stay in the first window */
const MOST_WAITING = 4;

function Waiting({ overview, clusterId }: { overview: Overview; clusterId: string }) {
  const shown = overview.waiting_count > MOST_WAITING ? overview.waiting.slice(0, MOST_WAITING - 1) : overview.waiting;
  const more = overview.waiting_count - shown.length;
  return (
    <Section title="Waiting for approval" hint={overview.waiting.some((one) => one.deadline_at) ? "time left" : overview.waiting.length > 0 && "for how long"} end={<a href={`/clusters/${clusterId}/repairs`}>All repairs</a>}>
      {overview.waiting.length === 0 ? (
        <p class="t3">Nothing waits for approval.</p>
      ) : (
        <ul class="rows waits">
          {shown.map((repair) => (
            <li key={repair.id}>
              <span class="t3 nw">{repair.deadline_at ? <Time iso={repair.deadline_at} form="left" /> : <Time iso={repair.created_at} />}</span>
              <span>
                <a href={`/repairs/${repair.id}?dialog=approve&repair=${repair.id}`}>
                  {sentence(action(repair.action))} {repair.node_name}…
                </a>
                <span class="sub">{touches(repair)}</span>
              </span>
            </li>
          ))}
          {more > 0 && (
            <li>
              <span />
              <a href={`/clusters/${clusterId}/repairs`}>{count(more)} more</a>
            </li>
          )}
        </ul>
      )}
    </Section>
  );
}

function usedOf(used: number | null, total: number | null): { value: string; compare: string } {
  return used === null || !total ? { value: NO_DATA, compare: "" } : { value: percent(used / total), compare: mebibytesOf(used, total) };
}

/** The three charts of the overview, in order; without GPUs the processor takes their place. */
function chartsOf(history: History, rollup: Rollup, windowMs: number): ChartProps[] {
  const until = serverNow();
  const share = (value: number) => percent(value);
  const day = (values: (number | null)[]) => splitDays(history.at, values, until, windowMs);
  const net = day(history.net_mbps);
  const top = roundTop(Math.max(1, peak(net.today) ?? 0, peak(net.before) ?? 0));
  const [topText, unit] = megabits(top).split(" ");
  const last = megabits(lastKnown(net.today)?.y);
  const highest = peak(net.today);
  const compared = comparedToDayBefore(history, until);
  const partial = rollup.gpus_read < rollup.gpus ? `from ${count(rollup.gpus_read)} of ${counted(rollup.gpus, "GPU")}` : "";
  const percentAxis: ChartProps["axis"] = ["100 %", "50"];
  const busy: ChartProps =
    rollup.gpus > 0
      ? { title: "GPU busy", value: percent(rollup.gpu_busy_ratio), compare: compared ?? partial, day: day(history.gpu_busy_ratio), top: 1, axis: percentAxis, format: share }
      : { title: "CPU busy", value: percent(rollup.cpu_ratio), compare: "no GPU seen", day: day(history.cpu_ratio), top: 1, axis: percentAxis, format: share };
  const memory: ChartProps = {
    title: "GPU memory",
    ...usedOf(rollup.gpu_mem_used_mib, rollup.gpu_mem_total_mib),
    day: day(history.gpu_mem_ratio),
    top: 1,
    axis: percentAxis,
    format: share,
  };
  const network: ChartProps = {
    title: "Network, per node",
    value: last,
    compare: highest === null ? "" : `peak ${megabits(highest)}`,
    day: net,
    top,
    /* the unit stands with the value above; it is repeated only where it is another */
    axis: [last.endsWith(unit ?? "") ? (topText ?? "") : megabits(top), megabits(top / 2).split(" ")[0] ?? ""],
    format: megabits,
  };
  return rollup.gpus > 0 ? [busy, memory, network] : [busy, network];
}

function Memory({ rollup }: { rollup: Rollup }) {
  const memory = usedOf(rollup.mem_used_mib, rollup.mem_total_mib);
  return (
    <figure class="chart">
      <h3>
        Memory <b>{memory.value}</b>
        <span class="hint">{memory.compare}</span>
      </h3>
      <p class="t3 s12 gap8">No history is kept of it.</p>
    </figure>
  );
}

function Use({ clusterId, rollup, windowMs }: { clusterId: string; rollup: Rollup; windowMs: number }) {
  const history = useQuery<History>(historyPath(clusterId), { everyMs: 300_000 });
  const asTable = query.value.get("use") === "table";
  const data = history.data.value;
  const before = windowMs === DAY && data?.at.some((at, i) => at * 1000 < now.value - DAY && data.cpu_ratio[i] != null);
  const hint = asTable ? `last ${span(windowMs)}, means` : `last ${span(windowMs)}; ${before ? "dotted: the day before; " : ""}hatched: no data`;
  const turn = (
    <button type="button" class="linkish bare" onClick={() => setQuery({ use: asTable ? null : "table" })}>
      {asTable ? "Show as charts" : "Show as a table"}
    </button>
  );
  return (
    <Section title="Use" hint={hint} end={turn}>
      <Loaded query={history} what="The history of use" rows={4} stillWorks="The figures above are up to date.">
        {(data) => {
          const charts = chartsOf(data, rollup, windowMs);
          return asTable ? (
            <HoursTable charts={charts} name="Use by the hour" />
          ) : (
            <div class="cols three">
              {charts.slice(0, 1).map((chart) => (
                <Chart key={chart.title} {...chart} />
              ))}
              {rollup.gpus === 0 && <Memory rollup={rollup} />}
              {charts.slice(1).map((chart) => (
                <Chart key={chart.title} {...chart} />
              ))}
            </div>
          );
        }}
      </Loaded>
    </Section>
  );
}

function Happened({ overview, clusterId, windowMs }: { overview: Overview; clusterId: string; windowMs: number }) {
  /* of the moment of opening: an address that changes all the time could not be kept */
  const since = useMemo(() => new Date(Math.floor((serverNow() - windowMs) / 60_000) * 60_000).toISOString().replace(".000", ""), [clusterId, windowMs]);
  const strip = useQuery<EventStrip>(withQuery(`/clusters/${clusterId}/events-strip`, { since: windowMs === DAY ? null : since, buckets: 96 }), { events: (_, event) => event.cluster_id === clusterId, everyMs: 300_000 });
  const events = strip.data.value?.buckets.reduce((sum, b) => sum + b.fault + b.warning + b.repair + b.state + b.check + b.other, 0);
  const href = (since: string, until: string) => withQuery(`/clusters/${clusterId}/events`, { since, until });
  return (
    <Section title="What happened" hint={<KindKey />} end={<a href={`/clusters/${clusterId}/events`}>{events ? `All ${counted(events, "event")}` : "All events"}</a>}>
      <Loaded query={strip} what="The timeline" rows={2}>
        {(data) => <Strip strip={data} href={href} />}
      </Loaded>
      <Changes events={overview.changes} rows={12} />
    </Section>
  );
}

function drifted(drift: Drift[], field: string, clusterId: string): ComponentChildren {
  const found = drift.find((one) => one.field === field);
  const others = found?.seen.filter((one) => one.value !== found.wanted).reduce((sum, one) => sum + one.nodes, 0) ?? 0;
  if (!found || others === 0) {
    return null;
  }
  const words = found.seen
    .filter((one) => one.value !== found.wanted)
    .map((one) => `${one.value || "unknown"} on ${counted(one.nodes, "node")}`)
    .join(", ");
  return (
    <>
      {" "}
      <a class="drift" href={`/clusters/${clusterId}/nodes`} title={words}>
        {counted(others, "node")} {others === 1 ? "differs" : "differ"}
      </a>
      <span class="sub">{words}</span>
    </>
  );
}

const SCHEDULERS: Record<string, string> = { slurm: "Slurm", kubernetes: "Kubernetes" };

function Configuration({ overview, clusterId }: { overview: Overview; clusterId: string }) {
  const { cluster, drift, rollup } = overview;
  const gpus = rollup?.gpus ?? 0;
  const perNode = cluster.gpus_per_node ? `, ${cluster.gpus_per_node} per node` : "";
  const unset = <Nothing>not set</Nothing>;
  const facts: Fact[] = [
    ["Region", cluster.region || unset],
    ["GPUs", gpus || cluster.gpu_type ? `${count(gpus)} × ${cluster.gpu_type || "GPU"}${perNode}` : <Nothing>none seen</Nothing>],
    ["Driver", <>{cluster.driver_version || unset}{drifted(drift, "driver_version", clusterId)}</>],
    ["Network", cluster.network || unset],
    ["OS image", <>{cluster.os_image || unset}{drifted(drift, "os_image", clusterId)}</>],
    ["Scheduler", SCHEDULERS[cluster.scheduler ?? ""] ?? <Nothing>none</Nothing>],
    ["Rate", cluster.billing_rate === null ? unset : `${cluster.billing_currency ?? ""} ${cluster.billing_rate} per GPU-hour`],
    ["Power", rollup?.power_w == null ? <Nothing>{NO_DATA}</Nothing> : watts(rollup.power_w)],
    ["Repairs", `begin within ${span(cluster.begin_within_seconds * 1000)} of approval, back within ${span(cluster.rejoin_within_seconds * 1000)}, healthy for ${span(cluster.healthy_delay_seconds * 1000)}`],
  ];
  return (
    <Section title="Configuration">
      <FactList wide facts={facts} />
    </Section>
  );
}

function windowOf(overview: Overview): number {
  return windowFor(now.value - (parse(overview.cluster.created_at) ?? 0));
}

export function OverviewTab({ clusterId, overview }: TabProps) {
  return (
    <Loaded query={overview} what="The overview" rows={8}>
      {(data) => (
        <>
          {data.rollup && <Health overview={data} clusterId={clusterId} />}
          <div class="cols aside">
            <Worst overview={data} clusterId={clusterId} />
            <Waiting overview={data} clusterId={clusterId} />
          </div>
          {data.rollup && <Use clusterId={clusterId} rollup={data.rollup} windowMs={windowOf(data)} />}
          <div class="cols aside">
            <Happened overview={data} clusterId={clusterId} windowMs={windowOf(data)} />
            <Configuration overview={data} clusterId={clusterId} />
          </div>
        </>
      )}
    </Loaded>
  );
}
