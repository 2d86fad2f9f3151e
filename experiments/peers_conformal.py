"""Conformal sets from few rows: how large they must be to keep the truth.

Every method draws the same training rows, 40, 100 or 200, and answers for the others;
sets may be empty. "Same model" is the Gaussian model of `ConformalClassifier` inside
the peer.

python -m experiments.peers_conformal [--quick]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmark_data import folder, load
from experiments.peer_data import BUNDLED, timed
from experiments.peers_errors import logistic
from experiments.table import Table, main
from prudent import ConformalClassifier

LEVELS = (0.1, 0.05)
ROWS = (40, 100, 200)
SETS = ("iris", "wine", "breast_cancer")
STORED = ("sonar", "heart", "vehicle", "vowel", "glass", "ecoli", "seeds")
FEWEST_OF_CLASS, FEWEST_NEW, MOST_NEW = 20, 50, 500
# Sets of the new rows at each level, and the labels of their columns.
Answer = tuple[list[NDArray[np.bool_]], NDArray[Any]]


def gaussian() -> Any:
    """The own Gaussian model, for the peers."""
    return ConformalClassifier(method="full", model="gaussian")


def ours(X: Any, y: Any, X_new: Any, seed: int, **settings: Any) -> Answer:
    """Sets of `ConformalClassifier`, which may be empty as those of the peers."""
    model = ConformalClassifier(random_state=seed, **settings).fit(X, y)
    sets = [model.predict_set(X_new, level, allow_empty=True) for level in LEVELS]
    return sets, model.classes_


def mapie_cross(X: Any, y: Any, X_new: Any, seed: int, base: Any) -> Answer:
    """Cross-conformal sets of MAPIE."""
    from mapie.classification import CrossConformalClassifier

    model = CrossConformalClassifier(
        base(),
        confidence_level=[1 - level for level in LEVELS],
        conformity_score="lac",
        cv=5,
        random_state=seed,
    ).fit_conformalize(X, y)
    # By default it asks the mean of the folds' models, whose sets promise nothing.
    sets = model.predict_set(X_new, agg_scores="crossval")[1]
    return [sets[..., i] for i in range(len(LEVELS))], np.unique(y)


def held_out(y: Any, seed: int) -> tuple[Any, Any]:
    """Rows to fit and rows to rank, 30 %."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.split(order, [round(0.7 * len(y))])


def mapie_split(X: Any, y: Any, X_new: Any, seed: int, base: Any) -> Answer:
    """Split conformal sets of MAPIE."""
    from mapie.classification import SplitConformalClassifier

    fit, rank = held_out(y, seed)
    model = SplitConformalClassifier(
        base(),
        confidence_level=[1 - level for level in LEVELS],
        conformity_score="lac",
        prefit=False,
        random_state=seed,
    )
    model.fit(X[fit], y[fit]).conformalize(X[rank], y[rank])
    sets = model.predict_set(X_new)[1]
    return [sets[..., i] for i in range(len(LEVELS))], np.unique(y[fit])


def crepes_split(X: Any, y: Any, X_new: Any, seed: int, base: Any) -> Answer:
    """Split conformal sets of crepes."""
    from crepes import WrapClassifier

    fit, rank = held_out(y, seed)
    model = WrapClassifier(base())
    model.fit(X[fit], y[fit])
    model.calibrate(X[rank], y[rank])
    ask = partial(model.predict_set, X_new, labels=False, smoothing=False)
    sets = [np.asarray(ask(confidence=1 - level), dtype=bool) for level in LEVELS]
    return sets, np.unique(y[fit])


GAUSSIAN = partial(ours, model="gaussian")
METHODS: dict[str, Callable[..., Answer]] = {
    "ConformalClassifier, full": ours,
    "ConformalClassifier, split": partial(ours, method="split"),
    "ConformalClassifier, full, Gaussian": GAUSSIAN,
    "ConformalClassifier, cross, Gaussian": partial(GAUSSIAN, method="cross"),
    "ConformalClassifier, split, Gaussian": partial(GAUSSIAN, method="split"),
    "MAPIE, cross, Gaussian": partial(mapie_cross, base=gaussian),
    "MAPIE, split, Gaussian": partial(mapie_split, base=gaussian),
    "crepes, split, Gaussian": partial(crepes_split, base=gaussian),
    "ConformalClassifier, cross, logistic": partial(
        ours, estimator=logistic(), method="cross"
    ),
    "MAPIE, cross, logistic": partial(mapie_cross, base=logistic),
    "crepes, split, logistic": partial(crepes_split, base=logistic),
}


@cache
def rows(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Rows of the classes of some size."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load(name)
    complete = np.isfinite(X).all(axis=1)
    X, y = X[complete], np.unique(y[complete], return_inverse=True)[1]
    large = np.isin(y, np.flatnonzero(np.bincount(y) >= FEWEST_OF_CLASS))
    return X[large], np.unique(y[large], return_inverse=True)[1]


def measure(method: Any, X: Any, y: Any, n: int, seed: int) -> list[float] | None:
    """Size and coverage at each level, and seconds; None if the method refuses."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, new = order[:n], order[n : n + MOST_NEW]
    try:
        call = partial(method, X[train], y[train], X[new], seed)
        (sets, labels), seconds = timed(call)
    except (ValueError, IndexError):  # crepes: a ranking row of an unknown class
        return None
    if any(one.shape[1] != len(labels) for one in sets):
        return None
    found = []
    for one in sets:
        truth = y[new][:, None] == labels
        found += [one.sum(axis=1).mean(), (one & truth).any(axis=1).mean()]
    return [*found, seconds]


def large_enough(names: Sequence[str], n: int) -> list[str]:
    """Sets with enough other rows, and with labels that n rows can hold."""
    # Eleven classes cannot all be among 40 rows.
    return [
        name
        for name in names
        if len(rows(name)[1]) >= n + FEWEST_NEW and (n > 40 or name != "vowel")
    ]


def run(quick: bool) -> Table:
    """One row a method: size and coverage at 90 % and 95 %, for each number of rows."""
    names = SETS[:1] if quick else (*SETS, *(STORED if folder().is_dir() else ()))
    seeds = range(2 if quick else 6)
    sizes = ROWS[:2] if quick else ROWS
    lines = []
    for title, method in METHODS.items():
        line: list[object] = [title]
        for n in sizes:
            found = [
                [measure(method, *rows(name), n, seed) for seed in seeds]
                for name in large_enough(names, n)
            ]
            if not all(one for each in found for one in each):
                line += ["–"] * 3
                continue
            mean = np.mean(found, axis=(0, 1))
            line += [
                f"{mean[0]:.3f} ({mean[1]:.3f})",
                f"{mean[2]:.3f} ({mean[3]:.3f})",
                f"{1000 * mean[4]:.0f}",
            ]
        lines.append(tuple(line))
    columns = ["method"]
    for n in sizes:
        columns += [f"{n} rows: size (coverage) at 90 %", "at 95 %", "milliseconds"]
    counts = ", ".join(str(len(large_enough(names, n))) for n in sizes)
    return Table(
        "Conformal sets from few rows: mean size and coverage over sets",
        columns,
        lines,
        (
            f"{len(seeds)} draws of {', '.join(names)}, classes of at least "
            f"{FEWEST_OF_CLASS} rows; {counts} of these sets have enough rows (vowel "
            "from 100). Sets may be empty. A dash: the method refused some draw (too "
            "few rows for the level, or a fold without a class).",
            "Full and split promise the level; cross promises about twice the misses. "
            "The defaults of the own model were chosen on these sets.",
        ),
    )


if __name__ == "__main__":
    main(run)
