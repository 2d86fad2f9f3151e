"""What a calibration lowers: the losses of labelled rows, and where to go next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from prudent.calibration.families import Family, Statistics
from prudent.calibration.losses import Losses, cost_residuals, log_residuals
from prudent.calibration.trials import Trial, weights
from prudent.core.rows import Block, LocalRows, Rows
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model, its losses, and the way that leads on from it."""

    parameters: Any
    losses: Losses  # on the rows it is fitted to
    direction: Statistics | None  # G = sum_i W_ik psi(x_i), where somebody asked
    held_out: Losses | None  # on the rows held out, where there are any


@dataclass(frozen=True, eq=False)
class Objective:
    """Labelled rows, the family that explains them, and the loss to lower."""

    rows: Rows  # blocks of `Trial`, their rows as the family has prepared them
    family: Family
    n_classes: int
    costs: FloatArray | None = None  # (r, r); None lowers the log loss
    generative_weight: float = 0.0  # lambda of G + lambda (s(X, Y) - s)
    #: Leave the classes that are not true out of G (discriminative frequency
    #: estimate): the statistics grow.
    strengthens_only: bool = False

    @classmethod
    def of(cls, family: Family, block: Block, n_classes: int, **options: Any) -> Self:
        """Objective over the prepared rows of one block."""
        return cls(LocalRows([Trial(block)]), family, n_classes, **options)

    def closed_form(self) -> Statistics:
        """s(X, Y), the statistics of the labels themselves."""
        return _add_up(self.rows.map(_closed_form, self.family, self.n_classes))

    def drawn(self, seed: int, draw: int) -> Statistics:
        """s(X, Q) of random labels Q, uniform on the simplex; number `draw` of them."""
        numbers = list(range(self.rows.n_blocks))
        random = (seed, draw)
        return _add_up(
            self.rows.map(_drawn, self.family, self.n_classes, random, each=numbers)
        )

    def evaluate(
        self,
        statistics: Statistics,
        batch: IntArray | None = None,
        *,
        with_direction: bool = True,
    ) -> Evaluation:
        """The model with these statistics, in one pass over the rows.

        With a `batch` of rows (of the only block) the direction is theirs, scaled up.
        """
        parameters = self.family.parameters(statistics)
        found = self.rows.map(_evaluate, self, parameters, batch, with_direction)
        fitted, directions, held_out = zip(*found, strict=True)
        judged = [losses for losses in held_out if losses is not None]
        return Evaluation(
            parameters,
            reduce(add, (losses for losses in fitted if losses is not None)),
            _add_up(directions) if with_direction else None,
            reduce(add, judged) if judged else None,
        )

    def score(self, block: Block, parameters: Any) -> tuple[Losses, FloatArray]:
        """Losses of prepared rows, and their weights W (r, m) in the next step."""
        codes, weight = block.codes, weights(block)
        log_joint = np.asarray(self.family.log_joint(block.X, parameters))
        if log_joint.shape != (len(codes), self.n_classes):
            raise ValueError(
                f"{type(self.family).__name__}.log_joint must return shape "
                f"{(len(codes), self.n_classes)}, got {log_joint.shape}."
            )
        scores = np.ascontiguousarray(log_joint.T)
        generative = 0.0
        if self.generative_weight:  # first, because the residuals overwrite the scores
            own = scores[codes, np.arange(len(codes))]
            if hasattr(self.family, "row_constant"):
                own = own + self.family.row_constant(block.X, parameters)
            generative = -float(weight @ own)
        if self.costs is None:
            losses = log_residuals(scores, codes, weight)
        else:
            losses = cost_residuals(scores, codes, weight, self.costs)
        if self.strengthens_only:
            true = codes, np.arange(len(codes))
            gains = scores[true]
            scores[:] = 0.0
            scores[true] = gains
        if self.generative_weight:
            total = losses.objective + self.generative_weight * generative
            losses = replace(losses, objective=total)
        return losses, scores

    def __getstate__(self) -> dict[str, Any]:
        # What travels to the blocks: everything but the blocks.
        return {**self.__dict__, "rows": None}


def batches_of_epochs(
    n_rows: int, batch_size: int, random: np.random.RandomState
) -> Iterator[IntArray]:
    """Endless batches: each epoch deals all rows once in a new order."""
    while True:
        order = random.permutation(n_rows)
        for start in range(0, n_rows, batch_size):
            yield order[start : start + batch_size]


# What happens to one block; without rows its sums are None.


def _closed_form(trial: Trial, family: Family, n_classes: int) -> Statistics | None:
    block = trial.fitted
    if block is None:
        return None
    labels = np.zeros((n_classes, len(block.codes)))
    labels[block.codes, np.arange(len(block.codes))] = weights(block)
    return family.statistics(block.X, labels.T)


def _drawn(
    trial: Trial, family: Family, n_classes: int, seed: tuple[int, int], number: int
) -> Statistics | None:
    block = trial.fitted
    if block is None:
        return None
    random = np.random.default_rng([*seed, number])
    Q = random.dirichlet(np.ones(n_classes), size=len(block.codes))
    return family.statistics(block.X, Q * weights(block)[:, np.newaxis])


def _evaluate(
    trial: Trial,
    objective: Objective,
    parameters: Any,
    batch: IntArray | None,
    with_direction: bool,
) -> tuple[Losses | None, Statistics | None, Losses | None]:
    held_out = None
    if trial.held_out is not None:
        held_out, _ = objective.score(trial.held_out, parameters)
    if trial.fitted is None:
        return None, None, held_out
    losses, residuals = objective.score(trial.fitted, parameters)
    if not with_direction:
        return losses, None, held_out
    rows = trial.fitted.X
    if batch is not None:
        weight = weights(trial.fitted)
        residuals = weight.sum() / weight[batch].sum() * residuals[:, batch]
        rows = rows[batch]
    return losses, objective.family.statistics(rows, residuals.T), held_out


def _add_up(statistics: Iterable[Statistics | None]) -> Statistics:
    """Sums in the order given, which is that of the rows: the same bits always."""
    found = [block for block in statistics if block is not None]
    return [reduce(add, parts) for parts in zip(*found, strict=True)]
