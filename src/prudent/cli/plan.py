"""`prudent plan`: how many rows a promise needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.exits import UsageError
from prudent.cli.loading import check_writable
from prudent.io.errors import thousands


def plan(
    bound: Annotated[float, typer.Option(help="Rate to certify.")] = 0.05,
    expected: Annotated[float, typer.Option(help="Rate as it probably is.")] = 0.02,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the promise.")
    ] = 0.95,
    power: Annotated[float, typer.Option(help="Chance of getting the promise.")] = 0.8,
    answered_share: Annotated[
        float,
        typer.Option(help="Share of the rows it counts: answered ones, or one class."),
    ] = 1.0,
    claims: Annotated[
        float, typer.Option(help="Promises that are to hold at once.")
    ] = 1,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write JSON; - for stdout."),
    ] = None,
) -> None:
    """Say how many rows a promise needs, new to the model."""
    check_writable(None if json_file in (None, "-") else Path(str(json_file)))
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
    if json_file is not None:
        text = json.dumps({"settings": settings, **asdict(found)}, indent=1)
        if json_file == "-":
            print(text)
            return
        Path(json_file).write_text(text + "\n", encoding="utf-8")
    print(f"{thousands(found.rows)} rows that the model has not seen")
    if found.rows != found.rows_answered:
        print(f"of which {thousands(found.rows_answered)} count ({answered_share:g})")
    print(
        f"Up to {thousands(found.wrong_allowed)} wrong ones certify a rate of at most "
        f"{bound:g} with confidence {confidence:g}"
        + ("." if claims == 1 else f", for {claims:g} promises at once.")
    )
    print(
        f"If the rate is {expected:g}, that succeeds with probability "
        f"{found.power:.3f}, and with more rows at least with {power:g}."
    )
    print(f"Without a wrong one {thousands(found.rows_without_errors)} would do.")
