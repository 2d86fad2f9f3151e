"""Single-class classification against an adversary (El-Yaniv and Nisenson)."""

from prudent.adversarial.density.detector import LowDensityRejector
from prudent.adversarial.game.divergence import divergence_bound, divergence_of
from prudent.adversarial.game.model import OperatingPoint, SecurityCurve
from prudent.adversarial.game.properties import has_property
from prudent.adversarial.game.rejection_game import RejectionGame
from prudent.adversarial.game.types import type_law

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
