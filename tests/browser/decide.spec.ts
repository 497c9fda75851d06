/* Deciding about repairs: nothing is approved by accident, twice, blindly, or without the right. */
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import type { Locator, Page, Request } from "playwright-core";
import { axe, eventually, LARGE, live, nodeId, pressAnyway, reads, repairId, says, saysNot, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
beforeEach(() => stage.steer({ reset: true }));
after(() => stage.close());

const base = `/clusters/${LARGE}`;
const FAILOVER = repairId(103);
const NODE = "gpu-17-03";

const dialog = (page: Page): Locator => page.getByRole("dialog");
const button = (within: Page | Locator, name: string | RegExp): Locator => within.getByRole("button", { name });

/** Verbs that were sent, without what only reads. */
async function sent(): Promise<string[]> {
  return (await stage.steer({})).log.filter((line) => line.startsWith("POST /repairs"));
}

async function opened(path = `${base}/repairs?dialog=approve&repair=${FAILOVER}`): Promise<Page> {
  const page = await stage.page(path);
  await says(dialog(page) as unknown as Page, /You approve exactly/);
  return page;
}

/** What the dialog's button carried, request by request. */
function decisions(page: Page): Request[] {
  const seen: Request[] = [];
  page.on("request", (request) => request.method() === "POST" && /\/approve$/.test(request.url()) && seen.push(request));
  return seen;
}

test("the key a opens the decision and never approves", async () => {
  const page = await stage.page(`${base}/repairs`);
  await says(page, "Waiting for you");
  await page.getByRole("heading", { name: "Waiting for you" }).waitFor();
  await page.locator("table.tbl").first().waitFor();
  await page.keyboard.press("a");
  await dialog(page).waitFor();
  await dialog(page).getByRole("heading", { level: 2 }).waitFor();
  /* on the title, not on a button */
  await page.waitForFunction(() => document.activeElement?.tagName === "H2");
  await page.keyboard.press("a");
  await page.keyboard.press("Enter");
  assert.deepEqual(await sent(), []);
  await stage.leave(page);
});

test("losing data asks for the node's name before it can be approved", async () => {
  const page = await opened();
  const approve = button(page, "Approve failover");
  assert.equal(await approve.getAttribute("aria-disabled"), "true");
  await says(page, `Type ${NODE} to approve.`);
  await pressAnyway(approve);
  await page.getByLabel(`Data is lost. Type ${NODE} to confirm`).fill("gpu-17-04");
  await pressAnyway(approve);
  assert.deepEqual(await sent(), []);
  await page.getByLabel(`Data is lost. Type ${NODE} to confirm`).fill(NODE);
  await approve.click();
  await says(page, "It has been approved. You may close this; it goes on.");
  assert.deepEqual(await sent(), [`POST /repairs/${FAILOVER}/approve`]);
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});

test("what it touches stands in one order, with consequences in words", async () => {
  const page = await opened();
  const rows = await dialog(page).getByRole("list", { name: "What it touches" }).getByRole("listitem").locator(".k").allTextContents();
  assert.deepEqual(rows.map((row) => row.replace(/,.*/, "")), ["Running job", "Data", "Capacity", "Failure domain", "Limits"]);
  await says(page, "Data on the old node's local disks stays behind");
  await says(page, /1,009 healthy nodes stay; 1,010 when it is back/);
  await says(page, /gpu_lost → failover/);
  await says(page, /was right 31 of 34 times in 90 days/);
  await stage.leave(page);
});

test("a second try of the same decision carries the same key, another comment another one", async () => {
  const page = await opened();
  const seen = decisions(page);
  await page.getByLabel(/to confirm/).fill(NODE);
  await stage.steer({ fail: { "/approve": 503 } });
  const key = async (n: number) => {
    await button(page, "Approve failover").click();
    assert.equal(await eventually(async () => seen.length, (count) => count >= n), n);
    await seen[n - 1]?.response();
    await page.waitForFunction(() => document.querySelector("dialog [role=alert]"));
    await page.waitForFunction(() => !document.querySelector("dialog .primary[aria-disabled]"));
    return seen[n - 1]?.headers()["idempotency-key"];
  };
  const first = await key(1);
  await says(page, /It is not known whether the approval arrived/);
  const second = await key(2);
  await page.getByLabel("Comment").fill("the second loss");
  const third = await key(3);
  assert.ok(first && first.length >= 16);
  assert.equal(first, second);
  assert.notEqual(first, third);
  await stage.leave(page);
});

const newPlan = { capacity: { healthy_before: 1001, healthy_after: 1001, nodes: 1024 }, loses: "All data on its local disks is lost." };

/** The plan of the failover changes; quietly: no event says so. */
async function changePlan(quietly: boolean): Promise<void> {
  const answer = await fetch(`${stage.base}/api/v1/repairs/${FAILOVER}`);
  const repair = (await answer.json()) as { plan: object };
  await stage.steer({
    repair: { id: FAILOVER, plan_hash: `beef${"0".repeat(60)}`, plan: { ...repair.plan, ...newPlan } },
    ...(quietly ? {} : { emit: { type: "repair.proposed", cluster_id: LARGE, repair_id: FAILOVER, node_id: nodeId(17, 3), summary: "Repair 103 has a new plan" } }),
  });
}

test("a plan that changed under the approval is shown before it can be approved", async () => {
  const page = await opened();
  const seen = decisions(page);
  await page.getByLabel(/to confirm/).fill(NODE);
  await changePlan(true);
  await button(page, "Approve failover").click();
  const review = button(page, "Review changes");
  await review.waitFor();
  assert.equal(seen.length, 1);
  const changed = await eventually(() => dialog(page).locator(".radius .changed .k").allTextContents(), (rows) => rows.length >= 2);
  assert.deepEqual(changed.map((row) => row.replace(/,.*/, "")), ["Data", "Capacity"]);
  /* the name is asked for again */
  await eventually(() => page.getByLabel(/to confirm/).inputValue(), (name) => name === "");
  assert.deepEqual(await axe(page), []);
  await review.click();
  await says(page, /You approve exactly plan beef/);
  /* what changed stays tinted */
  await eventually(() => dialog(page).locator(".radius .changed").count(), (count) => count === 2);
  await page.getByLabel(/to confirm/).fill(NODE);
  await button(page, "Approve failover").click();
  await says(page, "It has been approved. You may close this; it goes on.");
  await eventually(async () => seen.length, (count) => count === 2);
  assert.equal((seen[1]?.postDataJSON() as { plan_hash: string }).plan_hash.slice(0, 4), "beef");
  await stage.leave(page);
});

test("a plan that changes while it is read turns the button by itself", async () => {
  const page = await opened();
  await live(page);
  await page.getByLabel(/to confirm/).fill(NODE);
  await changePlan(false);
  await button(page, "Review changes").waitFor();
  await says(page, /The plan has changed while you read/);
  await eventually(() => button(page, "Approve failover").count(), (count) => count === 0);
  assert.deepEqual(await sent(), []);
  await stage.leave(page);
});

test("what somebody else decided takes the place of the question", async () => {
  const page = await opened();
  await live(page);
  await stage.steer({
    repair: { id: FAILOVER, state: "cordoning", decided_by: "S. Tanaka", decided_at: new Date().toISOString(), can_approve: false },
    emit: { type: "repair.approved", cluster_id: LARGE, repair_id: FAILOVER, summary: "approved" },
  });
  await dialog(page).getByText(/Approved by S. Tanaka/).waitFor();
  await eventually(() => button(page, "Approve failover").count(), (count) => count === 0);
  await stage.leave(page);
});

test("what nothing can carry out cannot be approved, and says so", async () => {
  const page = await opened(`/repairs?dialog=approve&repair=${repairId(106)}`);
  await page.getByLabel(/to confirm/).fill("gpu-29-07");
  await says(page, /Nothing here can carry out remove/);
  await pressAnyway(button(page, "Approve remove"));
  assert.deepEqual(await sent(), []);
  await stage.leave(page);
});

test("rejecting takes a comment into the history", async () => {
  const page = await opened();
  await button(page, "Reject…").click();
  await page.getByLabel("Comment").fill("cable is being changed");
  await button(page, "Reject failover").click();
  await says(page, /Rejected by Maya Okafor: cable is being changed/);
  await dialog(page).locator(".df").getByRole("button", { name: "Close" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await says(page, /Rejected by Maya Okafor: cable is being changed/);
  await saysNot(page.getByRole("region", { name: "Waiting for you" }), NODE);
  await stage.leave(page);
});

test("who may only look is told what is missing and sends nothing", async () => {
  await stage.steer({ roles: "viewer" });
  const page = await opened();
  await says(page, /Approving needs the permission repair.decide/);
  await page.getByLabel(/to confirm/).fill(NODE);
  await pressAnyway(button(page, "Approve failover"));
  await pressAnyway(button(page, "Reject…"));
  assert.equal(await button(page, "Reject failover").count(), 0);
  assert.deepEqual(await sent(), []);
  await stage.leave(page);
});

test("an approved repair is followed step by step and can be cancelled until it acts", async () => {
  const page = await opened();
  await page.getByLabel(/to confirm/).fill(NODE);
  await button(page, "Approve failover").click();
  await says(page, "It can be cancelled until the act starts.");
  await live(page);
  const at = new Date().toISOString();
  const steps = ["proposed", "approved", "cordoning", "draining", "acting"].map((state, i) => ({ n: i + 1, state, detail: state === "acting" ? "The order was taken." : "", actor: "muster", started_at: at, ended_at: state === "acting" ? null : at }));
  await stage.steer({ repair: { id: FAILOVER, state: "acting", steps }, emit: { type: "repair.step", cluster_id: LARGE, repair_id: FAILOVER, summary: "acting" } });
  await says(page, "The act has started: it cannot be cancelled any more.");
  await reads(dialog(page).locator("[aria-current=step] b"), /^Act, current$/);
  await eventually(() => button(page, "Cancel the repair").count(), (count) => count === 0);
  await stage.leave(page);
});

test("Escape closes, keeps the page, and gives the focus back to the button", async () => {
  const page = await stage.page(`${base}/repairs`);
  const review = button(page, `Review… Failover ${NODE}`);
  await review.click();
  await dialog(page).waitFor();
  await page.waitForURL(/dialog=approve&repair=/);
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
  await eventually(() => review.evaluate((element) => element === document.activeElement), (hasFocus) => hasFocus);
  await page.waitForURL((url) => !url.href.includes("dialog"));
  await stage.leave(page);
});

test("an outcome that nobody saw is settled with a comment", async () => {
  const page = await stage.page(`${base}/repairs`);
  await button(page, "Settle it… Reboot gpu-15-11").click();
  await says(page, /none seen: it is still the boot that had the fault/);
  const settle = dialog(page).getByRole("button", { name: /^Settle it/ });
  await pressAnyway(settle);
  assert.deepEqual(await sent(), []);
  await page.getByLabel("Failed").check();
  await page.getByLabel("Comment").fill("console shows the old kernel");
  await button(page, "Settle it as failed").click();
  await dialog(page).waitFor({ state: "detached" });
  assert.deepEqual(await sent(), [`POST /repairs/${repairId(109)}/settle`]);
  await says(page, /Failed at Act: Settled by Maya Okafor: console shows the old kernel/);
  await stage.leave(page);
});

test("a running repair is cancelled from the list", async () => {
  const page = await stage.page(`${base}/repairs`);
  await button(page, "Cancel… Reboot gpu-08-02").click();
  await page.getByLabel("Comment").fill("wrong node");
  await button(page, "Cancel the repair").click();
  await dialog(page).waitFor({ state: "detached" });
  await says(page, /Cancelled by Maya Okafor: wrong node/);
  await stage.leave(page);
});

test("the list changes by itself when a repair moves", async () => {
  const page = await stage.page(`${base}/repairs`);
  await says(page, "Waiting for you");
  await page.locator("main table.tbl").first().waitFor();
  await live(page);
  await stage.steer({ repair: { id: repairId(104), state: "approved", decided_by: "S. Tanaka", decided_at: new Date().toISOString() }, emit: { type: "repair.approved", cluster_id: LARGE, repair_id: repairId(104), summary: "approved" } });
  await page.getByRole("region", { name: "Running" }).getByText("gpu-22-14").waitFor();
  await stage.leave(page);
});

test("rows keep their place while the pointer is on them", async () => {
  const page = await stage.page(`${base}/repairs`);
  const waiting = page.getByRole("region", { name: "Waiting for you" });
  await live(page);
  await waiting.getByRole("cell", { name: /Remove gpu-29-07/ }).first().hover();
  await waiting.getByRole("cell", { name: /Failover gpu-22-14/ }).first().hover();
  await stage.steer({ repair: { id: repairId(106), state: "rejected", ended_at: new Date().toISOString() }, emit: { type: "repair.rejected", cluster_id: LARGE, repair_id: repairId(106), summary: "rejected" } });
  await fetch(`${stage.base}/api/v1/nodes/${nodeId(1, 1)}/repairs`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ action: "reboot", reason: "for the test" }) });
  await says(page, "1 new repair, show");
  assert.equal(await waiting.getByRole("row").count(), 4, "what is gone stays, what is new waits");
  await page.mouse.move(5, 5);
  await waiting.getByRole("row", { name: /gpu-01-01/ }).waitFor();
  await eventually(() => waiting.getByRole("row", { name: /gpu-29-07/ }).count(), (count) => count === 0);
  await stage.leave(page);
});

