/* What repairs brought and what faults cost, as pictures; and the incidents of a span as one file. */
import { useSignal } from "@preact/signals";
import { ApiError, BASE, withQuery } from "../api";
import { action, count, counted, percent, sentence } from "../format";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import type { RepairStatistics } from "../repair-types";
import { DAY, now, serverNow, span } from "../time";
import { Button, Field, Select } from "../ui/controls";
import { Nothing, Section } from "../ui/page";
import { Loaded, Note } from "../ui/states";
import { Table } from "../ui/table";
import { reportHtml } from "./report-html";

const RANGES = [
  { value: "7d", label: "7 days", days: 7 },
  { value: "30d", label: "30 days", days: 30 },
  { value: "90d", label: "90 days", days: 90 },
];
const HOUR = 3_600_000;

interface Part {
  value: number;
  kind: string;
}

/** Bars that share one scale; widths are attributes, since a style would be refused. */
function Bar({ parts, most, label }: { parts: Part[]; most: number; label: string }) {
  let x = 0;
  return (
    <svg class="hbar" viewBox="0 0 200 12" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="b0" width="200" height="12" />
      {parts.map((part) => {
        const width = most > 0 ? (part.value / most) * 200 : 0;
        const at = x;
        x += width;
        return <rect key={part.kind} class={part.kind} x={at} width={Math.max(0, width)} height="12" />;
      })}
    </svg>
  );
}

/** Small figures keep a digit. */
const hours = (n: number) => (n < 10 ? n.toFixed(1) : count(Math.round(n)));
const seconds = (n: number | null) => (n === null ? <Nothing>no data</Nothing> : span(n * 1000));

function Times({ figures }: { figures: RepairStatistics }) {
  const most = Math.max(1, ...figures.by_action.map((one) => (one.mean_to_decide_seconds ?? 0) + (one.mean_to_carry_out_seconds ?? 0)));
  if (figures.by_action.length === 0) {
    return <p class="t3">No repair has ended in this span.</p>;
  }
  return (
    <>
      <p class="legend1 s12 t2">
        <svg class="key" viewBox="0 0 12 12" aria-hidden="true"><rect class="b2" width="12" height="12" /></svg> until it was decided
        <svg class="key" viewBox="0 0 12 12" aria-hidden="true"><rect class="b1" width="12" height="12" /></svg> until it was carried out and proven
      </p>
      <Table
        name="Time to repair"
        rows={figures.by_action}
        rowKey={(row) => row.action}
        columns={[
          { key: "action", head: "Action", class: "nw", cell: (row) => <b>{sentence(action(row.action))}</b> },
          {
            key: "bar",
            head: "Mean time",
            class: "figcell",
            cell: (row) => (
              <Bar
                most={most}
                parts={[
                  { kind: "b2", value: row.mean_to_decide_seconds ?? 0 },
                  { kind: "b1", value: row.mean_to_carry_out_seconds ?? 0 },
                ]}
                label={`${row.mean_to_decide_seconds === null ? "no data" : span(row.mean_to_decide_seconds * 1000)} to decide, ${row.mean_to_carry_out_seconds === null ? "no data" : span(row.mean_to_carry_out_seconds * 1000)} to carry out`}
              />
            ),
          },
          { key: "mttr", head: "From fault to proof", number: true, class: "nw", cell: (row) => <>{seconds(row.mean_to_repair_seconds)}<span class="sub">half within {seconds(row.median_to_repair_seconds)}</span></> },
          { key: "ok", head: "Succeeded", number: true, class: "nw", cell: (row) => `${count(row.succeeded)} of ${count(row.repairs)}` },
          { key: "auto", head: "Automatic", number: true, class: "nw", cell: (row) => count(row.automatic) },
        ]}
      />
    </>
  );
}

function Rules({ figures }: { figures: RepairStatistics }) {
  if (figures.by_rule.length === 0) {
    return <p class="t3">No rule has asked for a repair that ended in this span.</p>;
  }
  return (
    <Table
      name="How often each rule was right"
      rows={[...figures.by_rule].sort((a, b) => b.repairs - a.repairs)}
      rowKey={(row) => `${row.check_id}:${row.code}`}
      columns={[
        { key: "rule", head: "Rule", class: "nw", cell: (row) => <span class="mono">{row.check_id}{row.code ? `:${row.code}` : ""}</span> },
        { key: "bar", head: "Right", class: "figcell", cell: (row) => <Bar most={1} parts={[{ kind: "b1", value: row.right_ratio }]} label={percent(row.right_ratio)} /> },
        { key: "n", head: <span class="vh">Of</span>, number: true, class: "nw", cell: (row) => `${percent(row.right_ratio)}, ${count(row.right)} of ${count(row.repairs)}` },
      ]}
    />
  );
}

function Lost({ figures, clusterId }: { figures: RepairStatistics; clusterId: string }) {
  const most = Math.max(0, ...figures.lost_most.map((one) => one.hours));
  if (figures.lost_most.length === 0) {
    return <p class="t3">No node was unhealthy or under repair in this span.</p>;
  }
  return (
    <Table
      name="Nodes that were out longest"
      rows={figures.lost_most}
      rowKey={(row) => row.node_id}
      columns={[
        { key: "node", head: "Node", class: "nw", cell: (row) => <a class="name" href={`/clusters/${clusterId}/nodes/${row.node_id}`}>{row.node_name}</a> },
        { key: "bar", head: "Out of service", class: "figcell", cell: (row) => <Bar most={most} parts={[{ kind: "b3", value: row.hours }]} label={span(row.hours * HOUR)} /> },
        { key: "hours", head: <span class="vh">Hours</span>, number: true, class: "nw", cell: (row) => span(row.hours * HOUR) },
      ]}
    />
  );
}

