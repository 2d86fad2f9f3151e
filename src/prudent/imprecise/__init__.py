"""Imprecise discriminant analysis: exact set-valued predictions."""

from prudent.imprecise.classifier import ImpreciseDiscriminantAnalysis
from prudent.imprecise.criteria import lower_expectation, prior_bounds
from prudent.imprecise.cross_validation import ImpreciseDiscriminantAnalysisCV

__all__ = [
    "ImpreciseDiscriminantAnalysis",
    "ImpreciseDiscriminantAnalysisCV",
    "lower_expectation",
    "prior_bounds",
]
