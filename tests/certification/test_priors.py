"""Error rates for any class shares."""

import numpy as np
import pytest
from scipy.optimize import linprog

from prudent import Guarantee
from prudent.certification import error_rate_under_priors
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
    assert error_rate_under_priors(given, lower={"new": 0.25}).bound == 1.0
    found = error_rate_under_priors(given, upper={"new": 0.25})
    assert found.bound == pytest.approx(0.25 + 0.75 * 0.2)
    assert error_rate_under_priors(given, upper={"new": 0.0}).bound == 0.2


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
    with pytest.raises(ValueError, match="promises of one kind"):
        error_rate_under_priors([*average, *promises([0.1], confidence=0.9)])


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
