"""Runs the test suites of the table below and counts what passed; `script/test` is its front door."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
TOTALS = ROOT / "build" / "test-totals.json"


# A test that stands still is a failure with a name and the stacks of all threads, not a lost run.
HANG_SECONDS = 300
MESSAGE_LENGTH = 200


class Counts:
    """What ran; `failures` are "name: first line of the message", one for each that failed."""

    def __init__(self, passed=0, failed=0, skipped=0, failures=()):
        self.passed, self.failed, self.skipped = passed, failed, skipped
        self.failures = list(failures)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def fail(self, name, message=""):
        """One more failure."""
        self.failed += 1
        first = next((line.strip() for line in (message or "").splitlines() if line.strip()), "")
        self.failures.append(f"{name}: {first}"[:MESSAGE_LENGTH] if first else name)
        return self

    def ended(self, status, what):
        """A status that says failure although no test does is one failure."""
        if status and not self.failed:
            self.fail(what, f"ended with status {status}")
        return self

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command, env=None, **options):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}, check=False, **options)


def build(folder, options=(), targets=(), env=None):
    """Configures (once) and builds a folder; raises with the output's end when it fails."""
    path = ROOT / folder
    if not (path / "build.ninja").exists():
        done = run(["meson", "setup", folder, *options], env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"meson setup {folder} failed:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    done = run(["ninja", "-C", folder, "--quiet", *targets], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ninja -C {folder} failed:\n{done.stdout[-4000:]}")
    return path


def read_junit(path):
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        broken = next((child for child in (case.find("failure"), case.find("error")) if child is not None), None)
        if broken is not None:
            place = (case.get("classname") or "").rpartition(".")[2]
            name = case.get("name") or "?"
            counts.fail(f"{place}::{name}" if place and place not in name else name, broken.get("message") or broken.text)
        elif case.find("skipped") is not None:
            counts.skipped += 1
            skipped = case.find("skipped")
            print(f"  skipped: {case.get('name')}: {skipped.get('message') or skipped.text or ''}".rstrip())
        else:
            counts.passed += 1
    return counts


# meson ends a program after 30 s; ours are no measure of the machine.
PATIENCE_FACTOR = 10


def meson_suite(folder, suite, env=None, timeout_factor=PATIENCE_FACTOR):
    log = ROOT / folder / "meson-logs" / "testlog.junit.xml"
    log.unlink(missing_ok=True)
    done = run(
        ["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", "-t", str(timeout_factor), "--suite", suite],
        env=env,
        capture_output=True,
        text=True,
    )
    if not log.exists():
        print(done.stdout[-3000:], done.stderr[-1000:])
        return Counts().fail("meson test", "wrote no report")
    counts = read_junit(log)
    if done.returncode:
        print(done.stdout[-8000:])
    return counts.ended(done.returncode, "meson test")


