/* The list of nodes: pages of 100 that are read as they come into view, rows that keep their place. */
import type { ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get } from "../api";
import { replaceTerm, type Filter } from "../filter";
import { celsius, count, counted, NO_DATA, percent, sentence } from "../format";
import { csvCell } from "../csv";
import { bindKeys } from "../keys";
import { narrow } from "../media";
import { query as address, setQuery } from "../router";
import { query, type Query } from "../store";
import { exactSpan, now, parse, serverNow, utc } from "../time";
import type { List, NodeSummary, Overview } from "../types";
import { Button, CheckBox } from "../ui/controls";
import { Mark, markKind, RatioBar, STATE_WORD, StateMark } from "../ui/marks";
import { Nothing, Time } from "../ui/page";
import { ErrorNote, Skeleton } from "../ui/states";
import { SpacerRow, useWindow } from "../ui/table";
import { factsOf, holds, nodesPath, serverKnowsAll, type Sort } from "./node-filter";
import { learnIds, select, selection, toggle } from "./selection";

const PAGE = 100;
const ROW = 32;

type NodePage = Query<List<NodeSummary>>;

/** The pages read so far, the rows they hold, and how to get the next one. */
function usePages(first: string): { pages: NodePage[]; rows: NodeSummary[]; more: string | null; loadMore: () => void } {
  const paths = useSignal<string[]>([first]);
  if (paths.peek()[0] !== first) {
    paths.value = [first];
  }
  const pages = paths.value.map((path) => query<List<NodeSummary>>(path));
  const rows: NodeSummary[] = [];
  const seen = new Set<string>();
  for (const page of pages) {
    for (const row of page.data.value?.items ?? []) {
      if (!seen.has(row.id)) {
        seen.add(row.id);
        rows.push(row);
      }
    }
  }
  const cursor = pages[pages.length - 1]?.data.value?.next_cursor ?? null;
  /* the first address always has a query: its limit */
  const more = cursor ? `${first}&cursor=${encodeURIComponent(cursor)}` : null;
  return {
    pages,
    rows,
    more,
    loadMore: () => {
      if (more && !paths.peek().includes(more)) {
        paths.value = [...paths.peek(), more];
      }
    },
  };
}

/** Keeps a page fresh while it is near the window. */
function PageReader({ page, clusterId, near }: { page: NodePage; clusterId: string; near: boolean }) {
  useEffect(
    () =>
      page.use(
        near
          ? { samplesOf: clusterId, sampleGapMs: 3_000, events: (type, event) => event.cluster_id === clusterId && /^(?:node|incident|repair)\./.test(type) }
          : {},
      ),
    [page, near],
  );
  return null;
}

/**
 * Rows in the order in which they are shown. While the pointer or the focus is on them the order stands;
 * what is new or has moved then waits, and is counted.
 */
function useSteady(rows: NodeSummary[], key: string): { steady: NodeSummary[]; waiting: number; release: () => void; hold: (on: boolean) => void } {
  const shown = useRef<{ key: string; rows: NodeSummary[] }>({ key, rows });
  const held = useRef(false);
  const turn = useSignal(0);
  void turn.value;
  let waiting = 0;
  if (!held.current || shown.current.key !== key || shown.current.rows.length === 0) {
    shown.current = { key, rows };
  } else {
    const fresh = new Map(rows.map((row) => [row.id, row]));
    const before = new Set(shown.current.rows.map((row) => row.id));
    /* pages that were added at the end are no news */
    const lastKnown = rows.reduce((last, row, i) => (before.has(row.id) ? i : last), -1);
    waiting = rows.filter((row, i) => !before.has(row.id) && i < lastKnown).length;
    const tail = rows.slice(lastKnown + 1);
    shown.current.rows = [...shown.current.rows.map((row) => fresh.get(row.id) ?? row), ...tail];
  }
  return {
    steady: shown.current.rows,
    waiting,
    release: () => {
      shown.current = { key: "", rows: [] };
      turn.value += 1;
    },
    hold: (on) => {
      if (held.current && !on) {
        turn.value += 1;
      }
      held.current = on;
    },
  };
}

function why(node: NodeSummary): ComponentChild {
  const words = [node.schedulable || node.state === "paused" || node.state === "repairing" ? "" : "cordoned", node.reason].filter(Boolean).join("; ");
  return words ? sentence(words) : <Nothing>{node.state === "healthy" ? "nothing wrong" : "no reason given"}</Nothing>;
}

function Seen({ node }: { node: NodeSummary }) {
  const at = parse(node.seen_at);
  if (at === null) {
    return <Nothing>never</Nothing>;
  }
  const late = now.value - at > node.interval_seconds * 3000;
  return (
    <time dateTime={node.seen_at ?? undefined} title={utc(at)} class={late ? "c-warning" : "t3"}>
      {exactSpan(now.value - at)}
    </time>
  );
}

