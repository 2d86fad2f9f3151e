"""`prudent describe`: the checks of a table, without a fit."""

from __future__ import annotations

from prudent.cli.loading import all_or_sample, drawn_from, look_through, open_data
from prudent.cli.options import Columns, Data, Target, grouped
from prudent.cli.tables import print_table

__all__ = ["describe"]

# Figures of a table beyond memory are those of so many rows, as printed.
SAMPLE = 100_000


@grouped
def describe(data: Data, columns: Columns, target: Target = None) -> None:
    """Check a table as compare would, and print what it holds."""
    import numpy as np

    source, target = open_data(data, target, columns)
    found = look_through(source, target, columns, quiet=True)
    training, _ = all_or_sample(found, SAMPLE, 0)
    X = training.X
    print(f"{data}  {found.n_rows} rows x {X.shape[1]} features")
    if target is not None:
        print_table(
            [f"class ({target})", "rows", "share"],
            [
                [label, count, f"{count / found.n_rows:.1%}"]
                for label, count in sorted(
                    zip(found.labels.tolist(), found.counts.tolist(), strict=True)
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
                *(f"{f(column):.6g}" for f in (np.mean, np.std, np.min, np.max)),
                len(np.unique(column)),
            ]
            for name, column in zip(training.preparation.names, X.T, strict=True)
        ],
    )
    for text in (*found.notes, *([found.treatment] if found.treatment else [])):
        print(f"note: {text}")
