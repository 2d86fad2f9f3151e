"""The promise card: one page for a manager, a colleague or an auditor.

A card is made of what is known: promises, certificates, what a monitor has counted, and
what its owner wrote. Nothing is invented: what is not known is blank. The same input
gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from typing import Any

from prudent.core.assumptions import LATEST, Assumption, time_in_words
from prudent.core.binomial import fewest_rows
from prudent.core.guarantee import COUNTED_AS, NOT_A_RATE, OF_FLAGGED, Guarantee
from prudent.core.validation import quoted

SCHEMA = "prudent.card/1"
OWNER = ("purpose", "oversight", "contact")
FOOT = "No statement of conformity."
#: Lines of the table about those that nothing is promised of.
MOST_LINES = 12
#: Headings, in the order of the card.
HEADINGS = {
    "promise": "What is promised",
    "confidence": "How sure that is",
    "for_whom": "For whom",
    "assumption": "What it rests on",
    "not_promised": "What is not promised",
    "evidence": "Evidence",
    "table": "By class and subgroup",
    "void_if": "Void if",
    "watched": "Watched",
    "recheck": "To check it again",
    "owner": "Owner",
}
SAME_SOURCE = (
    "New rows come from the same source in the same way as the rows that proved this, "
    "which were used for nothing else."
)
NOT_PROMISED = (
    "Nothing about a single row, and nothing beyond the lines of the table that are "
    "marked as promised or proved."
)
VOID_IF = (
    "rows come from another source, or are collected in another way",
    "labels are given in another way",
    "columns are prepared in another way",
    "the model or a threshold is changed",
    "rows to be decided, or to prove this, were chosen by looking at them",
)
#: Assumptions that the everyday sentence says; not which rows are the latest ones.
EVERYDAY = frozenset(
    assumption
    for assumption in Assumption
    if assumption.name.startswith(("EXCHANGEABLE", "TRAINING_EXCHANGEABLE"))
    or assumption
    in (
        Assumption.INDEPENDENT,
        Assumption.GROUPS,
        Assumption.UNSEEN,
        Assumption.KNOWN_LABEL,
    )
) - {*LATEST.values()}
#: What a row does in a promise: of which rows, and what few or many of them do.
IN_WORDS = {
    "error rate": ("Of all rows{part}", "are answered wrong"),
    "class error rate": ("Of the rows{part}", "get another label"),
    "selective error rate": ("Of the rows{part}{that} it answers", "are wrong"),
    "coverage": ("Of the rows{part}", "have their label among those named"),
    "false alarm rate": ("Of the ordinary rows{part}", "raise an alarm"),
    "miss rate": ("Of the anomalies{part}", "raise no alarm"),
    "answered share": ("Of all rows{subgroup}", "are answered"),
    "flagged share": ("Of all rows{subgroup}", "are flagged{as}"),
    "precision": ("Of the rows{subgroup} flagged{as}", "are what they are flagged as"),
    "probability": ("Of the rows{subgroup}", "are of class {class}"),
    "expected cost": ("On average a row{subgroup}", "costs {bound}"),
    "false discovery rate": ("Of the rows named as unusual", "are ordinary"),
}


def promise_card(
    promises: Sequence[Guarantee],
    *,
    certificate: Sequence[Guarantee] = (),
    facts: Mapping[str, Any] | None = None,
    watched: Mapping[str, Any] | None = None,
    recheck: str = "",
    owner: Mapping[str, str] | None = None,
    seen: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Put together what a card says, in its order.

    Parameters
    ----------
    promises : sequence of Guarantee
        What a model or rule promises; without any the certificate is what is promised.
    certificate : sequence of Guarantee
        What new rows have proved.
    facts : mapping, default=None
        Files with their SHA-256, labels, seed and versions, as they are known.
    watched : mapping, default=None
        Level, verdict and date of a monitor.
    recheck : str, default=""
        Command that holds the promises against new rows.
    owner : mapping, default=None
        "purpose", "oversight" and "contact", in the owner's words.
    seen : sequence of mapping, default=()
        Classes and subgroups that are known of: "about", and where they were counted
        "rows", "wrong" among them, and how many rows a promise "needs". Those that no
        promise is about have a line that says so.

    Returns
    -------
    dict
        The fields of `HEADINGS`, of schema `prudent.card/1`.
    """
    main = tuple(promises) or tuple(certificate)
    others = [g for g in certificate if g not in main]
    return {
        "schema": SCHEMA,
        "promise": [in_everyday_words(g) for g in main],
        "confidence": _how_sure(main),
        "for_whom": dict((facts or {}).get("for_whom", {})),
        "assumption": _rests_on([*main, *others]),
        "not_promised": NOT_PROMISED,
        "evidence": {
            **(facts or {}).get("evidence", {}),
            "promises": [_numbers(g) for g in main],
            "certificate": [_numbers(g) for g in others],
        },
        "table": [_line(g, "promised") for g in main]
        + [_line(g, "proved by new rows") for g in others]
        + _not_promised([*main, *others], seen),
        "void_if": [*VOID_IF, *_shift_tolerance(main)],
        "watched": dict(watched) if watched else "not watched",
        "recheck": recheck,
        "owner": {name: str((owner or {}).get(name, "")) for name in OWNER},
        "foot": FOOT,
    }


