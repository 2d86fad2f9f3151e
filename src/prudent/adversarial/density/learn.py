"""From rows of one class to a detector: a density, then a rule by held-out scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.adversarial.density.cut import GuaranteeKind, choose_rank
from prudent.adversarial.density.kernel_density import (
    DecorrelatedKernels,
    NormalKernels,
    kernel_width,
)
from prudent.adversarial.density.model import Cut, Density, Model, SoftRule
from prudent.adversarial.density.reference import (
    GridReference,
    ReferenceName,
    make_reference,
)
from prudent.adversarial.density.soft import play_on_density
from prudent.adversarial.density.standardisation import Standardisation
from prudent.core.types import FloatArray

_MAX_CENTRES = 1000
_MOST_ROWS_FOR_KERNELS = 10_000  # more teach the classifier what no kernel says

#: Fits a classifier to rows with labels 1 (of the class) and 0 (artificial) and
#: returns its log odds of label 1.
FitClassifier = Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]]
#: The answer of a function of rows about all held-out rows, wherever they are.
AskHeldOut = Callable[[Callable[[FloatArray], Any]], Any]


@dataclass(frozen=True)
class Learned:
    """What one fit found; a rule for any false-alarm rate follows without another.

    Attributes
    ----------
    density : Density
    calibration_scores : ndarray of shape (m,)
        Rising scores of the held-out rows.
    fit_scores : ndarray of shape (n,) or None
        Rising scores of the fit rows, for the soft rule.
    missing_mass : float
        Share of held-out rows outside the cells of the grid; 0 otherwise.
    cell_size : float
        Side of the cells, else width of the kernels, in standard deviations.
    key : bytes
        Of the soft rule's coins.
    coin : float
        Of the randomised rank, in [0, 1).
    """

    density: Density
    calibration_scores: FloatArray
    fit_scores: FloatArray | None
    missing_mass: float
    cell_size: float
    key: bytes
    coin: float

    def hard(
        self, false_alarm_rate: float, kind: GuaranteeKind, confidence: float
    ) -> Model:
        """Model that cuts at the order statistic which keeps the rate."""
        scores = self.calibration_scores
        rank = choose_rank(kind, len(scores), false_alarm_rate, confidence, self.coin)
        threshold = float(scores[rank - 1]) if rank else -math.inf
        return Model(self.density, scores, Cut(rank, threshold))

    def soft(self, false_alarm_rate: float, divergence_bound: float) -> Model:
        """Model that plays the rejection game on the estimated density."""
        assert self.fit_scores is not None
        n_varying = int(self.density.standardisation.varies.sum())
        rule: SoftRule = play_on_density(
            self.fit_scores,
            self.calibration_scores,
            n_varying * math.log(self.cell_size),
            false_alarm_rate,
            divergence_bound,
            self.key,
        )
        return Model(self.density, self.calibration_scores, rule)


def learn(
    rows: FloatArray,
    ask_held_out: AskHeldOut,
    *,
    fit_classifier: FitClassifier,
    reference: ReferenceName | Any,
    with_kernels: bool,
    is_soft: bool,
    random: np.random.RandomState,
) -> Learned:
    """Learn a density from fit rows and score the held-out rows.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Rows of the class to learn from.
    ask_held_out : callable
        `ask_held_out(f)` is f of the held-out rows.
    fit_classifier : callable
        (rows, labels) -> log odds of label 1.
    reference : str or object
        Name of the artificial density, or an object with `sample` and `log_density`.
    with_kernels : bool
        Add kernel densities to the estimate, up to 10 000 rows.
    is_soft : bool
        Score the fit rows too.
    random : RandomState
        Draws the reference, its sample, the centres, key and coin.
    """
    density = learn_density(
        rows, fit_classifier, reference, random, with_kernels=with_kernels
    )
    key, coin = random.bytes(32), float(random.uniform())
    n_varying = int(density.standardisation.varies.sum())
    cell_size, missing_mass = kernel_width(len(rows), n_varying), 0.0
    if isinstance(density.reference, GridReference):
        cell_size = density.reference.cells.size
        missing_mass = float(np.mean(~ask_held_out(density.covers)))
    return Learned(
        density=density,
        calibration_scores=np.sort(ask_held_out(density.score)),
        fit_scores=np.sort(density.score(rows)) if is_soft else None,
        missing_mass=missing_mass,
        cell_size=cell_size,
        key=key,
        coin=coin,
    )


def learn_density(
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
        DecorrelatedKernels.of_likeliest_width(centres, Z.T @ Z / len(Z)),
    )
    # Every estimate counts by the number of rows it learns from.
    share = len(centres) / (len(Z) + len(kernels) * len(centres))
    return Density(standardisation, made, log_odds, kernels, share)
