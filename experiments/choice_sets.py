"""Choosing among six methods under a promise, on ten sets: what each way answers.

A draw of 200 or 500 rows, of which 40 % are held out; 3000 other rows, or all that
there are, stand for the truth. The choice is made by the training part ("best"); by the
held-out rows among promises at a sixth of the level ("all at level / 6"); by one half
of them ("half"); or beforehand. Promises: error <= 10 % and <= 5 % (share of rows
answered), 90 % in every class (size of the sets, on average over training samples), the
second most frequent class missed in <= 10 % (error of the others; 1 where the held-out
rows are too few; sets where they are not on average).

python -m experiments.choice_sets [--draws N] [--sets larger|others|NAME,...]
                                  [--boosting METHOD] [--cells FILE]

With --draws 10 there are 10 draws of 200 rows and 8 of 500, so that the mean of a way
over ten sets has a standard error of about .02 (answered, 200 rows): the choice by the
training part answers .350 / .523 of the rows of the larger sets at 10 % and .171 / .415
at 5 %, and its sets hold 1.81 / 1.29 classes. `FILE` keeps every draw.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold

from experiments.benchmark_data import load
from prudent import (
    ConformalClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
)
from prudent.certification.held_out import class_scores
from prudent.core.binomial import fewest_rows
from prudent.core.classes import log_odds_against, max_probability
from prudent.evaluation.methods import choose
from prudent.exceptions import InfeasibleError
from prudent.rules.usefulness import (
    Usefulness,
    answers_usefulness,
    class_errors_usefulness,
    ranking,
    sets_usefulness,
)

LARGER = (
    "adult", "magic", "pulsar", "satellite", "wall_following", "segment",
    "banknote_authentication", "wine_quality_red", "qsar_biodegradation",
    "german_numer",
)  # fmt: skip
#: Tables that played no part in making the choice.
OTHERS = (
    "australian", "blood_transfusion", "climate_model", "fourclass", "ilpd",
    "mammographic_mass", "pima_diabetes", "splice", "svmguide3", "vehicle",
)  # fmt: skip
NAMES = ("logistic", "boosting", "lda", "qda", "minimax", "imprecise")
HELD_OUT, CONFIDENCE, TRUTH, FEWEST = 0.4, 0.95, 3000, 200
PROMISES = ("error <= 10%", "error <= 5%", "90% in every class", "one class <= 10%")
WAYS = ("best", "all at level / 6", "half", *NAMES)


def table(name: str) -> tuple[NDArray, NDArray]:
    """Rows and codes of the labels; wine in two classes, gaps at their median."""
    X, y = load(name)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    if name == "wine_quality_red":
        y = y > 5
    return X, np.unique(y, return_inverse=True)[1]


def fitted(method: Any, X: NDArray, y: NDArray) -> Any:
    """The method on these rows; classes of one row are left out."""
    kept = np.bincount(y)[y] > 1
    return method.estimator(0).fit(X[kept], y[kept])


def out_of_fold(method: Any, X: NDArray, y: NDArray, n_classes: int) -> NDArray:
    """Scores of the classes by five plain folds."""
    scores = np.zeros((len(y), n_classes))
    for train, judged in KFold(5, shuffle=True, random_state=0).split(X):
        model = fitted(method, X[train], y[train])
        columns = np.ix_(judged, model.classes_)
        scores[columns] = class_scores(model, X[judged])[0]
    return scores


def usefulness(promise: str, scores: NDArray, y: NDArray, m: int, c: int) -> Usefulness:
    """What the training rows tell of a candidate."""
    if promise.startswith("error"):
        wrong = scores.argmax(axis=1) != y
        rate = 0.1 if "10" in promise else 0.05
        sure = max_probability(scores)
        return answers_usefulness(sure, wrong, m, rate=rate, confidence=CONFIDENCE)
    if promise.startswith("90"):
        plausible = -log_odds_against(scores)
        return sets_usefulness(plausible, y, rates=0.1, by_class=True, confidence=None)
    limits = {c: 0.1}
    return class_errors_usefulness(scores, y, m, limits=limits, confidence=CONFIDENCE)


def kept(promise: str, model: Any, X: NDArray, y: NDArray, c: int, delta: float) -> Any:
    """The promise around a fitted model by held-out rows; None: there is none."""
    frozen, sure = FrozenEstimator(model), {"confidence": 1 - delta}
    if promise.startswith("error"):
        rate = 0.1 if "10" in promise else 0.05
        return SelectiveClassifier(frozen, error_rate=rate, **sure).fit(X, y)
    if promise.startswith("90"):
        return ConformalClassifier(
            frozen, method="split", condition="class", level=0.1
        ).fit(X, y)
    try:
        return NeymanPearsonClassifier(frozen, max_class_error={c: 0.1}, **sure).fit(
            X, y
        )
    except InfeasibleError:
        return None


def worth(promise: str, wrapped: Any, X: NDArray, y: NDArray, c: int) -> float:
    """Share of rows answered, size of the sets, or error of the other classes."""
    if wrapped is None:
        return 1.0
    if promise.startswith("error"):
        return float(wrapped.answers(X).mean())
    if promise.startswith("90"):
        return float(wrapped.predict_set(X).sum(axis=1).mean())
    others = y != c
    return float((wrapped.predict(X) != y)[others].mean())


def one_draw(name: str, n: int, seed: int, methods: Sequence[Any]) -> dict[Any, float]:
    """Worth of every way to choose, by promise, on one draw."""
    X, y = table(name)
    rows = np.random.default_rng(seed).permutation(len(y))
    held_out, train, truth = np.split(rows[: n + TRUTH], [round(HELD_OUT * n), n])
    m, n_classes = len(held_out), int(y.max()) + 1
    c = int(np.argsort(-np.bincount(y), kind="stable")[1])
    half = len(held_out) // 2
    choosing, proving = held_out[:half], held_out[half:]
    models = [fitted(method, X[train], y[train]) for method in methods]
    folds = [out_of_fold(method, X[train], y[train], n_classes) for method in methods]
    found: dict[Any, float] = {}
    for promise in PROMISES:
        sign = 1 if promise.startswith("error") else -1

        def wrapped(rows: NDArray, delta: float, model: Any, promise=promise) -> Any:
            return kept(promise, model, X[rows], y[rows], c, delta)

        def on(rows: NDArray, made: Any, promise=promise) -> float:
            return worth(promise, made, X[rows], y[rows], c)

        delta = 1 - CONFIDENCE
        alone = [on(truth, wrapped(held_out, delta, model)) for model in models]
        useful = [usefulness(promise, s, y[train], m, c) for s in folds]
        shared = [wrapped(held_out, delta / len(models), model) for model in models]
        largest = int(np.argmax([sign * on(held_out, made) for made in shared]))
        # The half that chooses is as if it proved.
        first = [on(choosing, wrapped(choosing, delta, model)) for model in models]
        chosen = models[int(np.argmax(sign * np.array(first)))]
        values = {
            "best": alone[int(ranking(useful)[0])],
            "all at level / 6": on(truth, shared[largest]),
            "half": on(truth, wrapped(proving, delta, chosen)),
            **dict(zip(NAMES, alone, strict=True)),
        }
        n_of_class = int((y[held_out] == c).sum())
        enough = n_of_class >= fewest_rows(0.1, CONFIDENCE)
        for way, value in values.items():
            found[promise, way] = value
        found["rows of the class", "enough"] = float(enough)
    return found


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every draw as a row of figures."""
    methods = choose([options.boosting if k == "boosting" else k for k in NAMES], ())
    cells = []
    known = {"larger": LARGER, "others": OTHERS}
    for name in known.get(options.sets, options.sets.split(",")):
        for n in (200, 500):
            if len(table(name)[1]) < n + FEWEST:
                continue  # too few rows to stand for the truth
            draws = options.draws if n == 200 else round(0.8 * options.draws)
            for seed in range(draws):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = one_draw(name, n, seed, methods)
                cells += [
                    {"set": name, "n": n, "seed": seed, "promise": p, "way": w, "v": v}
                    for (p, w), v in found.items()
                ]
            print(f"{name}, {n} rows: done", flush=True)
    return cells


