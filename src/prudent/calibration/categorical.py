"""Categorical naive Bayes as a family, alone or together with Gaussian features.

The second half codes levels: a `Reader` turns the columns that a user passes into the
rows that these families take, and remembers the levels for later rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prudent.calibration.families import (
    PriorStrengths,
    Statistics,
    shrunken_log_priors,
)
from prudent.calibration.gaussian import DiagonalFamily, Normals
from prudent.core.types import BoolArray, FloatArray, IntArray

#: Codes of a level that the fit does not know, and of no level at all.
UNSEEN, MISSING = -1, -2

#: Log probabilities of the classes (r,), and of the levels given the class (r, D + J):
#: D levels, then an unseen one of each of the J features.
LevelLogs = tuple[FloatArray, FloatArray]
#: Parameters of the numbers and of the levels; both hold the same log p_k.
MixedParameters = tuple[Normals, LevelLogs]


@dataclass(frozen=True)
class CategoricalFamily:
    """Independent categorical features given the class.

    Statistics s0 (r,) and the level counts s1 (r, D), D = sum_j r_j.

    Attributes
    ----------
    n_levels : ndarray of int, shape (J,)
        Number of levels r_j of each feature.
    strengths : PriorStrengths
    """

    n_levels: IntArray
    strengths: PriorStrengths

    @property
    def constant_features(self) -> IntArray:
        """Features with a single level, which say nothing and are ignored."""
        return np.flatnonzero(self.n_levels == 1)

    @property
    def _offsets(self) -> IntArray:
        return np.cumsum(self.n_levels) - self.n_levels

    @property
    def _pseudo_counts(self) -> FloatArray:
        """a_j / r_j of each feature."""
        strengths = np.broadcast_to(self.strengths.levels, self.n_levels.shape)
        return strengths / self.n_levels

    def prepare(self, codes: IntArray) -> csr_array:
        """One-hot rows (m, D + J) of level codes (m, J).

        `UNSEEN` is a level that the fit does not know; a `MISSING` cell has no entry.
        """
        m, n_features = codes.shape
        n_seen = int(self.n_levels.sum())
        columns = np.where(
            codes >= 0, codes + self._offsets, n_seen + np.arange(n_features)
        )
        there = codes != MISSING
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_array(
            (np.ones(ends[-1]), columns[there], ends), shape=(m, n_seen + n_features)
        )

    def statistics(self, Z: csr_array, Q: FloatArray) -> Statistics:
        """Weight (r,) and level counts (r, D) of the soft labels Q (m, r)."""
        counts = (Z.T @ Q).T
        return [Q.sum(axis=0), counts[:, : int(self.n_levels.sum())]]

    def parameters(self, statistics: Statistics) -> LevelLogs:
        """q_kjl = (s1_kjl + a_j / r_j) / (sum_l s1_kjl + a_j)."""
        counts, totals = self._shrunken_counts(statistics[1])
        unseen = np.broadcast_to(self._pseudo_counts, totals.shape)
        with np.errstate(divide="ignore"):  # log 0 = -inf: an impossible level
            log_levels = np.log(counts / np.repeat(totals, self.n_levels, axis=1))
            # Without pseudo count or alternative an unseen level says nothing.
            speaks = (unseen > 0) & (self.n_levels > 1)
            log_unseen = np.log(np.where(speaks, unseen / totals, 1.0))
        return (
            shrunken_log_priors(statistics[0], self.strengths.classes),
            np.hstack([log_levels, log_unseen]),
        )

    def log_density(self, Z: csr_array, parameters: LevelLogs) -> FloatArray:
        """Log of the joint probability of class and levels, (m, r)."""
        return self.level_scores(Z, parameters) + parameters[0]

    def sample(
        self,
        parameters: LevelLogs,
        codes: IntArray,
        random: np.random.RandomState,
    ) -> IntArray:
        """Level codes (n, J), drawn for a row of each of these classes (n,)."""
        levels = self.learned(parameters)["level_probabilities_"]
        drawn = random.random_sample((len(levels), len(codes)))
        columns = [
            (
                np.cumsum(probabilities, axis=1)[codes] < u[:, np.newaxis] * (1 - 1e-15)
            ).sum(axis=1)
            for probabilities, u in zip(levels, drawn, strict=True)
        ]
        return np.minimum(np.column_stack(columns), self.n_levels - 1)

    def log_joint(self, Z: csr_array, parameters: LevelLogs) -> FloatArray:
        """Log p_k + sum_j log q_{k, j, x_j}, shape (m, r).

        A row that no class can have produced gets log p_k.
        """
        log_priors, _ = parameters
        return replace_impossible(
            self.level_scores(Z, parameters) + log_priors, log_priors
        )

    def level_scores(self, Z: csr_array, parameters: LevelLogs) -> FloatArray:
        """sum_j log q_{k, j, x_j}, shape (m, r) in Fortran order.

        -inf for a level that the class cannot have; missing cells add nothing.
        """
        _, log_levels = parameters
        return np.asfortranarray(Z @ np.ascontiguousarray(log_levels.T))

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and no shrunken level count below zero, shape (r,)."""
        counts, totals = self._shrunken_counts(statistics[1])
        valid = (counts >= 0).all(axis=1) & (totals > 0).all(axis=1)
        return valid & (statistics[0] > 0)

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """The statistics after a step in which single counts may not move.

        A count that would leave the valid range keeps its old value, the others move:
        the paper's rule.
        """
        counts, _ = self._shrunken_counts(new[1])
        return [
            np.where(new[0] > 0, new[0], old[0]),
            np.where(counts >= 0, new[1], old[1]),
        ]

    def learned(self, parameters: LevelLogs) -> dict[str, Any]:
        """Parameters by the name of the fitted attribute."""
        log_priors, log_levels = parameters
        levels = np.exp(log_levels[:, : int(self.n_levels.sum())])
        return {
            "priors_": np.exp(log_priors),
            "level_probabilities_": np.split(levels, self._offsets[1:], axis=1),
        }

    def _shrunken_counts(self, s1: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts plus pseudo counts (r, D) and their sum per feature (r, J)."""
        counts = s1 + np.repeat(self._pseudo_counts, self.n_levels)
        return counts, np.add.reduceat(counts, self._offsets, axis=1)


@dataclass(frozen=True, slots=True)
class MixedRows:
    """Rows with numbers and level codes side by side; indexes like an array."""

    numbers: Any
    levels: Any

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def __getitem__(self, rows: Any) -> MixedRows:
        return MixedRows(self.numbers[rows], self.levels[rows])


@dataclass(frozen=True)
class MixedFamily:
    """Naive Bayes with Gaussian and categorical features and one shared s0.

    Statistics s0 (r,), s1 (r, d) and s2 (r, d) of the numbers, with missing numbers the
    counts of those that are there (r, d), and level counts (r, D) last.
    """

    gaussian: DiagonalFamily
    categorical: CategoricalFamily

    @classmethod
    def from_rows(
        cls,
        X: MixedRows,
        weight: FloatArray,
        n_levels: IntArray,
        strengths: PriorStrengths,
    ) -> Self:
        """Family standardised by the numbers of the rows."""
        gaussian = DiagonalFamily.from_rows(X.numbers, weight, strengths)
        return cls(gaussian, CategoricalFamily(n_levels, strengths))

    @property
    def constant_features(self) -> IntArray:
        """Ignored features, the numbers counted first and then the levels."""
        n_numbers = len(self.gaussian.centre)
        levels = self.categorical.constant_features + n_numbers
        return np.concatenate([self.gaussian.constant_features, levels])

    def prepare(self, X: MixedRows) -> MixedRows:
        """Standardised numbers and one-hot levels."""
        return MixedRows(
            self.gaussian.prepare(X.numbers), self.categorical.prepare(X.levels)
        )

    def statistics(self, Z: MixedRows, Q: FloatArray) -> Statistics:
        """Statistics of the soft labels Q (m, r)."""
        _, counts = self.categorical.statistics(Z.levels, Q)
        return [*self.gaussian.statistics(Z.numbers, Q), counts]

    def parameters(self, statistics: Statistics) -> MixedParameters:
        """Closed-form parameters of both parts."""
        levels = self.categorical.parameters([statistics[0], statistics[-1]])
        return self.gaussian.parameters(statistics[:-1]), levels

    def log_joint(self, Z: MixedRows, parameters: MixedParameters) -> FloatArray:
        """Sum of both log joints with log p_k counted once, shape (m, r)."""
        normals, levels = parameters
        scores = self.gaussian.log_joint(Z.numbers, normals)
        scores += self.categorical.level_scores(Z.levels, levels)
        return replace_impossible(scores, normals.log_priors)

    def log_density(self, Z: MixedRows, parameters: MixedParameters) -> FloatArray:
        """Log of the joint density of class, numbers and levels, (m, r)."""
        normals, levels = parameters
        scores = self.gaussian.log_density(Z.numbers, normals)
        return scores + self.categorical.level_scores(Z.levels, levels)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Whether both parts are valid, shape (r,)."""
        return self.gaussian.is_valid(statistics[:-1]) & self.categorical.is_valid(
            [statistics[0], statistics[-1]]
        )

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """Single level counts keep their old value, the Gaussian part moves whole."""
        if not self.gaussian.is_valid(new[:-1]).all():
            return old
        s0, counts = self.categorical.freeze([old[0], old[-1]], [new[0], new[-1]])
        return [s0, *new[1:-1], counts]

    def learned(self, parameters: MixedParameters) -> dict[str, Any]:
        """Parameters by the name of the fitted attribute."""
        normals, levels = parameters
        return self.gaussian.learned(normals) | self.categorical.learned(levels)


def replace_impossible(scores: FloatArray, log_priors: FloatArray) -> FloatArray:
    """Give rows whose score is -inf for every class the class probabilities, in place.

    Such a row cannot come from the model, which then has nothing to say on its class.
    """
    impossible = np.isneginf(scores).all(axis=1)
    scores[impossible] = log_priors
    return scores


# --- from the columns that a user passes to level codes -------------------------------


#: One array per column; missing values as None or NaN.
Columns = Sequence[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads later rows the way the training rows were read."""

    is_level: BoolArray  # (n_features,); the other columns hold numbers
    levels: tuple[tuple[Any, ...], ...] = ()  # known ones of each of these, in order
    is_mixed: bool = False  # numbers and levels side by side

    @classmethod
    def of_first_rows(
        cls, family: str, columns: Columns, is_level: BoolArray | None
    ) -> Reader:
        """Reader of data whose first rows are given in columns.

        `is_level` is None for an array, which does not say what its columns hold.
        """
        if family == "categorical":
            is_level = np.ones(len(columns), dtype=np.bool_)
        elif is_level is None:
            raise ValueError(
                "`family='mixed'` tells categorical from numeric columns by their "
                "type, so X must be a pandas or polars data frame, got an array; for "
                "an array use `family='diag'` or `family='categorical'`."
            )
        levels = tuple(_distinct(values) for values in compress(columns, is_level))
        return cls(is_level, levels, family == "mixed")

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each categorical feature, at least 1."""
        return np.array([max(len(v), 1) for v in self.levels], dtype=np.intp)

    def rows(self, columns: Columns) -> IntArray | MixedRows:
        """Level codes, in a mixed table with the numbers."""
        codes = np.empty((len(columns[0]), len(self.levels)), dtype=np.intp)
        for j, values in enumerate(compress(columns, self.is_level)):
            codes[:, j] = _level_codes(values, self.levels[j])
        if not self.is_mixed:
            return codes
        numeric = compress(columns, ~self.is_level)
        numbers = np.column_stack([np.zeros((len(codes), 0)), *numeric])
        return MixedRows(numbers.astype(np.float64), codes)

    def values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Numbers as they are, or the levels behind codes."""
        if not self.levels:
            return rows
        columns = [
            np.array([*levels, None], dtype=object)[codes]
            for levels, codes in zip(self.levels, rows.T, strict=True)
        ]
        return np.column_stack(columns)

    def positions(self, features: IntArray) -> IntArray:
        """Columns of X behind features of the family: numbers first, then levels."""
        return np.argsort(self.is_level, kind="stable")[features]

    def merged(self, others: Iterable[Reader]) -> Reader:
        """Reader that also knows the levels of other rows of the same data.

        The union is sorted, so that it does not depend on the order of the blocks.
        """
        columns = zip(self.levels, *(other.levels for other in others), strict=True)
        union = [_in_order(set(chain.from_iterable(known))) for known in columns]
        return replace(self, levels=tuple(union))

    def restricted(self, seen: Sequence[BoolArray]) -> Reader:
        """Reader that knows, of each categorical feature, only the levels seen."""
        pairs = zip(self.levels, seen, strict=True)
        # A column without any level has one to be seen.
        kept = [
            tuple(v for v, is_seen in zip(levels, known, strict=False) if is_seen)
            for levels, known in pairs
        ]
        return replace(self, levels=tuple(kept))


def row_keys(rows: Any) -> NDArray[Any]:
    """Numbers that tell rows apart, (m, n_keys): equal rows have equal keys.

    A missing number becomes infinite, because NaN is unequal to itself.
    """
    keys = np.asarray(rows)
    if isinstance(rows, MixedRows):
        keys = np.hstack([rows.numbers, rows.levels])
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        keys = np.where(np.isnan(keys), np.inf, keys)
    return keys


def recoded(rows: Any, seen: Sequence[BoolArray]) -> Any:
    """Rows coded as by a reader that knows only the levels marked in `seen`.

    Levels that it does not know become `UNSEEN`; missing cells stay `MISSING`.
    """
    if isinstance(rows, MixedRows):
        return MixedRows(rows.numbers, recoded(rows.levels, seen))
    if not len(seen):
        return rows
    columns = [
        np.where(
            codes < 0,
            codes,
            np.where(known, np.cumsum(known) - 1, UNSEEN)[codes.clip(min=0)],
        )
        for known, codes in zip(seen, rows.T, strict=True)
    ]
    return np.column_stack(columns)


def _factorise(values: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Distinct values as Python objects, a missing one as None, and their codes."""
    if values.dtype != object:
        distinct, codes = np.unique(values, return_inverse=True)
        return [None if v != v else v for v in distinct.tolist()], codes
    index: dict[Any, int] = {}
    codes = np.array(
        [
            index.setdefault(None if v is None or v != v else v, len(index))
            for v in values.tolist()
        ],
        dtype=np.intp,
    )
    return list(index), codes


def _distinct(values: NDArray[Any]) -> tuple[Any, ...]:
    """Levels in sorted order; a missing value is none."""
    return _in_order(level for level in _factorise(values)[0] if level is not None)


def _in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sorted, numbers before words."""
    return tuple(sorted(levels, key=lambda level: (isinstance(level, str), level)))


def _level_codes(values: NDArray[Any], levels: tuple[Any, ...]) -> IntArray:
    """Position of each value among the levels, or `UNSEEN`, `MISSING`."""
    position = {level: k for k, level in enumerate(levels)} | {None: MISSING}
    distinct, inverse = _factorise(values)
    return np.array([position.get(v, UNSEEN) for v in distinct], dtype=np.intp)[inverse]
