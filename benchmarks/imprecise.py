"""Imprecise sets against scikit-learn's precise rule, their own precise rule, single
predictions along the path, and SCIP for one non-convex value."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from experiments.benchmark_data import load
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold

from benchmarks.timing import Workload
from prudent import ImpreciseDiscriminantAnalysis, ImpreciseDiscriminantAnalysisCV
from prudent.imprecise.boxes import max_cut_dual
from prudent.imprecise.optima import box_maximum

BUNDLED = {"iris": load_iris, "wine": load_wine, "optdigits": load_digits}
NAMES = (
    *("iris", "wine", "seeds", "glass", "ecoli", "vowel", "vehicle"),
    *("wine_quality_red", "segment", "optdigits", "forest_types", "libras"),
)
N_ROWS = 1500
GRID = np.arange(1, 501) / 100


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features that vary, labels as numbers."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load(name)
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.unique(y, return_inverse=True)[1]


def batch(X: np.ndarray) -> np.ndarray:
    """The rows again and again, in random order, until there are N_ROWS."""
    rng = np.random.default_rng(0)
    return X[rng.permutation(np.resize(np.arange(len(X)), N_ROWS))]


def quietly(function: Callable[[], object]) -> Callable[[], object]:
    """The call without the warnings that tiny classes and node limits rightly give."""

    def call() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()

    return call


def sets_against_precise(name: str) -> Iterator[Workload]:
    """`predict_set` against QDA, and against the own precise prediction."""
    X, y = data(name)
    rows = batch(X)
    qda = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)
    quietly(lambda: qda.fit(X, y))()
    for kind, c in itertools.product(("full", "tied"), (1.0, 5.0)):
        model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=c)
        quietly(lambda model=model: model.fit(X, y))()
        ours = quietly(lambda model=model: model.predict_set(rows))
        hard = name == "libras"
        goal = 100.0 if hard and kind == "tied" else 15.0
        yield Workload(
            f"{name} {kind} c={c:g}: predict_set",
            ours,
            "QDA.predict",
            lambda: qda.predict(rows),
            goal,
            1 if hard else 5,
        )
        if kind == "full":
            yield Workload(
                f"{name} {kind} c={c:g}: predict_set",
                ours,
                "own predict",
                lambda model=model: model.predict(rows),
                3.0,
                1 if hard else 5,
            )


def path_against_predictions(name: str, kind: str) -> Workload:
    """500 imprecisions over five folds at once, against one after the other."""
    X, y = data(name)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    cv = ImpreciseDiscriminantAnalysisCV(covariance_type=kind, cv=folds)

    def one_by_one() -> None:
        for train, test in folds:
            model = ImpreciseDiscriminantAnalysis(covariance_type=kind)
            model.fit(X[train], y[train])
            for c in GRID:
                model.set_params(imprecision=c).predict_set(X[test])

    return Workload(
        f"{name} {kind}: path of 500",
        quietly(lambda: cv.fit(X, y)),
        "500 predict_set",
        quietly(one_by_one),
        1 / 20,
        1,
    )


def value_against_scip(n_features: int) -> Workload:
    """One non-convex value of a row far from its class."""
    import pyscipopt

    rng = np.random.default_rng(n_features)
    root = rng.normal(size=(n_features, 2 * n_features))
    coupling = root @ root.T / n_features
    dual = max_cut_dual(coupling)
    field = 5 * rng.normal(size=n_features)

    def ours() -> float:
        best = np.where(field < 0, -1.0, 1.0)
        bracket = box_maximum(coupling, dual, field, 0.5, best, -np.inf, np.inf, 10**7)
        return bracket[0]

    def scip() -> float:
        model = pyscipopt.Model()
        model.hideOutput()
        signs = [2 * model.addVar(vtype="B") - 1 for _ in range(n_features)]
        value = pyscipopt.quicksum(f * s for f, s in zip(field, signs, strict=True))
        for i, j in itertools.combinations(range(n_features), 2):
            value += 0.5 * coupling[i, j] * signs[i] * signs[j]
        height = model.addVar(lb=None)
        model.addCons(height <= value)
        model.setObjective(height, "maximize")
        model.optimize()
        return model.getObjVal()

    return Workload(f"one value, p={n_features}", ours, "SCIP", scip, 1 / 1000, 1)


def workloads() -> Iterator[Workload]:
    """Everything, the quick ones first."""
    for n_features in (18, 30):
        yield value_against_scip(n_features)
    for name in NAMES:
        yield from sets_against_precise(name)
    for name in ("wine", "seeds", "glass", "vowel", "vehicle", "segment"):
        for kind in ("full", "tied"):
            yield path_against_predictions(name, kind)
