"""`compare`: the same folds for every method, promises held against fresh rows."""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby, product
from numbers import Integral
from typing import Any

import numpy as np

from prudent.comparison.calls import call_again, call_to_use
from prudent.comparison.result import Comparison, ComparisonInterrupted
from prudent.core.classes import as_costs, discriminant_axes
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.order import forward_folds
from prudent.core.rows import hold_out
from prudent.core.types import FloatArray
from prudent.estimator_tools import copied_rows, refuse_dask
from prudent.estimator_tools.labelled_rows import (
    LabelledRows,
    constant_columns,
    count_missing,
    fingerprint,
    head_of,
    labelled_rows,
    preprocessing,
)
from prudent.estimator_tools.order import order_in_time
from prudent.estimator_tools.subgroups import memberships_of
from prudent.evaluation import rows as ranked
from prudent.evaluation.child import LimitedEvaluation, OutOfTime, prepare
from prudent.evaluation.evaluate import (
    Evaluation,
    Fold,
    Progress,
    Task,
    evaluate,
    is_hopeless,
    lacking,
    make_folds,
    rows_of_cells,
    training_moments,
)
from prudent.evaluation.methods import (
    BASELINES,
    DEFAULT_PROMISE,
    METHODS,
    Method,
    best_among,
    choose,
    competing,
    on_rows_as_given,
)
from prudent.evaluation.promising import (
    fewest_held_out,
    held_out_share,
    holds_out,
    shared_confidence,
)
from prudent.evaluation.records import Data, Failure, FoldScore, MethodRow, Settings
from prudent.evaluation.rows import needs_of
from prudent.evaluation.words import needed
from prudent.exceptions import InfeasibleError
from prudent.io.errors import counted, listed, thousands
from prudent.io.survey import treatment
from prudent.rules.subgroups import Memberships, cells_with_rows_enough
from prudent.rules.wish import CONFIDENCE, Wish, parse_promise

LONGEST_REASON = 300
PACKAGES = ("prudent", "numpy", "scipy", "scikit-learn")
# Rows that the picture of decision regions needs, where preprocessing comes first.
PICTURE_ROWS = 20_000
# Rows of a table up to which the row "best", which fits all others once more in each
# fold, is there without being asked for.
MOST_ROWS_FOR_BEST = 2000
# Small subgroups that a note lists.
MOST_SMALL = 6
# Coverages of sets that are asked for where rows are too few for another promise.
SETS_INSTEAD = (0.9, 0.8, 0.7, 0.6, 0.5)


