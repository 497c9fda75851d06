"""Drives build/tests/db/db-probe, the database layer behind lines of text (tests/db/probe.c)."""
import os
import select
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "tests" / "db"
PROBE = BUILD / "db-probe"
NEXT_PROBE = BUILD / "next" / "db-probe-next"  # knows one migration more
ANSWER_SECONDS = 45


class Done:
    """One answer: kind (exec, unit, done, run), id, err, ms and the rest of the line."""

    def __init__(self, line):
        words = line.split(" ")
        self.kind = words[0]
        self.id = words.pop(1) if self.kind == "done" else None
        self.err = words[1]
        self.ms = int(words[2]) if self.kind in ("exec", "unit", "done") else None
        self.text = " ".join(words[3:] if self.ms is not None else words[2:])

    def __repr__(self):
        return f"{self.kind} {self.id} {self.err} {self.ms} {self.text}"


class Probe:
    """A running probe: one line in, answers out. Its connections live as long as it does."""

    def __init__(self, pg):
        self.process = subprocess.Popen([PROBE], env={**os.environ, **pg.env()}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.rest = b""

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def line(self):
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the probe does not answer"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "the probe ended"
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def exec(self, role, sql, org="-", *args):
        self.send(" ".join(["exec", role, sql, org, *args]))
        return Done(self.line())

    def unit(self, role, *statements):
        self.send(" ".join(["unit", role, *statements]))
        return Done(self.line())

    def submit(self, name, kind, sql, org="-", key="-", *args):
        self.send(" ".join(["submit", name, kind, sql, org, key, *args]))

    def run(self, ms=10000):
        """Turns the loop until no call waits; the answers by id, and the `run` line under None."""
        self.send(f"run {ms}")
        return self.collect()

    def collect(self):
        answers = {}
        while True:
            done = Done(self.line())
            assert done.id is None or done.id not in answers, f"call {done.id} was done twice"
            answers[done.id] = done
            if done.kind == "run":
                return answers

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(20) == 0


def command(pg, name, program=PROBE):
    """(exit status, text) of a one-shot command of the probe: migrate, check-version, check-roles."""
    done = subprocess.run([program, name], env={**os.environ, **pg.env()}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()
