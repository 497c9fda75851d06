"""Sources that are looked at in a child: programs, sysfs, /proc and logs, judged with debounce and grace."""

import http.server
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import AGENT, PROGRAMS

LONG = 120


@pytest.fixture
def fast(node, server):
    """A node that looks several times a second."""
    server.interval = 0.1
    node.config["collect_interval_ms"] = "100"
    return node


def told(server, check, **fields):
    return [e for e in server.found(check, **fields) if not e.get("clear")]


def wait_told(server, check, **fields):
    return server.wait(lambda: told(server, check, **fields), LONG)[0]


def wait_clear(server, check, **fields):
    return server.wait(lambda: [e for e in server.found(check, **fields) if e.get("clear")], LONG)[0]


def wait_state(server, name, state):
    server.wait(lambda: (server.collector(name) or {}).get("state") == state, LONG)
    return server.collector(name)["reason"]


def looks(node, name, more=5):
    """Waits until a fake program was asked so many more times."""
    have, end = len(node.asked(name)), time.monotonic() + LONG
    while len(node.asked(name)) < have + more:
        assert time.monotonic() < end, f"{name} is not asked any more"
        time.sleep(0.05)


# ---------------------------------------------------------------- programs

def test_slurms_state_is_told_after_three_looks_and_ends_with_it(fast, server):
    fast.program("scontrol", "scontrol.idle.json")
    fast.start()
    assert wait_state(server, "slurm", "ok") == ""
    assert fast.asked("scontrol")[0] == "show node gpu-17-03 --json"
    fast.program("scontrol", "scontrol.not_responding.json")
    event = wait_told(server, "slurm_node_state")
    assert (event["code"], event["severity"], event["action"], event["clears"]) == ("not_responding", "critical", "reboot", "event")
    fast.program("scontrol", "scontrol.idle.json")
    assert wait_clear(server, "slurm_node_state")["code"] == "not_responding"


def test_a_scontrol_without_json_is_asked_for_text(fast, server):
    fast.program("scontrol", "scontrol.kill_task_failed.txt", mode="text-only")
    fast.start()
    assert wait_told(server, "slurm_node_state")["code"] == "kill_task_failed"
    assert not any("--json" in call for call in fast.asked("scontrol")[1:])


def test_a_drain_of_our_own_is_no_fault(fast, server):
    fast.program("scontrol", "scontrol.draining.json")
    fast.start()
    assert wait_told(server, "slurm_node_state")["severity"] == "info"


def test_a_clock_that_is_off_is_told_only_when_it_lasts(fast, server):
    fast.program("chronyc", "chronyc.synchronised.csv")
    fast.start()
    looks(fast, "chronyc", 3)
    assert server.events == []
    fast.program("chronyc", "chronyc.offset.csv")
    before = len(fast.asked("chronyc"))
    assert wait_told(server, "clock")["code"] == "offset"
    assert len(fast.asked("chronyc")) >= before + 14
    fast.program("chronyc", "chronyc.unsynchronised.csv")
    wait_clear(server, "clock", code="offset")


def test_a_disk_that_says_it_fails_is_told(fast, server):
    fast.write("sys/class/nvme/nvme0/serial", "S1\n")
    fast.write("sys/block/sda/device/vendor", "ATA     \n")
    fast.program("smartctl", "smartctl.nvme.json")
    fast.start()
    wait_state(server, "smart", "ok")
    assert any(call.endswith("/dev/nvme0") for call in fast.asked("smartctl"))
    assert any("standby" in call and call.endswith("/dev/sda") for call in fast.asked("smartctl"))
    fast.program("smartctl", "smartctl.nvme_spare.json")
    event = wait_told(server, "disk_nvme")
    assert (event["device"], event["code"], event["action"]) == ("nvme0", "spare", "remove")
    fast.program("smartctl", "smartctl.ata_sectors.json")
    assert wait_told(server, "disk_ata")["device"] == "sda"
    wait_clear(server, "disk_nvme", device="nvme0")


