"""Turns xid.json into the C tables of rules/xid.h: gen_xid.py xid.json xid_table.c."""

import json
import sys

SEVERITIES = {"info": "SEVERITY_INFO", "warning": "SEVERITY_WARNING", "critical": "SEVERITY_CRITICAL"}
ACTIONS = {a: f"ACTION_{a.upper()}" for a in
           ("none", "reset_gpu", "reboot", "power_cycle", "reprovision", "failover", "remove")}
SCOPES = {s: f"XID_SCOPE_{s.upper()}" for s in ("app", "gpu", "link", "fabric", "node", "unknown")}
IMMEDIATE = {"IGNORE": "NVLINK5_IGNORE", "RESET_GPU": "NVLINK5_RESET", "XID_154_EVAL": "NVLINK5_EVALUATE"}


def text(value):
    return json.dumps(value)


def code_row(row):
    by_text = row["severity"] in ("by_action", "by_log_text")
    severity = "SEVERITY_WARNING" if by_text else SEVERITIES[row["severity"]]
    action = "ACTION_NONE" if by_text else ACTIONS[row["action"]]
    return (f'    {{{row["code"]}, {text(row["check"])}, {text(row["meaning"])}, {SCOPES[row["scope"]]}, '
            f'{severity}, {action}, {"true" if by_text else "false"}}},')


def rule_row(row):
    units = (row["units"] + ["NULL"])[:2]
    units = [u if u == "NULL" else text(u) for u in units]
    status = row["error_status"] or []
    if len(status) > 2 or len(row["units"]) > 2:
        sys.exit(f"gen_xid.py: a rule of Xid {row['xid']} has more values than the table holds")
    values = ", ".join(s.lower() for s in status) or "0"
    return (f'    {{{row["xid"]}, {{{units[0]}, {units[1]}}}, {{{row["v1"][0]}, {row["v1"][1]}}}, '
            f'{{{row["v2"][0]}, {row["v2"][1]}}}, {{{values}}}, {len(status)}, {IMMEDIATE[row["immediate"]]}}},')


def table(kind, rows):
    rows = sorted((r for r in rows if r["kind"] == kind), key=lambda r: r["code"])
    if len({r["code"] for r in rows}) != len(rows):
        sys.exit(f"gen_xid.py: a {kind} code stands twice")
    return [f"const struct xid_row {kind}_rows[] = {{", *map(code_row, rows), "};",
            f"const size_t {kind}_row_count = {len(rows)};"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    lines = ["/* Tables of Xid and SXid codes; made from xid.json by gen_xid.py. */", '#include "agent/rules/xid.h"', "",
             *table("xid", data["codes"]), "", *table("sxid", data["codes"]), "",
             "const struct nvlink5_row nvlink5_rows[] = {", *map(rule_row, data["nvlink5_rules"]), "};",
             f"const size_t nvlink5_row_count = {len(data['nvlink5_rules'])};", "",
             "const struct recovery_row recovery_rows[] = {",
             *(f'    {{{r["value"]}, {text(r["text"])}, {ACTIONS[r["action"]]}}},' for r in data["recovery_actions"]),
             "};", f"const size_t recovery_row_count = {len(data['recovery_actions'])};"]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
