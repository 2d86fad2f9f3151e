"""What new rows prove about a model at every threshold of its scores at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_outlier_detector
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from prudent.certification.certificates import check_labels, unwrapped
from prudent.certification.held_out import answer_scores, class_scores
from prudent.certification.selective import SelectiveClassifier
from prudent.core.binomial import check_fraction
from prudent.core.rows import refuse_dask
from prudent.estimator_tools import refuse_seen_rows, warn_of_copies
from prudent.rules.bands import (
    ANOMALY,
    NORMAL,
    ThresholdBands,
    alarm_bands,
    answer_bands,
)
from prudent.rules.make import class_scores_of
from prudent.rules.rule import Terms
from prudent.rules.scores import AnswerScores


def certify_thresholds(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    confidence: float = 0.95,
    kind: Literal["auto", "alarms", "answers"] = "auto",
    positive: Any = None,
) -> ThresholdBands:
    """Certify every threshold of a fitted model at once: look first, choose then.

    The limits of :func:`prudent.certify` are about one rule that was fixed before the
    rows were seen. These hold at all thresholds of the model's scores together, so
    that a threshold may be chosen after a look at the very curve of limits.

    Parameters
    ----------
    model : fitted classifier or outlier detector
        Any of scikit-learn's or prudent's with `predict_proba`, `decision_function` or
        `score_samples`, also at the end of a pipeline or in a search.
    X : array-like of shape (n_samples, n_features)
        New rows, which were not used to fit, choose or tune the model.
    y : array-like of shape (n_samples,)
        Their labels; for a detector 1 (normal) and -1 (anomaly).
    confidence : float, default=0.95
        Probability over the rows that all limits hold, in (0, 1).
    kind : {"auto", "alarms", "answers"}, default="auto"
        "alarms": a row raises one where its score for the positive class, or its
        strangeness, is at least the threshold. "answers": a row is answered where the
        model is surer than the threshold. "auto": without `positive` answers for a
        selective classifier and for more than two classes, else alarms.
    positive : object, default=None
        The class that an alarm stands for; None: the second of two.

    Returns
    -------
    ThresholdBands
        Its `at` gives the promises of a threshold, `frame` all of them.

    Raises
    ------
    ValueError
        If there is no row, rows were in the fit of the model, a label is unknown, a
        score is NaN, `positive` is no class or missing where it is needed, or another
        argument lies outside its range.
    TypeError
        If the model gives no scores.

    Notes
    -----
    With v of m rows on one side of a threshold, the limit is
    betaincinv(v + 1, m - v, 1 - g), that of Clopper and Pearson at the level g of
    `prudent.core.binomial.simultaneous_level`: with m uniform numbers in order,
    P(U_(i) > betaincinv(i, m + 1 - i, 1 - g) for some i) is the level. It is 1.7 to
    2.3 times as far from the measured rate as the limit of a single threshold. The
    level is shared by the claims: see :class:`prudent.ThresholdBands`.

    References
    ----------
    M. Noe (1972), The calculation of distributions of two-sided Kolmogorov-Smirnov
    type statistics. A. Moscovich and B. Nadler (2017), Fast calculation of boundary
    crossing probabilities for Poisson processes.

    Examples
    --------
    >>> from prudent import certify_thresholds
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:300], y[:300])
    >>> bands = certify_thresholds(model, X[300:], y[300:], positive=0)
    >>> for promise in bands.at(0.1)[:2]:
    ...     print(promise.quantity, promise.scope, round(promise.bound, 3))
    class error rate 0 0.106
    class error rate 1 0.206
    """
    check_fraction("confidence", confidence)
    if kind not in ("auto", "alarms", "answers"):
        raise ValueError(f"`kind` must be 'auto', 'alarms' or 'answers', got {kind!r}.")
    refuse_dask(X)
    if not _num_samples(X):
        raise ValueError(
            "certify_thresholds: `X` holds 0 rows; give at least 1 row that the model "
            "has not seen."
        )
    labels = column_or_1d(y)
    check_is_fitted(model)
    check_consistent_length(X, y)
    refuse_seen_rows("certify_thresholds", model, X)
    warn_of_copies("certify_thresholds", X)
    model, X = unwrapped(model, X)
    terms = Terms(confidence=float(confidence), frozen=True)
    if is_outlier_detector(model):
        return _detector_bands(model, X, labels, kind, positive, terms)
    check_classification_targets(labels)
    check_labels("certify_thresholds", model, labels)
    n_classes = len(model.classes_)
    selective = isinstance(model, SelectiveClassifier)
    if kind == "auto":
        answers = positive is None and (selective or n_classes > 2)
        kind = "answers" if answers else "alarms"
    if kind == "alarms":
        if positive is None and n_classes > 2:
            raise ValueError(
                f"certify_thresholds: {n_classes} classes; give positive= or "
                "kind='answers'."
            )
        inner = model.estimator_ if selective else model
        rows = class_scores_of(class_scores(inner, X), labels, model.classes_)
        _refuse_nan(rows.scores)
        return alarm_bands(rows, positive, terms)
    if positive is not None:
        raise ValueError("certify_thresholds: `positive` is for alarms: leave it out.")
    if selective:
        return answer_bands(model._answer_scores(X, labels), terms)
    sureness = answer_scores(model, X, "max_probability")
    wrong = np.asarray(model.predict(X)) != labels
    return answer_bands(AnswerScores.of(sureness, wrong), terms)


def _detector_bands(
    model: Any, X: Any, labels: Any, kind: str, positive: Any, terms: Terms
) -> ThresholdBands:
    """Strange rows score high; anomalies are positive."""
    if kind == "answers":
        raise ValueError(
            "certify_thresholds: a detector raises alarms; leave `kind` out."
        )
    if positive not in (None, ANOMALY):
        raise ValueError(
            f"certify_thresholds: the positive rows of a detector are anomalies, "
            f"{ANOMALY}; leave `positive` out."
        )
    different = np.unique(labels)
    if not np.isin(different, (NORMAL, ANOMALY)).all():
        raise ValueError(
            "certify_thresholds: a detector needs labels 1 (normal) and -1 (anomaly), "
            f"got {different.tolist()}."
        )
    if not hasattr(model, "score_samples"):
        strangeness = -np.asarray(model.decision_function(X), dtype=np.float64)
    else:
        strangeness = -np.asarray(model.score_samples(X), dtype=np.float64)
    _refuse_nan(strangeness)
    scores = np.column_stack([-strangeness, strangeness])
    rows = class_scores_of(scores, labels, np.array([NORMAL, ANOMALY]))
    return alarm_bands(rows, ANOMALY, terms, detects=True)


def _refuse_nan(scores: Any) -> None:
    """Refuse scores that cannot be ranked."""
    n_unknown = int(np.isnan(scores).reshape(len(scores), -1).any(axis=1).sum())
    if n_unknown:
        raise ValueError(
            f"certify_thresholds: {n_unknown} of {len(scores)} rows have no score."
        )