def test_a_service_that_systemd_starts_again_and_again_is_down(fast, server):
    fast.write("run/systemd/system/x", "")
    fast.program("systemctl", "systemctl.running.txt")
    fast.start()
    wait_state(server, "services", "ok")
    looks(fast, "systemctl", 4)
    assert not told(server, "service")
    fast.program("systemctl", "systemctl.restarting.txt")
    event = wait_told(server, "service")
    assert (event["code"], event["device"], event["severity"]) == ("slurmd", "slurmd", "warning")
    fast.program("systemctl", "systemctl.running.txt")
    wait_clear(server, "service", device="slurmd")


def test_a_configured_service_that_is_not_there_is_a_fault(fast, server):
    fast.config["services"] = "nvidia-fabricmanager,slurmd"
    fast.write("run/systemd/system/x", "")
    fast.program("systemctl", "systemctl.running.txt")
    fast.start()
    assert wait_told(server, "service", device="nvidia-fabricmanager")
    assert fast.asked("systemctl")[0].endswith("nvidia-fabricmanager.service slurmd.service")
    assert not told(server, "service", device="slurmd")


ASKED = {"scontrol": "slurm", "chronyc": "chrony", "systemctl": "services"}


def test_a_program_that_fails_is_unknown_with_a_reason(fast, server):
    fast.write("run/systemd/system/x", "")
    for name in ASKED:
        fast.program(name, mode="fail")
    fast.start()
    for source in ASKED.values():
        assert "status" in wait_state(server, source, "unknown")
    server.wait_reports(3)
    assert server.events == []


def test_garbage_from_a_program_is_no_fault(fast, server):
    fast.write("run/systemd/system/x", "")
    for name in ASKED:
        fast.program(name, "\x01\x02{\"nodes\": [{]]]\n,,,,,,,,,,,,,,\n= =\n")
    fast.start()
    for name, source in ASKED.items():
        wait_state(server, source, "absent" if name == "systemctl" else "ok")
        looks(fast, name, 3)
    assert all(e["severity"] == "info" for _, _, _, e in server.events)


def test_a_program_that_is_not_installed_is_absent(node, server):
    node.start()
    assert "scontrol is not installed" in wait_state(server, "slurm", "absent")
    assert "not installed" in wait_state(server, "chrony", "absent")
    assert "not installed" in wait_state(server, "smart", "absent")


@pytest.mark.parametrize("name, source", [("chronyc", "chrony"), ("systemctl", "services"), ("smartctl", "smart")])
def test_the_real_program_is_understood(node, server, name, source):
    real = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if real is None:
        pytest.skip(f"{name} is not installed")
    node.config["programs_path"] = os.path.dirname(real)
    if name == "systemctl" and not Path("/run/systemd/system").exists():
        node.write("run/systemd/system/x", "")
    if name == "smartctl":
        node.write("sys/class/nvme/nvme99/serial", "S1\n")
    node.start()
    server.wait(lambda: server.collector(source), LONG)
    assert server.collector(source)["state"] in ("ok", "unknown", "absent")
    assert all(e["severity"] == "info" for _, _, _, e in server.events)


# ---------------------------------------------------------------- grace

def test_after_a_boot_what_is_missing_is_no_fault_until_the_grace_ends(fast, server):
    fast.write("proc/uptime", "20.00 1.00\n")
    fast.config["expected_gpus"] = "9"
    fast.program("scontrol", "scontrol.not_responding.json")
    fast.start()
    looks(fast, "scontrol", 5)
    assert server.events == []
    fast.write("proc/uptime", "900.00 1.00\n")
    assert wait_told(server, "gpu_count")["code"] == "missing"
    wait_told(server, "slurm_node_state")


