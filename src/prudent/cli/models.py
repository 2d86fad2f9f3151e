"""Model files on the command line: how rows of a table reach what was fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.cli.exits import CommandError, ExitCode
from prudent.cli.loading import fingerprint
from prudent.io.errors import listed, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent.core.types import FloatArray
    from prudent.io import Preparation, TableSource

# Stands for every word that no encoder knows.
UNKNOWN = "\0"


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
    frames: Any = None  # library of the data frames it takes; None for arrays
    words: Mapping[str, Encoded] = field(default_factory=dict)
    table: str = ""  # SHA-256 of the training table, "" if it is not known

    def has_seen(self, data: str) -> bool:
        """Whether DATA is the very table that the model was fitted to."""
        return self.table != "" and self.table == fingerprint(data)

    @property
    def text_columns(self) -> list[str]:
        """Columns to be read as the file spells them: 01 may be a word."""
        return [c.name for c in self.preparation.columns if c.levels]

    @property
    def last(self) -> Any:
        """What answers."""
        return last_step(self.estimator)

    def before_last(self, X: Any) -> Any:
        """What the steps before the last make of rows."""
        has_steps = len(getattr(self.estimator, "steps", ())) > 1
        return self.estimator[:-1].transform(X) if has_steps else X

    def read(
        self, source: TableSource, target: str | None
    ) -> tuple[FloatArray, NDArray[Any]]:
        """Features of all rows, once checked, and labels as text, None for none."""
        import numpy as np

        from prudent.io.table import check_column

        if target is not None:
            check_column(target, source.names)
        self.preparation.check(source)
        names = [*self.preparation.names, *([] if target is None else [target])]
        blocks, labels = [], []
        for part in source.parts(list(dict.fromkeys(names))):
            blocks.append(self.preparation.read(part))
            words = [] if target is None else part.text(target).to_pylist()
            labels += [word or None for word in words]
        X = np.concatenate(blocks)
        truth = np.empty(len(X), dtype=object)
        truth[: len(labels)] = labels
        return X, truth

    def rows(self, X: FloatArray) -> Any:
        """Rows as the estimator takes them: words in the place of codes, by name."""
        if self.frames is None:
            return X
        import narwhals as nw

        columns: dict[str, Any] = dict(zip(self.preparation.names, X.T, strict=True))
        for name, encoded in self.words.items():
            columns[name] = self._decoded(name, encoded, columns[name])
        return nw.from_dict(columns, backend=self.frames).to_native()

    def _decoded(self, name: str, encoded: Encoded, codes: FloatArray) -> list[Any]:
        levels = encoded.levels
        if encoded.refuses and (codes == len(levels)).any():
            raise CommandError(
                f"column {shown(name)} holds a word that {self.path} does not know: "
                f"its encoder knows {listed(levels)} and refuses others",
                ExitCode.DATA,
            )
        missing = encoded.missing if self.frames == "pandas" else None
        said = [*levels, UNKNOWN]
        return [missing if code != code else said[int(code)] for code in codes.tolist()]


def last_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    steps = getattr(estimator, "steps", None)
    return estimator if steps is None else steps[-1][1]


def save_model(fitted: Any, output: Path, preparation: Preparation, data: str) -> None:
    """Write a model file, which knows the table it was fitted to."""
    from prudent.persistence import save

    save(fitted, output, preparation=preparation, table=fingerprint(data) or "")


def say_written(output: Path) -> None:
    """Name the model file that was written."""
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def load_model(path: Path) -> LoadedModel:
    """Read a model file and how its features come out of a table."""
    from prudent.io import Column, Preparation
    from prudent.persistence import ModelFileError, load, read_header

    try:
        header = read_header(path)
        estimator = load(path)
    except ModelFileError as error:
        raise CommandError(str(error), ExitCode.MODEL) from error
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}. Give a file written by prudent fit",
            ExitCode.MODEL,
        ) from error
    if header.preparation is not None:
        preparation = Preparation.from_dict(header.preparation)
        return LoadedModel(path, estimator, preparation, table=header.table)
    if not header.features:
        raise CommandError(
            f"{path} does not know the names of its features. Fit it by prudent fit, "
            "or on a data frame",
            ExitCode.MODEL,
        )
    words = dict(_encoded(estimator))
    frames = next((name for name in ("pandas", "polars") if find_spec(name)), None)
    if words and frames is None:
        raise CommandError(
            f"{path} was fitted to data frames, and takes words in them. Install "
            "pandas or polars",
            ExitCode.MODEL,
        )
    columns = tuple(
        Column(name, words[name].levels if name in words else ())
        for name in header.features
    )
    preparation = Preparation(columns, gaps=_takes_gaps(estimator))
    return LoadedModel(path, estimator, preparation, frames, words)


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
        for name, found in zip(names, encoder.categories_, strict=True):
            levels = [word for word in found.tolist() if isinstance(word, str)]
            missing = None if any(word is None for word in found) else float("nan")
            if levels:
                yield str(name), Encoded(tuple(sorted(levels)), missing, refuses)
        return
    for value in vars(part).values() if isinstance(part, BaseEstimator) else part:
        if isinstance(value, (BaseEstimator, list, tuple)):
            yield from _encoded(value)


def _takes_gaps(estimator: Any, behind: Any = None) -> bool:
    """Whether missing cells are filled or understood, whichever column they are in."""
    from sklearn.utils import get_tags

    for fitted in ("best_estimator_", "estimator_"):
        estimator = getattr(estimator, fitted, estimator)
    if isinstance(estimator, str) or estimator is None:  # what is passed through
        return behind is not None and _takes_gaps(behind)
    if hasattr(estimator, "steps"):  # a pipeline does not say so itself
        first, *others = [step for _, step in estimator.steps]
        return _takes_gaps(first, others[0] if others else behind)
    if hasattr(estimator, "transformers_"):
        parts = [part for _, part, _ in estimator.transformers_ if part != "drop"]
        return all(_takes_gaps(part, behind) for part in parts)
    return bool(get_tags(estimator).input_tags.allow_nan)
