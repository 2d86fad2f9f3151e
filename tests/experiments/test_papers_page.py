"""The pages of the papers: nothing left out in silence, every deviation told."""

import re
from pathlib import Path

import pytest
from experiments.papers import GROUPS

DOCS = Path(__file__).parents[2] / "docs"
#: All tables and figures, typed from the papers themselves.
ITEMS = {
    "minimax": ("Table 1", "Table 2", "Figure 1", "Figure 2", "Figure 3"),
    "optimistic": ("Table 1", "Figure 1", "Figure 2", "Figure 3"),
    "imprecise": (
        *("Table 1", "Table 2", "Table 3", "Table 4", "Figure 1", "Figure 2"),
        *("Figure 3", "Figure 4", "Figure 5", "Figure 6", "Figure 7", "Figure 8"),
        *("Figure A.9", "Figure A.10"),
    ),
    "calibration": (
        *("Table I", "Table II", "Table III", "Table IV", "Table V", "Table VI"),
        *("Table VII", "Table VIII", "Table IX"),
        *("Figure 1", "Figure 2", "Figure 3", "Figure 4"),
    ),
    "adversarial": ("Figure 1", "Figure 2", "Figure 3"),
}
#: ours / paper / difference ± error, and the letter of a reason
CELL = re.compile(
    r"(-?[\d.]+)\s/\s(-?[\d.]+)\s/\s([+-]?[\d.]+)(?:\s±\s([\d.e+-]+))?(?:\s\((.)\))?$",
    re.M,
)


@pytest.fixture(scope="module")
def parts():
    """Prefix of a paper -> text of its page."""
    return {p: (DOCS / f"papers/{p}.rst").read_text(encoding="utf-8") for p in GROUPS}


@pytest.fixture(scope="module")
def text(parts):
    """The page that leads to the papers, and theirs."""
    first = (DOCS / "papers.rst").read_text(encoding="utf-8")
    return "\n".join([first, *parts.values()])


@pytest.fixture(scope="module")
def sections(text):
    """Text under each heading of the pages."""
    return re.split(r"\n(?=[^\n]+\n---+\n)", text)


@pytest.fixture(scope="module")
def contents(text):
    """(heading of the paper, item) -> what the list of contents says of it."""
    (listed,) = re.findall(
        r"\.\. list-table:: Every table and figure.*?\n\n(.*?)\n\n", text, re.S
    )
    cells = re.findall(r"   \* - (.+)\n     - (.+)\n     - (.+)", listed)
    return {
        (paper, item.replace("\N{NO-BREAK SPACE}", " ")): said
        for paper, item, said in cells[1:]
    }


def test_contents_name_every_table_and_figure_of_the_papers_and_nothing_else(contents):
    assert set(ITEMS) == set(GROUPS)
    typed = {
        (GROUPS[prefix][0], item) for prefix, items in ITEMS.items() for item in items
    }
    assert len(typed) == 39
    assert set(contents) == typed


def test_each_item_leads_to_a_section_of_its_paper_or_has_a_reason(contents, parts):
    prefixes = {heading: prefix for prefix, (heading, _) in GROUPS.items()}
    for (paper, item), said in contents.items():
        if said.startswith("omitted: "):
            assert len(said) > 25, (paper, item)
            continue
        anchor = re.search(r"<(papers-[^>]+)>`$", said)[1]
        after = parts[prefixes[paper]].split(f".. _{anchor}:\n")[1]
        section = after.split("\n.. _papers-")[0]
        assert "list-table" in section or "image::" in section, (paper, item)
        if item.startswith("Figure"):
            assert ".. image:: /images/" in section, (paper, item)


def test_pictures_are_there(text):
    names = re.findall(r"\.\. image:: /(images/.+)", text)
    assert len(names) >= 15
    assert [n for n in names if not (DOCS / n).exists()] == []


def test_deviations_beyond_the_error_have_a_letter_and_the_letter_a_reason(sections):
    found = 0
    for section in sections:
        listed = set(re.findall(r"^- \\\((.)\) ", section, re.M))
        used = set()
        for ours, paper, difference, error, letter in CELL.findall(section):
            found += 1
            assert float(difference) == pytest.approx(
                float(ours) - float(paper), abs=0.011
            )
            # The error is printed with two digits.
            if abs(float(difference)) > 1.05 * float(error or 0) + 1e-9:
                assert letter, (ours, paper, difference, error)
            if letter:
                used.add(letter)
        assert used <= listed
    assert found > 1000


def test_no_deviation_is_left_unexplained(text):
    assert "not explained" not in text


def test_every_paper_has_its_heading(parts):
    assert all(f"{GROUPS[p][0]}\n===" in text for p, text in parts.items())
