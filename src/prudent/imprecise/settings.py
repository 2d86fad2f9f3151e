"""Checks of the estimators' parameters against the data and each other."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from prudent._compat import Interval, StrOptions
from prudent.imprecise.model import Question

__all__ = [
    "CRITERIA",
    "MODEL_CONSTRAINTS",
    "check_covariance",
    "check_learning",
    "check_path",
    "check_precise_prior",
    "check_predicting",
    "optimism_share",
    "rows_needed_for",
    "warn_unanswered",
]

FloatArray = NDArray[np.float64]

CRITERIA = ("maximality", "e_admissible", "interval")
RULES = ("auto", "empirical", "oas", "ledoit_wolf")

LARGEST = 1e100  # of an imprecision: its square must stay finite

#: Constraints of the parameters that the plain and the CV estimator share.
MODEL_CONSTRAINTS: dict[str, Any] = {
    "covariance_type": [StrOptions({"full", "tied", "diag", "identity"})],
    "box": [StrOptions({"mean", "natural"})],
    "scale": [StrOptions({"std", "within", "range"}), "array-like", None],
    "covariance": "no_validation",  # `check_covariance` says more
    "priors": ["array-like", None],
    "prior_imprecision": [Interval(Real, 0, None, closed="left")],
    "max_nodes": [Interval(Integral, 0, None, closed="left")],
}


def rows_needed_for(estimator: Any) -> str | None:
    """The setting for which class moments do not suffice, as name=value."""
    if isinstance(estimator.scale, str) and estimator.scale == "range":
        return "scale='range'"
    covariance = estimator.covariance
    if estimator.covariance_type == "identity" or isinstance(covariance, Real):
        return None
    if isinstance(covariance, str):
        return "covariance='ledoit_wolf'" if covariance == "ledoit_wolf" else None
    return f"covariance={covariance!r}"


def check_learning(
    estimator: Any,
    seen: NDArray[np.bool_],
    labels: NDArray[Any],
    n_features: int,
) -> None:
    """Refuse classes that cannot be told apart, and settings that do not fit them.

    Parameters
    ----------
    estimator : ImpreciseDiscriminantAnalysis
    seen : ndarray of bool, shape (n_classes,)
        Classes that have rows.
    labels : ndarray
        Labels of these.
    n_features : int

    Raises
    ------
    ValueError
        Naming the parameter, what it is and what it may be.
    """
    if len(labels) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs rows of at least two classes, got one "
            f"class: {labels.tolist()}."
        )
    n_classes = len(seen)
    check_predicting(estimator, seen)
    check_covariance("covariance", estimator.covariance)
    scale = estimator.scale
    if scale is not None and not isinstance(scale, str):
        values = np.asarray(scale, dtype=np.float64)
        if values.shape != (n_features,) or not (
            np.isfinite(values).all() and (values > 0).all()
        ):
            raise ValueError(
                f"`scale` must be n_features = {n_features} finite numbers > 0, "
                f"'std', 'within', 'range' or None, got {scale!r}."
            )
    if estimator.priors is not None:
        priors = np.asarray(estimator.priors, dtype=np.float64)
        fits = priors.shape == (n_classes,) and np.isfinite(priors).all()
        if not fits or (priors < 0).any() or abs(priors.sum() - 1) > 1e-6:
            raise ValueError(
                f"`priors` must be n_classes = {n_classes} numbers >= 0 that sum to "
                f"1, got {estimator.priors!r}."
            )


def check_covariance(name: str, covariance: Any) -> None:
    """Refuse what is no covariance rule: a name, an amount, or an estimator."""
    if isinstance(covariance, str):
        accepted = covariance in RULES
    elif isinstance(covariance, Real):
        accepted = 0 <= float(covariance) <= 1
    else:
        accepted = hasattr(covariance, "fit")
    if not accepted:
        raise ValueError(
            f"`{name}` must be one of {list(RULES)}, a number in [0, 1] or a "
            f"scikit-learn covariance estimator, got {covariance!r}."
        )


def check_predicting(estimator: Any, seen: NDArray[np.bool_]) -> Question:
    """Check the settings of predictions; they may change without a new fit.

    Parameters
    ----------
    estimator : ImpreciseDiscriminantAnalysis
    seen : ndarray of bool, shape (n_classes,)
        Classes that have rows; the question concerns only them.

    Raises
    ------
    ValueError
        Naming the parameter, what it is and what it may be.
    """
    for name in ("imprecision", "prior_imprecision"):
        value = getattr(estimator, name)
        if not (isinstance(value, Real) and 0 <= float(value) <= LARGEST):
            raise ValueError(
                f"`{name}` must be a number from 0 to {LARGEST:g}, got {value!r}."
            )
    nodes = estimator.max_nodes
    if not (isinstance(nodes, Integral) and int(nodes) >= 0):
        raise ValueError(f"`max_nodes` must be an integer >= 0, got {nodes!r}.")
    criterion = estimator.criterion
    if criterion not in CRITERIA:
        raise ValueError(
            f"`criterion` must be one of {list(CRITERIA)}, got {criterion!r}."
        )
    if criterion != "maximality":
        check_precise_prior(estimator, f"criterion={criterion!r}")
    costs = None
    if estimator.costs is not None:
        costs = _check_costs(estimator.costs, len(seen))[np.ix_(seen, seen)]
        if criterion == "interval":
            raise ValueError(
                "criterion='interval' compares probabilities and knows no `costs`: "
                "use criterion='maximality' or 'e_admissible', or costs=None."
            )
    return Question(
        imprecision=float(estimator.imprecision),
        prior_imprecision=float(estimator.prior_imprecision),
        costs=costs,
        criterion=criterion,
        max_nodes=int(nodes),
    )


def check_precise_prior(estimator: Any, what: str) -> None:
    """Refuse an imprecise prior where only a precise one has a meaning."""
    if estimator.prior_imprecision > 0:
        raise ValueError(
            f"{what} needs a precise prior: set prior_imprecision=0, got "
            f"{estimator.prior_imprecision!r}, or use criterion='maximality'."
        )


def _check_costs(costs: ArrayLike, n_classes: int) -> FloatArray:
    """Cost matrix as an array of shape (n_classes, n_classes)."""
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(
            f"`costs` must be finite, of shape (n_classes, n_classes) = "
            f"({n_classes}, {n_classes}), rows = truth; got shape {matrix.shape}."
        )
    return matrix


def optimism_share(estimator: Any, criterion: str, optimism: float) -> float:
    """Share of the lower expected cost that a criterion of `predict` stands for."""
    shares = {"maximin": 0.0, "maximax": 1.0, "hurwicz": optimism}
    if criterion not in shares:
        raise ValueError(
            f"`criterion` must be None or one of {list(shares)}, got {criterion!r}."
        )
    if not 0 <= optimism <= 1:
        raise ValueError(f"`optimism` must lie in [0, 1], got {optimism!r}.")
    check_precise_prior(estimator, f"criterion={criterion!r}")
    return shares[criterion]


def check_path(question: Question) -> None:
    """Refuse settings for which no path in the imprecision is defined."""
    if question.costs is not None or question.criterion != "maximality":
        costs = "none" if question.costs is None else "some"
        raise ValueError(
            "critical_imprecision is defined for costs=None and "
            f"criterion='maximality', got {costs} and {question.criterion!r}."
        )


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
