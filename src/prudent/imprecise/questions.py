"""What one may ask a fitted model: settings that matter at prediction time only."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.binomial import check_fraction
from prudent.core.classes import class_costs
from prudent.core.types import BoolArray, FloatArray

CRITERIA = ("maximality", "e_admissible", "interval")
LARGEST = 1e100  # of an imprecision: its square must stay finite


@dataclass(frozen=True, slots=True)
class Question:
    """Checked settings of a prediction, for the classes that have rows."""

    imprecision: float  # the largest, where every feature has its own
    shares: FloatArray | None  # (p,) of it that the features have; None is 1
    prior_imprecision: float  # total variation times the weight total
    costs: FloatArray | None  # (K, K)
    criterion: str
    max_nodes: int


def ask(
    seen: BoolArray,
    n_features: int,
    *,
    imprecision: Any,
    prior_imprecision: Any,
    costs: ArrayLike | None,
    criterion: Any,
    max_nodes: Any,
) -> Question:
    """Check the settings of predictions, for the classes `seen`; see the estimator.

    They may change without a new fit.
    """
    largest, shares = _imprecisions(imprecision, n_features)
    if not _is_amount(prior_imprecision):
        raise ValueError(
            f"`prior_imprecision` must be a number from 0 to {LARGEST:g}, got "
            f"{prior_imprecision!r}."
        )
    if not (isinstance(max_nodes, Integral) and int(max_nodes) >= 0):
        raise ValueError(f"`max_nodes` must be an integer >= 0, got {max_nodes!r}.")
    if criterion not in CRITERIA:
        raise ValueError(
            f"`criterion` must be one of {list(CRITERIA)}, got {criterion!r}."
        )
    matrix = None
    if costs is not None:
        matrix = class_costs(costs, len(seen))[np.ix_(seen, seen)]
        if criterion == "interval":
            raise ValueError(
                "criterion='interval' compares probabilities and knows no `costs`: "
                "use criterion='maximality' or 'e_admissible', or costs=None."
            )
    return Question(
        imprecision=largest,
        shares=shares,
        prior_imprecision=float(prior_imprecision),
        costs=matrix,
        criterion=criterion,
        max_nodes=int(max_nodes),
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) <= LARGEST


def _imprecisions(given: Any, n_features: int) -> tuple[float, FloatArray | None]:
    """The largest imprecision, and the shares of the features where they differ."""
    if _is_amount(given):
        return float(given), None
    if np.ndim(given) == 0:
        raise ValueError(
            f"`imprecision` must be a number from 0 to {LARGEST:g}, got {given!r}."
        )
    values = np.asarray(given)
    fits = values.shape == (n_features,) and values.dtype.kind in "iuf"
    if not (fits and ((values >= 0) & (values <= LARGEST)).all()):
        raise ValueError(
            f"`imprecision` must hold {n_features} numbers from 0 to {LARGEST:g}, one "
            f"for each feature, got {values.tolist()}."
        )
    largest = float(values.max())
    return largest, values / largest if largest > 0 else None


def optimism_share(criterion: str, optimism: float) -> float:
    """Share of the lower expected cost that a criterion of `predict` stands for."""
    shares = {"maximin": 0.0, "maximax": 1.0, "hurwicz": optimism}
    if criterion not in shares:
        raise ValueError(
            f"`criterion` must be None or one of {list(shares)}, got {criterion!r}."
        )
    check_fraction("optimism", optimism, "[0, 1]")
    return shares[criterion]


def check_path(question: Question) -> None:
    """Refuse settings for which no path in the imprecision is defined."""
    if question.costs is not None or question.criterion != "maximality":
        costs = "none" if question.costs is None else "some"
        raise ValueError(
            "critical_imprecision is defined for costs=None and "
            f"criterion='maximality', got {costs} and {question.criterion!r}."
        )
