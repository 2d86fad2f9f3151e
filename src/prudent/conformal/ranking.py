"""Training rows that rank new rows, and what such ranks promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from prudent.conformal.gaussian import Diagonal, Gaussian
from prudent.conformal.ridge import Blend
from prudent.conformal.units import MOST_TABLES, ByUnits, in_units
from prudent.core.assumptions import Assumption
from prudent.core.binomial import mean_rank
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.rule import ON_AVERAGE, Terms, group_named
from prudent.rules.scores import Counts, places

# Of the inverse matrices of blends in several units that are kept.
MOST_BYTES = 2**28
CROSS_SOURCE = "Vovk 2015; Barber et al. 2021"
#: What has a promise of its own.
By = Literal["class", "group"] | None
#: Joint values of rows, worked out when they are wanted.
Joint = Callable[[], FloatArray]


@dataclass(frozen=True)
class TrainingRanks:
    """All training rows rank new ones: full and cross-conformal prediction.

    Attributes
    ----------
    model : FullClassModel, or the classifiers of the folds
        Its `both(rows, wanted)` counts the training rows of a category that are
        stranger than each new row under each label, and level with it.
    by : {"class", "group"} or None
        What rows rank among: their class, their group, or all rows.
    names : tuple
        Names of the categories of rows that rank among themselves; (subgroup, class)
        with `n_subgroups`, all classes of the first subgroup first, or the class None.
    sizes : ndarray of int, shape (n_categories,)
        Training rows n_c of each category.
    alone : ndarray of int, shape (n_categories,)
        Rows of each that are as strange as one of a label without training rows.
    class_count : ndarray of int, shape (n_classes,)
        Training rows of each class.
    smoothed : bool
        Whether a coin of each new row breaks ties.
    n_folds : int
        Folds of cross-conformal prediction; 0: full.
    n_subgroups : int
        Subgroups G, which may overlap; 0: each row is in one category only.

    Notes
    -----
    With L training rows of category c stranger than a new row and E level with it,
    p = (L + E + 1) / (n_c + 1), or (L + u (E + 1)) / (n_c + 1) by its coin u.
    """

    model: Any
    by: By
    names: tuple[Any, ...]
    sizes: IntArray
    alone: IntArray
    class_count: IntArray
    smoothed: bool = False
    n_folds: int = 0
    n_subgroups: int = 0

    @property
    def unseen_label_p_value(self) -> float:
        """Largest p-value of a label without training rows."""
        if self.by == "class":
            return 1.0
        return float(((1 + self.alone) / (self.sizes + 1)).max())

    def ask(
        self, X: Any, groups: NDArray[Any] | None, coins: FloatArray | None
    ) -> tuple[Joint, FloatArray, IntArray]:
        """How to get joint values, and p-values and categories of all labels.

        `X` are m rows, `groups` (m,) the group of each or None, `coins` (m,) a uniform
        number each or None. p-values and categories have shape (m, n_classes). Of
        `n_subgroups` the `groups` (m, G) say which hold each row; the largest p-value
        counts, and the category that has it.
        """
        coins = None if coins is None else coins[:, None]
        if self.n_subgroups:
            assert groups is not None
            p_values, wanted = self._largest_p_values(X, groups, coins)
            return partial(self.model.joint, X), p_values, wanted
        wanted = self._wanted(X, groups)
        joint, counts = self.model.both(X, wanted)
        return joint, counts.p_values(np.append(self.sizes, 0)[wanted], coins), wanted

    def _largest_p_values(
        self, X: Any, members: BoolArray, coins: FloatArray | None
    ) -> tuple[FloatArray, IntArray]:
        """Largest p-value over the subgroups of each row and label, and its category.

        The p-value is 1, and the category -1, of a row that no subgroup holds.
        """
        largest = np.zeros((len(members), len(self.class_count)))
        category = np.full(largest.shape, -1, dtype=np.intp)
        n_each = len(self.names) // self.n_subgroups
        labels = np.arange(len(self.class_count)) if self.by == "class" else 0
        for g in range(self.n_subgroups):
            rows = np.flatnonzero(members[:, g])
            if not len(rows):
                continue
            shape = (len(rows), len(self.class_count))
            wanted = np.broadcast_to(g * n_each + labels, shape)
            counts = self.model.counts(X[rows], wanted, g)
            coin = None if coins is None else coins[rows]
            p_values = counts.p_values(self.sizes[wanted], coin)
            better = p_values > largest[rows]
            largest[rows] = np.where(better, p_values, largest[rows])
            category[rows] = np.where(better, wanted, category[rows])
        largest[~members.any(axis=1)] = 1.0
        return largest, category

    def sets(self, p_values: FloatArray, wanted: IntArray, level: float) -> BoolArray:
        """Labels of p-values above a level, or above that of its rank.

        A conservative p-value is a multiple of 1 / (n_c + 1), so that p > level says
        the same as p > k / (n_c + 1), k = floor(level (n_c + 1)), without rounding.
        """
        if self.smoothed:
            return p_values > level
        cuts = np.append(self._cuts(level) / (self.sizes + 1), 0.0)
        return p_values > cuts[wanted]

    def coverages(self, level: float) -> tuple[Guarantee, ...]:
        """Coverage of the sets: over all rows, in each class or in each group.

        A row of a label without training rows is left out, which the ranks count as
        one of the promised misses if it is among the strangest. If not, the promise
        assumes that there is no such row.
        """
        assumption = {
            None: Assumption.TRAINING_EXCHANGEABLE,
            "class": Assumption.TRAINING_EXCHANGEABLE_CLASS,
            "group": Assumption.TRAINING_EXCHANGEABLE_GROUP,
        }[self.by]
        if self.n_subgroups:
            assumption = Assumption.TRAINING_EXCHANGEABLE_SUBGROUP
        promises = []
        for c, rank in enumerate(self._cuts(level).tolist()):
            name = self.names[c]
            subgroup, scope = (None, name)
            if self.n_subgroups:
                subgroup, scope = name
            elif self.by == "group":
                subgroup, scope = group_named(name), None
            n = int(self.sizes[c])
            rate = level if self.smoothed else rank / (n + 1)
            counted = self.by != "class" and 1 + self.alone[c] <= rank
            if self.n_folds:
                equal = self.by is None
                rate = cross_bound(n, self.n_folds, rank, equal_folds=equal)
                counted = False
            ranked = {} if self.smoothed else {"rank": float(rank)}
            promise = Terms().promise(
                "coverage",
                rate,
                assumption,
                *(() if counted else (Assumption.KNOWN_LABEL,)),
                scope=scope,
                subgroup=subgroup,
                evidence={"training rows": float(n), **ranked},
                source=CROSS_SOURCE if self.n_folds else ON_AVERAGE,
            )
            promises.append(promise)
        return tuple(promises)

    def _cuts(self, level: float) -> IntArray:
        """How many of the strangest rows of each category are not in the sets, k."""
        ranks = [mean_rank(n, level) for n in self.sizes.tolist()]
        return np.array(ranks, dtype=np.intp)

    def _wanted(self, X: Any, groups: NDArray[Any] | None) -> IntArray:
        """Category of the rows that rank each new row under each label."""
        shape = (_num_samples(X), len(self.class_count))
        if self.by == "class":
            return np.broadcast_to(np.arange(shape[1]), shape)
        if groups is None:
            return np.zeros(shape, dtype=np.intp)
        return np.broadcast_to(places(groups, self.names)[:, None], shape)


def cross_bound(n: int, n_folds: int, rank: int, *, equal_folds: bool = True) -> float:
    """Largest miss rate of cross-conformal sets that exclude the `rank` strangest.

    Of `n` ranking rows in `n_folds` folds, a label is excluded if its p-value is at
    most r / (n + 1), r = `rank`.

    Notes
    -----
    In general 2 (r + K - 1) / (n + K): the p-value is a weighted mean of those of the
    folds, each valid, less a constant, and a mean M of valid p-values has
    P(M <= t) <= 2 t. For folds of m rows each (2 r + m - 2) / (n + m): add m - 1
    fictitious rows to that of the new row; in the tournament of all n + m rows at most
    m + 2 r - 2 can beat all but r - 1 of the rows outside their folds.

    Examples
    --------
    >>> from prudent.conformal.ranking import cross_bound
    >>> [round(cross_bound(200, k, 20), 4) for k in (10, 5)]
    [0.2636, 0.2341]
    """
    if rank <= 0:
        return 0.0
    bounds = [1.0, 2 * (rank + n_folds - 1) / (n + n_folds)]
    if equal_folds and n > 0 and n % n_folds == 0:
        bounds.append((2 * rank + n // n_folds - 2) / (n + n // n_folds))
    return min(bounds)


class FullClassModel(ByUnits):
    """A model of the training rows, and ranks in every augmented bag.

    The bag of a new row under a label is the n training rows and that row with that
    label; every row of it is scored by the model fitted to the n others.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Training rows.
    codes : ndarray of int, shape (n,)
        Class of each row, 0..K-1.
    names : sequence of str, length K
        Classes as messages call them.
    settings : dict
        "model", "covariance_type", "pooled_rows", "ridge_rows" and "score": constants,
        all fixed before the data are seen, which exact ranks need.
    category : ndarray of int, shape (n,) or (n, n_subgroups)
        What each row ranks among; in each subgroup, -2 outside of it.
    by_class : bool
        Whether categories are classes; then rows of other classes need no scores.
    """

    def __init__(
        self,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        settings: dict[str, Any],
        category: IntArray,
        *,
        by_class: bool,
    ) -> None:
        order = np.argsort(codes, kind="stable")
        self.rows = rows[order]
        self.codes = codes[order].astype(np.intp)
        self.category = category[order]
        self.by_class = by_class
        self.names = list(names)
        self.settings = settings
        self._prepare()

    def joint(self, rows: FloatArray) -> FloatArray:
        """Log joint of rows (m, d) and classes, (m, K), by all training rows."""
        centred = in_units(self._columns.centre(rows), self._units)
        joint: FloatArray = self._model_in(self._units).log_joint(centred)
        return joint

    def both(self, rows: FloatArray, wanted: IntArray) -> tuple[Joint, Counts]:
        """How to get joint values, and the counts of training rows."""
        return partial(self.joint, rows), self.counts(rows, wanted)

    def counts(
        self, rows: FloatArray, wanted: IntArray, subgroup: int | None = None
    ) -> Counts:
        """Training rows below and level with each new row, of the category wanted.

        With `subgroup` the place of it among those of `category`.
        """
        category = self.category
        if subgroup is not None:
            category = np.ascontiguousarray(category[:, subgroup])

        def ask(model: Any, rows: FloatArray, places: IntArray) -> Counts:
            categories = np.ascontiguousarray(wanted[places])
            counts: Counts = model.counts(
                rows, category, categories, by_class=self.by_class
            )
            return counts

        return self._counts(rows, wanted.shape, ask)

    def _most_tables(self) -> int:
        most = MOST_TABLES
        if self.settings["model"] == "blend":  # with a matrix of n x n each
            most = min(most, MOST_BYTES // (8 * len(self.rows) ** 2))
        return max(most, 1)

    def _learn(self, rows: FloatArray) -> Blend | Gaussian | Diagonal:
        gaussian = self._learn_gaussian(rows, self.settings["score"])
        if self.settings["model"] == "gaussian":
            return gaussian
        return Blend(gaussian, rows, self.codes, len(self.names))

    def _learn_gaussian(self, rows: FloatArray, score: str) -> Gaussian | Diagonal:
        names = ("covariance_type", "pooled_rows", "ridge_rows")
        constants = {name: self.settings[name] for name in names}
        if constants["covariance_type"] == "diag":
            del constants["covariance_type"]
            return Diagonal.learn(
                rows, self.codes, self.names, score=score, **constants
            )
        return Gaussian.learn(rows, self.codes, self.names, score=score, **constants)
