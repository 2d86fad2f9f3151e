"""Promises for any classifier from rows it has not seen."""

from prudent.certification.binned_calibration import BinnedCalibrationClassifier
from prudent.certification.certificates import (
    certify,
    certify_thresholds,
    mean_upper_limit,
)
from prudent.certification.neyman_pearson import NeymanPearsonClassifier
from prudent.certification.planning import Plan, plan, queue_limit
from prudent.certification.promises import error_rate_under_priors
from prudent.certification.selective import SelectiveClassifier
from prudent.rules.bands import ThresholdBands
from prudent.rules.boundary import ErrorBoundary, error_boundary

__all__ = [
    "BinnedCalibrationClassifier",
    "ErrorBoundary",
    "NeymanPearsonClassifier",
    "Plan",
    "SelectiveClassifier",
    "ThresholdBands",
    "certify",
    "certify_thresholds",
    "error_boundary",
    "error_rate_under_priors",
    "mean_upper_limit",
    "plan",
    "queue_limit",
]
