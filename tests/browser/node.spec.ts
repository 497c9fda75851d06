/* The page of a node and the checks of a cluster: what they say, what can be done, what they keep when a part fails. */
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import type { Page } from "playwright-core";
import { eventually, LARGE, live, LOCAL, nodeId, pressAnyway, reads, says, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
beforeEach(() => stage.steer({ reset: true }));
after(() => stage.close());

const base = `/clusters/${LARGE}`;
const BAD = nodeId(17, 3);
const bad = `${base}/nodes/${BAD}`;

/** What was changed; a look at a plan changes nothing. */
async function posted(): Promise<string[]> {
  return (await stage.steer({})).log.filter((line) => /^(?:POST|PATCH)/.test(line) && !line.includes("dry_run=true"));
}

const opened = async (path = bad): Promise<Page> => {
  const page = await stage.page(path);
  await page.getByRole("region", { name: "Timeline" }).waitFor();
  return page;
};

test("a link that knows only the node leads to its address below the cluster", async () => {
  const page = await opened(`/nodes/${BAD}?range=7d`);
  await page.waitForURL(`**${bad}?range=7d`);
  await says(page, /last 7 days/);
  await page.getByRole("navigation", { name: "Cluster" }).getByRole("link", { name: /Nodes/, exact: false }).waitFor();
  await stage.leave(page);
});

test("the sentence says state, age and reason", async () => {
  const page = await opened();
  await reads(page.getByRole("heading", { level: 1 }), /gpu-17-03 unhealthy for \d min.*GPU 5 off the bus/);
  await stage.leave(page);
});

test("a lost GPU keeps its row and its serial", async () => {
  const page = await opened();
  const row = page.getByRole("region", { name: "GPUs" }).getByRole("row", { name: /Lost/ });
  /* with the day, where that was before midnight */
  await reads(row, /^5Lost16534230\d+0000:b7:00\.0not on the bus since (?:\w{3} )?\d\d:\d\d$/);
  await says(page, /expected 8, on the bus 7/);
  await stage.leave(page);
});

test("the lanes are said in words too", async () => {
  const page = await opened();
  const lane = (name: string, says: RegExp) => eventually(() => page.getByRole("list", { name, exact: true }).getByRole("listitem").allTextContents(), (items) => says.test(items.join("\n")));
  await lane("State", /^Healthy from.*\nUnhealthy from .* until now: GPU 5 off the bus/);
  await lane("Faults", /GPU 5 off the bus/);
  await lane("Repairs", /Failover proposed/);
  await lane("GPU busy", /between .* and .*, at the end/);
  await stage.leave(page);
});

test("the range of time is in the address, and Earlier stops the clock", async () => {
  const page = await opened();
  await page.getByRole("button", { name: "24 h" }).click();
  await page.waitForURL(/range=24h/);
  await page.getByRole("button", { name: "Earlier" }).click();
  await page.waitForURL(/until=/);
  await says(page, /24 h until/);
  await page.reload();
  await says(page, /24 h until/);
  await page.getByRole("button", { name: "Later" }).click();
  await says(page, /last 24 h/);
  await stage.leave(page);
});

test("evidence shows the raw lines, those that opened the incident marked", async () => {
  const page = await opened();
  const lines = page.getByRole("region", { name: /Evidence of incident \d+, check gpu_lost/ });
  await lines.waitFor();
  await eventually(() => lines.locator(".opened").count(), (count) => count === 2);
  assert.match((await lines.locator(".opened").first().textContent()) ?? "", /GPU has fallen off the bus\. \(opened the incident\)/);
  await stage.leave(page);
});

test("a node is cordoned with a comment, and the page says so", async () => {
  const page = await opened(`${base}/nodes/${nodeId(1, 1)}`);
  await page.getByRole("button", { name: "Cordon…" }).click();
  await page.getByLabel("Comment").fill("new PDU");
  await page.getByRole("button", { name: "Cordon gpu-01-01" }).click();
  await says(page, "cordoned: takes no new work");
  await page.getByRole("button", { name: "Uncordon…" }).waitFor();
  assert.deepEqual(await posted(), [`POST /nodes/${nodeId(1, 1)}/cordon`]);
  await stage.leave(page);
});

test("a repair that is asked for is shown as a plan to decide on", async () => {
  const page = await opened(`${base}/nodes/${nodeId(4, 22)}`);
  await page.getByRole("button", { name: "Request a repair…" }).click();
  const ask = page.getByRole("button", { name: "Request reset GPU" });
  await pressAnyway(ask);
  assert.deepEqual(await posted(), [], "not without a reason");
  await page.getByLabel("Reboot").check();
  await page.getByLabel("Why").fill("second time this week");
  await page.getByRole("button", { name: "Request reboot" }).click();
  await says(page, /You approve exactly plan/);
  await page.getByRole("dialog").getByText("second time this week").first().waitFor();
  assert.deepEqual(await posted(), [`POST /nodes/${nodeId(4, 22)}/repairs`]);
  await stage.leave(page);
});

test("a node with an open repair does not get a second one", async () => {
  const page = await opened();
  await page.getByRole("button", { name: "Request a repair…" }).click();
  await says(page, /Repair 103 of this node is still open \(proposed\)/);
  await stage.leave(page);
});

test("a problem that a person reports becomes an incident", async () => {
  const page = await opened(`${base}/nodes/${nodeId(1, 1)}`);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("button", { name: "Report a problem…" }).click();
  await page.getByLabel("What is wrong").fill("fan 3 rattles");
  await page.getByLabel("The node must not be used: make it unhealthy").check();
  await page.getByRole("button", { name: "Report the problem" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: /gpu-01-01 unhealthy for .*fan 3 rattles/ }).waitFor();
  await says(page, /Clears when a person closes it/);
  await stage.leave(page);
});

test("an incident is closed with a reason", async () => {
  const page = await opened();
  await page.getByRole("button", { name: /Close incident 203/ }).click();
  await page.getByLabel("Reason").fill("cable reseated");
  await page.getByRole("button", { name: "Close incident 203", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("2 open incidents").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Incidents" }).getByText("by Maya Okafor").first().waitFor();
  await stage.leave(page);
});

test("auto-repair is switched against the version that is shown", async () => {
  const page = await opened();
  await stage.steer({ node: { id: BAD, version: 9 } });
  await page.getByRole("button", { name: "Turn off auto-repair" }).click();
  await says(page, /Somebody changed the node meanwhile/);
  await page.getByRole("button", { name: "Turn off auto-repair" }).click();
  await says(page, "off for this node");
  await page.getByRole("button", { name: "Turn on auto-repair" }).waitFor();
  await stage.leave(page);
});

test("who may only look sees the actions and why they are off", async () => {
  await stage.steer({ roles: "viewer" });
  const page = await opened();
  await says(page, /Changing nodes needs the permission node.write/);
  for (const name of ["Cordon…", "Request a repair…", "Turn off auto-repair"]) {
    await eventually(() => page.getByRole("button", { name }).getAttribute("aria-disabled"), (disabled) => disabled === "true");
  }
  await pressAnyway(page.getByRole("button", { name: "Cordon…" }));
  assert.equal(await page.getByRole("dialog").count(), 0);
  await stage.leave(page);
});

test("a change on the server is on the page without a reload", async () => {
  const page = await opened(`${base}/nodes/${nodeId(1, 1)}`);
  await live(page);
  await stage.steer({ node: { id: nodeId(1, 1), state: "unhealthy", reason: "Fan failed", state_since: new Date().toISOString() }, emit: { type: "node.state_changed", severity: "critical", cluster_id: LARGE, node_id: nodeId(1, 1), node_name: "gpu-01-01", summary: "gpu-01-01 is unhealthy: Fan failed", data: { from: "healthy", to: "unhealthy" } } });
  await page.getByRole("heading", { level: 1, name: /unhealthy for .*Fan failed/ }).waitFor();
  await page.getByRole("region", { name: "Events" }).getByText("is unhealthy: Fan failed").first().waitFor();
  await stage.leave(page);
});

test("a part that cannot be read leaves the others alone", async () => {
  await stage.steer({ fail: { "/history": 503, "/incidents": 503 } });
  const page = await opened();
  await says(page, /could not be loaded: The database did not answer/);
  await says(page, "The incidents of this node could not be loaded.");
  await page.getByRole("region", { name: "GPUs" }).getByText("1653423005145").first().waitFor();
  await says(page, "Recommended: failover");
  await stage.leave(page);
});

test("a node that does not exist, or is another org's, is said to be missing", async () => {
  const page = await stage.page(`${base}/nodes/0198f3c2-0004-7000-8000-0000000fffff`);
  await says(page, "There is no such page");
  await stage.leave(page);
});

test("checks: the matrix says who fails now, and the filter is in the address", async () => {
  const page = await stage.page(`${base}/checks`);
  const row = page.getByRole("row", { name: /^GPU off the bus/ });
  await row.waitFor();
  await eventually(() => row.getByRole("slider").getAttribute("aria-label"), (label) => /^GPU off the bus: failed .* to now$/.test(label ?? ""));
  await reads(row, /99\.\d+ %gpu-17-03/);
  await row.getByRole("button", { name: "GPU off the bus" }).click();
  await page.waitForURL(/q=check:gpu_lost/);
  await page.getByRole("row", { name: /^Clock/ }).waitFor({ state: "detached" });
  const incidents = page.getByRole("region", { name: "Incidents" }).getByRole("table");
  await incidents.getByText("gpu-17-03").waitFor();
  await eventually(() => incidents.getByRole("row").count(), (count) => count === 2);
  await stage.leave(page);
});

test("checks: a table says the same in words", async () => {
  const page = await stage.page(`${base}/checks`);
  await page.getByRole("button", { name: "As a table" }).click();
  await page.waitForURL(/as=table/);
  const row = page.getByRole("table").first().getByRole("row", { name: /^Clock/ });
  await reads(row, /^Clock99\.\d+ %never.+ to .+none$/);
  await stage.leave(page);
});

test("checks: only those with trouble, and incidents that are open", async () => {
  const page = await stage.page(`${base}/checks?show=trouble&q=is:open+result:warning`);
  await page.getByRole("row", { name: /GPU thermal slowdown/ }).first().waitFor();
  await eventually(() => page.getByRole("row", { name: /Kernel panic/ }).count(), (count) => count === 0);
  const words = await eventually(() => page.getByRole("region", { name: "Incidents" }).getByRole("row").allTextContents(), (rows) => rows.length > 1);
  assert.ok(words.slice(1).every((text) => text.startsWith("Warning") && text.includes("open")), words.join("\n"));
  await stage.leave(page);
});

test("checks without a source are named once, not drawn as failures", async () => {
  const page = await stage.page(`/clusters/${LOCAL}/checks`);
  await says(page, /14 checks without data in this time/);
  assert.equal(await page.getByRole("row", { name: /GPU off the bus/ }).count(), 0);
  await stage.leave(page);
});

test("there is no control for active runs", async () => {
  const page = await stage.page(`${base}/checks`);
  await page.getByRole("row", { name: /Clock/ }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Run|Schedule/ }).count(), 0);
  await stage.leave(page);
});
