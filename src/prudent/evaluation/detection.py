"""A one-class detector held against rows it has not seen, normal ones and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from prudent.evaluation.promises import check_promises
from prudent.evaluation.records import PromiseCheck
from prudent.evaluation.tally import Tally


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """What a detector flags, and how it fared on rows it was not fitted on.

    Attributes
    ----------
    detector : outlier detector
        Fitted on all normal rows.
    normal : ndarray of bool, shape (n,)
        Rows of the class that was learned.
    score : ndarray of shape (n,)
        Its `decision_function`: >= 0 is normal.
    promises : tuple of PromiseCheck
        False alarms promised, averaged over the folds, against those measured.
    false_alarms : int
        Normal rows flagged out of fold.
    detected : float or None
        Share of the other rows flagged, averaged over the folds; None without any.
    """

    detector: Any
    normal: NDArray[np.bool_]
    score: NDArray[np.float64]
    promises: tuple[PromiseCheck, ...]
    false_alarms: int
    detected: float | None


def detect(
    detector: Any,
    X: NDArray[Any],
    normal: NDArray[np.bool_],
    *,
    cv: int = 5,
    random_state: int = 0,
) -> Detection:
    """Fit a detector on the normal rows and hold its promise against held-out ones.

    Parameters
    ----------
    detector : outlier detector
        Not fitted; cloned for each fold.
    X : ndarray of shape (n, d)
        Rows.
    normal : ndarray of bool, shape (n,)
        Rows of the class to learn; at least `cv` of them.
    cv : int, default=5
        Folds of the normal rows, shuffled.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    Detection
    """
    inside, others = X[normal], X[~normal]
    splitter = KFold(cv, shuffle=True, random_state=random_state)
    guarantees, tallies, found = [], [], []
    for train, test in splitter.split(inside):
        fitted = clone(detector).fit(inside[train])
        tallies.append(_tally(fitted.predict(inside[test]) == 1))
        guarantees.append(fitted.guarantees_)
        if len(others):
            found.append(float(np.mean(fitted.predict(others) == -1)))
    fitted = clone(detector).fit(inside)
    return Detection(
        detector=fitted,
        normal=normal,
        score=fitted.decision_function(X),
        promises=check_promises(guarantees, tallies, np.array([0])),
        false_alarms=int(Tally.total(tallies).missed.sum()),
        detected=float(np.mean(found)) if found else None,
    )


def _tally(accepted: NDArray[np.bool_]) -> Tally:
    """Count normal rows as a class of their own, whose set is empty on an alarm."""
    codes = np.zeros(len(accepted), dtype=np.intp)
    return Tally.count(codes, codes, accepted[:, None], 1)
