/* Keyboard shortcuts: one letter, or "g" and a letter. They can be turned off (WCAG 2.1.4). */
import { signal } from "@preact/signals";

const KEY = "muster-keys";
const SEQUENCE_MS = 1_200;

export interface Shortcut {
  keys: string;
  does: string;
  run: () => void;
}

function kept(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

export const keysOn = signal(kept());
export const shortcuts = signal<Shortcut[]>([]);

export function setKeysOn(on: boolean): void {
  keysOn.value = on;
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    /* lasts as long as the page */
  }
}

/** Adds shortcuts while a view is shown; give the result back to useEffect. */
export function bindKeys(added: Shortcut[]): () => void {
  shortcuts.value = [...shortcuts.peek(), ...added];
  return () => {
    shortcuts.value = shortcuts.peek().filter((one) => !added.includes(one));
  };
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function startKeys(): void {
  let before = "";
  let at = 0;
  document.addEventListener("keydown", (event) => {
    if (!keysOn.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) {
      return;
    }
    const pair = before && event.timeStamp - at < SEQUENCE_MS ? `${before} ${event.key}` : event.key;
    const all = [...shortcuts.peek()].reverse(); /* a view's own come before the shell's */
    const found = all.find((one) => one.keys === pair) ?? all.find((one) => one.keys === event.key);
    before = event.key === "g" ? "g" : "";
    at = event.timeStamp; /* when it was pressed: a page that was busy meanwhile does not tear them apart */
    if (found) {
      event.preventDefault();
      before = "";
      found.run();
    }
  });
}
