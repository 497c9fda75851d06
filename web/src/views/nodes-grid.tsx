/* The grid of nodes: one tile a node, one tab stop, the legend as filter, and a slider into the past. */
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { withQuery } from "../api";
import { replaceTerm, type Filter } from "../filter";
import { celsius, count, counted, NO_DATA } from "../format";
import { onMessage } from "../live";
import { forcedColours, narrow } from "../media";
import { navigate, query as address, setQuery } from "../router";
import { useQuery, type Query } from "../store";
import { theme } from "../theme";
import { age, DAY, exactSpan, moment, now, parse } from "../time";
import type { Grid, NodeDetail, NodeState } from "../types";
import { Button } from "../ui/controls";
import { Mark, markKind, STATE_WORD, STATES, type MarkKind } from "../ui/marks";
import { FactList, type Fact } from "../ui/page";
import { Loaded, Note, StaleLine } from "../ui/states";
import { drawBand, drawTile, hit, layOut, lookKey, neighbour, readPalette, Tiles, type Group, type Layout, type Look, type Move, type Scene } from "./heatmap";
import { gridFacts, groupsOf, holds, type Facts } from "./node-filter";
import { learnIds, selection, toggle } from "./selection";

const HOVER_MS = 150;
const CARD_WIDTH = 304;

export interface GridProps {
  clusterId: string;
  filter: Filter;
  group: string;
  fill: string;
}

/** ids come without dashes, which saves a tenth of them */
export function dashed(hex: string): string {
  return hex.length === 32 ? `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` : hex;
}

const HOTTEST = 90;
const COOLEST = 30;

/** The figure by which a tile is filled, in 0..1. */
function level(facts: Facts, fill: string): number | null {
  if (fill === "busy") {
    return facts.util === null ? null : facts.util / 100;
  }
  if (fill === "memory") {
    return facts.mem === null ? null : facts.mem / 100;
  }
  return facts.temp === null ? null : (facts.temp - COOLEST) / (HOTTEST - COOLEST);
}

function looksOf(facts: Facts[], filter: Filter, fill: string): Look[] {
  const all = filter.terms.length === 0 && !filter.text;
  return facts.map((one) => {
    const value = fill === "state" ? null : level(one, fill);
    return {
      state: one.state,
      warning: one.warning,
      step: fill === "state" ? null : value === null ? -1 : Math.max(0, Math.min(4, Math.floor(value * 5))),
      dim: !all && !holds(filter, one),
    };
  });
}

interface Past {
  at: string;
  nodes: { id: string; name: string; state: NodeState }[];
}

/** The nodes as they were; who was not there yet is pending. */
function factsThen(grid: Grid, past: Past | null): Facts[] {
  const then = past && new Map(past.nodes.map((node) => [node.name, node.state]));
  return grid.names.map((_, i) => {
    const facts = gridFacts(grid, i);
    return then ? { ...facts, state: then.get(facts.name) ?? "pending", warning: false, util: null, mem: null, temp: null, seen: null } : facts;
  });
}

const FILL_LEGEND: Record<string, [name: string, low: string, high: string]> = {
  busy: ["GPU busy", "0", "100 %"],
  memory: ["GPU memory", "0", "100 %"],
  temperature: ["Hottest GPU", `${COOLEST}`, `${HOTTEST} °C`],
};

function termOf(kind: MarkKind): string {
  return kind === "warning" ? "warning:yes" : `state:${kind}`;
}

function Legend({ facts, filter, fill }: { facts: Facts[]; filter: Filter; fill: string }) {
  const counts = new Map<MarkKind, number>();
  for (const one of facts) {
    const kind = markKind(one.state, one.warning);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const source = address.value.get("q") ?? "";
  const kinds: MarkKind[] = ["healthy", "warning", ...STATES.slice(1)];
  const shown = fill === "state" ? kinds : kinds.filter((kind) => kind !== "healthy");
  const ramp = FILL_LEGEND[fill];
  return (
    <div class="legend" role="group" aria-label="Legend, press to filter">
      {ramp && (
        <>
          <span class="ramp">
            {ramp[0]}
            <svg viewBox="0 0 100 12" role="img" aria-label={`five steps from ${ramp[1]} to ${ramp[2]}`}>
              {[0, 1, 2, 3, 4].map((i) => (
                <rect key={i} class={`ramp${i}`} x={i * 20} width="19" height="12" />
              ))}
            </svg>
            {ramp[1]} to {ramp[2]}
          </span>
          <span class="t3">the frame and the corner keep the state</span>
        </>
      )}
      {shown.map((kind) => {
        const n = counts.get(kind) ?? 0;
        const on = filter.terms.some((term) => term.raw === termOf(kind));
        return n > 0 || on || fill === "state" ? (
          <button key={kind} type="button" aria-pressed={on} onClick={() => setQuery({ q: on ? replaceTerm(source, termOf(kind), "") : [source, termOf(kind)].filter(Boolean).join(" ") })}>
            <Mark kind={kind} />
            {STATE_WORD[kind]} <b>{count(n)}</b>
          </button>
        ) : null;
      })}
    </div>
  );
}

/* the card's place goes through a constructed sheet: an inline style would be refused */
let placeSheet: CSSStyleSheet | null = null;
function placeCard(left: number, top: number): void {
  if (!placeSheet) {
    placeSheet = new CSSStyleSheet();
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, placeSheet];
  }
  placeSheet.replaceSync(`#hover{left:${Math.round(left)}px;top:${Math.round(top)}px}`);
}

