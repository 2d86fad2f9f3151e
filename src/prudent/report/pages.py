"""Reports of detect, game, monitor and audit, in the frame of a comparison's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray

from prudent.adversarial import RejectionGame
from prudent.auditing.result import HEADS, Audit, AuditRow, cells_of
from prudent.evaluation.detection import Detection
from prudent.io.errors import cut, thousands
from prudent.monitoring import PromiseMonitor
from prudent.plots import (
    AuditDisplay,
    DetectorScoreDisplay,
    DriftDisplay,
    MonitorDisplay,
    SecurityCurveDisplay,
)
from prudent.report.answers import of_audit, of_detection, of_game, of_monitor
from prudent.report.page import Section, Table, first_rows, on_axes, page

MOST_EVENTS = 60
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
#: Inches, of a figure of one pair of axes.
SIZE = (5.5, 3.2)
MOST_BARS = 10
MONITOR_FIGURE = (
    "Above: the evidence against the promise, in powers of ten; it is called broken, "
    "for ever, where the line reaches the alarm. Below: the limits of the measured "
    "rate, which hold at all times at once, and the promised bound (dashed)."
)
MOST_LINES = 30
# The verdict behind the name of the law, as in every report.
AUDIT_COLUMNS = (HEADS[0], "verdict", *HEADS[1:])
AUDIT_NOTE = (
    "Claims: draws in which the promise was made. Broken: those whose true rate lies "
    "beyond the bound; allowed: how many may where the promise is true, which a "
    "promise on average leaves open. p is the exact p-value of a true promise, 1/e "
    "where an e-value stopped the draws; all lines are tested together, at one level "
    "(Holm), and * marks those refuted. Mean truth: the mean true rate of violations, "
    "of misses for a coverage. Sharpness is mean bound / mean truth: 1 means that the "
    "promise gives nothing away, and much more that it may be true but says little."
)
AUDIT_LINES = (
    "Each line is one promise under one law at one number of training rows, in so many "
    "draws: fresh rows, a new fit, and its promise held against the truth."
)
AUDIT_FIGURE = (
    "Left: the mean truth, a true rate (dot), and the mean bound (tick). Right: the "
    "share of draws beyond the bound (broken) with its exact interval, and the share "
    "allowed (tick). The most suspicious come first."
)


def detection_page(
    title: str,
    detection: Detection,
    table: tuple[Sequence[str], Sequence[str]],
    notes: Sequence[str],
    *,
    asked: float,
    advice: Sequence[str],
    command: str | None,
    print_all: bool = False,
) -> str:
    """One HTML document on a detector: its promise, and its scores as aggregates.

    `asked` is the rate of false alarms that was asked for; `advice` stands in the
    answer, and so does the `command` that comes next.
    """
    columns, line = table
    result = Section(
        "result",
        "Promise and measurement",
        [
            "False alarms are measured on normal rows that the detector was not "
            "fitted on; rows are flagged by the detector fitted on all normal rows.",
            *(str(promise.guarantee) for promise in detection.promises),
            *notes,
        ],
        tables=[Table("The detector", columns, [line])],
        wide=True,
    )
    score = _finite(detection.score)
    groups = {"normal": score[detection.normal], "other": score[~detection.normal]}
    groups = {name: values for name, values in groups.items() if len(values)}
    quantiles = [
        [name, *(f"{value:.4g}" for value in np.quantile(values, QUANTILES))]
        for name, values in groups.items()
    ]
    scores = Section(
        "scores",
        "Scores",
        ["Rows with a score below 0 are flagged; quantiles of the scores below."],
        partial(on_axes, SIZE, DetectorScoreDisplay(score, detection.normal).plot),
        "Histogram of the scores, cut at 0.",
        [Table("Quantiles", ["rows", *(f"{q:g}" for q in QUANTILES)], quantiles)],
    )
    data = {"columns": list(columns), "line": list(line), "quantiles": quantiles}
    answer = of_detection(detection, columns, line, asked, advice, command)
    return page(
        f"prudent: {title}", answer, [result, scores], data, print_all=print_all
    )


def _finite(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw scores that say "below all others" at the least finite score."""
    finite = score[np.isfinite(score)]
    if len(finite) == 0:
        return np.zeros_like(score)
    return np.clip(score, finite.min(), finite.max())


def game_page(
    game: RejectionGame,
    sentences: Sequence[str],
    columns: Sequence[str],
    rules: Sequence[Sequence[str]],
    *,
    print_all: bool = False,
) -> str:
    """One HTML document on a rejection game: value, rule, security curve."""
    result = Section("result", "Value and certificate", sentences)
    rule = Section(
        "rule",
        "Rule",
        ["Probability with which each event is rejected, the least probable first."],
        tables=[
            first_rows("Rejection of each event", columns, rules, most=MOST_EVENTS)
        ],
    )
    curve = game.security_curve(RATES)
    points = [
        [f"{rate:g}", f"{soft:.4f}", f"{hard:.4f}"]
        for rate, soft, hard in zip(
            RATES, curve.soft_miss_rates, curve.hard_miss_rates, strict=True
        )
    ]
    security = Section(
        "security",
        "Security curve",
        ["Miss rate of the worst intruder under the best rule of each kind."],
        partial(
            on_axes,
            SIZE,
            lambda ax: SecurityCurveDisplay.from_estimator(game, ax=ax),
        ),
        "Miss rate against false-alarm rate.",
        [Table("Miss rates", ["false-alarm rate", "soft", "hard"], points)],
    )
    data = {
        "summary": list(sentences),
        "columns": list(columns),
        "rules": [list(line) for line in rules],
        "security_curve": points,
    }
    answer = of_game(sentences, columns, rules)
    sections = [result, rule, security]
    return page("prudent: rejection game", answer, sections, data, print_all=print_all)


