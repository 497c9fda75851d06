/* A node before a repair and after it: its faults, its boot, its state. What is after is what can be read now. */
import { useQuery } from "../store";
import type { Incident, List, NodeDetail, Repair } from "../types";
import { Nothing, Section, Time } from "../ui/page";
import { STATE_WORD } from "../ui/marks";
import { Table } from "../ui/table";
import type { ComponentChildren } from "preact";

interface Row {
  key: string;
  what: string;
  before: ComponentChildren;
  after: ComponentChildren;
}

function boot(id: string | null | undefined): ComponentChildren {
  return id ? <span class="mono">{id.slice(0, 8)}</span> : <Nothing>not known</Nothing>;
}

function faultRows(repair: Repair, incidents: Incident[]): Row[] {
  return (repair.plan?.evidence ?? []).map((one) => {
    const now = incidents.find((incident) => incident.id === one.incident_id);
    return {
      key: one.incident_id,
      what: `Incident ${one.no}`,
      before: one.summary,
      after: !now ? <Nothing>not read</Nothing> : now.closed_at ? <>gone, closed <Time iso={now.closed_at} form="ago" /></> : <span class="c-unhealthy">still open, last seen <Time iso={now.last_at} form="ago" /></span>,
    };
  });
}

export function BeforeAfter({ repair }: { repair: Repair }) {
  const of = (_: string, event: { node_id: string | null }) => event.node_id === repair.node_id;
  const node = useQuery<NodeDetail>(`/nodes/${repair.node_id}`, { events: of as never }).data.value;
  const incidents = useQuery<List<Incident>>(`/incidents?node_id=${repair.node_id}&limit=100`, { events: of as never }).data.value?.items ?? [];
  const begun = repair.plan?.boot_id;
  const rows: Row[] = [
    ...faultRows(repair, incidents),
    { key: "boot", what: "Boot", before: boot(begun), after: node ? <>{boot(node.boot_id)}{begun && node.boot_id ? <span class="t3"> {node.boot_id === begun ? "the same" : "another one"}</span> : null}</> : <Nothing>not read</Nothing> },
    { key: "state", what: "Node", before: repair.incident_id ? "Unhealthy" : "as it was", after: node ? <>{STATE_WORD[node.state]}{node.schedulable ? "" : ", takes no new work"}</> : <Nothing>not read</Nothing> },
  ];
  return (
    <Section title="Before and after" hint="after: as it is now">
      <Table
        name="Before and after"
        rows={rows}
        rowKey={(row) => row.key}
        columns={[
          { key: "what", head: <span class="vh">What</span>, class: "nw t3", cell: (row) => row.what },
          { key: "before", head: "Before", cell: (row) => row.before },
          { key: "after", head: "After", cell: (row) => row.after },
        ]}
      />
    </Section>
  );
}
