"""Test error of the defaults against the closed-form start, 5-fold.

python -m experiments.calibration_generalisation [--quick]
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.calibration_data import FILES, table_one
from experiments.table import Table, main
from prudent import RiskCalibratedClassifier

FAMILIES = ("full", "diag", "tied_diag")
MORE = ("banknote_authentication", "seeds", "vowel", "segment", "forest_types")
BUNDLED = {"wine": load_wine, "breast_cancer": load_breast_cancer}
MOST_ROWS = 1500
QUICK = ("iris", "wine", "heart")


def data_set(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """At most 1500 rows of a set, drawn with a fixed seed."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else table_one(name)
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[rows], y[rows]
    return X, y


def models(family: str) -> tuple[RiskCalibratedClassifier, RiskCalibratedClassifier]:
    """Closed-form start and the calibrated default."""
    return (
        RiskCalibratedClassifier(family=family, max_iter=1, stopping="none"),
        RiskCalibratedClassifier(family=family, random_state=0),
    )


def mean_error(
    model: ClassifierMixin, X: NDArray[np.float64], y: NDArray[np.intp]
) -> float:
    """Mean error over five stratified folds."""
    wrong = 0
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns and small classes of a fold
        for fit, test in folds.split(X, y):
            wrong += np.count_nonzero(
                model.fit(X[fit], y[fit]).predict(X[test]) != y[test]
            )
    return wrong / len(y)


def run(quick: bool) -> Table:
    """Start -> calibrated for each family, next to two usual classifiers."""
    names = QUICK if quick else [*dict.fromkeys([*FILES.values(), *BUNDLED, *MORE])]
    rows: list[list[object]] = []
    changes = []
    for name in names:
        X, y = data_set(name)
        cells: list[object] = [name]
        for family in FAMILIES:
            start, calibrated = (mean_error(model, X, y) for model in models(family))
            changes.append(calibrated - start)
            cells.append(f"{start:.3f} -> {calibrated:.3f}")
        logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        quadratic = make_pipeline(
            StandardScaler(),
            QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
        )
        cells += [mean_error(logistic, X, y), mean_error(quadratic, X, y)]
        rows.append(cells)
    change = np.array(changes)
    notes = [
        f"mean change {change.mean():+.4f} over {len(change)} pairs of set and family",
        f"worst change {change.max():+.4f}",
        f"worse by more than .005 in {np.sum(change > 0.005)}, "
        f"better by more than .005 in {np.sum(change < -0.005)}",
    ]
    return Table(
        "Beyond the paper: test error of the start -> calibrated with the defaults",
        ("set", *FAMILIES, "LogisticRegression", "QDA"),
        rows,
        notes,
    )


if __name__ == "__main__":
    main(run)