/** Local wall-clock text of a moment, as it is typed: 2026-12-01 14:00. */
function typedOf(ms: number): string {
  const at = new Date(ms);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function readTyped(text: string): number | null {
  const found = /^(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d))?$/.exec(text.trim());
  if (!found) {
    return null;
  }
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = found.slice(1).map((one) => Number(one ?? 0));
  const at = new Date(year, month - 1, day, hour, minute);
  return at.getMonth() === month - 1 && at.getDate() === day && hour < 24 && minute < 60 ? at.getTime() : null;
}

const iso = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;

function save(text: string, type: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

function Report({ clusterId, clusterName }: { clusterId: string; clusterName: string }) {
  const from = useSignal(typedOf(now.peek() - 7 * DAY));
  const to = useSignal(typedOf(now.peek()));
  const failed = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const since = readTyped(from.value);
  const until = readTyped(to.value);
  const help = "As 2026-12-01 14:00, in your time zone.";
  const wrong = since === null || until === null ? "Write both moments as 2026-12-01 14:00." : until <= since ? "The end must be after the beginning." : null;
  const download = async (html: boolean) => {
    busy.value = true;
    failed.value = null;
    try {
      const path = withQuery(`${BASE}/clusters/${clusterId}/incident-report`, { since: iso(since ?? 0), until: iso(until ?? 0) });
      const answer = await fetch(path, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) {
        const problem = (await answer.json().catch(() => ({}))) as { title?: string; detail?: string; request_id?: string };
        throw new ApiError(answer.status, "report", problem.title ?? "The server refused the request", problem.detail ?? "", problem.request_id ?? null);
      }
      const text = await answer.text();
      const name = `incidents-${clusterName}-${iso(since ?? 0).slice(0, 10)}`;
      save(html ? reportHtml(text, `Incidents of ${clusterName}`) : text, html ? "text/html" : "text/markdown", `${name}.${html ? "html" : "md"}`);
    } catch (cause) {
      failed.value = cause instanceof ApiError ? cause : new ApiError(0, "network", "The server cannot be reached", "Check the network, then press again.", null);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Section title="Incident report" hint="each incident with its evidence, what was done about it and by whom; the first 500">
      <div class="grid3">
        <Field label="From" name="since" value={from.value} onInput={(value) => (from.value = value)} help={help} error={since === null ? help : null} />
        <Field label="Until" name="until" value={to.value} onInput={(value) => (to.value = value)} help={help} error={until === null ? help : null} />
      </div>
      <p class="row8 gap12">
        <Button disabled={wrong} showReason={false} busy={busy.value} onClick={() => void download(false)}>
          Download Markdown
        </Button>
        <Button disabled={wrong} showReason={false} busy={busy.value} onClick={() => void download(true)}>
          Download HTML
        </Button>
        {wrong && <span class="reason">{wrong}</span>}
      </p>
      {failed.value && (
        <div class="gap12">
          <Note tone="bad" alert title={`The report was not made: ${failed.value.title}.`}>
            <p class="t2">{failed.value.detail}</p>
          </Note>
        </div>
      )}
    </Section>
  );
}

export function Figures({ clusterId, clusterName }: { clusterId: string; clusterName: string }) {
  const range = RANGES.find((one) => one.value === query.value.get("range")) ?? RANGES[1];
  const until = Math.ceil(serverNow() / HOUR) * HOUR;
  const figures = useQuery<RepairStatistics>(withQuery(`/clusters/${clusterId}/repair-statistics`, { since: iso(until - (range?.days ?? 30) * DAY), until: iso(until) }), { everyMs: 300_000 });
  return (
    <>
      <div class="filter">
        <a href={`/clusters/${clusterId}/repairs`}>Back to the repairs</a>
        <span class="grow" />
        <Select label="Last" choices={RANGES} value={range?.value ?? "30d"} onChange={(value) => setQuery({ range: value === "30d" ? null : value })} />
      </div>
      <Loaded query={figures} what="The figures" rows={8}>
        {(one) => (
          <>
            <p class="verdict">
              <b>{counted(one.node_faults, "node fault")}</b> cost <b>{hours(one.lost_gpu_hours)} GPU-hours</b> ({hours(one.lost_node_hours)} node-hours) in the last {range?.label}.
            </p>
            <Section title="Time to repair" hint="of those that succeeded; the median beside the mean">
              <Times figures={one} />
            </Section>
            <div class="cols half">
              <Section title="How often each rule was right" hint="its action ended the fault">
                <Rules figures={one} />
              </Section>
              <Section title="Nodes that were out longest" hint="unhealthy or under repair">
                <Lost figures={one} clusterId={clusterId} />
              </Section>
            </div>
          </>
        )}
      </Loaded>
      <Report clusterId={clusterId} clusterName={clusterName} />
    </>
  );
}
