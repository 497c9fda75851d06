/* What each view shows and does, with the stand-in's answers. */
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import type { Page } from "playwright-core";
import { DEMO_ORG, EMPTY, eventually, LARGE, live, LOCAL, nodeId, reads, says, saysNot, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true }));

const base = `/clusters/${LARGE}`;
const number = (text: string | null) => Number((text ?? "").replace(/[^0-9]/g, ""));

async function open(path: string, shows: string | RegExp, size?: Parameters<Stage["page"]>[1]): Promise<Page> {
  const page = await stage.page(path, size);
  await says(page, shows);
  return page;
}

test("sentence, bar, tab, list and grid agree on the counts", async () => {
  const page = await open(base, "Worst nodes");
  const sum = (texts: string[]) => texts.map(number).reduce((a, b) => a + b, 0);
  await reads(page.locator("h1"), /1,009 of 1,024 nodes healthy/);
  await eventually(() => page.locator(".counts li:not(.also) b").allTextContents(), (texts) => sum(texts) === 1024);
  await eventually(() => page.getByRole("link", { name: /^Nodes/ }).textContent(), (text) => number(text) === 1024);
  await page.getByRole("link", { name: /Unhealthy/ }).click();
  await says(page, "5 of 1,024 nodes");
  await eventually(() => page.locator("table.nodes tbody tr:not(.spacer)").count(), (count) => count === 5);
  await page.getByRole("group", { name: "View" }).getByRole("link", { name: "Grid" }).click();
  await says(page, "5 of 1,024 nodes match");
  await eventually(() => page.getByRole("group", { name: /Legend/ }).locator("b").allTextContents(), (texts) => sum(texts) === 1024);
  await stage.leave(page);
});

test("the overview asks at most six times, once for the stream", async () => {
  await stage.steer({ reset: true });
  const page = await open(base, "Worst nodes");
  await says(page, /All \d+ events/);
  const { log } = await stage.steer({});
  assert.ok(log.length <= 6, log.join("\n"));
  assert.equal(log.filter((line) => line.includes("/events/stream")).length, 1);
  await stage.leave(page);
});

test("one tab reads the stream for all, and both hear of an event", async () => {
  const one = await open(base, "Worst nodes");
  const two = await open(`/clusters/${LOCAL}`, "Every node is healthy");
  await live(one);
  await live(two);
  await eventually(async () => (await stage.steer({})).streams, (count) => count === 1);
  await stage.steer({ node: { id: nodeId(1, 1), state: "unhealthy", reason: "Fan 3 stopped", state_since: new Date(0).toISOString() }, emit: { type: "node.state_changed", cluster_id: LARGE, node_id: nodeId(1, 1), node_name: "gpu-01-01", severity: "critical", summary: "gpu-01-01 healthy → unhealthy: Fan 3 stopped" } });
  await one.bringToFront();
  await says(one, "Fan 3 stopped");
  await stage.leave(two);
  await stage.leave(one);
});

test("only the rows in view are drawn, and scrolling reads on", async () => {
  const page = await open(`${base}/nodes`, "gpu-17-03");
  assert.ok((await page.locator("table.nodes tbody tr").count()) < 60);
  const last = page.getByText("gpu-32-31", { exact: true });
  for (const end = Date.now() + 60_000; Date.now() < end && !(await last.isVisible()); ) {
    await page.mouse.wheel(0, 4000);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn)));
  }
  await says(page, "gpu-32-31");
  assert.ok((await page.locator("table.nodes tbody tr").count()) < 60);
  assert.equal(await page.locator("table.nodes").getAttribute("aria-rowcount"), "1025");
  await stage.leave(page);
});

test("a filter typed in becomes chips, stands in the address and can be taken out", async () => {
  const page = await open(`${base}/nodes`, "gpu-17-03");
  await page.getByLabel("Filter nodes").fill("state:unhealthy rack:r17");
  await page.keyboard.press("Enter");
  await says(page, "1 of 1,024 nodes");
  await page.waitForURL(/q=state:unhealthy(?:\+|%20)rack:r17/);
  await page.getByRole("button", { name: "Remove filter rack:r17" }).click();
  await says(page, "5 of 1,024 nodes");
  await page.reload();
  await says(page, "5 of 1,024 nodes");
  await stage.leave(page);
});

