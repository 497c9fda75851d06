/* Identity providers: the list, the wizard, each step, the token tester. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { axe, looksRight, says, Stage } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open(60_000);
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true }));

const OKTA = "0198f3c2-000e-7000-8000-000000000001";
const PARTNER = "0198f3c2-000e-7000-8000-000000000002";

test("the list says what each provider is used for and how its keys are; there is a next step where there is none", async () => {
  const page = await stage.page("/settings/identity");
  await says(page, "sign-in, API tokens");
  await says(page, /not since: The provider did not answer within 5 s\./);
  await looksRight(page);
  await stage.steer({ noIssuers: true });
  await page.reload();
  await says(page, "Let your team sign in with its own identity provider");
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});

test("the wizard asks what the provider needs, compares the issuer byte for byte, and saves a draft", async () => {
  const page = await stage.page("/settings/identity/new");
  await page.getByLabel(/^Other provider/).check();
  await page.getByLabel("Issuer", { exact: true }).fill("https://login.example.com/");
  await page.getByRole("button", { name: "Check the provider" }).click();
  await says(page, "The document says https://login.example.com, this is https://login.example.com/.");
  await says(page, "1 line fails.");
  await page.getByLabel(/^Auth0/).check();
  await page.getByLabel("Tenant domain").fill("halden.eu.auth0.com");
  await page.locator("code", { hasText: "https://halden.eu.auth0.com/" }).waitFor();
  await page.getByRole("button", { name: "Check the provider" }).click();
  await says(page, "https://halden.eu.auth0.com/, equal byte for byte.");
  await looksRight(page);
  await page.reload();
  assert.equal(await page.getByLabel("Tenant domain").inputValue(), "halden.eu.auth0.com", "what was typed outlives a reload");
  await says(page, "Say the client id first.");
  await page.getByLabel("Client id").fill("4zQ8");
  await page.getByRole("button", { name: "Save as a draft" }).click();
  await page.waitForURL(/\/settings\/identity\/[0-9a-f-]{36}\?step=client$/);
  await says(page, "a draft: nobody depends on it yet");
  await page.getByLabel("Client secret").fill("s3cret");
  await page.getByRole("button", { name: "Save and go on" }).click();
  await page.waitForURL(/step=claims$/);
  assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }).includes("s3cret")), false);
  assert.equal(await page.getByLabel("Prefix of groups").inputValue(), "");
  await page.goBack();
  await says(page, "One is set. Leave this empty to keep it; it cannot be read back.");
  await stage.leave(page);
});

test("a token is tested before the provider is activated: each check a line, then who it would be", async () => {
  const page = await stage.page(`/settings/identity/${PARTNER}?step=activate`);
  await says(page, "Test a token first, or tick that you do without.");
  await page.getByRole("navigation", { name: "Steps" }).getByRole("link", { name: /Test a token/ }).click();
  await page.getByLabel("ID token").fill("a.wrong.token");
  await page.getByRole("button", { name: "Check the token" }).click();
  await says(page, "The token is refused: aud mismatch.");
  await says(page, "Use the ID token of this client, or add its audience in the step Claims.");
  assert.equal(await page.getByText("not reached").count(), 5);
  assert.deepEqual(await axe(page), []);
  await page.getByLabel("ID token").fill("a.good.token");
  await page.getByRole("button", { name: "Check again" }).click();
  await says(page, "The token passes.");
  await says(page, "okta:gpu-operators");
  await says(page, "Not: approve and reject repairs");
  await looksRight(page);
  await page.getByRole("link", { name: "Next: activate" }).click();
  await says(page, "A token of okta:a.meyer@halden.example passed all checks.");
  await page.getByRole("button", { name: "Activate Partner" }).click();
  await page.getByRole("button", { name: "Deactivate…" }).waitFor();
  await page.getByRole("button", { name: "Deactivate…" }).click();
  await page.getByRole("button", { name: "Deactivate Partner" }).click();
  await page.getByRole("button", { name: "Activate Partner" }).waitFor();
  assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }).includes("good.token")), false);
  await stage.leave(page);
});

test("claims are mapped in words that can be read; a newer state is shown instead of overwritten", async () => {
  const page = await stage.page(`/settings/identity/${OKTA}?step=claims`);
  await page.getByLabel("Groups", { exact: true }).fill("realm_access.roles");
  await page.getByLabel("A token must have").fill("hd: halden.example");
  await page.getByRole("button", { name: "Save and go on" }).click();
  await says(page, "Each line is name = value.");
  await page.getByLabel("A token must have").fill("hd = halden.example");
  await looksRight(page);
  const other = await stage.page(`/settings/identity/${OKTA}?step=issuer`);
  await other.getByLabel("Title").fill("Okta of Halden");
  await other.getByRole("button", { name: "Save and go on" }).click();
  await other.waitForURL(/step=client$/);
  await stage.leave(other);
  await page.getByRole("button", { name: "Save and go on" }).click();
  await says(page, /what you typed is still here: save again if it holds/);
  await says(page, "Okta of Halden");
  await page.getByRole("button", { name: "Save and go on" }).click();
  await page.waitForURL(/step=test$/);
  await page.getByRole("link", { name: /Claims/ }).click();
  await says(page, "preferred_username, realm_access.roles");
  await page.goto(`${stage.base}/settings/identity/${OKTA}?step=activate&do=remove`);
  await page.getByRole("button", { name: "Remove Okta of Halden" }).click();
  await page.getByRole("link", { name: "Okta of Halden" }).waitFor({ state: "detached" });
  await says(page, "who may sign in, and with what");
  await stage.leave(page);
});
