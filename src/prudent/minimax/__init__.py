"""Minimax probability machines: the best worst-case accuracy from two moments."""

from prudent.minimax.classifier import MinimaxProbabilityClassifier
from prudent.minimax.solver import MinimaxSolution, solve

__all__ = ["MinimaxProbabilityClassifier", "MinimaxSolution", "solve"]
