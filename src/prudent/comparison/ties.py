"""Is one error really smaller? A paired test that knows training sets overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

__all__ = ["corrected_p_value"]


def corrected_p_value(
    differences: NDArray[np.float64], test_over_train: float
) -> float:
    """Two-sided p-value of the corrected resampled t test.

    Parameters
    ----------
    differences : ndarray of shape (n_folds,)
        Difference of two errors on each fold, at least two folds.
    test_over_train : float
        Rows tested over rows fitted on.

    Returns
    -------
    float
        In [0, 1]; 1 when all differences are 0, 0 when they are equal and not 0.

    Notes
    -----
    With J folds, t = mean / sqrt((1 / J + n_test / n_train) variance) is compared
    with Student's law of J - 1 degrees of freedom. The second term accounts for
    the training sets, which share most of their rows: without it the test finds
    differences where there are none.

    References
    ----------
    Nadeau and Bengio (2003), "Inference for the generalization error", Machine
    Learning 52, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.comparison.ties import corrected_p_value
    >>> round(corrected_p_value(np.array([0.02, 0.0, 0.04, 0.01, 0.03]), 0.25), 4)
    0.1324
    """
    n_folds, largest = len(differences), np.abs(differences).max()
    if np.ptp(differences) == 0:
        return 1.0 if largest == 0 else 0.0
    scaled = differences / largest  # t has no unit; squares of tiny numbers vanish
    mean, variance = scaled.mean(), scaled.var(ddof=1)
    t = mean / np.sqrt((1 / n_folds + test_over_train) * variance)
    return float(2 * stdtr(n_folds - 1, -abs(t)))
