"""What a fitted imprecise model answers: one class, sets, bounds, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prudent.core.classes import spread_over_classes
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import check_rows
from prudent.imprecise.model import Model
from prudent.imprecise.questions import Question, optimism_share


class Answers:
    """Methods of the plain and of the CV estimator; both ask the plain one's model."""

    _model: Model
    _seen: BoolArray

    def _answering(self) -> Any:
        """The plain estimator whose settings and model answer."""
        return self

    def predict(
        self, X: ArrayLike, criterion: str | None = None, *, optimism: float = 0.5
    ) -> NDArray[Any]:
        """One class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        criterion : {"maximin", "maximax", "hurwicz"}, default=None
            None is the precise model: the most probable class, or the least
            expected cost. The others weigh the bounds of the expected cost.
        optimism : float, default=0.5
            In [0, 1]: share of the lower bound, for "hurwicz"; "maximin" is 0 and
            "maximax" 1.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If `criterion` or `optimism` is out of range.
        """
        if criterion is not None:
            share = optimism_share(criterion, optimism)
            least, most = self._answer(Model.cost_bounds, X)
            chosen = (share * least + (1.0 - share) * most).argmin(axis=1)
        else:
            one, rows, question = self._ask(X)
            joint = one._model.log_joint(rows)
            chosen = joint.argmax(axis=1)
            if question.costs is not None:
                chosen = (softmax(joint, axis=1) @ question.costs).argmin(axis=1)
        one = self._answering()
        labels: NDArray[Any] = one.classes_[one._seen][chosen]
        return labels

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior of the precise model, shape (n_samples, n_classes).

        That of discriminant analysis, overconfident where the classes are not normal;
        for shares of rows wrap it in `sklearn.calibration.CalibratedClassifierCV`.
        """
        one, rows, _ = self._ask(X)
        return self._spread(softmax(one._model.log_joint(rows), axis=1), 0.0)

    def predict_set(self, X: ArrayLike) -> BoolArray:
        """Classes that cannot be ruled out, under `criterion` and `costs`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Columns in the order of `classes_`; no row is empty.

        Warns
        -----
        ConvergenceWarning
            If `n_unresolved_` questions met `max_nodes` and kept their class.
        """
        (kept,) = self._answer(Model.keep, X)
        return self._spread(kept, False)

    def dominance(self, X: ArrayLike) -> BoolArray:
        """Which class is preferred to which under every model: it explains a set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes, n_classes)
            Entry (i, a, b): deciding a instead of b lowers the expected cost of row i
            under every mean in the boxes and every prior in the ball (Definition 3
            and (9) of Carranza-Alarcon and Destercke 2019). With 0-1 costs: a is more
            probable than b in each of them. A partial order.

        Notes
        -----
        ``~dominance(X).any(axis=1)`` is ``predict_set(X)`` for criterion "maximality",
        whatever `criterion` is. It asks for more than the sets, so `max_nodes` is met
        earlier; what stayed open is counted in `n_unresolved_` and is False.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from prudent import ImpreciseDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
        >>> model.dominance(X[[68]])[0].astype(
        ...     int
        ... )  # neither of 1 and 2 beats the other
        array([[0, 0, 0],
               [1, 0, 0],
               [1, 0, 0]])
        """
        (found,) = self._answer(Model.dominance, X)
        return self._spread(self._spread(found, False, axis=2), False, axis=1)

    def log_joint_bounds(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Exact bounds of log prior + log density over the box and the prior ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            Densities in units of `X` without its constant features; outer bounds
            where the search met `max_nodes`.
        """
        lower, upper = self._answer(Model.bounds, X)
        return self._spread(lower, -np.inf), self._spread(upper, -np.inf)

    def posterior_bounds(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Lower and upper probability of each class, (8) of the paper.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            In [0, 1], with `predict_proba` between them. Tight: attained by means in
            the boxes and, with `prior_imprecision`, by a prior in the ball; outer
            bounds where the search met `max_nodes`.

        Notes
        -----
        With likelihoods between l and u and priors P, the lower probability of class k
        is P_k l_k / (P_k l_k + sum of the others' P_j u_j). An imprecise prior takes
        its whole radius from class k and gives it to the rival with the largest u.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from prudent import ImpreciseDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
        >>> lower, upper = model.posterior_bounds(X[[68]])
        >>> lower.round(2).tolist(), upper.round(2).tolist()
        ([[0.0, 0.26, 0.02]], [[0.0, 0.98, 0.74]])
        """
        lower, upper = self._answer(Model.posterior_bounds, X)
        return self._spread(lower, 0.0), self._spread(upper, 0.0)

    def critical_imprecision(self, X: ArrayLike) -> FloatArray:
        """Smallest imprecision at which each class enters the set of each row.

        ``critical_imprecision(X) <= c`` are the sets of imprecision c, for all c at
        once; the parameter `imprecision` plays no role.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            >= 0, accurate to 1e-6 relative plus 1e-7; 0 for the most probable
            class, infinite for a class that never enters.

        Raises
        ------
        ValueError
            If `costs` are given or `criterion` is not "maximality".
        """
        (critical,) = self._answer(Model.critical, X)
        return self._spread(critical, np.inf)

    @property
    def mean_bounds_(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of each class mean, feature by feature, (19)-(22).

        Two arrays (n_classes, n_features) in units of `X`: the class mean minus and
        plus ``imprecision * scale_ / n_k`` with ``box="mean"``. The means of a
        "natural" box fill a parallelotope; these are its extremes in each feature.
        Constant features do not move; classes without rows have NaN.
        """
        check_is_fitted(self)
        one = self._answering()
        means = np.where(one._seen[:, None], one.means_, np.nan)
        width = np.zeros_like(means)
        place = np.ix_(np.flatnonzero(one._seen), one._model.features)
        width[place] = one._model.half_widths(one._question())
        return means - width, means + width

    def extremal_means(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The means in each box that make each row least and most probable.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        least, most : ndarray of shape (n_samples, n_classes, n_features)
            In units of `X`: solutions of (28), a corner of the box, and (29) of the
            paper, with the matrix of the class itself. NaN for classes without rows.
            They attain `log_joint_bounds` under a precise prior; where the search met
            `max_nodes`, `least` is the best corner it has found.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from prudent import ImpreciseDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
        >>> least, most = model.extremal_means(X[[68]])
        >>> (least[0, 1] - model.means_[1]).round(3).tolist()
        [-0.033, 0.017, 0.07, -0.03]
        """
        one, found = self._answering(), []
        for moves in self._answer(Model.extremal_means, X):
            means = np.tile(one.means_[one._seen], (len(moves), 1, 1))
            means[:, :, one._model.features] += moves
            found.append(self._spread(means, np.nan, axis=1))
        return found[0], found[1]

    def _ask(self, X: Any) -> tuple[Any, NDArray[Any], Question]:
        """The plain estimator, checked rows and settings."""
        rows = check_rows(self, X)
        one = self._answering()
        return one, rows, one._question()

    def _answer(self, method: Callable[..., tuple[Any, ...]], X: Any) -> list[Any]:
        """What a method of the model answers; the questions left open are counted."""
        one, rows, question = self._ask(X)
        *found, unanswered = method(one._model, rows, question)
        one.n_unresolved_ = int(unanswered)
        warn_unanswered(type(self).__name__, unanswered, one.max_nodes)
        return found

    def _spread(
        self, values: NDArray[Any], missing: float | bool, axis: int = -1
    ) -> NDArray[Any]:
        return spread_over_classes(values, self._answering()._seen, missing, axis)


def warn_unanswered(name: str, unanswered: int, max_nodes: int) -> None:
    """Say how many questions met the node limit, if any."""
    if unanswered:
        warnings.warn(
            f"{name}: {unanswered} question(s) met max_nodes={max_nodes} and were "
            "answered with caution: sets contain the exact ones, bounds are outer. "
            "Raise `max_nodes` for exact answers.",
            ConvergenceWarning,
            stacklevel=4,
        )
