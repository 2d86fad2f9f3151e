"""From the DATA argument to arrays, with the notes a reader should see."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.options import Categorical, Missing, names
from prudent.datasets import BUNDLED
from prudent.io.errors import listed

if TYPE_CHECKING:
    from prudent.io import Preparation, Table, TrainingData

# A report takes half of it at most.
LEAST_FREE_BYTES = 1_000_000

__all__ = [
    "Reading",
    "check_writable",
    "failing_as_data",
    "fingerprint",
    "load_model",
    "load_training",
    "note",
    "prepare",
    "read",
]


@dataclass(frozen=True)
class Reading:
    """How the text of a table is to be understood."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    no_header: bool = False

    def __post_init__(self) -> None:
        if self.delimiter == r"\t":  # as typed in a shell
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise UsageError(
                f"--delimiter takes one character, got {self.delimiter!r}."
            )
        if len(self.decimal) != 1:
            raise UsageError(f"--decimal takes one character, got {self.decimal!r}.")


def note(text: str, *, quiet: bool = False) -> None:
    """Say something on stderr that is no result."""
    if not quiet:
        print(f"note: {text}", file=sys.stderr)


def read(
    data: str,
    target: str | None,
    reading: Reading,
    *,
    text_columns: tuple[str, ...] = (),
    quiet: bool = False,
) -> tuple[Table, str | None]:
    """Read the table that DATA names, and return it with its target.

    A bundled name knows its target; a file of the same name wins, with a note.
    """
    from prudent.io import read_table

    path = data
    if data in BUNDLED:
        if Path(data).exists():
            note(f"the file {data} is read, not the bundled table", quiet=quiet)
        else:
            path = str(BUNDLED[data].path)
            target = target or BUNDLED[data].target
    table = read_table(
        path,
        delimiter=reading.delimiter,
        encoding=reading.encoding,
        decimal=reading.decimal,
        header=not reading.no_header,
        text_columns=(*text_columns, *([] if target is None else [target])),
    )
    return table, target


def prepare(
    table: Table,
    target: str | None,
    *,
    features: str | None,
    drop: str | None,
    missing: Missing,
    categorical: Categorical,
) -> TrainingData:
    """Check a table and turn it into arrays, as the options ask."""
    from prudent.io import training_data

    return training_data(
        table,
        target,
        features=names(features) or None,
        drop=names(drop),
        missing=missing.value,
        categorical=categorical.value,
    )


def load_training(
    data: str,
    target: str | None,
    reading: Reading,
    *,
    features: str | None,
    drop: str | None,
    missing: Missing,
    categorical: Categorical,
    quiet: bool = False,
) -> tuple[TrainingData, str]:
    """Read labelled rows and return them with the name of their target.

    Raises
    ------
    UsageError
        If no target is named: the last column is suggested, never guessed.
    """
    from pyarrow import default_memory_pool

    table, target = read(data, target, reading, quiet=quiet)
    if target is None:
        raise UsageError(
            f"--target is missing. Columns: {listed(table.names)}. "
            f"Perhaps --target {table.names[-1]}"
        )
    training = prepare(
        table,
        target,
        features=features,
        drop=drop,
        missing=missing,
        categorical=categorical,
    )
    # Arrow's pool would keep the memory of the columns while methods are fitted.
    del table
    default_memory_pool().release_unused()
    for text in training.notes:
        note(text, quiet=quiet)
    return training, target


def check_writable(path: Path | None) -> None:
    """Refuse an output that cannot be written, before any work is done.

    Raises
    ------
    CommandError
        If the folder is absent or the file cannot be opened for writing.
    """
    if path is None:
        return
    existed = path.exists()
    try:
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
        free = shutil.disk_usage(path.absolute().parent).free
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror}. Name another file",
            ExitCode.DATA,
        ) from error
    if free < LEAST_FREE_BYTES:
        raise CommandError(
            f"cannot write {path}: the disk is full. Free space or name another file",
            ExitCode.DATA,
        )


def fingerprint(data: str) -> str | None:
    """SHA-256 of the file that DATA names; None for standard input and folders."""
    from hashlib import file_digest

    path = Path(data)
    if not path.exists() and data in BUNDLED:
        path = BUNDLED[data].path
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


@contextmanager
def failing_as_data(*, quiet: bool = False) -> Iterator[None]:
    """Pass warnings on as notes, and end the command where the data will not do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise CommandError(str(error), ExitCode.DATA) from error
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                note(" ".join(text.split()), quiet=quiet)


def load_model(path: Path) -> tuple[Any, Preparation]:
    """Read a model file and how its features come out of a table.

    Raises
    ------
    CommandError
        With code 4, if the file is absent or must not be read.
    """
    from prudent.io import Column, Preparation
    from prudent.persistence import ModelFileError, load, read_header

    try:
        header = read_header(path)
        estimator = load(path)
    except ModelFileError as error:
        raise CommandError(str(error), ExitCode.MODEL) from error
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}. Give a file written by prudent fit",
            ExitCode.MODEL,
        ) from error
    if header.preparation is not None:
        return estimator, Preparation.from_dict(header.preparation)
    if not header.features:
        raise CommandError(
            f"{path} does not know the names of its features. Fit it by prudent fit, "
            "or on a data frame",
            ExitCode.MODEL,
        )
    return estimator, Preparation(tuple(map(Column, header.features)))
