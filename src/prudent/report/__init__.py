"""The report of a comparison: one HTML file that needs no network."""

from prudent.report.sections import render

__all__ = ["render"]
