/* Settings > Health checks: every check that Muster knows, how it judges, and how it is set here. */
import type { ViewProps } from "../app";
import type { Check, CheckList } from "../detection-types";
import { count, counted } from "../format";
import { query, setQuery } from "../router";
import { useQuery } from "../store";
import { moment, now } from "../time";
import { Button, Select, type Choice } from "../ui/controls";
import { Mark } from "../ui/marks";
import { Nothing } from "../ui/page";
import { Loaded } from "../ui/states";
import { Listing } from "../ui/listing";
import { actionWords, clearWords, MODE_WORD, modeOf, shown, sourceWords, standing, thresholdWords, windowWords, type CheckFilter } from "./check-rules";
import { checkTabs } from "./health-check-tabs";
import { orgName, SettingsPage } from "./settings";

const SETS: Choice[] = [
  { value: "", label: "All checks" },
  { value: "faults", label: "Faults of a node" },
  { value: "set", label: "Set differently" },
  { value: "shadow", label: "In shadow somewhere" },
  { value: "off", label: "Off somewhere" },
];
const SEVERITIES: Choice[] = [{ value: "", label: "Any" }, ...["critical", "warning", "info"].map((value) => ({ value, label: value }))];

export function ModeCell({ check }: { check: Check }) {
  const { everywhere, until, elsewhere } = standing(check);
  return (
    <>
      <span class="st">
        {everywhere !== "live" && <Mark kind={everywhere === "off" ? "paused" : "pending"} />}
        {everywhere === "live" ? "Live" : <b>{MODE_WORD[everywhere]}</b>}
      </span>
      {until !== null && <span class="sub">until {moment(until, now.value)}</span>}
      {elsewhere > 0 && <span class="sub">set in {counted(elsewhere, "place")}</span>}
    </>
  );
}

/** What holds for all of the organization; what was delivered stands below where it differs. */
function Held({ now: holds, delivered }: { now: string; delivered: string }) {
  return (
    <>
      {holds}
      {holds !== delivered && <span class="sub">delivered: {delivered}</span>}
    </>
  );
}

function SeverityCell({ check }: { check: Check }) {
  const fault = check.node_fault && check.effective.severity === "critical";
  return (
    <span class={fault ? undefined : "t2"}>
      <Held now={check.effective.severity} delivered={check.severity} />
      {fault && <span class="sub">fault of the node</span>}
    </span>
  );
}

function CheckTable({ rows }: { rows: Check[] }) {
  return (
    <Listing
      name="Checks"
      rows={rows}
      rowKey={(check) => check.check_id}
      columns={[
        {
          key: "check",
          head: "Check",
          cell: (check) => (
            <>
              <a class="name" href={`/settings/checks/${check.check_id}`}>
                {check.title}
              </a>
              <span class="sub mono">{check.check_id}</span>
            </>
          ),
        },
        { key: "source", head: "Reads", class: "t2", cell: (check) => sourceWords(check.source) },
        { key: "from", head: "Counts", class: "nw t2", cell: (check) => <Held now={thresholdWords(check.effective)} delivered={thresholdWords(check)} /> },
        { key: "window", head: "Window", class: "nw t2", cell: (check) => windowWords(check) || <Nothing /> },
        { key: "severity", head: "Severity", class: "nw", cell: (check) => <SeverityCell check={check} /> },
        { key: "action", head: "Asks for", class: "nw", cell: (check) => (check.effective.action === "none" && check.action === "none" ? <Nothing>nothing</Nothing> : <Held now={actionWords(check.effective.action)} delivered={actionWords(check.action)} />) },
        { key: "clears", head: "Clears", class: "t2", cell: (check) => clearWords(check) },
        { key: "mode", head: "Mode", class: "nw", cell: (check) => <ModeCell check={check} /> },
      ]}
    />
  );
}

export function HealthChecksPage(_: ViewProps) {
  const checks = useQuery<CheckList>("/checks", { everyMs: 60_000 });
  const items = checks.data.value?.items ?? [];
  const at = query.value;
  const filter: CheckFilter = { text: at.get("q") ?? "", source: at.get("source") ?? "", severity: at.get("severity") ?? "", set: at.get("set") ?? "" };
  const sources: Choice[] = [{ value: "", label: "Any source" }, ...[...new Set(items.map((one) => one.source))].sort().map((value) => ({ value, label: sourceWords(value) }))];
  const different = items.filter((one) => one.overrides.length > 0).length;
  const quiet = items.filter((one) => one.overrides.some((override) => ["shadow", "off"].includes(modeOf(override) ?? ""))).length;
  return (
    <SettingsPage
      title="Health checks"
      parts={[<><b>{items.length ? counted(items.length, "check") : "Health checks"}</b> of {orgName()}</>, items.length > 0 && (different > 0 ? <><b>{count(different)}</b> set differently{quiet > 0 ? `, ${count(quiet)} of them in shadow or off somewhere` : ""}</> : "all as delivered")]}
      tabs={checkTabs("")}
      needs={{ permission: "cluster.read", what: "the health checks" }}
    >
      {() => (
        <>
          <div class="filter">
            <label class="sel grow1">
              <span>Search</span>
              <input type="search" placeholder="gpu ecc, boot, kernel log" value={filter.text} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
            </label>
            <Select label="Show" choices={SETS} value={filter.set} onChange={(set) => setQuery({ set })} />
            <Select label="Reads" choices={sources} value={filter.source} onChange={(source) => setQuery({ source })} />
            <Select label="Severity" choices={SEVERITIES} value={filter.severity} onChange={(severity) => setQuery({ severity })} />
          </div>
          <Loaded query={checks} what="The checks" rows={12}>
            {(data) => {
              const rows = data.items.filter((check) => shown(check, filter));
              return rows.length > 0 ? (
                <CheckTable rows={rows} />
              ) : (
                <div class="sec">
                  <p>No check matches.</p>
                  <p class="row8">
                    <Button small onClick={() => setQuery({ q: null, source: null, severity: null, set: null })}>
                      Show all {count(data.items.length)}
                    </Button>
                  </p>
                </div>
              );
            }}
          </Loaded>
        </>
      )}
    </SettingsPage>
  );
}
