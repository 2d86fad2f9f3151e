"""`compare`: the same folds for every method, promises held against fresh rows."""

from __future__ import annotations

import hashlib
import numbers
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y

from prudent.comparison.child import OutOfTime, evaluate_within
from prudent.comparison.environment import package_versions, peak_memory
from prudent.comparison.evaluation import Problem, Progress, evaluate
from prudent.comparison.folds import make_folds, training_moments
from prudent.comparison.methods import Method, choose
from prudent.comparison.result import (
    Comparison,
    ComparisonInterrupted,
    Data,
    FoldScore,
    MethodRow,
    Settings,
)
from prudent.comparison.summary import fold_scores, in_order, method_row, wrong_rows
from prudent.core.discriminant import discriminant_axes
from prudent.core.moments import ClassMoments
from prudent.estimator_tools import check_groups, constant_features
from prudent.io.errors import listed

LONGEST_REASON = 300


def compare(
    X: Any,
    y: Any,
    *,
    methods: str | Sequence[str] = "all",
    baselines: str | Sequence[str] = ("lda", "qda", "logistic"),
    cv: int = 5,
    n_repeats: int = 1,
    groups: Any = None,
    random_state: int = 0,
    n_jobs: int = 1,
    time_limit: float | None = None,
    sample: int | None = 100_000,
    _others: ClassMoments | None = None,
    _progress: Progress | None = None,
) -> Comparison:
    """Compare robust methods on a table: errors, promises, and whether they held.

    Every figure is out of fold: rows are predicted by a model that has not seen
    them. Promises are averaged over the folds and held against the same rows
    with exact intervals.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Finite numbers.
    y : array-like of shape (n_samples,)
        Class labels; at least two classes. A class of which a training part has
        fewer than two rows is not learned there, and its rows count as missed.
    methods : "all" or sequence of str, default="all"
        Some of "optimistic", "minimax", "calibrated", "imprecise", "rejection".
    baselines : sequence of str, default=("lda", "qda", "logistic")
        Methods for reference; may be empty.
    cv : int, default=5
        Stratified folds, >= 2; lowered to the rows of the largest class.
    n_repeats : int, default=1
        Times that all folds are drawn anew.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together (of a patient, of a machine) have equal values.
        Folds keep groups whole, and one row of each group, drawn at random, is
        tested: every figure is about a random row of a new group.
    random_state : int, default=0
        Seed of folds, samples and methods.
    n_jobs : int, default=1
        Folds fitted at a time, in processes; -1 takes all cores.
    time_limit : float, default=None
        Seconds allowed to each method, in (0, inf). With a limit the methods run
        in child processes, which a script has to allow for by
        ``if __name__ == "__main__":``.
    sample : int, default=100_000
        Most rows to fit a method on that needs rows, drawn in class proportions;
        methods that learn from moments always use all rows. None: no limit.

    Returns
    -------
    Comparison
        Prints as a table; see `save_report`, `to_dict` and `rows`. A method that
        failed is a row with its reason.

    Raises
    ------
    ValueError
        If the table or an argument cannot be used.
    ComparisonInterrupted
        On Ctrl-C: a `KeyboardInterrupt` that carries what was finished.

    Notes
    -----
    Promise: for each class (or over all rows where the promise has no class), the
    mean of the fold bounds weighted by the rows tested, checked at level 0.05
    over the number of promises; a promise on average over training samples is
    checked by the law of the sum of the folds' counts (see `Guarantee.check`).
    "No difference shown" from the method of least error: exact McNemar test on
    the rows at level 0.05, corrected over methods by Holm's procedure.

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = prudent.compare(X, y, methods=["minimax"], baselines=["lda"])
    >>> [row.name for row in comparison.rows], comparison.rows[0].error < 0.05
    (['lda', 'minimax'], True)
    """
    chosen = choose(methods, baselines)
    _check_numbers(cv, n_repeats, n_jobs, time_limit, sample)
    features = _feature_names(X)
    X, y = check_X_y(X, y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    labels = None if groups is None else check_groups(groups, len(X))
    n_folds, notes = _affordable_folds(codes, classes, labels, cv)
    problem, total = _problem(
        X, y, codes, classes, labels, (n_folds, n_repeats), sample, random_state, n_jobs
    )
    if _others is not None:
        # Rows that are never tested: every training part holds them.
        moments = [_others + part for part in problem.moments]
        problem, total = replace(problem, moments=moments), _others + total
    names = features or tuple(f"x{j}" for j in range(X.shape[1]))
    data = Data(
        name="table",
        sha256=_fingerprint(X, y),
        n_rows=len(X),
        features=names,
        classes=tuple(map(str, classes.tolist())),
        class_counts=tuple(np.bincount(codes).tolist()),
        constant_features=tuple(names[j] for j in constant_features(total)),
        notes=notes,
    )
    settings = Settings(
        methods=tuple(m.name for m in chosen if not m.is_baseline),
        baselines=tuple(m.name for m in chosen if m.is_baseline),
        n_folds=n_folds,
        n_repeats=n_repeats,
        random_state=random_state,
        n_jobs=n_jobs,
        time_limit=time_limit,
        sample=sample,
        command=f"prudent.compare(X, y, cv={cv}, random_state={random_state})",
        date=f"{datetime.now():%Y-%m-%d %H:%M}",
    )
    return _run(chosen, problem, data, settings, _progress)


def _run(
    chosen: Sequence[Method],
    problem: Problem,
    data: Data,
    settings: Settings,
    progress: Progress | None,
) -> Comparison:
    """Evaluate method after method; Ctrl-C gives up on the rest."""
    rows: list[MethodRow] = []
    scores: list[FoldScore] = []
    wrong: dict[str, NDArray[np.bool_]] = {}

    def finished() -> Comparison:
        measured = replace(settings, peak_memory=peak_memory())
        return Comparison(
            data=data,
            settings=measured,
            rows=in_order(rows, wrong),
            folds=tuple(scores),
            versions=package_versions(),
        )

    for method in chosen:
        try:
            if settings.time_limit is None:
                found = evaluate(method, problem, progress)
            else:
                found = evaluate_within(settings.time_limit, method, problem, progress)
        except KeyboardInterrupt:
            rows += [
                _failed(left, "interrupted") for left in chosen[chosen.index(method) :]
            ]
            raise ComparisonInterrupted(finished()) from None
        except OutOfTime as error:
            rows.append(_failed(method, str(error)))
        except Exception as error:
            # A method that fails is a row with its reason, never a missing row.
            rows.append(_failed(method, _reason(error)))
        else:
            rows.append(method_row(method, found, problem))
            scores += fold_scores(method, found, problem)
            wrong[method.name] = wrong_rows(found, problem)
    return finished()


def _failed(method: Method, reason: str) -> MethodRow:
    return MethodRow(name=method.name, is_baseline=method.is_baseline, failure=reason)


def _reason(error: Exception) -> str:
    """First line of what an exception says, or its name if it says nothing."""
    said = str(error).strip().splitlines()
    return said[0][:LONGEST_REASON] if said else type(error).__name__


def _problem(
    X: NDArray[Any],
    y: NDArray[Any],
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    groups: NDArray[Any] | None,
    splits: tuple[int, int],
    sample: int | None,
    random_state: int,
    n_jobs: int,
) -> tuple[Problem, ClassMoments]:
    """Folds, their moments and the discriminant plane; and the moments of all rows."""
    n_folds, n_repeats = splits
    folds = make_folds(codes, n_folds, n_repeats, random_state, groups)
    start = time.perf_counter()
    moments: list[ClassMoments] = []
    for first in range(0, len(folds), n_folds):
        training, total = training_moments(
            X, codes, classes, folds[first : first + n_folds]
        )
        moments += training
    seconds = (time.perf_counter() - start) / len(folds)
    axes, _ = discriminant_axes(total)
    problem = Problem(
        X=X,
        y=y,
        codes=codes,
        classes=classes,
        folds=folds,
        moments=moments,
        moment_seconds=seconds,
        groups=groups,
        plane=X @ axes if axes.shape[1] == 2 else None,
        sample=sample,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return problem, total


def _affordable_folds(
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    groups: NDArray[Any] | None,
    cv: int,
) -> tuple[int, tuple[str, ...]]:
    """Folds that rows and groups allow, with notes on them and on rare classes."""
    counts = np.bincount(codes)
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
    if groups is not None:
        n_groups = len(np.unique(groups))
        n_folds = min(n_folds, n_groups)
        notes.append(
            f"rows of {n_groups} groups: folds keep groups whole, and one random row "
            "of each group is tested"
        )
    if n_folds < cv:
        notes.append(f"{n_folds} folds instead of {cv}: there are no more to be had")
    single = [str(label) for label in classes[counts < 2].tolist()]
    if single:
        notes.append(
            f"class {listed(map(repr, single))} has 1 row, so it cannot be both "
            "learned and tested: it counts as missed"
        )
    return n_folds, tuple(notes)


def _check_numbers(
    cv: Any, n_repeats: Any, n_jobs: Any, time_limit: Any, sample: Any
) -> None:
    for name, value, least in (("cv", cv, 2), ("n_repeats", n_repeats, 1)):
        if not isinstance(value, numbers.Integral) or value < least:
            raise ValueError(f"`{name}` must be an integer >= {least}, got {value!r}.")
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"`n_jobs` must be an integer other than 0, got {n_jobs!r}.")
    if sample is not None and (not isinstance(sample, numbers.Integral) or sample < 2):
        raise ValueError(f"`sample` must be an integer >= 2 or None, got {sample!r}.")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise ValueError(
            f"`time_limit` must be a number of seconds > 0 or None, got {time_limit!r}."
        )


def _feature_names(X: Any) -> tuple[str, ...] | None:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return tuple(map(str, frame.columns)) if isinstance(frame, nw.DataFrame) else None


def _fingerprint(X: NDArray[Any], y: NDArray[Any]) -> str:
    """SHA-256 of the numbers, row by row, and of the labels as text."""
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update("\n".join(map(str, y.tolist())).encode())
    return digest.hexdigest()
