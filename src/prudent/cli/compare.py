"""`prudent compare`: every method under the promise asked for, and how it fared."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli import options
from prudent.cli.loading import (
    all_or_sample,
    columns_in,
    drawn_from,
    failing_as_data,
    fingerprint,
    items_of,
    memberships,
    survey,
)
from prudent.cli.options import names
from prudent.cli.output import (
    STDOUT,
    CommandError,
    ExitCode,
    Progress,
    UsageError,
    ending,
    native_output_left_out,
    note,
    write_json,
)
from prudent.evaluation.child import prepare
from prudent.evaluation.methods import (
    BASELINES,
    DEFAULT_PROMISE,
    METHODS,
    Method,
    choose,
    competing,
    is_usual,
    read_value,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent.comparison import Comparison
    from prudent.comparison.protocol import Protocol
    from prudent.core.moments import ClassMoments
    from prudent.estimator_tools.labelled_rows import LabelledRows
    from prudent.io import TrainingData

COLOURS = {
    "kept": "green",
    "broken": "red",
    "nothing answered": "bright_black",
    "share not proved": "bright_black",
    "no better than always the most frequent class": "bright_black",
    # The same on two lines.
    "nothing": "bright_black",
    "no better than always": "bright_black",
    "the most frequent class": "bright_black",
}
NARROWEST = 60
# Options that change what is printed, not what is found, and the two that come first.
NOT_REPEATED = (
    *("data", "target", "report", "print_all", "examples", "json_file", "quiet"),
    *("jobs", "strict"),
)
# Options of `compare` that `fit` has too.
SHARED = (
    *("by", "groups", "time", "min_class_rows", "features", "drop", "missing"),
    "categorical",
    *("keep_identifiers", "delimiter", "encoding", "decimal", "no_header", "sample"),
)


@dataclass(frozen=True)
class ComparisonPage(options.Page):
    """The page that is asked for, and whether it may show rows of the table."""

    examples: Annotated[
        bool,
        typer.Option(
            "--examples",
            help="Show in the report some rows of the table that are handed over; "
            "without it the report holds none.",
        ),
    ] = False


@options.grouped
def compare(
    context: typer.Context,
    data: options.Data,
    *,
    target: options.Target = None,
    promise: Annotated[
        str,
        options.value(
            "TEXT",
            "What to promise: 'coverage >= 90% in every class', 'coverage >= "
            "95%', 'error <= 5%' (and answered >= 96%), 'answered >= 96%', 'missed "
            "LABEL <= 2%' (several with and; one and flagged <= 4%), or none.",
        ),
    ] = DEFAULT_PROMISE,
    by: options.By = None,
    confidence: options.Confidence = None,
    methods: Annotated[
        str,
        typer.Option(
            help=f"all, or some of {','.join(METHODS)} and dotted paths of classes."
        ),
    ] = "all",
    baselines: Annotated[
        str, typer.Option(help=f"none, or some of {','.join(BASELINES)}.")
    ] = ",".join(BASELINES),
    best: Annotated[
        bool | None,
        typer.Option(
            "--best/--no-best",
            help="The row best: the most useful of the methods under the promise, "
            "chosen inside each training part, at the full confidence; there without "
            "being asked for up to 2000 rows, where there are methods to choose from.",
            show_default=False,
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        options.value("METHOD.NAME=VALUE", "Set a parameter; may be repeated."),
    ] = None,
    costs: Annotated[
        Path | None,
        options.value(
            "FILE",
            "CSV of costs: a line for each true class, a column for each answer.",
        ),
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of all folds.")] = 1,
    groups: options.Groups = None,
    time: options.Time = None,
    min_class_rows: options.MinClassRows = 1,
    seed: options.Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = 1,
    page: ComparisonPage,
    json_file: options.JsonFile = None,
    sample: Annotated[
        str,
        options.value(
            "N|off",
            "Most rows to fit a method that needs rows; from a table beyond "
            "memory so many are drawn and tested on.",
        ),
    ] = options.DEFAULT_SAMPLE,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0, callback=options.check_seconds, help="Seconds for each method."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a method failed.")
    ] = False,
    no_timings: Annotated[
        bool, typer.Option("--no-timings", help="Leave out times and date.")
    ] = False,
    quiet: options.Quiet = False,
    columns: options.Columns,
) -> int:
    """Compare methods under the promise asked for, and check it out of fold."""
    _check_names(methods, baselines)
    most_rows = options.sample_size(sample)
    if time is not None and repeats > 1:
        raise UsageError(
            f"folds that go forward in --time are there once, got --repeats {repeats}."
        )
    if jobs == 0:
        raise UsageError("--jobs takes a number of processes, or -1 for all cores.")
    items = items_of(by)
    wish = options.checked_promise(promise, confidence, detector=False, by=items)
    parts = () if wish is None else wish.subgroups
    if time_limit is not None:
        prepare()
    chosen = _chosen(methods, baselines, param)
    rows, others, target = _read(
        data,
        target,
        columns,
        groups,
        time,
        parts,
        min_class_rows,
        most_rows,
        seed,
    )
    n_said = len(rows.notes)
    from prudent.comparison.protocol import Protocol

    protocol = Protocol(
        promise=promise,
        by=tuple(items),
        confidence=confidence,
        cv=cv,
        n_repeats=repeats,
        costs=None if costs is None else _costs(costs, rows),
        best=best,
        random_state=seed,
        n_jobs=jobs,
        time_limit=time_limit,
        sample=most_rows,
        in_time=time is not None,
        details=page.report is not None or json_file is not None,
    )
    chosen = protocol.with_best(chosen, len(rows.X))
    command = repeating(context, target)
    comparison, interrupted = _run(
        rows, chosen, protocol, quiet=quiet, others=others, command=command
    )
    comparison = with_next(comparison, context, target, chosen)
    for text in comparison.data.notes[n_said:]:
        note(text)
    if no_timings:
        comparison = comparison.without_timings()
    taken = json_file == STDOUT
    if not taken:
        _show(comparison)
    if json_file is not None:
        write_json(comparison.to_dict(), json_file)
    stream = sys.stderr if taken else sys.stdout
    if page.report is not None:
        shown = rows.frame if page.examples else None
        comparison.save_report(page.report, examples=shown, print_all=page.print_all)
    if not quiet:
        if page.report is not None:
            size = page.report.stat().st_size / 1000
            print(f"report: {page.report} ({size:.0f} kB)", file=stream)
        print(f"reproduce: {comparison.settings.command}", file=stream)
    return ExitCode.INTERRUPTED if interrupted else _outcome(comparison, strict=strict)


def _check_names(methods: str, baselines: str) -> None:
    """Refuse unknown names before anything is imported; dotted paths come later."""
    chosen = [] if methods == "all" else [n for n in names(methods) if "." not in n]
    references = [] if baselines == "none" else names(baselines)
    for option, given, known, offered in (
        ("--methods", chosen, {**METHODS, **BASELINES}, METHODS),
        ("--baselines", references, BASELINES, BASELINES),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise UsageError(
                f"{option} takes some of {', '.join(offered)}, got {unknown[0][:64]!r}."
            )
    if not names(methods) or not names(baselines):
        raise UsageError("--methods and --baselines take names, all, or none.")


def _chosen(methods: str, baselines: str, param: list[str] | None) -> Any:
    chosen = "all" if methods == "all" else list(dict.fromkeys(names(methods)))
    references = () if baselines == "none" else tuple(dict.fromkeys(names(baselines)))
    return with_parameters(chosen, [r for r in references if r not in chosen], param)


def with_parameters(
    methods: Any, baselines: Any, param: list[str] | None
) -> tuple[Method, ...]:
    """Methods with the parameters that were given as METHOD.NAME=VALUE."""
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
    with ending("{}", ExitCode.USAGE):
        chosen = choose(methods, baselines, parameters)
        for method in chosen:
            if method.parameters:
                method.estimator(0)
    return chosen


def _read(
    data: str,
    target: str | None,
    columns: options.Columns,
    groups: str | None,
    time: str | None,
    by: Sequence[str],
    min_class_rows: int,
    sample: int | None,
    seed: int,
) -> tuple[LabelledRows, ClassMoments | None, str]:
    """Rows in memory, moments of those that are not, and the name of the target."""
    from pyarrow import default_memory_pool

    surveyed = survey(data, target, columns, groups, min_class_rows, time)
    parts = columns_in(surveyed.source, by, surveyed.label)
    training, others = all_or_sample(surveyed, sample, seed, groups, parts, time)
    label = str(surveyed.label)
    # Arrow's pool would keep the memory of the columns while methods are fitted.
    del surveyed
    default_memory_pool().release_unused()
    drawn = _notes_on_sample(training, others)
    for text in drawn:
        note(text)
    rows = labelled_rows(
        training,
        inside=memberships(by, training.frame) if by else None,
        name=data,
        sha256=fingerprint(data) or "",
        missing=columns.filling,
        constant=training.constant,
        notes=(*training.notes, *drawn),
    )
    return rows, others, label


def labelled_rows(training: TrainingData, **known: Any) -> LabelledRows:
    """Rows of a table as what compares or tests them takes them; what else is known."""
    from prudent.estimator_tools.labelled_rows import LabelledRows

    assert training.y is not None
    return LabelledRows(
        X=training.X,
        y=training.y,
        features=tuple(training.preparation.names),
        groups=training.groups,
        times=training.times,
        **known,
    )


def _notes_on_sample(training: TrainingData, others: ClassMoments | None) -> list[str]:
    """Say what a table beyond memory was compared on."""
    drawn = drawn_from(training)
    if drawn is None:
        return []
    if others is None:
        return [f"the table does not fit into memory: {drawn} is compared on"]
    return [
        f"the table does not fit into memory: {drawn} is tested on, and fitted on by "
        "methods that need rows and by what makes a promise; plain methods that learn "
        "from moments are fitted on all rows but those they are tested on (their time "
        "leaves out that pass)"
    ]


def _costs(path: Path, rows: LabelledRows) -> NDArray[Any]:
    """Costs of each true class (row) and answer (column), classes sorted."""
    import numpy as np

    labels = [str(label) for label in rows.classes.tolist()]
    return np.array(options.read_costs(path, labels))[:, : len(labels)]


def _run(
    rows: LabelledRows, chosen: Any, protocol: Protocol, *, quiet: bool, **settings: Any
) -> tuple[Comparison, bool]:
    """Compare with the progress shown; Ctrl-C returns what finished, and True."""
    from prudent.comparison import ComparisonInterrupted
    from prudent.comparison.protocol import run

    running = [method.name for method in chosen]
    with (
        native_output_left_out(),
        Progress(running, quiet=quiet) as progress,
        failing_as_data(),
    ):
        try:
            comparison = run(
                rows, chosen, protocol, progress=progress.update, **settings
            )
        except ComparisonInterrupted as partial:
            return partial.comparison, True
    return comparison, False


def _show(comparison: Comparison) -> None:
    from prudent.evaluation.columns import WIDTH, table_lines

    is_terminal = sys.stdout.isatty()
    width = WIDTH
    if is_terminal or os.environ.get("COLUMNS"):  # asked for, also where piped
        width = max(NARROWEST, shutil.get_terminal_size().columns)
    for line in table_lines(comparison, width, _painted if is_terminal else str):
        typer.echo(line)


def _painted(cell: str) -> str:
    return typer.style(cell, fg=COLOURS[cell]) if cell in COLOURS else cell


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


def repeating(context: typer.Context, target: str) -> str:
    """Spell the command that repeats this comparison."""
    words = ["prudent", "compare", context.params["data"], "--target", target]
    typed = options.typed(context, {*NOT_REPEATED}, always=("seed", "cv"))
    return shlex.join([*words, *typed])


def with_next(
    comparison: Comparison,
    context: typer.Context,
    target: str,
    chosen: Sequence[Method],
) -> Comparison:
    """Add the command that makes a model of the method that is recommended.

    Where none is, that of what can be had instead.
    """
    from prudent.evaluation.words import to_be_had

    known = context.params
    had = to_be_had(comparison, known["promise"])
    if had is None:
        return comparison
    used, promise = had
    words = ["prudent", "fit", known["data"], "--target", target]
    words += ["--method", _typed(used.method, known["methods"])]
    given = [tuple(text.split(".", 1)) for text in known["param"] or []]
    if used.chooses:
        others = [method for method in chosen if not method.chooses]
        names_of = [method.name for method in competing(others)]
        if not is_usual(others):
            typed = [_typed(name, known["methods"]) for name in names_of]
            words += ["--candidates", ",".join(typed)]
        param = [".".join(pair) for pair in given if pair[0] in names_of]
    else:
        param = [setting for name, setting in given if name == used.method]
    for text in param:
        words += ["--param", text]
    if used.asked is not None:
        words += ["--promise", promise]
        if known["confidence"] is not None:
            words += ["--confidence", str(known["confidence"])]
        if any(item.guarantee.average_over for item in used.asked.items):
            words += ["--average"]  # as in the table
        elif not used.chooses and len(chosen) > 1:
            words += ["--among", str(len(chosen))]  # it was picked by these very rows
    left_out = {str(p.name) for p in context.command.params} - {*SHARED}
    if used.asked is None and known["time"] is not None:
        # Times say which rows prove a promise; without one they are no feature.
        left_out |= {"time", "drop"}
        words += ["--drop", ",".join([*names(known["drop"]), known["time"]])]
    words += [*options.typed(context, left_out), "-o", "model.prudent"]
    settings = replace(comparison.settings, next_command=shlex.join(words))
    return replace(comparison, settings=settings)


def _typed(method: str, listed: str) -> str:
    """Name of a method as it was typed: a dotted path is shown by its last part."""
    return next((p for p in names(listed) if p.rpartition(".")[2] == method), method)
