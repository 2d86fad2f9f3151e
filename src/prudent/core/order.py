"""Whether rows in the order of their times are exchangeable, and splits by time.

If they are, every order of the rows is as likely as any other, whatever their law. The
columns are put to ranks, R, centred and scaled to standard deviation 1; what changes
in place shows in sums of R, what changes in spread in sums of R^2, scaled likewise.
With S_t the sum over the first t of n rows

    statistic = max over columns and t of |S_t| / sqrt(t (n - t) / n),

t = round(n s), s = 0.05, 0.075, ..., 0.95, and among B random orders the p-value
(1 + #{statistics at least that of the rows}) / (B + 1) is at most e with probability
at most e (E. L. Lehmann and J. P. Romano (2005), Testing statistical hypotheses, 15.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from prudent.core.types import BoolArray, FloatArray, IntArray

SHARES = np.arange(2, 39) / 40
#: Of more rows every k-th is looked at.
MOST_ROWS = 5000
#: Statistics that differ by rounding are equal, which can only raise the p-value.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OrderTest:
    """How strongly rows speak against being exchangeable in time.

    Attributes
    ----------
    p_value : float
        In (0, 1]; at most e with probability at most e if they are.
    statistic : float
        Largest standardised sum of scaled ranks, or of their squares.
    column : int
        The column that has it.
    row : int
        Number of rows, in the order of time, before the change that it suggests.
    of_spread : bool
        Whether the squares have it: a change of spread, not of place.
    """

    p_value: float
    statistic: float
    column: int
    row: int
    of_spread: bool


def order_test(
    columns: FloatArray,
    *,
    folds: IntArray | None = None,
    n_orders: int = 199,
    random_state: int = 0,
) -> OrderTest:
    """Test whether rows in the order of their times are exchangeable.

    Parameters
    ----------
    columns : ndarray of shape (n, d)
        Rows in the order of time, four at least, without NaN.
    folds : ndarray of shape (n,), default=None
        Fold of each row where a column was learned from the rows of other folds: rows
        change places within their folds alone, by which the column follows its rows.
    n_orders : int, default=199
        Random orders B, >= 1: the smallest possible p-value is 1 / (B + 1).
    random_state : int, default=0
        Draws the orders.

    Returns
    -------
    OrderTest

    Raises
    ------
    ValueError
        If there are fewer than four rows or no column.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.core.order import order_test
    >>> place = np.arange(40)
    >>> column = 7 * place % 11 + 4 * (place >= 24)
    >>> found = order_test(column[:, None])
    >>> found.p_value, found.row
    (0.015, 23)
    """
    values = np.asarray(columns, dtype=np.float64)
    if values.ndim != 2 or len(values) < 4 or not values.shape[1]:
        raise ValueError(
            "the test of order needs a column and at least 4 rows, got an array of "
            f"shape {values.shape}."
        )
    step = math.ceil(len(values) / MOST_ROWS)
    values = values[::step]
    parts = [np.arange(len(values))]
    if folds is not None:
        parts = [np.flatnonzero(folds[::step] == fold) for fold in np.unique(folds)]
    n, n_columns = values.shape
    ranks = _scaled(rankdata(values, axis=0))
    scaled = np.hstack([ranks, _scaled(np.square(ranks))])
    cuts = np.unique(np.clip(np.rint(n * SHARES).astype(np.intp), 1, n - 1))
    first = np.arange(n) < cuts[:, None]
    spread = np.sqrt(cuts * (n - cuts) / n)[:, None]

    def sums(order: IntArray) -> FloatArray:
        """Standardised sums of the first rows of an order, at each cut and column."""
        early = np.zeros((len(cuts), n))
        early[:, order] = first
        standardised: FloatArray = np.abs(early @ scaled) / spread
        return standardised

    observed = sums(np.arange(n))
    at, column = np.unravel_index(observed.argmax(), observed.shape)
    statistic = float(observed[at, column])
    random = np.random.RandomState(random_state)

    def drawn_order() -> IntArray:
        order = np.arange(n)
        for part in parts:
            order[part] = random.permutation(part)
        return order

    n_larger = sum(
        bool(sums(drawn_order()).max() >= statistic - ROUNDING) for _ in range(n_orders)
    )
    return OrderTest(
        p_value=(1 + n_larger) / (n_orders + 1),
        statistic=statistic,
        column=int(column) % n_columns,
        row=int(cuts[at]) * step,
        of_spread=bool(column >= n_columns),
    )


def _scaled(values: FloatArray) -> FloatArray:
    """Columns centred and scaled to standard deviation 1, or zero where constant."""
    centred = values - values.mean(axis=0)
    deviation = centred.std(axis=0)
    # Equal values of which rounding makes a deviation are equal.
    varies = deviation > ROUNDING * np.maximum(np.abs(values).max(axis=0), 1)
    scaled: FloatArray = np.where(varies, centred, 0.0) / np.where(
        varies, deviation, 1.0
    )
    return scaled


def checked_times(
    times: NDArray[Any], groups: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Time of each row (n,); with `groups` (n,) that of the latest row of its group.

    Numbers or dates of NumPy. Raises ValueError where values are missing or all equal.
    """
    missing: BoolArray = np.isnat(times) if times.dtype.kind in "Mm" else times != times
    n_missing = int(np.count_nonzero(missing))
    if n_missing:
        values = "value" if n_missing == 1 else "values"
        raise ValueError(f"time: {n_missing} missing {values}.")
    latest = times
    if groups is not None:
        _, place = np.unique(groups, return_inverse=True)
        order = np.argsort(times, kind="stable")
        of_group = np.empty(int(place.max()) + 1, dtype=times.dtype)
        of_group[place[order]] = times[order]  # the last one stays
        latest = of_group[place]
    if len(np.unique(latest)) < 2:
        raise ValueError("time has one value.")
    return latest


