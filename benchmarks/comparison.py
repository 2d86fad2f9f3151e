"""Comparison: fold moments by merging, and what `compare` adds to cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

from benchmarks.timing import Workload
from prudent import ClassMoments, compare, predict_set
from prudent.evaluation.evaluate import SHIFT_ROWS, SHIFTS, make_folds, training_moments
from prudent.evaluation.methods import BASELINES, METHODS

FAST = ("optimistic", "minimax", "imprecise")


def workloads() -> Iterator[Workload]:
    for n_rows, n_features, n_folds, goal in (
        (100_000, 20, 5, 1 / 2),
        (100_000, 20, 10, 1 / 4),
        (100_000, 100, 5, 1 / 3),
    ):
        yield fold_moments(n_rows, n_features, n_folds, goal)
    X, y = load_iris(return_X_y=True)
    everything = (*METHODS, *BASELINES)
    yield cross_validation("iris, all methods", X, y, everything, goal=1.5, repeats=3)
    X, y = table(100_000, 20)
    yield cross_validation(
        "100 000 x 20", X, y, (*FAST, *BASELINES), goal=1.1, repeats=2
    )


def table(n_rows: int, n_features: int) -> tuple[Any, Any]:
    """Three overlapping classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_rows)
    X = rng.normal(size=(n_rows, n_features))
    X[:, :3] += 2.0 * np.eye(3)[y]
    return X, y


def fold_moments(n_rows: int, n_features: int, n_folds: int, goal: float) -> Workload:
    """Moments of all training parts: one pass and merges, against a pass each."""
    X, y = table(n_rows, n_features)
    folds = make_folds(y, n_folds, 1, random_state=0)

    def ours() -> Any:
        return training_moments(X, y, np.arange(3), folds)

    def peer() -> Any:
        return [ClassMoments.from_arrays(X[f.train], y[f.train]) for f in folds]

    name = f"fold moments, {n_folds} folds, {n_features} features"
    return Workload(name, ours, "one fit per fold", peer, goal)


def cross_validation(
    name: str, X: Any, y: Any, names: Sequence[str], goal: float, repeats: int
) -> Workload:
    """`compare` against the same fits and predictions in a plain loop.

    The rows predicted once more stand for those of the shift curve.
    """
    methods = {**METHODS, **BASELINES}

    def ours() -> Any:
        return compare(
            X,
            y,
            methods=[name for name in names if name in METHODS],
            baselines=[name for name in names if name in BASELINES],
            promise="none",
        )

    def peer() -> None:
        for fold in make_folds(y, 5, 1, random_state=0):
            moved = np.tile(X[fold.test[: SHIFT_ROWS // 5]], (len(SHIFTS), 1))
            for method in names:
                model = methods[method].build(0).fit(X[fold.train], y[fold.train])
                model.predict(X[fold.test])
                if hasattr(model, "predict_set"):
                    predict_set(model, X[fold.test])
                model.predict(moved)

    return Workload(
        f"compare, {name}", ours, "the loop by hand", peer, goal, repeats=repeats
    )
