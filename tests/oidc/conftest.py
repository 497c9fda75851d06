"""What the suites of the verifier share: keys, a call of the command line, a probe of single signatures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))

import jose  # noqa: E402

BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
NOW = 1796000000
ISSUER = "https://idp.example.test"


class Keys:
    """Made once a run: RSA keys take time."""

    def __init__(self):
        self.made = {}

    def __call__(self, kind="RSA", kid="k1", **members):
        name = (kind, kid, json.dumps(members, sort_keys=True))
        if name not in self.made:
            self.made[name] = jose.Key(kind, kid, **members)
        return self.made[name]


@pytest.fixture(scope="session")
def keys():
    return Keys()


@pytest.fixture
def check(tmp_path):
    """check(config, jwks, token, **options) -> what `muster oidc check` prints."""

    def run(config, jwks, token, now=NOW, status=0, **options):
        (tmp_path / "config").write_text(config if isinstance(config, str) else json.dumps(config))
        (tmp_path / "jwks").write_text(jwks if isinstance(jwks, str) else json.dumps({"keys": jwks}))
        command = [BUILD / "muster", "oidc", "check", "--config", tmp_path / "config", "--jwks", tmp_path / "jwks", "--now", str(now)]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-")] + ([] if value is True else [value])
        done = subprocess.run(command, input=token if isinstance(token, bytes) else token.encode(), capture_output=True, check=False)
        assert done.returncode == status, done.stderr.decode()
        return json.loads(done.stdout) if status == 0 else done.stderr.decode()

    return run


@pytest.fixture(scope="session")
def probe():
    """probe([{jwks, token}, ...]) -> [{ours, cjose}, ...]: the signature alone, by us and by cjose."""

    def run(rows):
        program = BUILD / "tests" / "oidc" / "jws-probe"
        if not program.exists():
            pytest.skip("jws-probe was not built: it needs libcjose-dev")
        text = "".join(json.dumps(row) + "\n" for row in rows)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def lines(name):
    return [json.loads(line) for line in (ROOT / "tests" / "fixtures" / "oidc" / name).read_text().splitlines()]
