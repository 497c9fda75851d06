/* Every view in both themes and two widths: axe, reflow, targets, and the policy of the server. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Page } from "playwright-core";
import { axe, CALM, DEMO_ORG, EMPTY, LARGE, LOCAL, MAIN_ORG, nodeId, overflow, says, SILENT, smallTargets, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());

const base = `/clusters/${LARGE}`;

/* name, address, text that shows that it is there, and what to press before looking */
const VIEWS: readonly [name: string, path: string, shows: string | RegExp, act?: (page: Page) => Promise<void>][] = [
  ["sign-in with a link", "/sign-in#token=good", "Sign in"],
  ["sign-in without one", "/sign-in", "Sign in with a link"],
  ["clusters", "/clusters", /1,266 of 1,287/],
  ["new cluster", "/clusters/new", /Give it a name/],
  ["overview", base, /Worst nodes/],
  ["overview as a table", `${base}?use=table`, "the day before"],
  ["overview of one node", `/clusters/${LOCAL}`, /Every node is healthy/],
  ["overview of a silent cluster", `/clusters/${SILENT}`, /0 of 6 nodes healthy/],
  ["join", `/clusters/${EMPTY}`, /muster-agent enroll/],
  ["nodes, list", `${base}/nodes`, "gpu-17-03"],
  ["nodes, list with a selection", `${base}/nodes?q=state:unhealthy&sel=gpu-17-03,gpu-22-14`, "2 nodes selected"],
  ["nodes, filter that cannot be read", `${base}/nodes?q=state:unhealty`, /Did you mean/],
  ["nodes, nothing matches", `${base}/nodes?q=state:unhealthy+rack:r01`, /No node matches/],
  ["nodes, grid", `${base}/nodes?view=grid`, /Healthy, warning/],
  ["nodes, grid by use", `${base}/nodes?view=grid&fill=busy`, /0 to 100 %/],
  ["nodes, grid as it was", `${base}/nodes?view=grid&at=${new Date(Date.now() - 8 * 3_600_000).toISOString().slice(0, 19)}Z`, /You look at the past/],
  ["grid of one node", `/clusters/${LOCAL}/nodes?view=grid`, /1 of 1 node/],
  ["checks", `${base}/checks`, /Xid/],
  ["repairs of a cluster", `${base}/repairs`, /gpu-17-03/],
  ["events of a cluster", `${base}/events`, "gpu-17-03"],
  ["events of all clusters", "/events", "of all clusters, newest first"],
  ["approvals", "/repairs", /wait for approval|waits for/],
  ["a node", `/nodes/${nodeId(17, 3)}`, "gpu-17-03"],
  ["a healthy node", `/nodes/${nodeId(1, 1, 2)}`, "gpu-b-01-01"],
  ["no such page", "/nothing/here", "There is no such page"],
  ["keys", `/clusters/${CALM}`, /Every node is healthy/, async (page) => {
    await page.keyboard.press("?");
    await says(page, "Keyboard shortcuts");
  }],
];

for (const [name, path, shows, act] of VIEWS) {
  for (const width of [1280, 390]) {
    test(`${name} at ${width} px, light and dark`, async () => {
      const page = await stage.page(path, { width, height: width === 390 ? 844 : 800 });
      await says(page, shows);
      await act?.(page);
      assert.deepEqual(await axe(page), []);
      await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
      await page.locator("html[data-theme=dark]").waitFor({ state: "attached" });
      assert.deepEqual(await axe(page), []);
      assert.ok((await overflow(page)) <= 0, "the page scrolls sideways");
      assert.deepEqual(await smallTargets(page), []);
      await stage.leave(page);
    });
  }
}

test("in the demo organization the mark beside its name is part of the switch's name", async () => {
  await stage.steer({ org: DEMO_ORG });
  const page = await stage.page("/clusters");
  await page.getByRole("button", { name: /demo, switch to another organization/ }).waitFor();
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
  await stage.steer({ org: MAIN_ORG });
});

test("nothing scrolls sideways at 320, 768 and 1024 px", async () => {
  for (const [name, path, shows] of VIEWS) {
    const page = await stage.page(path);
    await says(page, shows);
    for (const width of [320, 768, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      await page.waitForFunction((wanted) => innerWidth === wanted, width);
      assert.ok((await overflow(page)) <= 0, `${name} at ${width}`);
    }
    await stage.leave(page);
  }
});
