"""Exact limits of a probability within cells of a score.

Order statistics of m held-out scores cut the line into B bins. Which values the edges
take is an event about how many rows lie in each cell; given the edges and the counts,
the rows of a cell are independent draws of it, and cells are independent. So with J
cells that hold rows, exact limits of Clopper and Pearson at 1 - confidence^(1/J) each
hold in all cells at once with `confidence` (the argument of Gupta and Ramdas 2021, with
exact limits for theirs of Hoeffding).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limits
from prudent.core.guarantee import Guarantee, Sense
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.rule import Terms
from prudent.rules.scores import EXACT, Rounding

BINS = (
    "C. Gupta and A. Ramdas (2021), distribution-free calibration by bins, with exact "
    "limits (prudent, user guide)"
)
#: Bisections of a factor in logarithms; more do not change a double.
STEPS = 64


class ProbabilityBins:
    """Limits of the probability of one class by the score of a row.

    Cells are the open intervals between the edges and the edges themselves, in turn:
    cell 2 i lies below edge i, cell 2 i + 1 is edge i.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of held-out rows; each bin has about as many of them.
    positive : ndarray of bool, shape (n,)
        Which rows are of the class.
    n_bins : int
    confidence : float
        That all limits are true at once.
    rounding : Rounding, default=EXACT
        How far a score may be from an edge that it is on.
    possible : ndarray of bool, shape (n,), default=None
        Rows that count in the upper limits, those of the class among them: 1 less these
        are lower limits of the class of all other rows. None: those of the class.

    Attributes
    ----------
    edges : ndarray of shape (n_edges,)
        Rising, so far apart that no score is on two of them.
    n_rows, n_positive, n_possible : ndarray of int, shape (2 n_edges + 1,)
        Held-out rows of each cell, those of the class, and those `possible`. An edge
        that is the score of one row alone does not count it.
    lower, upper : ndarray of shape (2 n_edges + 1,)
        Limits of the probability; 0 and 1 in a cell without rows.
    """

    def __init__(
        self,
        scores: FloatArray,
        positive: BoolArray,
        n_bins: int,
        confidence: float,
        rounding: Rounding = EXACT,
        possible: BoolArray | None = None,
    ) -> None:
        self.rounding = rounding
        possible = positive if possible is None else possible
        ranks = np.ceil(np.arange(1, n_bins) * (len(scores) + 1) / n_bins)
        places = np.clip(ranks.astype(np.intp), 1, len(scores)) - 1
        order = np.argsort(scores)
        rising = scores[order]
        self.edges = self._apart(np.unique(rising[places]))
        first = np.searchsorted(rising, self.edges, side="left")
        alone = np.searchsorted(rising, self.edges, side="right") == first + 1
        counted = np.ones(len(scores), dtype=bool)
        counted[order[first[alone]]] = False
        n_cells = 2 * len(self.edges) + 1
        cell = self.cells(scores)
        self.n_rows = np.bincount(cell[counted], minlength=n_cells)
        self.n_positive = np.bincount(cell[counted & positive], minlength=n_cells)
        self.n_possible = np.bincount(cell[counted & possible], minlength=n_cells)
        n_filled = max(int(np.count_nonzero(self.n_rows)), 1)
        tail = -np.expm1(np.log(confidence) / n_filled) / 2
        others = self.n_rows - self.n_positive
        self.lower = 1 - upper_limits(others, self.n_rows, level=tail)
        self.upper = upper_limits(self.n_possible, self.n_rows, level=tail)

    def _apart(self, edges: FloatArray) -> FloatArray:
        """Rising edges without those that a score could be on beside the one before."""
        kept: list[float] = []
        for edge in edges.tolist():
            # A score between the two may be equal to either: twice, to have room.
            low = self.rounding.lowered(self.rounding.lowered(edge))
            if not kept or low > self.rounding.raised(self.rounding.raised(kept[-1])):
                kept.append(edge)
        return np.array(kept)

    def cells(self, scores: FloatArray) -> IntArray:
        """Cell of each score (n,): twice the edges below, and one more on an edge."""
        low, high = self.rounding.lowered(scores), self.rounding.raised(scores)
        below = np.searchsorted(self.edges, low, side="left")
        cells: IntArray = below + np.searchsorted(self.edges, high, side="right")
        return cells

    @property
    def frequency(self) -> FloatArray:
        """Share of the class in each cell, (w + 1/2) / (n + 1)."""
        share: FloatArray = (self.n_positive + 0.5) / (self.n_rows + 1)
        return share

    def ends(self, cell: int) -> tuple[float, float]:
        """Scores that a cell lies between; of an edge twice its own."""
        if cell % 2:
            return (float(self.edges[cell // 2]),) * 2
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        return float(ends[cell // 2]), float(ends[cell // 2 + 1])

    def name(self, cell: int) -> str:
        """A cell in words, as the subgroup of its promises."""
        low, high = self.ends(cell)
        if cell % 2:
            return f"score {low:.6g}"
        return f"score in ({low:.6g}, {high:.6g})"

    def promises(self, scope: Any, terms: Terms) -> tuple[Guarantee, ...]:
        """Two for each cell that holds rows: the lower limit and the upper one."""
        sides: tuple[tuple[Sense, FloatArray, IntArray], ...] = (
            (">=", self.lower, self.n_positive),
            ("<=", self.upper, self.n_possible),
        )
        filled = np.flatnonzero(self.n_rows).tolist()
        return tuple(
            terms.promise(
                "probability",
                float(limits[cell]),
                Assumption.INDEPENDENT,
                sense=sense,
                scope=scope,
                subgroup=self.name(cell),
                evidence={
                    "calibration rows": float(self.n_rows[cell]),
                    "positive": float(counts[cell]),
                    "claims": float(len(filled)),
                },
                source=BINS,
            )
            for cell in filled
            for sense, limits, counts in sides
        )


def within_limits(
    numbers: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Probabilities (n, K) that sum to one, in proportion to numbers, within limits.

    clip(factor * numbers, lower, upper) with the factor of each row that gives the sum
    1. Where even the upper limits sum to less, or the lower ones to more, these, in
    proportion.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(numbers)
    low, high = np.full((2, len(numbers), 1), 1500.0)
    low = -low
    for _ in range(STEPS):
        middle = (low + high) / 2
        with np.errstate(over="ignore", under="ignore"):
            total = np.clip(np.exp(logs + middle), lower, upper).sum(axis=1)
        below = (total < 1)[:, None]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    with np.errstate(over="ignore", under="ignore"):
        quoted = np.clip(np.exp(logs + high), lower, upper)
    # Rounding, and numbers of 0, which no factor raises, leave a rest.
    rest = 1 - quoted.sum(axis=1, keepdims=True)
    room = np.where(rest > 0, upper - quoted, quoted - lower)
    space = room.sum(axis=1, keepdims=True)
    shares = np.divide(room, space, out=np.zeros_like(room), where=space > 0)
    quoted = quoted + np.sign(rest) * np.minimum(np.abs(rest), space) * shares
    normalised: FloatArray = quoted / quoted.sum(axis=1, keepdims=True)
    return normalised