function Busy({ node }: { node: NodeSummary }) {
  if (node.gpus === 0) {
    return <Nothing>no GPU</Nothing>;
  }
  if (node.gpu_util_ratio === null) {
    return <Nothing>{NO_DATA}</Nothing>;
  }
  return (
    <span class="barcell">
      <RatioBar ratio={node.gpu_util_ratio} />
      <span>{percent(node.gpu_util_ratio)}</span>
    </span>
  );
}

const COLUMNS = 10;

function NodeRow({ node, index, onPick }: { node: NodeSummary; index: number; onPick: (index: number, on: boolean, range: boolean) => void }) {
  const on = selection.value.has(node.name);
  const memory = node.gpu_mem_used_mib !== null && node.gpu_mem_total_mib ? node.gpu_mem_used_mib / node.gpu_mem_total_mib : null;
  return (
    <tr class={on ? "on" : undefined} aria-rowindex={index + 2} data-row={index}>
      <td>
        <CheckBox hideLabel label={`Select ${node.name}`} checked={on} onChange={(checked, event) => onPick(index, checked, event.shiftKey)} />
      </td>
      <td>
        <StateMark state={node.state} warning={node.warning}>
          <a class="name" href={`/nodes/${node.id}`}>
            {node.name}
          </a>
        </StateMark>
      </td>
      <td class="clip why" title={node.reason ?? undefined}>
        {why(node)}
      </td>
      <td class="num nw t2">
        <Time iso={node.state_since} />
      </td>
      <td class="nw mid-only">{node.rack || <Nothing />}</td>
      <td class="num nw">
        <Busy node={node} />
      </td>
      <td class="num nw wide-only">{memory === null ? <Nothing>{NO_DATA}</Nothing> : percent(memory)}</td>
      <td class="num nw mid-only">{node.gpu_temp_max_c === null ? <Nothing>{NO_DATA}</Nothing> : celsius(node.gpu_temp_max_c)}</td>
      <td class="num nw">
        <Seen node={node} />
      </td>
      <td class="nw mid-only">{node.repair_id ? <a href={`/repairs/${node.repair_id}?dialog=approve&repair=${node.repair_id}`}>Review…</a> : <Nothing />}</td>
    </tr>
  );
}

function SortHead({ label, is, onSort }: { label: string; is: "ascending" | "descending" | undefined; onSort: () => void }) {
  return (
    <th scope="col" aria-sort={is}>
      <button type="button" class="sort" onClick={onSort}>
        {label}
        <span aria-hidden="true">{is === "ascending" ? "↑" : is === "descending" ? "↓" : ""}</span>
      </button>
    </th>
  );
}

interface Shown {
  rows: NodeSummary[];
  sort: Sort;
  total: number;
  onEnd: () => void;
}

