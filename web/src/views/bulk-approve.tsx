/* Several proposals at once: each is approved with the hash of its own plan, after their number was typed. */
import { useSignal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post } from "../api";
import { action, count, counted } from "../format";
import { refresh } from "../store";
import type { Repair } from "../types";
import { Button, Field } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { CheckLines, type CheckLineItem } from "../ui/records";
import { lacks } from "./repair-parts";
import { hurts, title, touches, worstFirst } from "./repair-words";

export const BULK_MOST = 25;

function line(repair: Repair, note?: CheckLineItem["value"], weight?: CheckLineItem["weight"]): CheckLineItem {
  const { strong, rest } = touches(repair.plan);
  return {
    name: title(repair),
    weight: weight ?? (hurts(repair.plan) ? "bad" : "good"),
    value: note ?? `${strong} ${rest}`,
    ...(note === undefined && repair.wave != null ? { fix: `Wave ${repair.wave}: begins when the one before has ended` } : {}),
  };
}

export function BulkApprove({ repairs, onClose }: { repairs: Repair[]; onClose: () => void }) {
  const chosen = [...repairs].sort((a, b) => (a.wave ?? 0) - (b.wave ?? 0) || worstFirst(a, b));
  const typed = useSignal("");
  const comment = useSignal("");
  const busy = useSignal(false);
  const results = useSignal<CheckLineItem[] | null>(null);
  const n = chosen.length;
  const waves = new Set(chosen.map((one) => one.wave).filter((one) => one != null)).size;
  const lack = lacks("repair.decide", "Approving") ?? (n > BULK_MOST ? `At most ${BULK_MOST} at once. Deselect ${n - BULK_MOST}.` : typed.value.trim() !== String(n) ? `Type ${n} to approve.` : null);
  const run = async () => {
    busy.value = true;
    const done: CheckLineItem[] = [];
    for (const repair of chosen) {
      try {
        await post<Repair>(`/repairs/${repair.id}/approve`, { plan_hash: repair.plan_hash, ...(comment.value.trim() ? { comment: comment.value.trim() } : {}) }, { idempotencyKey: newIdempotencyKey() });
        done.push(line(repair, "approved", "good"));
      } catch (cause) {
        const error = cause instanceof ApiError ? cause : new ApiError(0, "console", String(cause), "", null);
        done.push(line(repair, error.code === "plan_changed" ? "not approved: its plan has changed; review it on its own" : `not approved: ${error.title}. ${error.detail}`, "bad"));
      }
      results.value = [...done];
    }
    busy.value = false;
    refresh("/repairs");
    refresh("/clusters/");
  };
  const ended = results.value !== null && !busy.value;
  const actions = [...new Set(chosen.map((one) => action(one.action)))].join(", ");
  return (
    <Dialog
      title={`Approve ${counted(n, "repair")}`}
      lead={`${actions}. Each is bound to the plan that you see; one whose plan has changed is left out.`}
      onClose={onClose}
      narrow
      binds={ended ? "Those that were not approved still wait." : (lack ?? (waves > 1 ? `${waves} waves: a wave that does not go well stops the next.` : "They begin as the limits allow."))}
      buttons={
        ended ? (
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="primary" busy={busy.value} disabled={lack} showReason={false} onClick={() => void run()}>
              Approve {counted(n, "repair")}
            </Button>
          </>
        )
      }
    >
      <div class="pad stack">
        <CheckLines label={results.value ? "What became of each" : "What each touches"} items={results.value ? [...results.value, ...chosen.slice(results.value.length).map((one) => line(one, "waits its turn", "neutral"))] : chosen.map((one) => line(one))} />
        {results.value === null && (
          <>
            <Field label="Comment" name="comment" multiline value={comment.value} onInput={(value) => (comment.value = value)} placeholder="Stands in the history of each" />
            <Field
              label={
                <>
                  Type <b>{count(n)}</b>, the number of repairs, to confirm
                </>
              }
              name="count"
              inputMode="numeric"
              value={typed.value}
              onInput={(value) => (typed.value = value)}
            />
          </>
        )}
      </div>
    </Dialog>
  );
}
