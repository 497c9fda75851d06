/* Settings > Policies and stops: which policy counts where, and what holds repairs back. */
import { useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { count, counted, sentence as capital } from "../format";
import { navigate } from "../router";
import { me } from "../session";
import { useQuery } from "../store";
import type { Policy } from "../repair-types";
import type { ClusterItem, List } from "../types";
import { Button, SelectField } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { Nothing, Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { ask, asked, askNothing, lacks } from "./asked";
import { askGuard, breakers, placeOf, stops, useGuard, type Held, type Place } from "./guard-words";
import { automationWords } from "./repair-limits";
import { orgName, SettingsPage } from "./settings";

interface PolicyRow {
  key: string;
  name: string;
  sub: string;
  policy: Policy | null;
  href: string;
  /** what counts where no policy is written */
  instead: string;
}

function nameOf(policy: Policy): string {
  return policy.node_name ?? policy.cluster_name ?? `all of ${orgName()}`;
}

function rowsOf(policies: Policy[], clusters: ClusterItem[]): PolicyRow[] {
  const whole = policies.find((one) => !one.cluster_id && !one.node_id) ?? null;
  const of = (policy: Policy | null, make: string) => (policy ? `/settings/policies/${policy.id}` : make);
  return [
    { key: "org", name: `All of ${orgName()}`, sub: "where no other is written", policy: whole, href: of(whole, "/settings/policies/new"), instead: "default: people decide on every repair" },
    ...clusters.map((cluster) => {
      const own = policies.find((one) => one.cluster_id === cluster.id && !one.node_id) ?? null;
      return { key: cluster.id, name: cluster.name, sub: "cluster", policy: own, href: of(own, `/settings/policies/new?cluster=${cluster.id}`), instead: whole ? "the organization's policy" : "default: people decide on every repair" };
    }),
    ...policies.filter((one) => one.node_id).map((policy) => ({ key: policy.id, name: nameOf(policy), sub: "node", policy, href: `/settings/policies/${policy.id}`, instead: "" })),
  ];
}

function PoliciesTable({ rows }: { rows: PolicyRow[] }) {
  return (
    <Table
      name="Policies"
      rows={rows}
      rowKey={(row) => row.key}
      columns={[
        { key: "where", head: "Where", class: "two nw", cell: (row) => <><a class="name" href={row.href}>{row.name}</a><span class="sub">{row.sub}</span></> },
        { key: "does", head: "What counts", class: "two why", cell: (row) => (row.policy ? automationWords(row.policy.settings) : <span class="t3">{row.instead}</span>) },
        { key: "hours", head: "Hours", class: "two t2 wide-only", cell: (row) => (row.policy?.settings.windows.length ? row.policy.settings.windows.join("; ") : <Nothing>always</Nothing>) },
        { key: "version", head: "Version", class: "two nw", cell: (row) => (row.policy ? <>{row.policy.version}<span class="sub">{row.policy.updated_by}, <Time iso={row.policy.updated_at} form="ago" /></span></> : <Nothing>none</Nothing>) },
        { key: "open", head: <span class="vh">Open</span>, number: true, class: "two nw", cell: (row) => <a href={row.href}>{row.policy ? "Edit" : "Write one"}<span class="vh"> for {row.name}</span></a> },
      ]}
    />
  );
}

function sentence(policies: Policy[]) {
  const acts = policies.filter((one) => !one.settings.dry_run && (one.settings.mode === "automatic" || one.settings.automatic.length > 0)).length;
  const trial = policies.filter((one) => one.settings.dry_run).length;
  return [
    acts === 0 ? <b>People decide on every repair</b> : <><b>{counted(acts, "policy", "policies")}</b> {acts === 1 ? "lets" : "let"} repairs start by themselves</>,
    trial > 0 && <><b>{count(trial)}</b> on trial</>,
    policies.length === 0 ? "no policy is written" : `${counted(policies.length, "policy", "policies")} written`,
  ];
}

/* ------------------------------------------------------------------ stops and breakers */

interface HoldRow extends Place {
  key: string;
  sub: string;
  stop: Held | undefined;
  breaker: Held | undefined;
  hasBreaker: boolean;
}

function holdRows(clusters: ClusterItem[], stopped: Held[], open: Held[]): HoldRow[] {
  const row = (place: Place, sub: string, hasBreaker: boolean): HoldRow => {
    const same = (one: Held) => one.reach === place.reach && (place.reach === "platform" || place.reach === "org" || one.id === place.id);
    return { ...place, key: `${place.reach} ${place.id}`, sub, stop: stopped.find(same), breaker: open.find(same), hasBreaker };
  };
  return [
    row(placeOf("platform", null, null), "every organization", true),
    row(placeOf("org", null, null), "organization", true),
    ...clusters.map((cluster) => row(placeOf("cluster", cluster.id, cluster.name), "cluster", true)),
    ...stopped.filter((one) => one.reach === "node").map((one) => row(one, "node", false)),
  ];
}

function StopCell({ row }: { row: HoldRow }) {
  return row.stop ? (
    <>
      <b>Stopped</b> <Time iso={row.stop.at} form="ago" /> by {row.stop.by}
      {row.stop.why && <span class="sub">“{row.stop.why}”</span>}
    </>
  ) : (
    <span class="t3">not stopped</span>
  );
}

function BreakerCell({ row }: { row: HoldRow }) {
  if (row.breaker) {
    return (
      <span class="st wrap">
        <Icon name="pulse" tone="bad" />
        <span>
          <b>Open</b> since <Time iso={row.breaker.at} form="ago" />
          <span class="sub">{row.breaker.why}</span>
        </span>
      </span>
    );
  }
  return row.hasBreaker ? <span class="t3">closed</span> : <Nothing />;
}

function HoldButtons({ row }: { row: HoldRow }) {
  return (
    <span class="row8 end8">
      {row.breaker && (
        <Button small label={`Reset breaker… of ${row.name}`} onClick={() => askGuard("reset", row)}>
          Reset breaker…
        </Button>
      )}
      {row.stop ? (
        <Button small label={`Allow repairs… of ${row.name}`} onClick={() => askGuard("allow", row)}>
          Allow repairs…
        </Button>
      ) : (
        <Button small label={`Stop repairs… of ${row.name}`} onClick={() => askGuard("stop", row)}>
          Stop repairs…
        </Button>
      )}
    </span>
  );
}

function Holds() {
  const guard = useGuard();
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200").data.value?.items ?? [];
  return (
    <Section title="What holds repairs back" hint="a stop is set by a person and ends by a person; a breaker opens by rule and is closed by a person">
      <Loaded query={guard} what="Stops and breakers" rows={5}>
        {(one) => (
          <Table
            name="Stops and breakers"
            rows={holdRows(clusters, stops(one), breakers(one))}
            rowKey={(row) => row.key}
            rowClass={(row) => (row.stop || row.breaker ? "badrow" : undefined)}
            columns={[
              { key: "where", head: "Where", class: "two", cell: (row) => <>{row.reach === "cluster" || row.reach === "node" ? row.name : capital(row.name)}<span class="sub">{row.sub}</span></> },
              { key: "stop", head: "Repairs", class: "two", cell: (row) => <StopCell row={row} /> },
              { key: "breaker", head: "Breaker", class: "two", cell: (row) => <BreakerCell row={row} /> },
              { key: "do", head: <span class="vh">Change</span>, number: true, class: "two", cell: (row) => <HoldButtons row={row} /> },
            ]}
          />
        )}
      </Loaded>
      <p class="s12 t3 gap12">A node is stopped on its own page. Nothing that waited is replayed after a stop or a reset.</p>
    </Section>
  );
}

function NewDialog({ clusters, policies }: { clusters: ClusterItem[]; policies: Policy[] }) {
  const place = useSignal("");
  const whole = policies.some((one) => !one.cluster_id && !one.node_id);
  const free = clusters.filter((cluster) => !policies.some((one) => one.cluster_id === cluster.id && !one.node_id));
  const choices = [...(whole ? [] : [{ value: "", label: `All of ${orgName()}` }]), ...free.map((one) => ({ value: one.id, label: one.name }))];
  const value = choices.some((one) => one.value === place.value) ? place.value : (choices[0]?.value ?? "");
  return (
    <Dialog
      narrow
      title="Write a policy"
      lead="The most specific policy counts as a whole: node, then cluster, then organization."
      onClose={askNothing}
      binds="Nothing is saved before its replay was seen."
      buttons={
        <>
          <Button onClick={askNothing}>Close</Button>
          <Button kind="primary" disabled={choices.length === 0 ? "Each place has one; edit it in the list." : null} showReason={false} onClick={() => navigate(value ? `/settings/policies/new?cluster=${value}` : "/settings/policies/new")}>
            Write it
          </Button>
        </>
      }
    >
      <div class="pad stack">
        {choices.length > 0 ? <SelectField label="For" name="place" choices={choices} value={value} onChange={(next) => (place.value = next)} help="A policy for one node is written from the node's page." /> : <p class="t2">Each cluster and the organization have a policy. Edit it in the list.</p>}
      </div>
    </Dialog>
  );
}

function Page({ tab }: { tab: "" | "stops" }) {
  const policies = useQuery<List<Policy>>("/policies?limit=200", { events: (type) => type.startsWith("policy.") });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200").data.value?.items ?? [];
  const items = policies.data.value?.items ?? [];
  const guard = useGuard().data.value;
  const held = stops(guard).length + breakers(guard).length;
  return (
    <SettingsPage
      title="Policies and stops"
      parts={tab === "stops" ? [held === 0 ? <b>Nothing holds repairs back</b> : <><b>{counted(stops(guard).length, "stop")}</b>, <b>{counted(breakers(guard).length, "open breaker")}</b></>, `in ${orgName()}`] : policies.data.value ? sentence(items) : [<b>Policies</b>, `of ${orgName()}`]}
      announce=""
      actions={
        tab === "" ? (
          <Button kind="primary" disabled={lacks("cluster.write")} showReason={false} onClick={() => ask("new")}>
            Write a policy…
          </Button>
        ) : null
      }
      tabs={[
        { href: "/settings/policies", label: "Policies", current: tab === "" },
        { href: "/settings/policies/stops", label: "Stops and breakers", count: held ? count(held) : undefined, current: tab === "stops" },
      ]}
      needs={{ permission: "cluster.read", what: "policies" }}
    >
      {() =>
        tab === "stops" ? (
          <Holds />
        ) : (
          <>
            <Section title="Policies" hint="the most specific one counts as a whole; what it leaves out has its default">
              <Loaded query={policies} what="The policies" rows={4}>
                {(list) => <PoliciesTable rows={rowsOf(list.items, clusters)} />}
              </Loaded>
            </Section>
            {asked().what === "new" && me.value && <NewDialog clusters={clusters} policies={items} />}
          </>
        )
      }
    </SettingsPage>
  );
}

export function PoliciesPage(_: ViewProps) {
  return <Page tab="" />;
}

export function StopsPage(_: ViewProps) {
  return <Page tab="stops" />;
}
