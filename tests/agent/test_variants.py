"""The labelled cases in other clothes: prefixes, times, hosts, addresses, MIG forms, noise and joined records change no verdict."""

import json
import random
import re
import subprocess

import pytest
from conftest import AGENT, ROOT

CASES = [json.loads(line) for line in (ROOT / "tests/fixtures/detection_cases.jsonl").read_text(encoding="utf-8").splitlines()]
SEED = 20261201
NOISE = ["usb 1-14.1: reset high-speed USB device number 4 using xhci_hcd", "audit: type=1400 audit(1764601193.339:77): apparmor=\"STATUS\"",
         "eth0: renamed from veth81f2a", "docker0: port 3(veth9) entered forwarding state", "perf: interrupt took too long (2516 > 2500)",
         "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.124.06  Thu Feb 20 02:02:22 UTC 2026", "IPv6: ADDRCONF(NETDEV_CHANGE): eth1: link becomes ready",
         "nvidia-nvlink: Nvlink Core is being initialized, major device number 234", "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode"]
PREFIX = re.compile(r"^(?:\w{3}\s+\d+ \d\d:\d\d:\d\d (?:\S+ )?kernel: |kernel: )?(?:\[\s*(\d+\.\d+)\] |\[\w{3} \w{3}\s+\d+ \d\d:\d\d:\d\d \d{4}\] (?:\S+ kernel: )?)?")


def classify(source, text, context=None):
    options = ["--context", json.dumps(context)] if context else []
    done = subprocess.run([AGENT, "classify", "--source", source, *options], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


JUDGED = {}


def judged(case):
    """What the case says as it stands, asked once."""
    if case["id"] not in JUDGED:
        JUDGED[case["id"]] = classify(case["source"], case["input"], case.get("context"))
    return JUDGED[case["id"]]


def records(case):
    """(uptime or None, text) of each record; continuation lines belong to the record before."""
    found = []
    for line in case["input"].split("\n"):
        if line[:1] in (" ", "\t") and found:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + line)
            continue
        match = PREFIX.match(line)
        found.append((float(match[1]) if match[1] else None, line[match.end():]))
    return found


# ---------------------------------------------------------------- how logs write a record

def boot_time(rng, at, text):
    return "kmsg", f"[{at:13.6f}] {text}"


def raw(rng, at, text):
    joined = "\\x0a".join(line.strip() for line in text.split("\n"))
    return "kmsg", f"{rng.choice([2, 3, 4, 6])},{int(at * 1000)},{int(at * 1e6)},-;{joined}"


def file_of_lines(rng, at, text):
    return "kmsg", f"{rng.choice(['Feb 23', 'Nov  3'])} 03:28:{rng.randrange(60):02} kernel: [{at:13.6f}] {text}"


def calendar(rng, at, text):
    return "kmsg", f"[Fri Nov 22 {rng.randrange(24):02}:45:44 2024] {text}"


def syslog(rng, at, text):
    joined = "#012".join(line.strip() for line in text.split("\n"))
    return "syslog", f"Aug 10 14:14:{rng.randrange(60):02} {rng.choice(['gpu-9', 'rack3-n12', 'dgx01.example.net'])} kernel: {joined}"


def journal(rng, at, text):
    return "journald", json.dumps({"_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel", "_BOOT_ID": "5eed000000000000000000000000000b",
                                   "__REALTIME_TIMESTAMP": str(1764601200000000 + int(at * 1e6)), "MESSAGE": text})


FORMS = [boot_time, raw, file_of_lines, calendar, syslog, journal]
TIMED = [boot_time, raw, file_of_lines]  # a machine check is judged by the time since boot


def dress(rng, case, form, noise):
    """The whole input in one form; with noise, harmless lines stand between the records."""
    at, lines, source = 5000.0 + rng.randrange(10**6), [], "kmsg"
    for uptime, text in records(case):
        at = uptime if uptime is not None else at + 0.001
        if noise:
            lines += [form(rng, at, rng.choice(NOISE))[1] for _ in range(rng.randrange(3))]
        source, line = form(rng, at, text)
        lines.append(line)
    return source, "\n".join(lines)


