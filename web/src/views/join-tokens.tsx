/* Tokens that let nodes join a cluster: make one with its command, see which are open, revoke them. */
import { useSignal } from "@preact/signals";
import { count, counted } from "../format";
import type { JoinTokenRow } from "../identity-types";
import { query, setQuery } from "../router";
import { may } from "../session";
import { refresh, useQuery, type Query } from "../store";
import { now, parse, span } from "../time";
import type { ClusterItem, JoinToken, List } from "../types";
import { Button, Field, Select, SelectField, type Choice } from "../ui/controls";
import { Nothing, Time } from "../ui/page";
import { Empty, Loaded, Note } from "../ui/states";
import { Listing } from "../ui/listing";
import { commandFor } from "./join";
import { usePaged } from "./paged";
import { ask, asked, askNothing, lacks } from "./asked";
import { DURATION, SecretDialog } from "./settings";
import { VerbForm } from "./verb-form";

const PURPOSES: Choice[] = [
  { value: "", label: "New nodes" },
  { value: "ask", label: "Nodes without a disk come back; a person approves each" },
  { value: "auto", label: "Nodes without a disk come back by their hardware alone" },
];

const LIFETIMES: Choice[] = [
  { value: "15m", label: "15 minutes" },
  { value: "1h", label: "1 hour" },
  { value: "8h", label: "8 hours" },
  { value: "24h", label: "24 hours" },
];

export interface JoinDialogProps {
  clusterId: string;
  clusterName: string;
  onClose: () => void;
}

/** Makes a join token of one cluster and shows the command that uses it, once. */
export function JoinDialog({ clusterId, clusterName, onClose }: JoinDialogProps) {
  const made = useSignal<JoinToken | null>(null);
  const uses = useSignal("1");
  const lifetime = useSignal("1h");
  const host = useSignal("");
  const network = useSignal("");
  const rejoin = useSignal("");
  const n = Number(uses.value);
  if (made.value) {
    const left = (parse(made.value.expires_at) ?? 0) - now.value;
    return (
      <SecretDialog
        title={made.value.rejoin ? `Nodes of ${clusterName} come back` : `Join ${counted(made.value.uses_left, "node")} to ${clusterName}`}
        lead={`Run this as root on ${made.value.uses_left === 1 ? (made.value.host_name ?? "the node") : "each node"}. ${left > 0 ? `The token works for ${span(left)} more.` : "The token has expired."}`}
        secret={made.value.token ? commandFor(made.value.token) : null}
        label="The command that joins a node"
        after={
          <p class="t2 s12">
            {location.protocol === "https:" ? "Nodes appear within 10 seconds of joining." : "This server speaks plain http, which works for nodes on this machine only. Other nodes need its https address."}
          </p>
        }
        onClose={onClose}
      />
    );
  }
  return (
    <VerbForm<JoinToken>
      title={`Add nodes to ${clusterName}`}
      lead="A join token lets nodes make a key of their own. It is for this cluster only."
      path={`/clusters/${clusterId}/join-tokens`}
      body={() => ({ ...(rejoin.value ? { rejoin: rejoin.value, expires_in_days: 30 } : { uses: n, expires_in_seconds: DURATION[lifetime.value] }), ...(host.value.trim() ? { host_name: host.value.trim() } : {}), ...(network.value.trim() ? { cidr: network.value.trim() } : {}) })}
      verb="Make join token"
      disabled={lacks("token.write") ?? (rejoin.value || (Number.isInteger(n) && n >= 1 && n <= 100_000) ? null : "Say how many nodes: 1 to 100,000.")}
      fields={["uses", "host_name", "cidr", "expires_in_seconds"]}
      onClose={onClose}
      done={(token) => {
        made.value = token;
        refresh(`/clusters/${clusterId}/join-tokens`);
      }}
    >
      {(error) => (
        <>
          <SelectField label="For" name="rejoin" choices={PURPOSES} value={rejoin.value} onChange={(value) => (rejoin.value = value)} help={rejoin.value ? "It works for 30 days, for nodes that are known by their serial and GPUs; uses do not count." : "Each makes a key of its own."} />
          {!rejoin.value && (
            <>
              <Field label="Nodes that may join" name="uses" inputMode="numeric" value={uses.value} onInput={(value) => (uses.value = value)} error={error?.field("uses")} />
              <SelectField label="Works for" name="expires_in_seconds" choices={LIFETIMES} value={lifetime.value} onChange={(value) => (lifetime.value = value)} />
            </>
          )}
          <Field label="Only the host" name="host_name" help="Leave it empty for any host name." value={host.value} onInput={(value) => (host.value = value)} error={error?.field("host_name")} />
          <Field label="Only from the network" name="cidr" help="Like 10.4.0.0/16. Leave it empty for any address." value={network.value} onInput={(value) => (network.value = value)} error={error?.field("cidr")} />
        </>
      )}
    </VerbForm>
  );
}

