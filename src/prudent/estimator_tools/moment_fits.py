"""Fits to labelled rows, or to the moments that suffice: one door, one seam."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
)

from prudent._compat import validate_data
from prudent.core.linalg import ClassCovariances, CovarianceRule
from prudent.core.moments import ClassMoments, feature_names
from prudent.core.rows import LocalRows, Split
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools.given import check_classes
from prudent.estimator_tools.held_out import refuse_dask
from prudent.exceptions import DegenerateDataError, PrudentWarning

# --- rows and labels at the door ------------------------------------------------------


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
) -> tuple[NDArray[Any], NDArray[Any], FloatArray | None]:
    """Validate labelled rows and drop those of weight zero; weight None stays None.

    Rows of weight zero go first, before anybody looks at the labels, so that
    weight 0 equals removal even when a whole class vanishes. float32 and integer
    features keep their type: the mathematics converts block by block. `reset=False`
    checks the features against those of an earlier call.
    """
    refuse_dask(X)
    X, y = validate_data(estimator, X, y, reset=reset)
    if not _are_classes(y):
        check_classes(y)
    if sample_weight is None:
        return X, y, None
    weight, kept = positive_weights(sample_weight, X)
    if len(kept) == len(weight):
        return X, y, weight
    return X[kept], y[kept], weight[kept]


def positive_weights(
    sample_weight: ArrayLike, X: Any
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Weights >= 0 of all rows, and the positions of those that are positive."""
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        raise ValueError(
            "all entries of `sample_weight` are zero: give at least one row "
            "a positive weight."
        )
    return weight, kept


def _are_classes(y: NDArray[Any]) -> bool:
    """Whether labels are words, or integers of a narrow range, without sorting them."""
    if y.dtype.kind == "O":
        return all(isinstance(label, str) for label in y.tolist())
    if y.dtype.kind == "U":
        return True
    if y.dtype.kind not in "iub" or len(y) == 0:
        return False
    return int(y.max()) - int(y.min()) < len(y) // 2


def check_rows(estimator: Any, X: Any) -> NDArray[Any]:
    """Validate rows to predict: the estimator is fitted, the features agree."""
    check_is_fitted(estimator)
    refuse_dask(X)
    return validate_data(estimator, X, reset=False)


def warn_constant_features(
    estimator: Any, features: NDArray[np.intp], unless: str = ""
) -> None:
    """Say which features take one value in the rows learned from, and are ignored."""
    if len(features):
        names = getattr(estimator, "feature_names_in_", None)
        shown = [str(j) if names is None else repr(names[j]) for j in features[:5]]
        more = f" and {len(features) - 5} more" if len(features) > 5 else ""
        warnings.warn(
            f"{type(estimator).__name__}: feature(s) {', '.join(shown)}{more} "
            f"are constant over all rows learned from and are ignored{unless}.",
            PrudentWarning,
            stacklevel=2,
        )


