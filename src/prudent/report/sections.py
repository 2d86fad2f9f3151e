"""The sections of the report: a sentence, a figure, the same numbers."""

from __future__ import annotations

import numpy as np

from prudent.evaluation import words
from prudent.evaluation.records import Findings, PromiseCheck
from prudent.io.errors import cut
from prudent.report import figures, measurements
from prudent.report.parts import Section, Table, first_rows

VERDICTS = (
    "Broken: the rows refute the promise; kept: they prove it; consistent: neither, "
    "which is what a tight promise looks like; all verdicts of the table share one "
    "level (Holm, 5 %). No better than always the most frequent class: that could "
    "promise as much. Methods are sorted by rows decided rightly less rows decided "
    "wrongly, and told apart by an exact paired test on rows, corrected over methods."
)
# A bound on this share of the rows says nothing.
NO_ROOM = 1.0


def sections(findings: Findings) -> list[Section]:
    """All sections, in the order of the page."""
    asked = findings.settings.promise != "none"
    return [
        _answer(findings),
        *([_frontier(findings)] if findings.frontier and findings.ran else []),
        measurements.promises(findings),
        _worst_classes(findings),
        *([_room(findings)] if asked else []),
        measurements.shift(findings),
        measurements.sets(findings),
        measurements.false_alarms(findings),
        measurements.regions(findings),
        measurements.confusion(findings),
        _time(findings),
        _data(findings),
        _appendix(findings),
    ]


def _answer(findings: Findings) -> Section:
    """The question and the answer, and the table."""
    settings = findings.settings
    repeats = f", {settings.n_repeats} times" if settings.n_repeats > 1 else ""
    question = (
        "Which method errs least, out of fold?"
        if settings.promise == "none"
        else f"Every method was made to promise: {words.asked_for(findings)}. Which "
        "is the most useful then?"
    )
    said = [question, *words.verdict(findings)]
    if settings.next_command is not None:
        said.append(f"To use it: {settings.next_command}")
    columns = [name.replace("|", " ") for name in words.columns(findings)]
    # A failed row has its reason in the place of all figures.
    lines = [
        tuple(cell.replace("\n", " ") for cell in words.cells(row, findings))
        if row.failure is None
        else (row.method, f"FAILED  {cut(row.failure.text, 300)}")
        for row in findings.rows
    ]
    plain = words.AS_IT_IS.capitalize() + " " if settings.promise != "none" else ""
    note = (
        f"{plain}All figures are out of fold: {settings.n_folds} stratified "
        f"folds{repeats}, seed {settings.random_state}. {VERDICTS}"
    )
    return Section(
        "answer",
        "Question and answer",
        said,
        tables=[Table("Methods, the most useful first", columns, lines, note=note)],
        sortable=True,
        wide=True,
    )


def _frontier(findings: Findings) -> Section:
    found = findings.frontier
    assert found is not None
    rows = [
        (name, *(f"{100 * share:.0f} %" for share in decided))
        for name, decided in found.decided.items()
    ]
    what, title, share = {
        "coverage": ("coverage", "Rows decided", "the rows that still get one answer"),
        "error": ("error", "Rows answered", "the rows that still get an answer"),
        "missed": (
            "error",
            "Other classes' rows answered rightly",
            "the other classes' rows that are still answered rightly",
        ),
    }[found.kind]
    columns = ("method", *(f"{100 * level:g} %" for level in found.levels))
    return Section(
        "frontier",
        "What each promise costs",
        [
            f"Share of {share}, at every promise one may ask "
            "for; the dashed line is the one that was asked for. The same fits answer "
            "every level. A level chosen after a look at these curves is not "
            "certified: check it on fresh rows (prudent certify)."
        ],
        lambda: figures.frontier(findings),
        f"Lines: {title[0].lower()}{title[1:]} against promised {what}, one a method.",
        [first_rows(title, columns, rows)],
        wide=True,
    )


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


def _room(findings: Findings) -> Section:
    """How far the future may differ before the promise fails."""
    rows = []
    for row in findings.ran:
        for item in () if row.asked is None else row.asked.items:
            factor = _room_of(item)
            scope = item.guarantee.scope
            rows.append(
                (
                    row.method,
                    "all" if scope is None else cut(scope),
                    f"{factor:.2f}" if factor > NO_ROOM else "no room shown",
                )
            )
    return Section(
        "room",
        "If the future differs",
        [
            "The promise holds while no group of rows gets more than so many times as "
            "frequent as it was here: the share of violations that the promise allows "
            "over the largest that these rows do not exclude (exact interval)."
        ],
        tables=[first_rows("Room", ("method", "class", "times as frequent"), rows)],
    )


def _room_of(item: PromiseCheck) -> float:
    low, high = item.check.interval
    largest = 1 - low if item.guarantee.quantity == "coverage" else high
    return item.allowed / largest if largest > 0 else float("inf")


def _data(findings: Findings) -> Section:
    data = findings.data
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
        lambda: figures.class_counts(findings),
        "Bars: rows of each class.",
        [
            first_rows("Rows of each class", ("class", "rows", "share"), rows),
            Table("What was run, on what, with what", ("", ""), _facts(findings)),
        ],
    )


def _facts(findings: Findings) -> list[tuple[str, str]]:
    data, settings = findings.data, findings.settings
    return [
        ("command", settings.command),
        ("data", f"{data.name}: {data.n_rows} rows, {len(data.features)} features"),
        ("SHA-256", data.sha256),
        ("date", settings.date or "left out"),
        ("seed", str(settings.random_state)),
        ("versions", ", ".join(" ".join(v) for v in findings.versions.items())),
    ]


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
            + memory
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
            "page is in it once more as JSON, in the element with the id prudent-data."
            + full
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
