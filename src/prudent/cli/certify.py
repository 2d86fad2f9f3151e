"""`prudent certify`: what new rows prove; `prudent plan`: how many are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli import options
from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import failing_as_data, no_target, open_data
from prudent.cli.models import LoadedModel, load_model, refuse_without_groups
from prudent.cli.output import check_writable, note, write_json
from prudent.io.errors import thousands

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from prudent.core.guarantee import Guarantee


# What JSON says of a promise.
RECORDED = (
    *("quantity", "scope", "bound", "sense", "confidence"),
    *("evidence", "assumptions", "sentence"),
)
# Of all verdicts on the promises of the model together.
VERDICT_LEVEL = 0.05
AS_NEW = "as new to the model as you say they are"


@options.grouped
def certify(
    data: options.Data,
    model: options.ModelFile,
    reading: options.Reading,
    target: options.Target = None,
    confidence: Annotated[
        float, typer.Option(help="Probability that the promises are true.")
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
    groups: options.Groups = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of costs: a line for each true class, a column for each answer "
            "(and one for no answer); certifies the expected cost.",
        ),
    ] = None,
    json_file: options.JsonFile = None,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
) -> None:
    """Certify a model on rows that it has never seen: exact limits of its errors."""
    options.check_confidence(confidence)
    check_writable(json_file)
    loaded = load_model(model, trusted)
    refuse_without_groups(model, loaded.last, groups)
    words = (*loaded.text_columns, *([] if groups is None else [groups]))
    source, target = open_data(data, target, reading, text_columns=words)
    if target is None:
        raise no_target(source)
    frame, truth, together = loaded.read(source, target, groups)
    X, y, kept = _labelled(frame, truth, source.name, target, loaded)
    if together is not None:
        together = together[kept]
    labels = [str(label) for label in getattr(loaded.estimator, "classes_", ())]
    given = None if costs is None else options.read_costs(costs, labels)
    from prudent.certification import certify as certified

    with failing_as_data(model):
        found = certified(
            loaded.estimator,
            X,
            y,
            confidence=confidence,
            simultaneous=not per_claim,
            claims="all" if every else "promised",
            groups=together,
            costs=given,
        )
    is_seen = loaded.has_seen(data)
    if is_seen:
        note(
            f"{data} is the table that the model was fitted to: these limits are too "
            "good, and say nothing about new rows. Give rows that it has not seen",
            always=True,
        )
    if write_json([_record(promise) for promise in found], json_file):
        return
    new = "not new to the model" if is_seen else AS_NEW
    print(f"{thousands(len(y))} rows of {data}, {new}")
    for promise in found:
        print(_line(promise))
    held = "each with" if per_claim else "all at once with"
    print(f"True {held} confidence {confidence:g}, assuming")
    for assumption in found[0].assumed:
        print(f"- {assumption}")
    if not is_seen:  # rows of the fit hold a model to nothing
        for line in _own_promises(loaded, X, y, together):
            print(line)


def _labelled(
    frame: pa.Table, words: NDArray[Any], table: str, target: str, loaded: LoadedModel
) -> tuple[Any, NDArray[Any], list[bool]]:
    """Labelled rows as the model takes them, labels as it names them, and which."""
    known = {str(label): label for label in _labels(loaded)}
    kept = [word is not None for word in words]
    labels = words[kept].tolist()
    for word in dict.fromkeys(labels):
        if word not in known:
            raise CommandError(
                f"certify: `y` holds the label {word!r}, which the model does not "
                f"know; its classes are {list(known)}",
                ExitCode.DATA,
            )
    n_missing = kept.count(False)
    if n_missing:
        text = f"{thousands(n_missing)} rows without a label are left out"
        note(text, always=True)
    if not labels:
        raise CommandError(
            f"{table} holds no labelled row; give rows with a {target}", ExitCode.DATA
        )
    import numpy as np

    rows = loaded.rows(frame.filter(kept))
    return rows, np.array([known[word] for word in labels]), kept


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
    scope = "" if promise.scope is None else f" of {promise.scope}"
    side = "at most" if promise.sense == "<=" else "at least"
    said = f"{promise.quantity}{scope}: {side} {promise.bound:.4g}"
    if "wrong" not in promise.evidence:
        return said
    n = promise.evidence.get("answered", promise.evidence["calibration rows"])
    missed = "missed" if promise.quantity == "coverage" else "wrong"
    return f"{said} ({promise.evidence['wrong']:g} of {thousands(int(n))} {missed})"


def _own_promises(
    loaded: LoadedModel, X: Any, y: NDArray[Any], groups: NDArray[Any] | None
) -> Iterator[str]:
    """What these rows say of each promise that the model made."""
    from prudent.cli.watched_words import named
    from prudent.estimator_tools import held_against

    promises = getattr(loaded.last, "guarantees_", ())
    counts = [*held_against(loaded.estimator, promises, X, y, groups)]
    for promise, broken, n in counts:
        found = promise.judge(broken, n, level=VERDICT_LEVEL / len(counts))
        low, high = found.interval
        yield (
            f"Promised: {named(promise)}. On these rows {found.measured:.3f} "
            f"({low:.3f}–{high:.3f}, {thousands(n)} rows): {found.verdict}"
        )
    if len(counts) > 1:
        yield f"These {len(counts)} verdicts share the level {VERDICT_LEVEL:g}."


def _record(promise: Guarantee) -> dict[str, Any]:
    found = promise.to_dict()
    return {name: found[name] for name in RECORDED}


def plan(
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
        float, typer.Option(help="Promises that are to hold at once.")
    ] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Say how many rows a promise needs, new to the model."""
    check_writable(json_file)
    from prudent.certification import plan as planned

    settings = {
        "bound": bound,
        "expected": expected,
        "confidence": confidence,
        "power": power,
        "answered_share": answered_share,
        "claims": claims,
    }
    try:
        found = planned(**settings)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if write_json({"settings": settings, **asdict(found)}, json_file):
        return
    print(f"{thousands(found.rows)} rows that the model has not seen")
    up_to, behind = "Up to", ""
    if answered_share < 1:
        counted = thousands(found.rows_answered)
        print(
            f"of which about {counted} count: each with probability {answered_share:g}"
        )
        up_to, behind = f"If {counted} count, up to", " that count"
    print(
        f"{up_to} {thousands(found.wrong_allowed)} wrong ones certify a rate of at "
        f"most {bound:g} with confidence {confidence:g}"
        + ("." if claims == 1 else f", for {claims:g} promises at once.")
    )
    print(
        f"If the rate is {expected:g}, that succeeds with probability "
        f"{found.power:.3f}, and with more rows at least with {power:g}."
    )
    print(
        f"Without a wrong one {thousands(found.rows_without_errors)}{behind} would do."
    )
