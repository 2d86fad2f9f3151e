"""Models of tables: columns matched by name, and the answers of the method behind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import closest
from prudent.io.errors import listed, shown
from prudent.io.table import MISSING_WORDS, is_number, words_or_null
from prudent.rules.rule import Rule


class TableColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of a table, found by their names and put into the order of the fit.

    The first step of a model of a table. Learns names, and nothing from the rows.

    Parameters
    ----------
    text : sequence of str, default=()
        Columns that hold words; all others hold numbers.
    left_out : sequence of str, default=()
        Columns of data frames that nothing is learned from.

    Attributes
    ----------
    feature_names_in_ : ndarray of str, shape (n_features,)
        Only after a fit to a data frame.
    n_features_in_ : int
    """

    def __init__(self, text: Sequence[str] = (), left_out: Sequence[str] = ()) -> None:
        self.text = text
        self.left_out = left_out

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the names of the columns, or of an array their number."""
        self.__dict__.pop("feature_names_in_", None)
        frame = _as_frame(X)
        if frame is None:
            self.n_features_in_ = _as_array(X).shape[1]
        else:
            names = [name for name in frame.columns if name not in self.left_out]
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        return self

    def transform(self, X: Any) -> Any:
        """Columns in the order of the fit, whatever their order in `X`.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            A pandas or polars data frame or a pyarrow table, matched by name, further
            columns ignored; or an array with the columns in the order of the fit.

        Returns
        -------
        ndarray of float or pyarrow.Table, shape (n_samples, n_features)
            Numbers, missing cells as NaN; a table where some columns hold words,
            missing ones as null.

        Raises
        ------
        ValueError
            If a column is absent, or holds words in the place of numbers or numbers
            in the place of words.
        """
        check_is_fitted(self)
        frame = self._in_order(X)
        names = frame.columns
        if not len(self.text):
            values = frame.to_numpy()
            if values.dtype.kind in "biuf":
                return np.asarray(values, dtype=np.float64)
            columns = [_numbers(frame[name], name) for name in names]
            return np.column_stack(columns)
        return pa.table(
            {
                name: _words(frame[name], name)
                if name in self.text
                else _numbers(frame[name], name)
                for name in names
            }
        )

    def _in_order(self, X: Any) -> nw.DataFrame[Any]:
        frame = _as_frame(X)
        known = getattr(self, "feature_names_in_", None)
        if frame is not None and known is not None:
            lacking = [name for name in known if name not in frame.columns]
            if lacking:
                similar = closest(lacking[0], frame.columns)
                raise ValueError(
                    f"the table has no column {listed(map(shown, lacking))}, which the "
                    f"model was fitted to. Its columns: {listed(frame.columns)}."
                    + (f" Closest: {shown(similar)}." if similar else "")
                )
            return frame.select(*known)
        values = _as_array(X if frame is None else frame.to_numpy())
        if values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input."
            )
        if known is None:
            known = [f"x{j}" for j in range(self.n_features_in_)]
        else:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was "
                "fitted with feature names",
                UserWarning,
                stacklevel=3,
            )
        columns = dict(zip(known, map(_typed, values.T), strict=True))
        return nw.from_native(pa.table(columns), eager_only=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def _of_last_step(name: str) -> Any:
    """A method of the last step of a pipeline, on what the steps before it prepare."""

    def method(self: Any, X: Any, **settings: Any) -> Any:
        return getattr(self[-1], name)(self[:-1].transform(X), **settings)

    method.__name__ = name
    method.__doc__ = f"`{name}` of the last step."
    return available_if(lambda pipeline: hasattr(pipeline[-1], name))(method)


class TablePipeline(Pipeline):
    """A pipeline that answers all that its last step answers.

    scikit-learn's own forwards `predict` and its like only: a model of a table has
    sets, p-values and promises too.
    """

    predict_set = _of_last_step("predict_set")
    p_values = _of_last_step("p_values")
    p_value = _of_last_step("p_value")
    answers = _of_last_step("answers")
    calibrated_scores = _of_last_step("calibrated_scores")

    @property
    def guarantees_(self) -> Any:
        """Promises of the last step."""
        return self[-1].guarantees_

    @property
    def rule_(self) -> Rule:
        """Rule of the last step."""
        rule: Rule = self[-1].rule_
        return rule

    @property
    def calibration_scores_(self) -> FloatArray:
        """Scores that calibrate the detector in the last step."""
        scores: FloatArray = self[-1].calibration_scores_
        return scores


def matched_by_name(columns: TableColumns, method: Any) -> Any:
    """The method on a table; a pipeline goes on with its own steps."""
    steps = method.steps if isinstance(method, Pipeline) else [("method", method)]
    return TablePipeline([("columns", columns), *steps])


def frame_columns(X: Any) -> tuple[list[NDArray[Any]], BoolArray] | None:
    """Columns of a pandas or polars data frame, and which of them hold levels.

    Text, categorical, object and boolean columns hold levels. Missing values are None
    or NaN. None for anything but a data frame.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    if not len(frame):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        )
    kinds = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Boolean)
    is_level = np.array([dtype in kinds for dtype in frame.schema.values()])
    columns = []
    for series, holds_levels in zip(frame.iter_columns(), is_level, strict=True):
        if holds_levels or series.is_null().any():
            values = np.array(series.to_list(), dtype=object)
            values[series.is_null().to_numpy()] = None
            columns.append(values)
        else:
            columns.append(series.to_numpy())
    return columns, is_level


