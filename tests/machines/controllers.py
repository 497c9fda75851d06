"""Controllers of machines: OpenIPMI's simulator with ipmitool as its client, and a Redfish service. Power and effects are files."""
import json
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from waiting import wait_for  # noqa: E402

USER, PASSWORD = "muster", "secret-of-a-bmc"


class Machine:
    """Its power, and every change of it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        (folder / "power").write_text("1\n")
        (folder / "effects").write_text("")
        (folder / "password").write_text(PASSWORD + "\n")

    @property
    def effects(self):
        return (self.folder / "effects").read_text().split("\n")[:-1]

    @property
    def on(self):
        return (self.folder / "power").read_text().strip() == "1"

    def ignore(self, yes=True):
        """It takes orders and does nothing."""
        if yes:
            (self.folder / "ignore").write_text("")
        else:
            (self.folder / "ignore").unlink(missing_ok=True)


class Ipmi(Machine):
    @staticmethod
    def missing():
        absent = [program for program in ("ipmi_sim", "ipmitool") if not shutil.which(program)]
        return f"{absent[0]} is not installed (script/setup --test)" if absent else None

    def __init__(self, folder, port):
        super().__init__(folder)
        self.port = port
        (folder / "state").mkdir()
        chassis = Path(__file__).resolve().parent / "chassis"
        auths = "".join(f"    allowed_auths_{who} none md2 md5 straight\n" for who in ("callback", "user", "operator", "admin"))
        (folder / "lan.conf").write_text(
            f'name "test"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n{auths}'
            f'    guid a123456789abcdefa123456789abcdef\n  endlan\n  chassis_control "{chassis} {folder}"\n'
            f'  user 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight\n')
        (folder / "bmc.emu").write_text("mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\n"
                                        "sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n")
        with open(folder / "out", "wb") as out:
            self.process = subprocess.Popen(
                ["ipmi_sim", "-n", "-c", str(folder / "lan.conf"), "-f", str(folder / "bmc.emu"), "-s", str(folder / "state")],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        wait_for(self.answers, said=lambda: (folder / "out").read_text())

    def answers(self):
        return subprocess.run(["ipmitool", "-I", "lanplus", "-C", "3", "-N", "2", "-R", "1", "-H", "127.0.0.1", "-p", str(self.port),
                               "-U", USER, "-P", PASSWORD, "chassis", "power", "status"], capture_output=True, check=False).returncode == 0

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def target(self):
        return {"kind": "ipmi", "host": "127.0.0.1", "port": self.port}

    def stop(self):
        self.process.kill()
        self.process.wait()


class Redfish(Machine):
    """Two systems as HGX machines have them; faults by name: after_500 tells 500 after the effect, once."""

    def __init__(self, folder, serial="SN-7"):
        super().__init__(folder)
        self.serial, self.faults, self.lock = serial, set(), threading.Lock()
        self.certify()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else b""
                with owner.lock:
                    status, answer = owner.answer(self.command, self.path, self.headers, body)
                data = json.dumps(answer).encode() if answer is not None else b""
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = serve

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "cert.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def certify(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(self.folder / "cert.key"),
                        "-out", str(self.folder / "cert.pem")], check=True, capture_output=True)

    def target(self):
        return {"kind": "redfish", "url": f"https://127.0.0.1:{self.server.server_address[1]}", "system": "DGX",
                "ca_file": str(self.folder / "cert.pem")}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method, path, headers, body):
        if path == "/redfish/v1/":
            return 200, {"RedfishVersion": "1.15.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}}
        if b64decode(headers.get("Authorization", "").removeprefix("Basic ") or b"") != f"{USER}:{PASSWORD}".encode():
            return 401, {"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.NoValidSession"}]}}
        if path == "/redfish/v1/Systems":
            return 200, {"Members": [{"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"}, {"@odata.id": "/redfish/v1/Systems/DGX"}]}
        if path.startswith("/redfish/v1/Systems/HGX"):
            return 503, {"error": {"@Message.ExtendedInfo": [{"MessageId": "HMCCommunicationFailed"}]}}
        if method == "GET" and path == "/redfish/v1/Systems/DGX":
            return 200, {"PowerState": "On" if self.on else "Off", "SerialNumber": self.serial, "Actions": {"#ComputerSystem.Reset": {
                "target": "/redfish/v1/Systems/DGX/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"]}}}
        if method == "POST" and path.endswith("/ComputerSystem.Reset"):
            return self.reset(json.loads(body)["ResetType"])
        return 404, {"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.ResourceMissingAtURI"}]}}

    def reset(self, kind):
        wanted = {"On": "1", "ForceOff": "0"}[kind]
        if "refuse" in self.faults:
            return 409, {"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.ResourceInUse"}]}}
        if not (self.folder / "ignore").exists() and self.on != (wanted == "1"):
            with open(self.folder / "effects", "a", encoding="ascii") as file:
                file.write(f"power {wanted}\n")
            (self.folder / "power").write_text(wanted + "\n")
        if "after_500" in self.faults:
            self.faults.discard("after_500")
            return 500, None
        return 204, None
