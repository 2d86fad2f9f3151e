"""The game with several observations of one visitor, on types."""

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest
from scipy.optimize import linprog

from prudent import RejectionGame
from prudent.adversarial import divergence_of, type_law

P = np.array([0.5, 0.3, 0.2])


def test_a_single_event_has_a_single_type():
    types, probabilities = type_law([1.0], 4)
    assert types.tolist() == [[4]]
    assert probabilities.tolist() == [1.0]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_types_and_their_probabilities_are_those_of_all_sequences(n):
    expected = Counter()
    for sequence in product(range(3), repeat=n):
        counts = tuple(sequence.count(event) for event in range(3))
        expected[counts] += prod(P[list(sequence)])
    types, probabilities = type_law(P, n)
    assert sorted(map(tuple, types)) == sorted(expected)
    np.testing.assert_allclose(
        probabilities, [expected[tuple(row)] for row in types], rtol=1e-13
    )


def sequences_law(p, n):
    return np.array([prod(p[list(row)]) for row in product(range(3), repeat=n)])


@pytest.mark.parametrize("seed", range(5))
def test_game_on_types_is_worth_as_much_as_the_one_on_sequences(seed):
    laws = np.random.default_rng(seed).dirichlet(np.ones(3), size=3)
    game = RejectionGame(
        false_alarm_rate=0.1,
        divergence_bound=None,
        adversaries=[type_law(q, 4)[1] for q in laws],
    ).fit(type_law(P, 4)[1])
    target = sequences_law(P, 4)
    best = linprog(
        np.append(np.zeros(len(target)), -1),
        A_ub=np.vstack(
            [
                np.c_[[-sequences_law(q, 4) for q in laws], np.ones(3)],
                np.append(target, 0),
            ]
        ),
        b_ub=[0, 0, 0, 0.1],
        bounds=(0, 1),
    )
    assert game.rejection_rate_ == pytest.approx(-best.fun, abs=1e-8)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_distances_add_up_and_far_intruders_are_rejected_as_promised(n):
    game = RejectionGame(false_alarm_rate=0.1, divergence_bound=0.8 * n)
    target = type_law(P, n)[1]
    game.fit(target)
    rng, n_far = np.random.default_rng(n), 0
    for q in rng.dirichlet(np.full(3, 0.3), size=300):
        q = np.maximum(q, 1e-12) / np.maximum(q, 1e-12).sum()
        law, distance = type_law(q, n)[1], divergence_of(q, P)
        assert divergence_of(law, target) == pytest.approx(n * distance, rel=1e-9)
        if distance >= 0.8:
            n_far += 1
            assert law @ game.rejection_ >= game.rejection_rate_ - 1e-12
    assert n_far > 50


def test_too_many_types_and_no_observation_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        type_law(P, 0)
    with pytest.raises(ValueError, match="more than 1000000"):
        type_law(np.full(50, 0.02), 6)
