"""Regions that hold one class with known mean and covariance."""

from prudent.minimax.one_class.regions import ellipsoid_radius, halfspace

__all__ = ["ellipsoid_radius", "halfspace"]
