"""The real kernel log of this machine, the commands of the program, and what the agent costs."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import AGENT


def kernel_log_place():
    """Sequence number of the newest kernel line of this machine."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    last = -1
    try:
        while True:
            try:
                last = int(os.read(log, 16384).split(b",", 2)[1])
            except BrokenPipeError:
                continue
            except BlockingIOError:
                return last
    finally:
        os.close(log)


def kernel_log_since(place):
    """The lines behind it."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    try:
        while True:
            try:
                lines.append(os.read(log, 16384).decode(errors="replace"))
            except BrokenPipeError:
                continue
            except BlockingIOError:
                return [line for line in lines if int(line.split(",", 2)[1]) > place]
    finally:
        os.close(log)


@pytest.fixture
def real_log(node):
    """The node of the test reads this machine's own kernel log, from here on."""
    try:  # not os.access: root may be told yes, and refused by the container
        os.close(os.open("/dev/kmsg", os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        pytest.skip(f"/dev/kmsg cannot be written, that needs root on a machine that allows it: {error}")
    node.kmsg.unlink()
    node.kmsg.symlink_to("/dev/kmsg")
    try:
        place = kernel_log_place()
    except OSError as error:
        pytest.skip(f"/dev/kmsg cannot be read: {error}")
    node.boot.write_text(f"{node.boot_id}\nkmsg_seq {place}\n")
    return node


def test_a_line_in_the_real_kernel_log_is_told_within_a_second(real_log, server):
    server.interval = 3600
    real_log.config["accept_user_kmsg"] = "true"
    real_log.start()
    server.wait_reports(1)
    begun = time.monotonic()
    with open("/dev/kmsg", "w", encoding="ascii") as log:
        log.write("<12>NVRM: Xid (PCI:0000:2b:00): 79, pid=0, GPU has fallen off the bus. (written by a test)\n")
    event = server.wait_event("gpu_lost")
    print(f"kernel line to server: {(time.monotonic() - begun) * 1000:.0f} ms")
    assert event["device"] == "0000:2b:00"


def test_a_process_is_not_believed_in_the_real_kernel_log(real_log, server):
    real_log.start()
    server.wait_reports(1)
    with open("/dev/kmsg", "w", encoding="ascii") as log:
        log.write("<12>NVRM: Xid (PCI:0000:2b:00): 79, pid=0, GPU has fallen off the bus. (written by a test)\n")
    server.wait_reports(4)
    assert not server.found("gpu_lost")


def test_the_agent_writes_nothing_to_the_kernels_log(real_log, server):
    place = kernel_log_place()
    real_log.start()
    server.wait_reports(1)
    opened = [descriptor for descriptor in Path(f"/proc/{real_log.process.pid}/fd").iterdir() if os.path.realpath(descriptor) == "/dev/kmsg"]
    assert opened, "it reads the real log"
    for descriptor in opened:
        flags = re.search(r"^flags:\s+(\d+)", Path(str(descriptor).replace("/fd/", "/fdinfo/")).read_text(), re.M)[1]
        assert int(flags, 8) & os.O_ACCMODE == os.O_RDONLY
    server.wait_reports(10)
    real_log.stop()
    # The kernel itself and others write at any moment.
    assert not [line for line in kernel_log_since(place) if "muster" in line.split(";", 1)[-1].lower()]


def test_inject_is_refused_unless_it_is_enabled(node):
    done = subprocess.run([AGENT, "inject", "--config", "/dev/null", *node.options(), "--line", "NVRM: Xid (PCI:0000:2b:00): 79, x"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "accept_user_kmsg" in done.stderr
    assert node.kmsg.read_text() == ""


def test_an_injected_line_is_told_and_carries_its_mark(real_log, server):
    server.interval = 3600
    real_log.config["accept_user_kmsg"] = "true"
    real_log.start()
    server.wait_reports(1)
    subprocess.run([AGENT, "inject", "--config", "/dev/null", *real_log.options(), "--line", "NVRM: Xid (PCI:0000:2b:00): 48, DBE"],
                   check=True)
    assert server.wait_event("gpu_ecc")["code"] == "48"
    assert "injected" in real_log.log.read_text()


@pytest.mark.parametrize("option, word", [
    ("--no_such_key=1", "no_such_key"), ("--spool_mib=0", "spool_mib"), ("--server_url=ftp://x", "server_url"),
    ("--node_name=a b", "node_name"), ("--log_level=loud", "log_level"), ("--interval_seconds=x", "interval_seconds"),
])
def test_a_bad_setting_refuses_the_start_and_names_the_key(node, option, word):
    done = subprocess.run([AGENT, "run", "--config", "/dev/null", *node.options(), option], capture_output=True, text=True,
                          check=False, timeout=90)
    assert done.returncode == 2 and word in done.stderr


def test_enrolling_with_a_bad_token_says_why(node, server):
    node.token.write_text("mjt_wrong\n")
    done = subprocess.run([AGENT, "enroll", "--config", "/dev/null", *node.options()], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "join token is not valid" in done.stderr
    assert not (node.state / "agent.key").exists()
    node.token.write_text(server.join_token)
    done = subprocess.run([AGENT, "enroll", "--config", "/dev/null", *node.options()], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and server.node_id in done.stdout
    assert oct((node.state / "agent.key").stat().st_mode & 0o777) == "0o600"


def test_a_lost_answer_to_the_enrolment_costs_nothing(node, server):
    node.server.port = server.port
    subprocess.run([AGENT, "enroll", "--config", "/dev/null", *node.options(), "--server_url=http://127.0.0.1:9"], check=False,
                   capture_output=True)
    first = (node.state / "agent.key.new").read_text()
    subprocess.run([AGENT, "enroll", "--config", "/dev/null", *node.options()], check=True, capture_output=True)
    assert (node.state / "agent.key").read_text() == first


def test_two_agents_never_share_a_state_folder(node, server):
    node.start()
    server.wait_reports(1)
    done = subprocess.run([AGENT, "run", "--config", "/dev/null", *node.options()], capture_output=True, text=True, check=False,
                          timeout=90)
    assert done.returncode == 2 and "another agent" in done.stderr


def test_plain_http_is_for_loopback_only(node):
    node.config["server_url"] = "http://192.0.2.1:8080"
    done = subprocess.run([AGENT, "enroll", "--config", "/dev/null", *node.options()], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "https" in done.stderr


def cost_of(pid):
    """(name, KiB, seconds of CPU) of a process, or None when it has ended: the agent's short-lived children come and go."""
    try:
        stat = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
        name = open(f"/proc/{pid}/comm", encoding="ascii").read().strip()
        rss = [line for line in open(f"/proc/{pid}/status", encoding="ascii") if line.startswith("VmRSS")]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (name, int(rss[0].split()[1]), (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")) if rss else None


def test_what_the_agent_costs_is_printed(node, server):
    """Figures are asserted by nobody here: the budget is 1 % of a core and 20 MiB at 10 s with 8 GPUs."""
    node.start()
    server.wait_reports(20)
    pid = node.process.pid
    pids = [pid, *open(f"/proc/{pid}/task/{pid}/children", encoding="ascii").read().split()]
    costs = [cost for cost in map(cost_of, pids) if cost]
    for name, kib, seconds in costs:
        print(f"{name}: {kib} KiB, {seconds:.2f} s of CPU for {len(server.reports)} reports")
    print(f"together {sum(kib for _, kib, _ in costs) / 1024:.1f} MiB")
    assert costs and costs[0][1] > 0
