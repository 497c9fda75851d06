/* A small chart of one figure over a day: today solid, the day before dotted, missing data hatched. */
import { useId, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { clock, moment } from "../time";
import { drawn, drawnStep, gaps, type Day, type Point } from "../views/history";
import { TimeAxis } from "./page";

const WIDTH = 340; /* near the width in pixels, so that the hatching keeps its slope */
const HEIGHT = 88;

function line(points: Point[], top: number, step: number): { path: string; dots: Point[] } {
  let path = "";
  let pen = false;
  let last = -1;
  const dots: Point[] = [];
  points.forEach((point, i) => {
    if (point.y === null || (pen && point.x - last > step * 1.9)) {
      pen = false;
    }
    if (point.y === null) {
      return;
    }
    const next = points[i + 1];
    if (!pen && (!next || next.y === null || next.x - point.x > step * 1.9)) {
      dots.push(point);
    }
    path += `${pen ? "L" : "M"}${(point.x * WIDTH).toFixed(1)} ${(HEIGHT - (Math.min(point.y, top) / top) * HEIGHT).toFixed(1)}`;
    pen = true;
    last = point.x;
  });
  return { path, dots };
}

export interface ChartProps {
  title: string;
  value: string;
  compare?: string;
  day: Day;
  /** the top of the axis, in the figure's unit */
  top: number;
  /** how the axis is written; the unit stands at the top only */
  axis: [top: string, middle: string];
  format: (value: number) => string;
}

export function Chart(props: ChartProps) {
  const { top } = props;
  const day = drawn(props.day);
  const step = drawnStep(props.day);
  const box = useRef<HTMLDivElement>(null);
  const at = useSignal<number | null>(null);
  const id = useId();
  const today = line(day.today, top, step);
  const before = line(day.before, top, step);
  const known = day.today.filter((point) => point.y !== null);
  const read = at.value === null ? null : known.reduce<Point | null>((best, p) => (best && Math.abs(best.x - (at.value ?? 0)) <= Math.abs(p.x - (at.value ?? 0)) ? best : p), null);
  const ms = (x: number) => day.since + x * (day.until - day.since);
  const first = known[0];
  return (
    <figure class="chart" aria-labelledby={id}>
      <h3 id={id}>
        {props.title} <b>{props.value}</b>
        {props.compare && <span class="hint">{props.compare}</span>}
      </h3>
      <div
        class="plot"
        ref={box}
        onPointerMove={(event) => {
          const width = (box.current?.clientWidth ?? 0) - 40;
          const x = event.clientX - (box.current?.getBoundingClientRect().left ?? 0);
          at.value = width > 0 && x >= 0 && x <= width ? x / width : null;
        }}
        onPointerLeave={() => (at.value = null)}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="gl" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}`} />
          <path class="gl zero" d={`M0 ${HEIGHT}H${WIDTH}`} />
          {gaps(day.today, step).map(([from, to]) => (
            <rect key={from} class="hatch" x={from * WIDTH} width={(to - from) * WIDTH} height={HEIGHT} />
          ))}
          {first && first.x > step * 2.5 && <rect class="hatch" width={first.x * WIDTH} height={HEIGHT} />}
          {before.path && <path class="ln before" d={before.path} />}
          {today.path && <path class="ln" d={today.path} />}
          {today.dots.map((dot) => (
            <rect key={dot.x} class="dotp" x={dot.x * WIDTH - 2} y={HEIGHT - (Math.min(dot.y ?? 0, top) / top) * HEIGHT - 1.5} width="4" height="3" />
          ))}
          {read && <path class="cursor" d={`M${read.x * WIDTH} 0V${HEIGHT}`} />}
        </svg>
        <span class="yl full" aria-hidden="true">
          {props.axis[0]}
        </span>
        <span class="yl half" aria-hidden="true">
          {props.axis[1]}
        </span>
        {read && read.y !== null && (
          <span class="read">
            {clock(ms(read.x))} <b>{props.format(read.y)}</b>
          </span>
        )}
      </div>
      <TimeAxis since={day.since} until={day.until} steps={4} />
    </figure>
  );
}

const ROWS = 24;

/** The same figures as a table of 24 rows: what the charts say, for who cannot see them. */
export function HoursTable({ charts, name }: { charts: Pick<ChartProps, "title" | "day" | "format">[]; name: string }) {
  const day = charts[0]?.day;
  if (!day) {
    return null;
  }
  const mean = (points: Point[], i: number, format: (value: number) => string) => {
    const values = points.filter((p) => p.y !== null && p.x >= i / ROWS && p.x < (i + 1) / ROWS).map((p) => p.y as number);
    return values.length ? format(values.reduce((a, b) => a + b, 0) / values.length) : "no data";
  };
  return (
    <div class="tw hours" tabIndex={0} role="region" aria-label={`${name}, scrolls`}>
      <table class="tbl">
        <thead>
          <tr>
            <th scope="col">From</th>
            {charts.map((chart) => [
              <th scope="col" class="num" key={chart.title}>
                {chart.title}
              </th>,
              <th scope="col" class="num" key={`${chart.title} before`}>
                the day before
              </th>,
            ])}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: ROWS }, (_, i) => (
            <tr key={i}>
              <td class="nw">{moment(day.since + (i / ROWS) * (day.until - day.since), day.until)}</td>
              {charts.map((chart) => [
                <td class="num" key={chart.title}>
                  {mean(chart.day.today, i, chart.format)}
                </td>,
                <td class="num t3" key={`${chart.title} before`}>
                  {mean(chart.day.before, i, chart.format)}
                </td>,
              ])}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