def test_while_the_driver_is_exchanged_missing_gpus_are_no_fault_until_the_deadline(fast, server):
    marker = fast.root / "run/muster/driver-upgrade"
    fast.write("run/muster/driver-upgrade", "")
    fast.config["expected_gpus"] = "9"
    fast.program("scontrol", "scontrol.idle.json")
    fast.start()
    wait_state(server, "expected", "ok")
    looks(fast, "scontrol", 5)
    assert not server.found("gpu_count")
    os.utime(marker, (time.time() - 3600, time.time() - 3600))
    fast.stop()
    fast.start()
    assert wait_told(server, "gpu_count")["action"] == "reboot"


# ---------------------------------------------------------------- inventory

def test_missing_gpus_and_ports_are_faults_of_the_node(fast, server):
    fast.config.update(expected_gpus="9", expected_ports="eth0,mlx5_3,0000:c1:00.0")
    fast.write("sys/class/net/eth0/carrier", "1\n")
    fast.start()
    event = wait_told(server, "gpu_count")
    assert (event["severity"], event["node_fault"]) == ("critical", True) and "8 of 9" in event["summary"]
    assert wait_told(server, "nic_count", device="mlx5_3")["action"] == "failover"
    assert wait_told(server, "nic_count", device="0000:c1:00.0")
    assert not told(server, "nic_count", device="eth0")
    fast.fake_nvml("count 9\n")
    wait_clear(server, "gpu_count")


def test_a_port_slower_than_expected_is_told(fast, server):
    base = "sys/class/infiniband/mlx5_7/ports/1"
    fast.config.update(expected_ports="mlx5_7/1", expected_port_gbps="400")
    for name, text in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("rate", "200 Gb/sec (2X NDR)"), ("link_layer", "InfiniBand")):
        fast.write(f"{base}/{name}", text + "\n")
    fast.start()
    event = wait_told(server, "ib_link")
    assert (event["device"], event["code"], event["action"]) == ("mlx5_7/1", "rate", "failover")


# ---------------------------------------------------------------- sysfs and /proc

def test_link_errors_are_rates_and_survive_a_reset_of_the_counter(fast, server):
    base = "sys/class/infiniband/mlx5_0/ports/1"
    fast.program("scontrol", "scontrol.idle.json")
    fast.write(f"{base}/state", "4: ACTIVE\n")
    fast.write(f"{base}/counters/symbol_error", "60000\n")
    fast.write(f"{base}/counters/link_downed", "7\n")
    fast.start()
    wait_state(server, "links", "ok")
    looks(fast, "scontrol", 3)
    fast.write(f"{base}/counters/symbol_error", "100\n")  # was reset: a hundred since
    looks(fast, "scontrol", 3)
    assert server.events == []
    fast.write(f"{base}/counters/symbol_error", "300\n")
    assert wait_told(server, "ib_link", code="symbol")["severity"] == "warning"
    fast.write(f"{base}/counters/link_downed", "10\n")
    event = wait_told(server, "ib_link", code="flap")
    assert (event["severity"], event["action"], event["device"]) == ("critical", "failover", "mlx5_0/1")


def test_a_port_that_flaps_is_a_warning(fast, server):
    fast.write("sys/class/net/eth0/carrier_down_count", "2\n")
    fast.start()
    wait_state(server, "links", "ok")
    fast.write("sys/class/net/eth0/carrier_down_count", "5\n")
    assert wait_told(server, "eth_link", code="flap")["severity"] == "warning"


def aer(node, address, correctable=0, fatal=0):
    base = f"sys/bus/pci/devices/{address}"
    node.write(f"{base}/class", "0x020700\n")
    node.write(f"{base}/aer_dev_correctable", f"RxErr {correctable}\nTOTAL_ERR_COR {correctable}\n")
    node.write(f"{base}/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 0\n")
    node.write(f"{base}/aer_dev_fatal", f"TOTAL_ERR_FATAL {fatal}\n")


