"""Errors that were promised, held against the rows left out.

None of the peers promises an error: scikit-learn, MAPIE, crepes and PyOD do not.
MRCpy would, but it does not run beside current scikit-learn.

python -m experiments.peers_promises [--quick]
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

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


def run(quick: bool) -> Table:
    """One row a set; promise / measured, kept of made."""
    table, total = [], np.zeros((len(MODELS), 2), dtype=int)
    for name in names(quick):
        cells = []
        for position, model in enumerate(MODELS.values()):
            promised, measured, kept, made = measure(name, model)
            cells.append(f"{promised:.3f} / {measured:.3f}, {kept} of {made}")
            total[position] += kept, made
        table.append((name, *cells))
    table.append(("all", *(f"{kept / made:.1%} of {made}" for kept, made in total)))
    return Table(
        "Promised errors: mean promise / mean measured, promises kept",
        ("set", *MODELS),
        table,
        (
            "The minimax rule promises an error for each class of each fold, the "
            "calibrated one an error of all rows with confidence 95 %. A promise "
            "counts as kept when the share of wrong rows in the fold left out is not "
            "above it; a fold is small, so some lie above by chance. A promise of 1 is "
            "empty.",
            "scikit-learn, MAPIE, crepes and PyOD promise no error rate.",
        ),
    )


if __name__ == "__main__":
    main(run)
