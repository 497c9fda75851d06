/*
 * The decision about a proposed repair: why, what it touches, and what is decided. The approval is bound to
 * the plan that was read: when the plan changes, the button asks to read the changes first.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal, type Signal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post } from "../api";
import { action, sentence } from "../format";
import { refresh, useQuery, type Query } from "../store";
import { ago, now, parse, span } from "../time";
import type { NodeDetail, Plan, Repair } from "../types";
import { Button, Field } from "../ui/controls";
import { Block, Dialog, Split } from "../ui/dialog";
import { ConsequenceList, type Consequence } from "../ui/records";
import { Time } from "../ui/page";
import { ErrorNote, Note, Skeleton } from "../ui/states";
import { me } from "../session";
import { Capacity } from "../ui/capacity";
import { breakers, holding, useGuard } from "./guard-words";
import { ActionChoice, overrideWith, usePreview, type Previewed } from "./override";
import { CANCELLABLE, consequences, record, shortHash, title, why, type OpenBreakers } from "./repair-words";
import { lacks, openDialog, Outcome, PlanEvidence, RepairSteps } from "./repair-parts";
import { WhyNotList } from "./why-not";

const REMAKE_MS = 2_000;

/** One key for all tries of one and the same decision; another comment is another decision. */
export function useKey(): (body: unknown) => string {
  const kept = useRef({ body: "", key: "" });
  return (body) => {
    const text = JSON.stringify(body);
    if (kept.current.body !== text) {
      kept.current = { body: text, key: newIdempotencyKey() };
    }
    return kept.current.key;
  };
}

/** What failed when deciding, and what that means. */
function DecisionError({ error, doing }: { error: ApiError; doing: string }) {
  const unsure = error.status === 0 || error.status >= 500;
  return (
    <Note tone="bad" alert title={unsure ? `It is not known whether ${doing} arrived.` : `${sentence(doing)} was refused: ${error.title}.`}>
      <p class="t2">
        {error.detail} {unsure ? "Press again: the same decision is never carried out twice." : ""}
      </p>
      {error.requestId && <p class="s12 t3 gap4">Request {error.requestId}</p>}
    </Note>
  );
}

interface Draft {
  comment: Signal<string>;
  typed: Signal<string>;
  error: Signal<ApiError | null>;
  busy: Signal<boolean>;
}

function useDraft(): Draft {
  return { comment: useSignal(""), typed: useSignal(""), error: useSignal<ApiError | null>(null), busy: useSignal(false) };
}

async function decide(repair: Repair, verb: string, body: Record<string, unknown>, key: string, draft: Draft, live: Query<Repair>): Promise<boolean> {
  draft.busy.value = true;
  draft.error.value = null;
  try {
    const answer = await post<Repair>(`/repairs/${repair.id}/${verb}`, body, { idempotencyKey: key });
    live.put(answer);
    for (const prefix of ["/repairs", `/clusters/${repair.cluster_id}/`, `/nodes/${repair.node_id}`]) {
      refresh(prefix);
    }
    return true;
  } catch (cause) {
    draft.error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    return false;
  } finally {
    draft.busy.value = false;
  }
}

const DOES: Record<string, string> = {
  reset_gpu: "reset its GPUs",
  reboot: "reboot it",
  power_cycle: "cut its power and give it back",
  reprovision: "set it up anew",
  failover: "move its name and work to a spare",
  remove: "take it out of the cluster",
};

/** How it is done, in one sentence. */
function lead(repair: Repair): string {
  const plan = repair.plan;
  const does = DOES[repair.action] ?? `${action(repair.action)} it`;
  if (repair.action === "remove") {
    return `Drain the node, then ${does}.`;
  }
  const watch = plan ? `, watch it for ${span(plan.policy.healthy_delay_seconds * 1000)}` : "";
  return `Drain the node, ${does}${watch}, return it. ${plan?.how ?? ""}`;
}

