/* Where the tiles of a heat map stand and how they are drawn: plain geometry and canvas, without the page. */
import type { NodeState } from "../types";

export interface Group {
  name: string;
  /** indices of nodes, in order */
  nodes: number[];
}

export interface Block {
  name: string;
  x: number;
  width: number;
  nodes: number[];
}

/** A row of blocks: one canvas. */
export interface Band {
  top: number;
  height: number;
  blocks: Block[];
}

export interface Layout {
  width: number;
  height: number;
  tile: number;
  columns: number;
  bands: Band[];
  /** by node: its place */
  x: Int32Array;
  y: Int32Array;
  band: Int32Array;
  /** rows of tiles from the top, each from left to right */
  lines: number[][];
  line: Int32Array;
  place: Int32Array;
}

const GAP = 2;
const HEAD = 20;
const BLOCK_GAP = 16;
const NARROW_BLOCK_GAP = 12;
const BAND_GAP = 16;
const LARGEST_TILE = 24;
/* with one group there is no head, and bands are cut so that no canvas is too tall */
const SINGLE_BAND_ROWS = 16;

function baseTile(n: number): number {
  return n <= 2_500 ? 22 : n <= 5_000 ? 16 : 12;
}

function columnsFor(groups: Group[], narrow: boolean): number {
  const largest = Math.max(1, ...groups.map((group) => group.nodes.length));
  const columns = largest <= 40 ? 4 : largest <= 160 ? 8 : 16;
  return narrow ? columns * 2 : columns;
}

const span = (columns: number, tile: number) => columns * (tile + GAP) - GAP;

function finish(layout: Omit<Layout, "lines" | "line" | "place">, n: number): Layout {
  const rows = new Map<number, number[]>();
  for (const band of layout.bands) {
    for (const block of band.blocks) {
      for (const node of block.nodes) {
        const key = (layout.band[node] ?? 0) * 100_000 + (layout.y[node] ?? 0);
        const row = rows.get(key);
        if (row) {
          row.push(node);
        } else {
          rows.set(key, [node]);
        }
      }
    }
  }
  const lines = [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([, row]) => row.sort((a, b) => (layout.x[a] ?? 0) - (layout.x[b] ?? 0)));
  const line = new Int32Array(n);
  const place = new Int32Array(n);
  lines.forEach((row, i) =>
    row.forEach((node, j) => {
      line[node] = i;
      place[node] = j;
    }),
  );
  return { ...layout, lines, line, place };
}

function single(nodes: number[], n: number, width: number, narrow: boolean): Layout {
  const tile = narrow ? Math.max(baseTile(nodes.length), 20) : baseTile(nodes.length) + (nodes.length <= 2_500 ? 2 : 0);
  const columns = Math.max(1, Math.floor((width + GAP) / (tile + GAP)));
  const x = new Int32Array(n);
  const y = new Int32Array(n);
  const band = new Int32Array(n);
  const bands: Band[] = [];
  const each = columns * SINGLE_BAND_ROWS;
  for (let from = 0; from < nodes.length; from += each) {
    const part = nodes.slice(from, from + each);
    const height = Math.ceil(part.length / columns) * (tile + GAP);
    part.forEach((node, i) => {
      x[node] = (i % columns) * (tile + GAP);
      y[node] = Math.floor(i / columns) * (tile + GAP);
      band[node] = bands.length;
    });
    bands.push({ top: bands.reduce((sum, one) => sum + one.height, 0), height, blocks: [{ name: "", x: 0, width, nodes: part }] });
  }
  const height = bands.reduce((sum, one) => sum + one.height, 0);
  return finish({ width, height, tile, columns, bands, x, y, band }, n);
}

