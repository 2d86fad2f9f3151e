"""Symmetric matrices made definite, distances by them, the setting `covariance=`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dtrtri

from prudent.core.statistics import Statistics
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError, SingularCovarianceError

# Negative eigenvalues, relative to the largest, that rounding explains: of an
# accumulated scatter matrix, and of a matrix read from print.
ROUNDING, PRINTED = 1e-10, 1e-8


def floor_eigenvalues(
    covariance: FloatArray, minimum: float | Literal["auto"]
) -> tuple[FloatArray, int]:
    """Raise the eigenvalues of a symmetric matrix to at least `minimum` >= 0.

    "auto" is d * eps * (largest eigenvalue). Returned are the matrix, the same where
    nothing is raised, and the number of eigenvalues that were.
    """
    covariance = np.asarray(covariance, dtype=np.float64)
    values, vectors = np.linalg.eigh(covariance)
    if isinstance(minimum, str):
        floor = len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    else:
        floor = minimum
    if not floor >= 0:
        raise ValueError(
            f"`minimum` must be a number >= 0 or 'auto', got {shown(minimum)}."
        )
    clipped = values < floor
    if not clipped.any():
        return covariance, 0
    # Only the clipped directions are lifted, the rest keeps its digits.
    low = vectors[:, clipped]
    lifted = covariance + (low * (floor - values[clipped])) @ low.T
    return (lifted + lifted.T) / 2, int(clipped.sum())


def check_positive_definite(
    covariances: FloatArray,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
) -> FloatArray:
    """Lower Cholesky factors of class covariances, or an error that names the culprit.

    The pivot ratio L_jj^2 / C_jj is 1 - R^2 of feature j on the features before
    it. Below 100 d eps the feature is a linear combination of them, and j is the
    one to name. A pseudo-inverse is never used: it would give distance 0 along
    the null space, and so call impossible points typical.
    """
    covariances = np.asarray(covariances, dtype=np.float64)
    n_classes, n_features = covariances.shape[:2]
    tolerance = 100 * n_features * np.finfo(np.float64).eps
    factors = np.empty_like(covariances)
    for k in range(n_classes):
        label = k if classes is None else classes[k]
        covariance = covariances[k]
        if not np.isfinite(covariance).all():
            raise ValueError(
                f"the covariance matrix of class {shown(label)} is not finite."
            )
        factor, info = dpotrf(covariance, lower=1, clean=1)
        culprit = info - 1
        if info == 0:
            ratio = factor.diagonal() ** 2 / covariance.diagonal()
            singular = np.flatnonzero(ratio < tolerance)
            culprit = int(singular[0]) if len(singular) else -1
        if culprit >= 0:
            _raise_singular(covariance, culprit, label)
        factors[k] = factor
    return factors


def check_not_indefinite(covariances: FloatArray, classes: NDArray[Any]) -> None:
    """Raise SingularCovarianceError for a matrix with a negative eigenvalue.

    Weights of both signs can make a scatter matrix genuinely indefinite. Takes
    matrices (K, d, d) or variances (K, d); singular ones pass.
    """
    for covariance, label in zip(covariances, classes, strict=True):
        if covariance.ndim == 1:
            smallest, largest = covariance.min(), covariance.max()
        elif not dpotrf(covariance, lower=1)[1]:
            continue
        else:
            values = np.linalg.eigvalsh(covariance)
            smallest, largest = values[0], values[-1]
        if smallest < -ROUNDING * max(largest, 0.0):
            raise SingularCovarianceError(
                f"the covariance matrix of class {shown(label)} is indefinite: its "
                f"smallest eigenvalue is {smallest:.3g}. Weights of both signs do "
                "this; take a smaller step."
            )


def symmetric_nonnegative(covariances: FloatArray, classes: NDArray[Any]) -> FloatArray:
    """Covariances that carry rounding of print, exactly symmetric and semidefinite.

    Asymmetry and negative eigenvalues up to 1e-8, relative, are taken for rounding.
    """
    repaired = np.empty_like(covariances)
    for k, (covariance, label) in enumerate(zip(covariances, classes, strict=True)):
        where = f"the covariance matrix of class {shown(label)}"
        if not np.isfinite(covariance).all():
            raise ValueError(f"{where} is not finite.")
        asymmetry = np.abs(covariance - covariance.T).max()
        if asymmetry > PRINTED * np.abs(covariance).max():
            raise ValueError(
                f"{where} is not symmetric: entries differ by {asymmetry:.3g}."
            )
        symmetric = (covariance + covariance.T) / 2
        values = np.linalg.eigvalsh(symmetric)
        if values[0] < -PRINTED * max(values[-1], 0.0):
            raise ValueError(
                f"{where} is not positive semidefinite: its smallest eigenvalue is "
                f"{values[0]:.3g}."
            )
        # In units of the features: the rounding of large ones would drown small ones.
        deviation = np.sqrt(np.maximum(symmetric.diagonal(), 0.0))
        unit = np.outer(deviation, deviation)
        unit[unit == 0] = 1.0
        raised, n_raised = floor_eigenvalues(symmetric / unit, 0.0)
        repaired[k] = raised * unit if n_raised else symmetric
    return repaired


def _raise_singular(covariance: FloatArray, j: int, label: Any) -> None:
    """Name the feature at whose pivot the factor of a covariance broke down."""
    variance = covariance[j, j]
    if variance < 0:
        why = f"has the negative variance {variance:.3g}"
    elif variance == 0:
        why = "is constant in this class"
    else:
        why = "is a linear combination of the features before it in this class"
    raise SingularCovarianceError(
        f"the covariance matrix of class {shown(label)} is singular or indefinite: "
        f"feature {j} {why}. Drop the feature, or shrink, for example with "
        'covariance="ledoit_wolf".'
    )


# --- squared Mahalanobis distances of many rows to many class centres -----------------


# The compiled kernel is faster up to this many features, and worth importing from
# this many numbers to multiply on.
COMPILED_FEATURES = 48
COMPILED_SIZE = 2**19


def row_blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of rows that together cover 0..n_rows and each fit the cache."""
    size = max(64, 2**16 // n_features)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


@dataclass(frozen=True, slots=True, eq=False)
class MahalanobisFactors:
    """Class centres (pairs) and inverse Cholesky factors L_k^-1, ready for many rows.

    `log_determinants` are those of C_k = L_k L_k'. The square is never expanded:
    x'C^-1 x - 2 m'C^-1 x + ... is meaningless at a condition number of 1e12, where the
    inverse factor is as accurate as a triangular solve.
    """

    means: FloatArray
    means_lo: FloatArray
    inverse_factors: FloatArray
    log_determinants: FloatArray

    @classmethod
    def from_covariances(
        cls,
        means: FloatArray,
        covariances: FloatArray,
        *,
        means_lo: FloatArray | None = None,
        classes: Sequence[Any] | NDArray[Any] | None = None,
    ) -> Self:
        """Factor each covariance once; errors name the class and the feature."""
        means = np.asarray(means, dtype=np.float64)
        factors = check_positive_definite(covariances, classes=classes)
        inverse_factors = np.array([dtrtri(L, lower=1)[0] for L in factors])
        diagonals = np.diagonal(factors, axis1=1, axis2=2)
        if means_lo is None:
            means_lo = np.zeros_like(means)
        # Parts below the rounding of x - m itself would cost a pass for nothing.
        spreads = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        matters = np.abs(means_lo) > np.finfo(np.float64).eps * spreads
        return cls(
            means,
            np.where(matters.any(axis=1, keepdims=True), means_lo, 0.0),
            inverse_factors,
            2 * np.log(diagonals).sum(axis=1),
        )

    def squared_distances(self, X: NDArray[Any]) -> FloatArray:
        """Squared distances of rows (n, d) to every centre, (n, K)."""
        out: FloatArray = np.empty((len(X), len(self.means)))
        for rows, distances in self.blocks(X):
            out[rows] = distances
        return out

    def blocks(self, X: NDArray[Any]) -> Iterator[tuple[slice, FloatArray]]:
        """Slices of rows with their squared distances, for callers that go on.

        The array (block, K) is reused by the next block.
        """
        n_classes, n_features = self.means.shape
        compiled = n_features <= COMPILED_FEATURES
        if compiled and X.size * n_classes >= COMPILED_SIZE:
            measure = self._compiled_kernel()
        else:
            measure = self._blas_kernel()
        for rows in row_blocks(len(X), n_features):
            if rows.start == 0:  # the largest block
                distances = np.empty((rows.stop, n_classes))
            block = X[rows]
            D = distances[: len(block)]
            measure(block, D)
            yield rows, D

    def _blas_kernel(self) -> Callable[[NDArray[Any], FloatArray], None]:
        """Triangular products in place: half the flops of a general product."""
        buffer: FloatArray = np.empty(0)

        def measure(block: NDArray[Any], out: FloatArray) -> None:
            nonlocal buffer
            if len(buffer) < len(block):
                buffer = np.empty(block.shape)
            B = buffer[: len(block)]
            for k, (mean, mean_lo, U) in enumerate(
                zip(self.means, self.means_lo, self.inverse_factors, strict=True)
            ):
                np.subtract(block, mean, out=B)
                if mean_lo.any():
                    B -= mean_lo
                # Z = U B': both transposes are column-major views of the buffers,
                # so BLAS works in place.
                Z = dtrmm(1.0, U.T, B.T, trans_a=1, overwrite_b=1).T
                np.einsum("ij,ij->i", Z, Z, out=out[:, k])

        return measure

    def _compiled_kernel(self) -> Callable[[NDArray[Any], FloatArray], None]:
        """One compiled pass over a block for all classes: best of few features."""
        from prudent.core.kernels import squared_distances

        n_classes, n_features = self.means.shape
        padded = -(-n_features // 4) * 4
        factors = np.zeros((n_classes, padded, padded))
        factors[:, :n_features, :n_features] = self.inverse_factors

        def measure(block: NDArray[Any], out: FloatArray) -> None:
            rows = np.ascontiguousarray(block, dtype=np.float64)
            squared_distances(rows, self.means, self.means_lo, factors, out)

        return measure


# --- the setting `covariance=`: from the scatter or the rows of classes to matrices ---


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
    """Covariance of rows (n, d) by a function of them, (d, d).

    Whole weights (n,) are repetitions of the rows.

    Raises
    ------
    ValueError
        If a weight is no whole number, or the function gives no finite matrix.
    """
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
            repaired[k], n_floored[k] = floor_eigenvalues(matrix, floor * values[-1])
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
    """Refuse options of `ClassMoments.covariance` that do not go together."""
    for name, value, accepted in (
        ("estimator", estimator, ("empirical", "ledoit_wolf", "oas")),
        ("ddof", ddof, (0, 1)),
        ("target", target, ("diagonal", "identity")),
    ):
        if value not in accepted:
            raise ValueError(f"`{name}` must be one of {accepted}, got {shown(value)}.")
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
    """Covariances (K, d, d) shrunk to (1 - a) C + a T, with one a, or one a class (K,).

    The target T is diag(C), or for "identity" (trace C / d) I.
    """
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
    C, mu, _ = _in_own_units(scatter / weight[:, None, None])
    n_features = C.shape[-1]
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
    C, mu, unit = _in_own_units(scatter / weight[:, None, None])
    n_features = C.shape[-1]
    fro = (C * C).sum(axis=(1, 2))
    delta = (fro - n_features * mu**2) / n_features
    beta = (fourth / unit / unit / weight - fro) / (n_features * weight)
    a = np.maximum(0.0, np.minimum(beta, delta))
    return np.divide(a, delta, out=np.zeros_like(mu), where=delta > 0)


def _in_own_units(C: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Matrices whose mean variance is about 1, that variance, and the units, (K,).

    Units are powers of two, so that no digit changes, and squares of no scale of the
    features over- or underflow.
    """
    mu = np.trace(C, axis1=1, axis2=2) / C.shape[-1]
    unit = np.ldexp(1.0, np.frexp(np.where(mu > 0, mu, 1.0))[1])
    return C / unit[:, None, None], mu / unit, unit
