"""Promises by subgroup on the command line: columns of a table that part its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prudent.cli.exits import CommandError, ExitCode, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from prudent.io import TableSource
    from prudent.io.table import Table
    from prudent.rules.subgroups import Memberships


def items_of(by: str | None) -> list[str]:
    """What --by lists, each a column, some of them crossed, or one in bands."""
    if by is None:
        return []
    from prudent.rules.wish import listed_subgroups

    items = listed_subgroups(by)
    if not items:
        raise UsageError("--by names no column.")
    return items


def columns_in(
    source: TableSource, items: Sequence[str], target: str | None
) -> list[str]:
    """Columns of a table that part its rows; refuses names that it lacks."""
    from prudent.estimator_tools.subgroups import columns_of

    with naming_option():
        columns = columns_of(items)
    for name in columns:
        if name not in source.names:
            from prudent.io.errors import listed

            raise CommandError(
                f"--by: no column {name!r}; there are {listed(source.names)}",
                ExitCode.DATA,
            )
        if name == target:
            raise CommandError(
                f"--by: {name!r} is the target, which new rows do not have",
                ExitCode.DATA,
            )
    return columns


def table_of(source: TableSource, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table by name: numbers (NaN), and words (null for missing)."""
    import pyarrow as pa

    from prudent.io.preparation import Column, Preparation, look_through

    contents, _ = look_through(source, [Column(name) for name in columns])
    taken = Preparation(tuple(cells.decided for cells in contents), gaps=True)
    parts = [taken.frame(part) for part in source.parts(list(columns))]
    return pa.concat_tables(parts)


def parts_of(
    source: TableSource,
    items: Sequence[str],
    target: str | None,
    kept: Sequence[bool] | None = None,
) -> Memberships:
    """Which subgroups hold each row of a table, or of the rows that are kept."""
    frame = table_of(source, columns_in(source, items, target))
    return memberships(items, frame if kept is None else frame.filter(kept))


def beside(table: Table, frame: pa.Table, columns: Sequence[str], rows: Any) -> Any:
    """A frame of features, of some rows of a table, with the columns that it lacks."""
    lacking = [name for name in columns if name not in frame.column_names]
    if not lacking:
        return frame
    others = table_of(table, lacking).take(rows)
    for name in lacking:
        frame = frame.append_column(name, others[name])
    return frame


def memberships(items: Sequence[str], frame: Any) -> Memberships:
    """Which subgroups hold each row of a frame."""
    from prudent.estimator_tools.subgroups import memberships_of

    with naming_option():
        return memberships_of(list(items), frame)


@contextmanager
def naming_option() -> Iterator[None]:
    """Let what is wrong with subgroups name the option."""
    from prudent.rules.parts import BandsNeeded

    try:
        yield
    except ValueError as error:
        sentence = str(error).removeprefix("subgroups: ").rstrip(".")
        if isinstance(error, BandsNeeded):
            sentence = f"{error.reason}: give bands, --by {error.bands}"
        raise CommandError(f"--by: {sentence}", ExitCode.DATA) from error


def columns_of_model(estimator: Any) -> dict[str, tuple[str, ...]]:
    """Columns by which a model makes promises, and their words; () of numbers."""
    parts = getattr(estimator, "_subgroups", None)
    factors = () if parts is None else parts.factors
    return {
        factor.column: tuple(word for word in factor.values if isinstance(word, str))
        for factor in factors
        if isinstance(factor.column, str)
    }


def require_columns(parts: Iterable[str], source: TableSource) -> None:
    """Refuse a table that does not say of which subgroups its rows are."""
    for name in parts:
        if name not in source.names:
            raise CommandError(
                f"the promise is by {name}, which the table lacks", ExitCode.DATA
            )
