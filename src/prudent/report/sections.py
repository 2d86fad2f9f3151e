"""The eleven sections of the report: a sentence, a figure, the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from prudent.report import figures
from prudent.report.figures import ran, shortened
from prudent.report.svg import figure_style, to_svg

if TYPE_CHECKING:
    from prudent.comparison import Comparison
    from prudent.comparison.result import MethodRow

__all__ = ["Section", "Table", "sections"]

MOST_ROWS = 60
MOST_CLASSES = 12
LONGEST = 64


@dataclass(frozen=True)
class Table:
    """Cells of text under their columns.

    Attributes
    ----------
    caption : str
        What the table holds.
    columns : sequence of str
        Headings.
    rows : sequence of sequence of str
        Cells; the first of each row names it.
    omitted : int
        Rows left out to keep the page small; they are in the data at its end.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    omitted: int = 0


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Attributes
    ----------
    name : str
        Anchor.
    title : str
        Heading.
    sentences : sequence of str
        What there is to see, and how it was made.
    figure : str
        SVG element, or "" where there is nothing to draw.
    tables : sequence of Table
        The numbers behind the figure.
    sortable : bool
        Whether clicks on the headings sort the first table.
    """

    name: str
    title: str
    sentences: Sequence[str]
    figure: str = ""
    tables: Sequence[Table] = ()
    sortable: bool = False


def sections(comparison: Comparison) -> list[Section]:
    """All sections, in the order of the page."""
    return [
        _verdict(comparison),
        _data(comparison),
        _leaderboard(comparison),
        _promises(comparison),
        _false_alarms(comparison),
        _shift(comparison),
        _sets(comparison),
        _regions(comparison),
        _confusion(comparison),
        _time(comparison),
        _appendix(comparison),
    ]


def _verdict(comparison: Comparison) -> Section:
    data, settings = comparison.data, comparison.settings
    facts = [
        ("command", settings.command),
        ("data", f"{data.name}: {data.n_rows} rows, {len(data.features)} features"),
        ("SHA-256", data.sha256),
        ("date", settings.date or "left out"),
        ("seed", str(settings.random_state)),
        *comparison.versions.items(),
    ]
    return Section(
        "verdict",
        "Verdict",
        comparison.verdict(),
        tables=[Table("What was run, on what, with what", ("", ""), facts)],
    )


def _data(comparison: Comparison) -> Section:
    data = comparison.data
    share = np.array(data.class_counts) / data.n_rows
    rows = [
        (_cut(label), str(count), f"{100 * part:.1f} %")
        for label, count, part in zip(
            data.classes, data.class_counts, share.tolist(), strict=True
        )
    ]
    sentences = [
        f"{data.n_rows} rows, {len(data.features)} features, "
        f"{len(data.classes)} classes; the figure shows the rows of each class."
    ]
    if data.constant_features:
        names = ", ".join(map(_cut, data.constant_features[:5]))
        more = len(data.constant_features) - 5
        rest = f" and {more} more" if more > 0 else ""
        sentences.append(f"Constant, and therefore ignored: {names}{rest}.")
    sentences += [_sentence(note) for note in data.notes]
    return Section(
        "data",
        "Data",
        sentences,
        _draw(figures.class_counts, comparison, "data", "Bars: rows of each class."),
        [_table("Rows of each class", ("class", "rows", "share"), rows)],
    )


def _leaderboard(comparison: Comparison) -> Section:
    # A failed row has its reason in the place of all figures.
    lines = [
        cells if row.error is not None else cells[:2]
        for row, cells in zip(comparison.rows, comparison.leaderboard(), strict=True)
    ]
    folds = comparison.settings
    repeats = f", {folds.n_repeats} times" if folds.n_repeats > 1 else ""
    sentences = [
        f"All figures are out of fold: {folds.n_folds} stratified folds{repeats}, "
        f"seed {folds.random_state}. Methods by error; “tied” ones are not shown to be "
        "worse by a paired test corrected for the overlap of the training sets. "
        "The promise is the one of least margin; “plug-in” ones take estimated "
        "moments for the true ones.",
    ]
    warnings = [
        (row.label, _cut(text, 300))
        for row in comparison.rows
        for text in row.warnings[:3]
    ]
    tables = [Table("Methods by error", comparison.columns, lines)]
    if warnings:
        tables.append(
            _table("What the methods warned of", ("method", "warning"), warnings)
        )
    drawn = "Points with intervals: out-of-fold error of each method."
    return Section(
        "leaderboard",
        "Leaderboard",
        sentences,
        _draw(figures.errors, comparison, "errors", drawn) if ran(comparison) else "",
        tables,
        sortable=True,
    )


def _promises(comparison: Comparison) -> Section:
    rows = [
        (
            row.name,
            promise.guarantee.quantity,
            "all" if promise.guarantee.scope is None else _cut(promise.guarantee.scope),
            f"{promise.guarantee.sense} {promise.guarantee.bound:.4f}",
            f"{promise.check.measured:.4f}",
            f"{promise.check.interval[0]:.4f} to {promise.check.interval[1]:.4f}",
            promise.check.verdict,
        )
        for row in ran(comparison)
        for promise in row.promises
    ]
    sentences = [
        "Each point is a promise: the bound a method states (x, mean of the folds) "
        "against what happened to rows it had not seen (y, exact interval). Points on "
        "or below the diagonal keep their promise; broken ones are red crosses.",
        *dict.fromkeys(
            f"{row.name}: {promise.guarantee.source}, assuming "
            + (" and ".join(promise.guarantee.assumptions) or "nothing else")
            + "."
            for row in ran(comparison)
            for promise in row.promises
        ),
    ]
    if not rows:
        return Section(
            "promises", "Promise and reality", ["No method made a promise here."]
        )
    columns = ("method", "quantity", "class", "promised", "measured")
    return Section(
        "promises",
        "Promise and reality",
        sentences,
        _draw(
            figures.promises,
            comparison,
            "promises",
            "Points: promised bound against measured rate, with a diagonal.",
        ),
        [_table("Promises", (*columns, "interval", "verdict"), rows)],
    )


def _false_alarms(comparison: Comparison) -> Section:
    title = "False alarms"
    curves = [(row.name, row.false_alarms) for row in ran(comparison)]
    rows = [
        (name, f"{level:g}", f"{count / curve.n:.4f}", f"{count:g} of {curve.n:g}")
        for name, curve in curves
        if curve is not None
        for level, count in zip(curve.levels, curve.false_alarms, strict=True)
    ]
    if not rows:
        return Section("false-alarms", title, ["No method states a false-alarm rate."])
    return Section(
        "false-alarms",
        title,
        [
            "How often a row is disowned by the rejector of its own class, at every "
            "rate one may ask for. On or below the line is as promised; the band is "
            "what chance allows."
        ],
        _draw(
            figures.false_alarms,
            comparison,
            "false-alarms",
            "Line: measured against requested false-alarm rate, with a 95 % band.",
        ),
        [_table("False alarms", ("method", "requested", "measured", "rows"), rows)],
    )


def _shift(comparison: Comparison) -> Section:
    curves = [(row.label, row.shift) for row in ran(comparison)]
    found = [(label, curve) for label, curve in curves if curve is not None]
    title = "Shift curve"
    if not found:
        return Section("shift", title, ["No method finished."])
    shifts = [f"{shift:g}" for shift in found[0][1].shifts]
    rows = [(label, *(f"{e:.3f}" for e in curve.errors)) for label, curve in found]
    return Section(
        "shift",
        title,
        [
            "Error when the tested rows move towards the nearest other class mean, by "
            "as many pooled standard deviations as the axis says "
            f"({found[0][1].n} out-of-fold rows)."
        ],
        _draw(
            figures.shift_curves,
            comparison,
            "shift",
            "Lines: error of each method against the length of the shift.",
        ),
        [_table("Error at each shift", ("method", *shifts), rows)],
    )


def _sets(comparison: Comparison) -> Section:
    title = "Set-valued predictions"
    found = [(row.name, row.sets) for row in ran(comparison) if row.sets is not None]
    if not found:
        return Section("sets", title, ["Every method names one class for each row."])
    rows, per_class = [], []
    for name, sets in found:
        assert sets is not None
        rows.append(
            (
                name,
                f"{sets.coverage:.3f}",
                f"{sets.mean_size:.3f}",
                f"{100 * sets.undecided:.1f} %",
                " ".join(f"{size}: {n:g}" for size, n in enumerate(sets.size_counts)),
            )
        )
        per_class += [
            (name, _cut(label), f"{covered:.3f}", f"{size:.3f}")
            for label, covered, size in zip(
                comparison.data.classes,
                sets.class_coverage,
                sets.class_mean_size,
                strict=True,
            )
        ]
    return Section(
        "sets",
        title,
        [
            "A method that may answer with several classes, or with none, errs less "
            "often when it does not know. Left: how often the set holds the truth "
            "against its mean size. Right: how large the sets are."
        ],
        _draw(
            figures.set_sizes,
            comparison,
            "sets",
            "Points: coverage against mean size. Bars: share of rows by set size.",
        ),
        [
            _table(
                "Sets",
                ("method", "coverage", "mean size", "undecided", "rows by size"),
                rows,
            ),
            _table("By class", ("method", "class", "coverage", "mean size"), per_class),
        ],
    )


def _regions(comparison: Comparison) -> Section:
    title = "Decision regions"
    found = [(row.name, row.regions) for row in ran(comparison)]
    labels = comparison.data.classes[:MOST_CLASSES]
    rows = [
        (
            name,
            *(f"{100 * share:.0f} %" for share in regions.class_shares[:MOST_CLASSES]),
            f"{100 * regions.undecided:.0f} %",
        )
        for name, regions in found
        if regions is not None
    ]
    if not rows:
        return Section("regions", title, ["There are no two axes to draw."])
    return Section(
        "regions",
        title,
        [
            "Each method fitted anew in the plane of the two discriminant axes, the "
            "directions that separate the class means best. Colour is the predicted "
            "class; striped points are undecided. No row is drawn: the page holds "
            "none of the data."
        ],
        _draw(
            figures.regions,
            comparison,
            "regions",
            "Maps: predicted class in the plane of the discriminant axes.",
        ),
        [
            _table(
                "Share of the plane",
                ("method", *map(_cut, labels), "undecided"),
                rows,
            )
        ],
    )


def _confusion(comparison: Comparison) -> Section:
    rows = ran(comparison)
    title = "Confusion and calibration"
    if not rows:
        return Section("confusion", title, ["No method finished."])
    tables = [_confusion_table(comparison, rows)]
    sentences = [
        "Rows are true classes, columns predicted ones; colour is the share of the "
        "row, figures are counts."
    ]
    paths = [(row.name, row.calibration) for row in rows if row.calibration is not None]
    for name, path in paths:
        assert path is not None
        before, after = np.mean(path.error_before), np.mean(path.error_after)
        sentences.append(
            f"{name}: risk-based calibration took the error that it watches from "
            f"{before:.4f} to {after:.4f} (mean of the folds)."
        )
        lines = [
            (str(fold), f"{old:.4f}", f"{new:.4f}", str(best))
            for fold, (old, new, best) in enumerate(
                zip(
                    path.error_before,
                    path.error_after,
                    path.best_iterations,
                    strict=True,
                ),
                start=1,
            )
        ]
        columns = ("fold", "error before", "error after", "iterations")
        tables.append(_table(f"Calibration of {name}", columns, lines))
    drawn = "Heat maps: confusion matrix of each method."
    return Section(
        "confusion",
        title,
        sentences,
        _draw(figures.confusions, comparison, "confusion", drawn),
        tables,
    )


def _confusion_table(comparison: Comparison, rows: Sequence[MethodRow]) -> Table:
    """All counts of few classes; of many, the confusions that happened most."""
    labels = [_cut(label) for label in comparison.data.classes]
    if len(labels) <= MOST_CLASSES:
        cells = [
            (row.name, label, *(f"{count:g}" for count in counts))
            for row in rows
            for label, counts in zip(labels, row.confusion, strict=True)
        ]
        columns = ("method", "true \\ predicted", *labels)
        return _table("Confusion matrices", columns, cells, most=8 * MOST_CLASSES)
    errors = [
        (count, row.name, labels[i], labels[j])
        for row in rows
        for i, counts in enumerate(row.confusion)
        for j, count in enumerate(counts)
        if i != j and count > 0
    ]
    errors.sort(key=lambda error: (-error[0], *error[1:]))
    cells = [(name, true, said, f"{n:g}") for n, name, true, said in errors]
    return _table(
        "Most frequent confusions", ("method", "true", "predicted", "rows"), cells
    )


def _time(comparison: Comparison) -> Section:
    rows = [row for row in ran(comparison) if row.fit_seconds is not None]
    title = "Time"
    if not rows:
        return Section("time", title, ["Times are left out of this report."])
    by_name = {cells[0]: cells for cells in comparison.leaderboard()}
    columns = list(comparison.columns)
    fit, predict = columns.index("fit"), columns.index("predict")
    lines = [
        (row.label, by_name[row.label][fit], by_name[row.label][predict])
        for row in rows
    ]
    peak = comparison.settings.peak_memory
    memory = "" if peak is None else f" The process held {peak / 1e6:.0f} MB at most."
    return Section(
        "time",
        title,
        [
            "Median over the folds of one fit and of predicting, wall time; methods "
            "that learn from moments share one pass over the rows." + memory
        ],
        _draw(figures.times, comparison, "time", "Bars: seconds of fit and predict."),
        [_table("Time of each method", ("method", "fit", "predict"), lines)],
    )


def _appendix(comparison: Comparison) -> Section:
    scores = [
        (
            score.method,
            f"{score.repeat}/{score.fold}",
            f"{score.n_train} / {score.n_test}",
            f"{score.error:.4f}",
            "" if score.set_size is None else f"{score.set_size:.3f}",
            "" if score.coverage is None else f"{score.coverage:.3f}",
        )
        for score in comparison.folds
    ]
    parameters = [
        (row.label, "; ".join(f"{k}={_cut(v)}" for k, v in row.parameters.items()))
        for row in ran(comparison)
    ]
    columns = ("method", "repeat/fold", "fitted / tested", "error", "set size")
    return Section(
        "appendix",
        "Appendix",
        [
            "Scores of each fold and the parameters of each method. Everything on this "
            "page is in it once more as JSON, in the element with the id prudent-data."
        ],
        tables=[
            _table("Scores of each fold", (*columns, "coverage"), scores, most=100),
            _table("Parameters", ("method", "parameters"), parameters),
        ],
    )


def _draw(
    figure: Callable[[Comparison], Figure],
    comparison: Comparison,
    name: str,
    description: str,
) -> str:
    with figure_style():
        return to_svg(figure(comparison), name, description)


def _table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int = MOST_ROWS,
) -> Table:
    return Table(caption, columns, rows[:most], omitted=max(0, len(rows) - most))


def _cut(text: Any, longest: int = LONGEST) -> str:
    return shortened(str(text), longest)


def _sentence(note: str) -> str:
    return _cut(note[:1].upper() + note[1:].rstrip(".") + ".", 400)