/** Lays the groups out in rows of blocks that fill the width; n: how many nodes there are in all. */
export function layOut(groups: Group[], n: number, width: number, narrow: boolean): Layout {
  const only = groups[0];
  if (groups.length === 1 && only && only.name === "") {
    return single(only.nodes, n, width, narrow);
  }
  const columns = columnsFor(groups, narrow);
  const blockGap = narrow ? NARROW_BLOCK_GAP : BLOCK_GAP;
  let tile = baseTile(n);
  if (narrow) {
    tile = Math.min(LARGEST_TILE, Math.floor((width - BLOCK_GAP) / 2 / columns - GAP));
  }
  const fit = (size: number) => Math.max(1, Math.floor((width + blockGap) / (span(columns, size) + blockGap)));
  const per = narrow ? Math.min(2, fit(tile)) : fit(tile);
  while (!narrow && tile < LARGEST_TILE && fit(tile + 1) === per) {
    tile += 1;
  }
  tile = Math.max(6, tile);
  const blockWidth = span(columns, tile);
  const spread = per > 1 ? (width - blockWidth) / (per - 1) : 0;
  const step = narrow || groups.length >= per ? spread : Math.min(spread, blockWidth + blockGap + 8);
  const x = new Int32Array(n);
  const y = new Int32Array(n);
  const bandOf = new Int32Array(n);
  const bands: Band[] = [];
  let top = 0;
  for (let from = 0; from < groups.length; from += per) {
    const row = groups.slice(from, from + per);
    const tallest = Math.max(...row.map((group) => Math.ceil(group.nodes.length / columns)));
    const height = HEAD + tallest * (tile + GAP) - GAP + BAND_GAP;
    const blocks = row.map((group, i): Block => {
      const left = Math.round(i * step);
      group.nodes.forEach((node, k) => {
        x[node] = left + (k % columns) * (tile + GAP);
        y[node] = HEAD + Math.floor(k / columns) * (tile + GAP);
        bandOf[node] = bands.length;
      });
      return { name: group.name, x: left, width: blockWidth, nodes: group.nodes };
    });
    bands.push({ top, height, blocks });
    top += height;
  }
  return finish({ width, height: top, tile, columns, bands, x, y, band: bandOf }, n);
}

/** The node under a point of the map, or -1. */
export function hit(layout: Layout, px: number, py: number): number {
  const index = layout.bands.findIndex((band) => py >= band.top && py < band.top + band.height);
  const band = layout.bands[index];
  if (!band) {
    return -1;
  }
  const cell = layout.tile + GAP;
  for (const block of band.blocks) {
    if (px < block.x - 1 || px > block.x + block.width + 1) {
      continue;
    }
    for (const node of block.nodes) {
      const dx = px - (layout.x[node] ?? 0);
      const dy = py - band.top - (layout.y[node] ?? 0);
      if (dx >= -1 && dx < cell - 1 && dy >= -1 && dy < cell - 1) {
        return node;
      }
    }
  }
  return -1;
}

export type Move = "left" | "right" | "up" | "down" | "start" | "end" | "first" | "last" | "page up" | "page down";

/** Where a key leads from a node; the node itself where there is nothing further. */
export function neighbour(layout: Layout, from: number, move: Move): number {
  const { lines } = layout;
  const row = layout.line[from] ?? 0;
  const place = layout.place[from] ?? 0;
  const nearest = (line: number) => {
    const among = lines[Math.max(0, Math.min(lines.length - 1, line))] ?? [];
    const x = layout.x[from] ?? 0;
    return among.reduce((best, node) => (Math.abs((layout.x[node] ?? 0) - x) < Math.abs((layout.x[best] ?? 0) - x) ? node : best), among[0] ?? from);
  };
  const perBand = Math.max(1, Math.round(lines.length / Math.max(1, layout.bands.length)));
  switch (move) {
    case "right":
      return lines[row]?.[place + 1] ?? lines[row + 1]?.[0] ?? from;
    case "left":
      return place > 0 ? (lines[row]?.[place - 1] ?? from) : (lines[row - 1]?.slice(-1)[0] ?? from);
    case "down":
      return row + 1 < lines.length ? nearest(row + 1) : from;
    case "up":
      return row > 0 ? nearest(row - 1) : from;
    case "start":
      return lines[row]?.[0] ?? from;
    case "end":
      return lines[row]?.slice(-1)[0] ?? from;
    case "first":
      return lines[0]?.[0] ?? from;
    case "last":
      return lines[lines.length - 1]?.slice(-1)[0] ?? from;
    case "page down":
      return nearest(row + perBand);
    default:
      return nearest(row - perBand);
  }
}

export interface Look {
  state: NodeState;
  warning: boolean;
  /** 0 to 4 when filled by a metric, -1 without a value, null when filled by state */
  step: number | null;
  /** the filter leaves it out */
  dim: boolean;
}

/** One number for all looks, so that a change can be seen by comparing. */
export function lookKey(look: Look): number {
  const states: NodeState[] = ["healthy", "unhealthy", "repairing", "starting", "pending", "paused", "unknown"];
  return look.dim ? 0 : 1 + states.indexOf(look.state) * 2 + (look.warning ? 1 : 0) + ((look.step ?? -2) + 2) * 20;
}

