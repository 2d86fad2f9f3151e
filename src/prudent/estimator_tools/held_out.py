"""One way from rows to a promise: split, fit, scores of the held-out rows, rule."""

from __future__ import annotations

import copy
import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import (
    _safe_indexing,  # takes rows of any table that scikit-learn takes
)
from sklearn.utils.validation import (
    _num_samples,
    has_fit_parameter,
)
from threadpoolctl import ThreadpoolController

from prudent.core.guarantee import Guarantee, needs_labels
from prudent.core.order import as_number
from prudent.core.rows import (
    MOST_ROWS,
    Keys,
    KnownRows,
    Split,
    cell_keys,
    hold_out,
    one_row_per_group,
)
from prudent.core.types import BoolArray
from prudent.estimator_tools.answers import within_of
from prudent.estimator_tools.given import check_groups, check_times
from prudent.estimator_tools.subgroups import Subgroups, SubgroupsOption
from prudent.estimator_tools.tables import cells_of
from prudent.exceptions import PrudentWarning
from prudent.io.errors import thousands
from prudent.rules.rule import Rule, Terms
from prudent.rules.scores import CalibrationScores
from prudent.rules.subgroups import Memberships, rows_named

#: Errors allowed and not made from which on a frozen model looks too good.
MANY = 20


