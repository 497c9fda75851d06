/* Light or dark: the system's wish until the person chooses. Kept in the browser, not in the address. */
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "muster-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

const choice = signal<Theme | null>(chosen());
const systemDark = signal(system.matches);

export function theme(): Theme {
  return choice.value ?? (systemDark.value ? "dark" : "light");
}

export function switchTheme(): void {
  choice.value = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, choice.value);
  } catch {
    /* private mode: the choice lasts as long as the page */
  }
}

export function startTheme(): void {
  system.addEventListener("change", (event) => (systemDark.value = event.matches));
  effect(() => {
    document.documentElement.dataset.theme = theme();
  });
}
