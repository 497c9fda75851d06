/* The results of a check over time, in words. */
import { moment, now, parse } from "../time";
import type { CheckMatrix, CheckRow } from "../types";

/** Never rounded up to 100 %: that word is for all. */
export function passed(ratio: number | null): string {
  if (ratio === null) {
    return "no data";
  }
  if (ratio >= 1) {
    return "100 %";
  }
  const digits = ratio >= 0.99 ? 2 : ratio >= 0.9 ? 1 : 0;
  const factor = 10 ** digits;
  return `${(Math.floor(ratio * 100 * factor) / factor).toFixed(digits)} %`;
}

export interface Times {
  since: number;
  stepMs: number;
}

export function timesOf(matrix: CheckMatrix): Times {
  return { since: parse(matrix.since) ?? 0, stepMs: matrix.bucket_seconds * 1000 };
}

/** Stretches of one letter: [from, to) in cells. */
export function stretches(cells: string, letter: string): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i < cells.length; i++) {
    if (cells[i] === letter) {
      const last = found[found.length - 1];
      if (last && last[1] === i) {
        last[1] = i + 1;
      } else {
        found.push([i, i + 1]);
      }
    }
  }
  return found;
}

export function when(found: [number, number][], times: Times): string {
  return found
    .map(([from, to]) => {
      const end = times.since + to * times.stepMs;
      return `${moment(times.since + from * times.stepMs, now.peek())} to ${end > now.peek() ? "now" : moment(end, now.peek())}`;
    })
    .join(", ");
}

/** The row in words, for those who do not see it. */
export function rowWords(row: CheckRow, times: Times): string {
  const failed = stretches(row.cells, "f");
  const warned = stretches(row.cells, "w");
  const parts = [failed.length > 0 && `failed ${when(failed, times)}`, warned.length > 0 && `warned ${when(warned, times)}`].filter(Boolean);
  return `${row.title}: ${parts.join("; ") || (/[^.]/.test(row.cells) ? "all nodes passed" : "no data")}`;
}
