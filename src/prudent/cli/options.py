"""Options that several commands share, defined once."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_type_hints

import typer

from prudent.cli.output import (
    ExitCode,
    UsageError,
    check_writable,
    content_of,
    ending,
    set_quiet,
)

DEFAULT_SAMPLE = "100000"


def check_inside(param: typer.CallbackParam, probability: float | None) -> float | None:
    """Refuse a probability that is 0 or 1 or beyond."""
    if probability is not None and not 0 < probability < 1:
        raise UsageError(f"{param.opts[0]} must lie in (0, 1), got {probability:g}.")
    return probability


def check_seconds(param: typer.CallbackParam, seconds: float | None) -> float | None:
    """Refuse a limit of time that is none."""
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"{param.opts[0]} takes seconds > 0, got {seconds:g}.")
    return seconds


def value(metavar: str, help: str, *names: str, **settings: Any) -> Any:
    """An option that takes a value, of which the help says `metavar`."""
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def output(help: str) -> Any:
    """The option -o, whose file is tried before any work is done."""
    return value("FILE", help, "-o", "--output", callback=check_writable)


# What to do with missing cells, and with text columns.
Missing = Literal["fill", "mean", "drop-rows", "error"]
Categorical = Literal["onehot", "drop", "error"]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .tsv, .txt (also .gz) or .parquet file, a folder of parquet, "
        "- for CSV on standard input, or a bundled name (see prudent datasets).",
    ),
]
Target = Annotated[
    str | None,
    value("COL", "Column with the class labels, or last."),
]
Truth = Annotated[
    str | None,
    value("COL", "Column with the truth, or last.", "--target", "--truth"),
]
Normal = Annotated[
    str | None,
    value("LABEL", "The class that a detector is to learn."),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", callback=set_quiet, help="Print results and errors only."),
]
JsonFile = Annotated[
    str | None,
    value("FILE", "Write JSON; - for stdout.", "--json", callback=check_writable),
]
CsvFile = Annotated[
    Path | None,
    output("CSV file; else stdout."),
]
Keep = Annotated[
    str | None,
    value("COL,..", "Copy these columns to the output."),
]
ModelOrRule = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file, or rule file.")
]
ModelFile = Annotated[Path, value("FILE", "Model file.", "-m", "--model")]
Trusted = Annotated[
    list[str] | None,
    value(
        "TYPE",
        "Full name of a type of another package that a model file may hold; may "
        "be repeated. Only of files from sources that you trust.",
    ),
]
Param = Annotated[
    list[str] | None,
    value("NAME=VALUE", "Set a parameter; may be repeated."),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        callback=check_inside,
        help="Probability that what is promised is true of the fitted model, of all "
        "classes at once; without it 0.95 of errors and missed classes.",
    ),
]
Groups = Annotated[
    str | None,
    value(
        "COL",
        "Column that says which rows belong together (patients, machines); no feature.",
    ),
]
By = Annotated[
    str | None,
    value(
        "COL,..",
        "Columns each part of which gets the promise: sex,age_band; crossed "
        "sex*age_band; in bands age:30,45,60. They stay features, unless --drop names "
        "them.",
    ),
]
Time = Annotated[
    str | None,
    value(
        "COL",
        "Column that says when rows were taken, numbers or ISO dates; no feature. "
        "The latest rows are held out, and the promise is about rows like these.",
    ),
]
MinClassRows = Annotated[
    int, typer.Option(min=1, help="Leave out classes of fewer rows.")
]
Sample = Annotated[
    str,
    value("N|off", "Rows to draw where a table beyond memory must fit."),
]


@dataclass(frozen=True)
class Page:
    """The page that is asked for, if one is."""

    report: Annotated[
        Path | None,
        value("FILE", "Write an HTML report here.", callback=check_writable),
    ] = None
    print_all: Annotated[
        bool,
        typer.Option(
            "--print-all",
            help="Fold nothing in the report, so that all of it is printed.",
        ),
    ] = False

    def __post_init__(self) -> None:
        for option in fields(self)[1:]:
            if getattr(self, option.name) and self.report is None:
                raise UsageError(
                    f"--{option.name.replace('_', '-')} is about the report: give "
                    "--report FILE, too."
                )


@dataclass(frozen=True)
class Reading:
    """How the text of a table is to be understood."""

    delimiter: Annotated[
        str | None, typer.Option(help="One character; sniffed among , ; tab and |.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the file, such as latin-1.")
    ] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark.")] = "."
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line holds data, not names.")
    ] = False

    def __post_init__(self) -> None:
        if self.delimiter == r"\t":  # as typed in a shell
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise UsageError(
                f"--delimiter takes one character, got {self.delimiter!r}."
            )
        if len(self.decimal) != 1:
            raise UsageError(f"--decimal takes one character, got {self.decimal!r}.")


@dataclass(frozen=True)
class Columns(Reading):
    """How a table is read, which columns become features, and what becomes of gaps."""

    features: Annotated[str | None, value("COL,..", "Use these columns only.")] = None
    drop: Annotated[str | None, value("COL,..", "Leave these columns out.")] = None
    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do with missing cells (empty, NA, NaN, NULL, None, ?): fill "
            "(median, and a column that says where), mean, drop-rows, error."
        ),
    ] = "fill"
    categorical: Annotated[
        Categorical, typer.Option(help="What to do with text columns.")
    ] = "onehot"
    keep_identifiers: Annotated[
        bool,
        typer.Option(
            "--keep-identifiers", help="Keep text columns without repeated words."
        ),
    ] = False

    @property
    def filling(self) -> Literal["fill", "mean"]:
        """How missing cells are filled, where they are."""
        return "mean" if self.missing == "mean" else "fill"

    def without(self, name: str | None) -> Self:
        """The same columns without one that is no feature."""
        if name is None:
            return self
        return replace(self, drop=",".join([*names(self.drop), name]))


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take dataclasses: their fields are options where they stand."""
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for name, own in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(own.annotation):
            group: Any = own.annotation
            groups[name] = group
            # Of a derived class, too, whose module may not know the names in them.
            hints = get_type_hints(group, include_extras=True)
            options += [
                field.replace(annotation=hints[field.name])
                for field in inspect.signature(group).parameters.values()
            ]
        else:
            options.append(own)
    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options]

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, group in groups.items():
            taken = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**taken)
        return command(**given)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def sample_size(text: str) -> int | None:
    """Rows that --sample asks for; None for "off"."""
    if text == "off":
        return None
    if not text.isdecimal() or int(text) < 2:
        raise UsageError(f"--sample takes a number of rows >= 2 or off, got {text!r}.")
    return int(text)


