/* Another action than the proposed one: what each costs, its plan before it is asked for, and the two requests that do it. */
import { useEffect } from "preact/hooks";
import { useSignal, type Signal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post } from "../api";
import { action, sentence } from "../format";
import type { RepairPreview } from "../repair-types";
import { span } from "../time";
import type { Repair } from "../types";
import { Options, type Option } from "../ui/controls";

export const ACTIONS: readonly Option[] = [
  { value: "reset_gpu", label: "Reset GPU", sub: "programs that use its GPUs end; the node stays up", end: "1 min" },
  { value: "reboot", label: "Reboot", sub: "every program ends; the disks keep their data", end: "7 min" },
  { value: "power_cycle", label: "Power cycle", sub: "as pulling the plug; the disks keep what was flushed", end: "10 min" },
  { value: "reprovision", label: "Reprovision", sub: "the operating system anew; all data on its disks is lost", end: "45 min" },
  { value: "failover", label: "Failover", sub: "a spare node takes over; data on the disks stays behind", end: "30 min" },
  { value: "remove", label: "Remove", sub: "the node leaves the cluster, with its data", end: "5 min" },
];

/** The proposed action; the others with their cost are a press away, and one of them needs a comment. */
export function ActionChoice({ repair, value, onChange }: { repair: Repair; value: string; onChange: (value: string) => void }) {
  const shown = useSignal(false);
  const all = shown.value || value !== repair.action;
  const proposed: Option = {
    value: repair.action,
    label: sentence(action(repair.action)),
    sub: repair.requested_by === "muster" ? "recommended by the check" : `asked for by ${repair.requested_by}`,
    end: repair.plan ? span(repair.plan.seconds_expected * 1000) : "",
  };
  return (
    <>
      <Options legend="Action" name="action" value={value} onChange={onChange} options={all ? [proposed, ...ACTIONS.filter((one) => one.value !== repair.action)] : [proposed]} />
      {!all && (
        <button type="button" class="linkish s12 other" onClick={() => (shown.value = true)}>
          Another action…
        </button>
      )}
    </>
  );
}

export interface Previewed {
  plan: Signal<RepairPreview | null>;
  error: Signal<ApiError | null>;
}

function asError(cause: unknown): ApiError {
  return cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
}

/** The plan of an action that nobody has asked for yet; nothing is changed by looking. wanted null: none is looked at. */
export function usePreview(nodeId: string, wanted: string | null): Previewed {
  const plan = useSignal<RepairPreview | null>(null);
  const error = useSignal<ApiError | null>(null);
  useEffect(() => {
    let left = false;
    plan.value = null;
    error.value = null;
    if (wanted) {
      post<RepairPreview>(`/nodes/${nodeId}/repairs?dry_run=true`, { action: wanted, reason: "A look at its plan" }).then(
        (shown) => left || (plan.value = shown),
        (cause: unknown) => left || (error.value = asError(cause)),
      );
    }
    return () => {
      left = true;
    };
  }, [nodeId, wanted]);
  return { plan, error };
}

/** Rejects the proposal with the comment and asks for the other action; what failed between the two is said. */
export async function overrideWith(repair: Repair, wanted: string, comment: string): Promise<Repair> {
  await post<Repair>(`/repairs/${repair.id}/reject`, { comment: `${comment} (${action(wanted)} instead)` }, { idempotencyKey: newIdempotencyKey() });
  try {
    return await post<Repair>(`/nodes/${repair.node_id}/repairs`, { action: wanted, reason: comment }, { idempotencyKey: newIdempotencyKey() });
  } catch (cause) {
    const error = asError(cause);
    throw new ApiError(error.status, error.code, `The proposal was rejected, but ${action(wanted)} was not proposed: ${error.title}`, error.detail, error.requestId, error.errors);
  }
}
