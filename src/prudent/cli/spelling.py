"""Commands as they are typed: what repeats a comparison, what uses its outcome."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from prudent.cli.options import names
from prudent.evaluation.methods import CHOICES

if TYPE_CHECKING:
    from prudent.comparison import Comparison

# Options that change what is printed, not what is found, and the two said first.
SAID_ELSEWHERE = ("data", "target", "report", "json_file", "quiet", "jobs", "strict")
# Options of `compare` that `fit` has too.
SHARED = (
    *("groups", "min_class_rows", "features", "drop", "missing", "categorical"),
    *("keep_identifiers", "delimiter", "encoding", "decimal", "no_header", "sample"),
)


def repeating(context: typer.Context, target: str) -> str:
    """Spell the command that repeats this comparison."""
    words = ["prudent", "compare", context.params["data"], "--target", target]
    left_out = {*SAID_ELSEWHERE}
    return shlex.join([*words, *_options(context, left_out, always=("seed", "cv"))])


def _options(
    context: typer.Context, left_out: set[str], always: tuple[str, ...] = ()
) -> list[str]:
    """Options that differ from their defaults, as they are typed."""
    typed: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params[name]
        if name in left_out or (
            value == parameter.get_default(context) and name not in always
        ):
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            typed.append(parameter.opts[0])
            if one is not True:
                typed.append(str(one))
    return typed


def with_next(
    comparison: Comparison,
    context: typer.Context,
    target: str,
    n_methods: int,
    has_promise: bool,
) -> Comparison:
    """Add the command that makes a model of the method that is recommended."""
    from prudent.evaluation.words import recommended

    used = recommended(comparison)
    if used is None:
        return comparison
    known = context.params
    words = ["prudent", "fit", known["data"], "--target", target]
    words += ["--method", _typed(used.method, known["methods"])]
    if has_promise:
        words += ["--promise", known["promise"]]
        asked = used.asked
        items = [] if asked is None else asked.items
        if used.method in CHOICES:  # at the full level
            averaged = any(item.guarantee.average_over for item in items)
            words += ["--average"] if averaged else []
        elif any(item.guarantee.confidence for item in items):
            # The choice among so many methods used these rows.
            shared = 1 - (1 - comparison.settings.confidence) / n_methods
            words += ["--confidence", f"{shared:.6g}"]
        elif items:  # as in the table
            words += ["--average"]
    left_out = {str(p.name) for p in context.command.params} - {*SHARED}
    words += [*_options(context, left_out), "-o", "model.prudent"]
    settings = replace(comparison.settings, next_command=shlex.join(words))
    return replace(comparison, settings=settings)


def _typed(method: str, listed: str) -> str:
    """Name of a method as it was typed: a dotted path is shown by its last part."""
    return next((p for p in names(listed) if p.rpartition(".")[2] == method), method)
