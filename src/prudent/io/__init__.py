"""Tables in: files checked row by row, and streams of row blocks."""

from importlib import import_module
from typing import Any

# name -> module; lazy because the command line must start without NumPy.
_PUBLIC = {
    "Column": "prudent.io.preparation",
    "Preparation": "prudent.io.preparation",
    "Table": "prudent.io.table",
    "TableError": "prudent.io.errors",
    "TrainingData": "prudent.io.preparation",
    "iter_batches": "prudent.io.batches",
    "read_table": "prudent.io.reader",
    "training_data": "prudent.io.preparation",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'prudent.io' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
