"""OptimisticScoreClassifierCV: equal to a search fit by fit, in one pass."""

import pickle
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
)

import prudent
from prudent import OptimisticScoreClassifier, OptimisticScoreClassifierCV
from prudent.exceptions import PrudentWarning
from prudent.optimistic.classifier import PUBLISHED_RADII


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2, :6], y[::2]


def searched(X, y, choices, cv, scoring="accuracy", **settings):
    """The same choice by one fit a pair and fold."""
    search = GridSearchCV(
        OptimisticScoreClassifier(**settings),
        {"radius": [list(map(float, radii)) for radii in choices]},
        cv=cv,
        scoring=scoring,
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        return search.fit(X, y)


@pytest.mark.filterwarnings("ignore:the radii differ")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"likelihood": "nonparametric"},
        {"threshold": "bayes"},
        {"ball": "covariance"},
        {"rule": "minimax"},
        {"covariance": "pooled", "threshold": 1.5},
        {"threshold": lambda rows: 1 + np.abs(rows[:, 0])},
        {"rule": "minimax", "priors": [0.2, 0.8]},
    ],
)
def test_scores_are_those_of_a_search_over_pairs(cancer, settings):
    X, y = cancer
    grid = [0.0, 0.1, 1.0]
    ours = OptimisticScoreClassifierCV(radii=grid, cv=4, **settings).fit(X, y)
    theirs = searched(X, y, product(grid, grid), 4, **settings)
    np.testing.assert_array_equal(ours.cv_results_["radii"], list(product(grid, grid)))
    for i in range(4):
        np.testing.assert_allclose(
            ours.cv_results_[f"split{i}_test_score"],
            theirs.cv_results_[f"split{i}_test_score"],
            rtol=1e-12,
        )
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_array_equal(ours.radii_, theirs.best_params_["radius"])
    np.testing.assert_array_equal(
        ours.decision_function(X), theirs.best_estimator_.decision_function(X)
    )


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "neg_log_loss"])
def test_any_scorer_of_scikit_learn(cancer, scoring):
    X, y = cancer
    ours = OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=3, scoring=scoring)
    theirs = searched(X, y, product([0.1, 1.0], repeat=2), 3, scoring)
    np.testing.assert_allclose(
        ours.fit(X, y).cv_results_["mean_test_score"],
        theirs.cv_results_["mean_test_score"],
    )


def test_more_classes_have_one_radius_or_the_choices_given():
    X, y = load_wine(return_X_y=True)
    common = OptimisticScoreClassifierCV(radii=[0.0, 0.5, 2.0], cv=3).fit(X, y)
    theirs = searched(X, y, [[r] * 3 for r in (0.0, 0.5, 2.0)], 3)
    np.testing.assert_allclose(
        common.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    choices = [[0.5, 0.1, 0.0], [0.0, 0.1, 3.0], [0.5, 0.2, 0.0]]
    given = OptimisticScoreClassifierCV(radii=choices, cv=3).fit(X, y)
    theirs = searched(X, y, choices, 3)
    np.testing.assert_array_equal(given.cv_results_["radii"], choices)
    np.testing.assert_allclose(
        given.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


def test_default_grid_is_the_published_one(cancer):
    X, y = cancer
    model = OptimisticScoreClassifierCV(cv=2).fit(X, y)
    values = np.sqrt(6) * np.array(PUBLISHED_RADII)
    np.testing.assert_allclose(
        model.cv_results_["radii"], list(product(values, values))
    )


def test_weights_are_repetitions_in_fits_and_scores(cancer):
    X, y = cancer
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y))
    fold = rng.integers(0, 3, len(y))
    rows = np.arange(len(y))
    splits = [(rows[fold != i], rows[fold == i]) for i in range(3)]
    weighted = OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=splits)
    weighted.fit(X, y, sample_weight=weight)
    again = np.repeat(fold, weight)
    rows = np.arange(len(again))
    splits = [(rows[again != i], rows[again == i]) for i in range(3)]
    repeated = OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=splits)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-8
    )
    scored = OptimisticScoreClassifierCV(
        radii=[0.1, 1.0], cv=3, scoring="balanced_accuracy"
    ).fit(X, y, sample_weight=weight)
    assert 0.5 < scored.best_score_ <= 1


