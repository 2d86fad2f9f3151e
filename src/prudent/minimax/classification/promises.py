"""What the planes between classes promise, and what a user must hear of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import CovarianceRule
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.minimax.assumptions import Origin, known_moments
from prudent.minimax.classification.duels import Duel, constant_classes
from prudent.minimax.curve import ACCEPTED_GAP

NORMAL_TAIL = "normal tail beyond kappa, radii of normal samples (prudent, user guide)"


def class_guarantees(
    duels: tuple[Duel, ...],
    labels: NDArray[Any],
    errors: FloatArray,
    *,
    proved: bool,
    origin: Origin,
    covariance: CovarianceRule,
    with_radii: bool,
    confidence: float | None,
    trivial: float | None,
) -> tuple[Guarantee, ...]:
    """One promise for each class, if `proved`: its error rate is at most `errors[k]`.

    `confidence` None: no probability over the training rows. `trivial` is the
    worst-case accuracy of always predicting one class, where that is of interest.
    """
    if not proved:
        return ()
    estimated = origin != "given"
    # Given covariances are smaller than those with a floor, for which it holds.
    floor = max(duel.floor for duel in duels) if estimated else 0.0
    sure = origin == "gaussian" and confidence is not None
    known, numbers = known_moments(
        origin, covariance, with_radii=with_radii, floor=floor
    )
    if sure:
        known, numbers = (Assumption.NORMALITY,), {}
    theorem = f"Lanckriet et al. 2002, Theorem {3 if with_radii else 2}"
    evidence = {
        "kappa": min(duel.kappa for duel in duels),
        "duality gap": max(duel.gap for duel in duels),
        "classes": len(labels),
        **numbers,
    }
    if trivial is not None:
        evidence["trivial_bound"] = trivial
    # An estimated variance of zero proves nothing.
    unproved = constant_classes(duels, len(labels)) & estimated
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(errors[k]),
            sense="<=",
            confidence=confidence if sure else None,
            assumptions=known,
            scope=labels[k : k + 1].tolist()[0],
            evidence=evidence,
            source=NORMAL_TAIL if sure else theorem,
        )
        for k in np.flatnonzero(~unproved)
    )


def linear_promises(labels: NDArray[Any], errors: FloatArray) -> tuple[Guarantee, ...]:
    """One promise for each class of a linear classifier that somebody has fitted."""
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(error),
            sense="<=",
            scope=label,
            assumptions=(Assumption.MOMENTS_GIVEN_OR_PLUG_IN,),
            evidence={"classes": len(labels)},
            source="Lanckriet et al. 2002, Lemma 1",
        )
        for label, error in zip(labels.tolist(), errors, strict=True)
    )


def weak_promises(
    labels: NDArray[Any],
    duels: tuple[Duel, ...],
    trivial: float | None,
    accuracy: float,
) -> Iterator[str]:
    """Why planes promise less than they seem to."""
    if any(math.isinf(duel.kappa) for duel in duels):
        yield (
            "two classes are told apart by a direction in which neither varies, so "
            "kappa is infinite; with estimated moments this proves nothing. Set "
            "`covariance_radius` > 0 or shrink the `covariance`."
        )
    floored = [duel.pair for duel in duels if duel.floor]
    if floored:
        k, l = floored[0]
        more = f" and of {len(floored) - 1} more pairs" if len(floored) > 1 else ""
        largest = max(duel.floor for duel in duels)
        yield (
            f"the covariances of {shown(labels[k])} and {shown(labels[l])}{more} are "
            "so nearly singular that rounding would decide the plane; "
            f"{largest:g} of each feature's variance was added to both "
            "(`covariance_floor_`). Set `covariance_radius` > 0 or shrink the "
            "`covariance`."
        )
    for duel in duels:
        if not duel.normal.any():
            k, l = duel.pair
            yield (
                f"the class means of {shown(labels[k])} and {shown(labels[l])} "
                "coincide; of the two, the one of larger prior is always predicted."
            )
    least = min(duel.kappa for duel in duels)
    if least < 0:
        yield (
            f"the uncertainty sets of two classes overlap (kappa {least:.3g}), so no "
            "accuracy is promised: reduce the radii or collect more rows."
        )
    if trivial is not None and trivial > accuracy:
        yield (
            "always predicting one class has the worst-case accuracy "
            f"{trivial:.3g}, the plane {accuracy:.3g}."
        )


def open_gap(duels: tuple[Duel, ...]) -> str | None:
    """The plane whose optimum is not certified, if there is one."""
    uncertain = [
        duel
        for duel in duels
        if not duel.gap <= ACCEPTED_GAP * max(map(abs, duel.class_kappa))
    ]
    if not uncertain:
        return None
    worst = max(uncertain, key=lambda duel: duel.gap)
    return (
        f"kappa {worst.kappa:.6g} is certified to {worst.gap:.1e} only, asked was "
        f"{ACCEPTED_GAP:g} of it, because the covariances are close to singular: set "
        "`covariance_radius` > 0 or shrink the `covariance`."
    )
