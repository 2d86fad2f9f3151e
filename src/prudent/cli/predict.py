"""`prudent predict`: classes, probabilities or sets for the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli import options
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.models import LoadedModel, load_model
from prudent.cli.options import Missing, names
from prudent.cli.output import CommandError, ExitCode, note, write_rows
from prudent.cli.promise import joined
from prudent.io.errors import counted, listed, thousands

if TYPE_CHECKING:
    from prudent.io import Preparation, TableSource

#: What to do about cells that a model takes none for.
NONE_TAKEN = (
    "The model takes none: --missing drop-rows leaves the answers of such rows empty"
)
# A heading or several, and how the columns under them are found.
Answers = list[tuple[list[str], Callable[[Any], list[Iterable[Any]]]]]


@options.grouped
def predict(
    data: options.Data,
    model: options.ModelFile,
    *,
    target: options.Target = None,
    output: options.CsvFile = None,
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
    keep: options.Keep = None,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
    columns: options.Columns,
) -> None:
    """Predict the rows of a table with a fitted model; columns match by name.

    Takes the options of fit. The model knows its columns, how words become numbers
    and how missing cells are filled; --missing drop-rows leaves the answers of rows
    with missing cells empty instead, --missing error refuses them.
    """
    from prudent.io.table import check_column, without_gaps

    loaded = load_model(model, trusted)
    with failing_as_data(loaded):
        promises = getattr(loaded.last, "guarantees_", ())
        as_set = as_set or any(promise.quantity == "coverage" for promise in promises)
        answers = _answers(loaded, proba=proba, as_set=as_set, p_values=p_values)
    for option, is_wanted, what, answerer, method in (
        ("--proba", proba, "probabilities", loaded.estimator, "predict_proba"),
        ("--set", as_set, "sets", loaded.last, "predict_set"),
        ("--p-values", p_values, "p-values", loaded.last, "p_values"),
    ):
        if is_wanted and not hasattr(answerer, method):
            raise CommandError(
                f"{model} gives no {what}: {type(answerer).__name__} has none. "
                f"Leave out {option}",
                ExitCode.MODEL,
            )
    kept = names(keep)
    spelled = (*kept, *loaded.text_columns)
    source, _ = open_data(data, None, columns, text_columns=spelled, one_column=True)
    loaded.require_subgroups(source)
    for name in kept:
        check_column(name, source.names)
    known = {*loaded.preparation.names, *kept, *names(columns.drop), target}
    extra = [name for name in source.names if name not in known]
    if extra:
        note(f"columns the model does not use: {listed(extra)}")
    # Every row is checked before the first is written.
    preparation = _checked(source, loaded.preparation, columns.missing)
    n_rows = n_left_out = 0

    def lines() -> Iterator[Sequence[Any]]:
        nonlocal n_rows, n_left_out
        for part in source.parts(list(dict.fromkeys([*preparation.names, *kept]))):
            frame = preparation.frame(part)
            n_rows += frame.num_rows
            cells: list[Iterable[Any]] = [part.text(n).to_pylist() for n in kept]
            if columns.missing != "drop-rows":
                rows = loaded.rows(frame)
                cells += [column for _, find in answers for column in find(rows)]
            else:
                whole = without_gaps(frame.drop_columns(preparation.beside))
                n_left_out += int((~whole).sum())
                rows = loaded.rows(frame.filter(whole))
                cells += _answers_of_some(answers, rows, whole.tolist())
            yield from zip(*cells, strict=True)

    with failing_as_data(loaded):
        headings = [name for heads, _ in answers for name in heads]
        write_rows([*kept, *headings], lines(), output)
    if n_left_out:
        cells = counted(n_left_out, "row")
        note(f"{cells} with missing cells have no prediction")
    if output is not None:
        note(f"{thousands(n_rows)} predictions in {output}")


def _checked(
    source: TableSource, preparation: Preparation, missing: Missing
) -> Preparation:
    """How the rows are read, after all of them have been looked at."""
    from prudent.io.preparation import MISSING_ADVICE

    loose = replace(preparation, gaps=True)
    if missing == "drop-rows":
        loose.check(source)
        return loose
    fills = preparation.gaps and missing != "error"
    advice = MISSING_ADVICE if preparation.gaps else NONE_TAKEN
    replace(preparation, gaps=fills).check(source, advice)
    return preparation


def _answers_of_some(answers: Answers, X: Any, whole: list[bool]) -> list[list[Any]]:
    """Columns of answers for the whole rows `X`, and nothing for the others."""
    filled = []
    for heads, find in answers:
        columns = find(X) if len(X) else [[]] * len(heads)
        for column in columns:
            remaining = iter(column)
            filled.append([next(remaining) if is_whole else "" for is_whole in whole])
    return filled


def _answers(
    loaded: LoadedModel, *, proba: bool, as_set: bool, p_values: bool
) -> Answers:
    """Headings of the output, and how their columns are found."""
    from prudent.estimator_tools import predict_set

    estimator, last, front = loaded.estimator, loaded.last, loaded.before_last
    labels = [str(label) for label in getattr(last, "classes_", ())]

    answers: Answers = [(["prediction"], lambda X: [estimator.predict(X).tolist()])]
    if hasattr(last, "answers"):  # it may refuse
        answers = [(["prediction", "answered"], lambda X: _or_refused(last, front(X)))]
    if not labels and hasattr(last, "decision_function"):  # a detector
        answers = [(["prediction", "score", "alarm"], partial(_alarms, estimator))]
    if proba:
        heads = [f"probability {label}" for label in labels]
        answers.append((heads, lambda X: list(estimator.predict_proba(X).T.tolist())))
    if as_set:
        answers.append((["set"], lambda X: [joined(predict_set(estimator, X), labels)]))
    if p_values:
        heads = [f"p-value {label}" for label in labels]
        answers.append((heads, lambda X: list(last.p_values(front(X)).T.tolist())))
    return answers


def _or_refused(last: Any, X: Any) -> list[Iterable[Any]]:
    """Labels, nothing where the promise does not allow an answer, and whether it does.

    So `apply` writes what a rule answers.
    """
    answered = last.answers(X).tolist()
    labels = zip(last.predict(X).tolist(), answered, strict=True)
    return [[label if given else "" for label, given in labels], answered]


def _alarms(detector: Any, X: Any) -> list[Iterable[Any]]:
    """What a detector says of rows, 1 or -1; its scores; and whether that is alarm.

    The last is what `apply` writes of a rule about alarms.
    """
    from prudent.core.guarantee import ALARM
    from prudent.estimator_tools import scored_alarms

    alarms, scores = scored_alarms(detector, X)
    flags = alarms.tolist()
    labels = [ALARM if flag else 1 for flag in flags]
    return [labels, scores.tolist(), flags]
