"""The game against the linear program over events and against brute force."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, linprog, nnls

from prudent import RejectionGame

pytestmark = pytest.mark.oracle

DIVERGENCE = {
    "kl": lambda q, p: np.sum(q * np.log2(np.where(q > 0, q, 1) / p)),
    "l2": lambda q, p: np.sum((q - p) ** 2),
    "chi2": lambda q, p: np.sum(q**2 / p) - 1,
    "hellinger": lambda q, p: 1 - np.sum(np.sqrt(p * q)),
}


def edge(p, i, j, q):
    mixture = np.zeros(len(p))
    mixture[i], mixture[j] = q, 1 - q
    return mixture


def extreme_intruders(name, p, bound):
    """Vertices of the edges' admissible parts, from the definition alone."""
    far = [DIVERGENCE[name](np.eye(len(p))[i], p) >= bound for i in range(len(p))]
    found = [np.eye(len(p))[i] for i in np.flatnonzero(far)]
    for i, j in product(np.flatnonzero(far), np.flatnonzero(~np.array(far))):

        def excess(q, i=i, j=j):
            return DIVERGENCE[name](edge(p, i, j, q), p) - bound

        found.append(edge(p, i, j, brentq(excess, 0, 1, xtol=1e-15, rtol=1e-15)))
    return np.array(found)


def random_game(name, seed):
    rng = np.random.default_rng((seed, len(name)))
    n = int(rng.integers(2, 9))
    p = rng.dirichlet(np.full(n, rng.choice([0.4, 1.0, 3.0])))
    if seed % 3 == 0:  # ties
        p = np.maximum(1, np.round(6 * p / p.max()))
    p = np.maximum(p, 1e-6) / np.maximum(p, 1e-6).sum()
    points = [DIVERGENCE[name](row, p) for row in np.eye(n)]
    bound = float(rng.uniform(0.8 * min(points), max(points)))
    return p, bound, float(rng.choice([0.01, 0.05, 0.2, 0.5, 0.9]))


def program_value(p, intruders, rate):
    """max z: intruders @ r >= z, p @ r <= rate, 0 <= r <= 1, over single events."""
    floors = np.c_[-intruders, np.ones(len(intruders))]
    result = linprog(
        np.append(np.zeros(len(p)), -1),
        A_ub=np.vstack([floors, np.append(p, 0)]),
        b_ub=np.append(np.zeros(len(intruders)), rate),
        bounds=(0, 1),
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize("name", DIVERGENCE)
@pytest.mark.parametrize("block", range(10))
def test_soft_value_equals_the_program_over_events(name, block):
    for seed in range(10 * block, 10 * block + 10):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name, divergence_bound=bound, false_alarm_rate=rate
        ).fit(p)
        value = program_value(p, extreme_intruders(name, p, bound), rate)
        assert game.rejection_rate_ == pytest.approx(value, abs=1e-9)
        assert game.gap_ <= 1e-12


@pytest.mark.parametrize("name", DIVERGENCE)
def test_worst_case_equals_the_search_over_all_edges(name):
    for seed in range(40):
        p, bound, _ = random_game(name, seed)
        game = RejectionGame(divergence=name, divergence_bound=bound).fit(p)
        rule = np.random.default_rng(seed).uniform(size=len(p))
        if seed % 4 == 0:
            rule = np.round(rule)
        value, q = game.worst_case(rule)
        exact = (extreme_intruders(name, p, bound) @ rule).min()
        assert value == pytest.approx(exact, abs=1e-11)
        assert q @ rule == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_hard_value_equals_the_best_of_all_deterministic_rules(name):
    for seed in range(25):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name,
            divergence_bound=bound,
            false_alarm_rate=rate,
            strategy="hard",
        ).fit(p)
        rules = np.array(list(product((0.0, 1.0), repeat=len(p))))
        rules = rules[rules @ p <= rate * (1 + 1e-12)]
        values = (rules @ extreme_intruders(name, p, bound).T).min(axis=1)
        assert game.rejection_rate_ == pytest.approx(values.max(), abs=1e-12)
        assert game.worst_case()[0] == pytest.approx(values.max(), abs=1e-11)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_mixture_is_a_mixture_of_admissible_intruders(name):
    for seed in range(40):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name, divergence_bound=bound, false_alarm_rate=rate
        ).fit(p)
        target = game.adversary_mixture_
        if game.is_trivial_:  # p itself, which only their hull contains
            np.testing.assert_allclose(target, p, atol=1e-15)
        intruders = extreme_intruders(name, p, bound)
        _, residual = nnls(
            np.vstack([intruders.T, np.ones(len(intruders))]), np.append(target, 1)
        )
        assert residual <= 1e-8


@pytest.mark.parametrize("name", DIVERGENCE)
def test_a_program_finds_no_cheaper_rule_for_the_dual_game(name):
    for seed in range(25):
        p, bound, _ = random_game(name, seed)
        game = RejectionGame(divergence=name, divergence_bound=bound).fit(p)
        intruders = extreme_intruders(name, p, bound)
        result = linprog(
            p,
            A_ub=-intruders,
            b_ub=np.full(len(intruders), -0.7),
            bounds=(0, 1),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10},
        )
        assert game.min_false_alarm(0.3) == pytest.approx(result.fun, abs=1e-9)
