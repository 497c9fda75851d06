"""Orders: the five rules one by one, at most once, results that are repeated until answered."""

import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def reboots(node):
    path = node.folder / "reboots"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.fixture
def running(node, server):
    node.start()
    server.wait_reports(2)
    return node


def refused(server, command_id):
    return server.wait_result(command_id, "refused")["detail"]


def test_R1_a_reboot_is_accepted_done_once_and_told(running, server):
    before = running.boot_id
    command = server.order("reboot")
    server.wait_result(command, "accepted")
    server.wait_result(command, "done")
    assert reboots(running) == 1
    assert server.reports[-1]["boot_id"] != before
    assert server.results(command).count("done") == 1
    log = (running.state / "commands.log").read_text()
    assert f"begun {command} 1 1 reboot {before}" in log and f"ended {command} done" in log


def test_after_the_stand_ins_reboot_old_lines_are_not_raised_again(running, server):
    running.kernel("NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus.")
    server.wait_event("gpu_lost")
    server.wait_result(server.order("reboot"), "done")
    running.kernel("NVRM: Xid (PCI:0000:3b:00): 48, DBE")
    server.wait_event("gpu_ecc")
    assert len(server.found("gpu_lost")) == 1
    boots = {boot for boot, *_ in server.events}
    assert len(boots) == 2 and server.holes == []


def test_I4_a_wrong_signature_is_refused(running, server):
    assert "signature" in refused(server, server.order(key=Ed25519PrivateKey.generate()))
    assert reboots(running) == 0


@pytest.mark.parametrize("field", ["org_id", "cluster_id", "node_id"])
def test_I4_an_order_for_somebody_else_is_refused(running, server, field):
    other = "01890000-0000-7000-8000-000000000001"
    assert "another node" in refused(server, server.order(**{field: other}))
    assert reboots(running) == 0


def test_I4_an_old_nonce_is_refused(running, server):
    assert "last report" in refused(server, server.order(nonce=server.reports[0]["nonce"]))
    assert reboots(running) == 0


def test_I4_a_lower_epoch_is_refused(running, server):
    running.config["destructive_per_hour"] = 10
    running.stop()
    running.start()
    server.wait_reports(2)
    first = server.order("reboot", epoch=[2, 5])
    server.wait_result(first, "done")
    assert "older" in refused(server, server.order("reboot", epoch=[2, 5]))
    assert "older" in refused(server, server.order("reboot", epoch=[1, 99]))
    assert reboots(running) == 1


def test_I4_another_boot_is_refused(running, server):
    assert "another boot" in refused(server, server.order(boot_id="01890000-0000-7000-8000-000000000001"))
    assert reboots(running) == 0


def test_an_action_that_is_not_allowed_is_refused(running, server):
    assert "allowed_actions" in refused(server, server.order("reprovision"))


def test_the_deny_file_refuses_everything(running, server):
    running.deny.write_text("")
    assert "deny_file" in refused(server, server.order("reboot"))
    assert reboots(running) == 0


def test_only_so_many_acts_an_hour(running, server):
    server.wait_result(server.order("reboot"), "done")
    assert "destructive_per_hour" in refused(server, server.order("reboot"))
    assert reboots(running) == 1


def test_R1_the_same_order_again_is_answered_and_not_repeated(running, server):
    command = server.order("reboot")
    server.wait_result(command, "done")
    count = len(server.results(command))
    server.order("reboot", command_id=command)
    server.wait(lambda: len(server.results(command)) > count)
    assert server.results(command)[-1] == "done"
    assert reboots(running) == 1


def test_an_order_that_is_handed_out_again_and_again_is_answered_at_the_usual_pace(node, server):
    (node.folder / "reboot-mode").write_text("late")
    server.interval = 1.0
    node.start()
    server.wait_reports(2)
    command = server.order("reboot")
    server.wait_result(command, "accepted")
    server.always_order = command
    have = len(server.reports)
    begun = server.reports[-1]["received"]
    server.wait(lambda: server.reports[-1]["received"] >= begun + 4)
    # One a second, and one for each word about the order.
    assert len(server.reports) - have <= server.reports[-1]["received"] - begun + 3
    assert reboots(node) == 1


def test_a_program_that_fails_is_told(running, server):
    (running.folder / "reboot-mode").write_text("fail")
    assert "status 3" in server.wait_result(server.order("reboot"), "failed")["detail"]
    assert running.alive() and reboots(running) == 1


def test_a_reboot_that_does_not_come_is_told(node, server):
    node.config["reboot_deadline_seconds"] = 5
    (node.folder / "reboot-mode").write_text("late")
    node.start()
    server.wait_reports(2)
    command = server.order("reboot")
    assert "in time" in server.wait_result(command, "failed")["detail"]
    assert reboots(node) == 1


def test_R1_a_killed_agent_does_not_act_twice(running, server):
    (running.folder / "reboot-mode").write_text("late")
    command = server.order("reboot")
    server.wait_result(command, "accepted")
    server.wait(lambda: reboots(running) == 1)
    running.stop(9)
    running.start()
    server.wait_reports(2)
    assert server.results(command)[-1] == "accepted"
    assert reboots(running) == 1
    running.stop()
    running.new_boot()
    running.start()
    server.wait_result(command, "done")
    assert reboots(running) == 1


def test_results_are_repeated_until_a_report_with_them_was_answered(running, server):
    server.lose_after_order = 2
    server.order(key=Ed25519PrivateKey.generate(), command_id="01890000-0000-7000-8000-00000000000a")
    server.wait_result("01890000-0000-7000-8000-00000000000a", "refused")
    server.wait(lambda: server.lose_answers == 0)
    server.wait_reports(3)
    assert server.results("01890000-0000-7000-8000-00000000000a").count("refused") >= 2
    assert "results" not in server.reports[-1]


def test_a_gpu_reset_ends_what_a_reset_ends(running, server):
    (running.folder / "reset").write_text(f'echo "$1" >>{running.folder}/resets\n')
    running.kernel("NVRM: Xid (PCI:0000:2b:00): 119, pid=1, name=x, Timeout waiting for RPC from GSP!",
                   "NVRM: Xid (PCI:0000:3b:00): 119, pid=1, name=x, Timeout waiting for RPC from GSP!")
    server.wait(lambda: len(server.found("gpu_gsp")) == 2)
    server.wait_result(server.order("reset_gpu", args={"gpus": ["0000:2b:00"]}), "done")
    event = server.wait_event("gpu_gsp", clear=True)
    assert (event["device"], event["code"]) == ("0000:2b:00", "119")
    assert (running.folder / "resets").read_text() == "0000:2b:00\n"
    time.sleep(0)
    assert len(server.found("gpu_gsp", clear=True)) == 1


@pytest.mark.parametrize("payload", ["", "[]", "{", '{"command_id": 1}', "x" * 40000])
def test_a_broken_order_is_ignored(running, server, payload):
    with server.lock:
        server.commands.append((lambda _: payload, server.command_key))
    server.wait_reports(3)
    assert running.alive()
    assert not [r for report in server.reports for r in report.get("results", [])]
