"""Minimax probability machines: the best worst-case accuracy from two moments."""

from prudent.minimax.classification.classifier import MinimaxProbabilityClassifier
from prudent.minimax.curve import ParetoFrontier
from prudent.minimax.linear_classifier import (
    best_intercept,
    guarantees_of,
    worst_case_error,
)
from prudent.minimax.one_class.detector import MinimaxOutlierDetector
from prudent.minimax.solver import MinimaxSolution, solve

__all__ = [
    "MinimaxOutlierDetector",
    "MinimaxProbabilityClassifier",
    "MinimaxSolution",
    "ParetoFrontier",
    "best_intercept",
    "guarantees_of",
    "solve",
    "worst_case_error",
]
