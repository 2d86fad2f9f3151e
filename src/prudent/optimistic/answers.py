"""What a fitted optimistic classifier keeps and answers, whoever chose its radii."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.classes import constant_features, spread_over_classes
from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import check_rows, warn_constant_features, warn_repairs
from prudent.optimistic.learn import Learned
from prudent.optimistic.model import Model, winner
from prudent.optimistic.promises import guarantees


class OptimisticAnswers:
    """Of a class with `threshold` and `rule`, which ends its fit with `_store`."""

    threshold: Any
    rule: Any
    n_features_in_: int
    _model: Model

    def _store(self, learned: Learned, moments: ClassMoments) -> None:
        """Keep what a fit found, and warn of what it repaired."""
        nominal, seen = learned.nominal, learned.model.seen
        constant = constant_features(moments)
        labels = moments.classes[seen]
        warn_constant_features(self, constant)
        warn_repairs(self, nominal, labels)
        model = self._model = learned.model
        self.classes_, self.moments_ = moments.classes, moments
        self.class_count_, self.means_ = moments.weight, moments.mean
        self.covariances_ = learned.covariances(moments.mean.shape[1])
        self.radii_, self.set_radii_ = learned.radii, learned.set_radii
        self.priors_, self.offsets_ = model.priors, model.offsets
        moves = callable(self.threshold) and self.rule == "ratio"
        self._threshold = self.threshold if moves else None
        self.log_threshold_ = None if moves else model.log_threshold
        self.constant_features_ = constant
        self.floored_features_ = [
            (labels[k], learned.features[j]) for k, j in nominal.floored_features
        ]
        self.n_floored_eigenvalues_ = spread_over_classes(nominal.n_floored, seen, 0)
        self.guarantees_ = guarantees()

    def _rows(self, X: ArrayLike) -> tuple[NDArray[Any], FloatArray | None]:
        """Validated rows without the features that are ignored; own thresholds."""
        X = check_rows(self, X)
        logs = None if self._threshold is None else log_ratios(self._threshold, X)
        ignored = self.constant_features_
        return (np.delete(X, ignored, axis=1) if len(ignored) else X), logs

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compared values: log score ratio less the log threshold, or class scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: >= 0 for `classes_[1]`. More: the largest wins.
        """
        rows, log_thresholds = self._rows(X)
        return self._model.decision(rows, log_thresholds)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most plausible class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        return self.classes_[winner(decision)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Softmax of the compared scores: agrees with `predict`, NOT calibrated.

        Of equal shares (a row within reach of several nonparametric balls) `predict`
        takes the nearer class. Numbers to rank by, not shares of rows: wrap the
        classifier in `sklearn.calibration.CalibratedClassifierCV` for those; what the
        ball leaves open is in `posterior_bounds`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows, log_thresholds = self._rows(X)
        return self._model.probabilities(rows, log_thresholds)

    def optimistic_scores(self, X: ArrayLike) -> FloatArray:
        """Log score of each row by the best moments of each ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Gaussian: log density + d/2 log(2 pi); nonparametric: log probability.
        """
        rows, _ = self._rows(X)
        return self._model.scores(rows, "upper")

    def pessimistic_scores(self, X: ArrayLike) -> FloatArray:
        """Log score of each row by the worst moments of each ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the units of `optimistic_scores`.
        """
        rows, _ = self._rows(X)
        return self._model.scores(rows, "lower")

    def posterior_bounds(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Range of each posterior probability over all moments in the balls.

        The balls are those of `radii_`; `predict_set` has smaller ones by default.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            Attained bounds; 0 for a class not yet seen.

        Raises
        ------
        ValueError
            For `likelihood="nonparametric"`, whose worst density is 0.
        """
        rows, _ = self._rows(X)
        return self._model.posterior_bounds(rows)

    def predict_set(self, X: ArrayLike) -> BoolArray:
        """Classes that no other class beats whatever the moments in the balls.

        Interval dominance of the (Gaussian: prior weighted) scores in balls of
        `set_radii_`, which keeps more classes the larger these are, united with
        `predict`: never empty. A threshold, or balls other than those of `radii_`, can
        make `predict` a dominated class; only such a class leaves at a larger radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        rows, log_thresholds = self._rows(X)
        return self._model.sets(rows, log_thresholds)

    def most_plausible_moments(self, x: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Moments in each ball that explain one row best.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row.

        Returns
        -------
        means : ndarray of shape (n_classes, n_features)
        covariances : ndarray of shape (n_classes, n_features, n_features)
            In the units of `X`; a class not yet seen keeps its attributes.
        """
        rows, _ = self._rows(x if np.ndim(x) == 2 else np.atleast_2d(x))
        row = rows.astype(np.float64)
        if len(row) != 1:
            raise ValueError(f"`x` must be one row, got {len(row)}.")
        means, covariances = self.means_.copy(), self.covariances_.copy()
        kept = np.delete(np.arange(self.n_features_in_), self.constant_features_)
        block = np.ix_(kept, kept)
        for j, k in enumerate(np.flatnonzero(self._model.seen)):
            shift, covariances[k][block] = self._model.most_plausible(
                j, row[0], covariances[k][block]
            )
            means[k, kept] += shift
        return means, covariances


def log_ratios(threshold: Any, X: NDArray[Any]) -> FloatArray:
    """Logarithms of a user's thresholds, one for each row."""
    ratios = np.asarray(threshold(X), dtype=np.float64)
    if ratios.shape != (len(X),):
        raise ValueError(
            f"`threshold` must give one ratio for each of the {len(X)} rows, got shape "
            f"{ratios.shape}."
        )
    bad = np.flatnonzero(~(ratios > 0))
    if len(bad):
        raise ValueError(
            f"`threshold` must give ratios > 0, got {float(ratios[bad[0]])} at row "
            f"{int(bad[0])}."
        )
    logarithms: FloatArray = np.log(ratios)
    return logarithms
