/* Settings > Health checks > Own checks: a program on the nodes, or a threshold of a reading; its versions and what each changed. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, newIdempotencyKey, post, request } from "../api";
import type { ViewProps } from "../app";
import type { OwnCheck, OwnCheckEffect, OwnCheckVersion } from "../detection-types";
import { action, counted, sentence } from "../format";
import { refresh, useQuery, type Query } from "../store";
import { now, parse } from "../time";
import type { ClusterItem, List } from "../types";
import { Button, Field, Options, SelectField, type Choice } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Mark } from "../ui/marks";
import { Nothing, Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { ask, asked, askNothing, lacks } from "./asked";
import { actionWords } from "./check-rules";
import { Diff } from "./diff";
import { checkTabs } from "./health-check-tabs";
import { usePaged } from "./paged";
import { orgName, problemOf, SettingsPage } from "./settings";
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
  return rule.script ? (rule.script.split("\n").find((line) => line.trim() && !line.startsWith("#")) ?? "a script") : (rule.argv ?? []).join(" ");
}

function ModeOf({ check }: { check: OwnCheck }) {
  const first = (parse(check.shadow_until) ?? 0) > now.value;
  const mode = check.mode === "off" ? "off" : check.mode === "shadow" || first ? "shadow" : "live";
  return (
    <>
      <span class="st">
        {mode !== "live" && <Mark kind={mode === "off" ? "paused" : "pending"} />}
        {mode === "live" ? "Live" : <b>{mode === "off" ? "Off" : "In shadow"}</b>}
      </span>
      {first && check.mode === "live" && (
        <span class="sub">
          until <Time iso={check.shadow_until} form="moment" />
        </span>
      )}
    </>
  );
}

/** What stands in the form, as text. */
function useDraft(check: OwnCheck | null) {
  const rule = check?.definition ?? {};
  const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));
  return {
    name: useSignal(check?.name ?? ""), title: useSignal(check?.title ?? ""), kind: useSignal<string>(check?.kind ?? "metric"), cluster: useSignal(check?.cluster_id ?? ""),
    severity: useSignal<string>(check?.severity ?? "warning"), action: useSignal(check?.action ?? "none"), mode: useSignal<string>(check?.mode ?? "live"), reason: useSignal(""),
    metric: useSignal(text(rule.metric) || "gpu_temp_c"), comparison: useSignal<string>(rule.comparison ?? "above"), threshold: useSignal(text(rule.threshold)), ends: useSignal(text(rule.clear_threshold)), lasts: useSignal(text(rule.for_seconds) || "300"),
    script: useSignal(rule.script ?? (rule.argv ?? []).join(" ")), user: useSignal(rule.user ?? "nobody"), every: useSignal(text(rule.interval_seconds) || "300"), limit: useSignal(text(rule.timeout_seconds) || "10"),
    /* a program by its path is taken apart at blanks; anything else is a script */
    argv: useSignal(!!rule.argv),
  };
}
type Draft = ReturnType<typeof useDraft>;

/** Text that is no number is sent as it is: the server says what is wrong with it. */
function numeric(text: string): number | string {
  return text.trim() !== "" && !Number.isNaN(Number(text)) ? Number(text) : text.trim();
}

function definitionOf(draft: Draft): Record<string, unknown> {
  if (draft.kind.value === "metric") {
    return { metric: draft.metric.value, comparison: draft.comparison.value, threshold: numeric(draft.threshold.value), for_seconds: numeric(draft.lasts.value), ...(draft.ends.value.trim() ? { clear_threshold: numeric(draft.ends.value) } : {}) };
  }
  const program = draft.argv.value ? { argv: draft.script.value.trim().split(/\s+/) } : { script: draft.script.value };
  return { ...program, user: draft.user.value.trim(), interval_seconds: numeric(draft.every.value), timeout_seconds: numeric(draft.limit.value) };
}

/** Where a metric rule would have failed in 30 days, a moment after the last change. */
function TryOut({ draft }: { draft: Draft }) {
  const effect = useSignal<OwnCheckEffect | null>(null);
  const error = useSignal<ApiError | null>(null);
  const ready = draft.kind.value === "metric" && draft.threshold.value.trim() !== "";
  const body = JSON.stringify({ definition: definitionOf(draft), ...(draft.cluster.value ? { cluster_id: draft.cluster.value } : {}) });
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
    return <p class="s12 t3">A program is not tried in the past: it is in shadow for a day first, on nodes whose agent.conf has command_checks.</p>;
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
      <SelectField label="Fails when it is" name="comparison" choices={[{ value: "above", label: "above" }, { value: "below", label: "below" }]} value={draft.comparison.value} onChange={(value) => (draft.comparison.value = value)} />
      <Field label="Threshold" name="threshold" required inputMode="decimal" value={draft.threshold.value} onInput={(value) => (draft.threshold.value = value)} placeholder="85" error={complaint("definition/threshold")} />
      <Field label="Ends at" name="clear_threshold" inputMode="decimal" value={draft.ends.value} onInput={(value) => (draft.ends.value = value)} placeholder="80" help="Empty: at the threshold." error={complaint("definition/clear_threshold")} />
      <Field label="For so many seconds" name="for_seconds" inputMode="numeric" value={draft.lasts.value} onInput={(value) => (draft.lasts.value = value)} error={complaint("definition/for_seconds")} />
    </>
  );
}

