"""All that may be chosen after looking, by its public doors, on laws that are known.

The cells share the level 1e-3: a true construction fails this file in at most one of a
thousand runs with new seeds. Planted faults are far outside.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.frozen import FrozenEstimator

from prudent import (
    BinnedCalibrationClassifier,
    ConformalDetector,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    ThresholdBands,
    certify_thresholds,
)
from prudent.core.binomial import fewest_answered, most_wrong, upper_limits
from prudent.exceptions import InfeasibleError
from validity.finite_laws import (
    FiniteLaw,
    logistic_law,
    many_classes_law,
    rare_class_law,
)

pytestmark = pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")

TOTAL, DELTA = 1e-3, 0.05
FEW, MANY = 60, 2000


def binary(name, points, chance):
    """Two classes on so many scores that occur equally often."""
    score = (np.arange(points) + 0.5) / points
    right = np.clip(chance(score), 0, 1)
    joint = np.column_stack([1 - right, right]) / points
    return FiniteLaw(name, joint, np.column_stack([1 - score, score]))


LAWS = {
    "fine": lambda: binary("fine", 500, lambda s: s),
    "rare": lambda: binary("rare", 300, lambda s: 0.3 * s**3),
    "flat": lambda: binary("flat", 200, lambda s: np.full(len(s), 0.4)),
    "few values": lambda: binary("few values", 5, lambda s: s**2),
    "two values": lambda: binary("two values", 2, lambda s: s),
    "backwards": lambda: binary("backwards", 100, lambda s: 1 - s),
}


def wrong_somewhere(promised, truth):
    """Whether any promise is false at any threshold; all are to hold at once."""
    return any(
        (values < truth[name] - 1e-12).any()
        if name not in ("precision", "answered share")
        else (values > truth[name] + 1e-12).any()
        for name, values in promised.items()
    )


def alarms(law, n, rng):
    """Both class errors, flagged share, error, precision, cost, at all thresholds."""
    X, y = law.draw(n, rng)
    if len(np.unique(y)) < 2:
        return False
    costs = np.array([[0.0, 1.0], [7.0, 0.5]])
    bands = certify_thresholds(law.model, X, y, positive=1)
    scores, joint = law.scores[:, 1], law.joint
    at = np.append(scores, 2.0)
    flagged = scores >= at[:, None]
    hits, false = flagged @ joint[:, 1], flagged @ joint[:, 0]
    positive = joint[:, 1].sum()
    with np.errstate(invalid="ignore"):
        precision = np.where(hits + false > 0, hits / (hits + false), 1.0)
    truth = {
        "miss rate": 1 - hits / positive,
        "false alarm rate": false / (1 - positive),
        "flagged share": hits + false,
        "error rate": positive - hits + false,
        "precision": precision,
        "expected cost": false + 7 * (positive - hits) + 0.5 * hits,
    }
    promised = bands.figures(at, costs=costs)
    assert set(promised) == set(truth)
    return wrong_somewhere(promised, truth)


def answers(law, n, rng):
    """Error of the answered and answered share, at all thresholds and all rates."""
    model = SelectiveClassifier(law.model, error_rate=0.3).fit(*law.draw(n, rng))
    bands = model.threshold_bands()
    sure = law.scores.max(axis=1)
    wrong = (
        law.joint.sum(axis=1)
        - law.joint[np.arange(len(sure)), law.scores.argmax(axis=1)]
    )
    at = np.append(0.0, sure)
    above = sure > at[:, None]
    share, errors = above @ law.joint.sum(axis=1), above @ wrong
    truth = {
        "selective error rate": errors / np.maximum(share, 1e-300),
        "answered share": share,
    }
    return wrong_somewhere(bands.limits(at), truth)


def chosen_threshold(law, n, rng):
    """One threshold, the most tempting one, and the copy of the model that uses it."""
    model = SelectiveClassifier(law.model, error_rate=0.3).fit(*law.draw(n, rng))
    bands = model.threshold_bands()
    try:
        t = bands.find(minimise="error", answered_share=0.2)
    except InfeasibleError:
        return False
    chosen = model.with_threshold(t)
    answered = chosen.answers(law.atoms)
    error, share = chosen.guarantees_
    return bool(
        law.error_rate(chosen.predict(law.atoms), answered) > error.bound + 1e-12
        or law.share(answered) < share.bound - 1e-12
    )


class FirstColumn(OutlierMixin, BaseEstimator):
    """The first column, strange where it is low."""

    def fit(self, X=None, y=None):
        self.n_features_in_ = 1
        return self

    def score_samples(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return np.where(self.score_samples(X) < 0, -1, 1)


def false_alarms(points, n, rng):
    """False alarms of ordinary rows alone, the whole level for one claim."""
    X = rng.random((n, 1)) if points is None else rng.integers(0, points, (n, 1))
    if points is not None and len(np.unique(X)) < 2:
        return False
    detector = ConformalDetector(
        FrozenEstimator(FirstColumn().fit()), method="split", random_state=0
    ).fit(np.asarray(X, dtype=float))
    bands = detector.threshold_bands()
    if points is None:
        # Worst just behind a row: strangeness -x at least t where x is at most -t.
        at = np.nextafter(bands.scores, 1)
        truth = -at
    else:
        at = -np.arange(points, dtype=float)
        truth = (1 - at) / points
    return wrong_somewhere(
        bands.figures(at), {"false alarm rate": truth, "miss rate": np.zeros(len(at))}
    )


def probabilities(law, n, rng, n_bins=4):
    """The probability of each class in every cell of its score."""
    model = BinnedCalibrationClassifier(law.model, n_bins=n_bins)
    model.fit(*law.draw(n, rng))
    lower, upper = model.predict_proba_interval(law.atoms)
    for promise in model.guarantees_:
        about = model.is_about(promise, law.atoms)
        mass = law.joint[about].sum()
        if mass == 0:
            continue
        truth = law.joint[about, promise.scope].sum() / mass
        assert (lower[about, promise.scope] <= upper[about, promise.scope]).all()
        if promise.sense == ">=" and truth < promise.bound - 1e-12:
            return True
        if promise.sense == "<=" and truth > promise.bound + 1e-12:
            return True
    return False


def shares(law, n, rng):
    """An answered share beside an error rate, where it is proved after looking."""
    model = SelectiveClassifier(
        law.model, error_rate=0.35, answered_share=0.5, confidence=1 - DELTA
    ).fit(*law.draw(n, rng))
    answered = model.answers(law.atoms)
    rates = {
        "selective error rate": law.error_rate(model.predict(law.atoms), answered),
        "answered share": law.share(answered),
    }
    return any(
        rates[g.quantity] > g.bound + 1e-12
        if g.sense == "<="
        else rates[g.quantity] < g.bound - 1e-12
        for g in model.guarantees_
    )


def flagged(law, n, rng):
    try:
        model = NeymanPearsonClassifier(
            law.model, max_class_error={2: 0.3}, flagged_share=0.5
        ).fit(*law.draw(n, rng))
    except InfeasibleError:
        return False
    predicted = model.predict(law.atoms)
    rates = {
        "class error rate": law.class_error(predicted, 2),
        "flagged share": law.share(predicted == 2),
    }
    return any(rates[g.quantity] > g.bound + 1e-12 for g in model.guarantees_)


def of_scores(name, n):
    return LAWS[name](), n


CELLS = {
    **{
        f"alarms, {name}, {n}": (alarms, *of_scores(name, n))
        for name, n in [
            *(("fine", 30), ("fine", 150), ("rare", 150), ("flat", 60)),
            *(("few values", 80), ("two values", 40), ("backwards", 60)),
        ]
    },
    **{
        f"answers, {name}, {n}": (answers, *of_scores(name, n))
        for name, n in [("fine", 30), ("fine", 200), ("few values", 80), ("flat", 60)]
    },
    "answers, falling": (answers, logistic_law(), 120),
    "answers, five classes": (answers, many_classes_law(), 120),
    "chosen, fine": (chosen_threshold, LAWS["fine"](), 100),
    "chosen, falling": (chosen_threshold, logistic_law(), 150),
    "detector, continuous": (false_alarms, None, 40),
    "detector, seven values": (false_alarms, 7, 40),
    "probabilities, fine": (probabilities, LAWS["fine"](), 120),
    "probabilities, few values": (probabilities, LAWS["few values"](), 120),
    "probabilities, rare": (probabilities, LAWS["rare"](), 90),
    "probabilities, five classes": (probabilities, many_classes_law(), 150),
    "shares, falling": (shares, logistic_law(), 150),
    "shares, fine": (shares, LAWS["fine"](), 120),
    "flagged": (flagged, rare_class_law(), 400),
}


@pytest.mark.parametrize(
    "draws", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("cell", list(CELLS))
def test_promises_hold_whatever_is_chosen(cell, draws):
    is_false, law, n = CELLS[cell]
    rng = np.random.default_rng([37, list(CELLS).index(cell)])
    broken = sum(bool(is_false(law, n, rng)) for _ in range(draws))
    test = binomtest(broken, draws, DELTA, alternative="greater")
    assert test.pvalue > TOTAL / len(CELLS), (broken, draws)


# --- faults that were planted ---------------------------------------------------------


def is_caught(broken, draws, delta=DELTA):
    return binomtest(broken, draws, delta, alternative="greater").pvalue < 1e-6


def test_limits_of_single_thresholds_are_caught():
    """`at` with Clopper and Pearson's limit: false somewhere in .40, .55 of draws."""
    for m, rate in ((50, 0.40), (300, 0.55)):
        rng, draws, broken = np.random.default_rng(m), 400, 0
        for _ in range(draws):
            scores = rng.random(m)
            bands = ThresholdBands.from_scores(
                np.append(scores, 2.0), np.append(np.ones(m), 0), kind="alarms"
            )
            rows = bands.scores[bands.marked]
            missed = np.arange(1, m + 1)
            pointwise = upper_limits(missed, np.full(m, m), level=DELTA)
            # P(score below t) = t; worst just before the next row.
            worst = np.append(rows[1:], 1.0)
            broken += bool((pointwise < worst).any())
        assert is_caught(broken, draws)
        assert abs(broken / draws - rate) < 0.1