test("a filter that cannot be read offers the fix", async () => {
  const page = await open(`${base}/nodes?q=state:unhealty`, /“unhealty” is not a value of state/);
  await page.getByRole("button", { name: "state:unhealthy", exact: true }).click();
  await says(page, "5 of 1,024 nodes");
  await stage.leave(page);
});

test("what the server cannot filter is filtered here over all pages", async () => {
  const page = await open(`${base}/nodes?q=util<20+leaf:leaf-03`, "gpu-06-01");
  await says(page, /^32 of 1,024|32 of 1,024/);
  await stage.leave(page);
});

test("the list sorts by name both ways and by need", async () => {
  const page = await open(`${base}/nodes`, "gpu-17-03");
  const first = () => page.locator("table.nodes a.name").first().textContent();
  await page.getByRole("button", { name: "Node", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("table.nodes a.name")?.textContent === "gpu-01-01");
  await page.getByRole("button", { name: /^Node/ }).click();
  await page.waitForFunction(() => document.querySelector("table.nodes a.name")?.textContent === "gpu-32-32");
  await page.getByRole("button", { name: /Why/ }).click();
  await page.waitForFunction(() => document.querySelector("table.nodes a.name")?.textContent === "gpu-04-22");
  assert.equal(await first(), "gpu-04-22");
  await stage.leave(page);
});

test("rows keep their place under the pointer; what is new waits and is counted", async () => {
  const page = await open(`${base}/nodes?q=state:unhealthy`, "gpu-17-03");
  await live(page);
  await page.locator("table.nodes tbody").hover();
  await stage.steer({ node: { id: nodeId(1, 1), state: "unhealthy", reason: "Fan 3 stopped" }, emit: { type: "node.state_changed", cluster_id: LARGE, node_id: nodeId(1, 1), node_name: "gpu-01-01", summary: "gpu-01-01 unhealthy" } });
  await says(page, "1 new, show");
  assert.equal(await page.locator("table.nodes a.name").first().textContent(), "gpu-04-22");
  await page.getByRole("button", { name: "1 new, show" }).click();
  await page.waitForFunction(() => document.querySelector("table.nodes a.name")?.textContent === "gpu-01-01");
  await stage.leave(page);
});

test("a selection is kept from list to grid, and cordons node by node", async () => {
  const page = await open(`${base}/nodes?q=state:unhealthy`, "gpu-17-03");
  await page.getByLabel("Select gpu-17-03").check();
  await page.getByLabel("Select gpu-22-14").check();
  await page.waitForURL(/sel=gpu-17-03,gpu-22-14/);
  await page.getByRole("group", { name: "View" }).getByRole("link", { name: "Grid" }).click();
  await says(page, "2 nodes selected");
  await page.getByRole("button", { name: /^Cordon 2 nodes/ }).click();
  await page.getByLabel("Comment").fill("PDU swap");
  await page.getByRole("dialog").getByRole("button", { name: "Cordon 2 nodes" }).click();
  await page.getByRole("list", { name: "Result by node" }).getByText("cordoned").nth(1).waitFor();
  await page.getByRole("dialog").locator(".df").getByRole("button", { name: "Close" }).click();
  const { log } = await stage.steer({});
  assert.equal(log.filter((line) => line.endsWith("/cordon")).length, 2);
  await stage.leave(page);
});

test("shift selects a range", async () => {
  const page = await open(`${base}/nodes?q=state:unhealthy`, "gpu-17-03");
  await page.getByLabel("Select gpu-04-22").click();
  await page.getByLabel("Select gpu-29-07").click({ modifiers: ["Shift"] });
  await says(page, "5 nodes selected");
  await stage.leave(page);
});

test("the grid is one tab stop: arrows, n, p, Space, Enter", async () => {
  const page = await open(`${base}/nodes?view=grid`, "Healthy, warning");
  const cell = page.locator("#cell");
  await page.getByRole("grid").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Control+Home");
  await reads(cell, /^gpu-01-01, healthy/);
  await page.keyboard.press("ArrowRight");
  await reads(cell, /^gpu-01-02/);
  await page.keyboard.press("ArrowDown");
  await reads(cell, /^gpu-01-06/);
  await page.keyboard.press("n");
  await reads(cell, /repairing|paused|unhealthy/);
  const bad = await cell.textContent();
  await page.keyboard.press("n");
  await eventually(() => cell.textContent(), (text) => text !== bad);
  await page.keyboard.press("p");
  await eventually(() => cell.textContent(), (text) => text === bad);
  await page.keyboard.press("Space");
  await says(page, "1 node selected");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/nodes\/0198f3c2-0004/);
  await stage.leave(page);
});

