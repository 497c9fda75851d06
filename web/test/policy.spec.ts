/* Settings of policies: their bounds and defaults are those of the API, and what is typed is judged before it is sent. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { changedFields, DEFAULT_SETTINGS, faultError, listed, NUMBERS, readNumber, shownUnit, windowsError, withMode } from "../src/views/policy-table";
import { reportHtml } from "../src/views/report-html";

const WEB = process.env.MUSTER_WEB as string;

test("bounds and defaults of every number are those of the document of the API", () => {
  const text = readFileSync(join(WEB, "..", "api", "openapi.yaml"), "utf8");
  const part = text.slice(text.indexOf("\n    PolicySettings:"));
  const rows = [...part.slice(0, part.indexOf("\n    PolicyCreate:")).matchAll(/^ {8}(\w+): \{type: integer, minimum: (\d+), maximum: (\d+), default: (\d+)\}/gm)];
  const wanted = rows.map(([, name, min, max, fallback]) => [name, Number(min), Number(max), Number(fallback)]);
  assert.ok(wanted.length > 20);
  const sorted = (list: unknown[][]) => list.sort((a, b) => String(a[0]).localeCompare(String(b[0])));
  assert.deepEqual(sorted(NUMBERS.map((one) => [one.name, one.min, one.max, one.fallback])), sorted(wanted));
});

test("a number outside of its bounds is refused with them, in the unit in which it is typed", () => {
  const wait = NUMBERS.find((one) => one.name === "idle_wait_seconds");
  assert.ok(wait);
  const { factor, unit } = shownUnit(wait, 7200);
  assert.deepEqual([factor, unit], [3600, "h"]);
  assert.deepEqual(readNumber(wait, "2", factor), { value: 7200 });
  assert.deepEqual(readNumber(wait, "721", factor), { error: "Allowed are 0 s to 720 h." });
  assert.ok("error" in readNumber(wait, "soon", factor));
  assert.deepEqual(shownUnit(wait, 90), { factor: 1, unit: "s" });
});

test("hours are judged line by line", () => {
  assert.equal(windowsError(["mon-fri 22:00-06:00", "sat,sun 00:00-24:00"]), null);
  assert.match(windowsError(["mon-fri 22:00-06:00", "mon 25:00-26:00"]) ?? "", /^Line 2/);
  assert.match(windowsError(["monday 22:00-06:00"]) ?? "", /^Line 1/);
});

test("a fault is in one list at most, and only what differs is sent", () => {
  const asks = withMode({ ...DEFAULT_SETTINGS, automatic: ["gpu_lost"] }, "gpu_lost", "confirm");
  assert.deepEqual([asks.automatic, asks.confirm, listed(asks, "gpu_lost")], [[], ["gpu_lost"], "confirm"]);
  assert.equal(listed(withMode(asks, "gpu_lost", null), "gpu_lost"), null);
  assert.deepEqual(changedFields(DEFAULT_SETTINGS, asks), { confirm: ["gpu_lost"] });
  assert.deepEqual([faultError("gpu_xid:119"), faultError("GPU lost") === null], [null, false]);
});

test("the report as HTML holds all text and no markup of what it tells", () => {
  const html = reportHtml("# Incidents of a\\_b\n\n| | |\n|---|---:|\n| Incidents | 2 |\n\n## 1. GPU <5>\n\n- first & last\n\n    kmsg <script>\n", "a_b");
  for (const part of ["<h1>Incidents of a_b</h1>", "<td>Incidents</td><td>2</td>", "<h2>1. GPU &lt;5&gt;</h2>", "<li>first &amp; last</li>", "<pre>kmsg &lt;script&gt;</pre>"]) {
    assert.ok(html.includes(part), part);
  }
  assert.ok(!html.includes("<script"));
});
