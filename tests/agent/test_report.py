"""What the agent sends: readings, inventory, collectors, events in streams."""

import json


def test_a_first_report_carries_readings_inventory_and_all_collectors(node, server):
    node.start()
    first = server.wait_reports(1)
    # The probe of the GPUs may take longer than the first reports.
    second = server.wait(lambda: next((r for r in server.reports[1:] if r["ready"] and r.get("gpus") and r["gpus"]["util"] == [97] * 8), None))
    server.wait(lambda: [r for r in server.reports if len(r.get("inventory", {}).get("devices", [])) >= 8])
    server.wait_collector("gpu", state="ok")
    assert server.enrolment["name"] == "gpu-17-03"
    assert first["boot_id"] == node.boot_id
    assert second["seq"] > first["seq"]
    assert second["nonce"] != first["nonce"] and len(second["nonce"]) == 22
    assert second["metrics"]["mem_total_mib"] == 2064000
    assert second["metrics"]["mem_used_mib"] == (2113536000 - 2030348288) // 1024
    assert second["metrics"]["fabric_rx_mbps"] is None
    assert second["gpus"]["util"] == [97] * 8
    assert second["gpus"]["mem_mib"] == [61000] * 8
    assert second["gpus"]["power_w"] == [640] * 8
    inventory = [r["inventory"] for r in server.reports if "inventory" in r][-1]
    assert inventory["driver_version"] == "570.124.06"
    assert [d["pci"] for d in inventory["devices"]][:2] == ["0000:1b:00", "0000:2b:00"]
    assert inventory["devices"][0]["serial"] == "1650000000000"
    collectors = {
        "cpu", "memory", "disk", "network", "fabric", "gpu", "kmsg", "inventory", "slurm", "chrony", "smart", "services",
        "fabric_manager", "dcgm", "pcie", "edac", "processes", "mounts", "links", "expected", "custom"}
    server.wait(lambda: {c["name"] for r in server.reports for c in r["collectors"]} == collectors)
    assert server.collector("fabric")["state"] == "absent"
    assert server.collector("gpu")["state"] == "ok"


def test_what_did_not_change_is_not_sent_again(node, server):
    node.start()
    server.wait_collector("gpu", state="ok")
    server.wait(lambda: len(server.reports) > 3 and "inventory" not in server.reports[-1] and server.reports[-1]["collectors"] == [])
    have = len(server.reports)
    server.wait_reports(5)
    for report in server.reports[have:]:
        assert "inventory" not in report and report["collectors"] == []


def test_a_kernel_line_becomes_a_critical_event_at_once(node, server):
    server.interval = 3600
    node.start()
    server.wait_reports(1)
    node.kernel("NVRM: GPU at PCI:0000:2b:00: GPU-00000000-0000-4000-8000-000000000001",
                "NVRM: Xid (PCI:0000:2b:00): 79, pid=0, GPU has fallen off the bus.",
                "NVRM: GPU 0000:2b:00.0: GPU has fallen off the bus.")
    event = server.wait_event("gpu_lost")
    assert (event["code"], event["device"], event["severity"]) == ("79", "0000:2b:00", "critical")
    assert (event["action"], event["node_fault"], event["clears"]) == ("reboot", True, "new_boot")
    assert event["count"] == 1
    assert [line["opened"] for line in event["lines"]] == [False, True, False]
    assert event["lines"][1]["source"] == "kernel"
    assert [e["check_id"] for *_, e in server.events] == ["gpu_lost"]


def test_repeats_within_an_interval_are_one_event_with_a_count(node, server):
    node.start()
    server.wait_reports(1)
    line = "NVRM: Xid (PCI:0000:2b:00): 31, pid={}, name=python3, Ch 00000008"
    node.kernel(*[line.format(i) for i in range(500)])
    server.wait(lambda: sum(e["count"] for e in server.found("gpu_xid")) >= 500)
    assert sum(e["count"] for e in server.found("gpu_xid")) == 500
    assert len(server.found("gpu_xid")) < 100, "one an interval, and not one a line"
    assert {e["severity"] for e in server.found("gpu_xid")} == {"info"}


def test_lines_of_processes_are_not_believed(node, server):
    node.start()
    server.wait_reports(1)
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.", priority=12)
    node.kernel("NVRM: Xid (PCI:0000:3b:00): 48, DBE")
    server.wait_event("gpu_ecc")
    assert not server.found("gpu_lost")


def test_lines_of_processes_are_believed_where_that_is_wanted(node, server):
    node.config["accept_user_kmsg"] = "true"
    node.start()
    server.wait_reports(1)
    node.kernel("muster-inject: NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.", priority=12)
    assert server.wait_event("gpu_lost")["device"] == "0000:2b:00"


def test_a_restart_does_not_raise_a_line_again(node, server):
    node.start()
    server.wait_reports(1)
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    server.wait_reports(1)
    node.stop(9)
    node.start()
    node.kernel("NVRM: Xid (PCI:0000:3b:00): 95, Uncontained: FBHUB. RST: Yes, D-RST: No")
    server.wait_event("gpu_ecc")
    assert len(server.found("gpu_lost")) == 1
    assert server.holes == []


def test_lines_written_before_the_agent_started_are_told(node, server):
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.",
                "NVRM: Xid (PCI:0000:2b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    node.start()
    assert server.wait_event("gpu_lost")["action"] == "reboot"
    server.wait_reports(1)
    assert not server.found("gpu_recovery_action")


def test_lines_at_or_under_the_stand_ins_place_belong_to_the_old_boot(node, server):
    last = node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    node.boot.write_text(f"{node.boot_id}\nkmsg_seq {last}\n")
    node.start()
    server.wait_reports(1)
    node.kernel("NVRM: Xid (PCI:0000:3b:00): 48, DBE")
    server.wait_event("gpu_ecc")
    assert not server.found("gpu_lost")


def test_the_report_number_grows_across_restarts(node, server):
    node.start()
    last = server.wait_reports(2)["seq"]
    node.stop(9)
    node.start()
    assert server.wait_reports(1)["seq"] > last
    assert server.enrolled == 1


def test_a_lost_report_is_an_event_that_arrives_once(node, server):
    node.start()
    server.wait_reports(1)
    server.lose_answers = 2
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    server.wait(lambda: server.lose_answers == 0)
    server.wait_reports(3)
    assert len(server.found("gpu_lost")) == 1
    assert server.holes == []
    assert json.dumps(server.reports[-1]["streams"]) == "[]"


def test_the_nvml_recovery_action_is_told_and_cleared(node, server):
    node.fake_nvml("count 8\ngpu 1 recovery 1\n")
    node.start()
    event = server.wait_event("gpu_recovery_action")
    assert (event["device"], event["action"], event["severity"]) == ("0000:2b:00", "reset_gpu", "critical")
    node.fake_nvml("count 8\n")
    server.wait_event("gpu_recovery_action", clear=True)
    assert len(server.found("gpu_recovery_action")) == 2
