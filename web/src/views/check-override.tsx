/* A check is set differently: where, how, and what that would have done in the last 30 days, before it is saved. */
import { useEffect } from "preact/hooks";
import { useSignal, type Signal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post, request } from "../api";
import type { Check, CheckOverride, OverrideEffect } from "../detection-types";
import { action, count, counted } from "../format";
import { query, setQuery } from "../router";
import { refresh } from "../store";
import type { ClusterItem } from "../types";
import { Field, Options, SelectField, type Choice } from "../ui/controls";
import { ErrorNote, Note } from "../ui/states";
import { TableFrame } from "../ui/table";
import { lacks } from "./asked";
import { actionWords, effectWords, placeWords, setWords, trialEnd, untilWords } from "./check-rules";
import { orgName, problemOf } from "./settings";
import { TrialField, trialSeconds } from "./trial";
import { VerbForm } from "./verb-form";

/** Opens the form by its address; mode: what it begins with. */
export function askOverride(id: string | null, mode: string | null = null): void {
  setQuery({ do: id ? "change" : "set", id, mode }, { replace: false });
}

function askNothing(): void {
  setQuery({ do: null, id: null, mode: null });
}

const FIELDS = ["check_id", "cluster_id", "gpu_type", "mode", "severity", "action", "threshold", "looks", "clear_looks", "shadow_seconds", "reason"];
const ACTIONS = ["none", "reset_gpu", "reboot", "power_cycle", "reprovision", "failover", "remove"];
const SEVERITIES = ["info", "warning", "critical"];
const TRY_AFTER_MS = 350; /* while one types, nothing is asked */

/** What stands in the form; "" is: as delivered. */
interface Wish {
  cluster: Signal<string>;
  type: Signal<string>;
  mode: Signal<string>;
  severity: Signal<string>;
  action: Signal<string>;
  threshold: Signal<string>;
  looks: Signal<string>;
  clearLooks: Signal<string>;
  /** how the change begins: see trial.tsx */
  trial: Signal<string>;
  reason: Signal<string>;
}

function useWish(override: CheckOverride | null): Wish {
  return {
    cluster: useSignal(override?.cluster_id ?? ""),
    type: useSignal(override?.gpu_type ?? ""),
    mode: useSignal<string>(query.peek().get("mode") ?? override?.mode ?? ""),
    severity: useSignal<string>(override?.severity ?? ""),
    action: useSignal<string>(override?.action ?? ""),
    threshold: useSignal(override?.threshold ? String(override.threshold) : ""),
    looks: useSignal(override?.looks ? String(override.looks) : ""),
    clearLooks: useSignal(override?.clear_looks ? String(override.clear_looks) : ""),
    /* put live by its button: that is what ends a trial */
    trial: useSignal(query.peek().get("mode") === "live" && trialEnd(override?.shadow_until ?? null) !== null ? "0" : ""),
    reason: useSignal(override?.reason ?? ""),
  };
}

/** Numbers that are none are sent as they are: the server says what is wrong with them. */
function numberOf(text: string): number | string | null {
  const given = text.trim();
  return given === "" ? null : /^\d+$/.test(given) ? Number(given) : given;
}

