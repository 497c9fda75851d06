/* Pictures of the console for the eye: node dev/shots.mjs URL OUT [name=path ...]; MUSTER_TOKEN for a real server. */
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { BROWSER_ARGS, BROWSER_PATH } from "./browser.mjs";

const [base, out, ...views] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "muster-shots-"));
const full = process.env.FULL === "1";
const sizes = (process.env.SIZES ?? "1280x800,390x844").split(",").map((size) => size.split("x").map(Number));
const themes = (process.env.THEMES ?? "light,dark").split(",");
const context = await chromium.launchPersistentContext(folder, { executablePath: BROWSER_PATH, args: BROWSER_ARGS, headless: true, viewport: null });
if (process.env.MUSTER_TOKEN) {
  await context.setExtraHTTPHeaders({ Authorization: `Bearer ${process.env.MUSTER_TOKEN}` });
}
for (const view of views) {
  const cut = view.indexOf("=");
  const name = view.slice(0, cut);
  const path = view.slice(cut + 1);
  for (const [width, height] of sizes) {
    for (const theme of themes) {
      const page = await context.newPage();
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: theme });
      page.on("console", (message) => /error|warning/.test(message.type()) && console.log(name, message.type(), message.text()));
      page.on("pageerror", (error) => console.log(name, "pageerror", error.message));
      await page.goto(base + path);
      await page.waitForTimeout(Number(process.env.WAIT ?? 1200));
      await page.screenshot({ path: join(out, `${name}-${width}-${theme}.png`), fullPage: full });
      await page.close();
    }
  }
}
await context.close();
rmSync(folder, { recursive: true, force: true });
