"""Miss rates of sets whose rows are ranked by fits without them."""

from __future__ import annotations

import math

import numpy as np

from prudent.core.types import IntArray


def cross_bound(n: int, n_folds: int, rank: int, *, equal_folds: bool = True) -> float:
    """Largest miss rate of cross-conformal sets that exclude the `rank` strangest.

    Of `n` ranking rows in `n_folds` folds, a label is excluded if its p-value is at
    most r / (n + 1), r = `rank`.

    Notes
    -----
    In general 2 (r + K - 1) / (n + K): the p-value is a weighted mean of those of the
    folds, each valid, less a constant, and a mean M of valid p-values has
    P(M <= t) <= 2 t. For folds of m rows each (2 r + m - 2) / (n + m): add m - 1
    fictitious rows to that of the new row; in the tournament of all n + m rows at most
    m + 2 r - 2 can beat all but r - 1 of the rows outside their folds.

    Examples
    --------
    >>> from prudent.conformal.folds import cross_bound
    >>> [round(cross_bound(200, k, 20), 4) for k in (10, 5)]
    [0.2636, 0.2341]
    """
    if rank <= 0:
        return 0.0
    bounds = [1.0, 2 * (rank + n_folds - 1) / (n + n_folds)]
    if equal_folds and n > 0 and n % n_folds == 0:
        bounds.append((2 * rank + n // n_folds - 2) / (n + n // n_folds))
    return min(bounds)


def plain_folds(n: int, n_folds: int, random: np.random.RandomState) -> list[IntArray]:
    """Positions of the rows of each fold: a plain draw, strata are not exchangeable."""
    return [np.sort(fold) for fold in np.array_split(random.permutation(n), n_folds)]


def fewest_rows(rate: float, confidence: float | None = None) -> int:
    """Least number of ranking rows with which a row can be found strange at all.

    Examples
    --------
    >>> from prudent.conformal.folds import fewest_rows
    >>> fewest_rows(0.05), fewest_rows(0.05, 0.95)
    (19, 59)
    """
    if confidence is not None:
        return math.ceil(math.log(1 - confidence) / math.log1p(-rate) - 1e-9)
    return max(1, math.ceil(1 / rate - 1 - 1e-9))
