"""A real Slurm of Debian's packages in a folder of its own: munged, slurmctld and one slurmd a node, all on loopback."""
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "scontrol", "sinfo", "squeue", "sbatch")
READY_SECONDS = 60


def missing():
    """Why it cannot run here; None when it can."""
    absent = [program for program in PROGRAMS if not shutil.which(program, path=PATH)]
    if absent:
        return f"{absent[0]} is not installed (script/setup --test)"
    return None if os.geteuid() == 0 else "Slurm's daemons need root"


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ReturnToService=1
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0
KillWait=2
SlurmdTimeout=60
MailProg=/bin/true
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    """Ports that were free a moment ago, below the range that outgoing connections take theirs from."""
    found, held = [], []
    try:
        while len(found) < count:
            port = secrets.randbelow(10000) + 20000
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                sock.close()
                continue
            held.append(sock)
            found.append(port)
    finally:
        for sock in held:
            sock.close()
    return found


class Slurm:
    """Nodes n1, n2, ... of four CPUs each."""

    def __init__(self, nodes=2):
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.folder = Path(tempfile.mkdtemp(prefix="muster-slurm-"))
        self.config = self.folder / "slurm.conf"
        self.processes = {}

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def start(self):
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self.spawn("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock",
                   f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/seed")
        self.until(lambda: self.call("munge", "-S", f"{self.folder}/munge.sock", "-n").returncode == 0)
        for _ in range(3):  # another process may take a port between its choice and the start
            self.write_config()
            self.spawn("slurmctld", "-D")
            for name in self.names:
                self.spawn("slurmd", "-D", "-N", name, key=name)
            if self.is_up():
                return self
            for name in ("slurmctld", *self.names):
                self.end(name)
        raise RuntimeError("Slurm did not start:\n" + (self.folder / "slurmctld.out").read_text()[-2000:])

    def write_config(self):
        port, *ports = free_ports(1 + len(self.names))
        host = socket.gethostname().split(".")[0]
        nodes = "\n".join(f"NodeName={name} NodeAddr=127.0.0.1 NodeHostname={host} Port={at} CPUs=4 RealMemory=100 State=UNKNOWN"
                          for name, at in zip(self.names, ports))
        self.config.write_text(CONF.format(folder=self.folder, host=host, port=port, nodes=nodes))

    def is_up(self):
        try:
            self.until(lambda: all(self.state(name) == ("idle", set()) for name in self.names))
            return True
        except (AssertionError, ChildProcessError):
            return False

    def until(self, what, seconds=READY_SECONDS):
        deadline = time.monotonic() + seconds
        while not what():
            ended = [key for key, process in self.processes.items() if process.poll() is not None]
            if ended:
                raise ChildProcessError(ended[0])
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def env(self):
        return {"PATH": PATH, "SLURM_CONF": str(self.config), "HOME": "/", "LC_ALL": "C"}

    def spawn(self, *command, key=None):
        key = key or command[0]
        with open(self.folder / f"{key}.out", "ab") as out:
            self.processes[key] = subprocess.Popen(command, env=self.env(), stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=subprocess.STDOUT, start_new_session=True)

    def end(self, key):
        process = self.processes.pop(key, None)
        if process is not None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def stop(self):
        for name in self.names:  # what still runs on a node does not outlive the test
            self.call("scancel", "--nodelist", name)
        for key in (*self.names, "slurmctld", "munged"):
            self.end(key)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ------------------------------------------------------------ use
    def call(self, *command):
        try:
            return subprocess.run(command, env=self.env(), capture_output=True, text=True, check=False, timeout=60,
                                  cwd=self.folder, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "timed out")

    def node(self, name):
        done = self.call("sinfo", "--json")
        return next((n for n in json.loads(done.stdout)["nodes"] if n["name"] == name), {}) if done.returncode == 0 else {}

    def state(self, name):
        node = self.node(name)
        return node.get("state"), set(node.get("state_flags", []))

    def reason(self, name):
        return self.node(name).get("reason")

    def drain(self, name, reason):
        done = self.call("scontrol", "update", f"nodename={name}", "state=drain", f"reason={reason}")
        assert done.returncode == 0, done.stderr

    def submit(self, node, gate):
        """A job on this node that runs until the file `gate` is there; gives its id."""
        done = self.call("sbatch", "--parsable", "-w", node, "-n1", "-o", "/dev/null", "--wrap",
                         f"while [ ! -e {gate} ]; do sleep 0.05; done")
        assert done.returncode == 0, done.stderr
        job = done.stdout.strip()
        self.until(lambda: self.job(job) == "RUNNING")
        return job

    def job(self, job):
        found = [line.split("=", 1)[1] for line in self.call("scontrol", "show", "job", job).stdout.split() if line.startswith("JobState=")]
        return found[0] if found else None