function NodeTable({ rows, sort, total, onEnd }: Shown) {
  const { ref, view } = useWindow(rows.length, ROW);
  const last = useRef<number | null>(null);
  const all = rows.length > 0 && rows.every((row) => selection.value.has(row.name));
  useEffect(() => {
    if (view.end > rows.length - 30) {
      onEnd();
    }
  }, [view.end, rows.length]);
  const pick = (index: number, on: boolean, range: boolean) => {
    const from = range && last.current !== null ? Math.min(last.current, index) : index;
    const to = range && last.current !== null ? Math.max(last.current, index) : index;
    const next = new Set(selection.peek());
    for (const row of rows.slice(from, to + 1)) {
      if (on) {
        next.add(row.name);
      } else {
        next.delete(row.name);
      }
    }
    last.current = index;
    select(next);
  };
  const move = useRef((_: number) => undefined as void);
  move.current = (step) => {
    const here = document.activeElement?.closest<HTMLElement>("tr[data-row]");
    const next = Math.max(0, Math.min(rows.length - 1, here ? Number(here.dataset.row) + step : view.first));
    const top = (ref.current?.getBoundingClientRect().top ?? 0) + scrollY + next * ROW;
    if (top < scrollY + 96 || top > scrollY + innerHeight - 120) {
      scrollTo({ top: top - innerHeight / 2 });
    }
    let tries = 0;
    const focus = () => {
      const link = ref.current?.querySelector<HTMLElement>(`tr[data-row="${next}"] a.name`);
      if (link) {
        link.focus({ preventScroll: true });
      } else if (tries++ < 10) {
        requestAnimationFrame(focus);
      }
    };
    focus();
  };
  const mark = useRef(() => undefined as void);
  mark.current = () => {
    const here = document.activeElement?.closest<HTMLElement>("tr[data-row]");
    const row = here && rows[Number(here.dataset.row)];
    if (row) {
      toggle(row.name);
    }
  };
  useEffect(
    () =>
      bindKeys([
        { keys: "j", does: "Next node", run: () => move.current(1) },
        { keys: "k", does: "Previous node", run: () => move.current(-1) },
        { keys: "x", does: "Select the node", run: () => mark.current() },
      ]),
    [],
  );
  return (
    <table class="tbl nodes" aria-rowcount={total + 1} aria-label="Nodes">
      <thead class="sticky">
        <tr aria-rowindex={1}>
          <th scope="col">
            <CheckBox hideLabel label={`Select all ${count(rows.length)} shown`} checked={all} some={rows.some((row) => selection.value.has(row.name))} onChange={(on) => select(on ? new Set(rows.map((row) => row.name)) : new Set())} />
          </th>
          <SortHead label="Node" is={sort === "name" ? "ascending" : sort === "-name" ? "descending" : undefined} onSort={() => setQuery({ sort: sort === "name" ? "-name" : "name" })} />
          <SortHead label="Why, worst first" is={sort === "state" ? "descending" : undefined} onSort={() => setQuery({ sort: null })} />
          <th scope="col" class="num">
            Since
          </th>
          <th scope="col" class="mid-only">
            Rack
          </th>
          <th scope="col" class="num">
            GPU busy
          </th>
          <th scope="col" class="num wide-only">
            Memory
          </th>
          <th scope="col" class="num mid-only">
            Hottest
          </th>
          <th scope="col" class="num">
            Seen
          </th>
          <th scope="col" class="mid-only">
            Repair
          </th>
        </tr>
      </thead>
      <tbody ref={(body) => void (ref.current = body)}>
        <SpacerRow height={view.above} columns={COLUMNS} />
        {rows.slice(view.first, view.end).map((node, i) => (
          <NodeRow key={node.id} node={node} index={view.first + i} onPick={pick} />
        ))}
        <SpacerRow height={view.below} columns={COLUMNS} />
      </tbody>
    </table>
  );
}

function NodeListNarrow({ rows, onEnd }: Shown) {
  const end = useRef<HTMLLIElement>(null);
  useEffect(() => {
    const element = end.current;
    if (!element) {
      return undefined;
    }
    const watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onEnd(), { rootMargin: "600px" });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [rows.length]);
  return (
    <ul class="mlist" aria-label="Nodes">
      {rows.map((node) => (
        <li key={node.id} class="lazyrow">
          <a class="r" href={`/nodes/${node.id}`}>
            <Mark kind={markKind(node.state, node.warning)} label={STATE_WORD[markKind(node.state, node.warning)]} />
            <b>{node.name}</b>
            <span class="t3 s12">
              <Time iso={node.state_since} />
            </span>
            <span class="sub">
              {why(node)}
              {node.gpu_util_ratio !== null && ` · ${percent(node.gpu_util_ratio)} busy`}
            </span>
          </a>
        </li>
      ))}
      <li ref={end} aria-hidden="true" />
    </ul>
  );
}

/** Nothing matches: which term to drop, in words. */
function NoMatch({ source, filter, complete }: { source: string; filter: Filter; complete: boolean }) {
  if (!complete) {
    return <Skeleton rows={5} label="nodes" />;
  }
  return (
    <div class="sec">
      <p>
        No node matches <span class="mono">{source}</span>.
      </p>
      <p class="row8">
        {filter.terms.slice(0, 3).map((term) => (
          <Button key={term.raw} small onClick={() => setQuery({ q: replaceTerm(source, term.raw, "") })}>
            Drop {term.raw}
          </Button>
        ))}
        <Button small kind="quiet" onClick={() => setQuery({ q: null })}>
          Clear the filter
        </Button>
      </p>
    </div>
  );
}

export function sortOf(text: string | null): Sort {
  return text === "name" || text === "-name" ? text : "state";
}

