/* What follows a serial: parts and machines found by it, where a part sat, what a machine was called, and what failed there. */
import { useEffect } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { withQuery } from "../api";
import type { ViewProps } from "../app";
import type { DeviceHistory, MachineHistory, SerialFound, SerialIncident } from "../detection-types";
import { action, count, counted } from "../format";
import { navigate, query } from "../router";
import { useQuery, type Query } from "../store";
import { parse, span } from "../time";
import type { ClusterItem, List } from "../types";
import { Button, Field } from "../ui/controls";
import { Listing } from "../ui/listing";
import { Mark } from "../ui/marks";
import { Nothing, PageSentence, Section, Time } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { incidentHref } from "./incident-parts";
import { lasted, Result } from "./incident-words";
import { MissingPage } from "./missing";

const TYPE_WORD: Record<string, string> = { gpu: "GPU", nic: "Network adapter", disk: "Disk", node: "Machine" };
const LEAST_LETTERS = 3;

function useClusters(): Map<string, string> {
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  return useComputed(() => new Map(clusters.data.value?.items.map((one) => [one.id, one.name]))).value;
}

function nodeHref(row: { cluster_id: string; node_id: string }): string {
  return `/clusters/${row.cluster_id}/nodes/${row.node_id}`;
}

function Incidents({ rows, gone }: { rows: SerialIncident[]; gone: ReadonlySet<string> }) {
  if (rows.length === 0) {
    return <p class="t3">No check has ever failed here.</p>;
  }
  return (
    <Listing<SerialIncident>
      name="Incidents"
      rows={rows}
      rowKey={(one) => one.id}
      columns={[
        { key: "result", head: "Result", class: "nw", cell: (one) => <Result incident={one} /> },
        { key: "what", head: "What was found", class: "why", cell: (one) => <>{one.summary}<span class="sub mono">{one.check_id}</span></> },
        { key: "node", head: "On", class: "nw", cell: (one) => (one.node_id && !gone.has(one.node_id) ? <a href={`/nodes/${one.node_id}`}>{one.node_name}</a> : (one.node_name ?? "many nodes")) },
        { key: "action", head: "Asked for", class: "nw t2", cell: (one) => (one.action && one.action !== "none" ? action(one.action) : <Nothing>nothing</Nothing>) },
        { key: "first", head: "Began", number: true, class: "nw", cell: (one) => <Time iso={one.first_at} form="moment" /> },
        { key: "lasted", head: "Lasted", number: true, class: "nw", cell: lasted },
        { key: "count", head: "Times", number: true, cell: (one) => count(one.count) },
        { key: "no", head: "Incident", number: true, cell: (one) => <a href={incidentHref(one.id)}>{one.no}</a> },
      ]}
    />
  );
}