def monitor_page(
    title: str,
    sentences: Sequence[str],
    table: tuple[Sequence[str], Sequence[Sequence[str]]],
    promises: Sequence[tuple[str, PromiseMonitor, int | None]],
    data: dict[str, Any],
    worth: Sequence[str],
    *,
    print_all: bool = False,
) -> str:
    """One offline HTML document on what a monitor has seen.

    Promises are those that have counted rows, by name, with the row of the alarm among
    all rows; `data` is all of it in JSON types, the columns of drift the most
    suspicious first; `worth` says how often the verdicts are wrong.
    """
    heads, lines = table
    parts = [
        Section(
            "result",
            "Promises",
            sentences,
            tables=[Table("What is watched", heads, lines)],
            wide=True,
        )
    ]
    parts += [
        Section(
            f"promise-{number}",
            cut(name),
            [
                str(monitor.guarantee),
                *_since(monitor, alarm_row),
                *([MONITOR_FIGURE] if number == 1 else []),
            ],
            partial(_promise, monitor),
            f"Evidence against {name} and limits of the rate over "
            f"{monitor.n_} rows: {monitor.verdict}.",
        )
        for number, (name, monitor, alarm_row) in enumerate(promises, 1)
    ]
    if data["drift"] is not None:
        parts.append(_drift(data["drift"]["columns"], data["level"]))
    answer = of_monitor(data, heads, lines, worth)
    return page(title, answer, parts, data, print_all=print_all)


def _since(monitor: PromiseMonitor, alarm_row: int | None) -> list[str]:
    """The row of an alarm by both counts: of all rows, and of those on the axis."""
    if alarm_row is None or monitor.alarm_at_ is None:
        return []
    row, place = thousands(alarm_row), thousands(monitor.alarm_at_)
    return [f"Broken since row {row} of all rows: row {place} of the rows counted."]


def _promise(monitor: PromiseMonitor) -> Figure:
    figure = Figure((7.2, 3.4))
    display = MonitorDisplay.from_monitor(monitor, ax=figure.subplots())
    for axes in display.axes_:
        axes.tick_params(labelsize=8)
    display.axes_[-1].set_xlabel("rows counted")
    return figure


def _bars(columns: Sequence[tuple[str, float, float]], level: float) -> Figure:
    """Evidence of each column alone, the largest first."""
    figure = Figure((7.2, 0.6 + 0.28 * min(len(columns), MOST_BARS)))
    table = {
        "column": [cut(name, 32) for name, _, _ in columns],
        "e_value": [e_value for _, e_value, _ in columns],
    }
    display = DriftDisplay(pa.table(table), level=level, most=MOST_BARS)
    display.plot(figure.subplots())
    return figure


def _drift(drifted: Sequence[dict[str, Any]], level: float) -> Section:
    """What drifted most, as evidence of each column alone."""
    columns = [(c["column"], float(c["e_value"]), c["mean_position"]) for c in drifted]
    rows = [[cut(name), f"{e:.3g}", f"{place:.3f}"] for name, e, place in columns]
    return Section(
        "drift",
        "Drift",
        [
            "New rows among reference rows, column by column: which changed most. The "
            "verdict is about all columns together; a column's own e-value is an "
            "indication. Mean position: the share of reference rows below a new row, "
            "1/2 without drift."
        ],
        partial(_bars, columns, level),
        "Evidence of drift, the largest first.",
        [first_rows("Columns", ["column", "e-value", "mean position"], rows)],
    )


def audit_page(
    title: str, audit: Audit, command: str | None, *, print_all: bool = False
) -> str:
    """One offline HTML document on an audit.

    `command` makes the worst draw of a broken promise again.
    """
    rows = [_cells(row) for row in sorted(audit.rows, key=lambda row: row.p_value)]
    parts = []
    if audit.rows:
        parts.append(
            Section(
                "result",
                "Every promise under every law",
                [AUDIT_LINES],
                tables=[Table("Promises", AUDIT_COLUMNS, rows, note=AUDIT_NOTE)],
                sortable=True,
                wide=True,
            )
        )
        how_drawn = AUDIT_FIGURE
        if len(audit.rows) > MOST_LINES:
            how_drawn += (
                f" Drawn are the first {MOST_LINES} of {len(audit.rows)} lines; the "
                "table has all."
            )
        height = 0.8 + 0.22 * min(MOST_LINES, len(audit.rows))
        parts.append(
            Section(
                "truth",
                "Promise and truth",
                [how_drawn],
                partial(
                    on_axes,
                    (9.6, height),
                    lambda ax: AuditDisplay.from_audit(audit, most=MOST_LINES, ax=ax),
                ),
                "Dots: true rate of each promise under each law, beside its bound.",
                wide=True,
            )
        )
    outside = list(map(_cells, audit.outside))
    if outside:
        parts.append(
            Section(
                "outside",
                "Outside its assumptions",
                ["Laws that were asked for, and of which the promise says nothing."],
                tables=[first_rows("Promises", AUDIT_COLUMNS, outside)],
                folded=True,
                wide=True,
            )
        )
    return page(
        f"prudent: {title}",
        of_audit(audit, AUDIT_COLUMNS, rows, command),
        parts,
        audit.to_dict(),
        print_all=print_all,
    )


def _cells(row: AuditRow) -> tuple[str, ...]:
    law, *cells = cells_of(row)
    return law, "broken" if row.is_refuted else "no violation", *cells