def compare(
    X: Any,
    y: Any,
    *,
    promise: str | Guarantee | Sequence[Guarantee] = DEFAULT_PROMISE,
    confidence: float | None = None,
    methods: str | Sequence[Any] | Mapping[str, Any] = "all",
    baselines: Sequence[str] = tuple(BASELINES),
    best: bool | None = None,
    cv: int = 5,
    n_repeats: int = 1,
    groups: Any = None,
    subgroups: Any = None,
    time: Any = None,
    costs: Any = None,
    random_state: int = 0,
    n_jobs: int = 1,
    time_limit: float | None = None,
    sample: int | None = 100_000,
) -> Comparison:
    """Compare methods on a table under the promise that is asked for.

    Every method, baselines and own estimators included, is wrapped so that it makes
    the promise; rows that it has not seen check it; what is compared is how useful
    each method still is. Every figure is out of fold.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, and words in data frames. Missing cells become the median with an
        indicator column, words become indicators, learned within each fold; methods
        see arrays of numbers. An estimator of yours with a `ColumnTransformer` in it,
        which looks for columns, gets the rows as they are.
    y : array-like of shape (n_samples,)
        Class labels; at least two classes. A class that a training part lacks
        counts as missed there.
    promise : str or Guarantee, default="coverage >= 90% in every class"
        What every method has to promise:

        - ``"coverage >= 90% in every class"``: sets of answers that hold the true
          class for 90 % of the rows of every class, on average over training
          samples or with `confidence` (:class:`~prudent.ConformalClassifier`);
        - ``"coverage >= 95%"``: the same over all rows;
        - ``"error <= 5%"``: of the rows that are answered, at most 5 % wrong
          (:class:`~prudent.SelectiveClassifier`);
        - ``"missed LABEL <= 2%"``, several with ``and``: at most 2 % of the rows of
          a class answered wrongly (:class:`~prudent.NeymanPearsonClassifier`);
        - any of these ``"... in every sex and age_band"``, or in every class and sex:
          kept in each part of these columns (see `subgroups`);
        - ``"none"``: methods as they are.
    confidence : float or None, default=None
        Probability over training samples, in (0, 1), that what is promised of a
        fitted model is true: of all classes at once, and for all methods together, so
        that the one chosen keeps it; `best` has a probability as large to itself.
        None: 0.95 of promises about errors and missed classes, and coverage on average.
    methods : "all", sequence or mapping, default="all"
        Names among "optimistic", "minimax", "calibrated", "imprecise", "rejection",
        "conformal", dotted paths of classes, and pairs of a name and an estimator;
        or a mapping from names to estimators.
    baselines : sequence of str, default=("majority", "logistic", "lda", "qda", \
"boosting")
        Methods for reference; may be empty.
    best : bool or None, default=None
        Add the row "best": the most useful of the other methods under the promise,
        chosen inside each training part as :class:`~prudent.BestClassifier` does. It
        uses nothing of the table, and so promises at the full `confidence`, and it is
        what is recommended. None: of a promise about at most 2000 rows, where two
        methods or more are to be chosen from (twice the time or more).
    cv : int, default=5
        Stratified folds, >= 2; lowered to the rows of the largest class. With `time`
        folds that go forward, lowered to the different times less one.
    n_repeats : int, default=1
        Times that all folds are drawn anew.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together (of a patient, of a machine) have equal values.
        Folds keep groups whole, and one row of each group, drawn at random, is
        tested: every figure is about a random row of a new group.
    subgroups : list of str or int, callable, bool matrix or data frame, default=None
        Parts of the population, which may overlap, each of which gets the promise:
        names or positions of columns of `X`, each value of which is a subgroup
        (``"sex"``, crossed ``"sex*age_band"``, in bands ``"age:30,45,60"``); a function
        of rows; or which subgroups hold each row (n, n_subgroups), or a data frame of
        labels, whose columns nothing is learned from. None: those that `promise` names.
    time : array-like of shape (n_samples,), default=None
        When each row was taken: numbers, dates of any library or ISO dates. Folds then
        go forward: the distinct times are parted into `cv` + 1 blocks of nearly equal
        rows, and fold j learns from the first j of them and tests the next. Wrappers
        hold out the latest rows of what they learn from, a group stands at its latest
        row, and a note says whether the rows change with time.
    costs : array-like of shape (n_classes, n_classes), default=None
        Cost of answering with the class of a column where that of the row is true;
        the table gains the mean cost of each plain method.
    random_state : int, default=0
        Seed of folds, samples and methods.
    n_jobs : int, default=1
        Folds fitted at a time, in processes; -1 takes all cores.
    time_limit : float, default=None
        Seconds allowed to each method, in (0, inf). With a limit the methods run
        in child processes, which a script has to allow for by
        ``if __name__ == "__main__":``.
    sample : int, default=100_000
        Most rows to fit a method on that needs rows, by a plain draw (with `groups`
        of groups, about so many rows); methods that learn from moments always use
        all rows, unless a promise is asked of them. None: no limit.

    Returns
    -------
    Comparison
        Prints as a table; see `to_frame`, `to_dict`, `save_report`, `rows`, and
        `measured`, all counts as one long frame. A method that failed is a row with
        its reason.

    Raises
    ------
    ValueError
        If the table or an argument cannot be used.
    InfeasibleError
        If the rows are too few for any method to make the promise, before any fit; it
        says how many are needed, and which promise these rows allow.
    ComparisonInterrupted
        On Ctrl-C: a `KeyboardInterrupt` that carries what was finished.

    Notes
    -----
    Wrappers hold rows of the training part out; the test rows of a fold have no part
    in its promises. A promise is the mean of the folds' bounds weighted by the rows
    tested; one on average over training samples is checked by the law of the sum of the
    folds' counts. The verdicts of all promises of a table share the level 0.05 by
    Holm's procedure, "broken" and "kept" each: of tables of true promises one in twenty
    at most has a broken one.

    Rows are sorted by the share of rows decided rightly less the share decided wrongly
    (of promises about classes, by the error of the others). "No difference" from the
    first one: an exact paired sign-flip test of these gains at level 0.05, corrected
    over methods by Holm's procedure.

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = prudent.compare(X, y, methods=["conformal"], baselines=["lda"])
    >>> [(row.method, row.asked.kept) for row in comparison.rows]
    [('lda', 'consistent'), ('best', 'consistent'), ('conformal', 'consistent')]
    """
    arguments = {**locals()}
    by, inside = asked_subgroups(promise, subgroups, X)
    protocol = Protocol(
        promise=promise,
        by=by,
        confidence=confidence,
        cv=cv,
        n_repeats=n_repeats,
        costs=None if costs is None else as_costs(costs),
        best=best,
        random_state=random_state,
        n_jobs=n_jobs,
        time_limit=time_limit,
        sample=sample,
        in_time=time is not None,
    )
    chosen = on_rows_as_given(choose(methods, baselines), head_of(X))
    protocol.check()
    if time_limit is not None:
        prepare()
    refuse_dask(X)
    rows = replace(labelled_rows(X, y, groups, time), inside=inside)
    chosen = protocol.with_best(chosen, len(rows.X))
    again = call_again(compare, arguments)
    comparison = run(rows, chosen, protocol, command=again)
    own = tuple(method.name for method in chosen if method.own is not None)
    is_prepared = preprocessing(rows.X, rows.missing) is not None
    call = call_to_use(
        *(comparison, chosen, rows.classes.tolist(), arguments), is_prepared=is_prepared
    )
    next_command = call if own else None
    settings = replace(
        comparison.settings, own=own, next_command=next_command, call=call
    )
    return replace(comparison, settings=settings)


