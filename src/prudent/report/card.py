"""The promise card: what it holds, for a manager, a colleague or an auditor.

A card is made of what is known: promises, certificates, what a monitor has counted, and
what its owner wrote. Nothing is invented: what is not known is blank. The same input
gives the same bytes. `report.card_page` says it in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from prudent.core.assumptions import LATEST, Assumption
from prudent.core.binomial import clopper_pearson, fewest_rows
from prudent.core.guarantee import (
    ALARMS,
    COUNTED_AS,
    FEWEST_TOGETHER,
    NOT_A_RATE,
    OF_FLAGGED,
    Guarantee,
)
from prudent.core.validation import quoted
from prudent.io.errors import listed, shown

SCHEMA = "prudent.card/1"
#: What an owner may say: what the model is for, who decides what it leaves open, who
#: watches over it, and whom to ask.
OWNER = ("purpose", "decides", "oversight", "contact")
FOOT = "No statement of conformity."
#: Lines of the table about those that nothing is promised of.
MOST_LINES = 12
#: What a line of the table holds.
COLUMNS = ("about", "quantity", "counted", "rows", "seen", "sense", "limit", "status")
#: Headings, in the order of the card.
HEADINGS = {
    "promise": "What is promised",
    "confidence": "How sure that is",
    "for_whom": "For whom",
    "assumption": "What it rests on",
    "not_promised": "What is not promised",
    "handed_over": "Who decides the rest",
    "evidence": "Evidence",
    "table": "By class and subgroup",
    "void_if": "Void if",
    "watched": "Watched",
    "recheck": "To check it again",
    "owner": "Owner",
}
#: What regulators ask for, and the fields of the card that say it.
REGULATORS = {
    "eu": {
        "accuracy levels (Art. 15)": ("promise", "confidence", "table"),
        "testing": ("evidence",),
        "limits, persons and groups (Annex IV)": (
            *("for_whom", "assumption", "not_promised", "table", "void_if"),
        ),
        "monitoring": ("watched", "recheck"),
    },
    "fda": {
        "acceptance criteria": ("promise",),
        "sample size": ("evidence",),
        "subgroups": ("table",),
        "monitoring, changes": ("void_if", "watched", "recheck"),
    },
}
SAME_SOURCE = (
    "New rows come from the same source in the same way as the rows that proved this, "
    "which were used for nothing else."
)
#: All rows of the fit rank new ones: full and cross-conformal prediction.
SAME_SOURCE_OF_FIT = (
    "New rows come from the same source in the same way as the rows that it was fitted "
    "to, which proved this, too."
)
NOT_PROMISED = (
    "Nothing about a single row, and nothing beyond the lines of the table that are "
    "marked as promised or proved."
)
SAME_SOURCE_OF_GROUPS = (
    "New groups of rows (such as patients) come from the same source in the same way "
    "as the groups that proved this, which were used for nothing else; a row is one "
    "drawn at random from its group."
)
VOID_IF = (
    "rows come from another source, or are collected in another way",
    "labels are given in another way",
    "columns are prepared in another way",
    "the model or a threshold is changed",
    "rows to be decided, or to prove this, were chosen by looking at them",
)
#: Assumptions of promises that were proved by the rows of the fit themselves.
OF_FIT = frozenset(a for a in Assumption if a.name.startswith("TRAINING_EXCHANGEABLE"))
#: Assumptions that the everyday sentence says; not which rows are the latest ones.
EVERYDAY = OF_FIT | frozenset(
    assumption
    for assumption in Assumption
    if assumption.name.startswith("EXCHANGEABLE")
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
    "expected cost": ("On average a row{subgroup}", "costs"),
    "false discovery rate": ("Of the rows named as unusual", "are ordinary"),
}
#: Quantities of which a sentence names the class as a part of all rows.
BY_CLASS = frozenset({"error rate", "class error rate", "coverage"})
#: What a model leaves to people, by what is promised: the first that is promised of.
LEFT_OPEN = {
    "no answer": ("selective error rate", "answered share"),
    "several labels": ("coverage",),
    "alarm": (*ALARMS, "flagged share", "precision", "false discovery rate"),
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
    headings: str | None = None,
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
        "rows", "wrong" among them, and how many rows a promise "needs", or that it is
        "unproved" with rows enough. Those that no promise is about have a line that
        says so.
    headings : str, default=None
        Name of one of the `REGULATORS`, whose words the headings then name, too.

    Returns
    -------
    dict
        The fields of `HEADINGS`, of schema `prudent.card/1`; with `headings` these
        stand there, too, by field.
    """
    main = tuple(promises) or tuple(certificate)
    others = [g for g in certificate if g not in main]
    return {
        "schema": SCHEMA,
        **({} if headings is None else {"headings": headings_for(headings)}),
        "promise": _in_few_sentences(main),
        "confidence": _how_sure(main),
        "for_whom": dict((facts or {}).get("for_whom", {})),
        "assumption": _rests_on([*main, *others]),
        "not_promised": NOT_PROMISED,
        "handed_over": _handed_over(main, certificate, seen),
        "evidence": {
            **(facts or {}).get("evidence", {}),
            "promises": [_numbers(g) for g in main],
            "certificate": [_numbers(g) for g in others],
        },
        "table": [*_lines(main, others), *_not_promised([*main, *others], seen)],
        "void_if": [*VOID_IF, *_shift_tolerance(main)],
        "watched": dict(watched) if watched else "not watched",
        "recheck": recheck,
        "owner": {name: str((owner or {}).get(name, "")) for name in OWNER},
        "foot": FOOT,
    }


