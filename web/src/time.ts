/* The present moment, corrected to the server's clock, and how spans and moments are written. */
import { signal } from "@preact/signals";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

let offsetMs = 0;

/** Milliseconds on the server's clock; changes once a second while the page can be seen. */
export const now = signal(Date.now());

/** The Date header has whole seconds: a smaller difference than two seconds says nothing. */
export function learnServerTime(header: string | null): void {
  const theirs = header ? Date.parse(header) : NaN;
  if (!Number.isNaN(theirs)) {
    const difference = theirs - Date.now();
    offsetMs = Math.abs(difference) > 2 * SECOND ? difference : 0;
  }
}

export function serverNow(): number {
  return Date.now() + offsetMs;
}

export function startClock(): void {
  const tick = () => {
    if (!document.hidden) {
      now.value = serverNow();
    }
  };
  setInterval(tick, SECOND);
  document.addEventListener("visibilitychange", tick);
}

/** A span in at most two units: "8 s", "4 min", "3 h 12 min", "2 d 4 h". */
export function span(ms: number): string {
  const all = Math.max(0, ms);
  if (all < MINUTE) {
    return `${Math.floor(all / SECOND)} s`;
  }
  if (all < HOUR) {
    return `${Math.floor(all / MINUTE)} min`;
  }
  if (all < DAY) {
    const minutes = Math.floor((all % HOUR) / MINUTE);
    return `${Math.floor(all / HOUR)} h${minutes ? ` ${minutes} min` : ""}`;
  }
  if (all === DAY) {
    return "24 h";
  }
  const hours = Math.floor((all % DAY) / HOUR);
  return `${Math.floor(all / DAY)} d${hours ? ` ${hours} h` : ""}`;
}

/** As span, but with seconds below ten minutes: for what is late by seconds. */
export function exactSpan(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / SECOND);
  if (seconds < 60 || seconds >= 600) {
    return span(ms);
  }
  const rest = seconds % 60;
  return `${Math.floor(seconds / 60)} min${rest ? ` ${rest} s` : ""}`;
}

export function parse(iso: string | null | undefined): number | null {
  const at = iso ? Date.parse(iso) : NaN;
  return Number.isNaN(at) ? null : at;
}

const two = (n: number) => String(n).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

export function clock(ms: number, seconds = false): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

/** "14:28" today, "Mon 14:28" within the last days, else "2 Nov 14:28", with the year where it is another. */
export function moment(ms: number, from = now.peek()): string {
  const at = new Date(ms);
  const today = new Date(from);
  if (at.toDateString() === today.toDateString()) {
    return clock(ms);
  }
  if (Math.abs(from - ms) < 6 * DAY) {
    return `${DAYS[at.getDay()]} ${clock(ms)}`;
  }
  const year = at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year} ${clock(ms)}`;
}

/** Ages under a day, the moment above. */
export function age(ms: number, from = now.value): string {
  return from - ms < DAY ? span(from - ms) : moment(ms, from);
}

/** "4 min ago", or "on Mon 14:28" above a day. */
export function ago(ms: number, from = now.value): string {
  if (from - ms < SECOND) {
    return "now";
  }
  return from - ms < DAY ? `${span(from - ms)} ago` : `on ${moment(ms, from)}`;
}

export function utc(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
