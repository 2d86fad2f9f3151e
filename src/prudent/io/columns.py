"""One column at a time: is it numbers or words, and which?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.io.errors import TableError, counted, shown, thousands
from prudent.io.table import MISSING_WORDS, Table, is_number

__all__ = ["holds_numbers", "indicators", "numbers", "text_column", "words"]

FloatArray = NDArray[np.float64]
FEW_WORDS = 20


def holds_numbers(table: Table, name: str) -> bool:
    """Whether every cell of a column is a number, true or false, or missing."""
    column = table.columns[name]
    if _is_text(column.type):
        spellings = compute.unique(table.text(name)).to_pylist()
        return all(
            word in MISSING_WORDS or is_number(word, table.decimal)
            for word in spellings
        )
    return True


def numbers(table: Table, name: str) -> FloatArray:
    """Return a column of numbers, missing cells as NaN."""
    column = table.columns[name]
    if _is_text(column.type):
        encoded = compute.dictionary_encode(table.text(name)).combine_chunks()
        values = np.array(
            [
                float(word.replace(table.decimal, "."))
                if is_number(word, table.decimal)
                else np.nan
                for word in encoded.dictionary.to_pylist()
            ]
        )
        return values[encoded.indices.to_numpy(zero_copy_only=False)]
    # Not safe: integers beyond 2**53 lose digits rather than stop the reading.
    return np.asarray(compute.cast(column, pa.float64(), safe=False).to_numpy())


def words(table: Table, name: str) -> NDArray[np.str_]:
    """Return a column as text, missing cells as ''."""
    spelled = table.words(name)
    return np.where(np.isin(spelled, MISSING_WORDS), "", spelled)


def indicators(table: Table, name: str, levels: tuple[str, ...]) -> FloatArray:
    """Return one 0/1 column per word of `levels` but the first; missing is NaN.

    Raises
    ------
    TableError
        If the column holds a word that is not among `levels`.
    """
    spelled = words(table, name)
    unknown = ~np.isin(spelled, ("", *levels))
    if unknown.any():
        row = int(np.argmax(unknown))
        raise TableError(
            f"column {shown(name)} holds {shown(spelled[row])} at {table.place(row)}, "
            "a word that training did not see. Correct it or train with such rows."
        )
    block = (spelled[:, None] == np.array(levels[1:])).astype(float)
    block[spelled == ""] = np.nan
    return block


def text_column(table: Table, name: str) -> TableError:
    """Say which cell of a column is not a number, and what to do with the column."""
    spelled = table.text(name).to_pylist()
    present = [word for word in spelled if word not in MISSING_WORDS]
    bad = Counter(word for word in present if not is_number(word, table.decimal))
    first = next(row for row, word in enumerate(spelled) if word in bad)
    count = bad.total()
    distinct = len(set(present))
    if all(is_number(word, ",") for word in bad):
        advice = "use --decimal ,"
    elif distinct <= FEW_WORDS:
        advice = "use --categorical onehot (or drop)"
    elif distinct == len(present):
        advice = f"It looks like an identifier: use --drop {name}"
    else:
        advice = f"use --drop {name} or --categorical drop"
    verb = "is" if count == 1 else "are"
    noun = "a number" if count == 1 else "numbers"
    return TableError(
        f"column {shown(name)} is text: {shown(spelled[first])} at "
        f"{table.place(first)} ({thousands(count)} of {counted(len(present), 'value')} "
        f"{verb} not {noun}). {advice}"
    )


def _is_text(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )
