/* A browser before a stand-in server: how each spec of this folder begins. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as plainTest } from "node:test";
import { chromium, type BrowserContext, type Locator, type Page } from "playwright-core";
import { BROWSER_ARGS, BROWSER_PATH } from "../../web/dev/browser.mjs";
import { createMock } from "../../web/dev/mock-server.mjs";

const WEB = process.env.MUSTER_WEB as string;
/** What is waited for comes at once; a machine with other things to do takes longer, and that proves nothing. */
const PATIENCE_MS = 60_000;
const HANG_MS = 240_000;
const DAY_MS = 86_400_000;
const CLUSTER = "0198f3c2-0003-7000-8000-00000000000";

/** The clusters of the stand-in: 1,024 nodes, 256, one without GPUs, six silent, none yet; in the demo org 10,000. */
export const LARGE = `${CLUSTER}1`;
export const CALM = `${CLUSTER}2`;
export const LOCAL = `${CLUSTER}3`;
export const SILENT = `${CLUSTER}4`;
export const EMPTY = `${CLUSTER}5`;
export const HUGE = `${CLUSTER}9`;
export const DEMO_ORG = "0198f3c2-0001-7000-8000-000000000002";
export const MAIN_ORG = "0198f3c2-0001-7000-8000-000000000001";

/** A node of the large cluster, by rack and slot. */
export function nodeId(rack: number, slot: number, cluster = 1): string {
  const n = cluster * 100_000 + (rack - 1) * 32 + slot - 1;
  return `0198f3c2-0004-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** A repair of the large cluster, by its number. */
export function repairId(no: number): string {
  return `0198f3c2-0006-7000-8000-${no.toString(16).padStart(12, "0")}`;
}

export interface Steering {
  log: string[];
  streams: number;
  seq: number;
}

export class Stage {
  private constructor(
    readonly base: string,
    readonly context: BrowserContext,
    private readonly server: Server,
    private readonly folder: string,
  ) {}

  /** What a page said that it should not have: refusals by the policy, errors. Empty after each test. */
  readonly complaints: string[] = [];

  /** Without a period no new readings come by themselves: what a test counts is the page's own doing. */
  static async open(sampleMs = DAY_MS): Promise<Stage> {
    assert.ok(existsSync(join(WEB, "dist", "index.html")), "build the console first: npm run build");
    const server = createMock({ dist: join(WEB, "dist"), sampleMs }) as Server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const folder = mkdtempSync(join(tmpdir(), "muster-browser-"));
    const context = await chromium.launchPersistentContext(folder, { executablePath: BROWSER_PATH, args: BROWSER_ARGS, headless: true, viewport: { width: 1280, height: 800 } });
    context.setDefaultTimeout(PATIENCE_MS);
    context.setDefaultNavigationTimeout(PATIENCE_MS);
    await context.addInitScript(() => {
      const kept = window as unknown as { refused: string[] };
      kept.refused = [];
      document.addEventListener("securitypolicyviolation", (event) => kept.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
    });
    return new Stage(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, context, server, folder);
  }

  async steer(wish: Record<string, unknown>): Promise<Steering> {
    const answer = await fetch(`${this.base}/mock`, { method: "POST", body: JSON.stringify(wish) });
    return (await answer.json()) as Steering;
  }

  /** A new tab at an address, in a size and a theme. */
  async page(path: string, { width = 1280, height = 800, theme = "light" as "light" | "dark" } = {}): Promise<Page> {
    const page = await this.context.newPage();
    await page.setViewportSize({ width, height });
    /* without motion: what is on its way is neither there nor away, and its colours are nobody's */
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    page.on("pageerror", (error) => this.complaints.push(`${path}: ${error.message}`));
    page.on("console", (message) => {
      /* the browser logs every refused answer; tests that ask for refusals expect them */
      if (message.type() === "error" && !/Failed to load resource/.test(message.text())) {
        this.complaints.push(`${path}: ${message.text()}`);
      }
    });
    await page.goto(this.base + path);
    return page;
  }

  /** Closes a tab, after a look at what its policy refused. */
  async leave(page: Page): Promise<void> {
    const refused = await page.evaluate(() => (window as unknown as { refused: string[] }).refused);
    this.complaints.push(...refused.map((line) => `refused by the policy: ${line}`));
    await page.close();
    assert.deepEqual(this.complaints.splice(0), []);
  }

  async close(): Promise<void> {
    await this.context.close();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const axeSource = readFileSync(createRequire(join(WEB, "package.json")).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** WCAG 2.0 to 2.2 A and AA and best practices; one line a finding. */
export async function axe(page: Page): Promise<string[]> {
  /* through the debugger: the page's own policy forbids scripts from elsewhere, and shall */
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axeSource });
  await session.detach();
  const result = await page.evaluate(async () => {
    const runner = (window as unknown as { axe: { run: (context: Document, options: object) => Promise<AxeResult> } }).axe;
    /* A frame that has just begun to scroll is told so with the next picture: twice, and a third for what that draws. */
    for (let pictures = 0; pictures < 3; pictures++) {
      await new Promise(requestAnimationFrame);
    }
    return runner.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }, preload: false });
  });
  return result.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${one.help}: ${node.html.slice(0, 160)} ${(node.failureSummary ?? "").replace(/\s+/g, " ").slice(0, 200)}`));
}

