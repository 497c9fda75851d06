"""Signing in at the command line: the device flow of RFC 8628, and `muster login`, `logout`, `whoami` themselves."""
import datetime
import hashlib
import json
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MUSTER = Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "muster"


def begin(world):
    answer = world.server.api("POST", "/api/v1/device-codes", {"client": "muster on login-1"}, token=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask(world, codes):
    return world.server.api("POST", "/api/v1/device-tokens", {"device_code": codes["device_code"]}, token=False)


def code(answer):
    return answer.status_code, answer.json()["code"]


def decide(world, codes, decision, headers):
    return world.server.api("POST", f"/api/v1/device-codes/{codes['user_code']}", {"decision": decision}, token=False, headers=headers)


def change(world, codes, what):
    world.sql(f"UPDATE device_code SET {what} WHERE user_code = '{codes['user_code']}'")


def signed_in(world, role="operator"):
    codes = begin(world)
    assert decide(world, codes, "approve", world.browser(role)).status_code == 200
    answer = ask(world, codes)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_ones_sessions_name_the_program_and_where_it_asked_from(world):
    token = signed_in(world)["access_token"]
    listed = world.server.api("GET", "/api/v1/sessions", token=token).json()["items"]
    mine = [one for one in listed if one["current"]]
    assert [(one["user_agent"], one["address"]) for one in mine] == [("muster on login-1", "127.0.0.1")], listed


def test_a_person_lets_a_program_in_with_their_own_rights(world):
    codes = begin(world)
    assert codes["verification_uri"] == world.server.url("/device")
    assert codes["verification_uri_complete"].endswith("/device?code=" + codes["user_code"]) and codes["interval"] == 5
    assert code(ask(world, codes)) == (400, "authorization_pending")
    person = world.browser("operator")
    shown = world.server.api("GET", f"/api/v1/device-codes/{codes['user_code']}", token=False, headers=person).json()
    assert (shown["client"], shown["address"], shown["state"]) == ("muster on login-1", "127.0.0.1", "pending")
    assert decide(world, codes, "approve", person).json()["state"] == "approved"
    token = ask(world, codes).json()
    assert token["access_token"].startswith("mpt_") and token["token_type"] == "Bearer"
    me = world.api("GET", "me", token=token["access_token"]).json()
    assert (me["kind"], me["roles"], me["org"]["id"], me["name"]) == ("session", ["operator"], world.org.id, token["person"]["name"])
    assert world.api("POST", "projects", {"name": world.name("p")}, token=token["access_token"]).status_code == 403
    hours = datetime.datetime.fromisoformat(token["expires_at"]) - datetime.datetime.now(datetime.timezone.utc)
    assert 11.5 < hours.total_seconds() / 3600 <= 12


def test_the_rights_are_those_the_person_has_now(world):
    token = signed_in(world)
    world.sql(f"DELETE FROM membership WHERE person_id = '{token['person']['id']}'")
    assert world.api("GET", "clusters", token=token["access_token"]).status_code == 403
    world.sql(f"UPDATE person SET disabled_at = now() WHERE id = '{token['person']['id']}'")
    assert world.api("GET", "me", token=token["access_token"]).status_code == 401


def test_asking_too_often_makes_the_interval_longer(world):
    """device-slow-down: 5 s more each time, and for good."""
    codes = begin(world)
    change(world, codes, "interval_seconds = 100")
    assert code(ask(world, codes)) == (400, "authorization_pending")
    for wait in ("105", "110"):
        answer = ask(world, codes)
        assert code(answer) == (400, "slow_down") and answer.headers["retry-after"] == wait
    change(world, codes, "asked_at = now() - interval '109.9 seconds'")
    answer = ask(world, codes)
    assert code(answer) == (400, "authorization_pending") and answer.headers["retry-after"] == "110"


def test_a_code_gives_a_token_once(world):
    codes = begin(world)
    assert decide(world, codes, "approve", world.browser()).status_code == 200
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(world, codes).status_code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [400] * 7
    assert code(ask(world, codes)) == (400, "expired_token")


def test_a_code_that_is_over_opens_nothing(world):
    codes = begin(world)
    person = world.browser()
    change(world, codes, "expires_at = now()")
    assert code(ask(world, codes)) == (400, "expired_token")
    assert decide(world, codes, "approve", person).status_code == 404
    allowed = begin(world)
    assert decide(world, allowed, "approve", person).status_code == 200
    change(world, allowed, "expires_at = now()")
    assert code(ask(world, allowed)) == (400, "expired_token")
    assert code(ask(world, {"device_code": "mdc_" + "x" * 43})) == (400, "expired_token")


def test_who_says_no_is_heard(world):
    codes = begin(world)
    person = world.browser()
    assert decide(world, codes, "deny", person).json()["state"] == "denied"
    assert code(ask(world, codes)) == (400, "access_denied")
    assert decide(world, codes, "approve", person).status_code == 404, "a decision stands"


def test_a_program_that_was_let_in_lets_no_other_in(world):
    token = signed_in(world, "admin")["access_token"]
    codes = begin(world)
    for credential in (token, world.org.token):
        assert world.api("GET", f"device-codes/{codes['user_code']}", token=credential).status_code == 403
        assert world.api("POST", f"device-codes/{codes['user_code']}", {"decision": "approve"}, token=credential).status_code == 403
    assert world.api("PUT", "session", {"org_id": world.org.id}, token=token).status_code == 403, "nor does it become a browser's session"
    cookie = {"Cookie": f"muster_session={token}", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    assert world.server.api("GET", "/api/v1/me", token=False, headers=cookie).status_code == 401


def test_a_page_of_another_site_lets_nobody_in(world):
    codes = begin(world)
    headers = {**world.browser(), "Sec-Fetch-Site": "cross-site"}
    assert decide(world, codes, "approve", headers).status_code == 403
    assert code(ask(world, codes)) == (400, "authorization_pending")


def test_I8_codes_and_tokens_are_stored_hashed_and_every_step_is_audited(world):
    codes = begin(world)
    assert decide(world, codes, "approve", world.browser()).status_code == 200
    token = ask(world, codes).json()["access_token"]
    stored = world.sql("SELECT row_to_json(d)::text FROM device_code d; SELECT row_to_json(s)::text FROM session s; SELECT body FROM audit")
    for secret in (codes["device_code"], token):
        assert secret not in stored + world.server.log
        assert hashlib.sha256(secret.encode()).hexdigest() in stored
    rows = world.sql(f"SELECT action FROM audit WHERE org_id = '{world.org.id}' AND body LIKE '%{codes['user_code']}%'")
    assert rows == "device.approve"


def test_the_session_ends_with_the_persons_others(world):
    token = signed_in(world)["access_token"]
    assert world.api("DELETE", "sessions", token=token).status_code == 204
    assert world.api("GET", "me", token=token).status_code == 401


# ---------------------------------------------------------------- the command line
@pytest.fixture
def home(tmp_path):
    return tmp_path


def run(home, *words, **options):
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run([MUSTER, *words], env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False, **options)


def log_in(world, home, url, decision="approve"):
    """Runs `muster login`, decides as a person in the console, gives what it printed and how it ended."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen([MUSTER, "login", "--server", url], env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        first = process.stdout.readline() + process.stdout.readline()
        user_code = first.strip().rpartition(" ")[2]
        assert decide(world, {"user_code": user_code}, decision, world.browser("operator")).status_code == 200, first
        rest, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return first + rest, process.returncode


def test_muster_login_keeps_a_token_for_each_server_and_logout_ends_it(world, home):
    """cli-cache-key: two servers are two entries, told apart by scheme, host and port."""
    url = world.server.url().rstrip("/")
    twin = url.replace("127.0.0.1", "localhost")
    results = {}
    threads = [threading.Thread(target=lambda u=u: results.update({u: log_in(world, home, u)})) for u in (url, twin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for said, status in results.values():
        assert status == 0 and f"Open {url}/device?code=" in said and "Signed in to" in said, said
    folder = home / ".config" / "muster"
    files = sorted(folder.iterdir())
    assert len(files) == 2 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    kept = [json.loads(file.read_text()) for file in files]
    assert {entry["server"] for entry in kept} == {url, twin} and len({entry["access_token"] for entry in kept}) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    who = run(home, "whoami", "--server", url.upper().replace("HTTP", "http") + "/")
    assert who.returncode == 0 and "roles: operator" in who.stdout, who.stderr
    assert run(home, "clusters", "--server", url).returncode == 0
    token = next(entry["access_token"] for entry in kept if entry["server"] == url)
    out = run(home, "logout", "--server", url)
    assert out.returncode == 0 and len(list(folder.iterdir())) == 1, out.stderr
    assert world.api("GET", "me", token=token).status_code == 401, "it ended at the server too"
    gone = run(home, "whoami", "--server", url)
    assert gone.returncode == 2 and "muster login" in gone.stderr
    assert run(home, "whoami", "--server", twin).returncode == 0


def test_muster_login_says_when_it_was_denied(world, home):
    said, status = log_in(world, home, world.server.url().rstrip("/"), "deny")
    assert status == 1 and "The person who was asked said no." in said
    assert not (home / ".config" / "muster").exists()


@pytest.mark.parametrize("address, taken", [
    ("http://127.0.0.1:8000/", True), ("http://localhost:8000/", True), ("https://evil.example.test/", False),
    ("http://127.0.0.1.evil.example.test/", False),
])
def test_muster_login_sends_people_to_its_server_or_this_machine_only(home, address, taken):
    """cli-redirect-loopback-only: a server, or who pretends to be one, cannot have the code shown to a third."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            if self.path.endswith("device-codes"):
                self.say(200, {"device_code": "mdc_x", "user_code": "bcdf-ghjk", "verification_uri": address + "device", "interval": 1,
                               "verification_uri_complete": address + "device?code=bcdf-ghjk", "expires_in": 600})
            else:
                self.say(400, {"code": "access_denied", "detail": "no"})

        def say(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as fake:
        thread = threading.Thread(target=fake.serve_forever, daemon=True)
        thread.start()
        done = run(home, "login", "--server", f"http://127.0.0.1:{fake.server_address[1]}")
        fake.shutdown()
        thread.join()
    assert done.returncode == 1
    assert ("another server" in done.stderr, "not signed in: no" in done.stderr) == (not taken, taken), done.stderr
