"""The page of audits names entries that exist, and says of each what was found."""

import re
from pathlib import Path

from experiments.audits import ENTRIES, HEAD, Entry

import prudent

PAGE = Path(__file__).parents[2] / "docs" / "audit.rst"


def test_every_line_that_reproduces_names_an_entry():
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    named = re.findall(r"``python -m experiments.audits ([\w-]+)``", page)
    assert len(named) == len(set(named)) >= 15
    assert set(named) <= set(ENTRIES)
    assert page.count("; p = ") == len(named)
    claims = page.split("\n\n.. list-table::")[1:-1]
    assert all("(`source <https://" in claim for claim in claims)


def test_an_entry_runs():
    entry = ENTRIES["sklearn-one-class-svm"]
    assert isinstance(entry, Entry)
    found = prudent.audit(
        entry.factory, entry.claim, answer=entry.answer, laws=["line"], sizes=(40,),
        budget=5,
    )  # fmt: skip
    assert found.verdict == "no violation found"
