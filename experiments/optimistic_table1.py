"""Table 1 of Nguyen et al. (2020): correct classification rate on 11 data sets.

Ten published splits. CLT columns: the threshold of the published code (the training
ratio that is first in row order among the best) and ours (the middle of the best
interval nearest to 0). CV columns: the pair of radii with the best mean accuracy in
stratified 5-fold cross-validation inside each training part. A cell is one split.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.covariance import graphical_lasso
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.benchmark_data import load
from experiments.cells import Scale, Tasks
from experiments.table import Table, against, with_reasons
from prudent import OptimisticScoreClassifier
from prudent.core.linalg import MahalanobisFactors
from prudent.exceptions import PrudentWarning
from prudent.optimistic import best_threshold
from prudent.optimistic.formulas import GAUSSIAN_UPPER, NONPARAMETRIC_UPPER
from prudent.optimistic.scores import solve

# name -> GQDA CV, GQDA CLT, NPQDA CV, NPQDA CLT, KQDA, RQDA, SQDA as printed
PAPER = {
    "australian": (85.38, 84.91, 85.84, 85.03, 85.38, 85.61, 85.37),
    "banknote_authentication": (99.83, 99.33, 99.3, 99.83, 99.8, 99.77, 99.83),
    "climate_model": (94.81, 89.33, 93.92, 90.37, 92.59, 94.07, 93.92),
    "cylinder": (71.04, 70.81, 71.11, 70.89, 71.11, 71.11, 70.67),
    "diabetic": (75.52, 73.49, 76.09, 76.30, 75.47, 75.00, 74.32),
    "fourclass": (77.82, 79.26, 80.28, 78.98, 78.38, 79.07, 78.84),
    "haberman": (74.93, 75.33, 75.45, 75.45, 74.94, 74.80, 74.16),
    "heart": (81.76, 83.09, 83.09, 81.91, 81.76, 81.91, 83.68),
    "housing": (91.66, 90.55, 91.81, 91.50, 91.66, 91.66, 91.97),
    "ilpd": (68.84, 69.52, 69.25, 68.15, 69.18, 67.94, 69.52),
    "mammographic_mass": (80.39, 80.00, 79.90, 79.61, 79.95, 80.05, 80.24),
}
CLT = {"gaussian": "GQDA CLT", "nonparametric": "NPQDA CLT"}
OURS = ", our threshold"
CROSS_VALIDATED = ("GQDA CV", "NPQDA CV", "KQDA CV", "RQDA CV", "SQDA CV")
PRINTED = ("GQDA CV", "GQDA CLT", "NPQDA CV", "NPQDA CLT", *CROSS_VALIDATED[2:])
REASONS = {
    "a": "the paper's own published code gives 99.77 and 99.30 for the two CLT "
    "columns. 99.30 stands in the paper under NPQDA CV, as if the two NPQDA columns "
    "were swapped; NPQDA CV is then to be compared with 99.83 (ours 99.62). No column "
    "holds the 99.77 of GQDA CLT but RQDA's, so 99.33 is not recovered.",
    "b": "the published code picks one pair of radii for all ten splits, by validation "
    "rows that are test rows of other splits; here each split picks its own pair "
    "inside its training part. The last table has single pairs for all splits.",
    "c": "as (b); the published code asks for a field that the graphical lasso does "
    "not have and falls back on a matrix whose smallest variances are raised.",
}
GRID = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.16, 0.2, 0.5)  # times sqrt(d)
Scores = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]


def split(name: str, i: int) -> list[np.ndarray]:
    """Published split i: rows and 0/1 labels of the training and the test part."""
    X, labels = load(name)
    y = np.unique(labels, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=1000 + i)
    return [X, X_test, y, y_test]


def published_threshold(log_ratios: np.ndarray, y: np.ndarray) -> float:
    """Training ratio, first in row order among those with most rows right."""
    correct = [((log_ratios >= r) == (y == 1)).sum() for r in log_ratios]
    return log_ratios[int(np.argmax(correct))]


def clt_rate(name: str, likelihood: str, i: int) -> tuple[float, float]:
    """Test rate in percent by the published and by our threshold, split i."""
    X, X_test, y, y_test = split(name, i)
    with warnings.catch_warnings():
        # a column of cylinder is constant inside a class in some splits
        warnings.simplefilter("ignore", PrudentWarning)
        model = OptimisticScoreClassifier(likelihood=likelihood).fit(X, y)
    ratios, test_ratios = (
        np.diff(model.optimistic_scores(rows), axis=1).ravel() for rows in (X, X_test)
    )
    published = test_ratios >= published_threshold(ratios, y)
    return 100 * np.mean(published == y_test), 100 * model.score(X_test, y_test)


def kl_scores(M: np.ndarray, d: int, rho: float) -> np.ndarray:
    """Best Gaussian score over covariances in a KL ball, the mean fixed.

    Sigma = (g S + (x-m)(x-m)') / (1+g) with D = rho (Nguyen et al. 2019a), by
    bisection in log g.
    """
    low, high = np.full(M.shape, -40.0), np.full(M.shape, 40.0)
    for _ in range(45):
        g = np.exp((low + high) / 2)
        many, one = (1 + g) / g, (1 + g) / (g + M)
        D = (d - 1) * (many - 1 - np.log(many)) + one - 1 - np.log(one)
        low, high = (
            np.where(rho < D, (low + high) / 2, low),
            np.where(rho < D, high, (low + high) / 2),
        )
    g = np.exp(high)
    return (
        -M * (1 + g) / (g + M) + (d - 1) * np.log1p(1 / g) - np.log((g + M) / (1 + g))
    )


def class_scores(method: str, X: np.ndarray, y: np.ndarray) -> list[Scores]:
    """Log scores of each class as a function of rows and radii."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        model = OptimisticScoreClassifier(radius=0.0).fit(X, y)
    kept = np.delete(np.arange(X.shape[1]), model.constant_features_)
    d = len(kept)
    means = model.means_[:, kept]
    covariances = model.covariances_[np.ix_([0, 1], kept, kept)]
    scores = []
    for mean, S in zip(means, covariances, strict=True):

        def score(rows, radii, mean=mean[None], S=S[None]):
            if method in ("rqda", "sqda"):
                regular = ridge if method == "rqda" else sparse
                return [
                    -distances(rows[:, kept], mean, regular(S[0], rho)[None]) / 2
                    for rho in radii
                ]
            factors = MahalanobisFactors.from_covariances(mean, S)
            M = factors.squared_distances(rows[:, kept])[:, 0]
            if method == "npqda":
                return [-np.log1p(upper(NONPARAMETRIC_UPPER, M, 1, r)) for r in radii]
            half_log_det = factors.log_determinants[0] / 2
            if method == "kqda":
                return [kl_scores(M, d, rho) / 2 - half_log_det for rho in radii]
            return [upper(GAUSSIAN_UPPER, M, d, r) / 2 - half_log_det for r in radii]

        scores.append(score)
    return scores


def ridge(S: np.ndarray, rho: float) -> np.ndarray:
    """S + rho I."""
    return S + rho * np.eye(len(S))


def sparse(S: np.ndarray, rho: float) -> np.ndarray:
    """Graphical lasso, in the units of the columns as in the published code."""
    try:
        return graphical_lasso(S, rho, max_iter=50)[0]
    except FloatingPointError:
        return ridge(S, rho)  # too ill conditioned for its coordinate descent


def upper(equation, M: np.ndarray, d: int, rho: float) -> np.ndarray:
    """One optimistic score of `prudent.optimistic.scores`, without its twin."""
    values = np.empty(len(M))
    solve(equation, M, d, rho, values, compiled=False)
    return values


def distances(X: np.ndarray, mean: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Squared distance plus log determinant."""
    factors = MahalanobisFactors.from_covariances(mean, S)
    return factors.squared_distances(X)[:, 0] + factors.log_determinants[0]


def pair_rates(method, X, y, X_test, y_test, radii) -> np.ndarray:
    """Test rate of every pair of radii, threshold tuned on the training part."""
    training, test = (
        [score(rows, radii) for score in class_scores(method, X, y)]
        for rows in (X, X_test)
    )
    rates = np.empty((len(radii), len(radii)))
    for i, j in product(range(len(radii)), repeat=2):
        best = best_threshold(training[1][j] - training[0][i], y)
        decided = test[1][j] - test[0][i] >= best.log_threshold
        rates[i, j] = (decided == y_test).mean()
    return rates


def cv_rate(name: str, method: str, grid: tuple[float, ...], i: int) -> dict[str, Any]:
    """Test rate in percent with radii chosen by cross-validation, and of every pair."""
    X, X_test, y, y_test = split(name, i)
    radii = np.sqrt(X.shape[1]) * np.array(grid)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    mean_rates = np.mean(
        [pair_rates(method, X[a], y[a], X[b], y[b], radii) for a, b in folds], axis=0
    )
    j, k = np.unravel_index(mean_rates.argmax(), mean_rates.shape)
    rates = 100 * pair_rates(method, X, y, X_test, y_test, radii)
    return {"rate": rates[j, k], "pairs": rates}


def cells(scale: Scale) -> Tasks:
    """One cell a set, column and split."""
    quick = scale == "quick"
    n, grid = (2, GRID[::3]) if quick else (10, GRID)
    tasks: dict[str, Any] = {}
    for name in ("haberman", "heart") if quick else PAPER:
        for i in range(n):
            for likelihood, column in CLT.items():
                tasks[f"{name}/{column}/{i}"] = partial(clt_rate, name, likelihood, i)
            for column in CROSS_VALIDATED:
                method = column.split()[0].lower()
                tasks[f"{name}/{column}/{i}"] = partial(cv_rate, name, method, grid, i)
    return tasks


def tables(found: dict[str, Any]) -> list[Table]:
    """Ours beside the paper's, and the best pair of radii for all splits."""
    rates: dict[str, dict[str, list[float]]] = {}
    for key, value in found.items():
        name, column, _ = key.split("/")
        by_column = rates.setdefault(name, {})
        if column in CLT.values():
            by_column.setdefault(column, []).append(value[0])
            by_column.setdefault(column + OURS, []).append(value[1])
        else:
            by_column.setdefault(column, []).append(value["rate"])
    columns = [*(c + end for c in CLT.values() for end in ("", OURS)), *CROSS_VALIDATED]
    rows = []
    for name, by_column in rates.items():
        paper = dict(zip(PRINTED, PAPER[name], strict=True))
        cells = []
        for column in columns:
            values = by_column[column]
            rate = float(np.mean(values))
            error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
            reason = "a" if "CLT" in column else "c" if "SQDA" in column else "b"
            cells.append(
                against(rate, paper[column], error, reason, digits=2)
                if column in paper
                else f"{rate:.2f} ± {error:.2g}"
            )
        rows.append((name, *cells))
    n = len(next(iter(rates.values()))[columns[0]])
    made = Table(
        f"Table 1: correct classification rate in percent, mean of {n} splits",
        (
            "data",
            *(
                f"{c}: ours / paper / difference" if c in PRINTED else c
                for c in columns
            ),
        ),
        rows,
        (
            "CLT columns: radii of the limit theorem, with the paper's threshold "
            "for its figures, and with our threshold. CV columns: radii chosen by "
            "cross-validation; the paper prints KQDA, RQDA and SQDA without the word.",
            "housing and ilpd: the majority class (93.08 and 71.36) is above every "
            "entry of the row.",
        ),
        items=("Table 1",),
    )
    return [with_reasons(made, REASONS), best_pairs(found)]


def best_pairs(found: dict[str, Any]) -> Table:
    """The pair of radii that is best on the test rows of all splits together."""
    pairs: dict[str, dict[str, list[Any]]] = {}
    for key, value in found.items():
        name, column, _ = key.split("/")
        if column in CROSS_VALIDATED:
            pairs.setdefault(name, {}).setdefault(column, []).append(value["pairs"])
    rows, n_within, n_printed = [], 0, 0
    for name, by_column in pairs.items():
        paper = dict(zip(PRINTED, PAPER[name], strict=True))
        cells = []
        for column in CROSS_VALIDATED:
            rates = np.mean(by_column[column], axis=0)
            least, largest = rates.min(), rates.max()
            cells.append(f"{least:.2f} to {largest:.2f} / {paper[column]:.2f}")
            n_within += bool(least <= paper[column] <= largest)
            n_printed += 1
        rows.append((name, *cells))
    return Table(
        "Table 1, one pair of radii for all splits, percent",
        ("data", *(f"{c}: worst to best pair / paper" for c in CROSS_VALIDATED)),
        rows,
        (
            f"Of {n_printed} printed rates {n_within} lie between the worst and the "
            f"best of the {rates.size} pairs, as seen on the test rows: a choice by "
            "them would promise too much.",
        ),
    )
