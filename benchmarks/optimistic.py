"""Scores, sets and the threshold against distances, QDA, a sort and scipy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from benchmarks.timing import Workload
from prudent import OptimisticScoreClassifier
from prudent.core.linalg import MahalanobisFactors
from prudent.optimistic import best_threshold, gaussian_scores, nonparametric_scores

N_ROWS = 100_000
N_POINTS = 50  # solved one by one by the scalar peer


def two_classes(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(N_ROWS) % 2
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    X = rng.normal(size=(N_ROWS, n_features)) @ (mixing + np.eye(n_features))
    return X + 0.5 * y[:, None], y


def classifier_workloads(n_features: int) -> Iterator[Workload]:
    X, y = two_classes(n_features)
    model = OptimisticScoreClassifier().fit(X[:2000], y[:2000])
    qda = QuadraticDiscriminantAnalysis().fit(X[:2000], y[:2000])
    factors = MahalanobisFactors.from_covariances(model.means_, model.covariances_)

    def workload(what: str, ours, peer_name: str, peer, goal: float) -> Workload:
        return Workload(f"{what}, d={n_features}", ours, peer_name, peer, goal)

    peer = ("QDA.decision_function", lambda: qda.decision_function(X))
    goals = {5: 1.5, 20: 0.5, 60: 0.45}
    if n_features == 20:
        # neither side checks the rows here; with QDA both do
        yield workload(
            "distances + optimistic scores",
            lambda: model._model.scores(X, "upper"),
            "distances alone",
            lambda: factors.squared_distances(X),
            1.4,
        )
        yield workload("predict_set", lambda: model.predict_set(X), *peer, 0.8)
    yield workload(
        "optimistic scores",
        lambda: model.optimistic_scores(X),
        *peer,
        goals[n_features],
    )


def scalar_workloads() -> Iterator[Workload]:
    """Ours on N_ROWS distances, the peer on N_POINTS: goal 1 is a factor of 2000."""
    M = np.random.default_rng(1).chisquare(20, N_ROWS)
    d, rho = 20, 0.5

    def gaussian_dual(g: float, M: float) -> float:
        return g * rho + d * (1 + g) * np.log1p(1 / g) - (1 + g) * np.log1p(M / (1 + g))

    def nonparametric_dual(g: float, M: float) -> float:
        return g * rho - g * np.log1p(M / (1 + g))

    def one_by_one(dual):
        for point in M[:N_POINTS]:
            minimize_scalar(dual, bounds=(1e-4, 1e4), args=(point,), method="bounded")

    goal = N_ROWS / N_POINTS / 2000
    for name, ours, dual in (
        ("Gaussian", lambda: gaussian_scores(M, d, rho), gaussian_dual),
        ("nonparametric", lambda: nonparametric_scores(M, rho), nonparametric_dual),
    ):
        yield Workload(
            f"{name} scores, both ends, 1e5 distances",
            ours,
            f"minimize_scalar, one end, {N_POINTS} distances",
            lambda dual=dual: one_by_one(dual),
            goal,
        )


def workloads() -> Iterator[Workload]:
    for n_features in (20, 60, 5):
        yield from classifier_workloads(n_features)
    yield from scalar_workloads()
    rng = np.random.default_rng(2)
    ratios = rng.normal(size=1_000_000)
    y = (ratios + rng.normal(size=len(ratios)) > 0).astype(int)
    yield Workload(
        "best_threshold, n=1e6",
        lambda: best_threshold(ratios, y),
        "argsort",
        lambda: np.argsort(ratios),
        1.6,
    )
    X, _ = two_classes(20)
    covariance = np.cov(X.T)
    inverse = np.linalg.inv(covariance)
    mean = X.mean(axis=0, keepdims=True)
    factors = MahalanobisFactors.from_covariances(mean, covariance[None])
    yield Workload(
        "distances, d=20",
        lambda: factors.squared_distances(X),
        'cdist(..., "mahalanobis")',
        lambda: cdist(X, mean, "mahalanobis", VI=inverse),
        0.65,
    )