export interface Palette {
  bg: string;
  line: string;
  ink: string;
  ink3: string;
  onSolid: string;
  focus: string;
  tileHealthy: string;
  tileFill: string;
  ramp: string[];
  state: Record<NodeState | "warning", string>;
  /** forced colours: every tile gets this frame */
  frame: string | null;
  font: string;
}

export function readPalette(root: HTMLElement, forced: boolean): Palette {
  const style = getComputedStyle(root);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const names = ["healthy", "unhealthy", "repairing", "starting", "pending", "paused", "unknown", "warning"] as const;
  return {
    bg: token("bg"),
    line: token("line-strong"),
    ink: token("ink"),
    ink3: token("ink-3"),
    onSolid: token("ink-on-solid"),
    focus: token("focus"),
    tileHealthy: token("tile-healthy"),
    tileFill: token("tile-fill"),
    ramp: [0, 1, 2, 3, 4].map((i) => token(`ramp-${i}`)),
    state: Object.fromEntries(names.map((name) => [name, token(`st-${name}`)])) as Palette["state"],
    frame: forced ? "CanvasText" : null,
    font: token("font-sans"),
  };
}

type Pen = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

function drawGlyph(pen: Pen, state: NodeState, size: number, colour: string): void {
  pen.strokeStyle = colour;
  pen.fillStyle = colour;
  pen.lineWidth = size >= 18 ? 2 : 1.5;
  pen.lineCap = "square";
  const a = size * 0.3;
  const b = size * 0.7;
  pen.beginPath();
  if (state === "unhealthy") {
    pen.moveTo(a, a);
    pen.lineTo(b, b);
    pen.moveTo(b, a);
    pen.lineTo(a, b);
    pen.stroke();
  } else if (state === "repairing") {
    pen.moveTo(a, b);
    pen.lineTo(b, a);
    pen.stroke();
  } else if (state === "starting") {
    const dot = Math.max(2, Math.round(size * 0.13));
    for (const at of [0.25, 0.5, 0.75]) {
      pen.fillRect(Math.round(size * at - dot / 2), Math.round(size / 2 - dot / 2), dot, dot);
    }
  } else if (state === "paused") {
    const bar = Math.max(2, Math.round(size * 0.12));
    pen.fillRect(Math.round(size * 0.32), a, bar, b - a);
    pen.fillRect(Math.round(size * 0.68 - bar), a, bar, b - a);
  }
}

function frame(pen: Pen, size: number, width: number, colour: string, dashed: boolean): void {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dashed ? [2, 2] : []);
  pen.strokeRect(width / 2, width / 2, size - width, size - width);
  pen.setLineDash([]);
}

function drawByState(pen: Pen, look: Look, size: number, colours: Palette): void {
  const { state } = look;
  if (state === "unknown" || state === "pending") {
    frame(pen, size, 1.5, colours.state[state], state === "pending");
    return;
  }
  pen.beginPath();
  pen.roundRect(0, 0, size, size, 2);
  pen.fillStyle = state === "healthy" ? colours.tileHealthy : colours.state[state];
  pen.fill();
  if (state !== "healthy") {
    drawGlyph(pen, state, size, colours.onSolid);
    return;
  }
  pen.fillStyle = colours.tileFill;
  pen.fillRect(1, 1, size - 2, size - 2);
  if (look.warning) {
    const bar = Math.max(3, Math.round(size * 0.3));
    pen.fillStyle = colours.state.warning;
    pen.beginPath();
    pen.roundRect(0, size - bar, size, bar, [0, 0, 2, 2]);
    pen.fill();
  }
}

/** The state keeps its frame and its mark, so that a bad node never looks like an idle one. */
function drawByMetric(pen: Pen, look: Look, size: number, colours: Palette): void {
  const step = look.step ?? -1;
  pen.beginPath();
  pen.roundRect(0, 0, size, size, 2);
  pen.fillStyle = step < 0 ? colours.bg : (colours.ramp[step] ?? colours.bg);
  pen.fill();
  if (step < 0 && look.state === "healthy" && !look.warning) {
    frame(pen, size, 1, colours.line, true);
  }
  if (look.state === "healthy" && !look.warning) {
    return;
  }
  const kind = look.state === "healthy" ? "warning" : look.state;
  const colour = colours.state[kind];
  frame(pen, size, 2, colour, look.state === "pending");
  pen.fillStyle = colour;
  if (kind === "warning") {
    const bar = Math.max(3, Math.round(size * 0.3));
    pen.fillRect(0, size - bar, size, bar);
  } else if (kind !== "unknown" && kind !== "pending") {
    const corner = Math.round(size * 0.55);
    pen.fillRect(0, 0, corner, corner);
    drawGlyph(pen, look.state, corner, colours.onSolid);
  }
}

