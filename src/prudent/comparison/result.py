"""What a comparison found: frozen values that tables, reports and JSON read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from prudent.comparison.measurements import (
    CalibrationPath,
    FalseAlarmCurve,
    RegionMap,
    Sets,
    ShiftCurve,
)
from prudent.core.guarantee import Guarantee, GuaranteeCheck

__all__ = [
    "Comparison",
    "ComparisonInterrupted",
    "Data",
    "FoldScore",
    "MethodRow",
    "PromiseCheck",
    "Settings",
]

Kept = Literal["broken", "vacuous", "kept", "consistent"]
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Data:
    """The table that was compared on.

    Attributes
    ----------
    name : str
        What the user calls the table.
    sha256 : str
        Fingerprint of the file, or of the arrays when there is no file.
    n_rows : int
        Rows used.
    features, classes : tuple of str
        Names of the columns and labels, as text.
    class_counts : tuple of int
        Rows of each class.
    constant_features : tuple of str
        Columns with one value, which every method ignores.
    notes : tuple of str
        What was done to the table and what a reader should know about it.
    """

    name: str
    sha256: str
    n_rows: int
    features: tuple[str, ...]
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    constant_features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the comparison was run.

    Attributes
    ----------
    methods, baselines : tuple of str
        Names, in the order they ran.
    n_folds, n_repeats, random_state, n_jobs : int
        The protocol: stratified folds, shuffled anew in each repeat.
    time_limit : float or None
        Seconds allowed to each method.
    sample : int or None
        Most rows a method that needs rows is fitted on.
    command : str
        What to type to get this comparison again.
    date : str or None
        Day and time of the run; None in output that must repeat byte for byte.
    peak_memory : int or None
        Bytes the process held at most; None where unknown.
    """

    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    n_folds: int
    n_repeats: int
    random_state: int
    n_jobs: int
    time_limit: float | None
    sample: int | None
    command: str
    date: str | None = None
    peak_memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class PromiseCheck:
    """A promise, averaged over the folds, held against the out-of-fold rows.

    Attributes
    ----------
    guarantee : Guarantee
        Its bound is the mean of the fold bounds, weighted by the rows tested.
    violations, n : float
        Rows that broke it, and rows looked at (means over the repeats).
    check : GuaranteeCheck
        Verdict at level 0.05 over the number of promises of the method.
    """

    guarantee: Guarantee
    violations: float
    n: float
    check: GuaranteeCheck

    @property
    def allowed(self) -> float:
        """Share of the rows that may break the promise."""
        bound = self.guarantee.bound
        return bound if self.guarantee.sense == "<=" else 1 - bound


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One line of the comparison; every figure is out of fold.

    Attributes
    ----------
    name : str
        Short name of the method.
    is_baseline : bool
        Whether it is there for reference only.
    failure : str or None
        Why there are no figures.
    error : float or None
        Share of wrong point predictions.
    error_interval : tuple of float
        Exact 95 % interval of `error`.
    promises : tuple of PromiseCheck
        What the method promises, held against the out-of-fold rows.
    kept : {"broken", "vacuous", "kept", "consistent"} or None
        One promise broken; no better than always answering the most frequent
        class, or never deciding; all promises kept; or not contradicted. None
        without a promise.
    sets : Sets or None
        Set-valued predictions, if the method gives them.
    confusion : tuple of tuple of float
        Rows by true (outer) and predicted class, means over the repeats.
    tied_with : str or None
        Method of least error, when no difference from it is shown: exact McNemar
        test on the rows, Holm over methods, and intervals that overlap.
    fit_seconds, predict_seconds : float or None
        Median over the folds of one fit, and of predicting one row.
    notes : tuple of str
        What was done differently for this method.
    warnings : tuple of str
        What the method warned of while fitting and predicting.
    shift, false_alarms, calibration, regions
        Further measurements, where they apply.
    parameters : mapping of str to str
        All parameters of the estimator, as text.
    """

    name: str
    is_baseline: bool = False
    failure: str | None = None
    error: float | None = None
    error_interval: tuple[float, float] = (0.0, 1.0)
    promises: tuple[PromiseCheck, ...] = ()
    kept: Kept | None = None
    sets: Sets | None = None
    confusion: Matrix = ()
    tied_with: str | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    shift: ShiftCurve | None = None
    false_alarms: FalseAlarmCurve | None = None
    calibration: CalibrationPath | None = None
    regions: RegionMap | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name as shown: baselines are marked."""
        return f"{self.name} (baseline)" if self.is_baseline else self.name

    @property
    def worst_promise(self) -> PromiseCheck | None:
        """The weakest promise: what it says holds for the other classes, too."""
        return max(self.promises, key=lambda promise: promise.allowed, default=None)


@dataclass(frozen=True, kw_only=True)
class FoldScore:
    """One method on one fold.

    Attributes
    ----------
    method : str
        Name of the method.
    repeat, fold : int
        Numbers from 1.
    n_train, n_test : int
        Rows fitted on and rows tested.
    error : float
        Share of wrong point predictions.
    set_size, coverage : float or None
        Mean size and coverage of the sets, if the method gives them.
    fit_seconds, predict_seconds : float or None
        Wall time of the fit and of predicting the tested rows.
    """

    method: str
    repeat: int
    fold: int
    n_train: int
    n_test: int
    error: float
    set_size: float | None
    coverage: float | None
    fit_seconds: float | None
    predict_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods side by side: errors, promises and whether they were kept.

    Attributes
    ----------
    data : Data
        The table.
    settings : Settings
        How the comparison was run.
    rows : tuple of MethodRow
        By error; methods that failed last, with their reason.
    folds : tuple of FoldScore
        Scores of each method on each fold.
    versions : mapping of str to str
        Python, the packages behind the figures, and the BLAS.
    """

    data: Data
    settings: Settings
    rows: tuple[MethodRow, ...]
    folds: tuple[FoldScore, ...]
    versions: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `leaderboard`."""
        from prudent.comparison.text import COLUMNS

        return COLUMNS

    def leaderboard(self) -> tuple[tuple[str, ...], ...]:
        """Rows of text under `columns`, for people."""
        from prudent.comparison.text import cells

        return tuple(cells(row) for row in self.rows)

    def verdict(self) -> tuple[str, ...]:
        """Three sentences: who errs least, which promises held, what is undecided."""
        from prudent.comparison.text import verdict

        return verdict(self)

    def without_timings(self) -> Comparison:
        """The same comparison without times and date, to repeat byte for byte."""
        no_times: dict[str, Any] = {"fit_seconds": None, "predict_seconds": None}
        return replace(
            self,
            settings=replace(self.settings, date=None, peak_memory=None),
            rows=tuple(replace(row, **no_times) for row in self.rows),
            folds=tuple(replace(score, **no_times) for score in self.folds),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types, except the rasters of the decision regions."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def save_report(self, path: str | Path) -> Path:
        """Write the report: one HTML file that needs no network.

        Parameters
        ----------
        path : str or Path
            File to write; its folder must exist.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        target = Path(path)
        target.write_text(self._repr_html_(), encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        from prudent.report import render

        return render(self)

    def __str__(self) -> str:
        from prudent.comparison.text import table

        return table(self)


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C during a comparison.

    Attributes
    ----------
    comparison : Comparison
        What was finished; the other methods have failed with "interrupted".
    """

    def __init__(self, comparison: Comparison) -> None:
        super().__init__("comparison interrupted")
        self.comparison = comparison


def _plain(value: Any) -> Any:
    if isinstance(value, RegionMap):
        return {"undecided": value.undecided, "class_shares": list(value.class_shares)}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)
