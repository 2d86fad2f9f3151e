"""Is one error really smaller? An exact paired test on rows, corrected over methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest


def mcnemar_p_value(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Two-sided p-value of the exact McNemar test.

    Parameters
    ----------
    first, second : ndarray of bool, shape (n,)
        Whether each of two methods errs on the same rows.

    Returns
    -------
    float
        In (0, 1]; 1 where they never differ.

    Notes
    -----
    Rows on which exactly one of the two errs tell them apart. Where both err
    equally often, each of these rows is a fair coin, so the number of those of the
    first method is binomial.

    References
    ----------
    McNemar (1947), "Note on the sampling error of the difference between
    correlated proportions or percentages", Psychometrika 12.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = np.zeros(100, bool), np.zeros(100, bool)
    >>> first[:9], second[8:10] = True, True
    >>> round(mcnemar_p_value(first, second), 4)
    0.0391
    """
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected so that all statements at one level hold at once.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    return np.minimum(corrected, 1.0).tolist()