def test_many_corrected_pcie_errors_and_a_narrow_link_are_told(fast, server):
    base = "sys/bus/pci/devices/0000:c1:00.0"
    aer(fast, "0000:c1:00.0", 5000)
    fast.write(f"{base}/current_link_width", "16\n")
    fast.write(f"{base}/max_link_width", "16\n")
    fast.program("scontrol", "scontrol.idle.json")
    fast.start()
    wait_state(server, "pcie", "ok")
    looks(fast, "scontrol", 3)
    assert server.events == []
    aer(fast, "0000:c1:00.0", 6200)
    fast.write(f"{base}/current_link_width", "8\n")
    assert wait_told(server, "pcie_aer")["code"] == "correctable_rate"
    event = wait_told(server, "pcie_link")
    assert (event["code"], event["device"], event["severity"]) == ("width", "0000:c1:00", "warning")
    fast.write(f"{base}/current_link_width", "16\n")
    wait_clear(server, "pcie_link")


def test_fatal_pcie_errors_are_told_by_the_counters_only_without_a_kernel_log(fast, server):
    fast.kmsg.unlink()
    aer(fast, "0000:c1:00.0")
    fast.start()
    wait_state(server, "pcie", "ok")
    aer(fast, "0000:c1:00.0", fatal=1)
    event = wait_told(server, "pcie_aer", code="fatal")
    assert (event["severity"], event["action"]) == ("critical", "reboot")


def test_memory_errors_that_the_kernel_only_counts_are_told(fast, server):
    base = "sys/devices/system/edac/mc/mc0/dimm0"
    fast.write("sys/module/edac_core/parameters/edac_mc_log_ce", "0\n")
    fast.write(f"{base}/dimm_label", "CPU_SrcID#0_MC#0_Chan#0_DIMM#0\n")
    fast.write(f"{base}/dimm_ce_count", "4\n")
    fast.write(f"{base}/dimm_ue_count", "0\n")
    fast.start()
    wait_state(server, "edac", "ok")
    fast.write(f"{base}/dimm_ce_count", "304\n")
    event = wait_told(server, "memory_ecc")
    assert (event["code"], event["severity"], event["device"]) == ("ce", "warning", "CPU_SrcID#0_MC#0_Chan#0_DIMM#0")


def process(node, pid, name, state, switches=7):
    node.write(f"proc/{pid}/stat", f"{pid} ({name}) {state} 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {pid * 10} 0 0\n")
    node.write(f"proc/{pid}/status", f"Name:\t{name}\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n")


def test_a_process_that_hangs_in_the_kernel_is_told_and_ends_when_it_runs(fast, server):
    process(fast, 4711, "nvidia-smi", "D")
    fast.start()
    event = wait_told(server, "process_blocked")
    assert (event["device"], event["severity"]) == ("nvidia-smi", "warning") and "4711" in event["summary"]
    process(fast, 4711, "nvidia-smi", "R")
    wait_clear(server, "process_blocked")


def test_files_and_process_numbers_that_run_out_are_told(fast, server):
    fast.write("proc/sys/fs/file-nr", "85000\t0\t100000\n")
    fast.write("proc/sys/kernel/pid_max", "32768\n")
    fast.write("proc/loadavg", "9.00 9.00 9.00 3/32000 4711\n")
    fast.start()
    assert wait_told(server, "fd_exhaustion")["severity"] == "warning"
    event = wait_told(server, "pid_exhaustion")
    assert (event["severity"], event["action"]) == ("critical", "reboot")
    fast.write("proc/sys/fs/file-nr", "97000\t0\t100000\n")
    wait_told(server, "fd_exhaustion", severity="critical")
    fast.write("proc/sys/fs/file-nr", "9000\t0\t100000\n")
    wait_clear(server, "fd_exhaustion")


def test_many_zombies_are_told(fast, server):
    for pid in range(2000, 3001):
        fast.write(f"proc/{pid}/stat", f"{pid} (sh) Z 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0\n")
    fast.start()
    assert wait_told(server, "process_zombies")["severity"] == "warning"


