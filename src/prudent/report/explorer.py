"""The explorer: limits at every threshold in a page, moved by sliders.

All limits hold at once at every position, so that the page may only add, multiply and
divide them. It is complete without its script, at one position.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from prudent.io.errors import NO_BREAK, unbroken
from prudent.report.card import FOOT
from prudent.report.card_page import PAGE

#: What a line of the table says, by the names of `limits_at`; and of which side.
LINES = {
    "answers": {
        "error": ("wrong answers among the rows answered", "at most"),
        "answered": ("rows answered", "at least"),
        "people": ("rows handed over to people", "at most"),
    },
    "alarms": {
        "missed": ("rows of {positive} without an alarm", "at most"),
        "alarms": ("other rows with an alarm", "at most"),
        "people": ("rows with an alarm, of all", "at most"),
        "error": ("errors of both kinds, of all rows", "at most"),
        "precision": ("alarms that are {positive}", "at least"),
    },
}
#: New rows of a day, to begin with.
QUEUE = 1000
STYLE = """
.explorer { margin-top: 1rem; }
.explorer label { display: block; margin: .35rem 0; }
.explorer input[type=range] { width: min(24rem, 100%); margin: 0;
  vertical-align: middle; }
.explorer input[type=number] { width: 6rem; }
.explorer .seen { opacity: .7; }
@media print { .explorer .controls { display: none; }
  #promise ~ .explorer { break-before: page; } }
"""


def limits_at(
    bands: Mapping[str, Any], place: int, prevalence: float | None = None
) -> dict[str, float | None]:
    """What the explorer says at a position: `limitsAt` of its script.

    Parameters
    ----------
    bands : mapping
        Of `ThresholdBands.to_dict`.
    place : int
        Position among its thresholds.
    prevalence : float, default=None
        Share of positive rows among future rows; None: as far as the rows say.

    Returns
    -------
    dict
        For answers "error", "answered" and "people" (rows handed over); for alarms
        "missed", "alarms" (false ones), "people" (flagged rows), "error" and
        "precision", the last three None where nobody says how frequent positive rows
        are.
    """
    first, second, *rest = bands["limit"][place]
    if bands["kind"] == "answers":
        return {"error": first, "answered": second, "people": 1 - second}
    figures: dict[str, float | None] = {
        "missed": first,
        "alarms": second,
        "people": None,
        "error": None,
        "precision": None,
    }
    box = bands["share"] if prevalence is None else [prevalence, prevalence]
    if box is None:
        return figures
    low, high = box
    right = low * (1 - first)
    raised = right + (1 - low) * second
    people = rest[0] if prevalence is None else prevalence + (1 - prevalence) * second
    error = max(low * first + (1 - low) * second, high * first + (1 - high) * second)
    precision = right / raised if raised > 0 else 0.0
    return {**figures, "people": people, "error": error, "precision": precision}


def seen_at(bands: Mapping[str, Any], place: int) -> dict[str, float | None]:
    """Shares as counted here, of which nothing is promised."""

    def share(count: float, rows: float) -> float | None:
        return count / rows if rows else None

    counts, rows = bands["violations"][place], bands["rows"]
    if bands["kind"] == "answers":
        return {
            "error": share(counts[0], counts[1]),
            "answered": share(counts[1], rows[1]),
            "people": share(rows[1] - counts[1], rows[1]),
        }
    return {
        "missed": share(counts[0], rows[0]),
        "alarms": share(counts[1], rows[1]),
        "people": share(counts[2], rows[2]),
        "error": share(counts[0] + counts[1], rows[2]),
        "precision": share(rows[0] - counts[0], counts[2]),
    }


def explorer(
    bands: Mapping[str, Any],
    threshold: float | None = None,
    *,
    beside_card: bool = False,
) -> str:
    """A part of a page that shows limits at all thresholds, first at the one asked for.

    Parameters
    ----------
    bands : mapping
        Of `ThresholdBands.to_dict`.
    threshold : float, default=None
        The position shown first, and without the script alone; None: the middle.
    beside_card : bool, default=False
        Whether other promises of the same confidence stand on the page.

    Returns
    -------
    str
        HTML with its style, data and script; no network is used.
    """
    at = [float(value) for value in bands["threshold"]]
    place = len(at) // 2
    if threshold is not None:
        above = sum(value < threshold for value in at)
        level = sum(value <= threshold for value in at)
        # The nearest position that raises no more alarms, or gives no fewer answers.
        place = min(above, len(at) - 1) if bands["kind"] == "alarms" else level - 1
        place = max(place, 0)
    kind, confidence = str(bands["kind"]), float(bands["confidence"])
    positive = f"'{bands['positive']}'"
    limits, seen = limits_at(bands, place), seen_at(bands, place)
    lines = []
    for name, (what, side) in LINES[kind].items():
        limit, share = limits[name], seen[name]
        known = "–" if share is None else f"{100 * share:.1f}{NO_BREAK}%"
        lines.append(
            f'<tr><th scope="row">{escape(what.format(positive=positive))}</th>'
            f'<td>{side} <b data-name="{name}-limit">'
            f"{_percent(limit, at_least=side == 'at least')}</b></td>"
            f'<td class="seen" data-name="{name}-seen">{known}</td></tr>'
        )
    happens = "is answered above" if kind == "answers" else "raises an alarm from"
    prevalence = _PREVALENCE.format(positive=escape(positive))
    data = json.dumps(dict(bands), separators=(",", ":"), allow_nan=False)
    people = limits["people"]
    return _PART.format(
        style=STYLE,
        confidence=unbroken(f"{100 * confidence:.4g} %"),
        together=unbroken(_TOGETHER.format(max(0.0, 200 * confidence - 100)))
        if beside_card
        else "",
        happens=happens,
        position=escape(str(bands["threshold"][place])),
        last=len(at) - 1,
        place=place,
        prevalence=prevalence if kind == "alarms" else "",
        people="flagged" if kind == "alarms" else "handed over",
        onwards="" if kind == "answers" else " on",
        queue=QUEUE,
        queue_shown=f'<span data-name="queue-rows">{QUEUE}</span>',
        waiting="–" if people is None else math.ceil(QUEUE * people - 1e-9),
        lines="\n".join(lines),
        data=data.replace("<", "\\u003c"),
        script=script(),
    )


def explorer_page(bands: Mapping[str, Any], title: str) -> str:
    """A page of its own with the explorer of a table of scores."""
    return PAGE.format(title=escape(title), sections=explorer(bands), foot=FOOT)


@cache
def script() -> str:
    """The script of the explorer."""
    return (files("prudent.report") / "explorer.js").read_text(encoding="utf-8")


def _percent(value: float | None, *, at_least: bool) -> str:
    """A percentage with one digit, rounded to the safe side, as the script has it."""
    if value is None:
        return "–"
    scaled = 1000 * min(max(value, 0.0), 1.0)
    whole = math.floor(scaled + 1e-9) if at_least else math.ceil(scaled - 1e-9)
    return f"{whole / 10:.1f}{NO_BREAK}%"


_TOGETHER = ", together with the card above with {:.4g} %"
_PREVALENCE = """<label><input type="checkbox" data-name="known">
another share of {positive} among future rows:
<input type="range" min="0" max="1000" value="100" data-name="share" disabled
 aria-label="share of {positive} among future rows">
<output data-name="share-text">as here</output></label>
<p data-name="assumed" hidden>This assumes that share, and that nothing else
changes.</p>
"""
_PART = """<section class="explorer" id="explorer" aria-label="Every threshold">
<style>{style}</style>
<h2>Every threshold</h2>
<p>Choose after looking: all limits hold at once, at every position, with probability
{confidence}{together}. What was seen here is not promised.</p>
<div class="controls" hidden>
<label>threshold: <input type="range" min="0" max="{last}" value="{place}"
 data-name="threshold" aria-label="threshold"></label>
{prevalence}<label>people have time for at most <input type="range" min="0" max="1000"
 value="1000" data-name="capacity" aria-label="share of rows that people have time for">
<output data-name="capacity-text">100.0&nbsp;%</output> of the rows</label>
<label>new rows a day: <input type="number" min="0" value="{queue}" data-name="queue">
</label></div>
<p>A row {happens} <b data-name="position">{position}</b>{onwards}. Of {queue_shown}
rows at most <b data-name="queue-text">{waiting}</b> are {people} on average.</p>
<table><thead><tr><th scope="col">of future rows</th><th scope="col">promised</th>
<th scope="col" class="seen">seen here, not promised</th></tr></thead><tbody>
{lines}
</tbody></table>
<script type="application/json">{data}</script>
<script>{script}</script>
</section>"""
