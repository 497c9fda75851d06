/* Geometry: state bar, charts, heat map. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { roundTop } from "../src/round";
import { barWidths } from "../src/ui/verdict";
import { hit, layOut, lookKey, neighbour, type Group } from "../src/views/heatmap";
import { gaps, splitDays, windowFor } from "../src/views/history";

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);

test("a state with nodes is never too narrow to be seen, and the bar stays full", () => {
  const widths = barWidths([1009, 5, 3, 2, 1, 2, 2], 1056);
  assert.ok(widths.slice(1).every((width) => width >= 8));
  assert.ok(Math.abs(sum(widths) + 6 * 2 - 1056) < 0.001);
  assert.deepEqual(barWidths([0, 0, 0], 100), [0, 0, 0]);
  assert.deepEqual(barWidths([1, 0, 0], 100), [100, 0, 0]);
});

test("the top of an axis is a round number at or above the highest value", () => {
  for (const [value, top] of [[0, 1], [1, 1], [3.2, 4], [257_000, 400_000], [99, 100], [501, 800]] as const) {
    assert.equal(roundTop(value), top);
  }
});

test("a series is split into the last day and the day before", () => {
  const until = Date.parse("2026-12-01T12:00:00Z");
  const hours = Array.from({ length: 49 }, (_, i) => until / 1000 - (48 - i) * 3600);
  const day = splitDays(hours, hours.map((_, i) => i), until);
  assert.equal(day.today.length, 25);
  assert.equal(day.before.length, 24);
  assert.equal(day.today[0]?.x, 0);
  assert.equal(day.today[24]?.x, 1);
  assert.equal(day.before[0]?.x, 0);
});

test("a young cluster fills its chart: the window grows with its age", () => {
  const hour = 3_600_000;
  for (const [age, window] of [[60_000, 1], [1.5 * hour, 3], [20 * hour, 24], [900 * hour, 24]] as const) {
    assert.equal(windowFor(age), window * hour);
  }
  const until = 1_800_000_000_000;
  const day = splitDays([until / 1000 - 7200, until / 1000 - 1800], [1, 2], until, hour);
  assert.deepEqual([day.today.length, day.before.length, day.today[0]?.x], [1, 0, 0.5]);
});

test("missing samples are gaps, also the stretch up to now", () => {
  const step = 0.1;
  const points = [0, 0.1, 0.2, 0.5, 0.6].map((x) => ({ x, y: 1 as number | null }));
  assert.deepEqual(gaps(points, step), [[0.2, 0.5], [0.6, 1]]);
  assert.deepEqual(gaps([{ x: 0, y: null }, { x: 1, y: null }], step), []);
});

function racks(n: number, size: number): Group[] {
  return Array.from({ length: Math.ceil(n / size) }, (_, r) => ({ name: `r${r + 1}`, nodes: Array.from({ length: Math.min(size, n - r * size) }, (_, i) => r * size + i) }));
}

test("every tile is found under its own middle", () => {
  for (const [n, width, narrow] of [[1, 1056, false], [1024, 1056, false], [1024, 358, true], [10_000, 1056, false]] as const) {
    const layout = layOut(racks(n, 32), n, width, narrow);
    for (let node = 0; node < n; node += 7) {
      const y = (layout.bands[layout.band[node] ?? 0]?.top ?? 0) + (layout.y[node] ?? 0) + layout.tile / 2;
      const x = (layout.x[node] ?? 0) + layout.tile / 2;
      assert.equal(hit(layout, x, y), node, `${n} nodes, node ${node}`);
      assert.ok(x + layout.tile / 2 <= width + 0.5, "inside the width");
    }
  }
});

test("1,024 nodes have tiles of 22 to 24 px, 10,000 at least 12", () => {
  assert.ok([22, 23, 24].includes(layOut(racks(1024, 32), 1024, 1056, false).tile));
  assert.ok(layOut(racks(10_000, 32), 10_000, 1056, false).tile >= 12);
});

test("without groups the tiles fill the width in bands", () => {
  const nodes = Array.from({ length: 10_000 }, (_, i) => i);
  const layout = layOut([{ name: "", nodes }], 10_000, 1056, false);
  assert.ok(layout.bands.every((band) => band.height < 600));
  assert.equal(layout.lines.flat().length, 10_000);
});

test("arrow keys reach every tile and stop at the edges", () => {
  const layout = layOut(racks(64, 32), 64, 1056, false);
  const seen = new Set([0]);
  let at = layout.lines[0]?.[0] ?? 0;
  for (let i = 0; i < 100; i++) {
    at = neighbour(layout, at, "right");
    seen.add(at);
  }
  assert.equal(seen.size, 64);
  assert.equal(neighbour(layout, at, "right"), at);
  const first = neighbour(layout, at, "first");
  assert.equal(neighbour(layout, first, "left"), first);
  assert.equal(neighbour(layout, neighbour(layout, first, "down"), "up"), first);
});

test("looks that differ have different keys", () => {
  const keys = new Set<number>();
  const states = ["healthy", "unhealthy", "repairing", "starting", "pending", "paused", "unknown"] as const;
  let n = 0;
  for (const state of states) {
    for (const warning of [false, true]) {
      for (const step of [null, -1, 0, 1, 2, 3, 4]) {
        keys.add(lookKey({ state, warning, step, dim: false }));
        n += 1;
      }
    }
  }
  keys.add(lookKey({ state: "healthy", warning: false, step: null, dim: true }));
  assert.equal(keys.size, n + 1);
});
