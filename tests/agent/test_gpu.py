"""NVML in trouble: the agent goes on, says what it cannot see, and takes it for what it is."""

import time


def test_a_hung_driver_stops_neither_the_loop_nor_kernel_lines(node, server):
    node.config["probe_timeout_seconds"] = 3
    node.start()
    server.wait_readings()
    node.fake_nvml("count 8\nhang power\n")
    server.wait_event("gpu_unresponsive")
    before = len(server.reports)
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    server.wait(lambda: len(server.reports) >= before + 3)
    assert "did not answer" in server.wait_collector("gpu", state="unknown")["reason"]
    server.wait(lambda: server.reports[-1]["gpus"]["util"] == [None] * 8)
    assert server.reports[-1]["metrics"]["mem_used_mib"] is not None
    node.fake_nvml("count 8\n")
    server.wait_event("gpu_unresponsive", 180, clear=True)
    server.wait(lambda: server.reports[-1]["gpus"]["util"] == [97] * 8)
    server.wait_collector("gpu", state="ok")


def test_never_more_than_one_probe(node, server):
    node.config["probe_timeout_seconds"] = 1
    node.fake_nvml("count 8\nhang init\n")
    node.start()
    server.wait_reports(1)
    # Until time-outs were told twice: so often another could have come beside the one that hangs.
    seen = set()
    told = lambda: len(server.found("gpu_unresponsive"))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (told() >= 2 and 1 in seen):
        seen.add(node.children().count("muster-nvml"))
        time.sleep(0.02)
    assert told() >= 2 and 1 in seen and seen <= {0, 1}


def test_three_time_outs_are_a_fault_of_the_node(node, server):
    node.config["probe_timeout_seconds"] = 1
    node.fake_nvml("count 8\nhang init\n")
    node.start()
    first = server.wait_event("gpu_unresponsive")
    assert first["severity"] == "warning" and first["node_fault"] is False
    event = server.wait_event("gpu_unresponsive", 180, severity="critical")
    assert (event["action"], event["node_fault"], event["clears"]) == ("reboot", True, "event")


def test_a_crashing_library_is_unknown(node, server):
    node.fake_nvml("crash\n")
    node.start()
    server.wait_collector("gpu", state="unknown")
    assert "signal 11" in server.collector("gpu")["reason"]
    assert server.events == []
    assert node.alive()


def test_a_lost_gpu_is_a_fault_and_its_readings_are_missing(node, server):
    node.start()
    server.wait_readings()
    node.fake_nvml("count 8\ngpu 2 lost\n")
    event = server.wait_event("gpu_lost")
    assert (event["device"], event["code"], event["clears"]) == ("0000:3b:00", "GPU_IS_LOST", "new_boot")
    server.wait(lambda: server.reports[-1]["gpus"]["util"] == [97, 97, None, 97, 97, 97, 97, 97])
    server.wait_reports(3)
    assert len(server.found("gpu_lost")) == 1


