/* One repair, at an address of its own: how far it is, why, what its plan touches, who decided, and every step. */
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { action, sentence } from "../format";
import { bindKeys } from "../keys";
import { useQuery } from "../store";
import { age, clock, moment, now, parse, span, utc } from "../time";
import type { Overview, Plan, Repair } from "../types";
import { Button, CopyButton } from "../ui/controls";
import { Mark, type MarkKind } from "../ui/marks";
import { FactList, Nothing, PageSentence, Section, Time, type Fact } from "../ui/page";
import { ConsequenceList } from "../ui/records";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { ClusterTabs } from "./cluster";
import { MissingPage } from "./missing";
import { RepairDialogs } from "./repair-dialogs";
import { openDialog, Outcome, PlanEvidence, RepairSteps } from "./repair-parts";
import { touchedItems } from "./approve";
import { BeforeAfter } from "./before-after";
import { WhyNotList } from "./why-not";
import { byMuster, CANCELLABLE, decidedBy, record, shortHash, stepName, title, took, why } from "./repair-words";

const MARKS: Partial<Record<Repair["state"], MarkKind>> = { proposed: "unhealthy", succeeded: "healthy", resolved: "healthy", failed: "unhealthy", unknown: "unknown", rejected: "paused", cancelled: "paused" };

const WORDS: Partial<Record<Repair["state"], string>> = {
  proposed: "waits for approval",
  approved: "is approved and waits to begin",
  cordoning: "is running: cordon",
  draining: "is running: drain",
  acting: "is running: act",
  rejoining: "is running: rejoin",
  verifying: "is running: verify",
  unknown: "outcome not known",
};

function sentenceOf(repair: Repair) {
  const since = parse(repair.state_since);
  const open = repair.ended_at === null;
  return [
    <>
      <Mark kind={MARKS[repair.state] ?? "repairing"} /> <b>{title(repair)}</b> {WORDS[repair.state] ?? repair.state}
      {since !== null &&
        (open ? (
          <>
            {" "}
            for <b>{span(now.value - since)}</b>
          </>
        ) : (
          <>
            {" "}
            <b>{now.value - since < 86_400_000 ? `${age(since)} ago` : `on ${moment(since)}`}</b>
          </>
        ))}
    </>,
    why(repair),
  ];
}

function Actions({ repair }: { repair: Repair }) {
  return (
    <>
      {CANCELLABLE.includes(repair.state) && repair.state !== "proposed" && <Button onClick={() => openDialog("cancel", { repair: repair.id })}>Cancel…</Button>}
      {repair.state === "unknown" && (
        <Button kind="primary" onClick={() => openDialog("settle", { repair: repair.id })}>
          Settle it…
        </Button>
      )}
      {repair.state === "proposed" && (
        <Button kind="primary" onClick={() => openDialog("approve", { repair: repair.id })}>
          Review {action(repair.action)}…
        </Button>
      )}
    </>
  );
}

