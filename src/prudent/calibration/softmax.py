"""Softmax regression as a family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.calibration.families import Statistics
from prudent.calibration.gaussian import TiedFamily
from prudent.calibration.standardisation import SeenRows
from prudent.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SoftmaxFamily:
    """Softmax regression on the rows of a tied Gaussian family: `method="gd"`.

    With the statistics s_k = M theta_k of psi(x) = (1, x) and the parameters s / M, M
    the weight of all rows, a calibration step is a gradient step on the mean log loss
    of softmax(theta' psi) with the same learning rate (the paper's Proposition 1), so
    the baseline is one more family for the same engine.
    """

    gaussian: TiedFamily

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return self.gaussian.constant_features

    def prepare(self, X: FloatArray) -> FloatArray:
        """Rows [1, z]."""
        rows = self.gaussian.prepare(X)
        assert not isinstance(rows, SeenRows)
        return rows

    def start(self, sums: Statistics) -> Statistics:
        """M theta of the discriminant with these sums of (1, z)."""
        parameters = self.gaussian.parameters(self.gaussian_statistics(sums))
        return [self.gaussian.total * parameters.scores]

    def gaussian_statistics(self, sums: Statistics) -> Statistics:
        """Sums of (1, z) as the statistics of the Gaussian family."""
        return [sums[0][:, 0], sums[0][:, 1:]]

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """sum_i Q_ik (1, z_i), shape (r, d + 1)."""
        return [Q.T @ Z]

    def parameters(self, statistics: Statistics) -> FloatArray:
        """Theta (r, d + 1)."""
        return statistics[0] / self.gaussian.total

    def log_joint(self, Z: FloatArray, parameters: FloatArray) -> FloatArray:
        """theta_k' (1, z), shape (m, r)."""
        return (parameters @ Z.T).T

    def coefficients(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) in the units of X."""
        return self.gaussian.coefficients_in_units(parameters)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Every coefficient is allowed, shape (r,)."""
        return np.ones(len(statistics[0]), dtype=bool)
