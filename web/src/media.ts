/* What the screen and the person's settings are like, as signals. */
import { signal, type Signal } from "@preact/signals";

function watched(query: string): Signal<boolean> {
  /* tests of words have no window */
  if (typeof matchMedia !== "function") {
    return signal(false);
  }
  const list = matchMedia(query);
  const value = signal(list.matches);
  list.addEventListener("change", (event) => (value.value = event.matches));
  return value;
}

export const narrow = watched("(max-width: 720px)");
export const forcedColours = watched("(forced-colors: active)");
