"""SelectiveClassifier: what it answers, what it promises, what it refuses."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import binom, multinomial
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    make_classification,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import prudent
from prudent import (
    ConformalClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.certification import error_boundary
from prudent.certification.held_out import answer_scores
from prudent.core.assumptions import Assumption
from prudent.core.binomial import fewest_answered, upper_limit
from prudent.exceptions import PrudentWarning

X, Y = load_breast_cancer(return_X_y=True)
LDA = LinearDiscriminantAnalysis()


@pytest.fixture(scope="module")
def model():
    return SelectiveClassifier(LDA, random_state=0).fit(X, Y)


def test_rows_are_held_out_and_counted(model):
    assert model.n_calibration_ == 171
    assert model.answered_share_ == model.n_answered_ / 171
    promise = model.guarantees_[0]
    assert dict(promise.evidence) == {
        "calibration rows": 171,
        "answered": model.n_answered_,
        "wrong": model.n_wrong_,
        "pointwise level": error_boundary(171, 0.05).level,
    }
    assert (promise.quantity, promise.bound, promise.sense, promise.confidence) == (
        "selective error rate",
        0.05,
        "<=",
        0.95,
    )
    assert promise.assumptions == (Assumption.INDEPENDENT,)


def test_a_row_is_answered_iff_its_score_is_above_the_threshold(model):
    scores = model.estimator_.predict_proba(X).max(axis=1)
    np.testing.assert_array_equal(model.answers(X), scores > model.threshold_)


def test_probabilities_that_round_to_one_do_not_tie():
    """Naive Bayes is sure of half the digits; by probabilities they are all or none."""
    X, y = load_digits(return_X_y=True)
    model = GaussianNB().fit(X[:900], y[:900])
    sureness, _ = answer_scores(model, X[900:], "max_probability")
    probability = model.predict_proba(X[900:]).max(axis=1)
    full = probability == 1
    assert 0.3 < full.mean() < 0.7
    np.testing.assert_array_equal(sureness[~full], probability[~full])
    assert sureness[full].min() > 30
    joint = np.sort(model.predict_joint_log_proba(X[900:]), axis=1)
    # Where the second class has the odds to itself, they are the lead of the first.
    alone = full & (joint[:, -2] - joint[:, -3] > 40) & (sureness < 700)
    lead = joint[alone, -1] - joint[alone, -2]
    np.testing.assert_allclose(sureness[alone], lead, rtol=1e-9)
    selective = SelectiveClassifier(GaussianNB(), error_rate=0.08, random_state=0)
    assert selective.fit(X, y).answered_share_ > 0.4
    selective.scoring = lambda model, X: model.predict_proba(X).max(axis=1)
    with pytest.warns(PrudentWarning, match="nothing is answered"):
        selective.fit(X, y)


def test_sets_are_the_label_or_everything(model):
    sets = model.predict_set(X)
    answered = model.answers(X)
    assert not answered.all()
    assert sets[~answered].all()
    assert (sets[answered].sum(axis=1) == 1).all()
    chosen = model.classes_[sets[answered].argmax(axis=1)]
    np.testing.assert_array_equal(chosen, model.predict(X)[answered])
    np.testing.assert_array_equal(prudent.predict_set(model, X), sets)


def test_a_frozen_model_is_held_to_all_rows():
    fitted = LDA.fit(X[:200], Y[:200])
    model = SelectiveClassifier(FrozenEstimator(fitted)).fit(X[200:], Y[200:])
    assert model.n_calibration_ == len(X) - 200
    assert model.guarantees_[0].assumptions[1] is Assumption.UNSEEN
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def test_an_unfitted_frozen_model_is_refused():
    with pytest.raises(ValueError, match="not fitted yet"):
        SelectiveClassifier(FrozenEstimator(LogisticRegression())).fit(X, Y)


def test_a_frozen_model_may_see_one_class_only():
    fitted = LDA.fit(X, Y)
    model = SelectiveClassifier(FrozenEstimator(fitted)).fit(X[Y == 1], Y[Y == 1])
    assert model.n_calibration_ == (Y == 1).sum()


@pytest.mark.parametrize(
    ("label", "kind"), [(-1, "i"), ("ask", "O"), (np.nan, "f"), (None, "i")]
)
def test_reject_label(label, kind):
    model = SelectiveClassifier(LDA, reject_label=label, random_state=0).fit(X, Y)
    predicted = model.predict(X)
    answered = model.answers(X)
    np.testing.assert_array_equal(
        predicted[answered].astype(int), model.estimator_.predict(X)[answered]
    )
    assert predicted.dtype.kind == kind
    if isinstance(label, (int, str)):
        assert (predicted[~answered] == label).all()


@pytest.mark.parametrize(("fitted", "later"), [(None, -1), (-1, None), (-1, -2)])
def test_the_label_of_refused_rows_is_that_of_the_fit(fitted, later):
    model = SelectiveClassifier(
        LDA, error_rate=0.01, reject_label=fitted, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        predicted = model.fit(X, Y).predict(X)
        assert not model.answers(X).all()
        model.set_params(reject_label=later)
        np.testing.assert_array_equal(model.predict(X), predicted)
        np.testing.assert_array_equal(model.with_error_rate(0.01).predict(X), predicted)
        assert later is None or (model.fit(X, Y).predict(X) == later).any()


def test_reject_label_of_text_classes_is_not_cut_short():
    y = np.array(["no", "ja"])[Y]
    model = SelectiveClassifier(LDA, reject_label="a person decides", random_state=0)
    predicted = model.fit(X, y).predict(X)
    assert set(predicted) == {"no", "ja", "a person decides"}


def test_share_promises_the_exact_limit():
    model = SelectiveClassifier(
        LDA, error_rate=None, answered_share=0.8, random_state=0
    ).fit(X, Y)
    promise, share = model.guarantees_
    each = math.sqrt(0.95)
    needed = fewest_answered(171, 0.8, 1 - each)
    assert model.n_answered_ == needed
    assert binom.sf(needed - 1, 171, 0.8) <= 1 - each < binom.sf(needed - 2, 171, 0.8)
    assert promise.bound == upper_limit(model.n_wrong_, needed, level=1 - each)
    assert "pointwise level" not in promise.evidence
    assert (share.quantity, share.sense, share.bound) == ("answered share", ">=", 0.8)
    assert share.confidence == promise.confidence == 0.95


def test_share_that_no_rows_prove_is_cut_and_not_promised():
    model = SelectiveClassifier(
        LDA, error_rate=None, answered_share=0.99, random_state=0
    )
    with pytest.warns(
        PrudentWarning,
        match=r"answered_share=0.99: 171 held-out rows cannot prove it, 366 are needed",
    ):
        model.fit(X, Y)
    assert model.n_answered_ == math.floor(0.99 * 171)
    (promise,) = model.guarantees_
    assert promise.bound == upper_limit(model.n_wrong_, 169, level=1 - 0.95)


def test_error_and_share_are_promised_together():
    model = SelectiveClassifier(
        LDA, error_rate=0.1, answered_share=0.6, random_state=0
    ).fit(X, Y)
    error, share = model.guarantees_
    assert (error.bound, share.bound) == (0.1, 0.6)
    assert error.evidence["claims"] == share.evidence["claims"] == 2
    alone = SelectiveClassifier(
        LDA, error_rate=0.1, confidence=0.975, random_state=0
    ).fit(X, Y)
    assert model.threshold_ == alone.threshold_
    assert model.n_answered_ >= fewest_answered(171, 0.6, 0.025)
    other = model.with_error_rate(0.2)
    assert [g.quantity for g in other.guarantees_] == ["selective error rate"]


def test_too_few_answers_leave_the_error_promised_alone():
    model = SelectiveClassifier(
        LDA, error_rate=0.03, answered_share=0.95, random_state=0
    )
    with pytest.warns(PrudentWarning, match=r"of 171 held-out rows are answered, 1"):
        model.fit(X, Y)
    assert [g.quantity for g in model.guarantees_] == ["selective error rate"]


@pytest.mark.parametrize("share", [0.3, 0.62, 0.8])
@pytest.mark.parametrize("at_most", [False, True])
def test_lemma_of_capacity_by_enumeration(share, at_most):
    """Whatever threshold is chosen after looking, on laws of four scores."""
    n, level = 12, 0.15
    few = n - fewest_answered(n, 1 - share, level)  # flagged, for a share of at most
    many = fewest_answered(n, share, level)
    rng = np.random.default_rng(3)
    laws = list(rng.dirichlet(np.ones(4), 30))
    # The worst laws have a threshold just on the wrong side of the share.
    edge = share * (1 + 1e-9 if at_most else 1 - 1e-9)
    laws += [np.array([edge / 2, edge / 2, (1 - edge) / 2, (1 - edge) / 2])]
    counts = np.array(list(itertools.product(range(n + 1), repeat=4)))
    counts = counts[counts.sum(axis=1) == n]
    above = np.cumsum(counts, axis=1)
    most = 0.0
    for law in laws:
        mass = np.cumsum(law)
        if at_most:
            false = ((above <= few) & (mass > share)).any(axis=1)
        else:
            false = ((above >= many) & (mass < share)).any(axis=1)
        chance = multinomial.pmf(counts, n, law)[false].sum()
        most = max(most, chance)
        assert chance <= level + 1e-7
    assert most > level / 4  # the laws do test it


def test_share_of_equal_scores_promises_nothing():
    model = SelectiveClassifier(
        DummyClassifier(), error_rate=None, answered_share=0.5, random_state=0
    )
    with pytest.warns(PrudentWarning, match="nothing is promised"):
        model.fit(X, Y)
    assert model.guarantees_ == ()
    assert not model.answers(X).any()


def test_too_few_rows_answer_nothing():
    fitted = LDA.fit(X, Y)
    with pytest.warns(PrudentWarning) as caught:
        model = SelectiveClassifier(FrozenEstimator(fitted)).fit(X[:58], Y[:58])
    assert str(caught[0].message) == (
        "SelectiveClassifier: no threshold certifies an error rate <= 0.05 with "
        "confidence 0.95 on 58 held-out rows (at least 59 rows without an error are "
        "needed); nothing is answered."
    )
    assert caught[0].filename == __file__
    assert model.threshold_ == np.inf
    assert model.guarantees_ == ()


def test_rows_needed_beside_a_share_are_those_of_half_the_level():
    fitted = LDA.fit(X, Y)
    model = SelectiveClassifier(FrozenEstimator(fitted), answered_share=0.5)
    # 59 rows without an error prove 5 % at 95 %, 72 at 97.5 %.
    with pytest.warns(PrudentWarning, match="at least 72 rows without an error"):
        model.fit(X[:71], Y[:71])
    assert not model.answers(X).any()
    assert model.predict_set(X).all()


def test_fifty_nine_right_rows_are_enough():
    rows = np.column_stack([np.arange(59) % 2, np.sin(np.arange(59))])
    labels = rows[:, 0].astype(int)
    fitted = GaussianNB().fit(rows, labels)
    model = SelectiveClassifier(FrozenEstimator(fitted))
    assert model.fit(rows, labels).n_answered_ == 59


@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (GaussianNB(), "margin"),
        (LinearSVC(), "max_probability"),
        (LinearSVC(), "margin"),
        (RidgeClassifier(), "margin"),
        (LDA, lambda model, X: model.predict_log_proba(X)[:, 0]),
    ],
)
def test_scorings(estimator, scoring):
    rows, labels = load_iris(return_X_y=True)
    rows, labels = np.tile(rows, (3, 1)), np.tile(labels, 3)
    rows += np.random.default_rng(0).normal(0, 0.05, rows.shape)
    model = SelectiveClassifier(
        estimator, error_rate=0.2, scoring=scoring, random_state=0
    ).fit(rows, labels)
    assert model.n_answered_ > 20


def test_labels_of_any_type():
    import pandas as pd
    import polars as pl

    words = np.array(["malignant", "benign"])[Y]
    expected = SelectiveClassifier(LDA, random_state=0).fit(X, words)
    names = [f"x{j}" for j in range(X.shape[1])]
    tables = {
        "pandas": (pd.DataFrame(X, columns=names), pd.Series(words)),
        "categories": (pd.DataFrame(X, columns=names), pd.Categorical(words)),
        "polars": (pl.DataFrame(X, schema=names), pl.Series(words)),
        "lists": (X.tolist(), words.tolist()),
    }
    for rows, labels in tables.values():
        model = SelectiveClassifier(LDA, random_state=0).fit(rows, labels)
        assert model.threshold_ == pytest.approx(expected.threshold_)
        assert np.mean(model.answers(rows) == expected.answers(X)) > 0.99
        if not isinstance(rows, list):
            assert model.feature_names_in_.tolist() == names
    for labels in (Y.astype(bool), Y.astype(float), Y.astype(np.int8)):
        model = SelectiveClassifier(LDA, random_state=0).fit(X, labels)
        assert model.n_answered_ > 100


def test_searches_and_tuned_thresholds_stay_inside():
    for inner in (
        GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"logisticregression__C": [0.01, 1.0]},
            cv=3,
        ),
        TunedThresholdClassifierCV(LogisticRegression(max_iter=5000), cv=3),
    ):
        model = SelectiveClassifier(inner, random_state=0)
        if isinstance(inner, TunedThresholdClassifierCV):
            model.estimator = make_pipeline(StandardScaler(), inner)
        model.fit(X, Y)
        assert model.n_answered_ > 100
        answered = model.answers(X)
        np.testing.assert_array_equal(
            model.predict(X)[answered], model.estimator_.predict(X)[answered]
        )


def test_inside_a_search_and_cross_validation():
    search = GridSearchCV(
        SelectiveClassifier(LDA, random_state=0), {"error_rate": [0.1, 0.2]}, cv=2
    ).fit(X, Y)
    assert prudent.predict_set(search, X).shape == (len(X), 2)
    assert np.isfinite(cross_validate(search.estimator, X, Y)["test_score"]).all()


def test_another_error_rate_without_a_fit(model):
    other = model.with_error_rate(0.1)
    expected = clone(model).set_params(error_rate=0.1).fit(X, Y)
    assert other.threshold_ == expected.threshold_
    assert other.guarantees_ == expected.guarantees_
    assert other.estimator_ is model.estimator_
    assert model.error_rate == 0.05
    assert model.guarantees_[0].bound == 0.05


def test_wider_limits_answer_more(model):
    answered = [model.with_error_rate(r).n_answered_ for r in (0.03, 0.05, 0.1, 0.3)]
    assert answered == sorted(answered)


def test_groups_count_one_row_each():
    groups = np.arange(len(X)) // 4
    model = SelectiveClassifier(LDA, error_rate=0.2, random_state=0)
    model.fit(X, Y, groups=groups)
    assert model.n_calibration_ == np.ceil(0.3 * 143)
    assert model.guarantees_[0].assumptions == (Assumption.GROUPS,)
    assert model.guarantees_[0].unit == "group"
    fitted = FrozenEstimator(LDA.fit(X, Y))
    frozen = SelectiveClassifier(fitted, error_rate=0.2, random_state=0)
    assert frozen.fit(X, Y, groups=groups).n_calibration_ == 143


def test_copies_are_equal(model, tmp_path):
    prudent.save(model, tmp_path / "model.prudent")
    for copy in (
        pickle.loads(pickle.dumps(model)),
        prudent.load(tmp_path / "model.prudent"),
    ):
        assert copy.guarantees_ == model.guarantees_
        np.testing.assert_array_equal(copy.answers(X), model.answers(X))
        assert copy.with_error_rate(0.1).n_answered_ >= copy.n_answered_


def test_the_draw_is_reproducible():
    one, two = (SelectiveClassifier(LDA, random_state=7).fit(X, Y) for _ in range(2))
    assert one.threshold_ == two.threshold_


def test_probabilities_only_where_the_estimator_has_them(model):
    assert model.predict_proba(X).shape == (len(X), 2)
    assert not hasattr(SelectiveClassifier(LinearSVC()), "predict_proba")


def test_sparse_rows():
    from scipy.sparse import csr_array

    dense = SelectiveClassifier(LogisticRegression(max_iter=5000), random_state=0)
    sparse = clone(dense).fit(csr_array(X), Y)
    assert sparse.n_answered_ > 100


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"error_rate": None},
            "give `error_rate`, `answered_share` or both, got neither.",
        ),
        ({"error_rate": 1.5}, "`error_rate` must lie in (0, 1), got 1.5."),
        ({"error_rate": "low"}, "`error_rate` must lie in (0, 1), got 'low'."),
        (
            {"error_rate": None, "answered_share": 0},
            "`answered_share` must lie in (0, 1], got 0.",
        ),
        ({"confidence": 1.0}, "`confidence` must lie in (0, 1), got 1.0."),
        ({"calibration_size": 2}, "`calibration_size` must lie in (0, 1), got 2."),
        ({"reject_label": 1}, "`reject_label` must differ from every class, got 1."),
        (
            {"scoring": "entropy"},
            "`scoring` must be 'max_probability', 'margin' or a callable, got "
            "'entropy'.",
        ),
        (
            {"scoring": lambda model, X: np.full(len(X), np.nan)},
            "`scoring` gave NaN for 171 of 171 rows; rows without a score cannot be "
            "ranked.",
        ),
        (
            {"scoring": lambda model, X: np.ones((len(X), 2))},
            "`scoring` must give one score for each row, got shape (171, 2).",
        ),
        (
            {"estimator": None},
            "SelectiveClassifier: `estimator` is None; give a classifier, or a fitted "
            "one in FrozenEstimator.",
        ),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError) as error:
        SelectiveClassifier(**{"estimator": LDA, **parameters}).fit(X, Y)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            NearestNeighbors(),
            "SelectiveClassifier: `estimator` must be a classifier, got "
            "NearestNeighbors().",
        ),
        (3, "SelectiveClassifier: `estimator` must be a classifier, got 3."),
    ],
)
def test_no_classifier(estimator, message):
    with pytest.raises(TypeError) as error:
        SelectiveClassifier(estimator).fit(X, Y)
    assert str(error.value) == message


def test_answers_that_cannot_be_ranked():
    class Votes(LinearDiscriminantAnalysis):
        predict_proba = decision_function = property()

    with pytest.raises(TypeError) as error:
        SelectiveClassifier(Votes()).fit(X, Y)
    assert str(error.value) == (
        "Votes has neither predict_proba nor decision_function, so its answers cannot "
        "be ranked."
    )


WRAPPERS = [
    SelectiveClassifier(error_rate=0.3, random_state=0),
    NeymanPearsonClassifier(max_class_error={0: 0.4}, random_state=0),
    ConformalClassifier(random_state=0),
]


@pytest.mark.parametrize("column", [np.s_[:, 1], np.s_[:, 1:]])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_probabilities_of_one_class_are_refused(wrapper, column):
    class Single(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X)[column]

    model = clone(wrapper).set_params(estimator=Single())
    with pytest.raises(TypeError, match=r"gives an array of shape .* for 2 classes; a"):
        model.fit(X, Y)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_one_column_of_decisions_does_for_two_classes(wrapper):
    class Column(LinearDiscriminantAnalysis):
        predict_proba = property()

        def decision_function(self, X):
            return super().decision_function(X)[:, np.newaxis]

        def predict(self, X):
            return self.classes_[(self.decision_function(X)[:, 0] > 0).astype(int)]

    class Row(LinearDiscriminantAnalysis):
        predict_proba = property()

    by_column, by_row = (
        clone(wrapper).set_params(estimator=model).fit(X, Y)
        for model in (Column(), Row())
    )
    np.testing.assert_array_equal(by_column.predict_set(X), by_row.predict_set(X))


def test_regressor_is_no_classifier():
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="LinearRegression is no classifier"):
        SelectiveClassifier(LinearRegression()).fit(X, Y)


def test_two_rows_are_too_few():
    with pytest.raises(ValueError) as error:
        SelectiveClassifier(LDA).fit(X[:2], [0, 1])
    assert str(error.value) == (
        "SelectiveClassifier: `calibration_size=0.3` of 2 row(s) leaves 1 held-out and "
        "1 training rows (1 sample is too few); both need rows."
    )


def test_a_class_without_training_rows():
    y = Y.copy()
    held_out = np.random.RandomState(0).permutation(len(X))[0]
    y[held_out] = 5
    with pytest.warns(PrudentWarning) as caught:
        model = SelectiveClassifier(LDA, random_state=0).fit(X, y)
    assert str(caught[0].message) == (
        "SelectiveClassifier: no row of class 5 is outside the held-out part, so these "
        "rows are never answered right, and count as wrong. Give more such rows, or a "
        "fitted model in FrozenEstimator; another random_state (--seed) chosen after "
        "this would void the promise."
    )
    assert model.classes_.tolist() == [0, 1]
    plain = SelectiveClassifier(LDA, random_state=0).fit(X, Y)
    # The row of class 5 is predicted 0 or 1, and now counts as wrong.
    was_right = plain.estimator_.predict(X[[held_out]])[0] == Y[held_out]
    assert wrong_of(model) == wrong_of(plain) + was_right


def wrong_of(model):
    """Held-out rows that the estimator gets wrong, answered or not."""
    return model.rule_.calibration.scores.wrong[-1]


def test_one_class_without_the_held_out_rows():
    y = np.zeros(len(X), dtype=int)
    y[np.random.RandomState(0).permutation(len(X))[0]] = 5
    with pytest.raises(ValueError, match="one class alone is left to learn"):
        SelectiveClassifier(LDA, random_state=0).fit(X, y)


def test_one_class():
    with pytest.raises(ValueError, match="all rows are of class 1"):
        SelectiveClassifier(LDA).fit(X, np.ones(len(X), dtype=int))


def test_weights_are_refused_in_words():
    with pytest.raises(TypeError, match="no exact binomial law"):
        SelectiveClassifier(LDA).fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="takes X, y, groups and time, got coef_init"):
        SelectiveClassifier(LDA).fit(X, Y, coef_init=1)


def test_dask_is_refused():
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="dask input"):
        SelectiveClassifier(LDA).fit(dask_array.ones((10, 2)), Y[:10])


def test_rows_seen_twice_are_warned_of():
    rows, labels = np.vstack([X, X]), np.concatenate([Y, Y])
    with pytest.warns(PrudentWarning, match="stand among the rows learned from"):
        SelectiveClassifier(LDA, random_state=0).fit(rows, labels)


def test_scores_of_ten_classes():
    rows, labels = make_classification(
        2000, 20, n_informative=12, n_classes=10, class_sep=3.0, random_state=0
    )
    model = SelectiveClassifier(LDA, error_rate=0.2, random_state=0).fit(rows, labels)
    assert model.predict_set(rows).shape == (2000, 10)


def test_parameters_changed_after_the_fit_change_no_answer():
    model = SelectiveClassifier(LDA, error_rate=0.1, random_state=0).fit(X, Y)
    answered, promises = model.answers(X), model.guarantees_
    model.set_params(scoring="margin", error_rate=0.3, confidence=0.5)
    np.testing.assert_array_equal(model.answers(X), answered)
    assert model.guarantees_ is model.rule_.guarantees is promises
    other = model.with_error_rate(0.2).guarantees_[0]
    assert other.confidence == 0.95  # what was fitted


class TestSubgroupOfWhichNothingCanBeProved:
    """Labels of women follow the feature, those of men are coins."""

    @staticmethod
    def rows(n=1200):
        rng = np.random.default_rng(0)
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"x": rng.normal(size=n), "sex": rng.integers(0, 2, n)})
        coins = rng.integers(0, 2, n)
        y = np.where(frame["sex"] == 1, frame["x"] > 0, coins)
        frame["sex"] = np.where(frame["sex"] == 1, "F", "M")
        return frame, y.astype(int)

    def test_it_is_named(self):
        frame, y = self.rows()
        encoded = make_pipeline(
            make_column_transformer(
                (OneHotEncoder(), ["sex"]), remainder="passthrough"
            ),
            LogisticRegression(),
        )
        model = SelectiveClassifier(
            encoded, error_rate=0.1, subgroups=["sex"], random_state=0
        )
        with pytest.warns(PrudentWarning, match="never answered: sex=M"):
            model.fit(frame, y)
        assert model.rule_.never_answered == ("sex=M",)
        assert not model.answers(frame[frame["sex"] == "M"]).any()
        assert {g.subgroup for g in model.guarantees_} == {None, "sex=F"}

    def test_a_rule_of_scores_has_it_too(self):
        frame, y = self.rows()
        sure = np.abs(frame["x"])
        predicted = (frame["x"] > 0).astype(int)
        rule = prudent.promise(
            sure,
            y,
            "error <= 10% in every sex",
            predicted=predicted,
            by=frame[["sex"]],
        )
        assert rule.never_answered == ("sex=M",)