function CardFacts({ facts, detail }: { facts: Facts; detail: NodeDetail | null }) {
  const list: Fact[] = [
    ["Place", [facts.rack || "no rack", facts.leaf].filter(Boolean).join(", ")],
    ["GPU busy", facts.util === null ? NO_DATA : `${facts.util} %${facts.mem === null ? "" : `, memory ${facts.mem} %`}`],
    ["Hottest", celsius(facts.temp)],
    ["Seen", facts.seen === null ? "never" : `${exactSpan(facts.seen * 1000)} ago`],
    detail?.repair ? ["Repair", `${detail.repair.action.replace(/_/g, " ")}, ${detail.repair.state}`] : null,
  ];
  return <FactList facts={list} />;
}

function HoverCard({ facts, id, past }: { facts: Facts; id: string; past: boolean }) {
  const wanted = useSignal(false);
  useEffect(() => {
    wanted.value = false;
    const timer = setTimeout(() => (wanted.value = true), HOVER_MS);
    return () => clearTimeout(timer);
  }, [id]);
  const detail = useQuery<NodeDetail>(wanted.value && !past ? `/nodes/${id}` : null);
  const data = detail.data.value?.id === id ? detail.data.value : null;
  const since = parse(data?.state_since);
  const word = STATE_WORD[markKind(facts.state, facts.warning)].toLowerCase();
  return (
    <div id="hover" class="hover">
      <div class="hd">
        <Mark kind={markKind(facts.state, facts.warning)} />
        <b>{facts.name}</b>
        <span class="t3">
          {word}
          {since !== null && ` for ${age(since).replace(/^\D.* /, "")}`}
        </span>
      </div>
      {!past && <p>{data ? data.reason || (facts.state === "healthy" ? "Nothing wrong." : "No reason given.") : "…"}</p>}
      {!past && <CardFacts facts={facts} detail={data} />}
      <div class="foot">
        <span>
          <kbd>Enter</kbd> open
        </span>
        <span>
          <kbd>Space</kbd> select
        </span>
        <span>
          <kbd>n</kbd> next bad one
        </span>
      </div>
    </div>
  );
}

const MOVES: Record<string, Move> = {
  ArrowRight: "right",
  ArrowLeft: "left",
  ArrowDown: "down",
  ArrowUp: "up",
  Home: "start",
  End: "end",
  PageUp: "page up",
  PageDown: "page down",
};

function nextUnhealthy(order: number[], looks: Look[], from: number, step: 1 | -1): number {
  const at = order.indexOf(from);
  for (let i = 1; i <= order.length; i++) {
    const node = order[(at + step * i + order.length * 2) % order.length] ?? from;
    const look = looks[node];
    if (look && look.state !== "healthy" && !look.dim) {
      return node;
    }
  }
  return from;
}

interface MapProps {
  facts: Facts[];
  ids: string[];
  looks: Look[];
  groups: Group[];
  past: boolean;
}

