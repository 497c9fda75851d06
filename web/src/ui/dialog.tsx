/* A dialog: title, body, foot. Focus starts on the title and returns to where it was; Escape closes. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "./controls";
import { Icon } from "./icons";

export interface DialogProps {
  title: string;
  /** one sentence on how */
  lead?: ComponentChildren;
  children: ComponentChildren;
  /** what binds or what is missing, left of the buttons */
  binds?: ComponentChildren;
  buttons: ComponentChildren;
  onClose: () => void;
  narrow?: boolean;
}

export function Dialog(props: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    title.current?.focus();
    return () => {
      box.current?.close();
      if (before instanceof HTMLElement) {
        before.focus();
      }
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={props.narrow ? "narrow" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) {
          props.onClose();
        }
      }}
    >
      <div class="dh">
        <div>
          <h2 id={id} ref={title} tabIndex={-1}>
            {props.title}
          </h2>
          {props.lead && <p>{props.lead}</p>}
        </div>
        <Button kind="quiet" icon label="Close" onClick={props.onClose}>
          <Icon name="close" />
        </Button>
      </div>
      <div class="db">{props.children}</div>
      <div class="df">
        <div class="sp s12 t2">{props.binds}</div>
        {props.buttons}
      </div>
    </dialog>
  );
}

/** Facts left, decision right: the body of a dialog in which something is decided. */
export function Split({ facts, decision }: { facts: ComponentChildren; decision: ComponentChildren }) {
  return (
    <div class="split">
      <div>{facts}</div>
      <div class="side">{decision}</div>
    </div>
  );
}

export function Block({ title, hint, children }: { title: string; hint?: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="blk">
      <h3>
        {title}
        {hint && <span class="hint">{hint}</span>}
      </h3>
      {children}
    </div>
  );
}
