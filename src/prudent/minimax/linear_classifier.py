"""Promises for a linear classifier that somebody else has fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.minimax.classification.promises import linear_promises
from prudent.minimax.planes import linear_errors


def guarantees_of(classifier: Any, moments: ClassMoments) -> tuple[Guarantee, ...]:
    """Promises for a linear classifier that somebody else has fitted.

    Parameters
    ----------
    classifier : fitted classifier
        With `coef_`, `intercept_` and `classes_` as scikit-learn has them, such as
        logistic regression, a linear support vector machine or linear discriminant
        analysis; the class of the largest score wins. A `Pipeline` is none: give its
        last step, and moments of the rows that this step sees.
    moments : ClassMoments
        Moments of the same classes, with full scatter. They need not come from the
        rows that the classifier was fitted to.

    Returns
    -------
    tuple of Guarantee
        One bound on the error rate of each class, under every law with these moments:
        the sum over the classes it may lose to.

    Raises
    ------
    TypeError
        If the classifier has no `coef_`, `intercept_` or `classes_`.
    ValueError
        If it has other classes or features than the moments.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002), JMLR 3, Lemma 1.

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> from prudent.minimax import guarantees_of
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> fitted = LinearDiscriminantAnalysis().fit(X, y)
    >>> promises = guarantees_of(fitted, ClassMoments.from_arrays(X, y))
    >>> [round(promise.bound, 2) for promise in promises]
    [0.33, 0.14]
    """
    for name in ("coef_", "intercept_", "classes_"):
        if not hasattr(classifier, name):
            raise TypeError(
                f"{type(classifier).__name__} has no `{name}`: a fitted linear "
                "classifier is needed."
            )
    classes = np.asarray(classifier.classes_)
    if not np.array_equal(classes, moments.classes):
        raise ValueError(
            f"the classifier knows the classes {classes.tolist()}, the moments "
            f"{moments.classes.tolist()}."
        )
    errors = linear_errors(classifier.coef_, classifier.intercept_, moments)
    return linear_promises(classes, errors)
