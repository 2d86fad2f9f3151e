"""`ImpreciseDiscriminantAnalysis`: sets of classes from moving Gaussian means."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.classes import constant_features, spread_over_classes
from prudent.core.moments import ClassMoments
from prudent.core.rows import LocalRows, Rows
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
from prudent.imprecise.learn import learn
from prudent.imprecise.promises import guarantees
from prudent.imprecise.questions import (
    CRITERIA,
    Question,
    ask,
    check_path,
    optimism_share,
)

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


class ImpreciseDiscriminantAnalysis(MomentFitMixin, ClassifierMixin, BaseEstimator):
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
    imprecision : float, default=1.0
        c >= 0, in rows: how far c pseudo-observations may pull a mean. 0 is the
        precise classifier. Read at prediction time, like the next parameters marked
        with (p): changing it needs no new fit.
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
    priors : array-like of shape (n_classes,), default=None
        Class probabilities >= 0 of sum 1; None takes the class frequencies.
    prior_imprecision : float, default=0.0
        (p) c_Y >= 0, in rows: priors may move by c_Y / n_samples in total
        variation. Criterion "maximality" only when > 0.
    costs : array-like of shape (n_classes, n_classes), default=None
        (p) costs[k, d] of deciding d when the truth is k; None is 0-1.
    criterion : {"maximality", "e_admissible", "interval"}, default="maximality"
        (p) Which classes `predict_set` keeps. With 0-1 costs the first two agree;
        "interval" keeps more.
    max_nodes : int, default=20000
        (p) Branchings of the search per question. A question that meets it keeps
        its class: the set then contains the exact one.

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
    n_unresolved_ : int
        Questions (row and class) that met `max_nodes` in the last set-valued call.
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
    classification", ISIPTA, PMLR 103, equations 10-11 and 22.

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
        "imprecision": [Interval(Real, 0, None, closed="left")],
        "costs": ["array-like", None],
        "criterion": [StrOptions(set(CRITERIA))],
    }

    def __init__(
        self,
        *,
        covariance_type: Any = "full",
        imprecision: float = 1.0,
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
        rows, labels, weight = check_training(self, X, y, sample_weight)
        moments = ClassMoments.from_arrays(rows, labels, weight)
        codes = np.searchsorted(moments.classes, labels)
        self._learn_afresh(moments, rows=LocalRows.of(rows, codes, weight))
        return self

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
        self._question(moments.weight > 0)
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
        found = learned.covariances
        warn_constant_features(self, constant)
        warn_repairs(self, found, moments.classes[learned.seen])
        self._model, self._seen = learned.model, learned.seen
        self.classes_, self.moments_ = moments.classes, moments
        self.means_, self.covariances_ = np.array(moments.mean), learned.in_units()
        self.priors_, self.scale_ = learned.priors(), learned.scale
        self.covariance_kind_ = found.kind
        self.constant_features_ = constant
        self.n_unresolved_ = 0
        self.guarantees_ = guarantees()

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
            If `criterion` or `optimism` is out of range, or the prior imprecise
            with a criterion.
        """
        rows, question = self._ask(X)
        if criterion is not None:
            share = optimism_share(criterion, optimism, self.prior_imprecision)
            least, most, unanswered = self._model.cost_bounds(rows, question)
            self._count(unanswered)
            chosen = (share * least + (1.0 - share) * most).argmin(axis=1)
        else:
            joint = self._model.log_joint(rows)
            chosen = joint.argmax(axis=1)
            if question.costs is not None:
                chosen = (softmax(joint, axis=1) @ question.costs).argmin(axis=1)
        return self.classes_[self._seen][chosen]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior of the precise model, shape (n_samples, n_classes).

        That of discriminant analysis, overconfident where the classes are not normal;
        for shares of rows wrap it in `sklearn.calibration.CalibratedClassifierCV`.
        """
        rows, _ = self._ask(X)
        return self._spread(softmax(self._model.log_joint(rows), axis=1), 0.0)

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
        rows, question = self._ask(X)
        kept, unanswered = self._model.keep(rows, question)
        self._count(unanswered)
        return self._spread(kept, False)

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
        rows, question = self._ask(X)
        lower, upper, unanswered = self._model.bounds(rows, question)
        self._count(unanswered)
        return self._spread(lower, -np.inf), self._spread(upper, -np.inf)

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
        return self._critical(X, None)

    def _critical(self, X: Any, grid: FloatArray | None) -> FloatArray:
        rows, question = self._ask(X)
        check_path(question)
        critical, unanswered = self._model.critical(rows, question, grid)
        self._count(unanswered)
        return self._spread(critical, np.inf)

    def _ask(self, X: Any) -> tuple[NDArray[Any], Question]:
        rows = check_rows(self, X)
        return rows, self._question(self._seen)

    def _question(self, seen: BoolArray) -> Question:
        return ask(
            seen,
            imprecision=self.imprecision,
            prior_imprecision=self.prior_imprecision,
            costs=self.costs,
            criterion=self.criterion,
            max_nodes=self.max_nodes,
        )

    def _count(self, unanswered: int) -> None:
        self.n_unresolved_ = int(unanswered)
        warn_unanswered(type(self).__name__, unanswered, self.max_nodes)

    def _spread(self, values: NDArray[Any], missing: float | bool) -> NDArray[Any]:
        return spread_over_classes(values, self._seen, missing)


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
