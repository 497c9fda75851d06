/* Repairs: of one cluster as a tab, of all clusters as a page. */
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { action, counted, sentence } from "../format";
import { useQuery } from "../store";
import type { List, Repair } from "../types";
import { PageSentence, Section, Time } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";

function RepairTable({ path }: { path: string }) {
  const repairs = useQuery<List<Repair>>(path, { events: (type) => type.startsWith("repair.") });
  return (
    <Section title="Repairs">
      <Loaded query={repairs} what="The repairs">
        {(list) => (
          <Table
            name="Repairs"
            rows={list.items}
            rowKey={(repair) => repair.id}
            columns={[
              { key: "what", head: "Repair", cell: (repair) => <a href={`/repairs/${repair.id}`}>{sentence(action(repair.action))} {repair.node_name}</a> },
              { key: "state", head: "State", cell: (repair) => repair.state },
              { key: "since", head: "Since", number: true, cell: (repair) => <Time iso={repair.state_since} /> },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

export function RepairsTab({ clusterId }: TabProps) {
  return <RepairTable path={`/clusters/${clusterId}/repairs?limit=200`} />;
}

export function RepairsPage(_: ViewProps) {
  const waiting = useQuery<List<Repair>>("/repairs?state=proposed&limit=200", { events: (type) => type.startsWith("repair.") });
  useEffect(() => {
    document.title = "Approvals · Muster";
  }, []);
  const n = waiting.data.value?.items.length ?? 0;
  return (
    <Shell scope={{}}>
      <PageSentence parts={[<><b>{counted(n, "repair")}</b> {n === 1 ? "waits" : "wait"} for approval</>]} />
      <RepairTable path="/repairs?limit=200" />
    </Shell>
  );
}
