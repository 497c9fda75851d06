"""One musterd for the whole run: tests make their own clusters, nodes and tokens in it.

Every answer that a test sees is held against api/openapi.yaml, and at the end every operation must have succeeded once.
"""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from contract import Contract  # noqa: E402
from samples import HOOK_SECRET  # noqa: E402
from fake_idp import IdpHost  # noqa: E402
from server import Musterd  # noqa: E402
from world import World  # noqa: E402

LAST = "test_every_operation_was_exercised"
CONTRACT = Contract()
Musterd.response_hooks.append(CONTRACT.on_response)


def pytest_collection_modifyitems(items):
    """The closing test runs last, when all others have spoken."""
    items.sort(key=lambda item: item.name == LAST)


@pytest.fixture(scope="session")
def contract():
    return CONTRACT


@pytest.fixture(scope="session")
def idp_host():
    """Where identity providers of tests live: idp_host.idp() makes one."""
    host = IdpHost()
    yield host
    host.stop()


@pytest.fixture(scope="session")
def server(idp_host, tmp_path_factory):
    """Orders of the cluster `hooked` go to an automation that nobody runs."""
    folder = tmp_path_factory.mktemp("executors")
    (folder / "secret").write_text(HOOK_SECRET)
    (folder / "executors.json").write_text(json.dumps({"webhooks": [{"org": "main", "cluster": "hooked", "actions": ["reboot"], "url": "https://hook.invalid/",
                                                                     "secret_file": str(folder / "secret")}]}))
    with Musterd(trusted_proxies="127.0.0.9", outbound_allow=idp_host.allow, executors_file=str(folder / "executors.json")) as running:
        running.idp_host = idp_host
        yield running


@pytest.fixture(scope="session")
def world(server):
    """Makes things in org `main`."""
    return World(server)
