/* The pages and dialogs of work on nodes, in both themes and two widths: axe, reflow, and the policy of the server. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Page } from "playwright-core";
import { axe, LARGE, LOCAL, nodeId, overflow, repairId, says, SILENT, smallTargets, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());

const base = `/clusters/${LARGE}`;
const bad = `${base}/nodes/${nodeId(17, 3)}`;
const press = (name: string | RegExp) => (page: Page) => page.getByRole("button", { name }).first().click();

/* name, address, text that shows that it is there, and what to press before looking */
const VIEWS: readonly [name: string, path: string, shows: string | RegExp, act?: (page: Page) => Promise<void>][] = [
  ["a node over 30 days", `${bad}?range=30d`, /last 30 days/],
  ["a node without GPUs", `/nodes/${nodeId(1, 1, 3)}`, /No GPU has been seen/],
  ["a node that is silent", `/nodes/${nodeId(19, 5)}`, /unknown/],
  ["a node that never joined", `/nodes/${nodeId(32, 32)}`, /pending/],
  ["a node under repair", `/nodes/${nodeId(8, 2)}`, /Reboot is running/],
  ["cordon", `${bad}?dialog=cordon`, "Cordon gpu-17-03"],
  ["request a repair", `/nodes/${nodeId(4, 22)}?dialog=request`, "Request a repair of gpu-04-22"],
  ["report a problem", `${bad}?dialog=report`, "Report a problem of gpu-17-03"],
  ["close an incident", bad, "Evidence", press(/Close incident/)],
  ["an incident", bad, "Evidence", press("eth0: transmit queue timed out")],
  ["more actions", bad, "Evidence", press("More actions")],
  ["checks with trouble", `${base}/checks?show=trouble`, /Results by check/],
  ["checks as a table", `${base}/checks?as=table`, /Results by check/],
  ["checks, one of them", `${base}/checks?q=check:gpu_lost&range=7d`, /3 h a cell/],
  ["checks of one node", `/clusters/${LOCAL}/checks`, /No check failed/],
  ["checks of a silent cluster", `/clusters/${SILENT}/checks`, /without data/],
  ["repairs of one node", `/clusters/${LOCAL}/repairs`, /Nothing waits for approval/],
  ["repairs, nothing matches", `${base}/repairs?q=outcome:failed+action:remove`, /repair matches/],
  ["a repair that waits", `/repairs/${repairId(103)}`, /waits for approval/],
  ["a repair that runs", `/repairs/${repairId(101)}`, /is running/],
  ["a repair that failed", `/repairs/${repairId(108)}`, /Failed at Verify/],
  ["approve", `${base}/repairs?dialog=approve&repair=${repairId(103)}`, /You approve exactly/],
  ["approve what nothing can carry out", `/repairs?dialog=approve&repair=${repairId(106)}`, /Nothing here can carry out/],
  ["reject", `/repairs?dialog=approve&repair=${repairId(103)}`, /You approve exactly/, press("Reject…")],
  ["what was decided before", `/repairs?dialog=approve&repair=${repairId(101)}`, "Progress"],
  ["cancel", `/repairs?dialog=cancel&repair=${repairId(101)}`, "Cancel the repair"],
  ["settle", `/repairs?dialog=settle&repair=${repairId(109)}`, "What can be seen now"],
];

for (const [name, path, shows, act] of VIEWS) {
  for (const width of [1280, 390]) {
    for (const theme of ["light", "dark"] as const) {
      test(`${name} at ${width} px, ${theme}`, async () => {
        const page = await stage.page(path, { width, height: width === 390 ? 844 : 800, theme });
        await says(page, shows);
        await act?.(page);
        assert.deepEqual(await axe(page), []);
        assert.ok((await overflow(page)) <= 0, "the page scrolls sideways");
        assert.deepEqual(await smallTargets(page), []);
        await stage.leave(page);
      });
    }
  }
}

test("nothing scrolls sideways at 320, 768, 1024 and 1600 px", async () => {
  for (const width of [320, 768, 1024, 1600]) {
    for (const [name, path, shows] of VIEWS) {
      const page = await stage.page(path, { width });
      await says(page, shows);
      assert.ok((await overflow(page)) <= 0, `${name} at ${width}`);
      await stage.leave(page);
    }
  }
});
