"""From labels and answers to one loss per counted row."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray


def losses_of(
    guarantee: Guarantee,
    y_true: ArrayLike,
    y_answer: ArrayLike,
    classes: ArrayLike | None = None,
) -> FloatArray:
    """0 or 1 for each row that a promise is about, in order; 1 violates it.

    Rows without a label are left out; answers are labels, 1 and -1, or sets (n, K).
    """
    truth, answer = np.asarray(y_true), np.asarray(y_answer)
    if truth.ndim != 1 or len(truth) != len(answer):
        raise ValueError(
            "`y_true` and `y_answer` must have one entry per row, got shapes "
            f"{truth.shape} and {answer.shape}."
        )
    labelled = _labelled(truth)
    truth, answer = truth[labelled], answer[labelled]
    scope, quantity = guarantee.scope, guarantee.quantity
    if answer.ndim == 2:
        counted, violated = _by_sets(guarantee, truth, answer, classes)
    elif quantity == "coverage":
        raise ValueError(
            "coverage is counted by sets: give the bool matrix of `predict_set` and "
            "`classes`."
        )
    elif quantity in ("false alarm rate", "miss rate"):
        counted = np.ones(len(truth), dtype=bool)
        if quantity == "false alarm rate" and scope is not None:
            counted = _equal(truth, scope)
        violated = _equal(answer, -1 if quantity == "false alarm rate" else 1)
    elif quantity in ("error rate", "class error rate", "selective error rate"):
        counted = np.ones(len(truth), dtype=bool)
        if scope is not None:
            counted = _equal(truth, scope)
        violated = np.asarray(truth != answer, dtype=bool)
    else:
        raise ValueError(f"a {quantity} is not counted by rows: use `update`.")
    return np.asarray(violated[counted], dtype=np.float64)


def _by_sets(
    guarantee: Guarantee,
    truth: NDArray[Any],
    sets: NDArray[Any],
    classes: ArrayLike | None,
) -> tuple[BoolArray, BoolArray]:
    """Rows that count, and which sets lack what they should hold."""
    if classes is None:
        raise ValueError(
            "`classes`, the labels of the columns of the sets, is missing."
        )
    labels = np.asarray(classes)
    if sets.shape[1] != len(labels):
        raise ValueError(
            f"the sets have {sets.shape[1]} columns, `classes` has {len(labels)} "
            "labels."
        )
    sets, scope = sets.astype(bool), guarantee.scope
    lacking = ~np.any(sets & (truth[:, None] == labels[None, :]), axis=1)
    counted = np.ones(len(truth), dtype=bool)
    if guarantee.quantity == "selective error rate":
        counted = sets.sum(axis=1) == 1
    if scope is not None:
        counted &= _equal(truth, scope)
    return counted, lacking


def _equal(values: NDArray[Any], label: Any) -> BoolArray:
    """Compare with one label; a label of another kind is nowhere equal."""
    return np.array([bool(value == label) for value in values.tolist()], dtype=bool)


def _labelled(truth: NDArray[Any]) -> BoolArray:
    if truth.dtype.kind == "f":
        return ~np.isnan(truth)
    if truth.dtype.kind == "O":
        return np.array([v is not None and v == v for v in truth.tolist()], dtype=bool)
    return np.ones(len(truth), dtype=bool)


def as_losses(losses: ArrayLike) -> FloatArray:
    """Losses in [0, 1], one a row."""
    try:
        array = np.asarray(losses, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(
            f"losses must be numbers in [0, 1], one per row, got {losses!r:.64}."
        ) from None
    outside = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"losses must lie in [0, 1], got {float(array[row]):g} at row {row}."
        )
    return array


def checked_batch(violations: Any, n: Any) -> tuple[float, int]:
    """Violations in [0, n] of n >= 0 rows."""
    if not isinstance(n, Integral) and not (isinstance(n, float) and n.is_integer()):
        raise ValueError(f"`n` must be an integer >= 0, got {n}.")
    if n < 0:
        raise ValueError(f"`n` must be an integer >= 0, got {int(n)}.")
    if not 0 <= violations <= n:
        raise ValueError(f"`violations` must lie in [0, {int(n)}], got {violations}.")
    return float(violations), int(n)
