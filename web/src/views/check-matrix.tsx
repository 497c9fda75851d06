/* A row a check, a cell an interval: quiet tiles where all nodes passed, a solid one with a cross where one failed. */
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { counted } from "../format";
import { query, setQuery } from "../router";
import { moment, now, parse } from "../time";
import type { CheckMatrix, CheckRow } from "../types";
import { Nothing, TimeAxis } from "../ui/page";
import { Table, TableFrame } from "../ui/table";
import { passed, rowWords, stretches, timesOf, when, type Times } from "./check-words";

const WIDTH = 1000;
const GAP = 2;
const WORDS: Record<string, string> = { p: "all nodes passed", w: "a warning", f: "at least one node failed", ".": "no data" };

export function CellKey() {
  return (
    <span class="key">
      {(["pass", "warn", "fail", "none"] as const).map((kind) => (
        <span key={kind}>
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class={`x-${kind}`} width="8" height="8" />
          </svg>
          {{ pass: "all nodes passed", warn: "a warning", fail: "at least one node failed", none: "no data" }[kind]}
        </span>
      ))}
    </span>
  );
}

const MOVES: Record<string, (at: number, n: number) => number> = {
  ArrowRight: (at) => at + 1,
  ArrowLeft: (at, n) => (at < 0 ? n - 1 : at - 1),
  Home: () => 0,
  End: (_, n) => n - 1,
};

/** What of one check happened in one cell stands in the address, so that it can be sent to somebody. */
function openCell(row: CheckRow, times: Times, i: number): void {
  setQuery({ q: `check:${row.check_id}`, cell: new Date(times.since + i * times.stepMs).toISOString().replace(".000", "") });
}

/** All cells of one kind are one path: a row is five elements, not fifty. Pressing one, or arrow keys and Enter, lists what happened there. */
function Cells({ row, times }: { row: CheckRow; times: Times }) {
  const box = useRef<SVGSVGElement>(null);
  const at = useSignal<number | null>(null);
  const n = Math.max(1, row.cells.length);
  const step = WIDTH / n;
  const width = step - GAP;
  const path = (letter: string) => {
    let d = "";
    for (let i = 0; i < n; i++) {
      if (row.cells[i] === letter) {
        d += `M${(i * step).toFixed(1)} 2h${width.toFixed(1)}v16h-${width.toFixed(1)}z`;
      }
    }
    return d;
  };
  const glyphs = () => {
    let d = "";
    for (let i = 0; i < n; i++) {
      const middle = i * step + width / 2;
      if (row.cells[i] === "f") {
        d += `M${(middle - 4).toFixed(1)} 6.5l8 7m0 -7l-8 7`;
      } else if (row.cells[i] === "w") {
        d += `M${(middle - 5).toFixed(1)} 14h10`;
      }
    }
    return d;
  };
  const cellAt = (event: PointerEvent | MouseEvent): number | null => {
    const frame = box.current?.getBoundingClientRect();
    const i = frame && frame.width > 0 ? Math.floor(((event.clientX - frame.left) / frame.width) * n) : -1;
    return i >= 0 && i < n ? i : null;
  };
  const read = at.value === null ? null : (row.cells[at.value] ?? null);
  const told = read === null || at.value === null ? null : `${moment(times.since + at.value * times.stepMs, now.value)} ${WORDS[read] ?? read}`;
  const chosen = parse(query.value.get("cell"));
  const chosenAt = chosen !== null && query.value.get("q") === `check:${row.check_id}` ? Math.round((chosen - times.since) / times.stepMs) : -1;
  const onKey = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    if (move) {
      event.preventDefault();
      at.value = Math.max(0, Math.min(n - 1, move(at.value ?? -1, n)));
    } else if ((event.key === "Enter" || event.key === " ") && at.value !== null) {
      event.preventDefault();
      openCell(row, times, at.value);
    }
  };
  return (
    <div
      class="cellbox"
      role="slider"
      tabIndex={0}
      aria-label={rowWords(row, times)}
      aria-valuemin={0}
      aria-valuemax={n - 1}
      aria-valuenow={at.value ?? 0}
      aria-valuetext={told ?? "Arrow keys go from cell to cell, Enter lists what happened there"}
      onKeyDown={onKey}
      onBlur={() => (at.value = null)}
    >
      <svg
        ref={box}
        viewBox={`0 0 ${WIDTH} 20`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerMove={(event) => (at.value = cellAt(event))}
        onPointerLeave={() => (at.value = null)}
        onClick={(event) => {
          const i = cellAt(event);
          if (i !== null) {
            openCell(row, times, i);
          }
        }}
      >
        <rect class="x-hit" width={WIDTH} height="20" />
        {stretches(row.cells, ".").map(([from, to]) => (
          <rect key={from} class="x-none" x={from * step} y="2" width={(to - from) * step - GAP} height="16" />
        ))}
        <path class="x-pass" d={path("p")} />
        <path class="x-warn" d={path("w")} />
        <path class="x-fail" d={path("f")} />
        <path class="x-glyph" d={glyphs()} />
        {chosenAt >= 0 && chosenAt < n && <rect class="x-chosen" x={chosenAt * step} y="0.5" width={width} height="19" />}
      </svg>
      {read !== null && at.value !== null && (
        <span class="read" aria-hidden="true">
          {moment(times.since + at.value * times.stepMs, now.value)} <b>{WORDS[read] ?? read}</b>
        </span>
      )}
    </div>
  );
}

