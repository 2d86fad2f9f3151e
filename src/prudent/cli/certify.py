"""`prudent certify`: what new rows prove; `prudent plan`: how many are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from prudent.cli import options
from prudent.cli.card import certificate_page, seen_parts
from prudent.cli.loading import (
    failing_as_data,
    items_of,
    no_target,
    open_data,
    parts_of,
)
from prudent.cli.models import LoadedModel, read_rows, refuse_without_groups
from prudent.cli.options import names
from prudent.cli.output import (
    STDOUT,
    CommandError,
    ExitCode,
    UsageError,
    check_writable,
    ending,
    note,
    print_table,
    write_json,
    write_report,
)
from prudent.cli.rules import LoadedRule, load
from prudent.cli.scores import (
    ScoreColumns,
    bands_of_model,
    certify_scores,
    own_threshold,
    write_bands,
)
from prudent.core.guarantee import COUNTED_AS
from prudent.io.errors import shown, thousands

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from prudent.core.checks import PromiseCheck
    from prudent.core.guarantee import Guarantee
    from prudent.io import TableSource
    from prudent.rules.subgroups import Memberships


# What JSON says of a promise.
RECORDED = (
    *("quantity", "scope", "subgroup", "bound", "sense", "confidence"),
    *("evidence", "assumptions", "sentence"),
)
FITTED = "is the table that the model was fitted to"
# What counts a row without an answer as wrong.
OF_EVERY_ROW = ("error rate", "class error rate")
# What the rows are to that which they certify.
UNSEEN = "taken to be unseen by {}; prudent cannot check this"
COMPARED = "of which no more are among the rows of the fit than chance explains"


@options.grouped
def certify(
    data: options.Data,
    *,
    model: Annotated[
        Path | None,
        options.value("FILE", "Model file, or rule file.", "-m", "--model"),
    ] = None,
    target: options.Truth = None,
    predicted: Annotated[
        str | None,
        options.value(
            "COL",
            "Without a model: column of the answers, labels or sets of labels "
            "joined by |; an empty cell is no answer.",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        options.value(
            "LABEL,..",
            "All labels of --predicted, where some may be missing by chance.",
        ),
    ] = None,
    normal: Annotated[
        str | None,
        options.value(
            "LABEL",
            "Truth of ordinary rows, where a detector or a rule does not name it.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            callback=options.check_inside,
            help="Probability that the promises are true.",
        ),
    ] = 0.95,
    per_claim: Annotated[
        bool,
        typer.Option("--per-claim", help="Each promise by itself, not all at once."),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Certify all that can be counted, jointly, and not only what the "
            "model promises.",
        ),
    ] = False,
    by: Annotated[
        str | None,
        options.value(
            "COL,..",
            "Columns in each part of which every claim but the expected cost is made "
            "too: sex,age_band; crossed sex*age_band; in bands age:30,45,60. Without "
            "it those by which the model promises.",
        ),
    ] = None,
    groups: options.Groups = None,
    costs: Annotated[
        Path | None,
        options.value(
            "FILE",
            "CSV of costs: a line for each true class, a column for each answer "
            "(and one for no answer); certifies the expected cost.",
        ),
    ] = None,
    thresholds: Annotated[
        Path | None,
        options.value(
            "FILE",
            "Write limits that hold at all thresholds of a model's scores at "
            "once, to choose by: .csv, or .json of at most 256 thresholds.",
            callback=check_writable,
        ),
    ] = None,
    positive: Annotated[
        str | None,
        options.value(
            "LABEL", "With --thresholds: the class that an alarm stands for."
        ),
    ] = None,
    scores: Annotated[
        str | None,
        options.value(
            "COL,..",
            "Without a model, for --thresholds: a column of scores for each class.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        options.value(
            "COL",
            "Without a model, for --thresholds: the score of --positive, or how "
            "sure --predicted is.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        options.value(
            "FILE",
            "Write the certificate as a page (HTML): the card, and with "
            "--thresholds a slider over all of them.",
            callback=check_writable,
        ),
    ] = None,
    json_file: options.JsonFile = None,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
    reading: options.Reading,
) -> None:
    """Certify a model, a rule or answers on new rows: exact limits of the errors."""
    if scores is not None or score is not None:
        if model is not None:
            raise UsageError("-m FILE has scores of its own: leave --scores out")
        _refuse_with_scores(
            {
                "--groups": groups is not None,
                "--by": by is not None,
                "--costs": costs is not None,
                "--normal": normal is not None,
                "--json": json_file is not None,
                "--all": every,
                "--per-claim": per_claim,
            }
        )
        columns = ScoreColumns(scores, classes, score, predicted, positive)
        certify_scores(data, reading, target, columns, confidence, thresholds, report)
        return
    if positive is not None and thresholds is None:
        raise UsageError("--positive belongs to --thresholds FILE")
    if (model is None) == (predicted is None):
        raise UsageError(
            "give -m FILE, a model or a rule, or --predicted COL, the answers in DATA"
        )
    items = items_of(by)
    if model is not None:
        loaded = load(model, trusted)
        taken = _by_file(loaded, data, reading, target, groups, normal, items)
    else:
        loaded = None
        taken = _by_answers(
            data, reading, target, groups, str(predicted), classes, items
        )
    labels = [str(label) for label in getattr(taken.estimator, "classes_", ())]
    given = None if costs is None else options.read_costs(costs, labels)
    from prudent.certification import certify as certified

    with failing_as_data(loaded):
        certificates = certified(
            taken.estimator,
            taken.X,
            taken.y,
            confidence=confidence,
            simultaneous=not per_claim,
            claims="all" if every else "promised",
            groups=taken.groups,
            costs=given,
            subgroups=taken.subgroups,
        )
    bands = own = None
    if thresholds is not None:
        bands = bands_of_model(
            taken.estimator,
            taken.X,
            taken.y,
            confidence=confidence,
            positive=positive,
            groups=taken.groups,
            loaded=loaded,
        )
        own = own_threshold(bands, taken.estimator, taken.X, taken.y, taken.groups)
        write_bands(bands, thresholds, own)
        if not per_claim:
            jointly = max(0.0, 2 * confidence - 1)
            note(
                f"with the limits below they hold together with confidence {jointly:g}"
            )
    # Rows of the fit hold a model to nothing, and JSON in the place of text no verdict.
    is_told = not taken.seen and (report is not None or json_file != STDOUT)
    with failing_as_data(loaded):
        checks = _checks(taken) if is_told else ()
    if report is not None and not taken.seen:
        promises = (*taken.promises, *certificates)
        page = certificate_page(
            taken.promises,
            certificates,
            seen_parts(
                *(taken.estimator, taken.X, taken.y, taken.subgroups, promises),
                groups=taken.groups,
            ),
            checked=[(item.guarantee, item.check.verdict) for item in checks],
            bands=bands,
            threshold=own,
            data=data,
            n_rows=len(taken.y),
            loaded=loaded,
        )
        write_report(page, report)
    if taken.seen:
        note(
            f"{data} {taken.seen}: these limits are too good, and say nothing about "
            "new rows. Give rows that it has not seen",
            always=True,
        )
    if write_json([_record(promise) for promise in certificates], json_file):
        return
    _print(certificates, taken, checks, data, confidence, jointly=not per_claim)


def _refuse_with_scores(given: Mapping[str, bool]) -> None:
    """Refuse options that limits at all thresholds of scores know nothing of."""
    for name, is_given in given.items():
        if is_given:
            instead = ", and give one row of each group" if name == "--groups" else ""
            raise UsageError(
                f"limits at all thresholds of scores know no {name}: leave it out"
                f"{instead}"
            )


def _print(
    certificates: Sequence[Guarantee],
    taken: Taken,
    checks: Sequence[PromiseCheck],
    data: str,
    confidence: float,
    *,
    jointly: bool,
) -> None:
    """Print what is certified, what it assumes, and how the model's promises fare."""
    new = "not new to the model" if taken.seen else taken.new
    print(f"{thousands(len(taken.y))} rows of {data}, {new}")
    for promise in certificates:
        print(_line(promise))
    if taken.without_label and any(p.quantity in OF_EVERY_ROW for p in certificates):
        print(
            f"The {thousands(taken.without_label)} rows without an answer count as "
            "wrong in the error rate of all rows and in that of a class"
        )
    held = "all at once with" if jointly else "each with"
    print(f"True {held} confidence {confidence:g}, assuming")
    for assumption in certificates[0].assumed:
        print(f"- {assumption}")
    if not taken.seen:
        for line in _own_promises(taken, checks):
            print(line)


