"""One iteration against the matrix products it needs, and a fit against lbfgs.

An iteration is the difference between a long and a short fit, per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from experiments.benchmark_data import folder, load
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import Workload, cpu_time
from prudent import RiskCalibratedClassifier

SHORT = 3


@dataclass(frozen=True)
class IterationWorkload(Workload):
    """`ours` takes a number of evaluations; the ratio is that of one more."""

    ours: Callable[..., Any]
    long: int = 9  # evaluations of the long fit; few rows need many to be timed

    def ratio(self) -> float:
        """Least CPU time of one evaluation over least CPU time of the peer."""
        self.ours(SHORT), self.peer()
        times = np.array(
            [
                [
                    cpu_time(partial(self.ours, self.long)),
                    cpu_time(partial(self.ours, SHORT)),
                    cpu_time(self.peer),
                ]
                for _ in range(self.repeats)
            ]
        ).min(axis=0)
        return float((times[0] - times[1]) / (self.long - SHORT) / times[2])


def workloads() -> Iterator[Workload]:
    """All ratios of the calibration."""
    for m, d, r, spread, goal in (
        (60_000, 64, 10, 0.1, 0.9),
        (60_000, 64, 10, 1.1, 0.55),
        (10_000, 20, 5, 0.1, 1.8),
    ):
        X, y = clouds(m, d, r, spread)
        share = active_share(X, y)
        yield IterationWorkload(
            f"full, ({m}, {d}, {r}), {share:.0%} active",
            partial(fit, X, y, "full"),
            "dense GEMMs",
            partial(dense_products, X, r),
            goal,
            long=_long_fit(m),
        )
    for m, d, r, goal in ((60_000, 64, 10, 1.3), (10_000, 20, 5, 2.0)):
        X, y = clouds(m, d, r, 0.1)
        yield IterationWorkload(
            f"tied_diag, ({m}, {d}, {r})",
            partial(fit, X, y, "tied_diag"),
            "two skinny GEMMs",
            partial(skinny_products, X, r),
            goal,
            long=_long_fit(m),
        )
    X, y = clouds(60_000, 64, 10, 0.1)
    yield Workload(
        "full, fit of 6 evaluations",
        partial(fit, X, y, "full", 6),
        "6 dense GEMM pairs",
        lambda: [dense_products(X, 10) for _ in range(6)],
        1.6 * 0.9,
    )
    if folder().is_dir():
        yield from fits_against_lbfgs()


def fits_against_lbfgs() -> Iterator[Workload]:
    """64 evaluations of tied_diag against one LogisticRegression."""
    for name, goal in (
        ("satellite", 0.8),
        ("segment", 0.8),
        ("optdigits", 0.8),
        ("letter_recognition", 0.8),
        ("magic", 2.5),
        ("pulsar", 2.5),
    ):
        X, y = load(name)
        Z = StandardScaler().fit_transform(X)
        yield Workload(
            f"tied_diag, 64 evaluations, {name}",
            partial(fit, X, y, "tied_diag", 64),
            "LogisticRegression",
            partial(LogisticRegression(max_iter=1000).fit, Z, y),
            goal,
            repeats=3,
        )


def _long_fit(m: int) -> int:
    return 9 if m > 10_000 else 103


def fit(
    X: NDArray[Any], y: NDArray[Any], family: str, max_iter: int
) -> RiskCalibratedClassifier:
    """Plain path without line search or validation."""
    return RiskCalibratedClassifier(
        family=family, max_iter=max_iter, stopping="none", line_search=False
    ).fit(X, y)


def clouds(
    m: int, d: int, r: int, spread: float
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Normal classes whose means lie `spread` standard deviations from the origin."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(r, d)) * spread / np.sqrt(2)
    y = rng.integers(r, size=m)
    return means[y] + rng.normal(size=(m, d)), y


def active_share(X: NDArray[Any], y: NDArray[Any]) -> float:
    """Share of the (row, class) pairs that still move the statistics."""
    H = fit(X, y, "full", 3).predict_proba(X)
    H[np.arange(len(y)), y] -= 1
    return float((np.abs(H) > 1e-10).mean())


def dense_products(X: NDArray[Any], r: int) -> NDArray[Any]:
    """The 4 m d^2 r operations of scores and statistics as plain GEMMs.

    In row blocks, so that the peer does not pay for a scores matrix of m r d numbers.
    """
    m, d = X.shape
    B, total, scores = (
        np.ones((d, r * d)),
        np.zeros((r * d, d)),
        np.empty((1024, r * d)),
    )
    for start in range(0, m, 1024):
        rows = X[start : start + 1024]
        block = np.matmul(rows, B, out=scores[: len(rows)])
        total += block.T @ rows
    return total


def skinny_products(X: NDArray[Any], r: int) -> NDArray[Any]:
    """Scores and statistics of a linear family."""
    return (X @ np.ones((X.shape[1], r))).T @ X
