/* Signing in with a provider or a link, why that failed, and letting a program in. */
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { axe, looksRight, says, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true }));

const OKTA = "0198f3c2-000e-7000-8000-000000000001";

test("who is not signed in is sent to the provider, and comes back to where they were", async () => {
  await stage.steer({ signedIn: false });
  const page = await stage.page("/repairs?from=mail");
  const link = page.getByRole("link", { name: "Sign in with Okta" });
  await link.waitFor();
  await looksRight(page);
  const left = page.waitForRequest((request) => request.isNavigationRequest() && request.url().includes("/auth/"));
  await link.click();
  assert.equal((await left).url(), `${stage.base}/auth/sign-in/${OKTA}?return_to=%2Frepairs%3Ffrom%3Dmail`);
  await stage.leave(page);
});

test("signing out goes on to the provider's own page, where it has one", async () => {
  await stage.steer({ signOutUrl: `${stage.base}/at-the-provider` });
  const page = await stage.page("/account");
  const left = page.waitForRequest((request) => request.isNavigationRequest() && request.url().endsWith("/at-the-provider"));
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await left;
  await says(page, "Sign in with Okta");
  await stage.leave(page);
});

test("each refusal is a sentence; the way with a link stays", async () => {
  const page = await stage.page("/sign-in?error=email_unverified");
  await says(page, "You could not be signed in");
  await says(page, "Your address is not verified with your identity provider.");
  await page.getByText("Sign in with a link").click();
  await says(page, "musterd sign-in-link --user NAME");
  await looksRight(page);
  await page.goto(`${stage.base}/sign-in?error=<b>never_heard`);
  await says(page, "Your identity provider's answer was refused (bnever_heard).");
  await stage.steer({ noIssuers: true });
  await page.goto(`${stage.base}/sign-in?error=idp_unavailable`);
  await says(page, /cannot be reached from here\. Try again in a minute\./);
  await says(page, "Open the sign-in link that Muster printed when it started.");
  assert.equal(await page.getByRole("link", { name: /Sign in with/ }).count(), 0);
  await stage.leave(page);
});

test("a program is let in by its code, after one has seen who asks", async () => {
  const page = await stage.page("/device");
  await page.getByLabel("Code").fill("zzzz zzzz");
  await page.keyboard.press("Enter");
  await says(page, /No program waits with this code/);
  await page.getByLabel("Code").fill("BCDFGHJK");
  await page.keyboard.press("Enter");
  await says(page, "10.4.7.21");
  await says(page, "It will act as Maya Okafor in Halden AI for 12 hours.");
  await looksRight(page);
  await page.getByRole("button", { name: "Let muster on login-1 in" }).click();
  await says(page, "muster on login-1 is let in.");
  await page.goto(`${stage.base}/device?code=bcdf-ghjk`);
  await says(page, "muster on login-1 is let in.");
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});
