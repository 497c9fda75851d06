/* How numbers and times are written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { action, celsius, count, counted, mebibytes, mebibytesOf, megabits, percent } from "../src/format";
import type { Plan } from "../src/types";
import { consequences } from "../src/views/repair-words";
import { age, ago, exactSpan, moment, span, utc } from "../src/time";

const at = Date.parse("2026-12-01T14:32:00Z");
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

test("missing figures say so and are never 0", () => {
  for (const text of [percent(null), celsius(null), mebibytes(undefined), megabits(null)]) {
    assert.equal(text, "no data");
  }
  assert.equal(percent(0), "0 %");
});

test("units stand after a space, thousands have a comma", () => {
  assert.equal(count(1024), "1,024");
  assert.equal(counted(1, "node"), "1 node");
  assert.equal(counted(1958, "node"), "1,958 nodes");
  assert.equal(percent(0.834), "83 %");
  assert.equal(celsius(61.4), "61 °C");
  assert.equal(megabits(214_000), "214 Gb/s");
  assert.equal(megabits(5.12), "5.1 Mb/s");
  assert.equal(mebibytesOf(59_400_000, 84_000_000), "56.6 of 80.1 TiB");
  assert.equal(action("reset_gpu"), "reset GPU");
  assert.equal(action("made_up_later"), "made up later");
});

test("spans have at most two units", () => {
  const cases: [number, string][] = [
    [8 * SECOND, "8 s"],
    [4 * MINUTE + 20 * SECOND, "4 min"],
    [HOUR, "1 h"],
    [3 * HOUR + 12 * MINUTE, "3 h 12 min"],
    [50 * HOUR, "2 d 2 h"],
    [-5, "0 s"],
  ];
  for (const [ms, text] of cases) {
    assert.equal(span(ms), text);
  }
  assert.equal(exactSpan(160 * SECOND), "2 min 40 s");
  assert.equal(exactSpan(16 * MINUTE), "16 min");
});

test("ages under a day are spans, older ones are moments", () => {
  assert.equal(age(at - 4 * MINUTE, at), "4 min");
  assert.equal(ago(at - 4 * MINUTE, at), "4 min ago");
  assert.match(age(at - 30 * HOUR, at), /^Mon \d\d:\d\d$/);
  assert.match(moment(at - 24 * 30 * HOUR, at), /^1 Nov \d\d:\d\d$|^31 Oct \d\d:\d\d$/);
  assert.match(moment(Date.parse("2025-03-01T12:00:00Z"), at), /^1 Mar 2025 /);
  assert.equal(utc(at), "2026-12-01 14:32:00 UTC");
});

test("the only node of a cluster is out: no repair starts by itself, and no sentence counts to 0", () => {
  const plan: Plan = {
    node: { id: "n", name: "vm" }, boot_id: null, action: "reboot", keeps: "", loses: null, seconds_expected: 420, evidence: [], jobs: [],
    capacity: { healthy_before: 0, healthy_after: 0, nodes: 1 }, domain: { rack: null, leaf: null, others_down: 0 },
    limits: { running: 0, max_running: 0, attempt: 1, attempts_max: 2 }, rule: null, made_at: "2026-12-01T14:32:00Z",
    policy: { healthy_delay_seconds: 600, begin_within_seconds: 1800, rejoin_within_seconds: 1800 },
  };
  const limits = (running: number, most: number) => consequences({ ...plan, limits: { ...plan.limits, running, max_running: most } }, null).find((one) => one.subject === "Limits")?.fact;
  assert.equal(limits(0, 0), "So many nodes are out that no repair starts by itself");
  assert.equal(limits(1, 1), "1 repair runs already, at most 1 may at once");
  assert.equal(limits(0, 2), "1 of at most 2 repairs at once");
});
