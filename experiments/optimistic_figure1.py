"""Figure 1 of Nguyen et al. (2020): n times the divergence against its limit law.

d = 20 independent (chi2(1) - 1)/sqrt(2) features. The limit is 190 chi2(1) variables
plus 20 copies of (4 + sqrt 13) chi2(1) + (4 - sqrt 13) chi2(1).
"""

from __future__ import annotations

import numpy as np

from experiments.table import Table, main
from prudent.optimistic import clt_radius, moment_divergence, moment_radius

D = 20


def rows_of_the_law(n: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.chisquare(1, size=(n, D)) - 1) / np.sqrt(2)


def scaled_divergences(n: int, n_samples: int, seed: int = 0) -> np.ndarray:
    """n D of the sample moments (divided by n) from the true ones."""
    rng = np.random.default_rng((seed, n))
    values = np.empty(n_samples)
    for i in range(n_samples):
        X = rows_of_the_law(n, rng)
        nominal = X.mean(axis=0), np.cov(X.T, bias=True)
        values[i] = n * moment_divergence(*nominal, np.zeros(D), np.eye(D))
    return values


def limit_draws(n_samples: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    root = np.sqrt(13)
    return (
        rng.chisquare(190, n_samples)
        + (4 + root) * rng.chisquare(20, n_samples)
        + (4 - root) * rng.chisquare(20, n_samples)
    )


def run(quick: bool) -> Table:
    n_samples = 100 if quick else 2000
    limit = limit_draws(200 * n_samples)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = [("limit", *np.quantile(limit, levels).round(1).tolist())]
    rows += [
        (f"n = {n}", *np.quantile(scaled_divergences(n, n_samples), levels).round(1))
        for n in (30, 50, 100, 300)
    ]
    X = rows_of_the_law(1000, np.random.default_rng(2))
    rows.append(
        ("moment_radius, 1000 rows", *(1000 * moment_radius(X, q) for q in levels))
    )
    rows.append(("clt_radius (Gaussian)", *(clt_radius(D, 1, q) for q in levels)))
    return Table(
        "Figure 1: quantiles of n D",
        ("", *(str(level) for level in levels)),
        rows,
        (
            "The paper draws histograms and prints no numbers. Exact limit: 272.705, "
            "313.172, 345.620, 382.070, 442.244.",
        ),
    )


def draw(axes) -> None:
    """The picture: histograms of n D and the limit density."""
    limit = limit_draws(200_000)
    bins = np.linspace(200, 600, 60)
    for n in (30, 50, 100, 300):
        axes.hist(
            scaled_divergences(n, 1000),
            bins,
            density=True,
            histtype="step",
            label=f"n = {n}",
        )
    density, edges = np.histogram(limit, bins, density=True)
    axes.plot((edges[1:] + edges[:-1]) / 2, density, "k--", label="limit")
    axes.set(xlabel="n D", ylabel="density")
    axes.legend()


if __name__ == "__main__":
    main(run)
