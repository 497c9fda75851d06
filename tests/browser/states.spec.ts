/* Loading, failing, refused, stale, paused: each card by itself, and the stream. */
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { axe, eventually, LARGE, overflow, says, saysNot, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open(400);
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true, stream: "up" }));

const base = `/clusters/${LARGE}`;

test("one card that fails leaves the others alone, and recovers", async () => {
  await stage.steer({ fail: { "/history": 503 } });
  const page = await stage.page(base);
  await says(page, "The history of use could not be loaded.");
  await says(page, "gpu-17-03");
  await says(page, /Request 0198f3c2/);
  assert.deepEqual(await axe(page), []);
  await stage.steer({ fail: {} });
  await page.getByRole("button", { name: "Try now" }).click();
  await says(page, "GPU memory");
  await saysNot(page, "could not be loaded");
  await stage.leave(page);
});

test("a failing card tries again by itself and says when", async () => {
  await stage.steer({ fail: { "/events-strip": 503 } });
  const page = await stage.page(base);
  await says(page, "The timeline could not be loaded.");
  await says(page, /Next try in \d+ s/);
  await stage.steer({ fail: {} });
  await page.getByText("The timeline could not be loaded.").waitFor({ state: "detached" });
  await stage.leave(page);
});

test("what may not be seen is said, with the permission", async () => {
  await stage.steer({ fail: { "/events-strip": 403 } });
  const page = await stage.page(base);
  await says(page, "You may not see the timeline.");
  await says(page, /cluster\.read/);
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});

test("figures stay when they cannot be renewed, and say since when", async () => {
  const page = await stage.page(base);
  await says(page, "Worst nodes");
  await stage.steer({ fail: { "/overview": 503 } });
  await says(page, /could not be renewed/);
  await says(page, "gpu-17-03");
  await stage.leave(page);
});

test("a slow answer shows bars of the final size, not before 300 ms", async () => {
  await stage.steer({ slow: 1500 });
  const page = await stage.page(base);
  await page.locator(".skel").first().waitFor({ state: "attached" });
  await stage.steer({ slow: 0 });
  await says(page, "Worst nodes");
  await stage.leave(page);
});

test("a stream that breaks off is said after a while, and mends itself", async () => {
  const page = await stage.page(base);
  await says(page, "Live");
  await stage.steer({ stream: "down" });
  await says(page, /Updates stopped \d+ (?:s|min) ago\./);
  await says(page, /Stale \d+ (?:s|min)/);
  assert.deepEqual(await axe(page), []);
  assert.ok((await overflow(page)) <= 0);
  await says(page, "gpu-17-03");
  await stage.steer({ stream: "up" });
  await page.getByRole("button", { name: "Reconnect now" }).click();
  await page.locator(".live.live").waitFor();
  await page.getByText("Updates stopped").waitFor({ state: "detached" });
  await stage.leave(page);
});

test("updates can be paused and go on", async () => {
  const page = await stage.page(base);
  await says(page, "Live");
  await page.getByRole("button", { name: /Press to pause updates/ }).click();
  await says(page, "Updates are paused.");
  await eventually(async () => (await stage.steer({})).streams, (count) => count === 0);
  await page.getByRole("button", { name: "Go on with updates", exact: true }).click();
  await page.locator(".live.live").waitFor();
  await stage.leave(page);
});

test("without a network the page says so", async () => {
  const page = await stage.page(base);
  await says(page, "Live");
  await stage.context.setOffline(true);
  await says(page, "This browser is offline.");
  await stage.context.setOffline(false);
  await page.locator(".live.live").waitFor();
  await stage.leave(page);
});

test("a sign-out that the server does not confirm says so, and can be repeated", async () => {
  const page = await stage.page(base);
  await says(page, "Live");
  await stage.steer({ fail: { "/auth/sign-out": 503 } });
  await page.getByRole("button", { name: /Maya Okafor/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await says(page, "You may still be signed in");
  await stage.steer({ fail: {} });
  await page.getByRole("button", { name: "Sign out again" }).click();
  await says(page, "You are signed out");
  await stage.leave(page);
  await stage.steer({ signedIn: true });
});

test("a session that ended leads to the sign-in page and back to the same place", async () => {
  const page = await stage.page(`${base}/nodes?q=state:paused`);
  await says(page, "gpu-02-09");
  await stage.steer({ signedIn: false });
  await says(page, "You are signed out");
  await page.goto("about:blank");
  await page.goto(`${stage.base}/sign-in#token=good`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await says(page, "gpu-02-09");
  await page.waitForURL(/q=state:paused/);
  await stage.leave(page);
});

test("nothing is there: a cluster that does not exist", async () => {
  const page = await stage.page("/clusters/0198f3c2-0003-7000-8000-00000000abcd");
  await says(page, "There is no such page");
  await stage.leave(page);
});
