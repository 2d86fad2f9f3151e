"""`prudent card`: one page about a promise, for whoever has to rely on it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from prudent.cli import options
from prudent.cli.loading import fingerprint
from prudent.cli.monitor import read_state
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    content_of,
    ending,
)
from prudent.cli.rules import LoadedRule, load
from prudent.core.assumptions import first_in_words
from prudent.core.guarantee import (
    ALARMS,
    COUNTED_AS,
    NOT_A_RATE,
    Guarantee,
    Verdict,
)
from prudent.core.strict_json import parsed
from prudent.io.errors import thousands, typed
from prudent.io.replacing import write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prudent import ThresholdBands
    from prudent.cli.models import LoadedModel
    from prudent.rules.subgroups import Memberships

SUFFIXES = (".html", ".md", ".json")


def card(
    model: options.ModelOrRule,
    output: Annotated[
        Path,
        options.output("Card: .html, .md or .json."),
    ],
    certificate: Annotated[
        Path | None,
        options.value("FILE", "What prudent certify --json has written."),
    ] = None,
    state: Annotated[
        Path | None,
        options.value("FILE", "State of prudent monitor."),
    ] = None,
    owner: Annotated[
        Path | None,
        options.value(
            "FILE",
            "TOML with purpose, decides (who decides what the model leaves "
            "open), oversight and contact, as texts; without, the card says that these "
            "are not stated.",
        ),
    ] = None,
    headings: Annotated[
        Literal["eu", "fda"] | None,
        options.value(
            "eu|fda",
            "Name in the headings what the AI Act of the EU, or the FDA, asks for.",
        ),
    ] = None,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
) -> None:
    """Write one page that says what is promised, for whom, how sure, and what voids it.

    The same files give the same page, byte by byte; nothing that is not known is said.
    """
    if output.suffix not in SUFFIXES:
        raise UsageError(f"-o {output}: a card is {', '.join(SUFFIXES)}")
    loaded = load(model, trusted)
    promises = tuple(getattr(loaded.last, "guarantees_", ()))
    proved = () if certificate is None else _read_certificate(certificate)
    if not promises and not proved:
        raise CommandError(
            "card: no promise in this file; add --certificate", ExitCode.MODEL
        )
    from prudent.report.card import promise_card
    from prudent.report.card_page import as_html, as_markdown

    page = promise_card(
        promises,
        certificate=proved,
        facts=_facts(loaded),
        watched=None if state is None else _watched(state, model),
        recheck=_recheck(loaded, (*promises, *proved)),
        owner=None if owner is None else _read_owner(owner),
        seen=_known_parts(loaded.last),
        headings=headings,
    )
    if output.suffix == ".json":
        text = json.dumps(page, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    else:
        text = as_html(page) if output.suffix == ".html" else as_markdown(page)
    write_whole(output, text)
    for sentence in page["promise"]:
        print(sentence)
    print(page["confidence"])


def certificate_page(
    promises: Sequence[Guarantee],
    certificate: Sequence[Guarantee],
    seen: Sequence[dict[str, Any]],
    *,
    checked: Sequence[tuple[Guarantee, Verdict]],
    bands: ThresholdBands | None,
    threshold: float | None,
    data: str,
    n_rows: int,
    loaded: LoadedModel | LoadedRule | None,
) -> str:
    """What new rows have proved of a model, a rule or answers, as a card.

    `seen` are their classes and subgroups, `checked` the verdicts on what was promised;
    with `bands` an explorer of all thresholds stands behind the card, first at the
    `threshold` of the model if it has one.
    """
    from prudent.report.card import promise_card
    from prudent.report.card_page import as_html
    from prudent.report.explorer import explorer

    facts: dict[str, Any] = {"for_whom": {}, "evidence": {}}
    if loaded is not None:
        facts = _facts(loaded)
    facts["evidence"] |= {
        "new rows": Path(data).name,
        "new rows sha256": fingerprint(data) or "",
        "new rows counted": n_rows,
    }
    page = promise_card(
        promises,
        certificate=certificate,
        facts=facts,
        recheck=_recheck(loaded, (*promises, *certificate)),
        seen=seen,
    )
    part = ""
    if bands is not None:
        part = explorer(bands.to_dict(threshold), threshold, beside_card=True)
    return as_html(page, part, checked)


def _known_parts(model: Any) -> list[dict[str, Any]]:
    """Classes of a model, and subgroups that it never answers, not counted here."""
    from prudent.report.card import class_named

    classes = list(getattr(model, "classes_", ()))
    parts: list[dict[str, Any]] = [{"about": class_named(c)} for c in classes]
    rule: Any = getattr(model, "rule_", None)
    calibration: Any = getattr(rule, "calibration", None)
    rate = getattr(model, "error_rate", None)
    if rate is not None and hasattr(calibration, "too_small"):
        parts += [
            {"about": name, "rows": n, "needs": needed}
            for name, (n, needed) in calibration.too_small(rate).items()
        ]
    never = getattr(rule, "never_answered", ())
    return parts + [{"about": name, "unproved": True} for name in never]


def seen_parts(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    subgroups: Memberships | None,
    promises: Sequence[Guarantee],
    *,
    groups: NDArray[Any] | None = None,
) -> list[dict[str, Any]]:
    """What rows show of each class and subgroup, by the first rate that is promised.

    Of rows that belong together one of each group counts.
    """
    import numpy as np
    from sklearn.utils import _safe_indexing

    from prudent.core.rows import one_row_per_group
    from prudent.estimator_tools import held_against
    from prudent.report.card import class_named

    left_out = (*COUNTED_AS, *NOT_A_RATE, *ALARMS)
    rates = [g for g in promises if g.quantity not in left_out]
    if not rates:
        return []
    overall = replace(
        rates[0], scope=None, subgroup=None, unit="row", average_over=None
    )

    def counted(promise: Guarantee, rows: NDArray[np.intp]) -> dict[str, Any]:
        counts: list[tuple[Guarantee, int, int]] = []
        if len(rows):
            about = _safe_indexing(X, rows)
            counts = list(held_against(estimator, [promise], about, y[rows]))
        _, wrong, n = counts[0] if counts else (None, 0, 0)
        return {"rows": n, "wrong": wrong}

    everything = np.arange(len(y))
    if groups is not None:
        everything = np.sort(one_row_per_group(groups, np.random.RandomState(0)))
    parts = [
        {
            "about": class_named(label),
            **counted(replace(overall, scope=label), everything),
        }
        for label in list(getattr(estimator, "classes_", ()))
    ]
    if subgroups is not None:
        parts += [
            {"about": name, **counted(overall, everything[members[everything]])}
            for name, members in zip(subgroups.names, subgroups.members.T, strict=True)
        ]
    return parts


def _facts(loaded: LoadedModel | LoadedRule) -> dict[str, Any]:
    """What the file itself says of where it comes from."""
    path = loaded.path
    evidence: dict[str, Any] = {
        "file": path.name,
        "file sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    classes = [str(label) for label in getattr(loaded.last, "classes_", ())]
    for_whom: dict[str, Any] = {"labels": ", ".join(classes)} if classes else {}
    if isinstance(loaded, LoadedRule):
        record = loaded.rule.record
        data = record.get("data") or {}
        for_whom |= {"table": data["file"]} if "file" in data else {}
        for_whom |= {"rows that proved it": record.get("unseen", "")}
        evidence |= {
            f"table {name}": data[name]
            for name in ("sha256", "rows", "seed")
            if name in data
        }
        return {"for_whom": for_whom, "evidence": evidence}
    from prudent.persistence import read_header

    header = read_header(path)
    for_whom["columns"] = ", ".join(header.features)
    for promise in getattr(loaded.last, "guarantees_", ())[:1]:
        first = first_in_words(promise.evidence)
        if first is not None and "latest rows" in promise.evidence:
            n_latest = thousands(int(promise.evidence["latest rows"]))
            units = "groups" if promise.unit == "group" else "rows"
            for_whom["period"] = f"from {first}: the latest {n_latest} {units}"
    if header.table:
        evidence["table sha256"] = header.table
    seed = header.parameters.get("random_state")
    if seed is not None:
        evidence["seed"] = seed
    evidence["prudent"] = header.version
    return {"for_whom": for_whom, "evidence": evidence}


def _recheck(
    loaded: LoadedModel | LoadedRule | None, promises: Sequence[Guarantee]
) -> str:
    """Spell the command that holds promises against other rows; capitals are blanks."""
    from prudent.cli.watching import needs_normal

    named = "--predicted COLUMN" if loaded is None else f"-m {typed(loaded.path.name)}"
    words = ["prudent certify NEW_ROWS", named, "--truth COLUMN"]
    if loaded is not None and loaded.ordinary is None:
        words += ["--normal LABEL"] if any(map(needs_normal, promises)) else []
    if any(promise.unit == "group" for promise in promises):
        words.append("--groups COLUMN")
    return " ".join(words)


def _read_certificate(path: Path) -> tuple[Guarantee, ...]:
    """Promises that prudent certify --json has written."""
    content = content_of(path)
    with ending(
        f"{path} is no certificate. Give a file written by prudent certify --json",
        ExitCode.MODEL,
        ValueError,
        TypeError,
        AttributeError,
    ):
        return tuple(Guarantee.from_dict(item) for item in parsed(content))


def _read_owner(path: Path) -> dict[str, str]:
    """What an owner says of a model, in his own words."""
    from prudent.report.card import OWNER

    content = content_of(path)
    with ending(f"{path} is no TOML: {{}}", ExitCode.MODEL):
        fields = tomllib.loads(content.decode())
    for name, text in fields.items():
        if name not in OWNER or not isinstance(text, str):
            raise CommandError(
                f"{path}: {name!r} is none of {', '.join(OWNER)}, each a text",
                ExitCode.MODEL,
            )
    return fields


def _rows_counted(monitors: Sequence[Mapping[str, Any]]) -> int:
    """Rows that promises were counted by: of different classes they are different."""
    counted: dict[tuple[Any, ...], int] = {}
    for monitor in monitors:
        about = Guarantee.from_dict(monitor["guarantee"])
        kind = about.quantity, about.subgroup, about.scope is None
        counted[kind] = counted.get(kind, 0) + int(monitor["n"])
    return max(counted.values())


def _watched(path: Path, model: Path) -> dict[str, Any]:
    """Level, last verdict and last rows of a monitor of this model."""
    state, _ = read_state(path)
    if state is None:
        raise CommandError(f"cannot read {path}: no such file", ExitCode.MODEL)
    if state.get("model") not in (None, fingerprint(str(model))):
        raise CommandError(
            f"{path} watches another model than {model}: give the state of this one",
            ExitCode.MODEL,
        )
    with ending(
        f"{path} is no state of prudent monitor",
        ExitCode.MODEL,
        KeyError,
        TypeError,
        ValueError,
    ):
        held = [promise["monitor"] for promise in state["promises"]]
        monitors = [monitor for monitor in held if monitor is not None]
        if not monitors:  # on average by an unknown law: nothing can be watched
            return {}
        broken = any(monitor["alarm_at"] is not None for monitor in monitors)
        dates = [str(update["time"]) for update in state["updates"]]
        return {
            "level": float(state["level"]),
            "last verdict": "broken" if broken else "not contradicted",
            "rows counted": _rows_counted(monitors),
            "date": dates[-1] if dates else "",
        }