export function NodesList({ clusterId, filter, overview }: { clusterId: string; filter: Filter; overview: Query<Overview> }) {
  const source = address.value.get("q") ?? "";
  const sort = sortOf(address.value.get("sort"));
  const first = nodesPath(clusterId, filter, sort, PAGE);
  const { pages, rows, more, loadMore } = usePages(first);
  const { steady, waiting, release, hold } = useSteady(rows, first);
  const complete = serverKnowsAll(filter);
  const shown = complete ? steady : steady.filter((node) => holds(filter, factsOf(node, serverNow())));
  learnIds(rows);
  const error = pages.find((page) => page.error.value)?.error.value ?? null;
  const failed = pages.find((page) => page.error.value);
  const nodes = overview.data.value?.rollup?.nodes ?? 0;
  const reading = pages.some((page) => page.data.value === null && !page.error.value);
  useEffect(() => {
    /* what the server does not know is looked for page by page, until the window is full */
    if (!complete && more && shown.length < 50 && pages.every((page) => page.data.value !== null)) {
      loadMore();
    }
  });
  const total = more ? nodes : shown.length;
  const props: Shown = { rows: shown, sort, total, onEnd: loadMore };
  return (
    <>
      {pages.map((page, i) => (
        <PageReader key={page.path} page={page} clusterId={clusterId} near={i < 2 || i >= pages.length - 2} />
      ))}
      <p class="vh" role="status">
        {reading ? "" : `${more ? `${count(shown.length)} or more nodes match` : counted(shown.length, "node match", "nodes match")}`}
      </p>
      {error && failed && <ErrorNote error={error} what="The list of nodes" query={failed as Query<unknown>} stillWorks={rows.length ? "The rows below are from before." : ""} />}
      {shown.length > 0 ? (
        <div
          onPointerEnter={() => hold(true)}
          onPointerLeave={() => hold(false)}
          onFocusCapture={() => hold(true)}
          onBlurCapture={(event) => {
            if (!(event.currentTarget as HTMLElement).contains(event.relatedTarget as Node | null)) {
              hold(false);
            }
          }}
        >
          {waiting > 0 && (
            <p class="news">
              <Button small kind="quiet" onClick={release}>
                {count(waiting)} new, show
              </Button>
            </p>
          )}
          {narrow.value ? <NodeListNarrow {...props} /> : <NodeTable {...props} />}
        </div>
      ) : error ? null : (
        <NoMatch source={source} filter={filter} complete={!reading && !more} />
      )}
      {shown.length > 0 && (
        <p class="s12 t3 foot1">
          {source ? (
            <>
              {more ? `${count(shown.length)} or more` : count(shown.length)} of {counted(nodes, "node")}.{" "}
              <button type="button" class="linkish" onClick={() => setQuery({ q: null })}>
                Clear the filter
              </button>{" "}
              to see all.
            </>
          ) : (
            <>
              {more ? `${count(shown.length)} of ${counted(nodes, "node")} read so far; more follow as you scroll.` : `${counted(shown.length, "node")}.`}
            </>
          )}
        </p>
      )}
    </>
  );
}

const CSV: [head: string, of: (node: NodeSummary) => string | number | boolean | null][] = [
  ["name", (node) => node.name],
  ["state", (node) => node.state],
  ["warning", (node) => node.warning],
  ["reason", (node) => node.reason],
  ["state_since", (node) => node.state_since],
  ["schedulable", (node) => node.schedulable],
  ["rack", (node) => node.rack],
  ["leaf", (node) => node.leaf],
  ["partition", (node) => node.partition],
  ["gpus", (node) => node.gpus],
  ["gpu_util_ratio", (node) => node.gpu_util_ratio],
  ["gpu_mem_used_mib", (node) => node.gpu_mem_used_mib],
  ["gpu_mem_total_mib", (node) => node.gpu_mem_total_mib],
  ["gpu_temp_max_c", (node) => node.gpu_temp_max_c],
  ["cpu_ratio", (node) => node.cpu_ratio],
  ["net_mbps", (node) => node.net_mbps],
  ["seen_at", (node) => node.seen_at],
];

/** All nodes that match the filter as CSV, not only those that are drawn. */
export function ExportButton({ clusterId, filter }: { clusterId: string; filter: Filter }) {
  const busy = useSignal(false);
  const failed = useSignal<string | null>(null);
  const save = async () => {
    busy.value = true;
    failed.value = null;
    try {
      const first = nodesPath(clusterId, filter, sortOf(address.peek().get("sort")), 200);
      const lines = [CSV.map(([head]) => head).join(",")];
      for (let path: string | null = first; path; ) {
        const page: List<NodeSummary> = await get<List<NodeSummary>>(path);
        for (const node of page.items.filter((one) => holds(filter, factsOf(one, serverNow())))) {
          lines.push(CSV.map(([, of]) => csvCell(of(node))).join(","));
        }
        path = page.next_cursor ? `${first}&cursor=${encodeURIComponent(page.next_cursor)}` : null;
      }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
      link.download = "nodes.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (cause) {
      failed.value = cause instanceof Error ? cause.message : String(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <Button class="desk" busy={busy.value} onClick={() => void save()}>
        {busy.value ? "Exporting…" : "Export CSV"}
      </Button>
      {failed.value && (
        <span class="reason c-unhealthy" role="alert">
          Not exported: {failed.value}
        </span>
      )}
    </>
  );
}

