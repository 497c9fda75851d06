/* Numbers as they are shown: a unit after a space, a comma for thousands, never a figure for missing data. */

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(n: number): string {
  return grouped.format(n);
}

/** "1 node", "3 nodes". */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export const NO_DATA = "no data";

export function percent(ratio: number | null | undefined): string {
  return ratio == null ? NO_DATA : `${Math.round(ratio * 100)} %`;
}

export function celsius(c: number | null | undefined): string {
  return c == null ? NO_DATA : `${Math.round(c)} °C`;
}

function scaled(n: number): string {
  return n >= 100 ? count(n) : n >= 10 ? n.toFixed(n % 1 ? 1 : 0).replace(/\.0$/, "") : n.toFixed(1).replace(/\.0$/, "");
}

const SIZES = ["MiB", "GiB", "TiB", "PiB"];

/** Mebibytes in the unit that fits. */
export function mebibytes(mib: number | null | undefined): string {
  if (mib == null) {
    return NO_DATA;
  }
  let n = mib;
  let unit = 0;
  while (n >= 1024 && unit < SIZES.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${scaled(n)} ${SIZES[unit]}`;
}

/** "58 of 82 TiB": the unit once, that of the whole. */
export function mebibytesOf(used: number, total: number): string {
  const whole = mebibytes(total);
  const unit = SIZES.indexOf(whole.split(" ")[1] ?? "MiB");
  return `${scaled(used / 1024 ** unit)} of ${whole}`;
}

/** Megabits a second in the unit that fits. */
export function megabits(mbps: number | null | undefined): string {
  if (mbps == null) {
    return NO_DATA;
  }
  return mbps >= 1000 ? `${scaled(mbps / 1000)} Gb/s` : `${scaled(mbps)} Mb/s`;
}

export function watts(w: number | null | undefined): string {
  if (w == null) {
    return NO_DATA;
  }
  return w >= 10000 ? `${scaled(w / 1000)} kW` : `${count(w)} W`;
}

/** "reset_gpu" is said "reset GPU"; the words of the glossary. */
const ACTIONS: Record<string, string> = {
  reset_gpu: "reset GPU",
  reboot: "reboot",
  power_cycle: "power cycle",
  reprovision: "reprovision",
  failover: "failover",
  remove: "remove",
};

export function action(name: string): string {
  return ACTIONS[name] ?? name.replace(/_/g, " ");
}

export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
