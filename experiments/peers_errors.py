"""Error of the four classifiers next to scikit-learn's, on the same folds.

python -m experiments.peers_errors [--quick]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.peer_data import names, rows, timed
from experiments.table import Table, main
from prudent import (
    ImpreciseDiscriminantAnalysis,
    MinimaxProbabilityClassifier,
    OptimisticScoreClassifier,
    RiskCalibratedClassifier,
)


def logistic() -> Any:
    """Logistic regression of standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


MODELS = {
    "LDA": LinearDiscriminantAnalysis(),
    "QDA, shrunk": make_pipeline(
        StandardScaler(),
        QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    ),
    "logistic": logistic(),
    "minimax": MinimaxProbabilityClassifier(),
    "imprecise": ImpreciseDiscriminantAnalysis(),
    "calibrated": RiskCalibratedClassifier(random_state=0),
    "optimistic": OptimisticScoreClassifier(random_state=0),
}


#: The folds of this table and of the next two.
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def measure(name: str, model: Any) -> tuple[float, float]:
    """Mean error, and median CPU seconds of a fit and its predictions."""
    X, y = rows(name)
    errors, seconds = [], []
    for train, test in FOLDS.split(X, y):
        answer, spent = timed(_answer(clone(model), X[train], y[train], X[test]))
        errors.append(np.mean(answer != y[test]))
        seconds.append(spent)
    return float(np.mean(errors)), float(np.median(seconds))


def _answer(model: Any, X: Any, y: Any, X_test: Any) -> Callable[[], Any]:
    return lambda: model.fit(X, y).predict(X_test)


def run(quick: bool) -> Table:
    """One row a set, one column a method."""
    found = {
        name: [measure(name, model) for model in MODELS.values()]
        for name in names(quick)
    }
    figures = np.array(list(found.values()))
    table = [
        (name, *(f"{error:.3f}" for error, _ in cells)) for name, cells in found.items()
    ]
    table.append(("mean", *(f"{error:.3f}" for error in figures[..., 0].mean(axis=0))))
    milliseconds = 1000 * figures[..., 1].mean(axis=0)
    table.append(("milliseconds of CPU", *(f"{t:.0f}" for t in milliseconds)))
    return Table(
        "Error out of fold",
        ("set", *MODELS),
        table,
        (
            "Five folds. LDA, QDA and logistic are scikit-learn's. Time: fit and "
            "predict, median over folds, mean over sets.",
        ),
    )


if __name__ == "__main__":
    main(run)
