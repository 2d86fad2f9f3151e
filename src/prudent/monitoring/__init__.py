"""The promise after deployment: watched with one level of wrong alarm for its life."""

from prudent.monitoring.broken_promises import broken_promises
from prudent.monitoring.drift_monitor import DriftMonitor
from prudent.monitoring.promise_monitor import PromiseMonitor

__all__ = ["DriftMonitor", "PromiseMonitor", "broken_promises"]
