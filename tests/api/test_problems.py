"""Every kind of problem has a page on the server itself, and the three lists of kinds agree."""
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROW = re.compile(r'X\(\w+, (\d+), "(\w+)",\s*(?:\\\s*)?"([^"]+)"\)')


def kinds():
    """{code: (status, title)} of base/err.h."""
    found = {code: (int(status), title) for status, code, title in ROW.findall((ROOT / "base" / "err.h").read_text())}
    assert len(found) > 20
    return found


def test_each_kind_has_a_page_and_each_page_a_kind():
    pages = {path.stem.replace("-", "_") for path in (ROOT / "api" / "problems").glob("*.md")}
    assert pages == set(kinds())


def test_the_document_lists_the_kinds(contract):
    listed = contract.document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert set(listed) == set(kinds()) and len(listed) == len(set(listed))


def test_a_page_says_what_it_means_and_what_to_do(contract):
    for code, (status, title) in kinds().items():
        text = (ROOT / "api" / "problems" / f"{code.replace('_', '-')}.md").read_text()
        assert text.startswith(f"# {title}\n"), code
        assert f"Status {status}, code `{code}`." in text, code
        assert "\n## What it means\n" in text and "\n## What to do\n" in text, code
        example = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))
        contract.validate(code, {"$ref": "#/components/schemas/Problem"}, json.dumps(example))
        assert (example["code"], example["status"], example["title"]) == (code, status, title)


def test_pages_are_served(server):
    for code in kinds():
        answer = server.api("GET", f"/problems/{code.replace('_', '-')}", token=False)
        assert answer.status_code == 200 and answer.text.startswith("# "), code
    assert server.api("GET", "/problems/no-such-kind", token=False).status_code == 404


def test_a_problem_leads_to_its_page(server):
    problem = server.api("GET", "/api/v1/me", token=False).json()
    assert server.api("GET", problem["type"], token=False).status_code == 200
