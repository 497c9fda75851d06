"""What cannot be read is unknown with a reason: never a fault, never health."""

import os

import pytest


@pytest.mark.parametrize("name, path, metric", [
    ("cpu", "proc/stat", "cpu_ratio"),
    ("memory", "proc/meminfo", "mem_used_mib"),
    ("disk", "proc/mounts", "disk_ratio"),
    ("network", "sys/class/net", "net_rx_mbps"),
])
def test_an_unreadable_source_is_unknown_with_a_reason(node, server, name, path, metric):
    target = node.root / path
    if target.is_dir():
        os.rename(target, node.root / "away")
    else:
        target.unlink()
    node.start()
    server.wait_collector(name, state="unknown")
    assert path.split("/")[0] in server.collector(name)["reason"]
    assert server.wait_reports(2)["metrics"][metric] is None
    assert server.events == []
    assert node.alive()


def test_an_unreadable_source_that_comes_back_is_ok_again(node, server):
    text = (node.root / "proc/meminfo").read_text()
    node.write("proc/meminfo", "MemTotal: many kB\n")
    node.start()
    server.wait_collector("memory", state="unknown")
    node.write("proc/meminfo", text)
    server.wait_collector("memory", state="ok")


def test_a_kernel_log_that_is_not_there_is_unknown_and_comes_back(node, server):
    node.kmsg.unlink()
    node.start()
    server.wait_collector("kmsg", state="unknown")
    assert "/dev/kmsg" in server.collector("kmsg")["reason"]
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    server.wait_collector("kmsg", state="ok")


def test_network_bytes_become_rates(node, server):
    node.start()
    server.wait_reports(2)
    node.write("sys/class/net/eth0/statistics/rx_bytes", str(1000000 + 125_000_000))
    server.wait(lambda: any((r["metrics"]["net_rx_mbps"] or 0) > 100 for r in server.reports))
    rate = max(r["metrics"]["net_rx_mbps"] or 0 for r in server.reports)
    # What came, over the time between the reading before and the one after.
    assert rate <= 125_000_000 * 8 / 1e6 / 0.05


def test_infiniband_ports_are_read_and_virtual_functions_left_alone(node, server):
    def port(device, state="4: ACTIVE", phys="5: LinkUp", words="1000"):
        base = f"sys/class/infiniband/{device}/ports/1"
        node.write(f"{base}/state", state + "\n")
        node.write(f"{base}/phys_state", phys + "\n")
        node.write(f"{base}/link_layer", "InfiniBand\n")
        node.write(f"{base}/counters/port_rcv_data", words + "\n")
        node.write(f"{base}/counters/port_xmit_data", words + "\n")

    port("mlx5_0")
    port("mlx5_1")
    (node.root / "sys/class/infiniband/mlx5_1/device/physfn").mkdir(parents=True)
    node.start()
    server.wait_collector("fabric", state="ok")
    server.wait_reports(2)
    port("mlx5_0", words=str(1000 + 125_000_000))
    port("mlx5_1", words=str(1000 + 900_000_000))
    server.wait(lambda: any((r["metrics"]["fabric_rx_mbps"] or 0) > 1000 for r in server.reports))
    assert max(r["metrics"]["fabric_rx_mbps"] or 0 for r in server.reports) <= 125_000_000 * 4 * 8 / 1e6 / 0.05, "and not the other port's seven times as much"


def test_counters_that_make_the_driver_complain_are_left_alone(node, server):
    node.write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
    node.start()
    server.wait(lambda: server.collector("fabric"))
    node.kernel("mlx5_cmd_out_err:838:(pid 1): ACCESS_REG(0x805) op_mod(0x1) failed, status bad resource(0x5), err(-22)")
    server.wait_collector("fabric", state="unknown")
    assert "paused" in server.collector("fabric")["reason"]


def test_a_flood_of_lines_is_bounded_and_told(node, server):
    node.start()
    server.wait_reports(2)
    node.kernel(*[f"usb 1-1: reset number {i}" for i in range(3500)])
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    assert server.wait_event("agent.kmsg_overflow")["severity"] == "info"


def test_nonsense_in_the_kernel_log_harms_nobody(node, server):
    node.start()
    server.wait_reports(1)
    with open(node.kmsg, "ab") as file:
        file.write(b"\n;;;\n1,2\n99999999999999999999,1,1,-;x\n4,-1,0,-;NVRM: Xid (PCI:\n" + bytes(range(1, 256)) * 20 + b"\n")
        file.write(b"4,70000,1,-;NVRM: Xid (PCI:0000:66:00): abc, pid=2280636\n")
    node.seq = 70000
    node.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    assert [event["check_id"] for *_, event in server.events] == ["gpu_lost"]
