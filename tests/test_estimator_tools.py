"""The seam between rows, moments and estimators, on a small estimator of its own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info, threadpool_limits

import prudent
from prudent import ClassMoments, predict_set
from prudent.core.classes import constant_features
from prudent.estimator_tools import (
    MomentFitMixin,
    check_rows,
    check_training,
    moment_fits,
    one_thread,
    scored_alarms,
)
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.exceptions import DegenerateDataError, PrudentWarning


class NearestMean(ClassifierMixin, MomentFitMixin, BaseEstimator):
    """Distance to class means; a set holds every class within `slack` of the best."""

    _parameter_constraints = {"slack": [float], "rows": [bool]}

    def __init__(self, *, slack=0.0, rows=False):
        self.slack = slack
        self.rows = rows

    def _rows_needed_for(self):
        return "rows=True" if self.rows else None

    def _learn(self, moments, *, given=False):
        if (moments.count[moments.weight > 0] < 2).any():
            raise DegenerateDataError("a class has 1 row")
        self.classes_, self.moments_ = moments.classes, moments
        self.means_, self.given_ = moments.mean, given

    def fit(self, X, y, sample_weight=None):
        self._fit_rows(*check_training(self, X, y, sample_weight))
        return self

    def _distances(self, X):
        X = check_rows(self, X)
        return ((X[:, None, :] - self.means_) ** 2).sum(axis=2)

    def predict(self, X):
        nearest = self._distances(X).argmin(axis=1)
        return self.classes_[nearest]

    def predict_set(self, X):
        distances = self._distances(X)
        return distances <= distances.min(axis=1, keepdims=True) + self.slack


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 2)) + 3 * np.repeat(np.arange(3), 20)[:, None]
    return X, y


def test_fit_moments_equals_fit(data):
    X, y = data
    rows = NearestMean().fit(X, y)
    moments = NearestMean().fit_moments(ClassMoments.from_arrays(X, y))
    np.testing.assert_array_equal(rows.means_, moments.means_)
    assert moments.n_features_in_ == 2
    assert not moments.given_


def test_partial_fit_in_batches_equals_fit(data):
    X, y = data
    order = np.random.default_rng(1).permutation(60)
    model = NearestMean()
    for part in np.array_split(order, 7):
        model.partial_fit(X[part], y[part], classes=["a", "b", "c"])
    np.testing.assert_allclose(model.means_, NearestMean().fit(X, y).means_, rtol=1e-13)


def test_partial_fit_counts_as_fitted_once_two_seen_classes_can_be_solved(data):
    X, y = data
    model = NearestMean().partial_fit(X[:5], y[:5], classes=["a", "b", "c"])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[20:21], y[20:21])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.partial_fit(X[21:25], y[21:25])
    assert model.classes_.tolist() == ["a", "b", "c"]
    check_is_fitted(model)


def test_partial_fit_after_fit_continues_and_fit_starts_over(data):
    X, y = data
    model = NearestMean().fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    np.testing.assert_allclose(model.means_, NearestMean().fit(X, y).means_, rtol=1e-13)
    model.fit(X[::2], y[::2])
    np.testing.assert_array_equal(
        model.means_, NearestMean().fit(X[::2], y[::2]).means_
    )


def test_partial_fit_refuses_a_label_outside_classes(data):
    X, y = data
    with pytest.raises(ValueError, match="'c'"):
        NearestMean().partial_fit(X, y, classes=["a", "b"])


def test_partial_fit_refuses_other_classes_later(data):
    X, y = data
    model = NearestMean().partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="`classes` must stay"):
        model.partial_fit(X, y, classes=["a", "b", "c", "d"])


def test_failing_batch_leaves_the_model_as_it_was(data):
    X, y = data
    model = NearestMean().partial_fit(X, y, classes=["a", "b", "c"])
    before = model.moments_
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1], y)
    assert model.moments_ is before


def test_from_moments_needs_no_rows_and_is_marked_as_given():
    model = NearestMean.from_moments(
        [[0, 0], [4, 4]], [np.eye(2), np.eye(2)], [30, 40], ["no", "yes"], slack=1.0
    )
    assert model.given_
    assert model.slack == 1.0
    assert model.predict([[3.0, 3.0]]).tolist() == ["yes"]


def test_a_setting_that_needs_rows_hides_the_moment_methods(data):
    model = NearestMean(rows=True)
    for name in ("fit_moments", "partial_fit"):
        assert not hasattr(model, name)
    with pytest.raises(AttributeError) as error:
        model.partial_fit([[0.0]], [0])
    assert "rows=True needs the rows" in str(error.value.__cause__)
    with pytest.raises(ValueError, match="rows=True needs the rows"):
        NearestMean.from_moments([[0], [1]], [[[1]], [[1]]], [5, 5], rows=True)


def test_fit_moments_refuses_other_types():
    with pytest.raises(TypeError, match="must be a ClassMoments, got ndarray"):
        NearestMean().fit_moments(np.eye(2))


def test_zero_weight_rows_go_before_classes_form(data):
    X, y = data
    model = NearestMean().fit(X, y, sample_weight=(y != "b").astype(float))
    assert model.classes_.tolist() == ["a", "c"]


def test_all_zero_weights_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="(?i)sample.weight.* zero|non-zero"):
        NearestMean().fit(X, y, sample_weight=np.zeros(60))


def test_negative_weights_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="Negative values"):
        NearestMean().fit(X, y, sample_weight=-np.ones(60))


@pytest.mark.parametrize("y", [np.arange(40), np.arange(40) * 1000])
def test_labels_that_look_like_a_regression_are_pointed_out(y):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="could represent a regression"):
        check_training(NearestMean(), X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        check_training(NearestMean(), X, y + 0.5)


def test_float32_rows_are_not_copied_to_float64(data):
    X, y = data
    kept, _, _ = check_training(NearestMean(), X.astype(np.float32), y)
    assert kept.dtype == np.float32


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_dask_input_is_refused_with_the_way_out(data, method):
    array = pytest.importorskip("dask.array")
    X, y = data
    model = NearestMean().fit(X, y)
    arguments = (array.from_array(X), y) if method == "fit" else (array.from_array(X),)
    with pytest.raises(TypeError, match=r"prudent\.dask\.fit"):
        getattr(model, method)(*arguments)


def test_constant_features_are_those_with_one_value_in_all_rows():
    X = np.array([[0.1, 1, 5], [0.1, 1, 6], [0.1, 2, 5], [0.1, 2, 7]])
    moments = ClassMoments.from_arrays(X, [0, 0, 1, 1])
    assert constant_features(moments).tolist() == [0]


def test_predict_set_reaches_through_meta_estimators(data):
    X, y = data
    plain = NearestMean(slack=5.0).fit(X, y)
    expected = plain.predict_set(X)
    search = GridSearchCV(NearestMean(), {"slack": [5.0]}).fit(X, y)
    pipeline = make_pipeline("passthrough", NearestMean(slack=5.0)).fit(X, y)
    nested = GridSearchCV(
        make_pipeline("passthrough", NearestMean()), {"nearestmean__slack": [5.0]}
    ).fit(X, y)
    for model in (plain, search, pipeline, nested, FrozenEstimator(plain)):
        np.testing.assert_array_equal(predict_set(model, X), expected)


def test_predict_set_transforms_on_the_way(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), NearestMean(slack=0.3)).fit(X, y)
    expected = pipeline[-1].predict_set(pipeline[0].transform(X))
    np.testing.assert_array_equal(predict_set(pipeline, X), expected)


@pytest.mark.parametrize(
    "detector",
    [
        prudent.ConformalDetector(),
        prudent.ConformalDetector(ties="smoothed", random_state=0),
        prudent.ConformalDetector(OneClassSVM(), random_state=0),
        prudent.MinimaxOutlierDetector(),
        prudent.LowDensityRejector(estimator=LogisticRegression(), random_state=0),
        make_pipeline(StandardScaler(), prudent.MinimaxOutlierDetector()),
        OneClassSVM(),
        make_pipeline(StandardScaler(), IsolationForest(random_state=0)),
    ],
    ids=lambda detector: type(detector).__name__,
)
@pytest.mark.filterwarnings("ignore:.*:prudent.exceptions.PrudentWarning")
def test_alarms_and_scores_are_those_of_two_questions(detector):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(20, 2)) + 4])
    fitted = detector.fit(X[:200])
    alarms, scores = scored_alarms(fitted, X)
    assert 0 < alarms.sum() < len(X)
    np.testing.assert_array_equal(alarms, fitted.predict(X) == -1)
    np.testing.assert_array_equal(scores, fitted.decision_function(X))


def test_a_detector_that_ranks_is_asked_once(data, monkeypatch):
    detector = prudent.ConformalDetector().fit(data[0])
    asked = []
    ask = prudent.ConformalDetector._ask
    monkeypatch.setattr(
        prudent.ConformalDetector,
        "_ask",
        lambda self, X: asked.append(len(X)) or ask(self, X),
    )
    scored_alarms(make_pipeline("passthrough", detector), data[0])
    assert asked == [len(data[0])]


def test_predict_set_takes_data_frames(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["p", "q"])
    model = NearestMean(slack=1.0).fit(frame, y)
    np.testing.assert_array_equal(predict_set(model, frame), model.predict_set(frame))


def test_predict_set_of_a_point_classifier_says_so(data):
    X, y = data
    with pytest.raises(TypeError, match="classifier LogisticRegression has no"):
        predict_set(make_pipeline(LogisticRegression()).fit(X, y), X)


def test_a_covariance_setting_becomes_a_name_a_number_or_a_function():
    from sklearn.covariance import ShrunkCovariance

    from prudent.core.linalg import rule_name
    from prudent.estimator_tools import covariance_rule

    rows = np.random.default_rng(0).normal(size=(20, 2))
    assert covariance_rule("oas") == "oas"
    assert covariance_rule(np.float32(0.5)) == 0.5
    function = covariance_rule(ShrunkCovariance(shrinkage=0.2))
    expected = ShrunkCovariance(shrinkage=0.2).fit(rows).covariance_
    np.testing.assert_array_equal(function(rows), expected)
    assert rule_name(function) == "ShrunkCovariance"


@pytest.mark.parametrize("covariance", ["svd", 1.5, -0.1, None, ["oas"]])
def test_what_is_no_covariance_setting(covariance):
    from prudent.estimator_tools import covariance_rule

    with pytest.raises(ValueError, match="`covariance` must be one of .* got"):
        covariance_rule(covariance)


@pytest.mark.parametrize("user_api", [None, "blas"])
def test_small_work_has_one_thread_and_gives_the_others_back(user_api):
    def threads():
        return {
            library["filepath"]: library["num_threads"]
            for library in threadpool_info()
            if user_api in (None, library["user_api"])
        }

    with threadpool_limits(2):
        before = threads()
        with one_thread(user_api):
            assert set(threads().values()) == {1}
        assert threads() == before


@pytest.mark.parametrize(
    "wrapper",
    [
        prudent.MinimaxOutlierDetector(false_alarm_rate=0.01, random_state=0),
        prudent.LowDensityRejector(false_alarm_rate=0.01, random_state=0),
        prudent.ConformalDetector(
            method="split", false_alarm_rate=0.01, random_state=0
        ),
        prudent.ConformalDetector(method="full", false_alarm_rate=0.01),
        prudent.SelectiveClassifier(
            LogisticRegression(), error_rate=0.01, random_state=0
        ),
        prudent.NeymanPearsonClassifier(
            LogisticRegression(),
            max_class_error={0: 0.01},
            abstain=True,
            random_state=0,
        ),
    ],
    ids=lambda wrapper: type(wrapper).__name__,
)
def test_a_warning_of_too_few_rows_points_to_the_line_that_fits(wrapper):
    X = np.random.default_rng(0).normal(size=(20, 2))

    def fit():
        return wrapper.fit(X, np.arange(20) % 2)

    with pytest.warns(PrudentWarning) as warned:
        fit()
    assert {(w.filename, w.lineno) for w in warned} == {
        (__file__, fit.__code__.co_firstlineno + 1)
    }


def test_the_missing_word_of_pandas_is_a_missing_word():
    words = pd.Series(["a", pd.NA, "b", "a"], dtype="string")
    mixed = pd.Series(["x", pd.NA, None, "y"], dtype=object)
    frame = pd.DataFrame({"word": words, "mixed": mixed, "n": [1.0, 2.0, 3.0, 4.0]})
    rows = labelled_rows(frame, [0, 1, 0, 1])
    assert rows.X["word"].to_pylist() == ["a", None, "b", "a"]
    assert rows.X["mixed"].to_pylist() == ["x", None, None, "y"]


@pytest.mark.parametrize("dtype", [str, object])
def test_labels_that_are_words_are_sorted_for_the_moments_alone(monkeypatch, dtype):
    """What type a target is, scikit-learn finds out by sorting all labels as well."""

    def sort(_):
        raise AssertionError

    monkeypatch.setattr(moment_fits, "check_classes", sort)
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["ill", "well", "unknown"] * 20, dtype=dtype)
    model = NearestMean().fit(X, y)
    assert model.classes_.tolist() == ["ill", "unknown", "well"]
    with pytest.raises(AssertionError):
        NearestMean().fit(X, np.arange(60) / 2)


@pytest.mark.parametrize(
    ("label", "message"),
    [(None, "y holds no label in 1 of 60 rows"), (3, "y mixes labels of type string")],
)
@pytest.mark.parametrize(
    "estimator",
    [
        prudent.SelectiveClassifier(LogisticRegression()),
        prudent.BestClassifier({"logistic": LogisticRegression()}),
        prudent.ConformalClassifier(),
        prudent.MinimaxProbabilityClassifier(),
        prudent.RiskCalibratedClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_labels_that_are_missing_or_of_two_types_are_named(estimator, label, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array([label] + ["a", "b"] * 29 + ["a"], dtype=object)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


@pytest.mark.parametrize("unknown", [np.nan, None, ""])
def test_rows_of_no_known_group_cannot_be_kept_apart(unknown):
    X = np.random.default_rng(0).normal(size=(60, 2))
    groups = np.repeat(np.arange(20), 3).astype(object)
    if unknown == "":
        groups = groups.astype(str).astype(object)
    groups[7] = unknown
    model = prudent.SelectiveClassifier(LogisticRegression(), error_rate=0.4)
    with pytest.raises(ValueError, match="`groups` says nothing of 1 of 60 rows"):
        model.fit(X, np.arange(60) % 2, groups=groups)


@pytest.mark.parametrize("groups", [None, []])
def test_no_rows_are_said_to_be_none(groups):
    model = prudent.SelectiveClassifier(LogisticRegression())
    with pytest.raises(ValueError, match="`X` holds 0 rows; give at least 3"):
        model.fit(np.empty((0, 2)), [], groups=groups)
