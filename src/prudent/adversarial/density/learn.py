"""From rows of one class to an estimate of their density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prudent.adversarial.density.model import (
    Density,
    GridReference,
    NormalKernels,
    ReferenceName,
    SoftRule,
    Standardisation,
    kernel_width,
    make_reference,
)
from prudent.adversarial.game.laws import Divergence
from prudent.adversarial.game.solver import group_events, solve_game, split_levels
from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee
from prudent.core.rows import drawn_key, keyed_uniform
from prudent.core.types import FloatArray
from prudent.rules.rule import Terms

_SMALLEST = 1e-300  # probability of a cell
_NO_BUDGET = 1e-12  # of a sum of rejection probabilities: what rounding leaves of 0
_MAX_CENTRES = 1000
_MOST_ROWS_FOR_KERNELS = 10_000  # more teach the classifier what no kernel says

#: Fits a classifier to rows with labels 1 (of the class) and 0 (artificial) and
#: returns its log odds of label 1.
FitClassifier = Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]]


@dataclass(frozen=True)
class Learned:
    """What one fit found; a rule for any false-alarm rate follows without another."""

    density: Density
    fit_scores: FloatArray | None  # (n,), rising, of the fit rows, for the soft rule
    cell_size: float  # else width of the kernels, in standard deviations
    key: bytes  # of the soft rule's coins
    coin: float  # of the randomised rank, in [0, 1)

    @property
    def log_cell_volume(self) -> float:
        """Logarithm of the volume of a cell, or of a cube of the kernels' width."""
        return self.density.standardisation.n_varying * math.log(self.cell_size)


def learn(
    rows: FloatArray,
    *,
    fit_classifier: FitClassifier,
    reference: ReferenceName | Any,
    with_kernels: bool,
    is_soft: bool,
    random: np.random.RandomState,
) -> Learned:
    """Learn a density from fit rows (n, d).

    `reference` is the name of the artificial density or an object with `sample` and
    `log_density`; `with_kernels` adds kernel densities, up to 10 000 rows; `is_soft`
    scores the fit rows too.
    """
    density = _learn_density(
        rows, fit_classifier, reference, random, with_kernels=with_kernels
    )
    key = drawn_key(random, rows)
    (coin,) = keyed_uniform([b"rank"], key)
    cell_size = kernel_width(len(rows), density.standardisation.n_varying)
    if isinstance(density.reference, GridReference):
        cell_size = density.reference.size
    return Learned(
        density=density,
        fit_scores=np.sort(density.score(rows)) if is_soft else None,
        cell_size=cell_size,
        key=key,
        coin=float(coin),
    )


def _learn_density(
    X: FloatArray,
    fit_classifier: FitClassifier,
    reference: ReferenceName | Any,
    random: np.random.RandomState,
    *,
    with_kernels: bool,
) -> Density:
    """Tell the rows from as many artificial ones; parameters as for `learn`."""
    standardisation = Standardisation.from_rows(X)
    Z = standardisation.apply(X)
    if not Z.shape[1]:
        return Density(standardisation, None, None)
    made = make_reference(reference, Z, standardisation, random)
    artificial = made.sample(len(Z), random)
    log_odds = fit_classifier(
        np.concatenate([Z, artificial]), np.repeat([1, 0], len(Z))
    )
    if not with_kernels or len(Z) > _MOST_ROWS_FOR_KERNELS:
        return Density(standardisation, made, log_odds)
    centres = Z[random.permutation(len(Z))[:_MAX_CENTRES]]
    # Round kernels are better for independent columns, shaped ones for correlated
    # columns; their mean is better than either on most real sets.
    kernels = (
        NormalKernels.of_likeliest_width(centres),
        NormalKernels.of_likeliest_width(centres, Z.T @ Z / len(Z)),
    )
    # Every estimate counts by the number of rows it learns from.
    share = len(centres) / (len(Z) + len(kernels) * len(centres))
    return Density(standardisation, made, log_odds, kernels, share)


# --- the rejection game on the density, scaled to its false-alarm rate ----------------


def play_on_density(
    fit_scores: FloatArray,
    calibration_scores: FloatArray,
    log_cell_volume: float,
    rate: float,
    bound: float,
    key: bytes,
    **known: Any,
) -> SoftRule:
    """Solve the game on the fit rows, then scale it to the false-alarm rate.

    `fit_scores` are rising estimates of log p: the row's cell has probability volume
    times p, and the row stands for 1/n of the target. Intruders are `bound` bits away.
    The rate is kept on average whatever the density. `known` are the other fields of
    the rule.
    """
    n = len(fit_scores)
    value = np.exp(fit_scores + log_cell_volume).clip(_SMALLEST, 1.0)
    events = group_events(value, np.full(n, 1 / n))
    levels = split_levels(events.value, events.mass, Divergence("kl"), bound)
    rejection = events.spread(solve_game(levels, rate)[0], 1.0)
    largest = 1 / rejection[rejection > 0].min(initial=1.0)
    rule = SoftRule(fit_scores, rejection, 1.0, key, **known)
    held_out = rule.rejection_at(calibration_scores)
    return replace(rule, scale=scale_to_rate(held_out, rate, float(largest)))


def scale_to_rate(rejection: FloatArray, rate: float, largest: float) -> float:
    """Largest t <= `largest` with sum_i min(1, t r_i) + 1 <= (m + 1) rate.

    `rejection` (m,) are the r_i of the calibration rows. For exchangeable rows,
    rejecting a new one with probability min(1, t r) then raises false alarms at rate
    `rate` at most on average, because the sum rises with t and one row adds at most 1.
    0 when (m + 1) rate <= 1.
    """
    budget = (len(rejection) + 1) * rate - 1
    if budget <= _NO_BUDGET:
        return 0.0
    rising = np.sort(rejection[rejection > 0])
    if len(rising) <= budget:
        return largest
    # sum_i min(1, t r_i) <= j + t (sum without the j largest), with equality for
    # the right j: the largest root of these lines.
    rest = np.cumsum(rising)[::-1]
    return min(largest, float(np.max((budget - np.arange(len(rest))) / rest)))


def fewest_to_scale(rate: float) -> int:
    """Fewest calibration rows m by which something is rejected: (m + 1) rate > 1."""
    return math.floor(1 / rate + 1e-9)


# --- promises: the rate of the randomised rule ----------------------------------------


def soft_promise(rate: float, n_scores: int, terms: Terms) -> Guarantee:
    """False-alarm rate of a randomised rule scaled to it by `n_scores` held-out rows.

    The law of the rate of one fit is not known: there is no rank.
    """
    return terms.promise(
        "false alarm rate",
        rate,
        Assumption.EXCHANGEABLE_NORMAL,
        evidence={"calibration rows": float(n_scores)},
        source="El-Yaniv and Nisenson, section 7, with held-out scores",
    )