/* A node may fail one check with several devices: it is named once, with what was said first. */
function worstOf(row: CheckRow): { node_id: string; name: string; summary: string }[] {
  return row.worst.filter((one, i) => row.worst.findIndex((other) => other.node_id === one.node_id) === i);
}

function Worst({ row, clusterId }: { row: CheckRow; clusterId: string }) {
  const worst = worstOf(row);
  const first = worst[0];
  if (!first) {
    return <Nothing />;
  }
  return (
    <>
      <a href={`/clusters/${clusterId}/nodes/${first.node_id}`} title={first.summary}>
        {first.name}
      </a>
      {worst.length > 1 ? (
        worst.slice(1).map((one) => (
          <span key={one.node_id}>
            ,{" "}
            <a href={`/clusters/${clusterId}/nodes/${one.node_id}`} title={one.summary}>
              {one.name}
            </a>
          </span>
        ))
      ) : (
        <span class="t2">, {first.summary}</span>
      )}
    </>
  );
}

function silent(row: CheckRow): boolean {
  return !/[^.]/.test(row.cells) && row.worst.length === 0;
}

const KIND_WORDS = { passive: "Passive, continuous, every node", active: "Active, on request" } as const;

export function Matrix({ matrix, rows, clusterId }: { matrix: CheckMatrix; rows: CheckRow[]; clusterId: string }) {
  const times = timesOf(matrix);
  const until = times.since + matrix.bucket_seconds * 1000 * (rows[0]?.cells.length ?? 1);
  const seen = rows.filter((row) => !silent(row));
  const unseen = rows.filter(silent);
  const groups = (["passive", "active"] as const).map((kind) => [kind, seen.filter((row) => row.kind === kind)] as const).filter(([, list]) => list.length > 0);
  return (
    <>
      <TableFrame name="Checks over time" class="desk">
        <table class="mx">
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col" class="ax">
                <span class="vh">Results over time</span>
                <TimeAxis since={times.since} until={until} steps={6} live={until > now.value - matrix.bucket_seconds * 1000} />
              </th>
              <th scope="col" class="num">
                Passed
              </th>
              <th scope="col">Worst now</th>
            </tr>
          </thead>
          <tbody>
            {groups.map(([kind, list]) => [
              <tr class="gap" key={kind}>
                <th colSpan={4} scope="colgroup">
                  {KIND_WORDS[kind]}
                </th>
              </tr>,
              ...list.map((row) => (
                <tr key={row.check_id}>
                  <th scope="row">
                    <button type="button" class="linkish plain" onClick={() => setQuery({ q: `check:${row.check_id}`, cell: null })}>
                      {row.title}
                    </button>
                  </th>
                  <td class="cells">
                    <Cells row={row} times={times} />
                  </td>
                  <td class="num">{passed(row.passed_ratio)}</td>
                  <td class="worst">
                    <Worst row={row} clusterId={clusterId} />
                  </td>
                </tr>
              )),
            ])}
          </tbody>
        </table>
      </TableFrame>
      <ul class="mobile mxlist">
        {seen.map((row) => (
          <li key={row.check_id}>
            <button type="button" class="linkish plain" onClick={() => setQuery({ q: `check:${row.check_id}`, cell: null })}>
              {row.title}
            </button>
            <span class="t2 s12">{passed(row.passed_ratio)}</span>
            <Cells row={row} times={times} />
            {row.worst.length > 0 && (
              <span class="s12 whole">
                <Worst row={row} clusterId={clusterId} />
              </span>
            )}
          </li>
        ))}
      </ul>
      {unseen.length > 0 && <Unseen rows={unseen} />}
    </>
  );
}

/** Checks whose source no node of this cluster has are named once, not drawn as hatching. */
function Unseen({ rows }: { rows: CheckRow[] }) {
  return (
    <p class="s12 t3 gap12">
      {counted(rows.length, "check")} without data in this time: {rows.map((row) => row.title).join(", ")}.
    </p>
  );
}

/** The same as a table: when each check failed, in words. */
export function CheckTable({ matrix, rows }: { matrix: CheckMatrix; rows: CheckRow[] }) {
  const times = timesOf(matrix);
  const told = (row: CheckRow, letter: string) => when(stretches(row.cells, letter), times) || <Nothing>never</Nothing>;
  return (
    <Table
      name="Checks"
      rows={rows}
      rowKey={(row) => row.check_id}
      columns={[
        { key: "check", head: "Check", class: "nw", cell: (row) => row.title },
        { key: "passed", head: "Passed", number: true, class: "nw", cell: (row) => passed(row.passed_ratio) },
        { key: "failed", head: "Failed", cell: (row) => told(row, "f") },
        { key: "warned", head: "Warned", cell: (row) => told(row, "w") },
        { key: "none", head: "No data", cell: (row) => (/[^.]/.test(row.cells) ? told(row, ".") : "all the time") },
        { key: "worst", head: "Worst now", cell: (row) => worstOf(row).map((one) => one.name).join(", ") || <Nothing /> },
      ]}
    />
  );
}