def test_a_share_as_measured_is_caught():
    """The cut at floor(b n) rows for the one that proves the share."""
    rng, n, share, draws = np.random.default_rng(2), 200, 0.9, 400
    broken = kept = 0
    for _ in range(draws):
        scores = np.sort(rng.random(n))[::-1]
        for k, is_fault in (
            (int(share * n), True),
            (fewest_answered(n, share, DELTA), False),
        ):
            cut = scores[k] if k < n else 0.0
            is_false = 1 - cut < share
            broken += is_fault and is_false
            kept += not is_fault and is_false
    assert is_caught(broken, draws)
    assert not is_caught(kept, draws)
    rng, broken = np.random.default_rng(3), 0
    for _ in range(draws):  # flagged rows: floor(b n) for most_wrong
        scores = np.sort(rng.random(n))[::-1]
        broken += 1 - scores[int(0.1 * n)] > 0.1
    assert is_caught(broken, draws)
    assert most_wrong(n, 0.1, DELTA) < int(0.1 * n)


def test_the_whole_level_for_each_cell_is_caught():
    """Limits of each cell at delta: false in 403 of 3000 draws where 5 % may be."""
    law, rng, draws = LAWS["fine"](), np.random.default_rng(4), 500
    broken = 0
    for _ in range(draws):
        model = BinnedCalibrationClassifier(law.model, n_bins=4)
        model.fit(*law.draw(400, rng))
        bad = False
        for promise in model.guarantees_[::2]:
            about = model.is_about(promise, law.atoms)
            truth = law.joint[about, 1].sum() / law.joint[about].sum()
            n, w = (
                int(promise.evidence[name]) for name in ("calibration rows", "positive")
            )
            low = 1 - float(upper_limits(n - w, n, level=DELTA / 2))
            high = float(upper_limits(w, n, level=DELTA / 2))
            bad |= not low <= truth <= high
        broken += bad
    assert is_caught(broken, draws)
