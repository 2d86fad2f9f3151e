"""The best of several classifiers under a promise: chosen by the training part."""

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import prudent
from prudent import BestClassifier, SelectiveClassifier
from prudent.core.rows import hold_out
from prudent.estimator_tools import rows_about
from prudent.evaluation.choice import ChosenClassifier, reporting_to
from prudent.evaluation.promising import wrap
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.wish import parse_promise

X, Y = load_breast_cancer(return_X_y=True)
NAMES = ["logistic", "lda", "qda"]
PROMISES = (
    "error <= 5%",
    "coverage >= 90%",
    "coverage >= 90% in every class",
    "missed 0 <= 10%",
    "missed 0 <= 10% and 1 <= 10%",
)


def best(promise="error <= 5%", estimators=NAMES, **settings):
    return BestClassifier(
        estimators, promise=promise, **{"random_state": 0, **settings}
    )


def test_the_reference_choice():
    model = best().fit(X, Y)
    results = model.choice_results_
    assert results["usefulness"] == pytest.approx([0.95402, 0.85314, 0.95415], abs=5e-6)
    assert results["rank"].tolist() == [2, 3, 1]
    assert model.best_name_ == "qda"
    assert (model.n_calibration_, model.model_.n_answered_) == (171, 160)
    assert model.model_.n_wrong_ == 2
    assert isinstance(model.model_, SelectiveClassifier)


@pytest.mark.parametrize("promise", PROMISES)
def test_poisoned_labels_of_held_out_rows_change_no_choice(promise):
    share = 0.5 if promise.startswith("missed") else 0.3
    held_out = hold_out(len(Y), share, np.random.RandomState(0))[1]
    poisoned = Y.copy()
    poisoned[held_out] = np.random.default_rng(1).permutation(Y[held_out])
    clean, other = best(promise).fit(X, Y), best(promise)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            other.fit(X, poisoned)
    except InfeasibleError:
        assert promise.startswith("missed")
    assert other.model_.n_calibration_ == clean.n_calibration_
    for name, values in clean.choice_results_.items():
        np.testing.assert_array_equal(values, other.choice_results_[name])
    chosen, again = clean.best_estimator_, other.best_estimator_
    np.testing.assert_array_equal(chosen.predict_proba(X), again.predict_proba(X))


def of_texture(rows):
    """Two subgroups of the tumours, which overlap."""
    texture = np.asarray(rows)[:, 1]
    return np.column_stack([texture < 22, texture > 16])


@pytest.mark.parametrize("promise", PROMISES)
def test_each_subgroup_gets_the_promise_as_of_the_wrapper_and_the_choice_is_the_same(
    promise,
):
    promise = promise.replace("5%", "20%").replace("10%", "40%").replace("90%", "80%")
    plain = best(promise).fit(X, Y)
    model = best(promise, subgroups=of_texture).fit(X, Y)
    for name, values in plain.choice_results_.items():
        np.testing.assert_array_equal(values, model.choice_results_[name])
    assert model.subgroups_ == model.model_.subgroups_
    assert not hasattr(plain, "subgroups_")
    named = {guarantee.subgroup for guarantee in model.guarantees_}
    assert set(model.subgroups_) <= named
    for guarantee in model.guarantees_:
        assert guarantee.confidence == pytest.approx(0.95)
        assert guarantee.evidence["candidates"] == 3
    # The wrapper around the candidate that was chosen, and nothing else.
    wish = parse_promise(promise, [0, 1], confidence=0.95, by=["texture"])
    settings = {"n_classes": 2, "n_methods": 1, "random_state": 0}
    alone = wrap(clone(model.best_estimator_), wish, **settings, subgroups=of_texture)
    sets = alone.fit(X, Y).predict_set(X)
    np.testing.assert_array_equal(model.predict_set(X), sets)


