/* Faults as they are judged: cells of the matrix, incidents with what was folded into them, checks and how they are set, the past of a part. */
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import { axe, eventually, LARGE, looksRight, nodeId, overflow, reads, says, Stage, test } from "./support";

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

test("the catalogue is searched, and says what is set differently", async () => {
  const page = await stage.page("/settings/checks");
  await reads(page.getByRole("heading", { level: 1 }), /58 checks of Halden AI.*3 set differently, 1 of them in shadow/);
  await page.getByLabel("Search").fill("row remap");
  await eventually(() => page.getByRole("row").count(), (rows) => rows === 2);
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Show").selectOption("shadow");
  await page.waitForURL(/set=shadow/);
  await eventually(() => page.getByRole("row").count(), (rows) => rows === 2);
  await looksRight(page);
  await page.getByRole("link", { name: "PCIe errors" }).click();
  await reads(page.getByRole("heading", { level: 1 }), /PCIe errors.*in shadow/);
  await says(page, "Its lines are being sorted out with the vendor");
  await looksRight(page);
  await stage.leave(page);
});

test("before a check is set differently it is shown what that would have done; what is wrong stands at its field", async () => {
  const page = await stage.page("/settings/checks/gpu_ecc");
  await page.getByRole("button", { name: "Set it differently…" }).click();
  await says(page, "Set at least one of mode, severity, action, threshold and looks.");
  await page.getByLabel("Where").selectOption({ label: "Only the cluster fra-h100-a" });
  await page.getByLabel("Severity, at most").selectOption("warning");
  await says(page, /It would have opened 3 incidents, as now, with a fault on 0 nodes, 2 fewer than now/);
  assert.equal((await stage.steer({})).log.filter((line) => line === "POST /check-overrides").length, 0);
  await looksRight(page);
  await page.getByLabel("Why").fill("corrected errors of old boards");
  await page.getByRole("button", { name: "Set it", exact: true }).click();
  await page.getByRole("cell", { name: "Cluster fra-h100-a", exact: true }).waitFor();
  await says(page, "+ cluster: fra-h100-a");
  await page.getByRole("button", { name: "Change how it is set for cluster fra-h100-a…" }).click();
  await page.getByRole("radio", { name: /^Off/ }).check();
  await says(page, /It would have opened 0 incidents, 3 fewer than now/);
  await page.getByRole("button", { name: "Save the change" }).click();
  await page.getByRole("cell", { name: "Off; at most warning" }).waitFor();
  await page.getByRole("button", { name: "Take away how it is set for cluster fra-h100-a…" }).click();
  await page.getByRole("button", { name: "Take the setting away" }).click();
  await says(page, "As delivered everywhere.");
  await page.goto(`${stage.base}/settings/checks/gpu_xid?do=set`);
  await page.getByLabel("Counts from").fill("0");
  await says(page, "must be a whole number of at least 1");
  await stage.leave(page);
});

test("a changed rule reads as in shadow until its day is over; live at once needs a reason; looks are set", async () => {
  const page = await stage.page("/settings/checks/nic_count?do=set");
  await page.getByLabel("Told after so many looks").fill("5");
  await page.getByLabel("Ends after so many looks").fill("4");
  await says(page, "is in shadow for 24 h first");
  await page.getByRole("button", { name: "Set it", exact: true }).click();
  await page.getByRole("cell", { name: /^In shadow until .*; told after 5 looks; ends after 4 looks without it$/ }).waitFor();
  await reads(page.getByRole("heading", { level: 1 }), /Network ports.*in shadow until/);
  await page.goto(`${stage.base}/settings/checks?q=nic_count`);
  await page.getByRole("row", { name: /Network ports.*5 looks in a row.*delivered: 3 looks in a row.*In shadow.*until/ }).waitFor();
  await looksRight(page);
  await page.goto(`${stage.base}/settings/checks/nic_count`);
  await page.getByRole("button", { name: "Put it live…" }).click();
  await says(page, "Say why it should be live at once.");
  await looksRight(page);
  await page.getByLabel("Why").fill("tried on the other cluster");
  await page.getByRole("button", { name: "Save the change" }).click();
  await page.getByRole("cell", { name: "Live; told after 5 looks; ends after 4 looks without it" }).waitFor();
  await reads(page.getByRole("heading", { level: 1 }), /Network ports.*live/);
  await stage.leave(page);
});

