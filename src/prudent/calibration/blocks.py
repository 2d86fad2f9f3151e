"""Calibration of rows that stay in blocks, in this process or on workers.

A model travels to the blocks, and sums over their rows come back. These are added up
in the order of the blocks, so that it does not matter where a block is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import add
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.baselines import SoftmaxFamily
from prudent.calibration.categorical import MixedFamily, MixedRows
from prudent.calibration.families import Family, Statistics
from prudent.calibration.gaussian import TiedFamily
from prudent.calibration.problem import Evaluation, Losses, Problem
from prudent.calibration.recipe import Beginning, LabelledRows, Recipe
from prudent.core.moments import ClassMoments
from prudent.core.validation import Structure

__all__ = ["BlockRows", "Blocks", "LocalBlocks", "Parts"]

IntArray = NDArray[np.intp]

#: The rows of one block by the part of the data that they belong to: a fold, or the
#: held-out rows. A part without rows in the block is absent.
Parts = dict[int, LabelledRows]
MakeProblem = Callable[[LabelledRows], Problem]


class Blocks(Protocol):
    """Blocks of any kind in a fixed order, kept where they are."""

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """`function(block, *arguments)` of every block, in order."""
        ...

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Self:
        """Blocks `function(block, *arguments)`, kept where they are made.

        With `each`, the function also takes the block's own item of it, last.
        """
        ...


@dataclass(frozen=True, eq=False)
class LocalBlocks:
    """Blocks in the memory of this process."""

    values: Sequence[Any]

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """As `Blocks.map`."""
        return [function(block, *arguments) for block in self.values]

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> LocalBlocks:
        """As `Blocks.transform`."""
        own = [()] * len(self.values) if each is None else [(item,) for item in each]
        pairs = zip(self.values, own, strict=True)
        return LocalBlocks(
            [function(block, *arguments, *item) for block, item in pairs]
        )


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Rows in blocks: a sample to calibrate on, made of some parts of the data.

    Attributes
    ----------
    blocks : Blocks
        Of `Parts`, every row of weight 1.
    parts : frozenset of int
        Those that are this sample.
    n_rows : ndarray of int, shape (r,)
        Rows of each class.
    spread : ClassMoments or None
        Of the numbers of all rows, as one class; None if no family is made of them.
    is_mixed : bool
        Whether there are levels beside the numbers.
    """

    blocks: Blocks
    parts: frozenset[int]
    n_rows: IntArray
    spread: ClassMoments | None
    is_mixed: bool

    @classmethod
    def by_part(
        cls, blocks: Blocks, n_classes: int, structure: Structure | None
    ) -> list[BlockRows]:
        """One sample for every part of the data that has rows.

        `structure` is that of the spread, None for none.
        """
        samples: dict[int, list[BlockRows]] = {}
        for summaries in blocks.map(_summaries, n_classes, structure):
            for part, summary in summaries.items():
                sample = cls(blocks, frozenset({part}), *summary)
                samples.setdefault(part, []).append(sample)
        return [cls.merged(samples[part]) for part in sorted(samples)]

    @classmethod
    def merged(cls, samples: Sequence[BlockRows]) -> BlockRows:
        """All rows of samples of the same blocks."""
        spreads = [sample.spread for sample in samples if sample.spread is not None]
        return cls(
            samples[0].blocks,
            frozenset[int]().union(*(sample.parts for sample in samples)),
            np.sum([sample.n_rows for sample in samples], axis=0),
            ClassMoments.reduce(spreads) if spreads else None,
            samples[0].is_mixed,
        )

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.n_rows.sum())

    def begin(self, recipe: Recipe, held_out: BlockRows | None) -> Beginning:
        """Objective over these rows and their closed-form statistics, checked."""
        recipe.check_classes(self.n_rows)
        family = self._family(recipe)
        objective = BlockObjective(
            self.blocks,
            family,
            recipe.problems(family),
            recipe.generative_weight,
            self.parts,
            frozenset() if held_out is None else held_out.parts,
        )
        return objective, recipe.start(family, partial(self._closed_form, recipe))

    def _closed_form(self, recipe: Recipe, family: Family) -> Statistics:
        """s(X, Y) in the statistics of a family."""
        sums = self.blocks.map(_closed_form, recipe.problems(family), self.parts)
        return _add_up(chain.from_iterable(sums))

    def _family(self, recipe: Recipe) -> Family:
        """The family that all rows of the sample together would make.

        Two rows with their centre and scale make it; then the exact moments, which
        two rows cannot hold to the last digit, replace those of the two.
        """
        if self.spread is None:
            return recipe.make_family(np.zeros((0, 0)), np.zeros(0))
        centre = self.spread.mean[0] + self.spread.mean_lo[0]
        covariance = self.spread.scatter[0] / self.total
        is_diagonal = covariance.ndim == 1
        scale = np.sqrt(covariance if is_diagonal else covariance.diagonal())
        rows: Any = centre + np.array([[-1.0], [1.0]]) * scale
        if self.is_mixed:
            rows = MixedRows(rows, np.zeros((2, 0), dtype=np.intp))

        def exact(family: Any) -> Any:
            if isinstance(family, SoftmaxFamily):
                gaussian = exact(family.gaussian)
                return replace(family, gaussian=gaussian, total=self.total)
            if isinstance(family, MixedFamily):
                return replace(family, gaussian=exact(family.gaussian))
            family = replace(family, centre=centre, scale=scale)
            if not isinstance(family, TiedFamily):
                return family
            kept = family.kept
            if is_diagonal:
                second = covariance[kept] / scale[kept] ** 2
            else:
                products = np.outer(scale[kept], scale[kept])
                second = covariance[np.ix_(kept, kept)] / products
            return replace(family, second_moment=second, total=self.total)

        return exact(recipe.make_family(rows, np.ones(2)))


