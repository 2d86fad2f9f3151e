"""The main job: every method keeps the promise asked for, or says that it cannot."""

from prudent.comparison.protocol import compare
from prudent.comparison.result import Comparison, ComparisonInterrupted

__all__ = ["Comparison", "ComparisonInterrupted", "compare"]
