"""The promise after deployment: watched with one level of wrong alarm for its life."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prudent.monitoring.state import broken_promises

if TYPE_CHECKING:
    from prudent.monitoring.drift_monitor import DriftMonitor
    from prudent.monitoring.promise_monitor import PromiseMonitor

__all__ = ["DriftMonitor", "PromiseMonitor", "broken_promises"]
# name -> module; on demand, because certifying needs no compiled kernels of watching.
_PUBLIC = {
    "DriftMonitor": "prudent.monitoring.drift_monitor",
    "PromiseMonitor": "prudent.monitoring.promise_monitor",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'prudent.monitoring' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
