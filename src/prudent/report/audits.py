"""The report of an audit, in the frame of a comparison's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from prudent.auditing.result import Audit, AuditRow
from prudent.io.errors import counted, cut
from prudent.plots import AuditDisplay
from prudent.report.answers import csv_of
from prudent.report.page import Answer, Section, Table, first_rows, page

MOST_LINES = 30
COLUMNS = (
    *("law", "verdict", "rows", "promise", "true rate", "bound", "bound / true"),
    *("draws", "beyond", "may be", "p"),
)
NOTE = (
    "True rate and bound are means over the draws, of violations: of misses for a "
    "coverage. Beyond: draws whose true rate lies beyond the bound; may be: how many "
    "may where the promise is true, which a promise on average leaves open. p is the "
    "exact p-value of a true promise, 1/e where an e-value stopped the draws; all "
    "lines are tested together, at one level (Holm). Bound / true: 1 means that the "
    "promise gives nothing away, and much more that it may be true but says little."
)
SECTION = (
    "Each line is one promise under one law at one number of training rows, in so many "
    "draws: fresh rows, a new fit, and its promise held against the truth."
)
FIGURE = (
    "Left: the mean true rate (dot) and the mean bound (tick). Right: the share of "
    "draws beyond the bound with its exact interval, and the share that may be (tick). "
    "The most suspicious come first."
)
VERDICTS = {
    "no violation found": ("No violation found", "plain"),
    "broken": ("Broken", "bad"),
    "nothing to test": ("Nothing to test", "plain"),
}


def audit_page(
    title: str, audit: Audit, command: str | None, *, print_all: bool = False
) -> str:
    """One offline HTML document on an audit.

    `command` makes the worst draw of a broken promise again.
    """
    rows = [_cells(row) for row in sorted(audit.rows, key=lambda row: row.p_value)]
    parts = [
        Section(
            "result",
            "Every promise under every law",
            [SECTION],
            tables=[Table("Promises", COLUMNS, rows, note=NOTE)],
            sortable=True,
            wide=True,
        )
    ]
    if audit.rows:
        parts.append(
            Section(
                "truth",
                "Promise and truth",
                [FIGURE],
                partial(_truth, audit),
                "Dots: true rate of each promise under each law, beside its bound.",
                wide=True,
            )
        )
    if audit.outside:
        parts.append(
            Section(
                "outside",
                "Outside its assumptions",
                ["Laws that were asked for, and of which the promise says nothing."],
                tables=[
                    first_rows("Promises", COLUMNS, list(map(_cells, audit.outside)))
                ],
                folded=True,
                wide=True,
            )
        )
    answer = _answer(audit, rows, command)
    data = audit.to_dict()
    return page(f"prudent: {title}", answer, parts, data, print_all=print_all)


def _answer(audit: Audit, rows: Sequence[Sequence[str]], command: str | None) -> Answer:
    """The verdict, and on what it rests."""
    verdict, tone = VERDICTS[audit.verdict]
    refuted = sum(row.is_refuted for row in audit.rows)
    laws = list(dict.fromkeys(row.law for row in audit.rows))
    sentences = [
        f"{refuted or 'None'} of {counted(len(audit.rows), 'line')} below "
        f"{'is' if refuted <= 1 else 'are'} refuted, in at most {audit.budget} draws "
        f"each (level {audit.level:g})."
    ]
    if audit.worst_case is not None and audit.verdict == "broken":
        worst = audit.worst_case
        sentences += [
            f"{worst.claim} In the worst draw, of {worst.size} rows of {worst.law!r}, "
            f"the true rate of violations is {worst.truth:.4g}."
        ]
    if not audit.rows:
        sentences = ["No draw led to a promise that could be held against the truth."]
        sentences += [
            f"{counted(n, 'draw')}: {cut(text, 300)}"
            for text, n in audit.refusals.items()
        ]
    return Answer(
        verdict=verdict,
        tone=tone,
        sentences=sentences,
        assumption="Nothing but chance: the truth of each law is known, each draw has "
        f"fresh rows of it, and a true promise is called broken with probability at "
        f"most {audit.level:g}. Laws: {', '.join(laws) or 'none'}.",
        not_promised="That the promise is true. A method that passes was not caught, "
        "under these laws and at these numbers of rows.",
        command=command,
        figures=csv_of(COLUMNS, rows),
    )


def _cells(row: AuditRow) -> tuple[str, ...]:
    return (
        *(row.law, "broken" if row.is_refuted else "no violation", str(row.size)),
        *(row.claim, f"{row.mean_truth:.4f}", f"{row.mean_bound:.4f}"),
        *(f"{row.sharpness:.3g}", str(row.claims), str(row.broken)),
        "–" if row.allowed is None else f"{row.allowed:.4g}",
        f"{row.p_value:.2g}{' (stopped)' if row.is_stopped else ''}",
    )


def _truth(audit: Audit) -> Figure:
    lines = min(MOST_LINES, len(audit.rows))
    figure = Figure((9.6, 0.8 + 0.22 * lines), layout="constrained")
    AuditDisplay.from_audit(audit, most=MOST_LINES, ax=figure.subplots())
    return figure