function Page({ title, parts, children }: { title: string; parts: ComponentChildren[]; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Muster`;
  }, [title]);
  return (
    <Shell scope={{}}>
      <PageSentence parts={parts} announce={title} />
      {children}
    </Shell>
  );
}

function Search({ given }: { given: string }) {
  const text = useSignal(given);
  const asked = text.value.trim();
  return (
    <form
      class="sec form1 stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (asked.length >= LEAST_LETTERS) {
          navigate(withQuery("/serials", { q: asked }));
        }
      }}
    >
      <Field label="Serial" name="q" value={text.value} onInput={(value) => (text.value = value)} placeholder="1653423" help="The beginning is enough: at least three letters or digits. Of a GPU, network adapter, disk or host." />
      <p>
        <Button kind="primary" type="submit" disabled={asked.length >= LEAST_LETTERS ? null : "Type three letters first."}>
          Find it
        </Button>
      </p>
    </form>
  );
}

function Found({ rows, clusters }: { rows: SerialFound[]; clusters: Map<string, string> }) {
  return (
    <Listing<SerialFound>
      name="Found"
      rows={rows}
      rowKey={(one) => one.kind + one.id}
      columns={[
        { key: "serial", head: "Serial", cell: (one) => <a class="name mono" href={one.kind === "device" ? `/devices/${one.id}` : `/nodes/${one.node_id}/machine`}>{one.serial}</a> },
        { key: "type", head: "What", class: "nw", cell: (one) => TYPE_WORD[one.type] ?? one.type },
        { key: "node", head: "On", class: "nw", cell: (one) => (one.present ? <a href={nodeHref(one)}>{one.node_name}</a> : <span class="t2">was on {one.node_name}</span>) },
        { key: "cluster", head: "Cluster", class: "nw t2", cell: (one) => clusters.get(one.cluster_id) ?? "a cluster" },
        { key: "seen", head: "Last seen", number: true, class: "nw", cell: (one) => <Time iso={one.last_seen_at} form="moment" /> },
      ]}
    />
  );
}

export function SerialsPage(_: ViewProps) {
  const q = (query.value.get("q") ?? "").trim();
  const found = useQuery<{ items: SerialFound[] }>(q.length >= LEAST_LETTERS ? withQuery("/serials", { q }) : null);
  const clusters = useClusters();
  return (
    <Page title="Serials" parts={[<><b>Serials</b> of parts and machines</>, q && found.data.value ? <><b>{counted(found.data.value.items.length, "match", "matches")}</b> for {q}</> : "whatever node they sit in"]}>
      <Search key={q} given={q} />
      {q.length >= LEAST_LETTERS && (
        <Section title="Found" hint="seen last comes first">
          <Loaded query={found as Query<{ items: SerialFound[] }>} what="What has this serial" rows={4}>
            {(data) => (data.items.length > 0 ? <Found rows={data.items} clusters={clusters} /> : <p class="t2">No part or machine has a serial that begins with {q}. Only what an agent has seen can be found.</p>)}
          </Loaded>
        </Section>
      )}
    </Page>
  );
}

function Places({ history, clusters }: { history: DeviceHistory; clusters: Map<string, string> }) {
  const rows = [...history.places].reverse();
  return (
    <Listing
      name="Where it was"
      rows={rows}
      rowKey={(one) => one.device_id}
      columns={[
        { key: "node", head: "Node", cell: (one) => <span class="st"><Mark kind={one.present ? "healthy" : "pending"} label={one.present ? "There now" : "Not there now"} /><a class="name" href={nodeHref(one)}>{one.node_name}</a></span> },
        { key: "cluster", head: "Cluster", class: "nw t2", cell: (one) => clusters.get(one.cluster_id) ?? "a cluster" },
        { key: "pci", head: "Slot", class: "nw", cell: (one) => (one.pci ? <span class="mono">{one.pci}</span> : <Nothing>not known</Nothing>) },
        { key: "from", head: "From", number: true, class: "nw", cell: (one) => <Time iso={one.first_seen_at} form="moment" /> },
        { key: "to", head: "Last seen", number: true, class: "nw", cell: (one) => (one.present ? "there now" : <Time iso={one.last_seen_at} form="moment" />) },
        { key: "failed", head: "Failed there", number: true, cell: (one) => counted(history.incidents.filter((incident) => incident.node_id === one.node_id).length, "time") },
      ]}
    />
  );
}

export function PartPage({ params }: ViewProps) {
  const history = useQuery<DeviceHistory>(`/devices/${params.device ?? ""}/history`, { events: (type) => type.startsWith("incident.") });
  const clusters = useClusters();
  const data = history.data.value;
  if (history.error.value?.status === 404 || history.error.value?.status === 400) {
    return <MissingPage />;
  }
  const what = data ? (TYPE_WORD[data.type] ?? data.type) : "Part";
  const here = data?.places.find((one) => one.present);
  return (
    <Page
      title={data ? `${what} ${data.serial}` : "Part"}
      parts={data ? [<><b>{what}</b> <span class="mono">{data.serial}</span></>, here ? <>in <a href={nodeHref(here)}>{here.node_name}</a></> : "in no node now", data.incidents.length > 0 ? <b>failed {counted(data.incidents.length, "time")}</b> : "never failed"] : ["Part"]}
    >
      <div class={data ? undefined : "sec"}>
        <Loaded query={history} what="The past of this part" rows={6}>
          {(one) => (
            <>
              <Section title="Where it was" hint={one.places.length === 1 ? "always in the same node" : `${counted(one.places.length, "place")}, the newest first`}>
                <Places history={one} clusters={clusters} />
              </Section>
              <Section title="What failed" hint={one.incidents.length >= 200 ? "the newest 200" : "on every node that it sat in, newest first"}>
                <Incidents rows={one.incidents} gone={new Set()} />
              </Section>
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

function lived(node: MachineHistory["nodes"][number]): string {
  const from = parse(node.joined_at ?? node.created_at);
  const to = parse(node.removed_at);
  return from === null || to === null ? "" : `, for ${span(to - from)}`;
}

export function MachinePage({ params }: ViewProps) {
  const history = useQuery<MachineHistory>(`/nodes/${params.node ?? ""}/machine`, { events: (type) => type.startsWith("incident.") });
  const clusters = useClusters();
  const data = history.data.value;
  if (history.error.value?.status === 404 || history.error.value?.status === 400) {
    return <MissingPage />;
  }
  const rows = data ? [...data.nodes].reverse() : [];
  const current = rows.find((one) => one.removed_at === null);
  return (
    <Page
      title={data?.host_serial ? `Machine ${data.host_serial}` : "Machine"}
      parts={data ? [<><b>Machine</b> {data.host_serial ? <span class="mono">{data.host_serial}</span> : "whose serial is not known"}</>, current ? <>now <a href={`/nodes/${current.id}`}>{current.name}</a></> : "in no cluster now", data.incidents.length > 0 ? <b>failed {counted(data.incidents.length, "time")}</b> : "never failed"] : ["Machine"]}
    >
      <div class={data ? undefined : "sec"}>
        <Loaded query={history} what="The past of this machine" rows={6}>
          {(one) => (
            <>
              <Section title="Under which names" hint={one.nodes.length === 1 ? "always the same node" : counted(one.nodes.length, "node")}>
                <Listing
                  name="Under which names"
                  rows={rows}
                  rowKey={(node) => node.id}
                  columns={[
                    { key: "node", head: "Node", cell: (node) => (node.removed_at ? <b>{node.name}</b> : <a class="name" href={`/nodes/${node.id}`}>{node.name}</a>) },
                    { key: "cluster", head: "Cluster", class: "nw t2", cell: (node) => clusters.get(node.cluster_id) ?? "a cluster" },
                    { key: "from", head: "Joined", number: true, class: "nw", cell: (node) => <Time iso={node.joined_at} form="moment" none="not yet" /> },
                    { key: "to", head: "Removed", number: true, class: "nw", cell: (node) => (node.removed_at ? <><Time iso={node.removed_at} form="moment" />{lived(node)}</> : "not removed") },
                    { key: "failed", head: "Failed", number: true, cell: (node) => counted(one.incidents.filter((incident) => incident.node_id === node.id).length, "time") },
                  ]}
                />
              </Section>
              <Section title="What failed" hint="under every name, newest first">
                <Incidents rows={one.incidents} gone={new Set(one.nodes.filter((node) => node.removed_at).map((node) => node.id))} />
              </Section>
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}
