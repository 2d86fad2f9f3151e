"""Minimax probability machines: the best worst-case accuracy from two moments."""

from prudent.minimax.classifier import MinimaxProbabilityClassifier
from prudent.minimax.detector import MinimaxOutlierDetector
from prudent.minimax.planes import guarantees_of, worst_case_error
from prudent.minimax.solver import MinimaxSolution, solve

__all__ = [
    "MinimaxOutlierDetector",
    "MinimaxProbabilityClassifier",
    "MinimaxSolution",
    "guarantees_of",
    "solve",
    "worst_case_error",
]
