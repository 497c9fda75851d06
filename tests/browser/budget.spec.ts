/* Sizes, and a grid of 10,000 nodes: counted, not timed, save for what a person would feel. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { firstLoad } from "../../web/dev/size.mjs";
import { DEMO_ORG, HUGE, MAIN_ORG, says, Stage } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open(60_000);
});
after(() => stage.close());

test("the first load is at most 60 KB brotli", () => {
  const bytes = firstLoad(join(process.env.MUSTER_WEB as string, "dist")).reduce((sum, file) => sum + file.bytes, 0);
  assert.ok(bytes > 10_000 && bytes <= 60 * 1024, `${bytes} bytes`);
});

test("no request leaves the server's own origin", async () => {
  const page = await stage.page("/clusters");
  const foreign: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(stage.base) && !request.url().startsWith("data:")) {
      foreign.push(request.url());
    }
  });
  await page.reload();
  await says(page, /1,266/);
  assert.deepEqual(foreign, []);
  await stage.leave(page);
});

test("no element has a style attribute, and no script or style is inline", async () => {
  const page = await stage.page(`/clusters/0198f3c2-0003-7000-8000-000000000001/nodes?view=grid`);
  await says(page, "Healthy, warning");
  await page.getByRole("grid").focus();
  await page.keyboard.press("n");
  await page.locator("#hover").waitFor();
  const found = await page.evaluate(() => [...document.querySelectorAll("[style], style, script:not([src])")].map((element) => element.outerHTML.slice(0, 100)));
  assert.deepEqual(found, []);
  await stage.leave(page);
});

test("10,000 nodes: few elements, and no frame that a person would feel", async () => {
  await stage.steer({ org: DEMO_ORG });
  const page = await stage.page(`/clusters/${HUGE}/nodes?view=grid`);
  await says(page, "Healthy, warning");
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(elements < 600, `${elements} elements`);
  const frames = await page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        let last = performance.now();
        const look = (now: number) => {
          times.push(now - last);
          last = now;
          scrollBy(0, 12);
          if (times.length < 120) {
            requestAnimationFrame(look);
          } else {
            resolve(times.slice(10));
          }
        };
        requestAnimationFrame(look);
      }),
  );
  frames.sort((a, b) => a - b);
  const median = frames[Math.floor(frames.length / 2)] ?? 999;
  console.log(`# 10,000 nodes scrolled: median frame ${median.toFixed(1)} ms, 95th ${(frames[Math.floor(frames.length * 0.95)] ?? 0).toFixed(1)} ms`);
  assert.ok(median < 50, `median frame ${median} ms`);
  await stage.leave(page);
  await stage.steer({ org: MAIN_ORG });
});
