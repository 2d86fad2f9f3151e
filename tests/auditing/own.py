"""Our estimators and settings that promise something, for the audit of ourselves."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from prudent import (
    ConformalClassifier,
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    MinimaxProbabilityClassifier,
    NeymanPearsonClassifier,
    RiskCalibratedClassifier,
    SelectiveClassifier,
)

LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())
PLAIN = LogisticRegression()


def calibrated(**settings):
    return RiskCalibratedClassifier(stopping="holdout", **settings)


OWN = {
    "minimax": MinimaxProbabilityClassifier(),
    "minimax, mean": MinimaxProbabilityClassifier(objective="mean"),
    "minimax, radii": MinimaxProbabilityClassifier(mean_radius=0.1),
    "minimax, gaussian": MinimaxProbabilityClassifier(uncertainty="gaussian"),
    "one class": MinimaxOutlierDetector(),
    "one class, halfspace": MinimaxOutlierDetector(
        region="halfspace", covariance="oas"
    ),
    "one class, kernel": MinimaxOutlierDetector(kernel="rbf"),
    "one class, moments": MinimaxOutlierDetector(threshold="distribution_free"),
    "calibrated, full": calibrated(),
    "calibrated, tied": calibrated(family="tied", loss="zero_one"),
    "calibrated, diag": calibrated(family="diag", step="adaptive"),
    "calibrated, categorical": calibrated(family="categorical"),
    "calibrated, gradient": calibrated(family="tied", method="gd"),
    "low density": LowDensityRejector(),
    "low density, grid": LowDensityRejector(estimator=PLAIN, reference="grid"),
    "low density, sure": LowDensityRejector(
        estimator=PLAIN, reference="gaussian", confidence=0.95
    ),
    "low density, exact": LowDensityRejector(
        estimator=PLAIN, reference="box", exact=True
    ),
    "low density, soft": LowDensityRejector(
        estimator=PLAIN, strategy="soft", divergence_bound=2.0
    ),
    "conformal": ConformalClassifier(),
    "conformal, smoothed": ConformalClassifier(condition="class", ties="smoothed"),
    "conformal, by class": ConformalClassifier(condition="class"),
    "conformal, Gaussian": ConformalClassifier(model="gaussian"),
    "conformal, density": ConformalClassifier(
        model="gaussian", covariance_type="diag", nonconformity="density"
    ),
    "conformal, cross": ConformalClassifier(PLAIN, method="cross", cv=3),
    "conformal, split": ConformalClassifier(PLAIN, method="split", condition="class"),
    "alarms": ConformalDetector(),
    "alarms, distance": ConformalDetector(nonconformity="distance", ties="smoothed"),
    "alarms, split": ConformalDetector(method="split"),
    "alarms, cross": ConformalDetector(OneClassSVM()),
    "selective": SelectiveClassifier(LOGISTIC, error_rate=0.3),
    "selective, share": SelectiveClassifier(PLAIN, error_rate=None, answered_share=0.8),
    "Neyman-Pearson": NeymanPearsonClassifier(PLAIN, max_class_error={0: 0.2}),
    "Neyman-Pearson, sets": NeymanPearsonClassifier(
        PLAIN, max_class_error=0.2, abstain=True
    ),
}
