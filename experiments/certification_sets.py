"""Share of rows answered at an error rate of 5 %, and promises broken, on 17 sets.

The rows outside the training part are the population: held-out rows are drawn from
them with replacement, so that every true rate is known exactly. Beside the boundary:
SGR (bisection, Geifman and El-Yaniv 2017) and the plug-in threshold, without proof.

± is the standard deviation over other splits into training part and population.

python -m experiments.certification_sets [--sets ..] [--models ..] [--splits N]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from math import ceil, inf, log2

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from experiments.benchmark_data import load
from prudent.certification.held_out import answer_scores
from prudent.core.binomial import upper_limit
from prudent.rules.make import SelectiveError, Terms
from prudent.rules.scores import AnswerScores

SETS = (
    "breast_cancer", "digits", "magic", "pulsar", "satellite", "letter_recognition",
    "wall_following", "segment", "optdigits", "banknote_authentication",
    "wine_quality_red", "yeast", "pima_diabetes", "german_numer", "adult",
    "qsar_biodegradation", "vowel",
)  # fmt: skip
RATE, DELTA, HELD_OUT, DRAWS = 0.05, 0.05, 500, 200
TRAINING_SHARE, MOST_TRAINING_ROWS = 0.7, 4000
MODELS = {
    "logistic": LogisticRegression(max_iter=2000),
    "LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "QDA": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "minimax": prudent.MinimaxProbabilityClassifier(),
    "optimistic": prudent.OptimisticScoreClassifier(random_state=0),
    "imprecise": prudent.ImpreciseDiscriminantAnalysis(),
    "calibrated": prudent.RiskCalibratedClassifier(random_state=0),
}
Rule = Callable[[AnswerScores], float]


def by_boundary(rows: AnswerScores) -> float:
    """The boundary of `SelectiveClassifier`."""
    terms = Terms(confidence=1 - DELTA)
    return SelectiveError(scores=rows, terms=terms).rule(RATE).thresholds[0]


def by_sgr(rows: AnswerScores) -> float:
    """Bisection over ranks, each test at an equal part of the level."""
    n, low, high, found = rows.n_rows, 1, rows.n_rows, inf
    steps = ceil(log2(n))
    for _ in range(steps):
        middle = ceil((low + high) / 2)
        limit = upper_limit(int(rows.wrong[middle]), middle, level=DELTA / steps)
        if limit <= RATE:
            found, low = float(rows.sureness[middle]), middle
        else:
            high = middle
    return found


def by_plug_in(rows: AnswerScores) -> float:
    """Largest answered set whose measured error is small enough."""
    ranks = np.arange(1, rows.n_rows + 1)
    good = np.flatnonzero(rows.wrong[1:] <= RATE * ranks)
    return float(rows.sureness[good[-1] + 1]) if len(good) else inf


RULES: dict[str, Rule] = {
    "boundary": by_boundary,
    "SGR": by_sgr,
    "plug-in": by_plug_in,
}


def parts(name: str, seed: int) -> list[NDArray]:
    """Training rows, rows of the population, and their labels, without gaps."""
    bundled = {"breast_cancer": load_breast_cancer, "digits": load_digits}
    X, y = bundled[name](return_X_y=True) if name in bundled else load(name)
    complete = np.isfinite(X).all(axis=1)
    size = min(int(TRAINING_SHARE * complete.sum()), MOST_TRAINING_ROWS)
    return train_test_split(
        X[complete],
        y[complete],
        train_size=size,
        stratify=y[complete],
        random_state=seed,
    )


def population(
    name: str, model: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of the rows not trained on, and which of them are answered wrong."""
    X, X_rest, y, y_rest = parts(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_pipeline(StandardScaler(), MODELS[model]).fit(X, y)
        scores, _ = answer_scores(fitted, X_rest, "max_probability")
    return scores, fitted.predict(X_rest) != y_rest


def measure(
    scores: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    seed: int,
    n_held_out: int = HELD_OUT,
    n_draws: int = DRAWS,
) -> dict[str, tuple[float, int]]:
    """Mean true share answered and number of broken promises of each rule."""
    rng = np.random.default_rng(seed)
    shares = {rule: [] for rule in RULES}
    broken = dict.fromkeys(RULES, 0)
    for _ in range(n_draws):
        drawn = rng.integers(len(scores), size=n_held_out)
        rows = AnswerScores.from_answers(scores[drawn], wrong[drawn])
        for rule, choose in RULES.items():
            answered = scores > choose(rows)
            shares[rule].append(answered.mean())
            broken[rule] += bool(answered.any() and wrong[answered].mean() > RATE)
    return {rule: (float(np.mean(shares[rule])), broken[rule]) for rule in RULES}


def main() -> None:
    """Print mean shares over the sets, their spread over splits, broken promises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--splits", type=int, default=1)
    options = parser.parse_args()
    for model in options.models:
        found = []
        for seed in range(options.splits):
            found.append([])
            for name in options.sets:
                try:
                    found[-1].append(measure(*population(name, model, seed), seed))
                except (ValueError, np.linalg.LinAlgError) as error:  # few rows
                    reason = str(error).split(".")[0]
                    print(f"{model}, {name}, split {seed}: left out, {reason}")
        cells = []
        for rule in RULES:
            shares = [np.mean([cell[rule][0] for cell in split]) for split in found]
            broken = [cell[rule][1] for split in found for cell in split]
            spread = f" ± {np.std(shares, ddof=1):.3f}" if len(found) > 1 else ""
            cells.append(
                f"{rule} {np.mean(shares):.3f}{spread} (broken {sum(broken)} of "
                f"{DRAWS * len(broken)}, most {max(broken)} of {DRAWS})"
            )
        print(f"{model}: {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
