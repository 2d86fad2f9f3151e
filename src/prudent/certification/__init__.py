"""Promises for any classifier from rows it has not seen."""

from prudent.certification.boundary import ErrorBoundary, error_boundary
from prudent.certification.neyman_pearson import NeymanPearsonClassifier
from prudent.certification.selective import SelectiveClassifier

__all__ = [
    "ErrorBoundary",
    "NeymanPearsonClassifier",
    "SelectiveClassifier",
    "error_boundary",
]
