/* One check: how it judges, how it is set and where, who changed that, and what it found lately. */
import { useComputed } from "@preact/signals";
import { withQuery } from "../api";
import type { ViewProps } from "../app";
import type { Check, CheckList, CheckOverride } from "../detection-types";
import { counted, sentence } from "../format";
import type { AuditRow } from "../identity-types";
import { may } from "../session";
import { useQuery } from "../store";
import { span } from "../time";
import type { ClusterItem, List } from "../types";
import { Button } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Mark } from "../ui/marks";
import { FactList, Nothing, Section, Time } from "../ui/page";
import { Loaded, Skeleton } from "../ui/states";
import { ask, asked, lacks } from "./asked";
import { CheckFound } from "./check-found";
import { askOverride, OverrideDialog, RemoveOverride } from "./check-override";
import { actionWords, familyWords, MODE_WORD, modeOf, placeWords, rank, setWords, sourceWords, standing, thresholdWords, untilWords, windowWords } from "./check-rules";
import { Diff } from "./diff";
import { checkTabs } from "./health-check-tabs";
import { MissingPage } from "./missing";
import { rolesWith } from "./roles";
import { orgName, SettingsPage } from "./settings";

function Rule({ check, all }: { check: Check; all: CheckList }) {
  return (
    <FactList
      wide
      facts={[
        ["Check", <span class="mono">{check.check_id}</span>],
        ["Reads", sourceWords(check.source)],
        ["Counts", `${thresholdWords(check)}${check.clear_looks ? `; it ends after ${counted(check.clear_looks, "look")} without it` : ""}`],
        ["Window", windowWords(check) ? `${windowWords(check)} without an event clears it` : <Nothing>none: it clears by another rule</Nothing>],
        ["Clears", check.clear_rule],
        ["Severity", `${check.severity}${check.node_fault ? ": a fault of the node" : ", no fault of the node"}`],
        ["Asks for", actionWords(check.action)],
        check.action === "none" ? null : ["Settles", check.settles ? `often ends by itself: a repair is proposed after ${span(all.settle_seconds * 1000)}` : "no: a repair is proposed at once"],
        ["After a boot", check.boot_grace ? `a warning for ${span(all.boot_grace_seconds * 1000)} after a boot or a change of driver, then a fault` : "judged at once"],
        ["Folds with", familyWords(check.family) || <Nothing>no other check</Nothing>],
        ["Can be set", check.settable.length > 0 ? check.settable.join(", ") : <Nothing>nothing</Nothing>],
      ]}
    />
  );
}

