"""Class moments as bytes: npz with a version, no pickle."""

from __future__ import annotations

from dataclasses import fields
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from prudent.core.statistics import Statistics

FORMAT_VERSION = 1


def pack(classes: NDArray[Any], statistics: Statistics) -> bytes:
    """Labels and statistics as the bytes of an npz file."""
    text_objects = classes.dtype == object
    if text_objects and not all(isinstance(label, str) for label in classes):
        raise ValueError(
            "labels of dtype object can be stored only if all are strings, "
            f"got {classes.tolist()}."
        )
    file = BytesIO()
    np.savez(
        file,
        allow_pickle=False,
        version=np.array(FORMAT_VERSION),
        classes=classes.astype(str) if text_objects else classes,
        text_objects=np.array(text_objects),
        **statistics.arrays(),
    )
    return file.getvalue()


def unpack(data: bytes) -> tuple[NDArray[Any], Statistics]:
    """Labels and statistics from the bytes that `pack` wrote."""
    try:
        if not data.startswith(b"PK"):  # NumPy would try to unpickle them
            raise BadZipFile("they are no zip file")
        with np.load(BytesIO(data), allow_pickle=False) as file:
            version = int(file["version"])
            if version != FORMAT_VERSION:
                raise ValueError(
                    f"these moments have format version {version}, this release "
                    f"reads version {FORMAT_VERSION}."
                )
            classes = file["classes"]
            if file["text_objects"]:
                classes = classes.astype(object)
            statistics = Statistics(
                **{field.name: file.get(field.name) for field in fields(Statistics)}
            )
    except (BadZipFile, EOFError, KeyError, OSError) as error:
        raise ValueError(
            f"the bytes are not class moments written by `to_bytes`: {error}."
        ) from error
    return classes, statistics
