"""The draws of an audit: rows of a law, a model fitted to them, promises and truth."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_outlier_detector

from prudent.auditing.laws import Law
from prudent.auditing.tally import Draw, Tally, counting_error
from prudent.auditing.truth import (
    Answer,
    Answers,
    Measured,
    counted_rate,
    demands,
    exact_rate,
    is_about_training_rows,
)
from prudent.core.guarantee import ALARMS, NOT_A_RATE, Guarantee

Claim = Guarantee | Callable[[Any], Guarantee | Iterable[Guarantee]] | None

# Fresh rows on which a rate is counted, at once and where a doubt is left.
FRESH_ROWS = (2_000, 18_000)
# How often one looks, and after how many refusals in a row nothing more is tried.
LOOK_EVERY = 10
MOST_REFUSED = 50


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is audited, and how."""

    factory: Any
    claim: Claim
    answer: Answer
    on_request: bool
    budget: int
    target: float
    random_state: int

    def seed(self, i: int) -> int:
        """Seed of a draw; that of the first is the seed of the audit."""
        if i == 0:
            return self.random_state
        state = np.random.SeedSequence((self.random_state, i)).generate_state(1)
        return int(state[0])

    def built(self, seed: int) -> Any:
        """An unfitted model whose own randomness is that of the draw."""
        if hasattr(self.factory, "fit") and not isinstance(self.factory, type):
            model = clone(self.factory, safe=False)
        else:
            model = self.factory()
        if hasattr(model, "get_params") and hasattr(model, "set_params"):
            free = {
                name: seed
                for name, value in model.get_params().items()
                if value is None and name.rpartition("__")[2] == "random_state"
            }
            model.set_params(**free)
        return model

    def claims(self, model: Any) -> tuple[Guarantee, ...]:
        """What a fitted model promises."""
        if self.claim is None:
            return tuple(getattr(model, "guarantees_", ()))
        if isinstance(self.claim, Guarantee):
            return (self.claim,)
        said = self.claim(model)
        return (said,) if isinstance(said, Guarantee) else tuple(said)

    def detects(self, model: Any) -> bool:
        """Whether the model learns from rows without labels."""
        if self.answer == "detect":
            return True
        if isinstance(self.claim, Guarantee):
            return self.claim.quantity in ALARMS
        try:
            return bool(is_outlier_detector(model))
        except AttributeError:  # not one of scikit-learn's kind
            return False


@dataclass
class CellResult:
    """The draws of one law at one size."""

    law: Law
    size: int
    n_draws: int
    tallies: list[Tally]
    refusals: Counter[str]
    # Draws of rows and of moments that ended in an error.
    refused: dict[bool, int]
    is_stopped: bool


def draw_cell(trial: Trial, law: Law, size: int) -> CellResult:
    """Make the draws of one law at one size, until one promise is refuted."""
    tallies: dict[Any, Tally] = {}
    result = CellResult(law, size, 0, [], Counter(), {False: 0, True: 0}, False)
    for i in range(trial.budget):
        seed = trial.seed(i)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for draw, from_moments in _draws(trial, law, size, seed, result):
                _add(trial, law, tallies, draw, from_moments)
        result.n_draws = i + 1
        if (i + 1) % LOOK_EVERY == 0 and i + 1 < trial.budget:
            looks = (t.log_e_value(i + 1) >= t.target for t in tallies.values())
            if any(looks):
                result.is_stopped = True
                break
        if not tallies and result.refused[False] >= MOST_REFUSED:
            break
        if not tallies and i + 1 == LOOK_EVERY and not result.refusals:
            break  # it promises nothing
    result.tallies = list(tallies.values())
    return result


def _add(
    trial: Trial, law: Law, tallies: dict[Any, Tally], draw: Draw, from_moments: bool
) -> None:
    """Count a draw where it belongs."""
    claim = draw.claim
    key = (
        *(claim.quantity, claim.scope, claim.sense, claim.confidence),
        *(claim.average_over, from_moments),
    )
    if key not in tallies:
        # The shares 1/(j (j + 1)) of all promises of a cell sum to at most 1.
        j = len(tallies) + 1
        tallies[key] = Tally(
            claim,
            is_outside=not demands(claim) <= set(law.satisfies),
            from_moments=from_moments,
            horizon=trial.budget,
            target=trial.target + math.log(j * (j + 1)),
        )
    tallies[key].draws.append(draw)


def _draws(
    trial: Trial, law: Law, size: int, seed: int, result: CellResult
) -> Iterator[tuple[Draw, bool]]:
    """Fit to rows, and to their moments where that can be done; hold to the truth."""
    X, y = law.draw(size, np.random.default_rng(seed))
    for fit, from_moments in ((_fitted, False), (_fitted_to_moments, True)):
        if from_moments and (
            trial.claim is not None or result.refused[True] >= LOOK_EVERY
        ):
            continue
        try:
            model, rows, labels = fit(trial, X, y, seed)
            if model is not None:
                found = list(_held(trial, law, model, rows, labels, seed))
                yield from ((draw, from_moments) for draw in found)
        except Exception as error:  # no promise was made, whatever went wrong
            result.refused[from_moments] += 1
            if not from_moments:
                text = " ".join(str(error).split())[:120]
                result.refusals[f"{type(error).__name__}: {text}"] += 1


def _fitted(
    trial: Trial, X: Any, y: NDArray[Any], seed: int
) -> tuple[Any, Any, NDArray[Any]]:
    """A model fitted to rows, and the rows it has seen."""
    model = trial.built(seed)
    if not trial.detects(model):
        model.fit(X, y)
    else:
        X, y = X[y != -1], y[y != -1]
        model.fit(X)
    return model, X, y


def _fitted_to_moments(
    trial: Trial, X: Any, y: NDArray[Any], seed: int
) -> tuple[Any, Any, NDArray[Any]]:
    """A model given the moments of the rows, which are a law with these moments."""
    model = trial.built(seed)
    if not hasattr(model, "from_moments"):
        return None, X, y
    labels = np.zeros(len(y), dtype=int) if trial.detects(model) else y
    classes, counts = np.unique(labels, return_counts=True)
    groups = [X[labels == label] for label in classes]
    means = np.array([rows.mean(axis=0) for rows in groups])
    centred = [rows - rows.mean(axis=0) for rows in groups]
    covariances = np.array([rows.T @ rows / len(rows) for rows in centred])
    given = {} if trial.detects(model) else {"classes": classes}
    settings = {**given, **model.get_params(deep=False)}
    model = type(model).from_moments(means, covariances, counts, **settings)
    return model, X, y


def _held(
    trial: Trial, law: Law, model: Any, X: Any, y: NDArray[Any], seed: int
) -> Iterator[Draw]:
    """The promises of one model and their truth."""
    classes = np.asarray(getattr(model, "classes_", np.unique(y)))
    fresh: dict[int, tuple[Answers, NDArray[Any]]] = {}
    known: dict[bool, Answers] = {}

    def asked(rows: Any) -> Answers:
        return Answers(model, rows, trial.answer, classes)

    def stage(number: int) -> tuple[Answers, NDArray[Any]]:
        if number not in fresh:
            rng = np.random.default_rng((seed, number + 1))
            rows, labels = law.draw(FRESH_ROWS[number], rng)
            fresh[number] = asked(rows), labels
        return fresh[number]

    for claim in trial.claims(model):
        if claim.quantity in NOT_A_RATE:
            continue
        if not demands(claim) <= set(law.satisfies) and not trial.on_request:
            continue
        own = is_about_training_rows(claim)
        measured: Measured | None
        if own or law.truth is not None:
            whole = (X, y, np.full(len(y), 1 / len(y)))
            rows, labels, chances = law.truth if law.truth and not own else whole
            said = known.setdefault(own, asked(rows))
            measured = exact_rate(claim, said, labels, chances)
        else:
            measured = counted_rate(claim, stage, counting_error(claim))
        if measured is not None:
            yield Draw(seed, claim, measured)
