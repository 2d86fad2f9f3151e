"""Error rates for any class shares."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binomtest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent import (
    Guarantee,
    MinimaxProbabilityClassifier,
    NeymanPearsonClassifier,
)
from prudent.certification import certify, error_rate_under_priors
from prudent.core.assumptions import Assumption


def promises(bounds, **options):
    return [
        Guarantee(quantity="class error rate", bound=b, sense="<=", scope=k, **options)
        for k, b in enumerate(bounds)
    ]


def test_without_a_box_the_worst_class_decides():
    assert error_rate_under_priors(promises([0.1, 0.3, 0.2])).bound == 0.3


def test_knapsack_equals_a_linear_programme():
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = rng.integers(1, 6)
        bounds, share = rng.random(k), rng.dirichlet(np.ones(k))
        lower, upper = share * rng.random(k), share + (1 - share) * rng.random(k)
        found = error_rate_under_priors(
            promises(bounds),
            lower=dict(enumerate(lower)),
            upper=dict(enumerate(upper)),
        )
        solved = linprog(
            -bounds,
            A_eq=np.ones((1, k)),
            b_eq=[1],
            bounds=np.column_stack([lower, upper]),
        )
        assert found.bound == pytest.approx(-solved.fun, abs=1e-9)


def test_a_class_without_a_promise_counts_as_always_wrong():
    given = promises([0.1, 0.2])
    assert error_rate_under_priors(given, lower={7: 0.25}).bound == 1.0
    found = error_rate_under_priors(given, upper={7: 0.25})
    assert found.bound == pytest.approx(0.25 + 0.75 * 0.2)
    assert error_rate_under_priors(given, upper={7: 0.0}).bound == 0.2


def test_promises_that_hold_at_once_keep_their_confidence():
    at_once = promises([0.1, 0.2], confidence=0.95, evidence={"claims": 3})
    assert error_rate_under_priors(at_once).confidence == 0.95
    apart = promises([0.1, 0.2], confidence=0.95, evidence={"claims": 1})
    assert error_rate_under_priors(apart).confidence == pytest.approx(0.9)
    assert error_rate_under_priors(promises([0.1])).confidence is None
    with pytest.raises(ValueError, match="no joint confidence left"):
        error_rate_under_priors(promises([0.1] * 3, confidence=0.6))


def test_averages_stay_averages():
    average = promises([0.1, 0.2], average_over="calibration rows")
    assert error_rate_under_priors(average).average_over == "calibration rows"
    two = [average[0], promises([0.1, 0.2], average_over="the rule's coins")[1]]
    with pytest.raises(ValueError, match="on average over calibration rows and over"):
        error_rate_under_priors(two)


def test_a_sum_has_no_confidence_that_one_of_its_promises_lacks():
    sure, given = promises([0.1], confidence=0.95), promises([0.2, 0.3])[1:]
    found = error_rate_under_priors([*sure, *given])
    assert (found.bound, found.confidence, found.average_over) == (0.3, None, None)
    assert "class 0 holds as promised with confidence 0.95" in str(found)
    assert "class 1 holds given its assumptions only" in str(found)
    average = promises([0.2, 0.3], average_over="training samples")[1:]
    found = error_rate_under_priors([*sure, *average])
    assert (found.confidence, found.average_over) == (None, "training samples")
    assert "class 1 holds on average over training samples" in str(found)
    # An absent class does not matter, nor does what is promised of it.
    assert error_rate_under_priors([*sure, *given], upper={1: 0.0}).confidence == 0.95


def test_promises_about_different_rows_are_not_added_up():
    rows, groups = promises([0.1]), promises([0.1, 0.2], unit="group")[1:]
    with pytest.raises(ValueError, match="`unit` 'group' and 'row' are about"):
        error_rate_under_priors([*rows, *groups])
    assert error_rate_under_priors(groups).unit == "group"


def normal_classes(n, rng, n_classes=2):
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 1)) + 2.0 * y[:, None], y


def test_a_class_that_nothing_was_promised_about_counts_as_always_wrong():
    """Only class 1 is limited: half of the rows, of class 0, may all be wrong."""
    rng = np.random.default_rng(0)
    fresh, truth = normal_classes(20_000, rng)
    false, draws = 0, 60
    for _ in range(draws):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), max_class_error={1: 0.05}, random_state=0
        ).fit(*normal_classes(400, rng))
        anything = error_rate_under_priors(model.guarantees_)
        assert anything.bound == 1.0
        some = error_rate_under_priors(model.guarantees_, upper={0: 0.3})
        assert some.bound == pytest.approx(0.3 + 0.7 * 0.05)
        wrong = model.predict(fresh) != truth
        shares = {0: 0.3, 1: 0.7}
        rate = sum(shares[k] * wrong[truth == k].mean() for k in (0, 1))
        false += rate > some.bound + 0.01  # beyond what is drawn
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3


def test_a_class_without_rows_in_a_certificate_counts_as_always_wrong():
    rng = np.random.default_rng(0)
    model = LinearDiscriminantAnalysis().fit(*normal_classes(300, rng, 3))
    X, y = normal_classes(300, rng, 3)
    found = certify(model, X[y < 2], y[y < 2])
    assert error_rate_under_priors(found).bound == 1.0
    without = error_rate_under_priors(found, upper={2: 0.0})
    assert without.bound == max(g.bound for g in found if g.scope is not None)


def test_every_maker_says_how_many_classes_there_are():
    X, y = normal_classes(300, np.random.default_rng(0), 3)
    for model in (
        MinimaxProbabilityClassifier(),
        NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(), max_class_error={2: 0.3}, random_state=0
        ),
    ):
        for promise in model.fit(X, y).guarantees_:
            assert promise.evidence["classes"] == 3


def test_the_sentence_names_the_assumption():
    found = error_rate_under_priors(promises([0.1, 0.2], assumptions=("rows are new",)))
    assert found.assumptions == ("rows are new", Assumption.PRIOR_SHIFT)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (
            {0: 0.9, 1: 0.9},
            None,
            "no class prior lies in the box: the lower limits sum to 1.8, the upper "
            "ones to 2.",
        ),
        (
            None,
            {0: 0.3, 1: 0.3},
            "no class prior lies in the box: the lower limits sum to 0, the upper "
            "ones to 0.6.",
        ),
        (
            {0: 0.5},
            {0: 0.3},
            "the share of class 0 must have 0 <= lower <= upper <= 1, got 0.5 and 0.3.",
        ),
    ],
)
def test_bad_boxes(lower, upper, message):
    with pytest.raises(ValueError) as error:
        error_rate_under_priors(promises([0.1, 0.2]), lower=lower, upper=upper)
    assert str(error.value) == message


def test_no_promise_to_start_from():
    with pytest.raises(ValueError, match="no promise on the error rate of a class"):
        error_rate_under_priors(
            [Guarantee(quantity="error rate", bound=0.1, sense="<=")]
        )


@pytest.mark.parametrize("name", ["lower", "upper"])
@pytest.mark.parametrize("limits", [{"0": 0.1}, {0: 0.1, "benign": 0.1}])
def test_labels_of_another_type_are_no_classes(name, limits):
    with pytest.raises(ValueError, match=f"labels are text in `{name}`, such as"):
        error_rate_under_priors(promises([0.1, 0.2]), **{name: limits})
