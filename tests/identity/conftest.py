"""One musterd over TLS and one real provider for the whole run."""
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "tests" / "identity")]
from certs import Authority  # noqa: E402
from providers import OidcProvider, node  # noqa: E402
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
    if node() is None:
        pytest.skip("the packages of tests/identity are not installed (script/setup --test)")
    with OidcProvider(authority, folder) as running:
        yield running


@pytest.fixture(scope="session")
def server(authority, folder, provider):
    place = folder / "musterd"
    place.mkdir()
    certificate, key = authority.issue(place, "musterd")
    with Musterd(tls_certificate=certificate, tls_key=key, outbound_allow=f"localhost:{provider.port}",
                 issuer_refetch_seconds=1) as running:
        yield running


@pytest.fixture(scope="session")
def world(server):
    return World(server)
