"""The boundary: its law against enumeration, and the theorem against worst cases."""

from itertools import product

import numpy as np
import pytest
from experiments.boundary_attack import (
    by_boundary,
    by_last_uncorrected_test,
    worst_case,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from prudent.certification import error_boundary
from prudent.core.binomial import upper_limit
from prudent.rules.boundary import crossing_probability
from prudent.rules.make import SelectiveError, unproved_share
from prudent.rules.rule import Terms
from prudent.rules.scores import AnswerScores

# n, error rate, confidence -> first ranks, last corner, corners, level, crossing.
REFERENCE = [
    (59, 0.05, 0.95, [59], (59, 0), 1, 0.05, 0.04849),
    (300, 0.05, 0.95, [81, 120, 154, 185, 215], (273, 6), 7, 0.01596, 0.04838),
    (500, 0.05, 0.95, [88, 127, 162, 194, 225], (498, 14), 15, 0.01153, 0.04970),
    (1000, 0.05, 0.95, [94, 135, 170, 203, 234], (983, 33), 34, 0.00818, None),
    (5000, 0.05, 0.95, [], (5000, 210), 211, 0.00440, None),
    (300, 0.1, 0.9, [36, 55, 71, 86, 101], (294, 19), 20, 0.02316, None),
]


@pytest.mark.parametrize(
    ("n", "rate", "confidence", "first", "last", "corners", "level", "crossing"),
    REFERENCE,
)
def test_reference_values(n, rate, confidence, first, last, corners, level, crossing):
    found = error_boundary(n, rate, confidence=confidence)
    assert found.ranks[: len(first)].tolist() == first
    assert (found.ranks[-1], found.wrong_allowed[-1]) == last
    assert len(found.ranks) == corners
    assert found.level == pytest.approx(level, rel=1.5e-3)
    if crossing:
        assert found.crossing == pytest.approx(crossing, abs=5e-6)


def test_too_few_rows_have_no_corner():
    found = error_boundary(58, 0.05)
    assert len(found.ranks) == 0
    assert found.crossing == 0
    assert not found.admits(np.arange(59), np.zeros(59, dtype=int)).any()


def crossed_by_enumeration(ranks, allowed, rate):
    """Sum over all walks, one by one."""
    total = 0.0
    for walk in product((0, 1), repeat=int(ranks[-1])):
        wrong = np.cumsum(walk)
        if (wrong[np.asarray(ranks) - 1] <= allowed).any():
            total += rate ** sum(walk) * (1 - rate) ** (len(walk) - sum(walk))
    return total


@pytest.mark.parametrize(
    ("n", "rate", "confidence"),
    [(12, 0.5, 0.9), (14, 0.3, 0.8), (13, 0.9, 0.95), (14, 0.2, 0.7)],
)
def test_crossing_equals_enumeration(n, rate, confidence):
    found = error_boundary(n, rate, confidence=confidence)
    expected = crossed_by_enumeration(found.ranks, found.wrong_allowed, rate)
    assert found.crossing == pytest.approx(expected, abs=1e-12)
    assert found.crossing <= 1 - confidence


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.floats(0.02, 0.98),
    st.data(),
)
def test_crossing_of_any_corners_equals_enumeration(steps, rate, data):
    ranks = np.cumsum(steps)
    allowed = np.array(
        sorted(data.draw(st.integers(0, max(0, int(k) - 1))) for k in ranks)
    )
    found = crossing_probability(ranks, allowed, rate)
    assert found == pytest.approx(
        crossed_by_enumeration(ranks, allowed, rate), abs=1e-12
    )


