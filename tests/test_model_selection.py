"""Out-of-fold set predictions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from prudent import OptimisticScoreClassifier
from prudent.model_selection import cross_val_predict_set


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], 30)
    return rng.normal(size=(90, 2)) + y[:, None], y


MODEL = OptimisticScoreClassifier(radius_scale=0.3, threshold="bayes")


def test_equals_a_loop_over_the_folds(data):
    X, y = data
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    expected = np.zeros((90, 3), dtype=bool)
    for train, test in folds.split(X, y):
        expected[test] = clone(MODEL).fit(X[train], y[train]).predict_set(X[test])
    np.testing.assert_array_equal(
        cross_val_predict_set(MODEL, X, y, cv=folds), expected
    )


def test_class_absent_from_a_training_part_is_in_none_of_its_sets(data):
    X, y = data
    sets = cross_val_predict_set(MODEL, X, y, cv=KFold(3))
    for k in range(3):
        assert not sets[y == k, k].any()


def test_groups_and_fit_parameters_reach_the_folds(data):
    X, y = data
    groups = np.tile(np.arange(5), 18)
    weight = np.random.default_rng(0).integers(1, 4, size=90)
    sets = cross_val_predict_set(
        MODEL, X, y, cv=GroupKFold(5), groups=groups, params={"sample_weight": weight}
    )
    train, test = groups != 0, groups == 0
    alone = clone(MODEL).fit(X[train], y[train], sample_weight=weight[train])
    np.testing.assert_array_equal(sets[test], alone.predict_set(X[test]))


def test_folds_that_do_not_partition_are_refused(data):
    X, y = data
    everything = np.arange(90)
    with pytest.raises(ValueError, match="row 0 is tested 2 times"):
        cross_val_predict_set(
            MODEL, X, y, cv=[(everything, everything), (everything, everything)]
        )
