"""Where a model breaks what it was said to do, and how often in truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.auditing.laws import INDEPENDENT, NORMAL
from prudent.core.assumptions import MOMENTS, Assumption
from prudent.core.binomial import clopper_pearson
from prudent.core.guarantee import ALARMS, Guarantee, violated_rows
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import predict_set, rows_about

AnswerWord = Literal["predict", "predict_set", "detect"]
Answer = AnswerWord | Callable[[Any, Any], Any] | None

# Rows of so small a law are asked one at a time, as they come in use: an answer that
# depends on the other rows of its batch is found out.
ASKED_ONE_BY_ONE = 12
# Rounding of sums of probabilities and of bounds.
ROUNDING = 1e-9
# What is assumed and never known of a law.
UNKNOWN = "never known"
# How groups are drawn; covariances that are those of no rows (a floor
# only makes them larger), and training rows, which are a law of many peaks.
BY_GROUP = {Assumption.GROUPS, Assumption.GROUPS_LATEST}
CHANGED = {Assumption.SHRUNK, Assumption.REGULARISED, Assumption.UNIMODAL}


def demands(claim: Guarantee) -> frozenset[str]:
    """What a law must satisfy for the promise to be about it."""
    assumed = set(claim.assumptions)
    demanded = {INDEPENDENT}
    if Assumption.NORMALITY in assumed:
        demanded.add(NORMAL)
    if assumed & BY_GROUP or (assumed & MOMENTS and assumed & CHANGED):
        demanded.add(UNKNOWN)
    return frozenset(demanded)


def is_about_training_rows(claim: Guarantee) -> bool:
    """Whether the training rows themselves are a law that the promise is about."""
    assumed = set(claim.assumptions)
    about_rows = bool(assumed & MOMENTS) and not assumed & CHANGED
    return claim.confidence is None and about_rows


class Answers:
    """What a model says of rows, each question asked once."""

    def __init__(self, model: Any, X: Any, answer: Answer, classes: Any) -> None:
        self.model, self.X, self.answer, self.classes = model, X, answer, classes

    def _ask(self, question: Callable[[Any, Any], Any]) -> NDArray[Any]:
        if len(self.X) > ASKED_ONE_BY_ONE:
            return np.asarray(question(self.model, self.X))
        rows = range(len(self.X))
        return np.concatenate(
            [np.asarray(question(self.model, self.X[i : i + 1])) for i in rows]
        )

    @cached_property
    def given(self) -> NDArray[Any] | None:
        """Answers in the caller's way, if there is one."""
        return self._ask(self.answer) if callable(self.answer) else None

    @cached_property
    def labels(self) -> NDArray[Any]:
        """One label a row."""
        if self.given is not None and self.given.ndim == 1:
            return self.given
        return self._ask(lambda model, X: model.predict(X))

    @cached_property
    def sets(self) -> BoolArray:
        """Matrix of rows and classes."""
        if self.given is not None:
            return self.given.astype(bool)
        if self.answer == "predict":
            return self.labels[:, None] == self.classes[None, :]
        return self._ask(predict_set)

    @cached_property
    def alarms(self) -> BoolArray:
        """Whether each row raises an alarm."""
        if self.given is not None and self.given.dtype == bool:
            return self.given
        return self.labels == -1

    @cached_property
    def answered(self) -> BoolArray:
        """Whether each row has one answer."""
        if self.answer is None and hasattr(self.model, "answers"):
            return self._ask(lambda model, X: model.answers(X)).astype(bool)
        return self.sets.sum(axis=1) == 1


def violations(
    claim: Guarantee, answers: Answers, y: NDArray[Any]
) -> tuple[BoolArray, BoolArray]:
    """Rows that a promise is about, and those that break it, or are to be rare."""
    quantity = claim.quantity
    by_sets = quantity == "coverage"
    if quantity == "selective error rate":
        by_sets = answers.given is not None and answers.given.ndim == 2
    elif quantity == "false alarm rate":  # of the rows of a class, by its set
        by_sets = answers.answer is None and hasattr(answers.model, "classes_")
    by_alarms = quantity in ALARMS and not by_sets
    given: Any = answers.sets if by_sets else answers.labels
    if by_alarms:
        given = np.where(answers.alarms, -1, 1)
    if quantity == "selective error rate" and not by_sets:
        claim = replace(claim, quantity="error rate")  # of the rows with an answer
    if quantity == "answered share":
        counted, violated = np.ones(len(y), dtype=bool), answers.answered
    else:
        counted, violated = violated_rows(claim, y, given, answers.classes)
    counted &= rows_about(answers.model, claim, answers.X)
    if by_alarms:  # labels of ordinary rows may be any but -1
        counted &= (y == -1) == (quantity == "miss rate")
    if quantity == "selective error rate":
        counted &= answers.answered
    # What is not promised to be rare is so where it does not happen.
    return counted, violated ^ claim.counts_frequent


@dataclass(frozen=True, slots=True)
class Draw:
    """The promise of one model, and its true rate of violations.

    The rate is exact, or counted on fresh rows. `first` violations were counted in the
    first `n_rows` rows, so that their share has the true rate as its mean; an exact
    rate has no `n_rows`.
    """

    claim: Guarantee
    rate: float
    n_rows: int | None
    first: float
    is_beyond: bool
    seed: int = 0  # of the rows and of the model

    @property
    def excess(self) -> float:
        """How far the true rate lies beyond the bound."""
        return self.rate - self.claim.allowed


def exact_rate(
    claim: Guarantee, answers: Answers, y: NDArray[Any], chances: FloatArray
) -> Draw | None:
    """True rate on a finite law; None if the promise is about none of its rows."""
    counted, violated = violations(claim, answers, y)
    if not counted.any():
        return _about_no_row(claim)
    rate = float(chances[counted & violated].sum() / chances[counted].sum())
    return Draw(claim, rate, None, rate, rate > claim.allowed + ROUNDING)


def counted_rate(
    claim: Guarantee,
    draw: Callable[[int], tuple[Answers, NDArray[Any]]],
    error: float,
) -> Draw | None:
    """True rate counted on fresh rows, more of them where the first leave a doubt.

    `draw` maps the stage, 0 or 1, to answers and labels; `error` is the probability of
    calling a rate beyond the bound that is not.
    """
    allowed = claim.allowed
    total = violated = 0
    for stage in (0, 1):
        answers, y = draw(stage)
        inside, wrong = violations(claim, answers, y)
        total += int(inside.sum())
        violated += int((inside & wrong).sum())
        if stage == 0:
            n_rows, first = total, float(violated)
        if not total:
            continue
        # Each look at half of the error; the limits are two-sided.
        lower, upper = clopper_pearson(violated, total, level=error)
        is_average = claim.average_over is not None
        if is_average or upper <= allowed or lower > allowed:
            break
    if not n_rows:
        return _about_no_row(claim)
    return Draw(claim, violated / total, n_rows, first, lower > allowed)


def _about_no_row(claim: Guarantee) -> Draw | None:
    """What a promise about none of the rows says: nothing answered is never wrong."""
    if claim.quantity != "selective error rate":
        return None
    return Draw(claim, 0.0, None, 0.0, False)