@pytest.mark.parametrize(("n", "rate"), [(2000, 0.05), (3000, 0.3), (400, 0.97)])
def test_crossing_equals_a_plain_recursion(n, rate):
    """Step by step, every walk kept: no blocks, no window."""
    found = error_boundary(n, rate)
    allowed = dict(zip(found.ranks.tolist(), found.wrong_allowed.tolist(), strict=True))
    law, crossed = np.zeros(n + 2), 0.0
    law[0] = 1
    for k in range(1, n + 1):
        law[1:] = law[1:] * (1 - rate) + law[:-1] * rate
        law[0] *= 1 - rate
        if k in allowed:
            crossed += law[: allowed[k] + 1].sum()
            law[: allowed[k] + 1] = 0
    assert found.crossing == pytest.approx(crossed, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3000),
    st.floats(0.005, 0.9),
    st.floats(0.6, 0.999),
)
def test_corners_are_the_first_ranks_of_their_level(n, rate, confidence):
    found = error_boundary(n, rate, confidence=confidence)
    ranks, allowed = found.ranks, found.wrong_allowed
    # One corner at the whole level is crossed with its probability, but for rounding.
    assert found.crossing <= (1 - confidence) * (1 + 1e-12)
    assert (np.diff(ranks) > 0).all()
    assert (np.diff(allowed) > 0).all()
    assert (ranks <= n).all()
    np.testing.assert_array_less(
        binom.cdf(allowed, ranks, rate), found.level * (1 + 1e-9)
    )
    np.testing.assert_array_less(
        found.level * (1 - 1e-9), binom.cdf(allowed, ranks - 1, rate)
    )


def test_the_level_can_hardly_be_raised():
    found = error_boundary(1000, 0.05)
    assert 0.049 < found.crossing <= 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.05), "`n_rows` must be at least 1, got 0."),
        ((10, 1.5), r"`error_rate` must lie in \(0, 1\), got 1.5."),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        error_boundary(*arguments)


def test_bad_confidence():
    with pytest.raises(ValueError, match=r"`confidence` must lie in \(0, 1\), got 1.0"):
        error_boundary(100, 0.05, confidence=1.0)


# --- the theorem, attacked ---------------------------------------------------------


CASES = [
    (7, 3, 0.4, 0.1),
    (8, 3, 0.5, 0.1),
    (9, 3, 0.4, 0.2),
    (10, 3, 0.5, 0.1),
    (12, 3, 0.35, 0.1),
    (8, 4, 0.5, 0.2),
    (12, 3, 0.6, 0.05),
]


@pytest.mark.parametrize(("n", "scores", "rate", "delta"), CASES)
def test_no_population_breaks_the_boundary(n, scores, rate, delta):
    crossing = error_boundary(n, rate, confidence=1 - delta).crossing
    found = worst_case(n, scores, by_boundary(n, rate, delta), rates=(rate,))
    assert 0.2 * crossing < found <= crossing + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "scores", "rate", "delta"), [*CASES, (10, 4, 0.5, 0.1)])
def test_no_population_breaks_the_boundary_searched_long(n, scores, rate, delta, seed):
    crossing = error_boundary(n, rate, confidence=1 - delta).crossing
    found = worst_case(
        n,
        scores,
        by_boundary(n, rate, delta),
        rates=(rate,),
        seed=seed,
        generations=150,
        size=300,
    )
    assert found <= crossing + 1e-12


def test_the_search_breaks_an_uncorrected_test():
    """The attack has teeth: the last rank that passes a plain test is not valid."""
    rule = by_last_uncorrected_test(0.5, 0.2)
    assert worst_case(8, 4, rule, rates=(0.5,)) > 0.2


def by_share(n, k, delta, *, strict):
    """Answer a share: strictly above the (k + 1)-th score, or with its ties."""

    def certify(answered, wrong):
        at = np.searchsorted(answered, k + 1 if strict else k)
        last = at if strict else at + 1
        j = int(answered[last - 1]) if last else 0
        if j == 0:
            return 0, 1.0
        return last, upper_limit(int(wrong[last - 1]), j, level=delta)

    return certify


@pytest.mark.parametrize(
    ("n", "k", "delta"), [(8, 4, 0.1), (8, 4, 0.2), (9, 6, 0.1), (10, 3, 0.2)]
)
def test_no_population_breaks_the_strict_share(n, k, delta):
    rule = by_share(n, k, delta, strict=True)
    for seed in range(2):
        assert worst_case(n, 3, rule, seed=seed, generations=40) <= delta