function Overrides({ check, clusters }: { check: Check; clusters: ClusterItem[] }) {
  const rows = [...check.overrides].sort((a, b) => rank(a) - rank(b) || placeWords(a, clusters, "").localeCompare(placeWords(b, clusters, "")));
  if (check.settable.length === 0) {
    return <p class="t3">It is part of how Muster works and cannot be set.</p>;
  }
  const lack = lacks("cluster.write");
  return (
    <>
      {rows.length === 0 ? (
        <p class="t2">As delivered everywhere.</p>
      ) : (
        <Listing<CheckOverride>
          name="How it is set"
          rows={rows}
          rowKey={(one) => one.id}
          columns={[
            { key: "where", head: "Where", cell: (one) => <b>{sentence(placeWords(one, clusters, orgName()))}</b> },
            {
              key: "set",
              head: "Set to",
              cell: (one) => (
                <span class="st wrap">
                  {["shadow", "off"].includes(modeOf(one) ?? "") && <Mark kind={modeOf(one) === "off" ? "paused" : "pending"} />}
                  {sentence(setWords(one))}
                </span>
              ),
            },
            {
              key: "why",
              head: "Why",
              cell: (one) => (
                <>
                  {one.reason || <Nothing>not said</Nothing>}
                  <span class="sub">
                    {one.created_by}, since <Time iso={one.updated_at} form="moment" />
                  </span>
                </>
              ),
            },
            {
              key: "do",
              head: <span class="vh">Actions</span>,
              class: "num nw",
              cell: (one) => (
                <span class="pair">
                  <Button small disabled={lack} showReason={false} label={`Change how it is set for ${placeWords(one, clusters, orgName())}…`} onClick={() => askOverride(one.id)}>
                    Change…
                  </Button>
                  <Button small disabled={lack} showReason={false} label={`Take away how it is set for ${placeWords(one, clusters, orgName())}…`} onClick={() => ask("remove", one.id)}>
                    Take away…
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      {lack && <p class="reason gap8">{lack}</p>}
    </>
  );
}

const VERB: Record<string, string> = { "check_override.create": "set it", "check_override.update": "changed it", "check_override.delete": "took the setting away" };

/** Who changed it, from the audit log: it keeps what was before and after. */
function Changes({ check, names }: { check: Check; names: Map<string, string> }) {
  const allowed = may("audit.read");
  const rows = useQuery<List<AuditRow>>(allowed ? withQuery("/audit", { action: Object.keys(VERB), limit: 200 }) : null, { everyMs: 60_000 });
  if (!allowed) {
    return <p class="t3">Who changed it stands in the audit log. Reading that needs the role {rolesWith("audit.read")}.</p>;
  }
  return (
    <Loaded query={rows} what="The changes" rows={3}>
      {(list) => {
        const mine = list.items.filter((row) => row.target_name === check.check_id && row.outcome === "done");
        if (mine.length === 0) {
          return <p class="t3">{list.next_cursor ? "Not among the last 200 changes of checks." : "Nobody has changed it."}</p>;
        }
        return (
          <ol class="rows">
            {mine.map((row) => (
              <li key={row.seq}>
                <p>
                  <b>{row.actor}</b> {VERB[row.action ?? ""] ?? row.action}{" "}
                  <span class="t3">
                    <Time iso={row.at} form="ago" />
                  </span>
                </p>
                <Diff before={told(row.before, names)} after={told(row.after, names)} label={`What changed in row ${row.seq}`} />
              </li>
            ))}
          </ol>
        );
      }}
    </Loaded>
  );
}

const TOLD = ["gpu_type", "mode", "severity", "action", "threshold", "looks", "clear_looks", "shadow_until", "reason"];

/** What a person sets; ids and versions are the log's own. */
function told(state: Record<string, unknown> | null, names: Map<string, string>): Record<string, unknown> | null {
  const cluster = typeof state?.cluster_id === "string" ? { cluster: names.get(state.cluster_id) ?? state.cluster_id } : {};
  return state && { ...cluster, ...Object.fromEntries(TOLD.filter((key) => state[key] !== null && state[key] !== undefined && state[key] !== "").map((key) => [key, state[key]])) };
}

function Dialogs({ check, clusters }: { check: Check; clusters: ClusterItem[] }) {
  const { what, id } = asked();
  const override = check.overrides.find((one) => one.id === id) ?? null;
  if (what === "set") {
    return <OverrideDialog check={check} override={null} clusters={clusters} />;
  }
  if (what === "change" && override) {
    return <OverrideDialog key={override.id} check={check} override={override} clusters={clusters} />;
  }
  return what === "remove" && override ? <RemoveOverride check={check} override={override} clusters={clusters} /> : null;
}

export function HealthCheckPage({ params }: ViewProps) {
  const id = params.check ?? "";
  const checks = useQuery<CheckList>("/checks", { everyMs: 60_000 });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const places = clusters.data.value?.items ?? [];
  const names = useComputed(() => new Map(clusters.data.value?.items.map((one) => [one.id, one.name])));
  const check = checks.data.value?.items.find((one) => one.check_id === id) ?? null;
  if (checks.data.value && !check) {
    return <MissingPage />;
  }
  const mode = check ? standing(check) : null;
  const lack = lacks("cluster.write");
  const base = check?.overrides.find((one) => rank(one) === 0) ?? null;
  return (
    <SettingsPage
      title={check?.title ?? "Health check"}
      parts={[<b>{check?.title ?? "Health check"}</b>, mode && (mode.everywhere === "live" ? "live" : <b>{mode.until !== null ? untilWords(mode.until) : (MODE_WORD[mode.everywhere] ?? "").toLowerCase()}</b>), mode && mode.elsewhere > 0 && `set otherwise in ${counted(mode.elsewhere, "place")}`]}
      tabs={checkTabs("")}
      actions={
        check && check.settable.length > 0 && (
          <>
            <Button disabled={lack} showReason={false} onClick={() => askOverride(base?.id ?? null, mode?.everywhere === "live" ? "shadow" : "live")}>
              {mode?.everywhere === "live" ? "Put it in shadow…" : "Put it live…"}
            </Button>
            <Button disabled={lack} showReason={false} onClick={() => askOverride(null)}>
              Set it differently…
            </Button>
          </>
        )
      }
    >
      {() =>
        check ? (
          <>
            <div class="cols aside">
              <div>
                <Section title="How it is set" hint="of several, the nearest to a node holds">
                  <Overrides check={check} clusters={places} />
                </Section>
                <CheckFound checkId={check.check_id} names={names.value} />
                <Section title="Changes" hint="from the audit log, newest first">
                  <Changes check={check} names={names.value} />
                </Section>
              </div>
              <div>
                <Section title="How it judges" hint="as delivered">
                  <Rule check={check} all={checks.data.value as CheckList} />
                </Section>
              </div>
            </div>
            <Dialogs check={check} clusters={places} />
          </>
        ) : (
          <div class="sec">
            <Skeleton rows={8} label="the check" />
          </div>
        )
      }
    </SettingsPage>
  );
}
