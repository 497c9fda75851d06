/* Webhooks: set up with a test, the secret once, what was not taken is sent again, a disabled one is enabled. */
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { axe, looksRight, says, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true }));

test("a webhook is set up, tried, and its deliveries are sent again", async () => {
  const page = await stage.page("/settings/webhooks");
  await says(page, "disabled");
  await looksRight(page);
  await page.getByRole("button", { name: "Set up a webhook…" }).click();
  await says(page, "Give it a name first.");
  await page.getByLabel("Name").fill("tickets");
  await page.getByLabel("Address").fill("http://tickets.example.com/in");
  await page.getByLabel("A node changed its state").check();
  await page.getByRole("button", { name: "Set up webhook" }).click();
  await says(page, "URL scheme must be https.");
  await page.getByLabel("Address").fill("https://tickets.example.com/in");
  await page.getByRole("button", { name: "Set up webhook" }).click();
  await says(page, "The secret of tickets");
  const secret = (await page.getByRole("region", { name: "The secret" }).textContent()) ?? "";
  assert.match(secret, /^whsec_/);
  await page.getByRole("button", { name: "Send a test to tickets" }).click();
  await says(page, /It arrived: 204 after \d+ ms/);
  await page.getByRole("button", { name: "I have kept it" }).click();
  assert.equal(await page.getByText(secret).count(), 0);

  await page.getByRole("link", { name: "pager" }).click();
  await says(page, "Repair 41 is proposed");
  await says(page, "It answered 500.");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: /^Send again repair.proposed of/ }).click();
  await page.getByText("It answered 500.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Rotate the secret…" }).click();
  await page.getByRole("button", { name: "Rotate pager" }).click();
  await says(page, "The secret of pager");
  await page.getByRole("button", { name: "I have kept it" }).click();
  await says(page, /The one before signs too/);
  await stage.leave(page);
});

test("a webhook that Muster disabled says why and can be enabled", async () => {
  const page = await stage.page("/settings/webhooks");
  await page.getByRole("link", { name: "chat" }).click();
  await says(page, "Muster disabled this webhook.");
  await page.getByRole("button", { name: "Send a test to chat" }).click();
  await says(page, /It did not arrive\. It answered 503/);
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  await page.getByRole("button", { name: "Remove…" }).click();
  await page.getByRole("button", { name: "Remove chat" }).click();
  await says(page, "It is removed.");
  await stage.leave(page);
});
