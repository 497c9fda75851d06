"""Holds every answer that the tests see against api/openapi.yaml, and remembers what was exercised.

    contract = Contract()
    contract.check(method, path, status, headers, body)    # AssertionError with the place
    contract.unexercised()                                 # operations that never succeeded
"""
import copy
import json
import re
import sys
import threading
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "api"))
import embed_api  # noqa: E402

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
FORMATS = jsonschema.FormatChecker(formats=["uuid"])


@FORMATS.checks("date-time")
def is_instant(value):
    return not isinstance(value, str) or RFC3339.fullmatch(value) is not None


def closed(node):
    """The schema for tests: an answer may have no field that the document does not name."""
    if isinstance(node, dict):
        node = {key: closed(value) for key, value in node.items()}
        if "properties" in node and "object" in str(node.get("type")):
            node.setdefault("additionalProperties", False)
        return node
    return [closed(value) for value in node] if isinstance(node, list) else node


class Contract:
    def __init__(self, path=ROOT / "api" / "openapi.yaml"):
        self.document = embed_api.load(path)
        self.strict = copy.deepcopy(self.document)
        self.strict["components"]["schemas"] = closed(self.strict["components"]["schemas"])
        self.operations = {o["operationId"]: (m, p, o) for m, p, o in embed_api.operations(self.document)}
        self.patterns = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", re.escape(p).replace(r"\{", "{").replace(r"\}", "}"))), p)
                         for p in sorted(self.document["paths"], key=lambda p: p.count("{"))]
        self.validators = {}
        self.lock = threading.Lock()  # a resolver of jsonschema is for one thread at a time
        self.succeeded = set()

    def template(self, path):
        return next((p for pattern, p in self.patterns if pattern.fullmatch(path)), None)

    def find(self, method, path):
        """The operation of a request; None where the document has none."""
        template = self.template(path)
        method = "get" if method == "HEAD" else method.lower()
        return self.document["paths"][template].get(method) if template else None

    def validator(self, schema):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            resolver = jsonschema.RefResolver.from_schema(self.strict)
            self.validators[key] = jsonschema.Draft202012Validator(closed(schema), resolver=resolver, format_checker=FORMATS)
        return self.validators[key]

    def check(self, method, path, status, headers, body):
        path = path.split("?")[0]
        operation = self.find(method, path)
        where = f"{method} {path} -> {status}"
        kind = headers.get("content-type", "").split(";")[0]
        if status >= 400 and kind == "application/json" and operation is not None and str(status) in operation["responses"]:
            self.check_success(where, operation, status, kind, body)
            return
        if status >= 400:
            # A page for people who typed the address of a server without TLS is no problem+json.
            if kind != "text/html":
                self.check_problem(where, operation, status, kind, headers, body, method)
            return
        if operation is None:
            return
        assert str(status) in operation["responses"], f"{where}: the document does not know this status"
        if method != "HEAD":
            self.check_success(where, operation, status, kind, body)
        if status < 400:
            self.succeeded.add(operation["operationId"])

    def check_success(self, where, operation, status, kind, body):
        response = self.resolved(operation["responses"][str(status)])
        content = response.get("content")
        if not content:
            assert not body, f"{where}: a body of {len(body)} bytes where there is none"
            return
        assert kind in content, f"{where}: {kind}, not {', '.join(content)}"
        if kind == "application/json":
            self.validate(where, content[kind]["schema"], body)

    def check_problem(self, where, operation, status, kind, headers, body, method):
        if method == "HEAD":
            return
        assert kind == "application/problem+json", f"{where}: {kind}"
        problem = self.validate(where, {"$ref": "#/components/schemas/Problem"}, body)
        assert problem["status"] == status, f"{where}: the body says {problem['status']}"
        assert problem["type"] == "/problems/" + problem["code"].replace("_", "-"), where
        assert status != 405 or "allow" in headers, f"{where}: no Allow"
        assert status != 401 or "www-authenticate" in headers, f"{where}: no WWW-Authenticate"
        assert status not in (429, 503) or "retry-after" in headers, f"{where}: no Retry-After"
        if operation is not None and status in (403, 404, 409, 412, 422, 428):
            assert str(status) in operation["responses"], f"{where}: the document does not know this status: {problem}"

    def resolved(self, node):
        return embed_api.resolve(self.document, node["$ref"]) if "$ref" in node else node

    def validate(self, where, schema, body):
        try:
            value = json.loads(body)
        except ValueError as error:
            raise AssertionError(f"{where}: no JSON: {error}: {body[:200]!r}") from error
        with self.lock:
            errors = sorted(self.validator(schema).iter_errors(value), key=lambda e: list(map(str, e.absolute_path)))
        assert not errors, f"{where}: " + "; ".join(
            f"/{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in errors[:3])
        return value

    def on_response(self, response):
        """A hook of httpx."""
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            operation = self.find(response.request.method, response.request.url.path)
            if operation is not None and response.status_code == 200:
                self.succeeded.add(operation["operationId"])
            return
        response.read()
        if response.headers.get("content-encoding") == "br":
            return  # httpx leaves it as it came
        self.check(response.request.method, response.request.url.raw_path.decode(), response.status_code, response.headers,
                   response.content)

    def unexercised(self):
        return sorted(set(self.operations) - self.succeeded)
