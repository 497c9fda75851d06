/* The tile that says a node's state, the same in lists, legend and header, and the bar of all states. */
import type { ComponentChildren } from "preact";
import { count } from "../format";
import { narrow } from "../media";
import type { NodeState, Rollup } from "../types";
import { BAR_GAP, barWidths, markKind, NOT_HEALTHY, STATES, STATE_WORD, type MarkKind } from "./verdict";

export { markKind, NOT_HEALTHY, STATES, STATE_WORD, type MarkKind };

function Solid({ kind, children }: { kind: string; children: ComponentChildren }) {
  return (
    <>
      <rect class={`f-${kind}`} width="12" height="12" rx="2" />
      {children}
    </>
  );
}

function glyph(kind: MarkKind) {
  switch (kind) {
    case "healthy":
      return <rect class="f-healthy" x=".5" y=".5" width="11" height="11" rx="1.5" />;
    case "warning":
      return (
        <>
          <rect class="f-healthy" x=".5" y=".5" width="11" height="11" rx="1.5" />
          <path class="f-warning" d="M0 8h12v2a2 2 0 0 1-2 2H2a2 2 0 0 1-2-2z" />
        </>
      );
    case "unhealthy":
      return (
        <Solid kind={kind}>
          <path class="glyph" d="M3.5 3.5l5 5M8.5 3.5l-5 5" />
        </Solid>
      );
    case "repairing":
      return (
        <Solid kind={kind}>
          <path class="glyph" d="M3 9l6-6" />
        </Solid>
      );
    case "starting":
      return (
        <Solid kind={kind}>
          <path class="glyph-solid" d="M2 5h2v2H2zM5 5h2v2H5zM8 5h2v2H8z" />
        </Solid>
      );
    case "paused":
      return (
        <Solid kind={kind}>
          <path class="glyph-solid" d="M3.5 3h1.75v6H3.5zM6.75 3H8.5v6H6.75z" />
        </Solid>
      );
    case "pending":
      return <rect class="o-pending" x=".75" y=".75" width="10.5" height="10.5" rx="1" />;
    default:
      return <rect class="o-unknown" x=".75" y=".75" width="10.5" height="10.5" rx="1" />;
  }
}

/** The 12 px tile alone: only beside a word, or with label where the word is not shown. */
export function Mark({ kind, label }: { kind: MarkKind; label?: string }) {
  return (
    <svg class="mk" viewBox="0 0 12 12" {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}>
      {glyph(kind)}
    </svg>
  );
}

/** Tile and word; children replace the word ("gpu-17-03"), the state is then said to screen readers. */
export function StateMark({ state, warning = false, children }: { state: NodeState; warning?: boolean; children?: ComponentChildren }) {
  const kind = markKind(state, warning);
  return (
    <span class="st">
      <Mark kind={kind} {...(children ? { label: STATE_WORD[kind] } : {})} />
      {children ?? STATE_WORD[kind]}
    </span>
  );
}

/* about the width in pixels, so that 8 units are about 8 pixels */
const BAR_WIDTH = 1056;
const BAR_WIDTH_NARROW = 358;

export function StateBar({ states }: { states: Record<NodeState, number> }) {
  const counts = STATES.map((state) => states[state] ?? 0);
  const full = narrow.value ? BAR_WIDTH_NARROW : BAR_WIDTH;
  const widths = barWidths(counts, full);
  let x = 0;
  const words = STATES.filter((_, i) => (counts[i] ?? 0) > 0).map((state) => `${count(states[state])} ${state}`);
  return (
    <svg class="statebar" viewBox={`0 0 ${full} 12`} preserveAspectRatio="none" role="img" aria-label={words.join(", ") || "No node"}>
      {STATES.map((state, i) => {
        const width = widths[i] ?? 0;
        const at = x;
        x += width ? width + BAR_GAP : 0;
        return width ? <rect key={state} class={`f-${state}`} x={at} width={width} height="12" /> : null;
      })}
    </svg>
  );
}

/** The counts below the bar, each a link to the nodes that it counts. */
export function StateCounts({ rollup, href }: { rollup: Rollup; href: (filter: string) => string }) {
  return (
    <ul class="counts">
      {STATES.map((state) => {
        const n = rollup.states[state] ?? 0;
        return (
          <li key={state}>
            <a href={href(`state:${state}`)} class={n ? undefined : "zero"}>
              <Mark kind={state} />
              {STATE_WORD[state]} <b>{count(n)}</b>
            </a>
          </li>
        );
      })}
      {rollup.warning > 0 && (
        <li class="also">
          <a href={href("warning:yes")}>
            <Mark kind="warning" />
            {count(rollup.warning)} of the healthy {rollup.warning === 1 ? "has" : "have"} a warning
          </a>
        </li>
      )}
    </ul>
  );
}

/** The hatching for missing data, once in the page, used as url(#hatch). */
export function Patterns() {
  return (
    <svg class="vh" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path class="hatchline" d="M0 0v5" />
        </pattern>
      </defs>
    </svg>
  );
}

/** A thin bar for a ratio in a table cell. */
export function RatioBar({ ratio, wide = false }: { ratio: number; wide?: boolean }) {
  return (
    <svg class={wide ? "bar wide" : "bar"} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="b0" width="100" height="4" />
      <rect class="b1" width={Math.max(0, Math.min(100, ratio * 100))} height="4" />
    </svg>
  );
}