def test_no_candidate_sees_a_held_out_row_of_any_subgroup():
    seen = []

    class Watching(LinearDiscriminantAnalysis):
        def fit(self, rows, y):
            seen.append(np.asarray(rows))
            return super().fit(rows, y)

    listed = {"a": Watching(), "b": Watching(solver="lsqr")}
    best("error <= 20%", listed, subgroups=of_texture).fit(X, Y)
    held_out = hold_out(len(Y), 0.3, np.random.RandomState(0))[1]
    rows = {row.tobytes() for part in seen for row in part}
    assert len(seen) == 2 * 5 + 1
    assert rows == {row.tobytes() for row in np.delete(X, held_out, axis=0)}


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("subgroups", [None, of_texture])
def test_it_is_certified_and_watched_as_the_model_that_keeps_the_promise(
    promise, subgroups
):
    promise = promise.replace("5%", "20%").replace("10%", "40%").replace("90%", "80%")
    model = best(promise, subgroups=subgroups).fit(X[:400], Y[:400])
    expected = prudent.certify(model.model_, X[400:], Y[400:])
    assert prudent.certify(model, X[400:], Y[400:]) == expected
    promised = {(g.quantity, g.scope, g.subgroup) for g in model.guarantees_}
    assert {(g.quantity, g.scope, g.subgroup) for g in expected} == promised
    with pytest.raises(ValueError, match="100 of these 100 rows were in the fit"):
        prudent.certify(model, X[:100], Y[:100])
    searched = make_pipeline(GridSearchCV(model, {"cv": [2]}, cv=2))
    with warnings.catch_warnings():  # half of the rows may be too few
        warnings.simplefilter("ignore", PrudentWarning)
        searched.fit(X[:400], Y[:400])
    with pytest.raises(ValueError, match="100 of these 100 rows were in the fit"):
        prudent.certify(searched, X[:100], Y[:100])
    about = [
        rows_about(each, model.guarantees_[-1], X[400:])
        for each in (model, model.model_)
    ]
    np.testing.assert_array_equal(*about)


def test_subgroups_are_named_by_the_promise_or_by_the_argument():
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame["site"] = np.arange(len(Y)) % 2
    spelled = best("error <= 20% in every site").fit(frame, Y)
    given = best("error <= 20%", subgroups="site").fit(frame, Y)
    by_position = best("error <= 20%", subgroups=[4]).fit(frame.to_numpy(), Y)
    assert spelled.subgroups_ == given.subgroups_ == ["site=0", "site=1"]
    assert spelled.guarantees_ == given.guarantees_
    assert by_position.subgroups_ == ["column 4=0", "column 4=1"]
    with pytest.raises(ValueError, match="the promise is by site, and by a is asked"):
        best("error <= 20% in every site", subgroups=["a"]).fit(frame, Y)
    with pytest.raises(ValueError, match="no promise is asked for"):
        best("none", subgroups="site").fit(frame, Y)


@pytest.mark.parametrize("promise", [*PROMISES, "none"])
def test_the_level_is_that_of_one_method_and_the_answers_are_those_of_the_model(
    promise,
):
    model = best(promise).fit(X, Y)
    assert len(model.guarantees_) == {
        "none": 0,
        PROMISES[2]: 2,
        PROMISES[4]: 2,
    }.get(promise, 1)
    for guarantee in model.guarantees_:
        assert guarantee.confidence == pytest.approx(0.95)
        assert guarantee.evidence["candidates"] == 3
        assert guarantee in model.model_.guarantees_
    np.testing.assert_array_equal(model.predict(X), model.model_.predict(X))
    assert hasattr(model, "answers") == hasattr(best(promise), "answers")
    assert hasattr(model, "answers") == (promise == "error <= 5%")
    assert hasattr(model, "p_values") == promise.startswith("coverage")
    if promise != "none":
        sets = prudent.predict_set(model, X)
        np.testing.assert_array_equal(sets, model.model_.predict_set(X))
    if promise.startswith("coverage"):
        loose = model.predict_set(X, level=0.4)
        assert loose.sum() <= model.predict_set(X).sum()


