"""What a promise in every subgroup costs, and what the plain promise hides, on adult.

Sets: boosting on 3000 rows, 1000 calibration rows, 11 subgroups of sex, race and age
band, level 0.1, the other rows as truth, over several draws; sets are never empty.
Size, share of rows with one label, coverage, and the coverage of the subgroup that is
least covered on average over the draws. Answers: error <= 10 % at 95 % by n training
and n held-out rows; share answered, and in how many draws the promise is false.
With MAPIE installed its `ConditionalSplitConformalClassifier` stands beside, on fewer
rows, since each takes a linear programme.

python -m experiments.subgroups [--draws N] [--answers] [--picture FILE]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from experiments.benchmark_data import load_frame
from prudent import ConformalClassifier, SelectiveClassifier
from prudent.estimator_tools.subgroups import memberships_of
from prudent.exceptions import PrudentWarning
from prudent.plots import SubgroupDisplay
from prudent.rules.boundary import error_boundary
from prudent.rules.scores import AnswerScores
from prudent.rules.subgroups import Memberships, largest_p_values, scores_within

BY = ("sex", "race", "age:30,45,60")
LEVEL, ERROR = 0.1, 0.1
ROWS_BESIDE = 4000  # of MAPIE


def adult() -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of adult with words, and whether the income is above the limit."""
    frame = load_frame("adult_strings")
    target = frame.pop("target").to_numpy()
    return frame, (target == np.unique(target)[1]).astype(int)


def boosting(X: pd.DataFrame, y: np.ndarray) -> FrozenEstimator:
    """Boosting on these rows, words as ordinals."""
    words = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    encoded = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            words,
        ),
        remainder="passthrough",
    )
    model = make_pipeline(encoded, HistGradientBoostingClassifier(random_state=0))
    return FrozenEstimator(model.fit(X, y))


