/* Account: who I am here, what I may do, and the end of my sessions. */
import { useSignal } from "@preact/signals";
import { request, signedOut, type ApiError } from "../api";
import { navigate } from "../router";
import { me, signOut } from "../session";
import type { SessionItem } from "../identity-types";
import { forgetAll, refresh, useQuery } from "../store";
import type { ClusterItem, List, Project } from "../types";
import { Button } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { FactList, Nothing, Section, Time } from "../ui/page";
import { Listing } from "../ui/listing";
import { Loaded, Note } from "../ui/states";
import { PERMISSION_WORDS, roleTitle } from "./roles";
import { VerbForm } from "./verb-form";
import { ask, asked, askNothing } from "./asked";
import { orgName, problemOf, SettingsPage } from "./settings";

function SignOutEverywhere() {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const end = async () => {
    busy.value = true;
    error.value = null;
    try {
      await request("DELETE", "/sessions");
      forgetAll();
      me.value = null;
      signedOut.value = true;
      navigate("/sign-in");
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      narrow
      title="Sign out everywhere"
      lead="All your sessions end, in every organization and every browser, this one too."
      onClose={askNothing}
      binds="Service tokens that you made go on."
      buttons={
        <>
          <Button onClick={askNothing}>Close</Button>
          <Button kind="primary" busy={busy.value} onClick={() => void end()}>
            Sign out everywhere
          </Button>
        </>
      }
    >
      <div class="pad stack">
        <p>Do this when a device is lost, or somebody else may have used your browser.</p>
        {error.value && (
          <Note tone="bad" alert title={`${error.value.title}.`}>
            <p class="t2">{error.value.detail} Your sessions may go on: try again.</p>
          </Note>
        )}
      </div>
    </Dialog>
  );
}

/** "Firefox on Linux", as far as a browser tells. */
function browserOf(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent.includes("Edg/") ? agent.replace("Chrome/", "") : agent.includes("OPR/") ? agent.replace("Chrome/", "") : agent)?.[1];
  const system = /(Windows|Macintosh|Android|iPhone|iPad|Linux)/.exec(agent)?.[1];
  const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", Macintosh: "macOS" };
  const said = [browser, system].map((one) => (one ? (names[one] ?? one) : one));
  return said[0] ? `${said[0]}${said[1] ? ` on ${said[1]}` : ""}` : agent || "not said";
}

function Sessions() {
  const sessions = useQuery<{ items: SessionItem[] }>("/sessions");
  const { what, id } = asked();
  const ended = what === "end" ? sessions.data.value?.items.find((one) => one.id === id) : null;
  return (
    <Section title="Your sessions" hint="in every organization">
      <Loaded query={sessions} what="The list of your sessions">
        {(list) => (
          <Listing
            name="Your sessions"
            rows={list.items}
            rowKey={(one) => one.id}
            columns={[
              {
                key: "what",
                head: "With",
                cell: (one) => (
                  <>
                    <b title={one.user_agent}>{browserOf(one.user_agent)}</b>
                    {one.current && <span class="t3"> (this one)</span>}
                  </>
                ),
              },
              { key: "from", head: "From", class: "nw", cell: (one) => one.address || <Nothing>not recorded</Nothing> },
              { key: "by", head: "Signed in with", cell: (one) => one.issuer?.title ?? "a link" },
              { key: "org", head: "In", class: "mid-only", cell: (one) => one.org.name },
              { key: "began", head: "Began", class: "nw t2", cell: (one) => <Time iso={one.created_at} form="moment" /> },
              { key: "seen", head: "Last used", class: "nw t2", cell: (one) => <Time iso={one.seen_at} form="ago" /> },
              {
                key: "do",
                head: <span class="vh">Actions</span>,
                class: "nw num",
                cell: (one) =>
                  one.current ? null : (
                    <Button small label={`End the session of ${browserOf(one.user_agent)} from ${one.address}…`} onClick={() => ask("end", one.id)}>
                      End…
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {ended && (
        <VerbForm
          title="End this session"
          lead={`${browserOf(ended.user_agent)} from ${ended.address || "an unknown address"}, in ${ended.org.name}.`}
          path={`/sessions/${ended.id}`}
          method="DELETE"
          verb="End the session"
          onClose={askNothing}
          done={() => {
            refresh("/sessions");
            askNothing();
          }}
        >
          {() => <p>Whoever uses it has to sign in again. Do this for a browser that you do not know, and tell whoever runs Muster here.</p>}
        </VerbForm>
      )}
    </Section>
  );
}

function Grants() {
  const who = me.value;
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const projects = useQuery<List<Project>>(who?.grants?.some((one) => one.project_id) ? "/projects?limit=200" : null);
  if (!who) {
    return null;
  }
  const parts = (who.grants ?? []).map((grant) => {
    const cluster = clusters.data.value?.items.find((one) => one.id === grant.cluster_id)?.name;
    const project = projects.data.value?.items.find((one) => one.id === grant.project_id);
    return `${roleTitle(grant.role)} in ${grant.cluster_id ? `the cluster ${cluster ?? ""}` : `the project ${project?.title ?? project?.name ?? ""}`}`.trim();
  });
  const groups = [...new Set((who.rights ?? []).filter((one) => one.via === "group").map((one) => `${roleTitle(one.role)} by ${one.group ?? "a group"}`))];
  return (
    <FactList
      facts={[
        ["Name", <b>{who.name}</b>],
        ["Organization", orgName()],
        ["Roles", who.roles.length ? who.roles.map(roleTitle).join(", ") : <Nothing>none in the whole organization</Nothing>],
        parts.length > 0 && ["In parts", parts.join("; ")],
        groups.length > 0 && ["By groups", groups.join(", ")],
        who.platform_admin && ["Platform", "administrator of all organizations"],
        ["Signed in until", <Time iso={who.expires_at} form="moment" none="it does not expire" />],
      ]}
    />
  );
}

export function AccountPage() {
  const { what } = asked();
  const who = me.value;
  const mine = new Set(who?.permissions ?? []);
  return (
    <SettingsPage
      title="Account"
      parts={[<b>{who?.name ?? "Account"}</b>, `${who?.roles.map((role) => roleTitle(role).toLowerCase()).join(" and ") || "no role"} in ${orgName()}`]}
      actions={
        who?.kind === "session" && (
          <>
            <Button onClick={() => void signOut()}>Sign out</Button>
            <Button onClick={() => ask("everywhere")}>Sign out everywhere…</Button>
          </>
        )
      }
    >
      {() => (
        <>
          <div class="cols half">
            <Section title="Who you are here">
              <Grants />
            </Section>
            <Section title="What you may do" end={<a href="/settings/members/roles">All roles</a>}>
              <ul class="plainlist">
                {PERMISSION_WORDS.filter(([permission]) => mine.has(permission)).map(([permission, words]) => (
                  <li key={permission}>{words}</li>
                ))}
              </ul>
              <p class="s12 t3 gap8">
                {PERMISSION_WORDS.some(([permission]) => !mine.has(permission))
                  ? `Not: ${PERMISSION_WORDS.filter(([permission]) => !mine.has(permission)).map(([, words]) => words.charAt(0).toLowerCase() + words.slice(1)).join("; ")}.`
                  : "That is everything there is in this organization."}
              </p>
            </Section>
            {what === "everywhere" && <SignOutEverywhere />}
          </div>
          {who?.kind === "session" && <Sessions />}
        </>
      )}
    </SettingsPage>
  );
}
