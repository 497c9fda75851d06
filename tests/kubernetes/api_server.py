"""An API server that answers as kube-apiserver 1.36 was recorded to answer, for the calls of a drain. Over TLS, with a bearer token."""
import json
import ssl
import subprocess
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from certs import Authority

TOKEN = "kube-token"
LIVE = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
PAGE = 2  # smaller than asked for, as a server may: the client has to follow `continue`


def status(code, reason, message, **details):
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
                  "details": details, "code": code}


class ApiServer:
    """nodes and pods are plain objects that tests change; effects are counted."""

    def __init__(self, folder):
        self.nodes, self.pods, self.lock = {}, {}, threading.RLock()
        self.evicted, self.patched = [], []   # (pod, uid), (node, body): what had an effect
        self.tries = {}                       # evictions asked for, by pod
        self.budget = set()                   # pods that a disruption budget keeps
        self.drops_fields = False             # an old server: a field it does not know is 200 and nothing
        self.down = False
        self.make_certificate(folder)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else b""
                with owner.lock:
                    owner.certified = bool(self.connection.getpeercert())
                    code, answer = owner.answer(self.command, self.path, self.headers, body)
                data = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = serve

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self.clients = Authority("clients of the API server")
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.clients.pem)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def make_certificate(self, folder):
        self.ca = folder / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=kube", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "server.key"),
                        "-out", str(self.ca)], check=True, capture_output=True)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # ------------------------------------------------------------ things
    def add_node(self, name):
        self.nodes[name] = {"metadata": {"name": name}, "spec": {},
                            "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}}

    def add_pod(self, node, name, owner="Job", gpus=0, **fields):
        pod = {"metadata": {"name": name, "namespace": "team-a", "uid": str(uuid.uuid4())},
               "spec": {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "4"} if gpus else {}}}],
                        **fields},
               "status": {"phase": "Running", "startTime": "2026-12-01T10:00:00Z"}}
        if owner:
            pod["metadata"]["ownerReferences"] = [{"kind": owner, "name": f"{name}-owner", "controller": True}]
        with self.lock:
            self.pods[name] = pod
        return pod

    def end_pod(self, name):
        """The kubelet confirms that it is gone."""
        with self.lock:
            self.pods.pop(name, None)

    # ------------------------------------------------------------ answers
    def answer(self, method, target, headers, body):
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if self.down:
            return status(503, "ServiceUnavailable", "the server is currently unable to handle the request")
        if headers.get("Authorization") != f"Bearer {TOKEN}" and not self.certified:
            return status(401, "Unauthorized", "Unauthorized")
        parts = path.strip("/").split("/")[2:]
        if method == "GET" and not parts:
            return 200, {"kind": "APIResourceList", "resources": [
                {"name": "pods", "kind": "Pod"}, {"name": "pods/eviction", "group": "policy", "version": "v1", "kind": "Eviction"}]}
        if method == "GET":
            if parts == ["nodes"]:
                return self.page(sorted(self.nodes.items()), query)
            assert query["fieldSelector"] == [LIVE], query
            live = [(name, pod) for name, pod in sorted(self.pods.items()) if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Running"]
            return self.page(live, query)
        if method == "PATCH":
            return self.patch(parts[1], headers.get("Content-Type"), json.loads(body))
        return self.evict(parts[3], json.loads(body))

    def page(self, items, query):
        begin = int(query.get("continue", ["0"])[0])
        more = {"continue": str(begin + PAGE)} if begin + PAGE < len(items) else {}
        return 200, {"kind": "List", "metadata": {"resourceVersion": "1", **more}, "items": [item for _, item in items[begin:begin + PAGE]]}

    def patch(self, name, kind, body):
        node = self.nodes.get(name)
        if node is None:
            return status(404, "NotFound", f'nodes "{name}" not found', name=name, kind="nodes")
        if self.drops_fields:
            return 200, node
        notes = node["metadata"].setdefault("annotations", {})
        if kind == "application/merge-patch+json":
            notes.update(body["metadata"]["annotations"])
            node["spec"].update(body["spec"])
        elif kind == "application/json-patch+json":
            key = body[0]["path"].rsplit("/", 1)[1].replace("~1", "/")
            if body[0]["op"] != "test" or notes.get(key) != body[0]["value"]:
                return status(422, "Invalid", "the server rejected our request due to an error in our request")
            notes.pop(key)
            node["spec"].pop("unschedulable", None)
        else:
            return status(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        self.patched.append((name, body))
        return 200, node

    def evict(self, name, body):
        self.tries[name] = self.tries.get(name, 0) + 1
        pod = self.pods.get(name)
        if pod is None:
            return status(404, "NotFound", f'pods "{name}" not found', name=name, kind="pods")
        uid = body["deleteOptions"]["preconditions"]["uid"]
        if uid != pod["metadata"]["uid"]:
            return status(409, "Conflict", "Precondition failed: UID in precondition")
        if name in self.budget:
            return status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                          causes=[{"reason": "DisruptionBudget", "message": "The disruption budget keep needs 1 healthy pods and has 1 currently"}])
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = "2026-12-01T11:00:00Z"
            self.evicted.append((name, uid))
        return 201, {"kind": "Status", "status": "Success", "code": 201}
