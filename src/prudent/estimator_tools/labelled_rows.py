"""The rows of a table, and how words and gaps become numbers, fold by fold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cached_property
from typing import Any, Literal, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.types import IntArray
from prudent.estimator_tools.given import check_classes, check_groups, check_times
from prudent.estimator_tools.tables import TableColumns, cells_of
from prudent.io.table import is_text
from prudent.rules.subgroups import Memberships


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledRows:
    """n rows with labels, in d columns."""

    # (n, d): numbers, missing ones NaN; a pyarrow table of numbers and words by name,
    # missing ones null, where some columns hold words.
    X: Any
    y: NDArray[Any]  # (n,)
    features: tuple[str, ...]
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
        """Columns that hold words."""
        if not isinstance(self.X, pa.Table):
            return (False,) * len(self.features)
        return tuple(is_text(field.type) for field in self.X.schema)

    def cells(self, chosen: IntArray) -> list[NDArray[Any]]:
        """Cells of some rows, by column: numbers, or words and None for none."""
        X = _safe_indexing(self.X, chosen)
        if not isinstance(X, pa.Table):
            return list(X.T)
        return [column.to_numpy() for column in X.itercolumns()]

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Labels that occur, sorted, shape (K,)."""
        return np.unique(self.y)

    @cached_property
    def codes(self) -> IntArray:
        """Labels as positions in `classes`, shape (n,)."""
        return np.searchsorted(self.classes, self.y)

    @cached_property
    def needs_split(self) -> bool:
        """Whether only held-out rows can rank others: whole groups, or the latest."""
        return self.groups is not None or self.times is not None

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class, shape (K,)."""
        return np.bincount(self.codes)

    @cached_property
    def parted(self) -> Any:
        """Rows with what says of which subgroups they are behind, (n, d + G)."""
        if self.inside is None:
            return self.X
        if not isinstance(self.X, pa.Table):
            return np.column_stack([self.X, self.inside.members])
        table = self.X
        for name, own in zip(self.inside.names, self.inside.members.T, strict=True):
            table = table.append_column(f"subgroup {name}", [np.ascontiguousarray(own)])
        return table

    @property
    def frame(self) -> pa.Table:
        """The rows as a data frame."""
        if isinstance(self.X, pa.Table):
            return self.X
        columns = [pa.array(cells, from_pandas=True) for cells in self.X.T]
        return pa.table(columns, names=list(self.features))

    @cached_property
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

    def __call__(self, X: Any) -> pa.Table:
        """A column of bool for each subgroup."""
        if isinstance(X, pa.Table):
            behind = X.select(range(self.n_features, X.num_columns))
            return behind.rename_columns(list(self.names))
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
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        features = tuple(map(str, frame.columns))
        columns = [_words_or_numbers(cells_of(own)) for own in frame.iter_columns()]
    else:
        values = check_array(X, dtype=None, ensure_all_finite=False)
        features = tuple(f"x{j}" for j in range(values.shape[1]))
        columns = [_words_or_numbers(cells) for cells in values.T]
    for name, cells in zip(features, columns, strict=True):
        if isinstance(cells, np.ndarray) and np.isinf(cells).any():
            raise ValueError(
                f"column {name!r} of `X` has infinite values; correct them."
            )
    rows: Any
    if all(isinstance(cells, np.ndarray) for cells in columns):
        rows = np.column_stack(columns)
    else:
        rows = pa.table(columns, names=list(features))
    labels = column_or_1d(y)
    check_consistent_length(rows, labels)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(
            f"`y` has {int(np.isnan(labels).sum())} missing labels (NaN); leave these "
            "rows out."
        )
    check_classes(labels)
    return LabelledRows(
        X=rows,
        y=labels,
        features=features,
        groups=None if groups is None else check_groups(groups, len(labels)),
        times=None if time is None else check_times(time, len(labels), groups),
    )


def _words_or_numbers(values: NDArray[Any]) -> Any:
    """Floats where every cell is a number or missing; else words."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    present = values[~missing].tolist()
    if all(isinstance(v, (int, float, np.number)) for v in present):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = np.array(present, dtype=np.float64)
        return numbers
    pairs = zip(values.tolist(), missing.tolist(), strict=True)
    return pa.array([None if lacks else str(v) for v, lacks in pairs], pa.string())


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


