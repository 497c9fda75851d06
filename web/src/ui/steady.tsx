/* Rows keep their place while the pointer is on them: what is new waits, what is gone stays until it leaves. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { counted } from "../format";

export interface SteadyProps<T> {
  rows: T[];
  /** "repair": what one row is */
  one: string;
  children: (rows: T[]) => ComponentChildren;
}

export function Steady<T extends { id: string }>({ rows, one, children }: SteadyProps<T>) {
  const shown = useRef(rows);
  const held = useRef(false);
  const turn = useSignal(0);
  turn.value; /* letting go draws anew */
  if (held.current) {
    const fresh = new Map(rows.map((row) => [row.id, row]));
    shown.current = shown.current.map((row) => fresh.get(row.id) ?? row);
  } else {
    shown.current = rows;
  }
  const here = new Set(shown.current.map((row) => row.id));
  const waiting = rows.filter((row) => !here.has(row.id)).length;
  const release = () => {
    if (held.current) {
      held.current = false;
      turn.value += 1;
    }
  };
  return (
    <div
      class="steady"
      /* entering is not enough: a dialog that closes leaves the pointer on whatever was below it */
      onPointerMove={(event) => {
        if (event.pointerType === "mouse" && (event.movementX !== 0 || event.movementY !== 0)) {
          held.current = true;
        }
      }}
      onPointerLeave={release}
    >
      {waiting > 0 && (
        <p class="arrived" role="status">
          <button type="button" class="linkish" onClick={release}>
            {counted(waiting, `new ${one}`)}, show
          </button>
        </p>
      )}
      {children(shown.current)}
    </div>
  );
}