@dataclass(frozen=True, kw_only=True, eq=False)
class Protocol:
    """How methods are compared; see `compare`."""

    promise: str | Guarantee | Sequence[Guarantee] = DEFAULT_PROMISE
    by: tuple[str, ...] = ()  # what subgroups are parts of, as a promise names it
    confidence: float | None = None
    cv: int = 5
    n_repeats: int = 1
    costs: FloatArray | None = None
    best: bool | None = None
    random_state: int = 0
    n_jobs: int = 1
    time_limit: float | None = None
    sample: int | None = 100_000
    in_time: bool = False
    details: bool = True  # that a report and JSON hold, and the printed table does not

    def with_best(self, methods: Sequence[Method], n_rows: int) -> tuple[Method, ...]:
        """The methods, and what chooses among them where that is wanted."""
        wanted = self.best
        if wanted is None:
            wanted = (
                n_rows <= MOST_ROWS_FOR_BEST
                and len(competing(methods)) > 1
                and not any(method.chooses for method in methods)
                and parse_promise(self.promise, confidence=self.confidence) is not None
            )
        if not wanted:
            return tuple(methods)
        limit = self.time_limit
        if limit is not None:  # one half is for what was chosen
            limit /= 2 * self.cv * self.n_repeats
        return (*methods, best_among(methods, limit))

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
        if self.in_time and self.n_repeats > 1:
            raise ValueError(
                f"`n_repeats` must be 1 with `time`, got {self.n_repeats}: folds that "
                "go forward are there once."
            )
        wish = parse_promise(self.promise, confidence=self.confidence, by=self.by)
        if wish is not None and wish.kind == "false alarm":
            raise ValueError(
                f"{wish.text!r} is a promise of detectors: use prudent detect."
            )


def asked_subgroups(
    promise: Any, subgroups: Any, X: Any
) -> tuple[tuple[str, ...], Memberships | None]:
    """What subgroups are parts of, in the words of a promise, and which hold each row.

    They are given, or named by the promise itself; () and None without any.
    """
    by: tuple[str, ...] = ()
    if isinstance(subgroups, str | Integral):
        subgroups = [subgroups]
    is_listed = isinstance(subgroups, list | tuple) and all(
        isinstance(item, str | Integral) for item in subgroups
    )
    if is_listed:
        by = tuple(i if isinstance(i, str) else f"column {i}" for i in subgroups)
    elif subgroups is not None:
        by = ("subgroup",)
    wish = parse_promise(promise, by=by)
    named = () if wish is None else wish.subgroups
    if subgroups is None and not named:
        return (), None
    option = list(named) if subgroups is None else subgroups
    return named, memberships_of(option, X)


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
    classes = rows.classes.tolist()
    wish = parse_promise(
        protocol.promise, classes, confidence=protocol.confidence, by=protocol.by
    )
    n_folds, notes = _affordable_folds(rows, protocol.cv, wish, methods)
    if protocol.costs is not None and protocol.costs.shape != (len(classes),) * 2:
        raise ValueError(
            f"`costs` must have the shape {(len(classes),) * 2} for {len(classes)} "
            f"classes, got {protocol.costs.shape}."
        )
    folds = make_folds(
        *(rows.codes, n_folds, protocol.n_repeats, protocol.random_state),
        *(rows.groups, rows.times),
    )
    done = treatment(rows.is_text, count_missing(rows.X), rows.missing)
    notes = (
        *rows.notes,
        *([] if done is None else [done]),
        *([] if wish is None or wish.understood is None else [wish.understood]),
        *_notes_on_subgroups(rows, wish, n_folds, methods),
        *_notes_on_copies(rows),
        *notes,
    )
    data = _described(rows, notes, _order(rows, wish, protocol.random_state))
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
        *(rows, folds, others),
        settings=settings,
        wish=wish,
        costs=protocol.costs,
        details=protocol.details,
        n_methods=max(sum(not method.chooses for method in methods), 1),
    )
    refuse_hopeless(task, methods, protocol.confidence)
    return _run(methods, task, data, progress)


