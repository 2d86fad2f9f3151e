"""Radii of the balls: given, or from limit theorem, fourth moments or bootstrap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from prudent.core.binomial import check_fraction
from prudent.core.covariance import CovarianceRule
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import FloatArray
from prudent.optimistic.limit_law import limit_radii, moment_radius
from prudent.optimistic.resampling import bootstrap_radii, bootstrap_radius

ESTIMATED_RADII = ("clt", "moments", "bootstrap")


def clt_radius(n_features: int, n_rows: float, level: float = 0.5) -> float:
    """Radius from the limit law for Gaussian data.

    n times the divergence of the sample moments tends to a chi-square law with
    d (d + 3) / 2 degrees of freedom (Nguyen, Si and Blanchet 2020, Corollary 2.3).

    Parameters
    ----------
    n_features : int
        Number of features d, >= 1.
    n_rows : float
        Rows (or weight) of the class, > 0.
    level : float, default=0.5
        Nominal probability that the ball holds the true moments, in (0, 1). Not
        a promise: it needs Gaussian data, the sample covariance and many rows.

    Returns
    -------
    float
        Radius rho, already divided by `n_rows`.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> from prudent.optimistic import clt_radius
    >>> round(clt_radius(20, 100), 4)
    2.2933
    """
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {n_features!r}.")
    if not 0 < n_rows < np.inf:
        raise ValueError(f"`n_rows` must be finite and > 0, got {n_rows!r}.")
    check_fraction("level", level)
    return float(chi2.ppf(level, n_features * (n_features + 3) / 2) / n_rows)


def estimated_radii(
    source: str,
    level: float,
    moments: ClassMoments,
    rows: Rows | None,
    covariance: CovarianceRule,
    random: np.random.RandomState,
) -> FloatArray:
    """Radius of each class seen: from its moments, its rows or sums over blocks."""
    if rows is None or source == "clt":
        n_features = moments.mean.shape[1]
        return np.array(
            [clt_radius(n_features, w, level) for w in moments.weight.tolist()]
        )
    if not rows.in_one_place:
        if source == "moments":
            return limit_radii(rows, moments, level)
        assert not callable(covariance)  # it has asked for rows in one place
        return bootstrap_radii(rows, moments, level, covariance, random)

    def estimate(X: FloatArray, weight: FloatArray | None) -> float:
        # a feature constant inside the class has no spread to learn from
        X = X[:, np.ptp(X, axis=0) > 0]
        if not X.shape[1]:
            return 0.0
        if source == "moments":
            return moment_radius(X, level, sample_weight=weight)
        return bootstrap_radius(
            X, level, covariance=covariance, sample_weight=weight, random_state=random
        )

    classes = range(len(moments.weight))
    return np.array([estimate(*rows.of_class(k)) for k in classes])


def given_radii(radius: ArrayLike, n_classes: int) -> FloatArray:
    """One radius for each class."""
    try:
        given = np.asarray(radius, dtype=np.float64)
        found = f"shape {given.shape}"
    except (TypeError, ValueError):
        given, found = np.empty((0, 0)), repr(radius)
    if given.ndim and given.shape != (n_classes,):
        raise ValueError(
            "`radius` must be a number or hold one number for each of the "
            f"{n_classes} classes, got {found}."
        )
    if not ((given >= 0) & np.isfinite(given)).all():
        raise ValueError(f"every radius must be finite and >= 0, got {radius!r}.")
    return np.full(n_classes, given)
