"""What a user may choose of a calibration, and the family that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.calibration.ascent import StepRule
from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.families import Family, PriorStrengths
from prudent.calibration.gaussian import (
    DiagonalFamily,
    FullFamily,
    GaussianFamily,
    TiedDiagonalFamily,
    TiedFamily,
)
from prudent.calibration.softmax import SoftmaxFamily
from prudent.calibration.spread import Spread
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import Structure

GAUSSIAN: dict[str, type[GaussianFamily]] = {
    "full": FullFamily,
    "tied": TiedFamily,
    "diag": DiagonalFamily,
    "tied_diag": TiedDiagonalFamily,
}
FAMILY_NAMES = {*GAUSSIAN, "categorical", "mixed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose, as the mathematics takes it."""

    family: str | Family
    method: str
    strengths: PriorStrengths
    n_levels: IntArray  # of each categorical feature
    rule: StepRule
    stopping: str
    max_iter: int  # evaluations of each path
    costs: FloatArray | None  # (r, r), lowered in place of the log loss
    decision_costs: FloatArray | None  # (r, r), minimised by the predictions
    generative_weight: float
    batch_size: int | None  # rows behind each step; needs rows in one block
    n_random_starts: int  # of which the best is kept; 0 starts from the labels

    def __post_init__(self) -> None:
        if self.method == "gd" and self.family not in ("tied", "tied_diag"):
            raise ValueError(
                "`method='gd'` descends on softmax regression and needs `family` "
                f"'tied' or 'tied_diag', got {self.family!r}."
            )
        levels, n = self.strengths.levels, len(self.n_levels)
        if (
            self.family in ("categorical", "mixed")
            and isinstance(levels, tuple)
            and (len(levels) != n or not min(levels, default=0.0) >= 0)
        ):
            raise ValueError(
                "`level_prior_strength` must be a number >= 0 or one for each of the "
                f"{n} categorical features, got {levels!r}."
            )

    @property
    def learns_missing(self) -> bool:
        """Whether missing numbers can be left out of the fit."""
        return self.family in ("diag", "tied_diag", "mixed")

    @property
    def structure(self) -> Structure | None:
        """Which moments of all rows together the family is made of."""
        if self.family == "mixed":
            return "diagonal"
        if isinstance(self.family, str) and self.family in GAUSSIAN:
            return GAUSSIAN[self.family].structure
        return None

    def make(self, spread: Spread | None) -> Family:
        """The family of rows with this spread."""
        if spread is not None:
            self._check_priors(len(spread.centre))
        if not isinstance(self.family, str):
            return self.family
        levels = CategoricalFamily(self.n_levels, self.strengths)
        if spread is None:
            return levels
        if self.family == "mixed":
            gaussian = DiagonalFamily.from_spread(spread, self.strengths)
            return MixedFamily(gaussian, levels)
        family: Any = GAUSSIAN[self.family].from_spread(spread, self.strengths)
        return SoftmaxFamily(family) if self.method == "gd" else family

    def _check_priors(self, d: int) -> None:
        """Raise unless the prior moments fit d features."""
        mean, covariance = self.strengths.mean, self.strengths.covariance
        if mean is not None and (mean.shape != (d,) or not np.isfinite(mean).all()):
            raise ValueError(
                f"`mean_prior` must hold {d} finite numbers, one for each feature, got "
                f"{mean.tolist()}."
            )
        if covariance is None:
            return
        shaped = covariance.shape == (d, d) or covariance.shape == (d,)
        definite = shaped and bool(np.isfinite(covariance).all())
        if definite and covariance.ndim == 2:
            definite = np.allclose(covariance, covariance.T) and bool(
                (np.linalg.eigvalsh(covariance) > 0).all()
            )
        elif definite:
            definite = bool((covariance > 0).all())
        if not definite:
            raise ValueError(
                f"`covariance_prior` must be a positive definite matrix of shape "
                f"({d}, {d}), or {d} variances > 0, got {covariance.tolist()}."
            )