class HeldOutEstimator(BaseEstimator):
    """An estimator whose promise rests on rows that its model has not seen.

    A class has `_fit_part`, which fits the model to some rows, `_scores`, which gives
    what is known of others by it, and `_rule`, which makes the rule of that. Answers
    follow from `rule_`: parameters changed after `fit` change neither them nor the
    promises.
    """

    estimator: Any
    confidence: float | None
    calibration_size: float
    rule_: Rule
    # What all promises of the fit have in common.
    _terms: Terms
    # Whether a fit with times tests their order; not where it is tested once for many.
    _tests_order: bool = True
    # Of parts of the population with promises of their own; None without.
    _subgroups: Subgroups | None = None
    # Of the rows that rank, while the promise is made.
    _memberships: Memberships | None = None

    def _fit_held_out(
        self,
        X: Any,
        y: Any,
        random: np.random.RandomState,
        groups: ArrayLike | None,
        time: Any = None,
    ) -> Self:
        """Fit to one part of the rows, and find the rule on the other."""
        n_rows = _num_samples(X)
        labels = None if groups is None else check_groups(groups, n_rows)
        times = None if time is None else check_times(time, n_rows, labels)
        fit, held_out = self._hold_out(X, random, labels, times)
        self.__dict__.pop("order_test_", None)
        latest = None
        if times is not None:
            first = "first date" if times.dtype.kind == "M" else "first time"
            latest = {
                "latest rows": float(len(held_out)),
                first: as_number(times[held_out].min()),
            }
        self._terms = Terms(
            confidence=self.confidence,
            frozen=isinstance(getattr(self, "estimator", None), FrozenEstimator),
            grouped=groups is not None,
            latest=latest,
        )
        if times is not None and self._tests_order:
            from prudent.estimator_tools.order import order_of_fit

            self.order_test_ = order_of_fit(
                X,
                y,
                times=times,
                groups=groups,
                n_latest=len(held_out),
                random_state=getattr(self, "random_state", None),
            )
        remember_rows(self, X, (fit, held_out), warn=groups is None)
        learned, known = (None, None) if y is None else (y[fit], y[held_out])
        self._fit_part(
            _safe_indexing(X, fit),
            learned,
            random,
            groups=None if labels is None else labels[fit],
            time=None if times is None else times[fit],
        )
        rows = _safe_indexing(X, held_out)
        if self._memberships is not None:
            self._memberships = self._memberships.taken(held_out)
            self.subgroup_count_ = self._memberships.count
        self.n_calibration_ = len(held_out)
        self._adopt(self._rule(self._scores(rows, known)))
        if known is not None and isinstance(self.estimator, FrozenEstimator):
            self._warn_of_no_error(lambda: self._answered_wrong(rows, known))
        return self

    def _learn_subgroups(self, X: Any, option: SubgroupsOption) -> None:
        """Find the subgroups of the rows of a fit, which may have promises each."""
        for name in ("subgroups_", "subgroup_count_", "_subgroups", "_memberships"):
            self.__dict__.pop(name, None)
        if option is None:
            return
        self._subgroups = Subgroups.learn(option, X)
        self._memberships = self._subgroups.memberships(X)
        self.subgroups_ = list(self._subgroups.names)
        self.subgroup_count_ = self._memberships.count

    def _members(self, X: Any) -> BoolArray | None:
        """Which of the subgroups hold each row; None without subgroups."""
        if self._subgroups is None:
            return None
        return self._subgroups.memberships(X).members

    def is_about(self, guarantee: Guarantee, X: Any) -> BoolArray:
        """Whether each row is of the subgroup that a promise is about."""
        members = self._members(X)
        if guarantee.subgroup is None or members is None:
            return np.ones(_num_samples(X), dtype=bool)
        inside = Memberships(members, tuple(self.subgroups_))
        return rows_named(inside, guarantee.subgroup)

    def _answered_wrong(self, X: Any, y: NDArray[Any]) -> int:
        """How many rows the model that was given answers wrong."""
        return int((np.asarray(self.estimator.predict(X)) != y).sum())

    def _warn_of_no_error(self, count: Callable[[], int], stacklevel: int = 4) -> None:
        """Say so where a frozen model answers all rows right, while many might err.

        Rows that it was fitted to cannot be told from new ones, but by that. `count`
        says how many calibration rows it answers wrong.
        """
        allowed = max(
            (
                promise.allowed * promise.evidence["calibration rows"]
                for promise in self.guarantees_
                if needs_labels(promise)  # a promised share of rows allows no errors
            ),
            default=0.0,
        )
        # A product may fall an ulp below the integer it stands for: (1 - 0.9) * 200.
        if round(allowed, 9) < MANY or count():
            return
        where = f", where {allowed:.0f} errors would be allowed"
        if self.guarantees_[0].quantity == "probability":
            where = ""  # which allows rows of a class, not errors
        warnings.warn(
            f"{type(self).__name__}: none of {thousands(self.n_calibration_)} "
            f"calibration rows is answered wrong{where}: so look rows that the model "
            "was fitted to, and then the promise is false. If they are new to it, all "
            "is well.",
            PrudentWarning,
            stacklevel=stacklevel,
        )

    def _hold_out(
        self,
        X: Any,
        random: np.random.RandomState,
        groups: NDArray[Any] | None,
        times: NDArray[Any] | None,
    ) -> Split:
        """Rows to fit the model to, and rows that it has not seen.

        All are held out where `estimator` is frozen, or one random row of each group;
        else `calibration_size` of them, the latest ones where there are times. `X` may
        be any table. Rows that a frozen model is known to have been fitted to are a
        ValueError.
        """
        name, n_rows = type(self).__name__, _num_samples(X)
        if isinstance(self.estimator, FrozenEstimator):
            refuse_seen_rows(name, self.estimator, X)
            every = np.arange(n_rows)
            return every[:0], (
                every if groups is None else one_row_per_group(groups, random)
            )
        if n_rows < 2:
            raise ValueError(
                f"{name}: {n_rows} row (1 sample is too few) cannot be split into rows "
                "to learn from and held-out rows; give at least 2."
            )
        return hold_out(n_rows, self.calibration_size, random, groups, times)

    def _fit_part(
        self, X: Any, y: Any, random: np.random.RandomState, **given: Any
    ) -> None:
        """Fit the model to these rows; a frozen one is left as it is.

        Their groups and times are `given` to a model that takes them.
        """
        raise NotImplementedError

    def _scores(self, X: Any, y: Any) -> Any:
        """What the rule is made of, of held-out rows."""
        raise NotImplementedError

    def _merged(self, parts: Sequence[Any]) -> Any:
        """What `_scores` would say of several parts together."""
        return CalibrationScores.merged(parts)

    def _rule(self, scores: Any) -> Rule:
        """The rule that the parameters ask for."""
        raise NotImplementedError

    def _score_record(self) -> dict[str, Any]:
        """What a file of the rule says of its scores: "scores", "columns", "group".

        ValueError where nobody else can compute them.
        """
        raise NotImplementedError

    def _adopt(self, rule: Rule) -> Self:
        """Answer by a rule from now on, which says to a reader what its scores are."""
        self.rule_, self.guarantees_ = rule, rule.guarantees
        if not isinstance(rule, Rule):
            return self
        record, classes, crossings = dict(rule.record), rule.classes, rule.crossings
        if self._subgroups is not None and self._subgroups.function is None:
            crossings = self._subgroups.crossings
        # Scores that nobody else can compute stay those that are given.
        with suppress(ValueError):
            record |= self._score_record()
            if rule.kind == "answers":  # the likeliest label is answered
                classes = tuple(self.classes_.tolist())
        self.rule_ = replace(rule, record=record, classes=classes, crossings=crossings)
        return self

    def _at(self, rate: Any, **parameter: Any) -> Self:
        """Fitted copy with the rule of the same rows for another rate."""
        other = copy.copy(self).set_params(**parameter)
        return other._adopt(self.rule_.at(rate))


