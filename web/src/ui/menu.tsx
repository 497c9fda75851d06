/* A button that opens a short list below it; Escape, a choice or a press outside closes it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";

export interface MenuProps {
  label?: string;
  button: ComponentChildren;
  class: string;
  /** drawn only while open */
  children: (close: () => void) => ComponentChildren;
  end?: boolean;
}

export function Menu(props: MenuProps) {
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => (open.value = false);
  useEffect(() => {
    if (!open.value) {
      return undefined;
    }
    const outside = (event: Event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) {
        close();
      }
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape") {
        close();
        button.current?.focus();
      }
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    document.addEventListener("keydown", escape);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
      document.removeEventListener("keydown", escape);
    };
  }, [open.value]);
  return (
    <div class="menubox" ref={box}>
      <button ref={button} type="button" class={props.class} aria-label={props.label} aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        {props.button}
      </button>
      {open.value && <div class={props.end ? "pop end" : "pop"}>{props.children(close)}</div>}
    </div>
  );
}
