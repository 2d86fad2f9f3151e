"""Regions that hold one class with known mean and covariance."""

from prudent.minimax.one_class.model import halfspace

__all__ = ["halfspace"]