def test_without_a_confidence_a_coverage_is_promised_on_average():
    model = best("coverage >= 90%", confidence=None).fit(X, Y)
    assert model.guarantees_[0].average_over == "training samples"


class Stubborn(ClassifierMixin, BaseEstimator):
    """Fails, with a reason of its own."""

    def fit(self, X, y):
        raise RuntimeError("no licence on this machine\nat all")

    def predict(self, X):
        return X


def test_a_candidate_that_fails_is_out_and_named():
    listed = [("mine", Stubborn()), "lda"]
    with pytest.warns(PrudentWarning, match="1 of 2 candidates is out: mine: no lic"):
        model = best(estimators=listed).fit(X, Y)
    assert model.best_name_ == "lda"
    assert model.choice_results_["rank"].tolist() == [0, 1]
    assert model.choice_results_["failed"].tolist() == [
        "no licence on this machine",
        "",
    ]
    assert np.isnan(model.choice_results_["usefulness"][0])


def test_where_all_fail_the_first_reason_is_told():
    message = "none of 2 candidates could be fitted; a: no licence on this machine"
    with pytest.raises(ValueError, match=message):
        best(estimators={"a": Stubborn(), "b": Stubborn()}).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimators": ["ldda"]}, "`estimators` must be names among .*'lda'"),
        ({"estimators": [GaussianNB()]}, "`estimators` takes names"),
        ({"estimators": [FrozenEstimator(GaussianNB())]}, "`estimators` takes names"),
        (
            {"estimators": [("mine", FrozenEstimator(GaussianNB()))]},
            "`estimators`: 'mine' is frozen, and every method is fitted anew",
        ),
        ({"estimators": []}, "`estimators` names no method: give at least one"),
        ({"estimators": ["lda", "lda"]}, "`estimators` repeat a name"),
        ({"cv": 1}, "`cv` must be an integer >= 2, got 1"),
        ({"confidence": 1.0}, r"`confidence` must lie in \(0, 1\), got 1"),
        ({"calibration_size": 0}, "`calibration_size` must lie in"),
        ({"promise": "perfect"}, "is none of"),
        ({"promise": "false alarm <= 5%"}, "is a promise of detectors"),
        ({"promise": "missed 7 <= 5%"}, "names class '7'"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(settings, message):
    with pytest.raises(ValueError, match=message):
        best(**settings).fit(X, Y)


def test_weights_are_refused_and_infeasible_limits_are_those_of_the_wrapper():
    with pytest.raises(TypeError, match="BestClassifier: `sample_weight` is not supp"):
        best().fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(TypeError, match="positional"):
        best().fit(X, Y, np.ones(len(Y)))
    with pytest.raises(InfeasibleError, match="rows are needed for 0.001"):
        best("missed 0 <= 0.1%").fit(X, Y)


def test_methods_without_probabilities_and_conformal_compete():
    listed = [("svm", make_pipeline(StandardScaler(), LinearSVC())), "conformal"]
    for promise in PROMISES:
        model = best(promise, listed).fit(X, Y)
        assert model.choice_results_["failed"].tolist() == ["", ""]
    assert model.choice_results_["name"].tolist() == ["svm", "conformal"]
    gaussian = best(estimators=["conformal"]).fit(X, Y).best_estimator_
    assert gaussian.model == "gaussian"


@pytest.mark.filterwarnings("ignore:.*held-out rows stand among")
def test_groups_stay_together_in_the_folds_and_where_rows_are_held_out():
    # Each row three times with its label: only whole groups keep that from telling.
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(200), 3)
    noise, labels = rng.normal(size=(200, 2))[groups], rng.integers(0, 2, 200)[groups]
    nearest = {"nearest": KNeighborsClassifier(1)}
    model = best("coverage >= 60%", nearest, confidence=None)
    apart = clone(model).fit(noise, labels)
    together = model.fit(noise, labels, groups=groups)
    assert apart.choice_results_["second"][0] > -0.2
    assert -0.65 < together.choice_results_["second"][0] < -0.35
    assert together.guarantees_[0].unit == "group"