def figures(sets: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Mean size, share decided, coverage."""
    size = sets.sum(axis=1)
    return size.mean(), (size == 1).mean(), sets[np.arange(len(y)), y].mean()


def covered(sets: np.ndarray, y: np.ndarray, inside: Memberships) -> np.ndarray:
    """Coverage in each subgroup; NaN without rows."""
    held = sets[np.arange(len(y)), y]
    return np.array(
        [held[own].mean() if own.any() else np.nan for own in inside.members.T]
    )


def sets_table(n_draws: int) -> None:
    """Size and coverage of sets with and without subgroups."""
    X, y = adult()
    every = memberships_of(list(BY), X)
    cells = memberships_of(["*".join(BY)], X)
    variants = {
        "no subgroups": {},
        "largest p-value": {"subgroups": list(BY)},
        "one rank per cell": {"subgroups": ["*".join(BY)]},
        "by class": {"condition": "class"},
        "by subgroup and class": {"condition": "class", "subgroups": list(BY)},
    }
    found: dict[str, list] = {name: [] for name in variants}
    parts: dict[str, list] = {name: [] for name in variants}
    least, most = [], []
    for draw in range(n_draws):
        order = np.random.default_rng(draw).permutation(len(y))
        fit, held, new = order[:3000], order[3000:4000], order[4000:]
        model = boosting(X.iloc[fit], y[fit])
        count = every.members[held].sum(axis=0)
        least.append(count.min())
        most.append(count.max())
        for name, settings in variants.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrudentWarning)
                wrapped = ConformalClassifier(model, level=LEVEL, **settings)
                sets = wrapped.fit(X.iloc[held], y[held]).predict_set(X.iloc[new])
            found[name].append(figures(sets, y[new]))
            parts[name].append(covered(sets, y[new], every.taken(new)))
    n_cells = len(cells.names)
    print(
        f"sets: {n_draws} draws, {len(every.names)} subgroups of {min(least)} to "
        f"{max(most)} calibration rows, {n_cells} cells, {len(y) - 4000} test rows"
    )
    print("| | size | decided | covered | subgroup least covered on average |")
    for name, rows in found.items():
        size, decided, held_share = np.mean(rows, axis=0)
        worst = np.nanmin(np.nanmean(parts[name], axis=0))
        print(
            f"| {name} | {size:.3f} | {decided:.3f} | {held_share:.3f} | {worst:.3f} |"
        )


def seconds_a_label(n_rows: int = 40_000) -> float:
    """CPU seconds of the largest p-value, a row and label."""
    X, _ = adult()
    inside = memberships_of(list(BY), X)
    random = np.random.default_rng(0)
    own, new = random.random(1000), random.random((n_rows, 2))
    kept = scores_within(own, inside.taken(np.arange(1000)))
    members = inside.members[1000 : 1000 + n_rows]
    times = []
    for _ in range(7):
        start = time.process_time()
        largest_p_values(kept, new, members)
        times.append(time.process_time() - start)
    return min(times) / new.size


def answers_table(n_draws: int) -> None:
    """Share answered, and draws in which the promise is false in some subgroup."""
    X, y = adult()
    for n in (1000, 3000):
        for by in (BY[:1], (BY[0], BY[2]), BY):
            every = memberships_of(list(by), X)
            rows = []
            for draw in range(n_draws):
                order = np.random.default_rng(100 + draw).permutation(len(y))
                fit, held, new = np.split(order, [n, 2 * n])
                model = boosting(X.iloc[fit], y[fit])
                inside = every.members[new]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PrudentWarning)
                    plain, parted = (
                        SelectiveClassifier(
                            model, error_rate=ERROR, subgroups=option
                        ).fit(X.iloc[held], y[held])
                        for option in (None, list(by))
                    )
                    one = one_threshold(model, X.iloc[held], y[held], every.taken(held))
                X_new = X.iloc[new]
                wrong = model.predict(X_new) != y[new]
                sure = model.predict_proba(X_new).max(axis=1)
                given = (plain.answers(X_new), parted.answers(X_new), sure > one)
                rows.append(
                    [
                        value
                        for answered in given
                        for value in (answered.mean(), false(answered, wrong, inside))
                    ]
                )
            p, p_false, c, c_false, o, o_false = np.mean(rows, axis=0)
            print(
                f"answers: n {n}, {' x '.join(by)}: plain {p:.3f} (false in "
                f"{p_false:.2f}), own threshold of each cell {c:.3f} ({c_false:.2f}), "
                f"one threshold {o:.3f} ({o_false:.2f})",
                flush=True,
            )


def one_threshold(
    model: FrozenEstimator, X: pd.DataFrame, y: np.ndarray, inside: Memberships
) -> float:
    """Lowest score above which every subgroup proves the rate at delta / G."""
    sure = model.predict_proba(X).max(axis=1)
    wrong = model.predict(X) != y
    n_parts = len(inside.names)
    candidates = np.sort(np.unique(sure))
    admitted = np.ones(len(candidates), dtype=bool)
    for own in inside.members.T:
        rows = AnswerScores.from_answers(sure[own], wrong[own])
        boundary = error_boundary(
            max(rows.n_rows, 1), ERROR, confidence=1 - 0.05 / n_parts
        )
        k = np.array([(sure[own] > cut).sum() for cut in candidates])
        admitted &= (k > 0) & boundary.admits(np.maximum(k, 1), rows.wrong[k])
    return candidates[admitted][0] if admitted.any() else np.inf


def false(answered: np.ndarray, wrong: np.ndarray, inside: np.ndarray) -> bool:
    """Whether more than the promised share of the answers of a subgroup are wrong."""
    rates = [
        wrong[own & answered].mean() for own in inside.T if (own & answered).sum() > 50
    ]
    return max(rates, default=0.0) > ERROR


def beside_mapie() -> None:
    """The same promise by MAPIE: size, coverage, and milliseconds a row."""
    try:
        from mapie.conditional_conformal_prediction import (
            ConditionalSplitConformalClassifier,
        )
    except ImportError:
        print("MAPIE: no ConditionalSplitConformalClassifier is installed")
        return
    X, y = adult()
    every = memberships_of(list(BY), X)
    order = np.random.default_rng(0).permutation(len(y))
    fit, held, new = order[:3000], order[3000:4000], order[4000 : 4000 + ROWS_BESIDE]
    model = boosting(X.iloc[fit], y[fit])
    # Columns: two probabilities, then the subgroups; those that follow from others go.
    rows = np.column_stack([model.predict_proba(X), every.members]).astype(float)
    kept: list[int] = []
    for g in range(len(every.names)):
        tried = [*kept, g]
        if np.linalg.matrix_rank(every.members[held][:, tried]) == len(tried):
            kept = tried
    peer = ConditionalSplitConformalClassifier(
        feature_map=lambda row: row[:, [2 + g for g in kept]],
        estimator=Looked().fit(rows[fit], y[fit]),
        confidence_level=1 - LEVEL,
        seed=0,
    )
    peer.conformalize(rows[held], y[held])
    start = time.process_time()
    _, sets = peer.predict_set(rows[new])
    seconds = (time.process_time() - start) / len(new)
    sets = sets[:, :, 0]
    sets[np.arange(len(new)), rows[new, :2].argmax(axis=1)] = True
    ours = ConformalClassifier(model, level=LEVEL, subgroups=list(BY))
    ours.fit(X.iloc[held], y[held])
    start = time.process_time()
    own = ours.predict_set(X.iloc[new])
    own_seconds = (time.process_time() - start) / len(new)
    for name, answer, each in (
        ("MAPIE", sets, seconds),
        ("largest p-value", own, own_seconds),
    ):
        size, decided, held_share = figures(answer, y[new])
        worst = np.nanmin(covered(answer, y[new], every.taken(new)))
        print(
            f"{name}, {len(new)} rows: size {size:.3f}, decided {decided:.3f}, covered "
            f"{held_share:.3f}, subgroup least covered {worst:.3f}, "
            f"{1000 * each:.3f} ms a row"
        )


class Looked(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the first two columns of its rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Looked:
        """Know the classes."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The first two columns."""
        return np.asarray(X)[:, :2]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The likelier class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def picture(path: Path) -> None:
    """The plain promise about answers against each subgroup."""
    X, y = adult()
    fit, held, new = np.split(
        np.random.default_rng(0).permutation(len(y)), [3000, 6000]
    )
    model = SelectiveClassifier(boosting(X.iloc[fit], y[fit]), error_rate=ERROR)
    model.fit(X.iloc[held], y[held])
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    SubgroupDisplay.from_predictions(
        y[new],
        model.predict_set(X.iloc[new]),
        model.guarantees_[0],
        subgroups=list(BY),
        X=X.iloc[new],
        classes=model.classes_,
        ax=figure.subplots(),
    )
    with rc_context({"svg.hashsalt": "subgroups", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    if asked.picture is not None:
        picture(asked.picture)
        return
    print(
        f"largest p-value: {1e6 * seconds_a_label():.2f} microseconds a row and label"
    )
    if asked.answers:
        answers_table(asked.draws)
    else:
        sets_table(asked.draws)
        beside_mapie()


if __name__ == "__main__":
    main()
