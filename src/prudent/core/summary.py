"""Published summary statistics: means, covariances or deviations, counts, names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.definiteness import symmetric_nonnegative
from prudent.core.types import FloatArray
from prudent.core.validation import label_array, shown


class FromSummary:
    """Moments from what is published about classes."""

    __slots__ = ()

    @classmethod
    def from_covariances(
        cls,
        means: ArrayLike,
        covariances: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        ddof: Literal[0, 1] = 0,
        *,
        standard_deviations: ArrayLike | None = None,
        correlations: ArrayLike | None = None,
    ) -> Self:
        """Moments that have the given means and covariances.

        Arrays, or pandas or polars data frames, whose names have to agree: columns
        are features, a pandas index that is not 0..K-1 holds the labels.

        Parameters
        ----------
        means : array-like of shape (K, d)
            Class means.
        covariances : array-like of shape (K, d, d), default=None
            Class covariances; K data frames, or the frame of
            ``X.groupby(y).cov()``, will do. Symmetric and positive semidefinite to
            1e-8, relative; smaller negative eigenvalues are clipped to 0.
        counts : array-like of shape (K,)
            Total weight of each class, > `ddof`.
        classes : array-like of shape (K,), default=None
            Distinct labels, in the order of `means`; by default the row labels of
            `means`, else 0..K-1.
        ddof : {0, 1}, default=0
            The covariances are S / (W - ddof).
        standard_deviations : array-like of shape (K, d), default=None
            With `correlations`, in place of `covariances`; >= 0.
        correlations : array-like of shape (K, d, d) or (d, d), default=None
            In [-1, 1], with 1 on the diagonal; (d, d) serves all classes.

        Raises
        ------
        ValueError
            If shapes or names disagree, a number is not finite, a covariance is not
            symmetric positive semidefinite, a count is not > `ddof`, or there is
            not one of `covariances` and `standard_deviations`.
        """
        labels, weight, mean, matrices = _read(
            means, covariances, counts, classes, ddof, standard_deviations, correlations
        )
        order = np.argsort(labels)
        labels, weight = labels[order], weight[order]
        matrices = symmetric_nonnegative(matrices[order], labels)
        return cls(
            labels,  # type: ignore[call-arg]
            np.rint(weight).astype(np.int64),
            weight,
            mean[order],
            np.zeros_like(mean),
            matrices * (weight - ddof)[:, None, None],
        )


def _read(
    means: Any,
    covariances: Any,
    counts: Any,
    classes: ArrayLike | None,
    ddof: int,
    standard_deviations: Any,
    correlations: Any,
) -> tuple[NDArray[Any], FloatArray, FloatArray, FloatArray]:
    """Labels, counts, means and covariances in the order given, once they agree."""
    mean = _numbers("means", means)
    if mean.ndim != 2 or not mean.size:
        raise ValueError(
            f"`means` must have shape (n_classes, n_features), got {mean.shape}."
        )
    if not np.isfinite(mean).all():
        raise ValueError(f"`means` must be finite, got {mean.tolist()}.")
    if counts is None:
        raise ValueError("`counts` is needed: the rows behind each class.")
    weight = _numbers("counts", counts)
    labels = _class_labels(means, classes, len(mean))
    _check_shape("counts", weight, (len(mean),), mean)
    _check_shape("classes", labels, (len(mean),), mean)
    if not ((weight > ddof) & np.isfinite(weight)).all():
        raise ValueError(
            f"`counts` must be finite and > {ddof}, got {weight.tolist()}."
        )
    if len(np.unique(labels)) < len(mean):
        raise ValueError(f"`classes` must be distinct, got {labels.tolist()}.")
    _check_names("counts", _index(counts), labels.tolist())
    if (covariances is None) == (standard_deviations is None):
        raise ValueError(
            "give either `covariances`, or `standard_deviations` with `correlations`."
        )
    names = feature_names(means)
    if covariances is None:
        matrices = _from_deviations(
            standard_deviations, correlations, names, labels, mean
        )
    elif correlations is None:
        matrices = _matrices("covariances", covariances, names, labels, mean)
    else:
        raise ValueError("`correlations` go with `standard_deviations` only.")
    return labels, weight, mean, matrices


def feature_names(table: Any) -> list[str] | None:
    """Column names of a data frame of any kind; None unless all are text."""
    columns = getattr(table, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _numbers(name: str, values: Any) -> FloatArray:
    """An array of floats, or an error that names the argument."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        values = [np.asarray(value) for value in values]
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be an array of numbers, the same shape for each class."
        ) from None


