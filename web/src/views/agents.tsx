/* The keys of agents: which node has been heard when, and taking a node's key away. */
import { useSignal } from "@preact/signals";
import { withQuery } from "../api";
import { counted } from "../format";
import type { NodeKeyRevoked } from "../identity-types";
import { query, setQuery } from "../router";
import { refresh, type Query } from "../store";
import type { ClusterItem, List, NodeSummary } from "../types";
import { Button, Field } from "../ui/controls";
import { StateMark } from "../ui/marks";
import { Nothing, Time } from "../ui/page";
import { Loaded, Note } from "../ui/states";
import { Listing } from "../ui/listing";
import { NoCluster, useChosenCluster } from "./join-tokens";
import { usePaged } from "./paged";
import { ask, asked, askNothing } from "./asked";
import { Rejoins } from "./rejoins";
import { VerbForm } from "./verb-form";

function RevokeDialog({ node, done }: { node: NodeSummary; done: (answer: NodeKeyRevoked) => void }) {
  const reason = useSignal("");
  return (
    <VerbForm<NodeKeyRevoked>
      title={`Take the key of ${node.name} away`}
      lead="Its agent is refused by every replica within 5 seconds. Jobs on the node go on."
      path={`/nodes/${node.id}/revoke-key`}
      body={() => (reason.value.trim() ? { reason: reason.value.trim() } : {})}
      verb={`Revoke the key of ${node.name}`}
      binds="The node becomes unknown. With a join token it can come back, with a key of its next generation."
      fields={["reason"]}
      onClose={askNothing}
      done={done}
    >
      {(error) => <Field label="Reason" name="reason" multiline help="It stands in the audit log." value={reason.value} onInput={(value) => (reason.value = value)} error={error?.field("reason")} />}
    </VerbForm>
  );
}

function AgentsOf({ cluster }: { cluster: ClusterItem }) {
  const q = query.value.get("q") ?? "";
  const first = withQuery(`/clusters/${cluster.id}/nodes`, { q, limit: 50 });
  const paged = usePaged<NodeSummary>(first, { samplesOf: cluster.id, sampleGapMs: 10_000 });
  const gone = useSignal<NodeKeyRevoked | null>(null);
  const { what, id } = asked();
  const node = what === "revoke" ? paged.rows.find((one) => one.id === id) : null;
  return (
    <>
      {gone.value && (
        <Note tone="good" title={`The key of ${gone.value.name} is revoked.`}>
          <p class="t2">
            It was of generation {gone.value.generation}. <a href={`/settings/tokens/join?cluster=${cluster.id}&do=join`}>Make a join token</a> to let the node come back.
          </p>
        </Note>
      )}
      <Loaded query={paged.first as Query<List<NodeSummary>>} what={`The agents of ${cluster.name}`} rows={8}>
        {() =>
          paged.rows.length === 0 ? (
            <div class="sec">
              <p>{q ? `No node of ${cluster.name} begins with “${q}”.` : "No node has joined yet."}</p>
              <p class="row8">
                {q ? (
                  <Button small onClick={() => setQuery({ q: null })}>
                    Clear the filter
                  </Button>
                ) : (
                  <a class="btn sm" href={`/settings/tokens/join?cluster=${cluster.id}&do=join`}>
                    Add nodes…
                  </a>
                )}
              </p>
            </div>
          ) : (
            <Listing
              name="Agents"
              rows={paged.rows}
              rowKey={(one) => one.id}
              columns={[
                { key: "name", head: "Node", cell: (one) => <a class="name" href={`/nodes/${one.id}`}>{one.name}</a> },
                { key: "state", head: "State", class: "nw", cell: (one) => <StateMark state={one.state} warning={one.warning} /> },
                { key: "seen", head: "Last heard", class: "nw", cell: (one) => <Time iso={one.seen_at} form="ago" /> },
                { key: "every", head: "Reports every", class: "nw mid-only", number: true, cell: (one) => (one.interval_seconds ? `${one.interval_seconds} s` : <Nothing>no data</Nothing>) },
                {
                  key: "do",
                  head: <span class="vh">Actions</span>,
                  class: "nw num",
                  cell: (one) => (
                    <Button small label={`Revoke key of ${one.name}…`} onClick={() => ask("revoke", one.id)}>
                      Revoke key…
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {paged.foot("node")}
      {node && (
        <RevokeDialog
          node={node}
          done={(answer) => {
            gone.value = answer;
            refresh(first);
            askNothing();
          }}
        />
      )}
    </>
  );
}

export function AgentsTab() {
  const { clusters, chosen, choose } = useChosenCluster();
  const draft = useSignal(query.value.get("q") ?? "");
  return (
    <Loaded query={clusters} what="The list of clusters">
      {() =>
        chosen === null ? (
          <NoCluster />
        ) : (
          <>
            <div class="filter">
              {choose}
              <label class="sel grow1">
                <span>Node</span>
                <input
                  type="text"
                  value={draft.value}
                  placeholder="the beginning of its name"
                  spellcheck={false}
                  autocomplete="off"
                  onInput={(event) => (draft.value = event.currentTarget.value)}
                  onKeyDown={(event) => event.key === "Enter" && setQuery({ q: draft.value.trim() })}
                  onBlur={() => setQuery({ q: draft.value.trim() })}
                />
              </label>
              <span class="s12 t3">{chosen.rollup ? counted(chosen.rollup.nodes, "node") : ""}</span>
            </div>
            <Rejoins key={`${chosen.id}-back`} cluster={chosen} />
            <AgentsOf key={chosen.id} cluster={chosen} />
          </>
        )
      }
    </Loaded>
  );
}
