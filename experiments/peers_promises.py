"""Errors that were promised, held against the rows left out.

Of the peers MRCpy bounds an error; scikit-learn, MAPIE, crepes and PyOD do not.

python -m experiments.peers_promises [--quick]
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.peer_data import names, rows, timed
from experiments.peers_errors import FOLDS
from experiments.table import Table, main
from prudent import MinimaxProbabilityClassifier, RiskCalibratedClassifier

MODELS = {
    "minimax": MinimaxProbabilityClassifier(),
    "minimax with radii": MinimaxProbabilityClassifier(uncertainty="gaussian"),
    "calibrated, holdout": RiskCalibratedClassifier(stopping="holdout", random_state=0),
}


def measure(name: str, model: Any) -> tuple[float, float, int, int]:
    """Mean promise, mean measured rate, promises kept and promises made."""
    X, y = rows(name)
    promised, measured = [], []
    for train, test in FOLDS.split(X, y):
        fitted, _ = timed(partial(clone(model).fit, X[train], y[train]))
        wrong = fitted.predict(X[test]) != y[test]
        for promise in fitted.guarantees_:
            scope = slice(None) if promise.scope is None else y[test] == promise.scope
            promised.append(promise.bound)
            measured.append(np.mean(wrong[scope]))
    kept = int(np.sum(np.array(measured) <= np.array(promised)))
    return float(np.mean(promised)), float(np.mean(measured)), kept, len(promised)


#: On the other sets, of more classes, a fit of MRC takes minutes.
MRC_SETS = ("iris", "wine", "breast_cancer", "sonar", "heart", "pima_diabetes")


def minimax_risk_classifier() -> Any:
    """MRCpy's with Fourier features of standardised columns; None without MRCpy.

    To be made anew for each fit: `clone` does not get all of its parameters.
    """
    try:
        from MRCpy import MRC
        from MRCpy.phi.base_phi import BasePhi
    except ImportError:
        return None
    # MRCpy 3.0.0 lacks the tags that scikit-learn has asked for since 1.7.
    BasePhi.__sklearn_tags__ = BaseEstimator.__sklearn_tags__
    return make_pipeline(StandardScaler(), MRC(phi="fourier", random_state=0))


def measure_mrc(name: str) -> tuple[str, int, int]:
    """Cell of a set, bounds kept and bounds given."""
    if name not in MRC_SETS or minimax_risk_classifier() is None:
        return "\N{EN DASH}", 0, 0
    X, y = rows(name)
    bounds, measured = [], []
    for train, test in FOLDS.split(X, y):
        model = minimax_risk_classifier()
        fitted, _ = timed(partial(model.fit, X[train], y[train]))
        bounds.append(fitted[-1].get_upper_bound())
        measured.append(np.mean(fitted.predict(X[test]) != y[test]))
    kept = int(np.sum(np.array(measured) <= np.array(bounds)))
    cell = f"{np.mean(bounds):.3f} / {np.mean(measured):.3f}, {kept} of {len(bounds)}"
    return cell, kept, len(bounds)


def run(quick: bool) -> Table:
    """One row a set; promise / measured, kept of made."""
    table, total = [], np.zeros((len(MODELS) + 1, 2), dtype=int)
    for name in names(quick):
        cells = []
        for position, model in enumerate(MODELS.values()):
            promised, measured, kept, made = measure(name, model)
            cells.append(f"{promised:.3f} / {measured:.3f}, {kept} of {made}")
            total[position] += kept, made
        cell, *counts = measure_mrc(name)
        total[-1] += counts
        table.append((name, *cells, cell))
    shares = [f"{kept / made:.1%} of {made}" if made else "" for kept, made in total]
    table.append(("all", *shares))
    return Table(
        "Promised errors: mean promise / mean measured, promises kept",
        ("set", *MODELS, "MRC"),
        table,
        (
            "The minimax rule promises an error for each class of each fold, the "
            "calibrated one an error of all rows with confidence 95 %. A promise "
            "counts as kept when the share of wrong rows in the fold left out is not "
            "above it; a fold is small, so some lie above by chance. A promise of 1 is "
            "empty.",
            "MRC (MRCpy, Fourier features) bounds the mean error over laws whose "
            "feature expectations lie in intervals about those of the rows; it was "
            "measured on sets of at most three classes.",
            "scikit-learn, MAPIE, crepes and PyOD promise no error rate.",
        ),
    )


if __name__ == "__main__":
    main(run)