/** The canvases, one a band; only those near the window hold a picture. */
function HeatMap({ facts, ids, looks, groups, past }: MapProps) {
  const wrap = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const current = useSignal(-1);
  const byKey = useSignal(false);
  const card = useSignal(-1);
  const canvases = useRef<(HTMLCanvasElement | null)[]>([]);
  const near = useRef(new Set<number>());
  const drawn = useRef<{ scene: Scene; keys: Int32Array } | null>(null);
  const scale = Math.min(2, devicePixelRatio || 1);
  const n = facts.length;

  useLayoutEffect(() => {
    const element = wrap.current;
    if (!element) {
      return undefined;
    }
    const look = () => (width.value = element.clientWidth);
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);

  const shape = groups.map((group) => `${group.name}:${group.nodes.length}`).join();
  const layout = useMemo<Layout | null>(() => (width.value > 0 ? layOut(groups, n, width.value, narrow.value) : null), [shape, n, width.value, narrow.value]);
  const tiles = useMemo(() => (layout ? new Tiles(layout.tile, scale, readPalette(document.documentElement, forcedColours.value)) : null), [layout?.tile, scale, theme(), forcedColours.value]);
  const selectedNames = selection.value;
  const selected = useMemo(() => {
    const at = new Set<number>();
    if (selectedNames.size) {
      facts.forEach((one, i) => selectedNames.has(one.name) && at.add(i));
    }
    return at;
  }, [selectedNames, facts]);

  const scene: Scene | null = layout && tiles ? { layout, tiles, looks, current: byKey.value || card.value >= 0 ? current.value : -1, selected } : null;

  useLayoutEffect(() => {
    if (!scene) {
      return;
    }
    const before = drawn.current;
    const keys = Int32Array.from(scene.looks, lookKey);
    const whole = !before || before.scene.layout !== scene.layout || before.scene.tiles !== scene.tiles || before.scene.selected !== scene.selected;
    const bands = new Set<number>();
    const single: number[] = [];
    if (!whole) {
      for (const node of [before.scene.current, scene.current]) {
        if (node >= 0 && before.scene.current !== scene.current) {
          bands.add(scene.layout.band[node] ?? 0);
        }
      }
      for (let i = 0; i < keys.length; i++) {
        if (keys[i] !== before.keys[i]) {
          const state = scene.looks[i]?.state === before.scene.looks[i]?.state;
          if (state && i !== scene.current && !selected.has(i)) {
            single.push(i);
          } else {
            bands.add(scene.layout.band[i] ?? 0);
          }
        }
      }
    }
    drawn.current = { scene, keys };
    for (const band of near.current) {
      const canvas = canvases.current[band];
      if (canvas && (whole || bands.has(band))) {
        drawBand(canvas, scene, band);
      }
    }
    for (const node of single) {
      const band = scene.layout.band[node] ?? 0;
      const canvas = canvases.current[band];
      if (canvas && near.current.has(band) && !bands.has(band)) {
        drawTile(canvas, scene, node);
      }
    }
  });

  useEffect(() => {
    if (!layout) {
      return undefined;
    }
    near.current = new Set();
    const watcher = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          const band = canvases.current.indexOf(entry.target as HTMLCanvasElement);
          if (entry.isIntersecting && !near.current.has(band)) {
            near.current.add(band);
            if (drawn.current) {
              drawBand(entry.target as HTMLCanvasElement, drawn.current.scene, band);
            }
          } else if (!entry.isIntersecting) {
            near.current.delete(band);
          }
        }
      },
      { rootMargin: "400px 0px" },
    );
    for (const canvas of canvases.current.slice(0, layout.bands.length)) {
      if (canvas) {
        watcher.observe(canvas);
      }
    }
    return () => watcher.disconnect();
  }, [layout]);

  const showCard = (node: number) => {
    card.value = node;
    if (node >= 0 && layout) {
      const x = layout.x[node] ?? 0;
      const y = (layout.bands[layout.band[node] ?? 0]?.top ?? 0) + (layout.y[node] ?? 0);
      const right = x + layout.tile + 12;
      const left = right + CARD_WIDTH <= layout.width ? right : x - CARD_WIDTH - 12;
      placeCard(Math.max(0, left), left < 0 ? y + layout.tile + 12 : Math.max(0, y - 12));
    }
  };

  const goTo = (node: number) => {
    current.value = node;
    byKey.value = true;
    showCard(node);
    const y = (layout?.bands[layout.band[node] ?? 0]?.top ?? 0) + (layout?.y[node] ?? 0) + (wrap.current?.getBoundingClientRect().top ?? 0);
    if (y < 64 || y > innerHeight - 120) {
      scrollBy({ top: y - innerHeight / 2 });
    }
  };

  const open = (node: number) => {
    if (ids[node]) {
      navigate(`/nodes/${ids[node]}`);
    }
  };

  const order = useMemo(() => layout?.lines.flat() ?? [], [layout]);
  const onKey = (event: KeyboardEvent) => {
    if (!layout || n === 0 || event.ctrlKey || event.metaKey || event.altKey) {
      if (layout && event.ctrlKey && (event.key === "Home" || event.key === "End")) {
        event.preventDefault();
        goTo(neighbour(layout, Math.max(0, current.value), event.key === "Home" ? "first" : "last"));
      }
      return;
    }
    const from = current.value >= 0 ? current.value : (order[0] ?? 0);
    const move = MOVES[event.key];
    if (move) {
      goTo(current.value < 0 ? from : neighbour(layout, from, move));
    } else if (event.key === "n" || event.key === "p") {
      goTo(nextUnhealthy(order, looks, from, event.key === "n" ? 1 : -1));
    } else if (event.key === "Enter") {
      open(from);
    } else if (event.key === " ") {
      toggle(facts[from]?.name ?? "");
    } else if (event.key === "Escape") {
      showCard(-1);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const timer = useRef(0);
  const under = (event: PointerEvent | MouseEvent) => {
    const box = wrap.current?.getBoundingClientRect();
    return box && layout ? hit(layout, event.clientX - box.left, event.clientY - box.top) : -1;
  };
  const focused = facts[current.value];
  const look = looks[current.value];
  const spoken = focused
    ? `${focused.name}, ${STATE_WORD[markKind(focused.state, focused.warning)].toLowerCase()}${focused.rack ? `, rack ${focused.rack}` : ""}${focused.util === null ? "" : `, ${focused.util} % busy`}${look?.dim ? ", not in the filter" : ""}${selected.has(current.value) ? ", selected" : ""}`
    : "";
  const line = layout ? (layout.line[Math.max(0, current.value)] ?? 0) : 0;
  const place = layout ? (layout.place[Math.max(0, current.value)] ?? 0) : 0;
  const cardFacts = card.value >= 0 ? facts[card.value] : undefined;

  return (
    <div class="hm">
      <div
        ref={wrap}
        class="hmgrid"
        role="grid"
        tabIndex={0}
        aria-label={`${counted(n, "node")} in ${counted(groups.length, "group")}. Arrow keys move, n and p go to the next and previous node that is not healthy, Enter opens, Space selects.`}
        aria-multiselectable="true"
        aria-rowcount={layout?.lines.length ?? 1}
        aria-colcount={Math.max(1, ...(layout?.lines.map((one) => one.length) ?? [1]))}
        aria-activedescendant={focused ? "cell" : undefined}
        onKeyDown={onKey}
        onFocus={() => {
          if (wrap.current?.matches(":focus-visible") && current.value < 0 && order.length) {
            current.value = nextUnhealthy(order, looks, order[order.length - 1] ?? 0, 1);
            byKey.value = true;
          }
        }}
        onBlur={() => {
          byKey.value = false;
          showCard(-1);
        }}
        onPointerMove={(event) => {
          if (event.pointerType === "touch") {
            return;
          }
          const node = under(event);
          clearTimeout(timer.current);
          if (node < 0) {
            if (!byKey.value) {
              showCard(-1);
            }
          } else if (node !== card.value) {
            timer.current = setTimeout(
              () => {
                current.value = node;
                byKey.value = false;
                showCard(node);
              },
              card.value >= 0 ? 0 : HOVER_MS,
            ) as unknown as number;
          }
        }}
        onPointerLeave={() => {
          clearTimeout(timer.current);
          if (!byKey.value) {
            showCard(-1);
          }
        }}
        onClick={(event) => {
          const node = under(event);
          if (node >= 0) {
            current.value = node;
            if (event.shiftKey || event.ctrlKey || event.metaKey) {
              toggle(facts[node]?.name ?? "");
            } else {
              open(node);
            }
          }
        }}
      >
        <div role="row" class="vh" aria-rowindex={line + 1}>
          <span role="gridcell" id="cell" aria-colindex={place + 1} aria-selected={selected.has(current.value)}>
            {spoken || "no node yet"}
          </span>
        </div>
        {layout?.bands.map((band, i) => (
          <canvas key={i} ref={(canvas) => void (canvases.current[i] = canvas)} width={Math.round(layout.width * scale)} height={Math.round(band.height * scale)} aria-hidden="true" />
        ))}
      </div>
      <p class="vh" aria-live="polite">
        {byKey.value ? spoken : ""}
      </p>
      {cardFacts && <HoverCard facts={cardFacts} id={ids[card.value] ?? ""} past={past} />}
    </div>
  );
}

const STEPS = 96;
const STEP_MS = DAY / STEPS;

/** The slider at the foot replays the last day; away from now, actions are off. */
function AsOf({ at }: { at: number | null }) {
  const draft = useSignal<number | null>(null);
  const timer = useRef(0);
  const end = Math.floor(now.value / STEP_MS) * STEP_MS;
  const stepOf = (ms: number) => Math.max(0, Math.min(STEPS, STEPS - Math.round((end - ms) / STEP_MS)));
  const value = draft.value ?? (at === null ? STEPS : stepOf(at));
  const ms = end - (STEPS - value) * STEP_MS;
  const text = value === STEPS ? "now" : moment(ms, now.value);
  return (
    <div class="asof">
      <label for="asof">As of</label>
      <input
        id="asof"
        type="range"
        min={0}
        max={STEPS}
        value={value}
        aria-valuetext={text}
        onInput={(event) => {
          const next = Number(event.currentTarget.value);
          draft.value = next;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => {
            draft.value = null;
            setQuery({ at: next === STEPS ? null : new Date(end - (STEPS - next) * STEP_MS).toISOString().replace(".000", "") });
          }, 200) as unknown as number;
        }}
      />
      <output for="asof">{text}</output>
    </div>
  );
}

