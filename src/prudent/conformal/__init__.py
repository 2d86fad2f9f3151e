"""Conformal prediction: valid sets and alarms from few rows, for any law."""

from prudent.conformal.batch import select_unusual
from prudent.conformal.classifier import ConformalClassifier
from prudent.conformal.detector import ConformalDetector

__all__ = ["ConformalClassifier", "ConformalDetector", "select_unusual"]
