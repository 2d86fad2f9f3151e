"""Probabilities that may be quoted: numbers with exact limits."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from prudent.certification.held_out import HeldOutClassifier, class_scores
from prudent.core.binomial import check_fraction
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import refuse_nan, shown
from prudent.estimator_tools import model_name
from prudent.rules.bins import ProbabilityBins, within_limits
from prudent.rules.make import class_scores_of
from prudent.rules.scores import ClassScores, Rounding

#: Rows with NaN for a probability have no cell.
NO_PROBABILITIES = "so there is no number that could be quoted"


class BinnedCalibrationClassifier(HeldOutClassifier):
    """Any classifier whose probabilities come with exact limits.

    Part of the rows is held out; the estimator's probability of a class is cut into
    bins of about as many held-out rows, and the share of the class within each cell has
    exact limits, in all cells at once. So "0.12 to 0.31" may be quoted: among rows with
    such a number the share of the class lies between the two. No single row is
    promised anything.

    For limits, not for a better Brier score: holding out costs rows, and calibrators
    such as isotonic regression belong inside, as the estimator.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`. Fitted to the rows not held out. A fitted model in
        `FrozenEstimator` is left as it is, and all rows given to `fit` are held-out
        rows: they must be new to it.
    n_bins : int or "auto", default="auto"
        Bins of the held-out rows, >= 2. "auto": the cube root of their number, which
        looks at no label.
    quote : {"estimator", "frequency"}, default="estimator"
        What `predict_proba` says: the estimator's number, moved to the nearest limit
        where it lies outside; or the share of the class in the cell,
        (w + 1/2) / (n + 1).
    confidence : float, default=0.95
        Probability over the held-out rows that all limits are true, in (0, 1).
    calibration_size : float, default=0.3
        Share of the rows (or groups) to hold out by a plain draw, in (0, 1).
    random_state : int, RandomState or None, default=None
        For the draw of held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, as the estimator orders them.
    estimator_ : classifier
        Fitted to the rows not held out.
    n_calibration_ : int
        Held-out rows.
    order_test_ : OrderInTime
        After a fit with `time`: whether the rows change with time, by an exact test
        (`p_value`, `changed`, `when`); its text is one line.
    n_bins_ : int
        Bins asked for; edges that fall on equal scores are one.
    guarantees_ : tuple of Guarantee
        Two for each cell with rows: the least and the largest probability of the class
        there. For two classes they are about the second.

    Raises
    ------
    ValueError
        If a parameter is outside its range or there are too few rows.
    TypeError
        If the estimator has no `predict_proba`, or `fit` is given weights.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Better numbers, without limits.
    SelectiveClassifier : Answer only where answers keep an error rate.

    Notes
    -----
    With m held-out scores S_(1) <= ... <= S_(m) and B bins, the edges are the different
    values of S_(ceil(b (m + 1) / B)), b = 1, ..., B - 1; cells are the open intervals
    between them, and each edge that at least two rows hold (so that discrete scores are
    a table by value; scores that differ only by rounding are equal). J cells hold rows;
    the limits of each are those of Clopper and Pearson at confidence^(1/J), two-sided.
    An edge with one row, and a cell without rows, have the limits 0 and 1. With more
    than two classes each stands against the rest, at
    1 - (1 - confidence) / n_classes. Limits of the first of two classes are 1 less
    those of the second. So a held-out row with a label that the model does not know,
    which is of neither, counts against both limits.

    **Guarantee.** Future rows are independent draws from the population of the
    held-out rows. Given the edges and the counts, rows of a cell are independent draws
    of it and cells are independent.

    References
    ----------
    C. Gupta and A. Ramdas (2021), Distribution-free calibration guarantees for
    histogram binning without sample splitting. C. J. Clopper and E. S. Pearson (1934).

    Examples
    --------
    >>> from prudent import BinnedCalibrationClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BinnedCalibrationClassifier(
    ...     LinearDiscriminantAnalysis(), n_bins=4, random_state=0
    ... )
    >>> model = model.fit(X, y)
    >>> lower, upper = model.predict_proba_interval(X[:1])
    >>> print(f"class 1: {lower[0, 1]:.2f} to {upper[0, 1]:.2f}")
    class 1: 0.00 to 0.11
    """

    estimator_: Any
    classes_: NDArray[Any]
    confidence: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_bins: int | Literal["auto"] = "auto",
        quote: Literal["estimator", "frequency"] = "estimator",
        confidence: float = 0.95,
        calibration_size: float = 0.3,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_bins = n_bins
        self.quote = quote
        self.confidence = confidence
        self.calibration_size = calibration_size
        self.random_state = random_state

    @property
    def bins_(self) -> Any:
        """Cells of each class as a pyarrow table: name, scores, rows, share, limits."""
        import pyarrow as pa

        rows = [
            {
                "class": label,
                "cell": bins.name(cell),
                "from": bins.ends(cell)[0],
                "to": bins.ends(cell)[1],
                "rows": int(bins.n_rows[cell]),
                "positive": int(bins.n_positive[cell]),
                "lower": float(bins.lower[cell]),
                "upper": float(bins.upper[cell]),
            }
            for label, bins in zip(self._binned_labels(), self._bins, strict=True)
            for cell in range(len(bins.lower))
        ]
        return pa.Table.from_pylist(rows)

    def predict_proba_interval(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Exact limits of the probability of each class among rows of the same cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._limits(self._probabilities(self._checked(X))[0])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities that lie within their limits wherever these allow a sum of one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. With more than two classes the numbers
            are raised or lowered by one factor a row, as far as their limits allow.
        """
        numbers, _ = self._probabilities(self._checked(X))
        lower, upper = self._limits(numbers)
        if self._quote == "frequency":
            numbers = self._frequencies(numbers)
        if len(self.classes_) == 2:
            second = np.clip(numbers[:, 1], lower[:, 1], upper[:, 1])
            return np.column_stack([1 - second, second])
        return within_limits(numbers, lower, upper)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        most_likely = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_likely]

    def is_about(self, promise: Guarantee, X: Any) -> BoolArray:
        """Which rows a promise of `guarantees_` is about: those of its cell.

        Parameters
        ----------
        promise : Guarantee
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        numbers, _ = self._probabilities(self._checked(X))
        place = self._binned_labels().index(promise.scope)
        bins = self._bins[place]
        names = np.array([bins.name(cell) for cell in range(len(bins.lower))])
        own = numbers[:, place - len(self._bins)]
        about: BoolArray = names[bins.cells(own)] == promise.subgroup
        return about

    def _check_parameters(self) -> None:
        check_fraction("confidence", self.confidence)
        if self.quote not in ("estimator", "frequency"):
            raise ValueError(
                f"`quote` must be 'estimator' or 'frequency', got {shown(self.quote)}."
            )
        is_number = isinstance(self.n_bins, Integral) and self.n_bins >= 2
        if self.n_bins != "auto" and not is_number:
            raise ValueError(
                "`n_bins` must be 'auto' or a whole number >= 2, got "
                f"{shown(self.n_bins)}."
            )

    def _scores(self, X: Any, y: Any) -> ClassScores:
        if not hasattr(self.estimator_, "predict_proba"):
            raise TypeError(
                f"{type(self).__name__}: {model_name(self.estimator)} has no "
                f"predict_proba, {NO_PROBABILITIES}."
            )
        numbers, rounding = self._probabilities(X)
        return class_scores_of(numbers, y, self.classes_, rounding)

    def _rule(self, rows: ClassScores) -> Any:
        """Bins in place of a rule: numbers are quoted, none is cut."""
        n = len(rows.codes)
        self.n_bins_ = (
            max(2, round(n ** (1 / 3))) if self.n_bins == "auto" else self.n_bins
        )
        self._quote = self.quote
        labels = self._binned_labels()
        each = 1 - (1 - self.confidence) / len(labels)
        places = [self.classes_.tolist().index(label) for label in labels]
        # A row with a label that the model does not know is of neither of two classes:
        # the upper limits of the second make the lower ones of the first.
        not_known = (rows.codes < 0) & (len(self.classes_) == 2)
        return tuple(
            ProbabilityBins(
                rows.scores[:, place],
                rows.codes == place,
                self.n_bins_,
                each,
                rows.rounding,
                possible=(rows.codes == place) | not_known,
            )
            for place in places
        )

    def _adopt(self, bins: Any) -> Self:
        """Quote from these bins from now on."""
        self._bins, labels = bins, self._binned_labels()
        self.guarantees_ = tuple(
            promise
            for label, bins in zip(labels, self._bins, strict=True)
            for promise in bins.promises(label, self._terms)
        )
        return self

    def _binned_labels(self) -> list[Any]:
        """Labels with cells of their own: the second of two, else each."""
        labels: list[Any] = self.classes_.tolist()
        return labels[1:] if len(labels) == 2 else labels

    def _probabilities(self, X: Any) -> tuple[FloatArray, Rounding]:
        numbers, rounding = class_scores(self.estimator_, X)
        refuse_nan(
            numbers,
            f"{model_name(self.estimator)} gave NaN for {{}}, {NO_PROBABILITIES}.",
        )
        return numbers, rounding

    def _cells(self, numbers: FloatArray) -> list[tuple[ProbabilityBins, IntArray]]:
        """Bins with the cell of each row, for each class that has bins."""
        columns = numbers[:, -len(self._bins) :].T
        return [(b, b.cells(own)) for b, own in zip(self._bins, columns, strict=True)]

    def _limits(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        both = self._cells(numbers)
        lower = np.column_stack([bins.lower[cell] for bins, cell in both])
        upper = np.column_stack([bins.upper[cell] for bins, cell in both])
        if len(self.classes_) == 2:
            lower, upper = np.hstack([1 - upper, lower]), np.hstack([1 - lower, upper])
        return lower, upper

    def _frequencies(self, numbers: FloatArray) -> FloatArray:
        """Share of the class in the cell; without rows there the number as it is."""
        both = self._cells(numbers)
        shares = np.column_stack([bins.frequency[cell] for bins, cell in both])
        empty = np.column_stack([bins.n_rows[cell] == 0 for bins, cell in both])
        shares = np.where(empty, numbers[:, -len(both) :], shares)
        return np.hstack([1 - shares, shares]) if len(self.classes_) == 2 else shares
