"""States of the watchers in strict JSON types, and checks both of them make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prudent._version import __version__
from prudent.core.guarantee import Guarantee

FORMAT = 1


def check_format(state: dict[str, Any]) -> None:
    """Refuse a state that a newer prudent wrote."""
    if state["format"] > FORMAT:
        raise ValueError(
            f"the state has format {state['format']}, this is prudent {__version__} "
            f"with format {FORMAT}. Install a newer prudent."
        )


def check_counts(*arrays: Any) -> None:
    """Refuse sums and stakes below 0, which no run leaves."""
    if not all(np.all(np.asarray(array) >= 0) for array in arrays):
        raise ValueError("the state holds a negative sum, which no run leaves.")


def number(value: float) -> float | str:
    """Return a float as strict JSON has it: "inf" is text, which `float` reads."""
    return value if math.isfinite(value) else repr(value)


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """Return the fields of a promise in JSON types."""
    scope = guarantee.scope
    if isinstance(scope, np.generic):
        scope = scope.item()
    return {
        "quantity": guarantee.quantity,
        "bound": guarantee.bound,
        "sense": guarantee.sense,
        "confidence": guarantee.confidence,
        "average_over": guarantee.average_over,
        "assumptions": list(guarantee.assumptions),
        "scope": scope,
        "evidence": {name: number(float(v)) for name, v in guarantee.evidence.items()},
        "source": guarantee.source,
    }


def guarantee_from_dict(fields: dict[str, Any]) -> Guarantee:
    """Return the promise that `guarantee_to_dict` described."""
    evidence = {name: float(value) for name, value in fields["evidence"].items()}
    return Guarantee(
        **{
            **fields,
            "assumptions": tuple(fields["assumptions"]),
            "evidence": evidence,
        }
    )
