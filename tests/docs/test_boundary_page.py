"""The page about the boundary: its example runs, its table is what the attack finds."""

import doctest
import re
from pathlib import Path

import pytest
from experiments.boundary_attack import CASES, worst_of

PAGE = Path(__file__).parents[2] / "docs" / "boundary.rst"


def quoted_rows():
    """The rows of the table, as numbers."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(":class: boundary-attack")[1].split("\n\nWith only")[0]
    cells = re.findall(r"(?:\* -|  -) ([0-9.]+)$", table, flags=re.MULTILINE)
    return [tuple(map(float, cells[i : i + 7])) for i in range(0, len(cells), 7)]


def test_the_example_runs():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted == 4
    assert results.failed == 0


@pytest.mark.slow
def test_the_table_is_what_the_attack_finds():
    rows = quoted_rows()
    assert [row[:4] for row in rows] == [tuple(map(float, case)) for case in CASES]
    for case, row in zip(CASES, rows, strict=True):
        measured = worst_of(*case, seeds=4, generations=150)
        assert measured == pytest.approx(row[4:], abs=6e-5)
        assert measured[1] <= measured[0]
