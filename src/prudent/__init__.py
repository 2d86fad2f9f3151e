"""Make any classifier keep a promise, and know when it stops."""

from importlib import import_module
from typing import Any

from prudent._version import __version__

# name -> module that defines it; nothing is imported before it is asked for.
_PUBLIC = {
    "ClassMoments": "prudent.core.moments",
    "RawMoments": "prudent.core.moments",
    "Assumption": "prudent.core.assumptions",
    "Guarantee": "prudent.core.guarantee",
    "GuaranteeCheck": "prudent.core.guarantee",
    "predict_set": "prudent.estimator_tools",
    "compare": "prudent.comparison",
    "Comparison": "prudent.comparison",
    "load": "prudent.persistence",
    "save": "prudent.persistence",
    "MinimaxProbabilityClassifier": "prudent.minimax",
    "MinimaxOutlierDetector": "prudent.minimax",
    "OptimisticScoreClassifier": "prudent.optimistic",
    "OptimisticScoreClassifierCV": "prudent.optimistic",
    "ImpreciseDiscriminantAnalysis": "prudent.imprecise",
    "ImpreciseDiscriminantAnalysisCV": "prudent.imprecise",
    "RiskCalibratedClassifier": "prudent.calibration",
    "ConformalClassifier": "prudent.conformal",
    "ConformalDetector": "prudent.conformal",
    "select_unusual": "prudent.conformal",
    "RejectionGame": "prudent.adversarial",
    "LowDensityRejector": "prudent.adversarial",
    "SelectiveClassifier": "prudent.certification",
    "NeymanPearsonClassifier": "prudent.certification",
    "BestClassifier": "prudent.evaluation.best",
    "BinnedCalibrationClassifier": "prudent.certification",
    "certify": "prudent.certification",
    "certify_thresholds": "prudent.certification",
    "plan": "prudent.certification",
    "queue_limit": "prudent.certification",
    "promise": "prudent.rules.promise",
    "Rule": "prudent.rules.rule",
    "ThresholdBands": "prudent.rules.bands",
    "PromiseMonitor": "prudent.monitoring",
    "DriftMonitor": "prudent.monitoring",
    "audit": "prudent.auditing.run",
}
__all__ = ["__version__", *_PUBLIC]
_SUBPACKAGES = {"dask", "datasets", "io", "metrics", "model_selection", "plots"}


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"prudent.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__) | _SUBPACKAGES)
