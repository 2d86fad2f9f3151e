import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

from prudent import ImpreciseDiscriminantAnalysis, ImpreciseDiscriminantAnalysisCV
from prudent.exceptions import PrudentWarning
from prudent.imprecise.cross_validation import REWARDS, mean_utilities
from prudent.metrics import (
    discounted_accuracy_score,
    u65_score,
    u80_score,
)

SCORES = {
    "discounted_accuracy": discounted_accuracy_score,
    "u65": u65_score,
    "u80": u80_score,
}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("scoring", SCORES)
def test_results_equal_a_fit_and_a_prediction_for_every_value(iris, scoring):
    X, y = iris
    grid = [0.3, 1.0, 2.5, 8.0]
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=grid, shrinkages=["empirical", 0.2], scoring=scoring, cv=3
    ).fit(X, y)
    expected = []
    for covariance in ("empirical", 0.2):
        for c in grid:
            plain = ImpreciseDiscriminantAnalysis(imprecision=c, covariance=covariance)
            expected.append(
                [
                    SCORES[scoring](
                        y[test],
                        plain.fit(X[train], y[train]).predict_set(X[test]),
                        plain.classes_,
                    )
                    for train, test in StratifiedKFold(3).split(X, y)
                ]
            )
    expected = np.array(expected)
    results = model.cv_results_
    for i in range(3):
        np.testing.assert_allclose(results[f"split{i}_test_score"], expected[:, i])
    np.testing.assert_allclose(results["mean_test_score"], expected.mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], expected.std(axis=1))
    assert results["imprecision"].tolist() == grid * 2
    assert results["shrinkage"].tolist() == ["empirical"] * 4 + [0.2] * 4
    best = expected.mean(axis=1).argmax()
    assert model.imprecision_ == grid[best % 4]
    assert model.shrinkage_ == ["empirical", 0.2][best // 4]
    assert model.best_score_ == pytest.approx(expected.mean(axis=1).max())


def test_the_refitted_model_answers_every_method(iris):
    X, y = iris
    model = ImpreciseDiscriminantAnalysisCV(covariance_type="tied", cv=3).fit(X, y)
    plain = ImpreciseDiscriminantAnalysis(
        covariance_type="tied", imprecision=model.imprecision_
    ).fit(X, y)
    for method in ("predict", "predict_proba", "predict_set", "critical_imprecision"):
        np.testing.assert_array_equal(
            getattr(model, method)(X), getattr(plain, method)(X)
        )
    np.testing.assert_array_equal(model.log_joint_bounds(X), plain.log_joint_bounds(X))
    np.testing.assert_array_equal(
        model.predict(X, "maximin"), plain.predict(X, "maximin")
    )
    np.testing.assert_array_equal(model.means_, plain.means_)
    assert model.n_unresolved(X) == 0


def test_the_default_grid_is_the_papers():
    X, y = load_iris(return_X_y=True)
    model = ImpreciseDiscriminantAnalysisCV(covariance_type="identity", cv=2).fit(X, y)
    grid = model.cv_results_["imprecision"]
    assert len(grid) == 500
    assert grid[0] == 0.01
    assert grid[-1] == 5.0


def test_equals_go_to_the_first_shrinkage_and_the_smallest_imprecision():
    X = np.array([0.0, 0.1, 0.2, 100.0, 100.1, 100.2])[:, None]
    y = [0, 0, 0, 1, 1, 1]
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=[0.02, 0.01], shrinkages=["oas", "empirical"], cv=3
    ).fit(X, y)
    assert model.imprecision_ == 0.01
    assert model.shrinkage_ == "oas"


def test_a_label_absent_from_training_is_a_miss(iris):
    X, y = iris
    folds = list(LeaveOneGroupOut().split(X, y, groups=y == 2))
    model = ImpreciseDiscriminantAnalysisCV(imprecisions=[1.0], cv=[folds[1]])
    model.fit(X, y)
    assert model.best_score_ == 0.0


def test_priors_are_those_of_the_classes_in_a_training_part(iris):
    X, y = iris
    folds = list(LeaveOneGroupOut().split(X, y, groups=y == 2))
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=[1.0], cv=[folds[1]], priors=[0.3, 0.3, 0.4]
    )
    assert model.fit(X, y).best_score_ == 0.0
    with pytest.raises(ValueError, match="> 0 for at least one class that has rows"):
        model.set_params(priors=[0.0, 0.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match="must hold 3 numbers"):
        model.set_params(priors=[0.5, 0.5]).fit(X, y)


def test_positions_survive_rows_of_weight_zero(iris):
    X, y = iris
    weight = np.ones(150)
    weight[::7] = 0.0
    folds = list(StratifiedKFold(3).split(X, y))
    weighted = ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 2.0], cv=folds)
    weighted.fit(X, y, sample_weight=weight)
    kept = weight > 0
    place = np.cumsum(kept) - 1
    moved = [tuple(place[p[kept[p]]] for p in fold) for fold in folds]
    removed = ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 2.0], cv=moved)
    removed.fit(X[kept], y[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], removed.cv_results_["mean_test_score"]
    )


def test_a_class_smaller_than_the_folds_warns(iris):
    X, y = iris
    with pytest.warns(PrudentWarning, match="least populated class"):
        ImpreciseDiscriminantAnalysisCV(imprecisions=[1.0], cv=5).fit(X[:103], y[:103])


def test_a_node_limit_met_in_the_folds_warns():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 20)) + 3 * rng.normal(size=(3, 20))[y]
    model = ImpreciseDiscriminantAnalysisCV(max_nodes=0, cv=2, covariance_type="tied")
    with pytest.warns(ConvergenceWarning, match="met max_nodes=0"):
        model.fit(X, y)


def test_it_has_no_incremental_fit():
    model = ImpreciseDiscriminantAnalysisCV()
    for method in ("partial_fit", "fit_moments", "from_moments"):
        assert not hasattr(model, method)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"imprecisions": []}, "`imprecisions` must be one or more"),
        ({"imprecisions": [-1.0]}, "`imprecisions` must be one or more"),
        ({"shrinkages": []}, "`shrinkages` must hold at least one"),
        ({"shrinkages": [2.0]}, "`shrinkages` must be one of"),
        ({"scoring": "accuracy"}, "scoring"),
        ({"criterion": "interval"}, "criterion"),
    ],
)
def test_bad_settings_are_named(iris, params, message):
    with pytest.raises(ValueError, match=message):
        ImpreciseDiscriminantAnalysisCV(**params).fit(*iris)


@pytest.mark.parametrize("scoring", SCORES)
def test_utilities_equal_the_metrics(scoring):
    rng = np.random.default_rng(0)
    critical = rng.exponential(size=(40, 4))
    critical[np.arange(40), rng.integers(4, size=40)] = 0.0
    y = rng.integers(5, size=40)  # label 4 is unknown to the model
    grid = np.array([0.1, 0.7, 2.0])
    truth = y[:, None] == np.arange(4)
    ours = mean_utilities(critical, truth, np.ones(40), grid, REWARDS[scoring])
    expected = [SCORES[scoring](y, critical <= c, np.arange(4)) for c in grid]
    np.testing.assert_allclose(ours, expected)
