"""Planes between every two classes, and what they promise together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError
from prudent.minimax.curve import Balance
from prudent.minimax.solver import solve_on_curve, solve_validated

__all__ = ["Classes", "Duel", "DuelSet", "Objective", "solve_duels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Objective = Literal["minimax", "cost", "mean"]


@dataclass(frozen=True, slots=True)
class Classes:
    """Class moments with their uncertainty; rows are classes.

    `label` (K,) names the classes in messages.
    `mean` + `mean_lo` (K, n) is the mean, `covariance` (K, n, n) includes the
    additive radius rho I, `radius` = nu and `factor` = gamma have shape (K,).
    """

    label: NDArray[Any]
    mean: FloatArray
    mean_lo: FloatArray
    covariance: FloatArray
    radius: FloatArray
    factor: FloatArray
    prior: FloatArray

    def gap(self, k: int, l: int) -> FloatArray:
        """Mean of class l minus mean of class k."""
        return (self.mean[l] - self.mean[k]) + (self.mean_lo[l] - self.mean_lo[k])

    def balance(self, k: int, l: int) -> Balance:
        """Balance condition with class l positive."""
        return Balance(
            (math.sqrt(self.factor[l]), math.sqrt(self.factor[k])),
            (float(self.radius[l]), float(self.radius[k])),
        )


@dataclass(frozen=True, slots=True)
class Duel:
    """The plane between a negative class k and a positive class l.

    Pairs are in the order (k, l): a'mean, sqrt(gamma a'S a), nu, and the standard
    deviations left between the plane and the class in its worst case.
    """

    normal: FloatArray
    offset: float
    kappa: float
    gap: float
    n_iter: int
    center: tuple[float, float]
    deviation: tuple[float, float]
    radius: tuple[float, float]
    class_kappa: tuple[float, float]

    def distances(self, scores: FloatArray) -> Iterator[FloatArray]:
        """Robust distance of scores a'z towards the plane, for classes k and l."""
        for side in (0, 1):
            ahead = (scores - self.center[side]) * (-1 if side else 1)
            if self.deviation[side] > 0:
                ahead = ahead / self.deviation[side] - self.radius[side]
            else:
                ahead = np.where(ahead > 0, np.inf, 0.0)
            yield np.maximum(ahead, 0.0)