@dataclass(frozen=True, slots=True)
class BlockEvaluation(Evaluation):
    """Evaluation that has summed the direction, and judged any held-out rows."""

    direction: Statistics
    held_out: Losses | None


@dataclass(frozen=True, eq=False)
class BlockObjective:
    """What a calibration lowers, over rows in blocks: one pass for each evaluation.

    Attributes
    ----------
    blocks : Blocks
        Of `Parts`.
    family : Family
    problems : callable
        Turns rows into the problem of explaining them with the family.
    generative_weight : float
    fitted, held_out : frozenset of int
        Parts that are fitted, and parts that are only judged.
    """

    blocks: Blocks
    family: Family
    problems: MakeProblem
    generative_weight: float
    fitted: frozenset[int]
    held_out: frozenset[int]

    def evaluate(self, statistics: Statistics) -> BlockEvaluation:
        """The model with these statistics, its direction and held-out losses."""
        parameters = self.family.parameters(statistics)
        sums = self.blocks.map(
            _evaluate, self.problems, parameters, self.fitted, self.held_out
        )
        fitted, directions, held_out = (
            list(chain.from_iterable(found)) for found in zip(*sums, strict=True)
        )
        return BlockEvaluation(
            parameters,
            reduce(add, fitted),
            _add_up(directions),
            reduce(add, held_out) if held_out else None,
        )

    def direction(self, evaluation: BlockEvaluation) -> Statistics:
        """G, which the evaluation brought along."""
        return evaluation.direction

    def validate(self, evaluation: BlockEvaluation) -> Losses:
        """Losses on the held-out rows, which the evaluation brought along."""
        assert evaluation.held_out is not None
        return evaluation.held_out


# What happens to one block. Sums are lists of one item, or of none without rows.


def _summaries(
    parts: Parts, n_classes: int, structure: Structure | None
) -> dict[int, tuple[IntArray, ClassMoments | None, bool]]:
    return {
        part: (
            np.bincount(rows.codes, minlength=n_classes),
            _spread(getattr(rows.rows, "numbers", rows.rows), structure),
            isinstance(rows.rows, MixedRows),
        )
        for part, rows in parts.items()
    }


def _spread(numbers: NDArray[Any], structure: Structure | None) -> ClassMoments | None:
    n_rows, n_columns = numbers.shape
    if structure is None:
        return None
    if not n_columns:
        return ClassMoments.empty([0], 0, structure=structure)
    one_class = np.zeros(n_rows, dtype=np.intp)
    return ClassMoments.from_arrays(numbers, one_class, structure=structure)


def _closed_form(
    parts: Parts, problems: MakeProblem, fitted: frozenset[int]
) -> list[Statistics]:
    found = [problems(rows).closed_form() for rows in _of(parts, fitted)]
    return [_add_up(found)] if found else []


def _evaluate(
    parts: Parts,
    problems: MakeProblem,
    parameters: Any,
    fitted: frozenset[int],
    held_out: frozenset[int],
) -> tuple[list[Losses], list[Statistics], list[Losses]]:
    """Losses, direction and held-out losses of a model."""
    found = [_climb(problems(rows), parameters) for rows in _of(parts, fitted)]
    judged = [problems(rows).score(parameters).losses for rows in _of(parts, held_out)]
    if not found:
        return [], [], judged
    losses, directions = zip(*found, strict=True)
    return [reduce(add, losses)], [_add_up(directions)], judged


def _climb(problem: Problem, parameters: Any) -> tuple[Losses, Statistics]:
    evaluation = problem.score(parameters)
    return evaluation.losses, problem.direction(evaluation)


def _of(parts: Parts, chosen: frozenset[int]) -> list[LabelledRows]:
    return [rows for part, rows in parts.items() if part in chosen]


def _add_up(statistics: Iterable[Statistics]) -> Statistics:
    """Sums in the order given, which is that of the rows: the same bits always."""
    return [reduce(add, blocks) for blocks in zip(*statistics, strict=True)]