function GridBody({ grid, ids: byName, clusterId, filter, group, fill }: GridProps & { grid: Grid; ids: Map<string, string> }) {
  const at = parse(address.value.get("at"));
  const past = useQuery<Past>(at === null ? null : withQuery(`/clusters/${clusterId}/as-of`, { at: new Date(at).toISOString().replace(".000", "") }));
  const then = at === null ? null : past.data.value;
  const facts = useMemo(() => factsThen(grid, then), [grid, then]);
  const ids = useMemo(() => grid.names.map((name) => byName.get(name) ?? ""), [grid.names, byName]);
  const groups = useMemo(() => groupsOf(facts, group), [facts, group]);
  const looks = useMemo(() => looksOf(facts, filter, then ? "state" : fill), [facts, filter, fill, then]);
  useMemo(() => learnIds([...byName].map(([name, id]) => ({ name, id }))), [byName]);
  const matching = looks.filter((look) => !look.dim).length;
  return (
    <>
      {at !== null && (
        <div class="asofnote">
          <Note tone="neutral" icon="clock" title={`As of ${moment(at)}.`}>
            {" "}
            {past.error.value ? `It could not be read: ${past.error.value.title}. What you see is now.` : "You look at the past; actions are off."}
            <p class="row8">
              <Button small onClick={() => setQuery({ at: null })}>
                Back to now
              </Button>
            </p>
          </Note>
        </div>
      )}
      <Legend facts={facts} filter={filter} fill={then ? "state" : fill} />
      <p class={matching < facts.length ? "s12 t3 matching" : "vh"} role="status">
        {matching < facts.length ? `${count(matching)} of ${counted(facts.length, "node")} match; the others are outlined.` : ""}
      </p>
      <HeatMap facts={facts} ids={ids} looks={looks} groups={groups} past={at !== null} />
      <AsOf at={at} />
    </>
  );
}

