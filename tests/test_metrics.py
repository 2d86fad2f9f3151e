"""Set metrics against a loop, and scorers through search objects."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import metrics

LABELS = np.array(["a", "b", "c"])


def cases():
    row = st.tuples(
        st.sampled_from(["a", "b", "c", "unseen"]),
        st.lists(st.booleans(), min_size=3, max_size=3),
    )
    return st.lists(row, min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_scores_equal_a_loop_over_rows(rows):
    y = np.array([label for label, _ in rows])
    Y = np.array([members for _, members in rows])
    total = {"coverage": 0.0, "discounted": 0.0, "u65": 0.0, "u80": 0.0}
    for label, members in rows:
        size = sum(members)
        inside = dict(zip(LABELS, members, strict=True)).get(label, False)
        if inside:
            total["coverage"] += 1
            total["discounted"] += 1 / size
            total["u65"] += 1.6 / size - 0.6 / size**2
            total["u80"] += 2.2 / size - 1.2 / size**2
    n = len(rows)
    assert metrics.coverage_score(y, Y, LABELS) == pytest.approx(total["coverage"] / n)
    assert metrics.discounted_accuracy_score(y, Y, LABELS) == pytest.approx(
        total["discounted"] / n
    )
    assert metrics.u65_score(y, Y, LABELS) == pytest.approx(total["u65"] / n)
    assert metrics.u80_score(y, Y, LABELS) == pytest.approx(total["u80"] / n)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_u80_is_at_least_u65_is_at_least_discounted(rows):
    y = np.array([label for label, _ in rows])
    Y = np.array([members for _, members in rows])
    discounted = metrics.discounted_accuracy_score(y, Y, LABELS)
    u65, u80 = metrics.u65_score(y, Y, LABELS), metrics.u80_score(y, Y, LABELS)
    assert u80 >= u65 - 1e-12
    assert u65 >= discounted - 1e-12


def test_a_single_class_is_worth_one_and_a_pair_65_or_80():
    one, two = np.array([[True, False]]), np.array([[True, True]])
    assert metrics.u65_score([0], one, [0, 1]) == 1
    assert metrics.u80_score([0], one, [0, 1]) == 1
    assert metrics.u65_score([0], two, [0, 1]) == pytest.approx(0.65)
    assert metrics.u80_score([0], two, [0, 1]) == pytest.approx(0.80)


def test_conditional_scores_split_single_from_set_answers():
    y = [0, 1, 1, 0]
    Y = np.array([[1, 0], [1, 0], [1, 1], [0, 0]], dtype=bool)
    assert metrics.determinacy_score(y, Y, [0, 1]) == 0.5
    assert metrics.single_accuracy_score(y, Y, [0, 1]) == 0.5
    assert metrics.set_accuracy_score(y, Y, [0, 1]) == 1.0


def test_conditional_scores_are_nan_without_such_rows():
    Y = np.array([[True, False]])
    assert math.isnan(metrics.set_accuracy_score([0], Y, [0, 1]))
    assert math.isnan(
        metrics.single_accuracy_score([0], ~np.zeros((1, 2), bool), [0, 1])
    )


def test_columns_may_come_in_any_order():
    Y = np.array([[True, False, False]])
    assert metrics.coverage_score(["c"], Y, ["c", "a", "b"]) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [[1, 0]], [0, 1]), "bool array"),
        (([0], [[True, False]], [0, 1, 2]), "must name the 2 columns"),
        (([0, 1], [[True, False]], [0, 1]), "inconsistent numbers of samples"),
        (([], np.zeros((0, 2), bool), [0, 1]), "at least 1 label"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.coverage_score(*arguments)


@pytest.mark.parametrize("alpha", [1.0, 1.6, 2.2, 2.9])
def test_a_utility_is_one_for_one_class_and_falls_with_the_size(alpha):
    # (41), with its second sign put right; a row a size, all of them hits.
    Y = np.tri(3, dtype=bool)
    values = [
        metrics.utility_score(["a"], Y[[size - 1]], LABELS, alpha) for size in (1, 2, 3)
    ]
    assert values[0] == 1.0
    assert values[1] == pytest.approx(alpha / 4 + 1 / 4)
    assert values[0] > values[1] > values[2]
    assert metrics.utility_score(["c"], Y[[0]], LABELS, alpha) == 0.0


@pytest.mark.parametrize("alpha", [0.9, np.nan, np.inf, "u80", True, None])
def test_an_alpha_that_is_no_number_from_one_is_refused(alpha):
    with pytest.raises(ValueError, match="`alpha` must be a finite number >= 1, got"):
        metrics.utility_score(["a"], [[True, False, False]], LABELS, alpha)
