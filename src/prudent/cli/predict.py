"""`prudent predict`: classes, probabilities or sets for the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
        bool,
        typer.Option(
            "--set",
            help="Add the set of classes, joined by |; models that promise coverage "
            "always do.",
        ),
    ] = False,
    p_values: Annotated[
        bool, typer.Option("--p-values", help="Add the p-value of each class.")
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
    last = _last_step(estimator)
    as_set = as_set or _promises_coverage(last)
    answers = _answers(estimator, proba=proba, as_set=as_set, p_values=p_values)
    if proba:
        _require(estimator, "predict_proba", "probabilities", "--proba", model)
    if as_set:
        _require(last, "predict_set", "sets", "--set", model)
    if p_values:
        _require(last, "p_values", "p-values", "--p-values", model)
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
            X = preparation.read(part)
            columns: list[Iterable[Any]]
            columns = [part.text(name).to_pylist() for name in kept]
            columns += [column for _, find in answers for column in find(X)]
            yield from zip(*columns, strict=True)

    with failing_as_data(quiet=quiet):
        said = [name for heads, _ in answers for name in heads]
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


def _last_step(estimator: Any) -> Any:
    """What answers: the estimator, or the last step of a pipeline."""
    steps = getattr(estimator, "steps", None)
    return estimator if steps is None else steps[-1][1]


def _promises_coverage(last: Any) -> bool:
    promises = getattr(last, "guarantees_", ())
    return any(promise.quantity == "coverage" for promise in promises)


def _answers(
    estimator: Any, *, proba: bool, as_set: bool, p_values: bool
) -> list[tuple[list[str], Callable[[Any], list[Iterable[Any]]]]]:
    """Headings of the output, and how their columns are found."""
    from prudent.estimator_tools import predict_set

    last, front = _last_step(estimator), _in_front(estimator)
    labels = [str(label) for label in getattr(last, "classes_", ())]

    def sets(X: Any) -> list[Iterable[Any]]:
        members = predict_set(estimator, X)
        return [
            [
                "|".join(s for s, is_in in zip(labels, row, strict=True) if is_in)
                for row in members
            ]
        ]

    answers: list[tuple[list[str], Callable[[Any], list[Iterable[Any]]]]]
    answers = [(["prediction"], lambda X: [estimator.predict(X).tolist()])]
    if hasattr(last, "answers"):  # it may refuse
        answers = [(["prediction"], lambda X: [_or_refused(last, front(X))])]
    if not labels and hasattr(last, "decision_function"):  # a detector
        answers.append((["score"], lambda X: [estimator.decision_function(X).tolist()]))
    if proba:
        heads = [f"probability {label}" for label in labels]
        answers.append((heads, lambda X: list(estimator.predict_proba(X).T.tolist())))
    if as_set:
        answers.append((["set"], sets))
    if p_values:
        heads = [f"p-value {label}" for label in labels]
        answers.append((heads, lambda X: list(last.p_values(front(X)).T.tolist())))
    return answers


def _in_front(estimator: Any) -> Callable[[Any], Any]:
    """What the steps before the last make of rows."""
    steps = getattr(estimator, "steps", [None])
    return estimator[:-1].transform if len(steps) > 1 else lambda X: X


def _or_refused(last: Any, X: Any) -> list[Any]:
    """Labels, and nothing where the promise does not allow an answer."""
    return [
        label if answered else ""
        for label, answered in zip(
            last.predict(X).tolist(), last.answers(X).tolist(), strict=True
        )
    ]


def _require(estimator: Any, method: str, what: str, option: str, model: Path) -> None:
    if not hasattr(estimator, method):
        raise CommandError(
            f"{model} gives no {what}: {type(estimator).__name__} has none. "
            f"Leave out {option}",
            ExitCode.MODEL,
        )
