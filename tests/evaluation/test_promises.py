import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta

from prudent import Guarantee
from prudent.core.binomial import clopper_pearson
from prudent.core.checks import check_promises, share_level
from prudent.evaluation.frame import Tally, counted, is_vacuous, verdict

CLASSES = np.array(["a", "b"])


def tally(confusion, set_sizes=None, covered=None):
    confusion = np.array(confusion)
    if covered is None:  # sets of the one class that is predicted
        covered = np.diagonal(confusion)
        set_sizes = [[0, n, 0] for n in confusion.sum(axis=1)]
    arrays = np.array(set_sizes), np.array(covered)
    return Tally(confusion, *arrays, confusion.sum(axis=1) - covered)


def check(promises, tallies, classes, n_repeats=1):
    folds = zip(promises, tallies, strict=True)
    return check_promises([counted(*fold, classes) for fold in folds], n_repeats)


def promise(bound, quantity="class error rate", scope="a", sense="<="):
    return Guarantee(quantity=quantity, bound=bound, sense=sense, scope=scope)


def test_bound_is_the_mean_of_the_folds_weighted_by_tested_rows():
    tallies = [tally([[9, 1], [0, 5]]), tally([[27, 3], [0, 5]])]
    (checked,) = check([[promise(0.1)], [promise(0.3)]], tallies, CLASSES)
    assert checked.guarantee.bound == pytest.approx((10 * 0.1 + 30 * 0.3) / 40)


def test_violations_and_rows_are_pooled_over_the_folds():
    tallies = [tally([[9, 1], [0, 5]]), tally([[27, 3], [0, 5]])]
    (checked,) = check([[promise(0.1)], [promise(0.3)]], tallies, CLASSES)
    assert (checked.violations, checked.n) == (4, 40)


def test_intervals_are_the_own_ones_of_each_promise():
    given = [promise(0.2, scope="a"), promise(0.2, scope="b")]
    checked = check([given], [tally([[18, 2], [5, 45]])], CLASSES)
    assert checked[0].check.interval == clopper_pearson(2, 20)
    assert checked[1].check.interval == clopper_pearson(5, 50)


def test_p_values_are_the_tails_at_the_bound():
    checked = check([[promise(0.2, scope="b")]], [tally([[18, 2], [5, 45]])], CLASSES)
    assert checked[0].p_broken == pytest.approx(stats.binom.sf(4, 50, 0.2))
    assert checked[0].p_kept == pytest.approx(stats.binom.cdf(5, 50, 0.2))


@pytest.mark.parametrize("violations", [0, 20])
def test_p_values_at_the_ends(violations):
    counts = tally([[20 - violations, violations], [0, 5]])
    (checked,) = check([[promise(0.2)]], [counts], CLASSES)
    assert checked.p_broken == pytest.approx(stats.binom.sf(violations - 1, 20, 0.2))
    assert checked.p_kept == pytest.approx(stats.binom.cdf(violations, 20, 0.2))


def test_all_promises_of_a_table_share_the_level():
    """One p-value of .01 alone is broken; with five others by Holm it is not."""
    (suspect,) = check([[promise(0.2)]], [tally([[38, 19], [0, 5]])], CLASSES)
    (calm,) = check([[promise(0.2)]], [tally([[46, 11], [0, 5]])], CLASSES)
    assert 0.05 / 6 < suspect.p_broken < 0.05 / 2
    assert suspect.check.verdict == "broken"
    alone, _ = share_level([[suspect], [calm]])
    assert alone[0].check.verdict == "broken"
    (first,), (second, *_) = share_level([[suspect], [calm] * 5])
    assert (first.check.verdict, second.check.verdict) == ("consistent", "consistent")
    assert first.check.interval == suspect.check.interval


def test_true_promises_are_called_broken_in_one_table_of_twenty_at_most():
    """Eleven methods with three promises each at their bounds, on the same rows."""
    random = np.random.default_rng(0)
    n_methods, n_classes, rows, tables, rate = 11, 3, 60, 400, 0.1
    broken = 0
    for _ in range(tables):
        shared = random.random((n_classes, rows))  # what all methods find hard
        own = random.random((n_methods, n_classes, rows))
        hard = random.random((n_methods, n_classes, rows)) < 0.5
        missed = (np.where(hard, shared, own) < rate).sum(axis=2)
        table = []
        for counts in missed:
            given = [promise(rate, scope=label) for label in "abc"]
            pairs = zip(given, map(float, counts), strict=True)
            table.append(check_promises([[(g, v, float(rows)) for g, v in pairs]]))
        verdicts = {p.check.verdict for m in share_level(table) for p in m}
        broken += "broken" in verdicts
    assert stats.binomtest(broken, tables, 0.05, alternative="greater").pvalue > 1e-3


