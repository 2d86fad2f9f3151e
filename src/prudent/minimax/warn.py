"""What a user of a minimax fit must hear about its planes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from prudent.core.validation import shown
from prudent.exceptions import PrudentWarning
from prudent.minimax.multiclass import Classes, DuelSet
from prudent.minimax.solver import ACCEPTED_GAP

__all__ = ["warn_about"]


def warn_about(
    estimator: Any, classes: Classes, duels: DuelSet, accuracy: float
) -> None:
    """Warn of planes that promise less than they seem to."""
    name = type(estimator).__name__
    for message in _messages(classes, duels):
        warnings.warn(f"{name}: {message}", PrudentWarning, stacklevel=2)
    trivial = float(classes.prior.max())
    if estimator.objective == "mean" and trivial > accuracy:
        warnings.warn(
            f"{name}: always predicting one class has the worst-case accuracy "
            f"{trivial:.3g}, the plane {accuracy:.3g}.",
            PrudentWarning,
            stacklevel=2,
        )
    uncertain = [
        duel
        for duel in duels.duels
        if not duel.gap <= ACCEPTED_GAP * max(map(abs, duel.class_kappa))
    ]
    if uncertain:
        worst = max(uncertain, key=lambda duel: duel.gap)
        warnings.warn(
            f"{name}: kappa {worst.kappa:.6g} is certified to {worst.gap:.1e} only, "
            f"asked was {ACCEPTED_GAP:g} of it, because the covariances are close to "
            "singular: set `covariance_radius` > 0 or shrink the `covariance`.",
            ConvergenceWarning,
            stacklevel=2,
        )


def _messages(classes: Classes, duels: DuelSet) -> Iterator[str]:
    if any(math.isinf(duel.kappa) for duel in duels.duels):
        yield (
            "two classes are told apart by a direction in which neither varies, so "
            "kappa is infinite; with estimated moments this proves nothing. Set "
            "`covariance_radius` > 0 or shrink the `covariance`."
        )
    floored = [
        pair for pair, duel in zip(duels.pairs, duels.duels, strict=True) if duel.floor
    ]
    if floored:
        k, l = floored[0]
        more = f" and of {len(floored) - 1} more pairs" if len(floored) > 1 else ""
        largest = max(duel.floor for duel in duels.duels)
        yield (
            f"the covariances of {shown(classes.label[k])} and "
            f"{shown(classes.label[l])}{more} are so nearly singular that rounding "
            f"would decide the plane; {largest:g} of each feature's variance was added "
            "to both (`covariance_floor_`). Set `covariance_radius` > 0 or shrink the "
            "`covariance`."
        )
    for (k, l), duel in zip(duels.pairs, duels.duels, strict=True):
        if not duel.normal.any():
            yield (
                f"the class means of {shown(classes.label[k])} and "
                f"{shown(classes.label[l])} coincide; of the two, the one of larger "
                "prior is always predicted."
            )
    least = min(duel.kappa for duel in duels.duels)
    if least < 0:
        yield (
            f"the uncertainty sets of two classes overlap (kappa {least:.3g}), so no "
            "accuracy is promised: reduce the radii or collect more rows."
        )