function Why({ repair, plan, changed }: { repair: Repair; plan: Plan; changed: boolean }) {
  const first = plan.evidence[0];
  const rule = record(plan);
  return (
    <Block title="Why" hint={<a href={`/clusters/${repair.cluster_id}/nodes/${repair.node_id}`}>Open the node</a>}>
      <p class={changed ? "t2 changedtext" : "t2"}>
        {why(repair)}
        {/[.!?]$/.test(why(repair)) ? "" : "."}
        {first && (
          <>
            {" "}
            First seen <Time iso={first.first_at} form="ago" />
            {first.count > 1 && `, ${first.count} times since`}.
          </>
        )}
        {plan.evidence.length > 1 && ` ${plan.evidence.length - 1} more open: ${plan.evidence.slice(1).map((one) => one.summary).join("; ")}.`}
      </p>
      <div class="gap8">
        <PlanEvidence plan={plan} most={2} />
      </div>
      {rule && (
        <p class="s12 t3 gap8">
          Rule <span class="t2">{`${plan.rule?.check_id} → ${action(plan.action)}`}</span> was {rule}.
        </p>
      )}
    </Block>
  );
}

/** What a plan touches, with a small picture of the capacity. */
export function touchedItems(plan: Plan, node: NodeDetail | null, before: Plan | null, breakers: OpenBreakers): Consequence[] {
  const { healthy_before, healthy_after, nodes } = plan.capacity;
  const removed = plan.action === "remove";
  const back = removed ? healthy_after : Math.max(healthy_before, healthy_after + 1);
  return consequences(plan, node, before, breakers).map((item) =>
    item.subject === "Capacity"
      ? {
          ...item,
          detail: (
            <>
              {item.detail} <Capacity before={healthy_before} during={healthy_after} after={Math.min(back, nodes)} nodes={nodes} />
            </>
          ),
        }
      : item,
  );
}

/** The breakers that hold repairs of a node; null while it is not known. */
export function useOpenBreakers(clusterId: string, nodeId: string): OpenBreakers {
  const guard = useGuard().data.value;
  return guard && holding(breakers(guard), clusterId, nodeId).map((one) => one.name);
}

function Touches({ repair, plan, node, before, hint }: { repair: Repair; plan: Plan; node: NodeDetail | null; before: Plan | null; hint?: string }) {
  const open = useOpenBreakers(repair.cluster_id, repair.node_id);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (before) {
      box.current?.focus();
    }
  }, [before]);
  const made = parse(plan.made_at);
  return (
    <Block title="What it touches" hint={hint ?? `plan ${shortHash(repair.plan_hash)}${made === null ? "" : `, made ${ago(made)}`}`}>
      <div ref={box} tabIndex={-1} class="reach">
        <ConsequenceList label="What it touches" items={touchedItems(plan, node, before, open)} />
      </div>
    </Block>
  );
}

function When({ plan }: { plan: Plan }) {
  return (
    <Block title="When">
      <p>Now</p>
      <p class="sub">begins within {span(plan.policy.begin_within_seconds * 1000)} of the approval, else it waits for a decision again</p>
    </Block>
  );
}

/** After the decision: the dialog stays and shows what happens. */
function Decided({ repair }: { repair: Repair }) {
  return (
    <div class="pad">
      <Block title="Progress" hint={repair.ended_at ? "ended" : "live"}>
        <div class="gap8">
          <RepairSteps repair={repair} />
        </div>
      </Block>
      <Block title="Decision">
        <p class="t2">
          {repair.state === "rejected" || repair.ended_at ? <Outcome repair={repair} /> : `Approved by ${repair.decided_by ?? "muster"}`}
          {repair.decided_at && !repair.ended_at && (
            <>
              {" "}
              <Time iso={repair.decided_at} form="ago" />
            </>
          )}
          {repair.comment ? `: “${repair.comment}”` : ""}
        </p>
      </Block>
    </div>
  );
}

