"""Properties A, B and C of lists of intruders: the paper's examples, and all rules."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import RejectionGame
from prudent.adversarial import divergence_of, has_property

P = np.array([0.1, 0.2, 0.3, 0.4])
POINTS = np.eye(4)
UNIFORM = np.full((1, 4), 0.25)


def test_example_2():
    """The uniform law and all laws have property A, the target itself has not."""
    assert has_property(UNIFORM, "A", P)
    assert has_property(POINTS, "A", P)
    assert not has_property(P[None], "A", P)


def test_example_3():
    """The uniform law, all laws and the target have property B."""
    for laws in (UNIFORM, POINTS, P[None]):
        assert has_property(laws, "B", P)


def test_example_4_lacks_property_c():
    p = [0.02, 0.03, 0.05, 0.05, 0.85]
    laws = [[0, 0, 0.6, 0.3, 0.1], [0, 0, 0.9, 0.1, 0]]
    assert not has_property(laws, "C", p)
    both = [*laws, *([a, b, d, c, e] for a, b, c, d, e in laws)]
    assert has_property(both, "C", p)


def test_rare_events_are_told_apart():
    """The intruder plays the second event: the best rule leaves the rarest alone."""
    p, laws = [2e-13, 8e-13, 0.3, 0.7], [[0, 1, 0, 0]]
    game = RejectionGame(
        adversaries=laws, divergence_bound=None, strategy="hard", false_alarm_rate=8e-13
    ).fit(p)
    np.testing.assert_array_equal(game.rejection_, [0, 1, 0, 0])
    assert not has_property(laws, "A", p)
    assert not has_property(laws, "B", p)
    assert has_property(laws, "C", p)


@pytest.mark.parametrize("scale", [1.0, 1e-13, 1e-200, 1e-299])
def test_properties_do_not_depend_on_how_rare_the_events_are(scale):
    """Products of such probabilities are 0 in floating point."""

    def with_rest(weights):
        rare = scale * np.array(weights)
        return np.append(rare, 1 - rare.sum())

    p = with_rest([0.1, 0.2, 0.2])
    for weights, held in [
        ([0.1, 0.2, 0.2], (False, True, True)),
        ([0.2, 0.2, 0.1], (False, False, False)),
        ([0.05, 0.225, 0.225], (False, False, True)),
    ]:
        q = with_rest(weights)
        assert tuple(has_property(q, name, p) for name in "ABC") == held, weights
    closed = [p[list(order)] for order in EXCHANGES]
    assert all(has_property(closed, name, p) for name in "ABC")


@pytest.mark.parametrize("kind", ["kl", "l2", "chi2", "hellinger"])
def test_lemma_15_what_moves_to_the_rarer_event_moves_away(kind):
    """Of any law the transfer is a counterpart for properties A and B."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p, q = np.sort(rng.dirichlet(np.ones(5))), rng.dirichlet(np.full(5, 0.5))
        for j, k in zip(*np.triu_indices(5, 1), strict=True):
            moved = q.copy()
            moved[j], moved[k] = q[j] + q[k], 0.0
            nearer, farther = divergence_of([q, moved], p, kind)
            assert farther >= nearer - 1e-12


def value(rule, laws):
    """Least probability that the rule rejects what the intruder plays."""
    return (laws @ rule).min()


def valid_rules(p, rate):
    rules = np.array(list(product([0, 1], repeat=len(p))), dtype=float)
    return rules[rules @ p <= rate + 1e-12]


def is_monotone(rule, p):
    return all(
        rule[j] >= rule[k] for j in range(len(p)) for k in range(len(p)) if p[j] < p[k]
    )


families = st.lists(
    st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any), min_size=1
)
targets = st.lists(st.integers(1, 4), min_size=4, max_size=4)


@settings(max_examples=150, deadline=None)
@given(families, targets, st.floats(0.05, 0.9), st.booleans())
def test_theorems_4_and_10_by_enumeration(counts, weights, rate, closed):
    """With A some best rule is monotone; with A and C low density is best."""
    laws = np.array(counts, dtype=float)
    if closed:  # under exchanges of events, which brings all three properties
        laws = np.array([law[list(order)] for law in laws for order in EXCHANGES])
    laws /= laws.sum(axis=1, keepdims=True)
    p = np.array(weights) / sum(weights)
    held = {name: has_property(laws, name, p) for name in "ABC"}
    assert all(held.values()) or not closed
    if not held["A"]:
        return
    rules = valid_rules(p, rate)
    best = max(value(rule, laws) for rule in rules)
    monotone = [rule for rule in rules if is_monotone(rule, p)]
    assert max(value(rule, laws) for rule in monotone) == pytest.approx(best)
    if held["C"]:
        # Any rule that rejects in the order of p as far as the rate allows.
        order, rule = np.argsort(p, kind="stable"), np.zeros(4)
        for event in order:
            if rule @ p + p[event] > rate + 1e-12:
                break
            rule[event] = 1
        assert value(rule, laws) == pytest.approx(best)


EXCHANGES = list(permutations(range(4)))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="must be 'A', 'B' or 'C', got 'D'"):
        has_property(POINTS, "D", P)
    with pytest.raises(ValueError, match="adversaries"):
        has_property([[0.5, 0.6, 0, 0]], "A", P)
    with pytest.raises(ValueError, match="adversaries"):
        has_property([[0.5, 0.5]], "A", P)
