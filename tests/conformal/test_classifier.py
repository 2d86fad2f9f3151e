"""ConformalClassifier: promises in words, sets, errors, degenerate data, company."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import prudent
from prudent import ConformalClassifier
from prudent.conformal.classifier import bytes_of_rows, share_model
from prudent.conformal.ranking import cross_bound
from prudent.core.assumptions import Assumption
from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.core.classes import log_odds_against
from prudent.core.guarantee import violated_rows
from prudent.evaluation.evaluate import decide
from prudent.exceptions import PrudentWarning, SingularCovarianceError

EXCHANGEABLE = Assumption.TRAINING_EXCHANGEABLE
OF_CLASS = Assumption.TRAINING_EXCHANGEABLE_CLASS
INDEPENDENT = Assumption.INDEPENDENT
KNOWN = Assumption.KNOWN_LABEL
BOOK = "Vovk, Gammerman and Shafer 2005, chapter 2"


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return X[order], y[order]


def halves(rows):
    X, y = rows
    return X[:75], y[:75], X[75:], y[75:]


def test_full_promise_in_words(iris):
    X, y, _, _ = halves(iris)
    promise = ConformalClassifier().fit(X, y).guarantees_[0]
    assert (promise.quantity, promise.sense) == ("coverage", ">=")
    assert promise.bound == 1 - 7 / 76
    assert promise.confidence is None
    assert promise.average_over == "training samples"
    assert promise.assumptions == (EXCHANGEABLE,)
    assert dict(promise.evidence) == {"training rows": 75.0, "rank": 7.0}
    assert (promise.source, promise.scope) == (BOOK, None)


def test_smoothed_promise_is_the_level_and_has_no_rank(iris):
    X, y, _, _ = halves(iris)
    promise = ConformalClassifier(ties="smoothed", level=0.03).fit(X, y).guarantees_[0]
    assert promise.bound == 0.97
    assert dict(promise.evidence) == {"training rows": 75.0}


def test_promises_by_class(iris):
    X, y, _, _ = halves(iris)
    model = ConformalClassifier(condition="class").fit(X, y)
    for label, n, promise in zip(
        model.classes_, model.class_count_, model.guarantees_, strict=True
    ):
        assert promise.scope == label
        assert promise.bound == 1 - mean_rank(int(n), 0.1) / (n + 1)
        assert promise.assumptions == (OF_CLASS, KNOWN)
        assert promise.evidence["training rows"] == n
    assert model.unseen_label_p_value_ == 1.0


@pytest.mark.parametrize("cv", [4, 5])
def test_cross_promise_is_the_theorem(iris, cv):
    X, y, _, _ = halves(iris)
    model = ConformalClassifier(
        GaussianNB(), method="cross", cv=cv, random_state=0
    ).fit(X, y)
    promise = model.guarantees_[0]
    assert model.method_ == "cross"
    assert len(model.estimators_) == cv
    assert promise.bound == 1 - cross_bound(75, cv, 7)
    assert promise.assumptions == (EXCHANGEABLE, KNOWN)
    assert promise.source == "Vovk 2015; Barber et al. 2021"


def test_cross_bounds_of_the_page():
    assert round(cross_bound(200, 10, 20), 4) == 0.2636
    assert round(cross_bound(200, 5, 20), 4) == 0.2341
    assert round(cross_bound(40, 5, 4), 4) == 0.2917
    assert cross_bound(20, 5, 0) == 0.0
    assert cross_bound(41, 5, 4) == 2 * (4 + 4) / (41 + 5)
    assert cross_bound(40, 5, 4, equal_folds=False) == 2 * (4 + 4) / 45


def test_split_promises(iris):
    X, y, _, _ = halves(iris)
    for confidence in (None, 0.95):
        model = ConformalClassifier(
            GaussianNB(), confidence=confidence, random_state=0
        ).fit(X, y)
        assert model.method_ == "split"
        assert model.guarantees_ is model.rule_.guarantees
        promise = model.guarantees_[0]
        assert model.n_calibration_ == 23  # ceil(.3 * 75)
        assert promise.evidence["calibration rows"] == 23
        if confidence is None:
            assert promise.bound == 1 - 2 / 24
            assert promise.assumptions[0] == Assumption.EXCHANGEABLE
            assert promise.average_over == "training samples"
        else:
            assert (promise.bound, promise.confidence) == (0.9, 0.95)
            assert promise.assumptions[0] == INDEPENDENT
            assert promise.source == "Vovk 2012"
            # Fewer than 29 rows cannot keep it but with every label.
            assert model.predict_set(X).all()


def test_a_confidence_is_of_held_out_rows(iris):
    X, y, _, _ = halves(iris)
    model = ConformalClassifier(confidence=0.9, level=0.2, random_state=0).fit(X, y)
    assert model.method_ == "split"
    assert isinstance(model.estimator_, ConformalClassifier)
    assert model.guarantees_[0].confidence == 0.9
    assert ConformalClassifier(level=0.2).fit(X, y).method_ == "full"


class Counted(GaussianNB):
    """Counts how often it is asked."""

    def predict_proba(self, X):
        self.n_asked_ = getattr(self, "n_asked_", 0) + 1
        return super().predict_proba(X)


@pytest.mark.parametrize("method", ["split", "cross"])
@pytest.mark.parametrize(
    "answer", ["predict", "predict_set", "p_values", "predict_with_p_values"]
)
def test_a_prediction_asks_the_model_once(iris, method, answer):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier(Counted(), method=method, random_state=0).fit(X, y)
    asked = [model.estimator_] if method == "split" else model.estimators_
    for estimator in asked:
        estimator.n_asked_ = 0
    getattr(model, answer)(X_new)
    assert [estimator.n_asked_ for estimator in asked] == [1] * len(asked)
    labels, p_values = model.predict_with_p_values(X_new)
    np.testing.assert_array_equal(labels, model.predict(X_new))
    np.testing.assert_array_equal(p_values, model.p_values(X_new))


def test_a_comparison_asks_the_model_once(iris):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier(Counted(), random_state=0).fit(X, y)
    model.estimator_.n_asked_ = 0
    _, sets, _ = decide(model, X_new, model.classes_)
    assert model.estimator_.n_asked_ == 1
    np.testing.assert_array_equal(sets, model.predict_set(X_new))


def test_a_model_used_again_promises_and_answers_like_one_of_its_own(iris):
    X, y, X_new, _ = halves(iris)
    plain = ConformalClassifier(method="split", random_state=0).fit(X, y)
    asked = {"method": "split", "random_state": 0, "level": 0.2, "condition": "class"}
    alone = ConformalClassifier(**asked).fit(X, y)
    other = ConformalClassifier(**asked)
    share_model(plain, other)
    other.fit(X, y)
    assert other.estimator_ is plain.estimator_
    assert other.guarantees_ == alone.guarantees_
    np.testing.assert_array_equal(other.p_values(X_new), alone.p_values(X_new))
    np.testing.assert_array_equal(other.predict_set(X_new), alone.predict_set(X_new))
    other.fit(X[::2], y[::2])  # other rows
    assert other.estimator_ is not plain.estimator_


@pytest.mark.parametrize(
    "differs",
    [
        {"calibration_size": 0.4},
        {"random_state": None},
        {"random_state": 1},
        {"model": "gaussian"},
        {"method": "cross"},
    ],
)
def test_no_model_is_used_again_by_settings_that_would_learn_another(iris, differs):
    X, y, _, _ = halves(iris)
    plain = ConformalClassifier(method="split", random_state=0).fit(X, y)
    other = ConformalClassifier(**{"method": "split", "random_state": 0, **differs})
    share_model(plain, other)
    other.fit(X, y)
    assert getattr(other, "estimator_", None) is not plain.estimator_


@pytest.mark.parametrize("settings", [{}, {"method": "cross"}, {"estimator": None}])
@pytest.mark.parametrize("ties", ["conservative", "smoothed"])
def test_parameters_changed_after_the_fit_change_no_answer(iris, settings, ties):
    if ties == "smoothed" and "method" in settings:
        return  # not promised
    X, y, X_new, _ = halves(iris)
    settings = {"estimator": GaussianNB(), "random_state": 0, "ties": ties, **settings}
    model = ConformalClassifier(**settings).fit(X, y)
    sets, p_values = model.predict_set(X_new), model.p_values(X_new)
    promises = model.guarantees_
    model.set_params(level=0.5, confidence=0.9, ties="smoothed", condition="class")
    np.testing.assert_array_equal(model.predict_set(X_new), sets)
    np.testing.assert_array_equal(model.p_values(X_new), p_values)
    assert model.guarantees_ is promises
    assert model.with_level(0.3).guarantees_[0].confidence is None  # as fitted


def test_lists_of_texts_and_sparse_rows_are_held_out():
    texts = ["a good day", "a bad night"] * 40
    labels = np.array(["+", "-"] * 40)
    counted = CountVectorizer().fit_transform(texts)
    for rows, estimator in (
        (texts, make_pipeline(CountVectorizer(), LogisticRegression())),
        (counted, LogisticRegression()),
    ):
        model = ConformalClassifier(estimator, method="split", random_state=0)
        model.fit(rows, labels)
        assert model.n_calibration_ == 24
        assert model.predict_set(rows)[:2].tolist() == [[True, False], [False, True]]


def test_frozen_estimator_ranks_by_every_row(iris):
    X, y, X_new, y_new = halves(iris)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    model = ConformalClassifier(frozen).fit(X_new, y_new)
    assert model.method_ == "split"
    assert model.n_calibration_ == 75
    assert model.guarantees_[0].average_over == "calibration rows"
    model = ConformalClassifier(frozen, confidence=0.95).fit(X_new, y_new)
    assert model.guarantees_[0].evidence["rank"] == high_probability_rank(75, 0.1, 0.95)


def test_sets_hold_labels_above_the_level_and_the_prediction(iris):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier().fit(X, y)
    p_values = model.p_values(X_new)
    for level in (0.02, 0.1, 0.4):
        rank = mean_rank(75, level)
        bare = model.predict_set(X_new, level, allow_empty=True)
        np.testing.assert_array_equal(bare, np.rint(p_values * 76) > rank)
        full = model.predict_set(X_new, level)
        predicted = model.predict(X_new)[:, None] == model.classes_
        np.testing.assert_array_equal(full, bare | predicted)
        np.testing.assert_array_equal(model.with_level(level).predict_set(X_new), full)
    np.testing.assert_array_equal(model.credibility(X_new), p_values.max(axis=1))


def test_with_level_is_a_fitted_copy_with_its_own_promise(iris):
    X, y, _, _ = halves(iris)
    model = ConformalClassifier().fit(X, y)
    other = model.with_level(0.3)
    assert (model.level, other.level) == (0.1, 0.3)
    assert other.guarantees_[0].bound == 1 - 22 / 76
    assert model.guarantees_[0].bound == 1 - 7 / 76
    with pytest.raises(ValueError, match="level"):
        model.with_level(1.2)


def test_few_rows_promise_every_label():
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), [0, 0, 1, 1]
    model = ConformalClassifier().fit(X, y)
    assert model.predict_set([[0.0], [9.0]]).all()
    assert model.guarantees_[0].bound == 1.0
    assert model.guarantees_[0].assumptions == (EXCHANGEABLE, KNOWN)


def test_p_value_of_an_unseen_label_is_what_a_row_of_it_would_get(iris):
    X, y, X_new, _ = halves(iris)
    y = y.copy()
    y[0] = 7  # one class of one row
    model = ConformalClassifier().fit(X, y)
    assert model.unseen_label_p_value_ == 2 / 76
    assert model.guarantees_[0].assumptions == (EXCHANGEABLE,)
    model = model.with_level(0.02)
    assert model.guarantees_[0].assumptions == (EXCHANGEABLE, KNOWN)
    # A label of one row stands for it: without that row, its p-values are those.
    assert (model.p_values(X_new)[:, 3] >= 1 / 76).all()


def test_smoothed_p_values_repeat_in_any_batch(iris):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier(ties="smoothed", random_state=0).fit(X, y)
    p_values = model.p_values(X_new)
    np.testing.assert_array_equal(p_values[::-1], model.p_values(X_new[::-1]))
    np.testing.assert_array_equal(p_values[:1], model.p_values(X_new[:1]))
    conservative = ConformalClassifier().fit(X, y).p_values(X_new)
    assert (p_values < conservative).all()
    assert (p_values > 0).all()


def test_smoothed_p_values_of_sparse_rows_are_those_of_dense_ones(iris):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier(LogisticRegression(), ties="smoothed", random_state=0)
    dense = model.fit(X, y).p_values(X_new)
    sparse = model.fit(csr_array(X), y).p_values(csr_array(X_new))
    np.testing.assert_allclose(sparse, dense)


@pytest.mark.parametrize("gap", [np.nan, pd.NA])
def test_a_gap_elsewhere_leaves_the_coin_of_a_row(gap):
    """It makes floats, or objects, of the integers of its column."""
    whole = pd.DataFrame({"age": [30, 41, 52], "height": [1, 2, 3]})
    with_gap = pd.concat([whole, pd.DataFrame({"age": [gap], "height": [4]})])
    for add in ({}, {"word": "a"}):
        rows, more = whole.assign(**add), with_gap.assign(**add)
        assert list(bytes_of_rows(rows)) == list(bytes_of_rows(more))[:3]


def test_rows_and_labels_in_another_order_get_the_same_p_values(iris):
    X, y, X_new, _ = halves(iris)
    order = np.random.default_rng(1).permutation(75)
    for settings in ({}, {"model": "gaussian"}, {"covariance_type": "diag"}):
        model = ConformalClassifier(**settings)
        expected = model.fit(X, y).p_values(X_new)
        np.testing.assert_array_equal(
            model.fit(X[order], y[order]).p_values(X_new), expected
        )


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_without_a_ridge_affine_maps_change_nothing(iris, covariance_type):
    X, y, X_new, _ = halves(iris)
    M = np.random.default_rng(2).normal(size=(4, 4)) * 10
    model = ConformalClassifier(
        model="gaussian", covariance_type=covariance_type, ridge_rows=0
    )
    np.testing.assert_array_equal(
        model.fit(X @ M + 3, y).p_values(X_new @ M + 3),
        model.fit(X, y).p_values(X_new),
    )


def test_strangers_get_the_empty_set_by_density(iris):
    X, y, X_new, _ = halves(iris)
    model = ConformalClassifier(
        model="gaussian", nonconformity="density", condition="class"
    ).fit(X, y)
    strangers = np.full((3, 4), [[50.0], [-40.0], [1e150]])
    assert not model.predict_set(strangers, allow_empty=True).any()
    assert (model.credibility(strangers) <= 1 / 23).all()
    assert model.credibility(X_new).mean() > 0.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 0.0}, "'level'"),
        ({"pooled_rows": -1}, "'pooled_rows'"),
        ({"pooled_rows": 1e7}, "'pooled_rows'"),
        ({"ridge_rows": -1}, "'ridge_rows'"),
        ({"ridge_rows": 1e7}, "'ridge_rows'"),
        ({"nonconformity": "margin"}, "margin.*'gaussian'"),
        ({"nonconformity": "density"}, "density.*'gaussian'"),
        ({"model": "svm"}, "'model'"),
        ({"cv": 1}, "'cv'"),
        ({"method": "full", "estimator": GaussianNB()}, "'full'.*GaussianNB"),
        ({"method": "full", "confidence": 0.95}, "`confidence` needs method='split'"),
        ({"method": "cross", "confidence": 0.95}, "`confidence` needs method='split'"),
        ({"confidence": 0.95, "ties": "smoothed"}, "`confidence` needs ties"),
        ({"confidence": 1.0}, "'confidence'"),
        ({"method": "cross", "ties": "smoothed"}, "smoothed"),
        ({"method": "split", "nonconformity": "density"}, "density"),
        ({"estimator": GaussianNB(), "nonconformity": "density"}, "density"),
        ({"method": "cross", "cv": 80}, "80"),
        ({"condition": lambda X: X}, "condition"),
    ],
)
def test_bad_parameters(iris, settings, message):
    X, y, _, _ = halves(iris)
    with pytest.raises(ValueError, match=message):
        ConformalClassifier(**settings).fit(X, y)


def test_bad_input(iris):
    X, y, _, _ = halves(iris)
    with pytest.raises(ValueError, match="at least 2 classes"):
        ConformalClassifier().fit(X, np.zeros(75))
    model = ConformalClassifier().fit(X, y)
    for level in (0, 1.5, "high"):
        with pytest.raises(ValueError, match=r"`level` must lie in \(0, 1\)"):
            model.predict_set(X, level)
    with pytest.raises(TypeError):
        ConformalClassifier().fit(X, y, sample_weight=np.ones(75))
    for method in ("full", "cross"):
        with pytest.raises(ValueError, match="split"):
            ConformalClassifier(method=method).fit(X, y, groups=np.arange(75))


@pytest.mark.parametrize(("n_classes", "n_pairs"), [(3, 3), (6, 15)])
@pytest.mark.parametrize("method", ["split", "cross"])
def test_one_score_a_class_is_needed(method, n_classes, n_pairs):
    labels = np.arange(600) % n_classes
    rows = np.random.default_rng(0).normal(size=(600, 3)) + labels[:, None]
    model = ConformalClassifier(SVC(decision_function_shape="ovo"), method=method)
    with pytest.raises(
        TypeError, match=f"SVC: .* {n_pairs} columns for {n_classes} classes"
    ):
        model.fit(rows, labels)


def test_singular_covariances_name_the_class():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.array(["a"] * 9 + ["few"] * 3)
    with pytest.raises(SingularCovarianceError, match=r"'few'.*`ridge_rows` > 0"):
        ConformalClassifier(ridge_rows=0, pooled_rows=0).fit(X, y)


def test_constant_columns_change_nothing_and_are_named(iris):
    X, y, X_new, _ = halves(iris)

    def add(Z):
        return np.column_stack([Z[:, :2], np.full(len(Z), 3.3), Z[:, 2:]])

    expected = ConformalClassifier().fit(X, y).p_values(X_new)
    with pytest.warns(PrudentWarning, match="constant"):
        model = ConformalClassifier().fit(add(X), y)
    assert model.constant_features_.tolist() == [2]
    np.testing.assert_array_equal(model.p_values(add(X_new)), expected)


@pytest.mark.parametrize("settings", [{}, {"model": "gaussian"}])
def test_degenerate_rows_give_finite_p_values(settings):
    rng = np.random.default_rng(0)
    y = np.array([0] * 5 + [1] * 6)
    for X in (
        np.ones((11, 3)),
        np.repeat(rng.normal(size=(1, 3)), 11, axis=0) + 1e6,
        rng.normal(size=(11, 40)),
        rng.normal(size=(11, 3)) * [1e-150, 1.0, 1e150],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            model = ConformalClassifier(**settings).fit(X, y)
        new = np.vstack([X[:2], np.full((1, X.shape[1]), 1e150), X[:1] * 2])
        p_values = model.p_values(new)
        assert np.isfinite(p_values).all()
        assert (p_values >= 1 / 12).all()


def test_a_fitted_scaler_in_front_of_full_is_warned_about(iris):
    X, y, X_new, _ = halves(iris)
    for scaler in (StandardScaler(), MinMaxScaler()):
        with pytest.warns(PrudentWarning, match="void"):
            make_pipeline(scaler, ConformalClassifier()).fit(X, y)
    # The greatest values of these columns become 1 only but for rounding errors.
    rows = MinMaxScaler().fit_transform(np.random.default_rng(0).normal(size=(75, 9)))
    assert rows.max(axis=0).tolist() != [1.0] * 9
    with pytest.warns(PrudentWarning, match="minimum 0 and maximum 1"):
        ConformalClassifier().fit(rows, y)
    inside = ConformalClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), random_state=0
    ).fit(X, y)
    assert prudent.predict_set(inside, X_new).any(axis=1).all()
    # Without a ridge the Gaussian follows every affine map: nothing to warn of.
    gaussian = ConformalClassifier(model="gaussian", ridge_rows=0)
    make_pipeline(StandardScaler(), gaussian).fit(X, y)
    # Columns apart do not follow a rotation: behind a PCA the promise is void.
    apart = ConformalClassifier(model="gaussian", covariance_type="diag", ridge_rows=0)
    with pytest.warns(PrudentWarning, match="mean 0"):
        make_pipeline(PCA(), apart).fit(X, y)


def test_a_scaler_of_single_precision_or_beside_flags_is_warned_about():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(75, 3)), np.arange(75) % 2
    for scaler in (StandardScaler(), MinMaxScaler()):
        with pytest.warns(PrudentWarning, match="void"):
            ConformalClassifier().fit(scaler.fit_transform(X.astype(np.float32)), y)
    flags = rng.integers(0, 2, (75, 2))
    rows = MinMaxScaler().fit_transform(np.hstack([X, flags]))
    with pytest.warns(PrudentWarning, match="minimum 0 and maximum 1"):
        ConformalClassifier().fit(rows, y)
    with warnings.catch_warnings():  # flags are 0 and 1 without a scaler
        warnings.simplefilter("error", PrudentWarning)
        ConformalClassifier().fit(flags, y)


def test_works_in_a_search(iris):
    X, y, X_new, _ = halves(iris)
    search = GridSearchCV(ConformalClassifier(), {"pooled_rows": [0, 32]}, cv=3)
    assert prudent.predict_set(search.fit(X, y), X_new).shape == (75, 3)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("method", ["full", "split", "cross"])
def test_data_frames_keep_their_names(iris, frame, method):
    X, y, X_new, _ = halves(iris)
    names = ["a", "b", "c", "d"]
    estimator = None if method == "full" else LogisticRegression(max_iter=500)
    model = ConformalClassifier(estimator, method=method, random_state=0)
    expected = model.fit(X, y).p_values(X_new)
    make = {"columns": names} if frame is pd.DataFrame else {"schema": names}
    model.fit(frame(X, **make), y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.p_values(frame(X_new, **make)), expected)
    if estimator is not None:
        inner = model.estimator_ if method == "split" else model.estimators_[0]
        assert inner.feature_names_in_.tolist() == names


def test_preprocessing_belongs_inside(iris):
    """Gaps and text are the business of the wrapped pipeline."""
    X, y, X_new, _ = halves(iris)
    X = X.copy()
    X[::7, 0] = np.nan
    inside = make_pipeline(SimpleImputer(), LogisticRegression(max_iter=500))
    model = ConformalClassifier(inside, method="split", random_state=0).fit(X, y)
    assert np.isfinite(model.p_values(X_new)).all()


def test_estimator_without_probabilities_ranks_by_its_margin(iris):
    X, y, X_new, y_new = halves(iris)
    for method in ("split", "cross"):
        model = ConformalClassifier(RidgeClassifier(), method=method, random_state=0)
        assert not hasattr(model.fit(X, y), "predict_proba")
        assert np.mean(model.predict(X_new) == y_new) > 0.7
    X, y = load_breast_cancer(return_X_y=True)
    model = ConformalClassifier(RidgeClassifier(), method="split", random_state=0)
    model.fit(X, y)
    signed = model.estimator_.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), signed)


def test_labels_that_a_fold_does_not_know(iris):
    X, y, X_new, _ = halves(iris)
    y = np.where(np.arange(75) == 3, 9, y % 2)
    for method in ("cross", "split"):
        for estimator in (GaussianNB(), None):
            model = ConformalClassifier(estimator, method=method, random_state=0)
            p_values = model.fit(X, y).p_values(X_new)
            assert p_values.shape == (75, 3)
            assert (p_values[:, 2] >= 1 / 76).all()
            assert np.allclose(model.predict_proba(X_new).sum(axis=1), 1)


def test_parts_of_one_class_are_fitted_by_a_constant():
    X, y = np.arange(12.0)[:, None], np.array([0] * 11 + [1])
    model = ConformalClassifier(LogisticRegression(), cv=12, random_state=0).fit(X, y)
    assert np.isfinite(model.p_values(X)).all()


@pytest.mark.parametrize(
    "model",
    [
        ConformalClassifier(random_state=0, ties="smoothed"),
        ConformalClassifier(method="split", random_state=0),
        ConformalClassifier(GaussianNB(), random_state=0),
    ],
)
def test_stored_models_answer_alike(iris, tmp_path, model):
    X, y, X_new, _ = halves(iris)
    model.fit(X, y)
    prudent.save(model, tmp_path / "model.prudent")
    for copy in (
        prudent.load(tmp_path / "model.prudent"),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(copy.p_values(X_new), model.p_values(X_new))
        assert copy.guarantees_ == model.guarantees_


def test_dask_input_is_refused(iris):
    array = pytest.importorskip("dask.array")
    X, y, _, _ = halves(iris)
    with pytest.raises(TypeError, match="dask"):
        ConformalClassifier().fit(array.from_array(X), y)


def test_auto_leaves_full_where_it_is_too_dear():
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 50  # n K^2 = 3e6
    model = ConformalClassifier(random_state=0).fit(rng.normal(size=(1200, 2)), y)
    assert model.method_ == "split"
    assert isinstance(model.estimator_, ConformalClassifier)


def test_strangers_change_the_units_and_few_tables_are_kept(iris):
    X, y, _, _ = halves(iris)
    model = ConformalClassifier().fit(X, y)
    strangers = X[:1] * 10.0 ** np.arange(0, 30)[:, None]
    together = model.p_values(strangers)
    assert len(model._ranks.model._learned) <= 8
    one_by_one = np.vstack([model.p_values(row[None]) for row in strangers])
    np.testing.assert_array_equal(together, one_by_one)


def test_large_tables_of_strangers_are_not_kept(monkeypatch):
    """Each holds a matrix of n x n numbers; the last one used stays."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    strangers = X[:1] * 10.0 ** np.arange(0, 12)[:, None]
    expected = ConformalClassifier().fit(X, y).p_values(strangers)
    for n_bytes, kept in ((3 * 8 * 60**2, 3), (1, 1)):
        monkeypatch.setattr("prudent.conformal.ranking.MOST_BYTES", n_bytes)
        model = ConformalClassifier().fit(X, y)
        np.testing.assert_array_equal(model.p_values(strangers), expected)
        assert len(model._ranks.model._learned) == kept


