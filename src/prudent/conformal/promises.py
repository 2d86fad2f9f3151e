"""What sets and alarms by ranks among the training rows promise."""

from __future__ import annotations

from typing import Any

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee, Quantity
from prudent.rules.rule import ON_AVERAGE, Terms

FULL, SPLIT, CROSS = "full", "split", "cross"
CROSS_SOURCE = "Vovk 2015; Barber et al. 2021"


def of_training_rows(
    quantity: Quantity,
    rate: float,
    assumption: Assumption,
    *also: Assumption,
    n_rows: int,
    rank: int | None,
    scope: Any = None,
    crossed: bool = False,
) -> Guarantee:
    """The promise of a rank among training rows; `rank` is None with smoothed ties."""
    evidence = {"training rows": float(n_rows)}
    if rank is not None:
        evidence["rank"] = float(rank)
    return Terms().promise(
        quantity,
        rate,
        assumption,
        *also,
        scope=scope,
        evidence=evidence,
        source=CROSS_SOURCE if crossed else ON_AVERAGE,
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