def summary(cells: Sequence[dict[str, Any]], n: int, promise: str) -> dict[str, float]:
    """Means over draws, then over the sets, and of the best method of each set."""
    values = defaultdict(list)
    for cell in cells:
        if cell["n"] == n and cell["promise"] == promise:
            values[cell["set"], cell["way"]].append(float(cell["v"]))
    sets = sorted({name for name, _ in values})
    means = {key: float(np.mean(draws)) for key, draws in values.items()}
    pick = max if promise.startswith("error") else min
    found = {way: float(np.mean([means[s, way] for s in sets])) for way in WAYS}
    found["oracle"] = float(
        np.mean([pick(means[s, way] for way in NAMES) for s in sets])
    )
    errors = [np.var(values[s, "best"], ddof=1) / len(values[s, "best"]) for s in sets]
    found["± of best"] = float(np.sqrt(np.sum(errors))) / len(sets)
    return found


def main() -> None:
    """Measure, keep the cells, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--sets", default="larger", help="larger, others, or names of sets"
    )
    parser.add_argument("--boosting", default="boosting")
    parser.add_argument("--cells", type=Path)
    options = parser.parse_args()
    cells = measure(options)
    if options.cells is not None:
        with options.cells.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(cells[0]))
            writer.writeheader()
            writer.writerows(cells)
    # A small set has no draws of the larger size.
    sizes = sorted({cell["n"] for cell in cells})
    for promise in PROMISES:
        columns = [summary(cells, n, promise) for n in sizes]
        print(promise, *sizes)
        for way in columns[0]:
            figures = (f"{column[way]:.3f}" for column in columns)
            print(f"  {way:18} {' / '.join(figures)}")


if __name__ == "__main__":
    main()
