"""Risk-based calibration: closed-form classifiers trained to explain the labels."""

from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.classifier import RiskCalibratedClassifier
from prudent.calibration.families import Family, PriorStrengths
from prudent.calibration.gaussian import (
    DiagonalFamily,
    FullFamily,
    TiedDiagonalFamily,
    TiedFamily,
)

__all__ = [
    "CategoricalFamily",
    "DiagonalFamily",
    "Family",
    "FullFamily",
    "MixedFamily",
    "PriorStrengths",
    "RiskCalibratedClassifier",
    "TiedDiagonalFamily",
    "TiedFamily",
]
