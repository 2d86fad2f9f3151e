"""Whether the rows of a table change with time, in one line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prudent.core.assumptions import time_in_words
from prudent.core.order import MOST_ROWS, as_number, order_test
from prudent.core.rows import one_row_per_group
from prudent.core.types import FloatArray, IntArray
from prudent.evaluation.table import LabelledRows, preprocessing

LEVEL = 0.05
FEWEST_ROWS = 4
N_FOLDS = 5
#: What the column of out-of-fold probabilities is called.
LABELS = "labels of like rows"


def order_line(rows: LabelledRows, n_latest: int | None, random_state: int = 0) -> str:
    """Say whether rows change with time, by the test of `prudent.core.order`.

    Parameters
    ----------
    rows : LabelledRows
        With times.
    n_latest : int or None
        Latest rows that a promise rests on; None where nothing is promised.
    random_state : int, default=0
        Of the orders, of rows of equal time, and of folds.

    Returns
    -------
    str
        With the p-value, and where it is at most 0.05 the column that changes most and
        when.
    """
    assert rows.times is not None
    order = ordered_rows(rows, random_state)
    if len(order) < FEWEST_ROWS:
        return "too few rows to test whether they change with time"
    columns, names = _columns(rows, order, random_state)
    # Of an indicator place and spread are the same.
    pairs = zip(rows.features, rows.is_text, strict=True)
    measured = [name for name, is_text in pairs if not is_text]
    found = order_test(columns, random_state=random_state)
    if found.p_value > LEVEL:
        return f"no change with time shown (p = {found.p_value:.2g})"
    changed = names[found.column]
    if found.of_spread and changed in measured:
        changed = f"spread of {changed}"
    time = rows.times[order[min(found.row, len(order) - 1)]]
    when = time_in_words(as_number(time), dated=rows.times.dtype.kind == "M")
    about = ""
    if n_latest is not None:
        unit = "rows" if rows.groups is None else "groups"
        about = f": the promise is about {unit} like the latest {n_latest}"
    return (
        f"the rows change with time (p = {found.p_value:.2g}; most: {changed}, about "
        f"{when}){about}"
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
) -> tuple[FloatArray, list[str]]:
    """What is tested of rows in this order, (n, n_columns), and what it is called.

    Prepared features, an indicator of each class, and the probability of the true
    label by a logistic regression fitted to other rows, drawn without regard to time.
    """
    X, codes = rows.X[order], rows.codes[order]
    prepared, names = X, list(rows.features)
    preparation = preprocessing(X, rows.is_text, missing=rows.missing)
    if preparation is not None:
        prepared = np.asarray(preparation.fit_transform(X), dtype=np.float64)
        names = [
            _feature(name, rows.features)
            for name in preparation.get_feature_names_out(
                np.array([f"x{j}" for j in range(X.shape[1])], dtype=object)
            ).tolist()
        ]
    classes = np.flatnonzero(np.bincount(codes, minlength=len(rows.classes)))
    indicators = (codes[:, None] == classes).astype(np.float64)
    names += [f"class {label}" for label in rows.classes[classes].tolist()]
    probable = _probabilities(prepared, codes, random_state)
    return np.column_stack([prepared, indicators, probable]), [*names, LABELS]


def _feature(name: str, features: Sequence[str]) -> str:
    """The feature that a prepared column is made of, by the name `xj` and what follows.

    A column of a word stands for its feature, too.
    """
    gap = name.removeprefix("missingindicator_")
    place = int(gap.partition("_")[0].removeprefix("x"))
    return features[place] if gap == name else f"missing {features[place]}"


def _probabilities(X: FloatArray, codes: IntArray, random_state: int) -> FloatArray:
    """Probability of the label of each row, by rows of other folds."""
    probable = np.empty(len(codes))
    n_folds = min(N_FOLDS, len(codes))
    folds = KFold(n_folds, shuffle=True, random_state=random_state)
    for train, tested in folds.split(X):
        known: NDArray[np.intp] = np.unique(codes[train])
        if len(known) == 1:
            probable[tested] = codes[tested] == known[0]
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[train], codes[train])
        place = np.searchsorted(known, codes[tested]).clip(max=len(known) - 1)
        own = model.predict_proba(X[tested])[np.arange(len(tested)), place]
        probable[tested] = np.where(known[place] == codes[tested], own, 0.0)
    # Like rows tie, whatever rounding makes of them.
    return np.round(probable, 9)
