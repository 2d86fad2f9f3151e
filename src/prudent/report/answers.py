"""What a page says first: the answer, what it rests on, and what is not promised."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyarrow.csv import write_csv

from prudent.auditing.result import Audit
from prudent.core.checks import PromiseCheck
from prudent.core.guarantee import Guarantee
from prudent.evaluation import words
from prudent.evaluation.columns import figures
from prudent.evaluation.detection import Detection
from prudent.evaluation.records import Findings, MethodRow
from prudent.io.errors import counted, cut, percent, thousands
from prudent.report.card import with_share
from prudent.report.page import TONES, Answer

#: Verdicts as large letters say them.
VERDICT_NAMES = {"kept": "Kept", "consistent": "Not contradicted", "broken": "Broken"}
VERDICTS = {
    "no violation found": ("No violation found", "plain"),
    "broken": ("Broken", "bad"),
    "nothing to test": ("Nothing to test", "plain"),
}
SAME_SOURCE = (
    "New rows come from the same source, in the same way, as the rows of this table."
)
IN_ORDER = (
    "Each row is counted once, in the order in which the labels came, and whether a "
    "label comes does not depend on the answer being right."
)
ORDINARY = (
    "New ordinary rows come from the same source, in the same way, as the ordinary "
    "rows of this table."
)


def of_comparison(findings: Findings) -> Answer:
    """The method to use under the promise, or the nearest promise that can be had."""
    asked = [item.guarantee for _, item in asked_items(findings)]
    not_promised = "Nothing about a single row, nor about rows from another source."
    if any(g.average_over is not None for g in asked):
        not_promised += (
            " The promise is on average over training samples: a model fitted once may "
            "do worse."
        )
    if any(g.confidence is not None for g in asked):
        wrong = percent(1 - findings.settings.confidence, None)
        choice = words.row_that_chooses(findings)
        if choice is None:
            not_promised += (
                f" With probability at most {wrong} any of these promises is false."
            )
        else:
            not_promised += (
                f" With probability at most {wrong} the promise of {choice.method} is "
                f"false, with at most {wrong} any of the others."
            )
    verdict, tone, sentences = _verdict(findings)
    return Answer(
        verdict=verdict,
        tone=tone,
        sentences=sentences,
        assumption=SAME_SOURCE,
        not_promised=not_promised,
        command=findings.settings.next_command,
        figures=_as_csv(findings),
    )


def asked_items(findings: Findings) -> Iterator[tuple[MethodRow, PromiseCheck]]:
    """Every promise that was asked for, with the row of the method that makes it."""
    for row in findings.ran:
        for item in () if row.asked is None else row.asked.items:
            yield row, item


def _verdict(findings: Findings) -> tuple[str, str, list[str]]:
    """The word, its tone, and the sentences behind it."""
    first, *_ = words.verdict(findings)
    if not findings.ran:
        return "No result", "bad", [first]
    if findings.settings.promise == "none":
        return "No promise asked for", "plain", [first]
    asked = words.asked_for(findings)
    used = words.recommended(findings)
    if used is None or used.asked is None:
        everyone = [row.asked.kept for row in findings.ran if row.asked is not None]
        verdict = "Not reached"
        if everyone and all(kept == "broken" for kept in everyone):
            verdict = "Broken"
        elif words.NO_BETTER in everyone:
            verdict = words.NO_BETTER.capitalize()
        return verdict, "bad", [first, f"Asked: {asked}.", *words.advice(findings)[:1]]
    kept = used.asked.kept
    return VERDICT_NAMES[kept], TONES.get(kept, "plain"), [first, f"Promised: {asked}."]


def of_detection(
    detection: Detection,
    columns: Sequence[str],
    line: Sequence[str],
    asked: float,
    advice: Sequence[str],
    command: str | None,
) -> Answer:
    """How the promised rate of false alarms fared, beside the one asked for."""
    kept, sentences = None, []
    for checked in detection.promises[:1]:
        kept, limit = checked.check.verdict, percent(checked.guarantee.bound, None)
        if checked.guarantee.bound < asked:
            limit += (
                f", not the {percent(asked, None)} asked for: a cut at a rank promises "
                "k of m + 1 rows"
            )
        measured = percent(checked.check.measured, 1)
        sentences.append(
            f"Of the normal rows, {measured} raise a false alarm (limit {limit})."
        )
    if detection.detected is not None:
        others = thousands(int((~detection.normal).sum()))
        share, low, high = (
            percent(rate, 1) for rate in (detection.detected, *detection.detected_range)
        )
        sentences.append(
            f"Of the {others} other rows, it detects {share} (with the detectors of "
            f"the folds, {low} to {high})."
        )
    return Answer(
        verdict="No promise" if kept is None else VERDICT_NAMES[kept],
        tone=TONES.get(str(kept), "plain"),
        sentences=[*(sentences or [f"It flags {line[-1]} of the rows."]), *advice],
        assumption=ORDINARY,
        not_promised="How many of the other rows are detected, and anything about a "
        "single row.",
        command=command,
        figures=csv_of(columns, [line]),
    )


def of_monitor(
    data: Mapping[str, Any],
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    worth: Sequence[str],
) -> Answer:
    """Whether a promise is broken, or drift was seen, since which row.

    `worth` says how often the verdicts are wrong.
    """
    watched = [promise for promise in data["promises"] if promise["verdict"]]
    verdicts = {promise["verdict"] for promise in watched}
    drift = data["drift"]
    verdict = "Not contradicted" if watched else "Nothing is watched"
    tone = "plain"
    if "broken" in verdicts:
        row = min(p["alarm_row"] for p in watched if p["verdict"] == "broken")
        verdict, tone = f"Broken since row {thousands(row)}", "bad"
    elif drift is not None and drift["verdict"] == "drift":
        verdict, tone = f"Drift since row {thousands(drift['alarm_row'])}", "bad"
    elif verdicts == {"kept"}:
        verdict, tone = "Kept", "good"
    elif not watched and drift is not None:
        verdict = "No drift seen"
    sentences = [_of_promise(promise) for promise in watched if promise.get("n")]
    if len(sentences) > 1:
        sentences = ["; ".join(s.rstrip(".") for s in sentences) + "."]
    if drift is not None and "broken" in verdicts and drift["verdict"] == "drift":
        sentences.append(f"Drift since row {thousands(drift['alarm_row'])}.")
    return Answer(
        verdict=verdict,
        tone=tone,
        sentences=sentences or ["No labelled row was counted."],
        assumption=IN_ORDER,
        not_promised=" ".join(_not_promised(data, worth)),
        figures=csv_of(columns, lines),
    )


def _not_promised(data: Mapping[str, Any], worth: Sequence[str]) -> Iterator[str]:
    """What a monitor does not say, and how often it may cry wolf."""
    level = f"with probability at most {percent(data['level'], None)}"
    if worth:
        yield "A promise that is not contradicted is not proved."
    yield "Nothing is said of a single row."
    yield from worth
    if data["drift"] is not None:
        several = len(data["drift"]["columns"]) > 1
        proved = "and the columns are independent of each other, " if several else ""
        yield f"If nothing drifts, {proved}it ever says drift {level}."


def _of_promise(promise: Mapping[str, Any]) -> str:
    """One promise: measured, limit, verdict."""
    about = Guarantee(
        quantity=promise["quantity"],
        bound=promise["bound"],
        sense=promise["sense"],
        scope=None if promise["scope"] is None else cut(promise["scope"]),
        subgroup=promise["subgroup"],
    )
    measured = with_share(about, percent(promise["measured"], 1))
    limit = percent(promise["bound"], None)
    verdict = VERDICT_NAMES[promise["verdict"]].lower()
    return f"{measured} (limit {limit}): {verdict}."


def of_game(
    sentences: Sequence[str], columns: Sequence[str], lines: Sequence[Sequence[str]]
) -> Answer:
    """That the game is solved: the first of the sentences says which."""
    return Answer(
        verdict="Solved",
        tone="plain",
        sentences=sentences[:1],
        assumption="The law of the events is the one given, and the intruder is as "
        "strong as the game allows.",
        not_promised="Anything against a stronger intruder, or under another law.",
        figures=csv_of(columns, lines),
    )


def of_audit(
    audit: Audit,
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    command: str | None,
) -> Answer:
    """Whether a promise was refuted under any law, and on what that rests."""
    verdict, tone = VERDICTS[audit.verdict]
    refuted = sum(row.is_refuted for row in audit.rows)
    laws = ", ".join(dict.fromkeys(row.law for row in audit.rows))
    tried = f" Laws: {laws}." if laws else ""
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
        sentences = [f"{audit.why_nothing[:1].upper()}{audit.why_nothing[1:]}."]
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
        f"most {audit.level:g}.{tried}",
        not_promised="That the promise is true. A method that passes was not caught, "
        "under these laws and at these numbers of rows.",
        command=command,
        figures=csv_of(columns, lines),
    )


def _as_csv(findings: Findings) -> str:
    sink = io.BytesIO()
    write_csv(figures(findings), sink)
    return sink.getvalue().decode()


def csv_of(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of text as CSV."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return sink.getvalue()
