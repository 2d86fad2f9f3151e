"""The papers' data sets, read from the folder named by PRUDENT_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def folder() -> Path:
    """Folder of the data sets: PRUDENT_DATA, else ../shared/data."""
    default = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    return Path(os.environ.get("PRUDENT_DATA", default))


def load_frame(name: str) -> pd.DataFrame:
    """Data set `name` as stored: features first, last column "target"."""
    for suffix in (".csv", ".csv.gz"):
        path = folder() / f"{name}{suffix}"
        if path.exists():
            return pd.read_csv(path)
    raise FileNotFoundError(
        f"data set {name!r} is not in {folder()}; set PRUDENT_DATA to its folder."
    )


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.object_] | NDArray]:
    """Features (float64, NaN where a cell is empty) and labels of a data set."""
    frame = load_frame(name)
    features = frame.drop(columns="target").to_numpy(dtype=np.float64)
    return features, frame["target"].to_numpy()
