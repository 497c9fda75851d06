/* What Slurm or Kubernetes says of a node, and the jobs that it has there. */
import { counted } from "../format";
import { now } from "../time";
import type { NodeDetail, NodeScheduler } from "../types";
import { FactList, Nothing, Section, Time } from "../ui/page";
import { Table } from "../ui/table";
import { jobFacts } from "./repair-words";

const NAMES = { slurm: "Slurm", kubernetes: "Kubernetes" } as const;
const STATES = { idle: "idle", allocated: "has work", down: "down", unknown: "not known" } as const;
const OURS = /^muster:/;

/** "drained by Muster", "closed by others: bad PSU". */
function closedWords(said: NodeScheduler): string {
  if (!said.closed) {
    return "takes new work";
  }
  return OURS.test(said.reason) ? "takes no new work, closed by Muster" : `takes no new work, closed by others${said.reason ? `: ${said.reason}` : ""}`;
}

export function SchedulerSection({ node }: { node: NodeDetail }) {
  const said = node.scheduler;
  if (!said) {
    return null;
  }
  const name = NAMES[said.kind] ?? said.kind;
  return (
    <Section title={name} hint={<>read <Time iso={said.read_at} form="ago" none="never" /></>}>
      <FactList
        wide
        facts={[
          ["State", said.error ? <span class="c-warning">{STATES[said.state]}: {said.error}</span> : STATES[said.state]],
          ["Work", closedWords(said)],
          said.reason ? ["Reason", <span class="mono brk">{said.reason}</span>] : null,
          said.said ? ["Refused", <span class="c-warning">{said.said}</span>] : null,
          ["Jobs", said.jobs.length > 0 ? counted(said.jobs.length, "job") : said.error || said.state === "unknown" ? <Nothing>not known</Nothing> : <Nothing />],
        ]}
      />
      {said.jobs.length > 0 && (
        <Table
          name={`Jobs on ${node.name}`}
          rows={said.jobs}
          rowKey={(job) => job.id}
          columns={[
            {
              key: "job",
              head: "Job",
              class: "two",
              cell: (job) => (
                <>
                  <b>{job.name || job.id}</b> {job.name && <span class="t3">{job.id}</span>}
                  <span class="sub">
                    {jobFacts(job, now.value)}
                    {job.blocked ? `; not moved away: ${job.blocked}` : ""}
                  </span>
                </>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}