function missing(repair: Repair, plan: Plan, draft: Draft): string | null {
  const permission = lacks("repair.decide", "Approving");
  if (permission) {
    return permission;
  }
  if (!repair.can_approve) {
    return repair.blocked ?? "It cannot be approved now.";
  }
  if (repair.first_approver && repair.first_approver === me.value?.name) {
    return "You were the first of two people: somebody else has to approve it too.";
  }
  return plan.loses && draft.typed.value.trim() !== repair.node_name ? `Type ${repair.node_name} to approve.` : null;
}

function Binds({ repair, plan, lack, changed }: { repair: Repair; plan: Plan; lack: string | null; changed: boolean }) {
  if (changed) {
    return (
      <>
        <b>The plan has changed while you read.</b> What is different is tinted; read it, then decide on plan {shortHash(repair.plan_hash)}.
      </>
    );
  }
  return (
    <>
      {lack && <b>{lack} </b>}
      You approve exactly plan {shortHash(repair.plan_hash)}; if it changes, you are asked again. Begins within {span(plan.policy.begin_within_seconds * 1000)}.
    </>
  );
}

function Undo({ repair, live }: { repair: Repair; live: Query<Repair> }) {
  const draft = useDraft();
  const key = useKey();
  if (!CANCELLABLE.includes(repair.state)) {
    return null;
  }
  return (
    <Button disabled={lacks("repair.decide", "Cancelling")} showReason={false} busy={draft.busy.value} onClick={() => void decide(repair, "cancel", {}, key({ cancel: repair.version }), draft, live)}>
      {draft.error.value ? `Not cancelled: ${draft.error.value.title}. Try again` : "Cancel the repair"}
    </Button>
  );
}

