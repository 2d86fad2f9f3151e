"""`ImpreciseDiscriminantAnalysisCV`: the imprecision chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from prudent._compat import StrOptions, fit_context
from prudent.core.classes import class_costs, class_priors
from prudent.core.rows import Split
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import (
    check_training,
    covariance_rule,
    fold_positions,
    store_fold_scores,
)
from prudent.exceptions import PrudentWarning
from prudent.imprecise.classifier import (
    COVARIANCES,
    MODEL_CONSTRAINTS,
    Answers,
    ImpreciseDiscriminantAnalysis,
    warn_unanswered,
)
from prudent.metrics import check_alpha

#: a in the utility a / size - (a - 1) / size^2 of a set that holds the truth.
REWARDS = {"discounted_accuracy": 1.0, "u65": 1.6, "u80": 2.2}


class ImpreciseDiscriminantAnalysisCV(Answers, ClassifierMixin, BaseEstimator):
    """Imprecise discriminant analysis with the imprecision chosen from data.

    Each fold is fitted once and gives the sets of every imprecision at once, so a
    grid of 500 values costs little more than one. The chosen model is fitted again
    on all rows and answers every method of the plain estimator.

    Parameters
    ----------
    imprecisions : array-like, default=None
        Values to choose from, >= 0; None is 0.01, 0.02, ..., 5.
    shrinkages : sequence, default=None
        Values for `covariance` to choose from jointly; None is `covariance` alone.
        Worth it where covariances are near singular.
    scoring : {"u80", "u65", "discounted_accuracy"} or float, default="u80"
        What is maximised; see `prudent.metrics`. A number is the `alpha` of
        :func:`prudent.metrics.utility_score`.
    cv : int, splitter or iterable of (train, test) positions, default=5
        A number means stratified folds in the order of the rows.
    n_jobs : int, default=None
        Folds done at the same time, as in joblib.
    covariance_type, box, scale, covariance, priors, prior_imprecision, costs, max_nodes
        As in :class:`ImpreciseDiscriminantAnalysis`. With `costs` each fold evaluates
        single imprecisions, some on part of its rows, instead of one path.
    criterion : {"maximality", "e_admissible"}, default="maximality"
        The same sets either way, with 0-1 costs and a precise prior.

    Attributes
    ----------
    imprecision_ : float
        The value chosen; the smallest among equals.
    shrinkage_ : object
        The value of `covariance` chosen; the first among equals.
    best_score_ : float
        Mean score of the choice over the folds.
    cv_results_ : dict of ndarray
        `imprecision`, `shrinkage`, `split{i}_test_score`, `mean_test_score` and
        `std_test_score`, one entry a pair.
    estimator_ : ImpreciseDiscriminantAnalysis
        The chosen model, fitted on all rows.
    classes_, means_, covariances_, priors_, scale_, covariance_kind_, \
