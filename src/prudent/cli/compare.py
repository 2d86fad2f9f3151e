"""`prudent compare`: which method, how good, what is promised, was it kept."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import (
    check_writable,
    drawn_from,
    failing_as_data,
    fingerprint,
    load_training,
    note,
    open_data,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Data,
    Quiet,
    Reading,
    Report,
    Seed,
    Target,
    grouped,
    names,
    sample_size,
)
from prudent.cli.progress import Progress
from prudent.cli.tables import print_table
from prudent.io.errors import MOST_NAMES, thousands

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent.comparison import Comparison
    from prudent.comparison.result import MethodRow
    from prudent.io import TrainingData

__all__ = ["compare"]

METHODS = ("optimistic", "minimax", "calibrated", "imprecise", "rejection")
BASELINES = ("lda", "qda", "logistic")
# Options that change what is printed, not what is found, and the two said first.
SAID_ELSEWHERE = ("data", "target", "report", "json_file", "quiet", "jobs", "strict")


@grouped
def compare(
    context: typer.Context,
    data: Data,
    columns: Columns,
    reading: Reading,
    target: Target = None,
    methods: Annotated[
        str, typer.Option(help=f"all, or some of {','.join(METHODS)}.")
    ] = "all",
    baselines: Annotated[
        str, typer.Option(help=f"none, or some of {','.join(BASELINES)}.")
    ] = ",".join(BASELINES),
    cv: Annotated[int, typer.Option(min=2, help="Folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of all folds.")] = 1,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column that says which rows belong together (patients, machines); "
            "no feature.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = 1,
    report: Report = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write JSON; - for stdout."),
    ] = None,
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
    """Compare robust methods on a table, out of fold, and check their promises."""
    chosen = METHODS if methods == "all" else _known(methods, METHODS, "--methods")
    references = (
        () if baselines == "none" else _known(baselines, BASELINES, "--baselines")
    )
    most_rows = sample_size(sample)
    if jobs == 0:
        raise UsageError("--jobs takes a number of processes, or -1 for all cores.")
    check_writable(report)
    check_writable(None if json_file in (None, "-") else Path(str(json_file)))
    if groups is not None:
        columns = replace(columns, drop=",".join([*names(columns.drop), groups]))
    training, others, target = load_training(
        data,
        target,
        reading,
        columns,
        sample=most_rows,
        seed=seed,
        quiet=quiet,
    )
    together = _groups(data, groups, training, others, reading)
    pure = json_file == "-"
    if not pure:
        print(_heading(data, training, cv, seed, most_rows), flush=True)
    comparison, interrupted = _run(
        training,
        quiet=quiet,
        methods=chosen,
        baselines=references,
        cv=cv,
        n_repeats=repeats,
        groups=together,
        random_state=seed,
        n_jobs=jobs,
        time_limit=time_limit,
        sample=most_rows,
        _others=others,
    )
    for text in comparison.data.notes:
        note(text, quiet=quiet)
    notes = (*training.notes, *_sample_notes(training))
    comparison = _named(comparison, data, training, notes, _command(context, target))
    if no_timings:
        comparison = comparison.without_timings()
    _show(comparison, pure=pure)
    if json_file is not None:
        _write_json(comparison, json_file)
    _close(comparison, report, stream=sys.stderr if pure else sys.stdout, quiet=quiet)
    if interrupted:
        return ExitCode.INTERRUPTED
    return _outcome(comparison, strict=strict)


def _known(listed: str, known: Sequence[str], option: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(names(listed)))
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise UsageError(
            f"{option} takes some of {', '.join(known)}, got {listed[:64]!r}."
        )
    return chosen


def _groups(
    data: str,
    groups: str | None,
    training: TrainingData,
    others: Any,
    reading: Reading,
) -> NDArray[Any] | None:
    """Group of each row that is used, from the column that --groups names."""
    if groups is None:
        return None
    if others is not None:
        raise CommandError(
            f"--groups {groups}: {data} does not fit into memory, and rows that are "
            "not drawn may be of the same group. Give a table that fits",
            ExitCode.LIMIT,
        )
    source, _ = open_data(data, None, reading, text_columns=(groups,), quiet=True)
    return source.whole().words(groups)[training.rows]


def _heading(
    data: str, training: TrainingData, n_folds: int, seed: int, sample: int | None
) -> str:
    import numpy as np

    n_rows, n_features = training.X.shape
    counts = np.unique(training.y, return_counts=True)[1].tolist()
    sizes = "/".join(map(str, counts))
    if len(counts) > MOST_NAMES:
        least, most = min(counts), max(counts)
        sizes = f"{least}{'' if least == most else f' to {most}'} rows each"
    heading = (
        f"{data}  {thousands(n_rows)} rows x {n_features} features, "
        f"{len(counts)} classes ({sizes})   {n_folds}-fold stratified CV, seed {seed}; "
        "all scores are out of fold"
    )
    drawn = drawn_from(training)
    if drawn is not None:
        heading += f"\nthe table does not fit into memory: {drawn} is compared on"
    elif sample is not None and n_rows - n_rows // n_folds > sample:
        heading += (
            f"\nmethods that need rows are fitted on a stratified sample of "
            f"{thousands(sample)} rows"
        )
    return heading


def _sample_notes(training: TrainingData) -> list[str]:
    """Say in the report what a table beyond memory was compared on."""
    drawn = drawn_from(training)
    if drawn is None:
        return []
    return [
        f"the table does not fit into memory: {drawn} is tested on, and fitted on by "
        "methods that need rows; methods that learn from moments are fitted on all "
        "rows but those they are tested on (their time leaves out that pass)"
    ]


def _run(
    training: TrainingData, *, quiet: bool, **protocol: Any
) -> tuple[Comparison, bool]:
    """Compare with the progress shown; Ctrl-C returns what finished, and True."""
    from prudent.comparison import ComparisonInterrupted
    from prudent.comparison import compare as run

    running = (*protocol["methods"], *protocol["baselines"])
    with Progress(running, quiet=quiet) as progress, failing_as_data(quiet=quiet):
        try:
            return run(
                training.X, training.y, **protocol, _progress=progress.update
            ), False
        except ComparisonInterrupted as partial:
            return partial.comparison, True


def _named(
    comparison: Comparison,
    data: str,
    training: TrainingData,
    notes: tuple[str, ...],
    command: str,
) -> Comparison:
    """Add what only the command line knows: names, notes, the file, the command."""
    table = replace(
        comparison.data,
        name=data,
        sha256=fingerprint(data) or comparison.data.sha256,
        features=tuple(training.preparation.feature_names),
        constant_features=training.constant,
        notes=(*comparison.data.notes, *notes),
    )
    settings = replace(comparison.settings, command=command)
    return replace(comparison, data=table, settings=settings)


def _command(context: typer.Context, target: str) -> str:
    """Spell the command that repeats this comparison."""
    words = ["prudent", "compare", context.params["data"], "--target", target]
    for parameter in context.command.params:
        value = context.params[str(parameter.name)]
        always = parameter.name in ("seed", "cv")
        if parameter.name in SAID_ELSEWHERE or (
            value == parameter.get_default(context) and not always
        ):
            continue
        words.append(parameter.opts[0])
        if value is not True:
            words.append(str(value))
    return shlex.join(words)


def _show(comparison: Comparison, *, pure: bool) -> None:
    from prudent.comparison.text import COLUMNS

    if not pure:
        print_table(COLUMNS, map(_line, comparison.rows, comparison.leaderboard()))


def _line(row: MethodRow, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Put the reason of a failure, which is long, under the last column."""
    if row.failure is None:
        return texts
    return (row.label, "FAILED", *[""] * (len(texts) - 3), row.failure)


def _write_json(comparison: Comparison, json_file: str) -> None:
    text = json.dumps(comparison.to_dict(), indent=1, allow_nan=False)
    if json_file == "-":
        print(text)
    else:
        Path(json_file).write_text(text + "\n", encoding="utf-8")


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
        print("    ".join(closing), file=stream)


def _outcome(comparison: Comparison, *, strict: bool) -> ExitCode:
    failures = [row.failure for row in comparison.rows if row.failure is not None]
    if len(failures) == len(comparison.rows):
        stopped = all(reason.startswith("stopped after") for reason in failures)
        raise CommandError(
            f"no method finished: {failures[0]}",
            ExitCode.LIMIT if stopped else ExitCode.ALL_FAILED,
        )
    if failures and strict:
        return ExitCode.PARTIAL
    if failures:
        print(
            f"warning: {len(failures)} of {len(comparison.rows)} methods failed",
            file=sys.stderr,
        )
    return ExitCode.SUCCESS