function CommandFields({ draft, complaint }: { draft: Draft; complaint: (field: string) => string | null | undefined }) {
  return (
    <>
      <Field label={draft.argv.value ? "Program and arguments" : "Script, for /bin/sh"} name="script" required multiline value={draft.script.value} onInput={(value) => (draft.script.value = value)} placeholder={'test "$(cat /sys/class/dmi/id/bios_version)" = 1.4.2'} help="It fails when it ends with another status than 0; its output becomes the evidence." error={complaint("definition/script") ?? complaint("definition/argv") ?? complaint("definition")} />
      <Field label="As the user" name="user" value={draft.user.value} onInput={(value) => (draft.user.value = value)} error={complaint("definition/user")} />
      <Field label="Every so many seconds" name="interval_seconds" inputMode="numeric" value={draft.every.value} onInput={(value) => (draft.every.value = value)} error={complaint("definition/interval_seconds")} />
      <Field label="Ended after, seconds" name="timeout_seconds" inputMode="numeric" value={draft.limit.value} onInput={(value) => (draft.limit.value = value)} error={complaint("definition/timeout_seconds")} />
    </>
  );
}

function done(): void {
  refresh("/custom-checks");
  refresh("/checks");
  askNothing();
}

function EditDialog({ check, clusters }: { check: OwnCheck | null; clusters: ClusterItem[] }) {
  const draft = useDraft(check);
  const save = async () => {
    const rule = { title: draft.title.value.trim(), severity: draft.severity.value, action: draft.action.value, mode: draft.mode.value, definition: definitionOf(draft), ...(draft.reason.value.trim() ? { reason: draft.reason.value.trim() } : {}) };
    await (check
      ? request("PATCH", `/custom-checks/${check.id}`, { body: rule, ifMatch: `"${check.version}"` })
      : request("POST", "/custom-checks", { body: { ...rule, name: draft.name.value.trim(), kind: draft.kind.value, ...(draft.cluster.value ? { cluster_id: draft.cluster.value } : {}) }, idempotencyKey: newIdempotencyKey() }));
    return true;
  };
  const missing = draft.name.value.trim() === "" ? "Give it a name first." : draft.kind.value === "metric" ? (draft.threshold.value.trim() === "" ? "Say a threshold first." : null) : draft.script.value.trim() === "" ? "Say what runs first." : null;
  return (
    <VerbForm
      title={check ? `Change ${check.name}` : "Make a check"}
      lead="A rule that is new or changed is in shadow for a day first."
      path=""
      send={save}
      verb={check ? "Save as the next version" : "Make the check"}
      disabled={lacks("script.write") ?? missing}
      binds={check ? `It is version ${check.version} now.` : null}
      fields={["name", "title", "severity", "action", "mode", "reason"]}
      onClose={askNothing}
      done={done}
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
              </>
            )}
            {draft.kind.value === "metric" ? <MetricFields draft={draft} complaint={complaint} /> : <CommandFields draft={draft} complaint={complaint} />}
            <SelectField label="Severity" name="severity" choices={SEVERITIES} value={draft.severity.value} onChange={(value) => (draft.severity.value = value)} help={complaint("severity") ?? "Critical is a fault of the node."} />
            <SelectField label="Asks for" name="action" choices={ACTIONS} value={draft.action.value} onChange={(value) => (draft.action.value = value)} help={complaint("action") ?? ""} />
            <SelectField label="Mode" name="mode" choices={[{ value: "live", label: "live, after its time in shadow" }, { value: "shadow", label: "shadow: without effect" }, { value: "off", label: "off: it does not run" }]} value={draft.mode.value} onChange={(value) => (draft.mode.value = value)} help={complaint("mode") ?? ""} />
            <Field label="Why" name="reason" value={draft.reason.value} onInput={(value) => (draft.reason.value = value)} error={complaint("reason")} />
            <TryOut draft={draft} />
          </>
        );
      }}
    </VerbForm>
  );
}

