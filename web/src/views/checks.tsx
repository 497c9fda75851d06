/* Health checks over time. */
import { useQuery } from "../store";
import type { CheckMatrix } from "../types";
import { percent } from "../format";
import { Section } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import type { TabProps } from "./cluster";

export function ChecksTab({ clusterId }: TabProps) {
  const matrix = useQuery<CheckMatrix>(`/clusters/${clusterId}/checks?buckets=48`, { everyMs: 60_000 });
  return (
    <Section title="Checks" hint="last 24 h">
      <Loaded query={matrix} what="The checks">
        {(data) => (
          <Table
            name="Checks"
            rows={data.rows}
            rowKey={(row) => row.check_id}
            columns={[
              { key: "title", head: "Check", cell: (row) => row.title },
              { key: "passed", head: "Passed", number: true, cell: (row) => percent(row.passed_ratio) },
              { key: "worst", head: "Worst now", cell: (row) => row.worst.map((one) => one.name).join(", ") || "none" },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}
