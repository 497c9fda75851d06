/* What the console says of roles is what the server's table grants. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PERMISSION_WORDS, ROLES } from "../src/views/roles";

const server = join(process.env.MUSTER_WEB as string, "..", "server");
const source = readFileSync(join(server, "perms.c"), "utf8").replace(/\s+/g, " ");
const header = readFileSync(join(server, "perms.h"), "utf8");
const request = readFileSync(join(server, "request.h"), "utf8");
const permission = new Map([...request.matchAll(/X\((PERM_[A-Z_]+), "([a-z_.]+)",/g)].map((found) => [found[1], found[2]]));
const role = new Map([...header.matchAll(/X\((ROLE_[A-Z_]+), "([a-z_]+)",/g)].map((found) => [found[1], found[2]]));

function granted(symbol: string | undefined): string[] {
  const row = new RegExp(`\\[${symbol}_BIT\\] = ([A-Z_ |]+),`).exec(source)?.[1] ?? "";
  const reads = /#define READS \(([A-Z_ |]+)\)/.exec(source)?.[1] ?? "";
  return row
    .replace("READS", reads)
    .split("|")
    .map((one) => permission.get(one.trim()) ?? one.trim());
}

test("no role is said to do what the server does not grant it, and every role is said", () => {
  assert.ok(role.size >= 6 && permission.size >= 10);
  assert.deepEqual(ROLES.map((one) => one.name).sort(), [...role.values()].sort());
  for (const [symbol, name] of role) {
    const theirs = granted(symbol);
    assert.ok(theirs.includes("session"), `the row of ${name} could be read`);
    const ours = ROLES.find((one) => one.name === name)?.permissions ?? [];
    assert.deepEqual(ours.filter((one) => !theirs.includes(one)), [], name);
  }
});

test("each permission that the console compares has words", () => {
  const worded = new Set(["session", ...PERMISSION_WORDS.map(([name]) => name)]);
  assert.deepEqual([...new Set(ROLES.flatMap((one) => one.permissions))].filter((name) => !worded.has(name)), []);
});
