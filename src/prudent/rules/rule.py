"""A rule: thresholds of scores, what they answer, and what is promised of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.classes import log_odds_against, max_probability
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.files import AS_GIVEN, fields_of_rule, json_of_rule
from prudent.rules.scores import CalibrationScores, places

Kind = Literal["sets", "answers", "labels", "alarms"]


class Calibration(Protocol):
    """What made a rule: the scores of calibration rows, and settings."""

    def rule(self, rate: Any) -> Rule:
        """The rule for a rate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """What to answer to scores, and what is promised of these answers.

    Any model gives the scores: plausible answers score high. The rule holds nothing
    of the model.

    Attributes
    ----------
    kind : {"sets", "answers", "labels", "alarms"}
        Sets of labels; whether the best label is given as an answer; one label; or
        whether a row raises an alarm.
    thresholds : tuple of float
        Scores at which the answers change: one, or one for each class or group.
    guarantees : tuple of Guarantee
        What is promised.
    classes : tuple
        Labels in the order of the columns of scores.
    by : None, "class" or "group"
        What has a threshold of its own, in sets.
    groups : tuple
        Sorted names of the groups with a threshold. A row of another group has all
        labels in its set.
    priority : tuple
        Labels with a threshold of their own that are given first, for "labels".
    strange : {"low", "high"}
        Which scores raise alarms.
    empty : {"best", "all"}
        What joins a set: always the label of the best score, or all labels where a
        set is empty.
    smoothed_rate : float or None
        Ties are broken by coins: labels of p-values above this rate are in the set.
    record : mapping
        What made the rule, for its readers.
    calibration : Calibration or None
        What made the rule, for another rate.
    """

    kind: Kind
    thresholds: tuple[float, ...]
    guarantees: tuple[Guarantee, ...] = ()
    classes: tuple[Any, ...] = ()
    by: Literal["class", "group"] | None = None
    groups: tuple[Any, ...] = ()
    priority: tuple[Any, ...] = ()
    strange: Literal["low", "high"] = "low"
    empty: Literal["best", "all"] = "best"
    smoothed_rate: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None

    def sets(
        self,
        scores: FloatArray,
        groups: NDArray[Any] | None = None,
        coins: FloatArray | None = None,
        *,
        allow_empty: bool = False,
    ) -> BoolArray:
        """Labels that each row may have.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes)
        groups : ndarray of shape (n,), default=None
            Group of each row, where groups have thresholds.
        coins : ndarray of shape (n,), default=None
            Uniform number of each row, where ties are smoothed.
        allow_empty : bool, default=False
            Whether nothing is added by `empty`.

        Returns
        -------
        ndarray of bool, shape (n, n_classes)
        """
        self._require("sets")
        scores = self._checked(scores, len(self.classes))
        if self.smoothed_rate is None:
            members = scores >= self._thresholds_of(groups)
        else:
            members = self.p_values(scores, groups, coins) > self.smoothed_rate
        if not allow_empty and self.empty == "best":
            members[np.arange(len(members)), scores.argmax(axis=1)] = True
        elif not allow_empty:
            members[~members.any(axis=1)] = True
        return members

    def scored(self, values: FloatArray) -> FloatArray:
        """Scores that the rule is about, from the columns that its file names.

        Where `record["scores"]` is "log odds" or "max probability" these columns are
        probabilities (n, n_classes), and the other methods take what is made of them.
        """
        made = self.record.get("scores", AS_GIVEN)
        if made == "log odds":
            return -log_odds_against(values)
        return max_probability(values) if made == "max probability" else values

    def answers(self, scores: FloatArray) -> BoolArray:
        """Whether each row is answered, by its largest score or its only one."""
        self._require("answers")
        scores = self._checked(scores, None)
        sureness = scores if scores.ndim == 1 else scores.max(axis=1)
        return sureness > self.thresholds[0]

    def labels(self, scores: FloatArray) -> NDArray[Any]:
        """Label of each row: the first of `priority` it reaches, else the best other.

        `scores` is of shape (n, n_classes).
        """
        return np.array(self.classes)[self.codes(scores)]

    def codes(self, scores: FloatArray) -> IntArray:
        """Places of the `labels` among the classes, (n,)."""
        self._require("labels")
        scores = self._checked(scores, len(self.classes))
        first = [self.classes.index(label) for label in self.priority]
        others = np.setdiff1d(np.arange(len(self.classes)), first)
        chosen = others[scores[:, others].argmax(axis=1)]
        for c in reversed(first):
            chosen[scores[:, c] >= self.thresholds[c]] = c
        return chosen

    def alarms(self, scores: FloatArray, coins: FloatArray | None = None) -> BoolArray:
        """Whether each row, of a score (n,), raises an alarm."""
        self._require("alarms")
        scores = self._checked(scores, None)
        if self.smoothed_rate is not None:
            return self.p_values(scores, coins=coins) <= self.smoothed_rate
        (cut,) = self.thresholds
        return scores > cut if self.strange == "high" else scores < cut

    def p_values(
        self,
        scores: FloatArray,
        groups: NDArray[Any] | None = None,
        coins: FloatArray | None = None,
    ) -> FloatArray:
        """Rank of each score among those of the calibration rows, as a p-value.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes), or (n,) for alarms
        groups, coins
            As for `sets`.

        Returns
        -------
        ndarray of the shape of `scores`
            In (0, 1]; on average over calibration rows P(p <= e) <= e for the label
            of a row, or for an ordinary row.
        """
        if self.kind == "alarms":
            scores = self._checked(scores, None)
            plausible = -scores if self.strange == "high" else scores
        else:
            self._require("sets", "p-values")
            scores = plausible = self._checked(scores, len(self.classes))
        kept = getattr(self.calibration, "scores", None)
        if not isinstance(kept, CalibrationScores):
            raise ValueError(
                "the rule keeps no scores of calibration rows, which p-values need."
            )
        if (self.smoothed_rate is not None) != (coins is not None):
            raise ValueError(
                "give `coins`, a uniform number for each row, to a rule whose ties are "
                "smoothed, and to no other."
            )
        if coins is not None and scores.ndim == 2:
            coins = coins[:, None]
        return kept.p_values(plausible, self._category(scores, groups), coins)

    def at(self, rate: Any) -> Rule:
        """The rule of the same calibration rows for another rate.

        A rate chosen after a look at the data has no promise.
        """
        if self.calibration is None:
            raise ValueError(
                "the rule keeps no scores of calibration rows, which another rate "
                "needs."
            )
        return self.calibration.rule(rate)

    def to_json(self, *, keep_scores: bool = False) -> str:
        """The rule as JSON, which a few lines of any language apply.

        Parameters
        ----------
        keep_scores : bool, default=False
            Whether the scores of the calibration rows are kept, for p-values and
            other rates.

        Raises
        ------
        ValueError
            For ties smoothed by coins of the rows of a table, and for `keep_scores`
            of a rule that has none.
        """
        return json_of_rule(self, keep_scores=keep_scores)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a rule back: it answers as the one that was written.

        Raises ValueError in one sentence where the text is no such rule.
        """
        return cls(**fields_of_rule(text))

    def _thresholds_of(self, groups: NDArray[Any] | None) -> FloatArray:
        """Threshold of each row and label, broadcast to (n, n_classes)."""
        cuts = np.array(self.thresholds)
        if self.by != "group":
            return cuts
        # The last of all is that of groups without a threshold.
        return np.append(cuts, -np.inf)[self._places(groups)][:, None]

    def _category(
        self, scores: FloatArray, groups: NDArray[Any] | None
    ) -> IntArray | int:
        """Category of the calibration rows that rank each row and label."""
        if self.by == "class":
            return np.arange(scores.shape[1])
        return 0 if self.by is None else self._places(groups)[:, None]

    def _places(self, groups: NDArray[Any] | None) -> IntArray:
        """Place of the group of each row, -1 for groups not seen."""
        if groups is None:
            raise ValueError("the rule has a threshold for each group: give `groups`.")
        return places(groups, self.groups)

    def _require(self, kind: Kind, wanted: str = "") -> None:
        if self.kind != kind:
            raise TypeError(f"a rule of kind {self.kind!r} has no {wanted or kind}.")

    def _checked(self, scores: Any, n_columns: int | None) -> FloatArray:
        """Scores as numbers of the right shape, none of them NaN."""
        values = np.asarray(scores, dtype=np.float64)
        wrong = (
            values.ndim not in (1, 2)
            if n_columns is None
            else (values.ndim != 2 or values.shape[1] != n_columns)
        )
        if self.kind == "alarms":
            wrong = values.ndim != 1
        if wrong:
            columns = n_columns is not None
            wanted = f"{n_columns} columns" if columns else "one score a row"
            raise ValueError(
                f"the rule needs {wanted}, got scores of shape {values.shape}."
            )
        n_unknown = int(np.isnan(values).reshape(len(values), -1).any(axis=1).sum())
        if n_unknown:
            raise ValueError(
                f"the scores of {n_unknown} of {len(values)} rows are NaN; rows "
                "without a score cannot be ranked."
            )
        return values