def as_number(time: Any) -> float:
    """A time as a number: that of a date are seconds since 1970 (UTC)."""
    if isinstance(time, np.datetime64):
        return int(time.astype("datetime64[us]").astype(np.int64)) / 1e6
    return float(time)


def latest_rows(times: NDArray[Any], share: float) -> tuple[IntArray, IntArray]:
    """Places of the earlier rows, and of the latest ones, at least a share of all.

    The latest ceil(share n) rows, extended back to a change of time. Raises ValueError
    where no earlier row would be left.
    """
    n_late = max(1, min(math.ceil(share * len(times) - 1e-9), len(times) - 1))
    first = np.sort(times)[len(times) - n_late]
    late = times >= first
    if late.all():
        raise ValueError(
            f"time: all rows are among the latest {share:g} or as late as these, so "
            "that none is left to learn from."
        )
    return np.flatnonzero(~late), np.flatnonzero(late)


def forward_folds(
    times: NDArray[Any], n_folds: int
) -> Sequence[tuple[IntArray, IntArray]]:
    """Folds that learn from earlier rows and test later ones.

    The distinct times are parted into `n_folds` + 1 blocks of nearly equal rows; fold j
    learns from blocks 1 to j and tests block j + 1. Raises ValueError where there are
    fewer distinct times than blocks.
    """
    distinct, place, count = np.unique(times, return_inverse=True, return_counts=True)
    n_blocks = n_folds + 1
    if len(distinct) < n_blocks:
        raise ValueError(
            f"time: {len(distinct)} distinct values, {n_blocks} are needed for "
            f"{n_folds} folds."
        )
    ends = np.cumsum(count)
    starts = [0]
    for j in range(1, n_blocks):
        # As many rows as wanted before it, but no block of the others empty.
        wanted = int(np.abs(ends - j * len(times) / n_blocks).argmin()) + 1
        most = len(distinct) - (n_blocks - j)
        starts.append(min(max(wanted, starts[-1] + 1), most))
    block = np.searchsorted(starts, place, side="right") - 1
    return [
        (np.flatnonzero(block < j), np.flatnonzero(block == j))
        for j in range(1, n_blocks)
    ]
