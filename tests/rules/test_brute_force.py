"""`prudent.promise` against counting by hand: ties, infinities, groups, odd numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import prudent
from prudent import Rule
from prudent.certification import error_boundary
from prudent.exceptions import InfeasibleError

# Ties, both infinities, zeros of both signs, the largest and the smallest doubles.
VALUES = st.sampled_from(
    [-math.inf, -1.7e308, -1.0, -5e-324, -0.0, 0.0, 1e-300, 0.5, 1.0, 3.0, math.inf]
)
FLOATS = st.one_of(VALUES, st.floats(allow_nan=False, width=32))
RATES = st.sampled_from([5, 10, 20, 35])
CONFIDENCE = st.sampled_from([None, 0.8])


def rank(n, percent, confidence):
    """Largest admissible rank, tried one by one."""
    rate, best = Fraction(percent, 100), 0
    for r in range(1, n + 1):
        if confidence is None:
            admissible = Fraction(r, n + 1) <= rate
        else:
            admissible = binom.cdf(r - 1, n, percent / 100) <= 1 - confidence + 1e-12
        if admissible:
            best = r
    return best


def columns(n_columns, least=20, most=60):
    """Rows of scores, and the code of the true column of each."""
    row = st.tuples(
        st.tuples(*[FLOATS] * n_columns), st.integers(0, max(n_columns, 2) - 1)
    )
    return st.lists(row, min_size=least, max_size=most)


def asked(scores, y, wish, **given_settings):
    """The rule, or nothing where the table cannot carry one."""
    ids = np.arange(len(scores))
    try:
        return prudent.promise(scores, y, wish, ids=ids, **given_settings)
    except InfeasibleError:
        return None
    except ValueError as error:
        assume("every row" not in str(error) and " rows are " not in str(error))
        raise


def round_trip(rule, answer):
    """The rule that is read back answers alike."""
    back = Rule.from_json(rule.to_json())
    np.testing.assert_array_equal(answer(back), answer(rule))
    assert back.to_json() == rule.to_json()


@given(columns(1), RATES, CONFIDENCE, st.sampled_from(["low", "high"]))
@settings(max_examples=20, deadline=None)
def test_alarms_are_those_of_the_count(rows, percent, confidence, strange):
    scores = np.array([row[0][0] for row in rows])
    wish = f"false alarm <= {percent}%"
    rule = asked(scores, None, wish, confidence=confidence, strange=strange)
    n, r = len(scores), rank(len(scores), percent, confidence)
    assert (rule is None) == (r == 0)
    if rule is None:
        return
    sign = -1 if strange == "high" else 1
    expected = [sum(sign * a <= sign * s for a in scores) + 1 <= r for s in scores]
    assert rule.alarms(scores).tolist() == expected
    bound = rule.guarantees[0].bound
    assert bound == (percent / 100 if confidence else r / (n + 1))
    round_trip(rule, lambda made: made.alarms(scores))


@given(columns(3), RATES, CONFIDENCE, st.sampled_from(["all", "class", "group"]))
@settings(max_examples=20, deadline=None)
def test_sets_are_those_of_the_count(rows, percent, confidence, by):
    scores = np.array([row[0] for row in rows])
    y = np.array([row[1] for row in rows])
    group = np.array(["p", "q"])[np.arange(len(y)) % 2]
    wish = f"coverage >= {100 - percent}%"
    wish += {"all": "", "class": " in every class", "group": " in every group"}[by]
    by_group = {"by": group} if by == "group" else {}
    rule = asked(
        scores,
        y,
        wish,
        classes=[0, 1, 2],
        confidence=confidence,
        allow_rare=True,
        **by_group,
    )
    own = scores[np.arange(len(y)), y]
    n_claims = {"all": 1, "class": 3, "group": 2}[by]
    each = None if confidence is None else confidence ** (1 / n_claims)
    new = np.append(group, "never seen")
    wide = np.vstack([scores, [1.0, 0.0, -1.0]])
    expected = np.zeros((len(wide), 3), dtype=bool)
    for i, row in enumerate(wide):
        for c in range(3):
            among = own
            if by == "class":
                among = own[y == c]
            if by == "group":
                among = own[group == new[i]]
            r = rank(len(among), percent, each)
            expected[i, c] = sum(a <= row[c] for a in among) + 1 > r
        expected[i, row.argmax()] = True
    groups = new if by == "group" else None
    np.testing.assert_array_equal(rule.sets(wide, groups), expected)
    if by != "group":
        round_trip(rule, lambda made: made.sets(wide))


@given(columns(1, 60, 120), st.sampled_from([10, 20, 35]))
@settings(max_examples=20, deadline=None)
def test_answers_are_those_of_the_best_admissible_cut(rows, percent):
    sure = np.array([row[0][0] for row in rows])
    wrong = np.array([row[1] for row in rows]) > 0
    wrong &= sure < np.sort(sure)[len(sure) // 2]  # so that there are answers at all
    rule = asked(
        sure, wrong, f"error <= {percent}%", predicted=np.zeros(len(sure), bool)
    )
    boundary = error_boundary(len(sure), percent / 100)
    best = 0
    for cut in {*sure.tolist(), -math.inf}:
        over = sure > cut
        k, w = int(over.sum()), int((over & wrong).sum())
        for corner, allowed in zip(
            boundary.ranks.tolist(), boundary.wrong_allowed.tolist(), strict=True
        ):
            if allowed >= w:
                best = max(best, k if k - w >= corner - allowed else 0)
                break
    if rule is None:
        assert best == 0
        return
    assert int(rule.answers(sure).sum()) == best
    round_trip(rule, lambda made: made.answers(sure))


@given(columns(1, 40, 90), st.sampled_from([20, 35]))
@settings(max_examples=20, deadline=None)
def test_labels_of_one_score_are_those_of_the_count(rows, percent):
    score = np.array([row[0][0] for row in rows])
    y = np.array(["no", "yes"])[[row[1] for row in rows]]
    wish = f"missed yes <= {percent}%"
    rule = asked(score, y, wish, classes=["no", "yes"], confidence=0.8)
    own = score[y == "yes"]
    r = rank(len(own), percent, 0.8)
    if rule is None:
        assert r == 0 or np.sort(own)[r - 1] == -math.inf
        return
    cut = np.sort(own)[r - 1]
    expected = np.where(score >= cut, "yes", "no")
    pairs = np.column_stack([-score, score])
    np.testing.assert_array_equal(rule.labels(pairs), expected)
    round_trip(rule, lambda made: made.labels(pairs))


@pytest.mark.parametrize("wish", ["coverage >= 90%", "error <= 20%", "missed 1 <= 20%"])
def test_single_precision_is_compared_as_it_is(wish):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    scores = (rng.normal(size=(300, 2)) + 2 * np.eye(2)[y]).astype(np.float32)
    rule = prudent.promise(scores, y, wish)
    same = prudent.promise(scores.astype(np.float64), y, wish)
    assert rule.thresholds == same.thresholds
    assert all(
        not np.isfinite(cut) or np.float32(cut) == cut for cut in rule.thresholds
    )


def test_a_class_without_rows_is_refused_or_in_every_set():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    scores = rng.normal(size=(200, 3))
    wish = "coverage >= 90% in every class"
    with pytest.raises(InfeasibleError, match="2 has 0"):
        prudent.promise(scores, y, wish, classes=[0, 1, 2])
    rule = prudent.promise(scores, y, wish, classes=[0, 1, 2], allow_rare=True)
    assert rule.sets(scores)[:, 2].all()
    with pytest.raises(InfeasibleError, match="class 2 has 0 held-out rows"):
        prudent.promise(scores, y, "missed 2 <= 10%", classes=[0, 1, 2])
