"""The learned rule: from rows to scores, decisions and p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray, IntArray
from prudent.minimax.kernel import Span
from prudent.minimax.one_class.regions import Ellipsoid, HalfSpace

#: Unit to which scores of kernel fits are rounded, in their standard deviations.
KERNEL_RESOLUTION = 2.0**-26


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A region of some features, the scores it was held to, and where they cut.

    With a `span` rows are kernel values. Scores below `offset` are those of outliers;
    `calibration_scores` (m,) rise.
    """

    region: HalfSpace | Ellipsoid
    features: IntArray
    span: Span | None
    calibration_scores: FloatArray
    offset: float

    def scores(self, X: NDArray[Any], diagonal: FloatArray | None = None) -> FloatArray:
        """Score of each row, (n,): the lower, the more unusual.

        `diagonal` is the kernel value of each row with itself, for an ellipsoid.
        """
        if self.span is None:
            if len(self.features) < X.shape[1]:
                X = X[:, self.features]
            return self.region.scores(X)
        coordinates = self.span.coordinates(X)
        if isinstance(self.region, HalfSpace):
            return _rounded(self.region.scores(coordinates), self.region.zeta)
        assert diagonal is not None
        outside = diagonal - np.einsum("ij,ij->i", coordinates, coordinates)
        return _rounded(self.region.scores(coordinates, outside), 1.0)

    def p_values(self, scores: FloatArray) -> FloatArray:
        """Conformal p-value (1 + #{s_i <= s}) / (m + 1) of each score."""
        known = self.calibration_scores
        return (1 + np.searchsorted(known, scores, side="right")) / (len(known) + 1)

    def weights(self, n_features: int) -> FloatArray | None:
        """Weights (1, p) of features, or kernel values, of a half-space."""
        if not isinstance(self.region, HalfSpace):
            return None
        if self.span is not None:
            return self.span.dual(self.region.weights[None])
        weights = np.zeros((1, n_features))
        weights[0, self.features] = self.region.weights
        return weights


def _rounded(scores: FloatArray, scale: float) -> FloatArray:
    """Scores without the digits that depend on how many rows BLAS takes at once."""
    unit = 2.0 ** math.floor(math.log2(scale)) * KERNEL_RESOLUTION
    near: FloatArray = np.rint(scores / unit) * unit
    return near