class Taken(NamedTuple):
    """What is to be certified, and the labelled rows that certify it."""

    estimator: Any  # what answers to X; answers that are given already
    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    promises: tuple[Guarantee, ...]
    seen: str  # how the rows made what is certified; "" where they did not
    new: str  # what the rows are to it
    # Of which every claim is made too; None: those that are promised something of.
    subgroups: Memberships | None = None
    without_label: int = 0  # rows of y to which nothing was answered


def _by_file(
    loaded: LoadedModel | LoadedRule,
    data: str,
    reading: options.Reading,
    target: str | None,
    groups: str | None,
    normal: str | None,
    by: Sequence[str],
) -> Taken:
    """A model or a rule from a file, and the labelled rows as it takes them."""
    import numpy as np

    refuse_without_groups(loaded.path, loaded.last, groups)
    own = getattr(loaded.last, "_subgroups", None)
    if own is not None and own.are(by):
        by = ()  # they are those that are promised something of
    frame, truth, together, parts = _labelled(
        data, target, reading, groups, by, loaded.text_columns, loaded.read
    )
    promises = tuple(getattr(loaded.last, "guarantees_", ()))
    if isinstance(loaded, LoadedModel):
        from prudent.estimator_tools import remembers_rows

        X = loaded.rows(frame)
        y = _known_labels(truth.tolist(), loaded, normal)
        seen = FITTED if loaded.has_seen(data) else ""
        with failing_as_data(loaded):
            compared = remembers_rows(loaded.estimator, X)
        new = COMPARED if compared else UNSEEN.format("the model")
        return Taken(loaded.estimator, X, y, together, promises, seen, new, parts)
    answers = loaded.given(frame)
    y = truth
    if loaded.rule.kind == "alarms":
        y = _ordinary(y.tolist(), normal or loaded.ordinary)
    elif loaded.rule.classes:
        y = _spelled(y.tolist(), loaded.rule.classes, "rule")
    seen = "made this rule" if loaded.has_seen(data) else ""
    new = UNSEEN.format("the rule and the scores")
    return Taken(answers, np.arange(len(y)), y, together, promises, seen, new, parts)


