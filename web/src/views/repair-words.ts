/* A repair in words: what it is, why it is there, how it went, and what its plan touches. */
import { action, count, counted, sentence } from "../format";
import { now, parse, span } from "../time";
import type { NodeDetail, Plan, Repair, RepairState, RepairStep, SchedulerJob } from "../types";
import type { Consequence, Weight } from "../ui/records";

export type Told = Pick<Repair, "action" | "node_name" | "state" | "reason">;

/** "Failover gpu-17-03". */
export function title(repair: Pick<Repair, "action" | "node_name">): string {
  return `${sentence(action(repair.action))} ${repair.node_name}`;
}

export const RUNNING: readonly RepairState[] = ["approved", "cordoning", "draining", "acting", "rejoining", "verifying"];
/** Nothing irreversible has been done yet. */
export const CANCELLABLE: readonly RepairState[] = ["proposed", "approved", "cordoning", "draining"];
export const ENDED: readonly RepairState[] = ["succeeded", "failed", "rejected", "cancelled", "resolved"];

/** Why it is there: the fault, or what the person wrote. The reason of an ended one tells how it ended. */
export function why(repair: Repair): string {
  const proposed = repair.steps.find((step) => step.state === "proposed")?.detail;
  return proposed || repair.plan?.evidence[0]?.summary || repair.reason || `Asked for by ${repair.requested_by}`;
}

export function byMuster(name: string | null): boolean {
  return name === null || name === "muster";
}

/** "policy version 12": policies decide under their id and version. */
export function decider(name: string): string {
  const policy = /^policy [0-9a-f-]{36} (\d+)$/.exec(name);
  return policy ? `policy version ${policy[1]}` : name;
}

/** "by S. Tanaka"; automation speaks as muster. */
export function decidedBy(repair: Repair): string {
  if (repair.decided_by) {
    return byMuster(repair.decided_by) ? "automatic" : decider(repair.decided_by);
  }
  return repair.state === "resolved" ? "nobody: the fault went away" : "muster";
}

/** How long from the decision to the end; null while it is open or when nothing was decided. */
export function took(repair: Repair): string | null {
  const from = parse(repair.decided_at) ?? parse(repair.created_at);
  const to = parse(repair.ended_at);
  return from === null || to === null ? null : span(to - from);
}

const STEP_NAMES: Partial<Record<RepairState, string>> = {
  cordoning: "Cordon",
  draining: "Drain",
  acting: "Act",
  rejoining: "Rejoin",
  verifying: "Verify",
};
export const WORK = Object.keys(STEP_NAMES) as RepairState[];

export function stepName(state: RepairState): string {
  return STEP_NAMES[state] ?? sentence(state);
}

/** The last step of the work that was begun. */
export function lastWork(repair: Repair): RepairStep | null {
  return [...repair.steps].reverse().find((step) => WORK.includes(step.state)) ?? null;
}

/** What the server wrote about the end, without saying the state twice. */
function tail(repair: Repair): string {
  const end = [...repair.steps].reverse().find((step) => step.state === repair.state)?.detail || repair.reason || "";
  return end.replace(new RegExp(`^${repair.state} by `, "i"), "by ");
}

/** "Failed at Verify: remap failure is still there". */
export function outcome(repair: Repair): string {
  const last = lastWork(repair);
  const more = tail(repair);
  switch (repair.state) {
    case "succeeded":
      return "Succeeded";
    case "failed":
      return `Failed${last ? ` at ${stepName(last.state)}` : ""}${more ? `: ${more}` : ""}`;
    case "rejected":
    case "cancelled":
      return `${sentence(repair.state)}${more ? (more.startsWith("by ") ? ` ${more}` : `: ${more}`) : ""}`;
    case "resolved":
      return "Resolved: the fault went away first";
    case "unknown":
      return `Unknown${more ? `: ${more}` : ": the outcome could not be seen"}`;
    default:
      return sentence(repair.state);
  }
}

export const OUTCOME_WEIGHT: Partial<Record<RepairState, Weight>> = {
  succeeded: "good",
  resolved: "good",
  failed: "bad",
  unknown: "warn",
};

/** "Right 31 of 34 times in 90 days"; null where nothing is known yet. */
export function record(plan: Plan): string | null {
  const rule = plan.rule;
  if (!rule || !rule.check_id) {
    return null;
  }
  return rule.total > 0 ? `right ${count(rule.right)} of ${counted(rule.total, "time")} in ${rule.days} days` : `not tried yet in ${rule.days} days`;
}

export function shortHash(hash: string): string {
  return hash.slice(0, 4);
}

