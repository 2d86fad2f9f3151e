"""Unusual rows of a batch, by a score that is learned from the batch itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array, check_random_state
from sklearn.utils.validation import _num_samples

from prudent.conformal.detector import EllipsoidDetector
from prudent.core.binomial import check_fraction
from prudent.core.selection import (
    NullShare,
    Selection,
    check_selection,
    select_rows,
)
from prudent.core.types import FloatArray
from prudent.estimator_tools.answers import warn_if_few_rank
from prudent.estimator_tools.held_out import refuse_dask
from prudent.rules.scores import CalibrationScores

# Steps of a logistic regression on standardised columns, which needs some dozens.
MOST_STEPS = 3000


def select_unusual(
    ordinary: Any,
    batch: Any,
    estimator: Any = None,
    *,
    false_discovery_rate: float = 0.1,
    null_share: NullShare = "one",
    calibration_size: float = 0.5,
    random_state: Any = None,
) -> Selection:
    """Say which rows of a batch are unusual, with a score learned from the batch.

    A detector knows ordinary rows only. Here a classifier tells a part of the ordinary
    rows from the others and the batch together, so that it learns in which way the
    unusual rows of this batch differ, and the share of wrong ones among those selected
    keeps its bound whatever it learns.

    Parameters
    ----------
    ordinary : array-like, data frame or sparse matrix of shape (m, d)
        Rows known to be ordinary, at least 2.
    batch : like `ordinary`, of shape (n, d)
        The rows to select from; it may be empty.
    estimator : classifier or None, default=None
        Tells rows apart by `decision_function` or `predict_proba`; it is cloned, and
        should not learn rows by heart. None: a logistic regression on the columns and
        on the distance from the ordinary rows in the metric of their scatter.
    false_discovery_rate : float, default=0.1
        q in (0, 1): expected share of ordinary rows among those selected, counted as 0
        where none is.
    null_share : {"one", "storey"}, default="one"
        "storey" estimates the share of ordinary rows in the batch and selects more
        where it is small.
    calibration_size : float, default=0.5
        Share of the ordinary rows that rank those of the batch, in (0, 1); the others
        are learned from as ordinary.
    random_state : int, RandomState or None, default=None
        Of the parts and of the order in which the classifier sees the rows.

    Returns
    -------
    Selection
        mask, p_values, guarantee.

    Raises
    ------
    ValueError
        If a setting is out of range, fewer than 2 ordinary rows are given, the columns
        of the two tables differ, or a score is not finite.
    TypeError
        If the classifier has neither `decision_function` nor `predict_proba`, the
        tables are of two types, or a column is, one of them not of numbers.

    Warns
    -----
    PrudentWarning
        If no p-value is small enough to select half of the batch or fewer rows.

    See Also
    --------
    ConformalDetector.select : The same bound with a detector fitted before.

    Notes
    -----
    With l calibration rows c_i, drawn from the ordinary ones, and a score s learned
    from the fit part (class 0) against the calibration rows and the batch in random
    order (class 1),

        p_j = (1 + #{i : s(c_i) >= s(x_j)}) / (l + 1),

    and the r rows of the smallest p-values are selected for the largest r with
    p_(r) <= r q / n (Benjamini and Hochberg). The order is random, so no part of the
    fit can tell a calibration row from an ordinary row of the batch: their scores are
    exchangeable given the unusual rows, and the rate is at most q times the share of
    ordinary rows. The ordinary rows of the batch must be exchangeable with the given
    ones given the unusual ones: nobody chose these by looking at the batch.

    References
    ----------
    A. Marandon, L. Lei, D. Mary and E. Roquain (2024), Adaptive novelty detection with
    false discovery rate guarantee, Annals of Statistics 52.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import select_unusual
    >>> rng = np.random.default_rng(0)
    >>> ordinary = rng.normal(size=(600, 4))
    >>> batch = np.vstack([rng.normal(size=(160, 4)), rng.normal(size=(40, 4)) + 2])
    >>> selected = select_unusual(ordinary, batch, random_state=0)
    >>> int(selected.mask[160:].sum()), int(selected.mask[:160].sum())
    (36, 4)
    >>> print(selected.guarantee)
    The false discovery rate is at most 0.1, on average over calibration rows, assuming
    the ordinary rows of the batch are exchangeable with the calibration rows given the
    unusual ones, none of which was chosen by looking at the batch.
    """
    check_selection(false_discovery_rate, null_share, None)
    check_fraction("calibration_size", calibration_size)
    refuse_dask(ordinary)
    refuse_dask(batch)
    m, n = _num_samples(ordinary), _num_samples(batch)
    if n:
        check_columns(ordinary, batch)
    if estimator is None:
        ordinary, batch = check_array(ordinary), check_array(batch) if n else batch
        estimator = default_classifier()
    scoring = ("decision_function", "predict_proba")
    if not any(hasattr(estimator, method) for method in scoring):
        raise TypeError(
            "`estimator` must have `decision_function` or `predict_proba`, got "
            f"{estimator!r}."
        )
    if m < 2:
        raise ValueError(
            f"`ordinary` needs at least 2 rows, one to learn from and one that ranks, "
            f"got {m}."
        )
    random = check_random_state(random_state)
    order = random.permutation(m)
    n_ranking = min(max(round(calibration_size * m), 1), m - 1)
    p_values = np.empty(0)
    if n:
        p_values = learned_p_values(
            clone(estimator),
            _safe_indexing(ordinary, order[n_ranking:]),
            _safe_indexing(ordinary, order[:n_ranking]),
            batch,
            random,
        )
        warn_if_few_rank(
            *("select_unusual", n_ranking, n, false_discovery_rate, None),
            is_estimated=null_share == "storey",
        )
    selected = select_rows(
        p_values, n_ranking, rate=false_discovery_rate, null_share=null_share
    )
    evidence = {
        **selected.guarantee.evidence,
        "rows learned from": float(m - n_ranking),
    }
    return selected._replace(
        guarantee=replace(
            selected.guarantee,
            evidence=evidence,
            source="Marandon, Lei, Mary and Roquain 2024",
        )
    )


def learned_p_values(
    classifier: Any,
    fit: Any,
    calibration: Any,
    batch: Any,
    random: np.random.RandomState,
) -> FloatArray:
    """P-values of the rows of a batch (n,), by a score learned from all rows.

    `fit` are ordinary rows of class 0, `calibration` (l rows) and `batch` together are
    class 1. They are put in random order: whatever the classifier makes of the order
    treats rows of both alike.
    """
    mixed = stacked(calibration, batch)
    order = random.permutation(_num_samples(mixed))
    mixed = _safe_indexing(mixed, order)
    labels = np.repeat([0, 1], [_num_samples(fit), len(order)])
    classifier.fit(stacked(fit, mixed), labels)
    scores = np.empty(len(order))
    scores[order] = _scores(classifier, mixed)
    if not np.isfinite(scores).all():
        raise ValueError("the classifier gives scores that are not finite numbers.")
    n_ranking = _num_samples(calibration)
    # Low scores are strange for those that rank rows.
    known = CalibrationScores.from_rows(-scores[:n_ranking])
    return known.p_values(-scores[n_ranking:])


def _scores(classifier: Any, X: Any) -> FloatArray:
    """How much rows look like class 1, shape (n,)."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(X), dtype=np.float64)
    return np.asarray(classifier.predict_proba(X), dtype=np.float64)[:, 1]


def check_columns(first: Any, second: Any) -> None:
    """Refuse two tables that are not of one type, or whose columns differ."""
    frames = [hasattr(table, "columns") for table in (first, second)]
    if any(frames) and type(first) is not type(second):
        raise TypeError(
            f"the two tables are a {type(first).__name__} and a "
            f"{type(second).__name__}; give both as one type."
        )
    if all(frames):
        names = [list(table.columns) for table in (first, second)]
        if names[0] != names[1]:
            raise ValueError(
                f"the columns of the two tables differ: {names[0]} and {names[1]}."
            )
        for name, own, other in types_that_differ(first, second):
            if not (own.is_numeric() and other.is_numeric()):
                raise TypeError(
                    f"column {name!r} is {own} in one of the two tables and {other} in "
                    "the other: give both one type."
                )
        return
    shapes = [np.shape(table)[1:] for table in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"`ordinary` has rows of shape {shapes[0]} and `batch` of {shapes[1]}: "
            "they do not belong to one table."
        )


def types_that_differ(first: Any, second: Any) -> list[tuple[str, Any, Any]]:
    """Columns of two data frames that have not the same type, with both types."""
    own, other = (nw.from_native(t, eager_only=True).schema for t in (first, second))
    return [(name, own[name], other[name]) for name in own if own[name] != other[name]]


def stacked(first: Any, second: Any) -> Any:
    """The rows of two tables of the same columns, one below the other.

    Numbers of two types become floats.
    """
    if hasattr(first, "columns"):
        mixed = [name for name, _, _ in types_that_differ(first, second)]
        frames = [nw.from_native(table, eager_only=True) for table in (first, second)]
        if mixed:
            numbers = nw.col(*mixed).cast(nw.Float64)
            frames = [frame.with_columns(numbers) for frame in frames]
        return nw.concat(frames).to_native()
    if issparse(first) or issparse(second):
        return vstack([first, second], format="csr")
    return np.concatenate([first, second])


# --- the classifier by default --------------------------------------------------------


def default_classifier() -> Any:
    """A logistic regression on the columns and on how strange a row is.

    It bends towards the unusual rows of a batch where these are many, and ranks rows as
    a detector would where they are few.
    """
    columns = FeatureUnion(
        [("columns", StandardScaler()), ("strangeness", Strangeness())]
    )
    return make_pipeline(columns, LogisticRegression(max_iter=MOST_STEPS))


class Strangeness(TransformerMixin, BaseEstimator):
    """Standardised distance d from the rows of class 0, and what of it is beyond 1.

    In the metric of their scatter; the second column lets far rows count more.
    """

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Learn mean, scatter and usual distance of the rows of class 0."""
        ordinary = X[y == 0]
        self.detector_ = EllipsoidDetector().fit(ordinary)
        distances = -self.detector_.score_samples(ordinary)
        self.mean_, spread = float(distances.mean()), float(distances.std())
        self.spread_ = spread if spread > 0 else 1.0
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """The two columns, shape (n, 2)."""
        distance = (-self.detector_.score_samples(X) - self.mean_) / self.spread_
        return np.column_stack([distance, np.maximum(distance - 1, 0)])
