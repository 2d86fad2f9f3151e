"""From the DATA argument to arrays, with the notes a reader should see."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prudent.cli.options import Columns, Reading, names
from prudent.cli.output import CommandError, ExitCode, UsageError, note
from prudent.datasets import BUNDLED
from prudent.io.errors import listed, thousands, typed

if TYPE_CHECKING:
    import pyarrow as pa

    from prudent.core.moments import ClassMoments
    from prudent.core.types import IntArray
    from prudent.io import Survey, Table, TableSource, TrainingData
    from prudent.rules.subgroups import Memberships


# A table is read into memory if this many times its size is available: its columns,
# the array made of them, and what a fit adds.
MEMORY_PER_BYTE = 3
MUCH_TEXT = 10**9
LAST = "last"
GB = 1e9


def open_data(
    data: str,
    target: str | None,
    reading: Reading,
    *,
    text_columns: Sequence[str] = (),
    one_column: bool = False,
) -> tuple[TableSource, str | None]:
    """Open the table that DATA names, and return it with its target.

    A bundled name knows its target; a file of the same name wins, with a note. The
    target "last" is the last column, unless one has that name.
    """
    from prudent.io import open_table
    from prudent.io.delimited import DelimitedSource

    path = data
    if data in BUNDLED:
        if Path(data).exists():
            note(f"the file {data} is read, not the bundled table")
        else:
            path = str(BUNDLED[data].path)
            target = target or BUNDLED[data].target
    source = open_table(
        path,
        delimiter=reading.delimiter,
        encoding=reading.encoding,
        decimal=reading.decimal,
        header=not reading.no_header,
        text_columns=(*text_columns, *([] if target is None else [target])),
        one_column=one_column,
    )
    if target == LAST and LAST not in source.names:
        target = source.names[-1]
        if isinstance(source, DelimitedSource):
            source = replace(source, text_columns=(*source.text_columns, target))
    return source, target


def survey(
    data: str,
    target: str | None,
    columns: Columns,
    groups: str | None = None,
    min_class_rows: int = 1,
    time: str | None = None,
) -> Survey:
    """Open a labelled table and look through it.

    `groups` and `time` are columns, no features.
    """
    together = () if groups is None else (groups,)
    source, target = open_data(data, target, columns, text_columns=together)
    if target is None:
        raise no_target(source)
    surveyed = look_through(source, target, columns.without(groups).without(time))
    frequent = surveyed.without_rare_classes(min_class_rows)
    for text in frequent.notes[len(surveyed.notes) :]:
        note(text)
    return frequent


def look_through(
    source: TableSource,
    target: str | None,
    columns: Columns,
    *,
    handed_along: str | None = None,
) -> Survey:
    """Check a table and decide how it becomes numbers, as the options ask.

    A table that fits into memory is read now; a larger one is read in parts, now
    and whenever its rows are needed.
    """
    from prudent.io import available_memory, survey_table
    from prudent.io.delimited import DelimitedSource

    needed, available = MEMORY_PER_BYTE * source.n_bytes, available_memory()
    if available is None or needed <= available:
        source = source.whole()
    else:
        note(
            f"{source.name} would take {needed / GB:.3g} GB of memory, "
            f"{available / GB:.3g} GB are available: it is read in parts"
        )
        if isinstance(source, DelimitedSource) and source.n_bytes > MUCH_TEXT:
            note("parquet is read several times as fast as text")
    surveyed = survey_table(
        source,
        target,
        features=names(columns.features) or None,
        drop=names(columns.drop),
        missing=columns.missing,
        categorical=columns.categorical,
        keep_identifiers=columns.keep_identifiers,
        handed_along=handed_along,
    )
    for text in surveyed.notes:
        note(text)
    return surveyed


def all_or_sample(
    surveyed: Survey,
    sample: int | None,
    seed: int,
    groups: str | None = None,
    by: Sequence[str] = (),
    time: str | None = None,
) -> tuple[TrainingData, ClassMoments | None]:
    """All rows of a table in memory; of a larger one a sample, and others' moments.

    `groups` is the column that says which rows belong together; the columns `by` part
    the rows, and are in the frame whether they are features or not; the column `time`
    says when rows were taken.
    """
    import numpy as np

    from prudent.core.validation import check_group_cells
    from prudent.estimator_tools import check_times
    from prudent.io import Table, all_rows, sample_rows

    source = surveyed.source
    if isinstance(source, Table):
        training = all_rows(surveyed)
        if groups is not None:
            together = source.words(groups)[training.rows]
            with failing_as_data():
                check_group_cells(together)
            training = replace(training, groups=together)
        if time is not None:
            cells = _times_in(source, time, training.rows)
            with failing_as_data():
                times = check_times(cells, len(cells), training.groups)
            training = replace(training, times=times)
        if by:
            frame = beside(source, training.frame, by, training.rows)
            training = replace(training, frame=frame)
        return training, None
    _refuse_too_large(source, sample, groups, by, time)
    training, others = sample_rows(surveyed, sample, seed)
    if training.y is None:
        return training, others
    drawn = np.isin(surveyed.labels, training.y)
    if not drawn.all():
        labels = listed(map(repr, map(str, surveyed.labels[~drawn].tolist())))
        text = (
            f"no row of {labels} was drawn: a class without rows plays no part, and "
            "nothing is promised of it (--sample with more rows draws some)"
        )
        note(text)
        training = replace(training, notes=(*training.notes, text))
    return training, None if others is None else others.select(surveyed.labels[drawn])


def _refuse_too_large(
    source: TableSource,
    sample: int | None,
    groups: str | None,
    by: Sequence[str],
    time: str | None,
) -> None:
    """Refuse what a sample of a table that does not fit into memory cannot answer."""
    if by:
        raise CommandError(
            f"--by: {source.name} does not fit into memory, and a sample may hold no "
            "row of a small subgroup. Give a table that fits",
            ExitCode.LIMIT,
        )
    if time is not None:
        raise CommandError(
            f"--time {time}: {source.name} does not fit into memory, and folds that go "
            "forward need all rows in order. Give a table that fits",
            ExitCode.LIMIT,
        )
    if groups is not None:
        raise CommandError(
            f"--groups {groups}: {source.name} does not fit into memory, and "
            "rows that are not drawn may be of the same group. Give a table that fits",
            ExitCode.LIMIT,
        )
    if sample is None:
        needed = MEMORY_PER_BYTE * source.n_bytes / GB
        raise CommandError(
            f"{source.name} does not fit into memory: it would take {needed:.3g} GB. "
            "Leave out --sample off, or fit a method that learns from moments",
            ExitCode.LIMIT,
        )


def _times_in(source: Table, name: str, rows: IntArray) -> list[Any]:
    """Numbers or texts in the column of times, in some rows; None where they lack."""
    if source.is_text(name):
        column = source.words_or_null(name).to_pylist()
    else:
        column = source.numbers(name).tolist()
    return [column[row] for row in rows.tolist()]


def no_target(source: TableSource) -> UsageError:
    """No target is named: the last column is suggested, never guessed."""
    return UsageError(
        f"--target is missing. Columns: {listed(source.names)}. "
        f"Perhaps --target {typed(source.names[-1])}"
    )


def drawn_from(training: TrainingData) -> str | None:
    """Say "a random sample of 100 000 of 12 345 678 rows"; None for all rows."""
    if len(training.rows) == training.n_available:
        return None
    return (
        f"a random sample of {thousands(len(training.rows))} of "
        f"{thousands(training.n_available)} rows"
    )


def fingerprint(data: str) -> str | None:
    """SHA-256 of the bytes that DATA names, as `sha256sum` says; None for folders."""
    from hashlib import file_digest

    from prudent.io.files import standard_input

    path = standard_input() if data == "-" else Path(data)
    if not path.exists() and data in BUNDLED:
        path = BUNDLED[data].path
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


class FromFile(Protocol):
    """A model or a rule that was read from a file."""

    @property
    def path(self) -> Path: ...

    def answers_nothing(self) -> bool: ...


@contextmanager
def failing_as_data(loaded: FromFile | None = None) -> Iterator[None]:
    """Pass warnings on as notes, and end the command where the data will not do.

    What else ends the work of a model that is `loaded` from a file is a fault of the
    file, or of the model: its own words are shown. So is a ValueError of a model that
    answers to no row at all.
    """
    from prudent.exceptions import InfeasibleError

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except InfeasibleError as error:
            raise CommandError(str(error), ExitCode.LIMIT) from error
        except ValueError as error:
            if loaded is not None and loaded.answers_nothing():
                raise _failed_in_use(loaded.path, error) from error
            raise CommandError(str(error), ExitCode.DATA) from error
        except (CommandError, MemoryError, OSError):
            raise
        except Exception as error:
            if loaded is None:
                raise
            raise _failed_in_use(loaded.path, error) from error
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                note(" ".join(text.split()))


def _failed_in_use(path: Path, error: Exception) -> CommandError:
    """The fault is in the file of a model, or in the model, and not in the data."""
    return CommandError(
        f"{path} failed in use, or is damaged: {type(error).__name__}: {error}. "
        "Fit the model again",
        ExitCode.MODEL,
    )


# --- columns of a table that part its rows into subgroups -----------------------------


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
