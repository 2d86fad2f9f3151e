"""`prudent predict`: classes, probabilities or sets for the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import CommandError, ExitCode
from prudent.cli.loading import (
    check_writable,
    failing_as_data,
    load_model,
    note,
    open_data,
)
from prudent.cli.options import Data, Quiet, Reading, grouped, names
from prudent.cli.output import write_rows
from prudent.io.errors import listed, thousands

if TYPE_CHECKING:
    from prudent.io import Preparation, TableSource

__all__ = ["predict"]


@grouped
def predict(
    data: Data,
    model: Annotated[
        Path, typer.Option("-m", "--model", metavar="FILE", help="Model file.")
    ],
    reading: Reading,
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
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table with a fitted model; columns match by name."""
    from prudent.io.table import check_column

    check_writable(output)
    estimator, preparation = load_model(model)
    said = ["prediction"]
    if proba:
        _require(estimator, "predict_proba", "probabilities", "--proba", model)
        said += [f"probability {label}" for label in estimator.classes_]
    if as_set:
        _require(estimator, "predict_set", "sets", "--set", model)
        said.append("set")
    kept = names(keep)
    source, _ = open_data(data, None, reading, text_columns=tuple(kept), quiet=quiet)
    for name in kept:
        check_column(name, source.names)
    _note_extra_columns(source, preparation, kept, quiet=quiet)
    # Every row is checked before the first is written.
    preparation.check(source)
    n_rows = 0

    def lines() -> Iterator[Sequence[Any]]:
        nonlocal n_rows
        for part in source.parts(list(dict.fromkeys([*preparation.names, *kept]))):
            n_rows += part.n_rows
            X = preparation.features(part)
            columns = [part.text(name).to_pylist() for name in kept]
            columns += _predictions(estimator, X, proba=proba, as_set=as_set)
            yield from zip(*columns, strict=True)

    with failing_as_data(quiet=quiet):
        write_rows([*kept, *said], lines(), output)
    if output is not None:
        note(f"{thousands(n_rows)} predictions in {output}", quiet=quiet)


def _note_extra_columns(
    source: TableSource,
    preparation: Preparation,
    kept: Sequence[str],
    *,
    quiet: bool,
) -> None:
    used = {*preparation.names, *kept}
    extra = [name for name in source.names if name not in used]
    if extra:
        note(f"columns the model does not use: {listed(extra)}", quiet=quiet)


def _predictions(
    estimator: Any, X: Any, *, proba: bool, as_set: bool
) -> list[Iterable[Any]]:
    columns: list[Iterable[Any]] = [estimator.predict(X).tolist()]
    if proba:
        columns += estimator.predict_proba(X).T.tolist()
    if as_set:
        labels = [str(label) for label in estimator.classes_]
        columns.append(
            "|".join(label for label, member in zip(labels, row, strict=True) if member)
            for row in estimator.predict_set(X)
        )
    return columns


def _require(estimator: Any, method: str, what: str, option: str, model: Path) -> None:
    if not hasattr(estimator, method):
        raise CommandError(
            f"{model} gives no {what}: {type(estimator).__name__} has none. "
            f"Leave out {option}",
            ExitCode.MODEL,
        )