def fold_positions(
    cv: Any, X: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
) -> list[Split]:
    """Positions of training and test rows of each fold of a setting `cv=`.

    Given positions count the rows of weight 0, which `X` and `y` lack; `sample_weight`
    is as the user gave it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        splits = list(check_cv(cv, y, classifier=True).split(X, y))
    for warning in caught:
        warnings.warn(str(warning.message), PrudentWarning, stacklevel=3)
    if sample_weight is None or not isinstance(cv, Iterable):
        return splits
    kept = np.asarray(sample_weight) > 0
    place = np.where(kept, np.cumsum(kept) - 1, -1)

    def remaining(part: NDArray[np.intp]) -> NDArray[np.intp]:
        moved: NDArray[np.intp] = place[part]
        return moved[moved >= 0]

    return [(remaining(train), remaining(test)) for train, test in splits]


def store_fold_scores(estimator: Any, scores: FloatArray, **choices: Any) -> int:
    """Keep `cv_results_` and `best_score_` of a cross-validation; the best choice.

    `scores` (n_folds, n_choices) are those of the test parts, and `choices` what was
    chosen from: arrays with one entry a choice. Returns the position of the choice with
    the largest mean, the first among equals.
    """
    mean = scores.mean(axis=0)
    best = int(mean.argmax())
    estimator.cv_results_ = {
        **choices,
        **{f"split{i}_test_score": each for i, each in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
    }
    estimator.best_score_ = float(mean[best])
    return best


# --- fits that moments suffice for ----------------------------------------------------


def _needs_no_rows(estimator: Any) -> bool:
    parameter = estimator._rows_needed_for()
    if parameter is not None:
        raise AttributeError(
            f"{type(estimator).__name__} with {parameter} needs the rows, moments "
            "do not suffice: use `fit`."
        )
    return True


class MomentsMixin:
    """`fit_moments` and `from_moments` from one seam.

    The estimator supplies

    - `_rows_needed_for()`: the setting for which moments do not suffice, such as
      "covariance='ledoit_wolf'", or None; the methods exist only with None;
    - `_learn(moments, given=False)`: check the parameters against the moments, call
      the mathematics, store the attributes. `given` says that the moments are exact
      by the caller's word (`from_moments`). A class of weight 0 has been declared
      but not seen. `DegenerateDataError` means that these moments do not suffice;
    - `_moments_ddof`: 0 or 1, the denominator W - ddof of published covariances;
    - `_learns_from_blocks`: whether `_learn` also takes `rows`, in blocks that may
      not come to one place.
    """

    _moments_ddof: Literal[0, 1] = 0
    _learns_from_blocks = False
    moments_: ClassMoments
    feature_names_in_: NDArray[Any]

    def _rows_needed_for(self) -> str | None:
        raise NotImplementedError

    def _learn(self, moments: ClassMoments, *, given: bool = False) -> None:
        raise NotImplementedError

    @available_if(_needs_no_rows)
    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit from class moments instead of rows.

        Parameters
        ----------
        moments : ClassMoments
            Additive statistics of every class; the result equals `fit` on the
            rows behind them.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError
            If `moments` is not a `ClassMoments`.
        ValueError
            As `fit`.
        """
        if not isinstance(moments, ClassMoments):
            raise TypeError(
                "`moments` must be a ClassMoments, got "
                f"{type(moments).__name__}; see ClassMoments.from_arrays."
            )
        return self._fit_from(moments)

    @classmethod
    def from_moments(
        cls,
        means: ArrayLike,
        covariances: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        standard_deviations: ArrayLike | None = None,
        correlations: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit from published summary statistics, without rows.

        Parameters
        ----------
        means, covariances, counts, classes, standard_deviations, correlations
            As in :meth:`prudent.ClassMoments.from_covariances`. The columns of a data
            frame of means become `feature_names_in_`.
        **params
            Constructor parameters.

        Returns
        -------
        estimator : fitted estimator

        Raises
        ------
        ValueError
            If shapes or names disagree, a covariance is not symmetric positive
            semidefinite, or a parameter needs the rows.
        """
        estimator = cls(**params)
        parameter = estimator._rows_needed_for()
        if parameter is not None:
            raise ValueError(
                f"{cls.__name__}.from_moments: {parameter} needs the rows; "
                "choose a setting that uses moments only, or use `fit`."
            )
        moments = ClassMoments.from_covariances(
            means,
            covariances,
            counts,
            classes,
            ddof=cls._moments_ddof,
            standard_deviations=standard_deviations,
            correlations=correlations,
        )
        estimator._fit_from(moments, given=True)
        names = feature_names(means)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator

    def _moment_options(self) -> dict[str, Any]:
        """Options of `ClassMoments.from_arrays` that `_learn` relies on."""
        return {}

    def _fit_from(self, moments: ClassMoments, **options: Any) -> Self:
        """Learn from moments as a fit of their own, forgetting earlier batches."""
        self._validate_params()  # type: ignore[attr-defined]
        if self._moment_options().get("fourth") and moments.fourth is None:
            raise ValueError(
                f"{self} needs fourth moments, which these moments lack: accumulate "
                "with `fourth=True`, or choose covariance='oas'."
            )
        self.n_features_in_ = moments.mean.shape[1]
        vars(self).pop("feature_names_in_", None)
        self._learn_afresh(moments, **options)
        return self

    def _learn_afresh(self, moments: ClassMoments, **options: Any) -> None:
        """Call `_learn` with its options, and forget what was declared before."""
        self._declared_classes = None
        self._learn(moments, **options)
        self._solved = True

    def _fit_rows(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: FloatArray | None,
        **options: Any,
    ) -> Self:
        """Learn from the moments of validated rows, with options of `_learn`."""
        moments = ClassMoments.from_arrays(X, y, weight, **self._moment_options())
        if self._learns_from_blocks:
            codes = np.searchsorted(moments.classes, y)
            options["rows"] = LocalRows.from_table(X, codes, weight)
        self._learn_afresh(moments, **options)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_solved", False)


class MomentFitMixin(MomentsMixin):
    """`fit_moments`, `from_moments` and `partial_fit` of a classifier."""

    @available_if(_needs_no_rows)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the moments seen so far and solve again.

        The estimator counts as fitted once at least two classes have rows and
        every class that has rows can be solved.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of this batch.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may ever occur. A class not yet seen has its column
            in every result, prior 0, and is never predicted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If `y` holds a label outside `classes`, or the number of features
            differs from the first batch.
        """
        self._validate_params()  # type: ignore[attr-defined]
        first = not hasattr(self, "moments_")
        X, y, weight = check_training(self, X, y, sample_weight, reset=first)
        declared = getattr(self, "_declared_classes", None)
        if classes is not None:
            given = np.unique(column_or_1d(classes))
            if declared is not None and not np.array_equal(given, declared):
                raise ValueError(
                    f"`classes` must stay {declared.tolist()} in every call of "
                    f"partial_fit, got {given.tolist()}."
                )
            declared = given
        moments = ClassMoments.from_arrays(
            X, y, weight, classes=declared, **self._moment_options()
        )
        if not first:
            moments = self.moments_ + moments
        solved = int(np.count_nonzero(moments.weight)) >= 2
        if solved:
            try:
                self._learn(moments)
            except DegenerateDataError:
                solved = False
        self.moments_ = moments
        self._declared_classes = declared
        self._solved = solved
        return self


# --- the setting `covariance=`, and what is said of repairs ---------------------------


@dataclass(frozen=True, slots=True)
class FittedCovariance:
    """A covariance estimator as a plain function from rows to their covariance."""

    estimator: Any

    def __repr__(self) -> str:
        return repr(self.estimator)

    @property
    def __name__(self) -> str:
        return type(self.estimator).__name__

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(clone(self.estimator).fit(rows).covariance_, dtype=np.float64)


def covariance_rule(
    covariance: Any,
    names: Sequence[str] = ("empirical", "ledoit_wolf", "oas"),
    *,
    parameter: str = "covariance",
) -> CovarianceRule:
    """The setting `covariance=` as the mathematics takes it: name, number, function.

    `names` are those that the family knows; any estimator with `fit` and `covariance_`
    becomes a function. The message names the `parameter`.
    """
    if isinstance(covariance, str):
        if covariance in names:
            return covariance
    elif isinstance(covariance, Real):
        if 0 <= float(covariance) <= 1:
            return float(covariance)
    elif is_covariance_estimator(covariance):
        return FittedCovariance(covariance)
    raise ValueError(
        f"`{parameter}` must be one of {list(names)}, a number in [0, 1] or a "
        f"covariance estimator with `fit`, got {shown(covariance)}."
    )


def is_covariance_estimator(covariance: Any) -> bool:
    """Whether a setting `covariance=` needs the rows of each class in one place."""
    return callable(getattr(covariance, "fit", None))


def warn_repairs(
    estimator: Any, repaired: ClassCovariances, labels: NDArray[Any]
) -> None:
    """Say which classes have a covariance that is not the rule's own."""
    name = type(estimator).__name__
    classes = labels.tolist() if len(repaired.matrices) == len(labels) else ["all"]

    def warn(text: str) -> None:
        warnings.warn(f"{name}: {text}", PrudentWarning, stacklevel=3)

    for k, features in repaired.floored_features:
        warn(
            f"class {classes[k]!r}: {len(features)} feature(s) constant inside the "
            "class (see `floored_features_`); their variance there is set to 1e-9 of "
            "that over all rows."
        )
    if len(repaired.pooled):
        warn(
            f"class(es) {[classes[k] for k in repaired.pooled]} have no covariance of "
            "their own (one row, or equal rows) and use the pooled one."
        )
    raised = np.flatnonzero(repaired.n_floored)
    if len(raised):
        warn(
            f"singular or ill conditioned covariance of class(es) "
            f"{[classes[k] for k in raised]} (condition number "
            f"{repaired.condition[raised].max():.2g}); eigenvalues were raised to "
            f"{repaired.floor:.1g} of the largest. Remove redundant features, or "
            "shrink, for example with covariance='ledoit_wolf'."
        )
