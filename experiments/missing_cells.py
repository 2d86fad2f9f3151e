"""Test error with a quarter of the cells gone: left out, against filled with the mean.

Five folds, ten draws of the cells, at most 1500 rows of a set. The calibration with its
defaults leaves missing cells out; filled, it learns from columns without gaps. The
error behind "±" is that of the mean difference (left out less filled) over the draws.

python -m experiments.missing_cells [--quick]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from experiments.benchmark_data import load
from experiments.calibration_generalisation import MOST_ROWS, mean_error
from experiments.table import Table, main
from prudent import RiskCalibratedClassifier

SETS = (
    *("segment", "vowel", "vehicle", "optdigits", "wine", "satellite"),
    *("ionosphere", "sonar"),
)
FAMILIES = ("diag", "tied_diag")
SHARE, N_DRAWS = 0.25, 10


def data_set(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """At most 1500 rows of a set, drawn with a fixed seed."""
    X, y = load_wine(return_X_y=True) if name == "wine" else load(name)
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def errors(name: str, family: str, n_draws: int) -> NDArray[np.float64]:
    """Test error of each draw of the cells, left out and filled: (n_draws, 2)."""
    X, y = data_set(name)
    found = []
    for draw in range(n_draws):
        gone = np.random.default_rng(draw).random(X.shape) < SHARE
        gappy = np.where(gone, np.nan, X)
        model = RiskCalibratedClassifier(family=family, random_state=0)
        filled = make_pipeline(SimpleImputer(), model)
        found.append([mean_error(m, gappy, y) for m in (model, filled)])
    return np.array(found)


def run(quick: bool) -> Table:
    """Both errors and their difference, a row for each set."""
    rows = []
    for name in ("wine",) if quick else SETS:
        cells: list[object] = [name]
        for family in FAMILIES:
            found = errors(name, family, 2 if quick else N_DRAWS)
            left_out, filled = found.mean(axis=0)
            change = found[:, 0] - found[:, 1]
            error = change.std(ddof=1) / np.sqrt(len(change))
            cells.append(
                f"{left_out:.3f}, {filled:.3f} ({change.mean():+.3f} ± {error:.3f})"
            )
        rows.append(cells)
    return Table(
        "Test error with a quarter of the cells gone: left out, filled",
        ("set", *FAMILIES),
        rows,
    )


if __name__ == "__main__":
    main(run)
