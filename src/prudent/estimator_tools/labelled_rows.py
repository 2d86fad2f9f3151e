"""The rows of a table, and how words and gaps become numbers, fold by fold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.rows import refuse_dask
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools.given import check_groups, check_times
from prudent.estimator_tools.tables import TableColumns
from prudent.rules.subgroups import Memberships


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledRows:
    """n rows with labels, in d columns."""

    X: FloatArray  # (n, d): numbers, and codes of words; missing cells are NaN
    y: NDArray[Any]  # (n,)
    features: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]  # words behind the codes of each column, or ()
    groups: NDArray[Any] | None = None  # (n,): rows that belong together
    inside: Memberships | None = None  # which subgroups hold each row
    times: NDArray[Any] | None = None  # (n,): when, of groups when the latest row was
    name: str = "table"
    sha256: str = ""  # of the file, if there is one
    missing: Literal["fill", "mean"] = "fill"  # how cells are filled within each fold
    constant: tuple[str, ...] = ()  # columns of one value that were left out
    notes: tuple[str, ...] = ()  # what a reader should know about the table

    @property
    def is_text(self) -> tuple[bool, ...]:
        """Columns that hold codes of words."""
        return tuple(map(bool, self.levels))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Labels that occur, sorted, shape (K,)."""
        return np.unique(self.y)

    @cached_property
    def codes(self) -> IntArray:
        """Labels as positions in `classes`, shape (n,)."""
        return np.searchsorted(self.classes, self.y)

    @property
    def needs_split(self) -> bool:
        """Whether only held-out rows can rank others: whole groups, or the latest."""
        return self.groups is not None or self.times is not None

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class, shape (K,)."""
        return np.bincount(self.codes)

    @cached_property
    def parted(self) -> FloatArray:
        """Rows with what says of which subgroups they are behind, (n, d + G)."""
        if self.inside is None:
            return self.X
        return np.column_stack([self.X, self.inside.members])

    @property
    def frame(self) -> pa.Table:
        """The rows as a data frame, with the words behind codes."""
        columns = {}
        described = zip(self.features, self.X.T, self.levels, strict=True)
        for name, values, levels in described:
            cells = values
            if levels:
                codes = np.where(np.isnan(values), len(levels), values).astype(np.intp)
                cells = np.array([*levels, None], dtype=object)[codes]
            columns[name] = pa.array(cells, from_pandas=True)
        return pa.table(columns)

    @property
    def parts(self) -> ColumnsBehind | None:
        """What finds the subgroups of such rows; None without subgroups."""
        if self.inside is None:
            return None
        return ColumnsBehind(len(self.features), self.inside.names)


@dataclass(frozen=True)
class ColumnsBehind:
    """Subgroups of rows, told by the columns behind their features."""

    n_features: int
    names: tuple[str, ...]

    def __call__(self, X: NDArray[Any]) -> pa.Table:
        """A column of bool for each subgroup."""
        members = np.asarray(X)[:, self.n_features :].astype(bool)
        columns = [pa.array(np.ascontiguousarray(own)) for own in members.T]
        return pa.table(columns, names=list(self.names))

    @property
    def in_front(self) -> ColumnTransformer:
        """What takes the features of such rows."""
        features = list(range(self.n_features))
        return ColumnTransformer([("features", "passthrough", features)])


def labelled_rows(X: Any, y: Any, groups: Any = None, time: Any = None) -> LabelledRows:
    """Rows of arrays or data frames.

    Infinite cells, different lengths and a continuous target are a ValueError.
    """
    refuse_dask(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        features = tuple(map(str, frame.columns))
        columns = [_column(series) for series in frame.iter_columns()]
    else:
        values = check_array(X, dtype=None, ensure_all_finite=False)
        features = tuple(f"x{j}" for j in range(values.shape[1]))
        if values.dtype.kind in "biuf":
            columns = [(values[:, j], ()) for j in range(values.shape[1])]
        else:
            columns = [_words_or_numbers(values[:, j]) for j in range(values.shape[1])]
    table = np.column_stack([values for values, _ in columns]).astype(np.float64)
    infinite = np.isinf(table).any(axis=0)
    if infinite.any():
        name = features[int(np.argmax(infinite))]
        raise ValueError(f"column {name!r} of `X` has infinite values; correct them.")
    labels = column_or_1d(y)
    check_consistent_length(table, labels)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(
            f"`y` has {int(np.isnan(labels).sum())} missing labels (NaN); leave these "
            "rows out."
        )
    check_classification_targets(labels)
    return LabelledRows(
        X=table,
        y=labels,
        features=features,
        levels=tuple(levels for _, levels in columns),
        groups=None if groups is None else check_groups(groups, len(table)),
        times=None if time is None else check_times(time, len(table), groups),
    )


def _column(series: nw.Series[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy().astype(np.float64), ()
    values = series.to_list()
    return _words_or_numbers(np.array(values, dtype=object))


def _words_or_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Floats where every cell is a number or missing; else codes of sorted words."""
    missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    present = values[~missing].tolist()
    numbers = np.full(len(values), np.nan)
    if all(isinstance(v, (int, float, np.number)) for v in present):
        numbers[~missing] = np.array(present, dtype=np.float64)
        return numbers, ()
    levels, codes = np.unique([str(v) for v in present], return_inverse=True)
    numbers[~missing] = codes
    return numbers, tuple(levels.tolist())


