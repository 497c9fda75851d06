/* Policies with their replay, stops and breakers on every page, and several decisions at once. */
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import type { Page, Request } from "playwright-core";
import { CALM, eventually, LARGE, looksRight, nodeId, pressAnyway, repairId, says, saysNot, Stage, test } from "./support";

const POLICY = "0198f3c2-0011-7000-8000-000000000001";
const EDITOR = `/settings/policies/${POLICY}`;

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());
beforeEach(async () => {
  await stage.steer({ reset: true });
});

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });
const dialog = (page: Page) => page.getByRole("dialog");

/** What the page changes, as it sends it. */
function changes(page: Page): Request[] {
  const seen: Request[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET" && request.url().includes("/api/v1/")) {
      seen.push(request);
    }
  });
  return seen;
}

const OPEN = { reach: "cluster", id: CALM, opened_at: "2026-12-01T12:00:00Z", open_reason: "61 of 256 nodes became unhealthy within 300 s." };

test("an open breaker stands above every page, and a person closes it with a comment", async () => {
  await stage.steer({ guard: OPEN });
  const page = await stage.page("/clusters");
  const seen = changes(page);
  await says(page, /The breaker of fra-h100-b is open/);
  await page.goto(`${stage.base}/settings/tokens`);
  await says(page, /61 of 256 nodes became unhealthy/);
  await button(page, "Reset breaker…").click();
  await says(page, /Nothing is replayed/);
  const reset = dialog(page).getByRole("button", { name: "Reset breaker", exact: true });
  await pressAnyway(reset);
  assert.equal(seen.length, 0);
  await page.getByLabel("Reason").fill("the switch is replaced");
  await reset.click();
  await dialog(page).waitFor({ state: "detached" });
  await saysNot(page, /The breaker of fra-h100-b is open/);
  assert.deepEqual(seen.map((one) => one.postDataJSON() as object), [{ comment: "the switch is replaced" }]);
  await stage.leave(page);
});

test("the breaker of the whole installation is closed at its own address", async () => {
  await stage.steer({ guard: { reach: "platform", opened_at: "2026-12-01T12:00:00Z", open_reason: "Automatic repairs failed in 3 organizations." } });
  const page = await stage.page("/settings/policies/stops");
  const seen = changes(page);
  await says(page, /The breaker of the whole installation is open/);
  await button(page, "Reset breaker… of the whole installation").click();
  await page.getByLabel("Reason").fill("the driver was rolled back");
  await dialog(page).getByRole("button", { name: "Reset breaker", exact: true }).click();
  await saysNot(page, /The breaker of the whole installation is open/);
  assert.deepEqual(seen.map((one) => new URL(one.url()).pathname), ["/api/v1/platform/breaker/reset"]);
  await stage.leave(page);
});

test("a stop of a cluster is set with its reason, stands everywhere, and is lifted", async () => {
  const page = await stage.page(`/clusters/${LARGE}/repairs`);
  await button(page, "Stop repairs…").click();
  await says(page, /2 repairs have begun and go on/);
  await page.getByLabel("Reason").fill("a training run ends tonight");
  await dialog(page).getByRole("button", { name: "Stop repairs", exact: true }).click();
  await says(page, "Repairs of fra-h100-a are stopped.");
  await page.goto(`${stage.base}/events`);
  await says(page, /“a training run ends tonight”/);
  await button(page, "Allow repairs…").click();
  await dialog(page).getByRole("button", { name: "Allow repairs", exact: true }).click();
  await saysNot(page, "Repairs of fra-h100-a are stopped.");
  await stage.leave(page);
});

test("a policy is saved only after its replay was seen, and sends only what changed", async () => {
  const page = await stage.page(EDITOR);
  const seen = changes(page);
  await page.getByLabel("Mode of gpu_gsp").selectOption("automatic");
  await says(page, /1 change/);
  await pressAnyway(button(page, "Save version 13"));
  assert.equal(seen.length, 0);
  await button(page, "Replay 30 days").click();
  await says(page, /would have rebooted 4 nodes, 1 with a running job/);
  await says(page, "gpu-08-14");
  await button(page, "Save version 13").click();
  await says(page, /, version 13/);
  const sent = seen.at(-1);
  assert.equal(sent?.method(), "PATCH");
  assert.equal(sent?.headers()["if-match"], '"12"');
  assert.deepEqual(sent?.postDataJSON(), { automatic: ["gpu_ecc", "gpu_xid:119", "gpu_gsp"] });
  await stage.leave(page);
});

