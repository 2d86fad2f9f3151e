"""The fit: moments and radii of the classes, planes between them, promises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.assumptions import Assumption
from prudent.core.classes import (
    check_not_tiny,
    class_priors,
    classes_seen,
    constant_features,
    error_costs,
    spread_over_classes,
)
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import CovarianceRule, estimate_covariances
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.certificate import (
    ClassMargin,
    Laws,
    certified_exit_probability,
    varies_along,
    worst_error,
)
from prudent.minimax.classification.model import Model
from prudent.minimax.curve import (
    ACCEPTED_GAP,
    Balance,
    ParetoCurve,
    WorstCaseError,
)
from prudent.minimax.kernel import Span
from prudent.minimax.radii import (
    NO_RADII,
    Origin,
    bootstrap_radii,
    gaussian_radii,
    given_radii,
    known_moments,
    spread_radii,
)
from prudent.minimax.solver import solve_on_curve, solve_validated

Uncertainty = Literal["gaussian", "bootstrap"] | None
UNIMODAL_TAIL = "one-sided Vysochanskij-Petunin inequality (Mercadier & Strobel 2021)"
NORMAL_TAIL = "normal tail beyond kappa, radii of normal samples (prudent, user guide)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """What a fit found; what is per class is in the order of all classes.

    `errors` (K,) and `accuracy`, which the objective is about, are worst-case;
    `covariances` (K, p, p) are those used, before any radius for a linear fit, `radii`
    (3, K) are nu, rho and gamma; `constant` are the features left out, `remarks` what a
    user must hear about the promises, and `open_gap` tells of the plane that is not
    certified to be the best.
    """

    model: Model
    duels: tuple[Duel, ...]
    errors: FloatArray
    accuracy: float
    covariances: FloatArray
    radii: FloatArray
    constant: IntArray
    guarantees: tuple[Guarantee, ...]
    remarks: tuple[str, ...]
    open_gap: str | None


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    objective: Objective,
    costs: ArrayLike | None,
    priors: ArrayLike | None,
    covariance: CovarianceRule,
    radii: tuple[ArrayLike, ArrayLike | None, ArrayLike],
    uncertainty: Uncertainty,
    confidence: float,
    bound: Literal["union", "exact"],
    laws: Laws,
    constant_if_coinciding: bool,
    exact: bool,
    span: Span | None,
    random: np.random.RandomState,
) -> Learned:
    """Learn planes from class moments and, where a setting asks, their rows.

    Settings are those of `MinimaxProbabilityClassifier`, `radii` its three. `exact`
    moments are known, not estimated; `span` holds the coordinates of a kernel.
    """
    seen, own = _with_rows(moments)
    if costs is not None:
        costs = error_costs(costs, len(seen))[seen][:, seen]
    used = _radii(own, rows, radii, seen, uncertainty, confidence, span, random)
    prior = class_priors(priors, moments.weight)[seen]
    estimated = not exact or uncertainty == "gaussian"
    if estimated:
        check_not_tiny(own)
    classes, covariances, kept = _classes(
        own, rows, covariance, used, prior, is_linear=span is None
    )
    duels = solve_duels(classes, objective, costs, laws, constant_if_coinciding)
    # A null direction of estimated covariances: kappa is infinite, by definition.
    proves_nothing = estimated and any(duel.is_separable for duel in duels)
    errors = class_errors(classes, duels, bound, laws, certified=not proves_nothing)
    trivial = float(prior.max()) if objective == "mean" else None
    worst = float(errors.max() if trivial is None else prior @ errors)
    guarantees = class_guarantees(
        classes,
        duels,
        errors,
        proved=not proves_nothing and span is None and uncertainty != "bootstrap",
        origin=uncertainty or ("given" if exact else "plug-in"),
        covariance=covariance,
        with_radii=bool((used > NO_RADII).any()),
        laws=laws,
        confidence=None if moments.weighted.any() else confidence,
        trivial=trivial,
    )
    return Learned(
        model=_model(duels, seen, kept, own.mean.shape[1], span),
        duels=duels,
        errors=spread_over_classes(errors, seen, 1.0),
        accuracy=1 - worst,
        covariances=spread_over_classes(covariances, seen, 0.0, axis=0),
        radii=spread_radii(used, seen),
        constant=np.setdiff1d(np.arange(own.mean.shape[1]), kept),
        guarantees=guarantees,
        remarks=tuple(weak_promises(own.classes, duels, trivial, 1 - worst)),
        open_gap=open_gap(duels),
    )


def _with_rows(moments: ClassMoments) -> tuple[BoolArray, ClassMoments]:
    """Which classes have rows, and the moments of those."""
    if moments.structure != "full":
        raise ValueError(
            "the moments keep variances only: accumulate with structure='full'."
        )
    seen = classes_seen(moments)
    return seen, moments if seen.all() else moments.select(moments.classes[seen])


def _radii(
    moments: ClassMoments,
    rows: Rows | None,
    given: tuple[ArrayLike, ArrayLike | None, ArrayLike],
    seen: BoolArray,
    uncertainty: Uncertainty,
    confidence: float,
    span: Span | None,
    random: np.random.RandomState,
) -> FloatArray:
    """Radii (3, K) of the classes with rows: from their data, or as given."""
    if uncertainty == "gaussian":
        return gaussian_radii(moments, confidence)
    if uncertainty == "bootstrap":
        assert rows is not None
        return bootstrap_radii(moments, rows, confidence, random)
    mean, covariance, factor = given
    if covariance is None:
        covariance = 0.0 if span is None else span.default_radius
    return given_radii(mean, covariance, factor, len(seen))[:, seen]


def _classes(
    moments: ClassMoments,
    rows: Rows | None,
    covariance: CovarianceRule,
    radii: FloatArray,
    prior: FloatArray,
    *,
    is_linear: bool,
) -> tuple[Classes, FloatArray, IntArray]:
    """What the planes know of the classes with rows, in the features that vary.

    Also all covariances (K, d, d) and the features kept. Those of a kernel, which are
    large and have no constant feature, are overwritten by what the planes use.
    """
    covariances = estimate_covariances(
        covariance,
        moments.weight,
        moments.scatter,
        fourth=moments.fourth,
        rows_of=None if rows is None else rows.of_class,
    )
    kept: IntArray = np.arange(moments.mean.shape[1])
    if is_linear:
        kept = np.delete(kept, constant_features(moments))
    mean, mean_lo, S = moments.mean, moments.mean_lo, covariances
    if len(kept) < mean.shape[1]:
        mean, mean_lo = mean[:, kept], mean_lo[:, kept]
        S = S[:, kept][:, :, kept]
    nu, rho, gamma = radii
    if rho.any():
        if is_linear:
            S = S.copy()
        diagonal = np.arange(len(kept))
        S[:, diagonal, diagonal] += rho[:, None]
    classes = Classes(moments.classes, mean, mean_lo, S, nu, gamma, prior)
    return classes, covariances, kept


def _model(
    duels: tuple[Duel, ...],
    seen: BoolArray,
    kept: IntArray,
    n_features: int,
    span: Span | None,
) -> Model:
    """The planes over all features, or over kernel values."""
    normals = np.zeros((len(duels), n_features))
    normals[:, kept] = [duel.normal for duel in duels]
    return Model(
        normals if span is None else span.dual(normals),
        np.array([duel.offset for duel in duels]),
        tuple(duel.margins for duel in duels),
        seen,
    )


# --- planes between every two classes, and what they lose together -------------------


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
        bound = worst_error(laws)
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

    Never above `union`, which is tight for two classes and of a duel that is always
    lost. Factor and additive radius enter through the largest covariance they allow.
    """
    errors = union.copy()
    if len(union) == 2:
        return errors
    for k, S in enumerate(classes.covariance):
        normals: list[FloatArray] = []
        kappas: list[float] = []
        reach: list[float] = []
        blur: list[float] = []
        for duel in duels:
            if k not in duel.pair:
                continue
            margin = duel.margins[duel.pair.index(k)]
            side = -1.0 if duel.pair[0] == k else 1.0
            kappa = margin.kappa(duel.offset, side)
            if not margin.deviation > 0:
                if kappa > 0:
                    continue  # a constant score never crosses its plane
                normals.clear()  # or lies beyond it: the duel is always lost
                break
            normals.append(side * duel.normal / margin.deviation)
            kappas.append(kappa)
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


