/* What a first visit loads: the files that index.html names, as the server sends them. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const dist = resolve(dirname(fileURLToPath(import.meta.url)), "..", "dist");

export function firstLoad(folder = dist) {
  const html = readFileSync(join(folder, "index.html"), "utf8");
  const names = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.(?:js|css))"/g)].map((found) => found[1]);
  return names.map((name) => ({ name, bytes: readFileSync(join(folder, `${name}.br`)).length }));
}

if (process.argv[1]?.endsWith("size.mjs")) {
  const files = firstLoad();
  for (const { name, bytes } of files) {
    console.log(`${(bytes / 1024).toFixed(1)} KB  ${name}`);
  }
  console.log(`${(files.reduce((sum, file) => sum + file.bytes, 0) / 1024).toFixed(1)} KB brotli in all`);
}
