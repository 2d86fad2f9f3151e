"""Every public estimator, default and variants, for scikit-learn's checks.

One list per family; `EXPECTED_FAILURES` maps an instance's index in its list to the
checks it fails, each with the reason.
"""

from __future__ import annotations


def minimax():
    return []


def optimistic():
    return []


def imprecise():
    return []


def calibration():
    return []


def adversarial():
    return []


FAMILIES = (minimax, optimistic, imprecise, calibration, adversarial)


def expected_failures(estimator) -> dict[str, str]:
    """Checks an instance may fail, with the argument for each."""
    return {}
