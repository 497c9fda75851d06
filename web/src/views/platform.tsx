/* Settings > Platform: all organizations, for the platform's administrators; suspending one, and letting it work again. */
import { useSignal } from "@preact/signals";
import { count } from "../format";
import type { PlatformOrg } from "../identity-types";
import { loadMe, me } from "../session";
import { refresh, type Query } from "../store";
import type { List } from "../types";
import { Button, Field } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Nothing, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { ask, asked, askNothing } from "./asked";
import { MissingPage } from "./missing";
import { usePaged } from "./paged";
import { SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

function titleOf(org: PlatformOrg): string {
  return org.title || org.name;
}

function SuspendDialog({ org, resume }: { org: PlatformOrg; resume: boolean }) {
  const reason = useSignal("");
  const title = titleOf(org);
  return (
    <VerbForm<PlatformOrg>
      title={resume ? `Let ${title} work again` : `Suspend ${title}`}
      lead={
        resume
          ? "Its people and tokens are let in again. Repairs that were proposed meanwhile wait for a person."
          : "From then on its people and tokens are refused, no node joins and no repair begins. Its nodes go on reporting, so nothing is lost."
      }
      path={`/platform/orgs/${org.id}/${resume ? "resume" : "suspend"}`}
      body={() => ({ reason: reason.value.trim() })}
      verb={resume ? `Resume ${title}` : `Suspend ${title}`}
      disabled={reason.value.trim() ? null : "Say why first."}
      binds={!resume && org.id === me.value?.org.id ? <b>This is the organization that you work in.</b> : null}
      fields={["reason"]}
      onClose={askNothing}
      done={() => {
        refresh("/platform/orgs");
        askNothing();
        void loadMe();
      }}
    >
      {(error) => (
        <Field
          label="Reason"
          name="reason"
          required
          help={resume ? "It goes into the organization's audit log." : "People of the organization are shown it, and it goes into their audit log."}
          value={reason.value}
          onInput={(value) => (reason.value = value)}
          error={error?.field("reason")}
        />
      )}
    </VerbForm>
  );
}

function OrgTable({ rows }: { rows: PlatformOrg[] }) {
  return (
    <Listing
      name="Organizations"
      rows={rows}
      rowKey={(org) => org.id}
      columns={[
        {
          key: "name",
          head: "Organization",
          cell: (org) => (
            <>
              <b>{titleOf(org)}</b> {org.demo && <span class="tag">demo</span>}
              {org.title && <span class="sub mono">{org.name}</span>}
            </>
          ),
        },
        { key: "members", head: "People", class: "num", cell: (org) => count(org.members) },
        { key: "clusters", head: "Clusters", class: "num", cell: (org) => count(org.clusters) },
        { key: "nodes", head: "Nodes", class: "num", cell: (org) => count(org.nodes) },
        { key: "at", head: "Since", class: "nw t2 mid-only", cell: (org) => <Time iso={org.created_at} form="moment" /> },
        {
          key: "state",
          head: "Suspended",
          cell: (org) =>
            org.suspended_at ? (
              <>
                <span class="c-warning">
                  since <Time iso={org.suspended_at} form="moment" />
                </span>
                <span class="sub">
                  {org.suspend_reason} ({org.suspended_by})
                </span>
              </>
            ) : (
              <Nothing>no</Nothing>
            ),
        },
        {
          key: "do",
          head: <span class="vh">Actions</span>,
          class: "num",
          cell: (org) =>
            org.suspended_at ? (
              <Button small label={`Let ${titleOf(org)} work again…`} onClick={() => ask("resume", org.id)}>
                Resume…
              </Button>
            ) : (
              <Button small label={`Suspend ${titleOf(org)}…`} onClick={() => ask("suspend", org.id)}>
                Suspend…
              </Button>
            ),
        },
      ]}
    />
  );
}

function Orgs() {
  const paged = usePaged<PlatformOrg>("/platform/orgs?limit=200", { events: (type) => type.startsWith("org.") });
  const { what, id } = asked();
  const chosen = paged.rows.find((org) => org.id === id);
  return (
    <>
      <Loaded query={paged.first as Query<List<PlatformOrg>>} what="The list of organizations">
        {() => <OrgTable rows={paged.rows} />}
      </Loaded>
      {paged.foot("organization")}
      {chosen && what === "suspend" && !chosen.suspended_at && <SuspendDialog org={chosen} resume={false} />}
      {chosen && what === "resume" && chosen.suspended_at && <SuspendDialog org={chosen} resume />}
    </>
  );
}

/** Whoever does not administer the platform finds nothing here. */
export function PlatformPage() {
  if (!me.value?.platform_admin) {
    return <MissingPage />;
  }
  return (
    <SettingsPage title="Platform" parts={[<b>Platform</b>, "all organizations of this installation"]}>
      {() => <Orgs />}
    </SettingsPage>
  );
}
