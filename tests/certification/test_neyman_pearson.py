"""NeymanPearsonClassifier: limits of classes, alone, in turn and with sets."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

import prudent
from prudent import Guarantee, NeymanPearsonClassifier, queue_limit
from prudent.core.assumptions import Assumption
from prudent.core.binomial import high_probability_rank, most_wrong
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.make import ClassErrors, class_scores_of
from prudent.rules.rule import Terms

X, Y = load_breast_cancer(return_X_y=True)
LDA = LinearDiscriminantAnalysis()


class Scores(LinearDiscriminantAnalysis):
    """Probabilities read off the columns of the rows."""

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)


def frozen_scores(n_classes):
    rng = np.random.default_rng(0)
    rows = rng.random((10 * n_classes, n_classes))
    return FrozenEstimator(Scores().fit(rows, np.arange(len(rows)) % n_classes))


def test_threshold_is_the_order_statistic_of_the_class():
    model = NeymanPearsonClassifier(
        FrozenEstimator(LDA.fit(X, Y)), max_class_error={0: 0.05}
    ).fit(X, Y)
    scores = np.sort(LDA.predict_proba(X)[Y == 0, 0])
    rank = high_probability_rank(212, 0.05, 0.95)
    cut, other = model.thresholds_.tolist()
    assert other == -np.inf
    # Scores that are equal but for rounding get the class, too.
    assert scores[rank - 1] * (1 - 2e-9) < cut < scores[rank - 1]
    assert dict(model.guarantees_[0].evidence) == {
        "calibration rows": 212,
        "rank": rank,
        "claims": 1,
        "classes": 2,
    }
    reached = LDA.predict_proba(X)[:, 0] >= model.thresholds_[0]
    np.testing.assert_array_equal(model.predict(X) == 0, reached)


def test_two_limits_in_turn():
    rows, labels = load_wine(return_X_y=True)
    rows = np.tile(rows, (4, 1)) + np.random.default_rng(0).normal(0, 0.1, (712, 13))
    labels = np.tile(labels, 4)
    model = NeymanPearsonClassifier(
        LDA, max_class_error={2: 0.1, 0: 0.1}, random_state=0
    ).fit(rows, labels)
    assert model.priority_.tolist() == [2, 0]
    assert [g.scope for g in model.guarantees_] == [2, 0]
    assert [g.evidence["claims"] for g in model.guarantees_] == [2, 2]
    scores = model.estimator_.predict_proba(rows)
    expected = np.where(
        scores[:, 2] >= model.thresholds_[2],
        2,
        np.where(scores[:, 0] >= model.thresholds_[0], 0, 1),
    )
    np.testing.assert_array_equal(model.predict(rows), expected)


def test_rows_taken_before_count_as_the_lowest_scores():
    rng = np.random.default_rng(1)
    scores = rng.random((400, 3))
    labels = rng.integers(3, size=400)
    rows = class_scores_of(scores, labels, np.arange(3))
    made = ClassErrors(scores=rows, terms=Terms(confidence=0.9))
    rule = made.rule({0: 0.6, 1: 0.6})
    each = np.sqrt(0.9)
    own = scores[labels == 1]
    taken = own[:, 0] >= rule.thresholds[0]
    order = np.sort(np.where(taken, -np.inf, own[:, 1]))
    rank = high_probability_rank(len(own), 0.6, each)
    assert rule.thresholds[1] == order[rank - 1]
    assert 0 < taken.sum() < rank


def test_sets_hold_every_class_whose_threshold_is_reached():
    rows, labels = load_iris(return_X_y=True)
    rows, labels = np.tile(rows, (5, 1)), np.tile(labels, 5)
    rows += np.random.default_rng(0).normal(0, 0.01, rows.shape)
    model = NeymanPearsonClassifier(
        GaussianNB(), max_class_error=0.1, abstain=True, random_state=0
    ).fit(rows, labels)
    scores = model.estimator_.predict_proba(rows)
    sets = scores >= model.thresholds_
    sets[~sets.any(axis=1)] = True
    np.testing.assert_array_equal(model.predict_set(rows), sets)
    assert {(g.quantity, g.sense, g.bound) for g in model.guarantees_} == {
        ("coverage", ">=", 0.9)
    }
    chosen = model.predict(rows)
    assert sets[np.arange(len(rows)), chosen].all()
    np.testing.assert_array_equal(chosen, np.where(sets, scores, -1).argmax(axis=1))


def test_a_class_without_a_limit_is_in_every_set():
    model = NeymanPearsonClassifier(
        LDA, max_class_error={0: 0.05}, abstain=True, random_state=0
    ).fit(X, Y)
    assert model.predict_set(X)[:, 1].all()


def test_without_limits_nothing_is_promised():
    model = NeymanPearsonClassifier(LDA, random_state=0).fit(X, Y)
    assert model.guarantees_ == ()
    assert model.priority_.tolist() == []
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    assert (model.predict_set(X).sum(axis=1) == 1).all()


def test_a_class_of_too_few_rows_is_an_error_that_says_how_many():
    model = frozen_scores(2)
    rows = np.random.default_rng(0).random((40, 2))
    labels = np.repeat([0, 1], [28, 12])
    with pytest.raises(InfeasibleError) as error:
        NeymanPearsonClassifier(model, max_class_error={1: 0.01}).fit(rows, labels)
    assert str(error.value) == (
        "NeymanPearsonClassifier: class 1 has 12 held-out rows, of which no rank keeps "
        "a class error <= 0.01 with confidence 0.95; the smallest possible limit is "
        "0.221, and 299 rows are needed for 0.01."
    )


def test_the_limit_that_an_error_calls_possible_can_be_kept():
    model = frozen_scores(2)
    rows = np.random.default_rng(0).random((150, 2))
    labels = np.repeat([0, 1], [49, 101])
    with pytest.raises(InfeasibleError, match=r"possible limit is 0\.0293,"):
        NeymanPearsonClassifier(model, max_class_error={1: 0.0292}).fit(rows, labels)
    NeymanPearsonClassifier(model, max_class_error={1: 0.0293}).fit(rows, labels)


def test_a_class_of_too_few_rows_is_never_ruled_out():
    rows = np.random.default_rng(0).random((112, 2))
    labels = np.repeat([0, 1], [100, 12])
    estimator = NeymanPearsonClassifier(
        frozen_scores(2), max_class_error={1: 0.05}, abstain=True
    )
    with pytest.warns(PrudentWarning) as caught:
        model = estimator.fit(rows, labels)
    assert str(caught[0].message) == (
        "NeymanPearsonClassifier: class 1 has 12 held-out rows, too few to rule it out "
        "(59 are needed for 0.05); it is in every set."
    )
    assert caught[0].filename == __file__
    assert model.predict_set(rows)[:, 1].all()
    assert model.guarantees_[0].evidence["rank"] == 0


def test_a_class_without_held_out_rows():
    rows = np.random.default_rng(0).random((50, 2))
    labels = np.zeros(50, dtype=int)
    with pytest.raises(InfeasibleError, match="has 0 held-out rows.* is 1, and"):
        NeymanPearsonClassifier(frozen_scores(2), max_class_error={1: 0.1}).fit(
            rows, labels
        )


def test_rows_taken_by_classes_before():
    rows = np.ones((300, 3)) * [0.5, 0.3, 0.2]
    labels = np.repeat([0, 1, 2], 100)
    rows[100:130, 2] = 0.9  # rows of class 1 that class 2 takes
    rows[200:, 2] = 0.9
    with pytest.raises(InfeasibleError) as error:
        NeymanPearsonClassifier(frozen_scores(3), max_class_error={2: 0.2, 1: 0.2}).fit(
            rows, labels
        )
    rank = high_probability_rank(100, 0.2, 0.95**0.5)
    assert str(error.value) == (
        "NeymanPearsonClassifier: 30 of 100 held-out rows of class 1 are taken by the "
        f"classes before it in `max_class_error`, at most {rank - 1} may be; raise the "
        "limits of those classes, change the order, or set abstain=True."
    )


def test_the_limit_called_possible_after_classes_before_can_be_kept():
    """At the smaller limit no rank would do, whatever the other classes take."""
    rows = np.ones((303, 3)) * [0.5, 0.3, 0.2]
    labels = np.repeat([0, 1, 2], 101)
    rows[:20, 2] = 0.9  # rows of class 0 that class 2 takes
    rows[202:, 2] = 0.9

    def fitted(limit):
        wanted = {2: 0.3, 0: limit}
        return NeymanPearsonClassifier(frozen_scores(3), max_class_error=wanted).fit(
            rows, labels
        )

    with pytest.raises(InfeasibleError) as error:
        fitted(0.01)
    assert "limit is 0.289, as the classes before it take 20 of the" in str(error.value)
    with pytest.raises(InfeasibleError):
        fitted(0.288)
    fitted(0.289)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"max_class_error": {"x": 0.1}},
            "`max_class_error` names class 'x', which is not among the classes [0, 1].",
        ),
        (
            {"max_class_error": {1: 1.5}},
            "`max_class_error` must lie in (0, 1), got 1.5 for class 1.",
        ),
        (
            {"max_class_error": 0.0, "abstain": True},
            "`max_class_error` must lie in (0, 1), got 0.0.",
        ),
        (
            {"max_class_error": {0: 0.1, 1: 0.1}},
            "`max_class_error` bounds all 2 classes, so no class is left to take the "
            "remaining rows; leave one out or set abstain=True.",
        ),
        (
            {"max_class_error": 0.1},
            "`max_class_error` bounds all 2 classes, so no class is left to take the "
            "remaining rows; leave one out or set abstain=True.",
        ),
        ({"confidence": 0}, "`confidence` must lie in (0, 1), got 0."),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError) as error:
        NeymanPearsonClassifier(LDA, **parameters).fit(X, Y)
    assert str(error.value) == message


def test_weights_are_refused_in_words():
    with pytest.raises(TypeError, match="no exact binomial law"):
        NeymanPearsonClassifier(LDA).fit(X, Y, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize(
    "estimator", [LinearSVC(), SVC(), LogisticRegression(max_iter=9999)]
)
def test_scores_of_either_kind(estimator):
    model = NeymanPearsonClassifier(
        estimator, max_class_error={0: 0.1}, random_state=0
    ).fit(X, Y)
    assert np.mean(model.predict(X[Y == 0]) == 0) > 0.85


@pytest.mark.parametrize(("n_classes", "n_pairs"), [(3, 3), (6, 15)])
def test_one_score_a_class_is_needed(n_classes, n_pairs):
    labels = np.arange(600) % n_classes
    rows = np.random.default_rng(0).normal(size=(600, 3)) + labels[:, None]
    model = FrozenEstimator(SVC(decision_function_shape="ovo").fit(rows, labels))
    with pytest.raises(TypeError, match=f"{n_pairs} columns for {n_classes} classes"):
        NeymanPearsonClassifier(model, max_class_error={0: 0.1}).fit(rows, labels)


def test_unknown_scores_are_refused():
    rows = np.random.default_rng(0).random((50, 2))
    rows[3, 0] = np.nan
    with pytest.raises(ValueError, match="Scores gave NaN scores for 1 of 50 rows"):
        NeymanPearsonClassifier(
            FrozenEstimator(frozen_scores(2).estimator), max_class_error={0: 0.1}
        ).fit(rows, np.arange(50) % 2)


def test_labels_are_text_and_scopes_are_plain():
    labels = np.array(["malignant", "benign"])[Y]
    model = NeymanPearsonClassifier(
        LDA, max_class_error={"malignant": 0.05}, random_state=0
    ).fit(X, labels)
    assert type(model.guarantees_[0].scope) is str
    assert "class 'malignant'" in str(model.guarantees_[0])


def test_other_limits_without_a_fit():
    model = NeymanPearsonClassifier(LDA, max_class_error={0: 0.05}, random_state=0)
    model.fit(X, Y)
    other = model.with_class_error({0: 0.1})
    expected = clone(model).set_params(max_class_error={0: 0.1}).fit(X, Y)
    np.testing.assert_array_equal(other.thresholds_, expected.thresholds_)
    assert other.guarantees_ == expected.guarantees_
    assert model.guarantees_[0].bound == 0.05
    with pytest.raises(InfeasibleError):
        model.with_class_error({0: 0.001})


def test_groups_count_one_row_each():
    groups = np.arange(len(X)) // 2
    model = NeymanPearsonClassifier(LDA, max_class_error={0: 0.1}, random_state=0)
    model.fit(X, Y, groups=groups)
    assert model.n_calibration_ == np.ceil(0.5 * 285)
    assert model.guarantees_[0].assumptions[0] is Assumption.GROUPS


def test_copies_are_equal(tmp_path):
    model = NeymanPearsonClassifier(LDA, max_class_error={0: 0.05}, random_state=0)
    model.fit(X, Y)
    prudent.save(model, tmp_path / "model.prudent")
    for copy in (
        pickle.loads(pickle.dumps(model)),
        prudent.load(tmp_path / "model.prudent"),
    ):
        assert copy.guarantees_ == model.guarantees_
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.with_class_error({0: 0.1}).thresholds_[0] > copy.thresholds_[0]


def test_limited_class_whose_rows_are_all_held_out_is_refused_without_a_redraw():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    y[np.random.RandomState(0).permutation(60)[0]] = 5
    with pytest.raises(ValueError) as error, pytest.warns(PrudentWarning):
        NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), max_class_error={5: 0.1}, random_state=0
        ).fit(X, y)
    assert str(error.value) == (
        "NeymanPearsonClassifier: no row of class 5 is outside the held-out part, so "
        "its error cannot be limited. Give more such rows, or a fitted model in "
        "FrozenEstimator; another random_state (--seed) chosen after this would void "
        "the promise."
    )


def test_parameters_changed_after_the_fit_change_no_answer():
    model = NeymanPearsonClassifier(LDA, max_class_error={0: 0.05}, random_state=0)
    model.fit(X, Y)
    labels, sets = model.predict(X), model.predict_set(X)
    model.set_params(abstain=True, max_class_error=0.3, confidence=0.5)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.predict_set(X), sets)
    assert model.guarantees_ is model.rule_.guarantees
    with pytest.raises(ValueError, match="bounds all 2 classes"):
        model.with_class_error(0.3)  # fitted to give labels, not sets


class TestCapacity:
    def test_class_error_and_flagged_share_are_promised_together(self):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(),
            max_class_error={0: 0.1},
            flagged_share=0.6,
            random_state=0,
        ).fit(X, Y)
        _, share = model.guarantees_
        assert (share.quantity, share.sense, share.bound) == (
            "flagged share",
            "<=",
            0.6,
        )
        alone = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(),
            max_class_error={0: 0.1},
            confidence=0.975,
            random_state=0,
        ).fit(X, Y)
        assert (model.thresholds_ == alone.thresholds_).all()
        n = model.n_calibration_
        most = most_wrong(n, 0.6, 0.025)
        assert share.evidence["flagged"] <= most
        assert queue_limit(share, rows=100) == binom.ppf(0.99, 100, 0.6)
        assert queue_limit(share, 100, 0.9) == binom.ppf(0.9, 100, 0.6)

    def test_too_many_flagged_rows_leave_the_class_promised_alone(self):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(),
            max_class_error={0: 0.1},
            flagged_share=0.35,
            random_state=0,
        )
        with pytest.warns(PrudentWarning, match="flagged_share=0.35 is not promised"):
            model.fit(X, Y)
        assert [g.quantity for g in model.guarantees_] == ["class error rate"]

    @pytest.mark.parametrize(
        "change",
        [
            {"max_class_error": 0.05, "abstain": True},
            {"abstain": True},
            {"max_class_error": None},
        ],
    )
    def test_it_belongs_to_one_class(self, change):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), flagged_share=0.4, random_state=0
        ).set_params(**{"max_class_error": {0: 0.05}, **change})
        with pytest.raises(ValueError, match="beside the limit of one class"):
            model.fit(X, Y)

    def test_out_of_range(self):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), max_class_error={0: 0.1}, flagged_share=1.5
        )
        with pytest.raises(ValueError, match="`flagged_share` must lie in"):
            model.fit(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantity": "error rate", "sense": "<="}, "must be an answered share"),
        ({"sense": "<="}, "must be an answered share >= b or a flagged share <= b"),
    ],
)
def test_queues_are_of_capacities(change, message):
    promise = Guarantee(
        **{"quantity": "answered share", "bound": 0.9, "sense": ">=", **change}
    )
    with pytest.raises(ValueError, match=message):
        queue_limit(promise)


def test_queues_of_no_rows():
    promise = Guarantee(quantity="answered share", bound=0.9, sense=">=")
    with pytest.raises(ValueError, match="`rows` must be a whole number >= 1"):
        queue_limit(promise, rows=0)
    with pytest.raises(ValueError, match="`chance` must lie in"):
        queue_limit(promise, chance=1)
