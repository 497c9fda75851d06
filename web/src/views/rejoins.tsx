/* Machines that keep no state and ask to come back with a fresh key: what of them is the node's, and yes or no. */
import { counted } from "../format";
import { refresh } from "../store";
import type { ClusterItem } from "../types";
import { Button } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Section, Time } from "../ui/page";
import { CheckLines, type CheckLineItem } from "../ui/records";
import { ErrorNote } from "../ui/states";
import type { Query } from "../store";
import type { Rejoin } from "../identity-types";
import { ask, asked, askNothing } from "./asked";
import { usePaged } from "./paged";
import { VerbForm } from "./verb-form";

function evidence(rejoin: Rejoin): CheckLineItem[] {
  const gpus = rejoin.gpus_known === 0 ? "none known" : `${rejoin.gpus_same} of ${counted(rejoin.gpus_known, "GPU")} known`;
  return [
    { name: "Host serial", weight: rejoin.serial_same ? "good" : "bad", value: rejoin.serial_same ? `${rejoin.serial}, the node's` : `${rejoin.serial || "not said"}, not the node's` },
    { name: "GPUs", weight: rejoin.gpus_known > 0 && rejoin.gpus_same === rejoin.gpus_known ? "good" : "warn", value: gpus },
    rejoin.alive
      ? { name: "Present key", weight: "bad", value: "still in use: somebody reports with it", fix: "Two machines would be one node. Find out which is the right one first." }
      : { name: "Present key", weight: "good", value: "not in use any more" },
    { name: "From", weight: "neutral", value: rejoin.address },
    { name: "New key", weight: "neutral", value: <span class="mono brk">{rejoin.public_key}</span> },
  ];
}

function Decide({ rejoin, verb, path }: { rejoin: Rejoin; verb: "approve" | "deny"; path: string }) {
  const yes = verb === "approve";
  return (
    <VerbForm<Rejoin>
      title={yes ? `Let ${rejoin.node_name} come back` : `Do not let ${rejoin.node_name} come back`}
      lead={yes ? "The machine's fresh key becomes the node's, and the former key ends within seconds." : "What asks again with the same key is refused."}
      path={`/rejoins/${rejoin.id}/${verb}`}
      verb={yes ? `Let ${rejoin.node_name} back` : `Refuse the machine`}
      onClose={askNothing}
      done={() => {
        refresh(path);
        askNothing();
      }}
    >
      {() => <CheckLines label="What the machine says of itself" items={evidence(rejoin)} />}
    </VerbForm>
  );
}

/** Nothing is drawn while nobody asks. */
export function Rejoins({ cluster }: { cluster: ClusterItem }) {
  const first = `/clusters/${cluster.id}/rejoins?limit=50`;
  const paged = usePaged<Rejoin>(first, { events: (type, event) => type.startsWith("node.rejoin") && event.cluster_id === cluster.id });
  const waiting = paged.rows.filter((one) => one.state === "pending");
  const { what, id } = asked();
  const rejoin = waiting.find((one) => one.id === id);
  const error = paged.first.data.value === null ? paged.first.error.value : null;
  return (
    <>
      {error && (
        <div class="sec">
          <ErrorNote error={error} what="The list of machines that ask to come back" query={paged.first as Query<unknown>} />
        </div>
      )}
      {waiting.length > 0 && (
        <Section title="Machines that ask to come back" hint={`${counted(waiting.length, "machine")} with a fresh key`}>
          <Listing
            name="Machines that ask to come back"
            rows={waiting}
            rowKey={(one) => one.id}
            columns={[
              { key: "node", head: "Node", cell: (one) => <a class="name" href={`/nodes/${one.node_id}`}>{one.node_name}</a> },
              { key: "serial", head: "Host serial", cell: (one) => (one.serial_same ? "the node's" : <span class="c-unhealthy">another</span>) },
              { key: "gpus", head: "GPUs", class: "nw", cell: (one) => `${one.gpus_same} of ${one.gpus_known}` },
              { key: "alive", head: "Present key", cell: (one) => (one.alive ? <span class="c-unhealthy">still in use</span> : "not in use") },
              { key: "at", head: "Asked", class: "nw t2", cell: (one) => <Time iso={one.created_at} form="ago" /> },
              {
                key: "do",
                head: <span class="vh">Actions</span>,
                class: "nw num",
                cell: (one) => (
                  <>
                    <Button small label={`Refuse ${one.node_name}…`} onClick={() => ask("deny", one.id)}>
                      Refuse…
                    </Button>{" "}
                    <Button small label={`Let back ${one.node_name}…`} onClick={() => ask("approve", one.id)}>
                      Let back…
                    </Button>
                  </>
                ),
              },
            ]}
          />
        </Section>
      )}
      {paged.foot("machine")}
      {rejoin && (what === "approve" || what === "deny") && <Decide rejoin={rejoin} verb={what} path={first} />}
    </>
  );
}
