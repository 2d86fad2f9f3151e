"""The setting `covariance=`: from the scatter or the rows of classes to matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.definiteness import check_not_indefinite, floor_eigenvalues
from prudent.core.statistics import Statistics
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

Estimator = Literal["empirical", "ledoit_wolf", "oas"]
Target = Literal["diagonal", "identity"]
#: A setting `covariance=` as the mathematics takes it: a name, an amount of shrinkage
#: in [0, 1], or a function from rows (n, d) to their covariance (d, d).
CovarianceRule = str | float | Callable[[FloatArray], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCovariances:
    """Positive definite matrices of the classes, and what was done to get them.

    `matrices` (M, d, d), one for each class or one for all, of the rule `kind`;
    classes in `pooled` have no matrix of their own but the pooled one, and
    `floored_features` are pairs of a class and its features whose variance was raised.
    `condition` (M,) is that before `n_floored` eigenvalues were raised to a share
    `floor` of the largest.
    """

    matrices: FloatArray
    kind: str
    pooled: IntArray
    floored_features: tuple[tuple[int, IntArray], ...] = ()
    condition: FloatArray
    n_floored: IntArray
    floor: float


def rule_name(rule: CovarianceRule) -> str:
    """A covariance rule in words: "oas", "shrinkage 0.5", "MinCovDet"."""
    if isinstance(rule, str):
        return rule
    if callable(rule):
        return str(getattr(rule, "__name__", type(rule).__name__))
    return f"shrinkage {rule:g}"


def shrinkage_amounts(
    rule: str | float,
    weight: FloatArray,
    scatter: FloatArray,
    fourth: FloatArray | None = None,
) -> FloatArray:
    """How much a named rule or an amount shrinks each class, (K,).

    `scatter` is in the units in which the matrices are shrunk; "ledoit_wolf" needs
    `fourth`, sums of w |z|^4 about the class means.
    """
    if rule == "oas":
        return oas_shrinkage(weight, scatter)
    if rule == "ledoit_wolf":
        if fourth is None:
            raise ValueError("covariance='ledoit_wolf' needs fourth moments or rows.")
        return ledoit_wolf_shrinkage(weight, scatter, fourth)
    return np.full(len(weight), 0.0 if isinstance(rule, str) else float(rule))


def estimate_covariances(
    rule: CovarianceRule,
    weight: FloatArray,
    scatter: FloatArray,
    *,
    divisor: FloatArray | None = None,
    fourth: FloatArray | None = None,
    rows_of: Callable[[int], tuple[FloatArray, FloatArray | None]] | None = None,
) -> FloatArray:
    """Covariance matrix of each class, (K, d, d), by the setting `covariance=`.

    "empirical" is S / divisor (the weight by default; zeros where it is not > 0);
    "oas" and "ledoit_wolf" shrink it towards the identity by their own amount; a float
    a is (1 - a) C + a diag(C); a function takes the rows of class k and their weights,
    which `rows_of(k)` gives, to their covariance. `scatter` and rows are in the units
    in which to shrink.
    """
    if divisor is None:
        divisor = weight
    usable = divisor > 0
    if callable(rule):
        if rows_of is None:
            raise ValueError(f"covariance={rule_name(rule)} needs the rows.")
        fitted = np.zeros_like(scatter)
        for k in np.flatnonzero(usable).tolist():
            fitted[k] = fitted_covariance(rule, *rows_of(k))
        return fitted
    empirical = scatter / np.where(usable, divisor, np.inf)[:, None, None]
    if rule == "empirical":
        return empirical
    amounts = shrinkage_amounts(rule, weight, scatter, fourth)
    target: Target = "identity" if isinstance(rule, str) else "diagonal"
    return shrink(empirical, amounts, target)


def fitted_covariance(
    rule: Callable[[FloatArray], FloatArray],
    rows: FloatArray,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Covariance of rows by a function of them; whole weights are repetitions."""
    name = rule_name(rule)
    if weight is not None:
        repetitions = weight.astype(np.intp)
        if (repetitions != weight).any():
            raise ValueError(
                f"covariance={name} takes no weights, only rows: give weights that are "
                "whole numbers, or covariance='oas', 'empirical' or a number."
            )
        rows = np.repeat(rows, repetitions, axis=0)
    matrix = np.asarray(rule(rows), dtype=np.float64)
    d = rows.shape[1]
    if matrix.shape != (d, d) or not np.isfinite(matrix).all():
        raise ValueError(
            f"covariance={name} must give a finite matrix of shape ({d}, {d}), got "
            f"shape {matrix.shape}."
        )
    return matrix


def invertible(
    matrices: FloatArray,
    rule: CovarianceRule,
    floor: float,
    *,
    pooled: Callable[[], FloatArray] | None = None,
    floored_features: tuple[tuple[int, IntArray], ...] = (),
) -> ClassCovariances:
    """Repair matrices that cannot be inverted, and say which.

    Eigenvalues are raised to a share `floor` of the largest. `pooled`, the matrix of
    all classes, replaces a matrix of zeros (one row, or all rows equal). The rule and
    the `floored_features` raised before are for the record.
    """
    lost = np.flatnonzero(~(np.trace(matrices, axis1=1, axis2=2) > 0))
    repaired = np.array(matrices)
    if len(lost) and pooled is not None:
        repaired[lost] = pooled()
    if not (np.trace(repaired, axis1=1, axis2=2) > 0).all():
        raise DegenerateDataError(
            "no feature varies within any class, so there is no covariance: give "
            "rows that differ."
        )
    condition = np.empty(len(repaired))
    n_floored = np.zeros(len(repaired), dtype=np.intp)
    for k, matrix in enumerate(repaired):
        values = np.linalg.eigvalsh(matrix)
        condition[k] = values[-1] / values[0] if values[0] > 0 else np.inf
        if values[0] < floor * values[-1]:
            raised = floor_eigenvalues(matrix, floor * values[-1])
            repaired[k], n_floored[k] = raised.covariance, raised.n_clipped
    return ClassCovariances(
        matrices=repaired,
        kind=rule_name(rule),
        pooled=lost,
        floored_features=floored_features,
        condition=condition,
        n_floored=n_floored,
        floor=floor,
    )


