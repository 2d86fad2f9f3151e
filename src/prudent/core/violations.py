"""Which rows a promise is about, and which of them break it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import NOT_A_RATE, Guarantee
from prudent.core.types import BoolArray

#: Promises of detectors, and the answer that breaks them.
ALARMS = {"false alarm rate": -1, "miss rate": 1}


def violated_rows(
    guarantee: Guarantee,
    y_true: ArrayLike,
    y_answer: ArrayLike,
    classes: ArrayLike | None = None,
) -> tuple[BoolArray, BoolArray]:
    """Rows that a promise is about, and rows that break it, each of shape (n,).

    Answers are labels, 1 and -1 of a detector, or sets (n, K) of `classes`. A row
    without a label is never counted. Alarms and misses are counted on the rows given,
    all of them ordinary or anomalous; a false alarm of one class on its rows. A row of
    a class that the promise assumes away never breaks it.
    """
    truth, answer = np.asarray(y_true), np.asarray(y_answer)
    if truth.ndim != 1 or len(truth) != len(answer):
        raise ValueError(
            "`y_true` and `y_answer` must have one entry per row, got shapes "
            f"{truth.shape} and {answer.shape}."
        )
    scope, quantity = guarantee.scope, guarantee.quantity
    if quantity in NOT_A_RATE:
        raise ValueError(f"a {quantity} is not counted by rows: use `update`.")
    counted = _labelled(truth)
    violated: Any
    if answer.ndim == 2:
        violated = _lacking(truth, answer, classes)
        if quantity == "selective error rate":
            counted &= np.count_nonzero(answer, axis=1) == 1
    elif quantity == "coverage":
        raise ValueError(
            "coverage is counted by sets: give the bool matrix of `predict_set` and "
            "`classes`."
        )
    elif quantity == "selective error rate":
        raise ValueError(
            "a selective error rate is counted by sets, because labels do not say "
            "which rows were answered: give the bool matrix of `predict_set` and "
            "`classes`."
        )
    else:
        violated = answer == ALARMS[quantity] if quantity in ALARMS else truth != answer
    if scope is not None and quantity != "miss rate":
        counted &= truth == scope
    violated = np.asarray(violated, dtype=bool)
    if Assumption.KNOWN_LABEL in guarantee.assumptions and classes is not None:
        violated &= np.isin(truth, np.asarray(classes))
    return counted, violated


def _lacking(
    truth: NDArray[Any], sets: NDArray[Any], classes: ArrayLike | None
) -> BoolArray:
    """Whether the true class is absent from each set."""
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
    return ~np.any(sets.astype(bool) & (truth[:, None] == labels), axis=1)


def _labelled(truth: NDArray[Any]) -> BoolArray:
    if truth.dtype.kind == "f":
        return ~np.isnan(truth)
    if truth.dtype.kind == "O":
        return np.array([v is not None and v == v for v in truth.tolist()], dtype=bool)
    return np.ones(len(truth), dtype=bool)
