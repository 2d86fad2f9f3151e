"""Single-class classification against an adversary (El-Yaniv and Nisenson)."""

from prudent.adversarial.density.detector import LowDensityRejector
from prudent.adversarial.game.laws import (
    divergence_bound,
    divergence_of,
    has_property,
    type_law,
)
from prudent.adversarial.game.model import OperatingPoint, SecurityCurve
from prudent.adversarial.game.rejection_game import RejectionGame

__all__ = [
    "LowDensityRejector",
    "OperatingPoint",
    "RejectionGame",
    "SecurityCurve",
    "divergence_bound",
    "divergence_of",
    "has_property",
    "type_law",
]
