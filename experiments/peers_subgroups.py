"""Limits of the error in subgroups of adult: `certify` next to fairlearn's bootstrap.

Boosting learns from 3000 rows of adult; 500 or 2000 others say what its error in each
of six subgroups is at most; the rest of the table is the truth.

python -m experiments.peers_subgroups [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import zero_one_loss

from experiments.benchmark_data import folder
from experiments.cells import Scale, Tasks
from experiments.peer_data import timed
from experiments.subgroups import adult, boosting
from experiments.table import Table, show
from prudent import certify

TRAINING, ROWS, DRAWS, RESAMPLES = 3000, (500, 2000), 20, 1000
CONFIDENCE = 0.95
#: Of the races of adult the small ones are one subgroup.
LARGE_RACES = ("White", "Black")
OURS = "prudent, certify"
EACH, JOINT = "fairlearn, each at 95 %", "fairlearn, 95 % shared among them"


def cells(scale: Scale) -> Tasks:
    """One cell a draw and number of rows."""
    if not folder().is_dir():
        return {}
    draws, sizes = (2, ROWS[:1]) if scale == "quick" else (DRAWS, ROWS)
    return {
        f"{n} {draw}": partial(cell, n, draw) for n in sizes for draw in range(draws)
    }


def subgroups_of(X: pd.DataFrame) -> pd.Series:
    """Sex and race of each row."""
    race = X["race"].where(X["race"].isin(LARGE_RACES), "other")
    return X["sex"] + ", " + race


def cell(n: int, draw: int) -> dict[str, dict[str, float]]:
    """Limits that are too low, mean limit and CPU seconds of each method."""
    X, y = adult()
    order = np.random.default_rng(draw).permutation(len(y))
    fit, held, new = np.split(order, [TRAINING, TRAINING + n])
    model = boosting(X.iloc[fit], y[fit])
    subgroup, answers = subgroups_of(X), model.predict(X)
    wrong = pd.Series(answers != y)
    truth = wrong[new].groupby(subgroup[new]).mean()
    given = answers[held], y[held], subgroup[held]
    ours, seconds = timed(partial(by_certify, *given))
    theirs, their_seconds = timed(partial(by_fairlearn, *given, draw))
    return {
        method: {
            "too low": int((limits < truth[limits.index]).sum()),
            "limit": float(limits.mean()),
            "seconds": spent,
        }
        for method, limits, spent in (
            (OURS, ours, seconds),
            *((method, limits, their_seconds) for method, limits in theirs.items()),
        )
    }


def by_certify(answers: Any, y: Any, subgroup: pd.Series) -> pd.Series:
    """Upper limits of the error in each subgroup; those of the classes hold, too."""
    promises = certify(
        None,
        answers,
        y,
        classes=[0, 1],
        confidence=CONFIDENCE,
        subgroups=subgroup.to_frame("group"),
    )
    return pd.Series(
        {
            promise.subgroup.removeprefix("group="): promise.bound
            for promise in promises
            if promise.quantity == "error rate" and promise.subgroup is not None
        }
    )


def by_fairlearn(
    answers: Any, y: Any, subgroup: pd.Series, seed: int
) -> dict[str, pd.Series]:
    """Upper ends of bootstrap intervals of fairlearn, each alone and Bonferroni's."""
    from fairlearn.metrics import MetricFrame

    level = 1 - CONFIDENCE
    frame = MetricFrame(
        metrics=zero_one_loss,
        y_true=y,
        y_pred=answers,
        sensitive_features=subgroup.to_numpy(),
        n_boot=RESAMPLES,
        ci_quantiles=[1 - level, 1 - level / subgroup.nunique()],
        random_state=seed,
    )
    return dict(zip((EACH, JOINT), frame.by_group_ci, strict=True))


def tables(values: Mapping[str, Any]) -> list[Table]:
    """One row a number of rows and method."""
    lines = []
    sizes = list(dict.fromkeys(key.split()[0] for key in values))
    for n in sizes:
        draws = [value for key, value in values.items() if key.split()[0] == n]
        for method in (OURS, EACH, JOINT):
            found = [draw[method] for draw in draws]
            false = sum(each["too low"] > 0 for each in found)
            limit = np.mean([each["limit"] for each in found])
            seconds = np.median([each["seconds"] for each in found])
            lines.append(
                (
                    *(n, method, f"{false} of {len(draws)}", f"{limit:.3f}"),
                    f"{1000 * seconds:.0f}",
                )
            )
    return [
        Table(
            "Limits of the error in six subgroups of adult, at 95 % confidence",
            (
                *("rows", "method", "draws with a limit too low", "mean limit"),
                "milliseconds",
            ),
            lines,
            (
                f"Boosting on {TRAINING} rows; sex by race (White, Black, other); "
                "upper limits of the error, against the rest of the table. A draw "
                "counts when at least one of the six is below the error there. "
                "Confidence 95 % allows 1 of 20 where the limits hold at once, up to "
                "6 of 20 where each holds alone.",
                f"fairlearn: upper ends of MetricFrame's intervals of {RESAMPLES} "
                "bootstrap samples, at the quantile .95 or, to hold at once, 1 - .05 / "
                "6; one run gives both. certify's hold at once, together with that of "
                "all rows and those of the error of each class in each subgroup.",
            ),
        )
    ]


if __name__ == "__main__":
    scale: Scale = "quick" if "--quick" in sys.argv[1:] else "default"
    for table in tables({key: task() for key, task in cells(scale).items()}):
        show(table)
