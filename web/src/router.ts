/* The path and the query string as signals: all that a view shows can be read back from its address. */
import { computed, signal } from "@preact/signals";

const here = signal(location.pathname + location.search);

export const path = computed(() => here.value.split("?")[0] ?? "/");
export const query = computed(() => new URLSearchParams(here.value.split("?")[1] ?? ""));

export interface Go {
  replace?: boolean;
}

export function navigate(url: string, how: Go = {}): void {
  const before = path.peek();
  history[how.replace ? "replaceState" : "pushState"](null, "", url);
  here.value = location.pathname + location.search;
  if (path.peek() !== before) {
    scrollTo(0, 0);
  }
}

/** Changes some query parameters; null or "" takes one away. Replaces by default: a filter is not a page. */
export function setQuery(changes: Record<string, string | null>, how: Go = { replace: true }): void {
  const next = new URLSearchParams(query.peek());
  for (const [key, value] of Object.entries(changes)) {
    if (value) {
      next.set(key, value);
    } else {
      next.delete(key);
    }
  }
  const text = next.toString().replace(/%3A/g, ":").replace(/%2C/g, ",");
  navigate(path.peek() + (text ? `?${text}` : ""), how);
}

/** "/clusters/:id/nodes" against a path: its parameters, or null. */
export function match(pattern: string, at: string): Record<string, string> | null {
  const names: string[] = [];
  const source = pattern.replace(/:([a-z_]+)/g, (_, name: string) => {
    names.push(name);
    return "([^/]+)";
  });
  const found = new RegExp(`^${source}/?$`).exec(at);
  return found && Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1] ?? "")]));
}

export function startRouter(): void {
  addEventListener("popstate", () => {
    here.value = location.pathname + location.search;
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const href = link?.getAttribute("href");
    if (!plain || event.defaultPrevented || !href?.startsWith("/") || link?.target || link?.hasAttribute("download")) {
      return;
    }
    event.preventDefault();
    navigate(href);
  });
}
