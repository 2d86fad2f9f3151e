"""Invariants of the rejection game (adversarial A8) and of held-out cuts."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prudent import RejectionGame
from prudent.adversarial.density.learn import scale_to_rate
from prudent.adversarial.game.laws import DIVERGENCES, Divergence
from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.rules.rule import FalseAlarms
from prudent.rules.scores import CalibrationScores

SETTINGS = settings(max_examples=60, deadline=None)

rates = st.floats(0.001, 0.999)


@st.composite
def games(draw, max_events=12):
    """Target, divergence and an admissible bound."""
    weights = draw(
        st.lists(
            st.integers(1, 40) | st.floats(1e-6, 50), min_size=2, max_size=max_events
        )
    )
    p = np.array(weights, dtype=float)
    p /= p.sum()
    name = draw(st.sampled_from(DIVERGENCES))
    points = Divergence(name).at_points(p, p @ p)
    share = draw(st.floats(0, 1))
    bound = float((1 - share) * points.min() + share * points.max())
    return p, {"divergence": name, "divergence_bound": bound}


def solve(p, params, rate, **more):
    return RejectionGame(false_alarm_rate=rate, **params, **more).fit(p)


@SETTINGS
@given(games(), rates)
def test_certificate_value_and_rule_agree(game, rate):
    p, params = game
    solved = solve(p, params, rate)
    z = solved.rejection_rate_
    assert rate * (1 - 1e-12) <= z <= 1 + 1e-15
    assert solved.rejection_ @ p == pytest.approx(rate, abs=1e-12)
    assert solved.upper_bound_ - z <= 1e-10 * z
    assert solved.worst_case()[0] == pytest.approx(z, abs=1e-10)
    assert solved.adversary_ @ solved.rejection_ == pytest.approx(z, abs=1e-10)
    assert np.count_nonzero(solved.adversary_) <= 2
    order = np.argsort(p)
    assert (np.diff(solved.rejection_[order]) <= 1e-12).all()


@SETTINGS
@given(games(), rates)
def test_no_rule_beats_the_mixture(game, rate):
    p, params = game
    solved = solve(p, params, rate)
    q = solved.adversary_mixture_
    assert q.sum() == pytest.approx(1, abs=1e-12)
    order = np.argsort(-q / p)  # Neyman and Pearson
    taken = np.clip(rate - (np.cumsum(p[order]) - p[order]), 0, p[order]) / p[order]
    assert taken @ q[order] == pytest.approx(solved.rejection_rate_, rel=1e-9)


@SETTINGS
@given(games(), rates)
def test_soft_is_never_worse_than_hard(game, rate):
    p, params = game
    soft = solve(p, params, rate).rejection_rate_
    hard = solve(p, params, rate, strategy="hard")
    assert hard.rejection_rate_ <= soft + 1e-12
    assert hard.rejection_ @ p <= rate * (1 + 1e-11)
    assert set(hard.rejection_) <= {0.0, 1.0}


@SETTINGS
@given(games())
def test_value_is_concave_and_rises_with_the_rate(game):
    p, params = game
    curve = solve(p, params, 0.1).security_curve(np.linspace(0, 1, 21))
    z = 1 - curve.soft_miss_rates
    assert (np.diff(z) >= -1e-12).all()
    assert (np.diff(z, 2) <= 1e-10).all()


@SETTINGS
@given(games(), rates, st.floats(0, 1))
def test_value_rises_with_the_bound(game, rate, share):
    p, params = game
    nearer = {**params, "divergence_bound": share * params["divergence_bound"]}
    assume(nearer["divergence_bound"] >= 0)
    assert (
        solve(p, nearer, rate).rejection_rate_
        <= solve(p, params, rate).rejection_rate_ + 1e-11
    )


@SETTINGS
@given(games(), rates, st.randoms(use_true_random=False))
def test_events_may_come_in_any_order(game, rate, random):
    p, params = game
    order = np.array(random.sample(range(len(p)), len(p)))
    first, second = solve(p, params, rate), solve(p[order], params, rate)
    np.testing.assert_allclose(second.rejection_, first.rejection_[order], atol=1e-10)


@SETTINGS
@given(games(max_events=6), rates, st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_levels_equal_their_events(game, rate, multiplicities):
    value, params = game
    params = {**params, "divergence": "kl"}  # its points do not depend on the rest
    counts = np.array(multiplicities[: len(value)])
    value = value / (counts @ value)
    points = -np.log2(value)
    params["divergence_bound"] = float(points.min() + 0.6 * np.ptp(points))
    by_level = RejectionGame.from_levels(
        value, counts * value, false_alarm_rate=rate, **params
    )
    by_event = solve(np.repeat(value, counts), params, rate)
    assert by_level.rejection_rate_ == pytest.approx(by_event.rejection_rate_, rel=1e-9)
    np.testing.assert_allclose(
        np.repeat(by_level.rejection_, counts), by_event.rejection_, atol=1e-8
    )


@SETTINGS
@given(games(), rates)
def test_the_dual_game_inverts_the_game(game, rate):
    p, params = game
    solved = solve(p, params, rate)
    assume(1e-6 < solved.rejection_rate_ < 1 - 1e-6)
    assert solved.min_false_alarm(solved.miss_rate_) == pytest.approx(rate, rel=1e-8)


@SETTINGS
@given(games(), st.integers(0, 10**9))
def test_keyed_draws_do_not_depend_on_the_batch(game, key):
    p, params = game
    solved = solve(p, params, 0.3)
    events = np.arange(len(p))
    whole = solved.reject(events, key=key)
    np.testing.assert_array_equal(solved.reject(events[::-1], key=key)[::-1], whole)
    np.testing.assert_array_equal(solved.reject(events[:1], key=key), whole[:1])


# --- held-out cuts ------------------------------------------------------------------

scores = st.lists(
    st.integers(-5, 5).map(float) | st.floats(-9, 9), min_size=1, max_size=60
)


@SETTINGS
@given(scores, st.floats(-9, 9), st.floats(0.01, 0.99))
def test_the_cut_and_the_p_value_take_the_same_decision(held_out, score, rate):
    rule = FalseAlarms(scores=CalibrationScores.from_rows(np.array(held_out))).rule(
        rate
    )
    assume(abs((len(held_out) + 1) * rate - round((len(held_out) + 1) * rate)) > 1e-9)
    row = np.array([score])
    assert rule.alarms(row)[0] == (rule.p_values(row)[0] <= rate)


@SETTINGS
@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_the_scale_spends_the_budget_and_no_more(rejection, rate):
    rejection = np.round(rejection, 6)
    scale = scale_to_rate(rejection, rate, 1e9)
    spent = np.minimum(1, scale * rejection).sum()
    budget = (len(rejection) + 1) * rate - 1
    assert spent <= max(budget, 0) + 1e-9
    if 0 < budget <= np.count_nonzero(rejection):
        assert spent == pytest.approx(budget, abs=1e-9)


@SETTINGS
@given(st.integers(1, 3000), rates, st.floats(0.01, 0.99))
def test_ranks_keep_their_rate(m, rate, confidence):
    mean = mean_rank(m, rate)
    assert mean / (m + 1) <= rate * (1 + 1e-12)
    assert (mean + 1) / (m + 1) > rate or mean == m
    careful = high_probability_rank(m, rate, max(confidence, 0.6))
    assert careful <= mean + 1


@pytest.mark.parametrize("rate", [0.2, 0.34, 0.5, 0.75])
def test_no_small_sample_breaks_a_promise_on_average(rate):
    """All exchangeable laws of up to five rows: each row in turn is the new one.

    An exchangeable law is a mixture of the orders of fixed rows, so these are all.
    """
    values = (0.0, 0.1, 0.4, 1.0)
    for n in (2, 3, 4, 5):
        for rows in combinations_with_replacement(values, n):
            scores = np.array(rows)
            cuts, coins = [], []
            for i in range(n):
                others = np.sort(np.delete(scores, i))
                rank = mean_rank(n - 1, rate)
                cuts.append(rank > 0 and scores[i] < others[rank - 1])
                scale = scale_to_rate(others, rate, 10.0)
                coins.append(min(1.0, scale * scores[i]))
            assert np.mean(cuts) <= mean_rank(n - 1, rate) / n
            assert np.mean(coins) <= rate + 1e-12
