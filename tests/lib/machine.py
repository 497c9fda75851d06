"""The real muster-agent on a fake machine, for tests against the real server; the machine is that of tests/agent."""
import importlib.util
from pathlib import Path
from types import SimpleNamespace

CONFTEST = Path(__file__).resolve().parent.parent / "agent" / "conftest.py"


def load():
    spec = importlib.util.spec_from_file_location("agent_conftest", CONFTEST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Node = load().Node


def machine(folder, server, token, name, **config):
    """A machine whose agent joins this server; node.start() and node.stop() are the caller's."""
    node = Node(folder, SimpleNamespace(join_token=token, url=server.url()))
    node.config.update(node_name=name, interval_seconds=1, destructive_per_hour=100, **config)
    return node
