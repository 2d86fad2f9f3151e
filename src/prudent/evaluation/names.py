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

#: Why the sets of a method may hold every class, and what makes them smaller.
WHY_UNDECIDED = {
    "minimax": "its sets cover each class under every law with its moments, which no "
    "set does at 95 % unless the classes lie far apart; ask for less with "
    "predict_set(X, level=0.3)",
    "optimistic": "its balls of moments overlap, for the rows are few for so many "
    "features; make them smaller with --param optimistic.radius_scale=0.03",
    "imprecise": "its boxes of means overlap, for the rows of a class are few; make "
    "them smaller with --param imprecise.imprecision=0.1",
}