function RemoveDialog({ check }: { check: OwnCheck }) {
  return (
    <VerbForm title={`Delete ${check.name}`} lead={sentence(ruleWords(check))} path={`/custom-checks/${check.id}`} method="DELETE" verb="Delete the check" disabled={lacks("script.write")} binds="It cannot be taken back." onClose={askNothing} done={done}>
      {() => <p>It does not run any more, and what it opened ends. Its past incidents stay.</p>}
    </VerbForm>
  );
}

function Versions({ check }: { check: OwnCheck }) {
  const versions = useQuery<{ items: OwnCheckVersion[] }>(`/custom-checks/${check.id}/versions`);
  const side = (version: OwnCheckVersion, which: "before" | "after") => Object.fromEntries(version.changed.filter((one) => one[which] !== null).map((one) => [one.field, one[which]]));
  return (
    <Section title={`Versions of ${check.name}`} hint="newest first, with what each changed">
      <Loaded query={versions} what="The versions" rows={3}>
        {(list) => (
          <ol class="rows">
            {list.items.map((version) => (
              <li key={version.version}>
                <p>
                  <b>Version {version.version}</b> by {version.author}{" "}
                  <span class="t3">
                    <Time iso={version.at} form="ago" />
                    {version.reason ? `: ${version.reason}` : ""}
                  </span>
                </p>
                {version.changed.length > 0 ? <Diff before={side(version, "before")} after={side(version, "after")} label={`What version ${version.version} changed`} /> : <p class="t3">The first one.</p>}
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </Section>
  );
}

export function OwnChecksPage(_: ViewProps) {
  const paged = usePaged<OwnCheck>("/custom-checks?limit=200", { everyMs: 60_000 });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const places = clusters.data.value?.items ?? [];
  const { what, id } = asked();
  const chosen = paged.rows.find((one) => one.id === id) ?? null;
  const lack = lacks("script.write");
  return (
    <SettingsPage
      title="Own checks"
      parts={[<><b>{paged.first.data.value ? counted(paged.rows.length, "own check") : "Own checks"}</b> of {orgName()}</>, "a program on the nodes, or a threshold of a reading"]}
      tabs={checkTabs("own")}
      actions={
        <Button kind="primary" disabled={lack} showReason={false} onClick={() => ask("make")}>
          Make a check…
        </Button>
      }
    >
      {() => (
        <>
          {lack && <p class="reason gap8">{lack}</p>}
          <Loaded query={paged.first as Query<List<OwnCheck>>} what="The own checks" rows={4}>
            {() =>
              paged.rows.length === 0 ? (
                <p class="sec t2">There is none yet. What no delivered check sees, one of your own may: a reading above a limit, or a program that fails.</p>
              ) : (
                <Listing<OwnCheck>
                  name="Own checks"
                  rows={paged.rows}
                  rowKey={(one) => one.id}
                  columns={[
                    { key: "name", head: "Check", cell: (one) => <><b>{one.title || one.name}</b><span class="sub mono">{one.check_id}</span></> },
                    { key: "rule", head: "Fails when", class: "t2 brk", cell: (one) => (one.kind === "metric" ? ruleWords(one) : <span class="mono s12">{ruleWords(one)}</span>) },
                    { key: "where", head: "Where", class: "t2", cell: (one) => (one.cluster_id ? `cluster ${places.find((place) => place.id === one.cluster_id)?.name ?? "not known"}` : `all of ${orgName()}`) },
                    { key: "severity", head: "Severity", class: "nw", cell: (one) => one.severity },
                    { key: "action", head: "Asks for", class: "nw", cell: (one) => (one.action === "none" ? <Nothing>nothing</Nothing> : actionWords(one.action)) },
                    { key: "mode", head: "Mode", class: "nw", cell: (one) => <ModeOf check={one} /> },
                    {
                      key: "do",
                      head: <span class="vh">Actions</span>,
                      class: "num nw",
                      cell: (one) => (
                        <span class="pair">
                          <Button small label={`Version ${one.version} of ${one.name}, and those before`} onClick={() => ask("versions", one.id)}>
                            Version {one.version}
                          </Button>
                          <Button small disabled={lack} showReason={false} label={`Change ${one.name}…`} onClick={() => ask("edit", one.id)}>
                            Change…
                          </Button>
                          <Button small disabled={lack} showReason={false} label={`Delete ${one.name}…`} onClick={() => ask("delete", one.id)}>
                            Delete…
                          </Button>
                        </span>
                      ),
                    },
                  ]}
                />
              )
            }
          </Loaded>
          {paged.foot("check")}
          {what === "versions" && chosen && <Versions key={`${chosen.id} ${chosen.version}`} check={chosen} />}
          {what === "make" && <EditDialog check={null} clusters={places} />}
          {what === "edit" && chosen && <EditDialog key={chosen.id} check={chosen} clusters={places} />}
          {what === "delete" && chosen && <RemoveDialog check={chosen} />}
        </>
      )}
    </SettingsPage>
  );
}
