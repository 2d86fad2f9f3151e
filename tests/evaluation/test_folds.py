import numpy as np
import pytest
from scipy.stats import chisquare

from prudent import ClassMoments
from prudent.evaluation.evaluate import (
    can_be_learned,
    make_folds,
    plain_sample,
    training_moments,
)

CODES = np.repeat([0, 1, 2], [40, 25, 12])
CLASSES = np.array(["a", "b", "c"])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = CLASSES[CODES]
    return rng.normal(1e6, 1.0, (len(y), 4)) + CODES[:, None], y


def test_each_row_is_tested_once_in_each_repeat():
    folds = make_folds(CODES, 4, 3, random_state=1)
    for repeat in (1, 2, 3):
        tested = np.concatenate([f.test for f in folds if f.repeat == repeat])
        assert sorted(tested) == list(range(len(CODES)))


def test_training_and_test_rows_of_a_fold_are_complementary():
    for fold in make_folds(CODES, 5, 1, random_state=0):
        assert sorted([*fold.train, *fold.test]) == list(range(len(CODES)))


def test_folds_are_numbered_from_one_within_each_repeat():
    folds = make_folds(CODES, 3, 2, random_state=0)
    numbers = [(fold.repeat, fold.number) for fold in folds]
    assert numbers == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_merged_training_moments_equal_those_of_the_training_rows(table, n_folds):
    X, y = table
    folds = make_folds(CODES, n_folds, 1, random_state=0)
    merged, _ = training_moments(X, CODES, CLASSES, folds)
    for fold, moments in zip(folds, merged, strict=True):
        direct = ClassMoments.from_arrays(X[fold.train], y[fold.train])
        np.testing.assert_array_equal(moments.classes, direct.classes)
        np.testing.assert_array_equal(moments.weight, direct.weight)
        np.testing.assert_allclose(moments.mean, direct.mean, rtol=1e-15)
        scale = np.abs(direct.scatter).max()
        np.testing.assert_allclose(moments.scatter, direct.scatter, atol=1e-13 * scale)


def test_moments_of_all_rows_come_with_those_of_the_folds(table):
    X, y = table
    folds = make_folds(CODES, 5, 1, random_state=0)
    _, total = training_moments(X, CODES, CLASSES, folds)
    direct = ClassMoments.from_arrays(X, y)
    np.testing.assert_allclose(total.scatter, direct.scatter, rtol=1e-12, atol=1e-11)


def test_sample_is_sorted_and_without_repetition():
    chosen = plain_sample(77, 50, random_state=0)
    assert len(chosen) == len(np.unique(chosen)) == 50
    assert (np.diff(chosen) > 0).all()


def test_sample_larger_than_the_table_is_the_table():
    np.testing.assert_array_equal(plain_sample(77, 1000, 0), np.arange(77))


def test_rows_of_a_sample_are_drawn_alike():
    counts = np.zeros(40)
    for seed in range(1000):
        counts[plain_sample(40, 10, seed)] += 1
    assert counts.sum() == 10_000
    # Ten of forty without replacement: less spread than the test assumes.
    assert chisquare(counts).pvalue > 0.001


def test_groups_are_drawn_whole_and_alike_whatever_their_size():
    groups = np.repeat(np.arange(20), [1] * 10 + [19] * 10)
    counts = np.zeros(20)
    for seed in range(1000):
        chosen = plain_sample(200, 50, seed, groups)
        drawn = np.unique(groups[chosen])
        assert len(drawn) == 5
        assert len(chosen) == np.isin(groups, drawn).sum()
        counts[drawn] += 1
    assert chisquare(counts).pvalue > 0.001


def test_groups_stay_together_and_one_random_row_of_each_is_tested():
    groups = np.arange(len(CODES)) // 4
    drawn = set()
    for seed in range(20):
        for fold in make_folds(CODES, 4, 1, seed, groups):
            assert not set(groups[fold.train]) & set(groups[fold.held_out])
            assert sorted(groups[fold.test]) == sorted(set(groups[fold.held_out]))
            drawn |= {int(row) % 4 for row in fold.test if groups[row] == 2}
    assert drawn == {0, 1, 2, 3}


@pytest.mark.parametrize("n_rare", [1, 2, 3])
def test_a_class_is_learned_where_two_of_its_rows_are(n_rare):
    codes = np.repeat([0, 1], [30, n_rare])
    folds = make_folds(codes, 5, 1, 0)
    tested = np.concatenate([fold.test for fold in folds])
    assert sorted(tested) == list(range(len(codes)))
    for fold in folds:
        left = n_rare - np.count_nonzero(codes[fold.held_out] == 1)
        expected = left if left >= 2 else 0
        assert np.count_nonzero(codes[fold.train] == 1) == left
        trained = codes[fold.train]
        assert np.count_nonzero(trained[can_be_learned(trained)] == 1) == expected
