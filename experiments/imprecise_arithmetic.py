"""Table 4 by the arithmetic that its figures seem to come from.

Carranza-Alarcon and Destercke (2019) leave open how a singular covariance is inverted
and how small densities are compared. Rules of textbook form, in the units of the table
and with class shares as priors:

- LDA and NDA with pseudo-inverse and pseudo-determinant; NDA's priors times densities
  by `exp`.
- QDA by singular values of the centred rows of a class, none of them cut off, as
  scikit-learn computed it at the time; and the same without the classes whose scores
  are no numbers.
- EDA with identity covariance; priors times densities by `exp`. Densities below 1e-308
  are 0, and where all of them are 0 the first class wins.
- INDA and IEDA from the same densities, at the nearest and the farthest mean in the box
  of half-width c / n. A class goes where another's least density is larger than its
  largest one; 0 is not larger than 0, so a row far from all classes keeps them all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from experiments.imprecise_data import complete_rows

N_FOLDS = 10
#: The paper's values of c.
GRID = np.arange(1, 501) / 100
#: Utility -> reward a in the utility a / size - (a - 1) / size^2 of a right set.
REWARDS = {"u80": 2.2, "u65": 1.6}
Rule = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def classes_of(X: np.ndarray, y: np.ndarray) -> list[tuple[int, float, np.ndarray]]:
    """Label, share and rows of each class."""
    labels, counts = np.unique(y, return_counts=True)
    return [
        (int(label), count / len(y), X[y == label])
        for label, count in zip(labels, counts, strict=True)
    ]


def log_constant(kind: str, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse variances of a class and its -2 log density at the mean.

    A variance of 0, to rounding, is left out of distance and determinant.
    """
    n, d = rows.shape
    constant = d * np.log(2 * np.pi)
    if kind == "identity":
        return np.ones(d), constant
    variances = rows.var(axis=0, ddof=1) if n > 1 else np.zeros(d)
    varies = variances > 1e-15 * variances.max()
    inverse = np.zeros(d)
    inverse[varies] = 1 / variances[varies]
    return inverse, constant + np.log(variances[varies]).sum()


