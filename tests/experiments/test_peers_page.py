"""The page that sets other libraries beside ours quotes what was measured."""

import re
from pathlib import Path

from experiments.peers import HEAD

PAGE = Path(__file__).parents[2] / "docs" / "peers.rst"


def test_figures_of_the_text_stand_in_the_tables():
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    tables = page.removeprefix(HEAD).replace("\N{NO-BREAK SPACE}", " ")
    quoted = re.findall(r"\b\d\.\d{3}\b|\b\d+ of \d+\b", HEAD)
    assert len(quoted) > 15
    assert [figure for figure in quoted if figure not in tables] == []


def test_every_loss_of_size_is_a_cross_in_the_picture():
    page = PAGE.read_text(encoding="utf-8")
    assert "MAPIE's rank" in page
    assert "At an equal promise" in page
    pictures = re.findall(r"figure:: (images/\w+\.svg)", page)
    assert len(pictures) == 5
    assert all((PAGE.parent / picture).is_file() for picture in pictures)
    drawn = (PAGE.parent / "images" / "guide_sizes.svg").read_text(encoding="utf-8")
    assert "ours larger" in drawn