/**
 * The ids are two thirds of the answer and never change, so they are read once; what follows the stream
 * is read without them, from its first message on.
 */
export function NodesGrid(props: GridProps) {
  const base = `/clusters/${props.clusterId}/grid`;
  const moved = useSignal(false);
  useEffect(() => onMessage(() => void (moved.value = true)), []);
  const first = useQuery<Grid>(`${base}?ids=true`);
  const live = useQuery<Grid>(moved.value ? base : null, {
    samplesOf: props.clusterId,
    sampleGapMs: 4_000,
    events: (type, event) => event.cluster_id === props.clusterId && /^node\./.test(type),
  });
  const fresh = moved.value ? live.data.value : null;
  const named = first.data.value;
  const ids = useMemo(() => new Map(named?.names.map((name, i) => [name, dashed(named.ids?.[i] ?? "")])), [named]);
  useEffect(() => {
    /* a node that has joined since */
    if (fresh && named && !first.loading.peek() && fresh.names.some((name) => !ids.has(name))) {
      void first.read();
    }
  }, [fresh]);
  const error = moved.value ? live.error.value : null;
  return (
    <Loaded query={first} what="The grid" rows={8}>
      {(data) => (
        <>
          {error && <StaleLine query={(fresh ? live : first) as Query<unknown>} error={error} />}
          <GridBody grid={fresh ?? data} ids={ids} {...props} />
        </>
      )}
    </Loaded>
  );
}