/** Why a token admits nobody any more, or null while it does. */
function ended(token: JoinTokenRow): string | null {
  if (token.revoked_at) {
    return "revoked";
  }
  if (token.uses_left === 0 && !token.rejoin) {
    return "used up";
  }
  return (parse(token.expires_at) ?? 0) <= now.value ? "expired" : null;
}

function TokensOf({ cluster }: { cluster: ClusterItem }) {
  const first = `/clusters/${cluster.id}/join-tokens?limit=50`;
  const paged = usePaged<JoinTokenRow>(first, { events: (type, event) => type === "node.joined" && event.cluster_id === cluster.id });
  const { what, id } = asked();
  const revoked = what === "revoke" ? paged.rows.find((one) => one.id === id) : null;
  return (
    <>
      <Loaded query={paged.first as Query<List<JoinTokenRow>>} what={`The join tokens of ${cluster.name}`}>
        {() =>
          paged.rows.length === 0 ? (
            <Empty title="No join token is open">
              <p>A join token is needed once, when a node joins. Nodes that have joined keep a key of their own.</p>
            </Empty>
          ) : (
            <Listing
              name="Join tokens"
              rows={paged.rows}
              rowKey={(token) => token.id}
              columns={[
                { key: "state", head: "State", class: "nw", cell: (token) => (ended(token) ? <Nothing>{ended(token) ?? ""}</Nothing> : <b>open</b>) },
                { key: "uses", head: "Uses left", number: true, cell: (token) => (token.rejoin ? <Nothing>for coming back</Nothing> : count(token.uses_left)) },
                { key: "host", head: "Host", cell: (token) => token.host_name ?? <Nothing>any</Nothing> },
                { key: "cidr", head: "From", class: "mono", cell: (token) => token.cidr ?? <Nothing>anywhere</Nothing> },
                { key: "expires", head: "Works for", class: "nw", cell: (token) => (ended(token) ? <Nothing>none</Nothing> : <Time iso={token.expires_at} form="left" />) },
                { key: "by", head: "Made by", cell: (token) => token.created_by },
                { key: "at", head: "Made", class: "nw t2 mid-only", cell: (token) => <Time iso={token.created_at} form="moment" /> },
                {
                  key: "do",
                  head: <span class="vh">Actions</span>,
                  class: "nw num",
                  cell: (token) =>
                    ended(token) ? null : (
                      <Button small label={`Revoke the token made by ${token.created_by}…`} onClick={() => ask("revoke", token.id)}>
                        Revoke…
                      </Button>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {paged.foot("token")}
      {revoked && (
        <VerbForm
          title="Revoke this join token"
          lead={`It was made by ${revoked.created_by} for ${cluster.name}${revoked.rejoin ? " and lets known nodes come back" : ` and admits ${counted(revoked.uses_left, "node")} more`}.`}
          path={`/join-tokens/${revoked.id}`}
          method="DELETE"
          verb="Revoke join token"
          binds="Nodes that have joined with it stay."
          onClose={askNothing}
          done={() => {
            refresh(first);
            askNothing();
          }}
        >
          {() => <p>No further node can join with it.</p>}
        </VerbForm>
      )}
    </>
  );
}

/** The cluster that the address names, else the first; with a switch where there are several. */
export function useChosenCluster() {
  const clusters = useQuery<List<ClusterItem>>(may("cluster.read") ? "/clusters?limit=200" : null);
  const items = clusters.data.value?.items ?? [];
  const chosen = items.find((one) => one.id === query.value.get("cluster")) ?? items[0] ?? null;
  const choose = items.length > 1 && (
    <Select label="Cluster" choices={items.map((one) => ({ value: one.id, label: one.name }))} value={chosen?.id ?? ""} onChange={(value) => setQuery({ cluster: value, id: null, do: null })} />
  );
  return { clusters, chosen, choose };
}

export function NoCluster() {
  return (
    <Empty title="There is no cluster yet">
      <Note tone="neutral" title="Nodes belong to a cluster.">
        <p class="t2">
          <a href="/clusters/new">Add a cluster</a> first; its page then shows how the first node joins.
        </p>
      </Note>
    </Empty>
  );
}

export function JoinTokensTab() {
  const { clusters, chosen, choose } = useChosenCluster();
  const { what } = asked();
  return (
    <Loaded query={clusters} what="The list of clusters">
      {() =>
        chosen === null ? (
          <NoCluster />
        ) : (
          <>
            <div class="filter">
              {choose}
              <Button kind="primary" onClick={() => ask("join")}>
                Add nodes to {chosen.name}…
              </Button>
            </div>
            <TokensOf key={chosen.id} cluster={chosen} />
            {what === "join" && <JoinDialog clusterId={chosen.id} clusterName={chosen.name} onClose={askNothing} />}
          </>
        )
      }
    </Loaded>
  );
}
