"""What an audit found: one row for each promise, law and size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from prudent.core.guarantee import Guarantee
from prudent.io.errors import aligned, counted

if TYPE_CHECKING:
    import pyarrow

AuditVerdict = Literal["no violation found", "broken", "nothing to test"]


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """A promise under one law at one size.

    Attributes
    ----------
    law : str
        Name of the law.
    size : int
        Training rows.
    claim : str
        The promise in short; the second one of a fit that differs from another in
        bound or assumptions alone ends in "(2)".
    claims : int
        Draws in which it was made.
    broken : int
        Draws in which the true rate lay beyond the bound.
    allowed : float or None
        Draws in which it may: (1 - confidence) of all draws, 0 without a confidence;
        None for a promise on average, which single models may exceed.
    p_value : float
        Exact p-value of "the promise holds"; 1/e where the draws were stopped early by
        an e-value.
    mean_bound, mean_truth : float
        Mean bound and mean true rate of violations: of misses for a coverage.
    sharpness : float
        `mean_bound` / `mean_truth`: 1 means that the promise gives nothing away.
    refused : int
        Draws that ended in an error, which counts as no promise.
    is_refuted : bool
        Whether the row counts as broken, corrected for all rows (Holm 1979).
    is_stopped : bool
        Whether draws were stopped early.
    """

    law: str
    size: int
    claim: str
    claims: int
    broken: int
    allowed: float | None
    p_value: float
    mean_bound: float
    mean_truth: float
    sharpness: float
    refused: int
    is_refuted: bool
    is_stopped: bool


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A draw whose true rate lies beyond the bound: of the smallest size, the furthest.

    Attributes
    ----------
    law, size, seed : str, int, int
        Where it was drawn.
    claim : Guarantee
        The promise of this model.
    truth : float
        Its true rate of violations: of misses for a coverage.
    line : str
        A line of Python that makes this draw again, and no other. In it `factory`
        stands for what was audited; `claim`, `answer` and `law` stand for a claim, a
        function that answers and a law of your own, where such were given.
    """

    law: str
    size: int
    seed: int
    claim: Guarantee
    truth: float
    line: str

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain types."""
        return {
            "law": self.law,
            "size": self.size,
            "seed": self.seed,
            "claim": str(self.claim),
            "bound": self.claim.bound,
            "truth": self.truth,
            "line": self.line,
        }

    def __str__(self) -> str:
        return (
            f"{self.claim} True rate of violations: {self.truth:.4g}, under "
            f"{self.law!r}, {self.size} rows, seed {self.seed}: {self.line}"
        )


HEADS = (
    *("law", "rows", "claim", "claims", "broken", "allowed", "p"),
    *("mean bound", "mean truth", "sharpness"),
)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What `prudent.audit` found.

    Attributes
    ----------
    verdict : {"no violation found", "broken", "nothing to test"}
        "broken": some promise is refuted at `level`, all rows taken together.
    rows : tuple of AuditRow
        One for each promise, law and size.
    outside : tuple of AuditRow
        Rows of laws outside the assumptions of the promise, which were asked for. They
        say nothing against it.
    worst_case : WorstCase or None
        The smallest failing draw. If nothing is refuted: the smallest draw beyond its
        bound, if any; a promise with confidence, or on average, may have some.
    refusals : mapping of str to int
        Errors in which draws ended, and how many did.
    why_nothing : str
        Why there is nothing to test; "" where there is.
    level, budget, random_state : float, int, int
        As given.
    """

    verdict: AuditVerdict
    rows: tuple[AuditRow, ...]
    outside: tuple[AuditRow, ...]
    worst_case: WorstCase | None
    refusals: Mapping[str, int]
    why_nothing: str
    level: float
    budget: int
    random_state: int

    def frame(self) -> pyarrow.Table:
        """Rows as a table, those outside the assumptions last and marked."""
        import pyarrow

        rows = [asdict(row) | {"is_outside": False} for row in self.rows]
        rows += [asdict(row) | {"is_outside": True} for row in self.outside]
        names = [*(field.name for field in fields(AuditRow)), "is_outside"]
        return pyarrow.table({name: [row[name] for row in rows] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain types, as JSON takes them."""
        worst = self.worst_case
        return {
            "verdict": self.verdict,
            "level": self.level,
            "budget": self.budget,
            "random_state": self.random_state,
            "rows": [_finite(row) for row in self.rows],
            "outside": [_finite(row) for row in self.outside],
            "worst_case": None if worst is None else worst.to_dict(),
            "refusals": dict(self.refusals),
            "why_nothing": self.why_nothing,
        }

    def lines(self) -> list[tuple[str, ...]]:
        """Cells of the table, a line for each row."""
        return [cells_of(row) for row in self.rows]

    @property
    def head(self) -> str:
        """The verdict, and on what it rests."""
        if self.verdict == "nothing to test":
            return f"{self.verdict}: {self.why_nothing}"
        refuted = sum(row.is_refuted for row in self.rows)
        return (
            f"{self.verdict}: {len(self.rows)} rows of at most {self.budget} draws, "
            f"{refuted} refuted (level {self.level:g})"
        )

    def remarks(self) -> list[str]:
        """What stands below the table."""
        remarks = []
        if self.verdict == "broken":
            remarks.append(f"worst case: {self.worst_case}")
        if self.verdict == "no violation found":
            remarks += self._why_none()
        if self.verdict == "nothing to test":
            remarks += [
                f"{counted(n, 'draw')}: {text}" for text, n in self.refusals.items()
            ]
        if self.outside:
            lines = [cells_of(row) for row in self.outside]
            remarks += ["outside its assumptions", *aligned([HEADS, *lines])]
        return remarks

    def _why_none(self) -> list[str]:
        """Why draws beyond their bound, if there are any, contradict nothing."""
        beyond = [row for row in self.rows if row.broken]
        if not beyond:
            return []
        have = "1 row has" if len(beyond) == 1 else f"{len(beyond)} rows have"
        least = min(row.p_value for row in self.rows)
        return [
            f"{have} draws beyond their bound (broken), which contradicts nothing: "
            "a promise with a confidence may be broken in so many draws as stand under "
            "allowed, one on average in single models. A row is refuted (*) if its p "
            f"is small for the smallest of {len(self.rows)}, which are tested at once "
            f"at level {self.level:g} (Holm); the smallest is {least:.2g}."
        ]

    def __str__(self) -> str:
        table = aligned([HEADS, *self.lines()]) if self.rows else []
        return "\n".join([self.head, *table, *self.remarks()])


def _finite(row: AuditRow) -> dict[str, Any]:
    values = asdict(row)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def cells_of(row: AuditRow) -> tuple[str, ...]:
    """Cells of a row under `HEADS`."""
    stopped = " (stopped)" if row.is_stopped else ""
    return (
        *(row.law, str(row.size), row.claim, str(row.claims), str(row.broken)),
        "\N{EN DASH}" if row.allowed is None else f"{row.allowed:.4g}",
        f"{row.p_value:.2g}{stopped}{' *' if row.is_refuted else ''}",
        *(f"{row.mean_bound:.4f}", f"{row.mean_truth:.4f}", f"{row.sharpness:.3g}"),
    )
