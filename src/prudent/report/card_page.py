"""The promise card in words: one page, as HTML or Markdown.

Every line is a sentence for whoever has to rely on the promise, or has to manage those
who do; the figures behind them stand in the card as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from prudent.core.checks import LEVEL
from prudent.core.guarantee import Guarantee, Verdict
from prudent.core.validation import quoted
from prudent.io.errors import counted, cut, percent, thousands, unbroken
from prudent.report.card import HEADINGS, about_whom, in_hundred, rounded_up
from prudent.report.page import rendered

#: Names of columns, or labels, that are printed; the others are counted.
MOST_NAMES = 12
#: What is counted in a line of the table.
COUNTED = {
    "error rate": "wrong answers",
    "class error rate": "wrong answers",
    "selective error rate": "wrong when answered",
    "coverage": "true label among those named",
    "false alarm rate": "false alarms",
    "miss rate": "missed anomalies",
    "answered share": "answered",
    "flagged share": "flagged",
    "precision": "rightly flagged",
    "probability": "rows of this class",
    "expected cost": "cost of a row",
    "false discovery rate": "ordinary among those named",
    "": "",
}
TABLE_HEAD = ("whom", "status", "what is counted", "seen", "limit")
#: What is left to people, by the reason.
LEFT = {
    "no answer": "The rows that it does not answer are",
    "several labels": "The rows where it names several labels, or none, are",
    "alarm": "What follows an alarm is",
    "": "The rows that get no answer, if there are any, are",
}
#: How the card names what its owner says; who decides the rest has its own heading.
OWNER_SAYS = {"purpose": "Purpose", "oversight": "Oversight", "contact": "Contact"}
#: What the card says of each file, version and seed that it knows.
FILES = {
    "file": "The file is {}.",
    "file sha256": "Its fingerprint (SHA-256) is {}.",
    "table sha256": "The table that it was made from has the fingerprint {}.",
    "table rows": "That table has {} rows.",
    "table seed": "Rows of it were drawn by the seed {}.",
    "seed": "What is random in it was drawn by the seed {}.",
    "prudent": "It was made by prudent {}.",
    "new rows": "The new rows are those of {}.",
    "new rows sha256": "Their fingerprint is {}.",
    "new rows counted": "There are {} of them.",
}


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    parts = [f"# {_title(card)}", ""]
    for name, heading in _headings(card).items():
        parts += [f"## {heading}", "", *_markdown_lines(name, card), ""]
    return "\n".join([*parts, f"*{card['foot']}*", ""])


def as_html(
    card: Mapping[str, Any],
    explorer: str = "",
    checked: Sequence[tuple[Guarantee, Verdict]] = (),
) -> str:
    """The card as a page of its own, which takes as few sheets as its content needs.

    An `explorer` of thresholds may stand behind it, on a sheet of its own, and beneath
    the promise what new rows say of it: the verdicts of promises that were `checked`.
    """
    return rendered(
        "card.html",
        title=_title(card),
        sections=[
            (name, heading, [] if name == "table" else lines(name, card))
            for name, heading in _headings(card).items()
        ],
        blanks=_blanks(card["recheck"]) if card["recheck"] else "",
        heads=TABLE_HEAD,
        rows=_table(card),
        new_rows=_said_by_new_rows(checked) if checked else None,
        level=percent(LEVEL, None),
        explorer=Markup(explorer),
        foot=card["foot"],
    )


def lines(name: str, card: Mapping[str, Any]) -> list[str]:
    """The sentences under a heading of a card."""
    sentences = SENTENCES[name](card)
    return [unbroken(sentence) for sentence in sentences]


def _headings(card: Mapping[str, Any]) -> Mapping[str, str]:
    return card.get("headings", HEADINGS)


def _title(card: Mapping[str, Any]) -> str:
    file = card["evidence"].get("file")
    return f"Promise card of {file}" if file else "Promise card"


def _promise(card: Mapping[str, Any]) -> list[str]:
    watched = card["watched"]
    is_broken = not isinstance(watched, str) and watched["last verdict"] == "broken"
    warning = "BROKEN: new rows contradict what follows. Do not rely on it."
    return [*([warning] if is_broken else []), *card["promise"]]


def _said_by_new_rows(
    checked: Sequence[tuple[Guarantee, Verdict]],
) -> tuple[Verdict, str]:
    """The worst verdict on what is promised, and what it says."""
    verdicts = [verdict for _, verdict in checked]
    many = len(verdicts) > 1
    promises = f"the {thousands(len(verdicts))} promises" if many else "the promise"
    if "broken" in verdicts:
        broken = [about_whom(g) for g, verdict in checked if verdict == "broken"]
        whose = f" about {_few(broken)}" if many else ""
        return "broken", f"Broken: the new rows refute the promise{whose}."
    if set(verdicts) == {"kept"}:
        return "kept", f"Kept: the new rows prove {promises}."
    if "kept" in verdicts:
        n_kept = thousands(verdicts.count("kept"))
        neither = f"prove {n_kept} of {promises}, and refute none"
    else:
        neither = f"neither prove nor refute {promises}"
    return "consistent", f"Not contradicted: the new rows {neither}."


def _for_whom(card: Mapping[str, Any]) -> list[str]:
    known = dict(card["for_whom"])
    sentences = ["A row is one case: a line of the table."]
    says = {
        "labels": "An answer is one of: {}.",
        "columns": "A row has the columns {}.",
        "table": "The table is {}.",
        "rows that proved it": "The rows that proved it: {}.",
        "period": "The period is {}.",
    }
    for name, text in known.items():
        if text:
            few = text
            if name == "labels":
                few = _few([quoted(label) for label in text.split(", ")])
            elif name == "columns":
                few = _few(text.split(", "))
            sentences.append(says[name].format(few))
    return sentences


def _few(names: Sequence[str]) -> str:
    """The first names, and how many there are more."""
    more = len(names) - MOST_NAMES
    listed = ", ".join(cut(name) for name in names[:MOST_NAMES])
    return listed + (f" and {thousands(more)} more" if more > 0 else "")


def _handed_over(card: Mapping[str, Any]) -> list[str]:
    """Who decides what is left open, how much that is, and who never gets an answer."""
    left = card["handed_over"]
    what, who = LEFT[left["reason"]], card["owner"]["decides"]
    sentences = [f"{what} decided by {who.rstrip('.')}."]
    if not who:
        sentences = [
            f"{what} for a person to decide, and nobody is named here. To name who "
            'does, write decides = "..." into the file that prudent card --owner reads.'
        ]
    if left["never_answered"]:
        whose = counted(len(left["never_answered"]), "subgroup")
        sentences.append(
            f"The rows of {whose} are never answered, for nothing could be proved "
            "about them: the table below says of whom, and why."
        )
    elif left["by_subgroup"]:
        sentences.append(
            "The rows of a combination of subgroups, if there were too few to prove "
            "anything about, are never answered."
        )
    if left["promised"] is not None:
        most = in_hundred(1 - left["promised"], "<=")
        sentences.append(f"That at most {most} in 100 rows are left open is promised.")
    if left["reason"] == "no answer":
        sentences.append(_how_many(left))
    return sentences


def _how_many(left: Mapping[str, Any]) -> str:
    """How many rows were not answered, and what that says of new ones."""
    if left["rows"] is None:
        return (
            "How many rows that will be was not counted here: prudent certify counts "
            "it on new rows."
        )
    unit = "rows" if left["unit"] == "row" else "groups, one row of each,"
    share = _percentage(left["left"], left["rows"])
    open_rows = f"{thousands(left['left'])} of {thousands(left['rows'])}"
    if left["limits"] is None:
        sentence = (
            f"Of the {unit} that set its threshold it left {open_rows} open ({share})."
        )
        if left["promised"] is None:
            sentence += (
                " Of new ones it may be more: prudent certify counts it, with limits."
            )
        return sentence
    low, high = (100 * limit for limit in left["limits"])
    return (
        f"Of the new {unit} it left {open_rows} open ({share}); among all rows like "
        f"these it is between {low:.1f} % and {high:.1f} %, with confidence 95 %."
    )


def _evidence(card: Mapping[str, Any]) -> list[str]:
    """What was counted, which files, and where a statistician finds the rest."""
    evidence = card["evidence"]
    items = [*evidence["promises"], *evidence["certificate"]]
    sentences = [
        *_proved_by(evidence["promises"]),
        *_checked_with(evidence["certificate"]),
        *(
            sentence.format(evidence[name])
            for name, sentence in FILES.items()
            if evidence.get(name, "") != ""
        ),
    ]
    sources = "; ".join(
        dict.fromkeys(item["source"] for item in items if item["source"])
    )
    if sources:
        sentences.append(
            f"Why this is a proof, for a statistician: {sources}. Every figure behind "
            "it stands in the card written as JSON."
        )
    return sentences


def _proved_by(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many rows the promises rest on, and that the fit did not see them."""
    n_held_out, unit = _rows_of(items, "calibration rows")
    if n_held_out:
        return [
            f"What is promised was proved by {thousands(n_held_out)} {unit} that the "
            "model was not fitted to."
        ]
    n_trained, unit = _rows_of(items, "training rows")
    if n_trained:
        return [
            f"What is promised was proved by the {thousands(n_trained)} {unit} of the "
            "fit itself."
        ]
    return []