def in_everyday_words(promise: Guarantee) -> str:
    """One promise as one says it: at most 5 in 100.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> in_everyday_words(
    ...     Guarantee(quantity="selective error rate", bound=0.05, sense="<=")
    ... )
    'Of the rows it answers, at most 5 in 100 are wrong.'
    """
    whose, what = IN_WORDS[promise.quantity]
    named = "" if promise.scope is None else class_named(promise.scope)
    label = named.removeprefix("class ")
    side = "at most" if promise.sense == "<=" else "at least"
    subgroup = "" if promise.subgroup is None else f" with {promise.subgroup}"
    part = (f" of {named}" if named else "") + subgroup
    words = {
        "part": part,
        "subgroup": subgroup,
        "that": " that" if part else "",
        "class": label,
        "as": f" as {label}" if label else "",
    }
    about = whose.format(**words)
    if promise.quantity == "expected cost":
        bound = f"{side} {_outward(promise.bound, promise.sense)}"
        return f"{about} {what.format(bound=bound)}."
    rate = f"{side} {_in_hundred(promise.bound, promise.sense)}"
    return f"{about}, {rate} {what.format(**words)}."


def class_named(label: Any) -> str:
    """A class as the terminal names it: class '1'; in full: it says who is meant."""
    return f"class {quoted(label)}"


def _in_hundred(rate: float, sense: str) -> str:
    return f"{_outward(rate, sense, 100)} in 100"


def _outward(limit: float, sense: str, times: int = 1) -> str:
    """A limit in four digits, rounded so that it stays true."""
    exact = Decimal(repr(float(limit))) * times
    side = ROUND_CEILING if sense == "<=" else ROUND_FLOOR
    return f"{float(Context(prec=4, rounding=side).plus(exact)):.4g}"


def _how_sure(promises: Sequence[Guarantee]) -> str:
    confidences = {g.confidence for g in promises}
    sentences = []
    for confidence in sorted(c for c in confidences if c is not None):
        failing = f"{100 * (1 - confidence):.4g}"
        sentences.append(
            f"Of 100 promises proved like this, on average at most {failing} are false."
        )
    if any(g.average_over is not None for g in promises):
        sentences.append("On average; this model may do worse.")
    elif None in confidences:
        sentences.append("Certain, where what it rests on is true.")
    return " ".join(sentences)


def _rests_on(promises: Sequence[Guarantee]) -> list[str]:
    """The everyday sentence where it says all, and the others as they are."""
    sentences: dict[str, None] = {}
    for promise in promises:
        for assumption, text in zip(promise.assumptions, promise.assumed, strict=True):
            everyday = isinstance(assumption, Assumption) and assumption in EVERYDAY
            sentence = text[:1].upper() + text[1:] + "."
            sentences[SAME_SOURCE if everyday else sentence] = None
    return list(sentences)


