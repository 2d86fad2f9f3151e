"""Whether the rows of a table change with time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from prudent.core.assumptions import time_in_words
from prudent.core.order import MOST_ROWS, as_number, order_test
from prudent.core.rows import drawn_key, one_row_per_group
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools.given import check_groups
from prudent.estimator_tools.labelled_rows import (
    LabelledRows,
    labelled_rows,
    preprocessing,
)

LEVEL = 0.05
FEWEST_ROWS = 4
N_FOLDS = 5
FARTHEST = 1e100
#: Of more features every k-th is looked at.
MOST_FEATURES = 300
#: What the column of out-of-fold probabilities is called.
LABELS = "labels of like rows"


@dataclass(frozen=True, slots=True)
class OrderInTime:
    """What the test of order says of rows; as a text, in one line.

    Attributes
    ----------
    p_value : float or None
        In (0, 1]: at most e with probability at most e if the rows in the order of
        their times are exchangeable. None where fewer than four can be tested.
    changed : str
        What changes most: a feature, its spread or its gaps, a class, or "labels of
        like rows"; empty where nothing is tested.
    when : str
        About since when, a date or a number; empty where nothing is tested.
    latest : str
        What the promise is about, such as "rows like the latest 171"; empty without.
    """

    p_value: float | None
    changed: str = ""
    when: str = ""
    latest: str = ""

    def __str__(self) -> str:
        if self.p_value is None:
            return "too few rows to test whether they change with time"
        if self.p_value > LEVEL:
            return f"no change with time shown (p = {self.p_value:.2g})"
        about = f": the promise is about {self.latest}" if self.latest else ""
        return (
            f"the rows change with time (p = {self.p_value:.2g}; most: {self.changed}, "
            f"about {self.when}){about}"
        )


def order_of_fit(
    X: Any,
    y: NDArray[Any],
    *,
    times: NDArray[Any],
    groups: ArrayLike | None,
    n_latest: int,
    random_state: Any,
) -> OrderInTime:
    """Say whether the rows of a fit change with time.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, d)
        Of what is no table of numbers and words without infinite cells, the classes
        alone are looked at.
    y : ndarray of shape (n,)
    times : ndarray of shape (n,)
        As `check_times` gives them.
    groups : array-like of shape (n,) or None
    n_latest : int
        Latest rows that the promise rests on.
    random_state : int or other
        Of the test, where it is a whole number; else 0, so that no draw of a fit is
        used up.
    """
    try:
        rows = labelled_rows(X, y, groups, times)
    except (TypeError, ValueError):
        no_cells, known = np.empty((len(y), 0)), None
        if groups is not None:
            known = check_groups(groups, len(y))
        rows = LabelledRows(X=no_cells, y=y, features=(), groups=known, times=times)
    seed = int(random_state) if isinstance(random_state, Integral) else 0
    return order_in_time(rows, n_latest, seed)


def order_in_time(
    rows: LabelledRows, n_latest: int | None, random_state: int = 0
) -> OrderInTime:
    """Say whether rows change with time, by the test of `prudent.core.order`.

    Parameters
    ----------
    rows : LabelledRows
        With times.
    n_latest : int or None
        Latest rows that a promise rests on; None where nothing is promised.
    random_state : int, default=0
        Of the orders, of rows of equal time, and of folds.
    """
    assert rows.times is not None
    # Of one seed the first random order would be that of rows of equal time, and of the
    # seed alone one order of a file that is sorted by class would be drawn every time.
    random = np.random.RandomState(random_state)
    words = np.frombuffer(drawn_key(random, rows.codes), dtype=np.uint32)[:3]
    for_ties, for_folds, for_orders = words.tolist()
    order = ordered_rows(rows, for_ties)
    if len(order) < FEWEST_ROWS:
        return OrderInTime(None)
    columns, names, folds = _columns(rows, order, for_folds)
    # Of an indicator place and spread are the same.
    pairs = zip(rows.features, rows.is_text, strict=True)
    measured = [name for name, is_text in pairs if not is_text]
    drift = order_test(columns, folds=folds, random_state=for_orders)
    changed = names[drift.column]
    if drift.of_spread and changed in measured:
        changed = f"spread of {changed}"
    time = rows.times[order[min(drift.row, len(order) - 1)]]
    latest = ""
    if n_latest is not None:
        unit = "rows" if rows.groups is None else "groups"
        latest = f"{unit} like the latest {n_latest}"
    return OrderInTime(
        p_value=drift.p_value,
        changed=changed,
        when=time_in_words(as_number(time), dated=rows.times.dtype.kind == "M"),
        latest=latest,
    )


def ordered_rows(rows: LabelledRows, random_state: int) -> IntArray:
    """Positions of the rows to test in the order of time, one of each group.

    Rows of equal time come in random order: that of a file may be by class.
    """
    assert rows.times is not None
    random = np.random.RandomState(random_state)
    if rows.groups is None:
        drawn = random.permutation(len(rows.times))
    else:
        drawn = one_row_per_group(rows.groups, random)
    order = drawn[np.argsort(rows.times[drawn], kind="stable")]
    return order[:: max(-(-len(order) // MOST_ROWS), 1)]


def _columns(
    rows: LabelledRows, order: IntArray, random_state: int
) -> tuple[FloatArray, list[str], IntArray | None]:
    """What is tested of rows in this order, (n, n_columns), and what it is called.

    And the fold of each row, where a column was learned from those of other folds.
    Prepared features, an indicator of each class, and the probability of the true
    label by a logistic regression fitted to other rows, drawn without regard to time.
    """
    step = max(math.ceil(len(rows.features) / MOST_FEATURES), 1)
    features, codes = rows.features[::step], rows.codes[order]
    places = [f"x{j}" for j in range(len(features))]
    X = _safe_indexing(rows.X, order)
    if isinstance(X, pa.Table):
        X = X.select(range(0, X.num_columns, step)).rename_columns(places)
    else:
        X = X[:, ::step]
    prepared, names = X, list(features)
    preparation = preprocessing(X, rows.missing)
    if preparation is not None:
        prepared = np.asarray(preparation.fit_transform(X), dtype=np.float64)
        names = [
            _feature(name, features)
            for name in preparation.get_feature_names_out(
                np.array(places, dtype=object)
            ).tolist()
        ]
    classes = np.flatnonzero(np.bincount(codes, minlength=len(rows.classes)))
    indicators = (codes[:, None] == classes).astype(np.float64)
    names += [f"class {label}" for label in rows.classes[classes].tolist()]
    if not features:
        return indicators, names, None
    drawn = np.random.RandomState(random_state).permutation(len(codes))
    folds: IntArray = drawn % min(N_FOLDS, len(codes))
    probable = _probabilities(prepared, codes, folds)
    columns = np.column_stack([prepared, indicators, probable])
    return columns, [*names, LABELS], folds


def _feature(name: str, features: Sequence[str]) -> str:
    """The feature that a prepared column is made of, by the name `xj` and what follows.

    A column of a word stands for its feature, too.
    """
    gap = name.removeprefix("missingindicator_")
    place = int(gap.partition("_")[0].removeprefix("x"))
    return features[place] if gap == name else f"missing {features[place]}"


def _probabilities(X: FloatArray, codes: IntArray, folds: IntArray) -> FloatArray:
    """Probability of the label of each row, by rows of other folds."""
    probable = np.empty(len(codes))
    X = X.clip(-FARTHEST, FARTHEST)  # of larger numbers the squares overflow
    for fold in np.unique(folds):
        train, tested = folds != fold, folds == fold
        known: NDArray[np.intp] = np.unique(codes[train])
        if len(known) == 1:
            probable[tested] = codes[tested] == known[0]
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[train], codes[train])
        place = np.searchsorted(known, codes[tested]).clip(max=len(known) - 1)
        own = model.predict_proba(X[tested])[np.arange(len(place)), place]
        probable[tested] = np.where(known[place] == codes[tested], own, 0.0)
    # Like rows tie, whatever rounding makes of them.
    return np.round(probable, 9)
