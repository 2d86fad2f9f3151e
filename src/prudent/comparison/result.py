"""`Comparison`: what was found, as table, JSON, frame and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from prudent.core.assumptions import name_of_assumption
from prudent.core.checks import PromiseCheck
from prudent.core.validation import plain
from prudent.estimator_tools.labelled_rows import rows_at
from prudent.evaluation import words
from prudent.evaluation.columns import cells, columns, figures, table_lines
from prudent.evaluation.frame import calibrations, false_alarms, shift_errors
from prudent.evaluation.records import (
    TIMES,
    Findings,
    MethodRow,
    RegionMap,
    RequestedPromise,
)
from prudent.io.replacing import write_whole


@dataclass(frozen=True, kw_only=True)
class Comparison(Findings):
    """Methods side by side: errors, promises and whether they were kept.

    Attributes
    ----------
    data : Data
        The table.
    settings : Settings
        How the comparison was run.
    rows : tuple of MethodRow
        By usefulness under the promise asked for; methods that failed last, with
        their reason.
    folds : tuple of FoldScore
        Scores of each method on each fold.
    versions : mapping of str to str
        Python, the packages behind the figures, and the BLAS.
    frontier : Frontier or None
        What each promise costs.
    measured : pyarrow.Table
        The long frame: all that was counted, one item a row, of which everything else
        is made. Columns: method; asked (whether by the method that makes the promise
        asked for, rather than as it is); repeat and fold, missing where all folds are
        taken together; quantity; scope (a class, missing: all rows); subgroup (missing:
        all of the population); at (size of a set,
        position of the class that was answered, level, shift); count of n rows;
        promised, sense, confidence, average_over of a promise, and over all folds low,
        high (its exact 95 % interval), p_broken, p_kept, verdict.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `leaderboard`."""
        return tuple(name.replace("|", " ") for name in columns(self))

    def leaderboard(self) -> tuple[tuple[str, ...], ...]:
        """Rows of text under `columns`, for people."""
        return tuple(
            tuple(cell.replace("\n", " ") for cell in cells(row, self))
            for row in self.rows
        )

    def verdict(self) -> tuple[str, ...]:
        """Sentences: what to use, who errs least, what is promised without asking."""
        return words.verdict(self)

    def without_timings(self) -> Comparison:
        """The same comparison without times and date, to repeat byte for byte."""
        no_times: dict[str, Any] = {"fit_seconds": None, "predict_seconds": None}
        return replace(
            self,
            settings=replace(self.settings, date=None, peak_memory=None),
            rows=tuple(replace(row, **no_times) for row in self.rows),
            folds=tuple(replace(score, **no_times) for score in self.folds),
            measured=self.measured.filter(~compute.field("quantity").isin(TIMES)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types, except the rasters of the decision regions."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        del named["measured"]
        plain: dict[str, Any] = _as_json(named)
        plain["rows"] = [self._row(row) for row in self.rows]
        return plain

    def _row(self, row: MethodRow) -> dict[str, Any]:
        """A row in JSON types, with its curves."""
        plain = _row(row, self.settings.promise)
        moved = shift_errors(self, row.method)
        alarms = false_alarms(self, row.method)
        path = calibrations(self, row.method)
        plain["shift"] = plain["false_alarms"] = plain["calibration"] = None
        if moved:
            plain["shift"] = {
                "shifts": list(moved),
                "errors": [wrong / n for wrong, n in moved.values()],
                "n": int(moved[0.0][1]),
            }
        if alarms:
            plain["false_alarms"] = {
                "levels": list(alarms),
                "false_alarms": [count for count, _ in alarms.values()],
                "n": max(n for _, n in alarms.values()),
            }
        if path:
            plain["calibration"] = {
                "error_before": path[0],
                "error_after": path[1],
                "best_iterations": [int(k) for k in path[2]],
            }
        return plain

    def to_frame(self) -> pa.Table:
        """Figures of the methods as numbers, one row each; failed ones are empty.

        Returns
        -------
        pyarrow.Table
            The figures of all columns of the table, in its order: method, is_baseline,
            kept, needs_rows, error, error_low, error_high, others_error, decided,
            wrong_when_decided, set_size, worst_subgroup, worst_subgroup_error (of
            promises by subgroup), worst_class, worst_class_error, cost,
            fit_seconds, predict_seconds; ``.to_pandas()`` makes a data frame.
        """
        return figures(self)

    def save_report(
        self, path: str | Path, *, examples: Any = None, print_all: bool = False
    ) -> Path:
        """Write the report: one HTML file that needs no network.

        Parameters
        ----------
        path : str or Path
            File to write; its folder must exist.
        examples : data frame or array of shape (n_samples, n_features), default=None
            The rows that were compared: the report shows some that the recommended
            method hands over. None: it holds no row of the data.
        print_all : bool, default=False
            Fold nothing, so that all of the report is printed.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        OSError
            If the file cannot be written.
        ValueError
            If `examples` are not as many rows as were compared.
        """
        from prudent.report import render

        shown = None if examples is None else self._examples(examples)
        text = render(self, self.to_dict(), examples=shown, print_all=print_all)
        target = Path(path)
        write_whole(target, text)
        return target

    def _examples(self, X: Any) -> dict[str, list[Any]] | None:
        """Rows of the table that the method shown in detail hands over."""
        row = words.in_detail(self)
        if row is None or not row.examples:
            return None
        return rows_at(X, [place for place, _ in row.examples], self.data.n_rows)

    def _repr_html_(self) -> str:
        from prudent.report import render

        return render(self, self.to_dict())

    def __str__(self) -> str:
        return "\n".join(table_lines(self))


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C during a comparison.

    Attributes
    ----------
    comparison : Comparison
        What was finished; the other methods have failed, "interrupted".
    """

    def __init__(self, comparison: Comparison) -> None:
        super().__init__("comparison interrupted")
        self.comparison = comparison


def _row(row: MethodRow, promise: str) -> dict[str, Any]:
    plain: dict[str, Any] = _as_json(row)
    del plain["why_undecided"]  # words, not a figure
    plain["own"] = [_item(item) for item in row.own]
    if row.worst_class is not None:
        plain["worst_class"] = {
            "label": row.worst_class.label,
            "error": row.worst_class.rate,
        }
    if row.asked is not None:
        plain["asked"] = {
            "text": promise,
            "kept": row.asked.kept,
            "net": row.asked.net,
            "needs_rows": _needs_rows(row.asked),
            "needs_label": row.asked.needs and row.asked.needs.label,
            "items": [_item(item) for item in row.asked.items],
            **{
                name: value
                for name, value in plain["asked"].items()
                if name not in ("kept", "needs", "items", "useful", "is_inside")
            },
        }
    return plain


def _item(item: PromiseCheck) -> dict[str, Any]:
    guarantee, check = item.guarantee, item.check
    plain: dict[str, Any] = _as_json(guarantee)
    del plain["evidence"]
    names = [name_of_assumption(a) for a in guarantee.assumptions]
    return {
        **plain,
        "assumptions": names,
        "measured": check.measured,
        "interval": list(check.interval),
        "n": item.n,
        "violations": item.violations,
        "p_broken": item.p_broken,
        "p_kept": item.p_kept,
        "kept": check.verdict,
    }


def _needs_rows(asked: RequestedPromise | None) -> int | None:
    return None if asked is None or asked.needs is None else asked.needs.rows


def _as_json(value: Any) -> Any:
    if isinstance(value, RegionMap):
        return {"undecided": value.undecided, "class_shares": list(value.class_shares)}
    if is_dataclass(value):
        return {f.name: _as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_as_json(item) for item in value]
    value = plain(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)