def test_a_class_absent_from_a_training_part_counts_as_missed():
    X, y = load_iris(return_X_y=True)
    rows = np.arange(150)
    splits = [(rows[y < 2], rows[y == 2]), (rows[::2], rows[1::2])]
    model = OptimisticScoreClassifierCV(
        radii=[0.1, 1.0], cv=splits, priors=[0.3, 0.3, 0.4], threshold="bayes"
    ).fit(X, y)
    np.testing.assert_array_equal(model.cv_results_["split0_test_score"], 0.0)
    assert (model.cv_results_["split1_test_score"] > 0.9).all()


def test_rare_classes_are_warned_about():
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:50, 50:53]
    with pytest.warns(PrudentWarning, match="least populated class"):
        OptimisticScoreClassifierCV(radii=[0.1], cv=4, threshold="bayes").fit(
            X[kept], y[kept]
        )


def test_it_has_the_answers_of_the_plain_classifier_but_no_moment_methods(cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=3).fit(frame, y)
    plain = OptimisticScoreClassifier(radius=model.radii_).fit(frame, y)
    for method in (
        *("predict", "predict_proba", "predict_set", "decision_function"),
        *("optimistic_scores", "pessimistic_scores", "posterior_bounds"),
    ):
        np.testing.assert_array_equal(
            getattr(model, method)(frame), getattr(plain, method)(frame)
        )
    means, _ = model.most_plausible_moments(frame.iloc[[0]])
    assert means.shape == (2, 6)
    assert model.guarantees_ == ()
    for method in ("fit_moments", "from_moments", "partial_fit"):
        assert not hasattr(model, method)
    assert prudent.predict_set(model, frame).shape == (len(y), 2)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.85


def test_it_is_pickled_and_saved(cancer, tmp_path):
    X, y = cancer
    model = OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=3).fit(X, y)
    prudent.save(model, tmp_path / "model.prudent")
    for again in (
        pickle.loads(pickle.dumps(model)),
        prudent.load(tmp_path / "model.prudent"),
    ):
        np.testing.assert_array_equal(
            again.decision_function(X), model.decision_function(X)
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radii": []}, r"one or more numbers, .* got \[\]"),
        ({"radii": [[0.1, 0.2], [0.1]]}, r"rows of one number a class, got \[\[0.1"),
        ({"radii": [0.1, -1.0]}, "`radii` must be finite and >= 0, got -1.0"),
        ({"radii": [[0.1, np.nan]]}, "got nan"),
        (
            {"radii": [[0.1, 0.2, 0.3]]},
            r"for each of the 2 classes, got shape \(1, 3\)",
        ),
        ({"scoring": "utility"}, "'scoring' parameter"),
        ({"priors": [0.5, 0.3, 0.2]}, "2 numbers >= 0 that sum to 1"),
        ({"rule": "minimax", "likelihood": "nonparametric"}, "likelihood='gaussian'"),
        ({"covariance": "best"}, "'pooled'"),
    ],
)
def test_bad_settings_are_errors_with_the_value(cancer, settings, message):
    with pytest.raises(ValueError, match=message):
        OptimisticScoreClassifierCV(**settings).fit(*cancer)


@pytest.mark.slow
def test_a_grid_of_a_hundred_pairs_is_many_times_faster_than_a_search(cancer):
    X, y = cancer
    folds = StratifiedKFold(5)
    grid = np.sqrt(6) * np.array(PUBLISHED_RADII)
    times = []
    for run in (
        lambda: OptimisticScoreClassifierCV(cv=folds).fit(X, y),
        lambda: searched(X, y, list(product(grid, grid)), folds),
    ):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    assert times[0] < times[1] / 5
