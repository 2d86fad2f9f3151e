"""`ImpreciseDiscriminantAnalysis`: sets of classes from moving Gaussian means.

Its answers are methods of a class of their own, which the estimator that chooses the
imprecision by cross-validation shares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.classes import constant_features, spread_over_classes
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import (
    MomentFitMixin,
    check_rows,
    check_training,
    covariance_rule,
    is_covariance_estimator,
    warn_constant_features,
    warn_repairs,
)
from prudent.imprecise.learn import guarantees, learn
from prudent.imprecise.model import CRITERIA, Model, optimism_share, settings


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
            expected cost; of equal numbers the first in `classes_`. The others weigh
            the bounds of the expected cost.
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
            model, rows = self._ask(X)
            joint = model.log_joint(rows)
            chosen = joint.argmax(axis=1)
            if model.costs is not None:
                chosen = (softmax(joint, axis=1) @ model.costs).argmin(axis=1)
        plain = self._answering()
        labels: NDArray[Any] = plain.classes_[plain._seen][chosen]
        return labels

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior of the precise model, shape (n_samples, n_classes).

        That of discriminant analysis, overconfident where the classes are not normal;
        for shares of rows wrap it in `sklearn.calibration.CalibratedClassifierCV`.
        """
        model, rows = self._ask(X)
        return self._spread(softmax(model.log_joint(rows), axis=1), 0.0)

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
            If questions met `max_nodes`: `n_unresolved` of them.
        """
        (kept,) = self._answer(Model.keep, X)
        return self._spread(kept, False)

    def n_unresolved(self, X: ArrayLike) -> int:
        """Questions (row and class) of `predict_set` that meet `max_nodes`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        int
            Each keeps its class or, where bounds are asked for, leaves outer ones; 0:
            the sets are exact.
        """
        model, rows = self._ask(X)
        return model.keep(rows)[-1]

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
        earlier; what stayed open is False, and its number is in the warning. Log joints
        within 1e-9 of their size are ties, and ties are no preference; what the ball
        leaves of a prior probability that it can move counts above 1e-14. Otherwise no
        preference is too small to be seen.

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
        (preferred,) = self._answer(Model.dominance, X)
        # A class without rows, in no set, gives way to all that have some.
        return self._spread(self._spread(preferred, True, axis=2), False, axis=1)

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
        plain = self._answering()
        means = np.where(plain._seen[:, None], plain.means_, np.nan)
        width = np.zeros_like(means)
        model = plain._asked()
        place = np.ix_(np.flatnonzero(plain._seen), model.features)
        width[place] = model.half_widths()
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
        plain, least_and_most = self._answering(), []
        for moves in self._answer(Model.extremal_means, X):
            means = np.tile(plain.means_[plain._seen], (len(moves), 1, 1))
            means[:, :, plain._model.features] += moves
            least_and_most.append(self._spread(means, np.nan, axis=1))
        return least_and_most[0], least_and_most[1]

    def _ask(self, X: Any) -> tuple[Model, NDArray[Any]]:
        """The model under the present settings, and checked rows."""
        rows = check_rows(self, X)
        return self._answering()._asked(), rows

    def _answer(self, method: Callable[..., tuple[Any, ...]], X: Any) -> list[Any]:
        """What a method of the model answers; of questions left open it warns."""
        model, rows = self._ask(X)
        *answers, unanswered = method(model, rows)
        self._answering().n_unresolved_ = int(unanswered)
        warn_unanswered(type(self).__name__, unanswered, model.max_nodes)
        return answers

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


# --- the estimator --------------------------------------------------------------------


COVARIANCES = ("auto", "empirical", "oas", "ledoit_wolf")

#: Constraints of the parameters that the plain and the CV estimator share.
MODEL_CONSTRAINTS: dict[str, Any] = {
    "covariance_type": [StrOptions({"full", "tied", "diag", "identity"})],
    "box": [StrOptions({"mean", "natural"})],
    "scale": [StrOptions({"std", "within", "range"}), "array-like", None],
    "covariance": "no_validation",  # see `covariance_rule`
    "priors": ["array-like", None],
    "prior_imprecision": [Interval(Real, 0, None, closed="left")],
    "max_nodes": [Interval(Integral, 0, None, closed="left")],
}


class ImpreciseDiscriminantAnalysis(
    Answers, MomentFitMixin, ClassifierMixin, BaseEstimator
):
    """Gaussian discriminant analysis that answers with a set of classes.

    The mean of class k may lie anywhere in a box of half width
    imprecision / n_k round the class mean; the answer is every class that is
    optimal for at least one such choice. Sets grow where a class is backed by few
    rows. They are exact: no class is left out by a heuristic. There is no coverage
    guarantee; for one, use conformal prediction.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "identity"}, default="full"
        One matrix a class (quadratic), one for all (linear), class variances only
        (naive Bayes), or the identity in units of `scale` (nearest centre).
    imprecision : float or array of shape (n_features,), default=1.0
        c >= 0, in rows: how far c pseudo-observations may pull a mean, one number
        or one a feature ((16)). 0 is the precise classifier. Read at prediction
        time, like the parameters marked with (p): changing it needs no new fit.
    box : {"mean", "natural"}, default="mean"
        What moves: each mean by c s_j / n_k in feature j, or the natural parameter,
        by c / (n_k s_j), which keeps the box bounded when a covariance is near
        singular.
    scale : {"std", "within", "range"}, None or array of shape (n_features,), \
