/* What a draft would have done in the last 30 days: the verdict as a sentence, its cases, and what would have held the others. */
import { useSignal, type Signal } from "@preact/signals";
import { ApiError, post } from "../api";
import { action, count, counted } from "../format";
import type { PolicyReplay, PolicySettings, ReplayItem } from "../repair-types";
import { now, parse, moment } from "../time";
import { Button } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Section } from "../ui/page";
import { ErrorNote, Note } from "../ui/states";

export const REASON_WORDS: Record<string, string> = {
  no_executor: "nothing here can carry it out",
  no_spare: "no spare machine is free",
  fault_kind: "an installation does not mend hardware",
  not_joined: "the node's agent has not joined",
  stopped: "a person had stopped repairs",
  policy_broken: "the policy cannot be read",
  automation_off: "the policy asks a person",
  warn_only: "the policy only warns",
  action: "that action does not start by itself",
  node_off: "auto-repair is off for the node",
  breaker: "the breaker was open",
  waited: "proposed before a reset or the end of a stop",
  cut_off: "nearly all nodes were silent: the server was cut off",
  shared_silence: "its rack or leaf was silent",
  settling: "its neighbours were waited for",
  common_cause: "its rack, leaf or file server was the cause",
  same_kind: "too many nodes had the same fault",
  lemon: "the node fails too often",
  window: "outside of the hours",
  concurrency: "enough repairs ran already",
  starts: "enough repairs had started in the hour",
  cooldown: "the node was repaired shortly before",
  budget: "its attempts were used up",
  domain: "another repair ran in its rack or leaf",
  last_of_role: "the last healthy node of its role",
};

export interface Replay {
  result: Signal<PolicyReplay | null>;
  error: Signal<ApiError | null>;
  busy: Signal<boolean>;
  /** the draft that the result is about, as text */
  of: Signal<string>;
  run: (settings: PolicySettings, place: Record<string, string>) => Promise<void>;
}

export function useReplay(): Replay {
  const result = useSignal<PolicyReplay | null>(null);
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const of = useSignal("");
  const run = async (settings: PolicySettings, place: Record<string, string>) => {
    busy.value = true;
    error.value = null;
    try {
      result.value = await post<PolicyReplay>("/policies/dry-run", { ...place, ...settings });
      of.value = JSON.stringify(settings);
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  return { result, error, busy, of, run };
}

const DONE: Record<string, string> = { reset_gpu: "reset GPUs of", reboot: "rebooted", power_cycle: "power cycled", reprovision: "reprovisioned", failover: "failed over" };

/** "would have rebooted 4 nodes, 1 with a running job". */
export function verdict(replay: PolicyReplay): string {
  if (replay.starts === 0) {
    return "would have started no repair by itself";
  }
  const parts = replay.by_action.map((one) => `${DONE[one.action] ?? action(one.action)} ${counted(one.starts, "node")}`);
  const jobs = replay.with_running_job;
  return `would have ${parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}` : parts[0]}, ${jobs === 0 ? "none" : count(jobs)} with a running job`;
}

function Case({ item }: { item: ReplayItem }) {
  const at = parse(item.started_at ?? item.at);
  return (
    <li>
      <Icon name={item.decision === "start" ? (item.running_job ? "close" : "tick") : "minus"} tone={item.decision === "start" ? (item.running_job ? "bad" : "good") : undefined} />
      <span>
        <b>
          {action(item.action)} {item.node_name}
        </b>{" "}
        <span class="t3">
          {at === null ? "" : moment(at, now.peek())}, {item.check_id}
          {item.code ? `:${item.code}` : ""}
        </span>
        <span class="sub">
          {item.decision === "start" ? (item.running_job ? "a job ran: its GPUs were in use" : "its GPUs were idle") : item.decision === "closed" ? "the fault went away before its turn came" : item.why_not.map((code) => REASON_WORDS[code] ?? code).join("; ")}
        </span>
      </span>
    </li>
  );
}

const SHOWN = 8;

function Cases({ items, name }: { items: ReplayItem[]; name: string }) {
  const all = useSignal(false);
  return (
    <>
      <ul class="cases" aria-label={name}>
        {(all.value ? items : items.slice(0, SHOWN)).map((item) => (
          <Case key={item.node_id + item.at + item.check_id} item={item} />
        ))}
      </ul>
      {!all.value && items.length > SHOWN && (
        <button type="button" class="linkish s12" onClick={() => (all.value = true)}>
          All {count(items.length)}
        </button>
      )}
    </>
  );
}

function Result({ replay, stale, title }: { replay: PolicyReplay; stale: boolean; title: string }) {
  const starts = replay.items.filter((item) => item.decision === "start");
  const rest = replay.items.filter((item) => item.decision !== "start");
  return (
    <>
      <p class="verdict" role="status">
        {title} <b>{verdict(replay)}</b> in the last 30 days.
      </p>
      <p class="s12 t3 gap4">
        {counted(replay.faults, "fault")} replayed; {count(replay.closed_before)} went away before their turn.
        {replay.breaker_trips > 0 && ` The breaker would have opened ${counted(replay.breaker_trips, "time")}.`}
        {!replay.complete && " There was too much to look at: only the first 3,000 were played."} A repair is taken to last as long as expected and to succeed.
      </p>
      {stale && <p class="s12 c-warning gap4">The draft has changed since.</p>}
      {replay.unmatched.length > 0 && (
        <div class="gap12">
          <Note tone="warn" title={`${replay.unmatched.join(", ")} met no fault in these days.`}>
            <p class="t2">Look whether the name is meant so.</p>
          </Note>
        </div>
      )}
      {starts.length > 0 && <Cases items={starts} name="What would have started" />}
      {replay.by_reason.length > 0 && (
        <>
          <div class="sechead gap16">
            <h3>Why not</h3>
            <span class="hint">what would have held the others</span>
          </div>
          <ul class="reasons" aria-label="Why not">
            {replay.by_reason.map((one) => (
              <li key={one.code}>
                <span>{REASON_WORDS[one.code] ?? one.code}</span>
                <b>{count(one.faults)}</b>
              </li>
            ))}
          </ul>
          {rest.length > 0 && (
            <details class="gap8">
              <summary>The cases</summary>
              <Cases items={rest} name="What would have been held" />
            </details>
          )}
        </>
      )}
    </>
  );
}

export function ReplayAside({ replay, draft, place, title, lack }: { replay: Replay; draft: PolicySettings; place: Record<string, string>; title: string; lack: string | null }) {
  const result = replay.result.value;
  const stale = result !== null && replay.of.value !== JSON.stringify(draft);
  return (
    <Section title="Replay" hint="the real faults of the last 30 days">
      {result ? <Result replay={result} stale={stale} title={title} /> : <p class="t2">Before a policy is saved it is played against what really happened: how many repairs it would have started, which, and what would have held the others.</p>}
      {replay.error.value && <ErrorNote error={replay.error.value} what="The replay" />}
      <p class="gap12">
        <Button busy={replay.busy.value} disabled={lack} onClick={() => void replay.run(draft, place)}>
          {replay.busy.value ? "Replaying…" : result ? "Replay again" : "Replay 30 days"}
        </Button>
      </p>
    </Section>
  );
}
