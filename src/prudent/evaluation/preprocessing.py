"""Text and missing cells, left to scikit-learn in front of a method, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from prudent.core.types import FloatArray

Filling = Literal["fill", "mean"]
# Levels of a text column below this share of the rows are one level together.
RARE_LEVEL = 0.01


def preprocessing(
    X: FloatArray, is_text: Sequence[bool], *, missing: Filling = "fill"
) -> ColumnTransformer | None:
    """Transformer that turns a table into finite numbers; None if it holds such.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numbers, and codes of the words of text columns; missing cells are NaN.
    is_text : sequence of bool, length d
        Columns that hold codes.
    missing : {"fill", "mean"}, default="fill"
        Median of the column and an indicator column, or the mean; text columns get
        their most frequent word.
    """
    gaps: Any = np.isnan(X).any(axis=0)
    text = np.flatnonzero(is_text)
    if not gaps.any() and not len(text):
        return None
    numbers = np.flatnonzero(~np.asarray(is_text, dtype=bool))
    strategy, indicator = ("median", True) if missing == "fill" else ("mean", False)
    steps: list[tuple[str, Any, Any]] = []
    if len(numbers):
        filled: Any = "passthrough"
        if gaps[numbers].any():
            filled = SimpleImputer(
                strategy=strategy, add_indicator=indicator, keep_empty_features=True
            )
        steps.append(("numbers", filled, numbers.tolist()))
    if len(text):
        encoded: Any = OneHotEncoder(
            drop="first",
            min_frequency=RARE_LEVEL,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        if gaps[text].any():
            filled = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
            encoded = make_pipeline(filled, encoded)
        steps.append(("words", encoded, text.tolist()))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


def in_front(preparation: BaseEstimator | None, estimator: Any) -> Any:
    """The method with the preprocessing in front of it, if there is any to do."""
    if preparation is None:
        return estimator
    return Pipeline([("preparation", preparation), ("method", estimator)])


def note(X: FloatArray, is_text: Sequence[bool], *, missing: Filling) -> str | None:
    """Say what is done to the table."""
    parts = []
    n_text = int(np.count_nonzero(is_text))
    if n_text:
        parts.append(f"{n_text} text column{'s' if n_text > 1 else ''} encoded")
    n_missing = int(np.isnan(X).sum())
    if n_missing:
        word = "median" if missing == "fill" else "mean"
        parts.append(
            f"{n_missing} missing cell{'s' if n_missing > 1 else ''} filled ({word} of "
            "the training rows)"
        )
    if not parts:
        return None
    return f"{', '.join(parts)}; --categorical, --missing choose"
