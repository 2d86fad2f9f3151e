"""Table 1 of Nguyen et al. (2020): correct classification rate on 11 data sets.

Ten published splits. CLT columns: the threshold of the published code (the training
ratio that is first in row order among the best) and ours (the middle of the best
interval nearest to 0). CV columns: the pair of radii with the best mean accuracy in
stratified 5-fold cross-validation inside each training part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.benchmark_data import load
from experiments.table import Table, beside, explained, main
from prudent import OptimisticScoreClassifier
from prudent.core.distances import MahalanobisFactors
from prudent.exceptions import PrudentWarning
from prudent.optimistic import best_threshold
from prudent.optimistic.formulas import GAUSSIAN_UPPER, NONPARAMETRIC_UPPER
from prudent.optimistic.scores import ScoreFunction

# name -> GQDA CV, GQDA CLT, NPQDA CV, NPQDA CLT, KQDA, RQDA as printed
PAPER = {
    "australian": (85.38, 84.91, 85.84, 85.03, 85.38, 85.61),
    "banknote_authentication": (99.83, 99.33, 99.3, 99.83, 99.8, 99.77),
    "climate_model": (94.81, 89.33, 93.92, 90.37, 92.59, 94.07),
    "cylinder": (71.04, 70.81, 71.11, 70.89, 71.11, 71.11),
    "diabetic": (75.52, 73.49, 76.09, 76.30, 75.47, 75.00),
    "fourclass": (77.82, 79.26, 80.28, 78.98, 78.38, 79.07),
    "haberman": (74.93, 75.33, 75.45, 75.45, 74.94, 74.80),
    "heart": (81.76, 83.09, 83.09, 81.91, 81.76, 81.91),
    "housing": (91.66, 90.55, 91.81, 91.50, 91.66, 91.66),
    "ilpd": (68.84, 69.52, 69.25, 68.15, 69.18, 67.94),
    "mammographic_mass": (80.39, 80.00, 79.90, 79.61, 79.95, 80.05),
}
MEASURED = (
    *("GQDA CLT", "GQDA CLT, our threshold", "NPQDA CLT", "NPQDA CLT, our threshold"),
    *("GQDA CV", "NPQDA CV", "KQDA CV", "RQDA CV"),
)
PRINTED = ("GQDA CV", "GQDA CLT", "NPQDA CV", "NPQDA CLT", "KQDA CV", "RQDA CV")
REASONS = {
    "a": "two columns of the banknote row seem swapped in the paper: its own published "
    "code gives 99.77 and 99.30 for the CLT columns.",
    "b": "the published code picks one pair of radii for all ten splits, by validation "
    "rows that are test rows of other splits; here each split picks its own pair "
    "inside its training part.",
}
GRID = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.16, 0.2, 0.5)  # times sqrt(d)
Scores = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]


def splits(name: str, n: int):
    """Published splits: rows and 0/1 labels of the training and the test part."""
    X, labels = load(name)
    y = np.unique(labels, return_inverse=True)[1]
    for i in range(n):
        yield train_test_split(X, y, test_size=0.25, random_state=1000 + i)


def published_threshold(log_ratios: np.ndarray, y: np.ndarray) -> float:
    """Training ratio, first in row order among those with most rows right."""
    correct = [((log_ratios >= r) == (y == 1)).sum() for r in log_ratios]
    return log_ratios[int(np.argmax(correct))]


def clt_rates(name: str, likelihood: str, n: int = 10) -> np.ndarray:
    """Test rates in percent by the published (row 0) and by our threshold (row 1)."""
    rates = []
    for X, X_test, y, y_test in splits(name, n):
        with warnings.catch_warnings():
            # a column of cylinder is constant inside a class in some splits
            warnings.simplefilter("ignore", PrudentWarning)
            model = OptimisticScoreClassifier(likelihood=likelihood).fit(X, y)
        ratios, test_ratios = (
            np.diff(model.optimistic_scores(rows), axis=1).ravel()
            for rows in (X, X_test)
        )
        published = published_threshold(ratios, y)
        rates.append(
            (
                ((test_ratios >= published) == y_test).mean(),
                model.score(X_test, y_test),
            )
        )
    return 100 * np.transpose(rates)


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
            if method == "rqda":
                return [
                    -(distances(rows[:, kept], mean, S + rho * np.eye(d))) / 2
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


def upper(equation, M: np.ndarray, d: int, rho: float) -> np.ndarray:
    """One optimistic score of `prudent.optimistic.scores`, without its twin."""
    values = np.empty(len(M))
    ScoreFunction.of(equation, d, rho)(M, values, compiled=False)
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


def cv_rates(name: str, method: str, n: int, grid: tuple[float, ...]) -> np.ndarray:
    """Test rates in percent with radii chosen by cross-validation."""
    rates = []
    for X, X_test, y, y_test in splits(name, n):
        radii = np.sqrt(X.shape[1]) * np.array(grid)
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
        mean_rates = np.mean(
            [pair_rates(method, X[a], y[a], X[b], y[b], radii) for a, b in folds],
            axis=0,
        )
        i, j = np.unravel_index(mean_rates.argmax(), mean_rates.shape)
        rates.append(pair_rates(method, X, y, X_test, y_test, radii)[i, j])
    return 100 * np.array(rates)


def run(quick: bool) -> Table:
    """Mean rate and standard error over the splits, of every column."""
    names = ("haberman", "heart") if quick else tuple(PAPER)
    n, grid = (2, GRID[::3]) if quick else (10, GRID)
    rows = []
    for name in names:
        rates = [
            *clt_rates(name, "gaussian", n),
            *clt_rates(name, "nonparametric", n),
            *(cv_rates(name, m, n, grid) for m in ("gqda", "npqda", "kqda", "rqda")),
        ]
        errors = np.std(rates, axis=1, ddof=1) / np.sqrt(n)
        pairs = zip(np.mean(rates, axis=1), errors, strict=True)
        rows.append((name, *(float(v) for pair in pairs for v in pair)))
    return Table(
        f"Table 1: correct classification rate in percent, mean of {n} splits",
        ("data", *(f"{name}{part}" for name in MEASURED for part in ("", ", error"))),
        rows,
        (
            "CLT columns: radii of the limit theorem, with the paper's threshold "
            "beside its figures, and with our threshold. CV columns: radii chosen by "
            "cross-validation.",
            "housing and ilpd: the majority class (93.08 and 71.36) is above every "
            "entry of the row.",
        ),
    )


def explain(table: Table) -> Table:
    """Ours beside the paper's."""
    rows = []
    for name, *values in table.rows:
        pairs = zip(values[::2], values[1::2], strict=True)
        found = dict(zip(MEASURED, pairs, strict=True))
        paper = dict(zip(PRINTED, PAPER[name], strict=True))
        cells = [
            beside(*(rate, paper[c], error), "b" if "CV" in c else "a", digits=2)
            if c in paper
            else f"{rate:.2f} ± {error:.2g}"
            for c, (rate, error) in found.items()
        ]
        rows.append((name, *cells))
    columns = [
        f"{c}: ours / paper / difference" if c in PRINTED else c for c in MEASURED
    ]
    return explained(table, ("data", *columns), rows, REASONS)


if __name__ == "__main__":
    main(run, explain)