def _numbers(promise: Guarantee) -> dict[str, Any]:
    """The promise in figures, for who checks it."""
    fields = promise.to_dict()
    return {
        name: fields[name]
        for name in (
            *("quantity", "scope", "subgroup", "sense", "bound", "confidence"),
            *("average_over", "unit", "evidence", "source"),
        )
    }


def _line(promise: Guarantee, status: str) -> dict[str, Any]:
    """A line of the table: about whom, rows, seen, limit, whether it is promised."""
    evidence = promise.evidence
    rows = evidence.get("answered", evidence.get("calibration rows"))
    wrong = evidence.get("wrong")
    if promise.quantity in COUNTED_AS:
        rows = evidence.get("calibration rows")
        wrong = evidence.get(COUNTED_AS[promise.quantity])
    return {
        "about": _about(promise),
        "quantity": promise.quantity,
        "rows": None if rows is None else int(rows),
        "seen": None if wrong is None or not rows else round(wrong / rows, 6),
        "limit": f"{promise.sense} {_outward(promise.bound, promise.sense)}",
        "status": status,
    }


def _about(promise: Guarantee) -> str:
    """Whom a promise is about: a class, a subgroup, both, or all rows."""
    by_class = promise.scope is not None and promise.quantity not in OF_FLAGGED
    about = [class_named(promise.scope)] if by_class else []
    about += [] if promise.subgroup is None else [promise.subgroup]
    return ", ".join(about) or "all rows"