def headings_for(regulator: str) -> dict[str, str]:
    """Headings by field, with what a regulator calls that which stands there.

    Examples
    --------
    >>> headings_for("fda")["evidence"]
    'Evidence: sample size'
    """
    asked = REGULATORS[regulator].items()
    named = {
        field: "; ".join(name for name, fields in asked if field in fields)
        for field in HEADINGS
    }
    return {
        field: f"{heading}: {named[field]}" if named[field] else heading
        for field, heading in HEADINGS.items()
    }


def _in_few_sentences(promises: Sequence[Guarantee]) -> list[str]:
    """A sentence for each promise, and one for those that differ only by class."""
    together: dict[Guarantee, list[Guarantee]] = {}
    for promise in promises:
        alike = replace(promise, scope=None, evidence={})
        together.setdefault(alike, []).append(promise)
    sentences: list[str] = []
    for members in together.values():
        many = len(members) >= FEWEST_TOGETHER and members[0].scope is not None
        by_class = many and members[0].quantity in BY_CLASS
        groups = [
            group
            for group in together.values()
            if group[0].quantity == members[0].quantity and group[0].scope is not None
        ]
        every = f"each of the {len(members)} classes"
        if len(groups) > 1:  # other classes have other limits
            every += f" {listed([shown(member.scope) for member in members])}"
        sentences += (
            [in_everyday_words(members[0], every)]
            if by_class
            else map(in_everyday_words, members)
        )
    return sentences


def in_everyday_words(promise: Guarantee, named: str = "") -> str:
    """One promise as one says it: at most 5 in 100; `named` are the classes it is of.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> in_everyday_words(
    ...     Guarantee(quantity="selective error rate", bound=0.05, sense="<=")
    ... )
    'Of the rows it answers, at most 5 in 100 are wrong.'
    """
    side = "at most" if promise.sense == "<=" else "at least"
    if promise.quantity == "expected cost":
        limit = f"{side} {rounded_up(promise.bound)}"
    else:
        limit = f"{side} {in_hundred(promise.bound, promise.sense)} in 100"
    return f"{with_share(promise, limit, named)}."


def with_share(promise: Guarantee, share: str, named: str = "") -> str:
    """What a promise is about, with a share of it in words: a limit, or as measured."""
    about, does = _about_and_does(promise, named)
    if promise.quantity == "expected cost":
        return f"{about} {does} {share}"
    return f"{about}, {share} {does}"


