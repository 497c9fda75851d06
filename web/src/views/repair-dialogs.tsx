/* What can be done to a repair besides approving it: cancel it, or settle an outcome that could not be seen. */
import { useSignal } from "@preact/signals";
import { action } from "../format";
import { query, refresh, useQuery, type Query } from "../store";
import { now, parse, span } from "../time";
import type { NodeDetail, Repair } from "../types";
import { Button, Field, Options } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { Time } from "../ui/page";
import { CheckLines, type CheckLineItem } from "../ui/records";
import { ErrorNote, Skeleton } from "../ui/states";
import { ApproveDialog } from "./approve";
import { CANCELLABLE, lastWork, stepName } from "./repair-words";
import { closeDialog, dialogNow, lacks } from "./repair-parts";
import { VerbForm } from "./verb-form";

interface Part {
  repair: Repair;
  onClose: () => void;
}

function taken(repair: Repair): (answer: Repair) => void {
  return (answer) => {
    query<Repair>(`/repairs/${repair.id}`).put(answer);
    for (const prefix of ["/repairs", `/clusters/${repair.cluster_id}/`, `/nodes/${repair.node_id}`]) {
      refresh(prefix);
    }
    closeDialog();
  };
}

function CancelForm({ repair, onClose }: Part) {
  const comment = useSignal("");
  const possible = CANCELLABLE.includes(repair.state);
  const begun = repair.state === "cordoning" || repair.state === "draining";
  return (
    <VerbForm<Repair>
      title={`Cancel ${action(repair.action)} of ${repair.node_name}`}
      lead="Possible until the act starts: nothing irreversible has been done yet."
      path={`/repairs/${repair.id}/cancel`}
      body={() => (comment.value.trim() ? { comment: comment.value.trim() } : {})}
      verb="Cancel the repair"
      disabled={lacks("repair.decide", "Cancelling") ?? (possible ? null : `It is ${repair.state}: it cannot be cancelled any more.`)}
      binds={begun ? "The node takes work again, where this repair had taken it out." : "The fault stays open."}
      done={taken(repair)}
      onClose={onClose}
      fields={["comment"]}
    >
      {(error) => <Field label="Comment" name="comment" multiline value={comment.value} onInput={(value) => (comment.value = value)} placeholder="Stands in the history and the audit" error={error?.field("comment")} />}
    </VerbForm>
  );
}

/** What can be seen of the outcome now: a new boot, an agent that reports, a fault that is still open. */
function signs(repair: Repair, node: NodeDetail | null): CheckLineItem[] {
  if (!node) {
    return [];
  }
  const seen = parse(node.seen_at);
  const late = seen === null || now.value - seen > 3 * node.interval_seconds * 1000;
  const boot = repair.plan?.boot_id ?? null;
  const rebooted = boot !== null && node.boot_id !== null && node.boot_id !== boot;
  const open = node.incidents.filter((one) => one.node_fault);
  return [
    boot === null || node.boot_id === null
      ? { name: "New boot", weight: "neutral", value: "not known" }
      : rebooted
        ? { name: "New boot", weight: "good", value: <>seen; up since <Time iso={node.booted_at} form="moment" none="an unknown time" /></> }
        : { name: "New boot", weight: "warn", value: "none seen: it is still the boot that had the fault" },
    { name: "Agent", weight: late ? "warn" : "good", value: seen === null ? "never heard" : `${late ? "silent" : "heard"}, last ${span(now.value - seen)} ago` },
    open.length
      ? { name: "Fault", weight: "bad", value: `still open: ${open.map((one) => one.summary).join("; ")}` }
      : { name: "Fault", weight: "good", value: "no open incident asks for a repair" },
  ];
}

function SettleForm({ repair, onClose }: Part) {
  const node = useQuery<NodeDetail>(`/nodes/${repair.node_id}`, { events: (_, event) => event.node_id === repair.node_id, everyMs: 10_000 });
  const ended = useSignal("");
  const comment = useSignal("");
  const last = lastWork(repair);
  const lines = signs(repair, node.data.value);
  const lack =
    lacks("repair.decide", "Settling") ??
    (repair.state !== "unknown" ? `It is ${repair.state}: there is nothing to settle.` : ended.value === "" ? "Say how it ended." : comment.value.trim() === "" ? "Say how you know." : null);
  return (
    <VerbForm<Repair>
      title={`Settle ${action(repair.action)} of ${repair.node_name}`}
      lead={`The order went out and its outcome could not be seen${last ? ` (last step: ${stepName(last.state).toLowerCase()})` : ""}. Until you say how it ended, no other repair of this node is proposed.`}
      path={`/repairs/${repair.id}/settle`}
      body={() => ({ outcome: ended.value, comment: comment.value.trim() })}
      verb={ended.value ? `Settle it as ${ended.value}` : "Settle it"}
      disabled={lack}
      binds="It stands in the history as settled by you."
      done={taken(repair)}
      onClose={onClose}
      fields={["comment"]}
    >
      {(error) => (
        <>
          <div>
            <p class="lbl">What can be seen now</p>
            {node.error.value ? <ErrorNote error={node.error.value} what="The node" query={node as Query<unknown>} /> : <CheckLines label="What can be seen now" items={lines} />}
          </div>
          <Options
            legend="How it ended"
            name="outcome"
            value={ended.value}
            onChange={(value) => (ended.value = value)}
            options={[
              { value: "succeeded", label: "Succeeded", sub: "the node is back and the fault is gone" },
              { value: "failed", label: "Failed", sub: "the next action is proposed, if there is one" },
            ]}
          />
          <Field label="Comment" name="comment" multiline required value={comment.value} onInput={(value) => (comment.value = value)} placeholder="How you know: console, power meter, somebody on site" error={error?.field("comment")} />
        </>
      )}
    </VerbForm>
  );
}

function WithRepair({ id, onClose, Form }: { id: string; onClose: () => void; Form: (part: Part) => preact.JSX.Element }) {
  const live = useQuery<Repair>(`/repairs/${id}`, { events: (_, event) => event.repair_id === id });
  const repair = live.data.value;
  if (!repair) {
    return (
      <Dialog title="Repair" onClose={onClose} narrow buttons={<Button onClick={onClose}>Close</Button>}>
        <div class="pad">{live.error.value ? <ErrorNote error={live.error.value} what="This repair" query={live as Query<unknown>} /> : <Skeleton rows={4} label="the repair" />}</div>
      </Dialog>
    );
  }
  return <Form repair={repair} onClose={onClose} />;
}

/** The dialog that the address names, if it is one of a repair. */
export function RepairDialogs() {
  const { name, repair } = dialogNow();
  if (!repair) {
    return null;
  }
  switch (name) {
    case "approve":
      return <ApproveDialog key={repair} id={repair} onClose={closeDialog} />;
    case "cancel":
      return <WithRepair key={repair} id={repair} onClose={closeDialog} Form={CancelForm} />;
    case "settle":
      return <WithRepair key={repair} id={repair} onClose={closeDialog} Form={SettleForm} />;
    default:
      return null;
  }
}

