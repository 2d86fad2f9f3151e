"""The sections of a comparison's report: a sentence, a figure, the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyarrow import compute

from prudent.core.checks import PromiseCheck
from prudent.core.guarantee import Guarantee
from prudent.evaluation import words
from prudent.evaluation.columns import cells, columns, key, style
from prudent.evaluation.frame import calibrations, false_alarms, shift_errors
from prudent.evaluation.records import ColumnRange, Findings, MethodRow
from prudent.io.errors import NO_BREAK, counted, cut, listed, percent, shown
from prudent.report import figures
from prudent.report.answers import asked_items, of_comparison
from prudent.report.page import (
    LONGEST_NAME,
    Section,
    Table,
    first_rows,
    page,
    shown_sets,
)

MOST_NAMES = 200  # of features, in the data of a page
MOST_COLUMNS = 8  # of rows that are shown


def render(
    findings: Findings,
    data: dict[str, Any],
    *,
    examples: Mapping[str, Sequence[Any]] | None = None,
    print_all: bool = False,
) -> str:
    """Return the report of a comparison as one HTML document.

    It refers to nothing outside itself, is read without its script (which sorts tables,
    moves the promise, copies and saves), and is the same for the same findings byte for
    byte. It holds no row of the data but the `examples`: those that the row shown in
    detail names, in their order.
    `data` are the findings as JSON types, for programs that read the page; without
    `examples` they name no row, either.
    """
    if examples is None:
        for row in data["rows"]:
            row["examples"] = []
    return page(
        f"prudent: {findings.data.name}",
        of_comparison(findings),
        sections(findings, examples),
        _with_few_names(data),
        print_all=print_all,
    )


# Of a promise, in the data of a page: a method's later ones have them where they differ
# from its first.
SAID_ONCE = (
    "sense",
    "confidence",
    "average_over",
    "assumptions",
    "subgroup",
    "unit",
    "source",
)


def _with_few_names(data: dict[str, Any]) -> dict[str, Any]:
    features = data["data"]["features"]
    data["data"]["n_features"] = len(features)
    data["data"]["features"] = [name[:LONGEST_NAME] for name in features[:MOST_NAMES]]
    for row in data["rows"]:
        for items in (row["own"], row["asked"]["items"] if row["asked"] else []):
            for item in items[1:]:
                for name in SAID_ONCE:
                    if item[name] == items[0][name]:
                        del item[name]
    return data


VERDICTS = (
    "Broken: the rows refute the promise; kept: they prove it; consistent (not "
    "contradicted): neither, which is what a tight promise looks like; all verdicts of "
    "the table share one level (Holm, 5 %). No better than always the most frequent "
    "class: that could promise as much (of a promise in every class: as much on "
    "average over the classes). Share not proved: of the rows held out too few are "
    "answered, or too many flagged, to promise the share asked for. Methods are sorted "
    "by {order}, and told apart by an exact paired test on rows, corrected over "
    "methods."
)
# What methods are sorted by, by what was asked for.
ORDER = "rows decided rightly less rows decided wrongly"
ORDERS = {"none": "error", "others": "rows of the other classes answered rightly"}
# Rows that are answered, in what was measured.
DECIDED = "wrong when decided"
# A bound on this share of the rows says nothing.
NO_ROOM = 1.0


def sections(
    findings: Findings, examples: Mapping[str, Sequence[Any]] | None = None
) -> list[Section]:
    """All sections, in the order of the page; what few readers need is folded."""
    asked = findings.settings.promise != "none"
    return [
        _answer(findings),
        *([_frontier(findings)] if findings.frontier and findings.ran else []),
        *([_subgroups(findings)] if _is_by_subgroup(findings) else []),
        _promises(findings),
        *([_handed_over(findings, examples)] if asked and findings.ran else []),
        *(
            replace(section, folded=True)
            for section in (
                _worst_classes(findings),
                *([_room(findings)] if asked else []),
                _shift(findings),
                _sets(findings),
                _false_alarms(findings),
                _regions(findings),
                _confusion(findings),
                _time(findings),
                _data(findings),
                _appendix(findings),
            )
        ),
    ]


def _answer(findings: Findings) -> Section:
    """The question, what else there is to say, and the table."""
    settings = findings.settings
    repeats = f", {settings.n_repeats} times" if settings.n_repeats > 1 else ""
    question = (
        "Which method errs least, out of fold?"
        if settings.promise == "none"
        else f"Every method was made to promise: {words.asked_for(findings)}. Which "
        "is the most useful then?"
    )
    # The first is on the card above.
    sentences = [question, *words.verdict(findings)[1:]]
    headings = [name.replace("|", " ") for name in columns(findings)]
    # A failed row has its reason in the place of all figures.
    lines = [
        tuple(cell.replace("\n", " ") for cell in cells(row, findings))
        if row.failure is None
        else (row.method, f"FAILED  {cut(row.failure.text, 300)}")
        for row in findings.rows
    ]
    folds = "fold" if settings.n_folds == 1 else "folds"
    folds = f"{folds} forward in time" if findings.data.order else f"stratified {folds}"
    # Of verdicts the note says more.
    about = [line for line in key(findings) if line != words.CONSISTENT]
    note = (
        f"{' '.join(about)} All figures are out of fold: {settings.n_folds} "
        f"{folds}{repeats}, seed {settings.random_state}. "
        + VERDICTS.format(order=ORDERS.get(style(findings), ORDER))
    )
    return Section(
        "answer",
        "Methods",
        sentences,
        tables=[Table("Methods, the most useful first", headings, lines, note=note)],
        sortable=True,
        wide=True,
    )


def _frontier(findings: Findings) -> Section:
    """Shares at every promise: a figure, and tables of one that a slider moves."""
    curve = findings.frontier
    assert curve is not None
    what = "coverage" if curve.kind == "coverage" else "error"
    share, line = "the rows that still get one answer", "rows decided"
    named = ("decided", "undecided", "wrong when decided")
    if style(findings) == "others":
        share = "the other classes' rows that are still answered rightly"
        line = "other classes' rows answered rightly"
        named = ("others right", "others handed over or wrong", "wrong when answered")
    elif curve.kind == "error":
        share, line = "the rows that still get an answer", "rows answered"
        named = ("answered", "handed over", "wrong when answered")
    here = curve.levels.index(curve.asked)
    rows = [
        (
            row.method,
            percent(curve.decided[row.method][here], 1),
            percent(1 - curve.decided[row.method][here], 1),
            percent(_wrong_as_asked(row, curve.decided[row.method][here]), 1),
        )
        for row in findings.ran
        if row.method in curve.decided
    ]
    by_class = [
        (method, *(percent(shares[here], 1) for shares in curve.by_class[method]))
        for method, *_ in rows
    ]
    labels, by_class, shown = _first_classes(findings, by_class)
    with_share = curve.least > 0 or any(
        row.asked is not None and not row.asked.has_share for row in findings.ran
    )
    proved = ""
    if with_share:
        proved = " Rows count only where the share asked for is proved, too."
        named = (
            f"{named[0]}, share proved",
            f"{named[1]}, or share not proved",
            named[2],
        )
    caption = f"Of the rows of each class: {named[0]}"
    if style(findings) == "others":
        caption = "Of the rows of each class: answered rightly"
    return Section(
        "frontier",
        "What each promise costs",
        [
            f"Share of {share}, at every promise one may ask "
            "for; the dashed line is the one that was asked for. The same fits answer "
            "every level. A rate changed after a look at the curve needs fresh rows "
            f"(prudent certify).{proved}"
        ],
        lambda: figures.frontier(findings),
        f"Lines: {line} against promised {what}, one a method.",
        [
            first_rows(
                f"{curve.promises[here]}, as asked for: all else was seen in this "
                "comparison, not promised.",
                ("method", *named),
                rows,
            ),
            first_rows(f"{caption}.{shown}", ("method", *labels), by_class),
        ],
        explored=True,
        wide=True,
    )


def _wrong_as_asked(row: MethodRow, decided: float) -> float | None:
    """Share of the answers that are wrong, None where nothing is decided."""
    if row.asked is None or decided == 0:
        return None
    return row.asked.wrong_when_decided


def _handed_over(
    findings: Findings, examples: Mapping[str, Sequence[Any]] | None
) -> Section:
    """Of which classes rows are left to people, by each method; and of which values."""
    counts = findings.measured.filter(
        compute.field("asked") & compute.is_valid(compute.field("fold"))
    )
    totals = counts.group_by(["method", "quantity", "scope"]).aggregate([("n", "sum")])
    rows_of = {
        (line["method"], line["quantity"], line["scope"]): line["n_sum"]
        for line in totals.to_pylist()
    }
    lines = []
    for row in findings.ran:
        shares = [
            1 - rows_of.get((row.method, DECIDED, label), 0) / all_rows
            for label in findings.data.classes
            if (all_rows := rows_of.get((row.method, "covered", label), 0))
        ]
        if len(shares) == len(findings.data.classes):
            lines.append((row.method, *(percent(share) for share in shares)))
    labels, lines, shown = _first_classes(findings, lines)
    return Section(
        "handed-over",
        "Who is handed over",
        [
            "Share of the rows of each class that get no single answer: people decide "
            "them. A class that is handed over much more often than others gets less "
            f"help.{shown}"
        ],
        tables=[
            first_rows("Handed over, by class", ("method", *labels), lines),
            *_by_value(words.in_detail(findings)),
            *([] if examples is None else [_examples(findings, examples)]),
        ],
        wide=True,
    )


def _first_classes(
    findings: Findings, lines: Sequence[tuple[str, ...]]
) -> tuple[list[str], list[tuple[str, ...]], str]:
    """Headings and figures of as many classes as a page has room for, and a note."""
    classes = findings.data.classes
    labels = [words.label_of(label) for label in classes[:MOST_CLASSES]]
    few = f" Shown are {MOST_CLASSES} classes." if len(classes) > MOST_CLASSES else ""
    return labels, [line[: MOST_CLASSES + 1] for line in lines], few


RANGES = (
    "Seen here, not promised. In each column the range was sought that stands out "
    "most; shown are those whose rows an exact test, corrected for all that were "
    "looked at, does not put down to chance (5 %)."
)


def _by_value(row: MethodRow | None) -> list[Table]:
    """Values of single columns with which a method hands over more rows."""
    if row is None or not row.ranges:
        return []
    lines = [
        (
            cut(values.column),
            _values_in_words(values),
            f"{values.n}",
            percent(values.handed_over),
            percent(values.elsewhere),
        )
        for values in row.ranges
    ]
    columns = ("column", "value", "rows", "handed over", "of all others")
    caption = f"Where {row.method} hands over more often"
    return [Table(caption, columns, lines, note=RANGES)]


def _values_in_words(values: ColumnRange) -> str:
    """A range, a word, or a missing cell."""
    if values.word is not None:
        return shown(values.word)
    if values.low is not None and values.high is not None:
        return f"{values.low:.4g} to {values.high:.4g}"
    if values.low is not None:
        return f"at least {values.low:.4g}"
    return "missing" if values.high is None else f"at most {values.high:.4g}"


def _examples(findings: Findings, examples: Mapping[str, Sequence[Any]]) -> Table:
    """Some rows that are handed over, the columns that tell most first."""
    row = words.in_detail(findings)
    assert row is not None
    telling = [values.column for values in row.ranges]
    names = sorted(examples, key=lambda name: name not in telling)
    chosen = [map(_short, examples[name]) for name in names[:MOST_COLUMNS]]
    labels = [words.label_of(label) for _, label in row.examples]
    lines = [*zip(labels, *chosen, strict=True)]
    columns = "true class", *map(cut, names[:MOST_COLUMNS])
    more = len(names) - MOST_COLUMNS
    note = f"{counted(more, 'column')} more are not shown." if more > 0 else ""
    return Table(f"Some rows that {row.method} hands over", columns, lines, note=note)


def _short(cell: Any) -> str:
    """A cell of the table; "" for a missing one."""
    if cell is None or cell != cell:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else cut(cell)


def _worst_classes(findings: Findings) -> Section:
    rows = [
        (
            row.method,
            f"{row.error:.4f}",
            f"{row.error_interval[0]:.4f} to {row.error_interval[1]:.4f}",
            f"{row.worst_class.rate:.4f}",
            cut(row.worst_class.label),
        )
        for row in findings.ran
        if row.worst_class is not None
    ]
    columns = ("method", "error", "95 % interval", "worst class error", "class")
    return Section(
        "errors",
        "Errors, and those of the worst class",
        [
            "Errors of the plain methods, fitted on whole training parts. A small "
            "error may hide a class that is nearly always missed."
        ],
        lambda: figures.worst_classes(findings),
        "Points: error of the worst class of each method.",
        [first_rows("Errors", columns, rows)],
        nothing="No method finished.",
    )


def _held(item: PromiseCheck, digits: int) -> tuple[str, str, str, str]:
    """Whom a promise is about, its bound, what was measured, and the interval."""
    low, high = item.check.interval
    side = "≤" if item.guarantee.sense == "<=" else "≥"
    return (
        _about(item.guarantee),
        f"{side}{NO_BREAK}{item.guarantee.bound:.{digits}f}",
        f"{item.check.measured:.{digits}f}",
        f"{low:.3f}{JOINER}–{JOINER}{high:.3f}",
    )


def _about(guarantee: Guarantee) -> str:
    """The class and the subgroup that a promise is about, or all rows."""
    parts = (guarantee.scope, guarantee.subgroup)
    return " with ".join(cut(part) for part in parts if part is not None) or "all"


def _room(findings: Findings) -> Section:
    """How far the future may differ before the promise fails."""
    rows = []
    for row, item in asked_items(findings):
        low, high = item.check.interval
        largest = 1 - low if item.guarantee.quantity == "coverage" else high
        factor = item.allowed / largest if largest > 0 else float("inf")
        room = f"{factor:.2f}" if factor > NO_ROOM else "no room shown"
        rows.append((row.method, _about(item.guarantee), room))
    return Section(
        "room",
        "If the future differs",
        [
            "The promise survives until some kind of row becomes this many times as "
            "frequent, among the rows that the promise is about, as it was here: the "
            "share of violations that the promise allows over the largest that these "
            "rows do not exclude (exact interval)."
        ],
        tables=[first_rows("Room", ("method", "class", "times as frequent"), rows)],
    )


def _data(findings: Findings) -> Section:
    data = findings.data
    share = np.array(data.class_counts) / data.n_rows
    rows = [
        (words.label_of(label), str(count), f"{100 * part:.1f} %")
        for label, count, part in zip(
            data.classes, data.class_counts, share.tolist(), strict=True
        )
    ]
    sentences = [
        f"{data.n_rows} rows, {len(data.features)} features, "
        f"{len(data.classes)} classes; the figure shows the rows of each class."
    ]
    if data.constant_features:
        names = listed(map(cut, data.constant_features))
        sentences.append(f"Constant, and therefore ignored: {names}.")
    sentences += [_sentence(note) for note in data.notes]
    if data.order:
        sentences.append(
            "Folds go forward in time: each tests rows later than those it learns from."
        )
        sentences.append(_sentence(data.order))
    settings = findings.settings
    facts = [
        ("command", settings.command),
        ("data", f"{data.name}: {data.n_rows} rows, {len(data.features)} features"),
        ("SHA-256", data.sha256),
        ("date", settings.date or "left out"),
        ("seed", str(settings.random_state)),
        ("versions", ", ".join(" ".join(v) for v in findings.versions.items())),
    ]
    return Section(
        "data",
        "Data",
        sentences,
        lambda: figures.class_counts(findings),
        "Bars: rows of each class.",
        [
            first_rows("Rows of each class", ("class", "rows", "share"), rows),
            Table("What was run, on what, with what", ("", ""), facts),
        ],
    )


def _time(findings: Findings) -> Section:
    lines = [
        (
            row.method,
            words.seconds(row.fit_seconds),
            words.seconds(row.predict_seconds, "/row"),
        )
        for row in findings.ran
        if row.fit_seconds is not None
    ]
    peak = findings.settings.peak_memory
    memory = "" if peak is None else f" The process held {peak / 1e6:.0f} MB at most."
    return Section(
        "time",
        "Time",
        [
            "Median over the folds of one fit and of predicting by the plain method, "
            "wall time; methods that learn from moments share one pass over the rows."
            + memory,
            *filter(None, [words.fit_of_choice(findings)]),
        ],
        lambda: figures.times(findings),
        "Bars: seconds of fit and predict.",
        [first_rows("Time of each method", ("method", "fit", "predict"), lines)],
        nothing="Times are left out of this report.",
    )


def _appendix(findings: Findings) -> Section:
    scores = [
        (
            score.method,
            f"{score.repeat}/{score.fold}",
            f"{score.n_train} / {score.n_test}",
            f"{score.error:.4f}",
            "" if score.set_size is None else f"{score.set_size:.3f}",
            "" if score.coverage is None else f"{score.coverage:.3f}",
        )
        for score in findings.folds
    ]
    parameters = [
        (row.method, "; ".join(f"{k}={cut(v)}" for k, v in row.parameters.items()))
        for row in findings.ran
    ]
    columns = ("method", "repeat/fold", "fitted / tested", "error", "set size")
    warnings = [
        (row.method, cut(text, 300))
        for row in findings.ran
        for text in row.warnings[:3]
    ]
    full = (
        " Promises of full conformal prediction are checked as if their rates were "
        "drawn from the law of the rank among the training rows, which is approximate."
        if any(item.is_approximate for row in findings.ran for item in row.promises)
        else ""
    )
    return Section(
        "appendix",
        "Appendix",
        [
            "Scores of each fold and the parameters of each method. Everything on this "
            "page is in it once more as JSON, in the element with the id prudent-data; "
            "later promises of a method have there what differs from its first." + full
        ],
        tables=[
            first_rows("Scores of each fold", (*columns, "coverage"), scores, most=100),
            first_rows("Parameters", ("method", "parameters"), parameters),
            *(
                [
                    first_rows(
                        "What the methods warned of", ("method", "warning"), warnings
                    )
                ]
                if warnings
                else []
            ),
        ],
    )


def _sentence(note: str) -> str:
    return cut(note[:1].upper() + note[1:].rstrip(".") + ".", 400)


MOST_CLASSES = 12
JOINER = "\u2060"  # keeps limits on one line


def _promises(findings: Findings) -> Section:
    rows: list[tuple[str, ...]] = []
    bases: dict[str, dict[str, None]] = {}
    for row in findings.ran:
        for item in row.promises:
            guarantee = item.guarantee
            rows.append(
                (row.method, guarantee.quantity, *_held(item, 4), item.check.verdict)
            )
            assumed = " and ".join(guarantee.assumed) or "nothing else"
            basis = f"{guarantee.source}, assuming {assumed}."
            bases.setdefault(basis, {})[row.method] = None
    sentences = [
        "Each line is a promise: the dot is what happened to rows that the method had "
        "not seen, with its exact interval, the tick the bound (mean of the folds). "
        "Broken promises are red crosses. The table has those asked for first, then "
        "those that methods make by themselves. Each interval is one of its own; all "
        "verdicts share one level, so that an interval within the bound may be no "
        "proof of it.",
        *(f"{', '.join(methods)}: {basis}" for basis, methods in bases.items()),
    ]
    columns = ("method", "quantity", "class", "promised", "measured")
    return Section(
        "promises",
        "Promise and reality",
        sentences,
        lambda: figures.promises(findings),
        "Dots: measured rate with its interval beside the promised bound, one line a "
        "method and class.",
        [first_rows("Promises", (*columns, "interval", "verdict"), rows)],
        wide=True,
        nothing="No method made a promise here.",
    )


def _is_by_subgroup(findings: Findings) -> bool:
    """Whether a promise was asked for in each of several subgroups."""
    asked = (row.asked for row in findings.ran)
    return any(each is not None and each.worst_subgroup is not None for each in asked)


def _subgroups(findings: Findings) -> Section:
    """Each method in each subgroup, with exact limits."""
    rows = [
        (row.method, *_held(item, 3), f"{item.n:g}", item.check.verdict)
        for row, item in asked_items(findings)
        if item.guarantee.subgroup is not None
    ]
    columns = ("method", "subgroup", "promised", "measured", "interval", "rows")
    return Section(
        "subgroups",
        "In each subgroup",
        [
            "What was measured in each subgroup (dot), its exact interval at 95 % "
            "(line) and what is allowed (tick), of the first method. Grey are those "
            "of too few rows to show that the promise is kept there even if nothing is "
            "wrong, with the rows that they would need."
        ],
        lambda: figures.subgroups(findings),
        "Points: rows that break the promise in each subgroup, with intervals.",
        [first_rows("Subgroups", (*columns, "verdict"), rows)],
    )


def _false_alarms(findings: Findings) -> Section:
    rows = [
        (row.method, f"{level:g}", f"{count / n:.4f}", f"{count:g} of {n:g}")
        for row in findings.ran
        for level, (count, n) in false_alarms(findings, row.method).items()
    ]
    return Section(
        "false-alarms",
        "False alarms",
        [
            "How often a row is disowned by the rejector of its own class, at every "
            "rate one may ask for. On or below the line is as promised; the band is "
            "the exact interval of each point."
        ],
        lambda: figures.false_alarms(findings),
        "Line: measured against requested false-alarm rate, with intervals.",
        [first_rows("False alarms", ("method", "requested", "measured", "rows"), rows)],
        nothing="No method states a false-alarm rate.",
    )


def _shift(findings: Findings) -> Section:
    curves = {row.method: shift_errors(findings, row.method) for row in findings.ran}
    rows = [
        (name, *(f"{wrong / n:.3f}" for wrong, n in curve.values()))
        for name, curve in curves.items()
    ]
    first = next(iter(curves.values()), {})
    n = max((int(n) for _, n in first.values()), default=0)
    shifts = [f"{shift:g}" for shift in first]
    return Section(
        "shift",
        "Shift curve",
        [
            "Error when the tested rows move towards the nearest other class mean, by "
            f"as many pooled standard deviations as the axis says ({n} out-of-fold "
            "rows)."
        ],
        lambda: figures.shift_curves(findings),
        "Lines: error of each method against the length of the shift.",
        [first_rows("Error at each shift", ("method", *shifts), rows)],
        nothing="No method finished.",
    )


def _sets(findings: Findings) -> Section:
    rows, per_class = [], []
    for row in findings.ran:
        shown = shown_sets(row)
        if shown is None:
            continue
        rows.append(
            (
                row.method,
                f"{shown.coverage:.3f}",
                f"{shown.mean_size:.3f}",
                f"{100 * shown.undecided:.1f} %",
                " ".join(f"{size}: {n:g}" for size, n in enumerate(shown.size_counts)),
            )
        )
        per_class += [
            (row.method, words.label_of(label), f"{covered:.3f}", f"{size:.3f}")
            for label, covered, size in zip(
                findings.data.classes,
                shown.class_coverage,
                shown.class_mean_size,
                strict=True,
            )
        ]
    columns = ("method", "coverage", "mean size", "undecided", "rows by size")
    by_class = ("method", "class", "coverage", "mean size")
    return Section(
        "sets",
        "Set-valued predictions",
        [
            "A method that may answer with several classes, or with none, errs less "
            "often when it does not know. Left: how often the set holds the truth "
            "against its mean size. Right: how large the sets are."
        ],
        lambda: figures.set_sizes(findings),
        "Points: coverage against mean size. Bars: share of rows by set size.",
        [
            first_rows("Sets", columns, rows),
            first_rows("By class", by_class, per_class),
        ],
        nothing="Every method names one class for each row.",
    )


def _regions(findings: Findings) -> Section:
    labels = findings.data.classes[:MOST_CLASSES]
    rows = [
        (
            row.method,
            *(f"{100 * s:.0f} %" for s in row.regions.class_shares[:MOST_CLASSES]),
            f"{100 * row.regions.undecided:.0f} %",
        )
        for row in findings.ran
        if row.regions is not None
    ]
    columns = ("method", *map(cut, labels), "undecided")
    return Section(
        "regions",
        "Decision regions",
        [
            "Each method fitted anew in the plane of the two discriminant axes, the "
            "directions that separate the class means best. Colour is the predicted "
            "class; striped points are undecided. No row is drawn."
        ],
        lambda: figures.regions(findings),
        "Maps: predicted class in the plane of the discriminant axes.",
        [first_rows("Share of the plane", columns, rows)],
        nothing="There are no two axes to draw.",
    )


def _confusion(findings: Findings) -> Section:
    tables = [_confusion_table(findings)]
    sentences = [
        "Rows are true classes, columns predicted ones; colour is the share of the "
        "row, figures are counts."
    ]
    for row in findings.ran:
        path = calibrations(findings, row.method)
        if not path:
            continue
        before, after = np.mean(path[0]), np.mean(path[1])
        sentences.append(
            f"{row.method}: risk-based calibration took the error on the rows fitted "
            f"on from {before:.4f} to {after:.4f} (mean of the folds)."
        )
        lines = [
            (str(fold), f"{old:.4f}", f"{new:.4f}", f"{best:g}")
            for fold, (old, new, best) in enumerate(zip(*path, strict=True), start=1)
        ]
        columns = ("fold", "error before", "error after", "iterations")
        tables.append(first_rows(f"Calibration of {row.method}", columns, lines))
    return Section(
        "confusion",
        "Confusion and calibration",
        sentences,
        lambda: figures.confusions(findings),
        "Heat maps: confusion matrix of each method.",
        tables,
        nothing="No method finished.",
    )


def _confusion_table(findings: Findings) -> Table:
    """All counts of few classes; of many, the confusions that happened most."""
    rows = findings.ran
    labels = [words.label_of(label) for label in findings.data.classes]
    if len(labels) <= MOST_CLASSES:
        cells = [
            (row.method, label, *(f"{count:g}" for count in counts))
            for row in rows
            for label, counts in zip(labels, row.confusion, strict=True)
        ]
        columns = ("method", "true \\ predicted", *labels)
        return first_rows("Confusion matrices", columns, cells, most=8 * MOST_CLASSES)
    errors = [
        (count, row.method, labels[i], labels[j])
        for row in rows
        for i, counts in enumerate(row.confusion)
        for j, count in enumerate(counts)
        if i != j and count > 0
    ]
    errors.sort(key=lambda error: (-error[0], *error[1:]))
    cells = [(name, true, answered, f"{n:g}") for n, name, true, answered in errors]
    return first_rows(
        "Most frequent confusions", ("method", "true", "predicted", "rows"), cells
    )
