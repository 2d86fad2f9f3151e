"""Model files on the command line: how rows of a table reach what was fitted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.cli.loading import columns_of_model, fingerprint, require_columns
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    ending,
    native_output_left_out,
)
from prudent.io.errors import listed, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from prudent.core.types import FloatArray
    from prudent.estimator_tools import TableColumns
    from prudent.io import Preparation, TableSource
    from prudent.io.table import Table
    from prudent.persistence import Header

#: What a sound model answers by, and a number in all columns of rows to try it on.
ANSWERS = ("predict_proba", "decision_function", "answers", "predict_set", "p_values")
MADE_UP = (0.0, 1.0, 0.5)
#: What to do about cells that a model takes none for, where rows are to be counted.
NO_GAPS = (
    "The table of the fit had none there: fill these cells, or leave the rows out, and "
    "what is said is about rows without gaps"
)


@dataclass(frozen=True)
class Encoded:
    """A column of words, as the encoder inside a model has learned it."""

    levels: tuple[str, ...]
    missing: Any  # what a missing cell is to it: None or NaN
    refuses: bool  # words that it does not know


@dataclass(frozen=True)
class LoadedModel:
    """An estimator from a file, and how its features come out of a table."""

    path: Path
    estimator: Any
    preparation: Preparation
    words: Mapping[str, Encoded]
    frames: str = "pyarrow"  # library of the data frames it takes
    table: str = ""  # SHA-256 of the training table, "" if it is not known

    def has_seen(self, data: str) -> bool:
        """Whether DATA is the very table that the model was fitted to."""
        return self.table != "" and self.table == fingerprint(data)

    @property
    def features(self) -> list[str]:
        """Columns that the model reads."""
        return self.preparation.names

    @property
    def ordinary(self) -> str | None:
        """Truth of ordinary rows, which the promise of a detector may name."""
        if hasattr(self.last, "classes_"):
            return None
        promises = getattr(self.last, "guarantees_", ())
        scopes = (p.scope for p in promises if p.quantity == "false alarm rate")
        return next((str(scope) for scope in scopes if scope is not None), None)

    @property
    def text_columns(self) -> list[str]:
        """Columns to be read as the file spells them: 01 may be a word."""
        return list(self.words)

    @property
    def last(self) -> Any:
        """What answers."""
        return last_step(self.estimator)

    def before_last(self, X: Any) -> Any:
        """What the steps before the last make of rows."""
        has_steps = len(getattr(self.estimator, "steps", ())) > 1
        return self.estimator[:-1].transform(X) if has_steps else X

    def read(
        self, source: TableSource, target: str | None, groups: str | None = None
    ) -> tuple[pa.Table, NDArray[Any], NDArray[Any] | None]:
        """Features of all rows, once checked, and labels as text, None for none.

        Last the groups as text, if a column of them is named.
        """
        taken = self.preparation
        self.require_subgroups(source)
        check = partial(taken.check, advice=NO_GAPS)
        return read_rows(source, taken.names, check, taken.frame, target, groups)

    def require_subgroups(self, source: TableSource) -> None:
        """Refuse a table that does not say of which subgroups its rows are."""
        require_columns(columns_of_model(self.last), source)

    def answers_nothing(self) -> bool:
        """Whether it fails on each of a few made-up rows: so no data is at fault."""
        import warnings

        import pyarrow as pa

        for number in MADE_UP:
            cells: dict[str, list[Any]] = {name: [number] for name in self.features}
            cells |= {name: [*known.levels[:1]] for name, known in self.words.items()}
            with warnings.catch_warnings(), suppress(Exception):
                warnings.simplefilter("ignore")
                X = self.rows(pa.table(cells))
                self.estimator.predict(X)
                for method in ANSWERS:
                    if hasattr(self.last, method):
                        getattr(self.last, method)(self.before_last(X))
                return False
        return True

    def codes(self, frame: pa.Table) -> FloatArray:
        """Numbers, and for a word one that nothing but the word decides; NaN: missing.

        Places among the words that the model has learned would not do: all words new to
        it would have one place, in which none of the rows that it was made from are.
        """
        import numpy as np

        codes = np.empty((frame.num_rows, len(self.features)))
        for j, name in enumerate(self.features):
            column = frame[name]
            codes[:, j] = (
                list(map(_place_of_word, column.to_pylist()))
                if name in self.words
                else column.to_numpy()
            )
        return codes

    def rows(self, frame: pa.Table) -> Any:
        """Rows as the estimator takes them, by name."""
        self._refuse_unknown_words(frame)
        if self.frames == "pyarrow":
            return frame
        import narwhals as nw

        columns = {name: frame[name].to_numpy() for name in frame.column_names}
        for name, encoded in self.words.items():
            missing = encoded.missing if self.frames == "pandas" else None
            words = frame[name].to_pylist()
            columns[name] = [missing if word is None else word for word in words]
        library: Any = self.frames
        return nw.from_dict(columns, backend=library).to_native()

    def _refuse_unknown_words(self, frame: pa.Table) -> None:
        from pyarrow import compute

        for name, encoded in self.words.items():
            known = {*encoded.levels, None}
            if encoded.refuses and {*compute.unique(frame[name]).to_pylist()} - known:
                raise CommandError(
                    f"column {shown(name)} holds a word that {self.path} does not "
                    f"know: its encoder knows {listed(encoded.levels)} and refuses "
                    "others",
                    ExitCode.DATA,
                )


@lru_cache(maxsize=100_000)
def _place_of_word(word: str | None) -> float:
    """Place of a word in [0, 1), the same in every table; NaN for none."""
    if word is None:
        return math.nan
    digest = hashlib.blake2b(str(word).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48


def read_rows(
    source: TableSource,
    columns: Sequence[str],
    check: Callable[[TableSource], None],
    frame_from: Callable[[Table], pa.Table],
    target: str | None,
    groups: str | None,
) -> tuple[pa.Table, NDArray[Any], NDArray[Any] | None]:
    """Rows of a table as a model or a rule takes them, once the table is checked.

    Parameters
    ----------
    source : TableSource
        The table.
    columns : sequence of str
        Columns that the model or the rule reads.
    check : callable
        Refuses a table that it does not take.
    frame_from : callable
        Makes what it takes of a part of the table.
    target, groups : str or None
        Columns of the labels and of the groups.

    Returns
    -------
    frame : pyarrow.Table of n rows
    labels : ndarray of shape (n,)
        Labels as text, None for a row without one.
    groups : ndarray of shape (n,) or None
        Groups as text, None without a column of them.
    """
    import numpy as np
    import pyarrow as pa

    from prudent.io.table import check_column

    beside = [name for name in (target, groups) if name is not None]
    for name in beside:
        check_column(name, source.names)
    check(source)
    blocks, labels = [], []
    together: list[Any] = []
    for part in source.parts(list(dict.fromkeys([*columns, *beside]))):
        blocks.append(frame_from(part))
        if target is not None:
            codes, words = part.labels(target)
            labels += [word or None for word in words[codes].tolist()]
        together += [] if groups is None else part.text(groups).to_pylist()
    frame = pa.concat_tables(blocks)
    truth = np.empty(frame.num_rows, dtype=object)
    truth[: len(labels)] = labels
    return frame, truth, group_words(together, groups)


def group_words(together: list[Any], groups: str | None) -> NDArray[Any] | None:
    """Groups of all rows, None without a column of them; refuses empty cells."""
    import numpy as np

    if groups is None:
        return None
    if not all(together):
        raise CommandError(
            f"{sum(not word for word in together)} rows have no value in "
            f"{shown(groups)}, the column of the groups. Fill it, or leave these "
            "rows out",
            ExitCode.DATA,
        )
    return np.array(together)


def table_columns(preparation: Preparation, left_out: Sequence[str] = ()) -> Any:
    """What finds the columns of a table by name, not fitted."""
    from prudent.estimator_tools import TableColumns

    text = [column.name for column in preparation.columns if column.is_text]
    return TableColumns(text, list(left_out))


def of_a_table(
    preparation: Preparation, method: Any, left_out: Sequence[str] = ()
) -> Any:
    """The method on a table: its columns are matched by name.

    What wraps an estimator to make a promise stays outermost, and holds rows out before
    anything is learned from them. Columns that are `left_out` only part the rows.
    """
    from prudent.estimator_tools import matched_by_name

    columns = table_columns(preparation, left_out)
    inner = getattr(method, "estimator", None)
    if inner is None:
        return matched_by_name(columns, method)
    return method.set_params(estimator=matched_by_name(columns, inner))


def last_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    steps = getattr(estimator, "steps", None)
    return estimator if steps is None else steps[-1][1]


def refuse_without_groups(path: Path, model: Any, groups: str | None) -> None:
    """Refuse to count rows for promises about a random row of a new group."""
    promises = getattr(model, "guarantees_", ())
    if groups is None and any(promise.unit == "group" for promise in promises):
        raise UsageError(
            f"{path} makes promises about a random row of a new group. Give --groups "
            "with the column that says which rows belong together."
        )


def check_storable(estimator: Any, trusted: Sequence[str]) -> None:
    """Refuse an estimator that no model file would hold, before it is fitted.

    What others than scikit-learn and prudent hold once they are fitted is found out by
    a fit to a handful of made-up rows.
    """
    import warnings

    import numpy as np
    from sklearn.base import clone

    from prudent.persistence import ModelFileError, foreign_types

    X = np.random.default_rng(0).normal(size=(40, 2))
    try:
        foreign = foreign_types(estimator)
        if foreign:
            with (
                native_output_left_out(),
                warnings.catch_warnings(),
                suppress(ValueError, TypeError),
            ):
                warnings.simplefilter("ignore")
                fitted = clone(estimator).fit(X, np.arange(40) % 2)
                foreign = sorted({*foreign, *foreign_types(fitted)})
    except ModelFileError as error:
        raise CommandError(str(error), ExitCode.MODEL) from error
    refused = [name for name in foreign if name not in trusted]
    if refused:
        raise CommandError(
            f"{type(estimator).__name__} holds types that no model file holds unless "
            f"they are trusted. If you trust them, use {_trusting(refused)}, and so "
            "when the model is used",
            ExitCode.MODEL,
        )


def _trusting(names: Sequence[str]) -> str:
    """Options by which types are trusted."""
    return " ".join(f"--trusted {name}" for name in names)


def save_model(
    fitted: Any, output: Path, data: str, trusted: Sequence[str] = ()
) -> None:
    """Write a model file, which knows the table it was fitted to."""
    from prudent.persistence import ModelFileError, save

    try:
        save(fitted, output, trusted=trusted, table=fingerprint(data) or "")
    except ModelFileError as error:
        raise CommandError(str(error), ExitCode.MODEL) from error


def say_written(output: Path) -> None:
    """Name the model file that was written."""
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def load_model(path: Path, trusted: Sequence[str] | None = None) -> LoadedModel:
    """Read a model file and how its features come out of a table."""
    from prudent.persistence import ModelFileError, load, read_header

    try:
        header = read_header(path)
        estimator = load(path, trusted=trusted or ())
    except ModelFileError as error:
        sentence = str(error)
        if error.untrusted:
            sentence = (
                f"{path} holds types that are not trusted. If you trust them and the "
                f"file, use {_trusting(error.untrusted)}"
            )
        raise CommandError(sentence, ExitCode.MODEL) from error
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}. Give a file written by prudent fit",
            ExitCode.MODEL,
        ) from error
    if not header.features:
        raise CommandError(
            f"{path} does not know the names of its features. Fit it by prudent fit, "
            "or on a data frame",
            ExitCode.MODEL,
        )
    damaged = f"{path} is damaged: {{}}. Fit the model again"
    with ending(damaged, ExitCode.MODEL, Exception):
        return _described(path, estimator, header)


def _described(path: Path, estimator: Any, header: Header) -> LoadedModel:
    """What a model takes, as its fitted parts say."""
    from prudent.io import Column, Preparation

    words = dict(_encoded(estimator))
    parts = columns_of_model(last_step(estimator))
    for name, known in parts.items():
        if known and name not in words:  # words that nothing is learned from
            words[name] = Encoded(known, None, refuses=False)
    columns = tuple(
        Column(name, is_text=name in words)
        for name in dict.fromkeys([*header.features, *parts])
    )
    front = _columns_in_front(estimator)
    left_out = [] if front is None else front.left_out
    beside = tuple(name for name in parts if name in left_out)
    preparation = Preparation(columns, _takes_gaps(estimator), beside)
    return LoadedModel(
        path,
        estimator,
        preparation,
        words,
        _frames_for(words, path) if front is None else "pyarrow",
        header.table,
    )


def _frames_for(words: Mapping[str, Encoded], path: Path) -> str:
    """Library of the data frames that a model takes which finds no names itself."""
    library = next((name for name in ("pandas", "polars") if find_spec(name)), None)
    if words and library is None:
        raise CommandError(
            f"{path} was fitted to data frames, and takes words in them. Install "
            "pandas or polars",
            ExitCode.MODEL,
        )
    return library or "pyarrow"


def _columns_in_front(estimator: Any) -> TableColumns | None:
    """Columns found by name with which a model begins, as prudent fit saves it."""
    from prudent.estimator_tools import TableColumns

    steps = getattr(estimator, "steps", None)
    if steps is not None:
        return steps[0][1] if isinstance(steps[0][1], TableColumns) else None
    inner = getattr(estimator, "estimator", None)
    return None if inner is None else _columns_in_front(inner)


def _encoded(part: Any) -> Iterator[tuple[str, Encoded]]:
    """Columns of words in a fitted estimator, whatever wraps their encoder.

    An encoder keeps the words of its columns, and what was fitted to a frame, it or
    the pipeline that it is in, keeps the names.
    """
    from sklearn.base import BaseEstimator

    steps = [step for _, step in getattr(part, "steps", [])] or [part]
    names = getattr(part, "feature_names_in_", ())
    encoder = next((step for step in steps if hasattr(step, "categories_")), None)
    if encoder is not None and len(encoder.categories_) == len(names):
        refuses = encoder.get_params().get("handle_unknown") == "error"
        for name, categories in zip(names, encoder.categories_, strict=True):
            levels = [word for word in categories.tolist() if isinstance(word, str)]
            missing = None if any(word is None for word in categories) else float("nan")
            if levels:
                yield str(name), Encoded(tuple(sorted(levels)), missing, refuses)
        return
    for value in vars(part).values() if isinstance(part, BaseEstimator) else part:
        if isinstance(value, (BaseEstimator, list, tuple)):
            yield from _encoded(value)


def _takes_gaps(estimator: Any, behind: Any = None) -> bool:
    """Whether missing cells are filled or understood, whichever column they are in."""
    from sklearn.base import OneToOneFeatureMixin
    from sklearn.utils import get_tags

    from prudent.estimator_tools import TableColumns

    for fitted in ("best_estimator_", "estimator_"):
        estimator = getattr(estimator, fitted, estimator)
    passes = isinstance(estimator, (str, TableColumns)) or estimator is None
    if passes:  # cells go on as they are
        return behind is not None and _takes_gaps(behind)
    if hasattr(estimator, "steps"):  # a pipeline does not say so itself
        first, *others = [step for _, step in estimator.steps]
        if isinstance(first, TableColumns):
            first, *others = others
        return _takes_gaps(first, others[0] if others else behind)
    if hasattr(estimator, "transformers_"):
        parts = [part for _, part, _ in estimator.transformers_ if part != "drop"]
        return all(_takes_gaps(part, behind) for part in parts)
    if getattr(estimator, "missing_values", 0) is None:  # an imputer of words
        return True
    takes = bool(get_tags(estimator).input_tags.allow_nan)
    if isinstance(estimator, OneToOneFeatureMixin) and behind is not None:
        return takes and _takes_gaps(behind)  # what is missing is left as it is
    return takes
