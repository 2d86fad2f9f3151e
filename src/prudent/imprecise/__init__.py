"""Imprecise discriminant analysis: exact set-valued predictions."""

from prudent.imprecise.classifier import ImpreciseDiscriminantAnalysis
from prudent.imprecise.cross_validation import ImpreciseDiscriminantAnalysisCV
from prudent.imprecise.prior import lower_expectation, prior_bounds

__all__ = [
    "ImpreciseDiscriminantAnalysis",
    "ImpreciseDiscriminantAnalysisCV",
    "lower_expectation",
    "prior_bounds",
]
