/* How the tests start the system's Chromium: quiet, without a sandbox (they run as root), with no traffic of its own. */
export const BROWSER_PATH = process.env.MUSTER_CHROMIUM ?? "/usr/bin/chromium";
export const BROWSER_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
