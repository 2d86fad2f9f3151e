"""Options that several commands share, defined once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Categorical",
    "CategoricalOption",
    "Data",
    "Decimal",
    "Delimiter",
    "Drop",
    "Encoding",
    "FalseAlarm",
    "Features",
    "Missing",
    "MissingOption",
    "NoHeader",
    "Quiet",
    "Report",
    "Seed",
    "Target",
    "names",
]


class Missing(StrEnum):
    """What to do with missing cells."""

    ERROR = "error"
    DROP_ROWS = "drop-rows"
    MEAN = "mean"


class Categorical(StrEnum):
    """What to do with text columns."""

    ERROR = "error"
    ONEHOT = "onehot"
    DROP = "drop"


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .tsv, .txt (also .gz) or .parquet file, a folder of parquet, "
        "- for CSV on standard input, or a bundled name (see prudent datasets).",
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with the class labels.")
]
Features = Annotated[
    str | None, typer.Option(metavar="COL,..", help="Use these columns only.")
]
Drop = Annotated[
    str | None, typer.Option(metavar="COL,..", help="Leave these columns out.")
]
MissingOption = Annotated[
    Missing, typer.Option("--missing", help="What to do with missing cells.")
]
CategoricalOption = Annotated[
    Categorical, typer.Option("--categorical", help="What to do with text columns.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="One character; sniffed among , ; tab and |.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of the file, such as latin-1.")
]
Decimal = Annotated[str, typer.Option(help="Decimal mark.")]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line holds data, not names.")
]
FalseAlarm = Annotated[
    float,
    typer.Option(
        "--false-alarm",
        min=0,
        max=1,
        help="Share of ordinary rows that may be rejected.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print results and errors only.")]
Report = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write an HTML report here.")
]


def names(listed: str | None) -> list[str]:
    """Split a comma-separated option.

    Examples
    --------
    >>> names("age, sex"), names(None)
    (['age', 'sex'], [])
    """
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