# --- a wrapper's rule, for scores that are computed elsewhere -------------------------


def exported_rule(estimator: Any) -> Rule:
    """The rule of a fitted wrapper; ValueError where nobody else can apply it."""
    name = type(estimator).__name__
    rule = vars(estimator).get("rule_")
    if not isinstance(rule, Rule) or not rule.guarantees:
        raise ValueError(
            f"{name} answers by no rule of held-out rows that promises something: "
            "there is nothing to export."
        )
    if rule.smoothed_rate is not None:
        raise ValueError(
            f"{name}: the coins of smoothed ties are thrown by all features of a row, "
            "which no file of scores holds: fit it with ties='conservative'."
        )
    estimator._score_record()
    return rule


def probability_columns(estimator: Any, name: str) -> list[str]:
    """Names of columns of `predict_proba`, as `prudent predict --proba` writes them."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name}: its scores are no probabilities of classes, so that a file of "
            "probabilities does not give them: use an estimator with predict_proba."
        )
    return [f"probability {label}" for label in estimator.classes_.tolist()]


# --- rows that are taken, and a fit inside another one --------------------------------


def refuse_dask(X: Any) -> None:
    """Raise TypeError for a dask collection instead of pulling all its data in."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "dask input: use prudent.dask.fit(estimator, X, y), "
            "or call .compute() first."
        )


def fit_inside(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    is_learner: bool = False,
) -> Any:
    """Fit an estimator, with groups and times if it takes them; None stands for none.

    It is a part of what tests the order of the times itself, once. Of a learner, which
    a promise is made around, nobody asks the own promise: where times of one value put
    rows in no order, it holds them out at random.
    """
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    if is_learner and time is not None and isinstance(last, HeldOutEstimator):
        time = time if len(np.unique(time)) > 1 else None
    given = {"groups": groups, "time": time}
    options = {
        prefix + name: values
        for name, values in given.items()
        if values is not None and has_fit_parameter(last, name)
    }
    if isinstance(last, HeldOutEstimator):
        last._tests_order = False
    return estimator.fit(X, y, **options)


# --- rows that a model has seen -------------------------------------------------------


# The cells of a wider sparse matrix would take more memory than the matrix.
MOST_SPARSE_COLUMNS = 1024


