/* Nodes as a list or as a grid, with one filter and one selection for both. */
import { useEffect } from "preact/hooks";
import { useComputed } from "@preact/signals";
import { readFilter } from "../filter";
import { path, query, setQuery } from "../router";
import type { Overview } from "../types";
import { Button, CopyButton, Segmented, Select } from "../ui/controls";
import { FilterBar } from "../ui/filter-bar";
import type { TabProps } from "./cluster";
import { lazy } from "../lazy";
import type { JoinDialogProps } from "./join-tokens";
import { NODE_SPEC } from "./node-filter";
import { NodesGrid } from "./nodes-grid";
import { ExportButton, NodesList } from "./nodes-list";
import { SelectionBar } from "./selection-bar";
import { selectIn } from "./selection";
import { ask, asked, askNothing, lacks } from "./asked";

const JoinDialog = lazy<JoinDialogProps>("The form for a join token", async () => (await import("./join-tokens")).JoinDialog);

const GROUPS = [
  { value: "rack", label: "Rack" },
  { value: "leaf", label: "Leaf switch" },
  { value: "none", label: "None" },
];

const FILLS = [
  { value: "state", label: "State" },
  { value: "busy", label: "GPU busy" },
  { value: "memory", label: "GPU memory" },
  { value: "temperature", label: "Temperature" },
];

/** An example that fits this cluster: the beginning of a name that it has. */
function example(overview: Overview | null): string {
  const name = overview?.worst[0]?.name ?? overview?.changes.find((event) => event.node_name)?.node_name ?? "gpu-17";
  const beginning = name.replace(/[-.][^-.]*$/, "");
  return `${beginning} state:unhealthy${overview?.rollup && overview.rollup.nodes > 8 ? " rack:r12 util<5" : ""}`;
}

function viewHref(view: string): string {
  const next = new URLSearchParams(query.value);
  if (view === "list") {
    next.delete("view");
  } else {
    next.set("view", view);
  }
  const text = next.toString();
  return path.value + (text ? `?${text}` : "");
}

export function NodesTab({ clusterId, overview }: TabProps) {
  selectIn(clusterId);
  const source = useComputed(() => query.value.get("q") ?? "");
  const filter = useComputed(() => readFilter(source.value, NODE_SPEC));
  const view = query.value.get("view") === "grid" ? "grid" : "list";
  const group = GROUPS.some((one) => one.value === query.value.get("group")) ? (query.value.get("group") ?? "rack") : "rack";
  const fill = FILLS.some((one) => one.value === query.value.get("fill")) ? (query.value.get("fill") ?? "state") : "state";
  useEffect(() => {
    /* the address may name a filter by state alone, as the counts of the overview do */
    const state = query.peek().get("state");
    if (state) {
      setQuery({ state: null, q: `state:${state}` });
    }
  }, []);
  const knobs =
    view === "grid" ? (
      <>
        <Select label="Group" choices={GROUPS} value={group} onChange={(value) => setQuery({ group: value === "rack" ? null : value })} />
        <Select label="Fill" choices={FILLS} value={fill} onChange={(value) => setQuery({ fill: value === "state" ? null : value })} />
      </>
    ) : (
      <ExportButton clusterId={clusterId} filter={filter.value} />
    );
  return (
    <>
      <FilterBar
        label="Filter nodes"
        placeholder={example(overview.data.value)}
        source={source.value}
        filter={filter.value}
        onChange={(q) => setQuery({ q })}
        before={<Segmented label="View" value={view} href={viewHref} choices={[{ value: "list", label: "List" }, { value: "grid", label: "Grid" }]} />}
        after={
          <>
            {knobs}
            <CopyButton class="desk" text={() => location.href}>
              Copy link
            </CopyButton>
            <Button disabled={lacks("token.write")} onClick={() => ask("join")}>
              Add nodes…
            </Button>
          </>
        }
      />
      {view === "grid" ? (
        <NodesGrid clusterId={clusterId} filter={filter.value} group={group} fill={fill} />
      ) : (
        <NodesList clusterId={clusterId} filter={filter.value} overview={overview} />
      )}
      <SelectionBar clusterId={clusterId} />
      {asked().what === "join" && <JoinDialog clusterId={clusterId} clusterName={overview.data.value?.cluster.name ?? "this cluster"} onClose={askNothing} />}
    </>
  );
}
