"""Minimax family: the solver against generic ones, fits against scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import SVC, LinearSVC

from benchmarks.timing import Workload
from prudent import ClassMoments, MinimaxProbabilityClassifier
from prudent.minimax import solve

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def problem(n: int, condition: float = 1e3, ratio: float = 1.0) -> tuple[Any, Any, Any]:
    """Random mean gap and covariances of the given condition and scale ratio."""
    rng = np.random.default_rng(n)

    def covariance() -> Any:
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        S = (q * np.exp(rng.uniform(0, np.log(condition), n))) @ q.T
        return (S + S.T) / 2

    Sx, Sy = covariance(), ratio * covariance()
    return rng.normal(size=n) * np.sqrt(np.diag(Sx).mean()), Sx, Sy


def with_cvxpy(d: Any, Sx: Any, Sy: Any, **options: float) -> float:
    """Solve min |Lx'a| + |Ly'a| subject to a'd = 1 as a user of cvxpy would."""
    a = cp.Variable(len(d))
    spread = [cp.norm(np.linalg.cholesky(S).T @ a) for S in (Sx, Sy)]
    task = cp.Problem(cp.Minimize(spread[0] + spread[1]), [a @ d == 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 1 / task.solve(solver=cp.CLARABEL, **options)


def with_clarabel(d: Any, Sx: Any, Sy: Any) -> float:
    """Solve the same cone program through Clarabel's own interface."""
    n = len(d)
    rows = [np.r_[d, 0, 0][None]]
    for j, S in enumerate((Sx, Sy)):
        bound = np.zeros((1, n + 2))
        bound[0, n + j] = -1
        rows += [bound, np.c_[-np.linalg.cholesky(S).T, np.zeros((n, 2))]]
    A = sparse.csc_matrix(np.vstack(rows))
    b = np.r_[1.0, np.zeros(2 * n + 2)]
    cones = [
        clarabel.ZeroConeT(1),
        clarabel.SecondOrderConeT(n + 1),
        clarabel.SecondOrderConeT(n + 1),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    P = sparse.csc_matrix((n + 2, n + 2))
    q = np.r_[np.zeros(n), 1.0, 1.0]
    return 1 / clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().obj_val


def solver_workloads() -> Iterator[Workload]:
    for n, goals in ((10, (1 / 80, 1 / 80, 0.15)), (200, (1 / 70, 1 / 110, 1 / 70))):
        task = problem(n)

        def ours(task: Any = task) -> Any:
            return solve(*task)

        for name, peer, goal in (
            ("cvxpy + Clarabel", lambda task=task: with_cvxpy(*task), goals[0]),
            (
                "cvxpy + Clarabel at 1e-12",
                lambda task=task: with_cvxpy(*task, **TIGHT),
                goals[1],
            ),
            ("Clarabel at 1e-9", lambda task=task: with_clarabel(*task), goals[2]),
        ):
            yield Workload(f"solve, n={n}", ours, name, peer, goal, 3)
    for name, task, goal in (
        ("n=200", problem(200), 0.33),
        ("n=500", problem(500), 0.27),
        ("n=1000", problem(1000), 0.25),
        ("n=1000, cond 1e6, scales 1e4", problem(1000, 1e6, 1e4), 0.5),
    ):
        yield Workload(
            f"solve, {name}",
            lambda task=task: solve(*task),
            "one eigh(n)",
            lambda S=task[1]: eigh(S, driver="evd"),
            goal,
        )


def two_classes(n_rows: int, n_features: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    X = rng.normal(size=(n_rows, n_features)) @ mixing + 0.3 * y[:, None]
    return X, y


def fit(model: Any, X: Any, y: Any) -> Callable[[], Any]:
    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y)

    return run


def fit_workloads() -> Iterator[Workload]:
    for n_rows, n_features, lsqr, svd, linear in (
        (20_000, 20, 0.40, 0.17, 0.15),
        (5_000, 100, 0.40, 0.13, 0.15),
        (100_000, 50, 0.45, 0.15, None),
    ):
        X, y = two_classes(n_rows, n_features)
        ours = fit(MinimaxProbabilityClassifier(), X, y)
        peers = [
            ("LDA lsqr", LinearDiscriminantAnalysis(solver="lsqr"), lsqr),
            ("LDA svd", LinearDiscriminantAnalysis(), svd),
        ]
        if linear is not None:
            peers.append(("LinearSVC", LinearSVC(), linear))
        for name, model, goal in peers:
            yield Workload(
                f"fit, {n_rows} x {n_features}", ours, name, fit(model, X, y), goal, 3
            )
        yield Workload(
            f"moments of both classes, {n_rows} x {n_features}",
            lambda X=X, y=y: ClassMoments.from_arrays(X, y),
            "one X.T @ X",
            lambda X=X: X.T @ X,
            3.0,
        )


def kernel_workloads() -> Iterator[Workload]:
    for n_rows in (200, 1000, 2000):
        X, y = two_classes(n_rows, 10)
        squared = ((X[:, None] - X) ** 2).sum(-1) if n_rows <= 200 else None
        if squared is None:
            norms = (X**2).sum(1)
            squared = np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0)
        K = np.exp(-0.1 * squared)
        model = MinimaxProbabilityClassifier(kernel="precomputed")
        yield Workload(
            f"kernel fit after the Gram matrix, N={n_rows}",
            fit(model, K, y),
            "one eigh(N)",
            lambda K=K: eigh(K, driver="evd"),
            0.75,
            2,
        )
    X, y = two_classes(8000, 10)
    yield Workload(
        "300 landmarks, N=8000, n=10",
        fit(
            MinimaxProbabilityClassifier(
                kernel="rbf", n_components=300, random_state=0
            ),
            X,
            y,
        ),
        "SVC(rbf)",
        fit(SVC(), X, y),
        0.15,
        2,
    )


def workloads() -> Iterator[Workload]:
    yield from solver_workloads()
    yield from fit_workloads()
    yield from kernel_workloads()
