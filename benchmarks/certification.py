"""Choosing a threshold on held-out rows, against sorting them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import Workload
from prudent import SelectiveClassifier
from prudent.rules.make import SelectiveError
from prudent.rules.rule import Terms
from prudent.rules.scores import AnswerScores

ROWS = 100_000


def workloads() -> Iterator[Workload]:
    """The threshold alone, and a whole fit beyond asking the model."""
    rng = np.random.default_rng(0)
    scores = rng.random(ROWS)
    wrong = rng.random(ROWS) < 0.2 * (1 - scores)
    terms = Terms(confidence=0.95)

    def threshold() -> None:
        rows = AnswerScores.from_answers(scores, wrong)
        SelectiveError(scores=rows, terms=terms).rule(0.05)

    threshold()  # the boundary is kept
    yield Workload(
        "threshold of 1e5 held-out rows",
        threshold,
        "one stable argsort",
        lambda: np.argsort(-scores, kind="stable"),
        goal=3,
    )
    X = rng.normal(size=(ROWS, 20))
    y = (X[:, 0] + 0.5 * rng.normal(size=ROWS) > 0).astype(int)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    wrapper = SelectiveClassifier(FrozenEstimator(model))

    def by_hand() -> None:
        model.predict(X)
        order = model.predict_proba(X).max(axis=1)
        for _ in range(3):
            np.argsort(order, kind="stable")

    yield Workload(
        "selective fit on 1e5 held-out rows",
        lambda: wrapper.fit(X, y),
        "predict, predict_proba and three stable argsorts",
        by_hand,
        goal=1,
    )
