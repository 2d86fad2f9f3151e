"""Imprecise discriminant analysis: exact set-valued predictions."""
