"""Every public estimator, default and variants, for scikit-learn's checks.

One list per family; `EXPECTED_FAILURES` maps an instance's index in its list to the
checks it fails, each with the reason.
"""

from __future__ import annotations


def minimax():
    return []


def optimistic():
    from prudent import OptimisticScoreClassifier

    return [
        OptimisticScoreClassifier(),
        OptimisticScoreClassifier(likelihood="nonparametric"),
        OptimisticScoreClassifier(rule="minimax"),
        OptimisticScoreClassifier(rule="minimax", covariance="oas"),
        OptimisticScoreClassifier(threshold="bayes", radius=0.1, covariance=0.5),
    ]


def imprecise():
    return []


def calibration():
    from prudent import RiskCalibratedClassifier as Calibrated

    return [
        Calibrated(),
        Calibrated(family="tied_diag", stopping="none"),
        Calibrated(family="diag", stopping="train", step="adaptive"),
        Calibrated(family="tied", loss="zero_one", batch_size=10, stopping="none"),
        Calibrated(family="tied", method="gd", stopping="none"),
        Calibrated(family="categorical", stopping="none"),
    ]


def adversarial():
    return []


FAMILIES = (minimax, optimistic, imprecise, calibration, adversarial)


def expected_failures(estimator) -> dict[str, str]:
    """Checks an instance may fail, with the argument for each."""
    return {}
