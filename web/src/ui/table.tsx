/* Tables: a frame that can be reached by keyboard while it scrolls sideways, and rows that exist only in view. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";

/** name: what the table is called while it scrolls sideways. */
export function TableFrame({ name, children, class: extra }: { name: string; children: ComponentChildren; class?: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const scrolls = useSignal(false);
  useEffect(() => {
    const element = frame.current;
    if (!element) {
      return undefined;
    }
    const look = () => (scrolls.value = element.scrollWidth > element.clientWidth + 1);
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    if (element.firstElementChild) {
      watcher.observe(element.firstElementChild);
    }
    return () => watcher.disconnect();
  }, []);
  const reach = scrolls.value ? ({ tabIndex: 0, role: "region", "aria-label": `${name}, scrolls sideways` } as const) : {};
  return (
    <div class={extra ? `tw ${extra}` : "tw"} ref={frame} {...reach}>
      {children}
    </div>
  );
}

export interface Column<T> {
  key: string;
  head: ComponentChildren;
  cell: (row: T) => ComponentChildren;
  number?: boolean;
  class?: string;
}

/** A short table: every row drawn. rowClass tints a row ("on", "badrow"). */
export function Table<T>(props: {
  name: string;
  columns: Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  rowClass?: (row: T) => string | undefined;
  class?: string;
}) {
  const cellClass = (column: Column<T>) => [column.number ? "num" : "", column.class ?? ""].filter(Boolean).join(" ") || undefined;
  return (
    <TableFrame name={props.name} {...(props.class ? { class: props.class } : {})}>
      <table class="tbl">
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.key} scope="col" class={cellClass(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.rowKey(row)} class={props.rowClass?.(row)}>
              {props.columns.map((column) => (
                <td key={column.key} class={cellClass(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

export interface Window {
  first: number;
  /** one past the last row to draw */
  end: number;
  above: number;
  below: number;
}

const OVERSCAN = 8;

/** Which of n rows of one height are to be drawn, for a list that scrolls with the page. */
export function useWindow(n: number, rowHeight: number): { ref: { current: HTMLElement | null }; view: Window } {
  const ref = useRef<HTMLElement | null>(null);
  const first = useSignal(0);
  const size = useSignal(Math.ceil(innerHeight / rowHeight));
  useLayoutEffect(() => {
    let frame = 0;
    const look = () => {
      frame = 0;
      const top = ref.current?.getBoundingClientRect().top ?? 0;
      first.value = Math.floor(Math.max(0, -top) / rowHeight);
      size.value = Math.ceil(innerHeight / rowHeight);
    };
    const soon = () => {
      frame ||= requestAnimationFrame(look);
    };
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [n, rowHeight]);
  const from = Math.max(0, Math.min(first.value, n) - OVERSCAN);
  const end = Math.min(n, first.value + size.value + OVERSCAN);
  return { ref, view: { first: from, end, above: from * rowHeight, below: (n - end) * rowHeight } };
}

/** Stands for rows that are not drawn; its height is an attribute, since a style would be refused. */
export function SpacerRow({ height, columns }: { height: number; columns: number }) {
  return height > 0 ? (
    <tr class="spacer" aria-hidden="true">
      <td colSpan={columns}>
        <svg width="1" height={height} />
      </td>
    </tr>
  ) : null;
}
