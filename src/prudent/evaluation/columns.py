"""The columns of a comparison: heading, figures and cell, for every reader of them.

The terminal, the report and `Comparison.to_frame` read one list, `COLUMNS`. A column
says under which promises it is printed, which figures it holds as numbers, and how a
person reads them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa

from prudent.evaluation import words
from prudent.evaluation.records import ClassRate, Findings, MethodRow
from prudent.io.errors import NO_BREAK, aligned, cut, percent, thousands, unbroken

Paint = Callable[[str], str]
# What is asked for, as far as columns depend on it: nothing; one answer or none; few
# errors in some classes; sets that hold the truth, of all rows, every class, or every
# subgroup.
Style = Literal[
    "none", "answers", "others", "sets", "sets by class", "sets by subgroup"
]
SETS: tuple[Style, ...] = ("sets", "sets by class", "sets by subgroup")
ASKED: tuple[Style, ...] = ("answers", "others", *SETS)
TEXT, NUMBER, WHOLE = pa.string(), pa.float64(), pa.int64()
WIDTH = 100
# Columns that go, in this order, where the terminal is narrow; a line says so.
DISPENSABLE = (
    *("predict", "notes", "fit", "worst class|error", "covered|(worst class)"),
    *("error", "cost", "wrong when|decided", "wrong when|answered"),
)
MOST_CLASSES = 4
LONGEST_LABEL = 24
short = partial(words.label_of, longest=12)  # labels in the table
# Verdicts that a column of a table has no room for, on two lines.
TWO_LINES = {
    "nothing answered": "nothing\nanswered",
    words.NO_BETTER: "no better than always\nthe most frequent class",
}


@dataclass(frozen=True)
class Column:
    """One column of a comparison."""

    title: str  # a bar parts two lines
    text: Callable[[MethodRow], str]  # the cell of a method that finished
    styles: tuple[Style, ...] = ("none", *ASKED)  # under which it is printed
    # Its figures as numbers: name, type, and how to get it; None where it is unknown.
    figures: Mapping[str, tuple[pa.DataType, Callable[[MethodRow], Any]]] = field(
        default_factory=dict
    )
    # Whether it is left out where no method has its figures.
    is_optional: bool = False
    # Whether its figures are of the method without the promise that was asked for.
    is_plain: bool = False

    def is_shown(self, findings: Findings, style: Style) -> bool:
        """Whether it is printed for a comparison of this style."""
        if style not in self.styles:
            return False
        return not self.is_optional or any(
            get(row) is not None
            for _, get in self.figures.values()
            for row in findings.ran
        )


def style(findings: Findings) -> Style:
    """What was asked for, as far as columns depend on it."""
    if findings.settings.promise == "none":
        return "none"
    asked = [row.asked for row in findings.ran if row.asked is not None]
    if any(each.others_error is not None for each in asked):
        return "others"
    if not any(each.worst_covered is not None for each in asked):
        return "answers"
    if any(each.worst_subgroup is not None for each in asked):
        return "sets by subgroup"
    scopes = {item.guarantee.scope for each in asked for item in each.items}
    return "sets" if scopes == {None} else "sets by class"


def printed(findings: Findings) -> tuple[Column, ...]:
    """The columns that people read."""
    shown = style(findings)
    return tuple(column for column in COLUMNS if column.is_shown(findings, shown))


def columns(findings: Findings) -> tuple[str, ...]:
    """Headings of `cells`; a bar parts two lines."""
    return tuple(column.title for column in printed(findings))


def cells(row: MethodRow, findings: Findings) -> tuple[str, ...]:
    """Texts of a row under `columns`; a failed row has its name only.

    A cell may hold two lines.
    """
    shown = printed(findings)
    if row.error is None:
        return (row.method, *[""] * (len(shown) - 1))
    return tuple(column.text(row) for column in shown)


def figures(findings: Findings) -> pa.Table:
    """All figures as numbers, a column each, and a row for each method."""
    named = {
        name: figure for column in COLUMNS for name, figure in column.figures.items()
    }
    return pa.table(
        {
            name: pa.array([get(row) for row in findings.rows], column_type)
            for name, (column_type, get) in named.items()
        }
    )


def _kept(row: MethodRow) -> str:
    if row.asked is None:
        kept = row.own_kept
        return words.NONE if kept is None else TWO_LINES.get(kept, kept)
    needs = row.asked.needs
    if needs is not None and row.asked.kept != "broken":
        label = "" if needs.label is None else f"\nof {cut(needs.label, 12)!r}"
        part = "" if needs.subgroup is None else f"\nin {cut(needs.subgroup, 12)!r}"
        return f"needs {needs.rows} {needs.unit}{label}{part}"
    return TWO_LINES.get(row.asked.kept, row.asked.kept)


def _own_promise(row: MethodRow) -> str:
    worst = row.worst_own
    return "none" if worst is None else words.promise_text(worst)


def _error_with_interval(row: MethodRow) -> str:
    low, high = row.error_interval
    return f"{row.error:.3f} ({low:.3f}–{high:.3f})"


def _worst_class(row: MethodRow) -> str:
    worst = row.worst_class
    return words.NONE if worst is None else f"{worst.rate:.3f} {short(worst.label)}"


def _others_error(row: MethodRow) -> str:
    if row.asked is None or not row.asked.items:
        return words.NONE
    return f"{row.asked.others_error or 0.0:.3f}"


def _missed(row: MethodRow) -> str:
    """What is missed of each class; of several subgroups where that is most."""
    promised = () if row.asked is None else row.asked.items
    rates = [item for item in promised if not words.is_capacity(item)]
    missed = (
        f"{100 * item.check.measured:.1f} % {short(item.guarantee.scope)}"
        + ("" if item.guarantee.subgroup is None else f" ({item.guarantee.subgroup})")
        for item in words.worst_of_each_class(rates)
    )
    return " ".join(missed) or words.NONE


def _flagged(row: MethodRow) -> float | None:
    """Share of all rows flagged, where it is promised."""
    items = () if row.asked is None else row.asked.items
    flagged = (i for i in items if i.guarantee.quantity == "flagged share")
    return next((item.check.measured for item in flagged), None)


def _set_size(row: MethodRow) -> str:
    size = _mean_size(row)
    return words.NONE if size is None else f"{size:.2f}"


def _covered(row: MethodRow) -> str:
    """Coverage of all rows, also of those in folds that had too few for the promise."""
    if row.asked is None or row.asked.sets is None:
        return words.NONE
    return f"{100 * row.asked.sets.coverage:.1f} %"


def _covered_least(row: MethodRow) -> str:
    """Coverage of the class, or of the class and subgroup, where it is lowest."""
    if row.asked is None or row.asked.worst_covered is None:
        return words.NONE
    worst = row.asked.worst_covered
    label = short(worst.label)
    if row.asked.worst_subgroup is not None:
        label = cut(worst.label, LONGEST_LABEL)
    return f"{100 * worst.rate:.1f} % {label}"


def _worst_subgroup(row: MethodRow) -> str:
    worst = None if row.asked is None else row.asked.worst_subgroup
    if worst is None:
        return words.NONE
    return f"{100 * worst.rate:.1f} % {cut(worst.label, LONGEST_LABEL)}"


def _mean_size(row: MethodRow) -> float | None:
    sets = row.sets if row.asked is None else row.asked.sets
    return None if sets is None else sets.mean_size


def _needs_rows(row: MethodRow) -> int | None:
    needs = None if row.asked is None else row.asked.needs
    return None if needs is None else needs.rows


def _decided(row: MethodRow) -> float | None:
    return row.decided if row.asked is None else row.asked.decided


def _wrong_when_decided(row: MethodRow) -> float | None:
    return (row if row.asked is None else row.asked).wrong_when_decided


def _end(row: MethodRow, side: int) -> float | None:
    return None if row.error is None else row.error_interval[side]


def _label(worst: ClassRate | None) -> str | None:
    return None if worst is None else worst.label


def _rate(worst: ClassRate | None) -> float | None:
    return None if worst is None else worst.rate


ANSWERED = Column(
    "answered",
    lambda row: percent(_decided(row)),
    ("answers",),
    {"decided": (NUMBER, _decided)},
)
WRONG = Column(
    "wrong when|answered",
    lambda row: percent(_wrong_when_decided(row), 1),
    ("answers",),
    {"wrong_when_decided": (NUMBER, _wrong_when_decided)},
)
ERROR = Column(
    "error|(95 % interval)",
    _error_with_interval,
    ("none",),
    {
        "error": (NUMBER, lambda row: row.error),
        "error_low": (NUMBER, lambda row: _end(row, 0)),
        "error_high": (NUMBER, lambda row: _end(row, 1)),
    },
)
WORST_CLASS = Column(
    "worst class|error",
    _worst_class,
    ("none",),
    {
        "worst_class": (TEXT, lambda row: _label(row.worst_class)),
        "worst_class_error": (NUMBER, lambda row: _rate(row.worst_class)),
    },
)
# In the order in which they are printed. What is asked for comes first; the method as
# it is, without the promise, behind it.
COLUMNS = (
    Column(
        "method",
        lambda row: row.method,
        figures={
            "method": (TEXT, lambda row: row.method),
            "is_baseline": (pa.bool_(), lambda row: row.is_baseline),
        },
    ),
    Column(
        "promise|kept?",
        _kept,
        figures={
            "kept": (TEXT, lambda row: row.asked.kept if row.asked else row.own_kept),
            "needs_rows": (WHOLE, _needs_rows),
        },
    ),
    Column("own promise", _own_promise, ("none",)),
    ERROR,
    Column(
        "others'|error",
        _others_error,
        ("others",),
        {"others_error": (NUMBER, lambda row: row.asked and row.asked.others_error)},
    ),
    Column("missed", _missed, ("others",)),
    Column(
        "flagged",
        lambda row: percent(_flagged(row), 1),
        ("others",),
        {"flagged_share": (NUMBER, _flagged)},
        is_optional=True,
    ),
    ANSWERED,
    WRONG,
    replace(ANSWERED, title="decided", styles=("none", *SETS)),
    replace(WRONG, title="wrong when|decided", styles=SETS),
    Column("set|size", _set_size, SETS, {"set_size": (NUMBER, _mean_size)}),
    Column(
        "error of the|worst subgroup",
        _worst_subgroup,
        ("answers",),
        {
            "worst_subgroup": (
                TEXT,
                lambda row: row.asked and _label(row.asked.worst_subgroup),
            ),
            "worst_subgroup_error": (
                NUMBER,
                lambda row: row.asked and _rate(row.asked.worst_subgroup),
            ),
        },
        is_optional=True,
    ),
    Column("covered", _covered, ("sets",)),
    Column("covered|(worst class)", _covered_least, ("sets by class",)),
    Column("covered (worst|class and subgroup)", _covered_least, ("sets by subgroup",)),
    WORST_CLASS,
    Column(
        "cost",
        lambda row: f"{row.cost:.3g}",
        figures={"cost": (NUMBER, lambda row: row.cost)},
        is_optional=True,
        is_plain=True,
    ),
    replace(
        ERROR,
        title="error",
        text=lambda row: f"{row.error:.3f}",
        styles=ASKED,
        is_plain=True,
    ),
    replace(WORST_CLASS, styles=ASKED, is_plain=True),
    Column(
        "fit",
        lambda row: words.seconds(row.fit_seconds),
        figures={"fit_seconds": (NUMBER, lambda row: row.fit_seconds)},
        is_plain=True,
    ),
    Column(
        "predict",
        lambda row: words.seconds(row.predict_seconds, "/row"),
        ("none",),
        {"predict_seconds": (NUMBER, lambda row: row.predict_seconds)},
    ),
    Column("notes", lambda row: "; ".join(words.notes(row)), ("none",)),
)


def table_lines(
    findings: Findings, width: int = WIDTH, paint: Paint = str
) -> list[str]:
    """Everything as lines of text, at most so wide where words allow.

    Sentences are at most `WIDTH` wide, for they are hard to read beyond. `paint` may
    put colours around the words that say how promises fared.
    """
    table = _method_lines(findings, width, paint) if findings.ran else []
    width = min(width, WIDTH)
    lines = [part for line in _heading(findings) for part in _wrapped(line, width)]
    lines += ["", *table, *([""] if table else [])]
    for text in words.failures(findings):
        lines += _wrapped(text, width)
    if findings.settings.promise != "none" or findings.ran:
        for sentence in words.verdict(findings):
            lines += _wrapped(sentence, width)
    settings = findings.settings
    does = "try" if words.recommended(findings) is None else "use"
    if settings.next_command is not None:
        lines.append(f"To {does} it:  {settings.next_command}")
    elif settings.call is not None:
        lines.append(f"To {does} it in Python:  {settings.call}")
    return lines


def _heading(findings: Findings) -> list[str]:
    """What was compared, how, and which promise was asked for."""
    data, settings = findings.data, findings.settings
    counts = sorted(
        zip(data.class_counts, data.classes, strict=True), key=itemgetter(0)
    )
    shown = ", ".join(
        f"{words.label_of(label, LONGEST_LABEL)} {n}"
        for n, label in counts[:MOST_CLASSES]
    )
    if len(counts) > MOST_CLASSES:
        least, most = counts[0][0], counts[-1][0]
        between = f"{least}" if least == most else f"{least} to {most}"
        shown = f"{len(counts)} classes of {between} rows"
    repeats = f" × {settings.n_repeats}" if settings.n_repeats > 1 else ""
    folds = "fold" if settings.n_folds == 1 else "folds"
    folds += " forward in time" if data.order else ""
    asked = "no promise asked for; all figures are out of fold"
    if settings.promise != "none":
        asked = f"asked: {words.asked_for(findings)}"
    return [
        f"{data.name} · {thousands(data.n_rows)} rows × {len(data.features)} features "
        f"· {shown} · {settings.n_folds} {folds}{repeats}, "
        f"seed {settings.random_state}",
        asked,
        *([f"in time: {data.order}"] if data.order else []),
    ]


def _method_lines(findings: Findings, width: int, paint: Paint) -> list[str]:
    """The table and its key, less wide where columns can be done without."""
    names = columns(findings)
    rows = [cells(row, findings) for row in findings.ran]
    left_out: set[str] = set()
    # First on one line each, then as narrow as they get, then without some columns.
    for name, part in (("", " "), ("", "\n"), *((name, "\n") for name in DISPENSABLE)):
        left_out.add(name)
        shown = [j for j, name in enumerate(names) if name not in left_out]
        # A bar in a heading parts two lines.
        lines = [*zip_longest(*(names[j].split("|") for j in shown), fillvalue="")]
        for row in rows:
            texts = [row[j].replace("\n", part).split("\n") for j in shown]
            lines += zip_longest(*texts, fillvalue="")
        if max(map(len, aligned(lines))) <= width:
            break
    missing = [name.replace("|", " ") for name in names if name in left_out]
    sentences = key(findings, left_out)
    if missing:
        sentences.append(
            f"Left out for want of width: {', '.join(missing)}; a wider terminal or "
            "--report shows them."
        )
    wrapped = [part for text in sentences for part in _wrapped(text, min(width, WIDTH))]
    return [*aligned(lines, paint), *([""] if wrapped else []), *wrapped]


def key(findings: Findings, left_out: Collection[str] = ()) -> list[str]:
    """Sentences on how to read the table, without the columns that were left out."""
    asked = findings.settings.promise != "none"
    shown = [column for column in printed(findings) if column.title not in left_out]
    kept = {_kept(row) for row in findings.ran}
    plain = [column.title.replace("|", " ") for column in shown if column.is_plain]
    of_choice = words.fit_of_choice(findings) if "fit" in plain else ""
    return [
        *([words.CONSISTENT] if "consistent" in kept else []),
        *([words.of_the_plain_method(plain)] if asked and plain else []),
        *([of_choice] if of_choice else []),
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a sentence; a figure and its unit stay together."""
    lines = textwrap.wrap(
        unbroken(text),
        width,
        subsequent_indent="  ",
        break_long_words=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines] or [""]
