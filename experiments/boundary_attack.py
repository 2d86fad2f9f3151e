"""Attack a rule that answers: exact probabilities over all samples, worst population.

A population has a few scores, each with a mass and a share of wrong rows. The counts
of n rows are multinomial, so the probability that a rule certifies falsely is a sum
over all possible counts; a search looks for the population where it is largest.

python -m experiments.boundary_attack [--quick]    the table of docs/boundary.rst
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, softmax

from prudent.certification import error_boundary
from prudent.core.binomial import most_wrong

Counts = NDArray[np.intp]
#: Cumulated counts of one sample, answered and wrong, from the highest score down ->
#: how many scores are answered, and the bound that is promised for them.
Rule = Callable[[Counts, Counts], tuple[int, float]]
#: Rows, scores, error rate, 1 - confidence: the rows of the table.
CASES = (
    (4, 3, 0.6, 0.2),
    (5, 3, 0.6, 0.2),
    (6, 3, 0.5, 0.2),
    (7, 3, 0.4, 0.1),
    (8, 4, 0.5, 0.2),
    (9, 3, 0.4, 0.2),
    (10, 3, 0.5, 0.1),
    (11, 3, 0.4, 0.1),
    (12, 3, 0.35, 0.1),
)


def all_counts(n: int, n_cells: int) -> tuple[Counts, NDArray[np.float64]]:
    """Every way to put n rows into cells, and the logarithm of its multiplicity."""
    bars = np.array(list(combinations(range(n + n_cells - 1), n_cells - 1)))
    edges = np.column_stack(
        [np.full(len(bars), -1), bars, np.full(len(bars), n + n_cells - 1)]
    )
    counts = np.diff(edges, axis=1) - 1
    return counts, gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)


def worst_case(
    n: int,
    n_scores: int,
    certify: Rule,
    *,
    seed: int = 0,
    generations: int = 60,
    size: int = 120,
    rates: Sequence[float] = (),
) -> float:
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

    def broken(points: NDArray[np.float64]) -> NDArray[np.float64]:
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


def by_boundary(n: int, rate: float, delta: float) -> Rule:
    """The largest answered set that the boundary admits."""
    boundary = error_boundary(n, rate, confidence=1 - delta)

    def certify(answered: Counts, wrong: Counts) -> tuple[int, float]:
        admitted = np.flatnonzero(boundary.admits(answered, wrong) & (answered > 0))
        return (int(admitted[-1]) + 1 if len(admitted) else 0), rate

    return certify


def by_last_uncorrected_test(rate: float, delta: float) -> Rule:
    """The largest answered set that passes a binomial test by itself: not valid."""

    def certify(answered: Counts, wrong: Counts) -> tuple[int, float]:
        passed = [
            i
            for i, (k, w) in enumerate(zip(answered, wrong, strict=True))
            if k and w <= most_wrong(int(k), rate, delta)
        ]
        return (passed[-1] + 1 if passed else 0), rate

    return certify


def worst_of(
    n: int, scores: int, rate: float, delta: float, *, seeds: int, generations: int
) -> tuple[float, float, float]:
    """Crossing probability, and the worst that the boundary and a plain test met."""
    crossing = error_boundary(n, rate, confidence=1 - delta).crossing
    boundary, uncorrected = (
        max(
            worst_case(
                n, scores, rule, rates=(rate,), seed=seed, generations=generations
            )
            for seed in range(seeds)
        )
        for rule in (
            by_boundary(n, rate, delta),
            by_last_uncorrected_test(rate, delta),
        )
    )
    return crossing, boundary, uncorrected


def main(words: list[str]) -> None:
    """Print a line for each case: what is allowed, and the worst that was met."""
    quick = "--quick" in words
    print("rows scores rate  allowed    walk  boundary  last test")
    for n, scores, rate, delta in CASES:
        crossing, boundary, uncorrected = worst_of(
            n,
            scores,
            rate,
            delta,
            seeds=1 if quick else 4,
            generations=30 if quick else 150,
        )
        print(
            f"{n:4} {scores:6} {rate:4.2f} {delta:8.2f} {crossing:7.4f}"
            f" {boundary:9.4f} {uncorrected:10.4f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
