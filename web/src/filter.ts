/* The small language of the filter bar: key:value, key<number, -key:value, and plain text for names. */

export type Op = ":" | "<" | ">";

export interface KeySpec {
  /** how the key may be asked */
  ops: readonly Op[];
  /** the only values, where there are few */
  values?: readonly string[];
  /** the value is a number */
  number?: boolean;
}

export type Spec = Record<string, KeySpec>;

export interface Term {
  key: string;
  op: Op;
  value: string;
  negated: boolean;
  /** as written, to show and to take out again */
  raw: string;
}

export interface Complaint {
  message: string;
  /** replace what by with, and it can be read */
  fix: { what: string; with: string } | null;
}

export interface Filter {
  terms: Term[];
  /** what is not key:value, for the beginning of a name */
  text: string;
  complaints: Complaint[];
}

/** Edits from one word to another, with neighbours changed places as one; small words only. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array<number>(b.length).fill(0)]);
  for (let j = 0; j <= b.length; j++) {
    (rows[0] as number[])[j] = j;
  }
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const row = rows[i] as number[];
      const up = rows[i - 1] as number[];
      row[j] = Math.min((up[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (up[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j] ?? 0, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      }
    }
  }
  return rows[a.length]?.[b.length] ?? 99;
}

export function nearest(word: string, among: readonly string[]): string | null {
  const best = among.map((one) => ({ one, far: distance(word.slice(0, 32), one) })).sort((a, b) => a.far - b.far)[0];
  return best && best.far <= Math.max(1, Math.floor(best.one.length / 3)) ? best.one : null;
}

const TERM = /^(-?)([a-z_]+)([:<>])(.*)$/;

function complaintOf(term: Term, spec: Spec): Complaint | null {
  const known = spec[term.key];
  const dash = term.negated ? "-" : "";
  if (!known) {
    const near = nearest(term.key, Object.keys(spec));
    return {
      message: `“${term.key}” is not a key of this filter.`,
      fix: near ? { what: term.raw, with: `${dash}${near}${term.op}${term.value}` } : null,
    };
  }
  if (!known.ops.includes(term.op)) {
    const other = known.ops[0] ?? ":";
    return {
      message: `“${term.key}” takes ${known.ops.join(" or ")} and not ${term.op}.`,
      fix: { what: term.raw, with: `${dash}${term.key}${other}${term.value}` },
    };
  }
  if (known.values && !known.values.includes(term.value)) {
    const near = nearest(term.value, known.values);
    return {
      message: `“${term.value}” is not a value of ${term.key}.`,
      fix: near ? { what: term.raw, with: `${dash}${term.key}${term.op}${near}` } : null,
    };
  }
  if (known.number && !/^\d+(?:\.\d+)?$/.test(term.value)) {
    return { message: `“${term.key}” is compared with a number, as in ${term.key}${term.op}5.`, fix: null };
  }
  return null;
}

export function readFilter(source: string, spec: Spec): Filter {
  const filter: Filter = { terms: [], text: "", complaints: [] };
  const words: string[] = [];
  for (const raw of source.split(/\s+/).filter(Boolean)) {
    const found = TERM.exec(raw);
    if (!found) {
      words.push(raw);
      continue;
    }
    const term: Term = { negated: found[1] === "-", key: found[2] ?? "", op: (found[3] ?? ":") as Op, value: found[4] ?? "", raw };
    if (term.value === "") {
      filter.complaints.push({ message: `“${raw}” has no value yet.`, fix: null });
      continue;
    }
    const complaint = complaintOf(term, spec);
    if (complaint) {
      filter.complaints.push(complaint);
    }
    filter.terms.push(term);
  }
  filter.text = words.join(" ");
  return filter;
}

export function replaceTerm(source: string, what: string, replacement: string): string {
  return source
    .split(/\s+/)
    .map((word) => (word === what ? replacement : word))
    .filter(Boolean)
    .join(" ");
}

/** Values asked for by key:value, without the negated ones. */
export function wanted(filter: Filter, key: string): string[] {
  return filter.terms.filter((term) => term.key === key && term.op === ":" && !term.negated).map((term) => term.value);
}

/** Whether a number satisfies a term; missing data satisfies nothing. */
export function satisfies(term: Term, value: number | null): boolean {
  if (value === null) {
    return false;
  }
  const limit = Number(term.value);
  const holds = term.op === "<" ? value < limit : term.op === ">" ? value > limit : value === limit;
  return holds !== term.negated;
}
