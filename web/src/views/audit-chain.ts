/* The audit log as lines: read from the first row on, each hash computed anew, kept as a file. */
import { BASE } from "../api";
import type { AuditLine } from "../identity-types";

const LINES = 1000;

export interface Walk {
  /** rows read so far, and the last one's place */
  rows: number;
  last: number;
  /** the first row that is not as it was written, and why */
  bad: { seq: number; why: string } | null;
  done: boolean;
}

const hex = (bytes: ArrayBuffer) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** PostgreSQL writes an instant's seconds with six decimals: "2026-12-01T14:28:09.5+00:00" is 1796048889.500000. */
export function secondsOf(iso: string): string {
  const found = /^(.*?)(?:\.(\d{1,6}))?(Z|[+-]\d\d:?\d\d)$/.exec(iso);
  return found ? `${Math.floor(Date.parse(`${found[1]}${found[3]}`) / 1000)}.${(found[2] ?? "").padEnd(6, "0")}` : "";
}

export async function hashOf(orgId: string, line: AuditLine): Promise<string> {
  const previous = Uint8Array.from(line.prev_hash.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const text = new TextEncoder().encode(`${orgId} ${line.seq} ${secondsOf(line.at)} ${line.body}`);
  const all = new Uint8Array(previous.length + text.length);
  all.set(previous);
  all.set(text, previous.length);
  return hex(await crypto.subtle.digest("SHA-256", all));
}

/** Whether one line is as it was written and follows the one before it. */
export async function faultOf(orgId: string, line: AuditLine, before: AuditLine | null): Promise<string | null> {
  if (before ? line.seq !== before.seq + 1 : line.seq !== 1) {
    return before ? `row ${before.seq + 1} is missing` : "the rows before it are missing";
  }
  if (before && line.prev_hash !== before.hash) {
    return "it does not follow the row before it";
  }
  return (await hashOf(orgId, line)) === line.hash ? null : "its content was changed";
}

export async function linesAfter(after: number, limit: number, signal?: AbortSignal): Promise<{ text: string; lines: AuditLine[] }> {
  const response = await fetch(`${BASE}/audit/export?after=${after}&limit=${limit}`, { cache: "no-store", credentials: "same-origin", signal: signal ?? null });
  if (!response.ok) {
    throw new Error(response.status === 429 ? "The server asks to slow down. Try again in a minute." : `The server answered ${response.status}.`);
  }
  const text = await response.text();
  return { text, lines: text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as AuditLine) };
}

/**
 * Reads the log from its first row. check: compute every hash, stop at the first bad row; keep: called with each part
 * of the text. tell hears how far it is.
 */
export async function walk(how: { orgId: string; check: boolean; keep?: (text: string) => void; tell: (walk: Walk) => void; signal: AbortSignal }): Promise<Walk> {
  let state: Walk = { rows: 0, last: 0, bad: null, done: false };
  let before: AuditLine | null = null;
  for (;;) {
    const { text, lines } = await linesAfter(state.last, LINES, how.signal);
    if (lines.length === 0) {
      state = { ...state, done: true };
      how.tell(state);
      return state;
    }
    for (const line of how.check ? lines : []) {
      const why = await faultOf(how.orgId, line, before);
      if (why) {
        state = { ...state, bad: { seq: line.seq, why }, done: true };
        how.tell(state);
        return state;
      }
      before = line;
      state = { ...state, rows: state.rows + 1, last: line.seq };
    }
    how.keep?.(text);
    state = { ...state, rows: how.check ? state.rows : state.rows + lines.length, last: lines[lines.length - 1]?.seq ?? state.last };
    how.tell(state);
  }
}
