"""The explorer: limits at every threshold in a page, moved by sliders.

All limits hold at once at every position, so that the page may only add, multiply and
divide them. It is complete without its script, at one position.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from prudent.io.errors import NO_BREAK, percent
from prudent.report.card import FOOT
from prudent.report.page import _resource, rendered

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
        That of a model, which `to_dict` has included, shown first, and without the
        script alone; None: the middle.
    beside_card : bool, default=False
        Whether a model, and other promises of the same confidence, stand on the page.

    Returns
    -------
    str
        HTML with its style, data and script; no network is used.
    """
    at = [float(value) for value in bands["threshold"]]
    place = len(at) // 2
    if threshold is not None:
        # Positions are short numbers, for alarms at most the exact ones, for answers at
        # least.
        if bands["kind"] == "alarms":
            place = max(sum(value <= threshold for value in at) - 1, 0)
        else:
            place = min(sum(value < threshold for value in at), len(at) - 1)
    kind, confidence = str(bands["kind"]), float(bands["confidence"])
    positive = f"'{bands['positive']}'"
    limits, seen = limits_at(bands, place), seen_at(bands, place)
    lines = [
        (
            name,
            what.format(positive=positive),
            side,
            _percent(limits[name], at_least=side == "at least"),
            percent(seen[name], 1),
        )
        for name, (what, side) in LINES[kind].items()
    ]
    data = json.dumps(dict(bands), separators=(",", ":"), allow_nan=False)
    people = limits["people"]
    return rendered(
        "explorer.html",
        alarms=kind == "alarms",
        confidence=percent(confidence, None),
        together=percent(max(0.0, 2 * confidence - 1), None),
        beside_card=beside_card,
        has_own=threshold is not None,
        position=str(bands["threshold"][place]),
        last=len(at) - 1,
        place=place,
        positive=positive,
        queue=QUEUE,
        waiting="–" if people is None else math.ceil(QUEUE * people - 1e-9),
        lines=lines,
        data=Markup(data.replace("<", "\\u003c")),
        script=Markup(script()),
    )


def explorer_page(bands: Mapping[str, Any], title: str) -> str:
    """A page of its own with the explorer of a table of scores."""
    part = Markup(explorer(bands))
    return rendered("card.html", title=title, sections=[], explorer=part, foot=FOOT)


def script() -> str:
    """The script of the explorer."""
    return _resource("explorer.js")


def _percent(value: float | None, *, at_least: bool) -> str:
    """A percentage with one digit, rounded to the safe side, as the script has it."""
    if value is None:
        return "–"
    scaled = 1000 * min(max(value, 0.0), 1.0)
    whole = math.floor(scaled + 1e-9) if at_least else math.ceil(scaled - 1e-9)
    return f"{whole / 10:.1f}{NO_BREAK}%"
