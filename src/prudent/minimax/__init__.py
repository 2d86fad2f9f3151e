"""Minimax probability machines: the best worst-case accuracy from two moments."""

from prudent.minimax.classifier import MinimaxProbabilityClassifier
from prudent.minimax.detector import MinimaxOutlierDetector
from prudent.minimax.solver import MinimaxSolution, solve

__all__ = [
    "MinimaxOutlierDetector",
    "MinimaxProbabilityClassifier",
    "MinimaxSolution",
    "solve",
]
