/* How the console is built: hashed files, no inline code, and compressed variants beside each file. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig } from "vite";

const COMPRESSIBLE = /\.(?:js|css|html|svg|json|txt|webmanifest)$/;
const SMALLEST = 256; /* below one packet nothing is won */

function filesUnder(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesUnder(path) : [path];
  });
}

/** The server sends files from memory as they are, so each one is compressed once, here. */
function compressedVariants() {
  let folder = "dist";
  return {
    name: "compressed-variants",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const path of filesUnder(folder).filter((name) => COMPRESSIBLE.test(name))) {
        const body = readFileSync(path);
        if (body.length < SMALLEST) {
          continue;
        }
        writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
        const params = {
          [constants.BROTLI_PARAM_QUALITY]: 11,
          [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
        };
        writeFileSync(`${path}.br`, brotliCompressSync(body, { params }));
      }
    },
  };
}

export default defineConfig({
  plugins: [compressedVariants()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
  },
  server: {
    port: 5173,
    proxy: { "/api": process.env.MUSTER_URL ?? "http://127.0.0.1:5199" },
  },
});
