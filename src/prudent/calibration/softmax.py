"""Gradient descent on softmax regression, the baseline `method="gd"`.

With the statistics s_k = M theta_k of psi(x) = (1, x) and the parameters s / M, a
calibration step is a gradient step on the mean log loss of softmax(theta' psi) with
the same learning rate (the paper's Proposition 1), so the baseline is one more
family for the same engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.calibration.families import Statistics
from prudent.calibration.gaussian import SeenRows, TiedFamily, in_units
from prudent.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SoftmaxFamily:
    """Softmax regression on the standardised rows of a tied Gaussian family.

    Attributes
    ----------
    gaussian : TiedFamily
        Standardises the rows and gives the closed-form start.
    total : float
        Total weight M.
    """

    gaussian: TiedFamily
    total: float

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return self.gaussian.constant_features

    def prepare(self, X: FloatArray) -> FloatArray:
        """Rows [1, z]."""
        rows = self.gaussian.prepare(X)
        assert not isinstance(rows, SeenRows)
        return rows

    def start(self, labels: Statistics) -> Statistics:
        """M theta of the discriminant with the statistics of these sums of (1, z)."""
        closed_form = self.gaussian_statistics(labels)
        return [self.total * self.gaussian.parameters(closed_form).scores]

    def gaussian_statistics(self, sums: Statistics) -> Statistics:
        """Sums of (1, z) as the statistics of the Gaussian family."""
        return [sums[0][:, 0], sums[0][:, 1:]]

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """sum_i Q_ik (1, z_i), shape (r, d + 1)."""
        return [Q.T @ Z]

    def parameters(self, statistics: Statistics) -> FloatArray:
        """Theta (r, d + 1)."""
        return statistics[0] / self.total

    def log_joint(self, Z: FloatArray, parameters: FloatArray) -> FloatArray:
        """theta_k' (1, z), shape (m, r)."""
        return (parameters @ Z.T).T

    def coefficients(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) in the units of X."""
        return in_units(self.gaussian, parameters)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Every coefficient is allowed, shape (r,)."""
        return np.ones(len(statistics[0]), dtype=bool)

    def learned(self, parameters: FloatArray) -> dict[str, FloatArray]:
        """No generative parameters: the coefficients are all there is."""
        return {}