def class_covariances(
    statistics: Statistics,
    estimator: Estimator,
    ddof: Literal[0, 1],
    shrinkage: float | None,
    target: Target,
) -> FloatArray:
    """Covariance of each class; see `ClassMoments.covariance`."""
    _check_options(statistics, estimator, ddof, shrinkage, target)
    classes, weight = statistics.classes, statistics.weight
    scatter = statistics.scatter
    light = np.flatnonzero(~(weight > ddof))
    if len(light):
        k = light[0]
        raise DegenerateDataError(
            f"class {shown(classes[k])} has total weight {weight[k]:g}, so its "
            f"covariance with ddof={ddof} is undefined: it needs a weight total "
            f"> {ddof}."
        )
    covariances = scatter / np.expand_dims(weight - ddof, tuple(range(1, scatter.ndim)))
    check_not_indefinite(covariances, classes)
    if estimator == "empirical":
        return shrink(covariances, shrinkage, target) if shrinkage else covariances
    amounts = shrinkage_amounts(estimator, weight, scatter, statistics.fourth)
    return shrink(covariances, amounts, "identity")


def _check_options(
    statistics: Statistics,
    estimator: str,
    ddof: int,
    shrinkage: float | None,
    target: str,
) -> None:
    for name, value, accepted in (
        ("estimator", estimator, ("empirical", "ledoit_wolf", "oas")),
        ("ddof", ddof, (0, 1)),
        ("target", target, ("diagonal", "identity")),
    ):
        if value not in accepted:
            raise ValueError(f"`{name}` must be one of {accepted}, got {value!r}.")
    if shrinkage is not None and not 0 <= shrinkage <= 1:
        raise ValueError(f"`shrinkage` must lie in [0, 1], got {shown(shrinkage)}.")
    if estimator != "empirical" and shrinkage is not None:
        raise ValueError(
            f"estimator={estimator!r} chooses its own shrinkage: leave `shrinkage` "
            f"out, got {shown(shrinkage)}."
        )
    if estimator == "ledoit_wolf" and statistics.fourth is None:
        raise ValueError(
            "estimator='ledoit_wolf' needs the fourth moment: accumulate with "
            "`fourth=True`."
        )
    if statistics.scatter.ndim == 2 and (estimator != "empirical" or shrinkage):
        raise ValueError(
            "structure='diagonal' keeps the variances only, which cannot be shrunk: "
            "accumulate with structure='full'."
        )


def shrink(
    covariances: FloatArray, shrinkage: float | FloatArray, target: Target
) -> FloatArray:
    """(1 - a) C + a T, with T = diag(C) or (trace C / d) I; one a or one per class."""
    a = np.broadcast_to(np.asarray(shrinkage, dtype=np.float64), len(covariances))
    kept = np.diagonal(covariances, axis1=1, axis2=2)
    if target == "identity":
        kept = (1 - a[:, None]) * kept + (a * kept.mean(axis=1))[:, None]
    shrunk = (1 - a)[:, None, None] * covariances
    features = np.arange(kept.shape[1])
    shrunk[:, features, features] = kept  # of a diagonal target to the last bit
    return shrunk


def oas_shrinkage(weight: FloatArray, scatter: FloatArray) -> FloatArray:
    """Oracle approximating shrinkage towards the identity, (K,).

    With C = S / W, mu = trace C / d and al = mean C_ij^2: a = min(1, (al + mu^2) /
    ((W + 1)(al - mu^2 / d))), and 1 where the denominator is 0. Chen, Wiesel, Eldar
    and Hero (2010), IEEE Transactions on Signal Processing 58, equation 23.
    """
    C = scatter / weight[:, None, None]
    n_features = C.shape[-1]
    mu = np.trace(C, axis1=1, axis2=2) / n_features
    al = (C * C).mean(axis=(1, 2))
    numerator = al + mu**2
    denominator = (weight + 1) * (al - mu**2 / n_features)
    bounded = denominator > numerator
    return np.divide(numerator, denominator, out=np.ones_like(mu), where=bounded)


def ledoit_wolf_shrinkage(
    weight: FloatArray, scatter: FloatArray, fourth: FloatArray
) -> FloatArray:
    """Ledoit-Wolf shrinkage to the identity, (K,), with fourth f = sum w |x - m|^4.

    With C = S / W, mu = trace C / d and fro = sum C_ij^2: delta = (fro - d mu^2) / d,
    beta = (f / W - fro) / (d W), a = max(0, min(beta, delta)) / delta, and 0 where
    delta = 0. Ledoit and Wolf (2004), Journal of Multivariate Analysis 88.
    """
    C = scatter / weight[:, None, None]
    n_features = C.shape[-1]
    mu = np.trace(C, axis1=1, axis2=2) / n_features
    fro = (C * C).sum(axis=(1, 2))
    delta = (fro - n_features * mu**2) / n_features
    beta = (fourth / weight - fro) / (n_features * weight)
    a = np.maximum(0.0, np.minimum(beta, delta))
    return np.divide(a, delta, out=np.zeros_like(mu), where=delta > 0)
