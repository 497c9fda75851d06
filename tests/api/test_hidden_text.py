"""No text that people send may hold what does not show as itself: control characters, or characters that turn the direction of writing."""
import uuid

import pytest

# Texts that a person's program makes, of a form of their own: refused for that, not for what they hide.
# They look for their thing first; their fields are those of the operation that makes one.
THINGS_FIRST = {"issuer_update"}
OPERATIONS_WITHOUT = ("agent_enroll", "agent_challenge", "agent_token", "agent_report")


def free_texts(contract):
    """(operation, method, path, field, many lines) of every text of a body that has no form of its own."""
    found = []
    for name, (method, path, operation) in contract.operations.items():
        content = operation.get("requestBody", {}).get("content", {})
        kind = next((k for k in ("application/json", "application/merge-patch+json") if k in content), None)
        if kind is None or name in OPERATIONS_WITHOUT:
            continue
        schema = contract.resolved(content[kind]["schema"])
        for field, shape in schema.get("properties", {}).items():
            shape = contract.resolved(shape)
            types = shape.get("type")
            if "string" in (types if isinstance(types, list) else [types]) and not {"enum", "format", "pattern", "const"} & set(shape):
                found.append((name, method, path, kind, field))
    return found


def send(server, method, path, kind, field, text):
    parts = [str(uuid.uuid4()) if part.startswith("{") else part for part in path.split("/")]
    # The unknown field keeps everything from being done.
    return server.api(method, "/".join(parts), {field: text, "no_such_field": 1}, headers={"If-Match": '"1"', "Content-Type": kind, "Idempotency-Key": str(uuid.uuid4())})


def refusals(answer, field):
    """Why the field was refused; None where the operation looked for its thing first."""
    if answer.status_code == 404:
        return None
    assert answer.status_code == 422, (answer.status_code, answer.text)
    return [e["detail"] for e in answer.json()["errors"] if e.get("pointer") == f"#/{field}" and e["code"] in ("invalid_format", "not_allowed")]


@pytest.mark.parametrize("hidden", ["\x1b[2J", "\x85", "\u202e", "\u2066"], ids=["C0", "C1", "override", "isolate"])
def test_no_field_takes_hidden_characters(server, contract, hidden):
    fields = free_texts(contract)
    assert len(fields) > 40
    taken, unseen = [], set()
    for name, method, path, kind, field in fields:
        said = refusals(send(server, method, path, kind, field, f"a{hidden}b"), field)
        if said is None:
            unseen.add(name)
        elif not said:
            taken.append((name, field))
    assert not taken
    assert unseen <= THINGS_FIRST


def test_names_take_no_line_breaks_and_comments_do(server, contract):
    lines = {field for name, method, path, kind, field in free_texts(contract)
             if refusals(send(server, method, path, kind, field, "a\n\tb"), field) == [] and name not in THINGS_FIRST}
    assert lines == {"comment", "note", "reason", "ca_certificate"}
