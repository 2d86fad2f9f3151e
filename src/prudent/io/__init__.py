"""Tables in: files checked row by row, and streams of row blocks."""

from importlib import import_module
from typing import Any

# name -> module; lazy because the command line must start without NumPy.
_PUBLIC = {
    "Column": "prudent.io.preparation",
    "Preparation": "prudent.io.preparation",
    "Survey": "prudent.io.survey",
    "Table": "prudent.io.table",
    "TableError": "prudent.io.errors",
    "TableSource": "prudent.io.table",
    "TrainingData": "prudent.io.survey",
    "all_rows": "prudent.io.survey",
    "available_memory": "prudent.io.files",
    "iter_batches": "prudent.io.reader",
    "open_table": "prudent.io.reader",
    "read_table": "prudent.io.reader",
    "sample_rows": "prudent.io.survey",
    "survey_table": "prudent.io.survey",
    "training_data": "prudent.io.survey",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'prudent.io' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