def _not_promised(
    promises: Sequence[Guarantee], seen: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A line for each class and subgroup that no promise is about."""
    rates = [g for g in promises if g.quantity not in (*COUNTED_AS, *NOT_A_RATE)]
    known = {_about(g) for g in promises}
    if not rates:
        return []
    main = rates[0]
    allowed = main.bound if main.sense == "<=" else 1 - main.bound
    needs = fewest_rows(allowed, main.confidence) if 0 < allowed < 1 else None
    lines = []
    for item in seen:
        if item["about"] in known:
            continue
        rows, needed = item.get("rows"), item.get("needs", needs)
        enough = needed is None or (rows is not None and rows >= needed)
        wrong = item.get("wrong")
        line = {
            "about": item["about"],
            "quantity": main.quantity,
            "rows": rows,
            "seen": round(wrong / rows, 6) if rows and wrong is not None else None,
            "limit": "",
            "status": "seen only" if enough else f"needs {needed} rows",
        }
        lines.append(line)
    more = len(lines) - MOST_LINES
    if more <= 0:
        return lines
    rest = {**dict.fromkeys(COLUMNS, None), "about": f"{more} more", "limit": ""}
    return [*lines[:MOST_LINES], {**rest, "quantity": "", "status": "not promised"}]


def _shift_tolerance(promises: Sequence[Guarantee]) -> list[str]:
    """What becomes of a limit where some rows become twice as frequent."""
    for promise in promises:
        shifted = "shift radius" in promise.evidence
        if promise.quantity in NOT_A_RATE or shifted:
            continue
        worse = promise.under_shift("likelihood_ratio", 2).bound
        side = "at most" if promise.sense == "<=" else "at least"
        return [
            "some kind of row becomes more frequent than it was: if twice as frequent, "
            f"{side} {_in_hundred(promise.bound, promise.sense)} becomes {side} "
            f"{_in_hundred(worse, promise.sense)}"
        ]
    return []


# --- pages ----------------------------------------------------------------------------


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    parts = ["# Promise card", ""]
    for name, heading in HEADINGS.items():
        parts += [f"## {heading}", "", *_markdown_lines(name, card[name]), ""]
    return "\n".join([*parts, f"*{card['foot']}*", ""])


def as_html(card: Mapping[str, Any], explorer: str = "") -> str:
    """The card as a page of its own, which prints on one sheet.

    An `explorer` of thresholds may stand behind it, on a sheet of its own.
    """
    sections = []
    for name, heading in HEADINGS.items():
        body = _html_of(name, card[name])
        sections.append(f'<section id="{name}"><h2>{heading}</h2>{body}</section>')
    return PAGE.format(
        title="Promise card",
        sections="\n".join([*sections, explorer]),
        foot=escape(card["foot"]),
    )


COLUMNS = ("about", "status", "quantity", "rows", "seen", "limit")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.4 system-ui, sans-serif; max-width: 46rem; margin: 1.5rem auto;
  padding: 0 1rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; margin: 0 0 .5rem; }}
h2 {{ font-size: .8rem; text-transform: uppercase; letter-spacing: .05em;
  margin: .9rem 0 .2rem; opacity: .75; }}
p, ul {{ margin: .2rem 0; }}
#promise p {{ font-size: 1.2rem; font-weight: 600; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; overflow-wrap: normal; }}
section {{ break-inside: avoid; }}
th, td {{ text-align: left; padding: .15rem .5rem .15rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }}
code {{ font-size: .9em; }}
footer {{ margin-top: 1rem; opacity: .75; font-size: .85rem; }}
@page {{ size: A4; margin: 12mm; }}
@media print {{ body {{ font-size: 10.5px; margin: 0; max-width: none; }}
  :root {{ color-scheme: light; }} h1 {{ font-size: 15px; margin: 0; }}
  .scroll {{ overflow: visible; }} table {{ font-size: 9.5px; }} li {{ margin: 0; }}
  h2 {{ margin: .45rem 0 .1rem; }} #promise p {{ font-size: 13px; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{sections}
<footer>{foot}</footer>
</body>
</html>
"""


def _cells(line: Mapping[str, Any]) -> list[str]:
    cells = {name: "" if line[name] is None else str(line[name]) for name in COLUMNS}
    if line["seen"] is not None:
        cells["seen"] = f"{line['seen']:.4g}"
    return [cells[name] for name in COLUMNS]


def _number(name: str, number: float) -> str:
    """A number behind a promise, of which a date is shown as one."""
    if name == "first date":
        return f"{name} {time_in_words(number, dated=True)}"
    # A number without end is written as text.
    return f"{name} {float(number):g}"


def _entries(name: str, value: Any) -> list[str]:
    """What a field says, line by line; a mapping as name: value."""
    if isinstance(value, str):
        return [value] if value else []
    if name == "evidence":
        known = {k: v for k, v in value.items() if not isinstance(v, list)}
        behind = [
            ", ".join(_number(key, number) for key, number in item["evidence"].items())
            for item in [*value["promises"], *value["certificate"]]
        ]
        return [*(f"{k}: {v}" for k, v in known.items()), *dict.fromkeys(behind)]
    if isinstance(value, Mapping):
        return [f"{key}: {entry}" for key, entry in value.items()]
    return [str(entry) for entry in value]


def _markdown_lines(name: str, value: Any) -> list[str]:
    if name == "table":
        rows = [_cells(line) for line in value]
        head = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
        bars = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        return [*head, *("| " + " | ".join(row) + " |" for row in bars)]
    if name == "recheck":
        return [f"    {entry}" for entry in _entries(name, value)]
    entries = _entries(name, value)
    is_list = isinstance(value, list | Mapping) and name != "promise"
    return [f"- {entry}" if is_list else f"{entry}\n" for entry in entries]


def _html_of(name: str, value: Any) -> str:
    if name == "table":
        head = "".join(f"<th>{column}</th>" for column in COLUMNS)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(line))
            + "</tr>"
            for line in value
        )
        return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
    entries = [escape(entry) for entry in _entries(name, value)]
    if name == "recheck":
        return "".join(f"<p><code>{entry}</code></p>" for entry in entries)
    if isinstance(value, list | Mapping) and name != "promise":
        return "<ul>" + "".join(f"<li>{entry}</li>" for entry in entries) + "</ul>"
    return "".join(f"<p>{entry}</p>" for entry in entries)
