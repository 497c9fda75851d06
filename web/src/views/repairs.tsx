/* The repairs of a cluster: how many may run, what waits for a person, what runs, and what was done. */
import { useEffect } from "preact/hooks";
import { withQuery } from "../api";
import { readFilter, wanted, type Filter, type Spec } from "../filter";
import { count, counted } from "../format";
import { bindKeys } from "../keys";
import { lazy } from "../lazy";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import { serverNow } from "../time";
import type { List, Repair } from "../types";
import { Select } from "../ui/controls";
import { FilterBar } from "../ui/filter-bar";
import { Section } from "../ui/page";
import { Loaded } from "../ui/states";
import { Steady } from "../ui/steady";
import type { TabProps } from "./cluster";
import { usePaged } from "./paged";
import { RepairDialogs } from "./repair-dialogs";
import { Limits } from "./repair-limits";
import { PastTable, Running, Unsettled, Waiting } from "./repair-lists";
import { openDialog } from "./repair-parts";
import { decidedBy, ENDED, RUNNING } from "./repair-words";

const ACTIONS = ["reset_gpu", "reboot", "power_cycle", "reprovision", "failover", "remove"];
const SPEC: Spec = {
  outcome: { ops: [":"], values: ENDED },
  action: { ops: [":"], values: ACTIONS },
  by: { ops: [":"] },
};
const RANGES = [
  { value: "24h", label: "24 h", hours: 24 },
  { value: "7d", label: "7 days", hours: 24 * 7 },
  { value: "30d", label: "30 days", hours: 24 * 30 },
  { value: "all", label: "everything", hours: 0 },
];

function holds(repair: Repair, filter: Filter): boolean {
  const actions = wanted(filter, "action");
  const by = wanted(filter, "by");
  return (
    repair.node_name.startsWith(filter.text) &&
    (actions.length === 0 || actions.includes(repair.action)) &&
    by.every((name) => decidedBy(repair).toLowerCase().includes(name.toLowerCase())) &&
    filter.terms.every((term) => !term.negated || (term.key === "action" ? repair.action !== term.value : term.key === "outcome" ? repair.state !== term.value : !decidedBy(repair).toLowerCase().includes(term.value.toLowerCase())))
  );
}

/** Whole hours, so that the address, and with it the kept answer, changes once an hour. */
function sinceOf(hours: number): string | null {
  const hour = Math.floor(serverNow() / 3_600_000) * 3_600_000;
  return hours ? new Date(hour - hours * 3_600_000).toISOString().replace(".000", "") : null;
}

function summary(repairs: Repair[]): string {
  return ENDED.map((state) => [state, repairs.filter((repair) => repair.state === state).length] as const)
    .filter(([, n]) => n > 0)
    .map(([state, n]) => `${count(n)} ${state}`)
    .join(", ");
}

function Past({ clusterId }: { clusterId: string }) {
  const source = query.value.get("q") ?? "";
  const filter = readFilter(source, SPEC);
  const range = RANGES.find((one) => one.value === query.value.get("range")) ?? RANGES[1];
  const outcomes = wanted(filter, "outcome").filter((one) => (ENDED as readonly string[]).includes(one));
  const path = withQuery(`/clusters/${clusterId}/repairs`, { open: "false", since: sinceOf(range?.hours ?? 0), state: outcomes, limit: 50 });
  const paged = usePaged<Repair>(path, { events: (type, event) => type.startsWith("repair.") && event.cluster_id === clusterId });
  const shown = paged.rows.filter((repair) => holds(repair, filter));
  const words = summary(shown);
  return (
    <Section title="History" end={<a href={`/clusters/${clusterId}/repairs?view=figures`}>Figures and incident report</a>} hint={words && `${range?.value === "all" ? "" : `last ${range?.label}: `}${words}`}>
      <FilterBar
        label="Filter the history"
        placeholder="gpu-17 outcome:failed action:reboot by:okafor"
        source={source}
        filter={filter}
        onChange={(q) => setQuery({ q })}
        after={<Select label="Last" choices={RANGES} value={range?.value ?? "7d"} onChange={(value) => setQuery({ range: value === "7d" ? null : value })} />}
      />
      <Loaded query={paged.first} what="The history of repairs" stillWorks="What waits and runs does not depend on it.">
        {() =>
          shown.length > 0 ? (
            <Steady key={path + source} rows={shown} one="repair">{(rows) => <PastTable repairs={rows} />}</Steady>
          ) : source ? (
            <p class="t2">
              No {paged.more ? "loaded " : ""}repair matches.{" "}
              <button type="button" class="linkish" onClick={() => setQuery({ q: null })}>
                Clear the filter
              </button>{" "}
              to see all {counted(paged.rows.length, "repair")}.
            </p>
          ) : (
            <p class="t3">No repair has ended in {range?.value === "all" ? "this cluster" : `the last ${range?.label}`}.</p>
          )
        }
      </Loaded>
      {paged.foot("repair")}
    </Section>
  );
}

const Figures = lazy<{ clusterId: string; clusterName: string }>("Figures over repairs", async () => (await import("./repair-figures")).Figures);

export function RepairsTab(props: TabProps) {
  return query.value.get("view") === "figures" ? <Figures clusterId={props.clusterId} clusterName={props.overview.data.value?.cluster.name ?? "cluster"} /> : <RepairsNow {...props} />;
}

function RepairsNow({ clusterId, overview }: TabProps) {
  const open = useQuery<List<Repair>>(`/clusters/${clusterId}/repairs?open=true&limit=200`, {
    events: (type, event) => type.startsWith("repair.") && event.cluster_id === clusterId,
    everyMs: 30_000,
  });
  const items = open.data.value?.items;
  useEffect(
    () =>
      bindKeys([
        {
          keys: "a",
          does: "Review the first repair that waits",
          run: () => {
            const first = open.data.peek()?.items.filter((repair) => repair.state === "proposed").sort((a, b) => a.created_at.localeCompare(b.created_at))[0];
            if (first) {
              openDialog("approve", { repair: first.id });
            }
          },
        },
      ]),
    [open],
  );
  return (
    <>
      {items && <Limits clusterId={clusterId} open={items} overview={overview.data.value} />}
      <div class={items ? undefined : "sec"}>
        <Loaded query={open} what="The open repairs" rows={6}>
          {(list) => (
            <>
              <Waiting repairs={list.items.filter((repair) => repair.state === "proposed")} />
              <Unsettled repairs={list.items.filter((repair) => repair.state === "unknown")} />
              <Running repairs={list.items.filter((repair) => RUNNING.includes(repair.state))} />
              {list.next_cursor && <p class="t3 s12">More than 200 are open; the newest are shown.</p>}
            </>
          )}
        </Loaded>
      </div>
      <Past clusterId={clusterId} />
      <RepairDialogs />
    </>
  );
}

