"""Method after method on the same folds, and what becomes of those that fail."""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby
from numbers import Integral
from typing import Any

import numpy as np

from prudent.comparison.result import Comparison, ComparisonInterrupted
from prudent.core.classes import discriminant_axes
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.evaluation import judge
from prudent.evaluation.child import LimitedEvaluation, OutOfTime
from prudent.evaluation.evaluate import Evaluation, Progress, evaluate
from prudent.evaluation.feasibility import refuse_hopeless
from prudent.evaluation.folds import Fold, Task, make_folds, training_moments
from prudent.evaluation.methods import DEFAULT_PROMISE, Method
from prudent.evaluation.records import Data, Failure, FoldScore, MethodRow, Settings
from prudent.evaluation.table import (
    LabelledRows,
    constant_columns,
    fingerprint,
    preprocessing,
)
from prudent.io.errors import counted, listed
from prudent.io.notes import treatment
from prudent.rules.wish import CONFIDENCE, parse_promise

LONGEST_REASON = 300
PACKAGES = ("prudent", "numpy", "scipy", "scikit-learn")
# Rows that the picture of decision regions needs, where preprocessing comes first.
PICTURE_ROWS = 20_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """How methods are compared; see `compare`."""

    promise: str | Guarantee | Sequence[Guarantee] = DEFAULT_PROMISE
    confidence: float | None = None
    cv: int = 5
    n_repeats: int = 1
    costs: FloatArray | None = None
    random_state: int = 0
    n_jobs: int = 1
    time_limit: float | None = None
    sample: int | None = 100_000

    def check(self) -> None:
        """Raise ValueError for a value out of its range."""
        n_jobs, limit, sample = self.n_jobs, self.time_limit, self.sample
        has_jobs = isinstance(n_jobs, Integral) and n_jobs != 0
        has_limit = limit is None or 0 < limit < float("inf")
        has_confidence = self.confidence is None or 0 < self.confidence < 1
        has_sample = sample is None or _is_whole(sample, 2)
        for name, is_possible, must in (
            ("cv", _is_whole(self.cv, 2), "be an integer >= 2"),
            ("n_repeats", _is_whole(self.n_repeats, 1), "be an integer >= 1"),
            ("n_jobs", has_jobs, "be an integer other than 0"),
            ("sample", has_sample, "be an integer >= 2 or None"),
            ("time_limit", has_limit, "be a number of seconds > 0 or None"),
            ("confidence", has_confidence, "lie in (0, 1), or be None"),
        ):
            if not is_possible:
                given = getattr(self, name)
                raise ValueError(f"`{name}` must {must}, got {given!r}.")
        wish = parse_promise(self.promise, confidence=self.confidence)
        if wish is not None and wish.kind == "false alarm":
            raise ValueError(
                f"{wish.text!r} is a promise of detectors: use prudent detect."
            )


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def run(
    rows: LabelledRows,
    methods: Sequence[Method],
    protocol: Protocol,
    *,
    others: ClassMoments | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> Comparison:
    """Compare methods on rows, by a protocol that was checked.

    `others` are rows that are never tested and that every training part holds;
    `progress` is told the method, the fold and the number of folds; `command` is what
    to type to get this again.
    """
    n_folds, notes = _affordable_folds(rows, protocol.cv)
    classes = rows.classes.tolist()
    wish = parse_promise(protocol.promise, classes, confidence=protocol.confidence)
    if protocol.costs is not None and protocol.costs.shape != (len(classes),) * 2:
        raise ValueError(
            f"`costs` must have the shape {(len(classes),) * 2} for {len(classes)} "
            f"classes, got {protocol.costs.shape}."
        )
    folds = make_folds(
        *(rows.codes, n_folds, protocol.n_repeats, protocol.random_state), rows.groups
    )
    n_missing = int(np.isnan(rows.X).sum())
    done = treatment(rows.is_text, n_missing, rows.missing)
    data = Data(
        name=rows.name,
        sha256=rows.sha256 or fingerprint(rows.X, rows.y),
        n_rows=len(rows.X),
        features=rows.features,
        classes=tuple(map(str, classes)),
        class_counts=tuple(rows.counts.tolist()),
        constant_features=(
            *rows.constant,
            *(rows.features[j] for j in constant_columns(rows.X)),
        ),
        notes=(
            *rows.notes,
            *([] if done is None else [done]),
            *([] if wish is None or wish.understood is None else [wish.understood]),
            *notes,
        ),
    )
    settings = Settings(
        methods=tuple(m.name for m in methods if not m.is_baseline),
        baselines=tuple(m.name for m in methods if m.is_baseline),
        promise="none" if wish is None else wish.text,
        confidence=(wish and wish.confidence) or protocol.confidence or CONFIDENCE,
        n_folds=n_folds,
        n_repeats=protocol.n_repeats,
        random_state=protocol.random_state,
        n_jobs=protocol.n_jobs,
        time_limit=protocol.time_limit,
        sample=protocol.sample,
        command=command,
        date=f"{datetime.now():%Y-%m-%d %H:%M}",
    )
    task = _task(
        *(rows, folds, others), settings=settings, wish=wish, costs=protocol.costs
    )
    refuse_hopeless(task, methods)
    return _run(methods, task, data, progress)


def _run(
    methods: Sequence[Method],
    task: Task,
    data: Data,
    progress: Progress | None,
) -> Comparison:
    """Evaluate method after method; Ctrl-C gives up on the rest."""
    rows: list[MethodRow] = []
    scores: list[FoldScore] = []
    done: dict[str, Evaluation] = {}

    def finished() -> Comparison:
        gained = {name: judge.gains(found, task) for name, found in done.items()}
        return Comparison(
            data=data,
            settings=replace(task.settings, peak_memory=_peak_memory()),
            rows=judge.in_order(judge.at_one_level(rows), gained),
            folds=tuple(scores),
            versions=_package_versions(),
            frontier=judge.frontier(done, task),
        )

    with contextlib.ExitStack() as running:
        evaluated: Any = partial(evaluate, task=task)
        if task.settings.time_limit is not None:
            limited = LimitedEvaluation(task, task.settings.time_limit)
            evaluated = running.enter_context(limited)
        for position, method in enumerate(methods):
            try:
                found = evaluated(method, progress=progress)
            except KeyboardInterrupt:
                stopped = Failure(kind="interrupted", text="interrupted")
                rows += [_failed(left, stopped) for left in methods[position:]]
                raise ComparisonInterrupted(finished()) from None
            except Exception as error:
                # A method that fails is a row with its reason, never a missing row.
                rows.append(_failed(method, _failure(error)))
            else:
                done[method.name] = found
                rows.append(judge.method_row(method, found, task))
                scores += judge.fold_scores(method, found, task)
    return finished()


def _failed(method: Method, failure: Failure) -> MethodRow:
    return MethodRow(
        method=method.name, is_baseline=method.is_baseline, failure=failure
    )


def _failure(error: Exception) -> Failure:
    """First line of what an exception says, or its name if it says nothing."""
    if isinstance(error, OutOfTime):
        return Failure(kind="time limit", text=str(error))
    if isinstance(error, MemoryError):
        text = "out of memory; give fewer rows by `sample`"
        return Failure(kind="memory", text=text)
    said = str(error).strip().splitlines() or [type(error).__name__]
    return Failure(kind="error", text=said[0][:LONGEST_REASON])


def _task(
    rows: LabelledRows,
    folds: Sequence[Fold],
    others: ClassMoments | None,
    **settings: Any,
) -> Task:
    """Folds, the moments of their training parts, and the plane of a picture."""
    preparation = preprocessing(rows.X, rows.is_text, missing=rows.missing)
    if preparation is not None:
        plane = _plane(rows, preparation)
        return Task(rows, folds, preparation=preparation, plane=plane, **settings)
    start = time.perf_counter()
    moments: list[ClassMoments] = []
    for _, repeat in groupby(folds, key=lambda fold: fold.repeat):
        training, total = training_moments(
            rows.X, rows.codes, rows.classes, list(repeat)
        )
        moments += training
    seconds = (time.perf_counter() - start) / len(folds)
    if others is not None:
        moments = [others + part for part in moments]
        total = others + total
    axes, _ = discriminant_axes(total)
    return Task(
        rows,
        folds,
        moments=moments,
        moment_seconds=seconds,
        plane=rows.X @ axes if axes.shape[1] == 2 else None,
        **settings,
    )


def _plane(rows: LabelledRows, preparation: Any) -> FloatArray | None:
    """Rows on the discriminant axes, where they are few enough for a picture."""
    if len(rows.X) > PICTURE_ROWS:
        return None
    Z = np.asarray(preparation.fit_transform(rows.X), dtype=np.float64)
    axes, _ = discriminant_axes(ClassMoments.from_arrays(Z, rows.codes))
    return Z @ axes if axes.shape[1] == 2 else None


def _affordable_folds(rows: LabelledRows, cv: int) -> tuple[int, tuple[str, ...]]:
    """Folds that rows and groups allow, with notes on them and on rare classes."""
    classes, counts = rows.classes, rows.counts
    if len(classes) < 2:
        raise ValueError(f"`y` has one class, {str(classes[0])!r}; give at least two.")
    most = int(counts.max())
    if most < 2:
        raise ValueError(
            "every class has 1 row, so none can be both learned and tested: "
            "add rows or join classes."
        )
    notes = []
    n_folds = min(cv, most)
    if rows.groups is not None:
        n_groups = len(np.unique(rows.groups))
        n_folds = min(n_folds, n_groups)
        notes.append(
            f"rows of {n_groups} groups: folds keep groups whole, and one random row "
            "of each group is tested"
        )
    if n_folds < cv:
        notes.append(f"{n_folds} folds instead of {cv}: there are no more to be had")
    single = [str(label) for label in classes[counts < 2].tolist()]
    if len(single) == 1:
        notes.append(
            f"class {single[0]!r} has 1 row, so it cannot be both learned and tested: "
            "it counts as missed"
        )
    elif single:
        notes.append(
            f"{counted(len(single), 'class')} have 1 row each and cannot be both "
            f"learned and tested: they count as missed ({listed(map(repr, single))})"
        )
    return n_folds, tuple(notes)


def _package_versions() -> dict[str, str]:
    """Versions of Python and of the packages behind the figures, and the BLAS."""
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    versions["blas"] = (
        f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    )
    return versions


def _peak_memory() -> int | None:
    """Bytes that this process has held at most; None where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