test("the grid follows the stream without reading the ids again, and still opens nodes", async () => {
  const page = await open(`${base}/nodes?view=grid`, "Healthy, warning");
  await says(page, "Live");
  await stage.steer({ node: { id: nodeId(1, 1), state: "unhealthy", reason: "Fan 3 stopped" }, emit: { type: "node.state_changed", cluster_id: LARGE, node_id: nodeId(1, 1), node_name: "gpu-01-01", summary: "gpu-01-01 unhealthy" } });
  await page.getByRole("button", { name: /^Unhealthy 6/ }).waitFor();
  const { log } = await stage.steer({});
  assert.equal(log.filter((line) => line.includes("ids=true")).length, 1);
  await page.getByRole("grid").focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname.endsWith(nodeId(1, 1)));
  await stage.leave(page);
});

test("the hover card says why, and stays inside the page", async () => {
  const page = await open(`${base}/nodes?view=grid&q=state:unhealthy`, "5 of 1,024 nodes match");
  await page.getByRole("grid").focus();
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("n");
    const card = page.locator("#hover");
    await card.getByText(/off the bus|rail 5|uncorrectable|read-only|row remap/).waitFor();
    await eventually(() => card.boundingBox(), (box) => box !== null && box.x >= 0 && box.x + box.width <= 1280);
  }
  await stage.leave(page);
});

test("the legend is the filter", async () => {
  const page = await open(`${base}/nodes?view=grid`, "Healthy, warning");
  await page.getByRole("button", { name: /^Paused/ }).click();
  await says(page, "2 of 1,024 nodes match");
  await page.waitForURL(/q=state:paused/);
  await page.getByRole("button", { name: /^Paused/ }).click();
  await page.waitForURL((url) => !url.search.includes("paused"));
  await stage.leave(page);
});

test("the slider shows the past and turns actions off", async () => {
  const page = await open(`${base}/nodes?view=grid&sel=gpu-17-03`, "1 node selected");
  const slider = page.getByRole("slider", { name: "As of" });
  await slider.focus();
  for (let i = 0; i < 8; i++) {
    await page.keyboard.press("ArrowLeft");
  }
  await says(page, "You look at the past");
  await page.waitForURL(/at=20/);
  await eventually(() => page.getByRole("button", { name: /^Cordon/ }).getAttribute("aria-disabled"), (disabled) => disabled === "true");
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText("You look at the past").waitFor({ state: "detached" });
  await stage.leave(page);
});

test("a new route moves the focus to its heading, and the title says where one is", async () => {
  const page = await open(base, "Worst nodes");
  await eventually(() => page.title(), (title) => title === "fra-h100-a · Muster");
  await page.getByRole("link", { name: "Events", exact: true }).last().click();
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  await eventually(() => page.title(), (title) => title === "Events · fra-h100-a · Muster");
  await page.goBack();
  await says(page, "Worst nodes");
  await stage.leave(page);
});

test("keys go from tab to tab, and can be turned off", async () => {
  const page = await open(base, "Worst nodes");
  /* the second key counts for a moment only: once more where the machine let that pass */
  await eventually(
    async () => {
      await page.keyboard.press("g");
      await page.keyboard.press("n");
      return page.url();
    },
    (url) => url.endsWith("/nodes"),
  );
  await page.keyboard.press("?");
  await page.getByLabel("Single-letter shortcuts are on").uncheck();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.waitForURL(/\/nodes$/);
  await page.evaluate(() => localStorage.clear());
  await stage.leave(page);
});

