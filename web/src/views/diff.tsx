/* Before and after of one change, line by line: what went is red, what came is green, and both carry their sign. */

export interface DiffLine {
  sign: "-" | "+";
  path: string;
  value: string;
}

const LONG = 400;

function flatten(value: unknown, path: string, into: Map<string, string>): void {
  if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) {
      flatten(inner, path ? `${path}.${key}` : key, into);
    }
    return;
  }
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
  into.set(path, text.length > LONG ? `${text.slice(0, LONG)}… (${text.length} letters)` : text);
}

/** The fields that differ, in the order of the later state; equal ones are only counted. */
export function diffOf(before: Record<string, unknown> | null, after: Record<string, unknown> | null): { lines: DiffLine[]; same: number } {
  const old = new Map<string, string>();
  const young = new Map<string, string>();
  flatten(before ?? {}, "", old);
  flatten(after ?? {}, "", young);
  old.delete("");
  young.delete("");
  const lines: DiffLine[] = [];
  let same = 0;
  for (const path of new Set([...young.keys(), ...old.keys()])) {
    const [was, is] = [old.get(path), young.get(path)];
    if (was === is) {
      same += 1;
      continue;
    }
    if (was !== undefined) {
      lines.push({ sign: "-", path, value: was });
    }
    if (is !== undefined) {
      lines.push({ sign: "+", path, value: is });
    }
  }
  return { lines, same };
}

export function Diff({ before, after, label }: { before: Record<string, unknown> | null; after: Record<string, unknown> | null; label: string }) {
  const { lines, same } = diffOf(before, after);
  if (lines.length === 0) {
    return <p class="t3">{before || after ? "No field changed." : "No state is recorded for this action."}</p>;
  }
  return (
    <>
      <ul class="diff" aria-label={label}>
        {lines.map((line) => (
          <li key={line.sign + line.path} class={line.sign === "-" ? "gone" : "came"}>
            <span class="vh">{line.sign === "-" ? "before: " : "after: "}</span>
            <span aria-hidden="true">{line.sign} </span>
            {line.path}: {line.value === "" ? '""' : line.value}
          </li>
        ))}
      </ul>
      {same > 0 && <p class="s12 t3 gap4">{same === 1 ? "1 field is" : `${same} fields are`} the same.</p>}
    </>
  );
}
