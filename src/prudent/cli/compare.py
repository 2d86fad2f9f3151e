"""`prudent compare`: every method under the promise asked for, and how it fared."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import (
    all_or_sample,
    drawn_from,
    failing_as_data,
    fingerprint,
    group_labels,
    note,
    survey,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Confidence,
    Data,
    Groups,
    JsonFile,
    MinClassRows,
    Params,
    Promise,
    Quiet,
    Report,
    Seed,
    Target,
    checked_promise,
    grouped,
    names,
    read_costs,
    sample_size,
)
from prudent.cli.output import STDOUT, check_writable, write_json
from prudent.cli.progress import Progress
from prudent.cli.spelling import repeating, with_next
from prudent.evaluation.child import prepare
from prudent.evaluation.methods import BASELINES, DEFAULT_PROMISE, METHODS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent.comparison import Comparison
    from prudent.core.moments import ClassMoments
    from prudent.evaluation.table import LabelledRows
    from prudent.io import TrainingData

COLOURS = {"kept": "green", "broken": "red", "vacuous": "bright_black"}
NARROWEST = 60


@grouped
def compare(
    context: typer.Context,
    data: Data,
    columns: Columns,
    target: Target = None,
    promise: Promise = DEFAULT_PROMISE,
    confidence: Confidence = 0.95,
    methods: Annotated[
        str,
        typer.Option(
            help=f"all, or some of {','.join(METHODS)} and dotted paths of classes."
        ),
    ] = "all",
    baselines: Annotated[
        str, typer.Option(help=f"none, or some of {','.join(BASELINES)}.")
    ] = ",".join(BASELINES),
    param: Params = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of costs: a line for each true class, a column for each answer.",
        ),
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of all folds.")] = 1,
    groups: Groups = None,
    min_class_rows: MinClassRows = 1,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = 1,
    report: Report = None,
    json_file: JsonFile = None,
    sample: Annotated[
        str,
        typer.Option(
            metavar="N|off",
            help="Most rows to fit a method that needs rows; from a table beyond "
            "memory so many are drawn and tested on.",
        ),
    ] = DEFAULT_SAMPLE,
    time_limit: Annotated[
        float | None, typer.Option(min=0, help="Seconds for each method.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a method failed.")
    ] = False,
    no_timings: Annotated[
        bool, typer.Option("--no-timings", help="Leave out times and date.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Compare methods under the promise asked for, and check it out of fold."""
    _check_names(methods, baselines)
    most_rows = sample_size(sample)
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise UsageError(f"--time-limit takes seconds > 0, got {time_limit:g}.")
    if jobs == 0:
        raise UsageError("--jobs takes a number of processes, or -1 for all cores.")
    check_writable(report, json_file)
    wish = checked_promise(promise, confidence, detector=False)
    if time_limit is not None:
        prepare()
    chosen = _chosen(methods, baselines, param)
    training, others, target = _read(
        data, target, columns, groups, most_rows, seed, quiet=quiet
    )
    from prudent.comparison.run import Protocol

    rows = _rows(data, training, columns.missing == "mean", others)
    protocol = Protocol(
        promise=promise,
        confidence=confidence,
        cv=cv,
        n_repeats=repeats,
        costs=None if costs is None else _costs(costs, rows.y),
        random_state=seed,
        n_jobs=jobs,
        time_limit=time_limit,
        sample=most_rows,
    )
    command = repeating(context, target)
    comparison, interrupted = _run(
        *(rows, chosen, protocol, others, command), min_class_rows, quiet=quiet
    )
    comparison = with_next(comparison, context, target, len(chosen), wish is not None)
    for text in comparison.data.notes:
        if text not in training.notes:  # those were said while reading
            note(text, quiet=quiet)
    if no_timings:
        comparison = comparison.without_timings()
    taken = json_file == STDOUT
    if not taken:
        _show(comparison)
    write_json(comparison.to_dict(), json_file)
    stream = sys.stderr if taken else sys.stdout
    _close(comparison, report, stream=stream, quiet=quiet)
    return ExitCode.INTERRUPTED if interrupted else _outcome(comparison, strict=strict)


def _check_names(methods: str, baselines: str) -> None:
    """Refuse unknown names before anything is imported; dotted paths come later."""
    asked = [] if methods == "all" else names(methods)
    known = {"--methods": (*METHODS, *BASELINES), "--baselines": BASELINES}
    given = {
        "--methods": [name for name in asked if "." not in name],
        "--baselines": [] if baselines == "none" else names(baselines),
    }
    for option, listed in given.items():
        unknown = [name for name in listed if name not in known[option]]
        if unknown:
            offered = METHODS if option == "--methods" else BASELINES
            raise UsageError(
                f"{option} takes some of {', '.join(offered)}, got {unknown[0][:64]!r}."
            )
    if (methods != "all" and not asked) or (
        baselines != "none" and not names(baselines)
    ):
        raise UsageError("--methods and --baselines take names, all, or none.")


