"""Set-valued answers next to conformal prediction, on the same folds.

Sets of three classes or more: MAPIE offers APS for no others.

python -m experiments.peers_sets [--quick]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from experiments.peer_data import names, rows, timed
from experiments.peers_errors import FOLDS, MODELS, logistic
from experiments.table import Table, main
from prudent import (
    ConformalClassifier,
    ImpreciseDiscriminantAnalysis,
    ImpreciseDiscriminantAnalysisCV,
    MinimaxProbabilityClassifier,
    OptimisticScoreClassifier,
)
from prudent.metrics import coverage_score, set_size, u65_score, u80_score

CONFIDENCE = 0.9
SCORES = (coverage_score, u65_score, u80_score)
Sets = NDArray[np.bool_]


def _parts(X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Rows to fit and, 30 %, rows to calibrate conformal prediction."""
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)


def quadratic() -> Any:
    """The peers' quadratic rule, whose mathematics are nearest to ours."""
    return clone(MODELS["QDA, shrunk"])


def mapie(
    X: Any, y: Any, X_test: Any, score: str, base: Callable[[], Any] = logistic
) -> Sets:
    """Split conformal sets of MAPIE."""
    from mapie.classification import SplitConformalClassifier

    X_fit, X_hold, y_fit, y_hold = _parts(X, y)
    model = SplitConformalClassifier(
        base(),
        confidence_level=CONFIDENCE,
        conformity_score=score,
        prefit=False,
        random_state=0,
    )
    return (
        model.fit(X_fit, y_fit)
        .conformalize(X_hold, y_hold)
        .predict_set(X_test)[1][..., 0]
    )


def crepes(X: Any, y: Any, X_test: Any, by_class: bool) -> Sets:
    """Conformal sets of crepes, by class or not."""
    from crepes import WrapClassifier

    X_fit, X_hold, y_fit, y_hold = _parts(X, y)
    model = WrapClassifier(logistic())
    model.fit(X_fit, y_fit)
    model.calibrate(X_hold, y_hold, class_cond=by_class)
    sets = model.predict_set(X_test, labels=False, confidence=CONFIDENCE, seed=0)
    return np.asarray(sets, dtype=bool)


def posterior(X: Any, y: Any, X_test: Any, base: Callable[[], Any] = logistic) -> Sets:
    """The likeliest classes, until they hold 90 % of the posterior."""
    p = base().fit(X, y).predict_proba(X_test)
    order = np.argsort(-p, axis=1)
    before = np.take_along_axis(p, order, axis=1).cumsum(axis=1)
    before = np.c_[np.zeros(len(p)), before[:, :-1]]
    sets = np.empty(p.shape, dtype=bool)
    np.put_along_axis(sets, order, before < CONFIDENCE, axis=1)
    return sets


def own(X: Any, y: Any, X_test: Any, model: Any, **settings: Any) -> Sets:
    """Sets of one of our classifiers."""
    return model().fit(X, y).predict_set(X_test, **settings)


METHODS: dict[str, Callable[[Any, Any, Any], Sets]] = {
    "conformal, full": partial(own, model=ConformalClassifier),
    "MAPIE, LAC": partial(mapie, score="lac"),
    "MAPIE, LAC on QDA": partial(mapie, score="lac", base=quadratic),
    "MAPIE, APS": partial(mapie, score="aps"),
    "crepes": partial(crepes, by_class=False),
    "crepes, by class": partial(crepes, by_class=True),
    "posterior to 90 %": posterior,
    "posterior to 90 %, QDA": partial(posterior, base=quadratic),
    "imprecise, c = 1": partial(own, model=ImpreciseDiscriminantAnalysis),
    "imprecise, c by u65": partial(
        own,
        model=partial(
            ImpreciseDiscriminantAnalysisCV,
            scoring="u65",
            imprecisions=np.geomspace(0.01, 5, 40),
        ),
    ),
    "optimistic, radius / 10": partial(
        own, model=partial(OptimisticScoreClassifier, radius_scale=0.1)
    ),
    "minimax, level 0.3": partial(own, model=MinimaxProbabilityClassifier, level=0.3),
}


def measure(name: str, method: Any) -> NDArray[np.float64]:
    """Coverage, mean size, u65, u80, CPU seconds of each fold."""
    X, y = rows(name)
    labels = np.unique(y)
    found = []
    for train, test in FOLDS.split(X, y):
        call = partial(method, X[train], y[train], X[test])
        sets, seconds = timed(call)
        coverage, *utility = (score(y[test], sets, labels) for score in SCORES)
        found.append((coverage, np.mean(set_size(sets)), *utility, seconds))
    return np.array(found)


def run(quick: bool) -> Table:
    """One row a method, mean over sets; then coverage and size on each set."""
    table = []
    chosen = [name for name in names(quick) if rows(name)[1].max() > 1]
    for title, method in METHODS.items():
        folds_of = [measure(name, method) for name in chosen]
        summary = np.mean([f[:, :4].mean(axis=0) for f in folds_of], axis=0)
        seconds = np.mean([np.median(f[:, 4]) for f in folds_of])
        reached = sum(f[:, 0].mean() >= CONFIDENCE - 0.005 for f in folds_of)
        each = [f"{f[:, 0].mean():.2f} / {f[:, 1].mean():.2f}" for f in folds_of]
        figures = [f"{figure:.3f}" for figure in summary]
        share = f"{reached} of {len(chosen)}"
        table.append((title, *figures, share, f"{1000 * seconds:.0f}", *each))
    return Table(
        "Set-valued answers, confidence 90 %: mean over sets, then coverage / size",
        (
            *("method", "coverage", "size", "u65", "u80", "sets with coverage 90 %"),
            *("milliseconds", *chosen),
        ),
        table,
        (
            "Conformal and posterior sets come from the same logistic regression where "
            "nothing else is said. MAPIE and crepes hold out 30 % of the training "
            "rows, full conformal prediction none; they promise coverage 90 % on "
            "average over rows. "
            "The imprecise, optimistic and posterior sets promise no coverage; the "
            "minimax sets promise 30 % under every law with the estimated moments.",
            "Coverage counts as reached from 89.5 %, since a mean over folds varies.",
        ),
    )


if __name__ == "__main__":
    main(run)