def count_missing(X: Any) -> int:
    """Missing cells: NaN in an array; null too in a table."""
    if not isinstance(X, pa.Table):
        return int(np.isnan(X).sum())
    cells = (compute.is_null(column, nan_is_null=True) for column in X.itercolumns())
    return sum(int(compute.sum(missing).as_py() or 0) for missing in cells)


def constant_columns(rows: LabelledRows) -> list[str]:
    """Columns of one value, or of none; one of a value and gaps is not constant."""
    if isinstance(rows.X, pa.Table):
        columns = zip(rows.features, rows.X.itercolumns(), strict=True)
        return [name for name, column in columns if len(column.unique()) == 1]
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(rows.X, axis=0)
        high = np.fmax.reduce(rows.X, axis=0)
    gaps = np.isnan(rows.X).any(axis=0)
    constant = np.flatnonzero(((low == high) & ~gaps) | np.isnan(low))
    return [rows.features[j] for j in constant]


def fingerprint(rows: LabelledRows) -> str:
    """SHA-256 of the cells, row by row or where there are words by column, and labels.

    Each word enters once, and its place wherever it stands.
    """
    digest = hashlib.sha256()
    if not isinstance(rows.X, pa.Table):
        digest.update(np.ascontiguousarray(rows.X).data)
    for column in rows.X.itercolumns() if isinstance(rows.X, pa.Table) else ():
        cells = column.combine_chunks()
        if is_text(cells.type):
            encoded = cells.dictionary_encode()
            digest.update("\n".join(encoded.dictionary.to_pylist()).encode())
            cells = encoded.indices.fill_null(-1)
        digest.update(np.ascontiguousarray(cells.to_numpy()).data)
    digest.update("\n".join(map(str, rows.y.tolist())).encode())
    return digest.hexdigest()


Filling = Literal["fill", "mean"]
# Levels of a text column below this share of the rows are one level together.
RARE_LEVEL = 0.01


