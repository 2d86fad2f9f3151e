import itertools

import numpy as np

from prudent.calibration.ascent import batches_of_epochs, deal_folds, group_equal_rows
from prudent.calibration.learn import earliest_least_error


def test_equal_labelled_rows_share_a_group_in_sorted_order():
    keys = np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 1.0], [2.0, 1.0], [1.0, 4.0]])
    codes = np.array([0, 0, 0, 1, 0])
    np.testing.assert_array_equal(group_equal_rows(keys, codes), [2, 1, 2, 3, 0])


def test_equal_rows_share_a_fold():
    rng = np.random.default_rng(0)
    keys, codes = rng.integers(3, size=(60, 2)), rng.integers(2, size=60)
    groups = group_equal_rows(keys, codes)
    fold = deal_folds(groups, codes, 3, np.random.RandomState(0))
    for group in np.unique(groups):
        assert len(np.unique(fold[groups == group])) == 1


def test_folds_spread_every_class_evenly():
    codes = np.repeat([0, 1, 2], [11, 7, 5])
    groups = np.arange(23)
    fold = deal_folds(groups, codes, 5, np.random.RandomState(0))
    for k in range(3):
        sizes = np.bincount(fold[codes == k], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= 1


def test_folds_do_not_depend_on_row_order_or_repetition():
    rng = np.random.default_rng(1)
    keys, codes = rng.normal(size=(30, 2)), np.arange(30) % 3
    order = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 4, size=30)))

    def folds(rows):
        groups = group_equal_rows(keys[rows], codes[rows])
        return deal_folds(groups, codes[rows], 4, np.random.RandomState(5))

    np.testing.assert_array_equal(folds(np.arange(30))[order], folds(order))


def test_earliest_of_equal_totals_wins():
    assert earliest_least_error([(3.0, 1.0, 1.0 - 1e-12), (2.0, 1.0, 1.0)], 1e-9) == 1


def test_a_short_curve_goes_on_at_its_last_value():
    assert earliest_least_error([(3.0, 1.0), (3.0, 2.0, 1.0)], 0.0) == 2


def test_each_epoch_deals_every_row_once():
    batches = batches_of_epochs(7, 3, np.random.RandomState(0))
    for _ in range(2):
        epoch = np.concatenate(list(itertools.islice(batches, 3)))
        np.testing.assert_array_equal(np.sort(epoch), np.arange(7))
