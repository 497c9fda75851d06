/* A list that is read page by page: what was loaded stays loaded and is kept fresh. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { counted } from "../format";
import { query, useQuery, type Interest, type Query } from "../store";
import type { List } from "../types";
import { Button } from "../ui/controls";
import { ErrorNote } from "../ui/states";

export interface Paged<T> {
  first: Query<List<T>>;
  rows: T[];
  /** there is more on the server than in rows */
  more: boolean;
  /** put it into the page: it reads the pages and offers the next one */
  foot: (one: string, many?: string) => ComponentChildren;
}

function Reader({ path, interest }: { path: string; interest: Interest }) {
  useQuery(path, interest);
  return null;
}

/** first: the address of the first page, with its limit. */
export function usePaged<T>(first: string, interest: Interest, key: (row: T) => string = (row) => (row as { id: string }).id): Paged<T> {
  const paths = useSignal<string[]>([first]);
  if (paths.peek()[0] !== first) {
    paths.value = [first];
  }
  const pages = paths.value.map((path) => query<List<T>>(path));
  const rows: T[] = [];
  const seen = new Set<string>();
  for (const page of pages) {
    for (const row of page.data.value?.items ?? []) {
      const id = key(row);
      if (!seen.has(id)) {
        seen.add(id);
        rows.push(row);
      }
    }
  }
  const last = pages[pages.length - 1];
  const cursor = last?.data.value?.next_cursor ?? null;
  const failed = pages.length > 1 && last?.data.value === null ? last.error.value : null;
  return {
    first: pages[0] as Query<List<T>>,
    rows,
    more: cursor !== null,
    foot: (one, many) => (
      <>
        {paths.value.map((path) => (
          <Reader key={path} path={path} interest={interest} />
        ))}
        {failed && <ErrorNote error={failed} what="The next part" query={last as Query<unknown>} stillWorks="What is shown above stays." />}
        {cursor !== null && (
          <p class="row8 foot1">
            <Button small onClick={() => (paths.value = [...paths.peek(), `${first}&cursor=${encodeURIComponent(cursor)}`])}>
              Show more
            </Button>
            <span class="reason">{counted(rows.length, one, many)} so far</span>
          </p>
        )}
      </>
    ),
  };
}
