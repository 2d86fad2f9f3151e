"""What the method promises: nothing that could be held to unseen rows."""

from __future__ import annotations

from prudent.core.guarantee import Guarantee


def guarantees() -> tuple[Guarantee, ...]:
    """No promise: sets are exact for the boxes, but no box surely holds the truth.

    For sets with a coverage that is promised, use conformal prediction.
    """
    return ()
