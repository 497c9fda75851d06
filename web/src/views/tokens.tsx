/* Settings > Tokens and agents: what programs and nodes sign in with. */
import { useComputed, useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import type { ServiceToken, ServiceTokenCreated } from "../identity-types";
import { refresh, useQuery, type Query } from "../store";
import { now, parse, span } from "../time";
import type { ClusterItem, List } from "../types";
import { Button, Field, SelectField } from "../ui/controls";
import { Nothing, Time } from "../ui/page";
import { Empty, Loaded } from "../ui/states";
import { Listing } from "../ui/listing";
import { AgentsTab } from "./agents";
import { JoinTokensTab } from "./join-tokens";
import { MissingPage } from "./missing";
import { usePaged } from "./paged";
import { ROLES, roleTitle } from "./roles";
import { ask, asked, askNothing } from "./asked";
import { DURATION, LIFETIMES, orgName, SecretDialog, SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

const OVERLAPS = [
  { value: "", label: "It stops at once" },
  { value: "1h", label: "1 hour more" },
  { value: "24h", label: "24 hours more" },
  { value: "7d", label: "7 days more" },
];

function CreateDialog({ clusters, done }: { clusters: ClusterItem[]; done: (made: ServiceTokenCreated) => void }) {
  const name = useSignal("");
  const role = useSignal("viewer");
  const scope = useSignal("");
  const lifetime = useSignal("90d");
  return (
    <VerbForm<ServiceTokenCreated>
      title="Make a service token"
      lead="For a program that calls the API. It acts under its own name in events and in the audit log."
      path="/tokens"
      body={() => ({ name: name.value.trim(), role: role.value, ...(scope.value ? { cluster_id: scope.value } : {}), ...(lifetime.value === "never" ? {} : { expires_in_seconds: DURATION[lifetime.value] }) })}
      verb="Make service token"
      disabled={name.value.trim() ? null : "Give it a name first."}
      fields={["name", "role", "cluster_id", "expires_in_seconds"]}
      onClose={askNothing}
      done={done}
    >
      {(error) => (
        <>
          <Field label="Name" name="name" required help="What it is for, like ci-deploy." value={name.value} onInput={(value) => (name.value = value)} error={error?.field("name")} />
          <SelectField
            label="Role"
            name="role"
            choices={ROLES.map((one) => ({ value: one.name, label: one.title }))}
            value={role.value}
            onChange={(value) => (role.value = value)}
            help={ROLES.find((one) => one.name === role.value)?.does ?? ""}
          />
          <SelectField
            label="Sees"
            name="cluster_id"
            choices={[{ value: "", label: `All of ${orgName()}` }, ...clusters.map((one) => ({ value: one.id, label: `Only the cluster ${one.name}` }))]}
            value={scope.value}
            onChange={(value) => (scope.value = value)}
          />
          <SelectField label="Works for" name="expires_in_seconds" choices={LIFETIMES} value={lifetime.value} onChange={(value) => (lifetime.value = value)} />
        </>
      )}
    </VerbForm>
  );
}

function RotateDialog({ token, done }: { token: ServiceToken; done: (made: ServiceTokenCreated) => void }) {
  const overlap = useSignal("24h");
  return (
    <VerbForm<ServiceTokenCreated>
      title={`Give ${token.name} a new secret`}
      lead="Name, role and expiry stay."
      path={`/tokens/${token.id}/rotate`}
      body={() => ({ overlap_seconds: overlap.value ? DURATION[overlap.value] : 0 })}
      verb={`Rotate ${token.name}`}
      binds={overlap.value ? null : "What still uses the present secret fails at once."}
      onClose={askNothing}
      done={done}
    >
      {() => <SelectField label="The present secret works" name="overlap_seconds" choices={OVERLAPS} value={overlap.value} onChange={(value) => (overlap.value = value)} />}
    </VerbForm>
  );
}

function Expiry({ token }: { token: ServiceToken }) {
  const at = parse(token.expires_at);
  if (at === null) {
    return <Nothing>never</Nothing>;
  }
  const left = at - now.value;
  if (left <= 0) {
    return <span class="c-warning">expired</span>;
  }
  return (
    <span class={left < 7 * 86_400_000 ? "c-warning" : undefined}>
      <Time iso={token.expires_at} form="moment" />
    </span>
  );
}

function TokenTable({ rows, clusters }: { rows: ServiceToken[]; clusters: Map<string, string> }) {
  return (
    <Listing
      name="Service tokens"
      rows={rows}
      rowKey={(token) => token.id}
      columns={[
        {
          key: "name",
          head: "Name",
          cell: (token) => {
            const until = parse(token.previous_until);
            return (
              <>
                <b>{token.name}</b>
                {until !== null && until > now.value && <span class="sub">the secret before this one works for {span(until - now.value)} more</span>}
              </>
            );
          },
        },
        { key: "role", head: "Role", class: "nw", cell: (token) => (token.platform_admin ? "Platform admin" : roleTitle(token.role)) },
        { key: "sees", head: "Sees", cell: (token) => (token.cluster_id ? <a href={`/clusters/${token.cluster_id}`}>{clusters.get(token.cluster_id) ?? "a cluster"}</a> : `all of ${orgName()}`) },
        { key: "used", head: "Last used", class: "nw", cell: (token) => <Time iso={token.last_used_at} form="ago" /> },
        { key: "expires", head: "Expires", class: "nw", cell: (token) => <Expiry token={token} /> },
        { key: "by", head: "Made by", class: "mid-only", cell: (token) => token.created_by },
        {
          key: "do",
          head: <span class="vh">Actions</span>,
          class: "nw num",
          cell: (token) => (
            <>
              <Button small label={`Rotate ${token.name}…`} onClick={() => ask("rotate", token.id)}>
                Rotate…
              </Button>{" "}
              <Button small label={`Revoke ${token.name}…`} onClick={() => ask("revoke", token.id)}>
                Revoke…
              </Button>
            </>
          ),
        },
      ]}
    />
  );
}

function ServiceTokensTab() {
  const first = "/tokens?limit=50";
  const paged = usePaged<ServiceToken>(first, { events: (type) => type.startsWith("token.") });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const names = useComputed(() => new Map(clusters.data.value?.items.map((one) => [one.id, one.name])));
  const made = useSignal<ServiceTokenCreated | null>(null);
  const { what, id } = asked();
  const token = paged.rows.find((one) => one.id === id);
  const show = (one: ServiceTokenCreated) => {
    made.value = one;
    refresh(first);
    askNothing();
  };
  return (
    <>
      <div class="filter">
        <Button kind="primary" onClick={() => ask("create")}>
          Make a service token…
        </Button>
      </div>
      <Loaded query={paged.first as Query<List<ServiceToken>>} what="The list of service tokens">
        {() =>
          paged.rows.length === 0 ? (
            <Empty title="No service token yet">
              <p>Programs call the API with a service token: a deployment, a dashboard, a script. Each has a role, may be limited to one cluster, and can be revoked by itself.</p>
            </Empty>
          ) : (
            <TokenTable rows={paged.rows} clusters={names.value} />
          )
        }
      </Loaded>
      {paged.foot("token")}
      {what === "create" && <CreateDialog clusters={clusters.data.value?.items ?? []} done={show} />}
      {what === "rotate" && token && <RotateDialog token={token} done={show} />}
      {what === "revoke" && token && (
        <VerbForm
          title={`Revoke ${token.name}`}
          lead={token.last_used_at ? "Every replica refuses it within 5 seconds." : "It has never been used."}
          path={`/tokens/${token.id}`}
          method="DELETE"
          verb={`Revoke ${token.name}`}
          binds="What uses it fails from then on. It cannot be brought back."
          onClose={askNothing}
          done={() => {
            refresh(first);
            askNothing();
          }}
        >
          {() => (
            <p>
              Role {roleTitle(token.role)}, made by {token.created_by}. Last used: <Time iso={token.last_used_at} form="ago" />.
            </p>
          )}
        </VerbForm>
      )}
      {made.value && (
        <SecretDialog
          title={`The secret of ${made.value.name}`}
          lead="Keep it where the program reads it. Muster keeps only its hash."
          secret={made.value.token}
          label="The secret"
          after={<p class="t2 s12">Programs send it as the header “Authorization: Bearer …”.</p>}
          onClose={() => (made.value = null)}
        />
      )}
    </>
  );
}

const TABS = [
  { path: "", label: "Service tokens", view: ServiceTokensTab },
  { path: "join", label: "Join tokens", view: JoinTokensTab },
  { path: "agents", label: "Keys of agents", view: AgentsTab },
];

export function TokensPage({ params }: ViewProps) {
  const tab = TABS.find((one) => one.path === (params.tab ?? ""));
  if (!tab) {
    return <MissingPage />;
  }
  const View = tab.view;
  const base = "/settings/tokens";
  return (
    <SettingsPage
      title="Tokens and agents"
      parts={[<><b>Tokens and agents</b> of {orgName()}</>, "what programs and nodes sign in with"]}
      needs={{ permission: "token.write", what: "tokens and the keys of agents" }}
      tabs={TABS.map((one) => ({ href: one.path ? `${base}/${one.path}` : base, label: one.label, current: one === tab }))}
    >
      {() => <View key={tab.path} />}
    </SettingsPage>
  );
}