def pytest_suite(paths, env=None, extra=()):
    paths = [p for p in paths if (ROOT / p).exists()]
    if not paths:
        return Counts()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [PYTHON, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-rs",
                   f"--timeout={HANG_SECONDS}", f"--junitxml={report}", *extra, *paths]
        done = run(command, env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        if not report.exists():
            return Counts().fail(" ".join(paths), f"pytest ended with status {done.returncode} and wrote no report")
        return read_junit(report).ended(0 if done.returncode == 5 else done.returncode, " ".join(paths))


NOT_OK = re.compile(r"^( *)not ok \d+ - (.*)\n((?:\1 .*\n|\n)*)", re.M)


def read_tap(text):
    """(name, message) of each test that failed by itself: a file whose tests failed is named by those."""
    for indent, name, block in NOT_OK.findall(text):
        if "failureType: 'subtestsFailed'" not in block:
            message = re.search(r"^ *error: (?:\|-?\n *)?(.*)$", block, re.M)
            yield re.sub(r".*/", "", name.strip()), message[1].strip("'\"") if message else ""


def node_suite(folder, script, env=None):
    """A folder's npm script that runs node's test runner; counts from its TAP summary."""
    done = run(["npm", "run", "--silent", script], env=env, capture_output=True, text=True) if folder is None else \
        subprocess.run(["npm", "run", "--silent", script], cwd=ROOT / folder, env={**os.environ, **(env or {})},
                       capture_output=True, text=True, check=False)
    found = {k: int(v) for k, v in re.findall(r"^# (pass|fail|skipped|cancelled) (\d+)$", done.stdout, re.M)}
    counts = Counts(found.get("pass", 0), found.get("fail", 0) + found.get("cancelled", 0), found.get("skipped", 0))
    if done.returncode or not found:
        # What failed, each with its message; all that passed would bury it.
        print("\n".join(re.findall(r"^ *not ok .*\n(?:.*\n){0,25}", done.stdout, re.M))[-8000:], done.stderr[-3000:])
        told = Counts()
        for name, message in read_tap(done.stdout):
            told.fail(name, message)
        counts.failures = told.failures
    return counts.ended(done.returncode or int(not found), f"npm run {script}")


# ---------------------------------------------------------------- suites
def default_build():
    script = run(["script/build"], capture_output=True, text=True)
    if script.returncode:
        raise RuntimeError(f"script/build failed:\n{script.stdout[-4000:]}{script.stderr[-2000:]}")
    build("build")


def suite_lint():
    return meson_suite("build", "lint")


def suite_unit():
    return meson_suite("build", "unit")


def suite_api():
    stripped = build("build-stripped", ["-Dorg_predicate=false", "-Dtests=disabled"], ["musterd"])
    return pytest_suite(["tests/api"], {"MUSTERD_STRIPPED": str(stripped / "musterd")})


def suite_oidc():
    return pytest_suite(["tests/oidc"])


def suite_identity():
    return pytest_suite(["tests/identity"])


def suite_identity_more():
    return pytest_suite(["tests/identity_more"])


def suite_agent():
    return pytest_suite(["tests/agent"])


def suite_e2e():
    return pytest_suite(["tests/e2e"])


def suite_crash():
    return pytest_suite(["tests/crash", "tests/crash_matrix"])


def suite_crash_matrix():
    """Each step of each action, cut short in each way."""
    return pytest_suite(["tests/crash_matrix"], {"MUSTER_CRASH_MATRIX": "all"})


def suite_schedulers():
    return pytest_suite(["tests/slurm", "tests/kubernetes"])


def suite_machines():
    return pytest_suite(["tests/machines", "tests/ironic"])


def suite_ironic():
    """The same tests as with the stub, and more crashes, against Debian's Ironic: 187 packages, so not every day."""
    return pytest_suite(["tests/ironic"], {"MUSTER_IRONIC": "real"})


def suite_browser():
    return node_suite("web", "test:browser")


def suite_web():
    return node_suite("web", "test:unit")


SANITIZE = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1"]
SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


# These walk SQL, or the same C once more for every kind of caller, or wait for what loops do: under the sanitizers they would cost many
# minutes and show little. `script/test asan-all` runs them too.
NOT_SANITIZED = ["attacks", "audit", "authz", "backchannel", "bearer", "bola", "catalogue", "check_overrides", "command_keys", "copied_keys",
                 "custom_checks", "detection", "figures", "folding", "issuers", "limits", "members", "migrations", "node_state", "org_isolation", "platform", "policies",
                 "rejoin", "repair_report", "repair_safety", "repair_storm", "repairs", "replicas", "serials", "simulated_faults", "statements", "webhooks"]


def asan_pytest(path, extra=()):
    folder = ROOT / "build-asan"
    return pytest_suite([path], {**SANITIZER_ENV, "MUSTER_BUILD": str(folder), "MUSTERD": str(folder / "musterd")}, extra)


def asan_api():
    return asan_pytest("tests/api", [f"--ignore=tests/api/test_{name}.py" for name in NOT_SANITIZED])


def asan_agent():
    # The rules that judge the variants are sanitized by the unit tests and the fuzz targets.
    return asan_pytest("tests/agent", ["--ignore=tests/agent/test_variants.py"])


def suite_asan_all():
    build("build-asan", SANITIZE)
    return asan_pytest("tests/api", ["--ignore=tests/api/test_org_isolation.py"])


def suite_asan():
    build("build-asan", SANITIZE)
    counts = meson_suite("build-asan", "unit", SANITIZER_ENV, 2 * PATIENCE_FACTOR)
    counts.add(run_lanes([["asan_api"], ["asan_agent"]]))
    return counts


def suite_tsan():
    folder = build("build-tsan", ["-Db_sanitize=thread", "-Db_lundef=false", "-Doptimization=1"],
                   ["musterd", "muster-agent", "muster-sim", "muster", "tests/db/db-probe", "tests/db/next/db-probe-next"])
    return pytest_suite(["tests/api"], {
        "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.supp",
        "MUSTER_BUILD": str(folder),
        "MUSTERD": str(folder / "musterd"),
    })


def fuzz(inputs):
    """Each target over its corpus, then `inputs` new ones. A target that finds something fails the suite."""
    folder = build("build-fuzz", ["-Dfuzz=true", "-Dtests=disabled"], ["fuzz"], env={"CC": "clang-14"})
    counts = Counts()
    for target in sorted((folder / "tests" / "fuzz").glob("fuzz_*")):
        if not os.access(target, os.X_OK) or target.is_dir() or target.suffix:
            continue
        corpus = ROOT / "tests" / "fuzz" / "corpus" / target.name.removeprefix("fuzz_")
        with tempfile.TemporaryDirectory() as work:
            done = run([str(target), f"-runs={inputs}", "-max_total_time=1800", "-timeout=10", "-rss_limit_mb=2048",
                        "-print_final_stats=0", f"-artifact_prefix={ROOT}/build-fuzz/", work,
                        *([str(corpus)] if corpus.is_dir() else [])], capture_output=True, text=True)
        print(f"  {target.name}: {'ok' if done.returncode == 0 else 'FOUND SOMETHING'}")
        if done.returncode:
            print(done.stderr[-4000:])
            counts.fail(target.name, "found something")
        else:
            counts.passed += 1
    return counts


def suite_fuzz_short():
    return fuzz(20_000)


def suite_fuzz():
    return fuzz(1_000_000)


def suite_soak():
    return pytest_suite(["tests/soak"], extra=["-s"])


def suite_sim():
    """Random walks of fleets of up to 10,000 nodes, 10^6 steps a seed: no limit of repairs is exceeded."""
    counts = Counts()
    for seed in (int(os.environ.get("MUSTER_SIM_SEED", time.time_ns() % 2**31)), 1, 2, 3):
        done = run(["build/tests/unit/test_repair_sim", "--jobs", "1"], capture_output=True, text=True,
                   env={"MUSTER_SIM_STEPS": "1000000", "MUSTER_SIM_NODES": "10000", "MUSTER_SIM_SEED": str(seed)})
        print(f"  seed {seed}: {'ok' if done.returncode == 0 else done.stderr[-2000:]}")
        counts.add(Counts(passed=int(done.returncode == 0), failed=int(done.returncode != 0)))
    return counts


def suite_model():
    """The model of lease, epoch and the agent's log, every interleaving, by spin."""
    if run(["which", "spin"], capture_output=True).returncode:
        print("  skipped: spin is not installed (apt-get install spin)")
        return Counts(skipped=1)
    done = run(["tests/model/check"], capture_output=True, text=True)
    print(done.stdout[-3000:] + done.stderr[-2000:])
    return Counts(passed=int(done.returncode == 0), failed=int(done.returncode != 0))


def suite_tidy():
    """clang-tidy over every C file of ours, in the debug build's compile commands."""
    if run(["which", "clang-tidy-14"], capture_output=True).returncode:
        print("  skipped: clang-tidy-14 is not installed (apt-get install clang-tidy-14)")
        return Counts(skipped=1)
    files = [f for f in run(["git", "ls-files", "*.c"], capture_output=True, text=True).stdout.split()
             if f.split("/")[0] in ("base", "oidc", "db", "server", "agent", "cli", "bench")]
    done = run(["clang-tidy-14", "-p", "build", "--quiet", *files], capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-8000:])
        return Counts().fail("clang-tidy", "found something")
    return Counts(passed=1)