constant_features_, n_unresolved_, moments_, guarantees_
        Those of `estimator_`; see :class:`ImpreciseDiscriminantAnalysis`.

    Notes
    -----
    The score of a fold is a step function of the imprecision: row by row, classes
    enter at their critical imprecision. A label absent from a fold's training part
    counts as a miss. The chosen score is optimistic, like every tuned score: judge
    the result on other data.

    References
    ----------
    Carranza-Alarcon and Destercke (2019), section 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import ImpreciseDiscriminantAnalysisCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 1, 2, 4]).fit(X, y)
    >>> model.imprecision_, round(model.best_score_, 3)
    (2.0, 0.987)
    """

    _parameter_constraints: dict[str, Any] = {
        **MODEL_CONSTRAINTS,
        "imprecisions": ["array-like", None],
        "shrinkages": [list, tuple, np.ndarray, None],
        "scoring": [StrOptions(set(REWARDS)), Real],
        "costs": ["array-like", None],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
        "criterion": [StrOptions({"maximality", "e_admissible"})],
    }

    def __init__(
        self,
        *,
        imprecisions: ArrayLike | None = None,
        shrinkages: Sequence[Any] | None = None,
        scoring: str | float = "u80",
        cv: Any = 5,
        n_jobs: int | None = None,
        covariance_type: str = "full",
        box: str = "mean",
        scale: str | ArrayLike | None = "std",
        covariance: Any = "auto",
        priors: ArrayLike | None = None,
        prior_imprecision: float = 0.0,
        costs: ArrayLike | None = None,
        criterion: str = "maximality",
        max_nodes: int = 20000,
    ) -> None:
        self.imprecisions = imprecisions
        self.shrinkages = shrinkages
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs
        self.covariance_type = covariance_type
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
        """Choose the imprecision, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`ImpreciseDiscriminantAnalysis.fit`; fold scores are weighted
            too.

        Returns
        -------
        self : ImpreciseDiscriminantAnalysisCV

        Raises
        ------
        ValueError
            As the plain estimator; if a value to choose from is out of range; or if
            the training part of a fold holds one class only.

        Warns
        -----
        PrudentWarning
            If a class has fewer rows than there are folds.
        ConvergenceWarning
            If questions met `max_nodes` in the folds.
        """
        grid, reward = _check_imprecisions(self.imprecisions), self.scoring
        if isinstance(reward, str):
            reward = REWARDS[reward]
        else:
            reward = check_alpha(reward, "scoring")
        given = self.shrinkages
        choices = [self.covariance] if given is None else list(given)
        if not choices:
            raise ValueError("`shrinkages` must hold at least one value, got none.")
        for covariance in choices:
            named = "covariance" if given is None else "shrinkages"
            covariance_rule(covariance, COVARIANCES, parameter=named)
        rows, labels, weight = check_training(self, X, y, sample_weight)
        counts = np.unique(labels, return_counts=True)[1]
        class_priors(self.priors, counts.astype(np.float64))
        if self.costs is not None:
            class_costs(self.costs, len(counts))
        splits = fold_positions(self.cv, rows, labels, sample_weight)
        outcomes = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold_scores)(
                self._plain(covariance), rows, labels, weight, split, grid, reward
            )
            for covariance in choices
            for split in splits
        )
        unanswered = sum(count for _, count in outcomes)
        warn_unanswered(type(self).__name__, unanswered, self.max_nodes)
        scores = np.array([score for score, _ in outcomes])
        scores = scores.reshape(len(choices), len(splits), len(grid))
        self._choose(scores.transpose(1, 0, 2).reshape(len(splits), -1), choices, grid)
        model = self._plain(self.shrinkage_).set_params(imprecision=self.imprecision_)
        self.estimator_ = model.fit(rows, labels, sample_weight=weight)
        return self

    def _choose(self, scores: FloatArray, choices: list[Any], grid: FloatArray) -> None:
        """Keep the best by the scores (n_splits, n_choices * n_grid) of all pairs."""
        shrinkage = np.empty(len(choices), dtype=object)
        shrinkage[:] = choices
        best = store_fold_scores(
            self,
            scores,
            imprecision=np.tile(grid, len(choices)),
            shrinkage=np.repeat(shrinkage, len(grid)),
        )
        self.imprecision_ = float(grid[best % len(grid)])
        self.shrinkage_ = choices[best // len(grid)]

    def _answering(self) -> ImpreciseDiscriminantAnalysis:
        return self.estimator_

    def __getattr__(self, name: str) -> Any:
        """What the chosen model has learned is learned here too."""
        learned = name.endswith("_") and not name.startswith("_")
        if learned and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def _plain(self, covariance: Any) -> ImpreciseDiscriminantAnalysis:
        """The estimator that is tuned, with the settings of this one."""
        plain = ImpreciseDiscriminantAnalysis()
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in plain.get_params() if name in own}
        return plain.set_params(**shared | {"covariance": covariance})


def _fold_scores(
    plain: ImpreciseDiscriminantAnalysis,
    rows: NDArray[Any],
    labels: NDArray[Any],
    weight: FloatArray | None,
    split: Split,
    grid: FloatArray,
    reward: float,
) -> tuple[FloatArray, int]:
    """Score of one fold at every imprecision, and its unanswered questions."""
    train, test = split
    classes, codes = np.unique(labels, return_inverse=True)
    n_rows = np.bincount(codes[train], minlength=len(classes)).astype(np.float64)
    here = n_rows > 0  # a fold may lack a class
    if plain.priors is not None:
        plain.set_params(priors=class_priors(plain.priors, n_rows)[here])
    if plain.costs is not None:
        plain.set_params(costs=np.asarray(plain.costs)[np.ix_(here, here)])
    with warnings.catch_warnings():
        # The fit on all rows says what is worth saying; the caller counts the rest.
        warnings.simplefilter("ignore", PrudentWarning)
        own = None if weight is None else weight[train]
        plain.fit(rows[train], labels[train], sample_weight=own)
    model = plain._asked()
    admissible = model.criterion == "e_admissible"
    if model.costs is None and not (admissible and model.prior_imprecision > 0):
        critical, unanswered = model.critical(rows[test], grid)
    else:
        critical, unanswered = model.critical_sets(rows[test], grid)
    truth = labels[test][:, None] == plain.classes_[plain._seen]
    share = np.ones(len(test)) if weight is None else weight[test]
    return mean_utilities(critical, truth, share, grid, reward), unanswered


def mean_utilities(
    critical: FloatArray,
    truth: BoolArray,
    weight: FloatArray,
    grid: FloatArray,
    reward: float,
) -> FloatArray:
    """Mean utility of the sets {k : critical <= c} at every c of an increasing grid.

    With a = `reward` the utility is a / size - (a - 1) / size^2 of a set with the
    truth, (41) of the paper with its second sign put right; 0 without. `truth` (n, K)
    marks the column of the true class, none for a class the model does not know.
    """
    entry = np.searchsorted(grid, critical)  # first grid point with the class in
    n_rows, n_grid = len(critical), len(grid)
    entered = np.zeros((n_rows, n_grid + 1))
    np.add.at(entered, (np.arange(n_rows)[:, None], entry), 1.0)
    size = np.maximum(np.cumsum(entered[:, :-1], axis=1), 1.0)
    hits = np.where(truth, entry, n_grid).min(axis=1)[:, None] <= np.arange(n_grid)
    utility = np.where(hits, reward / size - (reward - 1.0) / size**2, 0.0)
    return weight @ utility / weight.sum()


def _check_imprecisions(imprecisions: ArrayLike | None) -> FloatArray:
    """Values to choose from, rising; None is 0.01, 0.02, ..., 5."""
    if imprecisions is None:
        return np.arange(1, 501) / 100
    grid = np.unique(np.asarray(imprecisions, dtype=np.float64))
    if len(grid) == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(
            "`imprecisions` must be one or more finite numbers >= 0, got "
            f"{imprecisions!r}."
        )
    return grid
