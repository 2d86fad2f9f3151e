"""The main job: hold every method's promise against data it has not seen."""

from prudent.comparison.protocol import compare
from prudent.comparison.result import Comparison, ComparisonInterrupted

__all__ = ["Comparison", "ComparisonInterrupted", "compare"]
