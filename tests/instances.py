"""Every public estimator, default and variants, for scikit-learn's checks.

One list per family; `EXPECTED_FAILURES` maps an instance's index in its list to the
checks it fails, each with the reason.
"""

from __future__ import annotations


def minimax():
    from prudent import MinimaxOutlierDetector, MinimaxProbabilityClassifier

    return [
        MinimaxOutlierDetector(),
        MinimaxOutlierDetector(region="halfspace", covariance="oas"),
        MinimaxOutlierDetector(kernel="rbf"),
        MinimaxProbabilityClassifier(),
        MinimaxProbabilityClassifier(covariance="oas", objective="mean"),
        MinimaxProbabilityClassifier(covariance="ledoit_wolf", mean_radius=0.1),
        MinimaxProbabilityClassifier(kernel="rbf"),
        MinimaxProbabilityClassifier(kernel="precomputed"),
    ]


def optimistic():
    from prudent import OptimisticScoreClassifier, OptimisticScoreClassifierCV

    return [
        OptimisticScoreClassifier(),
        OptimisticScoreClassifier(likelihood="nonparametric"),
        OptimisticScoreClassifier(rule="minimax"),
        OptimisticScoreClassifier(rule="minimax", covariance="oas"),
        OptimisticScoreClassifier(threshold="bayes", radius=0.1, covariance=0.5),
        OptimisticScoreClassifier(covariance="pooled"),
        OptimisticScoreClassifierCV(radii=[0.1, 1.0], cv=3),
    ]


def imprecise():

    from prudent.imprecise import (
        ImpreciseDiscriminantAnalysis,
        ImpreciseDiscriminantAnalysisCV,
    )

    return [
        ImpreciseDiscriminantAnalysis(),
        ImpreciseDiscriminantAnalysis(covariance_type="tied", box="natural"),
        ImpreciseDiscriminantAnalysis(covariance_type="diag", prior_imprecision=1.0),
        ImpreciseDiscriminantAnalysis(covariance_type="identity", scale="range"),
        ImpreciseDiscriminantAnalysis(covariance="ledoit_wolf"),
        ImpreciseDiscriminantAnalysis(criterion="interval", prior_imprecision=1.0),
        ImpreciseDiscriminantAnalysisCV(imprecisions=[0.1, 1.0], cv=3),
        ImpreciseDiscriminantAnalysisCV(imprecisions=[0.1, 1.0], cv=3, scoring=2.0),
    ]


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
    from sklearn.linear_model import LogisticRegression

    from prudent import LowDensityRejector

    plain = LogisticRegression()
    return [
        LowDensityRejector(),
        LowDensityRejector(estimator=plain, reference="grid"),
        LowDensityRejector(estimator=plain, reference="box", exact=True),
        LowDensityRejector(estimator=plain, strategy="soft", divergence_bound=2.0),
    ]


def certification():
    from sklearn.linear_model import LogisticRegression

    from prudent import (
        BinnedCalibrationClassifier,
        NeymanPearsonClassifier,
        SelectiveClassifier,
    )

    # Some checks have a class of three rows; a draw that holds all of them out is an
    # error, so the draw is fixed.
    plain = LogisticRegression()
    return [
        SelectiveClassifier(plain, random_state=0),
        SelectiveClassifier(plain, error_rate=None, answered_share=0.8, random_state=0),
        NeymanPearsonClassifier(plain, random_state=0),
        NeymanPearsonClassifier(
            plain, max_class_error=0.2, abstain=True, random_state=0
        ),
        BinnedCalibrationClassifier(plain, random_state=0),
        BinnedCalibrationClassifier(plain, quote="frequency", random_state=0),
    ]


def conformal():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import OneClassSVM

    from prudent import ConformalClassifier, ConformalDetector

    plain = LogisticRegression()
    return [
        ConformalClassifier(),
        ConformalClassifier(condition="class", ties="smoothed"),
        ConformalClassifier(model="gaussian"),
        ConformalClassifier(
            model="gaussian", covariance_type="diag", nonconformity="density"
        ),
        ConformalClassifier(plain, method="cross", cv=3),
        ConformalClassifier(plain, method="split"),
        ConformalDetector(),
        ConformalDetector(nonconformity="ellipsoid", ties="smoothed"),
        ConformalDetector(method="split"),
        ConformalDetector(OneClassSVM()),
    ]


def evaluation():
    from prudent import BestClassifier

    names = ["logistic", "lda"]
    settings = {"cv": 2, "random_state": 0}
    return [
        BestClassifier(names, **settings),
        BestClassifier(names, promise="error <= 20%", **settings),
        BestClassifier(names, promise="none", **settings),
    ]


FAMILIES = (
    minimax,
    optimistic,
    imprecise,
    calibration,
    adversarial,
    certification,
    conformal,
    evaluation,
)


def expected_failures(estimator) -> dict[str, str]:
    """Checks an instance may fail, with the argument for each."""
    if getattr(estimator, "covariance", None) == "pooled":
        reason = "15 rows have no covariance of 30 features: an error that says so"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if getattr(estimator, "max_class_error", None) == 0.2:
        reason = "moved thresholds give labels that are not the most probable ones"
        return {"check_classifiers_train": reason}
    if getattr(estimator, "strategy", None) == "soft":
        reason = "the soft decision is a coin minus a probability, not score - offset"
        return {"check_outliers_train": reason}
    return {}
