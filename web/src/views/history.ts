/* The history of use: the last day and the day before, from one answer. */
import { DAY, serverNow } from "../time";
import type { History } from "../types";
import { withQuery } from "../api";

const STEP_SECONDS = 300;

/** Two days in one read; the address changes once an hour, so that the answer can be kept. */
export function historyPath(clusterId: string): string {
  const hour = Math.floor(serverNow() / 3_600_000) * 3_600_000;
  return withQuery(`/clusters/${clusterId}/history`, {
    since: new Date(hour - 2 * DAY).toISOString().replace(".000", ""),
    step_seconds: STEP_SECONDS,
  });
}

const HOUR = 3_600_000;
const WINDOWS_MS = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];

/** How far back is shown: a day, or less where the cluster is younger, so that its first hour fills the chart. */
export function windowFor(ageMs: number): number {
  return WINDOWS_MS.find((window) => ageMs <= window) ?? DAY;
}

export interface Day {
  /** milliseconds of the first and the end */
  since: number;
  until: number;
  today: Point[];
  before: Point[];
}

export interface Point {
  /** 0 to 1 in [since, until] */
  x: number;
  /** null: a gap */
  y: number | null;
}

/** The last window of a series; with a whole day, the day before is laid over it. */
export function splitDays(at: number[], values: (number | null)[], until: number, windowMs = DAY): Day {
  const since = until - windowMs;
  const day: Day = { since, until, today: [], before: [] };
  at.forEach((seconds, i) => {
    const ms = seconds * 1000;
    const y = values[i] ?? null;
    if (ms >= since && ms <= until) {
      day.today.push({ x: (ms - since) / windowMs, y });
    } else if (windowMs === DAY && ms >= since - DAY && ms < since) {
      day.before.push({ x: (ms - since + DAY) / DAY, y });
    }
  });
  return day;
}

/* as many points as the width can show */
const MOST_POINTS = 96;

/** The step between drawn points, as a share of the window; never below the step of the samples. */
export function drawnStep(day: Day): number {
  return Math.max(1 / MOST_POINTS, (STEP_SECONDS * 1000) / (day.until - day.since));
}

/** Means over even steps. Without a value: null. */
function thinned(points: Point[], step: number): Point[] {
  const buckets = new Map<number, number[]>();
  for (const point of points) {
    const key = Math.floor(point.x / step);
    const values = buckets.get(key) ?? [];
    if (point.y !== null) {
      values.push(point.y);
    }
    buckets.set(key, values);
  }
  return [...buckets.entries()].map(([key, values]) => ({
    x: Math.min(1, (key + 0.5) * step),
    y: values.length ? values.reduce((a, b) => a + b, 0) / values.length : null,
  }));
}

/** A day as it is drawn. */
export function drawn(day: Day): Day {
  const step = drawnStep(day);
  return { ...day, today: thinned(day.today, step), before: thinned(day.before, step) };
}

/** Missing stretches between the first and the last sample, and up to the end: [from, to] in 0..1. */
export function gaps(points: Point[], step: number): [number, number][] {
  const found: [number, number][] = [];
  const known = points.filter((point) => point.y !== null);
  for (let i = 1; i < known.length; i++) {
    const from = known[i - 1]?.x ?? 0;
    const to = known[i]?.x ?? 0;
    if (to - from > step * 1.9) {
      found.push([from, to]);
    }
  }
  const last = known[known.length - 1];
  if (last && 1 - last.x > step * 2.5) {
    found.push([last.x, 1]);
  }
  return found;
}

export function lastKnown(points: Point[]): Point | null {
  return [...points].reverse().find((point) => point.y !== null) ?? null;
}

/** Difference to the day before in points: "6 less than yesterday". null: nothing to compare with. */
export function comparedToDayBefore(history: History, until = serverNow()): string | null {
  const day = splitDays(history.at, history.gpu_busy_ratio, until);
  const current = lastKnown(day.today);
  const before = current && day.before.filter((p) => p.y !== null && Math.abs(p.x - current.x) < 0.02)[0];
  if (!current || !before || current.y === null || before.y === null) {
    return null;
  }
  const points = Math.round(current.y * 100) - Math.round(before.y * 100);
  return points === 0 ? "as yesterday" : `${Math.abs(points)} ${points < 0 ? "less" : "more"} than yesterday`;
}

export function peak(points: Point[]): number | null {
  const known = points.map((p) => p.y).filter((y): y is number => y !== null);
  return known.length ? Math.max(...known) : null;
}