def rows_at(X: Any, places: Sequence[int], n_rows: int) -> dict[str, list[Any]]:
    """Columns of some rows of a data frame or an array of so many rows."""
    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        frame = np.asarray(frame)
    if len(frame) != n_rows:
        raise ValueError(
            f"`examples` must be the {n_rows} rows that were compared, got "
            f"{len(frame)}."
        )
    chosen = frame[list(places)]
    if isinstance(frame, nw.DataFrame):
        return chosen.to_dict(as_series=False)
    return {f"x{j}": column.tolist() for j, column in enumerate(chosen.T)}


def constant_columns(X: FloatArray) -> list[int]:
    """Columns of one value; missing cells do not count."""
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(X, axis=0)
        high = np.fmax.reduce(X, axis=0)
    gaps = np.isnan(X).any(axis=0)
    return np.flatnonzero(((low == high) & ~gaps) | np.isnan(low)).tolist()


def fingerprint(X: FloatArray, y: NDArray[Any]) -> str:
    """SHA-256 of the numbers, row by row, and of the labels as text."""
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update("\n".join(map(str, y.tolist())).encode())
    return digest.hexdigest()


Filling = Literal["fill", "mean"]
# Levels of a text column below this share of the rows are one level together.
RARE_LEVEL = 0.01


def preprocessing(
    X: FloatArray,
    is_text: Sequence[bool],
    *,
    missing: Filling = "fill",
    names: Sequence[str] | None = None,
) -> ColumnTransformer | None:
    """Transformer that turns a table into finite numbers; None if it holds such.

    "fill" is the median of the column and an indicator column, "mean" the mean; text
    columns get their most frequent word. Columns are found by their position in an
    array of numbers and codes, or by `names` in what `TableColumns` makes of a table.
    """
    gaps = bool(np.isnan(X).any())
    text = np.flatnonzero(is_text)
    if not gaps and not len(text):
        return None
    numbers = np.flatnonzero(~np.asarray(is_text, dtype=bool))

    def chosen(positions: IntArray) -> list[Any]:
        places: list[Any] = positions.tolist()
        return places if names is None or not len(text) else [names[j] for j in places]

    strategy, indicator = ("median", True) if missing == "fill" else ("mean", False)
    steps: list[tuple[str, Any, Any]] = []
    if len(numbers):
        filled: Any = "passthrough" if names is None else TableColumns()
        if gaps:
            filled = SimpleImputer(
                strategy=strategy, add_indicator=indicator, keep_empty_features=True
            )
        steps.append(("numbers", filled, chosen(numbers)))
    if len(text):
        encoded: Any = OneHotEncoder(
            drop="first",
            min_frequency=RARE_LEVEL,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        if gaps:
            filled = SimpleImputer(
                missing_values=np.nan if names is None else None,
                strategy="most_frequent",
                keep_empty_features=True,
            )
            encoded = make_pipeline(filled, encoded)
        steps.append(("words", encoded, chosen(text)))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


def in_front(preparation: Any, estimator: Any) -> Any:
    """The method with the preprocessing in front of it, if there is any to do."""
    if preparation is None:
        return estimator
    return Pipeline([("preparation", preparation), ("method", estimator)])