@pytest.mark.parametrize(("delta", "expected"), [(0.1, 0.157), (0.2, 0.298)])
def test_closing_ties_the_other_way_is_broken(delta, expected):
    rule = by_share(8, 4, delta, strict=False)
    found = max(worst_case(8, 2, rule, seed=seed) for seed in range(3))
    assert found > 0.97 * expected


# --- thresholds ----------------------------------------------------------------------


def selective(scores, wrong):
    rows = AnswerScores.from_answers(scores, wrong)
    return SelectiveError(scores=rows, terms=Terms(confidence=0.95))


def certified_threshold(scores, wrong):
    """Threshold, rows answered and wrong ones among them."""
    rule = selective(scores, wrong).rule(0.05)
    return *rule.thresholds, rule.record["answered"], rule.record["wrong"]


def test_threshold_is_the_largest_admitted_rank():
    rng = np.random.default_rng(0)
    scores = rng.random(400).round(2)
    wrong = rng.random(400) < 0.25 * (1 - scores) ** 2
    boundary = error_boundary(400, 0.05)
    cut, n_answered, n_wrong = certified_threshold(scores, wrong)
    above = scores > cut
    assert (above.sum(), wrong[above].sum()) == (n_answered, n_wrong)

    def certified(threshold):
        answered = scores > threshold
        w, k = wrong[answered].sum(), answered.sum()
        return any(
            w <= c and k - w >= r - c
            for r, c in zip(boundary.ranks, boundary.wrong_allowed, strict=True)
        )

    assert certified(cut)
    lower = [t for t in [*np.unique(scores), -np.inf] if t < cut]
    assert not any(certified(t) for t in lower)


def test_equal_scores_are_answered_together_or_not_at_all():
    right, wrong = np.zeros(100, dtype=bool), np.arange(100) < 40
    scores = np.ones(100)
    assert certified_threshold(scores, right) == (-np.inf, 100, 0)
    assert certified_threshold(scores, wrong) == (np.inf, 0, 0)


def test_infinite_scores_are_ranks_like_others():
    scores = np.repeat([np.inf, 0.0, -np.inf], [70, 20, 10])
    wrong = np.repeat([False, True, False], [70, 20, 10])
    assert certified_threshold(scores, wrong) == (0.0, 70, 0)
    # A threshold cannot lie below -inf, so these rows can never be answered.
    assert certified_threshold(scores, np.zeros(100, dtype=bool))[1] == 90


@pytest.mark.parametrize(
    ("share", "answered", "proved"),
    [(0.29, 39, True), (0.005, 3, True), (0.97, 97, False), (1.0, 100, False)],
)
def test_share_of_distinct_scores(share, answered, proved):
    """Of 100 rows; a product such as 0.29 * 100 falls an ulp below its integer."""
    rows = selective(np.arange(100.0), np.zeros(100, dtype=bool))
    rule = rows.share_rule(share)
    assert rule.record["answered"] == answered
    assert (len(rule.guarantees) == 2) == proved


def test_a_share_of_one_is_proved_by_no_rows_where_an_error_limits_the_answers():
    rows = selective(np.arange(2000.0), np.arange(2000) < 1200)
    alone = rows.share_rule(1.0)
    assert alone.record["answered"] == 2000
    assert unproved_share(alone, 1.0, alone=True) is None
    both = rows.rule(0.05, 1.0)
    assert 0 < both.record["answered"] < 2000
    said = "no number of held-out rows proves a share of 1"
    assert unproved_share(both, 1.0, alone=False) == said


def test_share_leaves_ties_unanswered_and_unproved():
    scores = np.repeat([3.0, 2.0, 1.0], [10, 30, 60])
    rows = selective(scores, scores == 2.0)
    for share, answered, wrong in [(0.25, 10, 0), (0.4, 40, 30), (0.05, 10, 0)]:
        rule = rows.share_rule(share)
        assert rule.record == {"answered": answered, "wrong": wrong}
        assert [g.quantity for g in rule.guarantees] == ["selective error rate"]
