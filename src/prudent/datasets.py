"""Tables that come with the package, for a first try without a download."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

__all__ = ["BUNDLED", "BundledTable"]

_FOLDER = Path(__file__).parent / "bundled"


@dataclass(frozen=True, slots=True)
class BundledTable:
    """A table inside the package.

    Attributes
    ----------
    name : str
        Name that the command line takes in place of a file.
    target : str
        Column with the class labels.
    n_rows, n_features, n_classes : int
        Sizes.
    licence : str
        Terms of use.
    source : str
        Who made it and where it was published.
    """

    name: str
    target: str
    n_rows: int
    n_features: int
    n_classes: int
    licence: str
    source: str

    @property
    def path(self) -> Path:
        """The gzip-compressed CSV file."""
        return _FOLDER / f"{self.name}.csv.gz"

    def first_rows(self, count: int) -> list[list[str]]:
        """Return the header and the first `count` rows as text."""
        with gzip.open(self.path, "rt", encoding="utf-8", newline="") as lines:
            return list(islice(csv.reader(lines), count + 1))


_UCI = "UCI Machine Learning Repository"

BUNDLED = {
    table.name: table
    for table in (
        BundledTable(
            "breast_cancer",
            target="diagnosis",
            n_rows=569,
            n_features=30,
            n_classes=2,
            licence="CC BY 4.0",
            source=f"Wolberg, Mangasarian, Street & Street 1993, {_UCI}",
        ),
        BundledTable(
            "digits",
            target="digit",
            n_rows=1797,
            n_features=64,
            n_classes=10,
            licence="CC BY 4.0",
            source=f"Alpaydin & Kaynak 1998, {_UCI}",
        ),
        BundledTable(
            "iris",
            target="species",
            n_rows=150,
            n_features=4,
            n_classes=3,
            licence="CC BY 4.0",
            source=f"Fisher 1936, {_UCI}",
        ),
        BundledTable(
            "wine",
            target="cultivar",
            n_rows=178,
            n_features=13,
            n_classes=3,
            licence="CC BY 4.0",
            source=f"Aeberhard & Forina 1991, {_UCI}",
        ),
    )
}