@dataclass(frozen=True, slots=True)
class DuelSet:
    """One plane for each pair k < l of classes, in lexicographic order."""

    n_classes: int
    duels: tuple[Duel, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Classes (k, l) of each duel; l is the positive one."""
        return list(itertools.combinations(range(self.n_classes), 2))

    @property
    def normals(self) -> FloatArray:
        """Normals, (pairs, n)."""
        return np.stack([duel.normal for duel in self.duels])

    @property
    def offsets(self) -> FloatArray:
        """Offsets b of a'z = b, (pairs,)."""
        return np.array([duel.offset for duel in self.duels])

    def union_errors(self) -> FloatArray:
        """Worst-case probability, at most, that each class loses some duel, (K,)."""
        errors = np.zeros(self.n_classes)
        for pair, duel in zip(self.pairs, self.duels, strict=True):
            for k, kappa in zip(pair, duel.class_kappa, strict=True):
                errors[k] += cantelli(kappa)
        return np.minimum(errors, 1.0)

    def votes(self, margins: FloatArray) -> FloatArray:
        """Duels won plus a tie-break in (-1/2, 1/2), from a'z - b (n, pairs).

        The tie-break is the smallest Mahalanobis margin over the duels of a class.
        """
        won = np.zeros((len(margins), self.n_classes))
        least = np.full_like(won, np.inf)
        for j, ((k, l), duel) in enumerate(zip(self.pairs, self.duels, strict=True)):
            margin = margins[:, j]
            won[:, l] += margin >= 0
            won[:, k] += margin < 0
            for c, sign, deviation in zip(
                (k, l), (-1.0, 1.0), duel.deviation, strict=True
            ):
                own = sign * margin / (deviation if deviation > 0 else 1.0)
                least[:, c] = np.minimum(least[:, c], own)
        # Strictly inside (-1/2, 1/2) even when 1 + |m| rounds to |m|.
        return won + (0.5 - 1e-12) * least / (1 + np.abs(least))

    def p_values(self, scores: FloatArray) -> FloatArray:
        """Worst-case p-values (n, K) from scores a'z (n, pairs).

        p = 1 / (1 + distance^2) is valid under every law with the class moments
        (Cantelli); the smallest of the K - 1 duels is corrected after Bonferroni.
        """
        p = np.ones((len(scores), self.n_classes))
        for j, (pair, duel) in enumerate(zip(self.pairs, self.duels, strict=True)):
            for k, distance in zip(pair, duel.distances(scores[:, j]), strict=True):
                p[:, k] = np.minimum(p[:, k], 1 / (1 + distance * distance))
        return np.minimum((self.n_classes - 1) * p, 1.0)


def cantelli(kappa: float) -> float:
    """Largest probability beyond a plane `kappa` standard deviations away."""
    kappa = max(kappa, 0.0)
    return 0.0 if math.isinf(kappa) else 1 / (1 + kappa * kappa)


def solve_duels(
    classes: Classes,
    objective: Objective,
    costs: FloatArray | None = None,
    *,
    constant_if_coinciding: bool = False,
) -> DuelSet:
    """Solve the duel of every pair of classes.

    Parameters
    ----------
    classes : Classes
        Moments and radii.
    objective : {"minimax", "cost", "mean"}
        What each plane optimises.
    costs : ndarray of shape (K, K), default=None
        Weight > 0 of an error of the row's class against the column's; for "cost".
    constant_if_coinciding : bool, default=False
        Let the class of larger prior win where two means coincide, with kappa 0,
        instead of raising.

    Raises
    ------
    DegenerateDataError
        If two class means coincide.
    """
    duels = []
    n_classes = len(classes.mean)
    for k, l in itertools.combinations(range(n_classes), 2):
        weights = None
        if objective == "cost" and costs is not None:
            weights = float(costs[l, k]), float(costs[k, l])
        try:
            duels.append(_solve_duel(classes, k, l, objective, weights))
        except DegenerateDataError:
            if not constant_if_coinciding:
                names = [shown(classes.label[c]) for c in (k, l)]
                raise DegenerateDataError(
                    f"the class means coincide for {names[0]} and {names[1]}, so "
                    "no plane separates them: drop a class, add features, or set "
                    "on_degenerate='warn'."
                ) from None
            duels.append(_constant_duel(classes, k, l))
    return DuelSet(n_classes, tuple(duels))


def _solve_duel(
    classes: Classes,
    k: int,
    l: int,
    objective: Objective,
    costs: tuple[float, float] | None,
) -> Duel:
    d, balance = classes.gap(k, l), classes.balance(k, l)
    Sx, Sy = classes.covariance[l], classes.covariance[k]
    if objective == "minimax":
        solution = solve_validated(d, Sx, Sy, balance)
    elif costs is not None:
        solution = solve_on_curve(
            d, Sx, Sy, balance, lambda curve, own: curve.cheapest(own, costs)
        )
    else:
        share = float(classes.prior[l] / (classes.prior[l] + classes.prior[k]))
        solution = solve_on_curve(
            d, Sx, Sy, balance, lambda curve, own: curve.best_mean(own, share)
        )
    normal = solution.normal
    offset = solution.offset_from(classes.mean[l]) + float(normal @ classes.mean_lo[l])
    class_kappa = solution.class_kappas[::-1]
    deviation = [
        # An infinite kappa says that what is left of a'S a is rounding.
        0.0 if math.isinf(kappa) else width * math.sqrt(float(normal @ S @ normal))
        for width, S, kappa in zip(
            balance.widths[::-1], (Sy, Sx), class_kappa, strict=True
        )
    ]
    return Duel(
        normal=normal,
        offset=offset,
        kappa=solution.kappa,
        gap=solution.gap,
        n_iter=solution.n_iter,
        center=(offset + solution.distance_pos - 1, offset + solution.distance_pos),
        deviation=(deviation[0], deviation[1]),
        radius=balance.radii[::-1],
        class_kappa=class_kappa,
    )


def _constant_duel(classes: Classes, k: int, l: int) -> Duel:
    """Give every row to the class of larger prior."""
    heavier_wins = classes.prior[l] >= classes.prior[k]
    errors = (-math.inf, math.inf) if heavier_wins else (math.inf, -math.inf)
    return Duel(
        normal=np.zeros(classes.mean.shape[1]),
        offset=-1.0 if heavier_wins else 1.0,
        kappa=0.0,
        gap=0.0,
        n_iter=1,
        center=(0.0, 0.0),
        deviation=(0.0, 0.0),
        radius=(0.0, 0.0),
        class_kappa=errors,
    )