def test_a_gpu_that_the_kernel_reported_is_not_reported_again(node, server):
    node.start()
    server.wait_readings()
    node.kernel("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    node.fake_nvml("count 8\ngpu 2 lost\n")
    server.wait(lambda: server.reports[-1]["gpus"]["util"][2] is None)
    server.wait_reports(2)
    assert len(server.found("gpu_lost")) == 1


def test_a_gpu_that_nvml_lost_first_stays_one_fault_when_the_kernel_says_it_too(node, server):
    node.start()
    server.wait_readings()
    node.fake_nvml("count 8\ngpu 2 lost\n")
    server.wait_event("gpu_lost")
    node.kernel("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    server.wait(lambda: len(server.found("gpu_lost")) == 2)
    assert {(e["device"], e["code"]) for e in server.found("gpu_lost")} == {("0000:3b:00", "GPU_IS_LOST")}


def test_a_gpu_that_is_no_longer_listed_is_a_fault_after_three_rounds(node, server):
    node.start()
    server.wait_readings()
    node.fake_nvml("count 7\n")
    event = server.wait_event("gpu_lost")
    assert (event["device"], event["code"]) == ("0000:8b:00", "missing")
    server.wait(lambda: len(server.reports[-1]["gpus"]["util"]) == 8)


def test_one_failed_reading_is_nothing_and_three_are_a_sensor_warning(node, server):
    node.start()
    server.wait_readings()
    node.fake_nvml("count 8\ngpu 4 error 999\n")
    event = server.wait_event("gpu_sensor")
    assert (event["severity"], event["node_fault"], event["device"]) == ("warning", False, "0000:5b:00")
    server.wait(lambda: server.reports[-1]["gpus"]["temp_c"][4] is None)
    node.fake_nvml("count 8\n")
    server.wait_event("gpu_sensor", clear=True)


def test_garbage_is_no_reading(node, server):
    node.fake_nvml("count 8\ngpu 4 garbage\n")
    node.start()
    server.wait(lambda: server.reports and server.reports[-1].get("gpus"))
    report = server.wait(lambda: [r for r in server.reports if r.get("gpus") and r["gpus"]["util"][3] is not None])[-1]
    for key in ("util", "mem_mib", "mem_total_mib", "temp_c", "power_w"):
        assert report["gpus"][key][4] is None and report["gpus"][key][3] is not None
    assert server.events == []


def test_what_a_gpu_does_not_support_is_null(node, server):
    node.fake_nvml("count 2\ngpu 0 power_mw -\n")
    node.start()
    server.wait(lambda: server.reports and server.reports[-1].get("gpus") and server.reports[-1]["gpus"]["power_w"] == [None, 640])
    server.wait_reports(4)
    assert server.events == []


def test_without_nvidia_hardware_the_collector_is_absent(node, server):
    node.config["nvml_library"] = "/nonexistent/libnvidia-ml.so.1"
    node.start()
    assert server.wait_collector("gpu", state="absent") == {"name": "gpu", "state": "absent", "reason": "no NVIDIA hardware"}
    server.wait(lambda: server.reports[-1]["ready"])
    assert "gpus" not in server.reports[-1]


def test_hardware_without_a_library_is_unknown(node, server):
    node.config["nvml_library"] = "/nonexistent/libnvidia-ml.so.1"
    node.write("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n")
    node.write("sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n")
    node.start()
    server.wait_collector("gpu", state="unknown")
    assert "NVML" in server.collector("gpu")["reason"]
    assert server.events == []


def test_a_driver_that_is_not_loaded_is_a_fault_only_after_the_boot(node, server):
    node.fake_nvml("init 9\n")
    node.write("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n")
    node.write("sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n")
    node.write("proc/uptime", "41.00 1.00\n")
    node.start()
    server.wait(lambda: server.collector("gpu"))
    server.wait_reports(8)
    assert server.events == []
    node.write("proc/uptime", "3600.00 1.00\n")
    event = server.wait_event("driver_not_loaded", 180)
    assert (event["code"], event["action"]) == ("9", "reboot")
    node.fake_nvml("count 8\n")
    server.wait_event("driver_not_loaded", 180, clear=True)


def test_a_pending_row_remap_waits_for_a_reset(node, server):
    node.fake_nvml("count 8\ngpu 1 remap_pending 1\n")
    node.start()
    event = server.wait_event("gpu_row_remap")
    assert (event["code"], event["action"], event["severity"]) == ("pending", "reset_gpu", "warning")
    node.fake_nvml("count 8\ngpu 1 remap_pending 1\ngpu 1 remap_failed 1\n")
    event = server.wait_event("gpu_row_remap", code="failure")
    assert (event["action"], event["severity"]) == ("remove", "critical")


def test_a_narrow_link_under_load_is_a_fault_and_an_idle_one_is_not(node, server):
    node.fake_nvml("count 2\ngpu 0 width 8\ngpu 1 width 8\ngpu 1 util 0\n")
    node.start()
    event = server.wait_event("gpu_pcie")
    assert (event["device"], event["code"]) == ("0000:1b:00", "width")
    server.wait_reports(4)
    assert len(server.found("gpu_pcie")) == 1