def test_promise_without_a_class_is_held_against_all_rows():
    given = promise(0.2, quantity="error rate", scope=None)
    (checked,) = check([[given]], [tally([[18, 2], [5, 45]])], CLASSES)
    assert (checked.violations, checked.n) == (7, 70)


@pytest.mark.parametrize("quantity", ["coverage", "false alarm rate"])
def test_promise_about_sets_counts_sets_that_miss(quantity):
    counted = tally([[0, 20], [0, 20]], [[0, 20, 0], [0, 0, 20]], [17, 20])
    sense = ">=" if quantity == "coverage" else "<="
    given = promise(0.5, quantity=quantity, sense=sense)
    (checked,) = check([[given]], [counted], CLASSES)
    assert (checked.violations, checked.n) == (3, 20)


def test_miss_rate_cannot_be_measured_and_is_left_out():
    given = promise(0.2, quantity="miss rate", scope=None)
    assert check([[given]], [tally([[18, 2], [5, 45]])], CLASSES) == ()


def test_repeats_do_not_make_the_interval_narrower():
    counts = tally([[18, 2], [5, 45]])
    (once,) = check([[promise(0.2)]], [counts], CLASSES)
    (thrice,) = check([[promise(0.2)]] * 3, [counts] * 3, CLASSES, n_repeats=3)
    assert thrice.check == once.check


def test_allowed_share_turns_coverage_into_misses():
    given = promise(0.7, quantity="coverage", sense=">=")
    (checked,) = check([[given]], [tally([[18, 2], [5, 45]])], CLASSES)
    assert checked.allowed == pytest.approx(0.3)


HALF = {None: np.array([0.5, 0.5])}


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0.4, 0.45), "kept"), ((0.9, 0.001), "broken"), ((0.6, 0.3), "consistent")],
)
def test_verdict_needs_all_kept_and_no_broken(bounds, expected):
    given = [promise(bounds[0], scope="a"), promise(bounds[1], scope="b")]
    checked = check([given], [tally([[90, 10], [30, 70]])], CLASSES)
    assert verdict(checked, HALF) == expected


def test_no_promise_has_no_verdict():
    assert verdict((), HALF) is None


@pytest.mark.parametrize(
    ("quantity", "sense", "scope", "bounds", "shares", "expected"),
    [
        # Always "a" errs in 30 %: 0.3 says nothing, 0.29 says a little.
        ("error rate", "<=", [None], [0.3], (0.7, 0.3), True),
        ("error rate", "<=", [None], [0.29], (0.7, 0.3), False),
        # Always "a" errs in 0 and 1 of the rows of a class: 1/2 on average.
        ("class error rate", "<=", ["a", "b"], [0.4, 0.6], (0.7, 0.3), True),
        ("class error rate", "<=", ["a", "b"], [0.4, 0.59], (0.7, 0.3), False),
        ("class error rate", "<=", ["b"], [0.9], (0.7, 0.3), False),
        ("class error rate", "<=", ["b"], [1.0], (0.7, 0.3), True),
        ("coverage", ">=", ["a"], [0.0], (0.5, 0.5), True),
        ("coverage", ">=", ["a"], [0.1], (0.5, 0.5), False),
        ("false alarm rate", "<=", ["a", "b"], [0.05, 0.05], (0.9, 0.1), False),
    ],
)
def test_a_promise_no_better_than_the_most_frequent_class_is_vacuous(
    quantity, sense, scope, bounds, shares, expected
):
    given = [
        promise(bound, quantity=quantity, scope=label, sense=sense)
        for bound, label in zip(bounds, scope, strict=True)
    ]
    assert is_vacuous(given, {None: np.array(shares)}) is expected


