"""The page about the boundary: its example runs, its table is what the attack finds."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from experiments.boundary_attack import CASES, worst_of
from scipy.stats import binom

from prudent.certification import error_boundary
from prudent.rules.boundary import crossing_probability

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


def last_test_crossing(n, rate, level):
    """Probability that a binomial test of some first ranks is passed."""
    ranks = np.arange(1, n + 1)
    allowed = binom.ppf(level, ranks, rate).astype(int)
    allowed -= binom.cdf(allowed, ranks, rate) > level
    return crossing_probability(ranks[allowed >= 0], allowed[allowed >= 0], rate)


def test_the_rates_of_false_promises_with_a_constant_error():
    text = PAGE.read_text(encoding="utf-8").split("For\n:math:`\\alpha = 5")[1]
    quoted = re.findall(r"([0-9.]+) %", text.split("These four")[0])
    boundary = [error_boundary(n, 0.05).crossing for n in (500, 2000)]
    last_test = [last_test_crossing(n, 0.05, 0.05) for n in (500, 2000)]
    exact = [f"{100 * rate:.2f}" for rate in boundary]
    exact += [f"{100 * rate:.1f}" for rate in last_test]
    assert quoted == ["95", *exact]


@pytest.mark.slow
def test_the_table_is_what_the_attack_finds():
    rows = quoted_rows()
    assert [row[:4] for row in rows] == [tuple(map(float, case)) for case in CASES]
    for case, row in zip(CASES, rows, strict=True):
        measured = worst_of(*case, seeds=4, generations=150)
        assert measured == pytest.approx(row[4:], abs=6e-5)
        assert measured[1] <= measured[0]
