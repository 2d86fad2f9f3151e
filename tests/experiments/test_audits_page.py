"""The page of audits says of each entry what was found, and entries run."""

import re

from experiments.audits import ENTRIES, Entry, found
from experiments.audits_page import NOTES, OWN, PAGE, page

import prudent

IMAGES = PAGE.parent / "images"


def test_the_page_is_what_was_found():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(found())
    named = re.findall(r"   \* - ``([\w-]+)``\n", text)
    assert named == list(found())
    assert set(named) | set(NOTES) <= set(ENTRIES)
    assert len(named) >= 15
    broken = [line for line in found().values() if line["refuted"] != "0"]
    assert f"{len(broken)} of {len(named)} settings are broken" in text


def test_the_pictures_show_every_setting_and_every_rate():
    others = (IMAGES / "audits_others.svg").read_text(encoding="utf-8")
    assert all(
        f"{ENTRIES[name].package} {ENTRIES[name].what}" in others for name in found()
    )
    own = (IMAGES / "audits_own.svg").read_text(encoding="utf-8")
    shown = [line[0].replace("`", "") for line in OWN if line[1] is not None]
    assert len(shown) == 7
    assert all(name in own for name in shown)


def test_an_entry_runs():
    entry = ENTRIES["sklearn-one-class-svm"]
    assert isinstance(entry, Entry)
    audit = prudent.audit(
        entry.factory, entry.claim, answer=entry.answer, laws=["line"], sizes=(40,),
        budget=5,
    )  # fmt: skip
    assert audit.verdict == "no violation found"
