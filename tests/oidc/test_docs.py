"""docs/oidc.md says what the code does: reasons, checks and causes of unused keys, word for word."""

import re

from conftest import ROOT

DOCS = (ROOT / "docs" / "oidc.md").read_text()


def table(header, macro):
    """The rows X(symbol, "a", "b"...) of a header's table."""
    text = (ROOT / "oidc" / header).read_text()
    body = re.search(rf"#define {macro}\(X\)((?:.*\\\n)*.*\n)", text)[1]
    return [re.findall(r'"((?:[^"\\]|\\.)*)"', row) for row in re.findall(r"X\(\w+,(.*?)\)(?=\s*\\?\n)", body)]


def test_the_list_of_reasons_is_that_of_the_code():
    rows = [tuple(row) for row in table("reason.h", "OIDC_REASON_TABLE")]
    assert len(rows) == 29
    section = DOCS.split("## Reason codes")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M) == rows


def test_every_check_has_its_row():
    section = DOCS.split("## What is checked")[1].split("## ")[0]
    assert re.findall(r"^\| (\w+) \| (?!Rule)", section, re.M)[1:] == [row[0] for row in table("verify.h", "OIDC_CHECK_TABLE")][1:]


def test_every_cause_of_an_unused_key_is_named():
    section = DOCS.split("## Keys")[1].split("## ")[0]
    for (word,) in table("jwk.h", "JWK_SKIP_TABLE"):
        assert f"`{word}`" in section
