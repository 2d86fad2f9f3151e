"""Planes between every two classes, and what they lose together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.certificate import (
    ClassMargin,
    Laws,
    certified_exit_probability,
    chebyshev,
    vysochanskij_petunin,
)
from prudent.minimax.curve import Balance, ParetoCurve
from prudent.minimax.solver import solve_on_curve, solve_validated

Objective = Literal["minimax", "cost", "mean"]
#: Picks the logit of a plane from the curve of trade-offs.
Choice = Callable[[ParetoCurve, Balance], float]
#: Shares of each feature's variance that may be added to both covariances of a duel.
FLOORS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
#: Certified error above that of an exact plane from which variance is added.
LARGEST_EXCESS = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Moments of the K classes with rows, in the p features that vary.

    `label`, `radius` = nu, `factor` = gamma and `prior` have shape (K,); `mean` and
    `mean_lo` (K, p) add up to the means; `covariance` (K, p, p) includes rho I, the
    additive radius.
    """

    label: NDArray[Any]
    mean: FloatArray
    mean_lo: FloatArray
    covariance: FloatArray
    radius: FloatArray
    factor: FloatArray
    prior: FloatArray

    def margin(self, k: int, normal: FloatArray, covariance: FloatArray) -> ClassMargin:
        """Class k along a normal."""
        return ClassMargin.along(
            normal,
            self.mean[k],
            self.mean_lo[k],
            covariance,
            float(self.radius[k]),
            float(self.factor[k]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Duel:
    """The plane between a negative class k and a positive class l, in this order.

    Rows z with a'z >= b, where a is the `normal` (p,) and b the `offset`, are of class
    l. `kappa` is the smaller of `class_kappa`, the standard deviations that the solver
    left to each class, and lies within `gap` of the largest possible; `margins` are
    both classes seen along the normal. `floor` is the share of each feature's variance
    that was added to both covariances, and `is_separable` says that the covariances as
    given share a null direction.
    """

    pair: tuple[int, int]
    normal: FloatArray
    offset: float
    kappa: float
    gap: float
    n_iter: int
    margins: tuple[ClassMargin, ClassMargin]
    class_kappa: tuple[float, float]
    floor: float = 0.0
    is_separable: bool = False

    def errors(self, laws: Laws = "any") -> tuple[float, float]:
        """Certified worst-case errors of the plane as it predicts."""
        below, above = self.margins
        negative = below.error(self.offset, -1.0, laws=laws)
        return negative, above.error(self.offset, 1.0, laws=laws)

    def normal_errors(self) -> tuple[float, float]:
        """Certified largest errors of the plane if both classes are normal."""
        below, above = self.margins
        negative = below.normal_error(self.offset, -1.0)
        return negative, above.normal_error(self.offset, 1.0)

    def exact_errors(self, laws: Laws = "any") -> tuple[float, float]:
        """Worst-case errors of the plane in exact arithmetic."""
        bound = chebyshev if laws == "any" else vysochanskij_petunin
        return bound(self.class_kappa[0]), bound(self.class_kappa[1])

    @property
    def excess(self) -> float:
        """What rounding adds to the worst-case errors of an exact plane, at most."""
        pairs = zip(self.errors(), self.exact_errors(), strict=True)
        return max(error - exact for error, exact in pairs)


def class_errors(
    classes: Classes,
    duels: tuple[Duel, ...],
    bound: Literal["union", "exact"],
    laws: Laws,
    *,
    certified: bool,
) -> FloatArray:
    """Worst-case probability, at most, that each class loses some duel, (K,).

    The sum over its duels or, for `bound` "exact" and three classes or more, the tight
    probability of their union under any law, if that is less. Not `certified`: of
    planes in exact arithmetic, and by the sum.
    """
    if not certified:
        return lost_duels(duels, lambda duel: duel.exact_errors(laws))
    union = lost_duels(duels, lambda duel: duel.errors(laws))
    return exact_errors(classes, duels, union) if bound == "exact" else union


def lost_duels(
    duels: tuple[Duel, ...], errors: Callable[[Duel], tuple[float, float]]
) -> FloatArray:
    """Sum of the errors of each class over its duels, at most 1, (K,)."""
    total = np.zeros(duels[-1].pair[1] + 1)
    for duel in duels:
        total[list(duel.pair)] += errors(duel)
    return np.minimum(total, 1.0)


def exact_errors(
    classes: Classes, duels: tuple[Duel, ...], union: FloatArray
) -> FloatArray:
    """Tight worst-case probability that each class loses some duel, (K,).

    Never above `union`, which is tight for two classes. Factor and additive radius
    enter through the largest covariance they allow.
    """
    errors = union.copy()
    if len(union) == 2:
        return errors
    for k, S in enumerate(classes.covariance):
        normals, kappas, reach, blur = [], [], [], []
        for duel in duels:
            if k not in duel.pair:
                continue
            margin = duel.margins[duel.pair.index(k)]
            if not margin.deviation > 0:
                continue  # a constant score never crosses its plane
            side = -1.0 if duel.pair[0] == k else 1.0
            normals.append(side * duel.normal / margin.deviation)
            kappas.append(margin.kappa(duel.offset, side))
            reach.append(margin.reach / margin.deviation)
            blur.append(margin.blur)
        if not normals:
            continue
        bound = certified_exit_probability(
            np.stack(normals),
            classes.factor[k] * S,
            np.array(kappas),
            reach=np.array(reach),
            blur=np.array(blur),
        )
        errors[k] = min(errors[k], bound)
    return errors


def constant_classes(duels: tuple[Duel, ...], n_classes: int) -> BoolArray:
    """Classes that do not vary along the normal of one of their planes, (K,)."""
    constant = np.zeros(n_classes, dtype=bool)
    for duel in duels:
        if duel.normal.any():
            constant[list(duel.pair)] |= np.isinf(duel.class_kappa)
    return constant


def solve_duels(
    classes: Classes,
    objective: Objective,
    costs: FloatArray | None,
    constant_if_coinciding: bool,
) -> tuple[Duel, ...]:
    """Solve the duel of every pair k < l of classes, in lexicographic order.

    `costs` (K, K) weight an error of the row's class against the column's, for "cost".
    With `constant_if_coinciding` the class of larger prior wins where two means
    coincide, with kappa 0, instead of a DegenerateDataError.
    """
    duels = []
    for k, l in itertools.combinations(range(len(classes.mean)), 2):
        choose = _choice(classes.prior, objective, costs, k, l)
        try:
            duels.append(_solve_duel(classes, k, l, choose))
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
    return tuple(duels)


def _choice(
    prior: FloatArray, objective: Objective, costs: FloatArray | None, k: int, l: int
) -> Choice | None:
    """What an objective other than "minimax" picks from the curve of a pair."""
    if costs is not None:
        own = float(costs[l, k]), float(costs[k, l])
        return lambda curve, balance: curve.cheapest(balance, own)
    if objective == "minimax":
        return None
    both = float(prior[l] + prior[k])
    share = float(prior[l]) / both if both > 0 else 0.5
    return lambda curve, balance: curve.best_mean(balance, share)


def _solve_duel(classes: Classes, k: int, l: int, choose: Choice | None) -> Duel:
    """Plane whose certificate holds, with as little added variance as that takes.

    Nearly singular covariances give planes that rounding decides.
    """
    best: Duel | None = None
    separable = False
    for floor in FLOORS:
        try:
            duel = _duel_at(classes, k, l, choose, floor)
        except SingularCovarianceError:
            if floor == FLOORS[-1] and best is None:
                raise
            continue
        separable |= floor == 0 and math.isinf(duel.kappa)
        if best is None or max(duel.errors()) < max(best.errors()):
            best = duel
        if duel.excess <= LARGEST_EXCESS:
            break
    assert best is not None
    return replace(best, is_separable=separable)


def _duel_at(
    classes: Classes, k: int, l: int, choose: Choice | None, floor: float
) -> Duel:
    """Duel of covariances with a share of each feature's variance added."""
    mean, mean_lo = classes.mean, classes.mean_lo
    d = (mean[l] - mean[k]) + (mean_lo[l] - mean_lo[k])
    balance = Balance(
        (math.sqrt(classes.factor[l]), math.sqrt(classes.factor[k])),
        (float(classes.radius[l]), float(classes.radius[k])),
    )
    Sy, Sx = classes.covariance[k], classes.covariance[l]
    if floor:
        added = np.diag(floor * (np.diagonal(Sx) + np.diagonal(Sy)) / 2)
        Sy, Sx = Sy + added, Sx + added
    if choose is None:
        solution = solve_validated(d, Sx, Sy, balance)
    else:
        solution = solve_on_curve(d, Sx, Sy, balance, choose)
    normal = solution.normal
    return Duel(
        pair=(k, l),
        normal=normal,
        offset=solution.offset_from(mean[l]) + float(normal @ mean_lo[l]),
        kappa=solution.kappa,
        gap=solution.gap,
        n_iter=solution.n_iter,
        margins=(classes.margin(k, normal, Sy), classes.margin(l, normal, Sx)),
        class_kappa=solution.class_kappas[::-1],
        floor=floor,
    )


def _constant_duel(classes: Classes, k: int, l: int) -> Duel:
    """Give every row to the class of larger prior."""
    heavier_wins = classes.prior[l] >= classes.prior[k]
    nothing = ClassMargin(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return Duel(
        pair=(k, l),
        normal=np.zeros(classes.mean.shape[1]),
        offset=-1.0 if heavier_wins else 1.0,
        kappa=0.0,
        gap=0.0,
        n_iter=1,
        margins=(nothing, nothing),
        class_kappa=(-math.inf, math.inf) if heavier_wins else (math.inf, -math.inf),
    )