def _about_and_does(promise: Guarantee, named: str = "") -> tuple[str, str]:
    """The rows that a promise is about, and what few or many of them do, in words."""
    whose, what = IN_WORDS[promise.quantity]
    label = "" if promise.scope is None else quoted(promise.scope)
    named = named or (f"class {label}" if label else "")
    subgroup = "" if promise.subgroup is None else f" with {promise.subgroup}"
    part = (f" of {named}" if named else "") + subgroup
    words = {
        "part": part,
        "subgroup": subgroup,
        "that": " that" if part else "",
        "class": label,
        "as": f" as {label}" if label else "",
    }
    return whose.format(**words), what.format(**words)


def class_named(label: Any) -> str:
    """A class as the terminal names it: class '1'; in full: it says who is meant."""
    return f"class {quoted(label)}"


def in_hundred(rate: float, sense: str) -> str:
    """A limit in so many of 100, rounded so that it stays true.

    Three digits of the side that is to be rare.

    Examples
    --------
    >>> in_hundred(0.0123449, "<="), in_hundred(0.9123478, ">=")
    ('1.24', '91.23')
    >>> in_hundred(0.99961, ">=")
    '99.961'
    """
    exact = Decimal(f"{rate:.13g}")
    rare = exact if sense == "<=" else 1 - exact
    limit = Context(prec=3, rounding=ROUND_CEILING).plus(100 * rare)
    return _plainly(limit if sense == "<=" else 100 - limit)


def rounded_up(cost: float) -> str:
    """A cost in four digits, rounded so that its limit stays true."""
    context = Context(prec=4, rounding=ROUND_CEILING)
    return _plainly(context.plus(Decimal(f"{cost:.13g}")))


def _plainly(number: Decimal) -> str:
    """A number without an exponent, and without noughts at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _how_sure(promises: Sequence[Guarantee]) -> str:
    confidences = {g.confidence for g in promises}
    sentences = []
    for confidence in sorted(c for c in confidences if c is not None):
        failing = f"{100 * (1 - confidence):.4g}"
        sentences.append(
            f"Such proofs fail in at most {failing} of 100 cases, on average."
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
            sentence = text[:1].upper() + text[1:] + "."
            if isinstance(assumption, Assumption) and assumption in EVERYDAY:
                sentence = _same_source(promise)
            sentences[sentence] = None
    return list(sentences)


def _same_source(promise: Guarantee) -> str:
    """Where new rows have to come from, by the rows that proved a promise."""
    if promise.unit == "group":
        return SAME_SOURCE_OF_GROUPS
    of_fit = OF_FIT.intersection(promise.assumptions)
    return SAME_SOURCE_OF_FIT if of_fit else SAME_SOURCE


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


def _lines(
    promises: Sequence[Guarantee], certificate: Sequence[Guarantee]
) -> list[dict[str, Any]]:
    """A line for each promise, what new rows have proved of the same right below it."""
    proved = [_line(g, "proved by new rows") for g in certificate]
    lines: list[dict[str, Any]] = []
    for promise in promises:
        line = _line(promise, "promised")
        whom = (line["about"], line["quantity"])
        lines += [line, *(p for p in proved if (p["about"], p["quantity"]) == whom)]
    return lines + [line for line in proved if line not in lines]


def _line(promise: Guarantee, status: str) -> dict[str, Any]:
    """A line of the table: about whom, how many of how many rows, and the limit."""
    rows, counted = _counts(promise)
    return _table_line(
        about=about_whom(promise),
        quantity=promise.quantity,
        counted=counted,
        rows=rows,
        sense=promise.sense,
        limit=promise.bound,
        status=status,
    )


def _table_line(**known: Any) -> dict[str, Any]:
    """A line of the table; `seen` is the share of the rows that were counted."""
    line = dict.fromkeys(COLUMNS) | known
    if line["counted"] is not None and line["rows"]:
        line["seen"] = round(line["counted"] / line["rows"], 6)
    return line


def _counts(promise: Guarantee) -> tuple[int | None, int | None]:
    """Rows behind a promise, and those among them that its limit is about."""
    evidence = promise.evidence
    if promise.quantity in COUNTED_AS:
        rows = evidence.get("calibration rows")
        counted = evidence.get(COUNTED_AS[promise.quantity])
    else:
        rows = evidence.get("answered", evidence.get("calibration rows"))
        counted = evidence.get("wrong")
    if rows is None or counted is None:
        return None if rows is None else int(rows), None
    if promise.quantity == "coverage":
        return int(rows), int(rows - counted)  # those that are covered
    return int(rows), int(counted)


def about_whom(promise: Guarantee) -> str:
    """Whom a promise is about: a class, a subgroup, both, or all or ordinary rows."""
    by_class = promise.scope is not None and promise.quantity not in OF_FLAGGED
    about = [class_named(promise.scope)] if by_class else []
    about += [] if promise.subgroup is None else [promise.subgroup]
    everyone = "ordinary rows" if promise.quantity == "false alarm rate" else "all rows"
    return ", ".join(about) or everyone


def _not_promised(
    promises: Sequence[Guarantee], seen: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A line for each class and subgroup that no promise is about."""
    rates = [g for g in promises if g.quantity not in (*COUNTED_AS, *NOT_A_RATE)]
    known = {about_whom(g) for g in promises}
    if not rates:
        return []
    main = rates[0]
    allowed = main.bound if main.sense == "<=" else 1 - main.bound
    needs = fewest_rows(allowed, main.confidence) if 0 < allowed < 1 else None
    lines = []
    for item in seen:
        if item["about"] in known:
            continue
        rows, wrong = item.get("rows"), item.get("wrong")
        needed = item.get("needs", needs)
        enough = needed is None or (rows is not None and rows >= needed)
        status = "seen only" if enough else f"needs {needed} rows"
        if "unproved" in item:
            status = "no threshold proves the limit"
        counted = wrong
        if main.quantity == "coverage" and wrong is not None:
            counted = rows - wrong
        line = _table_line(
            about=item["about"],
            quantity=main.quantity,
            counted=counted,
            rows=rows,
            status=status,
        )
        lines.append(line)
    more = len(lines) - MOST_LINES
    if more <= 0:
        return lines
    rest = _table_line(about=f"{more} more", quantity="", status="not promised")
    return [*lines[:MOST_LINES], rest]


