"""Promises: what they accept, say, and how they are held against data."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest
from scipy.stats import binomtest

from prudent import Guarantee


def promise(**changes):
    values = {"quantity": "error rate", "bound": 0.2, "sense": "<="} | changes
    return Guarantee(**values)


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(5, "kept"), (20, "undecided"), (40, "broken")]
)
def test_verdict_needs_the_whole_interval_on_one_side(wrong, verdict):
    assert promise().check(wrong, 100).verdict == verdict


def test_interval_is_the_exact_one_at_the_level():
    check = promise().check(7, 90, level=0.01)
    exact = binomtest(7, 90).proportion_ci(0.99, method="exact")
    assert check.interval == pytest.approx((exact.low, exact.high))
    assert check.measured == pytest.approx(7 / 90)


def test_touching_the_bound_keeps_an_upper_promise():
    upper = promise().check(3, 50).interval[1]
    assert promise(bound=upper).check(3, 50).verdict == "kept"
    assert promise(bound=upper - 1e-12).check(3, 50).verdict == "undecided"


def test_coverage_counts_misses_and_reports_hits():
    coverage = promise(quantity="coverage", bound=0.8, sense=">=")
    check = coverage.check(5, 100)
    assert check.measured == pytest.approx(0.95)
    assert check.verdict == "kept"
    assert coverage.check(40, 100).verdict == "broken"
    assert coverage.check(20, 100).verdict == "undecided"


def test_sentence_states_quantity_scope_bound_confidence_and_assumptions():
    text = str(
        promise(
            quantity="class error rate",
            scope="ill",
            confidence=0.95,
            assumptions=("rows are independent", "moments are exact"),
        )
    )
    assert text == (
        "The class error rate of class 'ill' is at most 0.2 with confidence 0.95, "
        "assuming rows are independent and moments are exact."
    )


def test_is_frozen_also_in_its_evidence():
    guarantee = promise(evidence={"duality gap": 1e-12})
    with pytest.raises(FrozenInstanceError):
        guarantee.bound = 0.5
    with pytest.raises(TypeError):
        guarantee.evidence["duality gap"] = 0.0


def test_pickle_and_copy_keep_every_field():
    guarantee = promise(evidence={"duality gap": 1e-12}, scope=1, confidence=0.9)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    assert copy.deepcopy(guarantee) == guarantee


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantity": "accuracy"}, "`quantity` must be one of .* got 'accuracy'"),
        ({"sense": "<"}, "`sense` must be '<=' or '>=', got '<'"),
        ({"bound": 1.5}, r"`bound` must lie in \[0, 1\], got 1.5"),
        ({"bound": float("nan")}, "got nan"),
        ({"confidence": 1.0}, r"`confidence` must lie in \(0, 1\).*got 1.0"),
    ],
)
def test_bad_field_names_it_and_the_value(change, message):
    with pytest.raises(ValueError, match=message):
        promise(**change)
