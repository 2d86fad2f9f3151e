"""`prudent datasets`: what comes with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from prudent.cli.exits import UsageError
from prudent.cli.tables import print_table
from prudent.datasets import BUNDLED

__all__ = ["datasets"]

FIRST_ROWS = 5


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Print the first rows of this table.")
    ] = None,
) -> None:
    """List the bundled tables, their sizes and licences."""
    if name is None:
        print_table(
            ["name", "rows", "features", "classes", "target", "licence", "source"],
            [
                [
                    t.name,
                    t.n_rows,
                    t.n_features,
                    t.n_classes,
                    t.target,
                    t.licence,
                    t.source,
                ]
                for t in BUNDLED.values()
            ],
        )
        return
    if name not in BUNDLED:
        raise UsageError(f"no bundled table {name!r}. There are: {', '.join(BUNDLED)}.")
    table = BUNDLED[name]
    for row in table.first_rows(FIRST_ROWS):
        typer.echo(",".join(row))