function place(plan: Plan): string | null {
  const { rack, leaf } = plan.domain;
  return [rack && `rack ${rack}`, leaf].filter(Boolean).join(" or ") || null;
}

type NodeUse = Pick<NodeDetail, "gpu_util_ratio" | "gpus" | "latest"> & Partial<Pick<NodeDetail, "scheduler">>;

const LISTED_JOBS = 4;

/** "a.meyer, 8 GPUs here, on 64 nodes, for 19 h 42 min". */
export function jobFacts(one: SchedulerJob, at: number): string {
  const began = parse(one.started_at);
  return [one.user, one.gpus !== null && `${counted(one.gpus, "GPU")} here`, one.nodes > 1 && `on ${counted(one.nodes, "node")}`, began !== null && `for ${span(at - began)}`].filter(Boolean).join(", ");
}

/** GPU-hours on this node since its jobs began: what is lost at most, were nothing kept. */
export function gpuHours(jobs: readonly SchedulerJob[], at: number): number {
  return jobs.reduce((sum, one) => sum + (one.gpus ?? 0) * Math.max(0, at - (parse(one.started_at) ?? at)), 0) / 3_600_000;
}

function jobs(plan: Plan, at: number): Consequence {
  const named = plan.jobs.slice(0, LISTED_JOBS).map((one) => `${one.name || one.id}${one.name ? ` (${one.id})` : ""}: ${jobFacts(one, at)}${one.blocked ? `; ${one.blocked}` : ""}`);
  const more = plan.jobs.length - named.length;
  const spans = plan.jobs.filter((one) => one.nodes > 1).length;
  const hours = gpuHours(plan.jobs, at);
  return {
    subject: "Running job",
    weight: "bad",
    fact: `${counted(plan.jobs.length, "job")} on this node ${plan.jobs.length === 1 ? "ends" : "end"}${hours >= 1 ? `: at most ${count(Math.round(hours))} GPU-hours here are lost` : ""}`,
    detail: [...named.map((text) => `${text}.`), more > 0 ? `${count(more)} more.` : "", spans ? `${spans === plan.jobs.length ? (spans === 1 ? "It spans" : "They span") : `${count(spans)} of them ${spans === 1 ? "spans" : "span"}`} other nodes, which lose it too.` : ""].filter(Boolean).join(" "),
  };
}

function job(plan: Plan, node: NodeUse | null, at: number): Consequence {
  const subject = "Running job";
  if (plan.jobs.length > 0) {
    return jobs(plan, at);
  }
  const said = node?.scheduler;
  if (said && !said.error && said.state !== "unknown") {
    return { subject, weight: "good", fact: `No job runs here, says ${said.kind === "slurm" ? "Slurm" : "Kubernetes"}` };
  }
  const fact = said ? `Not known: ${said.error || "the scheduler does not say"}` : "Not known: no scheduler tells Muster what runs here";
  if (node === null) {
    return { subject, weight: "neutral", fact };
  }
  const busy = node.gpu_util_ratio;
  const cpu = Math.round((node.latest?.cpu_ratio ?? 0) * 100);
  const detail =
    node.gpus.length === 0
      ? `Its CPUs are ${cpu} % busy now.`
      : busy === null
        ? "Its use cannot be read now."
        : busy >= 0.01
          ? `Its GPUs are ${Math.round(busy * 100)} % busy now: what runs there ends.`
          : "Its GPUs are idle now.";
  return { subject, weight: busy !== null && busy < 0.01 ? "neutral" : "warn", fact, detail };
}

function data(plan: Plan): Consequence {
  return plan.loses
    ? { subject: "Data", weight: "bad", fact: plan.loses.replace(/\.$/, ""), detail: plan.keeps }
    : { subject: "Data", weight: "good", fact: "Nothing on its disks is lost", detail: plan.keeps };
}

function capacity(plan: Plan): Consequence {
  const { healthy_before: before, healthy_after: after, nodes } = plan.capacity;
  const subject = "Capacity";
  const about = `about ${span(plan.seconds_expected * 1000)}`;
  if (plan.action === "remove") {
    return { subject, weight: "warn", fact: `${counted(nodes - 1, "node")} stay in the cluster`, detail: `${counted(after, "healthy node")} after it.` };
  }
  if (plan.action === "failover" && plan.spare) {
    const { available: free, total } = plan.spare;
    return { subject, weight: free > 0 ? "good" : "bad", fact: free > 0 ? `One of ${counted(free, "free spare")} takes its place, in ${about}` : "No spare is free", detail: `${counted(total, "machine")} in the cluster's pool.` };
  }
  if (after < before) {
    return { subject, weight: "warn", fact: `Healthy nodes fall from ${count(before)} to ${count(after)} for ${about}` };
  }
  return { subject, weight: "good", fact: `${counted(after, "healthy node")} ${after === 1 ? "stays" : "stay"}; ${count(after + 1)} when it is back, in ${about}`, detail: `of ${counted(nodes, "node")} in the cluster` };
}