def _by_answers(
    data: str,
    reading: options.Reading,
    target: str | None,
    groups: str | None,
    predicted: str,
    classes: str | None,
    by: Sequence[str],
) -> Taken:
    """Answers in a column, and the rows that have a label."""
    import numpy as np
    import pyarrow as pa

    from prudent.estimator_tools import answers_from
    from prudent.io.table import check_column

    def read(source: TableSource, target: str | None, groups: str | None) -> Any:
        return read_rows(
            source,
            [predicted],
            lambda source: check_column(predicted, source.names),
            lambda part: pa.table({predicted: part.text(predicted)}),
            target,
            groups,
        )

    frame, y, together, inside = _labelled(
        data, target, reading, groups, by, [predicted], read
    )
    answered = frame[predicted].to_pylist()
    known = names(classes)
    parts = [word.split("|") if word else [] for word in answered]
    are_sets = any(len(part) > 1 for part in parts)
    for what, words in (
        ("truth", {*y.tolist()}),
        ("answer", {word for part in parts for word in part} if are_sets else set()),
    ):
        unknown = sorted(words - {*known}) if known else []
        if unknown:
            raise CommandError(
                f"{what} {unknown[0]!r} is not among --classes {classes}",
                ExitCode.DATA,
            )
    without_label = 0
    with failing_as_data():
        if are_sets:
            known = known or sorted({*y.tolist(), *(c for p in parts for c in p)})
            sets = np.array([[label in part for label in known] for part in parts])
            answers = answers_from(sets, y, known)
        else:
            labels = np.array([word or None for word in answered], dtype=object)
            answers = answers_from(labels, y, known or None)
            without_label = answered.count("")
    new = UNSEEN.format("what answered")
    return Taken(
        answers, np.arange(len(y)), y, together, (), "", new, inside, without_label
    )


def _labelled(
    data: str,
    target: str | None,
    reading: options.Reading,
    groups: str | None,
    by: Sequence[str],
    words: Sequence[str],
    read: Callable[[TableSource, str | None, str | None], Any],
) -> tuple[pa.Table, NDArray[np.str_], NDArray[Any] | None, Memberships | None]:
    """Rows of a table that have a label, as `read` takes them; at least one.

    Columns that are `words` are read as the file spells them. Behind the rows are
    their labels, their groups where a column of these is named, and which parts of the
    population hold each, where such are asked for: rows without a label do not say
    what the parts are.
    """
    spelled = (*words, *([] if groups is None else [groups]))
    source, target = open_data(data, target, reading, text_columns=spelled)
    if target is None:
        raise no_target(source)
    frame, truth, together = read(source, target, groups)
    kept = [word is not None for word in truth]
    n_missing = kept.count(False)
    if n_missing:
        text = f"{thousands(n_missing)} rows without a label are left out"
        note(text, always=True)
    if not any(kept):
        raise CommandError(
            f"{source.name} holds no labelled row; give rows with a {target}",
            ExitCode.DATA,
        )
    parts = parts_of(source, by, target, kept) if by else None
    together = None if together is None else together[kept]
    return frame.filter(kept), truth[kept].astype(str), together, parts


