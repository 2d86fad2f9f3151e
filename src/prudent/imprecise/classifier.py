"""`ImpreciseDiscriminantAnalysis`: sets of classes from moving Gaussian means."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.classes import constant_features, spread_over_classes
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray
from prudent.estimator_tools import (
    MomentFitMixin,
    check_training,
    covariance_rule,
    is_covariance_estimator,
    warn_constant_features,
    warn_repairs,
)
from prudent.imprecise.answers import Answers
from prudent.imprecise.learn import learn
from prudent.imprecise.promises import guarantees
from prudent.imprecise.questions import CRITERIA, Question, ask

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
    mean_bounds_ : tuple of two ndarrays of shape (n_classes, n_features)
        Least and largest class means at the present `imprecision`, in units of `X`.
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
        self._question(moments.weight > 0)  # refuses bad settings before any work
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
        self.priors_ = spread_over_classes(learned.model.prior, learned.seen, 0.0)
        self.scale_ = learned.scale
        self.covariance_kind_ = found.kind
        self.constant_features_ = constant
        self.n_unresolved_ = 0
        self.guarantees_ = guarantees()

    def _question(self, seen: BoolArray | None = None) -> Question:
        """The settings of predictions, checked, for the classes that have rows."""
        return ask(
            self._seen if seen is None else seen,
            self.n_features_in_,
            imprecision=self.imprecision,
            prior_imprecision=self.prior_imprecision,
            costs=self.costs,
            criterion=self.criterion,
            max_nodes=self.max_nodes,
        )
