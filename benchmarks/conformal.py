"""Full conformal p-values against one prediction of the same rows, and against fits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.timing import Workload
from prudent import ConformalClassifier, ConformalDetector

# Model; training rows, columns, classes; largest ratio to one prediction of 1000 rows.
SIZES = (
    ("blend", 40, 5, 2, 20),
    ("blend", 200, 10, 2, 100),
    ("blend", 500, 20, 4, 220),
    ("blend", 1000, 30, 2, 200),
    ("blend", 500, 10, 11, 640),
    ("blend", 2000, 10, 2, 1340),
    ("gaussian", 200, 10, 2, 40),
    ("gaussian", 500, 10, 2, 70),
    ("gaussian", 500, 20, 4, 200),
    ("gaussian", 500, 10, 11, 1000),
    ("gaussian", 500, 60, 2, 40),
    ("gaussian", 4000, 10, 2, 350),
)


def rows(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping normal classes of equal sizes."""
    y = np.arange(n) % n_classes
    X = np.random.default_rng(n).normal(size=(n, d))
    return X + 0.5 * y[:, None], y


def workloads() -> Iterator[Workload]:
    for name, n, d, n_classes, goal in SIZES:
        X, y = rows(n, d, n_classes)
        fresh, _ = rows(1000, d, n_classes)
        model = ConformalClassifier(method="full", model=name).fit(X, y)
        peer = QuadraticDiscriminantAnalysis().fit(X, y)
        yield Workload(
            f"1000 rows by the {name}, ({n}, {d}), {n_classes} classes",
            lambda model=model, fresh=fresh: model.p_values(fresh),
            "QDA.predict",
            lambda peer=peer, fresh=fresh: peer.predict(fresh),
            goal,
            repeats=5 if n * n_classes < 4000 else 3,
        )
        if name == "blend":
            # As many rows and labels as make this 100 times faster than a fit of each.
            yield Workload(
                f"{100 // n_classes} rows by the blend, ({n}, {d})",
                lambda model=model, few=fresh[: 100 // n_classes]: model.p_values(few),
                "one fit of it",
                lambda X=X, y=y, new=fresh[:1]: (
                    ConformalClassifier(method="full").fit(X, y).p_values(new)
                ),
                1,
                repeats=2,
            )
    X, y = rows(200, 10, 2)
    fresh, _ = rows(1000, 10, 2)
    model = ConformalClassifier().fit(X, y)
    one = QuadraticDiscriminantAnalysis()
    yield Workload(
        "10 rows",
        lambda: model.p_values(fresh[:10]),
        "one fit a row and label",
        lambda: [one.fit(X, y) for _ in range(20)],
        1 / 5,
    )
    yield Workload(
        "1000 rows",
        lambda: model.p_values(fresh),
        "one fit a row and label",
        lambda: [one.fit(X, y) for _ in range(2000)],
        1 / 100,
        repeats=2,
    )
    X, fresh = rows(400, 10, 1)[0], rows(1000, 10, 1)[0]
    yield Workload(
        "detector, fit 400 + score 1000 rows",
        lambda: ConformalDetector().fit(X).score_samples(fresh),
        "LocalOutlierFactor",
        lambda: LocalOutlierFactor(novelty=True).fit(X).score_samples(fresh),
        5,
    )
