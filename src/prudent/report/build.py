"""From a comparison to one HTML file: escaped, without network, the same each time."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from prudent.evaluation.records import Findings
from prudent.report.parts import Section
from prudent.report.sections import sections

LONGEST_NAME = 64
MOST_NAMES = 200
LONGEST_TEXT = 160


def render(findings: Findings, data: dict[str, Any]) -> str:
    """Return the report of a comparison as one HTML document.

    It refers to nothing outside itself, works without its script (which only sorts the
    table), holds no row of the data, and is the same for the same findings byte for
    byte. `data` are the findings as JSON types, for programs that read the page.
    """
    return page(
        f"prudent: {findings.data.name}", sections(findings), _with_few_names(data)
    )


def page(title: str, sections: Sequence[Section], data: dict[str, Any]) -> str:
    """Return one HTML document with these sections, and JSON types for programs."""
    script, style = _resource("sort.js"), _resource("style.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("template.html")
        .render(
            title=title[:LONGEST_NAME],
            sections=sections,
            script=Markup(script),
            script_digest=digest,
            style=Markup(style),
            data=Markup(_embedded(data)),
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("prudent.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def _resource(name: str) -> str:
    return (files("prudent.report") / name).read_text(encoding="utf-8")


def _with_few_names(found: dict[str, Any]) -> dict[str, Any]:
    features = found["data"]["features"]
    found["data"]["n_features"] = len(features)
    found["data"]["features"] = [name[:LONGEST_NAME] for name in features[:MOST_NAMES]]
    for row in found["rows"]:
        for items in (row["own"], row["asked"]["items"] if row["asked"] else []):
            for item in items[1:]:  # assumed by all of them, and long
                item["assumptions"] = ["as above"]
                if item["source"] == items[0]["source"]:
                    item["source"] = "as above"
    return found


def _embedded(found: dict[str, Any]) -> str:
    """JSON that cannot end the element it is in; texts cut, figures to 6 digits."""
    text = json.dumps(_compact(found), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _compact(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    if isinstance(value, float):
        rounded = float(f"{value:.6g}")
        return int(rounded) if rounded.is_integer() else rounded
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
