"""From the parameters and the rows of a calibrated classifier to what `learn` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from prudent.calibration.ascent import StepRule
from prudent.calibration.families import PriorStrengths
from prudent.calibration.model import Model
from prudent.calibration.reading import row_keys
from prudent.calibration.settings import Settings
from prudent.calibration.stream import Stream, classes_after
from prudent.calibration.trials import Trial, dealt_folds
from prudent.core.classes import class_costs
from prudent.core.rows import Block, LocalRows, Rows
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools import hold_out_rows


def settings_of(classifier: Any, n_classes: int) -> Settings:
    """The parameters of a classifier as the mathematics takes them."""
    is_tm = classifier.method == "tm"  # maximum likelihood, full steps
    costs = decision_costs = None
    if classifier.costs is not None:
        costs = decision_costs = class_costs(classifier.costs, n_classes)
    elif classifier.loss == "zero_one":
        costs = 1.0 - np.eye(n_classes)
    return Settings(
        family=classifier.family,
        method=classifier.method,
        strengths=PriorStrengths() if is_tm else _prior_strengths(classifier),
        n_levels=classifier._reader.n_levels,
        rule=StepRule(
            learning_rate=1.0 if is_tm else classifier.learning_rate,
            freeze=classifier.guard == "freeze",
            line_search=classifier.line_search and not is_tm,
            adaptive=classifier.step == "adaptive",
        ),
        stopping=classifier.stopping,
        max_iter=classifier.max_iter,
        costs=costs,
        decision_costs=decision_costs,
        generative_weight=classifier.generative_weight,
        batch_size=classifier.batch_size,
        n_random_starts=classifier.n_init if classifier.init == "random" else 0,
    )


def _prior_strengths(classifier: Any) -> PriorStrengths:
    mean, covariance = (
        None if prior is None else np.asarray(prior, dtype=np.float64)
        for prior in (classifier.mean_prior, classifier.covariance_prior)
    )
    covariances = classifier.covariance_prior_strength
    levels = np.asarray(classifier.level_prior_strength, dtype=np.float64)
    return PriorStrengths(
        classes=classifier.class_prior_strength,
        means=classifier.mean_prior_strength,
        covariances=None if isinstance(covariances, str) else covariances,
        levels=float(levels) if levels.ndim == 0 else tuple(levels.tolist()),
        mean=mean,
        covariance=covariance,
    )


def streamed(
    classifier: Any,
    stream: Stream | None,
    declared: ArrayLike | None,
    rows: Any,
    y: NDArray[Any],
    weight: FloatArray,
) -> tuple[Stream, Model | None]:
    """Stream with one more batch, and its rule as soon as there is one."""
    known = classes_after(stream, declared, y)
    block = Block(rows, np.searchsorted(known, y), weight)
    settings = settings_of(classifier, len(known))
    if stream is None:
        stream = Stream.begin(settings, block, known, declared is not None)
    stream = stream.with_classes(known).add(block, settings)
    decision_costs = settings.decision_costs
    return stream, stream.model(decision_costs) if stream.is_solved() else None


def drawn_seed(classifier: Any) -> int:
    """One seed for folds, batches and the hold-out."""
    random = check_random_state(classifier.random_state)
    return int(random.randint(np.iinfo(np.int32).max))


def held_out_trial(
    classifier: Any, block: Block, seed: int, groups: NDArray[Any] | None
) -> Trial:
    """Rows to fit and rows held out, with the levels that the former know."""
    split = hold_out_rows(
        classifier,
        row_keys(block.X),
        classifier.validation_fraction,
        np.random.RandomState(seed),
        groups,
    )
    trial = Trial(block.taken(split.fit), block.taken(split.held_out))
    # What the held-out rows alone know is not known to a fit they judge.
    seen = trial.seen_levels(classifier._reader.n_levels)
    classifier._reader = classifier._reader.restricted(seen)
    return trial.recoded(seen)


def trials_of_folds(
    cv: Any,
    block: Block,
    y: NDArray[Any],
    kept: IntArray,
    groups: NDArray[Any] | None,
    seed: int,
) -> Iterator[Rows] | None:
    """Trials of the cross-validation; None if a class cannot be validated.

    `kept` are the places of the rows among those with the labels `y` and the `groups`
    given to `fit`.
    """
    cv = 5 if cv is None else cv
    if isinstance(cv, Integral):
        own = None if groups is None else groups[kept]
        pairs = dealt_folds(row_keys(block.X), block.codes, int(cv), seed, own)
        if not pairs:
            return None
    else:
        place = np.full(len(y), -1)
        place[kept] = np.arange(len(kept))
        splitter = check_cv(cv, y, classifier=True)
        pairs = [
            tuple(found[found >= 0] for found in (place[fit], place[test]))
            for fit, test in splitter.split(np.zeros((len(y), 1)), y, groups)
        ]
    # One fold at a time: each is a copy of nearly all rows.
    return (
        LocalRows([Trial(block.taken(fit), block.taken(test))]) for fit, test in pairs
    )


def watching(classifier: Any, X: Any, y: Any) -> Callable[[], bool]:
    """Tells scikit-learn's callbacks of each evaluation; whether to stop."""
    # A context costs as much as some evaluations of few rows.
    if not getattr(classifier, "_skl_callbacks", ()):
        return lambda: False
    context = classifier._init_callback_context(max_subtasks=classifier.max_iter)
    context.call_on_fit_task_begin(estimator=classifier, X=X, y=y)

    def watch() -> bool:
        evaluation = context.subcontext(task_name="evaluation")
        evaluation.call_on_fit_task_begin(estimator=classifier, X=X, y=y)
        return bool(evaluation.call_on_fit_task_end(estimator=classifier, X=X, y=y))

    return watch
