"""The sets of Carranza-Alarcon and Destercke (2019), and their printed figures."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from experiments.benchmark_data import load

#: Table 3: name -> instances, features, labels.
SIZES = {
    "iris": (150, 4, 3), "wine": (178, 13, 3), "forest": (198, 27, 4),
    "seeds": (210, 7, 3), "glass": (214, 9, 6), "ecoli": (336, 7, 8),
    "libras": (360, 91, 15), "dermatology": (385, 34, 6), "vehicle": (846, 18, 4),
    "vowel": (990, 10, 11), "yeast": (1484, 8, 12), "wine quality": (1599, 11, 6),
    "optdigits": (1797, 64, 10), "segment": (2300, 19, 7),
    "wall_following": (5456, 24, 4),
}  # fmt: skip
MODELS = {"tied": "ILDA", "full": "IQDA", "diag": "INDA", "identity": "IEDA"}
BUNDLED = {"iris": load_iris, "wine": load_wine, "optdigits": load_digits}
STORED = {"forest": "forest_types", "wine quality": "wine_quality_red"}
#: Sets with singular class covariances, and with columns constant inside a class.
SINGULAR = {
    *("forest", "dermatology", "glass", "ecoli", "yeast", "segment", "optdigits"),
    *("libras", "wine quality"),
}
CONSTANT_INSIDE = {"dermatology", "glass", "yeast"}


@dataclass(frozen=True)
class Printed:
    """One row of a block of Table 4; None is blank in the paper.

    `accuracy` is that of the precise model (LDA, QDA, NDA, EDA), `regularised` RQDA's.
    """

    accuracy: float | None
    regularised: float | None
    u80: float | None
    u65: float | None
    seconds: float | None


def printed() -> dict[tuple[str, str], Printed]:
    """Table 4 by set and kind of covariance."""
    path = Path(__file__).parent / "imprecise_printed.csv"
    with path.open(newline="") as file:
        return {
            (row.pop("data"), row.pop("model")): Printed(
                **{key: float(value) if value else None for key, value in row.items()}
            )
            for row in csv.DictReader(file)
        }


def complete_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows without missing cells; labels as numbers."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        X, y = load(STORED.get(name, name))
    complete = np.isfinite(X).all(axis=1)
    return X[complete], np.unique(y[complete], return_inverse=True)[1]
