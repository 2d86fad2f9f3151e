"""Brier scores and log loss of probabilities with limits, beside calibrators without.

Gradient boosting on six tables, their classes halved (the first half of the labels
against the rest), of n rows; other rows, at most 4000, are scored. Calibrators
take all n rows by cross-fitting (isotonic, Platt) or 30 % of them (Venn-Abers, and the
limits of `BinnedCalibrationClassifier` with either number quoted). `width` is the mean
width of its limits.

python -m experiments.quoted_probabilities [--rows 200,500,2000] [--draws 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import brier_score_loss, log_loss

from experiments.benchmark_data import load
from prudent import BinnedCalibrationClassifier

SETS = ("adult", "magic", "pulsar", "satellite", "wall_following", "letter_recognition")
#: Share of the rows that limits and Venn-Abers hold out.
HELD_OUT = 0.3
MOST_SCORED = 4000
#: What an earlier run gave, by rows and column; Brier scores, and the width of limits.
PRINTED = {
    200: {"isotonic": 0.093, "estimator": 0.108, "frequency": 0.122, "width": 0.47},
    500: {"isotonic": 0.072, "estimator": 0.083, "frequency": 0.085, "width": 0.27},
    2000: {"isotonic": 0.054, "estimator": 0.064, "frequency": 0.070, "width": 0.16},
}
Array = NDArray[np.float64]


def halved(name: str) -> tuple[Array, NDArray[np.intp]]:
    """A table with two classes: the first half of the labels, and the rest."""
    X, y = load(name)
    labels = np.unique(y)
    first = labels[: len(labels) // 2]
    return np.asarray(X, dtype=np.float64), (~np.isin(y, first)).astype(np.intp)


def venn_abers(own: Array, labels: NDArray[np.intp], scores: Array) -> Array:
    """One number of the two isotonic fits with each label of the new row."""
    merged = []
    order = np.argsort(own, kind="stable")
    own, labels = own[order], labels[order]
    distinct, inverse = np.unique(scores, return_inverse=True)
    for score in distinct:
        place = np.searchsorted(own, score)
        both = []
        for label in (0.0, 1.0):
            numbers = np.insert(own, place, score)
            fitted = np.insert(labels.astype(float), place, label)
            # Equal numbers have one value.
            values, at, rows = np.unique(
                numbers, return_inverse=True, return_counts=True
            )
            means = np.bincount(at, fitted) / rows
            curve = isotonic_regression(means, sample_weight=rows)
            both.append(curve[np.searchsorted(values, score)])
        merged.append(both[1] / (1 - both[0] + both[1]))
    return np.array(merged)[inverse]


def ways(seed: int) -> dict[str, Callable[[Array, Any, Array], tuple[Array, float]]]:
    """What each column of the table does with rows, labels and rows to be scored."""
    boosting = HistGradientBoostingClassifier(random_state=0)

    def calibrated(method: str) -> Any:
        def run(X: Array, y: Any, new: Array) -> tuple[Array, float]:
            model = CalibratedClassifierCV(clone(boosting), method=method, cv=5)
            return model.fit(X, y).predict_proba(new)[:, 1], np.nan

        return run

    def abers(X: Array, y: Any, new: Array) -> tuple[Array, float]:
        own = np.random.RandomState(seed).permutation(len(y))
        n = round(HELD_OUT * len(y))
        model = clone(boosting).fit(X[own[n:]], y[own[n:]])
        known = model.predict_proba(X[own[:n]])[:, 1]
        return venn_abers(known, y[own[:n]], model.predict_proba(new)[:, 1]), np.nan

    def quoted(quote: Any) -> Any:
        def run(X: Array, y: Any, new: Array) -> tuple[Array, float]:
            model = BinnedCalibrationClassifier(
                clone(boosting),
                quote=quote,
                calibration_size=HELD_OUT,
                random_state=seed,
            ).fit(X, y)
            lower, upper = model.predict_proba_interval(new)
            width = float((upper - lower)[:, 1].mean())
            return model.predict_proba(new)[:, 1], width

        return run

    return {
        "isotonic": calibrated("isotonic"),
        "Platt": calibrated("sigmoid"),
        "Venn-Abers": abers,
        "estimator": quoted("estimator"),
        "frequency": quoted("frequency"),
    }


def table(
    rows: Sequence[int], draws: int = 1, sets: Sequence[str] = SETS
) -> dict[int, dict[str, float]]:
    """Mean Brier scores, log losses ("... log") and the width of limits, by rows."""
    found: dict[int, dict[str, list[float]]] = {n: {} for n in rows}
    for name in sets:
        X, y = halved(name)
        for n in rows:
            for draw in range(draws):
                order = np.random.RandomState(draw).permutation(len(y))
                train, new = order[:n], order[n : n + MOST_SCORED]
                for way, run in ways(draw).items():
                    numbers, width = run(X[train], y[train], X[new])
                    score = brier_score_loss(y[new], numbers)
                    found[n].setdefault(way, []).append(score)
                    loss = log_loss(y[new], np.clip(numbers, 1e-6, 1 - 1e-6))
                    found[n].setdefault(f"{way} log", []).append(loss)
                    if way == "estimator":
                        found[n].setdefault("width", []).append(width)
    return {
        n: {name: float(np.mean(values)) for name, values in columns.items()}
        for n, columns in found.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, each figure beside the one of an earlier run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="200,500,2000")
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args(arguments)
    rows = [int(n) for n in given.rows.split(",")]
    for n, columns in table(rows, given.draws).items():
        known = PRINTED.get(n, {})
        print(
            n,
            *(f"{k} {v:.3f} ({known.get(k, np.nan):.3f})" for k, v in columns.items()),
        )


if __name__ == "__main__":
    main()