def _checked_with(items: Sequence[Mapping[str, Any]]) -> list[str]:
    n_rows, unit = _rows_of(items, "calibration rows")
    if not n_rows:
        return []
    return [
        f"It was checked with {thousands(n_rows)} new {unit}, taken to be unseen by "
        "the model."
    ]


def _rows_of(items: Sequence[Mapping[str, Any]], name: str) -> tuple[int, str]:
    """Rows, or groups, behind promises about all rows, or about each class."""
    by_class: dict[Any, int] = {}
    for item in items:
        if item["subgroup"] is None and name in item["evidence"]:
            n_rows = int(item["evidence"][name])
            by_class[item["scope"]] = max(n_rows, by_class.get(item["scope"], 0))
    unit = "groups" if any(item["unit"] == "group" for item in items) else "rows"
    return by_class.get(None, sum(by_class.values())), unit


def _watched(card: Mapping[str, Any]) -> list[str]:
    """What new rows have said so far."""
    watched = card["watched"]
    if isinstance(watched, str):
        return ["Nobody watches it: prudent monitor does, once it is given new rows."]
    is_broken = watched["last verdict"] == "broken"
    so_far = "contradict" if is_broken else "do not contradict"
    day = f", the last on {watched['date'][:10]}" if watched["date"] else ""
    n_rows, level = thousands(watched["rows counted"]), 100 * watched["level"]
    return [
        f"prudent monitor has counted {n_rows} new rows{day}: they {so_far} what is "
        "promised.",
        "If what is promised is true, the chance that it ever says otherwise is at "
        f"most {level:.4g} %.",
    ]