def precise(kind: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """NDA or EDA: the first class wins where all densities are rounded to 0."""
    joint = []
    for _, share, rows in classes_of(X, y):
        inverse, constant = log_constant(kind, rows)
        distances = ((X_test - rows.mean(axis=0)) ** 2 * inverse).sum(axis=1)
        joint.append(share * np.exp(-(distances + constant) / 2))
    return np.unique(y)[np.argmax(joint, axis=0)]


def naive(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """NDA."""
    return precise("diag", X, y, X_test)


def euclidean(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """EDA."""
    return precise("identity", X, y, X_test)


def linear(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """LDA by the pseudo-inverse of the pooled covariance."""
    groups = classes_of(X, y)
    residuals = np.vstack([rows - rows.mean(axis=0) for *_, rows in groups])
    inverse = np.linalg.pinv(residuals.T @ residuals / (len(X) - len(groups)))
    scores = []
    for _, share, rows in groups:
        offset = X_test - rows.mean(axis=0)
        scores.append(np.log(share) - ((offset @ inverse) * offset).sum(axis=1) / 2)
    return np.unique(y)[np.argmax(scores, axis=0)]


def quadratic(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, *, finite: bool = False
) -> np.ndarray:
    """QDA: log densities along the singular directions of a class, also null ones.

    `finite` leaves a class out where its score is no number; else such a class wins.
    """
    scores = []
    for _, share, rows in classes_of(X, y):
        centre = rows.mean(axis=0)
        _, values, directions = np.linalg.svd(rows - centre, full_matrices=False)
        variances = values**2 / max(len(rows) - 1, 1)
        along = (X_test - centre) @ (directions.T * variances**-0.5)
        distances = (along**2).sum(axis=1)
        scores.append(np.log(share) - (distances + np.log(variances).sum()) / 2)
    found = np.array(scores)
    if finite:
        found[~np.isfinite(found)] = -np.inf
    return np.unique(y)[found.argmax(axis=0)]


def quadratic_finite(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """QDA without the classes whose scores are no numbers."""
    return quadratic(X, y, X_test, finite=True)


#: Rule of each model of Table 4, and the second reading of the quadratic one.
RULES: dict[str, Rule] = {
    "tied": linear,
    "full": quadratic,
    "diag": naive,
    "identity": euclidean,
    "finite": quadratic_finite,
}


def accuracy(name: str, kind: str, repeat: int) -> float:
    """Percent of rows that are right, over ten plain shuffled folds."""
    X, y = complete_rows(name)
    right = np.zeros(len(y), dtype=bool)
    folds = KFold(N_FOLDS, shuffle=True, random_state=repeat)
    with np.errstate(all="ignore"):  # logarithms and quotients of 0 are the subject
        for train, test in folds.split(X):
            right[test] = RULES[kind](X[train], y[train], X[test]) == y[test]
    return float(100 * right.mean())


def cautious(
    kind: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Undominated classes of INDA or IEDA, (values of c, rows, max(y) + 1)."""
    groups = classes_of(X, y)
    least = np.empty((len(grid), len(X_test), len(groups)))
    largest = np.empty_like(least)
    for k, (_, share, rows) in enumerate(groups):
        inverse, constant = log_constant(kind, rows)
        distances = np.abs(X_test - rows.mean(axis=0))
        for g, radius in enumerate(grid / len(rows)):
            far = ((distances + radius) ** 2 * inverse).sum(axis=1)
            near = (np.maximum(distances - radius, 0) ** 2 * inverse).sum(axis=1)
            least[g, :, k] = share * np.exp(-(far + constant) / 2)
            largest[g, :, k] = share * np.exp(-(near + constant) / 2)
    # Some class dominates k if the largest of the least densities does.
    beaten = least.max(axis=2, keepdims=True) > largest
    sets = np.zeros((len(grid), len(X_test), int(y.max()) + 1), dtype=bool)
    sets[..., [label for label, *_ in groups]] = ~beaten
    return sets


def utility(sets: np.ndarray, truth: np.ndarray, reward: float) -> np.ndarray:
    """Equation (41) as corrected: of each row, 1.6 gives u65 and 2.2 gives u80."""
    size = np.maximum(sets.sum(axis=-1), 1)
    held = np.take_along_axis(sets, np.broadcast_to(truth, size.shape)[..., None], -1)
    return held[..., 0] * (reward / size - (reward - 1) / size**2)


def utilities(name: str, kind: str, repeat: int) -> dict[str, float]:
    """u80 and u65 in percent; c by five inner folds for each."""
    X, y = complete_rows(name)
    n_classes = int(y.max()) + 1
    scores: dict[str, list[np.ndarray]] = {score: [] for score in REWARDS}
    inner = StratifiedKFold(5, shuffle=True, random_state=2)
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=repeat).split(X):
        totals = {score: np.zeros(len(GRID)) for score in REWARDS}
        for a, b in inner.split(X[train], y[train]):
            learn, judge = train[a], train[b]
            sets = cautious(kind, X[learn], y[learn], X[judge], GRID)
            sets = padded(sets, n_classes)
            for score, reward in REWARDS.items():
                totals[score] += utility(sets, y[judge], reward).sum(axis=1)
        for score, reward in REWARDS.items():
            c = GRID[[totals[score].argmax()]]
            sets = padded(cautious(kind, X[train], y[train], X[test], c), n_classes)
            scores[score].append(utility(sets[0], y[test], reward))
    return {s: float(100 * np.concatenate(u).mean()) for s, u in scores.items()}


def padded(sets: np.ndarray, n_classes: int) -> np.ndarray:
    """Sets with a column for each class, also where the last ones were not learned."""
    missing = n_classes - sets.shape[-1]
    return np.pad(sets, [(0, 0), (0, 0), (0, missing)])


def textbook(name: str, kind: str, repeat: int) -> dict[str, float]:
    """Accuracy, and for the naive and the Euclidean model both utilities."""
    found = {"accuracy": accuracy(name, kind, repeat)}
    if kind in ("diag", "identity"):
        found |= utilities(name, kind, repeat)
    return found
