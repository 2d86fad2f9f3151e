"""Compiled loops: against the definition, and against the interpreter."""

import math

import numpy as np
import pytest

from prudent.adversarial.game import kernels
from prudent.adversarial.game.laws import DIVERGENCES, Divergence
from prudent.adversarial.game.solver import split_levels

EDGE_DIVERGENCE = {
    "kl": lambda q, p: np.sum(q * np.log2(q / p)),
    "l2": lambda q, p: np.sum((q - p) ** 2),
    "chi2": lambda q, p: np.sum(q**2 / p) - 1,
    "hellinger": lambda q, p: 1 - np.sum(np.sqrt(p * q)),
}


def random_levels(name, seed, n=30):
    rng = np.random.default_rng(seed)
    p = np.sort(rng.dirichlet(np.full(n, 0.5)))
    p = np.maximum(p, 1e-9) / np.maximum(p, 1e-9).sum()
    points = Divergence(name).at_points(p, p @ p)
    bound = float(rng.uniform(points[-1], points[0]))
    return p, bound, split_levels(p, p, Divergence(name), bound)


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("seed", range(10))
def test_log_odds_meet_the_bound(name, seed):
    p, bound, levels = random_levels(name, seed)
    for l in range(levels.n_low):
        for h in range(levels.n_admissible, len(p)):
            x = kernels.log_odds(
                levels.code, levels.scale, levels.excess[l], levels.excess[h], math.nan
            )
            q = np.zeros(len(p))
            q[[l, h]] = 1 / (1 + math.exp(-x)), 1 / (1 + math.exp(x))
            support = q > 0
            if name == "l2":  # outside the support it counts p squared
                support[:] = True
            distance = EDGE_DIVERGENCE[name](q[support], p[support])
            assert distance == pytest.approx(bound, rel=2e-13, abs=2e-13)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_odds_rise_with_both_probabilities_and_are_submodular(name):
    for seed in range(10):
        _, _, levels = random_levels(name, seed)
        low, high = levels.excess[levels.low], levels.excess[levels.high]
        table = np.array(
            [
                [
                    kernels.log_odds(levels.code, levels.scale, x, y, math.nan)
                    for y in high
                ]
                for x in low
            ]
        )
        assert (np.diff(table, axis=0) >= -1e-12).all()
        assert (np.diff(table, axis=1) >= -1e-12).all()
        assert (np.diff(np.diff(table, axis=0), axis=1) <= 1e-12).all()


@pytest.mark.parametrize("low", [1e-12, 1e-3, 0.36, 1.0, 690.0])
@pytest.mark.parametrize("high", [-1e-12, -1e-3, -0.205, -1.0, -40.0])
@pytest.mark.parametrize("start", [math.nan, -700.0, 0.0, 700.0])
def test_kl_root_is_found_from_any_start(low, high, start):
    x = kernels.log_odds(0, 0.0, low, high, start)
    assert x == pytest.approx(kernels.log_odds(0, 0.0, low, high, math.nan), abs=1e-9)
    q, rest = 1 / (1 + math.exp(-x)), 1 / (1 + math.exp(x))
    value = q * (low + math.log(q)) + rest * (high + math.log(rest))
    assert abs(value) <= 1e-13 * (low - high + 1)


def test_kl_root_survives_a_vanishing_slope():
    """The chord's root once fell beside the minimum and Newton left the numbers."""
    x = kernels.log_odds(0, 0.0, 0.3596690699757312, -0.20523266861105238, math.nan)
    assert 0 < 1 / (1 + math.exp(-x)) < 1


@pytest.mark.parametrize("name", DIVERGENCES)
def test_compiled_log_odds_equal_the_interpreted_ones(name, monkeypatch):
    monkeypatch.setattr(kernels, "_kl_log_odds", kernels._kl_log_odds.py_func)
    for seed in range(5):
        _, _, levels = random_levels(name, seed)
        for x in levels.excess[levels.low]:
            for y in levels.excess[levels.high]:
                arguments = (levels.code, levels.scale, float(x), float(y), math.nan)
                assert kernels.log_odds.py_func(*arguments) == pytest.approx(
                    kernels.log_odds(*arguments), rel=1e-12, abs=1e-12
                )


@pytest.mark.parametrize("low", [1e-12, 0.3596690699757312, 690.0])
@pytest.mark.parametrize("high", [-1e-12, -0.20523266861105238, -40.0])
@pytest.mark.parametrize("start", [math.nan, 0.0, 700.0])
def test_compiled_kl_root_equals_the_interpreted_one(low, high, start):
    interpreted = kernels._kl_log_odds.py_func(low, high, start)
    assert interpreted == pytest.approx(
        kernels.log_odds(0, 0.0, low, high, start), abs=1e-12
    )


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("bought", [0.0, 0.05, 3.0])
def test_compiled_fill_equals_the_interpreted_one(name, bought):
    for seed in range(5):
        p, _, levels = random_levels(name, seed)
        compiled, interpreted = np.empty(len(p)), np.empty(len(p))
        arguments = (
            levels.code,
            levels.scale,
            levels.excess,
            p,
            levels.n_low,
            levels.n_admissible,
            bought,
        )
        first = kernels.fill(*arguments, compiled)
        second = kernels.fill.py_func(*arguments, interpreted)
        np.testing.assert_allclose(first, second, rtol=1e-12)
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_tightest_pair_equals_the_full_table(name):
    for seed in range(10):
        _, _, levels = random_levels(name, seed)
        rng = np.random.default_rng(seed)
        low, high = levels.excess[levels.low], levels.excess[levels.high]
        above, below = rng.uniform(size=len(low)), rng.uniform(size=len(high))
        arguments = (levels.code, levels.scale, low, above, high, below)
        ratios = np.array(
            [
                [
                    math.exp(
                        kernels.log_odds(levels.code, levels.scale, x, y, math.nan)
                    )
                    for y in high
                ]
                for x in low
            ]
        ) * np.divide.outer(above, below)
        l, h, ratio = kernels.tightest_pair(*arguments)
        assert (l, h) == np.unravel_index(ratios.argmin(), ratios.shape)
        assert ratio == pytest.approx(ratios.min(), rel=1e-12)
        assert kernels.tightest_pair.py_func(*arguments)[:2] == (l, h)