def test_a_mount_that_becomes_read_only_is_a_fault(fast, server):
    rest = "proc /proc proc rw 0 0\n/dev/sr0 /media iso9660 ro 0 0\n/dev/vdb /boot ext4 ro 0 0\n"
    fast.write("proc/mounts", "/dev/nvme0n1p1 / ext4 rw,errors=remount-ro 0 0\n" + rest)
    fast.program("scontrol", "scontrol.idle.json")
    fast.start()
    wait_state(server, "mounts", "ok")
    looks(fast, "scontrol", 3)
    assert server.events == []
    fast.write("proc/mounts", "/dev/nvme0n1p1 / ext4 ro,errors=remount-ro 0 0\n" + rest)
    event = wait_told(server, "fs_readonly")
    assert (event["device"], event["severity"], event["action"]) == ("/", "critical", "reboot")


# ---------------------------------------------------------------- logs and metrics

def fm_line(text, ago=0):
    return time.strftime("[%b %d %Y %H:%M:%S] ", time.localtime(time.time() - ago)) + text + "\n"


FATAL = "[ERROR] [tid 841] detected NVSwitch fatal error {} on fid 0 on NVSwitch pci bus id 00000000:dc:00.0 physical id 3 port 33"


def test_each_line_of_the_fabric_managers_log_is_told_once_and_only_of_this_boot(fast, server):
    fast.write("proc/uptime", "3600.00 1.00\n")
    fast.write("var/log/fabricmanager.log", fm_line(FATAL.format(20009), ago=7200) + fm_line(FATAL.format(20034), ago=60))
    fast.start()
    event = wait_told(server, "nvswitch_sxid", code="20034")
    assert (event["device"], event["severity"]) == ("0000:dc:00", "critical")
    fast.stop()
    with open(fast.root / "var/log/fabricmanager.log", "a", encoding="utf-8") as log:
        log.write(fm_line(FATAL.format(22013)))
    fast.start()
    wait_told(server, "nvswitch_sxid", code="22013")
    assert len(told(server, "nvswitch_sxid", code="20034")) == 1
    assert not told(server, "nvswitch_sxid", code="20009")


class Exporter:
    """dcgm-exporter: answers with a text, or keeps silent."""

    def __init__(self, text):
        outer = self
        self.text, self.silent, self.asked = text, False, 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.asked += 1
                if outer.silent:
                    time.sleep(3)
                    return
                body = outer.text.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        threading.Thread(target=self.httpd.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.httpd.server_address[1]}/metrics"


@pytest.fixture
def exporter():
    running = Exporter((PROGRAMS / "samples" / "dcgm.metrics.txt").read_text())
    yield running
    running.httpd.shutdown()
    running.httpd.server_close()


def test_dcgm_speaks_where_nvml_and_the_kernels_log_cannot(fast, server, exporter):
    fast.config.update(dcgm_url=exporter.url, nvml_library="/nonexistent/libnvidia-ml.so.1")
    fast.kmsg.unlink()
    fast.start()
    wait_state(server, "dcgm", "ok")
    server.wait(lambda: exporter.asked >= 3, LONG)
    assert server.events == [], "a gauge that keeps its last code is no event"
    exporter.text = exporter.text.replace('XID_ERRORS{gpu="1"', 'XID_ERROR{gpu="1"').replace("} 0\n", "} 79\n", 1)
    event = wait_told(server, "gpu_lost")
    assert (event["code"], event["device"], event["severity"]) == ("79", "0000:2b:00", "critical")
    exporter.text += exporter.text.splitlines()[-1].replace("ROW_REMAP_FAILURE", "ROW_REMAP_FAILURE")[:-1] + "1\n"
    assert wait_told(server, "gpu_row_remap")["action"] == "remove"
    asked = exporter.asked
    server.wait(lambda: exporter.asked >= asked + 3, LONG)
    assert len(told(server, "gpu_lost")) == 1


