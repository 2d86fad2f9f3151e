"""The theorem of ranks by enumeration, and thresholds to the last bit."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.rules.scores import (
    EXACT,
    NUMBERS,
    PROBABILITIES,
    ROUNDING,
    AnswerScores,
    CalibrationScores,
    places,
)

BAGS = [
    *product([0.0, 1.0, 2.0], repeat=4),
    *product([-np.inf, 0.0, np.inf], repeat=3),
    (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
]


def in_turn(bag):
    """Each row of a bag as the new one, with the others as calibration rows."""
    for i, new in enumerate(bag):
        others = np.array(bag[:i] + bag[i + 1 :])
        yield CalibrationScores.from_rows(others), np.array([new])


@pytest.mark.parametrize("tolerance", [0.0, ROUNDING])
def test_p_values_are_valid_in_every_bag(tolerance):
    for bag in BAGS:
        n = len(bag) - 1
        p = [
            CalibrationScores(kept.sorted, tolerance=tolerance).p_values(new)[0]
            for kept, new in in_turn(bag)
        ]
        for k in range(n + 2):
            at_most = np.sum(np.array(p) <= k / (n + 1))
            assert at_most <= k
            assert at_most == k or len(set(bag)) < len(bag)


def test_smoothed_p_values_are_uniform_in_every_bag():
    for bag in BAGS:
        n = len(bag) - 1
        for e in (0.05, 0.1, 0.5, 0.77, 1.0):
            total = 0.0
            for kept, new in in_turn(bag):
                below, equal = kept.counts(new)
                # p <= e where the coin is at most this.
                total += np.clip((e * (n + 1) - below[0]) / (1 + equal[0]), 0, 1)
            assert total == pytest.approx(e * (n + 1), abs=1e-12)


def test_a_new_score_is_below_the_threshold_as_often_as_its_rank_says():
    for bag in BAGS:
        for r in range(len(bag)):
            below = sum(new[0] < kept.threshold(0, r) for kept, new in in_turn(bag))
            assert below <= r
            assert below == r or len(set(bag)) < len(bag)


def neighbours(values):
    """Values, the doubles next to them, and those about a tolerance away."""
    near = [values]
    for shift in (0.0, ROUNDING, -ROUNDING):
        with np.errstate(over="ignore", invalid="ignore"):
            moved = values + shift * (1 + np.abs(values))
        for _ in range(3):
            near += [moved, moved := np.nextafter(moved, np.inf)]
        moved = values + shift * (1 + np.abs(np.where(np.isinf(values), 0, values)))
        for _ in range(3):
            near += [moved, moved := np.nextafter(moved, -np.inf)]
    found = np.concatenate(near)
    return found[~np.isnan(found)]


@pytest.mark.parametrize("tolerance", [0.0, ROUNDING, 1e-3])
@pytest.mark.parametrize("scale", [1e-300, 1e-16, 1.0, 1e6, 1e300])
def test_thresholds_equal_comparison_with_tolerance_to_the_last_bit(tolerance, scale):
    rng = np.random.default_rng(0)
    extremes = [0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 5e-324]
    own = np.concatenate([scale * rng.normal(size=30), extremes, [scale, scale]])
    kept = CalibrationScores.from_rows(own, tolerance=tolerance)
    asked = neighbours(own)
    found = kept.counts(asked)
    assert (found.below >= 0).all()
    assert (found.equal >= 0).all()
    for r in range(len(own) + 1):
        cut = kept.threshold(0, r)
        np.testing.assert_array_equal(asked >= cut, found.not_above >= r)
        if np.isfinite(cut):
            beside = np.array([np.nextafter(cut, -np.inf), cut])
            assert (kept.counts(beside).not_above >= r).tolist() == [False, True]


def test_scores_within_the_tolerance_are_level():
    kept = CalibrationScores.from_rows(np.array([0.3, 1e9]), tolerance=ROUNDING)
    found = kept.counts(np.array([0.1 + 0.2, 0.3 + 1e-8, 1e9 + 0.5, 1e9 + 2]))
    assert found.equal.tolist() == [1, 0, 1, 0]
    assert found.below.tolist() == [0, 1, 1, 2]
    exact = CalibrationScores.from_rows(np.array([0.3]))
    assert exact.counts(np.array([0.1 + 0.2])).below.tolist() == [1]


def test_rows_rank_among_those_of_their_category():
    own, category = np.array([1.0, 5.0, 2.0, 6.0]), np.array([0, 1, 0, 1])
    kept = CalibrationScores.from_rows(own, category, range(3))
    assert kept.sizes.tolist() == [2, 2, 0]
    scores = np.array([[1.5, 5.5, 0.0]])
    np.testing.assert_allclose(kept.p_values(scores, np.arange(3)), [[2 / 3, 2 / 3, 1]])
    assert kept.p_values(np.array([-9.0]), -1).tolist() == [1.0]


def test_merged_parts_equal_one_machine():
    rng = np.random.default_rng(1)
    own, category = rng.integers(0, 9, 50) / 7, rng.integers(0, 3, 50)
    whole = CalibrationScores.from_rows(own, category, range(3), ROUNDING)
    parts = [
        CalibrationScores.from_rows(own[rows], category[rows], range(3), ROUNDING)
        for rows in np.split(rng.permutation(50), [7, 7, 30])
    ]
    merged = CalibrationScores.merged(parts)
    assert merged.tolerance == whole.tolerance
    for one, other in zip(merged.sorted, whole.sorted, strict=True):
        assert one.tobytes() == other.tobytes()


def test_merged_parts_may_know_different_categories():
    one = CalibrationScores.from_rows(np.array([3.0, 1.0]), np.array([0, 1]), (5, 8))
    other = CalibrationScores.from_rows(np.array([2.0, 4.0]), np.array([0, 1]), (2, 5))
    merged = CalibrationScores.merged([one, other])
    assert merged.names == (2, 5, 8)
    assert [own.tolist() for own in merged.sorted] == [[2], [3, 4], [1]]
    assert places(np.array([8, 3, 2, 9]), merged.names).tolist() == [2, -1, 0, -1]


def test_categories_may_be_counted_instead_of_named():
    own, category = np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 0, 2, 2])
    made = CalibrationScores.from_rows(own, category, 3)
    assert made.names == (0, 1, 2)
    assert [scores.tolist() for scores in made.sorted] == [[1.0, 3.0], [], [2.0, 5.0]]
    assert made.threshold(2, 1) == 2.0
    below, equal = made.counts(np.array([3.0, 3.0]), np.array([0, 2]))
    assert (below.tolist(), equal.tolist()) == ([1, 1], [1, 0])


@pytest.mark.parametrize("rounding", [EXACT, NUMBERS, PROBABILITIES])
@given(
    near=st.lists(
        st.one_of(st.floats(0, 1), st.sampled_from([1e-300, 1e-12, 0.5, 1 - 1e-12])),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_equal_by_rounding_is_an_interval_that_keeps_the_order(rounding, near):
    values = np.unique(neighbours(np.array(near)).clip(0, 1))
    low, high = rounding.lowered(values), rounding.raised(values)
    assert (low <= values).all()
    assert (values <= high).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    if rounding is EXACT:
        np.testing.assert_array_equal([low, high], [values, values])


def test_probabilities_near_their_ends_have_their_order():
    p = 1 - np.array([1e-6, 1e-9, 1e-12, 1e-14])
    assert (PROBABILITIES.raised(p[:-1]) < p[1:]).all()
    assert (PROBABILITIES.lowered(p[::-1][:-1]) > p[::-1][1:]).all()
    small = np.array([1e-300, 1e-100, 1e-12, 1e-6])
    assert (PROBABILITIES.raised(small[:-1]) < small[1:]).all()
    # Log odds, of probabilities that round to 1, and rows without a score.
    assert PROBABILITIES.raised(40.0) == NUMBERS.raised(40.0) > 40
    assert PROBABILITIES.lowered(-np.inf) == -np.inf
    assert PROBABILITIES.raised(np.inf) == np.inf


def test_a_cut_leaves_out_all_rows_that_are_as_sure():
    sureness = np.array([0.9, 0.7 + 1e-13, 0.7, 0.7 - 1e-13, 0.6])
    rows = AnswerScores.from_answers(sureness, np.zeros(5, dtype=bool), PROBABILITIES)
    assert rows.parted.tolist() == [True, False, False, True, True]
    assert [int((sureness > cut).sum()) for cut in rows.cuts] == [0, 1, 1, 1, 4, 5]
    exact = AnswerScores.from_answers(sureness, np.zeros(5, dtype=bool))
    assert exact.parted.all()
    np.testing.assert_array_equal(exact.cuts, exact.sureness)


def test_sorted_scores_have_one_kind_of_zero():
    own = np.array([0.0, -0.0, -0.0, 0.0] * 9)
    part = CalibrationScores.from_rows(own)
    for kept in (part, CalibrationScores.merged([part, part])):
        assert not np.signbit(kept.sorted[0]).any()
