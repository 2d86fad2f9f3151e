"""Comparisons to be rendered: a real one, and one with hostile names."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

from prudent import Comparison, Guarantee, compare
from prudent.core.assumptions import Assumption
from prudent.core.checks import PromiseCheck
from prudent.evaluation.records import (
    ALARMS,
    CALIBRATION,
    MOVED,
    SCHEMA,
    ClassRate,
    Data,
    Failure,
    FoldScore,
    Frontier,
    MethodRow,
    RegionMap,
    RequestedPromise,
    Sets,
    Settings,
)

METHODS = ("optimistic", "minimax", "calibrated", "imprecise", "rejection")
BASELINES = ("lda", "qda", "logistic")


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def comparison(iris):
    """All methods on iris, without times."""
    return compare(*iris, best=False).without_timings()


def hostile_comparison(n_features, classes, n_folds=5, n_rows=1_000_000):
    """Every field filled as far as it goes, with names that try to break the page."""
    rng = np.random.default_rng(0)
    n_classes = len(classes)
    names = METHODS + BASELINES
    rows = tuple(_row(name, classes, n_rows, rng) for name in names[:-1])
    failed = MethodRow(
        method=names[-1],
        is_baseline=True,
        failure=Failure(kind="error", text='<img src=x onerror="alert(1)">' * 9),
    )
    return Comparison(
        data=Data(
            name="</title><script>alert(1)</script>",
            sha256="0" * 64,
            n_rows=n_rows,
            features=tuple(f"<script>{j}</script>" * 20 for j in range(n_features)),
            classes=classes,
            class_counts=(n_rows // n_classes,) * n_classes,
            constant_features=("<b>constant</b>",) * 30,
            notes=("column '<script>' is kept & noted",) * 10,
        ),
        settings=Settings(
            methods=METHODS,
            baselines=BASELINES,
            promise="coverage >= 90% in every class",
            n_folds=n_folds,
            n_repeats=1,
            random_state=0,
            n_jobs=1,
            time_limit=None,
            sample=100_000,
            command="prudent compare '<script>.csv'",
            peak_memory=10**9,
        ),
        rows=(*rows, failed),
        folds=tuple(
            FoldScore(
                method=row.method,
                repeat=1,
                fold=fold,
                n_train=100_000,
                n_test=n_rows // n_folds,
                error=rng.random(),
                set_size=1 + rng.random(),
                coverage=rng.random(),
                fit_seconds=rng.random(),
                predict_seconds=rng.random(),
            )
            for row in rows
            for fold in range(1, n_folds + 1)
        ),
        versions={"python": "3", "prudent": "0"},
        frontier=Frontier(
            kind="coverage",
            levels=(0.8, 0.9, 0.99),
            promises=("coverage >= 80%", "coverage >= 90%", "coverage >= 99%"),
            asked=0.9,
            about_rows=True,
            decided={row.method: (0.9, 0.8, 0.1) for row in rows},
            in_folds={row.method: (1.0, 1.0, 1.0) for row in rows},
            wrong={row.method: (0.2, 0.1, None) for row in rows},
            by_class={row.method: ((0.9, 0.8, 0.1),) * n_classes for row in rows},
        ),
        measured=pa.Table.from_pylist(
            [
                {"method": row.method, "asked": False} | item
                for row in rows
                for item in _curves(n_folds, rng)
            ],
            schema=SCHEMA,
        ),
    )


def _curves(n_folds, rng):
    for shift in np.linspace(0, 2, 9).tolist():
        count = float(rng.integers(2000))
        yield {"quantity": MOVED, "at": shift, "count": count, "n": 2000}
    for level, count in ((0.01, 9), (0.1, 101)):
        yield {"quantity": ALARMS, "at": level, "count": count, "n": 1000}
    for name, figure in zip(CALIBRATION, (0.2, 0.1, 3), strict=True):
        for _ in range(n_folds):
            yield {"quantity": name, "count": figure, "n": 1}


def _row(name, classes, n_rows, rng):
    n_classes = len(classes)
    counts = rng.integers(1, n_rows // n_classes**2, (n_classes, n_classes))
    promise = Guarantee(
        quantity="class error rate",
        bound=0.5,
        sense="<=",
        scope=classes[0],
        assumptions=(Assumption.MOMENTS_PLUG_IN,),
        source="Lanckriet et al. 2002, Theorem 2",
    )
    grid = rng.integers(0, n_classes, (48, 48))
    checked = tuple(
        PromiseCheck(
            guarantee=promise,
            violations=10,
            n=1000,
            p_broken=1.0,
            p_kept=0.0,
            check=promise.check(10, 1000),
        )
        for _ in classes
    )
    sets = Sets(
        mean_size=1.5,
        undecided=0.5,
        coverage=0.9,
        size_counts=tuple(rng.random(n_classes + 1).tolist()),
        class_mean_size=tuple(rng.random(n_classes).tolist()),
        class_coverage=tuple(rng.random(n_classes).tolist()),
    )
    return MethodRow(
        method=name,
        is_baseline=name in BASELINES,
        error=float(rng.random() / 2),
        error_interval=(0.0, 0.6),
        worst_class=ClassRate(label=classes[-1], rate=0.5),
        decided=0.8,
        wrong_when_decided=0.1,
        asked=RequestedPromise(
            kept="kept",
            useful=True,
            is_inside=True,
            items=checked,
            decided=0.8,
            wrong_when_decided=0.1,
            worst_covered=ClassRate(label=classes[0], rate=0.9),
            sets=sets,
        ),
        own=checked,
        own_kept="kept",
        sets=sets,
        confusion=tuple(map(tuple, counts.tolist())),
        fit_seconds=1.0,
        predict_seconds=1e-6,
        warnings=tuple(f"careful <{k}> " * 50 for k in range(10)),
        regions=RegionMap(
            x=np.linspace(-1, 1, 48),
            y=np.linspace(-1, 1, 48),
            sets=grid[:, :, None] == np.arange(n_classes),
            predicted=grid,
        ),
        parameters={"costs": "x" * 5000},
    )
