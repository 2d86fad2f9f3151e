"""Rules as JSON, which a few lines of any language apply.

Thresholds and the ends of bands are decimal strings that round-trip, since not every
reader of JSON keeps all digits of a number, nor knows infinity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from prudent._version import __version__
from prudent.core.guarantee import Guarantee
from prudent.core.strict_json import double_of, parsed, text_of_double
from prudent.core.types import BoolArray
from prudent.core.validation import plain
from prudent.rules.parts import Crossing, crossings_from, names_of
from prudent.rules.scores import CalibrationScores

FORMAT = "prudent-rule/1"
# Larger files are none of ours: a million scores of calibration rows take 20 MB.
MOST_CHARACTERS = 100_000_000
AS_GIVEN = "as given"
# What the columns of a rule may have to be turned into, if they are probabilities.
SCORES = (AS_GIVEN, "log odds", "max probability")
KINDS = ("sets", "answers", "labels", "alarms")
# Fields that hold several things each; a text or a mapping could be read as such, too.
LISTS = ("thresholds", "classes", "groups", "priority", "columns", "guarantees")
# What a record tells readers, in the order of the file.
RECORDED = (
    "promise",
    "scores",
    "columns",
    "label",
    "group",
    "ordinary",
    "id",
    "key",
    "unseen",
    "data",
    "among",
)


def json_of_rule(rule: Any, *, keep_scores: bool = False) -> str:
    """Text of the JSON of a rule; with `keep_scores` for p-values too."""
    smoothed = rule.smoothed_rate is not None
    if smoothed and "key" not in rule.record:
        raise ValueError(
            "the coins of this rule's ties are those of rows, which no file holds: "
            "use ties='conservative', or prudent.promise with `ids`."
        )
    if rule.subgroups and not rule.crossings:
        raise ValueError(
            "the subgroups are what a function says of rows, which no file holds: name "
            "columns as `subgroups`."
        )
    columns = [str(label) for label in rule.classes] or ["score"]
    fields: dict[str, Any] = {
        "format": FORMAT,
        "kind": rule.kind,
        "promise": promises_in_short(rule.guarantees),
        **{"scores": AS_GIVEN, "columns": columns},
        **{name: rule.record[name] for name in RECORDED if name in rule.record},
        "classes": list(rule.classes),
        "thresholds": [text_of_double(value) for value in rule.thresholds],
    }
    if rule.kind == "sets":
        fields["by"] = rule.by
        fields["empty"] = rule.empty
        if rule.by == "group":
            fields["groups"] = list(rule.groups)
    if rule.subgroups:
        spelled = [crossing.conditions for crossing in rule.crossings]
        crossings_from(spelled)  # refuses what could not be read again
        fields["subgroups"] = spelled
    if rule.cells is not None:
        fields["cells"] = _places_of_cells(rule.cells, rule.crossings)
    if rule.priority:
        fields["priority"] = list(rule.priority)
    if rule.kind == "alarms":
        fields["strange"] = rule.strange
    if smoothed:
        fields["smoothed_rate"] = text_of_double(float(rule.smoothed_rate or 0))
    if keep_scores or smoothed:
        fields |= _what_made(rule)
    fields["prudent"] = __version__
    fields["guarantees"] = [
        {**guarantee.to_dict(), "sentence": str(guarantee)}
        for guarantee in rule.guarantees
    ]
    return json.dumps(_as_json(fields), ensure_ascii=False, allow_nan=False, indent=1)


def _what_made(rule: Any) -> dict[str, Any]:
    """Scores of the calibration rows, and what these promise at any rate."""
    made = rule.calibration
    scores, coin = getattr(made, "scores", None), getattr(made, "coin", None)
    if not isinstance(scores, CalibrationScores):
        raise ValueError(
            f"a rule of kind {rule.kind!r} keeps no scores of calibration rows."
        )
    return {
        "calibration": [[text_of_double(a) for a in own] for own in scores.sorted],
        "tolerance": text_of_double(scores.tolerance),
        "terms": {
            **asdict(made.terms),
            "jointly": getattr(made, "jointly", False),
            "coin": None if coin is None else text_of_double(coin),
        },
    }


def promises_in_short(guarantees: Sequence[Guarantee]) -> str:
    """What is promised, in a line.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> promises_in_short([Guarantee(quantity="coverage", bound=0.9, sense=">=")])
    'coverage >= 0.9'
    """
    promises = (
        f"{g.quantity}{'' if g.scope is None else f' of {g.scope}'}"
        f"{'' if g.subgroup is None else f' where {g.subgroup}'} "
        f"{g.sense} {g.bound:.6g}"
        for g in guarantees
    )
    return ", ".join(promises)


def fields_of_rule(text: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read the fields of a rule, and those of what made it if it keeps that.

    The second are `scores` of calibration rows, the fields of their `terms`, `jointly`
    and `coin`. ValueError in one sentence where the text is no rule.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a rule of {len(text)} characters is too long to be one.")
    try:
        fields = parsed(text)
    except ValueError as error:
        raise ValueError(f"this is no rule: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        other = fields.get("format") if isinstance(fields, dict) else None
        raise ValueError(
            f"this is no rule of the format {FORMAT!r}, but of {other!r:.40}."
        )
    try:
        return _fields(fields), _kept(fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the rule lacks a part or holds one of the wrong type ({error})."
        ) from None


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    for name in LISTS:
        if not isinstance(fields.get(name, []), list):
            raise ValueError(
                f"`{name}` of the rule must be a list, got {fields[name]!r:.40}."
            )
    kind = _one_of("kind", fields["kind"], KINDS)
    thresholds = tuple(_number("thresholds", value) for value in fields["thresholds"])
    classes = tuple(map(_label, fields["classes"]))
    groups = tuple(map(_label, fields.get("groups", ())))
    priority = tuple(map(_label, fields.get("priority", ())))
    by = _one_of("by", fields.get("by"), (None, "class", "group"))
    smoothed = fields.get("smoothed_rate")
    rate = None if smoothed is None else _number("smoothed_rate", smoothed)
    crossings = crossings_from(fields["subgroups"]) if "subgroups" in fields else ()
    subgroups = names_of(crossings)
    if subgroups and (by == "group" or kind == "alarms"):
        raise ValueError("a rule by `subgroups` is none of alarms or by `groups`.")
    cells = None
    if kind == "answers" and subgroups:
        cells = _cells_at(fields["cells"], crossings)
    n_thresholds = max(len(subgroups), 1) if cells is None else len(cells)
    if kind == "labels" or by == "class":
        n_thresholds *= len(classes)
    elif by == "group":
        n_thresholds = len(groups)
    if rate is not None:
        n_thresholds = len(thresholds)
    if len(thresholds) != n_thresholds:
        raise ValueError(
            f"the rule needs {n_thresholds} thresholds, got {len(thresholds)}."
        )
    _check_record(fields)
    columns = [str(name) for name in fields["columns"]]
    _check_names(kind, classes, priority, columns)
    _one_of("scores", fields.get("scores", AS_GIVEN), SCORES)
    guarantees = tuple(Guarantee.from_dict(g) for g in fields["guarantees"])
    return {
        "kind": kind,
        "thresholds": thresholds,
        "guarantees": guarantees,
        "classes": classes,
        "by": by,
        "groups": groups,
        "subgroups": subgroups,
        "crossings": crossings,
        "cells": cells,
        "priority": priority,
        "strange": _one_of("strange", fields.get("strange", "low"), ("low", "high")),
        "empty": _one_of("empty", fields.get("empty", "best"), ("best", "all")),
        "smoothed_rate": rate,
        "record": {
            **{name: fields[name] for name in RECORDED if name in fields},
            "columns": columns,
        },
    }


def _check_names(
    kind: str, classes: Sequence[Any], priority: Sequence[Any], columns: Sequence[str]
) -> None:
    """Refuse classes, labels of promises and columns of scores that do not fit."""
    if kind in ("sets", "labels") and not 0 < len(set(classes)) == len(classes):
        raise ValueError("the rule must name its classes, each once.")
    if kind == "labels" and not priority:
        raise ValueError("the rule must name the labels of its promises (`priority`).")
    if not set(priority) <= set(classes):
        raise ValueError("`priority` of the rule names labels that are no classes.")
    one_for_all = len(columns) == 1 and len(classes) in (0, 2)
    if len(classes) == 1 or not (one_for_all or len(columns) == len(classes)):
        raise ValueError(
            f"the rule has {len(columns)} columns of scores and {len(classes)} classes."
        )


def _places_of_cells(
    cells: BoolArray, crossings: Sequence[Crossing]
) -> list[list[int]]:
    """Place of the part of each crossing, for each cell."""
    ends = np.cumsum([len(crossing.parts) for crossing in crossings])
    columns = np.split(cells, ends[:-1], axis=1)
    return np.column_stack([own.argmax(axis=1) for own in columns]).tolist()


def _cells_at(places: Any, crossings: Sequence[Crossing]) -> BoolArray:
    """Memberships (n_cells, G) of cells, from the place of a part of each crossing."""
    sizes = [len(crossing.parts) for crossing in crossings]
    if not isinstance(places, list):
        raise TypeError("cells")
    for cell in places:
        is_list = isinstance(cell, list) and len(cell) == len(sizes)
        if not is_list or not all(
            type(place) is int and 0 <= place < size
            for place, size in zip(cell, sizes, strict=True)
        ):
            raise ValueError(
                "`cells` of the rule must hold the place of a part of each list of "
                f"`subgroups`, got {cell!r:.40}."
            )
    if len(set(map(tuple, places))) < len(places):
        raise ValueError("`cells` of the rule name one cell twice.")
    starts = np.cumsum([0, *sizes[:-1]])
    cells = np.zeros((len(places), sum(sizes)), dtype=bool)
    for row, cell in zip(cells, places, strict=True):
        row[starts + np.array(cell)] = True
    return cells


def _check_record(fields: Mapping[str, Any]) -> None:
    """Refuse what readers show or look up, where it is no text or number."""
    data = fields.get("data") or {}
    shown = {name: fields.get(name) for name in RECORDED}
    del shown["columns"], shown["data"]
    for name, value in {**shown, **{f"data.{key}": data[key] for key in data}}.items():
        if not isinstance(value, str | int | float | None):
            raise ValueError(
                f"`{name}` of the rule must be a text or a number, got {value!r:.40}."
            )


def _kept(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Scores of calibration rows, where the file keeps them."""
    if "calibration" not in fields:
        return None
    if fields["kind"] not in ("sets", "alarms"):
        raise ValueError("only rules of sets and of alarms keep calibration scores.")
    categories = {"class": fields["classes"], "group": fields.get("groups")}
    names = tuple(categories.get(str(fields.get("by")), (None,)))
    if "subgroups" in fields:
        subgroups = names_of(crossings_from(fields["subgroups"]))
        names = tuple((subgroup, name) for subgroup in subgroups for name in names)
    if len(names) != len(fields["calibration"]):
        raise ValueError(
            f"the rule keeps scores of {len(fields['calibration'])} categories, and "
            f"has {len(names)}."
        )
    arrays = (
        np.array([_number("calibration", value) for value in own], dtype=float)
        for own in fields["calibration"]
    )
    tolerance = _number("tolerance", fields.get("tolerance", "0.0"))
    terms = fields["terms"]
    confidence, coin = terms["confidence"], terms["coin"]
    latest = terms.get("latest")
    if confidence is not None and not 0 < float(confidence) < 1:
        raise ValueError(
            f"`confidence` of the rule must lie in (0, 1), got {confidence}."
        )
    if latest is not None:
        latest = {str(name): float(number) for name, number in latest.items()}
    ranked = tuple(np.sort(own) for own in arrays)
    return {
        "scores": CalibrationScores(ranked, names, tolerance),
        "terms": {
            "confidence": None if confidence is None else float(confidence),
            "rules": max(int(terms["rules"]), 1),
            "frozen": bool(terms["frozen"]),
            "grouped": bool(terms["grouped"]),
            "latest": latest,
        },
        "jointly": bool(terms["jointly"]),
        "coin": None if coin is None else _number("coin", coin),
    }


def _number(name: str, text: Any) -> float:
    return double_of(text, f"`{name}` of the rule")


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise ValueError(
            f"`{name}` of the rule must be one of {list(allowed)}, got {value!r:.40}."
        )
    return value


def _label(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"labels of a rule are text or numbers, got {value!r:.40}.")
    return value


def _as_json(value: Any) -> Any:
    """Values as JSON has them: plain numbers in place of NumPy's, lists of tuples."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return plain(value)