/** The parts that are set; those that are not do not count. */
function partsOf(wish: Wish): Record<string, unknown> {
  const all = { mode: wish.mode.value || null, severity: wish.severity.value || null, action: wish.action.value || null, threshold: numberOf(wish.threshold.value), looks: numberOf(wish.looks.value), clear_looks: numberOf(wish.clearLooks.value) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

function placeOf(wish: Wish): Record<string, unknown> {
  return { ...(wish.cluster.value ? { cluster_id: wish.cluster.value } : {}), ...(wish.type.value.trim() ? { gpu_type: wish.type.value.trim() } : {}) };
}

/** How a change begins: only a rule that differs goes on trial, and only where it is to be live. */
function trialOf(wish: Wish, override: CheckOverride | null): { end: number | null; changed: boolean; shown: boolean } {
  const parts = partsOf(wish);
  const judged = (["severity", "action", "threshold", "looks"] as const).filter((key) => parts[key] !== undefined);
  const changed = (["severity", "action", "threshold", "looks"] as const).some((key) => (parts[key] ?? null) !== (override?.[key] ?? null));
  const end = trialEnd(override?.shadow_until ?? null);
  const live = parts.mode !== "shadow" && parts.mode !== "off";
  return { end, changed, shown: live && judged.length > 0 && (changed || end !== null) };
}

/** Asks the server what it would have done, a moment after the last change. */
function useTry(check: Check, wish: Wish): { effect: Signal<OverrideEffect | null>; error: Signal<ApiError | null> } {
  const effect = useSignal<OverrideEffect | null>(null);
  const error = useSignal<ApiError | null>(null);
  const parts = partsOf(wish);
  const body = JSON.stringify({ check_id: check.check_id, ...placeOf(wish), ...parts });
  const empty = Object.keys(parts).length === 0;
  useEffect(() => {
    if (empty) {
      effect.value = null;
      error.value = null;
      return undefined;
    }
    let current = true;
    const timer = setTimeout(() => {
      post<OverrideEffect>("/check-overrides/dry-run", JSON.parse(body)).then(
        (answer) => {
          if (current) {
            effect.value = answer;
            error.value = null;
          }
        },
        (cause) => {
          if (current) {
            effect.value = null;
            error.value = problemOf(cause);
          }
        },
      );
    }, TRY_AFTER_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [body, empty]);
  return { effect, error };
}

const ROWS: readonly [key: "opened" | "shadowed" | "nodes_down" | "proposed", label: string][] = [
  ["opened", "Incidents that count"],
  ["shadowed", "Incidents in shadow"],
  ["nodes_down", "Nodes with a fault by it"],
  ["proposed", "Faults that ask for a repair"],
];

/** The same in one line, beside the button. */
function briefly(effect: OverrideEffect): string {
  const [opened, than] = effectWords(effect);
  return `In 30 days: ${opened}${than}.`;
}

function Effect({ effect }: { effect: OverrideEffect }) {
  const [opened, than, nodes, tail] = effectWords(effect);
  return (
    <>
      <p role="status">
        It would have opened <b>{opened}</b>
        {than}, with a fault on <b>{nodes}</b>
        {tail}.
      </p>
      <TableFrame name="Now and then">
        <table class="tbl ruled">
          <thead>
            <tr>
              <th scope="col">Over the last 30 days</th>
              <th scope="col" class="num">
                As set now
              </th>
              <th scope="col" class="num">
                With this
              </th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([key, label]) => (
              <tr key={key} class={effect.before[key] === effect.after[key] ? undefined : "on"}>
                <td>{label}</td>
                <td class="num">{count(effect.before[key])}</td>
                <td class="num">{count(effect.after[key])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableFrame>
      <p class="s12 t3">
        From {counted(effect.incidents, "incident")} of {counted(effect.events, "event")}. What is told from now on follows it; incidents that are open stay as they are.
      </p>
    </>
  );
}

function DryRun({ effect, error }: { effect: OverrideEffect | null; error: ApiError | null }) {
  if (effect) {
    return <Effect effect={effect} />;
  }
  if (error && error.errors.length === 0) {
    return <ErrorNote error={error} what="What it would have done" stillWorks="It can be saved all the same." />;
  }
  return <p class="t3">{error ? "Set right what is wrong above; then it is shown what it would have done." : "Set something: what it would have done in the last 30 days is shown here."}</p>;
}

function choices(first: string, values: readonly string[], words: (value: string) => string): Choice[] {
  return [{ value: "", label: first }, ...values.map((value) => ({ value, label: words(value) }))];
}

function Parts({ check, wish, complaint }: { check: Check; wish: Wish; complaint: (field: string) => string | null | undefined }) {
  const may = (part: string) => check.settable.includes(part);
  return (
    <>
      <Options
        legend="Mode"
        name="mode"
        value={wish.mode.value}
        onChange={(value) => (wish.mode.value = value)}
        options={[
          { value: "", label: "As delivered or as set further away" },
          { value: "live", label: "Live", sub: "incidents change states and ask for repairs" },
          { value: "shadow", label: "Shadow", sub: "incidents are recorded and shown, without effect" },
          { value: "off", label: "Off", sub: "nothing is recorded" },
        ]}
      />
      {complaint("mode") && <p class="help c-unhealthy">{complaint("mode")}</p>}
      <SelectField label="Severity, at most" name="severity" choices={choices(`As delivered: ${check.severity}`, SEVERITIES, (value) => value)} value={wish.severity.value} onChange={(value) => (wish.severity.value = value)} help={complaint("severity") ?? "Under critical it is no fault of the node."} />
      {may("action") && <SelectField label="Asks for" name="action" choices={choices(`As delivered: ${actionWords(check.action)}`, ACTIONS, (value) => (value === "none" ? "nothing" : action(value)))} value={wish.action.value} onChange={(value) => (wish.action.value = value)} help={complaint("action") ?? "Instead of the action that a fault asks for."} />}
      {may("threshold") && <Field label="Counts from" name="threshold" inputMode="numeric" value={wish.threshold.value} onInput={(value) => (wish.threshold.value = value)} placeholder={String(check.threshold)} help="Events; until then the incident is in shadow." error={complaint("threshold")} />}
      {may("looks") && (
        <>
          <Field label="Told after so many looks" name="looks" inputMode="numeric" value={wish.looks.value} onInput={(value) => (wish.looks.value = value)} placeholder={String(check.looks ?? "")} help="In a row, each of which finds it; at most 200." error={complaint("looks")} />
          <Field label="Ends after so many looks" name="clear_looks" inputMode="numeric" value={wish.clearLooks.value} onInput={(value) => (wish.clearLooks.value = value)} placeholder={String(check.clear_looks ?? "")} help="In a row, none of which finds it; at most 200." error={complaint("clear_looks")} />
        </>
      )}
      {!may("action") && <p class="s12 t3">This check asks for no action, so there is none to replace.</p>}
      {!may("threshold") && <p class="s12 t3">This check judges a state and counts no events: it has no threshold.</p>}
    </>
  );
}

export function OverrideDialog({ check, override, clusters }: { check: Check; override: CheckOverride | null; clusters: ClusterItem[] }) {
  const wish = useWish(override);
  const tried = useTry(check, wish);
  const parts = partsOf(wish);
  const trial = trialOf(wish, override);
  const seconds = trial.shown ? trialSeconds(wish.trial.value, trial.end) : {};
  const unsaid = seconds.shadow_seconds === 0 && wish.reason.value.trim() === "";
  const body = (): Record<string, unknown> => ({ check_id: check.check_id, ...placeOf(wish), ...parts, ...seconds, ...(wish.reason.value.trim() ? { reason: wish.reason.value.trim() } : {}) });
  const save = async () => {
    const all = { mode: null, severity: null, action: null, threshold: null, looks: null, clear_looks: null, ...parts, ...seconds, reason: wish.reason.value.trim() };
    await (override ? request("PATCH", `/check-overrides/${override.id}`, { body: all, ifMatch: `"${override.version}"` }) : request("POST", "/check-overrides", { body: body(), idempotencyKey: newIdempotencyKey() }));
    return true;
  };
  const where = placeWords({ cluster_id: wish.cluster.value || null, gpu_type: wish.type.value.trim() }, clusters, orgName());
  const types = [...new Set(clusters.map((one) => one.gpu_type).filter(Boolean))];
  const unset = Object.keys(parts).length === 0;
  return (
    <VerbForm
      title={override ? `Change how ${check.title} is set` : `Set ${check.title} differently`}
      lead={override ? `For ${where}.` : "Of several, the nearest holds: a cluster before a type of GPU, both before all."}
      path=""
      send={save}
      verb={override ? "Save the change" : "Set it"}
      disabled={lacks("cluster.write") ?? (unset ? "Set at least one of mode, severity, action, threshold and looks." : unsaid ? "Say why it should be live at once." : tried.error.value?.errors.length ? "Something above is not valid." : null)}
      binds={
        <>
          {`For ${where}: ${setWords({ mode: (wish.mode.value || null) as CheckOverride["mode"], severity: wish.severity.value || null, action: wish.action.value || null, threshold: Number(wish.threshold.value) || null, looks: Number(wish.looks.value) || null, clear_looks: Number(wish.clearLooks.value) || null, shadow_until: null })}${trial.shown && seconds.shadow_seconds !== 0 ? `; ${trial.changed || trial.end === null ? "in shadow first" : untilWords(trial.end)}` : ""}.`}{" "}
          {tried.effect.value && <b>{briefly(tried.effect.value)}</b>}
        </>
      }
      fields={FIELDS}
      onClose={askNothing}
      done={() => {
        refresh("/checks");
        refresh("/audit");
        askNothing();
      }}
    >
      {(error) => {
        const complaint = (field: string) => error?.field(field) ?? tried.error.value?.field(field);
        return (
          <>
            {!override && (
              <>
                <SelectField label="Where" name="cluster_id" choices={[{ value: "", label: `All of ${orgName()}` }, ...clusters.map((one) => ({ value: one.id, label: `Only the cluster ${one.name}` }))]} value={wish.cluster.value} onChange={(value) => (wish.cluster.value = value)} help={complaint("cluster_id") ?? ""} />
                <Field label="Only this type of GPU" name="gpu_type" value={wish.type.value} onInput={(value) => (wish.type.value = value)} placeholder={types[0] ?? "NVIDIA H100 80GB HBM3"} help="As the nodes say it; empty: every type." error={complaint("gpu_type")} />
              </>
            )}
            <Parts check={check} wish={wish} complaint={complaint} />
            {trial.shown && <TrialField value={wish.trial.value} onChange={(value) => (wish.trial.value = value)} end={trial.end} changed={trial.changed} what="A change of severity, action, threshold or looks" error={complaint("shadow_seconds")} />}
            <Field label="Why" name="reason" required={seconds.shadow_seconds === 0} value={wish.reason.value} onInput={(value) => (wish.reason.value = value)} placeholder="The leaf is being replaced" error={complaint("reason")} />
            <DryRun effect={tried.effect.value} error={tried.error.value} />
            {error?.status === 412 && (
              <Note tone="warn" title="Somebody changed it meanwhile.">
                <p class="t2">Close this, read it again, then decide.</p>
              </Note>
            )}
          </>
        );
      }}
    </VerbForm>
  );
}

export function RemoveOverride({ check, override, clusters }: { check: Check; override: CheckOverride; clusters: ClusterItem[] }) {
  const where = placeWords(override, clusters, orgName());
  return (
    <VerbForm
      title={`Set ${check.title} as delivered again`}
      lead={`For ${where}. It is set now: ${setWords(override)}.`}
      path={`/check-overrides/${override.id}`}
      method="DELETE"
      verb="Take the setting away"
      disabled={lacks("cluster.write")}
      binds="It applies to what is told from then on."
      onClose={askNothing}
      done={() => {
        refresh("/checks");
        refresh("/audit");
        askNothing();
      }}
    >
      {() => (
        <p>
          As delivered it is live, {check.severity}, and asks for {actionWords(check.action)}. {check.overrides.length > 1 ? "Other settings of it stay." : ""}
        </p>
      )}
    </VerbForm>
  );
}