def table_keys(X: Any) -> tuple[Keys, list[Keys]]:
    """What tells whether other rows are those of a table.

    The keys of the rows (n,), and of each column those of the cells of the first rows;
    none of what is no table. Of sparse matrices of more than 1024 columns there are no
    cells, so that nobody remembers their rows.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    columns: Iterable[NDArray[Any]]
    if hasattr(X, "tocsc"):
        if X.shape[1] > MOST_SPARSE_COLUMNS:
            return _keys_of_sparse_rows(X), []
        matrix = X.tocsc()
        columns = (matrix[:, [j]].toarray()[:, 0] for j in range(matrix.shape[1]))
    elif isinstance(frame, nw.DataFrame):
        columns = map(cells_of, frame.iter_columns())
    else:
        values = np.asarray(X)
        # Of images each cell is a column.
        n_cells = math.prod(values.shape[1:])
        columns = values.reshape(len(values), n_cells).T if values.ndim else []
    keys, cells = np.zeros(0, dtype=np.uint64), []
    for place, column in enumerate(columns):
        if column.dtype.kind in "fiub":
            own = cell_keys(column.astype(np.float64, copy=False), place)
        else:
            own = _keys_of_objects(column, place)
        cells.append(own[:MOST_ROWS].copy())
        keys = np.add(keys, own, out=keys) if place else own
    return keys, cells


def remember_rows(
    estimator: Any, X: Any, split: Split | None = None, *, warn: bool = True
) -> None:
    """Keep with an estimator what tells the rows of its fit; warn of copies among them.

    These are 8 bytes a row, by which values can be guessed. With a `split` the warning
    is of those held out that stand more than once, else of all that do.
    """
    keys, cells = table_keys(X)
    estimator._known_rows = known = KnownRows.from_keys(keys.copy(), cells)
    if warn and known is not None and known.holds_copies():
        warn_of_copied_rows(type(estimator).__name__, keys, split)


def remember_blocks(
    estimator: Any, keys_of_blocks: Sequence[tuple[Keys, list[Keys]]]
) -> None:
    """Keep with an estimator what tells the rows of all blocks; see `table_keys`."""
    of_rows, cells = zip(*keys_of_blocks, strict=True)
    first = zip(*(own for own in cells if own and len(own[0])), strict=True)
    columns = [np.concatenate(column)[:MOST_ROWS] for column in first]
    estimator._known_rows = KnownRows.from_keys(np.concatenate(of_rows), columns)


def copied_rows(X: Any) -> int:
    """How many rows of a table stand more than once; 0 where chance may be why."""
    keys = _keys_with_copies(X)
    _, count = np.unique(keys, return_counts=True)
    return int(count[count > 1].sum())


def warn_of_copies(name: str, X: Any) -> None:
    """Warn where rows that are to prove something are copies of others among them."""
    warn_of_copied_rows(name, _keys_with_copies(X), None)


def _keys_with_copies(X: Any) -> Keys:
    """The keys of rows some of which are copies; none where chance may be why."""
    keys, cells = table_keys(X)
    known = KnownRows.from_keys(keys, cells)
    return keys if known is not None and known.holds_copies() else keys[:0]


def warn_of_copied_rows(name: str, keys: Keys, split: Split | None) -> None:
    """Say how many of the rows of these keys are copies.

    With a `split` those held out count, which are copies of each other where none is
    of a row learned from.
    """
    fit, held_out = split if split else (np.zeros(0, dtype=np.intp), slice(None))
    judging = keys[held_out]
    seen = np.isin(judging, keys[fit])
    where = "held-out rows stand among the rows learned from too"
    if not seen.any():
        _, place, count = np.unique(judging, return_inverse=True, return_counts=True)
        seen = count[place] > 1
        kind = "held-out rows" if len(fit) else "rows"
        where = f"{kind} stand there more than once"
    if seen.any():
        warnings.warn(
            f"{name}: {thousands(int(seen.sum()))} of {thousands(len(seen))} {where}, "
            "more than chance explains; a promise from rows seen before can be false. "
            "Remove repeated rows, or say with `groups` which rows belong together.",
            PrudentWarning,
            stacklevel=5,
        )


def refuse_seen_rows(name: str, model: Any, X: Any) -> None:
    """Raise ValueError if rows meant to be new were in the fit of a model.

    Of a pipeline or search also where the last step knows its rows.
    """
    for known, rows in knowledge(model, X):
        refuse_seen_keys(name, known, table_keys(rows)[0])


def refuse_seen_keys(name: str, known: KnownRows, keys: Keys) -> None:
    """Raise ValueError if rows of these keys were in the fit of a model."""
    n_seen = known.copies(keys)
    if n_seen:
        raise ValueError(
            f"{name}: {thousands(n_seen)} of these {thousands(len(keys))} rows were in "
            "the fit of the model, whose errors on them say nothing about new rows. "
            "Give rows that it has not seen. Rows of equal cells count as the same: "
            "drop the copies before the rows are parted."
        )


def remembers_rows(model: Any, X: Any) -> bool:
    """Whether `refuse_seen_rows` has rows of the fit to compare these with."""
    return any(len(table_keys(rows)[0]) for _, rows in knowledge(model, X))


def knowledge(model: Any, X: Any) -> Iterator[tuple[KnownRows, Any]]:
    """What a model and what is inside it know of rows, and the rows as they see them.

    Columns of data frames are put into the order of the fit.
    """
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    known, parts = getattr(model, "_known_rows", None), isinstance(model, Pipeline)
    within, rows = within_of(model, X)
    if known is not None and (within is None or parts):
        yield known, _in_order(model, X)
    if within is not None:
        yield from knowledge(within, rows)
    elif isinstance(getattr(model, "estimator", None), FrozenEstimator):
        yield from knowledge(model.estimator, X)


def _in_order(model: Any, X: Any) -> Any:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    names = getattr(model, "feature_names_in_", None)
    if not isinstance(frame, nw.DataFrame) or names is None:
        return X
    parts = getattr(model, "_subgroups", None)
    beside = () if parts is None else [factor.column for factor in parts.factors]
    named = [column for column in beside if isinstance(column, str)]
    names = list(dict.fromkeys([*names, *named]))
    return frame.select(*names) if set(names) <= set(frame.columns) else X


def _keys_of_sparse_rows(X: Any) -> Keys:
    """The keys of the rows of a sparse matrix: those of dense rows that are equal."""
    matrix = X.tocsr(copy=True)
    matrix.sum_duplicates()
    of_zeros = cell_keys(np.zeros(matrix.shape[1]), np.arange(matrix.shape[1]))
    own = cell_keys(matrix.data.astype(np.float64), matrix.indices)
    # Sums modulo 2^64 are exact, and so are their differences.
    sums = np.cumsum(np.append(np.uint64(0), own - of_zeros[matrix.indices]))
    keys: Keys = np.diff(sums[matrix.indptr]) + of_zeros.sum()
    return keys


def _keys_of_objects(cells: NDArray[Any], place: int) -> Keys:
    """The keys of a column of objects, numbers or words."""
    if cells.dtype.kind == "O" and not any(isinstance(cell, str) for cell in cells):
        with suppress(TypeError, ValueError):  # dates and the like are words
            return cell_keys(cells.astype(np.float64), place)  # None becomes NaN
    words = ["" if cell is None or cell != cell else str(cell) for cell in cells]
    distinct = pa.array(words, pa.large_string()).dictionary_encode()
    known = distinct.dictionary.to_pylist()
    keys = cell_keys(np.array([_digest(w) for w in known], dtype=np.uint64), place)
    if "" in known:
        # Where all cells of other rows are gaps, nothing says that they are of words.
        keys[known.index("")] = cell_keys(np.full(1, np.nan), place)[0]
    codes = distinct.indices.to_numpy(zero_copy_only=False)
    return keys[codes]


def _digest(word: str) -> int:
    encoded = word.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())


# --- threads --------------------------------------------------------------------------


def one_thread(user_api: str | None = None) -> AbstractContextManager[Any]:
    """One thread in the numerical libraries, or in those of one kind ("blas").

    Threads that wait for one another cost up to 40 times as much where work is small.
    """
    return _controller().limit(limits=1, user_api=user_api)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes milliseconds
