#!/usr/bin/env python3
"""Turns bench/sim.json into the table of sim-month: how often each kind of fault comes and what cures it: gen_month.py sim.json month_table.c"""

import json
import sys

CURES = ("self", "restart_service", "reset_gpu", "reboot", "power_cycle", "reprovision", "replace")
ACTIONS = {"reset_gpu": "ACTION_RESET_GPU", "reboot": "ACTION_REBOOT", "power_cycle": "ACTION_POWER_CYCLE", "failover": "ACTION_FAILOVER",
           "remove": "ACTION_REMOVE"}


def row(kind, lemons):
    expect = kind["expect"]
    cure = ", ".join(str(kind["minimal_cure"].get(name, 0)) for name in CURES)
    fault = expect["node_fault"] and expect["action"] in ACTIONS
    code = json.dumps(str(expect["code"] if expect["code"] is not None else ""))
    return (f'    {{"{kind["id"]}", "{expect["check"]}", {code}, {kind["rate_per_1000_node_days"]}, {ACTIONS.get(expect["action"], "ACTION_REBOOT")},'
            f' {str(fault).lower()}, {str(kind["id"] in lemons).lower()}, {kind["job_kill_p"]}, {{{cure}}}}},')


def main(source, target):
    with open(source, encoding="utf-8") as file:
        sim = json.load(file)
    kinds = [kind for kind in sim["kinds"] if kind.get("generation_factor", {}).get("h100", 1) > 0]
    lemons = sim["heterogeneity"]["lemon"]["kinds"]
    with open(target, "w", encoding="utf-8") as file:
        file.write('/* Made by tests/sim/gen_month.py from bench/sim.json. */\n#include "tests/sim/month.h"\n\n')
        file.write("const struct month_kind month_kinds[] = {\n" + "\n".join(row(kind, lemons) for kind in kinds) + "\n};\n")
        file.write("const size_t month_kinds_count = sizeof month_kinds / sizeof month_kinds[0];\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
