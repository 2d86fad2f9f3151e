"""Single-class classification against an adversary (El-Yaniv and Nisenson)."""

from prudent.adversarial.game import SecurityCurve
from prudent.adversarial.rejection_game import RejectionGame

__all__ = ["RejectionGame", "SecurityCurve"]
