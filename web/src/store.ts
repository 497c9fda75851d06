/*
 * What views read: one entry per address, shared by all that show it, kept fresh by the live stream.
 * Data stays when a re-read fails; the error then stands beside it.
 */
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, request } from "./api";
import { onMessage, paused, readUpTo, type Message } from "./live";
import { serverNow } from "./time";

export interface Interest {
  /** re-read when such an event arrives; none: never */
  events?: (type: string, event: { cluster_id: string | null; node_id: string | null; repair_id: string | null }) => boolean;
  /** re-read after samples of this cluster ("*": of any), at most every sampleGapMs */
  samplesOf?: string;
  sampleGapMs?: number;
  /** re-read at this pace besides, for figures that change without an event */
  everyMs?: number;
}

const EVENT_GAP_MS = 700; /* a storm of events is one re-read */
const SAMPLE_GAP_MS = 2_000;
const KEEP_MS = 5 * 60_000;
const RETRY_MS = [2_000, 5_000, 10_000, 20_000, 30_000];

export class Query<T> {
  readonly data: Signal<T | null> = signal(null);
  readonly error: Signal<ApiError | null> = signal(null);
  /** server's time of the last good answer, 0 before the first */
  readonly at = signal(0);
  readonly loading = signal(false);
  readonly retryAt = signal(0);
  readonly tries = signal(0);
  private etag: string | null = null;
  private users = 0;
  private interests = new Set<Interest>();
  private timer = 0;
  private due = Infinity;
  private started = 0;
  private abort: AbortController | null = null;
  unusedSince = 0;

  constructor(readonly path: string) {}

  use(interest: Interest): () => void {
    this.users += 1;
    this.interests.add(interest);
    if (!this.loading.peek() && serverNow() - this.at.peek() > 1_000) {
      void this.read();
    }
    const pace = interest.everyMs ? setInterval(() => !document.hidden && !paused.peek() && this.soon(0), interest.everyMs) : 0;
    return () => {
      this.users -= 1;
      this.interests.delete(interest);
      clearInterval(pace);
      this.unusedSince = Date.now();
      if (this.users === 0) {
        clearTimeout(this.timer);
        this.due = Infinity;
      }
    };
  }

  hear(message: Message): void {
    for (const interest of this.interests) {
      if (message.kind === "reset") {
        this.soon(Math.random() * 500);
      } else if (message.kind === "event" && interest.events?.(message.event.type, message.event)) {
        this.soon(EVENT_GAP_MS - (Date.now() - this.started));
      } else if (message.kind === "sample" && (interest.samplesOf === "*" || interest.samplesOf === message.sample.cluster_id)) {
        this.soon((interest.sampleGapMs ?? SAMPLE_GAP_MS) - (Date.now() - this.started));
      }
    }
  }

  /** Reads again after at least ms; an earlier appointment stands. */
  soon(ms: number): void {
    const due = Date.now() + Math.max(0, ms);
    if (this.users === 0 || due >= this.due) {
      return;
    }
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => void this.read(), Math.max(0, ms)) as unknown as number;
  }

  async read(): Promise<void> {
    clearTimeout(this.timer);
    this.due = Infinity;
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.started = Date.now();
    this.loading.value = true;
    this.retryAt.value = 0;
    try {
      const answer = await request<T>("GET", this.path, { ifNoneMatch: this.etag, signal: abort.signal });
      if (answer.status !== 304) {
        /* a strong one names the version that people change; readings move without it */
        this.etag = answer.etag?.startsWith("W/") ? answer.etag : null;
        this.data.value = answer.data;
        /* the audit log counts its own rows */
        readUpTo(this.path.startsWith("/audit") ? 0 : ((answer.data as { as_of_seq?: number } | null)?.as_of_seq ?? 0));
      }
      this.error.value = null;
      this.tries.value = 0;
      this.at.value = serverNow();
    } catch (cause) {
      if (abort.signal.aborted) {
        return;
      }
      this.fail(cause);
    } finally {
      if (this.abort === abort) {
        this.loading.value = false;
        this.abort = null;
      }
    }
  }

  private fail(cause: unknown): void {
    const error = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    this.error.value = error;
    this.tries.value += 1;
    const passing = error.status === 0 || error.status === 429 || error.status >= 500;
    if (passing && this.users > 0) {
      const wait = error.retryAfterSeconds ? error.retryAfterSeconds * 1000 : (RETRY_MS[Math.min(this.tries.peek(), RETRY_MS.length) - 1] ?? 30_000);
      this.retryAt.value = serverNow() + wait;
      this.soon(wait);
    }
  }

  /** Puts in what a verb has just answered, ahead of the next read. */
  put(data: T): void {
    this.data.value = data;
    this.etag = null;
  }

  get unused(): boolean {
    return this.users === 0 && Date.now() - this.unusedSince > KEEP_MS;
  }
}

const cache = new Map<string, Query<unknown>>();

export function query<T>(path: string): Query<T> {
  let found = cache.get(path);
  if (!found) {
    for (const [key, entry] of cache) {
      if (entry.unused) {
        cache.delete(key);
      }
    }
    found = new Query<unknown>(path);
    found.unusedSince = Date.now();
    cache.set(path, found);
  }
  return found as Query<T>;
}

/** Reads every address that is shown and starts with prefix: after a verb that changed it. */
export function refresh(prefix: string): void {
  for (const [key, entry] of cache) {
    if (key.startsWith(prefix)) {
      entry.soon(0);
    }
  }
}

/** All that was read belongs to one org and one person. */
export function forgetAll(): void {
  cache.clear();
}

export function startStore(): void {
  onMessage((message) => {
    for (const entry of cache.values()) {
      entry.hear(message);
    }
  });
}

const IDLE = new Query<never>("");

/** The answer of GET path, shared and live while the component is shown. null: read nothing yet. */
export function useQuery<T>(path: string | null, interest: Interest = {}): Query<T> {
  const entry = useMemo(() => (path ? query<T>(path) : (IDLE as unknown as Query<T>)), [path]);
  useEffect(() => (path ? entry.use(interest) : undefined), [entry]);
  return entry;
}
