"""What the estimators share: validation, the moment seam and set predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from prudent._compat import validate_data
from prudent.core.classes import constant_features as constant_features
from prudent.core.covariance import ClassCovariances, CovarianceRule
from prudent.core.holdout import HeldOut, count_repeated, hold_out
from prudent.core.moments import ClassMoments
from prudent.core.selection import (
    NullShare,
    Selection,
    check_selection,
    rows_needed,
    select_rows,
)
from prudent.core.summary import feature_names
from prudent.core.types import BoolArray, FloatArray
from prudent.exceptions import DegenerateDataError, PrudentWarning

#: Positions of training and of test rows.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
) -> tuple[NDArray[Any], NDArray[Any], FloatArray | None]:
    """Validate labelled rows and drop those of weight zero.

    Rows of weight zero go first, before anybody looks at the labels, so that
    weight 0 equals removal even when a whole class vanishes. float32 and integer
    features keep their type: the mathematics converts block by block.

    Parameters
    ----------
    estimator : estimator
        Receives `n_features_in_` and `feature_names_in_` when `reset`.
    X : array-like or data frame of shape (n_samples, n_features)
        Finite numbers.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0, read as repetitions of a row.
    reset : bool, default=True
        False checks the features against those of an earlier call.

    Returns
    -------
    X : ndarray of shape (n_kept, n_features)
    y : ndarray of shape (n_kept,)
    weight : ndarray of shape (n_kept,) or None
        None when `sample_weight` is None.

    Raises
    ------
    TypeError
        If `X` is a dask collection.
    ValueError
        If the input is not a finite numeric table with one label per row, the
        labels are not classes, or the weights are negative or all zero.
    """
    refuse_dask(X)
    X, y = validate_data(estimator, X, y, reset=reset)
    if not _are_few_integers(y):
        check_classification_targets(y)
    if sample_weight is None:
        return X, y, None
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    kept = weight > 0
    if not kept.any():
        raise ValueError(
            "all entries of `sample_weight` are zero: give at least one row "
            "a positive weight."
        )
    if kept.all():
        return X, y, weight
    return X[kept], y[kept], weight[kept]


def _are_few_integers(y: NDArray[Any]) -> bool:
    """Whether labels are integers of a narrow range: classes, without sorting them."""
    if y.dtype.kind not in "iub" or len(y) == 0:
        return False
    return int(y.max()) - int(y.min()) < len(y) // 2


def check_rows(estimator: Any, X: Any) -> NDArray[Any]:
    """Validate rows to predict: the estimator is fitted, the features agree."""
    check_is_fitted(estimator)
    refuse_dask(X)
    return validate_data(estimator, X, reset=False)


def refuse_dask(X: Any) -> None:
    """Raise TypeError for a dask collection instead of pulling all its data in."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "dask input: use prudent.dask.fit(estimator, X, y), "
            "or call .compute() first."
        )


def set_feature_names(estimator: Any, means: Any) -> None:
    """Take the feature names of a fit from moments from a data frame of means."""
    names = feature_names(means)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def frame_columns(X: Any) -> tuple[list[NDArray[Any]], BoolArray] | None:
    """Columns of a pandas or polars data frame, and which of them hold levels.

    Text, categorical, object and boolean columns hold levels. Missing values are None
    or NaN. None for anything but a data frame.

    Raises
    ------
    ValueError
        If the frame has no row.
    """
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    if not len(frame):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        )
    kinds = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Boolean)
    is_level = np.array([dtype in kinds for dtype in frame.schema.values()])
    columns = []
    for series, holds_levels in zip(frame.iter_columns(), is_level, strict=True):
        if holds_levels or series.is_null().any():
            values = np.array(series.to_list(), dtype=object)
            values[series.is_null().to_numpy()] = None
            columns.append(values)
        else:
            columns.append(series.to_numpy())
    return columns, is_level


