/* Sizes, and a grid of 10,000 nodes: counted; the work of a frame is the page's own, whatever else the machine does. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import type { CDPSession } from "playwright-core";
import { firstLoad } from "../../web/dev/size.mjs";
import { DEMO_ORG, HUGE, MAIN_ORG, says, Stage, test } from "./support";

const FRAMES = 120;

let stage: Stage;
before(async () => {
  stage = await Stage.open();
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

/** Seconds of work of the page's own thread so far: of its processor time, so that other programs do not count. */
async function worked(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN;
}

test("10,000 nodes: few elements, and no frame that a person would feel", async () => {
  await stage.steer({ org: DEMO_ORG });
  const page = await stage.page(`/clusters/${HUGE}/nodes?view=grid`);
  await says(page, "Healthy, warning");
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(elements < 600, `${elements} elements`);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await worked(session);
  const frames = await page.evaluate(
    (count) =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        let last = performance.now();
        const look = (now: number) => {
          times.push(now - last);
          last = now;
          scrollBy(0, 12);
          if (times.length < count) {
            requestAnimationFrame(look);
          } else {
            resolve(times.slice(10));
          }
        };
        requestAnimationFrame(look);
      }),
    FRAMES,
  );
  const work = ((await worked(session)) - before) * 1000 / FRAMES;
  frames.sort((a, b) => a - b);
  const median = frames[Math.floor(frames.length / 2)] ?? 999;
  console.log(`# 10,000 nodes scrolled: ${work.toFixed(1)} ms of work a frame; median frame ${median.toFixed(1)} ms, 95th ${(frames[Math.floor(frames.length * 0.95)] ?? 0).toFixed(1)} ms`);
  assert.ok(work > 0 && work < 50, `${work} ms of work a frame`);
  await stage.leave(page);
  await stage.steer({ org: MAIN_ORG });
});