def _described(rows: LabelledRows, notes: tuple[str, ...], order: str) -> Data:
    """What a reader is told of the table."""
    return Data(
        name=rows.name,
        sha256=rows.sha256 or fingerprint(rows),
        n_rows=len(rows.X),
        features=rows.features,
        classes=tuple(map(str, rows.classes.tolist())),
        class_counts=tuple(rows.counts.tolist()),
        subgroup_counts=ranked.subgroup_counts(rows),
        constant_features=(*rows.constant, *constant_columns(rows)),
        notes=notes,
        order=order,
    )


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
        gained = {
            name: ranked.gains(evaluation, task) for name, evaluation in done.items()
        }
        items = [evaluation.items for evaluation in done.values()]
        in_order = ranked.in_order(
            ranked.at_one_level(rows, data.subgroup_counts), gained
        )
        return Comparison(
            data=data,
            settings=replace(task.settings, peak_memory=_peak_memory()),
            rows=in_order,
            measured=ranked.measured(in_order, items),
            folds=tuple(scores),
            versions=_package_versions(),
            frontier=ranked.frontier(done, task),
        )

    with contextlib.ExitStack() as running:
        evaluated: Any = partial(evaluate, task=task)
        if task.settings.time_limit is not None:
            limited = LimitedEvaluation(task, task.settings.time_limit)
            evaluated = running.enter_context(limited)
        for position, method in enumerate(methods):
            try:
                evaluation = evaluated(method, progress=progress)
            except KeyboardInterrupt:
                stopped = Failure(kind="interrupted", text="interrupted")
                rows += [_failed(left, stopped) for left in methods[position:]]
                raise ComparisonInterrupted(finished()) from None
            except Exception as error:
                # A method that fails is a row with its reason, never a missing row.
                rows.append(_failed(method, _failure(error)))
            else:
                done[method.name] = evaluation
                rows.append(ranked.method_row(method, evaluation, task))
                scores += ranked.fold_scores(evaluation.items, task)
    return finished()


def _failed(method: Method, failure: Failure) -> MethodRow:
    return MethodRow(
        method=method.name,
        is_baseline=method.is_baseline,
        chooses=method.chooses,
        failure=failure,
    )


def _failure(error: Exception) -> Failure:
    """First line of what an exception says, or its name if it says nothing."""
    if isinstance(error, OutOfTime):
        return Failure(kind="time limit", text=str(error))
    if isinstance(error, MemoryError):
        text = "out of memory; give fewer rows by `sample`"
        return Failure(kind="memory", text=text)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return Failure(kind="error", text=lines[0][:LONGEST_REASON])


def _task(
    rows: LabelledRows,
    folds: Sequence[Fold],
    others: ClassMoments | None,
    **settings: Any,
) -> Task:
    """Folds, the moments of their training parts, and the plane of a picture."""
    preparation = preprocessing(rows.X, rows.missing)
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


def _affordable_folds(
    rows: LabelledRows, cv: int, wish: Wish | None, methods: Sequence[Method]
) -> tuple[int, tuple[str, ...]]:
    """Folds that rows allow, with notes on them and on rare classes."""
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
    if rows.times is not None:
        n_folds = min(n_folds, len(np.unique(rows.times)) - 1)
    if rows.groups is not None:
        n_groups = len(np.unique(rows.groups))
        n_folds = min(n_folds, n_groups)
        notes.append(
            f"rows of {n_groups} groups: folds keep groups whole, and one random row "
            "of each group is tested"
        )
    if n_folds < cv:
        notes.append(
            f"{counted(n_folds, 'fold')} instead of {cv}: there are no more to be had"
        )
    if rows.times is not None and wish is not None:
        n_wanted = n_folds
        n_folds = _folds_of_several_times(rows, n_folds, wish, methods)
        if n_folds < n_wanted:
            notes.append(
                f"{counted(n_folds, 'fold')} instead of {n_wanted}: the first one has "
                "to learn from several times"
            )
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


