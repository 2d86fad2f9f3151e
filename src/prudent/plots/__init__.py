"""Displays: a `from_...` method draws and returns one, `frame` gives its numbers."""

from importlib import import_module
from typing import Any

# name -> module; lazy because a display may need what another one does not.
_PUBLIC = {
    "AuditDisplay": "prudent.plots.audit_display",
    "CalibrationPathDisplay": "prudent.plots.paths",
    "ChoiceDisplay": "prudent.plots.choice_display",
    "ClassErrorDisplay": "prudent.plots.answer_curves",
    "CostCurveDisplay": "prudent.plots.cost_curve",
    "DetectorScoreDisplay": "prudent.plots.alarms",
    "DriftDisplay": "prudent.plots.alarms",
    "FalseAlarmDisplay": "prudent.plots.guarantees",
    "GuaranteeDisplay": "prudent.plots.guarantees",
    "ImprecisionPathDisplay": "prudent.plots.paths",
    "MinimaxGeometryDisplay": "prudent.plots.minimax_geometry",
    "MonitorDisplay": "prudent.plots.monitor_display",
    "ReliabilityDisplay": "prudent.plots.reliability",
    "SecurityCurveDisplay": "prudent.plots.security_curve",
    "SelectiveDisplay": "prudent.plots.answer_curves",
    "SetRegionDisplay": "prudent.plots.set_regions",
    "SetSizeDisplay": "prudent.plots.set_sizes",
    "SubgroupDisplay": "prudent.plots.subgroup_display",
    "ThresholdBandsDisplay": "prudent.plots.threshold_bands",
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
