/* What waits for a person, over all clusters of the org. */
import { useEffect } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { counted } from "../format";
import { bindKeys } from "../keys";
import { useQuery, type Query } from "../store";
import { now, parse, span } from "../time";
import type { ClusterItem, List, Repair } from "../types";
import { Button } from "../ui/controls";
import { PageSentence } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { RepairDialogs } from "./repair-dialogs";
import { Running, Unsettled, Waiting } from "./repair-lists";
import { lacks, openDialog } from "./repair-parts";
import { hurts, RUNNING, worstFirst } from "./repair-words";
import { BulkApprove } from "./bulk-approve";

function sentenceOf(items: Repair[]) {
  const waiting = items.filter((repair) => repair.state === "proposed");
  const unknown = items.filter((repair) => repair.state === "unknown").length;
  const clusters = new Set(waiting.map((repair) => repair.cluster_id)).size;
  const oldest = Math.min(...waiting.map((repair) => parse(repair.created_at) ?? Infinity));
  const n = waiting.length;
  return {
    parts: [
      n ? (
        <>
          <b>
            {counted(n, "repair")} {n === 1 ? "waits" : "wait"} for approval
          </b>{" "}
          in {counted(clusters, "cluster")}
        </>
      ) : (
        <b>Nothing waits for approval</b>
      ),
      n > 0 && Number.isFinite(oldest) && (
        <>
          the oldest for <b>{span(now.value - oldest)}</b>
        </>
      ),
      unknown > 0 && (
        <>
          <b>{counted(unknown, "outcome")}</b> not known
        </>
      ),
    ],
    announce: `${counted(n, "repair")} ${n === 1 ? "waits" : "wait"} for approval`,
  };
}

export function ApprovalsPage(_: ViewProps) {
  const open = useQuery<List<Repair>>("/repairs?open=true&limit=200", { events: (type) => type.startsWith("repair."), everyMs: 30_000 });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200", { events: (type) => type.startsWith("cluster.") });
  const names = useComputed(() => new Map((clusters.data.value?.items ?? []).map((one) => [one.id, one.name])));
  useEffect(() => {
    document.title = "Approvals · Muster";
    return bindKeys([
      {
        keys: "a",
        does: "Review the first repair that waits",
        run: () => {
          const first = open.data.peek()?.items.filter((repair) => repair.state === "proposed").sort(worstFirst)[0];
          if (first) {
            openDialog("approve", { repair: first.id });
          }
        },
      },
    ]);
  }, []);
  const items = open.data.value?.items;
  const chosen = useSignal<string[]>([]);
  const bulk = useSignal<Repair[] | null>(null); /* as they were when they were chosen */
  const picked = (items ?? []).filter((repair) => repair.state === "proposed" && chosen.value.includes(repair.id));
  const told = items ? sentenceOf(items) : { parts: ["Approvals"], announce: "" };
  const lack = lacks("repair.decide", "Deciding");
  return (
    <Shell scope={{}}>
      <PageSentence parts={told.parts} announce={told.announce} />
      {lack && items && <p class="reason gap8">{lack}</p>}
      <div class={items ? undefined : "sec"}>
        <Loaded query={open as Query<List<Repair>>} what="Approvals" rows={6}>
          {(list) => (
            <>
              <Waiting repairs={list.items.filter((repair) => repair.state === "proposed")} names={names.value} order={worstFirst} orderWords="worst first: running jobs, then lost data, then the oldest" chosen={chosen} />
              <Unsettled repairs={list.items.filter((repair) => repair.state === "unknown")} names={names.value} />
              <Running repairs={list.items.filter((repair) => RUNNING.includes(repair.state))} names={names.value} />
              {list.next_cursor && <p class="t3 s12">More than 200 are open; the newest are shown.</p>}
            </>
          )}
        </Loaded>
      </div>
      {picked.length > 0 && (
        <div class="bulk" role="region" aria-label="Selected repairs">
          <b>{counted(picked.length, "repair")} selected</b>
          <span class="t3 s12">{counted(picked.filter((repair) => hurts(repair.plan)).length, "ends", "end")} jobs or lose data</span>
          <span class="grow" />
          <Button kind="primary" disabled={lack} showReason={false} onClick={() => (bulk.value = picked)}>
            Approve {counted(picked.length, "repair")}…
          </Button>
          <Button onClick={() => (chosen.value = [])}>Clear</Button>
        </div>
      )}
      {bulk.value && (
        <BulkApprove
          repairs={bulk.value}
          onClose={() => {
            bulk.value = null;
            chosen.value = [];
          }}
        />
      )}
      <RepairDialogs />
    </Shell>
  );
}