function AfterDialog({ repair, live, onClose }: { repair: Repair; live: Query<Repair>; onClose: () => void }) {
  const open = repair.ended_at === null;
  const undo = CANCELLABLE.includes(repair.state);
  return (
    <Dialog
      title={title(repair)}
      lead={open ? "It has been approved. You may close this; it goes on." : "It has ended."}
      onClose={onClose}
      narrow
      binds={undo ? "It can be cancelled until the act starts." : open ? "The act has started: it cannot be cancelled any more." : ""}
      buttons={
        <>
          <Undo repair={repair} live={live} />
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <Decided repair={repair} />
    </Dialog>
  );
}

function Decision(props: { repair: Repair; plan: Plan; draft: Draft; rejecting: boolean; doing: string; wanted: Signal<string> }) {
  const { repair, plan, draft, rejecting } = props;
  const other = props.wanted.value !== repair.action;
  return (
    <>
      {rejecting ? (
        <Block title="Reject">
          <p class="t2">Nothing is done. Muster does not propose it again for the same fault for a while; the node stays as it is.</p>
        </Block>
      ) : (
        <>
          {!other && <When plan={plan} />}
          {repair.first_approver && (
            <Block title="Two people">
              <p>{repair.first_approver} approved it</p>
              <p class="sub">your approval is the second; neither may be who asked for it</p>
            </Block>
          )}
          <div class="blk">
            <ActionChoice repair={repair} value={props.wanted.value} onChange={(value) => (props.wanted.value = value)} />
          </div>
        </>
      )}
      <div class="blk">
        <Field
          label="Comment"
          name="comment"
          multiline
          value={draft.comment.value}
          onInput={(value) => (draft.comment.value = value)}
          required={other}
          placeholder={rejecting ? "Why not; it stands in the history" : other ? "Why another action; it is needed" : "Stands in the history and the audit"}
          error={draft.error.value?.field("comment")}
        />
      </div>
      {!rejecting && !other && plan.loses && (
        <div class="blk">
          <Field
            label={
              <>
                Data is lost. Type <b>{repair.node_name}</b> to confirm
              </>
            }
            name="confirm"
            value={draft.typed.value}
            onInput={(value) => (draft.typed.value = value)}
          />
        </div>
      )}
      {draft.error.value && draft.error.value.code !== "plan_changed" && (
        <div class="blk">
          <DecisionError error={draft.error.value} doing={props.doing} />
        </div>
      )}
    </>
  );
}

function OtherBinds({ lack, wanted }: { lack: string | null; wanted: string }) {
  return (
    <>
      {lack && <b>{lack} </b>}
      The proposal is rejected with your comment and {action(wanted)} is proposed; you decide on its plan next.
    </>
  );
}

/** The plan of another action, as it would be proposed. */
function OtherPlan({ repair, wanted, node, preview }: { repair: Repair; wanted: string; node: NodeDetail | null; preview: Previewed }) {
  const shown = preview.plan.value;
  if (preview.error.value) {
    return (
      <Block title="What it touches">
        <ErrorNote error={preview.error.value} what={`The plan of ${action(wanted)}`} />
      </Block>
    );
  }
  if (!shown) {
    return (
      <Block title="What it touches">
        <Skeleton rows={5} label="the plan" />
      </Block>
    );
  }
  return (
    <>
      <Touches repair={repair} plan={shown.plan} node={node} before={null} hint={`of ${action(wanted)}, not proposed yet`} />
      {shown.plan.how === null && <p class="s12 c-warning gap8">Nothing here can carry out {action(wanted)}: it would have to be done by hand.</p>}
    </>
  );
}

function ProposedDialog({ latest, live, onClose }: { latest: Repair & { plan: Plan }; live: Query<Repair>; onClose: () => void }) {
  const node = useQuery<NodeDetail>(`/nodes/${latest.node_id}`, { everyMs: 10_000 }).data.value;
  const draft = useDraft();
  const key = useKey();
  const rejecting = useSignal(false);
  const read = useSignal(latest); /* the plan that the person has before the eyes */
  const compared = useSignal<Plan | null>(null); /* what it differs from, once reviewed */
  const remaking = useSignal(false); /* the server says that it changed, and has no new one yet */
  const changed = read.value.plan_hash !== latest.plan_hash;
  const before = changed ? read.value.plan : compared.value;
  const plan = latest.plan;
  const wanted = useSignal(latest.action);
  const other = wanted.value !== latest.action ? wanted.value : null;
  const preview = usePreview(latest.node_id, other);

  useEffect(() => {
    if (changed) {
      remaking.value = false;
      draft.typed.value = "";
    }
  }, [changed]);
  useEffect(() => {
    if (!remaking.value) {
      return undefined;
    }
    const timer = setInterval(() => void live.read(), REMAKE_MS);
    return () => clearInterval(timer);
  }, [remaking.value]);

  const verb = sentence(action(latest.action)).toLowerCase();
  const lack = remaking.value ? "A new plan is being made; it appears here by itself." : missing(latest, plan, draft);
  const noOverride =
    lacks("repair.decide", "Rejecting") ?? lacks("repair.request", "Requesting a repair") ?? (preview.error.value ? `${preview.error.value.title}. ${preview.error.value.detail}` : draft.comment.value.trim() === "" ? "Say why another action." : null);
  const approve = async () => {
    const body: Record<string, unknown> = { plan_hash: read.value.plan_hash };
    if (draft.comment.value.trim()) {
      body.comment = draft.comment.value.trim();
    }
    const done = await decide(latest, "approve", body, key(body), draft, live);
    if (!done && draft.error.value?.code === "plan_changed") {
      await live.read();
      remaking.value = live.data.peek()?.plan_hash === read.value.plan_hash;
    } else if (!done && draft.error.value?.status === 409) {
      await live.read();
    }
  };
  const reject = () => {
    const body = draft.comment.value.trim() ? { comment: draft.comment.value.trim() } : {};
    void decide(latest, "reject", body, key({ reject: body }), draft, live);
  };
  const override = async () => {
    draft.busy.value = true;
    draft.error.value = null;
    try {
      const made = await overrideWith(latest, wanted.value, draft.comment.value.trim());
      for (const prefix of ["/repairs", `/clusters/${latest.cluster_id}/`, `/nodes/${latest.node_id}`]) {
        refresh(prefix);
      }
      openDialog("approve", { repair: made.id });
    } catch (cause) {
      draft.error.value = cause as ApiError;
    } finally {
      draft.busy.value = false;
    }
  };
  const review = () => {
    compared.value = read.value.plan;
    read.value = latest;
    draft.error.value = null;
  };
  const buttons: ComponentChildren = rejecting.value ? (
    <>
      <Button onClick={() => (rejecting.value = false)}>Back</Button>
      <Button kind="primary" busy={draft.busy.value} disabled={lacks("repair.decide", "Rejecting")} showReason={false} onClick={reject}>
        Reject {verb}
      </Button>
    </>
  ) : (
    <>
      <Button disabled={lacks("repair.decide", "Rejecting")} showReason={false} onClick={() => (rejecting.value = true)}>
        Reject…
      </Button>
      {other ? (
        <Button kind="primary" disabled={noOverride} showReason={false} busy={draft.busy.value} onClick={() => void override()}>
          Ask for {action(other)} instead
        </Button>
      ) : changed ? (
        <Button kind="primary" onClick={review}>
          Review changes
        </Button>
      ) : (
        <Button kind="primary" disabled={lack} showReason={false} busy={draft.busy.value} onClick={() => void approve()}>
          Approve {verb}
        </Button>
      )}
    </>
  );
  return (
    <Dialog
      title={title(latest)}
      lead={lead(latest)}
      onClose={onClose}
      binds={rejecting.value ? "Nothing has been decided yet." : other ? <OtherBinds lack={noOverride} wanted={other} /> : <Binds repair={latest} plan={plan} lack={lack} changed={changed} />}
      buttons={buttons}
    >
      <Split
        facts={
          <>
            <Why repair={latest} plan={plan} changed={before !== null && idsOf(before) !== idsOf(plan)} />
            {other ? (
              <OtherPlan repair={latest} wanted={other} node={node} preview={preview} />
            ) : (
              <Touches repair={latest} plan={plan} node={node} before={before} />
            )}
            <Block title="Why it did not start by itself">
              <WhyNotList repair={latest} open />
            </Block>
          </>
        }
        decision={<Decision repair={latest} plan={plan} draft={draft} rejecting={rejecting.value} wanted={wanted} doing={rejecting.value ? "the rejection" : "the approval"} />}
      />
      <p class="vh" role="status">
        {changed ? "The plan has changed. Review the changes before you decide." : ""}
      </p>
    </Dialog>
  );
}

function idsOf(plan: Plan): string {
  return plan.evidence.map((one) => one.incident_id).join(" ");
}

export function ApproveDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const live = useQuery<Repair>(`/repairs/${id}`, { events: (_, event) => event.repair_id === id });
  const repair = live.data.value;
  if (!repair) {
    return (
      <Dialog title="Repair" onClose={onClose} narrow buttons={<Button onClick={onClose}>Close</Button>}>
        <div class="pad">{live.error.value ? <ErrorNote error={live.error.value} what="This repair" query={live as Query<unknown>} /> : <Skeleton rows={6} label="the repair" />}</div>
      </Dialog>
    );
  }
  if (repair.state === "proposed" && repair.plan) {
    return <ProposedDialog key={repair.id} latest={repair as Repair & { plan: Plan }} live={live} onClose={onClose} />;
  }
  return <AfterDialog repair={repair} live={live} onClose={onClose} />;
}

/** "27 min": how soon the work begins once it is approved, or what is left of a limit. */
export function beginWithin(repair: Repair): string {
  const deadline = parse(repair.deadline_at);
  if (deadline !== null) {
    return deadline > now.value ? span(deadline - now.value) : "overdue";
  }
  return repair.plan ? span(repair.plan.policy.begin_within_seconds * 1000) : "not set";
}
