"""What a fit is given beside its features: labels, groups and times, checked."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from prudent.core.order import checked_times
from prudent.core.validation import check_group_cells, check_label_cells, shown


def check_classes(y: NDArray[Any]) -> None:
    """Refuse labels that name no classes: missing, of two types, or continuous."""
    check_label_cells("y", y)
    check_classification_targets(y)


def check_groups(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Group labels as an array: one for each row, two groups at least."""
    if isinstance(groups, str):
        raise ValueError(
            f"`groups` must hold one label for each row, got the text {groups!r}: give "
            f"the column itself, such as X[{groups!r}]."
        )
    labels = column_or_1d(groups)
    if len(labels) != n_rows:
        raise ValueError(
            f"`groups` must hold one label for each of the {n_rows} rows, got "
            f"{len(labels)}."
        )
    check_group_cells(labels)
    if len(np.unique(labels)) < 2:
        raise ValueError(
            "`groups` must name at least 2 groups: whole groups are held out."
        )
    return labels


def check_times(
    time: Any, n_rows: int, groups: ArrayLike | None = None
) -> NDArray[Any]:
    """Time of each row, as numbers or dates of NumPy; of groups that of the latest row.

    Parameters
    ----------
    time : array-like or series of shape (n_rows,)
        Numbers, dates of any library, or texts that are numbers or ISO dates.
    n_rows : int
    groups : array-like of shape (n_rows,), default=None
        Equal for rows that belong together.

    Returns
    -------
    ndarray of float64 or datetime64[us], shape (n_rows,)

    Raises
    ------
    ValueError
        If a time is missing or no time at all, all are equal, or their number is
        another one.
    """
    values = _times(time)
    if values.shape != (n_rows,):
        raise ValueError(
            f"`time` must hold one value for each of the {n_rows} rows, got shape "
            f"{values.shape}."
        )
    labels = None if groups is None else check_groups(groups, n_rows)
    return checked_times(values, labels)


def _times(time: Any) -> NDArray[Any]:
    """Times as float64 or datetime64[us]; those that lack are NaN or NaT."""
    series = nw.from_native(time, series_only=True, pass_through=True)
    values = np.array(series.to_list()) if isinstance(series, nw.Series) else time
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    cells = [None if _lacks(cell) else cell for cell in values.ravel().tolist()]
    try:
        numbers = [np.nan if cell is None else float(cell) for cell in cells]
        return np.array(numbers).reshape(values.shape)
    except (TypeError, ValueError):
        moments = [None if cell is None else _moment(cell) for cell in cells]
        return np.array(moments, dtype="datetime64[us]").reshape(values.shape)


def _lacks(cell: Any) -> bool:
    return cell is None or cell != cell or cell == ""


def _moment(cell: Any) -> date:
    """A date, or a moment in UTC, of what is one or spells it as ISO 8601 says."""
    try:
        moment = cell if isinstance(cell, date) else datetime.fromisoformat(cell)
    except (TypeError, ValueError):
        raise ValueError(
            f"time: {shown(cell)} is neither a number nor an ISO date such as "
            "2026-03-02."
        ) from None
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment
