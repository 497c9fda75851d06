/* Settings > Members: who has which role where, and what each role may do. */
import { useComputed, useSignal, type Signal } from "@preact/signals";
import { newIdempotencyKey, request, type ApiError } from "../api";
import type { ViewProps } from "../app";
import { counted } from "../format";
import type { Issuer, Member, Person, RoleData } from "../identity-types";
import { query, setQuery } from "../router";
import { me } from "../session";
import { refresh, useQuery, type Query } from "../store";
import type { ClusterItem, List, Project } from "../types";
import { Button, Field, Select, SelectField, type Choice } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Nothing, Section, Time } from "../ui/page";
import { Loaded, Note } from "../ui/states";
import { Listing } from "../ui/listing";
import { TableFrame } from "../ui/table";
import { MissingPage } from "./missing";
import { usePaged } from "./paged";
import { PERMISSION_WORDS, ROLES, roleTitle } from "./roles";
import { ask, asked, askNothing } from "./asked";
import { orgName, problemOf, SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

interface Places {
  clusters: ClusterItem[];
  projects: Project[];
}

function usePlaces(): Places {
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const projects = useQuery<List<Project>>("/projects?limit=200");
  return { clusters: clusters.data.value?.items ?? [], projects: projects.data.value?.items ?? [] };
}

function whereOf(member: Member, places: Places): string {
  if (member.cluster_id) {
    return `only the cluster ${places.clusters.find((one) => one.id === member.cluster_id)?.name ?? member.cluster_id}`;
  }
  if (member.project_id) {
    const project = places.projects.find((one) => one.id === member.project_id);
    return `only the project ${project?.title || project?.name || member.project_id}`;
  }
  return `all of ${orgName()}`;
}

function placeChoices(places: Places): Choice[] {
  return [
    { value: "", label: `All of ${orgName()}` },
    ...places.projects.map((one) => ({ value: `project:${one.id}`, label: `Only the project ${one.title || one.name}` })),
    ...places.clusters.map((one) => ({ value: `cluster:${one.id}`, label: `Only the cluster ${one.name}` })),
  ];
}

function placeBody(place: string): Record<string, string> {
  const [kind, id] = place.split(":");
  return kind && id ? { [`${kind}_id`]: id } : {};
}

/** A group of an issuer: who is in it is said by each token anew. */
function AddGroupDialog({ places, issuers }: { places: Places; issuers: Issuer[] }) {
  const issuer = useSignal(issuers[0]?.id ?? "");
  const group = useSignal("");
  const role = useSignal("viewer");
  const place = useSignal("");
  const chosen = issuers.find((one) => one.id === issuer.value);
  const given = group.value.trim();
  const prefix = chosen?.groups_prefix ?? "";
  return (
    <VerbForm<Member>
      title="Give a group a role"
      lead="Everybody whom the provider says to be in the group has the role, for as long as it says so."
      path="/members"
      body={() => ({ issuer_id: issuer.value, group: given, role: role.value, ...placeBody(place.value) })}
      verb={given ? `Give ${given} the role` : "Give the role"}
      disabled={issuers.length === 0 ? "Set up an identity provider first." : given ? null : "Say which group first."}
      binds={given && prefix && !given.startsWith(prefix) ? <span class="c-warning">Groups of {chosen?.title || chosen?.name} begin with {prefix}</span> : null}
      fields={["group", "issuer_id", "role", "project_id", "cluster_id"]}
      onClose={askNothing}
      done={() => {
        refresh("/members");
        askNothing();
      }}
    >
      {(error) => (
        <>
          <SelectField label="Provider" name="issuer_id" choices={issuers.map((one) => ({ value: one.id, label: one.title || one.name }))} value={issuer.value} onChange={(value) => (issuer.value = value)} />
          <Field label="Group" name="group" required placeholder={`${prefix}gpu-operators`} help={`As it comes out of a token${prefix ? `, with the prefix ${prefix}` : ""}. The token tester of the provider shows it.`} value={group.value} onInput={(value) => (group.value = value)} error={error?.field("group") ?? error?.field("issuer_id")} />
          <RolePlace role={role} place={place} places={places} error={error} />
        </>
      )}
    </VerbForm>
  );
}

/** What the server's table grants the role, a sentence each. */
function RoleMay({ role }: { role: string }) {
  const roles = useQuery<List<RoleData>>("/roles");
  const data = roles.data.value?.items.find((one) => one.name === role);
  if (!data) {
    return null;
  }
  return (
    <div class="s12 t2">
      <p>
        <b>{roleTitle(role)}</b>: {data.summary} They may:
      </p>
      <ul class="plainlist">
        {data.permissions
          .filter((one) => one.name !== "session")
          .map((one) => (
            <li key={one.name}>{one.summary}</li>
          ))}
      </ul>
    </div>
  );
}

function RolePlace({ role, place, places, error }: { role: Signal<string>; place: Signal<string>; places: Places; error: ApiError | null }) {
  return (
    <>
      <SelectField
        label="Role"
        name="role"
        choices={ROLES.map((one) => ({ value: one.name, label: one.title }))}
        value={role.value}
        onChange={(value) => (role.value = value)}
        help={ROLES.find((one) => one.name === role.value)?.does ?? ""}
      />
      <SelectField label="Where" name="place" choices={placeChoices(places)} value={place.value} onChange={(value) => (place.value = value)} help="Who has roles in parts only does not see the rest." />
      <RoleMay role={role.value} />
      {error?.field("cluster_id") && <p class="c-unhealthy s12">{error.field("cluster_id")}</p>}
    </>
  );
}

const NEW_PERSON = "new";

function personLabel(person: Person, all: readonly Person[]): string {
  const twin = all.some((one) => one.id !== person.id && one.name === person.name);
  return `${person.name}${person.email ? ` (${person.email})` : ""}${twin && !person.email ? ` (${person.id.slice(-6)})` : ""}${person.roles === 0 ? ", no role of their own" : ""}`;
}

function AddDialog({ places, known }: { places: Places; known: Set<string> }) {
  const people = useQuery<List<Person>>("/people?limit=200");
  const list = [...(people.data.value?.items ?? [])].sort((a, b) => a.name.localeCompare(b.name));
  const who = useSignal(NEW_PERSON);
  const name = useSignal("");
  const role = useSignal("viewer");
  const place = useSignal("");
  const chosen = list.find((one) => one.id === who.value);
  const given = chosen ? chosen.name : name.value.trim();
  return (
    <VerbForm<Member>
      title="Give a person a role"
      lead="Roles add up: a person may have several, in different places."
      path="/members"
      body={() => ({ ...(chosen ? { person_id: chosen.id } : { name: given }), role: role.value, ...placeBody(place.value) })}
      verb={given ? `Give ${given} the role` : "Give the role"}
      disabled={given ? null : "Say who first."}
      binds={given && !chosen && !known.has(given) ? `${given} is added to Muster with this.` : null}
      fields={["name", "person_id", "role", "project_id", "cluster_id"]}
      onClose={askNothing}
      done={() => {
        refresh("/members");
        askNothing();
      }}
    >
      {(error) => (
        <>
          <SelectField
            label="Who"
            name="person_id"
            choices={[{ value: NEW_PERSON, label: "By name" }, ...list.map((one) => ({ value: one.id, label: personLabel(one, list) }))]}
            value={who.value}
            onChange={(value) => (who.value = value)}
            help="Who came by an identity provider stands here, also without a role."
          />
          {!chosen && <Field label="Name" name="name" required help="The name that the person signs in with." value={name.value} onInput={(value) => (name.value = value)} error={error?.field("name") ?? error?.field("person_id")} />}
          <RolePlace role={role} place={place} places={places} error={error} />
        </>
      )}
    </VerbForm>
  );
}

/** Another role, or another place: the new one is given before the old one is taken, so that nobody is without in between. */
function ChangeDialog({ member, places, stays }: { member: Member; places: Places; stays: string | null }) {
  const before = member.cluster_id ? `cluster:${member.cluster_id}` : member.project_id ? `project:${member.project_id}` : "";
  const role = useSignal(member.role);
  const place = useSignal(before);
  const failed = useSignal<ApiError | null>(null);
  const same = role.value === member.role && place.value === before;
  const subject = member.kind === "group" ? { issuer_id: member.issuer_id, group: member.group } : { person_id: member.person_id };
  return (
    <VerbForm
      title={`Change the role of ${member.name}`}
      lead={`Now ${roleTitle(member.role).toLowerCase()} for ${whereOf(member, places)}.`}
      path="/members"
      send={async () => {
        failed.value = null;
        try {
          await request("POST", "/members", { body: { ...subject, role: role.value, ...placeBody(place.value) }, idempotencyKey: newIdempotencyKey() });
          await request("DELETE", `/members/${member.id}`);
          return true;
        } catch (cause) {
          failed.value = problemOf(cause);
          refresh("/members");
          return false;
        }
      }}
      verb={`Change the role of ${member.name}`}
      disabled={stays ?? (same ? "Choose another role or another place first." : null)}
      binds={member.person_id !== null && member.person_id === me.value?.id ? <b>This is your own role.</b> : null}
      onClose={askNothing}
      done={() => {
        refresh("/members");
        askNothing();
      }}
    >
      {() => (
        <>
          <RolePlace role={role} place={place} places={places} error={failed.value} />
          {failed.value && (
            <Note tone="bad" alert title="The role was not changed as a whole.">
              <p class="t2">{failed.value.detail || failed.value.title}</p>
            </Note>
          )}
        </>
      )}
    </VerbForm>
  );
}

/** Why a role must stay, or null: without an administrator nobody could give roles. */
function keeps(member: Member, rows: Member[], complete: boolean): string | null {
  const whole = (one: Member) => one.kind !== "group" && one.role === "admin" && !one.project_id && !one.cluster_id;
  return complete && whole(member) && rows.filter(whole).length === 1 ? "The last administrator stays. Add another one first." : null;
}

function RemoveDialog({ member, rows, places }: { member: Member; rows: Member[]; places: Places }) {
  const group = member.kind === "group";
  const others = group ? [] : rows.filter((one) => one.person_id === member.person_id && one.id !== member.id);
  const mine = member.person_id !== null && member.person_id === me.value?.id;
  return (
    <VerbForm
      title={`Take the role ${roleTitle(member.role).toLowerCase()} from ${member.name}`}
      lead={`It holds for ${whereOf(member, places)} since ${member.created_by || "the first start"} gave it.`}
      path={`/members/${member.id}`}
      method="DELETE"
      verb={`Take the role from ${member.name}`}
      binds={mine ? <b>This is your own role.</b> : null}
      onClose={askNothing}
      done={() => {
        refresh("/members");
        askNothing();
      }}
    >
      {() => (
        <p>
          {group
            ? `Who is in ${member.name} and has no other role is signed out of ${orgName()}.`
            : others.length === 0
            ? `${member.name} has no other role here, is signed out of ${orgName()}, and does not see it any more.`
            : `${member.name} keeps ${counted(others.length, "other role")}: ${others.map((one) => `${roleTitle(one.role).toLowerCase()} for ${whereOf(one, places)}`).join("; ")}.`}
        </p>
      )}
    </VerbForm>
  );
}

function MemberTable({ rows, all, complete, places, issuers }: { rows: Member[]; all: Member[]; complete: boolean; places: Places; issuers: Map<string, string> }) {
  return (
    <Listing
      name="Members"
      rows={rows}
      rowKey={(member) => member.id}
      columns={[
        {
          key: "name",
          head: "Who",
          cell: (member) => (
            <>
              <b>{member.name}</b>
              {member.person_id !== null && member.person_id === me.value?.id && <span class="t3"> (you)</span>}
              {member.kind === "group" && <span class="sub">group of {issuers.get(member.issuer_id ?? "") ?? "a provider"}</span>}
            </>
          ),
        },
        { key: "role", head: "Role", class: "nw", cell: (member) => roleTitle(member.role) },
        { key: "where", head: "Where", cell: (member) => (member.cluster_id ? <a href={`/clusters/${member.cluster_id}`}>{whereOf(member, places)}</a> : whereOf(member, places)) },
        { key: "by", head: "Given by", class: "mid-only", cell: (member) => member.created_by || <Nothing>the first start</Nothing> },
        { key: "at", head: "Since", class: "nw t2 mid-only", cell: (member) => <Time iso={member.created_at} form="moment" /> },
        {
          key: "do",
          head: <span class="vh">Actions</span>,
          class: "num",
          cell: (member) => {
            const stays = keeps(member, all, complete);
            return (
              <span class="row8">
              <Button small disabled={stays} label={`Change the role ${roleTitle(member.role).toLowerCase()} of ${member.name}…`} onClick={() => ask("change", member.id)}>
                Change…
              </Button>
              <Button small disabled={stays} label={`Take away the role ${roleTitle(member.role).toLowerCase()} from ${member.name}…`} onClick={() => ask("remove", member.id)}>
                Take away…
              </Button>
              </span>
            );
          },
        },
      ]}
    />
  );
}

const ROLE_CHOICES: Choice[] = [{ value: "", label: "Any" }, ...ROLES.map((role) => ({ value: role.name, label: role.title }))];

function PeopleTab() {
  const paged = usePaged<Member>("/members?limit=200", { events: (type) => type.startsWith("member.") });
  const places = usePlaces();
  const issuers = useQuery<List<Issuer>>("/issuers?limit=200");
  const names = useComputed(() => new Map(issuers.data.value?.items.map((one) => [one.id, one.title || one.name])));
  const { what, id } = asked();
  const role = query.value.get("role") ?? "";
  const rows = paged.rows.filter((one) => !role || one.role === role).sort((a, b) => a.name.localeCompare(b.name));
  const known = useComputed(() => new Set(paged.rows.filter((one) => one.kind !== "group").map((one) => one.name)));
  const changed = what === "change" ? paged.rows.find((one) => one.id === id) : null;
  const removed = what === "remove" ? paged.rows.find((one) => one.id === id) : null;
  return (
    <>
      <div class="filter">
        <Button kind="primary" onClick={() => ask("add")}>
          Give a person a role…
        </Button>
        <Button onClick={() => ask("group")}>Give a group a role…</Button>
        <Select label="Role" choices={ROLE_CHOICES} value={role} onChange={(value) => setQuery({ role: value })} />
      </div>
      <Loaded query={paged.first as Query<List<Member>>} what="The list of members">
        {() =>
          rows.length > 0 ? (
            <MemberTable rows={rows} all={paged.rows} complete={!paged.more} places={places} issuers={names.value} />
          ) : (
            <div class="sec">
              <p>Nobody has the role {roleTitle(role).toLowerCase()}.</p>
              <p class="row8">
                <Button small onClick={() => setQuery({ role: null })}>
                  Show all roles
                </Button>
              </p>
            </div>
          )
        }
      </Loaded>
      {paged.foot("role")}
      {what === "add" && <AddDialog places={places} known={known.value} />}
      {what === "group" && issuers.data.value && <AddGroupDialog places={places} issuers={issuers.data.value.items} />}
      {changed && <ChangeDialog member={changed} places={places} stays={keeps(changed, paged.rows, !paged.more)} />}
      {removed && <RemoveDialog member={removed} rows={paged.rows} places={places} />}
    </>
  );
}

/** Roles against what they may do; yes and no are words to those who hear it. */
function RolesTab() {
  const mine = new Set(me.value?.roles ?? []);
  return (
    <Section title="What each role may do" hint="roles add up; the server decides, this table explains">
      <TableFrame name="What each role may do">
        <table class="tbl roles">
          <thead>
            <tr>
              <th scope="col">It may</th>
              {ROLES.map((role) => (
                <th scope="col" key={role.name}>
                  {role.title}
                  {mine.has(role.name) && <span class="t3"> (you)</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {PERMISSION_WORDS.map(([permission, words]) => (
              <tr key={permission}>
                <th scope="row">
                  {words} <span class="sub mono">{permission}</span>
                </th>
                {ROLES.map((role) => (
                  <td key={role.name}>
                    {role.permissions.includes(permission) ? <Icon name="tick" tone="good" /> : <Icon name="minus" />}
                    <span class="vh">{role.permissions.includes(permission) ? "yes" : "no"}</span>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </TableFrame>
      <div class="gap16">
        <Note tone="neutral" title="Organizations themselves are made by the platform administrator.">
          <p class="t2">{me.value?.platform_admin ? <>You are one: <a href="/settings/platform">all organizations</a>.</> : "You are not one."} No role of an organization reaches another organization.</p>
        </Note>
      </div>
    </Section>
  );
}

const TABS = [
  { path: "", label: "Members", view: PeopleTab, needs: { permission: "member.write", what: "who has which role" } },
  { path: "roles", label: "Roles", view: RolesTab, needs: null },
];

export function MembersPage({ params }: ViewProps) {
  const tab = TABS.find((one) => one.path === (params.tab ?? ""));
  if (!tab) {
    return <MissingPage />;
  }
  const View = tab.view;
  const base = "/settings/members";
  return (
    <SettingsPage
      title="Members and grants"
      parts={[<><b>Members and grants</b> of {orgName()}</>, tab.path ? "what each role may do" : "who has which role where"]}
      {...(tab.needs ? { needs: tab.needs } : {})}
      tabs={TABS.map((one) => ({ href: one.path ? `${base}/${one.path}` : base, label: one.label, current: one === tab }))}
    >
      {() => <View key={tab.path} />}
    </SettingsPage>
  );
}
