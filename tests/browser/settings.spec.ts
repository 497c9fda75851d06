/* Audit, tokens, members, account: what they show, what they change, and that each is reachable by everybody. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before } from "node:test";
import type { Page } from "playwright-core";
import { axe, CALM, LARGE, looksRight, says, Stage, test } from "./support";

let stage: Stage;
before(async () => {
  stage = await Stage.open();
});
after(() => stage.close());
afterEach(() => stage.steer({ reset: true }));

const row = (page: Page, n: number) => page.getByRole("button", { name: new RegExp(`^Row ${n},`) });

test("the audit log is filtered, paged and opened, all of it in the address", async () => {
  const page = await stage.page("/settings/audit");
  await says(page, "130 rows, chained by hash");
  await page.getByRole("button", { name: "Show more" }).click();
  await row(page, 31).waitFor();
  await page.getByLabel("Who").fill("Sora Tanaka");
  await page.keyboard.press("Enter");
  await row(page, 129).waitFor({ state: "detached" });
  await row(page, 126).click();
  await says(page, "+ state: approved");
  await says(page, "- state: proposed");
  await says(page, "1 field is the same.");
  await page.getByText("matches").waitFor();
  await looksRight(page);
  await page.getByRole("button", { name: "Only this target" }).click();
  await row(page, 122).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Remove filter target" }).click();
  await page.getByLabel("Did").fill("repair.approve");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.searchParams.get("actor") === "Sora Tanaka" && url.searchParams.get("action") === "repair.approve");
  await row(page, 122).waitFor();
  await row(page, 130).waitFor({ state: "detached" });
  await page.reload();
  await row(page, 122).waitFor();
  assert.equal(await page.getByLabel("Who").inputValue(), "Sora Tanaka");
  await page.getByLabel("Did").fill("nothing.such");
  await page.keyboard.press("Enter");
  await says(page, /No row matches/);
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await says(page, "130 rows, chained by hash");
  await row(page, 130).waitFor();
  await stage.leave(page);
});

test("the chain is computed in the browser, and the first row that was changed is named", async () => {
  const page = await stage.page("/settings/audit");
  await row(page, 130).waitFor();
  await page.getByRole("button", { name: "Check the chain" }).click();
  await says(page, "Chain whole to row 130");
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as JSON lines" }).click();
  const file = await saved;
  assert.equal(file.suggestedFilename(), "audit-main-1-130.jsonl");
  const lines = readFileSync(await file.path(), "utf8").trim().split("\n");
  assert.deepEqual([lines.length, (JSON.parse(lines[129] ?? "{}") as { seq: number }).seq], [130, 130]);
  await stage.steer({ tamper: 77 });
  await page.getByRole("button", { name: "Check the chain" }).click();
  await says(page, "Row 77: its content was changed.");
  await says(page, /Rows 1 to 76 are whole/);
  assert.deepEqual(await axe(page), []);
  await stage.leave(page);
});

test("without the role each page of settings says which one is missing", async () => {
  await stage.steer({ roles: "viewer" });
  const page = await stage.page("/settings/audit");
  await says(page, "You may not see the audit log.");
  await says(page, /the role admin or auditor/);
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Tokens and agents" }).click();
  await says(page, "You may not see tokens and the keys of agents.");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Members and grants" }).click();
  await says(page, "You may not see who has which role.");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("link", { name: "Roles", exact: true }).click();
  await says(page, "What each role may do");
  await looksRight(page);
  const log = (await stage.steer({})).log.filter((line) => /audit|tokens|members/.test(line));
  assert.deepEqual(log, [], "nothing is asked for that will be refused");
  await stage.leave(page);
});

test("a list that cannot be read says so and can be tried again", async () => {
  await stage.steer({ fail: { "/tokens": 503, "/members": 503, "/audit": 503 } });
  for (const [path, what] of [["/settings/tokens", "The list of service tokens"], ["/settings/members", "The list of members"], ["/settings/audit", "The audit log"]] as const) {
    const page = await stage.page(path);
    await says(page, `${what} could not be loaded.`);
    await stage.leave(page);
  }
});

test("a service token is made by keyboard, shown once, rotated with an overlap, revoked", async () => {
  const page = await stage.page("/settings/tokens");
  await says(page, "ci-terraform");
  await looksRight(page);
  await page.getByRole("button", { name: "Make a service token…" }).focus();
  await page.keyboard.press("Enter");
  await says(page, "Give it a name first.");
  await page.getByLabel("Name").fill("grafana");
  await page.keyboard.press("Enter");
  await says(page, "A token of this name exists.");
  await page.getByLabel("Name").fill("ci-deploy");
  await page.getByLabel("Role").selectOption("operator");
  await page.getByLabel("Sees").selectOption({ label: "Only the cluster fra-h100-a" });
  await looksRight(page);
  await page.getByLabel("Name").focus();
  await page.keyboard.press("Enter");
  await says(page, "The secret of ci-deploy");
  const secret = await page.getByRole("region", { name: "The secret" }).textContent();
  assert.match(secret ?? "", /^mst_/);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("button", { name: "Rotate ci-deploy…" }).waitFor();
  assert.equal(await page.getByText(secret ?? "").count(), 0);
  await page.getByRole("button", { name: "Rotate ci-deploy…" }).click();
  await page.getByLabel("The present secret works").selectOption("1h");
  await page.getByRole("button", { name: "Rotate ci-deploy", exact: true }).click();
  await says(page, "The secret of ci-deploy");
  await page.getByRole("button", { name: "I have kept it" }).click();
  await says(page, /the secret before this one works for (?:1 h|5\d min) more/);
  await page.getByRole("button", { name: "Revoke ci-deploy…" }).click();
  await page.getByRole("button", { name: "Revoke ci-deploy", exact: true }).click();
  await page.getByText("ci-deploy").first().waitFor({ state: "detached" });
  const sent = (await stage.steer({})).log.filter((line) => !line.startsWith("GET"));
  assert.deepEqual(sent.map((line) => line.split(" ")[0]), ["POST", "POST", "POST", "DELETE"]);
  await stage.leave(page);
});

test("nodes are added to a cluster that has some: the whole command, once; the token can be revoked", async () => {
  const page = await stage.page(`/clusters/${LARGE}/nodes`);
  await says(page, "gpu-17-03");
  await page.getByRole("button", { name: "Add nodes…" }).click();
  await page.getByLabel("Nodes that may join").fill("0");
  await says(page, "Say how many nodes: 1 to 100,000.");
  await page.getByLabel("Nodes that may join").fill("16");
  await page.getByLabel("Works for").selectOption("8h");
  await page.getByLabel("Only the host").fill("gpu-40-01");
  await page.getByRole("button", { name: "Make join token" }).click();
  await says(page, "Join 16 nodes to fra-h100-a");
  assert.match((await page.getByRole("region", { name: "The command that joins a node" }).textContent()) ?? "", /agent\.conf[^]*muster-agent enroll --join_token mjt_\w+/);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.goto(`${stage.base}/settings/tokens/join?cluster=${LARGE}`);
  await page.getByRole("cell", { name: "gpu-40-01" }).waitFor();
  await looksRight(page);
  await page.getByRole("button", { name: /^Revoke the token/ }).click();
  await page.getByRole("button", { name: "Revoke join token" }).click();
  await page.getByRole("cell", { name: "revoked" }).waitFor();
  await stage.leave(page);
});

test("the key of one node is taken away, with the reason and what comes next", async () => {
  const page = await stage.page(`/settings/tokens/agents?cluster=${LARGE}&q=gpu-02-03`);
  await page.getByRole("button", { name: "Revoke key of gpu-02-03…" }).click();
  await page.getByLabel("Reason").fill("the disk was copied");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Revoke the key of gpu-02-03", exact: true }).click();
  await says(page, "The key of gpu-02-03 is revoked.");
  await page.getByRole("cell", { name: "Unknown" }).waitFor();
  await looksRight(page);
  await stage.leave(page);
});

test("a machine that asks to come back is let back after one has seen what of it is the node's", async () => {
  const page = await stage.page(`/settings/tokens/agents?cluster=${CALM}&q=gpu-b-01-03`);
  await page.getByRole("button", { name: "Let back gpu-b-01-03…" }).waitFor();
  await looksRight(page);
  await page.getByRole("button", { name: "Let back gpu-b-01-03…" }).click();
  await says(page, "CZ2204, the node's");
  await says(page, "8 of 8 GPUs known");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Let gpu-b-01-03 back", exact: true }).click();
  await page.getByRole("heading", { name: "Machines that ask to come back" }).waitFor({ state: "detached" });
  await stage.leave(page);
});

test("a role is given in one place and taken away; the last administrator stays", async () => {
  const page = await stage.page("/settings/members");
  await says(page, "only the cluster fra-h100-a");
  await says(page, "The last administrator stays. Add another one first.");
  await looksRight(page);
  await page.getByRole("button", { name: "Give a person a role…" }).click();
  await page.getByLabel("Name").fill("Ada Byron");
  await page.getByLabel("Role", { exact: true }).last().selectOption("admin");
  await says(page, "Ada Byron is added to Muster with this.");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Give Ada Byron the role" }).click();
  await page.getByRole("cell", { name: "Ada Byron", exact: true }).waitFor();
  await page.getByText("The last administrator stays.").first().waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Take away the role operator from Johan Lindqvist…" }).click();
  await says(page, /keeps 1 other role: approver for only the cluster fra-h100-a/);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Take away the role admin from Ada Byron…" }).click();
  await says(page, /has no other role here, is signed out/);
  await page.getByRole("button", { name: "Take the role from Ada Byron" }).click();
  await page.getByRole("cell", { name: "Ada Byron", exact: true }).waitFor({ state: "detached" });
  await stage.leave(page);
});

test("a group of a provider is given a role", async () => {
  const page = await stage.page("/settings/members?do=group");
  await says(page, "group of Okta");
  await page.getByLabel("Group", { exact: true }).fill("oncall");
  await says(page, "Groups of Okta begin with okta:");
  await page.getByLabel("Group", { exact: true }).fill("okta:oncall");
  await page.getByLabel("Where").selectOption({ label: "Only the cluster fra-h100-a" });
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Give okta:oncall the role" }).click();
  await page.getByRole("button", { name: "Take away the role viewer from okta:oncall…" }).click();
  await says(page, "Who is in okta:oncall and has no other role is signed out of Halden AI.");
  await page.getByRole("button", { name: "Take the role from okta:oncall" }).click();
  await page.getByRole("button", { name: /okta:oncall/ }).first().waitFor({ state: "detached" });
  await stage.leave(page);
});

test("the account says who one is and what one may do, and ends all sessions", async () => {
  const page = await stage.page("/clusters");
  await says(page, /1,266 of 1,287/);
  await page.getByRole("button", { name: /Maya Okafor/ }).click();
  await page.getByRole("link", { name: "Account" }).click();
  await says(page, "That is everything there is in this organization.");
  await page.getByRole("cell", { name: "Chrome on Linux (this one)" }).waitFor();
  await looksRight(page);
  await page.getByRole("button", { name: "End the session of Safari on iPhone from 10.4.2.3…" }).click();
  await page.getByRole("button", { name: "End the session", exact: true }).click();
  await page.getByRole("cell", { name: "Safari on iPhone" }).first().waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Sign out everywhere…" }).click();
  await page.getByRole("button", { name: "Sign out everywhere", exact: true }).click();
  await says(page, "You are signed out");
  assert.ok((await stage.steer({})).log.includes("DELETE /sessions"));
  await stage.leave(page);
});

test("what a role may do stands in the dialog, a person of a provider is chosen, and a role is changed in one go", async () => {
  const page = await stage.page("/settings/members?do=add");
  await page.getByLabel("Role", { exact: true }).last().selectOption("approver");
  await says(page, "Approve, reject, cancel and settle repairs, and stop all of them.");
  await page.getByLabel("Who").selectOption({ label: "okta:00u9 (n.ito@halden.example), no role of their own" });
  await looksRight(page);
  await page.getByRole("button", { name: "Give okta:00u9 the role" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Change the role operator of Johan Lindqvist…" }).click();
  await says(page, "Choose another role or another place first.");
  await page.getByLabel("Role", { exact: true }).last().selectOption("viewer");
  await page.getByLabel("Where").selectOption({ label: "Only the cluster fra-h100-a" });
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Change the role of Johan Lindqvist", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const sent = (await stage.steer({})).log.filter((line) => !line.startsWith("GET"));
  assert.deepEqual(sent.map((line) => line.split(" ")[0]), ["POST", "POST", "DELETE"], "given before it is taken");
  await stage.leave(page);
});

test("platform administrators see all organizations, suspend one with a reason and let it work again", async () => {
  const page = await stage.page("/settings/platform");
  await says(page, "tenant-b");
  await looksRight(page);
  await page.getByRole("button", { name: "Suspend tenant-b…" }).click();
  await says(page, "Say why first.");
  await page.getByLabel("Reason").fill("The contract has ended");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Suspend tenant-b", exact: true }).click();
  await says(page, /The contract has ended \(Maya Okafor\)/);
  await page.getByRole("button", { name: "Let tenant-b work again…" }).click();
  await page.getByLabel("Reason").fill("It goes on");
  await page.getByRole("button", { name: "Resume tenant-b", exact: true }).click();
  await page.getByRole("button", { name: "Suspend tenant-b…" }).waitFor();
  await stage.leave(page);
  await stage.steer({ roles: "viewer" });
  const viewer = await stage.page("/settings/platform");
  assert.equal(await viewer.getByText("tenant-b").count(), 0);
  assert.equal(await viewer.getByRole("link", { name: "Platform" }).count(), 0);
  await stage.leave(viewer);
});

test("a suspended organization says why, and offers what is still open", async () => {
  await stage.steer({ suspended: "The contract has ended" });
  const page = await stage.page("/clusters");
  await says(page, "The contract has ended");
  await says(page, "Its nodes go on reporting and nothing is lost; no repair starts.");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await stage.steer({ suspended: null });
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByRole("link", { name: "Approvals" }).first().waitFor();
  await stage.leave(page);
});
