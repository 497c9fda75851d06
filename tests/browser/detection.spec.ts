/* Faults as they are judged: cells of the matrix, incidents with what was folded into them, checks and how they are set, the past of a part. */
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import { eventually, LARGE, looksRight, nodeId, reads, says, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
beforeEach(() => stage.steer({ reset: true }));
after(() => stage.close());

const base = `/clusters/${LARGE}`;
const incident = (no: number): string => `0198f3c2-0005-7000-8000-${no.toString(16).padStart(12, "0")}`;

test("a cell is reached by keys and lists the incidents and events of its time; the address keeps it", async () => {
  const page = await stage.page(`${base}/checks`);
  const cells = page.getByRole("slider", { name: /^GPU power brake: warned/ });
  await cells.focus();
  await page.keyboard.press("End");
  await reads(page.locator(".cellbox .read"), /a warning/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=check:gpu_power_brake&cell=/);
  await says(page, /3 incidents between .* and .*, 3 open/);
  await says(page, "Events of these incidents");
  await page.getByRole("button", { name: "Show the whole time" }).click();
  await page.waitForURL((url) => !url.search.includes("cell"));
  await page.getByRole("button", { name: "Earlier" }).click();
  await page.waitForURL(/until=/);
  await says(page, /in the 24 h until/);
  await stage.leave(page);
});

test("a common cause names the shared part, its nodes, and that automatic repair is held", async () => {
  const page = await stage.page(`/incidents/${incident(401)}`);
  await reads(page.getByRole("heading", { level: 1 }), /Incident 401 open for .*3 nodes behind rack r14/);
  await says(page, "Automatic repair of 3 nodes is held while this is open.");
  await eventually(() => page.getByRole("table", { name: "" }).first().getByRole("row").count(), (rows) => rows === 4);
  await looksRight(page);
  await page.getByRole("link", { name: "403" }).click();
  await says(page, "Part of incident 401: 3 nodes of rack r14 failed within a minute.");
  await page.getByRole("link", { name: "Look at the cause" }).click();
  await page.getByRole("button", { name: "Close incident 401…" }).click();
  await page.getByLabel("Reason").fill("the PDU is on again");
  await page.getByRole("button", { name: "Close incident 401", exact: true }).click();
  await reads(page.getByRole("heading", { level: 1 }), /Incident 401 over after/);
  await stage.leave(page);
});

test("a root shows what was folded into it and why; a part that failed before says so; shadow is marked", async () => {
  const page = await stage.page(`${base}/nodes/${nodeId(17, 3)}`);
  await page.getByRole("region", { name: "Incidents" }).getByRole("button", { name: "GPU 5 off the bus (Xid 79)" }).first().click();
  await page.getByRole("link", { name: "Open it as a page" }).click();
  await says(page, "Second time in 30 days for this serial.");
  await reads(page.getByRole("row", { name: /gpu_count/ }), /7 of 8 GPUs are there.*of the whole node, after the fault/);
  await page.goto(`${stage.base}/incidents/${incident(410)}`);
  await says(page, "In shadow: recorded and shown, without effect.");
  await page.goto(`${stage.base}${base}/checks?q=result:shadow`);
  const rows = await eventually(() => page.getByRole("region", { name: "Incidents" }).getByRole("row").allTextContents(), (texts) => texts.length === 2);
  assert.match(rows[1] ?? "", /^In shadowPCIe errors/);
  await stage.leave(page);
});
