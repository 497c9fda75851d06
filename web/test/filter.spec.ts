/* The language of the filter bar. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest, readFilter, replaceTerm, satisfies, wanted } from "../src/filter";
import { holds, NODE_SPEC, nodesPath, serverKnowsAll, type Facts } from "../src/views/node-filter";
import { csvCell } from "../src/csv";

const node: Facts = { name: "gpu-17-03", state: "unhealthy", warning: false, rack: "r17", leaf: "leaf-09", util: 3, mem: null, temp: 61, seen: 8 };
const read = (source: string) => readFilter(source, NODE_SPEC);

test("terms and text are told apart", () => {
  const filter = read("gpu-17 state:unhealthy -rack:r12 util<5");
  assert.equal(filter.text, "gpu-17");
  assert.deepEqual(filter.terms.map((term) => [term.negated, term.key, term.op, term.value]), [
    [false, "state", ":", "unhealthy"],
    [true, "rack", ":", "r12"],
    [false, "util", "<", "5"],
  ]);
  assert.equal(filter.complaints.length, 0);
});

test("a word that cannot be read is named, with the fix", () => {
  const [state, temp] = read("state:unhealty temp:79").complaints;
  assert.match(state?.message ?? "", /“unhealty” is not a value of state/);
  assert.deepEqual(state?.fix, { what: "state:unhealty", with: "state:unhealthy" });
  assert.match(temp?.message ?? "", /“temp” takes < or > and not :/);
  assert.match(read("rak:r12").complaints[0]?.fix?.with ?? "", /^rack:r12$/);
  assert.match(read("util<many").complaints[0]?.message ?? "", /compared with a number/);
});

test("far words get no suggestion", () => {
  assert.equal(nearest("xyzzy", ["healthy", "paused"]), null);
  assert.equal(nearest("helathy", ["healthy", "paused"]), "healthy");
});

test("equal keys are alternatives, different keys hold together", () => {
  const cases: [string, boolean][] = [
    ["state:unhealthy state:paused", true],
    ["state:paused", false],
    ["state:unhealthy rack:r12", false],
    ["-rack:r12", true],
    ["-rack:r17", false],
    ["util<5", true],
    ["util>5", false],
    ["mem<50", false],
    ["-mem<50", false],
    ["gpu-1", true],
    ["gpu-2", false],
    ["warning:no", true],
  ];
  for (const [source, expected] of cases) {
    assert.equal(holds(read(source), node), expected, source);
  }
});

test("missing data satisfies no comparison", () => {
  const term = read("util<5").terms[0];
  assert.ok(term);
  assert.equal(satisfies(term, null), false);
});

test("the server gets what it can answer, the rest stays here", () => {
  assert.equal(nodesPath("c", read("gpu state:unhealthy state:unknown rack:r12"), "state", 100), "/clusters/c/nodes?state=unhealthy&state=unknown&q=gpu&rack=r12&sort=state&limit=100");
  assert.equal(nodesPath("c", read("rack:r1 rack:r2 warning:yes"), "name", 100), "/clusters/c/nodes?warning=true&sort=name&limit=100");
  assert.equal(serverKnowsAll(read("state:unhealthy rack:r12")), true);
  assert.equal(serverKnowsAll(read("util<5")), false);
  assert.equal(serverKnowsAll(read("-state:healthy")), false);
});

test("a term is replaced or dropped by its whole word", () => {
  assert.equal(replaceTerm("state:unhealty rack:r1", "state:unhealty", "state:unhealthy"), "state:unhealthy rack:r1");
  assert.equal(replaceTerm("rack:r1 rack:r12", "rack:r1", ""), "rack:r12");
  assert.deepEqual(wanted(read("-rack:r1 rack:r2"), "rack"), ["r2"]);
});

test("exported cells are quoted and cannot be formulas", () => {
  assert.equal(csvCell('say "a,b"'), '"say ""a,b"""');
  assert.equal(csvCell("=1+2"), "'=1+2");
  assert.equal(csvCell(null), "");
  assert.equal(csvCell(-3), "-3");
});
