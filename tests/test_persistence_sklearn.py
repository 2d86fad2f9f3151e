"""Classifiers and detectors of scikit-learn come back; others by their names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    NearestCentroid,
    RadiusNeighborsClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

import prudent
from prudent.persistence import ModelFileError

X, Y = load_iris(return_X_y=True)
LOGISTIC = LogisticRegression(max_iter=500)
CLASSIFIERS = [
    LOGISTIC,
    LogisticRegressionCV(Cs=2, max_iter=500),
    RidgeClassifier(),
    SGDClassifier(loss="log_loss", random_state=0),
    Perceptron(),
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    GaussianNB(),
    BernoulliNB(),
    MultinomialNB(),
    ComplementNB(),
    KNeighborsClassifier(),
    KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
    KNeighborsClassifier(algorithm="kd_tree", p=3),
    RadiusNeighborsClassifier(radius=3.0),
    NearestCentroid(),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(5, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
    AdaBoostClassifier(n_estimators=3, random_state=0),
    BaggingClassifier(n_estimators=3, random_state=0),
    VotingClassifier([("a", LOGISTIC), ("b", GaussianNB())]),
    StackingClassifier([("a", GaussianNB()), ("b", RidgeClassifier())]),
    CalibratedClassifierCV(GaussianNB()),
    CalibratedClassifierCV(GaussianNB(), method="isotonic"),
    SVC(),
    NuSVC(),
    LinearSVC(),
    OneVsRestClassifier(LOGISTIC),
    OneVsOneClassifier(LOGISTIC),
    MLPClassifier((4,), max_iter=5, random_state=0),
    GaussianProcessClassifier(1.0 * Matern() + WhiteKernel() + RBF()),
    GridSearchCV(
        make_pipeline(StandardScaler(), SelectKBest(f_classif), LOGISTIC),
        {"selectkbest__k": [2, 3]},
        scoring=make_scorer(f1_score, average="macro"),
        cv=StratifiedKFold(3),
    ),
]


def kept_and_loaded(model, tmp_path, **trust):
    prudent.save(model, tmp_path / "m", **trust)
    return prudent.load(tmp_path / "m", **trust)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
@pytest.mark.filterwarnings("ignore")  # of few iterations
def test_classifiers_come_back(classifier, tmp_path):
    classifier.fit(X, Y)
    loaded = kept_and_loaded(classifier, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), classifier.predict(X))
    if hasattr(classifier, "predict_proba"):
        given = loaded.predict_proba(X)
        np.testing.assert_array_equal(given, classifier.predict_proba(X))


def test_detectors_come_back(tmp_path):
    forest = IsolationForest(n_estimators=5, random_state=0).fit(X)
    loaded = kept_and_loaded(forest, tmp_path)
    np.testing.assert_array_equal(loaded.score_samples(X), forest.score_samples(X))


def test_categories_and_selected_columns_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["word"] = pd.Categorical(np.where(X[:, 0] > 5.5, "long", "short"))
    boosting = HistGradientBoostingClassifier(
        max_iter=3, categorical_features="from_dtype"
    ).fit(frame, Y)
    loaded = kept_and_loaded(boosting, tmp_path)
    np.testing.assert_array_equal(loaded.predict(frame), boosting.predict(frame))
    frame["word"] = frame["word"].astype(object)
    selected = make_pipeline(
        ColumnTransformer(
            [
                ("n", StandardScaler(), make_column_selector(dtype_include=np.number)),
                ("w", OneHotEncoder(), make_column_selector(dtype_include=object)),
            ]
        ),
        LOGISTIC,
    ).fit(frame, Y)
    loaded = kept_and_loaded(selected, tmp_path)
    np.testing.assert_array_equal(loaded.predict(frame), selected.predict(frame))


def by_length(rows):
    return (np.asarray(rows)[:, 0] > 5.5).astype(int)


def test_a_condition_that_is_a_function_has_to_be_trusted(tmp_path):
    model = prudent.ConformalClassifier(condition=by_length, random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match="by_length") as refused:
        prudent.save(model, tmp_path / "m")
    name = f"{by_length.__module__}.by_length"
    assert f"trusted=['{name}']" in str(refused.value)
    assert not (tmp_path / "m").exists()
    loaded = kept_and_loaded(model, tmp_path, trusted=[name])
    np.testing.assert_array_equal(loaded.predict_set(X), model.predict_set(X))
    with pytest.raises(ModelFileError, match="types that are not trusted: .*by_length"):
        prudent.load(tmp_path / "m")


def test_what_cannot_be_stored_is_said(tmp_path):
    model = make_pipeline(FunctionTransformer(lambda rows: rows), LOGISTIC).fit(X, Y)
    with pytest.raises(ModelFileError):
        prudent.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def change_tree(model, name, value):
    """Replace a field of all nodes, as an altered file could."""
    tree = model.tree_
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][name][0] = value
    tree.__setstate__(state)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left_child", 10_000), ("right_child", 0), ("feature", 4), ("feature", -3)],
)
def test_a_tree_that_reads_or_runs_astray_is_refused(tmp_path, name, value):
    model = DecisionTreeClassifier(random_state=0).fit(X, Y)
    change_tree(model, name, value)
    prudent.save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="points nowhere"):
        prudent.load(tmp_path / "m")


def test_a_forest_with_a_tree_of_wider_rows_is_refused(tmp_path):
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    wide = RandomForestClassifier(3, random_state=0).fit(np.hstack([X, X]), Y)
    model.estimators_[1] = wide.estimators_[1]
    prudent.save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="points nowhere"):
        prudent.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("place", "value"), [(1, 10**6), (2, (0, 10**6, 1, 1.0)), (2, (-5, 3, 1, 1.0))]
)
def test_neighbours_that_point_astray_are_refused(tmp_path, place, value):
    model = KNeighborsClassifier(algorithm="kd_tree").fit(X, Y)
    state = list(model._tree.__getstate__())
    state[place] = state[place].copy()
    state[place][0] = value
    model._tree.__setstate__(tuple(state))
    prudent.save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="points nowhere"):
        prudent.load(tmp_path / "m")


BOOSTERS = {
    "lightgbm.sklearn.LGBMClassifier": {"n_estimators": 5, "verbose": -1},
    "xgboost.sklearn.XGBClassifier": {"n_estimators": 5},
    "catboost.core.CatBoostClassifier": {
        "iterations": 5,
        "verbose": 0,
        "allow_writing_files": False,
    },
}


@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_of_other_packages_come_back_where_they_are_trusted(name, tmp_path):
    package, _, class_name = name.rpartition(".")
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(module, class_name)(**BOOSTERS[name]).fit(X, Y)
        expected = model.predict_proba(X)
        with pytest.raises(ModelFileError, match=r"save it with trusted=\[") as refused:
            prudent.save(model, tmp_path / "m")
        listed = str(refused.value).partition("trusted=[")[2].partition("]")[0]
        trusted = [word.strip(" '") for word in listed.split(",")]
        assert name in trusted
        loaded = kept_and_loaded(model, tmp_path, trusted=trusted)
        np.testing.assert_array_equal(loaded.predict_proba(X), expected)
