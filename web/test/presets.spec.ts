/* What the wizard sends for each provider is what the server takes: no null but for "no groups", one source of groups. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsFrom, readClaims } from "../src/views/claims";
import { firstAnswers, PRESETS } from "../src/views/presets";

const ANSWERS: Record<string, string> = { domain: "example.com", server: "default", realm: "staff", tenant: "8f5d4ed8-61c1-4bd0-9a1c-0c2a5e0e2c11", issuer: "https://login.example.com", claim: "https://example.com/groups" };

test("each preset makes an https issuer and fields that can be sent", () => {
  for (const preset of PRESETS) {
    for (const optional of [true, false]) {
      const answers = { ...firstAnswers(preset), ...Object.fromEntries(preset.asks.filter((ask) => optional || !ask.optional).map((ask) => [ask.key, ANSWERS[ask.key] ?? "x"])) };
      const fields = preset.fields(answers);
      assert.match(preset.issuer(answers), /^https:\/\/\S+$/, preset.name);
      assert.deepEqual(Object.entries(fields).filter(([key, value]) => value === null && key !== "groups_claim"), [], preset.name);
      assert.ok(!("groups_claim" in fields && "groups_path" in fields), preset.name);
    }
  }
});

test("the issuer of each preset is exact", () => {
  const exact = Object.fromEntries(PRESETS.map((preset) => [preset.name, preset.issuer(ANSWERS)]));
  assert.deepEqual(exact, {
    google: "https://accounts.google.com",
    okta: "https://example.com/oauth2/default",
    auth0: "https://example.com/",
    entra: "https://login.microsoftonline.com/8f5d4ed8-61c1-4bd0-9a1c-0c2a5e0e2c11/v2.0",
    keycloak: "https://default/realms/staff",
    generic: "https://login.example.com",
  });
});

test("groups are a claim or a way to it, and a URL is a claim", () => {
  assert.deepEqual(groupsFrom(" groups "), { groups_claim: "groups", groups_path: null });
  assert.deepEqual(groupsFrom("realm_access.roles"), { groups_claim: null, groups_path: "realm_access.roles" });
  assert.deepEqual(groupsFrom("https://example.com/groups"), { groups_claim: "https://example.com/groups", groups_path: null });
  assert.deepEqual(groupsFrom(""), { groups_claim: null, groups_path: null });
});

test("required claims are read line by line", () => {
  assert.deepEqual(readClaims("hd = example.com\n\n team=a=b "), { hd: "example.com", team: "a=b" });
  assert.equal(readClaims("hd: example.com"), null);
});
