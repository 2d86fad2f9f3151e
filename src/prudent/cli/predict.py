"""`prudent predict`: classes, probabilities or sets for the rows of a table."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import CommandError, ExitCode
from prudent.cli.loading import (
    Reading,
    check_writable,
    failing_as_data,
    load_model,
    note,
    read,
)
from prudent.cli.options import (
    Data,
    Decimal,
    Delimiter,
    Encoding,
    NoHeader,
    Quiet,
    names,
)
from prudent.io.errors import listed

if TYPE_CHECKING:
    from prudent.io import Preparation, Table

__all__ = ["predict", "write_rows"]


def predict(
    data: Data,
    model: Annotated[
        Path, typer.Option("-m", "--model", metavar="FILE", help="Model file.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="CSV file; else stdout."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    as_set: Annotated[
        bool, typer.Option("--set", help="Add the set of classes, joined by |.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(metavar="COL,..", help="Copy these columns to the output."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    no_header: NoHeader = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table with a fitted model; columns match by name."""
    check_writable(output)
    estimator, preparation = load_model(model)
    kept = names(keep)
    reading = Reading(delimiter, encoding, decimal, no_header)
    table, _ = read(data, None, reading, text_columns=tuple(kept), quiet=quiet)
    _note_extra_columns(table, preparation, kept, quiet=quiet)
    columns: dict[str, Iterable[Any]] = {
        name: table.text(name).to_pylist() for name in kept
    }
    X = preparation.transform(table)
    with failing_as_data(quiet=quiet):
        columns |= _predictions(estimator, X, model, proba=proba, as_set=as_set)
    write_rows(list(columns), zip(*columns.values(), strict=True), output)
    if output is not None:
        note(f"{table.n_rows} predictions in {output}", quiet=quiet)


def _note_extra_columns(
    table: Table, preparation: Preparation, kept: Sequence[str], *, quiet: bool
) -> None:
    used = {column.name for column in preparation.columns}
    extra = [name for name in table.names if name not in used and name not in kept]
    if extra:
        note(f"columns the model does not use: {listed(extra)}", quiet=quiet)


def _predictions(
    estimator: Any, X: Any, model: Path, *, proba: bool, as_set: bool
) -> dict[str, Iterable[Any]]:
    columns: dict[str, Iterable[Any]] = {"prediction": estimator.predict(X).tolist()}
    if proba:
        _require(estimator, "predict_proba", "probabilities", "--proba", model)
        probabilities = estimator.predict_proba(X).T.tolist()
        for label, column in zip(estimator.classes_, probabilities, strict=True):
            columns[f"probability {label}"] = column
    if as_set:
        _require(estimator, "predict_set", "sets", "--set", model)
        labels = [str(label) for label in estimator.classes_]
        columns["set"] = [
            "|".join(label for label, member in zip(labels, row, strict=True) if member)
            for row in estimator.predict_set(X)
        ]
    return columns


def _require(estimator: Any, method: str, what: str, option: str, model: Path) -> None:
    if not hasattr(estimator, method):
        raise CommandError(
            f"{model} gives no {what}: {type(estimator).__name__} has none. "
            f"Leave out {option}",
            ExitCode.MODEL,
        )


def write_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], output: Path | None
) -> None:
    """Write a CSV table to a file, or to standard output for None."""
    with ExitStack() as stack:
        stream = sys.stdout
        if output is not None:
            stream = stack.enter_context(output.open("w", encoding="utf-8", newline=""))
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