def _known_labels(
    words: list[str], loaded: LoadedModel, normal: str | None
) -> NDArray[Any]:
    """Labels as the model names them; for a detector 1, of `normal` rows, and -1."""
    labels = _labels(loaded)
    alone = set(words) <= set(map(str, labels))
    if hasattr(loaded.estimator, "classes_") or (alone and normal is None):
        return _spelled(words, labels, "model")
    return _ordinary(words, normal or loaded.ordinary)


def _ordinary(words: Sequence[str], normal: str | None) -> NDArray[Any]:
    """1 for ordinary rows and -1 for the others, from the truth of each."""
    import numpy as np

    if normal is None:
        raise UsageError("--normal is missing: the truth of ordinary rows")
    return np.where(np.array(words) == normal, 1, -1)


def _spelled(words: list[str], labels: Iterable[Any], what: str) -> NDArray[Any]:
    """Labels as a model or a rule has them, from words."""
    import numpy as np

    known = {str(label): label for label in labels}
    for word in dict.fromkeys(words):
        if word not in known:
            raise CommandError(
                f"certify: `y` holds the label {word!r}, which the {what} does not "
                f"know; its classes are {list(known)}. Leave such rows out; what is "
                "certified is then about rows of these classes alone",
                ExitCode.DATA,
            )
    return np.array([known[word] for word in words])


def _labels(loaded: LoadedModel) -> list[Any]:
    estimator = loaded.estimator
    if hasattr(estimator, "classes_"):
        return list(estimator.classes_.tolist())
    from sklearn.base import is_outlier_detector

    if is_outlier_detector(estimator):
        return [1, -1]
    raise CommandError(
        f"{loaded.path} is neither a classifier nor a detector", ExitCode.MODEL
    )


def _line(promise: Guarantee) -> str:
    """One promise with what was counted."""
    scope = "" if promise.scope is None else f" of class {shown(promise.scope)}"
    scope += "" if promise.subgroup is None else f" where {promise.subgroup}"
    side = "at most" if promise.sense == "<=" else "at least"
    what = promise.quantity.removeprefix("class ")
    limit = f"{what}{scope}: {side} {promise.bound:.4g}"
    if promise.quantity in COUNTED_AS:
        had = promise.evidence[COUNTED_AS[promise.quantity]]
        n_rows = thousands(int(promise.evidence["calibration rows"]))
        return f"{limit} ({had:g} of {n_rows})"
    if "wrong" not in promise.evidence:
        return limit
    n = promise.evidence.get("answered", promise.evidence["calibration rows"])
    missed = "missed" if promise.quantity == "coverage" else "wrong"
    return f"{limit} ({promise.evidence['wrong']:g} of {thousands(int(n))} {missed})"


def _checks(taken: Taken) -> tuple[PromiseCheck, ...]:
    """The promises that the model made, held against these rows.

    Verdicts share one level by Holm's procedure: bounds were fixed before these rows.
    Promises about single rows are not held against rows that belong together.
    """
    from prudent.core.checks import check_promises
    from prudent.estimator_tools import held_against

    promises = taken.promises
    if taken.groups is not None:
        promises = tuple(g for g in promises if g.unit == "group")
    held = held_against(taken.estimator, promises, taken.X, taken.y, taken.groups)
    # Of what is promised to be frequent the rows without it break the promise.
    broken = [(g, n - count if g.counts_frequent else count, n) for g, count, n in held]
    return check_promises([broken])


def _own_promises(taken: Taken, checks: Sequence[PromiseCheck]) -> Iterator[str]:
    """What these rows say of each promise that the model made."""
    from prudent.cli.watching import named
    from prudent.core.checks import LEVEL

    if taken.groups is not None:
        for single in (g for g in taken.promises if g.unit != "group"):
            yield (
                f"Promised: {named(single)}, of single rows: not held against rows "
                "that belong together."
            )
    for item in checks:
        low, high = item.check.interval
        yield (
            f"Promised: {named(item.guarantee)}. On these rows "
            f"{item.check.measured:.3f} ({low:.3f}–{high:.3f}, "
            f"{thousands(int(item.n))} rows): {item.check.verdict}"
        )
    if len(checks) > 1:
        yield (
            f"These {len(checks)} verdicts share the level {LEVEL:g} (Holm); each "
            "interval is one of its own."
        )
    elif checks:
        level = f"the level {LEVEL:g}"
        yield f"The verdict is one-sided at {level}, the interval two-sided."