def preprocessing(X: Any, missing: Filling = "fill") -> ColumnTransformer | None:
    """Transformer that turns rows into finite numbers; None if they are such.

    "fill" is the median of the column and an indicator column, "mean" the mean; text
    columns get their most frequent word. Columns are found by their position in an
    array of numbers, and by their names in a table of numbers and words.
    """
    gaps = count_missing(X) > 0
    text: list[Any] = []
    numbers: list[Any] = list(range(X.shape[1]))
    if isinstance(X, pa.Table):
        text = [field.name for field in X.schema if is_text(field.type)]
        numbers = [name for name in X.column_names if name not in text]
    if not gaps and not text:
        return None
    strategy, indicator = ("median", True) if missing == "fill" else ("mean", False)
    steps: list[tuple[str, Any, Any]] = []
    if numbers:
        filled: Any = TableColumns()
        if gaps:
            filled = SimpleImputer(
                strategy=strategy, add_indicator=indicator, keep_empty_features=True
            )
        steps.append(("numbers", filled, numbers))
    if text:
        encoded: Any = OneHotEncoder(
            drop="first",
            min_frequency=RARE_LEVEL,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        if gaps:
            filled = SimpleImputer(
                missing_values=None, strategy="most_frequent", keep_empty_features=True
            )
            encoded = make_pipeline(filled, encoded)
        steps.append(("words", encoded, text))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


# From here on whole numbers are not told apart by floats.
MOST_EXACT = 2.0**53
# Times of a data frame that are read back from their words.
TIMES: dict[Any, Any] = {
    nw.Datetime: datetime.fromisoformat,
    nw.Date: date.fromisoformat,
    nw.Time: time.fromisoformat,
}


class GivenColumns(TransformerMixin, BaseEstimator):
    """Rows of a table as they were given, for a model that looks for columns.

    `head` is the data frame, or array with words, that was given, without its rows: its
    library, and the names and types of its columns. What stands behind these columns is
    left out.
    """

    def __init__(self, head: Any) -> None:
        self.head = head

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Rows (n, d) of `LabelledRows`, as a data frame or array such as `head`."""
        if isinstance(X, pa.Table):
            columns = [column.to_numpy() for column in X.itercolumns()]
        else:
            columns = [*np.asarray(X).T]
        columns = columns[: self.head.shape[1]]
        if isinstance(self.head, np.ndarray):
            rows = np.empty((len(columns[0]), len(columns)), dtype=object)
            for j, cells in enumerate(columns):
                rows[:, j] = cells
            return rows
        given = nw.from_native(self.head, eager_only=True)
        names = [str(name) for name in given.columns]
        table = pa.table(
            [pa.array(cells, from_pandas=True) for cells in columns], names=names
        )
        for name, cells, kind in zip(
            names, columns, given.schema.values(), strict=True
        ):
            if kind.is_integer() and np.nanmax(np.abs(cells), initial=0) >= MOST_EXACT:
                raise ValueError(
                    f"column {name!r} has whole numbers of more than 15 digits, which "
                    "a comparison cannot tell apart: give them as words."
                )
        backend = nw.get_native_namespace(self.head)
        frame = self._with_types(nw.from_arrow(table, backend=backend))
        back = nw.from_native(frame, eager_only=True)
        for column, cells in zip(back.iter_columns(), table.itercolumns(), strict=True):
            if column.null_count() > cells.null_count:
                raise ValueError(
                    f"column {column.name!r} does not come back as it was given: give "
                    "its values as numbers or words."
                )
        return frame

    def _with_types(self, frame: nw.DataFrame[Any]) -> Any:
        """The frame of numbers and words, with the names and types of `head`."""
        if hasattr(self.head, "astype"):
            native = frame.to_native()
            native.columns = self.head.columns
            for name, kind in self.head.dtypes.items():
                if hasattr(kind, "categories"):  # told by what became of its levels
                    levels = _words_or_numbers(kind.categories.to_numpy()).tolist()
                    known = dict(zip(levels, kind.categories, strict=True))
                    native[name] = native[name].map(known)
            return native.astype(self.head.dtypes.to_dict())
        for name, kind in nw.from_native(self.head, eager_only=True).schema.items():
            parse = TIMES.get(type(kind))
            if parse is not None:
                words = frame[name].to_list()
                cells = [None if word is None else parse(word) for word in words]
                backend = frame.implementation
                column = nw.new_series(name, cells, kind, backend=backend)
                frame = frame.with_columns(column)
        return frame.to_native().cast(self.head.schema)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def head_of(X: Any) -> Any:
    """A data frame, or an array with words, without its rows; None for numbers."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.head(0).to_native()
    values = np.asarray(X)
    has_words = values.ndim == 2 and values.dtype.kind in "OUS"
    return values[:0] if has_words else None


def as_given(head: Any, estimator: Any) -> Any:
    """The estimator; on rows like those of `head` where a `ColumnTransformer` is in it.

    That looks for columns by their names, types or positions, which preprocessing
    changes.
    """
    if not _looks_for_columns(estimator):
        return estimator
    return make_pipeline(GivenColumns(head), estimator)


def _looks_for_columns(estimator: Any) -> bool:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return False  # what it lacks is said where it is fitted
    parts = [estimator, *estimator.get_params().values()]
    return any(isinstance(part, ColumnTransformer) for part in parts)


def is_as_given(estimator: Any) -> bool:
    """Whether an estimator takes rows as they were given."""
    return isinstance(estimator, Pipeline) and isinstance(estimator[0], GivenColumns)


def in_front(preparation: Any, estimator: Any) -> Any:
    """The method with the preprocessing in front of it, if there is any to do."""
    if preparation is None or is_as_given(estimator):
        return estimator
    return Pipeline([("preparation", preparation), ("method", estimator)])
