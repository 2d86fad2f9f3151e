"""Columns of scores in a table: which they are, of which labels, in which rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prudent.cli.exits import UsageError
from prudent.cli.options import names
from prudent.cli.output import note
from prudent.io.errors import TableError, counted, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent.io.table import Table


def score_columns(
    scores: str | None,
    score: str | None,
    predicted: str | None,
    positive: str | None,
    anomaly: str | None,
) -> list[str]:
    """The columns that hold numbers, of one of the four kinds of file."""
    kinds = [option for option in (scores, score, anomaly) if option is not None]
    if len(kinds) != 1 or (score is None) != (predicted is None and positive is None):
        raise UsageError(
            "say where the scores are: --scores COL,.. for one a class, --predicted "
            "COL with --score COL, --score COL with --positive LABEL, or --anomaly COL"
        )
    return names(scores) if scores is not None else kinds


def labels_of_columns(
    columns: Sequence[str], classes: str | None, truth: NDArray[np.str_]
) -> list[str]:
    """Labels of score columns: as given, their names, or these behind a prefix."""
    if classes is not None:
        labels = names(classes)
        if len(labels) != len(columns):
            raise UsageError(
                f"--classes names {len(labels)} labels for {len(columns)} columns"
            )
        return labels
    alike = [len(set(letters)) == 1 for letters in zip(*columns, strict=False)]
    n_alike = alike.index(False) if False in alike else len(alike)
    seen = set(truth.tolist())
    # Labels may begin alike, too: the prefix behind which most labels are known.
    behind = [[name[k:] for name in columns] for k in range(n_alike + 1)]
    return max(behind, key=lambda labels: len(seen & set(labels)))


def complete_rows(
    table: Table,
    values: NDArray[np.float64],
    columns: Sequence[str],
    *,
    drop: bool,
) -> NDArray[np.bool_]:
    """Which rows have all scores; an error that names the first that has not."""
    lacking = np.isnan(values)
    rows = np.flatnonzero(lacking.any(axis=1))
    if len(rows) and not drop:
        column = columns[int(lacking[rows[0]].argmax())]
        raise TableError(
            f"{table.place(int(rows[0]))} has no number in {shown(column)}: fill it, "
            "or --drop-missing; the promise is then about rows with scores"
        )
    if len(rows):
        note(f"{counted(len(rows), 'row')} without a score left out")
    whole: NDArray[np.bool_] = np.logical_not(lacking.any(axis=1))
    return whole
