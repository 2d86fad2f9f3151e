"""Several e-values at once: which of many promises are broken."""

from __future__ import annotations

import numpy as np

from prudent.core.types import BoolArray, FloatArray


def bonferroni(peaks: FloatArray, level: float) -> BoolArray:
    """Peaks of at least P / level: one false one among P has probability <= level."""
    return np.asarray(peaks >= len(peaks) / level)


def e_bh(e_values: FloatArray, level: float) -> BoolArray:
    """The r largest e-values of at least P / (r level), for the largest such r.

    The expected share of false ones among those named is at most `level` whatever
    the dependence (Wang and Ramdas 2022). Peaks are no e-values.
    """
    order = np.argsort(-e_values, kind="stable")
    ranks = np.arange(1, len(e_values) + 1)
    passed = np.flatnonzero(e_values[order] * ranks * level >= len(e_values))
    named = np.zeros(len(e_values), dtype=bool)
    if len(passed):
        named[order[: passed[-1] + 1]] = True
    return named
