"""Class moments and distances against BLAS limits and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from benchmarks.timing import Workload
from prudent import ClassMoments, RawMoments
from prudent.core.linalg import MahalanobisFactors

# (d, n, K) -> goals: ours over SYRK, over QDA(eigen).fit; D2 over GEMMs, over QDA
SIZES = {
    (5, 400_000, 2): (2.0, 1 / 8, None, 1 / 5),
    (5, 400_000, 26): (2.0, 1 / 15, None, 1 / 5),
    (20, 300_000, 2): (2.0, 1 / 4, 0.7, 1 / 4),
    (20, 300_000, 26): (2.0, 1 / 4, 0.7, 1 / 4),
    (100, 60_000, 2): (1.5, 1 / 2, 0.7, 1 / 3),
    (100, 60_000, 26): (1.5, 1 / 2, 0.7, 1 / 3),
}


def workloads() -> Iterator[Workload]:
    """Accumulation, fourth moments, soft weights, merges and distances."""
    for (d, n, K), goals in SIZES.items():
        rng = np.random.default_rng(0)
        y = rng.integers(0, K, n)
        X = rng.normal(size=(n, d)) + 0.1 * y[:, None]
        qda = QuadraticDiscriminantAnalysis(solver="eigen")
        name = f"d={d} K={K}"
        moments = partial(ClassMoments.from_arrays, X, y)
        syrk = partial(np.matmul, X.T, X)
        yield Workload(f"from_arrays {name}", moments, "SYRK", syrk, goals[0])
        fit = partial(qda.fit, X, y)
        yield Workload(f"from_arrays {name}", moments, "QDA(eigen).fit", fit, goals[1])
        fourth = partial(moments, fourth=True)
        yield Workload(f"fourth {name}", fourth, "without", moments, 1.25)
        yield from distance_workloads(name, X[: n // 4], moments(), fit(), goals)
        if K == 2:
            H = rng.normal(size=(n, K))
            soft = partial(RawMoments.from_soft, X, H, X.mean(axis=0))
            yield Workload(f"from_soft {name}", soft, "SYRK", syrk, 2.0 * K)
            chunk = partial(ClassMoments.from_arrays, X[:50_000], y[:50_000])
            part = chunk()
            merge = partial(ClassMoments.__add__, part, part)
            yield Workload(f"merge {name}", merge, "from_arrays of 50 000", chunk, 0.05)


def distance_workloads(name, X, moments, qda, goals) -> Iterator[Workload]:
    """Squared distances against plain products and QDA."""
    covariances = moments.covariance()
    factors = MahalanobisFactors.from_covariances(
        moments.mean, covariances, means_lo=moments.mean_lo
    )
    distances = partial(factors.squared_distances, X)

    def products() -> None:
        for covariance in covariances:
            X @ covariance

    if goals[2] is not None:
        yield Workload(f"distances {name}", distances, "K GEMMs", products, goals[2])
    decide = partial(qda.decision_function, X)
    yield Workload(
        f"distances {name}", distances, "QDA.decision_function", decide, goals[3]
    )