/** Pictures of tiles, one for each look, drawn once: 10,000 copies are quick, 10,000 drawings are not. */
export class Tiles {
  private made = new Map<number, HTMLCanvasElement>();

  constructor(
    readonly size: number,
    readonly scale: number,
    readonly colours: Palette,
  ) {}

  picture(look: Look): HTMLCanvasElement {
    const key = lookKey(look);
    let picture = this.made.get(key);
    if (!picture) {
      picture = document.createElement("canvas");
      picture.width = picture.height = Math.ceil(this.size * this.scale);
      const pen = picture.getContext("2d");
      if (pen) {
        pen.scale(this.scale, this.scale);
        this.draw(pen, look);
      }
      this.made.set(key, picture);
    }
    return picture;
  }

  private draw(pen: Pen, look: Look): void {
    if (look.dim) {
      frame(pen, this.size, 1, this.colours.line, false);
      return;
    }
    if (look.step === null) {
      drawByState(pen, look, this.size, this.colours);
    } else {
      drawByMetric(pen, look, this.size, this.colours);
    }
    if (this.colours.frame) {
      frame(pen, this.size, 1, this.colours.frame, look.state === "pending");
    }
  }
}

export interface Scene {
  layout: Layout;
  tiles: Tiles;
  looks: Look[];
  current: number;
  selected: ReadonlySet<number>;
}

function drawRing(pen: CanvasRenderingContext2D, scene: Scene, node: number, colour: string): void {
  const { layout } = scene;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.setLineDash([]);
  const grow = layout.tile >= 16 ? 2 : 1;
  pen.strokeRect((layout.x[node] ?? 0) - grow, (layout.y[node] ?? 0) - grow, layout.tile + 2 * grow, layout.tile + 2 * grow);
}

/** Draws a whole band. */
export function drawBand(canvas: HTMLCanvasElement, scene: Scene, index: number): void {
  const { layout, tiles } = scene;
  const band = layout.bands[index];
  const pen = canvas.getContext("2d");
  if (!band || !pen) {
    return;
  }
  const colours = tiles.colours;
  pen.setTransform(tiles.scale, 0, 0, tiles.scale, 0, 0);
  pen.clearRect(0, 0, layout.width, band.height);
  for (const block of band.blocks) {
    let out = 0;
    for (const node of block.nodes) {
      const look = scene.looks[node];
      if (look) {
        pen.drawImage(tiles.picture(look), layout.x[node] ?? 0, layout.y[node] ?? 0, layout.tile, layout.tile);
        out += look.state !== "healthy" ? 1 : 0;
      }
    }
    if (block.name) {
      pen.font = `500 11px ${colours.font}`;
      pen.textAlign = "left";
      pen.fillStyle = colours.ink3;
      pen.fillText(block.name, block.x, 14, block.width - (out ? 36 : 0));
      if (out) {
        pen.font = `600 11px ${colours.font}`;
        pen.textAlign = "right";
        pen.fillStyle = colours.ink;
        pen.fillText(`${out} out`, block.x + block.width, 14);
      }
    }
    for (const node of block.nodes) {
      if (scene.selected.has(node)) {
        drawRing(pen, scene, node, colours.ink);
      }
      if (node === scene.current) {
        drawRing(pen, scene, node, colours.focus);
      }
    }
  }
}

/** Draws one tile again in its place; only for a tile without a ring, whose block's count stands. */
export function drawTile(canvas: HTMLCanvasElement, scene: Scene, node: number): void {
  const { layout, tiles } = scene;
  const pen = canvas.getContext("2d");
  const look = scene.looks[node];
  if (pen && look) {
    const x = layout.x[node] ?? 0;
    const y = layout.y[node] ?? 0;
    pen.setTransform(tiles.scale, 0, 0, tiles.scale, 0, 0);
    pen.clearRect(x, y, layout.tile, layout.tile);
    pen.drawImage(tiles.picture(look), x, y, layout.tile, layout.tile);
  }
}
