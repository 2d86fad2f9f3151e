"""Single-class classification against an adversary (El-Yaniv and Nisenson)."""

from prudent.adversarial.detector import LowDensityRejector
from prudent.adversarial.game import SecurityCurve
from prudent.adversarial.rejection_game import RejectionGame

__all__ = ["LowDensityRejector", "RejectionGame", "SecurityCurve"]
