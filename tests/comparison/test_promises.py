import numpy as np
import pytest

from prudent import Guarantee
from prudent.comparison.promises import check_promises, verdict
from prudent.comparison.tally import Tally
from prudent.core.binomial import clopper_pearson

CLASSES = np.array(["a", "b"])


def tally(confusion, set_sizes=None, covered=None):
    arrays = [None if v is None else np.array(v) for v in (set_sizes, covered)]
    return Tally(np.array(confusion), *arrays)


def promise(bound, quantity="class error rate", scope="a", sense="<="):
    return Guarantee(quantity=quantity, bound=bound, sense=sense, scope=scope)


def test_bound_is_the_mean_of_the_folds_weighted_by_tested_rows():
    tallies = [tally([[9, 1], [0, 5]]), tally([[27, 3], [0, 5]])]
    (checked,) = check_promises([[promise(0.1)], [promise(0.3)]], tallies, CLASSES)
    assert checked.guarantee.bound == pytest.approx((10 * 0.1 + 30 * 0.3) / 40)


def test_violations_and_rows_are_pooled_over_the_folds():
    tallies = [tally([[9, 1], [0, 5]]), tally([[27, 3], [0, 5]])]
    (checked,) = check_promises([[promise(0.1)], [promise(0.3)]], tallies, CLASSES)
    assert (checked.violations, checked.n) == (4, 40)


def test_level_is_shared_among_the_promises():
    given = [promise(0.2, scope="a"), promise(0.2, scope="b")]
    checked = check_promises([given], [tally([[18, 2], [5, 45]])], CLASSES)
    assert checked[0].check.interval == clopper_pearson(2, 20, level=0.025)
    assert checked[1].check.interval == clopper_pearson(5, 50, level=0.025)


def test_promise_without_a_class_is_held_against_all_rows():
    given = promise(0.2, quantity="error rate", scope=None)
    (checked,) = check_promises([[given]], [tally([[18, 2], [5, 45]])], CLASSES)
    assert (checked.violations, checked.n) == (7, 70)


@pytest.mark.parametrize("quantity", ["coverage", "false alarm rate"])
def test_promise_about_sets_counts_sets_that_miss(quantity):
    counted = tally([[0, 20], [0, 20]], [[0, 20, 0], [0, 0, 20]], [17, 20])
    sense = ">=" if quantity == "coverage" else "<="
    given = promise(0.5, quantity=quantity, sense=sense)
    (checked,) = check_promises([[given]], [counted], CLASSES)
    assert (checked.violations, checked.n) == (3, 20)


def test_miss_rate_cannot_be_measured_and_is_left_out():
    given = promise(0.2, quantity="miss rate", scope=None)
    assert check_promises([[given]], [tally([[18, 2], [5, 45]])], CLASSES) == ()


def test_repeats_do_not_make_the_interval_narrower():
    counts = tally([[18, 2], [5, 45]])
    (once,) = check_promises([[promise(0.2)]], [counts], CLASSES)
    (thrice,) = check_promises([[promise(0.2)]] * 3, [counts] * 3, CLASSES, n_repeats=3)
    assert thrice.check == once.check


def test_allowed_share_turns_coverage_into_misses():
    given = promise(0.7, quantity="coverage", sense=">=")
    (checked,) = check_promises([[given]], [tally([[18, 2], [5, 45]])], CLASSES)
    assert checked.allowed == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0.9, 0.9), "yes"), ((0.9, 0.001), "no"), ((0.9, 0.3), "unclear")],
)
def test_verdict_needs_all_kept_and_no_broken(bounds, expected):
    given = [promise(bounds[0], scope="a"), promise(bounds[1], scope="b")]
    checked = check_promises([given], [tally([[90, 10], [30, 70]])], CLASSES)
    assert verdict(checked) == expected


def test_no_promise_has_no_verdict():
    assert verdict(()) is None
