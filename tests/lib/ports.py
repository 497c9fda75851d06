"""TCP ports on 127.0.0.1 that are this process's until it ends, also while nobody listens on them.

A port that the kernel chose and that was closed again is anybody's: another suite's, or an outgoing connection's. These lie
below the kernel's range for those, and a lock on a file says whose each is.
"""
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

FIRST = 10_000
KERNELS_FIRST = Path("/proc/sys/net/ipv4/ip_local_port_range")
_held = []  # open files: the locks last as long as this process


def _range():
    try:
        first = int(KERNELS_FIRST.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32768
    return range(FIRST, first) if first >= FIRST + 1000 else range(FIRST, 65536)


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    folder = Path(tempfile.gettempdir()) / f"muster-ports-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    ports = _range()
    for port in random.sample(ports, len(ports)):
        lock = open(folder / str(port), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        if _is_free(port):
            _held.append(lock)
            return port
        lock.close()
    raise RuntimeError("no free port")
