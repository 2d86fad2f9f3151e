"""Names of the methods, known before anything is imported."""

from __future__ import annotations

METHODS = {
    "optimistic": "prudent.optimistic.OptimisticScoreClassifier",
    "minimax": "prudent.minimax.MinimaxProbabilityClassifier",
    "calibrated": "prudent.calibration.RiskCalibratedClassifier",
    "imprecise": "prudent.imprecise.ImpreciseDiscriminantAnalysis",
    "rejection": "prudent.evaluation.rejection.ClasswiseRejector",
    "conformal": "prudent.conformal.ConformalClassifier",
}
BASELINES = ("majority", "logistic", "lda", "qda", "boosting")
DEFAULT_PROMISE = "coverage >= 90% in every class"