def warn_constant_features(estimator: Any, features: NDArray[np.intp]) -> None:
    """Say which features take one value in all rows and are ignored."""
    if len(features):
        names = getattr(estimator, "feature_names_in_", None)
        shown = [str(j) if names is None else repr(names[j]) for j in features[:5]]
        more = f" and {len(features) - 5} more" if len(features) > 5 else ""
        warnings.warn(
            f"{type(estimator).__name__}: feature(s) {', '.join(shown)}{more} "
            "are constant over all rows and are ignored.",
            PrudentWarning,
            stacklevel=2,
        )


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
    """The setting `covariance=` as the mathematics takes it.

    Parameters
    ----------
    covariance : str, float or covariance estimator
        Any estimator with `fit` and `covariance_` will do.
    names : sequence of str
        Names that the family knows.
    parameter : str, default="covariance"
        Named in the message.

    Raises
    ------
    ValueError
        If it is none of these.
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
        f"covariance estimator with `fit`, got {covariance!r}."
    )


def is_covariance_estimator(covariance: Any) -> bool:
    """Whether a setting `covariance=` needs the rows of each class in one place."""
    return callable(getattr(covariance, "fit", None))


def warn_repairs(estimator: Any, found: ClassCovariances, labels: NDArray[Any]) -> None:
    """Say which classes have a covariance that is not the rule's own."""
    name = type(estimator).__name__
    classes = labels.tolist() if len(found.matrices) == len(labels) else ["all"]

    def warn(text: str) -> None:
        warnings.warn(f"{name}: {text}", PrudentWarning, stacklevel=3)

    for k, features in found.floored_features:
        warn(
            f"class {classes[k]!r}: {len(features)} feature(s) constant inside the "
            "class (see `floored_features_`); their variance there is set to 1e-9 of "
            "that over all rows."
        )
    if len(found.pooled):
        warn(
            f"class(es) {[classes[k] for k in found.pooled]} have no covariance of "
            "their own (one row, or equal rows) and use the pooled one."
        )
    raised = np.flatnonzero(found.n_floored)
    if len(raised):
        warn(
            f"singular or ill conditioned covariance of class(es) "
            f"{[classes[k] for k in raised]} (condition number "
            f"{found.condition[raised].max():.2g}); eigenvalues were raised to "
            f"{found.floor:.1g} of the largest. Remove redundant features, or shrink, "
            "for example with covariance='ledoit_wolf'."
        )


def hold_out_rows(
    estimator: Any,
    X: NDArray[Any],
    share: float,
    random: np.random.RandomState,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Draw the rows that an estimator is held to, and warn of repeated ones.

    Parameters
    ----------
    estimator : estimator
        Named in messages.
    X : ndarray of shape (n_samples, n_features)
        Rows; those that are not numbers are not searched for repeats.
    share : float
        Share of the rows, or of the groups, to hold out.
    random : RandomState
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together (of a patient, of a machine) have equal values.
        Whole groups are held out, and one random row of each counts.

    Raises
    ------
    ValueError
        If there are fewer than two rows or groups, or `groups` has another length.
    """
    name, n_rows = type(estimator).__name__, len(X)
    if n_rows < 2:
        raise ValueError(
            f"{name}: {n_rows} row (1 sample is too few) cannot be split into rows to "
            "learn from and held-out rows; give at least 2."
        )
    labels = None if groups is None else check_groups(groups, n_rows)
    split = hold_out(n_rows, share, random, labels)
    if labels is None and X.dtype.kind in "fiub":
        repeated = count_repeated(X, split)
        if repeated:
            warnings.warn(
                f"{name}: {repeated} of {len(split.held_out)} held-out rows stand "
                "among the rows learned from too; a promise from rows seen before "
                "can be false. Remove repeated rows, or say with `groups` which rows "
                "belong together.",
                PrudentWarning,
                stacklevel=3,
            )
    return split


def fold_positions(
    cv: Any, X: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
) -> list[Split]:
    """Positions of training and test rows of each fold of a setting `cv=`.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test) positions
        Given positions count rows of weight 0.
    X, y : ndarray
        Rows and labels without the rows of weight 0.
    sample_weight : array-like or None
        Weights as the user gave them.

    Warns
    -----
    PrudentWarning
        If a class has fewer rows than there are folds.
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


