"""Attack a rule that answers: exact probabilities over all samples, worst population.

A population has a few scores, each with a mass and a share of wrong rows. The counts
of n rows are multinomial, so the probability that a rule certifies falsely is a sum
over all possible counts; a search looks for the population where it is largest.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit, gammaln, softmax


def all_counts(n: int, n_cells: int):
    """Every way to put n rows into cells, and the logarithm of its multiplicity."""
    bars = np.array(list(combinations(range(n + n_cells - 1), n_cells - 1)))
    edges = np.column_stack(
        [np.full(len(bars), -1), bars, np.full(len(bars), n + n_cells - 1)]
    )
    counts = np.diff(edges, axis=1) - 1
    return counts, gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)


def worst_case(n, n_scores, certify, *, seed=0, generations=60, size=120, rates=()):
    """Largest probability found that a rule certifies a bound below its true rate.

    `certify(answered, wrong)` takes the counts of one sample, cumulated from the
    highest score down, and returns how many scores are answered and the bound that is
    promised for them; nothing answered promises nothing. `rates` are error shares
    that are tried first, all scores alike.
    """
    counts, multiplicity = all_counts(n, 2 * n_scores)
    wrong = np.cumsum(counts[:, 0::2], axis=1)
    answered = wrong + np.cumsum(counts[:, 1::2], axis=1)
    decided = [certify(a, w) for a, w in zip(answered, wrong, strict=True)]
    chosen = np.array([k for k, _ in decided])
    bound = np.array([b for _, b in decided])
    acts = chosen > 0
    counts, multiplicity = counts[acts], multiplicity[acts]
    chosen, bound = chosen[acts] - 1, bound[acts]
    if not len(chosen):
        return 0.0

    def broken(points):
        mass = softmax(points[:, :n_scores], axis=1)
        error = expit(points[:, n_scores:])
        cells = np.empty((len(points), 2 * n_scores))
        cells[:, 0::2], cells[:, 1::2] = mass * error, mass * (1 - error)
        likelihood = np.exp(
            multiplicity[:, None] + counts @ np.log(np.maximum(cells, 1e-300)).T
        )
        true = (np.cumsum(mass * error, axis=1) / np.cumsum(mass, axis=1)).T
        return np.sum(likelihood * (true[chosen] > bound[:, None]), axis=0)

    random = np.random.default_rng(seed)
    points = random.normal(0, 2, (size * 4, 2 * n_scores))
    for i, rate in enumerate(rates):
        points[i::8, n_scores:] = np.log(rate / (1 - rate)) + 1e-9
    spread = 1.0
    for _ in range(generations):
        values = broken(points)
        best = points[np.argsort(values)[-size // 6 :]]
        children = best[random.integers(len(best), size=size)]
        steps = random.normal(0, spread, children.shape)
        steps *= random.random(children.shape) < 0.6
        points, spread = np.vstack([best, children + steps]), spread * 0.93
    return float(broken(points).max())
