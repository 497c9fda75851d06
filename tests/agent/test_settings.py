"""Settings that the server sends, and checks of an organization's own: the real agent."""

import os
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LONG = 120
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a command check runs as another user")


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


def metric(name, metric, comparison, threshold, **fields):
    return {"name": name, "version": 1, "kind": "metric", "severity": "warning", "action": "none", "metric": metric, "comparison": comparison,
            "threshold": threshold, "clear_threshold": threshold, "for_seconds": 0, **fields}


def command(name, script=None, **fields):
    what = {"script": script} if script else {}
    return {"name": name, "version": 1, "kind": "command", "severity": "critical", "action": "reboot", "user": "nobody", "interval_seconds": 60,
            # A program of the lowest priority takes its time on a busy machine.
            "timeout_seconds": 60, "output_bytes": 512, "raise_after": 2, "clear_after": 2, **what, **fields}


# ---------------------------------------------------------------- the document

def test_settings_are_taken_told_and_kept_through_a_restart(fast, server):
    version = server.set_settings(expected={"gpus": 9})
    fast.start()
    server.wait_settings()
    event = wait_told(server, "gpu_count")
    assert event["code"] == "missing"
    assert server.settings_offers >= 1
    fast.stop()
    offers = server.settings_offers
    fast.start()
    server.wait_reports(3)
    assert server.reports[-1]["settings"] == version and server.settings_offers == offers, "it had them on disk"
    server.set_settings(expected={"gpus": 0})
    server.wait_settings()
    assert wait_clear(server, "gpu_count")["code"] == "missing"


def test_what_is_not_expected_any_more_ends(fast, server):
    server.set_settings(expected={"gpus": 9, "ports": "mlx5_3"})
    fast.start()
    wait_told(server, "gpu_count")
    wait_told(server, "nic_count", device="mlx5_3")
    server.set_settings(expected={"gpus": 9})
    wait_clear(server, "nic_count", device="mlx5_3")
    assert not [e for e in server.found("gpu_count") if e.get("clear")], "nine GPUs are still expected"
    server.set_settings()
    assert wait_clear(server, "gpu_count")["code"] == "missing"
    assert server.wait_collector("expected", state="absent")


def test_what_agent_conf_says_of_this_node_stays(fast, server):
    fast.config["expected_gpus"] = "0"
    server.set_settings(expected={"gpus": 9})
    fast.start()
    server.wait_settings()
    server.wait_collector("expected", state="ok")
    server.wait_reports(20)
    assert told(server, "gpu_count") == []


def test_settings_of_a_wrong_key_are_not_taken(fast, server):
    server.settings_key = Ed25519PrivateKey.generate()
    server.set_settings(off=["oom"])
    fast.start()
    server.wait(lambda: server.settings_offers >= 3)
    assert server.reports[-1]["settings"] == ""


def test_a_broken_document_is_refused_and_the_former_stays(fast, server):
    version = server.set_settings(off=["oom"])
    fast.start()
    server.wait_settings()
    with server.lock:
        server.settings = '{"off": ['
    server.wait(lambda: server.reports[-1].get("settings_refused") == server.version())
    assert server.reports[-1]["settings"] == version
    assert "cannot be read" in wait_told(server, "agent.settings")["summary"]
    offers = server.settings_offers
    server.wait_reports(5)
    assert server.settings_offers == offers


def test_a_part_that_cannot_be_used_stays_as_it_was(fast, server):
    server.set_settings(expected={"gpus": 9}, checks=[])
    fast.start()
    server.wait_settings()
    wait_told(server, "gpu_count")
    server.set_settings(expected={"gpus": "many"}, checks=[metric("ok", "cpu_ratio", "above", 0.99), metric("odd", "gpu_fear", "above", 1)])
    server.wait_settings()
    summary = wait_told(server, "agent.settings")["summary"]
    assert "expected" in summary and "custom:odd" in summary and "custom:ok" not in summary
    server.wait_reports(20)
    assert not [e for e in server.found("gpu_count") if e.get("clear")], "nine GPUs are still expected"


def test_a_check_that_is_off_is_not_told(fast, server):
    server.set_settings(off=["gpu_lost"])
    fast.start()
    server.wait_settings()
    fast.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    fast.kernel("NVRM: Xid (PCI:0000:3b:00): 48, DBE")
    server.wait_event("gpu_ecc")
    assert told(server, "gpu_lost") == []


def test_looks_in_a_row_are_the_servers_up_to_a_bound(fast, server):
    server.set_settings(looks=[{"check_id": "gpu_count", "raise": 60}], expected={"gpus": 9})
    fast.start()
    server.wait_settings()
    begun = time.monotonic()
    wait_told(server, "gpu_count")
    assert time.monotonic() - begun > 5, "60 looks of 100 ms, not 3"


# ---------------------------------------------------------------- metrics

