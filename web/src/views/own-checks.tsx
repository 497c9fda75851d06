/* Settings > Health checks > Own checks: a program on the nodes, or a threshold of a reading; its versions and what each changed. */
import type { ViewProps } from "../app";
import type { OwnCheck, OwnCheckVersion } from "../detection-types";
import { counted, sentence } from "../format";
import { useQuery, type Query } from "../store";
import type { ClusterItem, List } from "../types";
import { Button } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Mark } from "../ui/marks";
import { Nothing, Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { ask, asked, askNothing, lacks } from "./asked";
import { CheckFound } from "./check-found";
import { actionWords, modeOf, MODE_WORD, placeWords, trialEnd } from "./check-rules";
import { Diff } from "./diff";
import { checkTabs } from "./health-check-tabs";
import { OwnCheckForm, ownDone, ruleWords } from "./own-check-form";
import { usePaged } from "./paged";
import { orgName, SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

function ModeOf({ check }: { check: OwnCheck }) {
  const mode = modeOf(check) ?? "live";
  return (
    <>
      <span class="st">
        {mode !== "live" && <Mark kind={mode === "off" ? "paused" : "pending"} />}
        {mode === "live" ? "Live" : <b>{MODE_WORD[mode]}</b>}
      </span>
      {trialEnd(check.shadow_until) !== null && (
        <span class="sub">
          until <Time iso={check.shadow_until} form="moment" />
        </span>
      )}
    </>
  );
}

function RemoveDialog({ check }: { check: OwnCheck }) {
  return (
    <VerbForm title={`Delete ${check.name}`} lead={sentence(ruleWords(check))} path={`/custom-checks/${check.id}`} method="DELETE" verb="Delete the check" disabled={lacks("script.write")} binds="It cannot be taken back." onClose={askNothing} done={ownDone}>
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
                    { key: "where", head: "Where", class: "t2", cell: (one) => placeWords(one, places, orgName()) },
                    { key: "severity", head: "Severity", class: "nw", cell: (one) => one.severity },
                    { key: "action", head: "Asks for", class: "nw", cell: (one) => (one.action === "none" ? <Nothing>nothing</Nothing> : actionWords(one.action)) },
                    { key: "mode", head: "Mode", class: "nw", cell: (one) => <ModeOf check={one} /> },
                    {
                      key: "do",
                      head: <span class="vh">Actions</span>,
                      class: "num nw",
                      cell: (one) => (
                        <span class="pair">
                          <Button small label={`Version ${one.version} of ${one.name}, those before, and what it found`} onClick={() => ask("versions", one.id)}>
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
          {what === "versions" && chosen && (
            <>
              <CheckFound key={chosen.check_id} checkId={chosen.check_id} title={`What ${chosen.name} found`} names={new Map(places.map((one) => [one.id, one.name]))} />
              <Versions key={`${chosen.id} ${chosen.version}`} check={chosen} />
            </>
          )}
          {what === "make" && <OwnCheckForm check={null} clusters={places} />}
          {what === "edit" && chosen && <OwnCheckForm key={chosen.id} check={chosen} clusters={places} />}
          {what === "delete" && chosen && <RemoveDialog check={chosen} />}
        </>
      )}
    </SettingsPage>
  );
}