def refuse_both(confidence: float | None, *, average: bool) -> None:
    """Refuse --confidence of a promise on --average, which has none."""
    if average and confidence is not None:
        raise UsageError("a promise on --average has no --confidence: leave one out.")


def checked_promise(
    promise: str,
    confidence: float | None,
    *,
    detector: bool,
    by: Sequence[str] = (),
) -> Any:
    """The promise as guarantees, its classes not known yet; None for "none"."""
    from prudent.rules.wish import parse_promise

    if confidence is not None and promise == "none":
        raise UsageError("--confidence is that of a promise: give --promise, too.")
    with ending("{}", ExitCode.USAGE):
        wish = parse_promise(promise, confidence=confidence, by=by)
    is_alarm = wish is not None and wish.kind == "false alarm"
    if wish is not None and is_alarm != detector:
        hint = "prudent detect" if is_alarm else "'false alarm <= 5%'"
        raise UsageError(f"the promise {promise!r} is not for this: use {hint}.")
    return wish


def is_of_detector(promise: str) -> bool:
    """Whether a promise is about false alarms of all normal rows, not of a class."""
    from prudent.rules.wish import parse_promise

    try:
        wish = parse_promise(promise)
    except ValueError:  # said where it is read
        return False
    return wish is not None and wish.kind == "false alarm"


def names(listed: str | None) -> list[str]:
    """Split a comma-separated option.

    Examples
    --------
    >>> names("age, sex"), names(None)
    (['age', 'sex'], [])
    """
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def read_costs(path: Path, labels: Sequence[str]) -> list[list[float]]:
    """Costs from a CSV whose first column and header hold the labels.

    A line for each label, as given; columns as the labels, then those that no class
    is called, which are the cost of no answer.
    """
    content = content_of(path, ExitCode.DATA, hint=". Name a CSV file of costs")
    with ending(
        f"{path} is no table of costs: it needs a line and a column for each of "
        f"{', '.join(labels[:5])}, the first column and the header their names",
        ExitCode.DATA,
        KeyError,
        ValueError,
    ):
        header, *lines = [
            line for line in csv.reader(StringIO(content.decode())) if line
        ]
        answers = [name.strip() for name in header[1:]]
        cells = {
            line[0].strip(): dict(zip(answers, map(float, line[1:]), strict=True))
            for line in lines
        }
        others = [name for name in answers if name not in labels]
        return [
            [cells[true][answer] for answer in [*labels, *others]] for true in labels
        ]


def typed(
    context: typer.Context, left_out: set[str], always: tuple[str, ...] = ()
) -> list[str]:
    """Options that differ from their defaults, as they are typed."""
    typed: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params[name]
        if name in left_out or (
            value == parameter.get_default(context) and name not in always
        ):
            continue
        if value is False:
            typed.append(parameter.secondary_opts[0])
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            typed.append(parameter.opts[0])
            if item is not True:
                typed.append(str(item))
    return typed
