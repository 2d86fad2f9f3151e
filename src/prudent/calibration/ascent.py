"""The calibration itself: move the statistics until the labels are explained.

s <- s + lr G(s) with G = sum_i W_ik psi(x_i): mirror ascent of the conditional
log-likelihood with the log-partition function as mirror map, because s / M is the
mean parameter of the joint exponential family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from prudent.calibration.families import Family, Statistics
from prudent.calibration.objective import Evaluation, Objective
from prudent.core.types import FloatArray, IntArray

#: At a smaller log loss the classes are separated and the climb has no end.
_SEPARATED = 1e-10
_MAX_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class StepRule:
    """How far a step goes and what happens when it goes too far."""

    learning_rate: float  # lr0, of the first step
    freeze: bool = False  # refuse what would leave the valid cone, do not halve
    line_search: bool = True  # reject a step that raises the objective and halve lr
    adaptive: bool = False  # then lr <- min(1.2 lr, 4 lr0, 1 / (1 + lambda))


@dataclass(frozen=True, slots=True)
class Iterate:
    """One evaluated model on the way."""

    statistics: Statistics
    evaluation: Evaluation
    step: float  # the lr that led here
    is_accepted: bool = True  # by the line search
    is_full_step: bool = True  # of every block and count

    @property
    def curve_point(self) -> tuple[float, float, float, float]:
        """Log loss, error, risk and lr."""
        mean = self.evaluation.losses.mean
        return mean.log_loss, mean.wrong, mean.risk, self.step


@dataclass(frozen=True, slots=True)
class CalibrationPath:
    """A calibration and the iterate that was kept."""

    statistics: Statistics  # of the kept iterate
    parameters: Any
    best_iteration: int  # its number of accepted updates t
    n_evaluations: int  # those rejected by the line search included
    n_frozen: int  # accepted updates that were not full steps
    curves: FloatArray  # (4, T + 1): log loss, error, risk, lr after t updates
    criterion: tuple[Any, ...]  # of each t; the first minimum is kept


def ascend(
    objective: Objective,
    start: Statistics,
    rule: StepRule,
    criterion: Callable[[int, Iterate], Any],
    *,
    max_evaluations: int,
    max_updates: float = float("inf"),
    labels: Statistics | None = None,
    batches: Iterator[IntArray] | None = None,
    watch: Callable[[], bool] = lambda: False,
) -> CalibrationPath:
    """Calibrate from valid statistics `start` and keep the first best iterate.

    The least `criterion` of (t, accepted iterate) is kept. `labels` are s(X, Y), where
    the generative weight pulls (None is `start`), `batches` the rows behind each step
    (None takes all); `watch` is called after each evaluation, True stops.
    """
    values: list[Any] = []
    points: list[tuple[float, ...]] = []
    best, n_frozen, n_evaluations = 0, 0, 0
    path = iterates(objective, start, rule, max_evaluations, labels, batches)
    for iterate in path:
        n_evaluations += 1
        if iterate.is_accepted:
            values.append(criterion(len(values), iterate))
            if len(values) == 1 or values[-1] < values[best]:
                best, kept = len(values) - 1, iterate
            points.append(iterate.curve_point)
            n_frozen += not iterate.is_full_step
        if watch() or len(values) > max_updates:
            break
    return CalibrationPath(
        statistics=kept.statistics,
        parameters=kept.evaluation.parameters,
        best_iteration=best,
        n_evaluations=n_evaluations,
        n_frozen=n_frozen,
        curves=np.array(points).T,
        criterion=tuple(values),
    )


def iterates(
    objective: Objective,
    start: Statistics,
    rule: StepRule,
    max_evaluations: int,
    labels: Statistics | None = None,
    batches: Iterator[IntArray] | None = None,
) -> Iterator[Iterate]:
    """Every evaluated model from the start on, one step after the other.

    Ends when the classes are separated, or after `max_evaluations` models.
    """
    labels = start if labels is None else labels
    share = objective.generative_weight
    limit = 1.0 / (1.0 + share)
    # Beyond this limit the pull back to s(X, Y) alone would overshoot.
    step = min(rule.learning_rate, limit) if share else rule.learning_rate
    numbers = count(1)

    def evaluate(statistics: Statistics) -> Evaluation:
        goes_on = next(numbers) < max_evaluations
        return objective.evaluate(statistics, batch, with_direction=goes_on)

    batch = None if batches is None else next(batches)
    accepted = Iterate(start, evaluate(start), step)
    yield accepted
    while (mean := accepted.evaluation.losses.mean).log_loss >= _SEPARATED:
        if accepted.evaluation.direction is None:
            return
        direction = _pull(
            accepted.evaluation.direction, share, labels, accepted.statistics
        )
        batch = None if batches is None else next(batches)
        ceiling = float("inf")
        if rule.line_search:
            ceiling = mean.objective + 1e-12 * abs(mean.objective)
        while True:
            statistics, is_full = _move(
                objective.family, accepted.statistics, direction, step, rule.freeze
            )
            evaluation = evaluate(statistics)
            if not evaluation.losses.mean.objective > ceiling:
                break
            yield Iterate(statistics, evaluation, step, False, is_full)
            if evaluation.direction is None:
                return
            step /= 2
        accepted = Iterate(statistics, evaluation, step, True, is_full)
        yield accepted
        if rule.adaptive:
            step = min(1.2 * step, 4 * rule.learning_rate, limit)


def step_on_batch(
    objective: Objective, statistics: Statistics, labels: Statistics, rule: StepRule
) -> tuple[Iterate, Statistics]:
    """One step that takes the rows of `objective` as a sample of all rows so far.

    `statistics` are the calibrated ones of all rows so far, the batch included, and
    `labels` their s(X, Y). Returns the model before the step, judged on the batch, and
    the statistics after it.
    """
    evaluation = objective.evaluate(statistics)
    assert evaluation.direction is not None
    scale = labels[0].sum() / evaluation.losses.weight
    direction = [scale * g for g in evaluation.direction]
    direction = _pull(direction, objective.generative_weight, labels, statistics)
    after, is_full = _move(
        objective.family, statistics, direction, rule.learning_rate, rule.freeze
    )
    return Iterate(statistics, evaluation, rule.learning_rate, True, is_full), after


def _pull(
    direction: Statistics, share: float, labels: Statistics, statistics: Statistics
) -> Statistics:
    """G + lambda (s(X, Y) - s)."""
    if not share:
        return direction
    triples = zip(direction, labels, statistics, strict=True)
    return [g + share * (full - s) for g, full, s in triples]


def _move(
    family: Family,
    statistics: Statistics,
    direction: Statistics,
    step: float,
    freeze: bool,
) -> tuple[Statistics, bool]:
    """Valid statistics after a step, and whether it was taken in full."""
    proposed = [s + step * g for s, g in zip(statistics, direction, strict=True)]
    if family.is_valid(proposed).all():
        return proposed, True
    if not freeze:
        return _halve(family, statistics, direction, step), False
    # The paper's rule: keep single counts where there are any, else the whole.
    if hasattr(family, "freeze"):
        proposed = family.freeze(statistics, proposed)
        if family.is_valid(proposed).all():
            return proposed, False
    return statistics, False


def _halve(
    family: Family, statistics: Statistics, direction: Statistics, step: float
) -> Statistics:
    """Halve the step of each invalid class, or of all if they are tied."""
    steps = np.full(len(statistics[0]), float(step))
    for halving in range(_MAX_HALVINGS + 1):
        proposed = [
            s + steps.reshape(-1, *[1] * (s.ndim - 1)) * g
            for s, g in zip(statistics, direction, strict=True)
        ]
        valid = family.is_valid(proposed)
        if getattr(family, "tied", False):
            valid = np.full(len(steps), valid.all())
        if valid.all():
            break
        # The old statistics are valid, whatever rounding does near the boundary.
        steps[~valid] *= 0.5 if halving < _MAX_HALVINGS - 1 else 0.0
    return proposed
