"""Which of many rows or hypotheses to call out, with a bound on wrong calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from prudent.core.assumptions import Assumption
from prudent.core.binomial import check_fraction
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown

NullShare = Literal["one", "storey"]


class Selection(NamedTuple):
    """Rows selected from a batch.

    Attributes
    ----------
    mask : ndarray of bool, shape (n_rows,)
        True where a row is selected.
    p_values : ndarray of shape (n_rows,)
        P-values the selection was made by; with `confidence`, the adjusted ones.
    guarantee : Guarantee
        The false discovery rate: expected share of ordinary rows among the selected.
    """

    mask: BoolArray
    p_values: FloatArray
    guarantee: Guarantee


def check_selection(rate: float, null_share: str, confidence: float | None) -> None:
    """Refuse settings out of range."""
    check_fraction("false_discovery_rate", rate)
    if null_share not in ("one", "storey"):
        raise ValueError(f"`null_share` must be 'one' or 'storey', got {null_share!r}.")
    within = isinstance(confidence, Real) and 0 < confidence < 1
    if confidence is not None and not within:
        raise ValueError(
            f"`confidence` must lie in (0, 1) or be None, got {shown(confidence)}."
        )


def select_rows(
    p_values: FloatArray,
    n_calibration: int,
    *,
    rate: float,
    null_share: NullShare = "one",
    confidence: float | None = None,
) -> Selection:
    """Select rows by their conformal p-values (Benjamini and Hochberg).

    The r smallest p-values, each (1 + #{s_i <= s}) / (m + 1) among m = `n_calibration`
    scores, with p_(r) n <= r q, for the largest such r. Split conformal p-values depend
    positively, so the rate is at most q times the share of ordinary rows (Bates,
    Candes, Lei, Romano and Sesia 2023, Annals of Statistics 51), which is taken as 1
    or estimated from the large p-values ("storey"). Without `confidence` the rate
    holds on average over calibration rows; else given them, with this probability.
    """
    n = len(p_values)
    if confidence is not None:
        p_values = given_calibration(p_values, n_calibration, confidence)
    share = 1.0
    if null_share == "storey" and n:
        above = math.ceil((n_calibration + 1) / 2) / (n_calibration + 1)
        n_above = int(np.sum(p_values > above))
        # Above 1, too: cut off there, its mean would no longer be large enough.
        share = (1 + n_above) / (n * (1 - above))
    in_order = np.sort(p_values)
    allowed = np.arange(1, n + 1) * (rate / share) * (1 + 1e-12)
    passed = np.flatnonzero(in_order * n <= allowed)
    mask = p_values <= in_order[passed[-1]] if len(passed) else np.zeros(n, dtype=bool)
    guarantee = Guarantee(
        quantity="false discovery rate",
        bound=rate,
        sense="<=",
        confidence=confidence,
        average_over="calibration rows" if confidence is None else None,
        assumptions=(
            *(() if confidence is None else (Assumption.INDEPENDENT_NORMAL,)),
            Assumption.NOT_CHOSEN_IN_BATCH,
        ),
        evidence={
            "calibration rows": float(n_calibration),
            "n": float(n),
            "selected": float(np.sum(mask)),
        },
        source="Bates, Candes, Lei, Romano and Sesia 2023",
    )
    return Selection(mask, p_values, guarantee)


def given_calibration(
    p_values: FloatArray, n_calibration: int, confidence: float
) -> FloatArray:
    """P-values that are valid given the calibration rows with probability `confidence`.

    Of rank i and j = m + 1 - i, with kk = ceil(m / 2):

        h = 1 - (1-c)^(1/kk) [j! (m-kk)! / ((j-kk)! m!)]^(1/kk),    1 where j < kk

    (the Simes variant of Bates et al. 2023).
    """
    m = n_calibration
    half = math.ceil(m / 2)
    j = m + 1 - np.rint(p_values * (m + 1))
    inside = j >= half
    power = (
        math.log1p(-confidence)
        + gammaln(np.where(inside, j, half) + 1)
        - gammaln(np.where(inside, j, half) - half + 1)
        + gammaln(m - half + 1)
        - gammaln(m + 1)
    ) / half
    return np.where(inside, -np.expm1(power), 1.0)


def rows_needed(
    n: int, n_calibration: int, rate: float, confidence: float | None
) -> int:
    """Fewest rows that can be selected: all of them with the smallest p-value."""
    smallest = np.array([1 / (n_calibration + 1)])
    if confidence is not None:
        smallest = given_calibration(smallest, n_calibration, confidence)
    return math.ceil(n * float(smallest[0]) / rate * (1 - 1e-12))


def holm(p_values: Sequence[float]) -> FloatArray:
    """p-values corrected so that all statements at one level hold at once.

    Holm (1979), Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> from prudent.core.selection import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)