def _owner(card: Mapping[str, Any]) -> list[str]:
    """What the owner says; who decides the rest stands under its own heading."""
    owner = card["owner"]
    sentences = [
        f"{says}: {owner[name].rstrip('.')}."
        for name, says in OWNER_SAYS.items()
        if owner[name]
    ]
    missing = ", ".join(name for name in OWNER_SAYS if not owner[name])
    return [*sentences, *([f"Not stated: {missing}."] if missing else [])]


def _table(card: Mapping[str, Any]) -> list[list[str]]:
    """The lines of the table in words."""
    never = card["handed_over"]["never_answered"]
    return [_cells(line, line["about"] in never) for line in card["table"]]


def _cells(line: Mapping[str, Any], is_never_answered: bool) -> list[str]:
    """A line of the table in words."""
    seen = limit = ""
    status = line["status"]
    if line["limit"] is None and line["quantity"]:
        whether = "never answered" if is_never_answered else "not promised"
        status = f"{whether}: {status}"
    if line["counted"] is not None and line["rows"]:
        share = _percentage(line["counted"], line["rows"])
        seen = f"{thousands(line['counted'])} of {thousands(line['rows'])} ({share})"
    elif line["rows"] is not None:
        seen = f"{thousands(line['rows'])} rows"
    if line["limit"] is not None:
        side = "at most" if line["sense"] == "<=" else "at least"
        is_cost = line["quantity"] == "expected cost"
        of_hundred = f"{in_hundred(line['limit'], line['sense'])} %"
        limit = f"{side} {rounded_up(line['limit']) if is_cost else of_hundred}"
    cells = (line["about"], status, COUNTED[line["quantity"]], seen, limit)
    return [unbroken(cell) for cell in cells]


def _percentage(count: float, rows: float) -> str:
    """A share as seen: with one digit behind the point, or two where it is small."""
    share = 100 * count / rows
    return f"{share:.2g} %" if share < 1 else f"{share:.1f} %"


def _blanks(command: str) -> str:
    """What to put for the words in capitals of the command that checks again."""
    stand_for = {
        "NEW_ROWS": "a file of rows that the model has not seen",
        "--predicted": "its columns of answers and of true labels",
        "--truth": "its column of true labels",
        "--normal": "LABEL the one of ordinary rows",
        "--groups": "the last COLUMN says which rows belong together",
    }
    meanings = [text for word, text in stand_for.items() if word in command]
    if "--predicted" in command:
        meanings.remove(stand_for["--truth"])
    return f"NEW_ROWS is {meanings[0]}, COLUMN {', '.join(meanings[1:])}."


#: What stands under each heading but the table.
SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "promise": _promise,
    "confidence": lambda card: [card["confidence"]],
    "for_whom": _for_whom,
    "assumption": lambda card: list(card["assumption"]),
    "not_promised": lambda card: [card["not_promised"]],
    "handed_over": _handed_over,
    "evidence": _evidence,
    "void_if": lambda card: list(card["void_if"]),
    "watched": _watched,
    "recheck": lambda card: [card["recheck"]] if card["recheck"] else [],
    "owner": _owner,
}


def _markdown_lines(name: str, card: Mapping[str, Any]) -> list[str]:
    if name == "table":
        head = ["| " + " | ".join(TABLE_HEAD) + " |", "|" + " --- |" * len(TABLE_HEAD)]
        rows = _table(card)
        bars = ([cell.replace("|", "\\|") for cell in row] for row in rows)
        return [*head, *("| " + " | ".join(row) + " |" for row in bars)]
    sentences = lines(name, card)
    if name == "recheck":
        return [f"    {command}\n\n{_blanks(command)}\n" for command in sentences]
    if len(sentences) > 1 and name != "promise":
        return [f"- {sentence}" for sentence in sentences]
    return [f"{sentence}\n" for sentence in sentences]
