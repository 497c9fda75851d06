/* Lanes over time: intervals and marks, the same scale for all, with the same facts as a list for screen readers. */
import type { ComponentChildren } from "preact";

export interface LaneItem {
  /** milliseconds; to null: still so, drawn up to the end */
  from: number;
  to: number | null;
  /** a class of records.css: l-healthy, l-unhealthy, l-repairing, l-starting, l-paused, l-unknown, l-pending, l-gap, l-fault, l-warning, l-event */
  kind: string;
  label: string;
  /** tall: a root cause; thin: it only waits */
  size?: "tall" | "thin";
}

export interface Lane {
  label: string;
  items: LaneItem[];
  /** stands in a lane without items */
  note?: string;
  /** a line instead of intervals: an SVG path in 1000 x 28 */
  line?: { path: string; label: string };
}

const HEIGHT = 28;
const HEIGHTS = { tall: 20, thin: 4 } as const;
const SMALLEST_PX = 6; /* a mark can be seen and hit */
const NARROW = 2.2; /* percent: on the narrowest screen this is as wide as the smallest mark */

/** Percent of the lane, so that nothing is distorted when it is stretched. */
function Interval({ item, left, right }: { item: LaneItem; left: number; right: number }) {
  const height = item.size ? HEIGHTS[item.size] : 12;
  const common = { class: item.kind, y: (HEIGHT - height) / 2, height };
  const atEnd = right > 99;
  return (
    <g>
      <title>{item.label}</title>
      {right - left < NARROW && (
        <svg x={`${atEnd ? right : left}%`} overflow="visible">
          <rect {...common} x={atEnd ? -SMALLEST_PX : 0} width={SMALLEST_PX} />
        </svg>
      )}
      <rect {...common} x={`${left}%`} width={`${Math.max(0, right - left)}%`} />
    </g>
  );
}

export function Lanes(props: { lanes: Lane[]; since: number; until: number; children?: ComponentChildren }) {
  const { since, until } = props;
  const x = (ms: number) => Math.max(0, Math.min(100, ((ms - since) / Math.max(1, until - since)) * 100));
  return (
    <div class="lanes">
      {props.lanes.map((lane) => (
        <div class="lane" key={lane.label}>
          <span>{lane.label}</span>
          <div>
            <svg class="track" aria-hidden="true">
              {lane.items.map((item, i) => {
                const left = x(item.from);
                const right = x(item.to ?? until);
                return item.from > until || right < left ? null : <Interval key={i} item={item} left={left} right={right} />;
              })}
              {lane.line && (
                <svg class="track" viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none">
                  <path class="ln" d={lane.line.path} />
                </svg>
              )}
            </svg>
            {lane.note && lane.items.length === 0 && !lane.line && <span class="lanenote">{lane.note}</span>}
            {(lane.items.length > 0 || lane.line) && (
              <ol class="vh" aria-label={lane.label}>
                {lane.line && <li>{lane.line.label}</li>}
                {lane.items.map((item, i) => (
                  <li key={i}>{item.label}</li>
                ))}
              </ol>
            )}
          </div>
        </div>
      ))}
      {props.children}
    </div>
  );
}
