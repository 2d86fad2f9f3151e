"""Risk-based calibration: closed-form classifiers trained to explain the labels."""

from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.classifier import RiskCalibratedClassifier
from prudent.calibration.diagonal import DiagonalFamily, TiedDiagonalFamily
from prudent.calibration.families import Family, PriorStrengths
from prudent.calibration.matrices import FullFamily, TiedFamily

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