def _record(promise: Guarantee) -> dict[str, Any]:
    recorded = promise.to_dict()
    return {name: recorded[name] for name in RECORDED}


@options.grouped
def plan(
    *,
    bound: Annotated[float, typer.Option(help="Rate to certify.")] = 0.05,
    expected: Annotated[float, typer.Option(help="Rate as it probably is.")] = 0.02,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the promise.")
    ] = 0.95,
    power: Annotated[float, typer.Option(help="Chance of getting the promise.")] = 0.8,
    answered_share: Annotated[
        float,
        typer.Option(
            help="Probability that it counts a row: one answered, or of one class."
        ),
    ] = 1.0,
    claims: Annotated[
        float,
        typer.Option(
            help="Promises that are to hold at once; with --by each over all rows and "
            "in each part. Limits of every class count too."
        ),
    ] = 1,
    data: Annotated[
        str | None,
        options.value("DATA", "With --by: a table like the new rows."),
    ] = None,
    by: Annotated[
        str | None,
        options.value(
            "COL,..",
            "Columns of --data each part of which is to have the promise: "
            "sex,age_band; crossed sex*age_band; in bands age:30,45,60.",
        ),
    ] = None,
    json_file: options.JsonFile = None,
    reading: options.Reading,
) -> None:
    """Say how many rows a promise needs, new to the model."""
    items = items_of(by)
    if (data is None) != (not items):
        raise UsageError("--data and --by belong together: give both or neither.")
    from prudent.certification import plan as planned

    settings = {
        "bound": bound,
        "expected": expected,
        "confidence": confidence,
        "power": power,
        "answered_share": answered_share,
        "claims": claims,
    }
    with ending("{}", ExitCode.USAGE):
        if data is not None:
            _plan_by(data, items, reading, settings, json_file)
            return
        size = planned(**settings)
    if write_json({"settings": settings, **asdict(size)}, json_file):
        return
    print(f"{thousands(size.rows)} rows that the model has not seen")
    up_to, behind = "Up to", ""
    if answered_share < 1:
        counted = thousands(size.rows_answered)
        print(
            f"of which about {counted} count: each with probability {answered_share:g}"
        )
        up_to, behind = f"If {counted} count, up to", " that count"
    print(
        f"{up_to} {thousands(size.wrong_allowed)} wrong ones certify a rate of at "
        f"most {bound:g} with confidence {confidence:g}"
        + ("." if claims == 1 else f", for {claims:g} promises at once.")
    )
    print(
        f"If the rate is {expected:g}, that succeeds with probability "
        f"{size.power:.3f}, and with more rows at least with {power:g}."
    )
    print(
        f"Without a wrong one {thousands(size.rows_without_errors)}{behind} would do."
    )


def _plan_by(
    data: str,
    items: Sequence[str],
    reading: options.Reading,
    settings: dict[str, float],
    json_file: str | None,
) -> None:
    """Say how many rows hold enough of each subgroup, the rarest first.

    As a certificate does, each promise claims over all rows and in each subgroup.
    """
    from prudent.certification import plan as planned
    from prudent.certification.planning import rows_of_table

    source, _ = open_data(data, None, reading)
    inside = parts_of(source, items, None)
    n_claims = settings["claims"] * (len(inside.names) + 1)
    needed = planned(**{**settings, "claims": n_claims, "answered_share": 1.0}).rows
    rarest_first = sorted(zip(inside.count.tolist(), inside.names, strict=True))
    lines = [
        {
            "subgroup": name,
            "share": count / len(inside),
            "rows": needed,
            "rows_of_table": rows_of_table(
                needed, settings["answered_share"] * count / len(inside)
            ),
        }
        for count, name in rarest_first
        if count
    ]
    plain = {**settings, "claims": n_claims}
    if write_json({"settings": plain, "subgroups": lines}, json_file):
        return
    print_table(
        ("subgroup", "share", "rows it needs", "rows in all"),
        [
            (
                str(line["subgroup"]),
                f"{100 * line['share']:.3g} %",
                thousands(line["rows"]),
                thousands(line["rows_of_table"]),
            )
            for line in lines
        ],
    )
    print(
        f"Rows new to the model, of which each subgroup has as many as it needs in 99 "
        f"of 100 draws if its share is that in {data}."
    )
    print(
        f"They certify a rate of at most {settings['bound']:g} over all rows and in "
        f"every subgroup at once with confidence {settings['confidence']:g}, each with "
        f"probability {settings['power']:g} if its rate is {settings['expected']:g}: "
        f"{n_claims:g} claims. Limits of classes and cells are further ones, --claims."
    )