def _folds_of_several_times(
    rows: LabelledRows, most: int, wish: Wish, methods: Sequence[Method]
) -> int:
    """Most forward folds of which the first one can hold its latest rows out.

    It needs an earlier time to learn from, and two where a method chooses inside by
    forward folds of its own, if two folds can have them. Where nothing helps, `most`.
    """
    chooses = any(method.chooses for method in methods)
    for least, fewest in ((2, 2), (1, 1)) if chooses else ((1, 1),):
        for n_folds in range(most, fewest - 1, -1):
            if _earlier_times(rows, n_folds, wish) >= least:
                return n_folds
    return most


def _earlier_times(rows: LabelledRows, n_folds: int, wish: Wish) -> int:
    """Times that the first of so many forward folds has before those held out."""
    times: Any = rows.times
    first, _ = forward_folds(times, n_folds)[0]
    times, groups = times[first], None if rows.groups is None else rows.groups[first]
    random = np.random.RandomState(0)  # which row of a group counts says nothing here
    try:
        learned, _ = hold_out(len(times), held_out_share(wish), random, groups, times)
    except ValueError:
        return 0
    return len(np.unique(times[learned]))


def _order(rows: LabelledRows, wish: Wish | None, random_state: int) -> str:
    """Whether rows change with time, and which ones the promise asked for is about."""
    if rows.times is None:
        return ""
    n_latest = None
    if wish is not None:
        random = np.random.RandomState(random_state)
        share = held_out_share(wish)
        _, latest = hold_out(len(rows.times), share, random, rows.groups, rows.times)
        n_latest = len(latest)
    return str(order_in_time(rows, n_latest, random_state))


def _notes_on_copies(rows: LabelledRows) -> list[str]:
    """Say that rows are tested whose copies were learned from."""
    n_copied = 0 if rows.groups is not None else copied_rows(rows.X)
    if not n_copied:
        return []
    return [
        f"{thousands(n_copied)} of {counted(len(rows.X), 'row')} stand more than once, "
        "more than chance explains: where a copy of a tested row was learned from, "
        "figures are too good; remove copies, or say by groups which rows belong "
        "together"
    ]


def _notes_on_subgroups(
    rows: LabelledRows, wish: Wish | None, n_folds: int, methods: Sequence[Method]
) -> list[str]:
    """Say which parts are too small for the promise, and what becomes of them."""
    inside = rows.inside
    if inside is None or wish is None or wish.kind == "missed":
        return []
    share = (1 - 1 / n_folds) * held_out_share(wish)
    n_methods = max(sum(not method.chooses for method in methods), 1)
    if wish.kind == "error":
        names, counts = rows_of_cells(rows, np.arange(len(rows.y)))
        together = shared_confidence(wish, n_methods)
        kept = cells_with_rows_enough(
            (share * counts).astype(np.intp), wish.allowed, together
        )
        small = [f"{names[c]} ({counts[c]} rows)" for c in np.flatnonzero(~kept)]
        start = "too few rows to prove the error rate, never answered"
    else:
        labels = {"": np.ones(len(rows.y), dtype=bool)}
        if wish.by_class:
            labels = {f"{c} with ": rows.y == c for c in rows.classes.tolist()}
        least = fewest_held_out(wish, n_methods, n_subgroups=len(inside.names))
        small = [
            f"{label}{name} ({counted(int((own & of_class).sum()), 'row')})"
            for name, own in zip(inside.names, inside.members.T, strict=True)
            for label, of_class in labels.items()
            if share * (own & of_class).sum() < least
        ]
        start = f"fewer than {least} rows held out, so that nothing is ruled out"
    more = len(small) - MOST_SMALL
    also = f" and {more} more" if more > 0 else ""
    return [f"{start}: {', '.join(small[:MOST_SMALL])}{also}"] if small else []


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


