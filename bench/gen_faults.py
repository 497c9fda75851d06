#!/usr/bin/env python3
"""Turns bench/sim.json (fault kinds, rates, raw lines) into the C table of muster-sim: gen_faults.py sim.json faults_table.c"""

import json
import sys


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", " ") + '"'


def clears(kind):
    """How an incident of this kind ends, from its words; `event` means that the simulator sends the clearing event."""
    text = kind.get("clear", "")
    if "only by a person" in text:
        return "person"
    if "new boot" in text or kind["expect"]["action"] in ("reboot", "power_cycle"):
        return "new_boot"
    return "event"


def row(kind):
    expect, cured = kind["expect"], kind.get("cured_by", {})
    lines = [s["line"] for s in kind["signals"] if s["source"] in ("kmsg", "journald", "syslog", "ib", "slurm")]
    lines = (lines or [s["line"] for s in kind["signals"]])[:3]
    lines += [None] * (3 - len(lines))
    code = "" if expect.get("code") is None else str(expect["code"])
    fields = [
        quote(kind["id"]), quote(expect["check"]), quote(code), quote(expect["severity"]), quote(expect["action"]),
        "true" if expect.get("node_fault") else "false", quote(clears(kind)),
        "true" if kind.get("scope") == "gpu" else "false", f'{float(kind["rate_per_1000_node_days"])!r}',
        f'{float(cured.get("reboot", 0.5))!r}', f'{float(cured.get("reset_gpu", 0.5))!r}',
        "{" + ", ".join("NULL" if line is None else quote(line) for line in lines) + "}",
    ]
    return "    {" + ", ".join(fields) + "},"


def main():
    data = json.load(open(sys.argv[1]))
    kinds = [k for k in data["kinds"] if k["id"] not in ("host_crash", "host_hang")]
    with open(sys.argv[2], "w") as out:
        out.write('/* Made from bench/sim.json by bench/gen_faults.py. */\n#include "bench/faults.h"\n\n#include <stddef.h>\n\n')
        out.write("const struct fault_kind fault_kinds[] = {\n" + "\n".join(map(row, kinds)) + "\n};\n")
        out.write("const size_t fault_kinds_count = sizeof(fault_kinds) / sizeof(fault_kinds[0]);\n")


main()