# ---------------------------------------------------------------- two at a time
# Suites that mostly wait: two lanes of them fill two cores. Each lane is a process of its own, whose output comes as a whole.
LANES = [["api"], ["oidc", "identity", "schedulers", "machines", "agent", "browser"]]


def run_lanes(lanes):
    """Runs each lane's suites one after the other, the lanes side by side."""
    processes = []
    for lane in lanes:
        output = tempfile.TemporaryFile("w+")
        processes.append((lane, output, subprocess.Popen([PYTHON, __file__, "--lane", *lane], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)))
    total = Counts()
    for lane, output, process in processes:
        process.wait()
        output.seek(0)
        *lines, last = output.read().rstrip("\n").split("\n")
        print("\n".join(lines), flush=True)
        try:
            total.add(Counts(**json.loads(last)))
        except (ValueError, TypeError):
            print(last)
            total.fail(f"the lane {' '.join(lane)}", "ended without its counts")
            print(total.failures[-1])
    return total


def run_lane(names):
    functions = {name: function for name, function, *_ in SUITES} | {f.__name__: f for f in (asan_api, asan_agent)}
    total = Counts()
    for name in names:
        total.add(run_suite(name, functions[name]))
    print(json.dumps(vars(total)))
    return 0


def run_suite(name, function):
    print(f"== {name}", flush=True)
    begun = time.monotonic()
    try:
        counts = function()
    except RuntimeError as failure:
        print(failure)
        counts = Counts().fail("build", str(failure))
    # A suite of lanes has its lanes' names in front already.
    counts.failures = [line if line.startswith(f"{name}_") else f"{name}: {line}" for line in counts.failures]
    print(f"== {name}: {counts} ({time.monotonic() - begun:.0f} s)", flush=True)
    return counts


