"""A month of a fleet: faults and noise of the kernel's log at the rates of bench/sim.json, through the agent's rules, the server and
its folding. The month is told as the last six days, which is as old as events may be: what the server looks at together is five times
as much as it would be. Counts what was told of nodes that had a fault, and of nodes that had none.

Only kinds with a line in the kernel's log take part; the others are named.
"""
import collections
import json
import math
import random
import subprocess
import sys
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from agent import Agent, join_token, stream, wait_for  # noqa: E402
from server import Musterd  # noqa: E402

STREAMS = {"critical": 0, "warning": 1, "info": 2}
NOISE = ("xid31_app", "xid13_app", "xid43_app", "xid45_teardown", "cgroup_oom", "aer_corrected", "mlx5_access_reg")
# Their kernel lines are those of noise; the fault itself is a reading.
READINGS = ("gpu_pcie_degraded",)
# A disk whose controller was reset and goes on has no fault yet.
ONLY_WITH = {"nvme_fault": "Disabling device"}
GPUS = [f"0000:{bus:02x}:00" for bus in (0x1b, 0x2b, 0x3b, 0x4b, 0x9b, 0xab, 0xbb, 0xdb)]
WITHIN = timedelta(minutes=10)
TOLD = timedelta(days=6)


class Words(dict):
    """Values for the places of a line; what is not named is a number."""

    def __missing__(self, key):
        return "7"


def words(pick, gpu):
    return Words(pci=GPUS[gpu], pci2=GPUS[(gpu + 1) % 8], gpu=gpu, pid=pick.randrange(1000, 99999), comm="python", hex8="4a1b0000", hex16="00000004a1b00000",
                 port="0000:00:02.0", nicpci="0000:5e:00.0", swpci="0000:c1:00.0", sec=26, server="10.9.9.9", dev="nvme0n1p2")