def _chosen(methods: str, baselines: str, param: list[str] | None) -> Any:
    from prudent.evaluation.methods import choose, read_value

    asked = "all" if methods == "all" else list(dict.fromkeys(names(methods)))
    references = () if baselines == "none" else tuple(dict.fromkeys(names(baselines)))
    parameters: dict[str, dict[str, Any]] = {}
    for assignment in param or []:
        path, equals, value = assignment.partition("=")
        prefix, dot, name = path.partition(".")
        if not (equals and dot and name):
            raise UsageError(
                "--param takes METHOD.NAME=VALUE, such as "
                f"minimax.uncertainty=gaussian, got {assignment[:64]!r}."
            )
        parameters.setdefault(prefix, {})[name] = read_value(value)
    try:
        chosen = choose(asked, [r for r in references if r not in asked], parameters)
        for method in chosen:
            if method.parameters:
                method.estimator(0)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return chosen


def _read(
    data: str,
    target: str | None,
    columns: Columns,
    groups: str | None,
    sample: int | None,
    seed: int,
    *,
    quiet: bool,
) -> tuple[TrainingData, ClassMoments | None, str]:
    """Rows in memory, moments of those that are not, and the name of the target."""
    from pyarrow import default_memory_pool

    found = survey(data, target, columns, groups=groups, quiet=quiet)
    training, others = all_or_sample(found, sample, seed)
    training = replace(training, groups=group_labels(found, groups, training))
    label = str(found.label)
    # Arrow's pool would keep the memory of the columns while methods are fitted.
    del found
    default_memory_pool().release_unused()
    return training, others, label


def _rows(
    data: str, training: TrainingData, mean: bool, others: ClassMoments | None
) -> LabelledRows:
    """The table as methods see it, and what only the command line knows of it."""
    from prudent.evaluation.table import LabelledRows

    assert training.y is not None
    return LabelledRows(
        X=training.X,
        y=training.y,
        features=tuple(training.preparation.names),
        is_text=training.preparation.is_text,
        groups=training.groups,
        name=data,
        sha256=fingerprint(data) or "",
        missing="mean" if mean else "fill",
        constant=training.constant,
        notes=(*training.notes, *_sample_notes(training, others)),
    )


def _sample_notes(training: TrainingData, others: ClassMoments | None) -> list[str]:
    """Say what a table beyond memory was compared on."""
    drawn = drawn_from(training)
    if drawn is None:
        return []
    if others is None:
        return [f"the table does not fit into memory: {drawn} is compared on"]
    return [
        f"the table does not fit into memory: {drawn} is tested on, and fitted on by "
        "methods that need rows; methods that learn from moments are fitted on all "
        "rows but those they are tested on (their time leaves out that pass)"
    ]


def _costs(path: Path, y: NDArray[Any]) -> NDArray[Any]:
    """Costs of each true class (row) and answer (column), classes sorted."""
    import numpy as np

    labels = list(map(str, np.unique(y).tolist()))
    return np.array(read_costs(path, labels))[:, : len(labels)]


def _run(
    rows: LabelledRows,
    chosen: Any,
    protocol: Any,
    others: ClassMoments | None,
    command: str,
    min_class_rows: int,
    *,
    quiet: bool,
) -> tuple[Comparison, bool]:
    """Compare with the progress shown; Ctrl-C returns what finished, and True."""
    from prudent.comparison import ComparisonInterrupted
    from prudent.comparison.run import run

    running = [method.name for method in chosen]
    with Progress(running, quiet=quiet) as progress, failing_as_data(quiet=quiet):
        rows = rows.without_rare_classes(min_class_rows)
        try:
            return run(
                *(rows, chosen, protocol),
                others=others,
                progress=progress.update,
                command=command,
            ), False
        except ComparisonInterrupted as partial:
            return partial.comparison, True


def _show(comparison: Comparison) -> None:
    from prudent.comparison.table import WIDTH, table_lines

    lines = table_lines(comparison)
    if sys.stdout.isatty():
        width = max(NARROWEST, min(WIDTH, shutil.get_terminal_size().columns))
        lines = table_lines(comparison, width, _painted)
    for line in lines:
        typer.echo(line)


def _painted(cell: str) -> str:
    return typer.style(cell, fg=COLOURS[cell]) if cell in COLOURS else cell


def _close(
    comparison: Comparison, report: Path | None, *, stream: TextIO, quiet: bool
) -> None:
    """Write the report and say where it is and how to repeat it."""
    closing = [f"reproduce: {comparison.settings.command}"]
    if report is not None:
        comparison.save_report(report)
        size = report.stat().st_size / 1000
        closing.insert(0, f"report: {report} ({size:.0f} kB)")
    if not quiet:
        print("\n".join(closing), file=stream)


def _outcome(comparison: Comparison, *, strict: bool) -> ExitCode:
    failures = [row.failure for row in comparison.rows if row.failure is not None]
    if len(failures) == len(comparison.rows):
        raise CommandError(f"no method finished: {failures[0].text}", ExitCode.LIMIT)
    if failures and strict:
        return ExitCode.PARTIAL
    if failures:
        print(
            f"warning: {len(failures)} of {len(comparison.rows)} methods failed",
            file=sys.stderr,
        )
    return ExitCode.SUCCESS
