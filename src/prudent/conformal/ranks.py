"""Scores of a bag that depend on the label of the new row, and categories of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from prudent.core.types import FloatArray, IntArray

# What has a promise of its own.
By = Literal["class", "group"] | None


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of training rows that depend on whether a new row has their label."""

    own: FloatArray  # (m, n): score of each training row if each new row has its label
    other: FloatArray  # (m, n): and if it has another
    asked: FloatArray  # (m, n_classes): scores of the new rows under each label


def damped(scores: FloatArray) -> FloatArray:
    """Sign times log(1 + size): scores of unlike spread on one scale."""
    return np.copysign(np.log1p(np.abs(scores)), scores)


def groups_of(X: Any, condition: Any) -> NDArray[Any] | None:
    """Integer group of each row; None unless `condition` is a function of rows."""
    if not callable(condition):
        return None
    groups = np.asarray(condition(X))
    if groups.shape != (_num_samples(X),) or groups.dtype.kind not in "iub":
        raise ValueError(
            "`condition` must give one integer for each row, got an array of shape "
            f"{groups.shape} and type {groups.dtype}."
        )
    return groups


def categories_of(
    X: Any, codes: IntArray, classes: NDArray[Any], condition: Any
) -> tuple[By, tuple[Any, ...], IntArray]:
    """What rows rank among, the names of these categories, and that of each row."""
    if condition is None:
        return None, (None,), np.zeros(len(codes), dtype=np.intp)
    if isinstance(condition, str):
        return "class", tuple(classes.tolist()), codes
    groups = np.asarray(groups_of(X, condition))
    names, category = np.unique(groups, return_inverse=True)
    return "group", tuple(names.tolist()), category.astype(np.intp)
