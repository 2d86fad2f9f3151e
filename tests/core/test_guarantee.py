"""Promises: what they accept, say, and how they are held against data."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest

from prudent import Assumption, Guarantee
from prudent.core.guarantee import in_sentences


def promise(**changes):
    values = {"quantity": "error rate", "bound": 0.2, "sense": "<="} | changes
    return Guarantee(**values)


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(5, "kept"), (20, "consistent"), (40, "broken")]
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
    assert promise(bound=upper - 1e-12).check(3, 50).verdict == "consistent"


def test_coverage_counts_misses_and_reports_hits():
    coverage = promise(quantity="coverage", bound=0.8, sense=">=")
    check = coverage.check(5, 100)
    assert check.measured == pytest.approx(0.95)
    assert check.verdict == "kept"
    assert coverage.check(40, 100).verdict == "broken"
    assert coverage.check(20, 100).verdict == "consistent"


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


def test_sentence_states_the_subgroup():
    coverage = promise(quantity="coverage", scope=1, subgroup="sex=Female", sense=">=")
    assert str(coverage) == (
        "The coverage of class 1 among rows with sex=Female is at least 0.2."
    )


def test_numbers_of_an_assumption_come_from_the_evidence():
    shrunk = promise(
        assumptions=(Assumption.SHRUNK, "moments {of mine}"),
        evidence={"shrinkage": 0.25},
    )
    assert "shrunk by 0.25 towards their diagonal and moments {of mine}" in str(shrunk)


def test_unit_is_a_row_or_a_group():
    assert promise().unit == "row"
    with pytest.raises(ValueError, match="`unit` must be 'row' or 'group', got 'herd'"):
        promise(unit="herd")


def test_json_names_assumptions_and_reads_back():
    written = promise(
        unit="group",
        subgroup="age in 20..30",
        scope=np.int64(2),
        assumptions=(Assumption.GROUPS, "the moon is full"),
        evidence={"calibration rows": 30, "largest": np.inf},
    )
    fields = json.loads(json.dumps(written.to_dict(), allow_nan=False))
    assert fields["assumptions"] == ["GROUPS", "the moon is full"]
    assert fields["sentence"] == str(written)
    read = Guarantee.from_dict(fields | {"a key of tomorrow": 1})
    assert read == written
    assert read.assumptions[0] is Assumption.GROUPS


def test_is_frozen_also_in_its_evidence():
    guarantee = promise(evidence={"duality gap": 1e-12})
    with pytest.raises(FrozenInstanceError):
        guarantee.bound = 0.5
    with pytest.raises(TypeError):
        guarantee.evidence["duality gap"] = 0.0


def test_pickle_and_copy_keep_every_field():
    guarantee = promise(
        evidence={"duality gap": 1e-12},
        scope=1,
        confidence=0.9,
        assumptions=(Assumption.UNSEEN,),
    )
    again = pickle.loads(pickle.dumps(guarantee))
    assert again == guarantee
    assert again.assumptions[0] is Assumption.UNSEEN
    assert copy.deepcopy(guarantee) == guarantee


def test_state_of_a_file_is_held_to_what_an_argument_is():
    state = promise().__getstate__() | {"bound": 7.0}
    with pytest.raises(ValueError, match=r"`bound` must lie in \[0, 1\], got 7.0"):
        Guarantee.__new__(Guarantee).__setstate__(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantity": "accuracy"}, "`quantity` must be one of .* got 'accuracy'"),
        ({"sense": "<"}, "`sense` must be '<=' or '>=', got '<'"),
        ({"bound": 1.5}, r"`bound` must lie in \[0, 1\], got 1.5"),
        ({"bound": float("nan")}, "got nan"),
        ({"bound": 10**300}, r"`bound` must lie in \[0, 1\]"),
        ({"evidence": {"wrong": np.inf}}, "`evidence` must be numbers, got wrong inf"),
        ({"evidence": {"gap": np.nan}}, "`evidence` must be numbers, got gap nan"),
        ({"confidence": 1.0}, r"`confidence` must lie in \(0, 1\).*got 1.0"),
    ],
)
def test_bad_field_names_it_and_the_value(change, message):
    with pytest.raises(ValueError, match=message):
        promise(**change)


AVERAGE = {
    "quantity": "false alarm rate",
    "bound": 5 / 109,
    "average_over": "training samples",
    "evidence": {"calibration rows": 108, "rank": 5},
}


def test_sentence_says_what_an_average_is_over():
    assert str(promise(**AVERAGE)) == (
        "The false alarm rate is at most 0.04587, on average over training samples."
    )


def test_an_average_excludes_a_confidence():
    with pytest.raises(
        ValueError,
        match="promise averaged over calibration rows has no confidence, got 0.95",
    ):
        promise(average_over="calibration rows", confidence=0.95)
    with pytest.raises(ValueError, match="`average_over` must be None or one of"):
        promise(average_over="moons")


def test_promises_are_hashable_and_equal_ones_hash_alike():
    first, second = promise(**AVERAGE), promise(**AVERAGE)
    assert first == second
    assert len({first, second, promise()}) == 2


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((11, 10), r"`violations` must lie in \[0, 10\], got 11\."),
        ((-1, np.int64(10)), r"`violations` must lie in \[0, 10\], got -1\."),
        ((1, 0), r"`n` must be > 0, got 0"),
        (([True, False], 2), "`violations` must be the number .* of shape"),
        (("a", 10), "must be numbers, got 'a' and 10"),
        ((3, "a"), "must be numbers, got 3 and 'a'"),
    ],
)
def test_counts_that_cannot_be_are_refused_by_their_name(counts, message):
    with pytest.raises(ValueError, match=message):
        Guarantee(quantity="error rate", bound=0.1, sense="<=").check(*counts)


@pytest.mark.parametrize("quantity", ["expected cost", "false discovery rate"])
def test_what_is_no_rate_of_rows_cannot_be_checked_by_a_count(quantity):
    with pytest.raises(ValueError, match="batches|not a rate"):
        promise(quantity=quantity).check(1, 10)


def test_an_expected_cost_may_be_any_finite_number():
    assert promise(quantity="expected cost", bound=-3.5).bound == -3.5
    with pytest.raises(ValueError, match="`bound` must be finite, got inf"):
        promise(quantity="expected cost", bound=float("inf"))


@pytest.mark.parametrize("sense", ["<=", ">="])
@pytest.mark.parametrize("quantity", ["false alarm rate", "coverage"])
def test_a_true_average_is_called_broken_at_most_at_the_level(quantity, sense):
    # The exact law of V, so that no draw is needed: sum its mass where broken.
    m, k, n, level = 39, 4, 200, 0.1
    rare = (quantity == "coverage") == (sense == ">=")
    bound = k / (m + 1) if sense == "<=" else 1 - k / (m + 1)
    average = promise(
        **AVERAGE | {"quantity": quantity, "bound": bound},
        sense=sense,
    )
    object.__setattr__(average, "evidence", {"calibration rows": m, "rank": k})
    mass = betabinom.pmf(np.arange(n + 1), n, k, m + 1 - k)
    verdicts = np.array(
        [
            average.check(v if rare else n - v, n, level=level).verdict
            for v in range(n + 1)
        ]
    )
    assert mass[verdicts == "broken"].sum() <= level / 2
    assert mass[verdicts == "broken"].sum() > level / 4
    assert mass[verdicts == "kept"].sum() <= level / 2
    assert set(verdicts) == {"kept", "consistent", "broken"}


def test_an_average_without_a_known_law_is_never_broken():
    average = promise(average_over="training samples")
    assert average.check(90, 100).verdict == "consistent"
    assert average.check(1, 100).verdict == "kept"


@pytest.mark.parametrize(
    ("refused", "got"),
    [
        (lambda x: promise(bound=x), "got 1.5"),
        (lambda x: promise(confidence=x), "got 1.5"),
        (lambda x: promise(average_over="training samples", confidence=x / 2), "0.75"),
        (lambda x: promise().check(x, 1.0), "got 1.5"),
        (lambda x: promise().check(0.0, -x), "got -1.5"),
        (lambda x: promise().check(0.0, 1.0, level=x), "got 1.5"),
    ],
)
def test_numbers_refused_are_shown_as_a_user_writes_them(refused, got):
    with pytest.raises(ValueError, match=got) as error:
        refused(np.float64(1.5))
    assert "np." not in str(error.value)


def test_promises_that_differ_by_class_only_are_one_sentence():
    of_class = {"quantity": "coverage", "sense": ">=", "confidence": 0.95}
    promises = [Guarantee(**of_class, bound=0.9, scope=k) for k in range(3)]
    (together,) = in_sentences(promises)
    assert "The coverage of each of the 3 classes is at least 0.9 with" in together
    other = Guarantee(quantity="error rate", bound=0.1, sense="<=")
    assert in_sentences([*promises[:2], other]) == [*map(str, [*promises[:2], other])]


def test_bounds_that_differ_by_class_are_all_said():
    of_class = {"quantity": "class error rate", "sense": "<="}
    bounds = (0.02, 0.05, 0.01)
    (together,) = in_sentences(
        [Guarantee(**of_class, bound=b, scope=k) for k, b in enumerate(bounds)]
    )
    assert together == (
        "The class error rate of each of the 3 classes is at most 0.05. By class: 0 "
        "0.02, 1 0.05, 2 0.01."
    )


@pytest.mark.parametrize("law", [None, {"calibration rows": 100.0, "rank": 10.0}])
def test_infinitely_many_rows_are_refused(law):
    average = {} if law is None else {"average_over": "calibration rows"}
    with pytest.raises(ValueError, match="`n` must be finite, got inf"):
        promise(evidence=law or {}, **average).check(3, np.inf)


@pytest.mark.parametrize("cell", [None, np.nan, 2, "no"])
def test_violations_of_rows_are_true_or_false(cell):
    by_group = promise(unit="group")
    with pytest.raises(ValueError, match=f"must be True or False, got {cell!r}"):
        by_group.check([cell, 0, 1], groups=[1, 2, 3])
    counted = by_group.check(np.array([True, False], dtype=object), groups=[1, 2])
    assert counted.measured == 0.5


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1.0, np.nan, 2.0], "`groups` says nothing of 1 of 3 rows"),
        ([None, None, "a"], "`groups` says nothing of 2 of 3 rows"),
        (["a", "", "b"], "`groups` says nothing of 1 of 3 rows"),
        (np.array([1, "a", 2], dtype=object), "mixes labels of type string and number"),
    ],
)
def test_rows_of_no_known_group_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        promise(unit="group").check([0, 0, 1], groups=groups)