def cells_of(series: nw.Series[Any]) -> NDArray[Any]:
    """The cells of a column: numbers, or objects; missing ones are NaN, or None."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy().astype(np.float64)
    cells = np.array(series.to_list(), dtype=object)
    cells[series.is_null().to_numpy()] = None  # pandas' NA is no equal of itself
    return cells


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` where it is a data frame with names; None for arrays.

    A frame whose columns have numbers for names counts as an array, as it does in
    scikit-learn.
    """
    labels = getattr(X, "columns", None) if not isinstance(X, pa.Table) else ()
    if labels is not None and not all(isinstance(label, str) for label in labels):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_array(X: Any) -> NDArray[Any]:
    values: NDArray[Any] = check_array(X, dtype=None, ensure_all_finite=False)
    return values


def _typed(column: NDArray[Any]) -> Any:
    """A column of an array; numbers in an array of objects become numbers again."""
    if not column.dtype.hasobject:
        return column
    try:
        return pa.array(column, from_pandas=True)
    except pa.ArrowException:  # words among numbers
        return pa.array(column.astype(str))


def _numbers(column: nw.Series[Any], name: str) -> FloatArray:
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return cells_of(column)
    cells = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return np.array([np.nan if lacks else _number(cell, name) for cell, lacks in cells])


def _number(cell: Any, name: str) -> float:
    word = str(cell).strip()
    if word in MISSING_WORDS:
        return np.nan
    if not is_number(word):
        raise ValueError(
            f"column {shown(name)} holds {shown(cell)}, where the model was fitted to "
            "numbers. Correct the cell."
        )
    return float(word)


def _words(column: nw.Series[Any], name: str) -> pa.Array:
    """Words without the blanks around them, null where one says "missing"."""
    if column.dtype == nw.String:
        cells = column.to_arrow()
    else:
        absent = column.is_null().to_list()
        # Numbers would not be spelled as they were in the table: 01, 1.0 and 1.
        if not all(absent) and (
            column.dtype.is_numeric() or column.dtype == nw.Boolean
        ):
            raise ValueError(
                f"column {shown(name)} holds {column.dtype}, where the model was "
                "fitted to words. Give its cells as text."
            )
        pairs = zip(column.to_list(), absent, strict=True)
        cells = pa.array([None if lacks else str(c) for c, lacks in pairs], pa.string())
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    return words_or_null(compute.utf8_trim_whitespace(compute.cast(cells, pa.string())))
