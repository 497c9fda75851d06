/* One door to the API: problem documents become errors with fields, ETags and keys become arguments. */
import { signal } from "@preact/signals";
import { learnServerTime } from "./time";

export const BASE = "/api/v1";
const TIMEOUT_MS = 15_000;

export interface FieldError {
  pointer?: string;
  parameter?: string;
  code: string;
  detail: string;
}

/** What went wrong, in the server's words. status 0: no answer came at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly requestId: string | null,
    readonly errors: FieldError[] = [],
    /** 409 carries the present state of the thing */
    readonly state: string | null = null,
    readonly retryAfterSeconds: number | null = null,
    readonly at: number = Date.now(),
  ) {
    super(detail || title);
    this.name = "ApiError";
  }

  /** The complaint about one field of the body, by its name. */
  field(name: string): string | null {
    return this.errors.find((e) => e.pointer === `#/${name}` || e.parameter === name)?.detail ?? null;
  }
}

export interface Options {
  /** the path stands below the server itself and not below /api/v1 */
  outside?: boolean;
  body?: unknown;
  ifMatch?: string;
  ifNoneMatch?: string | null;
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface Answer<T> {
  status: number;
  /** null on 204 and 304 */
  data: T | null;
  etag: string | null;
}

/** True once the server has said that there is no session; the app then shows the sign-in page. */
export const signedOut = signal(false);

/** How often the server refused because the organization is suspended; the app then asks who one is. */
export const suspendedSeen = signal(0);

function problem(status: number, body: Record<string, unknown>, headers: Headers): ApiError {
  const text = (key: string) => (typeof body[key] === "string" ? (body[key] as string) : "");
  const retry = Number(headers.get("Retry-After"));
  return new ApiError(
    status,
    text("code") || `http_${status}`,
    text("title") || "The server refused the request",
    text("detail"),
    text("request_id") || headers.get("X-Request-Id"),
    Array.isArray(body.errors) ? (body.errors as FieldError[]) : [],
    text("state") || null,
    retry > 0 ? retry : null,
  );
}

function unreachable(cause: unknown): ApiError {
  const late = cause instanceof DOMException && cause.name === "TimeoutError";
  return late
    ? new ApiError(0, "timeout", "The server did not answer", `No answer within ${TIMEOUT_MS / 1000} s.`, null)
    : new ApiError(0, "network", "The server cannot be reached", "Check the network, or whether the server runs.", null);
}

async function json(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(response.status, "bad_json", "The answer could not be read", "It is not JSON.", response.headers.get("X-Request-Id"));
  }
}

/** Asks the API; path is below /api/v1. Throws ApiError, or the abort of options.signal. */
export async function request<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") {
    /* without it the server takes no change from a cookie, a DELETE neither */
    headers["Content-Type"] = "application/json";
  }
  if (options.ifMatch) {
    headers["If-Match"] = options.ifMatch;
  }
  if (options.ifNoneMatch) {
    headers["If-None-Match"] = options.ifNoneMatch;
  }
  if (options.idempotencyKey) {
    headers["Idempotency-Key"] = options.idempotencyKey;
  }
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response: Response;
  try {
    response = await fetch(options.outside ? path : BASE + path, {
      method,
      headers,
      body: options.body === undefined ? (method === "POST" ? "{}" : null) : JSON.stringify(options.body),
      /* the ETag is kept by us, so a 304 must come through */
      cache: "no-store",
      credentials: "same-origin",
      signal: options.signal ? anySignal([options.signal, timeout]) : timeout,
    });
  } catch (cause) {
    if (options.signal?.aborted) {
      throw cause;
    }
    throw unreachable(cause);
  }
  learnServerTime(response.headers.get("Date"));
  const etag = response.headers.get("ETag");
  if (response.status === 304 || response.status === 204) {
    return { status: response.status, data: null, etag };
  }
  const body = await json(response);
  if (!response.ok) {
    if (response.status === 401 && path !== "/session") {
      signedOut.value = true;
    }
    if (response.status === 403 && (body as { code?: string } | null)?.code === "org_suspended") {
      suspendedSeen.value += 1;
    }
    throw problem(response.status, (body ?? {}) as Record<string, unknown>, response.headers);
  }
  return { status: response.status, data: body as T, etag };
}

/* AbortSignal.any is younger than the browsers that we support */
function anySignal(signals: AbortSignal[]): AbortSignal {
  const joint = new AbortController();
  for (const one of signals) {
    if (one.aborted) {
      joint.abort(one.reason);
    }
    one.addEventListener("abort", () => joint.abort(one.reason), { once: true });
  }
  return joint.signal;
}

export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return (await request<T>("GET", path, options)).data as T;
}

export async function post<T>(path: string, body: unknown = {}, options: Options = {}): Promise<T> {
  return (await request<T>("POST", path, { ...options, body })).data as T;
}

/** version is the resource's own: the server refuses (412) where somebody was faster. */
export async function patch<T>(path: string, body: unknown, version: number | string): Promise<T> {
  return (await request<T>("PATCH", path, { body, ifMatch: `"${version}"` })).data as T;
}

/** Keep one for all tries of one decision. randomUUID needs a secure context; getRandomValues does not. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Query strings without empty parts; arrays repeat their key. */
export function withQuery(path: string, parts: Record<string, string | number | boolean | null | undefined | string[]>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(parts)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") {
        search.append(key, String(one));
      }
    }
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}
