/* A cluster: its sentence, its tabs, and the view of the tab that the address names. */
import type { ComponentChild, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { count, counted, percent } from "../format";
import { bindKeys } from "../keys";
import { lazy } from "../lazy";
import { navigate } from "../router";
import { useQuery, type Query } from "../store";
import { ago, now, parse } from "../time";
import type { History, Overview } from "../types";
import { PageSentence, Tabs } from "../ui/page";
import { Shell } from "../ui/shell";
import { ErrorNote } from "../ui/states";
import { MissingPage } from "./missing";
import { JoinFirstNode } from "./join";
import { OverviewTab } from "./overview";
import { Told, told } from "./happened";
import { comparedToDayBefore, historyPath } from "./history";

export interface TabProps {
  clusterId: string;
  overview: Query<Overview>;
}

const TABS: readonly { path: string; label: string; key: string; view: ComponentType<TabProps> }[] = [
  { path: "", label: "Overview", key: "o", view: OverviewTab },
  { path: "nodes", label: "Nodes", key: "n", view: lazy<TabProps>("Nodes", async () => (await import("./nodes")).NodesTab) },
  { path: "checks", label: "Health checks", key: "h", view: lazy<TabProps>("Health checks", async () => (await import("./checks")).ChecksTab) },
  { path: "repairs", label: "Repairs", key: "r", view: lazy<TabProps>("Repairs", async () => (await import("./repairs")).RepairsTab) },
  { path: "events", label: "Events", key: "e", view: lazy<TabProps>("Events", async () => (await import("./events")).EventsTab) },
];

/** The tabs of a cluster, for its own pages and for those of its nodes and repairs; current: a path of TABS. */
export function ClusterTabs({ clusterId, overview, current }: { clusterId: string; overview: Overview | null; current: string }) {
  const base = `/clusters/${clusterId}`;
  useEffect(
    () =>
      bindKeys(
        TABS.map((one) => ({
          keys: `g ${one.key}`,
          does: `Go to ${one.label}`,
          run: () => navigate(one.path ? `${base}/${one.path}` : base),
        })),
      ),
    [base],
  );
  const counts: Record<string, string | undefined> = {
    nodes: overview?.rollup ? count(overview.rollup.nodes) : undefined,
    repairs: overview ? count(overview.waiting_count) : undefined,
  };
  return (
    <Tabs
      label="Cluster"
      tabs={TABS.map((one) => ({
        href: one.path ? `${base}/${one.path}` : base,
        label: one.label,
        count: counts[one.path],
        current: one.path === current,
      }))}
    />
  );
}

const BAD_NEWS = /^(?:incident\.opened|repair\.failed|repair\.unknown)$/;

interface Headline {
  at: number;
  told: string;
  shown: ComponentChild;
}

const DAY_OF_NEWS = 24 * 3_600_000;

/**
 * What is worth a place in the sentence: the newest fault of the recent changes; where a flood of small
 * changes has pushed faults out of those, the node that fell ill last; else the newest change.
 */
function headline(overview: Overview): Headline | null {
  const from = now.peek() - DAY_OF_NEWS;
  const faults = overview.changes.filter((event) => BAD_NEWS.test(event.type) && (parse(event.at) ?? 0) > from);
  const fault = faults.find((event) => event.severity === "critical") ?? faults[0];
  const ill = overview.worst
    .filter((node) => node.state === "unhealthy" && (parse(node.state_since) ?? 0) > from)
    .sort((a, b) => (parse(b.state_since) ?? 0) - (parse(a.state_since) ?? 0))[0];
  if (!fault && ill) {
    return {
      at: parse(ill.state_since) ?? 0,
      told: `${ill.name}: ${ill.reason ?? "unhealthy"}`,
      shown: (
        <>
          <a href={`/nodes/${ill.node_id}`}>{ill.name}</a>: {ill.reason || "unhealthy"}
        </>
      ),
    };
  }
  const event = fault ?? overview.last_change ?? overview.changes[0];
  return event ? { at: parse(event.at) ?? 0, told: told(event), shown: <Told event={event} /> } : null;
}

export function clusterSentence(overview: Overview, history: History | null): { parts: ComponentChild[]; announce: string } {
  const rollup = overview.rollup;
  if (!rollup || rollup.nodes === 0) {
    const created = parse(overview.cluster.created_at);
    return {
      parts: [<b>No node has joined yet</b>, `${overview.cluster.name} was added ${created === null ? "" : ago(created)}`],
      announce: "No node has joined yet",
    };
  }
  const healthy = `${count(rollup.states.healthy)} of ${counted(rollup.nodes, "node")} healthy`;
  const change = headline(overview);
  const compared = history ? comparedToDayBefore(history) : null;
  const aside = compared ?? (rollup.gpus_read < rollup.gpus ? `from ${count(rollup.gpus_read)} of ${counted(rollup.gpus, "GPU")}` : null);
  /* one line of 20 px text at 1280 holds about so many letters */
  const room = 92 - healthy.length - 14 - (change?.told.length ?? 0) - 14;
  const used =
    rollup.gpu_busy_ratio == null ? (
      rollup.gpus === 0 ? (
        <>
          <b>{percent(rollup.cpu_ratio)} CPU busy</b>, no GPU seen
        </>
      ) : (
        <>
          <b>GPU use unknown</b>, {counted(rollup.gpus, "GPU")} not read
        </>
      )
    ) : (
      <>
        <b>{percent(rollup.gpu_busy_ratio)} GPU busy</b>
        {aside && room > aside.length ? `, ${aside}` : ""}
      </>
    );
  return {
    parts: [<b>{healthy}</b>, used, change ? (
        <>
          <b>{ago(change.at)}</b> {change.shown}
        </>
      ) : (
        "no change yet"
      )],
    announce: `${healthy}. ${change?.told ?? ""}`,
  };
}

export function ClusterPage({ params }: ViewProps) {
  const clusterId = params.cluster ?? "";
  const tab = TABS.find((one) => one.path === (params.tab ?? ""));
  const overview = useQuery<Overview>(`/clusters/${clusterId}/overview`, {
    samplesOf: clusterId,
    events: (_, event) => event.cluster_id === clusterId,
  });
  const history = useQuery<History>(historyPath(clusterId), { everyMs: 300_000 });
  const data = overview.data.value;
  const name = data?.cluster.name;
  useEffect(() => {
    document.title = `${tab && tab.path ? `${tab.label} · ` : ""}${name ?? "Cluster"} · Muster`;
  }, [name, tab]);
  if (!tab || overview.error.value?.status === 404 || overview.error.value?.status === 400) {
    return <MissingPage />;
  }
  const sentence = data ? clusterSentence(data, history.data.value) : { parts: [overview.error.value ? "This cluster" : "…"], announce: "" };
  const empty = data !== null && (data.rollup?.nodes ?? 0) === 0 && (tab.path === "" || tab.path === "nodes");
  const View = tab.view;
  return (
    <Shell scope={{ clusterId, ...(name ? { clusterName: name } : {}) }}>
      <PageSentence parts={sentence.parts} announce={sentence.announce} />
      <ClusterTabs clusterId={clusterId} overview={data} current={tab.path} />
      {data === null && overview.error.value ? (
        <div class="sec">
          <ErrorNote error={overview.error.value} what="This cluster" query={overview as Query<unknown>} />
        </div>
      ) : empty ? (
        <JoinFirstNode clusterId={clusterId} />
      ) : (
        <View key={tab.path} clusterId={clusterId} overview={overview} />
      )}
    </Shell>
  );
}
