/*
 * One stream of events for all tabs of a browser. The tab that holds the lock reads it and tells the
 * others; a hidden tab gives the lock back. The stream is read with fetch rather than EventSource:
 * only so are the heartbeats (comments), the status and Retry-After seen.
 */
import { effect, signal } from "@preact/signals";
import { ApiError, BASE, signedOut } from "./api";
import { serverNow } from "./time";
import type { StreamEvent } from "./types";

export type LiveState = "connecting" | "live" | "paused" | "stale" | "offline";

export interface Sample {
  cluster_id: string;
  version: number;
}

export type Message =
  | { kind: "event"; event: StreamEvent }
  | { kind: "sample"; sample: Sample }
  /** what is shown may be out of date: read everything again */
  | { kind: "reset" };

type Wire = Message | { kind: "beat" } | { kind: "lost"; retryAt: number };

const SILENCE_MS = 45_000; /* three heartbeats */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
const SHOWN_AS_LOST_MS = 4_000; /* a reconnect that takes less is not worth a banner */

export const paused = signal(false);
/** Milliseconds of the last sign of life from the server, on its clock. */
export const lastBeat = signal(0);
/** When the next try to connect is due, or 0. */
export const retryAt = signal(0);
const connected = signal(false);
const hidden = signal(false);
const online = signal(true);

const listeners = new Set<(message: Message) => void>();
let channel: BroadcastChannel | null = null;
let lastSeq = 0;
let stop: AbortController | null = null;
let wake: (() => void) | null = null;

export function onMessage(listener: (message: Message) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** at: the present moment, a dependency that makes the answer change by itself. */
export function liveState(at: number): LiveState {
  if (paused.value) {
    return "paused";
  }
  if (!online.value) {
    return "offline";
  }
  const silence = at - lastBeat.value;
  if (connected.value && silence < SILENCE_MS) {
    return "live";
  }
  if (lastBeat.value === 0 || (!connected.value && silence < SHOWN_AS_LOST_MS)) {
    return retryAt.value ? "stale" : "connecting";
  }
  return "stale";
}

export function reconnectNow(): void {
  wake?.();
  channel?.postMessage({ kind: "wake" });
}

/** A list's as_of_seq: the stream continues from there, so that nothing falls between the two. */
export function readUpTo(seq: number): void {
  if (lastSeq === 0 && seq > 0) {
    lastSeq = seq;
  }
}

function take(wire: Wire): void {
  lastBeat.value = serverNow();
  if (wire.kind === "lost") {
    connected.value = false;
    retryAt.value = wire.retryAt;
    return;
  }
  connected.value = true;
  retryAt.value = 0;
  if (wire.kind === "event") {
    lastSeq = Math.max(lastSeq, wire.event.seq);
  }
  if (wire.kind !== "beat") {
    for (const listener of listeners) {
      listener(wire);
    }
  }
}

function spread(wire: Wire): void {
  if (wire.kind === "lost") {
    connected.value = false;
    retryAt.value = wire.retryAt;
  } else {
    take(wire);
  }
  channel?.postMessage(wire);
}

/** Turns the lines of one event into a message. Exported for its test. */
export function readBlock(block: string): Wire | null {
  let type = "message";
  let data = "";
  let comment = false;
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "") {
      comment = true;
    } else if (field === "event") {
      type = value;
    } else if (field === "data") {
      data += data ? `\n${value}` : value;
    }
  }
  if (type === "reset") {
    return { kind: "reset" };
  }
  if (!data) {
    return comment ? { kind: "beat" } : null;
  }
  try {
    const parsed = JSON.parse(data) as StreamEvent & Sample;
    return type === "sample" ? { kind: "sample", sample: parsed } : { kind: "event", event: parsed };
  } catch {
    return null;
  }
}

async function readStream(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let silence = 0;
  const watch = () => {
    clearTimeout(silence);
    silence = setTimeout(() => void reader.cancel(), SILENCE_MS) as unknown as number;
  };
  try {
    for (watch(); !signal.aborted; watch()) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      rest = (rest + value).replace(/\r\n?/g, "\n");
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const wire = readBlock(block);
        if (wire) {
          spread(wire);
        }
      }
    }
  } finally {
    clearTimeout(silence);
  }
}

async function connect(signal: AbortSignal): Promise<number | null> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastSeq) {
    headers["Last-Event-ID"] = String(lastSeq);
  }
  const response = await fetch(`${BASE}/events/stream`, { headers, cache: "no-store", credentials: "same-origin", signal });
  if (response.status === 401) {
    signedOut.value = true;
    throw new ApiError(401, "signed_out", "Signed out", "", null);
  }
  if (!response.ok || !response.body) {
    return Number(response.headers.get("Retry-After")) * 1000 || null;
  }
  spread({ kind: "beat" });
  await readStream(response.body, signal);
  return null;
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });
}

/** Reads until told to stop. Full jitter: a restarted server is not met by all consoles at once. */
async function lead(signal: AbortSignal): Promise<void> {
  let ceiling = FIRST_RETRY_MS;
  while (!signal.aborted && !signedOut.value) {
    let wanted: number | null = null;
    try {
      wanted = await connect(signal);
    } catch {
      /* the same as a stream that ended: wait and try again */
    }
    if (signal.aborted || signedOut.value) {
      return;
    }
    if (connected.value) {
      ceiling = FIRST_RETRY_MS;
    }
    const wait = Math.max(wanted ?? 0, 200 + Math.random() * ceiling);
    spread({ kind: "lost", retryAt: serverNow() + wait });
    await rest(wait, signal);
    ceiling = Math.min(ceiling * 2, LONGEST_RETRY_MS);
  }
}

/** Runs lead() while this tab holds the browser-wide lock; without locks (plain http) each tab leads. */
async function follow(signal: AbortSignal): Promise<void> {
  if (!navigator.locks) {
    return lead(signal);
  }
  try {
    await navigator.locks.request("muster-live", { signal }, () => lead(signal));
  } catch {
    /* the wait for the lock was given up: this tab is hidden or paused */
  }
}

export function startLive(): void {
  hidden.value = document.hidden;
  online.value = navigator.onLine;
  document.addEventListener("visibilitychange", () => (hidden.value = document.hidden));
  addEventListener("online", () => (online.value = true));
  addEventListener("offline", () => (online.value = false));
  if ("BroadcastChannel" in self) {
    channel = new BroadcastChannel("muster-live");
    channel.onmessage = (message: MessageEvent<Wire | { kind: "wake" }>) => {
      if (message.data.kind === "wake") {
        wake?.();
      } else if (!paused.value && !hidden.value) {
        take(message.data);
      }
    };
  }
  let was = false;
  effect(() => {
    const wanted = !paused.value && !hidden.value && online.value && !signedOut.value;
    if (wanted === was) {
      return;
    }
    was = wanted;
    stop?.abort();
    stop = null;
    if (wanted) {
      stop = new AbortController();
      const missed = lastBeat.peek() > 0;
      void follow(stop.signal);
      if (missed) {
        for (const listener of listeners) {
          listener({ kind: "reset" });
        }
      }
    } else {
      connected.value = false;
    }
  });
}
