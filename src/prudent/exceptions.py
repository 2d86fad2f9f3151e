"""Errors and warnings with a meaning of their own."""

from numpy.linalg import LinAlgError

__all__ = [
    "DegenerateDataError",
    "InfeasibleError",
    "PrudentWarning",
    "SingularCovarianceError",
]


class DegenerateDataError(ValueError):
    """The data cannot carry the mathematics asked of them."""


class SingularCovarianceError(DegenerateDataError, LinAlgError):
    """A covariance matrix that must be inverted is singular or indefinite."""


class InfeasibleError(ValueError):
    """No solution exists; the message names the constraint and by how much."""


class PrudentWarning(UserWarning):
    """A documented fallback was taken or a stated condition does not hold."""
