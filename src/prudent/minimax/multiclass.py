"""Planes between every two classes, and what they promise together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.certificate import ClassMargin, chebyshev
from prudent.minimax.curve import Balance
from prudent.minimax.solver import solve_on_curve, solve_validated

__all__ = ["Classes", "Duel", "DuelSet", "Objective", "solve_duels"]

Objective = Literal["minimax", "cost", "mean"]
#: Shares of each feature's variance that may be added to both covariances of a duel.
FLOORS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
#: Certified error above that of an exact plane from which variance is added.
LARGEST_EXCESS = 1e-3


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

    Pairs are in the order (k, l): the certified error of each class, how each is seen
    along the normal, and the standard deviations that the solver left it. `floor` is
    the share of each feature's variance that was added to both covariances, and
    `is_separable` says that the covariances as given share a null direction.
    """

    normal: FloatArray
    offset: float
    kappa: float
    gap: float
    n_iter: int
    margins: tuple[ClassMargin, ClassMargin]
    errors: tuple[float, float]
    class_kappa: tuple[float, float]
    floor: float = 0.0
    is_separable: bool = False

    @property
    def excess(self) -> float:
        """What rounding adds to the worst-case errors of an exact plane, at most."""
        return max(
            error - chebyshev(kappa)
            for error, kappa in zip(self.errors, self.class_kappa, strict=True)
        )

    def distances(self, scores: FloatArray) -> Iterator[FloatArray]:
        """Robust distance of scores a'z towards the plane, for classes k and l."""
        for side, margin in zip((-1.0, 1.0), self.margins, strict=True):
            yield margin.distances(scores, side)


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

    @property
    def is_separable(self) -> bool:
        """Whether two covariances share a null direction that separates the means."""
        return any(duel.is_separable for duel in self.duels)

    @property
    def constant_classes(self) -> BoolArray:
        """Classes that do not vary along the normal of one of their planes, (K,)."""
        constant = np.zeros(self.n_classes, dtype=bool)
        for pair, duel in zip(self.pairs, self.duels, strict=True):
            if duel.normal.any():
                constant[list(pair)] |= np.isinf(duel.class_kappa)
        return constant

    def union_errors(self, *, certified: bool = True) -> FloatArray:
        """Worst-case probability, at most, that each class loses some duel, (K,).

        Not `certified`: of planes in exact arithmetic.
        """
        errors = np.zeros(self.n_classes)
        for pair, duel in zip(self.pairs, self.duels, strict=True):
            exact = tuple(chebyshev(kappa) for kappa in duel.class_kappa)
            own = duel.errors if certified else exact
            for k, error in zip(pair, own, strict=True):
                errors[k] += error
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
            for c, sign, seen in zip((k, l), (-1.0, 1.0), duel.margins, strict=True):
                own = sign * margin / (seen.deviation or 1.0)
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
        except SingularCovarianceError:
            raise
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
    """Plane whose certificate holds, with as little added variance as that takes.

    Nearly singular covariances give planes that rounding decides.
    """
    best: Duel | None = None
    separable = False
    for floor in FLOORS:
        try:
            duel = _duel_at(classes, k, l, objective, costs, floor)
        except SingularCovarianceError:
            if floor == FLOORS[-1] and best is None:
                raise
            continue
        separable |= floor == 0 and math.isinf(duel.kappa)
        if best is None or max(duel.errors) < max(best.errors):
            best = duel
        if duel.excess <= LARGEST_EXCESS:
            break
    assert best is not None
    return replace(best, is_separable=separable)


def _duel_at(
    classes: Classes,
    k: int,
    l: int,
    objective: Objective,
    costs: tuple[float, float] | None,
    floor: float,
) -> Duel:
    """Duel of covariances with a share of each feature's variance added."""
    d, balance = classes.gap(k, l), classes.balance(k, l)
    Sy, Sx = classes.covariance[k], classes.covariance[l]
    if floor:
        added = np.diag(floor * (np.diagonal(Sx) + np.diagonal(Sy)) / 2)
        Sy, Sx = Sy + added, Sx + added
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

    def seen(c: int, S: FloatArray) -> ClassMargin:
        mean, mean_lo = classes.mean[c], classes.mean_lo[c]
        radius, factor = float(classes.radius[c]), float(classes.factor[c])
        return ClassMargin.along(normal, mean, mean_lo, S, radius, factor)

    margins = seen(k, Sy), seen(l, Sx)
    return Duel(
        normal=normal,
        offset=offset,
        kappa=solution.kappa,
        gap=solution.gap,
        n_iter=solution.n_iter,
        margins=margins,
        errors=(margins[0].error(offset, -1.0), margins[1].error(offset, 1.0)),
        class_kappa=solution.class_kappas[::-1],
        floor=floor,
    )


def _constant_duel(classes: Classes, k: int, l: int) -> Duel:
    """Give every row to the class of larger prior."""
    heavier_wins = classes.prior[l] >= classes.prior[k]
    nothing = ClassMargin(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return Duel(
        normal=np.zeros(classes.mean.shape[1]),
        offset=-1.0 if heavier_wins else 1.0,
        kappa=0.0,
        gap=0.0,
        n_iter=1,
        margins=(nothing, nothing),
        errors=(1.0, 0.0) if heavier_wins else (0.0, 1.0),
        class_kappa=(-math.inf, math.inf) if heavier_wins else (math.inf, -math.inf),
    )
