"""Displays: a `from_...` method draws and returns one, `frame` gives its numbers."""

from importlib import import_module
from typing import Any

# name -> module; lazy because a display may need what another one does not.
_PUBLIC = {
    "AuditDisplay": "prudent.plots.evidence",
    "CalibrationPathDisplay": "prudent.plots.families",
    "ChoiceDisplay": "prudent.plots.methods",
    "ClassErrorDisplay": "prudent.plots.thresholds",
    "CostCurveDisplay": "prudent.plots.methods",
    "DetectorScoreDisplay": "prudent.plots.thresholds",
    "DriftDisplay": "prudent.plots.evidence",
    "FalseAlarmDisplay": "prudent.plots.guarantees",
    "GuaranteeDisplay": "prudent.plots.guarantees",
    "ImprecisionPathDisplay": "prudent.plots.families",
    "MinimaxGeometryDisplay": "prudent.plots.families",
    "MonitorDisplay": "prudent.plots.evidence",
    "ReliabilityDisplay": "prudent.plots.reliability",
    "SecurityCurveDisplay": "prudent.plots.families",
    "SelectiveDisplay": "prudent.plots.thresholds",
    "SetRegionDisplay": "prudent.plots.set_regions",
    "SetSizeDisplay": "prudent.plots.guarantees",
    "SubgroupDisplay": "prudent.plots.guarantees",
    "ThresholdBandsDisplay": "prudent.plots.thresholds",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'prudent.plots' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