/** A test that stands still is a failure with a name. */
export function test(name: string, run: () => void | Promise<void>): void {
  void plainTest(name, { timeout: HANG_MS }, run);
}

/** Waits until the text stands somewhere in the page; a deadline, no sleep. */
export async function says(page: Page, text: string | RegExp, timeout = PATIENCE_MS): Promise<void> {
  await page.getByText(text).first().waitFor({ state: "visible", timeout });
}

/** Waits until nothing in the page says it. */
export async function saysNot(page: Page | Locator, text: string | RegExp): Promise<void> {
  await eventually(() => page.getByText(text).count(), (count) => count === 0);
}

/** Reads again and again until it is so: what a page or the stand-in shows in its own time. Gives what it read. */
export async function eventually<T>(read: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const value = await read();
    if (isSo(value)) {
      return value;
    }
    assert.ok(Date.now() < end, `it stays at ${JSON.stringify(value)}`);
  }
}

/** What reads as this, once it does. */
export async function reads(locator: Locator, pattern: RegExp): Promise<void> {
  await eventually(async () => (await locator.textContent()) ?? "", (text) => pattern.test(text));
}

/** Presses what says that it is disabled: such a button can be reached, and must do nothing. */
export async function pressAnyway(button: Locator): Promise<void> {
  await button.waitFor();
  await button.dispatchEvent("click");
}

/** Waits until the page hears the stream: what happens before is not sent to it. */
export async function live(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Live/ }).waitFor();
}

/** Whether anything is wider than the window: the page would scroll sideways. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Anything that can be pressed and is smaller than 24 px, save links within a line of text (WCAG 2.5.8). */
export async function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("button, select, input, [role=grid]")]
      .filter((element) => element.getClientRects().length > 0 && !element.closest(".vh") && !element.classList.contains("linkish"))
      .map((element) => {
        /* a check box is pressed through its label */
        const target = element.closest("label") ?? element;
        const box = target.getBoundingClientRect();
        return { what: element.outerHTML.slice(0, 100), width: box.width, height: box.height };
      })
      .filter(({ width, height }) => width < 23.5 || height < 23.5)
      .map(({ what, width, height }) => `${Math.round(width)}x${Math.round(height)} ${what}`),
  );
}

/** Both themes and both widths of what is shown now. */
export async function looksRight(page: Page): Promise<void> {
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await page.locator(`html[data-theme=${theme}]`).waitFor({ state: "attached" });
    assert.deepEqual(await axe(page), [], theme);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForFunction(() => innerWidth === 390);
  assert.deepEqual(await axe(page), [], "390 px");
  assert.ok((await overflow(page)) <= 0, "the page scrolls sideways");
  assert.deepEqual(await smallTargets(page), []);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.waitForFunction(() => innerWidth === 1280);
}
