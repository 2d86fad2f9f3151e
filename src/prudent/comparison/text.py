"""The words of a comparison: one wording for terminal, report and notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prudent.comparison.result import Comparison, MethodRow, PromiseCheck

__all__ = ["COLUMNS", "cells", "promise_text", "seconds", "table", "verdict"]

COLUMNS = (
    "method",
    "error (95% interval)",
    "promise",
    "kept?",
    "set size",
    "undecided",
    "fit",
    "predict",
    "notes",
)
TIME_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
QUANTITY = {"error rate": "error", "class error rate": "class error"}


def cells(row: MethodRow) -> tuple[str, ...]:
    """Texts of a row under `COLUMNS`."""
    if row.error is None:
        return (row.label, f"FAILED  {row.failure}", *[""] * (len(COLUMNS) - 2))
    low, high = row.error_interval
    worst = row.worst_promise
    sets = row.sets
    notes = [*row.notes]
    if row.tied_with is not None:
        notes.insert(0, f"no difference from {row.tied_with} shown")
    if row.warnings:
        notes.append(f"{len(row.warnings)} warning{'s'[: len(row.warnings) > 1]}")
    return (
        row.label,
        f"{row.error:.3f} ({low:.3f}–{high:.3f})",
        "none" if worst is None else promise_text(worst),
        row.kept or "–",
        "1" if sets is None else f"{sets.mean_size:.2f}",
        "0 %" if sets is None else f"{100 * sets.undecided:.0f} %",
        seconds(row.fit_seconds),
        seconds(row.predict_seconds, "/row"),
        "; ".join(notes),
    )


def promise_text(promise: PromiseCheck) -> str:
    """Say such as "class error ≤ 0.142 (plug-in)"."""
    guarantee = promise.guarantee
    side = "≤" if guarantee.sense == "<=" else "≥"
    name = QUANTITY.get(guarantee.quantity, guarantee.quantity)
    text = f"{name} {side} {guarantee.bound:.3f}"
    plug_in = any("plug-in" in sentence for sentence in guarantee.assumptions)
    return f"{text} (plug-in)" if plug_in else text


def seconds(value: float | None, per: str = "") -> str:
    """Say a time with two digits, in the largest unit that makes it one or more.

    Examples
    --------
    >>> seconds(0.0042), seconds(3.1e-7, "/row"), seconds(125.0), seconds(None)
    ('4.2 ms', '0.31 µs/row', '125 s', '–')
    """
    if value is None:
        return "–"
    unit, factor = next(
        (unit for unit in TIME_UNITS if value * unit[1] >= 1), TIME_UNITS[-1]
    )
    scaled = value * factor
    digits = 0 if scaled >= 10 else 1 if scaled >= 1 else 2
    return f"{scaled:.{digits}f} {unit}{per}"


def verdict(comparison: Comparison) -> tuple[str, ...]:
    """Three sentences made of figures: errors, promises, undecided rows."""
    ran = [row for row in comparison.rows if row.error is not None]
    if not ran:
        return ("No method finished; the leaderboard says why.",)
    return (_errors(ran), _promises(ran), _undecided(ran))


def _errors(ran: list[MethodRow]) -> str:
    best = ran[0]
    low, high = best.error_interval
    sentence = (
        f"The least out-of-fold error is {best.error:.3f} "
        f"(95 % interval {low:.3f}–{high:.3f}), by {best.label}"
    )
    tied = [row.label for row in ran if row.tied_with is not None]
    if tied:
        return f"{sentence}; no difference from it is shown for {', '.join(tied)}."
    return sentence + ("; every other method errs more." if len(ran) > 1 else ".")


def _promises(ran: list[MethodRow]) -> str:
    parts = []
    for row in ran:
        worst = row.worst_promise
        if worst is not None:
            word = (
                "was not contradicted" if row.kept == "consistent" else f"is {row.kept}"
            )
            parts.append(f"{promise_text(worst)} by {row.name} {word}")
    if not parts:
        return "No method made a promise that out-of-fold rows could check."
    return "Held against rows not fitted on: " + "; ".join(parts) + "."


def _undecided(ran: list[MethodRow]) -> str:
    parts = [
        f"{row.name} leaves {100 * row.sets.undecided:.0f} % of the rows undecided "
        f"(its sets hold the true class in {100 * row.sets.coverage:.1f} %)"
        for row in ran
        if row.sets is not None
    ]
    if not parts:
        return "Every method decides every row."
    return "Of the methods that may say they do not know, " + "; ".join(parts) + "."


def table(comparison: Comparison) -> str:
    """Plain text table: a heading, one line per method."""
    data, settings = comparison.data, comparison.settings
    lines = [COLUMNS, *comparison.leaderboard()]
    widths = [
        max(len(line[j]) for line in lines if j == 0 or not line[1].startswith("FAIL"))
        for j in range(len(COLUMNS))
    ]
    heading = (
        f"{data.name}  {data.n_rows} rows x {len(data.features)} features, "
        f"{len(data.classes)} classes   {settings.n_folds}-fold stratified "
        f"cross-validation, seed {settings.random_state}, all figures out of fold"
    )
    body = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join([heading, *(line.rstrip() for line in body)])
