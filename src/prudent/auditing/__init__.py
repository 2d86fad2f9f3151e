"""Anybody's promise held to account on laws whose truth is known."""

from prudent.auditing.laws import STANDARD, Law
from prudent.auditing.result import Audit, AuditRow, WorstCase

__all__ = ["STANDARD", "Audit", "AuditRow", "Law", "WorstCase"]
