"""Reports of `detect` and `game`, in the frame of the comparison's report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prudent.comparison.detection import Detection
from prudent.report.build import page
from prudent.report.parts import Section, Table

__all__ = ["detection_page", "game_page"]

MOST_EVENTS = 60
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def detection_page(
    title: str, detection: Detection, columns: Sequence[str], line: Sequence[str]
) -> str:
    """One HTML document on a detector: its promise, and its scores in quantiles."""
    result = Section(
        "result",
        "Promise and measurement",
        [
            "False alarms are measured on normal rows that the detector was not "
            "fitted on; rows are flagged by the detector fitted on all normal rows.",
            *(str(promise.guarantee) for promise in detection.promises),
        ],
        tables=[Table("The detector", columns, [line])],
    )
    finite = np.clip(detection.score, *_finite_range(detection.score))
    rows = [
        [name, *(f"{value:.4g}" for value in np.quantile(finite[chosen], QUANTILES))]
        for name, chosen in (
            ("flagged", detection.outlier),
            ("not flagged", ~detection.outlier),
        )
        if chosen.any()
    ]
    scores = Section(
        "scores",
        "Scores",
        ["Rows with a score below 0 are flagged. The table gives quantiles."],
        tables=[Table("Scores", ["rows", *(f"{q:g}" for q in QUANTILES)], rows)],
    )
    data = {"columns": list(columns), "line": list(line), "quantiles": rows}
    return page(f"prudent: {title}", [result, scores], data)


def _finite_range(score: Any) -> tuple[float, float]:
    finite = score[np.isfinite(score)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def game_page(
    sentences: Sequence[str], columns: Sequence[str], rules: Sequence[Sequence[str]]
) -> str:
    """One HTML document on a rejection game: value, certificate, rule."""
    result = Section("result", "Value and certificate", sentences)
    rule = Section(
        "rule",
        "Rule",
        ["Probability with which each event is rejected, the least probable first."],
        tables=[
            Table(
                "Rejection of each event",
                columns,
                rules[:MOST_EVENTS],
                omitted=max(0, len(rules) - MOST_EVENTS),
            )
        ],
    )
    data = {"summary": list(sentences), "columns": list(columns), "rules": list(rules)}
    return page("prudent: rejection game", [result, rule], data)
