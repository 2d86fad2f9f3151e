"""The exact threshold and the offsets against enumeration."""

import itertools
import math

import numpy as np
import pytest

from prudent.optimistic import best_threshold
from prudent.optimistic.learn import best_offsets


def n_correct(threshold, ratios, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return weight[(ratios >= threshold) == (y == 1)].sum()


def best_by_enumeration(ratios, y, weight=None):
    cuts = [-np.inf, *ratios, np.inf]
    return max(n_correct(cut, ratios, y, weight) for cut in cuts)


@pytest.mark.parametrize("seed", range(30))
def test_number_correct_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    ratios = rng.normal(size=40).round(1)  # ties
    y = (ratios + rng.normal(size=40) > 0).astype(int)
    best = best_threshold(ratios, y)
    assert best.n_correct == best_by_enumeration(ratios, y)
    assert best.n_correct == n_correct(best.log_threshold, ratios, y)


def test_every_threshold_of_the_interval_gives_the_same_predictions():
    rng = np.random.default_rng(3)
    ratios, y = rng.normal(size=50), rng.integers(0, 2, 50)
    best = best_threshold(ratios, y)
    a, b = best.interval
    expected = ratios >= best.log_threshold
    for threshold in (math.nextafter(a, b), (a + b) / 2, b):
        np.testing.assert_array_equal(ratios >= threshold, expected)


def test_zero_is_chosen_when_its_interval_is_best():
    best = best_threshold([-1.0, 2.0], [0, 1])
    assert best.log_threshold == 0.0
    assert best.interval == (-1.0, 2.0)


def test_the_best_interval_nearest_to_zero_is_chosen_with_its_middle():
    best = best_threshold([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1])
    assert best.n_correct == 3
    assert best.log_threshold == 1.5


def test_one_class_only_sends_all_rows_there():
    assert best_threshold([-3.0, -2.0], [1, 1]).log_threshold == -3.0
    best = best_threshold([2.0, 3.0], [0, 0])
    assert best.log_threshold == math.nextafter(3.0, math.inf)
    assert best.n_correct == 2


def test_adjacent_floats_are_separated():
    low = 1.0
    high = math.nextafter(low, 2.0)
    best = best_threshold([low, high], [0, 1])
    assert best.log_threshold == high
    assert best.n_correct == 2


def test_equal_ratios_are_never_cut():
    best = best_threshold([1.0, 1.0, 1.0], [0, 1, 1])
    assert best.n_correct == 2
    assert best.log_threshold == 0.0


def test_weight_equals_repetition():
    rng = np.random.default_rng(5)
    ratios, y = rng.normal(size=30), rng.integers(0, 2, 30)
    weight = rng.integers(1, 4, 30)
    weighted = best_threshold(ratios, y, weight)
    repeated = best_threshold(np.repeat(ratios, weight), np.repeat(y, weight))
    assert weighted == repeated


@pytest.mark.parametrize(
    ("ratios", "y", "message"),
    [
        ([], [], "not empty"),
        ([1.0, 2.0], [0], "of one length"),
        ([1.0, np.nan], [0, 1], "NaN"),
        ([1.0, 2.0], [0, 2], "0 and 1 only"),
    ],
)
def test_bad_input_is_an_error(ratios, y, message):
    with pytest.raises(ValueError, match=message):
        best_threshold(ratios, y)


def accuracy(scores, offsets, codes):
    return ((scores + offsets).argmax(axis=1) == codes).mean()


@pytest.mark.parametrize("seed", range(5))
def test_no_change_of_one_offset_improves_training_accuracy(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, 80)
    scores = rng.normal(size=(80, 4)) + np.array([0.0, 2.0, -1.0, 0.5])
    scores[np.arange(80), codes] += 1.0
    offsets = best_offsets(scores, codes)
    found = accuracy(scores, offsets, codes)
    assert abs(offsets.sum()) < 1e-12
    assert found >= accuracy(scores, np.zeros(4), codes)
    for c, change in itertools.product(range(4), np.linspace(-5, 5, 101)):
        moved = offsets.copy()
        moved[c] += change
        assert accuracy(scores, moved, codes) <= found


def test_offsets_of_two_classes_are_a_best_threshold():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, 60)
    scores = rng.normal(size=(60, 2)) + np.array([3.0, 0.0])
    scores[np.arange(60), codes] += 1.0
    best = best_threshold(scores[:, 1] - scores[:, 0], codes)
    offsets = best_offsets(scores, codes)
    assert accuracy(scores, offsets, codes) == best.n_correct / 60


def test_offsets_weigh_rows_as_repetitions():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, 40)
    scores = rng.normal(size=(40, 3))
    weight = rng.integers(1, 4, 40)
    np.testing.assert_allclose(
        best_offsets(scores, codes, weight.astype(float)),
        best_offsets(np.repeat(scores, weight, axis=0), np.repeat(codes, weight)),
    )


@pytest.mark.parametrize("weight", [[1.0], [-1.0, 2.0], [np.nan, 2.0], [np.inf, 1.0]])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ValueError, match="one finite weight >= 0 for each of the 2"):
        best_threshold([1.0, 2.0], [0, 1], weight)
