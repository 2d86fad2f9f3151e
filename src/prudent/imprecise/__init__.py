"""Imprecise discriminant analysis: exact set-valued predictions."""

from prudent.imprecise.classifier import ImpreciseDiscriminantAnalysis

__all__ = ["ImpreciseDiscriminantAnalysis"]