def test_dcgm_is_no_second_voice_for_what_the_kernel_and_nvml_tell(fast, server, exporter):
    fast.config["dcgm_url"] = exporter.url
    fast.start()
    wait_state(server, "gpu", "ok")
    wait_state(server, "kmsg", "ok")
    wait_state(server, "dcgm", "ok")
    asked = exporter.asked
    server.wait(lambda: exporter.asked >= asked + 2, LONG)
    exporter.text = exporter.text.replace("} 0\n", "} 79\n")
    asked = exporter.asked
    server.wait(lambda: exporter.asked >= asked + 4, LONG)
    assert server.events == []


# ---------------------------------------------------------------- the whole

def test_a_fault_told_before_a_kill_is_ended_after_it(fast, server):
    fast.program("scontrol", "scontrol.not_responding.json")
    fast.start()
    wait_told(server, "slurm_node_state")
    server.wait(lambda: (fast.state / "open").exists() and "slurm_node_state" in (fast.state / "open").read_text(), LONG)
    fast.stop(signal.SIGKILL)
    fast.program("scontrol", "scontrol.idle.json")
    fast.start()
    wait_clear(server, "slurm_node_state")
    assert len(told(server, "slurm_node_state")) == 1


def test_everything_hanging_at_once_is_told_and_leaves_reports_and_kernel_lines_alone(fast, server, exporter):
    exporter.silent = True
    fast.config.update(dcgm_url=exporter.url, probe_timeout_seconds="1")
    fast.write("run/systemd/system/x", "")
    fast.write("sys/class/nvme/nvme0/serial", "S1\n")
    fast.fake_nvml("hang all\n")
    for name in (*ASKED, "smartctl"):
        fast.program(name, mode="hang")
    fast.start()
    assert "timed out" in wait_state(server, "dcgm", "unknown").lower()
    for source in ASKED.values():
        assert "did not answer" in wait_state(server, source, "unknown")
    fast.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost", LONG)
    for source in ASKED.values():
        event = wait_told(server, "telemetry", device=source)
        assert (event["code"], event["severity"]) == ("no_answer", "info")
        assert fast.children().count("muster-" + source[:8]) <= 1
    event = wait_told(server, "disk_nvme")
    assert (event["code"], event["severity"], event["device"]) == ("no_answer", "warning", "nvme0")
    assert server.collector("processes")["state"] == "ok"
    server.wait_reports(3, LONG)
    assert fast.alive()


def test_every_check_can_be_injected_and_ended(node, server):
    checks = subprocess.run([AGENT, "inject", "--list"], capture_output=True, text=True, check=True).stdout.split()
    assert len(checks) > 50
    node.config["accept_user_kmsg"] = "true"
    node.start()
    server.wait_reports(1)
    # the line that `inject` writes, with the number and facility the kernel gives it
    node.kernel(*[f"muster-inject: check={check} code=drill" for check in checks[:60]], priority=12)
    server.wait(lambda: all(told(server, check, code="drill") for check in checks[:60]), LONG)
    assert all("injected" in e["summary"] for e in told(server, checks[0]))
    node.kernel(f"muster-inject: check={checks[0]} clear=yes", priority=12)
    wait_clear(server, checks[0])


def test_inject_names_what_it_does_not_know(node):
    def inject(*words):
        return subprocess.run([AGENT, "inject", "--config", "/dev/null", *node.options(), "--accept_user_kmsg=true", *words],
                              capture_output=True, text=True, check=False)

    assert inject("--check", "clock", "--code", "offset", "--severity", "warning").returncode == 0
    assert node.kmsg.read_text() == "<12>muster-inject: check=clock code=offset severity=warning\n"
    assert "no such check" in inject("--check", "weather").stderr
    assert "no such check" in inject("--check", "clock", "--severity", "loud").stderr