function domain(plan: Plan): Consequence {
  const subject = "Failure domain";
  const where = place(plan);
  const down = plan.domain.others_down;
  if (where === null) {
    return { subject, weight: "neutral", fact: "Not known: the node has no rack and no leaf" };
  }
  return down === 0
    ? { subject, weight: "good", fact: `No other node of ${where} is down` }
    : { subject, weight: "warn", fact: `${counted(down, "other node")} of ${where} ${down === 1 ? "is" : "are"} down`, detail: "The fault may be in what they share." };
}

/** Places whose breaker is open and holds this repair; null: not known. */
export type OpenBreakers = readonly string[] | null;

function limits(plan: Plan, breakers: OpenBreakers): Consequence {
  const { running, max_running: most, attempt, attempts_max: attempts } = plan.limits;
  const full = running >= most;
  const few = most === 0 ? "So many nodes are out that no repair starts by itself" : `${counted(running, "repair")} ${running === 1 ? "runs" : "run"} already, at most ${count(most)} may at once`;
  const breaker = breakers === null ? "" : breakers.length > 0 ? `, the breaker of ${breakers.join(" and ")} is open` : ", breaker closed";
  return {
    subject: "Limits",
    weight: full || attempt > attempts || (breakers?.length ?? 0) > 0 ? "warn" : "good",
    fact: (full ? few : `${count(running + 1)} of at most ${count(most)} repairs at once`) + breaker,
    detail: `Attempt ${attempt} of ${attempts} in 7 days.`,
  };
}

/** Always in the same order; worst first is not the order. changedFrom: rows that differ from that plan are marked. */
export function consequences(plan: Plan, node: NodeUse | null, changedFrom: Plan | null = null, breakers: OpenBreakers = null): Consequence[] {
  const at = now.peek();
  const made = (one: Plan) => [job(one, node, at), data(one), capacity(one), domain(one), limits(one, breakers)];
  const before = changedFrom && made(changedFrom);
  return made(plan).map((item, i) => ({ ...item, changed: before !== null && (before[i]?.fact !== item.fact || before[i]?.detail !== item.detail) }));
}

/** One line for lists: what hurts, then the rest. */
export function touches(plan: Plan | null): { strong: string; rest: string } {
  if (!plan) {
    return { strong: "", rest: "" };
  }
  const { healthy_before: before, healthy_after: after } = plan.capacity;
  const rest = [
    plan.action === "remove" && `${counted(plan.capacity.nodes - 1, "node")} stay.`,
    plan.action !== "remove" && after < before && `Healthy nodes fall to ${count(after)}.`,
    plan.domain.others_down > 0 && `${counted(plan.domain.others_down, "other node")} near it ${plan.domain.others_down === 1 ? "is" : "are"} down.`,
    `About ${span(plan.seconds_expected * 1000)}.`,
  ];
  const gpus = plan.jobs.reduce((sum, one) => sum + (one.gpus ?? 0), 0);
  const running = plan.jobs.length > 0 ? `${counted(plan.jobs.length, "job")}${gpus > 0 ? `, ${counted(gpus, "GPU")}` : ""}. ` : "";
  return { strong: `${running}${plan.loses ?? (running ? "" : "No data is lost.")}`.trim(), rest: rest.filter(Boolean).join(" ") };
}

/** Something that a person would regret: a job that ends, data that is gone. */
export function hurts(plan: Plan | null): boolean {
  return plan !== null && (plan.jobs.length > 0 || plan.loses !== null);
}

/** Worst first: the GPUs whose jobs end, then lost data, then neighbours that are down, then the oldest. */
export function worstFirst(a: Repair, b: Repair): number {
  const gpus = (one: Repair) => (one.plan?.jobs ?? []).reduce((sum, job) => sum + (job.gpus ?? 1) * job.nodes, 0);
  return (
    gpus(b) - gpus(a) ||
    Number(Boolean(b.plan?.loses)) - Number(Boolean(a.plan?.loses)) ||
    (b.plan?.domain.others_down ?? 0) - (a.plan?.domain.others_down ?? 0) ||
    a.created_at.localeCompare(b.created_at)
  );
}

/** Where two people must agree: what is missing, or null. */
export function secondPerson(repair: Repair): string | null {
  return repair.first_approver ? `1 of 2 people: ${repair.first_approver} approved` : null;
}