def refuse_hopeless(
    task: Task, methods: Sequence[Method], confidence: float | None
) -> None:
    """Raise InfeasibleError where every method lacks rows for its promise on each fold.

    It says how many rows there would have to be, and the nearest promise that these
    rows allow, with the `confidence` that was given, if any, or else without one.
    """
    if any(method.chooses for method in methods):
        task = task.alone()  # one that shares the level with nobody can do most
    if task.wish is None or not _is_out_of_reach(task, holding=True):
        return
    in_full = not _is_out_of_reach(task, holding=False)  # with no rows held out
    holds_out = all(_holds_out(method, task) for method in methods)
    if in_full and not holds_out:
        return
    lacks = {k for fold in task.folds for k in lacking(task, fold, holds_out=holds_out)}
    instead = []
    near, near_confidence = _nearest(task, confidence)
    if near is not None:
        instead.append(f"ask for {near!r}")
        if confidence is not None and near_confidence is None:
            instead[-1] += " without --confidence"
        if near.startswith("coverage") and task.wish.kind != "coverage":
            instead[-1] += ", which is about sets of labels"
    if task.n_methods > 1 and not _is_out_of_reach(task.alone(), holding=True):
        instead.append(
            "compare fewer methods, which share the confidence, or add `best`, which "
            "does not"
        )
    sparing = [name for name, other in METHODS.items() if not _holds_out(other, task)]
    if in_full and sparing:
        instead.append(f"compare {sparing[0]}, which holds no rows out")
    needs = needs_of(lacks, task, holds_out=holds_out)
    sharing = 1 if task.wish.confidence is None else task.n_methods
    where = "this table"
    if needs.there is not None and needs.there >= needs.to_fit:
        where = "the folds of this table"
        instead.insert(
            0,
            "make it without a comparison (prudent fit --method best --promise "
            f"{task.wish.text!r}), which certify then holds to account",
        )
    raise InfeasibleError(
        f"no method can promise {task.wish.text!r} on {where}: "
        f"{needed(needs, sharing)}. "
        f"Nothing was fitted; {', or '.join([*instead, 'give more rows'])}."
    )


def _is_out_of_reach(task: Task, *, holding: bool) -> bool:
    """Whether the rows of no fold suffice for anything of use."""
    assert task.wish is not None
    n_classes = len(task.rows.classes)
    return all(
        is_hopeless(lacking(task, fold, holds_out=holding), task.wish, n_classes)
        for fold in task.folds
    )


def _holds_out(method: Method, task: Task) -> bool:
    """Whether the promise of a method rests on rows held out."""
    assert task.wish is not None
    try:
        estimator = method.estimator(task.settings.random_state)
    except Exception:  # it is said where the method is fitted
        return True
    return holds_out(task.promising(estimator, np.array(task.rows.counts)))


def _nearest(task: Task, given: float | None) -> tuple[str | None, float | None]:
    """The least weaker promise for which the rows of every fold suffice.

    It comes with its confidence: for sets the one that was `given`, or None if it is
    too high for any.
    With subgroups those of every subgroup, or of some if no promise is left otherwise.
    Where none of its sort is left, sets that hold the label of most rows.
    """
    wish, classes = task.wish, task.rows.classes.tolist()
    assert wish is not None
    asked = wish.level
    weaker = [q for q in wish.levels if (q < asked) == wish.rises]
    # What always answering the most frequent class keeps, too, says nothing.
    counts = task.rows.counts
    trivial = 1 - max(counts) / sum(counts)
    if wish.kind == "error":
        weaker = [q for q in weaker if q < trivial]
    texts = [
        (wish.at(level), wish.confidence)
        for level in sorted(weaker, key=lambda q: abs(q - asked))
        if level != asked
    ]
    if wish.capacity is not None:
        alone = replace(wish, capacity=None).at(asked)
        texts.insert(0, (alone, wish.confidence))
    if task.rows.inside is None:
        most = asked if wish.kind == "coverage" else SETS_INSTEAD[0]
        levels = [q for q in SETS_INSTEAD if q <= most and round(1 - q, 12) < trivial]
        texts += [
            (f"coverage >= {100 * level:.0f}%", confidence)
            for confidence in dict.fromkeys((given, None))
            for level in levels
        ]
    for in_every_part, (text, confidence) in product((True, False), texts):
        other = replace(task, wish=parse_promise(text, classes, confidence=confidence))
        lacks = partial(lacking, other, holds_out=True, in_every_part=in_every_part)
        if not any(map(lacks, task.folds)):
            return text, confidence
    return None, None
