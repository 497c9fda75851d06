/* The form of an own check: a threshold of a reading, or a program on the nodes; what it would have found; how it begins. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post, request } from "../api";
import type { OwnCheck, OwnCheckEffect, OwnDefinition } from "../detection-types";
import { action, counted } from "../format";
import { refresh } from "../store";
import { DAY, now } from "../time";
import type { ClusterItem } from "../types";
import { Field, Options, SelectField, type Choice } from "../ui/controls";
import { askNothing, lacks } from "./asked";
import { trialEnd } from "./check-rules";
import { orgName, problemOf } from "./settings";
import { TrialField, trialSeconds } from "./trial";
import { VerbForm } from "./verb-form";

const METRICS: Choice[] = [
  ["gpu_temp_c", "GPU temperature, °C"], ["gpu_util", "GPU busy, percent"], ["gpu_mem_ratio", "GPU memory, 0 to 1"], ["gpu_power_w", "GPU power, W"],
  ["cpu_ratio", "CPU busy, 0 to 1"], ["mem_ratio", "Memory, 0 to 1"], ["disk_ratio", "Fullest disk, 0 to 1"],
  ["net_rx_mbps", "Network in, Mb/s"], ["net_tx_mbps", "Network out, Mb/s"], ["fabric_rx_mbps", "Fabric in, Mb/s"], ["fabric_tx_mbps", "Fabric out, Mb/s"],
].map(([value, label]) => ({ value: value as string, label: label as string }));
const ACTIONS: Choice[] = ["none", "reset_gpu", "reboot", "power_cycle", "reprovision", "failover", "remove"].map((value) => ({ value, label: value === "none" ? "nothing" : action(value) }));
const SEVERITIES: Choice[] = ["info", "warning", "critical"].map((value) => ({ value, label: value }));
const TRY_AFTER_MS = 400;

/** "GPU temperature above 85 for 300 s", or the program's first words. */
export function ruleWords(check: Pick<OwnCheck, "kind" | "definition">): string {
  const rule = check.definition;
  if (check.kind === "metric") {
    const name = METRICS.find((one) => one.value === rule.metric)?.label.split(",")[0] ?? rule.metric ?? "";
    return `${name} ${rule.comparison} ${rule.threshold} for ${rule.for_seconds ?? 60} s`;
  }
  return rule.script ? (rule.script.split("\n").find((line) => line.trim() && !line.startsWith("#")) ?? "a script") : (rule.argv ?? []).map((one) => (/^[^\s"'\\]+$/.test(one) ? one : JSON.stringify(one))).join(" ");
}

/** One argument a line: blanks and quotes in it stay as they are. */
export function linesOf(argv: readonly string[] | undefined): string {
  return (argv ?? []).join("\n");
}

/** The arguments of the lines; lines that nobody touched are what they were, even where an argument has several lines. */
export function argvOf(lines: string, before: readonly string[] | undefined): string[] {
  return before && lines === linesOf(before) ? [...before] : lines.replace(/\n+$/, "").split("\n");
}

/** What stands in the form, as text. */
function useDraft(check: OwnCheck | null) {
  const rule = check?.definition ?? {};
  const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));
  return {
    name: useSignal(check?.name ?? ""), title: useSignal(check?.title ?? ""), kind: useSignal<string>(check?.kind ?? "metric"), cluster: useSignal(check?.cluster_id ?? ""),
    severity: useSignal<string>(check?.severity ?? "warning"), action: useSignal(check?.action ?? "none"), mode: useSignal<string>(check?.mode ?? "live"), reason: useSignal(""),
    metric: useSignal(text(rule.metric) || "gpu_temp_c"), comparison: useSignal<string>(rule.comparison ?? "above"), threshold: useSignal(text(rule.threshold)), ends: useSignal(text(rule.clear_threshold)), lasts: useSignal(text(rule.for_seconds) || "300"),
    script: useSignal(rule.script ?? ""), args: useSignal(linesOf(rule.argv)), user: useSignal(rule.user ?? "nobody"), every: useSignal(text(rule.interval_seconds) || "300"), limit: useSignal(text(rule.timeout_seconds) || "10"), output: useSignal(text(rule.output_bytes) || "4096"),
    raise: useSignal(text(rule.raise_after) || "2"), clear: useSignal(text(rule.clear_after) || "2"), type: useSignal(check?.gpu_type ?? ""), trial: useSignal((trialEnd(check?.shadow_until ?? null) ?? 0) > now.peek() + DAY ? "keep" : ""),
    how: useSignal<string>(rule.argv ? "argv" : "script"),
  };
}
type Draft = ReturnType<typeof useDraft>;

/** Text that is no number is sent as it is: the server says what is wrong with it. */
function numeric(text: string): number | string {
  return text.trim() !== "" && !Number.isNaN(Number(text)) ? Number(text) : text.trim();
}

export function definitionOf(draft: Draft, before: OwnDefinition = {}): Record<string, unknown> {
  if (draft.kind.value === "metric") {
    return { metric: draft.metric.value, comparison: draft.comparison.value, threshold: numeric(draft.threshold.value), for_seconds: numeric(draft.lasts.value), ...(draft.ends.value.trim() ? { clear_threshold: numeric(draft.ends.value) } : {}) };
  }
  const program = draft.how.value === "argv" ? { argv: argvOf(draft.args.value, before.argv) } : { script: draft.script.value };
  const runs = { interval_seconds: draft.every, timeout_seconds: draft.limit, output_bytes: draft.output, raise_after: draft.raise, clear_after: draft.clear };
  return { ...program, user: draft.user.value.trim(), ...Object.fromEntries(Object.entries(runs).map(([key, field]) => [key, numeric(field.value)])) };
}

/** Where a metric rule would have failed in 30 days, a moment after the last change. */
function TryOut({ draft }: { draft: Draft }) {
  const effect = useSignal<OwnCheckEffect | null>(null);
  const error = useSignal<ApiError | null>(null);
  const ready = draft.kind.value === "metric" && draft.threshold.value.trim() !== "";
  const body = JSON.stringify({ definition: definitionOf(draft), ...placeOf(draft) });
  useEffect(() => {
    let current = ready;
    const timer = setTimeout(() => {
      if (ready) {
        post<OwnCheckEffect>("/custom-checks/dry-run", JSON.parse(body)).then(
          (answer) => current && ((effect.value = answer), (error.value = null)),
          (cause) => current && ((effect.value = null), (error.value = problemOf(cause))),
        );
      }
    }, TRY_AFTER_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [body, ready]);
  if (draft.kind.value !== "metric") {
    return <p class="s12 t3">A program is not tried in the past. It runs only on nodes whose agent.conf has command_checks.</p>;
  }
  if (!ready || error.value) {
    return <p class="s12 t3">{error.value ? `${error.value.title}. ${error.value.errors.map((one) => one.detail).join(" ")}` : "Say a threshold: where it would have failed in the last 30 days is shown here."}</p>;
  }
  const found = effect.value;
  return found ? (
    <p role="status">
      It would have opened <b>{counted(found.incidents, "incident")}</b> on <b>{counted(found.nodes, "node")}</b> in 30 days
      {found.worst.length > 0 ? `, most on ${found.worst.slice(0, 3).map((one) => one.node_name).join(", ")}` : ""}. <span class="t3">Judged by the mean of a node&apos;s GPUs.</span>
    </p>
  ) : (
    <p class="t3">Looking at the last 30 days…</p>
  );
}

function MetricFields({ draft, complaint }: { draft: Draft; complaint: (field: string) => string | null | undefined }) {
  return (
    <>
      <SelectField label="Reading" name="metric" choices={METRICS} value={draft.metric.value} onChange={(value) => (draft.metric.value = value)} help={complaint("definition/metric") ?? ""} />
      <div class="grid3">
        <SelectField label="Fails when it is" name="comparison" choices={[{ value: "above", label: "above" }, { value: "below", label: "below" }]} value={draft.comparison.value} onChange={(value) => (draft.comparison.value = value)} />
        <Field label="Threshold" name="threshold" required inputMode="decimal" value={draft.threshold.value} onInput={(value) => (draft.threshold.value = value)} placeholder="85" error={complaint("definition/threshold")} />
        <Field label="Ends at" name="clear_threshold" inputMode="decimal" value={draft.ends.value} onInput={(value) => (draft.ends.value = value)} placeholder="80" help="Empty: at the threshold." error={complaint("definition/clear_threshold")} />
        <Field label="For so many seconds" name="for_seconds" inputMode="numeric" value={draft.lasts.value} onInput={(value) => (draft.lasts.value = value)} error={complaint("definition/for_seconds")} />
      </div>
    </>
  );
}

function CommandFields({ draft, complaint }: { draft: Draft; complaint: (field: string) => string | null | undefined }) {
  return (
    <>
      <Options legend="What runs" name="how" value={draft.how.value} onChange={(value) => (draft.how.value = value)} options={[{ value: "script", label: "A script", sub: "given to /bin/sh" }, { value: "argv", label: "A program", sub: "by its absolute path, without a shell" }]} />
      {draft.how.value === "argv" ? (
        <Field label="Program and arguments, one a line" name="argv" required multiline code value={draft.args.value} onInput={(value) => (draft.args.value = value)} placeholder={"/usr/bin/test\n-f\n/run/my service.pid"} help="Blanks and quotes are part of the argument. It fails when it ends with another status than 0; its output becomes the evidence." error={complaint("definition/argv") ?? complaint("definition")} />
      ) : (
        <Field label="Script, for /bin/sh" name="script" required multiline code value={draft.script.value} onInput={(value) => (draft.script.value = value)} placeholder={'test "$(cat /sys/class/dmi/id/bios_version)" = 1.4.2'} help="It fails when it ends with another status than 0; its output becomes the evidence." error={complaint("definition/script") ?? complaint("definition")} />
      )}
      <div class="grid3">
        <Field label="As the user" name="user" value={draft.user.value} onInput={(value) => (draft.user.value = value)} error={complaint("definition/user")} />
        <Field label="Every so many seconds" name="interval_seconds" inputMode="numeric" value={draft.every.value} onInput={(value) => (draft.every.value = value)} error={complaint("definition/interval_seconds")} />
        <Field label="Ended after, seconds" name="timeout_seconds" inputMode="numeric" value={draft.limit.value} onInput={(value) => (draft.limit.value = value)} error={complaint("definition/timeout_seconds")} />
        <Field label="Told after so many failures" name="raise_after" inputMode="numeric" value={draft.raise.value} onInput={(value) => (draft.raise.value = value)} help="Runs in a row." error={complaint("definition/raise_after")} />
        <Field label="Ends after so many successes" name="clear_after" inputMode="numeric" value={draft.clear.value} onInput={(value) => (draft.clear.value = value)} help="Runs in a row." error={complaint("definition/clear_after")} />
        <Field label="Output that is kept, bytes" name="output_bytes" inputMode="numeric" value={draft.output.value} onInput={(value) => (draft.output.value = value)} error={complaint("definition/output_bytes")} />
      </div>
    </>
  );
}

function placeOf(draft: Draft): Record<string, unknown> {
  return { ...(draft.cluster.value ? { cluster_id: draft.cluster.value } : {}), ...(draft.type.value.trim() ? { gpu_type: draft.type.value.trim() } : {}) };
}

/** The rule differs from what is stored: that is what goes on trial. */
function differs(draft: Draft, check: OwnCheck | null): boolean {
  const sorted = (definition: object) => JSON.stringify(Object.entries(definition).filter(([, value]) => value !== null).sort(([a], [b]) => a.localeCompare(b)));
  return !check || draft.severity.value !== check.severity || draft.action.value !== check.action || draft.mode.value !== check.mode || sorted(definitionOf(draft, check.definition)) !== sorted(check.definition);
}

export function ownDone(): void {
  refresh("/custom-checks");
  refresh("/checks");
  askNothing();
}

const FIELDS = ["name", "title", "gpu_type", "severity", "action", "mode", "shadow_seconds", "reason", "definition", ...["metric", "threshold", "clear_threshold", "for_seconds", "argv", "script", "user", "interval_seconds", "timeout_seconds", "output_bytes", "raise_after", "clear_after"].map((name) => `definition/${name}`)];

export function OwnCheckForm({ check, clusters }: { check: OwnCheck | null; clusters: ClusterItem[] }) {
  const draft = useDraft(check);
  const end = trialEnd(check?.shadow_until ?? null);
  const changed = differs(draft, check);
  const begins = draft.mode.value === "live" && (changed || end !== null);
  const seconds = begins && !(draft.trial.value === "keep" && !changed) ? trialSeconds(draft.trial.value, end) : {};
  const save = async () => {
    const rule = { title: draft.title.value.trim(), severity: draft.severity.value, action: draft.action.value, mode: draft.mode.value, definition: definitionOf(draft, check?.definition), ...seconds, ...(draft.reason.value.trim() ? { reason: draft.reason.value.trim() } : {}) };
    await (check
      ? request("PATCH", `/custom-checks/${check.id}`, { body: rule, ifMatch: `"${check.version}"` })
      : request("POST", "/custom-checks", { body: { ...rule, name: draft.name.value.trim(), kind: draft.kind.value, ...placeOf(draft) }, idempotencyKey: newIdempotencyKey() }));
    return true;
  };
  const missing = draft.name.value.trim() === "" ? "Give it a name first." : draft.kind.value === "metric" ? (draft.threshold.value.trim() === "" ? "Say a threshold first." : null) : (draft.how.value === "argv" ? draft.args : draft.script).value.trim() === "" ? "Say what runs first." : null;
  const unsaid = seconds.shadow_seconds === 0 && draft.reason.value.trim() === "" ? "Say why it should be live at once." : null;
  return (
    <VerbForm
      title={check ? `Change ${check.name}` : "Make a check"}
      path=""
      send={save}
      verb={check ? "Save as the next version" : "Make the check"}
      disabled={lacks("script.write") ?? missing ?? unsaid}
      binds={check ? `It is version ${check.version} now.` : null}
      fields={FIELDS}
      onClose={askNothing}
      done={ownDone}
    >
      {(error) => {
        const complaint = (field: string) => error?.field(field);
        return (
          <>
            {!check && <Field label="Name" name="name" required value={draft.name.value} onInput={(value) => (draft.name.value = value)} placeholder="gpu-hot" help="Lower case letters, digits and dashes; its incidents carry it." error={complaint("name")} />}
            <Field label="Title" name="title" value={draft.title.value} onInput={(value) => (draft.title.value = value)} placeholder="GPU hotter than the room allows" error={complaint("title")} />
            {!check && (
              <>
                <Options legend="Kind" name="kind" value={draft.kind.value} onChange={(value) => (draft.kind.value = value)} options={[{ value: "metric", label: "A reading", sub: "a threshold for what every agent reports anyway" }, { value: "command", label: "A program", sub: "runs on the nodes, as a user without rights" }]} />
                <SelectField label="Where" name="cluster_id" choices={[{ value: "", label: `All of ${orgName()}` }, ...clusters.map((one) => ({ value: one.id, label: `Only the cluster ${one.name}` }))]} value={draft.cluster.value} onChange={(value) => (draft.cluster.value = value)} />
                <Field label="Only this type of GPU" name="gpu_type" value={draft.type.value} onInput={(value) => (draft.type.value = value)} placeholder={clusters.find((one) => one.gpu_type)?.gpu_type ?? "NVIDIA H100 80GB HBM3"} help="As the nodes say it; empty: every type." error={complaint("gpu_type")} />
              </>
            )}
            {draft.kind.value === "metric" ? <MetricFields draft={draft} complaint={complaint} /> : <CommandFields draft={draft} complaint={complaint} />}
            <SelectField label="Severity" name="severity" choices={SEVERITIES} value={draft.severity.value} onChange={(value) => (draft.severity.value = value)} help={complaint("severity") ?? "Critical is a fault of the node."} />
            <SelectField label="Asks for" name="action" choices={ACTIONS} value={draft.action.value} onChange={(value) => (draft.action.value = value)} help={complaint("action") ?? ""} />
            <SelectField label="Mode" name="mode" choices={[{ value: "live", label: "live, after its time in shadow" }, { value: "shadow", label: "shadow: without effect" }, { value: "off", label: "off: it does not run" }]} value={draft.mode.value} onChange={(value) => (draft.mode.value = value)} help={complaint("mode") ?? ""} />
            {begins && <TrialField value={draft.trial.value} onChange={(value) => (draft.trial.value = value)} end={end} changed={changed} what="A rule that is new or changed" error={complaint("shadow_seconds")} />}
            <Field label="Why" name="reason" required={seconds.shadow_seconds === 0} value={draft.reason.value} onInput={(value) => (draft.reason.value = value)} error={complaint("reason")} />
            <TryOut draft={draft} />
          </>
        );
      }}
    </VerbForm>
  );
}
