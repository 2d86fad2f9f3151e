"""The exact paired test of gains and Holm's correction, against enumeration."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.core.selection import holm
from prudent.evaluation.frame import paired_p_value

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def outcomes(only_first, only_second, both=3, neither=4):
    first = [True] * only_first + [False] * only_second + [True] * both
    second = [False] * only_first + [True] * only_second + [True] * both
    rest = [False] * neither
    return np.array(first + rest, dtype=int), np.array(second + rest, dtype=int)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (3, 9), (7, 7), (12, 1)])
def test_p_value_is_that_of_fair_coins(a, b):
    n = a + b
    as_unequal = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(a - b))
    expected = as_unequal / 2**n
    assert paired_p_value(*outcomes(a, b)) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-1, 1)] * 2), min_size=1, max_size=9))
def test_p_value_of_gains_and_losses_is_that_of_all_signs(pairs):
    first, second = np.array(pairs).T
    steps = first - second
    sums = [abs(np.dot(s, steps)) for s in product([-1, 1], repeat=len(steps))]
    expected = np.mean(np.array(sums) >= abs(steps.sum()))
    assert paired_p_value(first, second) == pytest.approx(expected, rel=1e-12)


def test_rows_on_which_both_agree_say_nothing():
    few, many = outcomes(2, 9, both=0, neither=0), outcomes(2, 9, both=90, neither=900)
    assert paired_p_value(*few) == paired_p_value(*many)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_equal_methods_are_told_apart_no_more_often_than_the_level(level):
    """All outcomes of eight rows on which exactly one of two methods errs."""
    rejected = sum(
        paired_p_value(np.array(coins), 1 - np.array(coins)) <= level
        for coins in product([0, 1], repeat=8)
    )
    assert rejected / 2**8 <= level


@settings(max_examples=100, deadline=None)
@given(P_VALUES, st.floats(0.001, 0.5))
def test_holm_rejects_step_by_step(p_values, level):
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    rejected = set()
    for step, index in enumerate(order):
        if p_values[index] * (len(p_values) - step) > level:
            break
        rejected.add(index)
    corrected = holm(p_values)
    assert {i for i, p in enumerate(corrected) if p <= level} == rejected


def test_no_other_method_needs_no_correction():
    assert holm([]).tolist() == []