def check_groups(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Group labels as an array: one for each row, two groups at least.

    Raises
    ------
    ValueError
        If there is not one label a row, or only one group.
    """
    labels = column_or_1d(groups)
    if len(labels) != n_rows:
        raise ValueError(
            f"`groups` must hold one label for each of the {n_rows} rows, got "
            f"{len(labels)}."
        )
    if len(np.unique(labels)) < 2:
        raise ValueError(
            "`groups` must name at least 2 groups: whole groups are held out."
        )
    return labels


def _holds_out_rows(detector: Any) -> bool:
    if not detector._holds_out_rows():
        raise AttributeError(
            f"{type(detector).__name__}: `select` needs the scores of calibration rows "
            "that the threshold is an order statistic of, which these settings do not "
            "keep."
        )
    return True


class SelectionMixin:
    """Batch detection for detectors that keep the scores of their calibration rows.

    A class has `p_value`, `_holds_out_rows()` by its parameters and, once fitted,
    `_calibration_scores`, sorted.
    """

    @property
    def calibration_scores_(self) -> FloatArray:
        """Sorted scores of the calibration rows."""
        scores = vars(self).get("_calibration_scores")
        if scores is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no calibration scores: it is not fitted, "
                "or its settings hold out no rows."
            )
        return np.asarray(scores, dtype=np.float64)

    def calibrated_scores(self, X: Any) -> FloatArray:
        """Scores of rows on the scale of `calibration_scores_`."""
        scores: FloatArray = self.score_samples(X)  # type: ignore[attr-defined]
        return scores

    @available_if(_holds_out_rows)
    def select(
        self,
        X: Any,
        *,
        false_discovery_rate: float = 0.1,
        null_share: NullShare = "one",
        confidence: float | None = None,
    ) -> Selection:
        """Say which rows of a batch are unusual, with a bound on the wrong ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The batch; it may be empty.
        false_discovery_rate : float, default=0.1
            q in (0, 1): expected share of ordinary rows among those selected, counted
            as 0 where none is.
        null_share : {"one", "storey"}, default="one"
            "storey" estimates the share of ordinary rows and selects more where it
            is small.
        confidence : float, default=None
            None: the rate holds on average over calibration rows. Otherwise it holds
            given them with this probability: needed where one detector serves many
            batches, or the promise is watched.

        Returns
        -------
        Selection
            mask, p_values, guarantee.

        Raises
        ------
        ValueError
            If a setting is out of range.

        Warns
        -----
        PrudentWarning
            If nothing can be selected unless more than half of the batch scores below
            every calibration row.

        Notes
        -----
        Benjamini-Hochberg on conformal p-values; ceil(n / (q (m + 1))) rows must score
        below all m calibration rows before any row is selected.
        """
        check_selection(false_discovery_rate, null_share, confidence)
        m, n = len(self.calibration_scores_), _num_samples(X)
        p_values = self.p_value(X) if n else np.empty(0)  # type: ignore[attr-defined]
        needed = rows_needed(n, m, false_discovery_rate, confidence)
        if needed > n / 2:
            warnings.warn(
                f"{type(self).__name__}: with {m} calibration rows nothing is selected "
                f"unless {needed} of {n} rows score below all of them; give more "
                "calibration rows or allow a larger `false_discovery_rate`.",
                PrudentWarning,
                stacklevel=2,
            )
        return select_rows(
            p_values,
            m,
            rate=false_discovery_rate,
            null_share=null_share,
            confidence=confidence,
        )


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
    #: False once a weight other than 0 and 1 stood for a row: no confidence then.
    _has_plain_weights: bool

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
        means : array-like of shape (n_classes, n_features)
            Class means. The columns of a data frame become `feature_names_in_`, and
            those of all other frames must be the same, in the same order.
        covariances : array-like of shape (n_classes, n_features, n_features)
            Class covariances, used as given; data frames as in
            `ClassMoments.from_covariances`.
        counts : array-like of shape (n_classes,)
            Rows (or total weight) behind each class, > 0.
        classes : array-like of shape (n_classes,), default=None
            Labels; None means the index of `means` if that is a pandas frame, else
            0, 1, ...
        standard_deviations : array-like of shape (n_classes, n_features), default=None
            With `correlations`, in place of `covariances`.
        correlations : array-like of shape (n_classes, n_features, n_features) or \
(n_features, n_features), default=None
            Of each class, or of all.
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
        set_feature_names(estimator, means)
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
        self._has_plain_weights = bool((moments.weight == moments.count).all())
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
    ) -> None:
        """Learn from the moments of validated rows, with options of `_learn`."""
        self._has_plain_weights = _are_plain(weight)
        moments = ClassMoments.from_arrays(X, y, weight, **self._moment_options())
        self._learn_afresh(moments, **options)

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
        plain_before = getattr(self, "_has_plain_weights", True)
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
        self._has_plain_weights = _are_plain(weight)
        if not first:
            moments = self.moments_ + moments
            self._has_plain_weights &= plain_before
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


def _are_plain(weight: FloatArray | None) -> bool:
    """Whether all weights are 1; rows of weight 0 are gone by then."""
    return weight is None or bool((weight == 1).all())


def predict_set(estimator: Any, X: Any) -> BoolArray:
    """Set of classes that a fitted estimator cannot rule out, for each row.

    Works through `Pipeline`, search objects such as `GridSearchCV`, and
    `FrozenEstimator`, none of which forwards `predict_set` by itself.

    Parameters
    ----------
    estimator : fitted estimator
        One with `predict_set`, or a meta-estimator around it.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows as the outermost estimator takes them.

    Returns
    -------
    sets : ndarray of bool, shape (n_samples, n_classes)
        Columns in the order of `classes_`.

    Raises
    ------
    TypeError
        If no estimator inside has `predict_set`.

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(
    ...     StandardScaler(), prudent.ImpreciseDiscriminantAnalysis()
    ... ).fit(X, y)
    >>> prudent.predict_set(model, X[:2])
    array([[ True, False, False],
           [ True, False, False]])
    """
    if hasattr(estimator, "predict_set"):
        return estimator.predict_set(X)
    if isinstance(estimator, Pipeline):
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        return predict_set(estimator.steps[-1][1], X)
    if hasattr(estimator, "best_estimator_"):
        return predict_set(estimator.best_estimator_, X)
    inner = getattr(estimator, "estimator_", getattr(estimator, "estimator", None))
    if inner is not None:
        return predict_set(inner, X)
    kind = "classifier" if is_classifier(estimator) else "object"
    raise TypeError(
        f"{kind} {type(estimator).__name__} has no `predict_set`; use one of "
        "prudent's set-valued classifiers."
    )
