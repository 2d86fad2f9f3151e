"""A one-class detector held against rows it has not seen, normal ones and others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from prudent.core.binomial import high_probability_rank
from prudent.core.checks import PromiseCheck, check_promises
from prudent.estimator_tools import held_against, scored_alarms
from prudent.estimator_tools.labelled_rows import in_front

# Probability with which a rate of one detector lies between limits.
OWN = 0.9


def allow_confidence(n_rows: int, rate: float, confidence: float) -> bool:
    """Whether so many rows allow a rate to be promised of the detector itself."""
    return high_probability_rank(n_rows // 2, rate, confidence) > 0


def build_detector(
    name: str,
    false_alarm_rate: float,
    *,
    n_rows: int,
    confidence: float | None = None,
    preparation: Any = None,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Any:
    """A detector, not fitted, that holds out enough rows for a cut at all.

    A rate r needs 1/r - 1 held-out rows; up to half of the normal rows go there. With
    `confidence` it promises for itself, not on average, where the rows allow.
    """
    from prudent.adversarial import LowDensityRejector
    from prudent.conformal import ConformalDetector
    from prudent.minimax import MinimaxOutlierDetector

    fewest = 1 / false_alarm_rate - 1
    certain = confidence is not None and allow_confidence(
        n_rows, false_alarm_rate, confidence
    )
    if confidence is not None and certain:
        fewest = math.log(1 - confidence) / math.log1p(-false_alarm_rate) + 1
    rate: dict[str, Any] = {"false_alarm_rate": false_alarm_rate}
    settings: dict[str, Any] = {
        **rate,
        "calibration_size": min(0.5, max(0.3, fewest / n_rows)),
        "random_state": random_state,
    }
    if certain:
        settings["confidence"] = confidence
    detector: Any = {
        "low-density": LowDensityRejector,
        "minimax": MinimaxOutlierDetector,
        "conformal": ConformalDetector,
    }[name]
    known = detector().get_params()
    given = dict(parameters or {})
    if preparation is None:
        if certain and "method" in known:
            settings["method"] = "split"
        return detector(**settings).set_params(**given)
    # The wrapper holds rows out: nothing is learned from them, not what fills gaps.
    own: dict[str, Any] = {"random_state": random_state}
    if "threshold" in known:
        own = {"threshold": "distribution_free"}
    inner = detector(**rate, **own).set_params(**given)
    return ConformalDetector(in_front(preparation, inner), method="split", **settings)


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """What a detector flags of n rows, and how it fared on rows not fitted on."""

    detector: Any  # fitted on all normal rows
    normal: NDArray[np.bool_]  # (n,): rows of the class that was learned
    score: NDArray[np.float64]  # (n,): its `decision_function`, >= 0 is normal
    promises: tuple[PromiseCheck, ...]  # of the folds, against what was measured
    # Share of the other rows, of which nothing was learned, that the detector flags,
    # and the shares by the detectors of the folds; None without other rows.
    detected: float | None
    detected_by_folds: tuple[float, ...]

    @property
    def detected_range(self) -> tuple[float, float]:
        """Least and largest share detected: by the detector, or by one of the folds."""
        assert self.detected is not None
        shares = (self.detected, *self.detected_by_folds)
        return min(shares), max(shares)

    @property
    def own_rates(self) -> tuple[float, float] | None:
        """Limits between which the false-alarm rate of the detector itself lies.

        With probability `OWN`, over the draw of the m rows of which the k-th strangest
        is the cut: the rate is Beta(k, m + 1 - k), less where scores tie. None where
        no rows were held out for a cut.
        """
        for promise in self.detector.guarantees_:
            known = promise.evidence
            if {"rank", "calibration rows"} <= known.keys() and known["rank"]:
                law = known["rank"], known["calibration rows"] + 1 - known["rank"]
                low, high = betaincinv(*law, [(1 - OWN) / 2, (1 + OWN) / 2])
                return float(low), float(high)
        return None


def detect(
    detector: Any,
    X: Any,
    normal: NDArray[np.bool_],
    *,
    cv: int = 5,
    random_state: int = 0,
) -> Detection:
    """Fit a detector on the normal rows and hold its promise against held-out ones.

    `X` are rows of any table that the detector takes.
    """
    inside, others = _safe_indexing(X, normal), _safe_indexing(X, ~normal)
    splitter = KFold(cv, shuffle=True, random_state=random_state)
    counted, flagged = [], []
    for train, test in splitter.split(inside):
        fitted = clone(detector).fit(_safe_indexing(inside, train))
        ordinary = np.ones(len(test), dtype=np.intp)
        promises = fitted.guarantees_
        tested = _safe_indexing(inside, test)
        counted.append([*held_against(fitted, promises, tested, ordinary)])
        if len(others):
            flagged.append(float(np.mean(fitted.predict(others) == -1)))
    fitted = clone(detector).fit(inside)
    alarms, score = scored_alarms(fitted, X)
    detected = float(alarms[~normal].mean()) if len(others) else None
    return Detection(
        detector=fitted,
        normal=normal,
        score=score,
        promises=check_promises(counted),
        detected=detected,
        detected_by_folds=tuple(flagged),
    )