test("what cannot be a setting is said at its field, and neither replayed nor saved", async () => {
  const page = await stage.page(EDITOR);
  const seen = changes(page);
  await page.getByLabel(/^Repairs at once, at most/).fill("2000");
  await says(page, "Allowed are 0 to 1000.");
  await page.getByLabel("Windows").fill("mon-fry 22:00-06:00");
  await says(page, /Line 1 cannot be read/);
  await says(page, "Fix 2 fields first.");
  await pressAnyway(button(page, "Replay 30 days"));
  await button(page, "Discard").or(page.getByLabel(/^Repairs at once/)).first().waitFor();
  assert.equal(seen.length, 0);
  await stage.leave(page);
});

test("several proposals are approved together once their number was typed, each by its own plan", async () => {
  const page = await stage.page("/repairs");
  const seen = changes(page);
  await page.getByLabel("Select Failover gpu-17-03").check();
  await page.getByLabel("Select Failover gpu-22-14").check();
  await button(page, "Approve 2 repairs…").click();
  const approve = dialog(page).getByRole("button", { name: "Approve 2 repairs" });
  await page.getByLabel(/the number of repairs/).fill("3");
  await pressAnyway(approve);
  assert.equal(seen.length, 0);
  await page.getByLabel(/the number of repairs/).fill("2");
  await approve.click();
  await eventually(() => dialog(page).getByText("approved", { exact: true }).count(), (count) => count === 2);
  const hashes = seen.map((one) => (one.postDataJSON() as { plan_hash: string }).plan_hash);
  assert.equal(new Set(hashes).size, 2);
  await stage.leave(page);
});

test("another action shows its plan first, needs a comment, and takes the place of the proposal", async () => {
  const page = await stage.page(`/repairs?dialog=approve&repair=${repairId(103)}`);
  const seen = changes(page);
  await button(page, "Another action…").click();
  await dialog(page).getByRole("radio", { name: /^Reboot/ }).check();
  await says(page, /of reboot, not proposed yet/);
  const ask = button(page, "Ask for reboot instead");
  await pressAnyway(ask);
  await page.getByLabel("Comment").fill("the card was reseated");
  await ask.click();
  await dialog(page).getByRole("heading", { name: "Reboot gpu-17-03" }).waitFor();
  const paths = seen.map((one) => new URL(one.url()).pathname.replace("/api/v1", ""));
  assert.deepEqual(paths.slice(-2), [`/repairs/${repairId(103)}/reject`, `/nodes/${nodeId(17, 3)}/repairs`]);
  await stage.leave(page);
});

test("the list of policies, the editor and the stops look right in both themes and widths", async () => {
  await stage.steer({ guard: [OPEN, { reach: "node", id: nodeId(1, 6), stopped_at: "2026-12-01T12:00:00Z", stopped_by: "Johan Lindqvist", stop_comment: "PDU swap" }] });
  const page = await stage.page("/settings/policies");
  await says(page, "fra-h100-b");
  await looksRight(page);
  await page.goto(`${stage.base}${EDITOR}`);
  await button(page, "Replay 30 days").click();
  await says(page, /would have/);
  await looksRight(page);
  await page.goto(`${stage.base}/settings/policies/stops`);
  await says(page, "“PDU swap”");
  await looksRight(page);
  await stage.leave(page);
});

test("a node says what its scheduler has there, and a repair is asked for with its plan in view", async () => {
  const page = await stage.page(`/nodes/${nodeId(17, 2)}`);
  const seen = changes(page);
  await page.getByRole("region", { name: "Slurm" }).getByText("finetune-8b").waitFor();
  await button(page, "Request a repair…").click();
  await says(page, /1 job on this node ends/);
  await says(page, /of reboot, not proposed yet/);
  await pressAnyway(button(page, "Request reboot"));
  await page.getByLabel("Why").fill("kernel of June");
  await button(page, "Request reboot").click();
  await says(page, /You approve exactly/);
  assert.equal(seen.filter((one) => !one.url().includes("dry_run")).length, 1);
  await page.goto(`${stage.base}/nodes/${nodeId(17, 2)}`);
  await button(page, "Stop repairs of this node…").click();
  await page.getByLabel("Reason").fill("PDU swap");
  await dialog(page).getByRole("button", { name: "Stop repairs", exact: true }).click();
  await says(page, "Repairs of gpu-17-02 are stopped.");
  await stage.leave(page);
});

test("figures say what faults cost, and the report of a span is a file", async () => {
  const page = await stage.page(`/clusters/${LARGE}/repairs?view=figures`);
  await says(page, /771 GPU-hours/);
  await looksRight(page);
  await page.getByLabel("Until").fill("yesterday");
  await says(page, "Write both moments as 2026-12-01 14:00.");
  await page.getByLabel("Until").fill("2037-01-01");
  const [file] = await Promise.all([page.waitForEvent("download"), button(page, "Download HTML").click()]);
  assert.match(file.suggestedFilename(), /^incidents-fra-h100-a-.*\.html$/);
  await stage.leave(page);
});
