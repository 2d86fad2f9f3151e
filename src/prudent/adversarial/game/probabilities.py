"""Target distributions from what a caller has: checked, summing to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.types import FloatArray

_SUM_TOL = 1e-8
_SMALLEST = 1e-300  # below it 1 / p overflows


def check_probabilities(p: ArrayLike, name: str = "p") -> FloatArray:
    """Check a probability vector and rescale a sum off 1 by rounding."""
    return _normalised(_checked_sum(p, name), name)


def check_distributions(laws: ArrayLike, n_events: int, name: str) -> FloatArray:
    """Check one distribution over the events, or one a row; always of two axes."""
    rows = np.asarray(laws, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != n_events:
        raise ValueError(
            f"`{name}` must hold distributions over {n_events} events, one a row, got "
            f"shape {np.shape(laws)}."
        )
    names = [name] if len(rows) == 1 else [f"{name}[{i}]" for i in range(len(rows))]
    for row, label in zip(rows, names, strict=True):
        _checked_sum(row, label)
    return rows / rows.sum(axis=1, keepdims=True)


def frequencies(counts: ArrayLike, smoothing: float) -> FloatArray:
    """Share (counts + smoothing) / total of each event."""
    if not 0 <= smoothing < np.inf:
        raise ValueError(f"`smoothing` must be a number >= 0, got {smoothing!r}.")
    weights = _check_weights(counts, "counts")
    with np.errstate(over="ignore"):
        return _normalised(weights + smoothing, "counts")


def level_masses(values: ArrayLike, masses: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check levels given as event probability and total mass."""
    value, mass = (
        _check_weights(values, "values"),
        check_probabilities(masses, "masses"),
    )
    if value.shape != mass.shape:
        raise ValueError(
            "`values` and `masses` must have the same length, got "
            f"{len(value)} and {len(mass)}."
        )
    disagree = (value >= _SMALLEST) != (mass > 0)
    if disagree.any():
        at = int(np.flatnonzero(disagree)[0])
        raise ValueError(
            f"`values` and `masses` must be both 0 or both at least {_SMALLEST}, "
            f"got {float(value[at])!r} and {float(mass[at])!r} at level {at}."
        )
    return value, mass


def cell_probabilities(density: ArrayLike, cell_volumes: ArrayLike) -> FloatArray:
    """Probability density x volume of each cell, normalised."""
    heights = _check_weights(density, "density")
    volumes = _check_weights(np.atleast_1d(cell_volumes), "cell_volumes")
    if len(volumes) not in (1, len(heights)) or not (volumes > 0).all():
        raise ValueError(
            f"`cell_volumes` must be one positive number or {len(heights)} of them, "
            f"got {volumes.tolist()}."
        )
    # Scaled by powers of two, which is exact, so that no product overflows.
    exponents = np.frexp(heights.max())[1], np.frexp(volumes.max())[1]
    return _normalised(
        np.ldexp(heights, -exponents[0]) * np.ldexp(volumes, -exponents[1]), "density"
    )


def _checked_sum(p: ArrayLike, name: str) -> FloatArray:
    mass = _check_weights(p, name)
    with np.errstate(over="ignore"):
        total = float(mass.sum())
    if abs(total - 1) > _SUM_TOL:
        raise ValueError(f"`{name}` must sum to 1, got a sum of {total!r}.")
    return mass


def check_unit_interval(
    values: ArrayLike, what: str, length: int | None = None
) -> FloatArray:
    """Check a vector of numbers in [0, 1]; `what` begins the error's sentence."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        raise ValueError(f"{what} in [0, 1], got shape {vector.shape}.")
    inside = (vector >= 0) & (vector <= 1)
    if not inside.all():
        at = int(np.flatnonzero(~inside)[0])
        raise ValueError(f"{what} in [0, 1], got {float(vector[at])!r} at {at}.")
    return vector


def _check_weights(weights: ArrayLike, name: str) -> FloatArray:
    vector = np.asarray(weights, dtype=np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(
            f"`{name}` must be a non-empty vector, got shape {vector.shape}."
        )
    lowest, highest = float(vector.min()), float(vector.max())
    if not (lowest >= 0 and highest < np.inf):
        bad = int(np.flatnonzero(~((vector >= 0) & (vector < np.inf)))[0])
        raise ValueError(
            f"`{name}` must hold finite numbers >= 0, got {float(vector[bad])!r} at "
            f"{bad}."
        )
    return vector


def _normalised(weights: FloatArray, name: str) -> FloatArray:
    highest = float(weights.max())
    if not 0 < highest < np.inf:
        raise ValueError(f"`{name}` must have a positive finite sum, got {highest!r}.")
    # Scaled by a power of two, which is exact, so that no sum overflows.
    scaled = np.ldexp(weights, -np.frexp(highest)[1])
    p: FloatArray = scaled / scaled.sum()
    lowest = float(np.min(p, where=p > 0, initial=1.0))
    if lowest < _SMALLEST:
        raise ValueError(
            f"`{name}` gives an event the probability {lowest!r}, below "
            f"{_SMALLEST}: round it to 0 (always rejected)."
        )
    return p
