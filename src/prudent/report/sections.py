"""The eleven sections of the report: a sentence, a figure, the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prudent.report import figures, measurements
from prudent.report.figures import ran
from prudent.report.parts import Section, Table, cut, draw, first_rows

if TYPE_CHECKING:
    from prudent.comparison import Comparison

__all__ = ["sections"]


def sections(comparison: Comparison) -> list[Section]:
    """All sections, in the order of the page."""
    return [
        _verdict(comparison),
        _data(comparison),
        _leaderboard(comparison),
        measurements.promises(comparison),
        measurements.false_alarms(comparison),
        measurements.shift(comparison),
        measurements.sets(comparison),
        measurements.regions(comparison),
        measurements.confusion(comparison),
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
        ("versions", ", ".join(" ".join(v) for v in comparison.versions.items())),
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
        (cut(label), str(count), f"{100 * part:.1f} %")
        for label, count, part in zip(
            data.classes, data.class_counts, share.tolist(), strict=True
        )
    ]
    sentences = [
        f"{data.n_rows} rows, {len(data.features)} features, "
        f"{len(data.classes)} classes; the figure shows the rows of each class."
    ]
    if data.constant_features:
        names = ", ".join(map(cut, data.constant_features[:5]))
        more = len(data.constant_features) - 5
        rest = f" and {more} more" if more > 0 else ""
        sentences.append(f"Constant, and therefore ignored: {names}{rest}.")
    sentences += [_sentence(note) for note in data.notes]
    return Section(
        "data",
        "Data",
        sentences,
        draw(figures.class_counts, comparison, "data", "Bars: rows of each class."),
        [first_rows("Rows of each class", ("class", "rows", "share"), rows)],
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
        f"seed {folds.random_state}. Methods by error; “no difference shown” is the "
        "outcome of an exact paired test on the rows (McNemar), corrected over the "
        "methods. The promise shown is that of the worst class. Broken: in some class "
        "the rows refute it; kept: in every class they prove it; consistent: neither; "
        "vacuous: always answering the most frequent class could promise as much. "
        "“plug-in” ones take estimated moments for the true ones.",
    ]
    warnings = [
        (row.label, cut(text, 300))
        for row in comparison.rows
        for text in row.warnings[:3]
    ]
    tables = [Table("Methods by error", comparison.columns, lines)]
    if warnings:
        tables.append(
            first_rows("What the methods warned of", ("method", "warning"), warnings)
        )
    drawn = "Points with intervals: out-of-fold error of each method."
    return Section(
        "leaderboard",
        "Leaderboard",
        sentences,
        draw(figures.errors, comparison, "errors", drawn) if ran(comparison) else "",
        tables,
        sortable=True,
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
        draw(figures.times, comparison, "time", "Bars: seconds of fit and predict."),
        [first_rows("Time of each method", ("method", "fit", "predict"), lines)],
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
        (row.label, "; ".join(f"{k}={cut(v)}" for k, v in row.parameters.items()))
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
            first_rows("Scores of each fold", (*columns, "coverage"), scores, most=100),
            first_rows("Parameters", ("method", "parameters"), parameters),
        ],
    )


def _sentence(note: str) -> str:
    return cut(note[:1].upper() + note[1:].rstrip(".") + ".", 400)
