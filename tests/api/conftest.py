"""One musterd for the whole run: tests make their own clusters, nodes and tokens in it."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from server import Musterd  # noqa: E402


@pytest.fixture(scope="session")
def server():
    with Musterd(header_timeout_seconds=2, body_timeout_seconds=2, idle_timeout_seconds=4, trusted_proxies="127.0.0.9") as running:
        yield running
