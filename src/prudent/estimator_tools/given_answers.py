"""Answers that rows have got already: from a rule, a file, or whatever else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray
from prudent.rules.promise import scores_of_classes
from prudent.rules.rule import Rule
from prudent.rules.scores import CalibrationScores


@dataclass(frozen=True, eq=False)
class GivenAnswers:
    """What was answered to rows, which its methods know by their places 0, 1, ...

    It stands where a fitted classifier does.
    """

    classes_: NDArray[Any]
    labels: NDArray[Any] | None = None  # (n,)
    answered: BoolArray | None = None  # (n,); None: nothing can be refused
    sets: BoolArray | None = None  # (n, n_classes)
    guarantees_: tuple[Guarantee, ...] = ()
    subgroups: NDArray[Any] | None = None  # (n,): as promises name them

    def predict(self, rows: Any) -> NDArray[Any]:
        """Labels of the rows at these places."""
        if self.labels is None:
            raise TypeError("sets were answered to these rows, no labels.")
        return self.labels[rows]

    def predict_set(self, rows: Any) -> BoolArray:
        """Sets of the rows at these places: of labels one each, without answer none."""
        if self.sets is not None:
            return self.sets[rows]
        members: BoolArray = self.predict(rows)[:, None] == self.classes_
        return members if self.answered is None else members & self.answered[rows, None]

    def is_about(self, guarantee: Guarantee, rows: Any) -> BoolArray:
        """Whether the rows at these places are of the subgroup of a promise."""
        if guarantee.subgroup is None or self.subgroups is None:
            return np.ones(len(rows), dtype=bool)
        same: BoolArray = self.subgroups[rows] == guarantee.subgroup
        return same


@dataclass(frozen=True, eq=False)
class GivenAlarms:
    """Alarms of rows, which its methods know by their places 0, 1, ...

    It stands where a fitted detector does.
    """

    alarms: BoolArray  # (n,)
    guarantees_: tuple[Guarantee, ...] = ()
    scores: FloatArray | None = None  # (n,): low where strange
    calibration_scores_: FloatArray | None = None  # sorted, low where strange

    def predict(self, rows: Any) -> NDArray[np.int_]:
        """-1 for alarms, 1 for the others."""
        return np.where(self.alarms[rows], -1, 1)

    def calibrated_scores(self, rows: Any) -> FloatArray:
        """Scores on the scale of `calibration_scores_`."""
        assert self.scores is not None
        return self.scores[rows]


def rule_answers(
    rule: Rule,
    scores: ArrayLike,
    *,
    predicted: ArrayLike | None = None,
    by: ArrayLike | None = None,
    coins: FloatArray | None = None,
    lacking: BoolArray | None = None,
) -> GivenAnswers | GivenAlarms:
    """What a rule answers to rows of scores.

    Parameters
    ----------
    rule : Rule
    scores : array-like of shape (n, n_columns) or (n,)
        Of the columns that the rule names; probabilities, where its record says that
        scores are made of them.
    predicted : array-like of shape (n,), default=None
        Labels that one score a row is about.
    by : array-like of shape (n,), default=None
        Group of each row, where groups have thresholds.
    coins : ndarray of shape (n,), default=None
        Uniform number of each row, where ties are smoothed.
    lacking : ndarray of bool, shape (n,), default=None
        Rows without a score, whatever stands there: all labels, no answer, or alarm.
    """
    given = np.asarray(scores, dtype=np.float64)
    values = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    none = np.zeros(len(values), dtype=bool) if lacking is None else lacking
    if rule.kind == "alarms":
        kept = getattr(rule.calibration, "scores", None)
        known = kept.sorted[0] if isinstance(kept, CalibrationScores) else None
        return GivenAlarms(
            rule.alarms(values, coins) | none,
            rule.guarantees,
            -values if rule.strange == "high" else values,
            known,
        )
    if rule.kind == "answers":
        answered = rule.answers(rule.scored(values)) & ~none
        if predicted is not None:
            labels = np.asarray(predicted)
        elif values.ndim == 2 and rule.classes:
            labels = np.array(rule.classes)[values.argmax(axis=1)]
        else:
            raise ValueError(
                "the rule says which labels are sure enough: give `predicted`, the "
                "label of each row."
            )
        known_labels = np.array(rule.classes) if rule.classes else np.unique(labels)
        return GivenAnswers(known_labels, labels, answered, None, rule.guarantees)
    classes = np.array(rule.classes)
    table = scores_of_classes(values, rule.classes)
    if rule.kind == "labels":
        codes = rule.codes(rule.scored(table))
        codes[none] = rule.classes.index(rule.priority[0])
        return GivenAnswers(classes, classes[codes], guarantees_=rule.guarantees)
    groups = None if by is None else np.asarray(by)
    sets = rule.sets(rule.scored(table), groups, coins, allow_empty=True)
    if rule.empty == "best":
        # Of the given scores: those made of them may round two labels to one.
        sets[np.arange(len(sets)), table.argmax(axis=1)] = True
    else:
        sets[~sets.any(axis=1)] = True
    sets[none] = True
    subgroups = None
    if groups is not None and rule.by == "group":
        named = str(rule.record.get("group", "group"))
        subgroups = np.array([f"{named}={name}" for name in groups.tolist()])
    return GivenAnswers(
        classes, sets=sets, guarantees_=rule.guarantees, subgroups=subgroups
    )


def answers_from(answers: ArrayLike, y: ArrayLike, classes: Any = None) -> GivenAnswers:
    """Labels or boolean sets, whatever answered; None is no answer.

    `classes` are all labels that may be answered, in the order of the columns of sets;
    None: those that occur.
    """
    given, truth = np.asarray(answers), np.asarray(y)
    if given.ndim not in (1, 2) or len(given) != len(truth):
        raise ValueError(
            "certify: answers must be labels (n,) or boolean sets (n, n_classes) of "
            f"the {len(truth)} rows of `y`, got an array of shape {given.shape}."
        )
    if given.ndim == 2:
        if given.dtype != bool or classes is None or len(classes) != given.shape[1]:
            raise ValueError(
                "certify: sets of labels are a boolean array with a column for each "
                f"of `classes`, got {given.shape[1]} columns of type {given.dtype} "
                f"and classes={classes}."
            )
        return GivenAnswers(np.asarray(classes), sets=given)
    answered = None
    if given.dtype == object:
        answered = np.array([label is not None for label in given.tolist()], dtype=bool)
    if classes is None:
        said = given if answered is None else given[answered]
        classes = np.unique(np.concatenate([said, truth]).tolist())
    return GivenAnswers(np.asarray(classes), given, answered)