def constant_classes(classes: Classes, duels: tuple[Duel, ...]) -> BoolArray:
    """Classes that do not vary along the normal of one of their planes, (K,).

    Variance that was added to a duel's covariances is not the class's own, and less
    than was added is what rounding left, or the tilt of the plane that it made.
    """
    constant = np.zeros(len(classes.label), dtype=bool)
    for duel in duels:
        a = duel.normal
        if a.any():
            both = classes.covariance[list(duel.pair)]
            variances = np.diagonal(both, axis1=1, axis2=2).mean(axis=0)
            added = duel.floor * float(np.square(a) @ variances)
            for k, S, kappa in zip(duel.pair, both, duel.class_kappa, strict=True):
                varies = varies_along(a, S, np.abs(a)) and float(a @ S @ a) > added
                constant[k] |= math.isinf(kappa) or not varies
    return constant


def solve_duels(
    classes: Classes,
    objective: Objective,
    costs: FloatArray | None,
    laws: Laws,
    constant_if_coinciding: bool,
) -> tuple[Duel, ...]:
    """Solve the duel of every pair k < l of classes, in lexicographic order.

    `costs` (K, K) weight an error of the row's class against the column's, for "cost".
    `laws` are those whose errors "cost" and "mean" weigh; for "minimax", which balances
    standard deviations, they make no difference.
    With `constant_if_coinciding` the class of larger prior wins where two means
    coincide, with kappa 0, instead of a DegenerateDataError.
    """
    duels = []
    for k, l in itertools.combinations(range(len(classes.mean)), 2):
        choose = _choice(classes.prior, objective, costs, worst_error(laws), k, l)
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
    prior: FloatArray,
    objective: Objective,
    costs: FloatArray | None,
    error: WorstCaseError,
    k: int,
    l: int,
) -> Choice | None:
    """What an objective other than "minimax" picks from the curve of a pair.

    "cost" makes the larger of both weighted worst-case errors least, "mean" their mean
    by the shares of the priors.
    """
    if costs is not None:
        own = float(costs[l, k]), float(costs[k, l])
        return lambda curve, balance: curve.cheapest(balance, own, error)
    if objective == "minimax":
        return None
    both = float(prior[l] + prior[k])
    share = float(prior[l]) / both if both > 0 else 0.5
    return lambda curve, balance: curve.best_mean(balance, share, error)


