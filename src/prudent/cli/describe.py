"""`prudent describe` a table before any fit; `prudent datasets`: the bundled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.loading import all_or_sample, drawn_from, look_through, open_data
from prudent.cli.options import Columns, Data, Target, grouped
from prudent.cli.output import UsageError, print_table, set_quiet
from prudent.datasets import BUNDLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Figures of a table beyond memory are those of so many rows, as printed.
SAMPLE = 100_000
FIRST_ROWS = 5


@grouped
def describe(data: Data, *, target: Target = None, columns: Columns) -> None:
    """Check a table before it is compared, and print what it holds."""
    import numpy as np

    source, target = open_data(data, target, columns)
    set_quiet(True)  # notes are part of the result here
    surveyed = look_through(source, target, columns)
    training, _ = all_or_sample(surveyed, SAMPLE, 0)
    print(f"{data}  {surveyed.n_rows} rows x {training.frame.num_columns} features")
    if target is not None:
        print_table(
            [f"class ({target})", "rows", "share"],
            [
                [label, count, f"{count / surveyed.n_rows:.1%}"]
                for label, count in sorted(
                    zip(surveyed.labels.tolist(), surveyed.counts.tolist(), strict=True)
                )
            ],
        )
    sample = drawn_from(training)
    if sample is not None:
        print(f"figures of {sample}:")
    print_table(
        ["feature", "mean", "standard deviation", "smallest", "largest", "distinct"],
        [
            [
                name,
                *(
                    "–" if is_text else f"{f(column.to_numpy()):.6g}"
                    for f in (np.nanmean, np.nanstd, np.nanmin, np.nanmax)
                ),
                _count_distinct(column.drop_null().to_numpy()),
            ]
            for name, is_text, column in zip(
                training.preparation.names,
                training.preparation.is_text,
                training.frame.itercolumns(),
                strict=True,
            )
        ],
        dispensable=("distinct", "standard deviation"),
    )
    for text in (
        *surveyed.notes,
        *([surveyed.treatment] if surveyed.treatment else []),
    ):
        print(f"note: {text}")


def _count_distinct(cells: NDArray[Any]) -> int:
    """Different words or numbers, NaN not among them."""
    import numpy as np

    return len(np.unique(cells[cells == cells]))


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Print the first rows of this table.")
    ] = None,
) -> None:
    """List the bundled tables, their sizes and licences."""
    if name is None:
        heads = ["name", "rows", "features", "classes", "target", "licence", "source"]
        attributes = ["name", "n_rows", "n_features", "n_classes", *heads[4:]]
        tables = BUNDLED.values()
        lines = [[getattr(t, a) for a in attributes] for t in tables]
        print_table(heads, lines, dispensable=("source",))
        return
    if name not in BUNDLED:
        raise UsageError(f"no bundled table {name!r}. There are: {', '.join(BUNDLED)}.")
    table = BUNDLED[name]
    for row in table.first_rows(FIRST_ROWS):
        typer.echo(",".join(row))