def judged(agent_program, lines):
    done = subprocess.run([agent_program, "classify", "--events", "--source", "kmsg"], input="\n".join(lines).encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines_of(pick, kind):
    """A fault's own lines in the kernel's log, in their order."""
    gpu, lines = pick.randrange(8), []
    for signal in sorted((s for s in kind["signals"] if s["source"] == "kmsg"), key=lambda s: s["delay_s"]):
        if signal["line"].startswith("(") or pick.random() > signal.get("p", 1):
            continue
        most = signal.get("repeat", {}).get("n", [1, 1])
        lines += [signal["line"].format_map(words(pick, gpu))] * pick.randint(most[0], min(most[1], 50))
    return lines


def draw(pick, nodes, days, rate):
    """How many, by Poisson; each a node and a moment."""
    mean = rate * nodes * days / 1000
    count = max(0, round(pick.gauss(mean, math.sqrt(mean))))
    return [(pick.randrange(nodes), pick.random() * days) for _ in range(count)]


class Node:
    def __init__(self, server, name, token):
        self.agent = Agent(server, name).enroll(token)
        self.sent = collections.Counter()

    def tell(self, events):
        streams = collections.defaultdict(list)
        for event in events:
            number = STREAMS[event["severity"]]
            self.sent[number] += 1
            streams[number].append({**event, "seq": self.sent[number]})
        self.agent.report_ok(streams=[stream(number, *mine) for number, mine in sorted(streams.items())] or None)

    def boot(self, ended):
        """Another boot; what a word of the agent ends has ended with it."""
        self.agent.boot_id = str(uuid.uuid4())
        self.sent.clear()
        self.tell([{**{k: e[k] for k in ("check_id", "code", "device", "severity")}, "clear": True} for e in ended if e["clears"] == "event"])


def plan(pick, sim, nodes, days):
    """(day, node, truth or None, events) of the month in order, and what could not take part."""
    program, acts, left_out = ROOT / "build" / "muster-agent", [], []
    for kind in sim["kinds"]:
        if kind["id"] in READINGS or kind["signals"][0]["source"] != "kmsg" or kind["signals"][0]["line"].startswith("("):
            left_out.append(kind["id"])
            continue
        for node, day in draw(pick, nodes, days, kind["rate_per_1000_node_days"]):
            lines = lines_of(pick, kind)
            if lines:
                is_fault = kind["expect"]["node_fault"] and ONLY_WITH.get(kind["id"], "") in "".join(lines)
                acts.append((day, node, kind["id"] if is_fault else None, judged(program, lines)))
    for noise in sim["noise"]:
        if noise["id"] not in NOISE:
            continue
        by_gpu = [judged(program, [noise["line"].format_map(words(pick, gpu))]) for gpu in range(8)]
        acts += [(day, node, None, by_gpu[pick.randrange(8)]) for node, day in draw(pick, nodes, days, noise["rate_per_1000_node_days"])]
    return sorted(acts, key=lambda act: act[:2]), left_out


def play(server, cluster, acts, nodes, days):
    """Sends the month; gives the true faults as (node id, moment, kind)."""
    begin = datetime.now(timezone.utc) - TOLD
    token = join_token(server, uses=nodes, cluster_id=cluster)
    fleet = [Node(server, f"month-{n:04}", token) for n in range(nodes)]
    waiting, truth = collections.defaultdict(list), []
    for day, number, kind, events in acts:
        moment = begin + TOLD * (day / days)
        stamped = [{**event, "at": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")} for event in events]
        waiting[number] += stamped
        if kind is None and len(waiting[number]) < 200 and not any(e["node_fault"] for e in events):
            continue
        node = fleet[number]
        node.tell(waiting.pop(number))
        if kind is not None:
            truth.append((node.agent.node_id, moment, kind))
        if kind is not None or any(e["node_fault"] for e in events):
            end(server, node, stamped)
    for number, events in waiting.items():
        fleet[number].tell(events)
    return truth


def end(server, node, events):
    """It is repaired: a boot, and a person's word where one is needed."""
    node.boot(events)
    of_node = f"FROM incident WHERE node_id = '{node.agent.node_id}' AND closed_at IS NULL AND node_fault"
    for row in server.sql(f"SELECT id {of_node} AND clears = 'person'").split():
        assert server.api("POST", f"/api/v1/incidents/{row}/close", {"reason": "The part was replaced"}).status_code == 200
    wait_for(lambda: server.sql(f"SELECT count(*) {of_node}").strip() == "0", 120)


def month(nodes=1000, days=30, seed=1):
    """Figures of one month."""
    sim = json.loads((ROOT / "bench" / "sim.json").read_text(encoding="utf-8"))
    acts, left_out = plan(random.Random(seed), sim, nodes, days)
    with Musterd(interval_seconds=3600, rate_join_per_minute=0) as server:
        truth = play(server, server.cluster_id, acts, nodes, days)
        rows = [row.split("|") for row in server.sql(
            "SELECT node_id, extract(epoch FROM first_at), check_id FROM incident WHERE node_fault AND root_id IS NULL AND node_id IS NOT NULL").split("\n") if row]
        incidents = int(server.sql("SELECT count(*) FROM incident"))
        repairs = int(server.sql("SELECT count(*) FROM repair"))
    alarms = [(node, datetime.fromtimestamp(float(at), timezone.utc), check) for node, at, check in rows]

    def near(a, b):
        return a[0] == b[0] and abs(a[1] - b[1]) <= WITHIN

    right = [a for a in alarms if any(near(a, t) for t in truth)]
    found = [t for t in truth if any(near(a, t) for a in alarms)]
    return {"nodes": nodes, "days": days, "events": sum(len(act[3]) for act in acts), "incidents": incidents, "repairs": repairs, "faults": len(truth),
            "alarms": len(alarms), "precision": len(right) / max(1, len(alarms)), "recall": len(found) / max(1, len(truth)),
            "missed": dict(collections.Counter(t[2] for t in truth if t not in found)),
            "false": dict(collections.Counter(a[2] for a in alarms if a not in right)), "left_out": left_out}


if __name__ == "__main__":
    print(json.dumps(month(*(int(word) for word in sys.argv[1:])), indent=1))