function StepLog({ repair }: { repair: Repair }) {
  if (repair.steps.length === 0) {
    return <p class="t3">Nothing was done.</p>;
  }
  return (
    <ol class="log">
      {repair.steps.map((step) => {
        const from = parse(step.started_at);
        const to = parse(step.ended_at);
        return (
          <li key={step.n}>
            <time dateTime={step.started_at} title={from === null ? undefined : utc(from)}>
              {from === null ? "" : now.value - from < 86_400_000 ? clock(from, true) : moment(from, now.value)}
            </time>
            <span class="what">
              <b>{stepName(step.state)}</b> {step.detail}
              <span class="sub">
                {byMuster(step.actor) ? "muster" : step.actor}
                {from !== null && to !== null && to > from ? `, ${span(to - from)}` : ""}
                {to === null && repair.ended_at === null ? ", still so" : ""}
              </span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function decisionFacts(repair: Repair, plan: Plan | null): Fact[] {
  const seconds = (n: number) => span(n * 1000);
  return [
    ["Number", `${repair.no}`],
    ["Asked for by", byMuster(repair.requested_by) ? "muster, from the fault" : repair.requested_by],
    ["Proposed", <Time iso={repair.created_at} form="moment" />],
    repair.first_approver ? ["First of two", repair.first_approver] : null,
    ["Decided by", repair.decided_by ? decidedBy(repair) : <Nothing>nobody yet</Nothing>],
    repair.automatic ? ["How", <>by a policy, without a person</>] : null,
    repair.decided_at ? ["Decided", <Time iso={repair.decided_at} form="moment" />] : null,
    ["Comment", repair.comment ? `“${repair.comment}”` : <Nothing />],
    repair.deadline_at && !repair.ended_at ? ["Due", <Time iso={repair.deadline_at} form="moment" />] : null,
    repair.ended_at ? ["Took", took(repair) ?? <Nothing />] : null,
    ["Attempt", plan ? `${repair.attempt} of ${plan.limits.attempts_max} in 7 days` : `${repair.attempt}`],
    plan && ["Record", record(plan) ? sentence(record(plan) ?? "") : <Nothing>no rule asked for it</Nothing>],
    plan && ["Policy", `begin within ${seconds(plan.policy.begin_within_seconds)}, back within ${seconds(plan.policy.rejoin_within_seconds)}, healthy for ${seconds(plan.policy.healthy_delay_seconds)}`],
    repair.wave != null ? ["Batch", `wave ${repair.wave}`] : null,
    ["Audit", <a href={`/settings/audit?target=${repair.id}`}>Its rows in the audit log</a>],
    [
      "Plan",
      <>
        <span class="mono">{shortHash(repair.plan_hash)}</span>{" "}
        <CopyButton small text={repair.plan_hash}>
          Copy the hash
        </CopyButton>
      </>,
    ],
  ];
}

function Body({ repair }: { repair: Repair }) {
  const plan = repair.plan;
  return (
    <div class="cols aside">
      <div>
        {repair.ended_at || repair.state === "unknown" ? (
          <Section title="Outcome">
            <Outcome repair={repair} />
          </Section>
        ) : null}
        <Section title="Progress" hint={repair.ended_at ? "" : repair.state === "proposed" ? "begins when it is approved" : repair.state === "unknown" ? "stopped until it is settled" : "live"}>
          <RepairSteps repair={repair} />
        </Section>
        {plan && (
          <>
            <Section title="Why" hint={plan.evidence[0] ? `incident ${plan.evidence.map((one) => one.no).join(", ")}, check ${plan.evidence[0].check_id}` : "asked for by a person"} end={<a href={`/clusters/${repair.cluster_id}/nodes/${repair.node_id}`}>Open the node</a>}>
              <PlanEvidence plan={plan} />
            </Section>
            <Section title="What it touches" hint={`plan ${shortHash(repair.plan_hash)}, as of ${moment(parse(plan.made_at) ?? 0, now.value)}`}>
              <ConsequenceList label="What it touches" items={touchedItems(plan, null, null, null)} />
            </Section>
          </>
        )}
        {repair.decided_at && repair.state !== "rejected" && <BeforeAfter repair={repair} />}
        <Section title="Steps" hint="every change of state, with who made it">
          <StepLog repair={repair} />
        </Section>
      </div>
      <div>
        {repair.state === "proposed" && (
          <Section title="Why not by itself">
            <WhyNotList repair={repair} open />
          </Section>
        )}
        <Section title="Decision">
          <FactList wide facts={decisionFacts(repair, plan)} />
        </Section>
      </div>
    </div>
  );
}

export function RepairPage({ params }: ViewProps) {
  const id = params.repair ?? "";
  const live = useQuery<Repair>(`/repairs/${id}`, { events: (_, event) => event.repair_id === id, everyMs: 30_000 });
  const repair = live.data.value;
  const overview = useQuery<Overview>(repair ? `/clusters/${repair.cluster_id}/overview` : null, { events: (type, event) => type.startsWith("repair.") && event.cluster_id === repair?.cluster_id });
  const cluster = overview.data.value?.cluster.name;
  useEffect(() => {
    document.title = `${repair ? title(repair) : "Repair"} · Muster`;
  }, [repair?.node_name, repair?.action]);
  useEffect(
    () =>
      bindKeys([
        {
          keys: "a",
          does: "Review this repair",
          run: () => {
            if (live.data.peek()?.state === "proposed") {
              openDialog("approve", { repair: id });
            }
          },
        },
      ]),
    [live],
  );
  if (live.error.value?.status === 404 || live.error.value?.status === 400) {
    return <MissingPage />;
  }
  return (
    <Shell scope={repair ? { clusterId: repair.cluster_id, ...(cluster ? { clusterName: cluster } : {}) } : {}}>
      <PageSentence parts={repair ? sentenceOf(repair) : ["Repair"]} announce={repair ? `${title(repair)} ${WORDS[repair.state] ?? repair.state}` : ""} actions={repair && <Actions repair={repair} />} />
      {repair && <ClusterTabs clusterId={repair.cluster_id} overview={overview.data.value} current="repairs" />}
      <div class={repair ? undefined : "sec"}>
        <Loaded query={live} what="This repair" rows={8}>
          {(one) => <Body repair={one} />}
        </Loaded>
      </div>
      <RepairDialogs />
    </Shell>
  );
}
