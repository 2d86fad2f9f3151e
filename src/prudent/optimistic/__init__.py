"""Optimistic score ratio: classify by the most plausible moments in a ball."""

from prudent.optimistic.classifier import (
    OptimisticScoreClassifier,
    OptimisticScoreClassifierCV,
)
from prudent.optimistic.learn import BestThreshold, best_threshold
from prudent.optimistic.nominal import moment_divergence
from prudent.optimistic.radii import (
    bootstrap_radius,
    clt_radius,
    moment_radius,
    radius_limit_law,
)
from prudent.optimistic.scores import (
    covariance_scores,
    gaussian_scores,
    nonparametric_scores,
)

__all__ = [
    "BestThreshold",
    "OptimisticScoreClassifier",
    "OptimisticScoreClassifierCV",
    "best_threshold",
    "bootstrap_radius",
    "clt_radius",
    "covariance_scores",
    "gaussian_scores",
    "moment_divergence",
    "moment_radius",
    "nonparametric_scores",
    "radius_limit_law",
]