test("events are found by type, and by the bar that was pressed", async () => {
  const page = await open(`${base}/events`, "gpu-17-03");
  await page.getByLabel("Filter events").fill("type:repair.proposed");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].every((row) => row.textContent?.includes("repair proposed")));
  await page.goto(`${stage.base}${base}`);
  await page.getByRole("slider", { name: /events since/ }).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.waitForURL(/since=.*until=/);
  await says(page, /from /);
  await stage.leave(page);
});

test("older events follow on demand", async () => {
  const page = await open(`${base}/events`, "gpu-17-03");
  const before = await page.locator("tbody tr").count();
  await page.getByRole("button", { name: "Show older events" }).click();
  await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length > n, before);
  await stage.leave(page);
});

test("a cluster without nodes shows the command with a fresh token, and changes by itself", async () => {
  const page = await open(`/clusters/${EMPTY}`, /muster-agent enroll --join_token/);
  await reads(page.locator("pre"), new RegExp(`server_url = ${stage.base}' > /etc/muster/agent\\.conf\\nmuster-agent enroll --join_token mjt_00`));
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByText(/--join_token mjt_01/).waitFor();
  await stage.leave(page);
});

test("a new cluster: the server's complaint stands at its field, then the cluster opens", async () => {
  const page = await open("/clusters/new", "Give it a name first.");
  await page.getByLabel("Name").fill("Big One");
  await page.getByRole("button", { name: /Add cluster/ }).click();
  await says(page, /must start with a letter/);
  await page.getByLabel("Name").fill("fra-b200");
  await page.getByRole("button", { name: "Add cluster fra-b200" }).click();
  await says(page, "No node has joined yet");
  await stage.leave(page);
});

test("switching the organization shows its clusters only", async () => {
  const page = await open("/clusters", /1,266 of 1,287/);
  await page.getByRole("button", { name: /Halden AI.*switch to another organization/ }).click();
  await page.getByRole("list", { name: "Organizations" }).getByRole("button", { name: /Demo fleet/ }).click();
  await says(page, "ten-thousand");
  await saysNot(page, "fra-h100-a");
  await stage.leave(page);
  await stage.steer({ org: DEMO_ORG.replace(/2$/, "1") });
});

test("a link signs in once, on a press; a used one says so", async () => {
  await stage.steer({ signedIn: false });
  const page = await stage.page("/sign-in#token=used");
  await page.getByRole("button", { name: "Sign in" }).click();
  await says(page, "This link has expired");
  await page.goto("about:blank");
  await page.goto(`${stage.base}/sign-in#token=good`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await says(page, /1,266 of 1,287/);
  await page.waitForURL((url) => !url.href.includes("token"));
  await page.getByRole("button", { name: /Maya Okafor/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await says(page, "You are signed out");
  await page.goto(`${stage.base}/clusters`);
  await says(page, "You are signed out");
  await stage.leave(page);
});

test("who may not, sees the control with the reason", async () => {
  await stage.steer({ roles: "viewer" });
  const page = await open(`/clusters/${EMPTY}`, "You may not make a join token.");
  await page.goto(`${stage.base}${base}/nodes?sel=gpu-17-03`);
  await says(page, "1 node selected");
  const cordon = page.getByRole("button", { name: /^Cordon/ });
  await eventually(() => cordon.getAttribute("aria-disabled"), (disabled) => disabled === "true");
  assert.match((await page.locator(`#${await cordon.getAttribute("aria-describedby")}`).textContent()) ?? "", /node\.write/);
  await page.goto(`${stage.base}/clusters`);
  await says(page, /1,266/);
  await saysNot(page, "Add a cluster");
  await stage.leave(page);
});

test("on a phone the rail is a menu and lists have two lines", async () => {
  const page = await open(base, "Worst nodes", { width: 390, height: 844 });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("navigation", { name: "Main, small" }).getByRole("link", { name: /Approvals/ }).click();
  await page.waitForURL(/\/repairs$/);
  await page.goto(`${stage.base}${base}/nodes`);
  await says(page, "gpu-17-03");
  assert.equal(await page.locator("table.nodes").count(), 0);
  await stage.leave(page);
});
