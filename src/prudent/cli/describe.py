"""`prudent describe`: the checks of a table, without a fit."""

from __future__ import annotations

from prudent.cli.loading import Reading, prepare, read
from prudent.cli.options import (
    Categorical,
    CategoricalOption,
    Data,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Features,
    Missing,
    MissingOption,
    NoHeader,
    Target,
)
from prudent.cli.tables import print_table

__all__ = ["describe"]


def describe(
    data: Data,
    target: Target = None,
    features: Features = None,
    drop: Drop = None,
    missing: MissingOption = Missing.ERROR,
    categorical: CategoricalOption = Categorical.ERROR,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    no_header: NoHeader = False,
) -> None:
    """Check a table as compare would, and print what it holds."""
    import numpy as np

    reading = Reading(delimiter, encoding, decimal, no_header)
    table, target = read(data, target, reading)
    training = prepare(
        table,
        target,
        features=features,
        drop=drop,
        missing=missing,
        categorical=categorical,
    )
    X = training.X
    print(f"{data}  {X.shape[0]} rows x {X.shape[1]} features")
    if training.y is not None:
        labels, counts = np.unique(training.y, return_counts=True)
        shares = counts / counts.sum()
        print_table(
            [f"class ({target})", "rows", "share"],
            [
                [label, count, f"{share:.1%}"]
                for label, count, share in zip(labels, counts, shares, strict=True)
            ],
        )
    print_table(
        ["feature", "mean", "standard deviation", "smallest", "largest", "distinct"],
        [
            [
                name,
                *(f"{f(column):.6g}" for f in (np.mean, np.std, np.min, np.max)),
                len(np.unique(column)),
            ]
            for name, column in zip(
                training.preparation.feature_names, X.T, strict=True
            )
        ],
    )
    for text in training.notes:
        print(f"note: {text}")
