"""Every script and every code block of the documentation runs."""

import doctest
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


def _name(path):
    return path.stem


@pytest.fixture(autouse=True)
def headless():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example_runs_and_draws_one_figure(script, capsys):
    runpy.run_path(str(script))
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("script", TUTORIALS, ids=_name)
def test_tutorial_runs_and_draws(script, capsys):
    runpy.run_path(str(script))
    assert plt.get_fignums()


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example_fits_on_one_screen(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 40


def test_gallery_has_a_dozen_examples():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize(
    "page",
    [page for page in DOCS.rglob("*.rst") if ">>> " in page.read_text("utf-8")],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_code_of_page_gives_the_output_shown(page):
    result = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert result.attempted > 0
    assert result.failed == 0