@pytest.mark.parametrize(
    ("n", "n_new", "megabytes"),
    [(500, 6000, 24), pytest.param(2000, 10_000, 24, marks=pytest.mark.slow)],
)
def test_p_values_of_many_rows_are_made_in_pieces(n, n_new, megabytes):
    """One array of all pairs of rows would take 24 and 160 MB, and there are eight."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 10)), np.arange(n) % 2
    model = ConformalClassifier().fit(X, y)
    new = rng.normal(size=(n_new, 10))
    model.p_values(new[:2])
    tracemalloc.start()
    model.p_values(new)
    model.predict_set(new[: n_new // 2])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < megabytes * 2**20


def test_units_are_powers_of_two_of_the_augmented_bag():
    from prudent.conformal.units import Columns

    X, _ = load_iris(return_X_y=True)
    columns = Columns.from_rows(X[::2])
    asked = columns.centre(np.vstack([X[1], 100 * X[1]]))
    expected = [[1, 0.5, 2, 1], [64, 32, 16, 2]]
    np.testing.assert_array_equal(2.0 ** columns.exponents(asked), expected)


def test_log_odds_order_rows_as_probabilities_do_and_tell_tiny_ones_apart():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.3, 1.0, 2.0], size=200)
    odds = log_odds_against(P)
    for k in range(3):
        np.testing.assert_array_equal(np.argsort(odds[:, k]), np.argsort(-P[:, k]))
    np.testing.assert_allclose(odds, np.log((1 - P) / P), rtol=1e-9, atol=1e-12)
    tiny = log_odds_against([[1.0, 1e-12], [1.0, 1e-15], [1.0, 0.0]])
    assert np.isfinite(tiny).all()
    assert tiny[0, 1] < tiny[1, 1] < tiny[2, 1]


def test_a_saturated_classifier_still_ranks_rows():
    """One of a hundred rows is rare; probabilities of the rare label are below 1e-9."""

    class Saturated(LogisticRegression):
        def predict_proba(self, X):
            rare = 10.0 ** (-9 - 3 * (1 - X[:, 0]))
            return np.column_stack([1 - rare, rare])

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [2000, 60])
    X = np.column_stack([rng.random(2060) ** np.where(y == 1, 0.1, 3)])
    model = ConformalClassifier(
        Saturated(), method="split", condition="class", random_state=0
    ).fit(X, y)
    assert (model.predict_set(X).sum(axis=1) == 1).mean() > 0.5


def test_split_takes_what_the_pipeline_inside_takes():
    """Texts and sparse matrices: only the wrapped estimator knows what rows are."""
    words = np.random.default_rng(0).choice(["good", "bad", "so so"], (300, 4))
    truth = (words == "good").sum(axis=1) > (words == "bad").sum(axis=1)
    texts = [" ".join(row) for row in words]
    model = ConformalClassifier(
        make_pipeline(CountVectorizer(), LogisticRegression()),
        method="split",
        random_state=0,
    ).fit(texts, truth)
    sets = model.predict_set(texts[:50])
    counts = CountVectorizer().fit_transform(texts)
    sparse = ConformalClassifier(LogisticRegression(), method="split", random_state=0)
    np.testing.assert_array_equal(
        sparse.fit(counts, truth).predict_set(counts[:50]), sets
    )
    assert sets.any(axis=1).all()


def side(X):
    """Groups 0 and 1, named like two of the classes, and of other rows."""
    return (np.asarray(X)[:, 0] > 5.8).astype(int)


@pytest.mark.parametrize(
    "settings",
    [{}, {"method": "split"}, {"confidence": 0.9, "calibration_size": 0.6}],
    ids=["full", "split", "confidence"],
)
def test_a_promise_by_group_is_about_the_rows_of_the_group_not_of_a_class(
    iris, settings
):
    X, y, new, truth = halves(iris)
    model = ConformalClassifier(condition=side, level=0.2, random_state=0, **settings)
    model.fit(X, y)
    members = model.predict_set(new)
    assert [g.subgroup for g in model.guarantees_] == ["group=0", "group=1"]
    for group, promise in enumerate(model.guarantees_):
        assert promise.scope is None
        assert str(promise).startswith(f"The coverage among rows with group={group} is")
        about = model.is_about(promise, new)
        np.testing.assert_array_equal(about, side(new) == group)
        missed = ~members[np.arange(len(new)), truth] & about
        for found in prudent.certify(model, new, truth):
            if found.subgroup == promise.subgroup:
                assert found.quantity == "coverage"
                assert found.evidence["calibration rows"] == about.sum()
                assert found.evidence["wrong"] == missed.sum()
    again = pickle.loads(pickle.dumps(model.with_level(0.3)))
    assert [g.subgroup for g in again.guarantees_] == ["group=0", "group=1"]
    assert len(prudent.certify(model, new, truth)) == 2


class Silent(ClassifierMixin, BaseEstimator):
    """A classifier whose answers cannot be ranked."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("method", ["split", "cross"])