@pytest.mark.parametrize(
    ("bound", "expected"), [(0.3, False), (0.46, False), (0.47, True)]
)
def test_always_the_most_frequent_class_is_judged_in_every_subgroup(bound, expected):
    """Always "a" errs in 8 % of one half, in 46.7 % of the other, in 27 % of all."""
    shares = {None: (0.73, 0.27), "sex=f": (0.92, 0.08), "sex=m": (0.533, 0.467)}
    given = [
        replace(promise(bound, "error rate", None), subgroup=name) for name in shares
    ]
    shares = {name: np.array(each) for name, each in shares.items()}
    assert is_vacuous(given, shares) is expected
    # The class that is most frequent in all rows, also where another is.
    shares["sex=m"] = np.array((0.467, 0.533))
    assert not is_vacuous(given[2:], shares)


def test_broken_comes_first_and_what_says_nothing_before_kept():
    broken = check([[promise(0.001)]], [tally([[90, 10], [0, 5]])], CLASSES)
    assert verdict(broken, HALF, decides=False) == "broken"
    kept = check([[promise(0.9)]], [tally([[90, 10], [0, 5]])], CLASSES)
    assert verdict(kept, HALF) == "kept"
    assert verdict(kept, HALF, decides=False) == "nothing answered"
    trivial = check(
        [[promise(0.6, "error rate", None)]], [tally([[90, 10], [0, 5]])], CLASSES
    )
    assert verdict(trivial, HALF) == "no better than always the most frequent class"


def averaged(rank, n_calibration):
    return Guarantee(
        quantity="coverage",
        bound=1 - rank / (n_calibration + 1),
        sense=">=",
        average_over="training samples",
        scope="a",
        evidence={"rank": rank, "calibration rows": n_calibration},
    )


def covering(missed, rows=20):
    return tally([[rows, 0], [0, 5]], [[0, rows, 0], [0, 5, 0]], [rows - missed, 5])


def summed_law(folds):
    """Probabilities of the sum of beta-binomial counts, one convolution a fold."""
    law = [1.0]
    for rank, n_calibration, n in folds:
        one = [
            math.comb(n, v) * beta(rank + v, n_calibration + 1 - rank + n - v)
            for v in range(n + 1)
        ]
        total = sum(one)
        longer = [0.0] * (len(law) + n)
        for i, p in enumerate(law):
            for j, q in enumerate(one):
                longer[i + j] += p * q / total
        law = longer
    return law


@pytest.mark.parametrize("missed", [(0, 0), (1, 2), (5, 4), (6, 5), (8, 8), (15, 2)])
def test_averages_over_folds_are_checked_by_the_sum_of_their_laws(missed):
    folds = [(2, 19, 20), (3, 30, 20)]
    law = summed_law(folds)
    (checked,) = check(
        [[averaged(k, m)] for k, m, _ in folds],
        [covering(v) for v in missed],
        CLASSES,
    )
    assert checked.p_kept == pytest.approx(sum(law[: sum(missed) + 1]))
    assert checked.p_broken == pytest.approx(sum(law[sum(missed) :]), abs=1e-14)


def test_true_averages_are_called_broken_no_more_often_than_the_level():
    """Five folds of one law: the rate of each is drawn, then its violations."""
    random = np.random.default_rng(0)
    rank, n_calibration, rows, runs = 3, 29, 40, 2000
    broken = 0
    for _ in range(runs):
        rates = random.beta(rank, n_calibration + 1 - rank, size=5)
        missed = random.binomial(rows, rates)
        (checked,) = check(
            [[averaged(rank, n_calibration)]] * 5,
            [covering(int(v), rows) for v in missed],
            CLASSES,
        )
        broken += checked.check.verdict == "broken"
    assert stats.binomtest(broken, runs, 0.05, alternative="greater").pvalue > 1e-3
    assert broken > 0


def test_full_conformal_takes_its_training_rows_for_calibration_rows():
    full = replace(averaged(2, 19), evidence={"rank": 2, "training rows": 19})
    (split,) = check([[averaged(2, 19)]], [covering(12)], CLASSES)
    (found,) = check([[full]], [covering(12)], CLASSES)
    assert found.check.verdict == split.check.verdict == "broken"


def test_averages_of_unknown_law_are_never_broken():
    unknown = replace(averaged(2, 19), evidence={})
    (checked,) = check([[unknown]], [covering(20)], CLASSES)
    assert (checked.p_broken, checked.p_kept) == (1.0, 1.0)
    assert checked.check.verdict == "consistent"
