#!/usr/bin/env python3
"""Turns bench/sim.json (fault kinds, rates, raw lines) and bench/drills.json into the C tables of muster-sim: gen_faults.py sim.json drills.json faults_table.c"""

import json
import sys


# What an operator reads; {gpu} is the PCI address.
SUMMARIES = {
    "gpu_lost": "GPU {gpu} fell off the bus (Xid 79)",
    "gpu_pcie_degraded": "GPU {gpu}: PCIe link at x8 of x16",
    "nvlink_fatal": "GPU {gpu}: fatal NVLink error (Xid 74)",
    "nvlink5_link_event": "GPU {gpu}: NVLink 5 link event (Xid 149)",
    "gpu_driver_hang": "GPU {gpu}: context switch time-out (Xid 109)",
    "gpu_gsp_timeout": "GPU {gpu}: its system processor does not answer (Xid 119)",
    "gpu_pmu_spi": "GPU {gpu}: power controller read failed (Xid 122)",
    "hbm_row_remap_pending": "GPU {gpu}: a memory row waits for remapping (Xid 63)",
    "hbm_contained": "GPU {gpu}: contained memory error (Xid 94)",
    "hbm_uncontained": "GPU {gpu}: uncontained memory error (Xid 95)",
    "hbm_row_remap_failure": "GPU {gpu}: row remapping failed (Xid 64)",
    "sram_uncorrectable": "GPU {gpu}: uncorrectable SRAM error (Xid 48)",
    "gpu_thermal_slowdown": "GPU {gpu}: slowed down by heat",
    "gpu_hbm_thermal": "GPU {gpu}: memory too hot",
    "nvswitch_fatal": "NVSwitch: fatal SXid",
    "fabric_manager_down": "The fabric manager does not run",
    "driver_mismatch": "Driver and library versions differ",
    "ib_flap": "InfiniBand port flaps",
    "ib_down": "InfiniBand port down",
    "ib_rate_degraded": "InfiniBand port below its rate",
    "ib_symbol_errors": "InfiniBand symbol errors",
    "nic_failure": "A network adapter failed",
    "kernel_lockup": "The kernel reports a soft lockup",
    "dimm_ue": "Uncorrectable memory error",
    "dimm_ce_storm": "Many corrected memory errors",
    "nvme_fault": "An NVMe disk failed",
    "fs_readonly": "A file system became read-only",
    "disk_full": "A file system is nearly full",
    "fs_mount_lost": "A file server does not answer",
    "oom_global": "Out of memory",
    "clock_unsync": "The clock is not synchronised",
}


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
        quote(SUMMARIES[kind["id"]]), "true" if kind.get("scope") == "gpu" else "false", f'{float(kind["rate_per_1000_node_days"])!r}',
        f'{float(cured.get("reboot", 0.5))!r}', f'{float(cured.get("reset_gpu", 0.5))!r}',
        "{" + ", ".join("NULL" if line is None else quote(line) for line in lines) + "}", quote(""),
    ]
    return "    {" + ", ".join(fields) + "},"


def drill(kind):
    """Made on request only: without a rate. A boot or a reset cures it."""
    lines = (kind["lines"] + [None] * 3)[:3]
    fields = [
        quote(kind["id"]), quote(kind["check"]), quote(kind["code"]), quote(kind["severity"]), quote(kind["action"]),
        "true" if kind["node_fault"] else "false", quote(kind["clears"]), quote(kind["summary"]),
        "true" if kind.get("scope") == "gpu" else "false", "0.0", "1.0", "1.0",
        "{" + ", ".join("NULL" if line is None else quote(line) for line in lines) + "}", quote(kind.get("device", "")),
    ]
    return "    {" + ", ".join(fields) + "},"


def main():
    data, drills = (json.load(open(path)) for path in sys.argv[1:3])
    # What no check reads (crashes are the node's silence, power supplies and active tests are nobody's yet) is left out.
    kinds = [k for k in data["kinds"] if k["id"] in SUMMARIES]
    with open(sys.argv[3], "w") as out:
        out.write('/* Made from bench/sim.json and bench/drills.json by bench/gen_faults.py. */\n#include "bench/faults.h"\n\n#include <stddef.h>\n\n')
        out.write("const struct fault_kind fault_kinds[] = {\n" + "\n".join([*map(row, kinds), *map(drill, drills["kinds"])]) + "\n};\n")
        out.write("const size_t fault_kinds_count = sizeof(fault_kinds) / sizeof(fault_kinds[0]);\n\n")
        out.write("const struct fault_reason fault_reasons[] = {\n")
        out.writelines(f"    {{{quote(check)}, {quote(why)}}},\n" for check, why in drills["not_made"].items())
        out.write("};\nconst size_t fault_reasons_count = sizeof(fault_reasons) / sizeof(fault_reasons[0]);\n")


main()
