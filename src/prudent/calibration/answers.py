"""What a fitted calibrated classifier reads, keeps and answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from prudent._compat import validate_data
from prudent.calibration.categorical import MixedRows
from prudent.calibration.families import Statistics
from prudent.calibration.learn import Learned
from prudent.calibration.model import Model
from prudent.calibration.reading import Columns, Reader
from prudent.calibration.stream import Stream
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import (
    frame_columns,
    positive_weights,
    refuse_dask,
    warn_constant_features,
)

#: Families whose columns may hold words.
WITH_LEVELS = ("categorical", "mixed")


def learns_statistics(estimator: Any) -> bool:
    """Whether there is a `partial_fit`."""
    if estimator.method == "gd":
        raise AttributeError(
            "method='gd' has no statistics to add up: use `fit`, or method='rc'."
        )
    return True


def _has_density(estimator: Any) -> bool:
    if not isinstance(estimator.family, str) or estimator.method == "gd":
        raise AttributeError(
            "only the built-in families have a density, and method='gd' has none."
        )
    return True


def _can_be_sampled(estimator: Any) -> bool:
    if estimator.family == "mixed":
        raise AttributeError("rows of family='mixed' need the types of a data frame.")
    return _has_density(estimator)


class CalibratedAnswers:
    """Reads rows, keeps what a fit found, and answers."""

    family: Any
    method: str
    classes_: NDArray[Any]
    priors_: FloatArray
    n_iter_: int
    guarantees_: tuple[Guarantee, ...]
    _stream: Stream | None
    _reader: Reader
    _model: Model

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class, or log posteriors; with `costs`, minus costs.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: log h(1 | x) - log h(0 | x), with `costs` the expected cost
            of predicting class 0 minus that of class 1. More classes: the log
            posteriors, of a family with `coef_` the linear scores, which differ from
            them by a constant of the row; with `costs` minus the expected cost of
            each prediction.
        """
        rows = self._read_rows(X)
        return self._model.decision(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest posterior, or with `costs` the least expected cost.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._read_rows(X)
        return self.classes_[self._model.decide(rows)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior h(k | x) of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        rows = self._read_rows(X)
        return self._model.posteriors(rows)

    @available_if(_has_density)
    def score_samples(self, X: Any) -> FloatArray:
        """Log density of each row under the model, over all classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Log of sum_k p_k f_k(x), in the units of `X`, over the features that vary
            and the cells that are there. Levels have probabilities for densities.
        """
        rows = self._read_rows(X)
        return self._model.log_density(rows)

    @available_if(_can_be_sampled)
    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Numbers, or levels for `family="categorical"`.
        y : ndarray of shape (n_samples,)
            Their labels.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"`n_samples` must be at least 1, got {n_samples}.")
        random = check_random_state(random_state)
        model = self._model
        priors = self.priors_[model.seen]
        codes = random.choice(len(priors), size=n_samples, p=priors / priors.sum())
        family: Any = model.family
        rows = family.sample(model.parameters, codes, random)
        y = self.classes_[np.flatnonzero(model.seen)[codes]]
        return self._reader.values(rows), y

    # Reading rows.

    def _read_training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, first: bool = True
    ) -> tuple[Any, NDArray[Any], FloatArray, IntArray]:
        """Rows of positive weight, their labels, weights, and places among all rows.

        With `first`, the rows set the levels of categorical features; else those of an
        earlier batch stay.
        """
        rows = self._validated(X, reset=first)
        places = np.arange(len(rows))
        # Whatever the features are: their places stand in for them.
        _, y = check_X_y(places[:, np.newaxis], y, estimator=self)
        check_classification_targets(y)
        if sample_weight is None:
            return rows, y, np.ones(len(y)), places
        weight, places = positive_weights(sample_weight, rows)
        if len(places) == len(weight):
            return rows, y, weight, places
        return rows[places], y[places], weight[places], places

    def _read_rows(self, X: Any) -> Any:
        """Rows to predict, as the model takes them."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Rows as the model takes them; with `reset` they set what may follow."""
        refuse_dask(X)
        if self.family not in WITH_LEVELS:
            # Missing numbers pass where the family knows what to do with them.
            passes = isinstance(self.family, str) and self.method != "gd"
            finite: Any = "allow-nan" if passes else True
            rows = validate_data(self, X, reset=reset, ensure_all_finite=finite)
            if reset:
                self._reader = Reader(np.zeros(rows.shape[1], dtype=np.bool_))
            return rows
        columns, is_level = _columns(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._reader = Reader.of_first_rows(self.family, columns, is_level)
        rows = self._reader.rows(columns)
        if isinstance(rows, MixedRows) and rows.numbers.shape[1]:
            check_array(rows.numbers, input_name="X", ensure_all_finite="allow-nan")
        return rows

    # Keeping what a fit found.

    def _keep(self, learned: Learned, classes: NDArray[Any]) -> None:
        path = learned.path
        self._stream, self._is_solved = None, True
        self.n_frozen_ = path.n_frozen
        self._store_path(path.curves, path.best_iteration, path.n_evaluations)
        self._store(classes, learned.model, path.statistics)
        self.guarantees_ = learned.guarantees

    def _store(
        self, classes: NDArray[Any], model: Model, statistics: Statistics
    ) -> None:
        self.classes_, self._model = classes, model
        self.family_, self.statistics_ = model.family, statistics
        for name, value in model.learned().items():
            setattr(self, name, value)
        for name in ("coef_", "intercept_"):  # of an earlier fit of another family
            vars(self).pop(name, None)
        coefficients = model.coefficients()
        if coefficients is not None:
            self.coef_, self.intercept_ = coefficients
        constant = getattr(model.family, "constant_features", np.zeros(0, np.intp))
        self.constant_features_ = np.sort(self._reader.positions(constant))
        warn_constant_features(self, self.constant_features_)

    def _store_path(self, curves: FloatArray, best_iteration: int, n_iter: int) -> None:
        self.loss_curve_, self.error_curve_, self.objective_curve_ = curves[:3]
        self.learning_rate_curve_ = curves[3]
        self.best_iteration_, self.n_iter_ = best_iteration, n_iter
        self.guarantees_ = ()

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_solved", False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = self.family in WITH_LEVELS
        tags.input_tags.string = tags.input_tags.categorical
        # "full" and "tied" predict rows with missing cells, but learn from whole ones.
        learns_missing = (*WITH_LEVELS, "diag", "tied_diag")
        tags.input_tags.allow_nan = (
            self.family in learns_missing and self.method != "gd"
        )
        return tags


def _columns(X: Any) -> tuple[Columns, BoolArray | None]:
    """One array per column, missing values as None or NaN; which hold levels."""
    found = frame_columns(X)
    if found is not None:
        return found
    # As an array, a list of numbers and words would become words alone.
    dtype = None if hasattr(X, "dtype") else object
    return list(check_array(X, dtype=dtype, ensure_all_finite=False).T), None
