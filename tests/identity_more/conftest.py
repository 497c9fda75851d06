"""One musterd over TLS and glewlwyd for the whole run."""
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "tests" / "identity"), str(ROOT / "tests" / "identity_more")]
from certs import Authority  # noqa: E402
from glewlwyd import Glewlwyd, missing  # noqa: E402
from server import Musterd  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture(scope="session")
def folder():
    path = Path(tempfile.mkdtemp(prefix="muster-identity-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def authority():
    return Authority()


@pytest.fixture(scope="session")
def provider(authority, folder):
    if missing():
        pytest.skip(missing())
    running = Glewlwyd(authority, folder)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def server(authority, folder, provider):
    place = folder / "musterd"
    place.mkdir()
    certificate, key = authority.issue(place, "musterd")
    with Musterd(tls_certificate=certificate, tls_key=key, outbound_allow=f"localhost:{provider.port}", issuer_refetch_seconds=1) as running:
        yield running


@pytest.fixture(scope="session")
def world(server):
    return World(server)