def test_a_metric_check_is_told_for_each_gpu_and_ends_at_its_own_threshold(fast, server):
    fast.start()
    reading = server.wait_readings()
    hottest = max(reading["gpus"]["temp_c"])
    server.set_settings(checks=[metric("hot", "gpu_temp_c", "above", hottest - 1, clear_threshold=hottest - 1, title="Hot GPU"),
                                metric("idle", "mem_ratio", "above", 0.9)])
    server.wait_settings()
    event = wait_told(server, "custom:hot")
    assert (event["code"], event["severity"], event["action"], event["node_fault"], event["clears"]) == ("gpu_temp_c", "warning", "none", False, "event")
    assert event["device"] and event["summary"].startswith("Hot GPU of ")
    assert told(server, "custom:idle") == []
    server.set_settings(checks=[metric("hot", "gpu_temp_c", "above", hottest + 50, clear_threshold=hottest + 40)])
    server.wait_settings()
    assert wait_clear(server, "custom:hot")["device"] == event["device"]


def test_a_fault_of_a_check_that_is_gone_ends(fast, server):
    server.set_settings(checks=[metric("mem", "mem_ratio", "above", 0.0001)])
    fast.start()
    wait_told(server, "custom:mem")
    fast.stop()
    server.set_settings(checks=[])
    fast.start()
    server.wait_settings()
    assert wait_clear(server, "custom:mem")["summary"] == "the check is not there any more"


def test_a_metric_must_hold_for_so_long(fast, server):
    server.set_settings(checks=[metric("slow", "mem_ratio", "above", 0.0001, for_seconds=86400), metric("now", "mem_ratio", "above", 0.0001)])
    fast.start()
    wait_told(server, "custom:now")
    server.wait_reports(10)
    assert told(server, "custom:slow") == []


# ---------------------------------------------------------------- commands

def test_no_command_runs_unless_this_node_allows_it(fast, server, tmp_path):
    server.set_settings(checks=[command("touch", f"touch {tmp_path}/ran; exit 2")])
    fast.start()
    server.wait_settings()
    assert "command_checks" in server.wait_collector("custom", state="unknown")["reason"]
    server.wait_reports(20)
    assert told(server, "custom:touch") == [] and not (tmp_path / "ran").exists()


@ROOT_ONLY
def test_a_command_is_judged_by_its_status_and_ends_with_it(fast, server):
    fast.config["command_checks"] = "true"
    switch = fast.folder / "switch"
    fast.folder.chmod(0o755)
    for parent in list(fast.folder.parents)[:4]:
        parent.chmod(parent.stat().st_mode | 0o055) if parent.owner() == "root" and str(parent).startswith("/tmp/") else None
    switch.write_text("echo the fan stands still; exit 2")
    switch.chmod(0o644)
    server.set_settings(checks=[command("fan", argv=["/bin/sh", str(switch)])])
    fast.start()
    event = wait_told(server, "custom:fan", code="failed")
    assert (event["severity"], event["action"], event["node_fault"]) == ("critical", "reboot", True)
    assert "the fan stands still" in event["summary"] and event["lines"][0]["text"] == "the fan stands still"
    switch.write_text("exit 0")
    wait_clear(server, "custom:fan", code="failed")
    switch.write_text("echo slow; exit 1")
    warned = server.wait(lambda: told(server, "custom:fan", code="failed", severity="warning"), LONG)[0]
    assert (warned["action"], warned["node_fault"]) == ("none", False)
    switch.write_text("exit 3")
    odd = wait_told(server, "custom:fan", code="unknown")
    assert (odd["severity"], odd["action"], odd["node_fault"]) == ("warning", "none", False), "about the check, not the node"


@ROOT_ONLY
def test_a_command_runs_as_another_user_without_descriptors_and_with_limits(fast, server):
    fast.config["command_checks"] = "true"
    script = 'id -un; ls /proc/self/fd | wc -l; ulimit -c; ulimit -n; nice; grep NoNewPrivs /proc/self/status | tr "\\t" " "; exit 2'
    server.set_settings(checks=[command("who", script)])
    fast.start()
    lines = [line["text"] for line in wait_told(server, "custom:who", code="failed")["lines"]]
    # ls has the folder open besides the three.
    assert lines == ["nobody", "4", "0", "256", "19", "NoNewPrivs: 1"]


@ROOT_ONLY
def test_a_command_that_hangs_is_killed_with_its_children_and_says_nothing_of_the_node(fast, server):
    fast.config["command_checks"] = "true"
    server.set_settings(checks=[command("hang", "sleep 1000 & echo $$; wait", timeout_seconds=1), command("fine", "exit 2")])
    fast.start()
    event = wait_told(server, "custom:hang", code="unknown")
    assert "did not end in time" in event["summary"] and not event["node_fault"]
    wait_told(server, "custom:fine", code="failed")


@ROOT_ONLY
def test_too_much_output_is_cut_and_the_program_goes_on(fast, server):
    fast.config["command_checks"] = "true"
    server.set_settings(checks=[command("loud", "yes | head -c 300000; exit 2")])
    fast.start()
    assert wait_told(server, "custom:loud", code="failed")["lines"]


@ROOT_ONLY
def test_an_unknown_user_is_a_finding_about_the_check(fast, server):
    fast.config["command_checks"] = "true"
    server.set_settings(checks=[command("who", "exit 0", user="no-such-user")])
    fast.start()
    assert wait_told(server, "custom:who", code="unknown")["severity"] == "warning"
