"""What conformal sets and alarms promise, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from prudent.conformal.ranks import Kinds
from prudent.core.assumptions import Assumption
from prudent.core.guarantee import AverageOver, Guarantee
from prudent.core.types import IntArray

FULL, SPLIT, CROSS = "full", "split", "cross"
SOURCES = {
    FULL: "Vovk, Gammerman and Shafer 2005, chapter 2",
    SPLIT: "Vovk, Gammerman and Shafer 2005, chapter 2",
    CROSS: "Vovk 2015; Barber et al. 2021",
}
HIGH_PROBABILITY_SOURCE = "Vovk 2012"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How rows are ranked, as far as promises depend on it."""

    method: str  # {"full", "split", "cross"}
    rate: float  # miss rate, or false-alarm rate, asked for
    smoothed: bool = False  # whether ties count by a coin
    # for a promise given the fit and the calibration rows
    confidence: float | None = None
    # whether nothing was fitted: the promise averages over calibration rows
    fit_is_given: bool = False
    by_groups: bool = False  # whether one random row of each group ranks
    n_folds: int = 0  # for cross

    def rate_bound(self, n: int, rank: int, *, equal_folds: bool = True) -> float:
        """Largest rate at which new rows are among the `rank` strangest."""
        if self.method == CROSS:
            return cross_bound(n, self.n_folds, rank, equal_folds=equal_folds)
        if self.smoothed or self.confidence is not None:
            return self.rate
        return rank / (n + 1)

    def evidence(self, n: int, rank: int) -> dict[str, float]:
        """Rows that rank and, unless ties are smoothed, the rank of the cut."""
        rows = "calibration rows" if self.method == SPLIT else "training rows"
        found = {rows: float(n)}
        return found if self.smoothed else {**found, "rank": float(rank)}

    @property
    def average_over(self) -> AverageOver | None:
        """What the promised rate is averaged over."""
        if self.confidence is not None:
            return None
        return "calibration rows" if self.fit_is_given else "training samples"

    def assumptions(self, scope: str = "") -> tuple[Assumption, ...]:
        """What is assumed of rows: `scope` is "", "_CLASS", "_GROUP" or "_NORMAL"."""
        if self.by_groups:
            rows = Assumption.GROUPS
        elif self.confidence is not None:
            rows = Assumption.INDEPENDENT
        else:
            of_training = "" if self.method == SPLIT else "TRAINING_"
            rows = Assumption[f"{of_training}EXCHANGEABLE{scope}"]
        return (rows, Assumption.UNSEEN) if self.fit_is_given else (rows,)

    @property
    def source(self) -> str:
        """Where the theorem stands."""
        if self.confidence is not None:
            return HIGH_PROBABILITY_SOURCE
        return SOURCES[self.method]


def coverages(
    way: Way,
    kinds: Kinds,
    ranks: IntArray,
    alone: IntArray,
    classes: NDArray[Any] | None,
) -> tuple[Guarantee, ...]:
    """Coverage of the sets, over all rows, in each class or in each group.

    Notes
    -----
    A row of a label without training rows is left out, which the ranks count as one
    of the promised misses if it is among the strangest. If not, the promise assumes
    that there is no such row.
    """
    assumptions, scopes = way.assumptions(), [None]
    if classes is not None:
        assumptions, scopes = way.assumptions("_CLASS"), classes.tolist()
    elif kinds.labels is not None:
        assumptions, scopes = way.assumptions("_GROUP"), kinds.labels.tolist()
    promises = []
    for kind, scope in enumerate(scopes):
        n, rank = int(kinds.sizes[kind]), int(ranks[kind])
        counted = 1 + alone[kind] <= rank and classes is None and way.method != CROSS
        bound = way.rate_bound(n, rank, equal_folds=kinds.labels is None)
        promises.append(
            Guarantee(
                quantity="coverage",
                bound=1 - bound,
                sense=">=",
                confidence=way.confidence,
                average_over=way.average_over,
                assumptions=(
                    assumptions if counted else (*assumptions, Assumption.KNOWN_LABEL)
                ),
                scope=scope,
                unit="group" if way.by_groups else "row",
                evidence=way.evidence(n, rank),
                source=way.source,
            )
        )
    return tuple(promises)


def false_alarms(way: Way, n: int, rank: int) -> Guarantee:
    """False-alarm rate of alarms at the `rank` strangest of `n` + 1 rows."""
    return Guarantee(
        quantity="false alarm rate",
        bound=way.rate_bound(n, rank),
        sense="<=",
        confidence=way.confidence,
        average_over=way.average_over,
        assumptions=way.assumptions("_NORMAL"),
        unit="group" if way.by_groups else "row",
        evidence=way.evidence(n, rank),
        source=way.source,
    )


def cross_bound(n: int, n_folds: int, rank: int, *, equal_folds: bool = True) -> float:
    """Largest miss rate of cross-conformal sets that exclude the `rank` strangest.

    Of `n` ranking rows in `n_folds` folds, a label is excluded if its p-value is at
    most r / (n + 1), r = `rank`.

    Notes
    -----
    In general 2 (r + K - 1) / (n + K): the p-value is a weighted mean of those of the
    folds, each valid, less a constant, and a mean M of valid p-values has
    P(M <= t) <= 2 t. For folds of m rows each (2 r + m - 2) / (n + m): add m - 1
    fictitious rows to that of the new row; in the tournament of all n + m rows at most
    m + 2 r - 2 can beat all but r - 1 of the rows outside their folds.

    Examples
    --------
    >>> from prudent.conformal.promises import cross_bound
    >>> [round(cross_bound(200, k, 20), 4) for k in (10, 5)]
    [0.2636, 0.2341]
    """
    if rank <= 0:
        return 0.0
    bounds = [1.0, 2 * (rank + n_folds - 1) / (n + n_folds)]
    if equal_folds and n > 0 and n % n_folds == 0:
        bounds.append((2 * rank + n // n_folds - 2) / (n + n // n_folds))
    return min(bounds)