default="std"
        s_j: standard deviation over all rows, pooled within the classes, range of
        the rows, 1, or the numbers given (> 0, in units of the features).
    covariance : "auto", "empirical", "oas", "ledoit_wolf", float or estimator, \
default="auto"
        "auto" is "empirical" when all matrices are well conditioned, else "oas"
        for all classes. A float a in [0, 1] is (1 - a) S + a diag(S). An estimator
        is a scikit-learn covariance estimator, fitted on scaled, centred rows, in
        which whole weights are repetitions. Shrinkage works in units of `scale`.
        Eigenvalues below 1e-9 of the largest are raised to it there, and a class of
        equal rows takes the pooled matrix, each with a warning.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities >= 0 of sum 1; None takes the class frequencies.
    prior_imprecision : float, default=0.0
        (p) c_Y >= 0, in rows: priors may move by c_Y / n_samples in total
        variation, under every criterion.
    costs : array-like of shape (n_classes, n_classes), default=None
        (p) costs[k, d] of deciding d when the truth is k; None is 0-1.
    criterion : {"maximality", "e_admissible", "interval"}, default="maximality"
        (p) Which classes `predict_set` keeps. With 0-1 costs and a precise prior the
        first two agree; "interval" keeps more.
    max_nodes : int, default=20000
        (p) Branchings of the search per question. A question that meets it keeps
        its class, or leaves outer bounds: the set then contains the exact one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    means_ : ndarray of shape (n_classes, n_features)
        Class means, in units of `X`.
    covariances_ : ndarray of shape (n_classes, n_features, n_features)
        Covariances in use, in units of `X`; zero for constant features.
    priors_ : ndarray of shape (n_classes,)
    scale_ : ndarray of shape (n_features,)
        s_j, in units of `X`; 1 for constant features.
    covariance_kind_ : str
        The rule in use: "empirical", "oas", "ledoit_wolf", "identity",
        "shrinkage a", or the name of the covariance estimator.
    constant_features_ : ndarray of int
        Features with one value in all rows, which are ignored.
    mean_bounds_ : tuple of two ndarrays of shape (n_classes, n_features)
        Least and largest class means at the present `imprecision`, in units of `X`.
    n_unresolved_ : int
        Questions (row and class) that met `max_nodes` in the last answer that asks any;
        0 after `fit`. Precise answers ask none; `n_unresolved` counts without writing.
    moments_ : ClassMoments
    guarantees_ : tuple
        Empty: this model promises nothing about future rows.

    See Also
    --------
    ImpreciseDiscriminantAnalysisCV : Chooses the imprecision by cross-validation.

    Notes
    -----
    With L_k <= U_k the exact bounds of the log joint, the answer is
    {b : U_b >= max over a of L_a}. U is a convex quadratic program over a box; L is
    its NP-hard counterpart, solved by closed-form bounds that settle nearly all
    questions, then by branch and bound. A row costs O(K p^2), and a search for the
    few that remain. The first call compiles for some seconds; the result is cached.

    References
    ----------
    Carranza-Alarcon and Destercke (2019), "Imprecise Gaussian discriminant
    classification", Pattern Recognition 112, equations 8-11, 16, 19-31 and 41-50.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import ImpreciseDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X, y)
    >>> model.predict_set(X[[0, 68]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    _moments_ddof = 1
    _learns_from_blocks = True
    _parameter_constraints: dict[str, Any] = {
        **MODEL_CONSTRAINTS,
        "imprecision": [Interval(Real, 0, None, closed="left"), "array-like"],
        "costs": ["array-like", None],
        "criterion": [StrOptions(set(CRITERIA))],
    }

    def __init__(
        self,
        *,
        covariance_type: Any = "full",
        imprecision: float | ArrayLike = 1.0,
        box: Any = "mean",
        scale: str | ArrayLike | None = "std",
        covariance: Any = "auto",
        priors: ArrayLike | None = None,
        prior_imprecision: float = 0.0,
        costs: ArrayLike | None = None,
        criterion: str = "maximality",
        max_nodes: int = 20000,
    ) -> None:
        self.covariance_type = covariance_type
        self.imprecision = imprecision
        self.box = box
        self.scale = scale
        self.covariance = covariance
        self.priors = priors
        self.prior_imprecision = prior_imprecision
        self.costs = costs
        self.criterion = criterion
        self.max_nodes = max_nodes

    @fit_context
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Estimate the moments of each class and build the boxes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, finite.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions.

        Returns
        -------
        self : ImpreciseDiscriminantAnalysis

        Raises
        ------
        ValueError
            If the input is not finite, has one class only, or a parameter is out of
            range or at odds with another.
        DegenerateDataError
            If no feature varies, or there are not more rows than classes.
        """
        return self._fit_rows(*check_training(self, X, y, sample_weight))

    def _rows_needed_for(self) -> str | None:
        if isinstance(self.scale, str) and self.scale == "range":
            return "scale='range'"
        if self.covariance_type == "identity":
            return None
        if is_covariance_estimator(self.covariance):
            return f"covariance={self.covariance!r}"
        if isinstance(self.covariance, str) and self.covariance == "ledoit_wolf":
            return "covariance='ledoit_wolf'"
        return None

    def _learn(
        self, moments: ClassMoments, rows: Rows | None = None, *, given: bool = False
    ) -> None:
        rule = covariance_rule(self.covariance, COVARIANCES)
        self._settings(moments.weight > 0)  # refuses bad ones before any work
        constant = constant_features(moments)
        learned = learn(
            moments,
            rows,
            covariance_type=self.covariance_type,
            covariance=rule,
            scale=self.scale,
            box=self.box,
            priors=self.priors,
        )
        warn_constant_features(self, constant)
        warn_repairs(self, learned.covariances, moments.classes[learned.seen])
        self._model, self._seen = learned.model, learned.seen
        self.classes_, self.moments_ = moments.classes, moments
        self.means_, self.covariances_ = np.array(moments.mean), learned.in_units()
        self.priors_ = spread_over_classes(learned.model.prior, learned.seen, 0.0)
        self.scale_ = learned.scale
        self.covariance_kind_ = learned.covariances.kind
        self.constant_features_ = constant
        self.n_unresolved_ = 0
        self.guarantees_ = guarantees()

    def _settings(self, seen: BoolArray) -> dict[str, Any]:
        """The settings of predictions, checked, for the classes that have rows."""
        return settings(
            seen,
            self.n_features_in_,
            imprecision=self.imprecision,
            prior_imprecision=self.prior_imprecision,
            costs=self.costs,
            criterion=self.criterion,
            max_nodes=self.max_nodes,
        )

    def _asked(self) -> Model:
        """The model under the present settings of predictions."""
        return self._model._replace(**self._settings(self._seen))
