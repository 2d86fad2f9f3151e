"""`prudent audit`: a method's promise against laws whose truth is known."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from prudent.cli import options
from prudent.cli.fit import built
from prudent.cli.options import names
from prudent.cli.output import (
    ExitCode,
    UsageError,
    ending,
    print_table,
    write_json,
    write_report,
)

if TYPE_CHECKING:
    from prudent.auditing import Audit

# Columns that go, in this order, where the terminal is narrow.
DISPENSABLE = ("sharpness", "claims", "mean truth", "mean bound")


@options.grouped
def audit(
    *,
    method: Annotated[
        str,
        typer.Option(
            help="A method of prudent compare, or the dotted path of a class, such as "
            "prudent.LowDensityRejector."
        ),
    ],
    param: options.Param = None,
    laws: Annotated[
        str, options.value("LAW,..", "standard, or names of laws.")
    ] = "standard",
    sizes: Annotated[str, options.value("N,..", "Training rows.")] = "20,60,200",
    budget: Annotated[
        int, typer.Option(min=1, help="Most draws for each law and size.")
    ] = 400,
    level: Annotated[
        float, typer.Option(help="Chance of calling a true promise broken.")
    ] = 0.01,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = 1,
    page: options.Page,
    json_file: options.JsonFile = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Fit a method on laws whose truth is known, and test what it promises there."""
    estimator = built(method, param or [], None)  # each draw has its own seed
    if not all(size.isdecimal() for size in names(sizes)):
        raise UsageError(f"--sizes takes numbers of rows, got {sizes[:64]!r}.")
    from prudent.auditing.result import HEADS
    from prudent.auditing.run import audit as run

    with ending("{}", ExitCode.USAGE):
        result = run(
            estimator,
            laws=laws if laws == "standard" else names(laws),
            budget=budget,
            level=level,
            sizes=[int(size) for size in names(sizes)],
            random_state=seed,
            n_jobs=jobs,
        )
    if not write_json(result.to_dict(), json_file):
        print(f"{method}: {result.head}")
        if result.rows:
            print_table(HEADS, result.lines(), dispensable=DISPENSABLE)
        for line in result.remarks():
            print(line)
    if page.report is not None:
        from prudent.report.pages import audit_page

        again = _command_of_worst(result, method, param or [])
        title = f"audit of {method}"
        text = audit_page(title, result, again, print_all=page.print_all)
        write_report(text, page.report)
    if result.verdict == "broken":
        raise typer.Exit(ExitCode.BROKEN_PROMISE)


def _command_of_worst(result: Audit, method: str, param: list[str]) -> str | None:
    """Spell the command that makes the worst draw of a broken promise again."""
    worst = result.worst_case
    if result.verdict != "broken" or worst is None:
        return None
    given = [word for each in param for word in ("--param", each)]
    draw = ["--laws", worst.law, "--sizes", str(worst.size), "--seed", str(worst.seed)]
    command = ["prudent", "audit", "--method", method, *given, *draw, "--budget", "1"]
    return shlex.join(command)
