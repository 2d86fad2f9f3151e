"""Reports of `detect` and `game`, in the frame of the comparison's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from prudent.adversarial import RejectionGame
from prudent.evaluation.detection import Detection
from prudent.plots import SecurityCurveDisplay
from prudent.report.build import page
from prudent.report.parts import Section, Table, first_rows
from prudent.report.svg import INK

MOST_EVENTS = 60
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FIGURE_SIZE = (5.5, 3.2)


def detection_page(
    title: str,
    detection: Detection,
    columns: Sequence[str],
    line: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """One HTML document on a detector: its promise, and its scores as aggregates."""
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
        lambda: _histogram(score, groups),
        "Histogram of the scores, cut at 0.",
        [Table("Quantiles", ["rows", *(f"{q:g}" for q in QUANTILES)], quantiles)],
    )
    data = {"columns": list(columns), "line": list(line), "quantiles": quantiles}
    return page(f"prudent: {title}", [result, scores], data)


def _histogram(
    score: NDArray[np.float64], groups: Mapping[str, NDArray[np.float64]]
) -> Figure:
    figure = Figure(FIGURE_SIZE, layout="constrained")
    ax = figure.subplots()
    bins = np.histogram_bin_edges(score, bins=40).tolist()
    for (name, values), hatch in zip(groups.items(), ("", "///"), strict=False):
        ax.hist(values, bins=bins, alpha=0.6, label=name, hatch=hatch)
    ax.axvline(0, linestyle="--", linewidth=1, color=INK)
    ax.set(xlabel="score (below 0: flagged)", ylabel="rows")
    ax.legend()
    return figure


def _finite(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw scores that say "below all others" at the least finite score."""
    finite = score[np.isfinite(score)]
    if len(finite) == 0:
        return np.zeros_like(score)
    return np.clip(score, finite.min(), finite.max())


def _security_curve(game: RejectionGame) -> Figure:
    figure = Figure(FIGURE_SIZE, layout="constrained")
    SecurityCurveDisplay.from_estimator(game).plot(figure.subplots())
    return figure


def game_page(
    game: RejectionGame,
    sentences: Sequence[str],
    columns: Sequence[str],
    rules: Sequence[Sequence[str]],
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
        lambda: _security_curve(game),
        "Miss rate against false-alarm rate.",
        [Table("Miss rates", ["false-alarm rate", "soft", "hard"], points)],
    )
    data = {
        "summary": list(sentences),
        "columns": list(columns),
        "rules": [list(line) for line in rules],
        "security_curve": points,
    }
    return page("prudent: rejection game", [result, rule, security], data)