test("who may only read sees how checks are set and why nothing can be pressed", async () => {
  await stage.steer({ roles: "viewer" });
  const page = await stage.page("/settings/checks/pcie_aer");
  await says(page, "It needs the role");
  assert.equal(await page.getByRole("button", { name: "Set it differently…" }).getAttribute("aria-disabled"), "true");
  await says(page, /Reading that needs the role/);
  await stage.leave(page);
});

test("a part is followed by its serial from its node to the nodes before, and a machine under its names", async () => {
  const page = await stage.page(`${base}/nodes/${nodeId(17, 3)}`);
  const gpus = page.getByRole("region", { name: "GPUs" });
  await gpus.getByRole("row", { name: /Lost/ }).getByRole("link").click();
  await reads(page.getByRole("heading", { level: 1 }), /GPU \d+.*in no node now.*failed 2 times/);
  await page.getByRole("cell", { name: "gpu-30-09" }).first().waitFor();
  await looksRight(page);
  await page.goto(`${stage.base}/nodes/${nodeId(17, 3)}/machine`);
  await page.getByRole("cell", { name: "gpu-old-03" }).waitFor();
  await page.goto(`${stage.base}/serials`);
  await page.getByLabel("Serial").fill("J9000");
  await page.keyboard.press("Enter");
  await says(page, /matches for J9000/);
  await looksRight(page);
  await stage.leave(page);
});

test("maintenance is begun for a time, says until when and by whom, and is ended; a change of driver says its grace", async () => {
  const page = await stage.page(`${base}/nodes/${nodeId(3, 4)}`);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("button", { name: "Maintenance…" }).click();
  await page.getByLabel("For how long").selectOption("8");
  await says(page, /By itself at .*; the state before returns/);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Begin the maintenance" }).click();
  await says(page, /in maintenance until .*, by Maya Okafor/);
  await says(page, /It ends by itself in 7 h 59 min|It ends by itself in 8 h/);
  await page.getByRole("button", { name: "End maintenance…" }).click();
  await page.getByRole("button", { name: "End the maintenance", exact: true }).click();
  await says(page, "takes new work");
  await page.goto(`${stage.base}${base}/nodes/${nodeId(31, 1)}`);
  await says(page, /Its driver was changed lately: GPUs, drivers and services that are missing are a warning until then/);
  await stage.leave(page);
});