def test_an_estimator_without_scores_is_refused_in_one_sentence(iris, method):
    X, y = iris
    message = (
        "^Silent has neither predict_proba nor decision_function, so its answers "
        r"cannot be ranked\.$"
    )
    with pytest.raises(TypeError, match=message):
        ConformalClassifier(Silent(), method=method).fit(X, y)
    with pytest.raises(TypeError, match=message):
        ConformalClassifier(FrozenEstimator(Silent().fit(X, y))).fit(X, y)


@pytest.mark.parametrize("method", ["full", "split"])
def test_misses_of_labels_that_occur_once_count_as_each_promise_says(method):
    """Of 30 exchangeable rows at most 3 are missed, counted by the fit on the others.

    A fit whose promise does not assume the label known counts a new label as missed;
    fits of that kind alone may miss more, which the mean over both kinds makes good.
    """
    rng = np.random.default_rng(0)
    n_said = 0
    for _ in range(8):
        y = rng.integers(0, 2, 30)
        X = rng.normal(size=(30, 2)) + 2 * y[:, None]
        alone = np.flatnonzero(rng.random(30) < 0.1)
        y[alone] = 10 + alone
        estimator = None
        if method == "split":  # all rows rank: those of a frozen model
            estimator = FrozenEstimator(
                LogisticRegression().fit([[0, 0], [2, 2]], [0, 1])
            )
        model = ConformalClassifier(
            estimator,
            method=method,
            model="gaussian",
            level=0.1,
        )
        missed = 0
        for i in range(30):
            others = np.arange(30) != i
            model.fit(X[others], y[others])
            (promise,) = model.guarantees_
            assert promise.bound == pytest.approx(0.9)
            sets = model.predict_set(X[[i]])
            counted, violated = violated_rows(promise, y[[i]], sets, model.classes_)
            missed += int((counted & violated)[0])
            n_said += Assumption.KNOWN_LABEL in promise.assumptions
        assert missed <= 3
    assert 20 < n_said < 220  # fits of both kinds
