"""Centre and scale of columns, safe far from the origin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "centre_and_scale"]

FloatArray = NDArray[np.float64]

_ROWS_PER_BLOCK = 4096
#: Its square is a normal number still.
_LEAST_SCALE = 1e-153
#: A column that varies by a smaller share of its mean varies by rounding.
ROUNDING = 1e-12


def centre_and_scale(
    X: NDArray[Any], weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and population standard deviation of every column, two passes."""
    blocks = [
        slice(start, start + _ROWS_PER_BLOCK)
        for start in range(0, len(X), _ROWS_PER_BLOCK)
    ]
    total = weight.sum()
    # The first row as origin: an offset of 1e8 then costs no digits in the mean.
    origin = X[0].astype(np.float64)
    shift, square = np.zeros((2, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks:
            shift += weight[block] @ (X[block] - origin)
        centre = origin + shift / total
        for block in blocks:
            square += weight[block] @ np.square(X[block] - centre)
        scale = np.sqrt(square / total)
    unusable = np.flatnonzero(~np.isfinite(scale))
    if len(unusable):
        raise ValueError(
            f"column {unusable[0]} holds values as large as "
            f"{np.abs(X[:, unusable[0]]).max():.3g}, whose square overflows: "
            "divide the column by a constant."
        )
    for j in np.flatnonzero(scale < _LEAST_SCALE):
        spread = float(np.ptp(X[:, j]))
        if spread > ROUNDING * abs(centre[j]):
            raise ValueError(
                f"column {j} varies by {spread:.3g} only, whose square underflows: "
                "multiply the column by a constant."
            )
    return centre, scale