def _solve_duel(classes: Classes, k: int, l: int, choose: Choice | None) -> Duel:
    """Plane whose certificate holds, with as little added variance as that takes.

    The first floor at which rounding adds 1e-3 to the worst-case errors at most, or
    that of the least error. Nearly singular covariances give planes that rounding
    decides.
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
        if duel.excess <= LARGEST_EXCESS:
            best = duel
            break
        if best is None or max(duel.errors()) < max(best.errors()):
            best = duel
    assert best is not None
    return replace(best, is_separable=separable)


def _duel_at(
    classes: Classes, k: int, l: int, choose: Choice | None, floor: float
) -> Duel:
    """Duel of covariances with a share of each feature's variance added.

    With a share f both become S + f diag(Sx + Sy) / 2. The plane a'z = b has the offset
    b = a'm_l less the distance that the solver leaves to class l.
    """
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


# --- what the planes promise, and what a user must hear of them -----------------------


def class_guarantees(
    classes: Classes,
    duels: tuple[Duel, ...],
    errors: FloatArray,
    *,
    proved: bool,
    origin: Origin,
    covariance: CovarianceRule,
    with_radii: bool,
    laws: Laws,
    confidence: float | None,
    trivial: float | None,
) -> tuple[Guarantee, ...]:
    """One promise for each class, if `proved`: its error rate is at most `errors[k]`.

    With Gaussian radii at most what a normal class loses, which is less. `confidence`
    None: no probability over the training rows. `trivial` is the
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
    source = f"Lanckriet et al. 2002, Theorem {3 if with_radii else 2}"
    if laws == "unimodal":
        known, source = (*known, Assumption.UNIMODAL), UNIMODAL_TAIL
    if sure:
        known, numbers, source = (Assumption.NORMALITY,), {}, NORMAL_TAIL
        errors = np.minimum(lost_duels(duels, Duel.normal_errors), errors)
    evidence = {
        "kappa": min(duel.kappa for duel in duels),
        "duality gap": max(duel.gap for duel in duels),
        "classes": len(classes.label),
        **numbers,
    }
    if trivial is not None:
        evidence["trivial_bound"] = trivial
    # An estimated variance of zero proves nothing.
    unproved = constant_classes(classes, duels) & estimated
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(errors[k]),
            sense="<=",
            confidence=confidence if sure else None,
            assumptions=known,
            scope=classes.label[k : k + 1].tolist()[0],
            evidence=evidence,
            source=source,
        )
        for k in np.flatnonzero(~unproved)
    )


def linear_promises(
    labels: NDArray[Any], errors: FloatArray, laws: Laws, proved: BoolArray
) -> tuple[Guarantee, ...]:
    """One promise for each class `proved` of a linear classifier fitted by somebody."""
    known: tuple[Assumption, ...] = (Assumption.MOMENTS_GIVEN_OR_PLUG_IN,)
    source = "Lanckriet et al. 2002, Lemma 1"
    if laws == "unimodal":
        known, source = (*known, Assumption.UNIMODAL), UNIMODAL_TAIL
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(errors[k]),
            sense="<=",
            scope=labels[k : k + 1].tolist()[0],
            assumptions=known,
            evidence={"classes": len(labels)},
            source=source,
        )
        for k in np.flatnonzero(proved)
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
            "within its radii the mean of a class may lie on the wrong side of a plane "
            f"(kappa {least:.3g}), so the worst-case error of at least one class is 1: "
            "reduce the radii or collect more rows."
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