def test_it_works_in_searches_pipelines_clones_pickles_and_files(tmp_path):
    model = best().fit(X, Y)
    expected = model.answers(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.answers(X), expected)
    prudent.save(model, tmp_path / "best.prudent")
    stored = prudent.load(tmp_path / "best.prudent")
    np.testing.assert_array_equal(stored.answers(X), expected)
    assert stored.guarantees_ == model.guarantees_
    assert stored.best_name_ == "qda"
    np.testing.assert_array_equal(clone(model).fit(X, Y).answers(X), expected)
    piped = make_pipeline(StandardScaler(), best()).fit(X, Y)
    assert piped[-1].best_name_ in NAMES
    search = GridSearchCV(
        best(estimators=NAMES[:2]), {"promise": PROMISES[:2]}, cv=2
    ).fit(X, Y)
    assert search.best_params_["promise"] in PROMISES
    assert prudent.predict_set(search, X).shape == (len(Y), 2)


def test_data_frames_are_taken_with_their_names():
    names = [f"c{j}" for j in range(X.shape[1])]
    expected = best().fit(X, Y).answers(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = best().fit(frame, Y)
        np.testing.assert_array_equal(model.answers(frame), expected)


def test_a_class_of_two_rows_puts_no_candidate_out():
    flowers, kinds = load_iris(return_X_y=True)
    kept = np.r_[0:100, 148:150]
    model = best("coverage >= 90%", ["lda", "qda", "logistic"], confidence=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        model.fit(flowers[kept], kinds[kept])
    assert (model.choice_results_["failed"] == "").all()


def test_progress_is_told_of_every_candidate_and_fold():
    seen = []
    with reporting_to(lambda *state: seen.append(state)):
        best(estimators=NAMES[:2], cv=2).fit(X, Y)
    best(estimators=NAMES[:1], cv=2).fit(X, Y)  # nobody is told any more
    assert seen == [(name, fold, 2) for name in NAMES[:2] for fold in (1, 2)]


class Slow(GaussianNB):
    """Takes a fifth of a second to fit."""

    def fit(self, X, y):
        time.sleep(0.2)
        return super().fit(X, y)


def test_a_time_limit_is_kept_between_the_folds_of_a_candidate():
    listed = {
        "bayes": GaussianNB(),
        "slow": Slow(),
        "lda": LinearDiscriminantAnalysis(),
    }
    choice = ChosenClassifier(listed, cv=20, time_limit=0.5)
    begun = time.monotonic()
    with pytest.warns(PrudentWarning, match=r"slow: not judged within 0.5 s; lda: "):
        choice.fit(X, Y)
    assert time.monotonic() - begun < 3
    assert choice.best_name_ == "bayes"


def test_own_estimators_and_random_states():
    listed = {"bayes": GaussianNB(), "lda": LinearDiscriminantAnalysis()}
    fresh, same = (
        best("coverage >= 90%", listed, random_state=np.random.RandomState(3)).fit(X, Y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(fresh.p_values(X), same.p_values(X))
    assert fresh.n_candidates_ == 2


def test_the_default_candidates_hold_a_boosting_that_stops_early():
    rows = np.random.default_rng(0).permutation(len(Y))[:200]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        model = best(estimators=None, cv=2, confidence=None).fit(X[rows], Y[rows])
    names = model.choice_results_["name"].tolist()
    assert names == [
        "optimistic",
        "minimax",
        "calibrated",
        "imprecise",
        "rejection",
        "conformal",
        "logistic",
        "lda",
        "qda",
        "boosting",
        "boosting_early_stopping",
    ]
    assert (model.choice_results_["failed"] == "").all()