def _handed_over(
    promises: Sequence[Guarantee],
    certificate: Sequence[Guarantee],
    seen: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What is left to people, and how many rows that is, where it was counted.

    The limits, at 95 %, stand where new rows were counted: rows that have set a
    threshold prove nothing about their own share.
    """
    quantities = {g.quantity for g in promises}
    reason = next(
        (name for name, those in LEFT_OPEN.items() if quantities & {*those}), ""
    )
    field: dict[str, Any] = {
        "reason": reason,
        "left": None,
        "rows": None,
        "unit": "row",
        "limits": None,
        "promised": None,
        "by_subgroup": False,
        "never_answered": [
            item["about"] for item in seen if "needs" in item or "unproved" in item
        ],
    }
    if reason != "no answer":
        return field
    for promise in promises:
        about_all = promise.subgroup is None
        if promise.quantity == "answered share" and promise.sense == ">=" and about_all:
            field["promised"] = promise.bound
        field["by_subgroup"] |= not about_all
    for promise in (*certificate, *promises):
        rows = promise.evidence.get("calibration rows")
        answered = promise.evidence.get("answered")
        about_all = promise.scope is None and promise.subgroup is None
        if not about_all or rows is None or answered is None:
            continue
        left = int(rows - answered)
        counted = {"left": left, "rows": int(rows), "unit": promise.unit}
        if promise not in certificate:
            return field | counted
        interval = clopper_pearson(left, int(rows), level=0.05)
        return field | counted | {"limits": [float(limit) for limit in interval]}
    return field


def _shift_tolerance(promises: Sequence[Guarantee]) -> list[str]:
    """What becomes of a limit where some of its rows become twice as frequent."""
    for promise in promises:
        shifted = "shift radius" in promise.evidence
        if promise.quantity in NOT_A_RATE or shifted:
            continue
        worse = promise.under_shift("likelihood_ratio", 2).bound
        side = "at most" if promise.sense == "<=" else "at least"
        about = _about_and_does(promise)[0].removeprefix("Of ")
        return [
            "some kind of row becomes more frequent than it was: if twice as frequent "
            f"among {about}, {side} {in_hundred(promise.bound, promise.sense)} in 100 "
            f"becomes {side} {in_hundred(worse, promise.sense)} in 100"
        ]
    return []