def move(rng, case):
    """Another address for the GPU, in another spelling: the case, and what the GPU is called then."""
    gpu = case["expect"].get("gpu")
    if not gpu or not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}", gpu):
        return None
    domain, bus, device = gpu.split(":")
    fresh = f"{rng.randrange(0xa0, 0xff):02x}"
    wide = rng.random() < 0.5
    spelled = fresh.upper() if wide else fresh

    def address(match):
        return f"{'0000' + match[1] if wide and match[1] else match[1] or ''}{':' if match[1] else ''}{spelled}:{match[3]}"
    pattern = rf"(?:(?<=PCI:)|(?<![0-9a-fA-F:.]))(?:({domain}):)?({bus}):({device})(?=[.) ,])"
    text = re.sub(pattern, address, case["input"])
    return {**case, "input": text}, f"{domain}:{fresh}:{device}"


def same(found, expected, gpu=None, name=""):
    def key(finding):
        return {**finding, "gpu": gpu[1] if gpu and finding["gpu"] == gpu[0] else finding["gpu"]}
    assert found == [key(f) for f in expected], name


KERNEL = [c for c in CASES if c["source"] == "kmsg" and not re.match(r"^\d+,\d+,", c["input"])
          and not {"last_seq", "gpu_reset_at_us"} & set(c.get("context") or {})
          and not c["input"].startswith(("kern: ", "[...]", "[123]"))]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_a_kernel_line_is_judged_the_same_however_it_was_written_down(form):
    rng = random.Random(f"{SEED} {form.__name__}")
    assert len(KERNEL) > 60
    for case in KERNEL:
        if "mce" in case["id"] and form not in TIMED:
            continue
        source, text = dress(rng, case, form, noise=rng.random() < 0.5)
        same(classify(source, text, case.get("context")), judged(case), name=f"{case['id']}\n{text}")


def test_a_gpu_may_have_any_address_in_any_spelling():
    rng, moved = random.Random(SEED), 0
    for case in KERNEL:
        variant = move(rng, case)
        if variant is None or variant[0]["input"] == case["input"]:
            continue
        moved += 1
        other, gpu = variant
        same(classify("kmsg", other["input"], case.get("context")), judged(case),
             (case["expect"]["gpu"], gpu), f"{case['id']}\n{other['input']}")
    assert moved > 25


def test_a_mig_instance_belongs_to_its_gpu():
    seen = 0
    for case in KERNEL:
        text = re.sub(r"\bXid \(PCI:([0-9a-f:.]+)\)", r"Xid (PCI:\1 GPU-I:05)", case["input"])
        if text == case["input"]:
            continue
        seen += 1
        before, after = judged(case), classify("kmsg", text, case.get("context"))
        assert [(f["check"], f["code"], f["gpu"]) for f in before] == [(f["check"], f["code"], f["gpu"]) for f in after], case["id"]
    assert seen > 20


def test_other_host_names_change_nothing():
    rng, seen = random.Random(SEED), 0
    for case in CASES:
        text = re.sub(r"\brack3-n12\b", rng.choice(["a", "gpu-0001", "node-7.cluster.example.net"]), case["input"])
        if text != case["input"] and case["source"] in ("syslog", "dcgm", "slurm", "kmsg"):
            seen += 1
            same(classify(case["source"], text, case.get("context")), judged(case), name=case["id"])
    assert seen > 5


def test_noise_alone_is_no_finding():
    rng = random.Random(SEED)
    for form in FORMS:
        made = [form(rng, 5000.0 + i, text) for i, text in enumerate(NOISE * 3)]
        assert classify(made[0][0], "\n".join(line for _, line in made)) == []
