/* Nodes as a list or as a grid. */
import { useQuery } from "../store";
import type { List, NodeSummary } from "../types";
import { StateMark } from "../ui/marks";
import { Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";

export function NodesTab({ clusterId }: TabProps) {
  const nodes = useQuery<List<NodeSummary>>(`/clusters/${clusterId}/nodes?limit=200`, { samplesOf: clusterId });
  return (
    <Section title="Nodes">
      <Loaded query={nodes} what="The nodes">
        {(list) => (
          <Table
            name="Nodes"
            rows={list.items}
            rowKey={(node) => node.id}
            columns={[
              { key: "name", head: "Node", cell: (node) => <StateMark state={node.state} warning={node.warning}><a class="name" href={`/nodes/${node.id}`}>{node.name}</a></StateMark> },
              { key: "why", head: "Why", cell: (node) => node.reason },
              { key: "since", head: "Since", number: true, cell: (node) => <Time iso={node.state_since} /> },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}