test("no page of checks, incidents and serials scrolls sideways at 320, 768 and 1024 px", async () => {
  const pages: [path: string, shows: string | RegExp][] = [
    [`/incidents/${incident(401)}`, "Automatic repair of 3 nodes is held while this is open."],
    ["/settings/checks", "gpu_lost"],
    ["/settings/checks/pcie_aer", "Its lines are being sorted out with the vendor"],
    ["/settings/checks/gpu_xid?do=set&mode=shadow", /It would have opened/],
    ["/serials?q=J9000", /matches for J9000/],
    [`/nodes/${nodeId(17, 3)}/machine`, "gpu-old-03"],
  ];
  for (const [path, shows] of pages) {
    const page = await stage.page(path);
    await says(page, shows);
    for (const width of [320, 768, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      await page.waitForFunction((wanted) => innerWidth === wanted, width);
      assert.ok((await overflow(page)) <= 0, `${path} at ${width}`);
    }
    await stage.leave(page);
  }
});

test("an own check is tried over the past, made, changed and deleted; its versions say what changed", async () => {
  const page = await stage.page("/settings/checks/own");
  await says(page, "There is none yet.");
  await page.getByRole("button", { name: "Make a check…" }).click();
  await page.getByLabel("Name", { exact: true }).fill("GPU hot");
  await page.getByLabel("Threshold", { exact: true }).fill("60");
  await says(page, /It would have opened \d+ incidents on \d+ nodes in 30 days/);
  await looksRight(page);
  await page.getByRole("button", { name: "Make the check" }).click();
  await says(page, "must have lower case letters, digits and dashes only");
  await page.getByLabel("Name", { exact: true }).fill("gpu-hot");
  await page.getByRole("button", { name: "Make the check" }).click();
  await page.getByRole("cell", { name: "GPU temperature above 60 for 300 s" }).waitFor();
  await says(page, "In shadow");
  await page.getByRole("button", { name: "Change gpu-hot…" }).click();
  await page.getByLabel("Severity", { exact: true }).selectOption("critical");
  await page.getByLabel("Why", { exact: true }).fill("the room is warm");
  await page.getByRole("button", { name: "Save as the next version" }).click();
  await page.getByRole("button", { name: /^Version 2 of gpu-hot/ }).click();
  await says(page, "severity: critical");
  await looksRight(page);
  await page.getByRole("button", { name: "Delete gpu-hot…" }).click();
  await page.getByRole("button", { name: "Delete the check" }).click();
  await says(page, "There is none yet.");
  await stage.leave(page);
});

test("a program's arguments, counts and trial survive a change of something else", async () => {
  const page = await stage.page("/settings/checks/own?do=make");
  await page.getByLabel("Name", { exact: true }).fill("service-pid");
  await page.getByRole("radio", { name: /^A program runs/ }).check();
  await page.getByLabel("Only this type of GPU").fill("NVIDIA L40S");
  await page.getByRole("radio", { name: /^A program by/ }).check();
  await page.getByLabel("Program and arguments, one a line").fill('/usr/bin/test\n-f\n/run/my "own" service.pid');
  await page.getByLabel("Told after so many failures").fill("4");
  await page.getByLabel("Ends after so many successes").fill("6");
  await page.getByLabel("Output that is kept, bytes").fill("512");
  await page.getByLabel("Begins").selectOption("604800");
  await looksRight(page);
  const made = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/custom-checks"));
  await page.getByRole("button", { name: "Make the check" }).click();
  const first = (await made).postDataJSON();
  assert.equal(first.shadow_seconds, 604_800);
  assert.equal(first.gpu_type, "NVIDIA L40S");
  assert.deepEqual(first.definition.argv, ["/usr/bin/test", "-f", '/run/my "own" service.pid']);
  await page.getByRole("cell", { name: "NVIDIA L40S in all of Halden AI" }).waitFor();
  await page.getByRole("button", { name: "Change service-pid…" }).click();
  await page.getByLabel("Title", { exact: true }).fill("The service runs");
  const named = page.waitForRequest((request) => request.method() === "PATCH");
  await page.getByRole("button", { name: "Save as the next version" }).click();
  const second = (await named).postDataJSON();
  assert.deepEqual(second.definition, first.definition);
  assert.equal(second.shadow_seconds, undefined);
  await page.getByRole("button", { name: "Change service-pid…" }).click();
  await page.getByLabel("Told after so many failures").fill("5");
  const counted = page.waitForRequest((request) => request.method() === "PATCH");
  await page.getByRole("button", { name: "Save as the next version" }).click();
  const third = (await counted).postDataJSON();
  assert.deepEqual(third.definition, { ...first.definition, raise_after: 5 });
  assert.ok(third.shadow_seconds > 600_000, "it keeps the end of its trial");
  await page.getByRole("button", { name: "Change service-pid…" }).click();
  await page.getByLabel("Begins").selectOption("0");
  await says(page, "Say why it should be live at once.");
  await page.getByLabel("Why", { exact: true }).fill("tried by hand");
  await page.getByRole("button", { name: "Save as the next version" }).click();
  await page.getByRole("cell", { name: "Live", exact: true }).waitFor();
  await page.getByRole("button", { name: /^Version 4 of service-pid/ }).click();
  await says(page, "What service-pid found");
  await says(page, "It has never failed here.");
  await looksRight(page);
  await stage.leave(page);
});