test("approvals of all clusters agree with the number in the rail", async () => {
  const page = await stage.page("/repairs");
  await says(page, /3 repairs wait for approval/);
  await reads(page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link", { name: /Approvals/ }), /^\D*3\D*$/);
  await button(page, /Review… Failover gpu-22-14/).click();
  await says(page, /You approve exactly/);
  await stage.leave(page);
});

test("the filter of the history is in the address", async () => {
  const page = await stage.page(`${base}/repairs`);
  await page.getByLabel("Filter the history").fill("outcome:failed");
  await page.keyboard.press("Enter");
  const history = page.getByRole("region", { name: "History" });
  await history.getByText("gpu-10-05").first().waitFor({ state: "detached" });
  await page.waitForURL(/q=outcome:failed/);
  await page.reload();
  await history.getByRole("table").getByText("gpu-04-22").waitFor();
  await eventually(() => history.getByRole("table").getByRole("row").count(), (count) => count === 2);
  await stage.leave(page);
});

test("a repair has an address with its plan, its evidence and every step", async () => {
  const page = await stage.page(`/repairs/${repairId(108)}`);
  await says(page, /Failed at Verify: The fault came back/);
  const steps = await eventually(() => page.getByRole("region", { name: "Steps" }).getByRole("listitem").locator("b").allTextContents(), (names) => names.length >= 8);
  assert.deepEqual(steps, ["Proposed", "Approved", "Cordon", "Drain", "Act", "Rejoin", "Verify", "Failed"]);
  await page.getByRole("region", { name: "Evidence lines" }).waitFor();
  await stage.leave(page);
});

test("when repairs cannot be read the rest of the page stands", async () => {
  await stage.steer({ fail: { [`${LARGE}/repairs`]: 503 } });
  const page = await stage.page(`${base}/repairs`);
  await says(page, "The open repairs could not be loaded.");
  await says(page, /1,009 of 1,024 nodes healthy/);
  await stage.steer({ fail: {} });
  /* pressed from within: the page tries again by itself, and may have taken the button away meanwhile */
  await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent === "Try now")?.click());
  await page.getByRole("region", { name: "Waiting for you" }).waitFor();
  await stage.leave(page);
});

test("who may not see repairs is told so", async () => {
  await stage.steer({ fail: { "/repairs": 403 } });
  const page = await stage.page("/repairs");
  await says(page, /You may not see approvals/);
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});
