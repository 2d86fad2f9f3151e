"""Promises made on a sample of a table hold for the table, rare classes and all.

Two common classes overlap, fifty rare ones are easily told. A sample that keeps some
rows of every rare class looks easier than the table: what is promised on it is false.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin

from prudent import compare
from prudent.evaluation.promising import promising
from prudent.io import open_table, sample_rows, survey_table
from prudent.rules.wish import parse_promise

N_RARE, RARE_SHARE, GAP = 50, 0.06, 2.4
DRAWS = 40


def drawn(n_rows, rng):
    """Rows of the law: classes 0 and 1 are common, rare ones name themselves."""
    rare = rng.random(n_rows) < RARE_SHARE
    low, high = np.where(rare, [[2], [2 + N_RARE]], [[0], [2]])
    y = rng.integers(low, high)
    X = np.column_stack(
        [rng.normal(size=n_rows) + GAP * (y == 1), np.where(rare, y, 0)]
    )
    return X, y


class KnowsTheLaw(ClassifierMixin, BaseEstimator):
    """Probabilities under the law; a rare class that was not seen may be any class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        found = np.zeros((len(X), len(self.classes_)))
        second = expit(GAP * (X[:, 0] - GAP / 2))
        common = X[:, 1] == 0
        found[common, 0], found[common, 1] = 1 - second[common], second[common]
        codes = np.array([int(str(label)[:2]) for label in self.classes_])
        found[~common] = X[~common, 1:] == codes
        unknown = found.sum(axis=1) == 0
        found[unknown] = 1 / len(self.classes_)
        return found

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.filterwarnings("ignore:SelectiveClassifier")
def test_error_promised_on_a_sample_holds_for_the_table(tmp_path):
    rng = np.random.default_rng(0)
    fresh, truth = drawn(100_000, rng)
    path = tmp_path / "table.parquet"
    words = np.array([f"{code:02d}!" for code in range(2 + N_RARE)])
    n_false = n_promised = 0
    for seed in range(DRAWS):
        X, y = drawn(20_000, rng)
        parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": words[y]}), path)
        found = survey_table(open_table(str(path)), "y")
        training, _ = sample_rows(found, 1000, seed)
        wish = parse_promise("error <= 5%", confidence=0.95)
        _, counts = np.unique(training.y, return_counts=True)
        model = promising(
            *(KnowsTheLaw(), wish, None, counts), split=False, seed=seed
        ).fit(training.X, training.y)
        answered = model.answers(fresh)
        n_promised += len(model.guarantees_)
        wrong = model.predict(fresh)[answered] != words[truth][answered]
        n_false += bool(model.guarantees_) and wrong.mean() > 0.05
    assert n_promised > DRAWS / 2
    assert binomtest(n_false, DRAWS, 0.05, alternative="greater").pvalue >= 0.001


@pytest.mark.parametrize(
    "promise",
    ["error <= 5%", pytest.param("coverage >= 90%", marks=pytest.mark.slow)],
)
def test_comparison_on_samples_breaks_no_true_promise(promise):
    rng = np.random.default_rng(1)
    verdicts = []
    for seed in range(20):
        found = compare(
            *drawn(30_000, rng),
            promise=promise,
            methods={"bayes": KnowsTheLaw()},
            baselines=(),
            cv=2,
            sample=1000,
            random_state=seed,
        )
        verdicts.append(found.rows[0].asked.kept)
    n_broken = verdicts.count("broken")
    assert sum(kept in ("kept", "consistent", "broken") for kept in verdicts) > 10
    assert binomtest(n_broken, 20, 0.05, alternative="greater").pvalue >= 0.001
