/* What is said of repairs, incidents and checks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { now } from "../src/time";
import type { Incident, NodeDetail, Plan, Repair } from "../src/types";
import { passed } from "../src/views/check-words";
import { endWords } from "../src/views/incident-words";
import { consequences, decidedBy, outcome, record, took, touches, why, worstFirst } from "../src/views/repair-words";

const PLAN: Plan = {
  node: { id: "n", name: "gpu-17-03" },
  boot_id: "b",
  action: "reboot",
  how: "The node's agent restarts the operating system.",
  keeps: "The disks keep their data.",
  loses: null,
  seconds_expected: 420,
  evidence: [],
  jobs: [],
  capacity: { healthy_before: 1009, healthy_after: 1009, nodes: 1024 },
  domain: { rack: "r17", leaf: "leaf-09", others_down: 0 },
  limits: { running: 3, max_running: 20, attempt: 1, attempts_max: 2, why_not: [{ code: "automation_off", detail: "Automation is off: a person decides." }] },
  rule: { check_id: "gpu_lost", right: 31, total: 34, days: 90 },
  made_at: "2026-12-01T14:00:00Z",
  policy: { healthy_delay_seconds: 600, begin_within_seconds: 1800, rejoin_within_seconds: 1800 },
};

const REPAIR: Repair = {
  id: "r",
  no: 7,
  cluster_id: "c",
  node_id: "n",
  node_name: "gpu-17-03",
  incident_id: null,
  action: "reboot",
  state: "proposed",
  state_since: "2026-12-01T14:00:00Z",
  deadline_at: null,
  reason: "GPU 5 off the bus",
  requested_by: "muster",
  decided_by: null,
  decided_at: null,
  comment: null,
  plan: PLAN,
  plan_hash: "7c1e",
  attempt: 1,
  created_at: "2026-12-01T14:00:00Z",
  ended_at: null,
  version: 1,
  steps: [],
  can_approve: true,
  blocked: null,
};

const step = (n: number, state: Repair["state"], detail = "") => ({ n, state, detail, actor: "muster", started_at: REPAIR.created_at, ended_at: REPAIR.created_at });
const facts = (plan: Plan, node: Parameters<typeof consequences>[1] = null) => Object.fromEntries(consequences(plan, node).map((one) => [one.subject, one]));

test("consequences keep their order, whatever is worst", () => {
  const order = ["Running job", "Data", "Capacity", "Failure domain", "Limits"];
  assert.deepEqual(consequences(PLAN, null).map((one) => one.subject), order);
  assert.deepEqual(consequences({ ...PLAN, loses: "All data is lost.", domain: { ...PLAN.domain, others_down: 3 } }, null).map((one) => one.subject), order);
});

test("lost data is harm and is said first in its row", () => {
  const row = facts({ ...PLAN, loses: "All data on its local disks is lost." }).Data;
  assert.equal(row?.weight, "bad");
  assert.equal(row?.fact, "All data on its local disks is lost");
  assert.equal(facts(PLAN).Data?.weight, "good");
});

test("without a scheduler the job row says what can be read instead", () => {
  const node = (busy: number | null) => ({ gpu_util_ratio: busy, gpus: [{}], latest: null }) as unknown as NodeDetail;
  assert.match(String(facts(PLAN)["Running job"]?.fact), /no scheduler/);
  assert.equal(facts(PLAN, node(0.97))["Running job"]?.detail, "Its GPUs are 97 % busy now: what runs there ends.");
  assert.equal(facts(PLAN, node(0))["Running job"]?.weight, "neutral");
  assert.equal(facts(PLAN, node(null))["Running job"]?.detail, "Its use cannot be read now.");
});

test("capacity says what stays, what falls, and for how long", () => {
  assert.equal(facts(PLAN).Capacity?.fact, "1,009 healthy nodes stay; 1,010 when it is back, in about 7 min");
  const healthy = facts({ ...PLAN, capacity: { healthy_before: 1010, healthy_after: 1009, nodes: 1024 } }).Capacity;
  assert.equal(healthy?.fact, "Healthy nodes fall from 1,010 to 1,009 for about 7 min");
  assert.equal(healthy?.weight, "warn");
});

test("limits warn when they are reached, and tell why it did not start by itself", () => {
  assert.equal(facts(PLAN).Limits?.fact, "4 of at most 20 repairs at once");
  assert.equal(facts(PLAN).Limits?.detail, "Attempt 1 of 2 in 7 days.");
  assert.equal(facts({ ...PLAN, limits: { ...PLAN.limits, running: 20 } }).Limits?.weight, "warn");
  assert.equal(facts({ ...PLAN, limits: { ...PLAN.limits, attempt: 3 } }).Limits?.weight, "warn");
});

const JOB = { id: "48213", user: "a.meyer", name: "llama", gpus: 8, started_at: new Date(now.peek() - 10 * 3_600_000).toISOString(), nodes: 64, blocked: "" };

test("jobs on the node are harm, with whose they are and what is lost at most", () => {
  const row = facts({ ...PLAN, jobs: [JOB, { ...JOB, id: "48214", name: "", nodes: 1 }] })["Running job"];
  assert.equal(row?.weight, "bad");
  assert.equal(row?.fact, "2 jobs on this node end: at most 160 GPU-hours here are lost");
  assert.equal(row?.detail, "llama (48213): a.meyer, 8 GPUs here, on 64 nodes, for 10 h. 48214: a.meyer, 8 GPUs here, for 10 h. 1 of them spans other nodes, which lose it too.");
});

test("a scheduler that names no job is believed, one that did not answer is not", () => {
  const node = (scheduler: object) => ({ gpu_util_ratio: 0.5, gpus: [{}], latest: null, scheduler: { kind: "slurm", state: "idle", error: "", jobs: [], ...scheduler } }) as unknown as NodeDetail;
  assert.deepEqual([facts(PLAN, node({}))["Running job"]?.weight, facts(PLAN, node({}))["Running job"]?.fact], ["good", "No job runs here, says Slurm"]);
  assert.match(String(facts(PLAN, node({ error: "slurmctld did not answer" }))["Running job"]?.fact), /Not known: slurmctld/);
  assert.match(String(facts(PLAN, node({ state: "unknown" }))["Running job"]?.fact), /Not known/);
});

test("the breaker stands with the limits, and is not called closed while that is not known", () => {
  const limits = (open: string[] | null) => consequences(PLAN, null, null, open).find((one) => one.subject === "Limits");
  assert.match(String(limits([])?.fact), /, breaker closed$/);
  assert.deepEqual([limits(["fra"])?.weight, String(limits(["fra"])?.fact).includes("the breaker of fra is open")], ["warn", true]);
  assert.doesNotMatch(String(limits(null)?.fact), /breaker/);
});

test("worst first: jobs by their GPUs, then lost data, then the oldest", () => {
  const of = (id: string, plan: Partial<Plan>, created_at = REPAIR.created_at): Repair => ({ ...REPAIR, id, created_at, plan: { ...PLAN, ...plan } });
  const made = [of("new", {}), of("old", {}, "2026-12-01T13:00:00Z"), of("data", { loses: "All data." }), of("small", { jobs: [{ ...JOB, nodes: 1 }] }), of("large", { jobs: [JOB] })];
  assert.deepEqual(made.sort(worstFirst).map((one) => one.id), ["large", "small", "data", "old", "new"]);
});

test("only rows that differ from the plan that was read are marked", () => {
  const next = { ...PLAN, domain: { ...PLAN.domain, others_down: 2 } };
  assert.deepEqual(consequences(next, null, PLAN).filter((one) => one.changed).map((one) => one.subject), ["Failure domain"]);
  assert.deepEqual(consequences(PLAN, null, PLAN).filter((one) => one.changed), []);
});

test("a place that is not known is not called safe", () => {
  assert.equal(facts({ ...PLAN, domain: { rack: "", leaf: "", others_down: 0 } })["Failure domain"]?.weight, "neutral");
});

test("the rule's record is a share of what was tried", () => {
  assert.equal(record(PLAN), "right 31 of 34 times in 90 days");
  assert.equal(record({ ...PLAN, rule: { check_id: "gpu_lost", right: 0, total: 0, days: 90 } }), "not tried yet in 90 days");
  assert.equal(record({ ...PLAN, rule: { check_id: "", right: 0, total: 0, days: 90 } }), null);
});

test("an ended repair still says why it was there", () => {
  const ended: Repair = { ...REPAIR, state: "rejected", reason: "Rejected by S. Tanaka: not now", steps: [step(1, "proposed", "GPU 5 off the bus"), step(2, "rejected", "Rejected by S. Tanaka: not now")] };
  assert.equal(why(ended), "GPU 5 off the bus");
  assert.equal(outcome(ended), "Rejected by S. Tanaka: not now");
});

test("a failure names its step", () => {
  const failed: Repair = { ...REPAIR, state: "failed", reason: "The fault came back.", steps: [step(1, "proposed"), step(2, "cordoning"), step(3, "verifying"), step(4, "failed", "The fault came back.")] };
  assert.equal(outcome(failed), "Failed at Verify: The fault came back.");
  assert.equal(outcome({ ...failed, state: "unknown", steps: [step(1, "acting"), step(2, "unknown", "Nothing was heard.")] }), "Unknown: Nothing was heard.");
});

test("what was decided by nobody is not given to somebody", () => {
  assert.equal(decidedBy({ ...REPAIR, decided_by: "S. Tanaka" }), "S. Tanaka");
  assert.equal(decidedBy({ ...REPAIR, decided_by: "muster" }), "automatic");
  assert.equal(decidedBy({ ...REPAIR, state: "resolved" }), "nobody: the fault went away");
  assert.equal(took(REPAIR), null);
  assert.equal(took({ ...REPAIR, decided_at: "2026-12-01T14:01:00Z", ended_at: "2026-12-01T14:21:00Z" }), "20 min");
});

test("a list says in one line what hurts", () => {
  assert.deepEqual(touches(PLAN), { strong: "No data is lost.", rest: "About 7 min." });
  assert.equal(touches({ ...PLAN, action: "remove", loses: "It leaves." }).rest, "1,023 nodes stay. About 7 min.");
});

test("100 % is said of all only", () => {
  assert.equal(passed(1), "100 %");
  assert.equal(passed(0.999999), "99.99 %");
  assert.equal(passed(0.984), "98.4 %");
  assert.equal(passed(0.5), "50 %");
  assert.equal(passed(null), "no data");
});

test("how an incident ended is told in a few words", () => {
  const incident = { closed_at: "2026-12-01T14:00:00Z", close_reason: "", closed_by: "muster", clears: "event" } as Incident;
  assert.equal(endWords(incident), "condition gone");
  assert.equal(endWords({ ...incident, close_reason: "Repaired by repair 61. The node booted again." }), "repair 61");
  assert.equal(endWords({ ...incident, closed_by: "M. Okafor" }), "by M. Okafor");
  assert.equal(endWords({ ...incident, closed_at: null }), "open");
});
