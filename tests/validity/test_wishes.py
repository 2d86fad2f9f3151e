"""Promises that a wish is turned into hold together, for every class at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.naive_bayes import GaussianNB

from prudent.evaluation.promising import promised, promising
from prudent.rules.wish import parse_promise

N_CLASSES, FITS, LEVEL = 10, 100, 0.001
# Rows of a class at the quantiles of its law: rates among them are exact to 1/1000.
GRID = norm.ppf((np.arange(1000) + 0.5) / 1000)


def rates_missed(model, gap):
    """Share of the rows of each class whose sets miss it, under the law."""
    centres = gap * np.arange(N_CLASSES)
    rows = (centres[:, None] + GRID).reshape(-1, 1)
    sets = model.predict_set(rows).reshape(N_CLASSES, len(GRID), N_CLASSES)
    return 1 - np.array([sets[k, :, k].mean() for k in range(N_CLASSES)])


@pytest.mark.parametrize("n_methods", [1, 3])
def test_all_classes_are_covered_at_once_with_the_confidence_asked_for(n_methods):
    rng = np.random.default_rng(0)
    wish = parse_promise(
        "coverage >= 80% in every class", range(N_CLASSES), confidence=0.8
    )
    confidence = 1 - 0.2 / n_methods
    n_broken = 0
    for seed in range(FITS):
        y = rng.integers(0, N_CLASSES, 1500)
        X = rng.normal(size=(1500, 1)) + 1.5 * y[:, None]
        model = promising(
            *(GaussianNB(), wish, None, np.bincount(y)),
            split=False,
            seed=seed,
            n_methods=n_methods,
        ).fit(X, y)
        guarantees = promised(model, wish, n_methods)
        assert [g.scope for g in guarantees] == list(range(N_CLASSES))
        for guarantee in guarantees:
            assert guarantee.confidence == pytest.approx(confidence)
        assert {g.evidence["claims"] for g in guarantees} == {N_CLASSES}
        n_broken += (rates_missed(model, 1.5) > 0.2 + 1 / 1000).any()
    allowed = 1 - confidence
    assert binomtest(n_broken, FITS, allowed, alternative="greater").pvalue >= LEVEL
    # Exact in the product over classes, up to whole ranks: not too careful either.
    assert binomtest(n_broken, FITS, allowed / 3, alternative="less").pvalue >= LEVEL


def test_classes_named_share_the_confidence_and_others_are_not_promised():
    rng = np.random.default_rng(1)
    every = parse_promise("coverage >= 80% in every class", [0, 1, 2], confidence=0.9)
    wish = type(every)(every.text, every.guarantees[:2])
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 1)) + y[:, None]
    model = promising(
        *(GaussianNB(), wish, None, np.bincount(y)), split=False, seed=0
    ).fit(X, y)
    assert model.guarantees_[0].confidence == pytest.approx(0.9**0.5)
    assert [(g.scope, g.confidence) for g in promised(model, wish, 1)] == [
        (0, 0.9),
        (1, 0.9),
    ]
