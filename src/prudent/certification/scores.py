"""How sure a fitted classifier is of its answers, as numbers that can be ranked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.frozen import FrozenEstimator

from prudent.core.classes import max_probability, told_apart
from prudent.core.types import FloatArray

Scoring = Literal["max_probability", "margin"] | Callable[[Any, Any], Any]


def class_scores(model: Any, X: Any) -> FloatArray:
    """Score of every class (n_rows, n_classes): higher is more likely.

    `predict_proba`, else `decision_function` (binary: minus and plus its value).
    """
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    decision = _decision(model, X)
    if decision.ndim == 1:
        return np.column_stack([-decision, decision])
    if decision.shape[1] != len(model.classes_):
        raise TypeError(
            f"{name_of(model)}: `decision_function` gives {decision.shape[1]} "
            f"columns for {len(model.classes_)} classes; one score a class is needed."
        )
    return decision


def answer_scores(model: Any, X: Any, scoring: Scoring) -> FloatArray:
    """Score of each row (n_rows,) by which it is answered first, never NaN."""
    if callable(scoring):
        scores = np.asarray(scoring(model, X), dtype=np.float64)
    elif hasattr(model, "predict_proba") and (
        scoring == "max_probability" or not hasattr(model, "decision_function")
    ):
        scores = _sureness(class_scores(model, X), scoring)
    else:
        scores = _margin(_decision(model, X))
    if scores.ndim != 1:
        raise ValueError(
            f"`scoring` must give one score for each row, got shape {scores.shape}."
        )
    n_unknown = int(np.isnan(scores).sum())
    if n_unknown:
        raise ValueError(
            f"`scoring` gave NaN for {n_unknown} of {len(scores)} rows; rows without "
            "a score cannot be ranked."
        )
    return scores


def name_of(model: Any) -> str:
    """Class of a model; of a frozen one what is inside."""
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    return type(inner).__name__


def check_scoring(scoring: Any) -> None:
    """Refuse a `scoring` that is neither a name nor a callable."""
    if not (callable(scoring) or scoring in ("max_probability", "margin")):
        raise ValueError(
            "`scoring` must be 'max_probability', 'margin' or a callable, got "
            f"{scoring!r}."
        )


def _sureness(probabilities: FloatArray, scoring: Scoring) -> FloatArray:
    """Largest probability or its lead, and at 1 the log odds."""
    if scoring == "max_probability":
        return max_probability(probabilities)
    return told_apart(_margin(probabilities), probabilities)


def _margin(scores: FloatArray) -> FloatArray:
    """Absolute value of one column, lead of the best over the second of several."""
    if scores.ndim == 1:
        return np.abs(scores)
    two_best = np.partition(scores, -2, axis=1)[:, -2:]
    lead: FloatArray = two_best[:, 1] - two_best[:, 0]
    return lead


def _decision(model: Any, X: Any) -> FloatArray:
    if not hasattr(model, "decision_function"):
        raise TypeError(
            f"{name_of(model)} has neither predict_proba nor "
            "decision_function, so its answers cannot be ranked."
        )
    return np.asarray(model.decision_function(X), dtype=np.float64)
