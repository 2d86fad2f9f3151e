"""What every prudent estimator does beyond scikit-learn's own checks."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from instances import FAMILIES
from prudent import Guarantee, predict_set
from prudent.estimator_tools import MomentFitMixin
from prudent.metrics import u80_scorer

pytestmark = pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")

ESTIMATORS = [estimator for family in FAMILIES for estimator in family()]
TABULAR = [e for e in ESTIMATORS if getattr(e, "kernel", None) != "precomputed"]
CLASSIFIERS = [e for e in TABULAR if is_classifier(e)]
WITH_SETS = [e for e in CLASSIFIERS if hasattr(e, "predict_set")]
FROM_MOMENTS = [
    e for e in TABULAR if isinstance(e, MomentFitMixin) and hasattr(e, "fit_moments")
]


def ids(estimator):
    return repr(estimator).replace("\n", "").replace(" ", "")


def each(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=ids)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    y = np.repeat(["healthy", "ill", "unclear"], 40)
    centre = np.repeat([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 4.0, -1.0]], 40, axis=0)
    order = rng.permutation(120)
    X = np.round(rng.normal(size=(120, 3)) + centre, 1)
    return X[order], y[order]


def fitted(estimator, X, y):
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, y)


@each(TABULAR)
def test_data_frames_give_the_answers_of_arrays(estimator, rows):
    X, y = rows
    expected = fitted(estimator, X, y).predict(X)
    names = ["age", "dose", "marker"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = fitted(estimator, frame, y)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.predict(frame), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint64", "bool"])
@each(CLASSIFIERS)
def test_labels_of_every_integer_type_are_answered_as_words(estimator, dtype, rows):
    X, y = rows
    X, y = X[y != "unclear"], y[y != "unclear"]
    largest = 1 if dtype == "bool" else np.iinfo(dtype).max
    smallest = 0 if dtype == "bool" else np.iinfo(dtype).min
    labels = np.array([largest if word == "ill" else smallest for word in y], dtype)
    expected = fitted(estimator, X, y)
    model = fitted(estimator, X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    np.testing.assert_array_equal(
        model.predict(X) == largest, expected.predict(X) == "ill"
    )
    if hasattr(estimator, "predict_set"):
        np.testing.assert_array_equal(predict_set(model, X), predict_set(expected, X))


@each(TABULAR)
def test_fits_repeat_bit_for_bit(estimator, rows):
    X, y = rows
    methods = ("decision_function", "predict_proba", "predict")
    method = next(m for m in methods if hasattr(estimator, m))
    first, second = (getattr(fitted(estimator, X, y), method)(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@each(TABULAR)
def test_pickled_models_predict_the_same(estimator, rows):
    X, y = rows
    model = fitted(estimator, X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@each(TABULAR)
def test_stored_models_predict_the_same(estimator, rows, tmp_path):
    X, y = rows
    model = fitted(estimator, X, y)
    prudent.save(model, tmp_path / "model.prudent")
    copy = prudent.load(tmp_path / "model.prudent")
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@each(TABULAR)
def test_data_are_not_changed(estimator, rows):
    X, y = (array.copy() for array in rows)
    model = fitted(estimator, X, y)
    model.predict(X)
    np.testing.assert_array_equal(X, rows[0])
    np.testing.assert_array_equal(y, rows[1])


@each(TABULAR)
def test_html_representation_names_the_class(estimator, rows):
    X, y = rows
    assert type(estimator).__name__ in fitted(estimator, X, y)._repr_html_()


@each(TABULAR)
def test_guarantees_are_a_tuple_of_guarantees(estimator, rows):
    X, y = rows
    guarantees = fitted(estimator, X, y).guarantees_
    assert isinstance(guarantees, tuple)
    assert all(isinstance(g, Guarantee) for g in guarantees)
    assert all(g.assumptions for g in guarantees)


@each(CLASSIFIERS)
def test_works_in_pipeline_search_and_cross_validation(estimator, rows):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    name = pipeline.steps[-1][0]
    given = estimator.get_params()
    parameter = next(p for p in ("costs", "priors", "confidence") if p in given)
    search = GridSearchCV(
        pipeline, {f"{name}__{parameter}": [getattr(estimator, parameter)]}, cv=2
    ).fit(X, y)
    assert set(search.predict(X)) <= set(y)
    scores = cross_validate(pipeline, X, y, cv=2)["test_score"]
    assert np.isfinite(scores).all()


@each(WITH_SETS)
def test_sets_are_never_empty_and_hold_the_prediction(estimator, rows):
    X, y = rows
    model = fitted(estimator, X, y)
    sets = model.predict_set(X)
    assert sets.dtype == bool
    assert sets.shape == (120, 3)
    column = np.searchsorted(model.classes_, model.predict(X))
    assert sets[np.arange(120), column].all()


@each(WITH_SETS)
def test_set_scorers_work_through_a_pipeline(estimator, rows):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    assert 0 <= u80_scorer(pipeline, X, y) <= 1
    assert predict_set(pipeline, X).shape == (120, 3)


@each(FROM_MOMENTS)
def test_moments_in_any_batches_give_the_fit(estimator, rows):
    X, y = rows
    batches = clone(estimator)
    for part in np.array_split(np.arange(120), 5):
        batches.partial_fit(X[part], y[part], classes=np.unique(y))
    np.testing.assert_array_equal(
        batches.predict(X), fitted(estimator, X, y).predict(X)
    )


@each([e for e in FROM_MOMENTS if getattr(e, "covariance", None) != "ledoit_wolf"])
def test_published_moments_give_the_fit(estimator, rows):
    X, y = rows
    whole = fitted(estimator, X, y)
    summary = type(estimator).from_moments(
        whole.moments_.mean,
        whole.moments_.covariance(ddof=estimator._moments_ddof),
        whole.moments_.weight,
        whole.moments_.classes,
        **estimator.get_params(),
    )
    np.testing.assert_array_equal(summary.predict(X), whole.predict(X))


def test_published_moments_cannot_give_ledoit_wolf():
    with pytest.raises(ValueError, match="needs fourth moments.*covariance='oas'"):
        prudent.MinimaxProbabilityClassifier.from_moments(
            [[0.0], [1.0]], [[[1.0]], [[1.0]]], [9, 9], covariance="ledoit_wolf"
        )


@each(FROM_MOMENTS)
def test_declared_class_without_rows_is_never_predicted(estimator, rows):
    X, y = rows
    model = clone(estimator)
    model.partial_fit(X, y, classes=[*np.unique(y), "zz"])
    assert model.classes_.tolist() == [*np.unique(y), "zz"]
    assert "zz" not in model.predict(X)
    if hasattr(model, "predict_set"):
        assert not model.predict_set(X)[:, 3].any()


@pytest.mark.parametrize(
    "estimator",
    [
        prudent.MinimaxProbabilityClassifier(covariance=np.float64(-2.5)),
        prudent.MinimaxProbabilityClassifier(mean_radius=np.float64(-2.5)),
        prudent.OptimisticScoreClassifier(covariance=np.float64(-2.5)),
        prudent.ImpreciseDiscriminantAnalysis(covariance=np.float64(-2.5)),
        prudent.ImpreciseDiscriminantAnalysisCV(covariance=np.float64(-2.5)),
    ],
    ids=ids,
)
def test_settings_are_shown_as_plain_numbers_under_their_own_name(estimator, rows):
    settings = estimator.get_params()
    (name,) = (name for name in settings if isinstance(settings[name], np.float64))
    with pytest.raises(ValueError, match=rf"`{name}` must .* got -2\.5\.$"):
        estimator.fit(*rows)


@pytest.mark.parametrize(
    "estimator", [prudent.ConformalClassifier, prudent.ConformalDetector]
)
@pytest.mark.parametrize("inside", ["logistic", 3, prudent.SelectiveClassifier])
def test_what_is_no_estimator_is_refused_by_name(estimator, inside, rows):
    with pytest.raises(TypeError, match="Conformal.*: `estimator` must be .* `fit`"):
        estimator(inside).fit(*rows)