def _index(table: Any) -> list[Any] | None:
    """Row labels of a data frame or series, unless they only count the rows."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    labels = list(index)
    return None if labels == list(range(len(labels))) else labels


def _class_labels(
    means: Any, classes: ArrayLike | None, n_classes: int
) -> NDArray[Any]:
    """Labels as given, else the row labels of the means, else 0..K-1."""
    index = _index(means)
    if classes is None:
        return np.arange(n_classes) if index is None else label_array(index, "classes")
    labels = label_array(classes, "classes")
    _check_names("means", index, labels.tolist())
    return labels


def _check_names(
    what: str, found: list[Any] | None, expected: list[Any] | None, kind: str = "class"
) -> None:
    """Raise for names that differ or stand in another order; None says nothing."""
    if found is None or expected is None or found == expected:
        return
    same = len(found) == len(expected) and set(found) == set(expected)
    how = f"the {kind} names in another order" if same else f"other {kind} names"
    raise ValueError(
        f"`{what}` has {how}: {_listed(found)}, expected {_listed(expected)}."
    )


def _listed(names: list[Any]) -> str:
    more = ", ..." if len(names) > 6 else ""
    return ", ".join(shown(name) for name in names[:6]) + more


def _check_shape(
    name: str, array: NDArray[Any], shape: tuple[int, ...], mean: FloatArray
) -> None:
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} to go with `means` of shape "
            f"{mean.shape}, got {array.shape}."
        )


def _matrices(
    what: str,
    matrices: Any,
    names: list[str] | None,
    labels: NDArray[Any],
    mean: FloatArray,
) -> FloatArray:
    """One matrix for each class, from an array, frames, or one frame of all."""
    n_classes, n_features = mean.shape
    index = _index(matrices)
    index = [] if index is None or not isinstance(index[0], tuple) else index
    if len(index) == n_classes * n_features:  # as groupby(...).cov() gives them
        _check_names(what, [row[-1] for row in index[:n_features]], names, "feature")
        _check_names(what, [row[0] for row in index[::n_features]], labels.tolist())
        _check_names(what, feature_names(matrices), names, "feature")
        array = _numbers(what, matrices).reshape(n_classes, n_features, -1)
    else:
        array = _numbers(what, matrices)
        for matrix in matrices if isinstance(matrices, Sequence) else [matrices]:
            _check_names(what, feature_names(matrix), names, "feature")
            _check_names(what, _index(matrix), names, "feature")
    _check_shape(what, array, (n_classes, n_features, n_features), mean)
    return array


def _from_deviations(
    standard_deviations: Any,
    correlations: Any,
    names: list[str] | None,
    labels: NDArray[Any],
    mean: FloatArray,
) -> FloatArray:
    """Covariances of standard deviations (K, d) and correlations, one or K."""
    if correlations is None:
        raise ValueError(
            "`standard_deviations` alone tell no covariance: give `correlations` too, "
            "np.eye(n_features) where they are taken to be 0."
        )
    deviations = _numbers("standard_deviations", standard_deviations)
    _check_names(
        "standard_deviations", feature_names(standard_deviations), names, "feature"
    )
    _check_names("standard_deviations", _index(standard_deviations), labels.tolist())
    _check_shape("standard_deviations", deviations, mean.shape, mean)
    if not ((deviations >= 0) & np.isfinite(deviations)).all():
        raise ValueError(
            f"`standard_deviations` must be finite and >= 0, got {deviations.tolist()}."
        )
    if np.ndim(correlations) == 2 and len(correlations) == mean.shape[1]:
        correlations = [correlations] * len(mean)
    matrices = _matrices("correlations", correlations, names, labels, mean)
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if not ((np.abs(matrices) <= 1).all() and (diagonal == 1).all()):
        raise ValueError(
            "`correlations` must lie in [-1, 1], with 1 on the diagonal; give "
            "covariances as `covariances`."
        )
    return deviations[:, :, None] * matrices * deviations[:, None, :]
