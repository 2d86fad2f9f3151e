"""The sets of Pérez, Echegoyen and Santafé (Table I) and their printed figures."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.preprocessing import KBinsDiscretizer

from experiments.benchmark_data import load

#: Tables II to IX, copied from the paper.
PRINTED = Path(__file__).parent / "calibration_printed.csv"
#: Table I as printed: index -> rows, columns.
SIZES = {
    1: (48842, 14), 2: (748, 4), 3: (23262, 512), 4: (60000, 512), 5: (360, 18),
    6: (768, 8), 7: (327, 5), 8: (70004, 512), 9: (1000, 24), 10: (204, 8),
    11: (305, 3), 12: (270, 13), 13: (579, 10), 14: (351, 32), 15: (150, 4),
    16: (20000, 16), 17: (345, 5), 18: (19020, 10), 19: (829, 5), 20: (70000, 512),
    21: (5620, 47), 22: (17898, 8), 23: (1055, 39), 24: (1599, 10), 25: (6435, 36),
    26: (207, 60), 27: (1000, 60), 28: (1243, 21), 29: (846, 18), 30: (37921, 512),
}  # fmt: skip
#: Index in the paper -> file.
FILES = {
    1: "adult",
    2: "blood_transfusion",
    5: "climate_model",
    6: "pima_diabetes",
    7: "ecoli",
    9: "german_numer",
    10: "glass",
    11: "haberman",
    12: "heart",
    13: "ilpd",
    14: "ionosphere",
    15: "iris",
    16: "letter_recognition",
    17: "liver_disorder",
    18: "magic",
    19: "mammographic_mass",
    21: "optdigits",
    22: "pulsar",
    23: "qsar_biodegradation",
    24: "wine_quality_red",
    25: "satellite",
    26: "sonar",
    27: "splice",
    28: "svmguide3",
    29: "vehicle",
}
ABSENT = {
    3: "catsvsdogs",
    4: "cifar10",
    8: "fashion mnist",
    20: "mnist",
    30: "yearbook",
}
WHY_ABSENT = "ResNet18 features of images; we know of no public copy."


@dataclass(frozen=True)
class Printed:
    """One row of a table of the paper; `rival` is GD, in Table IX DFE."""

    initial: float
    calibrated: float
    iteration: int
    rival: float
    rival_iteration: int
    reach: int | None


def printed(table: str) -> dict[int, Printed]:
    """Rows of one of Tables II to IX by index, without the averages."""
    with PRINTED.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    return {
        int(row["index"]): Printed(
            float(row["initial"]),
            float(row["calibrated"]),
            int(row["iteration"]),
            float(row["rival"]),
            int(row["rival_iteration"]),
            int(row["reach"]) if row["reach"] else None,
        )
        for row in rows
        if row["index"] != "average"
    }


def table_one(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """A set with the rows, classes and columns behind Table I."""
    if name == "iris":
        return load_iris(return_X_y=True)
    X, y = load(name)
    keep = ~np.isnan(X).any(axis=1)
    if name == "ilpd":
        keep &= X[:, 9] > 0  # four missing ag_ratio were coded 0
    elif name == "climate_model":
        keep[360:] = False
    elif name == "sonar":
        keep[184] = False
    elif name in ("haberman", "glass", "mammographic_mass"):
        keep[0] = False  # taken for a header by the paper's copies
    X, y = X[keep], y[keep]
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    common = counts[codes] >= 10
    X, y = X[common], codes[common]
    variances = np.array([X[y == k].var(axis=0) for k in np.unique(y)])
    X = X[:, (variances > 1e-5).all(axis=0)]
    return X, np.unique(y, return_inverse=True)[1]


def in_bins(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column in five k-means bins, as the paper does for naive Bayes."""
    binner = KBinsDiscretizer(5, strategy="kmeans", encode="ordinal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns of fewer than five values
        return binner.fit_transform(X)


def in_bins_from(seed: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same bins, but that k-means starts at random values, not at equal steps."""
    bins = np.empty_like(X)
    for j, column in enumerate(X.T):
        n_bins = min(5, len(np.unique(column)))
        k_means = KMeans(n_bins, n_init=1, random_state=seed).fit(column[:, None])
        centres = np.sort(k_means.cluster_centers_[:, 0])
        bins[:, j] = np.searchsorted((centres[1:] + centres[:-1]) / 2, column, "right")
    return bins
