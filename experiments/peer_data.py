"""Rows for the comparison with other libraries, and the time a call takes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from experiments.benchmark_data import folder, load

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
MOST_ROWS = 1000
STORED = ("sonar", "heart", "vehicle", "vowel", "pima_diabetes", "segment")


def names(quick: bool) -> tuple[str, ...]:
    """Bundled sets, and the stored ones where their folder is."""
    if quick:
        return "iris", "wine"
    return (*BUNDLED, *(STORED if folder().is_dir() else ()))


@cache
def rows(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """At most 1000 complete rows without constant columns; classes from 0 on."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load(name)
    complete = np.isfinite(X).all(axis=1)
    X, y = X[complete], y[complete]
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(
            X, y, train_size=MOST_ROWS, stratify=y, random_state=0
        )
    return X[:, np.ptp(X, axis=0) > 0], np.unique(y, return_inverse=True)[1]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result of a call and its CPU seconds; what libraries warn about is silenced."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call()
    return result, time.process_time() - start
