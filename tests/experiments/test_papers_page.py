"""The page of the papers in the documentation: a reason for every deviation."""

import re
from pathlib import Path

import pytest
from experiments.papers import GROUPS

PAGE = Path(__file__).parents[2] / "docs" / "papers.rst"
#: ours / paper / difference ± error, and the letter of a reason
CELL = re.compile(
    r"(-?[\d.]+)\s/\s(-?[\d.]+)\s/\s([+-][\d.]+)\s±\s([\d.e+-]+)(?:\s\((\w)\))?$",
    re.M,
)


@pytest.fixture(scope="module")
def sections():
    """Text under each heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return re.split(r"\n(?=[^\n]+\n~~~+\n)", text)


def test_deviations_beyond_the_error_have_a_letter_and_the_letter_a_reason(sections):
    found = 0
    for section in sections:
        listed = set(re.findall(r"^- \\\((\w)\) ", section, re.M))
        used = set()
        for ours, paper, difference, error, letter in CELL.findall(section):
            found += 1
            assert float(difference) == pytest.approx(
                float(ours) - float(paper), abs=0.011
            )
            # The error is printed with two digits.
            if abs(float(difference)) > 1.05 * float(error) + 1e-9:
                assert letter, (ours, paper, difference, error)
            if letter:
                used.add(letter)
        assert used == listed
    assert found > 200


def test_every_row_of_the_calibration_tables_is_the_same_or_has_a_reason(sections):
    (section,) = [s for s in sections if "Tables II, IV" in s[:40]]
    rows = section.split("   * - ")[2:]
    assert len(rows) == 125
    for row in rows:
        cells = [line.removeprefix("     -").strip() for line in row.splitlines()]
        verdict = cells[8]
        assert verdict
        assert verdict != "DIFFERS"
        if verdict == "same":
            assert cells[3] == cells[4]


def test_every_paper_has_its_heading():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"{heading}\n---" in text for heading, _ in GROUPS.values())
