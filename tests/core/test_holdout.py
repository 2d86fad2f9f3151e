"""Held-out rows: how many, plain and by group."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.core.rows import hold_out, one_row_per_group
from prudent.estimator_tools import check_groups


def draw(n, share=0.3, seed=0, groups=None):
    return hold_out(n, share, np.random.RandomState(seed), groups)


@given(st.integers(2, 200), st.floats(0.01, 0.99))
def test_every_row_is_on_one_side(n, share):
    fit, held_out = draw(n, share)
    assert len(held_out) == min(max(math.ceil(share * n), 1), n - 1)
    assert sorted([*fit, *held_out]) == list(range(n))


def test_a_group_is_on_one_side_and_counts_once():
    groups = np.repeat(np.arange(40), 5)
    fit, held_out = draw(200, groups=groups)
    assert len(held_out) == 12
    assert len(np.unique(groups[held_out])) == 12
    assert len(fit) == 28 * 5
    assert not np.isin(groups[fit], groups[held_out]).any()


def test_the_row_of_a_group_is_any_with_equal_chance():
    groups = np.array(["a"] * 4 + ["b"])
    random = np.random.RandomState(0)
    drawn = [one_row_per_group(groups, random) for _ in range(4000)]
    counts = np.bincount(np.concatenate(drawn), minlength=5)
    assert counts[4] == 4000
    assert abs(counts[:4] - 1000).max() < 120


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "one label for each of the 6 rows, got 2"),
        ([1] * 6, "at least 2 groups"),
    ],
)
def test_bad_groups_are_named(groups, message):
    with pytest.raises(ValueError, match=message):
        check_groups(groups, 6)
