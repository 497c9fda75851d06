/*
 * Runs the console's tests with node's own runner: node dev/run-tests.mjs FOLDER [NAME...]
 * The specs are TypeScript, so each is bundled first; packages stay outside of the bundles.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const folder = resolve(web, process.argv[2] ?? "test");
const names = process.argv.slice(3);
/* below node_modules, so that packages are found and nothing counts as a source */
const out = join(web, "node_modules", ".cache", "muster-tests", String(process.pid));

const specs = readdirSync(folder)
  .filter((file) => /\.spec\.tsx?$/.test(file) && (names.length === 0 || names.some((name) => file.includes(name))))
  .sort();
if (specs.length === 0) {
  console.error(`no spec in ${folder}${names.length ? ` matches ${names.join(", ")}` : ""}`);
  process.exit(1);
}
await build({
  entryPoints: specs.map((file) => join(folder, file)),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node18",
  packages: "external",
  jsx: "automatic",
  jsxImportSource: "preact",
  sourcemap: "inline",
  define: { "process.env.MUSTER_WEB": JSON.stringify(web) },
  logLevel: "error",
});
const files = specs.map((file) => join(out, file.replace(/\.tsx?$/, ".mjs")));
const done = spawnSync(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=tap", ...files], { stdio: "inherit", cwd: web });
rmSync(out, { recursive: true, force: true });
process.exit(done.status ?? 1);