# name, function, in the default run, what it is for
SUITES = [
    ("lint", suite_lint, True, "who may include whom, sizes, format, SQL and API closure without a server"),
    ("unit", suite_unit, True, "Criterion units"),
    ("web", suite_web, True, "units of the console"),
    ("api", suite_api, True, "black box against the real server and a private PostgreSQL"),
    ("oidc", suite_oidc, True, "tokens of every kind against the verifier, and the verdicts of others"),
    ("identity", suite_identity, True, "signing in at real providers, over TLS"),
    ("agent", suite_agent, True, "the real agent against fake hardware"),
    ("e2e", suite_e2e, True, "script/server and a real kernel line to a finished repair"),
    ("browser", suite_browser, True, "the console in Debian's Chromium, with axe"),
    ("schedulers", suite_schedulers, True, "repairs on nodes of a real Slurm, and of a Kubernetes API server as recorded"),
    ("machines", suite_machines, True, "power cycles by IPMI and Redfish, Ironic as recorded, and the operator's own automation"),
    ("crash", suite_crash, True, "kill -9 and immediate stops under load"),
    ("asan", suite_asan, False, "units, API and agent suites under AddressSanitizer and UBSan"),
    ("asan-all", suite_asan_all, False, "all of the API suite under them"),
    ("tsan", suite_tsan, False, "API suite under ThreadSanitizer"),
    ("fuzz-short", suite_fuzz_short, False, "every fuzz target, 20,000 inputs"),
    ("fuzz", suite_fuzz, False, "every fuzz target, 1,000,000 inputs"),
    ("tidy", suite_tidy, False, "clang-tidy"),
    ("sim", suite_sim, False, "random walks of 10,000 nodes under the admission code, 10^6 steps a seed"),
    ("crash-matrix", suite_crash_matrix, False, "every step of every repair action cut short in every way, effects counted at the far end"),
    ("model", suite_model, False, "spin over the model of lease, epoch and the agent's log"),
    ("identity-more", suite_identity_more, False, "signing in at glewlwyd, a second provider, from its Debian package"),
    ("ironic", suite_ironic, False, "repairs through a real Ironic, from Debian's packages"),
    ("soak", suite_soak, False, "hours in minutes: memory and descriptors stay flat"),
]


def write_total(counts, fresh):
    total = Counts()
    if not fresh and TOTALS.exists():
        total = Counts(**json.loads(TOTALS.read_text()))
    total.add(counts)
    TOTALS.parent.mkdir(exist_ok=True)
    TOTALS.write_text(json.dumps(vars(total)))


def say_total(total):
    """What failed once more, by name: the end of a log is what is kept of it. The last line is the count."""
    for line in total.failures:
        print(f"failed: {line}")
    print(total)


def main(names):
    if names == ["--list"]:
        for name, _, default, purpose in SUITES:
            print(f"{name:11} {'default' if default else '       '} {purpose}")
        return 0
    if names == ["--total"]:
        total = Counts(**json.loads(TOTALS.read_text())) if TOTALS.exists() else Counts().fail("nothing", "was run")
        say_total(total)
        return int(total.failed > 0)
    if names[:1] == ["--lane"]:
        return run_lane(names[1:])
    known = {name for name, *_ in SUITES}
    unknown = [n for n in names if n not in known and n != "all"]
    if unknown:
        print(f"script/test: unknown suite {unknown[0]}. script/test --list shows them.", file=sys.stderr)
        return 2
    total = Counts()
    try:
        default_build()
    except RuntimeError as failure:
        print(failure)
        total.fail("build", str(failure))
        write_total(total, fresh=not names)
        say_total(total)
        return 1
    chosen = [(name, function) for name, function, default, _ in SUITES
              if name in names or (not names and default) or ("all" in names and name != "fuzz-short")]
    beside = {name for lane in LANES for name in lane} & {name for name, _ in chosen}
    begun_lanes = False
    for name, function in chosen:
        if name not in beside or len(beside) == 1:
            total.add(run_suite(name, function))
        elif not begun_lanes:
            begun_lanes = True
            total.add(run_lanes([lane for names_of in LANES if (lane := [n for n in names_of if n in beside])]))
    write_total(total, fresh=not names)
    say_total(total)
    return int(total.failed > 0 or total.passed == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
