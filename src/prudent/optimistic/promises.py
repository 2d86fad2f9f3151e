"""What the method promises: nothing that could be held to unseen rows."""

from __future__ import annotations

from prudent.core.guarantee import Guarantee


def guarantees() -> tuple[Guarantee, ...]:
    """No promise: the balls lie around estimates.

    The bounds of scores and posteriors are exact over the balls. That a ball holds
    the true moments has a nominal level only: it needs Gaussian rows, the sample
    covariance and many of them.
    """
    return ()
