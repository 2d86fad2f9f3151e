"""Imprecise discriminant analysis: exact set-valued predictions."""

from prudent.imprecise.classifier import ImpreciseDiscriminantAnalysis
from prudent.imprecise.cross_validation import ImpreciseDiscriminantAnalysisCV

__all__ = ["ImpreciseDiscriminantAnalysis", "ImpreciseDiscriminantAnalysisCV"]
