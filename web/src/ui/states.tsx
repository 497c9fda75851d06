/* What stands where data should: skeleton, empty, error, refusal, and data that could not be renewed. */
import { Component, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ApiError } from "../api";
import type { Query } from "../store";
import { clock, now, span } from "../time";
import { Button, CopyButton } from "./controls";
import { Icon, type IconName, type Tone } from "./icons";

export type NoteTone = "bad" | "warn" | "good" | "neutral";

const NOTE_ICON: Record<NoteTone, [IconName, Tone]> = {
  bad: ["close", "bad"],
  warn: ["warn", "warn"],
  good: ["tick", "good"],
  neutral: ["info", undefined],
};

/** A tinted box inside a section: what failed, what still works, what happens next. */
export function Note(props: { tone: NoteTone; title: ComponentChildren; children?: ComponentChildren; icon?: IconName; alert?: boolean }) {
  const [icon, tone] = NOTE_ICON[props.tone];
  return (
    <div class={`note ${props.tone}`} role={props.alert ? "alert" : undefined}>
      <Icon name={props.icon ?? icon} tone={tone} />
      <div>
        <b>{props.title}</b>
        {props.children}
      </div>
    </div>
  );
}

/** A full-width line above the page sentence. */
export function Banner(props: { tone: "bad" | "warn" | "neutral"; icon?: IconName; children: ComponentChildren; action?: ComponentChildren }) {
  const [icon, tone] = NOTE_ICON[props.tone];
  return (
    <div class={`banner ${props.tone}`} role="status">
      <Icon name={props.icon ?? icon} tone={tone} />
      <span class="msg">{props.children}</span>
      {props.action}
    </div>
  );
}

/** Bars of the final size; only after 300 ms, so that a fast answer does not flash. */
export function Skeleton({ rows = 4, label, height = 36 }: { rows?: number; label: string; height?: number }) {
  const shown = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (shown.value = true), 300);
    return () => clearTimeout(timer);
  }, []);
  const lengths = [310, 250, 340, 220, 290];
  return (
    <>
      <svg class="skeleton" viewBox={`0 0 400 ${rows * height}`} height={rows * height} preserveAspectRatio="none" aria-hidden="true">
        {shown.value &&
          Array.from({ length: rows }, (_, i) => (
            <g key={i}>
              <rect class="skel" y={i * height + height / 2 - 6} width={lengths[i % lengths.length]} height="12" />
              <rect class="skel" x="352" y={i * height + height / 2 - 6} width="48" height="12" />
            </g>
          ))}
      </svg>
      <p class="vh" role="status">
        Loading {label}
      </p>
    </>
  );
}

/** The next step in place of nothing. */
export function Empty(props: { title: string; children: ComponentChildren; level?: 1 | 2 }) {
  return (
    <div class="empty">
      {props.level === 1 ? <h1 tabIndex={-1}>{props.title}</h1> : <h2>{props.title}</h2>}
      {props.children}
    </div>
  );
}

/** "Request 0198…, 14:31:58. Next try in 20 s." */
function ErrorFoot({ error, query }: { error: ApiError; query?: Query<unknown> | undefined }) {
  const left = (query?.retryAt.value ?? 0) - now.value;
  const tries = query?.tries.value ?? 1;
  return (
    <p class="s12 t3 gap4">
      {error.requestId ? `Request ${error.requestId}, ` : "At "}
      {clock(error.at, true)}.{tries > 1 ? ` Tried ${tries} times` : ""}
      {query?.retryAt.value ? `${tries > 1 ? "; next" : " Next"} try in ${span(Math.max(0, left))}.` : tries > 1 ? "." : ""}
    </p>
  );
}

const PERMISSION_WORDS = "Somebody with the role admin in this org can give it.";

/** An error of any request, said in full. what: "This list". */
export function ErrorNote(props: { error: ApiError; what: string; query?: Query<unknown>; stillWorks?: string; retry?: () => void }) {
  const { error } = props;
  if (error.status === 403) {
    return (
      <Note tone="neutral" icon="lock" title={`You may not see ${props.what.charAt(0).toLowerCase()}${props.what.slice(1)}.`}>
        <p class="t2">
          {error.detail || "Your roles do not allow it."} {PERMISSION_WORDS}
        </p>
        {error.requestId && <p class="s12 t3 gap4">Request {error.requestId}</p>}
      </Note>
    );
  }
  const retry = props.retry ?? (props.query ? () => void props.query?.read() : undefined);
  return (
    <Note tone="bad" alert title={`${props.what} could not be loaded.`}>
      <p class="t2">
        {error.title}
        {/[.!?]$/.test(error.title) ? "" : "."} {error.detail} {props.stillWorks}
      </p>
      <ErrorFoot error={error} query={props.query} />
      <p class="row8">
        {retry && (
          <Button small onClick={retry}>
            Try now
          </Button>
        )}
        {error.requestId && (
          <CopyButton small kind="quiet" text={error.requestId}>
            Copy request id
          </CopyButton>
        )}
      </p>
    </Note>
  );
}

/**
 * The states of one answer, so that a failing one never blanks the page: skeleton, error, or the data;
 * data that could not be renewed stays, with a line that says since when.
 */
export function Loaded<T>(props: {
  query: Query<T>;
  what: string;
  rows?: number;
  stillWorks?: string;
  children: (data: T) => ComponentChildren;
}) {
  const { query } = props;
  const data = query.data.value;
  const error = query.error.value;
  if (data === null) {
    return error ? (
      <ErrorNote error={error} what={props.what} query={query as Query<unknown>} {...(props.stillWorks ? { stillWorks: props.stillWorks } : {})} />
    ) : (
      <Skeleton rows={props.rows ?? 4} label={props.what.toLowerCase()} />
    );
  }
  return (
    <>
      {error && <StaleLine query={query as Query<unknown>} error={error} />}
      <Boundary what={props.what}>{props.children(data)}</Boundary>
    </>
  );
}

/** Data that could not be renewed: since when, and why. */
export function StaleLine({ query, error }: { query: Query<unknown>; error: ApiError }) {
  return (
    <p class="staleline s12" role="status">
      <Icon name="clock" tone="warn" />
      <span>
        From {clock(query.at.value, true)}; it could not be renewed: {error.title}.{" "}
        <button type="button" class="linkish" onClick={() => void query.read()}>
          Try now
        </button>
      </span>
    </p>
  );
}

/** One broken card does not take the page with it. */
export class Boundary extends Component<{ what: string; children: ComponentChildren }, { failed: string | null }> {
  state = { failed: null };

  static getDerivedStateFromError(error: unknown) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }

  render() {
    if (this.state.failed === null) {
      return this.props.children;
    }
    return (
      <Note tone="bad" alert title={`${this.props.what} could not be shown.`}>
        <p class="t2">The console met an answer that it cannot draw: {this.state.failed}. The rest of this page is not touched.</p>
        <p class="row8">
          <Button small onClick={() => this.setState({ failed: null })}>
            Try again
          </Button>
        </p>
      </Note>
    );
  }
}
