"""The audit: every kind of promise, in some 500 cells, through public names only.

A cell is one setting on one law. An average promise is held to the mean rate of fresh
rows over fits, by bets against it (an exact test of a mean of numbers in [0, 1]); one
with confidence to the share of fits that it is false of, by the exact binomial test.
Whether it is false is known on finite laws; elsewhere fresh rows have to refute it at
level .01, which is allowed for. All cells together share one level.

Draws follow the environment variable PRUDENT_AUDIT_SEED.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

import prudent
from prudent import (
    Assumption,
    ConformalClassifier,
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    certify,
    plan,
)
from prudent.certification import error_rate_under_priors
from prudent.cli import main
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.minimax import guarantees_of
from validity.finite_laws import (
    AtomScores,
    binary_law,
    constant_law,
    few_scores_law,
    logistic_law,
    many_classes_law,
    rare_class_law,
    two_regions_law,
)

pytestmark = pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")

SEED = int(os.environ.get("PRUDENT_AUDIT_SEED", "0"))
LEVEL = 1e-3  # of all cells together
REFUTED = 0.01  # of one fit by fresh rows
# Share of a false promise in all fits of a cell that is bet on.
STAKES = np.array([0.03, 0.1, 0.3, 0.6, 0.95])


class Outcome(NamedTuple):
    """One promise of one fit: what it allows, and what fresh rows say."""

    allowed: float  # rate of violations
    violations: float
    tries: float
    confidence: float | None
    is_false: bool | None = None  # where the truth is known


class Cell(NamedTuple):
    """One setting on one law."""

    name: str
    draw: Callable[[np.random.Generator, int], dict[Any, Outcome]]
    fits: int  # in the slow run


# --- tests ------------------------------------------------------------------------


def p_value(outcomes: list[Outcome]) -> float:
    """Exact p-value of the promise, made by independent fits."""
    confidence = outcomes[0].confidence
    if confidence is not None:
        false, allowed = 0, 1 - confidence
        if outcomes[0].is_false is None:
            allowed += REFUTED
        for o in outcomes:
            refuted = binom.sf(o.violations - 1, o.tries, o.allowed) < REFUTED
            false += refuted if o.is_false is None else o.is_false
        return binomtest(false, len(outcomes), allowed, alternative="greater").pvalue
    tried = [o for o in outcomes if o.tries]
    excess = np.array([o.violations / o.tries - o.allowed for o in tried])
    most = max((o.allowed for o in tried), default=0)
    if not len(excess) or most == 0:
        return 1.0 if not (excess > 0).any() else 0.0
    bets = np.log1p(STAKES[:, None] / most * excess).sum(axis=1)
    return float(min(1.0, np.exp(-np.logaddexp.reduce(bets)) * len(STAKES)))


def audit(cell: Cell, fits: int) -> None:
    """Draw a cell so many times and test all its promises."""
    found: dict[Any, list[Outcome]] = defaultdict(list)
    for fit in range(fits):
        seed = [SEED, fit, *cell.name.encode()]
        for key, outcome in cell.draw(np.random.default_rng(seed), fit).items():
            found[key].append(outcome)
    assert found, "nothing was promised"
    for key, outcomes in found.items():
        p = p_value(outcomes)
        assert p > LEVEL / N_CELLS / len(found), (cell.name, key, p, len(outcomes))


@pytest.mark.parametrize("confidence", [None, 0.8])
def test_the_audit_passes_true_promises_and_fails_false_ones(confidence):
    """On average 15 % for 10 %, or half of the fits false for a fifth."""
    rng, tries = np.random.default_rng(SEED), 800 if confidence else 30
    for on_average, false_share, holds in [(0.1, 0.2, True), (0.15, 0.5, False)]:
        rates = np.full(80, on_average)
        if confidence:
            rates = np.where(rng.random(80) < false_share, 0.2, 0.1)
        counts = rng.binomial(tries, rates)
        p = p_value([Outcome(0.1, count, tries, confidence) for count in counts])
        assert (p > 1e-5) == holds


# --- conformal sets ---------------------------------------------------------------


def normals(n, rng):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y


def tied(n, rng):
    y = rng.integers(3, size=n)
    return np.round(rng.normal(size=(n, 2)) + y[:, None]), y


def atoms(n, rng):
    """Six rows, with labels that they hardly tell."""
    row = rng.choice(6, size=n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    return np.stack([row % 3, row // 3], axis=1).astype(float), (
        rng.random(n) < 0.2 + 0.1 * row
    ).astype(int)


def rare(n, rng):
    y = (rng.random(n) < 0.12).astype(int)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def wild(n, rng):
    y = rng.integers(2, size=n)
    X = rng.standard_t(2, size=(n, 3)) + y[:, None]
    return X * [1e-100, 1e100, 1e6], y


def noise(n, rng):
    return rng.exponential(size=(n, 3)) ** 3, (rng.random(n) < 0.35).astype(int)


def first_is_positive(X):
    return (X[:, 0] > 0).astype(int)


CLASSIFIED = {
    "normals": (normals, 29),
    "tied": (tied, 39),
    "atoms": (atoms, 24),
    "rare": (rare, 60),
    "wild": (wild, 19),
    "noise": (noise, 12),
}
SETS = {
    "blend": {},
    "gaussian": {"model": "gaussian"},
    "tied margin": {
        "model": "gaussian",
        "covariance_type": "tied",
        "nonconformity": "margin",
    },
    "diag density": {
        "model": "gaussian",
        "covariance_type": "diag",
        "nonconformity": "density",
    },
    "split": {"method": "split"},
    "split bayes": {"method": "split", "estimator": GaussianNB(), "level": 0.2},
    "cross bayes": {"method": "cross", "estimator": GaussianNB(), "cv": 3},
    "confidence": {"method": "split", "estimator": GaussianNB(), "confidence": 0.8},
}
CONDITIONS = {"rows": None, "class": "class", "group": first_is_positive}


def drawn_sets(law, n, settings, rng, fit):
    if settings.get("method", "full") != "full":
        n = 4 * n
    X, y = law(n, rng)
    if len(np.unique(y)) < 2:
        return {}
    model = ConformalClassifier(random_state=fit, **settings)
    model.fit(X, y)
    X_new, truth = law(800 if settings.get("confidence") else 30, rng)
    position = np.searchsorted(model.classes_, truth).clip(max=len(model.classes_) - 1)
    known = model.classes_[position] == truth
    sets = model.predict_set(X_new, allow_empty=True)
    missed = ~(sets[np.arange(len(truth)), position] & known)
    scopes = {"class": truth}.get(settings["condition"])
    if callable(settings["condition"]):
        scopes = settings["condition"](X_new)
    outcomes = {}
    for promise in model.guarantees_:
        assert (promise.quantity, promise.sense) == ("coverage", ">=")
        about = np.ones(len(truth), dtype=bool)
        if promise.scope is not None:
            about = scopes == promise.scope
        if Assumption.KNOWN_LABEL in promise.assumptions:
            about = about & known
        outcomes[promise.scope] = Outcome(
            1 - promise.bound, missed[about].sum(), about.sum(), promise.confidence
        )
    return outcomes


def conformal_cells():
    for (law, (draw, n)), (name, settings), (by, condition), ties in itertools.product(
        CLASSIFIED.items(),
        SETS.items(),
        CONDITIONS.items(),
        ("conservative", "smoothed"),
    ):
        # With these there is no promise of smoothed ranks.
        if ties == "smoothed" and name in ("confidence", "cross bayes"):
            continue
        chosen = {**settings, "condition": condition, "ties": ties}
        yield Cell(
            f"sets {name}, {by}, {ties}, {law}",
            partial(drawn_sets, draw, n, chosen),
            50 if name.startswith(("cross", "split")) else 80,
        )


# --- detectors --------------------------------------------------------------------

ORDINARY = {
    "normal": lambda n, rng: rng.normal(size=(n, 3)),
    "skewed": lambda n, rng: rng.exponential(size=(n, 2)) ** 3,
    "tied": lambda n, rng: np.round(rng.normal(size=(n, 2))),
    "wild": lambda n, rng: rng.standard_t(2, size=(n, 2)) * [1e-90, 1e90],
}
SIZES = [(9, 0.1), (20, 0.05), (60, 0.2)]  # rows that rank, rate
PLAIN = LogisticRegression()
DETECTORS = {
    **{
        f"full {kind}, {ties}": partial(
            ConformalDetector, nonconformity=kind, ties=ties
        )
        for kind in ("combined", "distance", "ellipsoid")
        for ties in ("conservative", "smoothed")
    },
    "split": partial(ConformalDetector, method="split"),
    "density": partial(LowDensityRejector, estimator=PLAIN, reference="gaussian"),
    "density exact": partial(
        LowDensityRejector, estimator=PLAIN, reference="gaussian", exact=True
    ),
    "ellipsoid": partial(MinimaxOutlierDetector, covariance=0.1),
}
WATCHED = ("split", "density", "ellipsoid")


def drawn_alarms(make, law, m, rate, confidence, rng, fit):
    n = m if make.func is ConformalDetector and "method" not in make.keywords else 4 * m
    settings = {} if n == m else {"calibration_size": 0.25}
    if confidence is not None:
        settings["confidence"] = confidence
    model = make(false_alarm_rate=rate, random_state=fit, **settings)
    model.fit(law(n, rng))
    alarms = model.predict(law(30 if confidence is None else 800, rng)) == -1
    return {
        promise.quantity: Outcome(
            promise.bound, alarms.sum(), len(alarms), promise.confidence
        )
        for promise in model.guarantees_
    }


def detector_cells():
    for (name, make), (kind, law), (m, rate) in itertools.product(
        DETECTORS.items(), ORDINARY.items(), SIZES
    ):
        if name.startswith("density") and kind == "wild":
            continue
        for confidence in (None, 0.8) if name in WATCHED else (None,):
            yield Cell(
                f"alarms {name}, {kind}, {m} at {rate}, {confidence}",
                partial(drawn_alarms, make, law, m, rate, confidence),
                80 if name.startswith("full") else 50,
            )


# --- certification: the truth is a sum --------------------------------------------

LAWS = {
    "falling": lambda rate: logistic_law(),
    "constant": constant_law,
    "two regions": two_regions_law,
    "few scores": few_scores_law,
    "noisy": lambda rate: many_classes_law(),
}


def known(true, bound, confidence):
    return Outcome(bound, 0, 0, confidence, bool(true > bound + 1e-12))


def drawn_selective(law, n, settings, rng, fit):
    model = SelectiveClassifier(random_state=fit, **settings)
    if model.estimator is None:
        model.set_params(estimator=law.model)
    model.fit(*law.draw(n, rng))
    answered = model.answers(law.atoms)
    true = law.error_rate(model.predict(law.atoms), answered)
    if model.guarantees_:
        error, *shares = model.guarantees_
        outcomes = {"error": known(true, error.bound, error.confidence)}
        for promise in shares:
            handed_over = 1 - law.share(answered)
            outcomes["answered share"] = known(
                handed_over, 1 - promise.bound, promise.confidence
            )
        return outcomes
    # A fit without a promise breaks none, and counts.
    return {"error": Outcome(1, 0, 0, settings["confidence"], False)}


def drawn_limits(law, n, settings, rng, fit):
    model = NeymanPearsonClassifier(law.model, random_state=fit, **settings)
    try:
        model.fit(*law.draw(n, rng))
    except InfeasibleError:
        return {"at once": Outcome(1, 0, 0, settings["confidence"], False)}
    predicted = model.predict(law.atoms)
    sets = model.predict_set(law.atoms) if model.abstain else None
    false = [
        law.coverage(sets, g.scope) < g.bound - 1e-12
        if g.quantity == "coverage"
        else law.class_error(predicted, g.scope) > g.bound + 1e-12
        for g in model.guarantees_
    ]
    return {"at once": Outcome(0, 0, 0, settings["confidence"], any(false))}


def drawn_certificate(law, n, confidence, rng, fit):
    scorer = AtomScores(law.scores)
    predicted = scorer.predict(law.atoms)
    found = certify(scorer, *law.draw(n, rng), confidence=confidence, claims="all")
    errors = [law.class_error(predicted, c) for c in range(law.joint.shape[1])]
    true = {None: law.error_rate(predicted), **dict(enumerate(errors))}
    false = [true[g.scope] > g.bound + 1e-12 for g in found]
    shares = rng.dirichlet(np.ones(len(errors)))
    box = dict(enumerate(shares))
    mixed = error_rate_under_priors(found, lower=box, upper=box)
    return {
        "at once": Outcome(0, 0, 0, confidence, any(false)),
        "priors": known(shares @ errors, mixed.bound, confidence),
    }


planned = cache(plan)


def drawn_plan(settings, rng, fit):
    """A promise of power is one that the certificate fails at most 1 - power."""
    asked = planned(**settings)
    n = rng.binomial(asked.rows, settings.get("answered_share", 1.0))
    law = binary_law("coin", [0.0], [settings["expected"]])
    certified = False
    if n:
        (found,) = certify(
            AtomScores(law.scores),
            *law.draw(n, rng),
            confidence=settings.get("confidence", 0.95),
            claims="all",
            simultaneous=False,
        )[:1]
        certified = found.bound <= settings["bound"]
    return {"power": Outcome(0, 0, 0, asked.power, not certified)}


def certification_cells():
    for name, (n, rate, delta) in itertools.product(
        LAWS,
        [(60, 0.1, 0.1), (150, 0.05, 0.2), (300, 0.2, 0.3), (800, 0.05, 0.05)],
    ):
        rate = 0.4 if name == "noisy" else rate
        law = LAWS[name](rate)
        settings = {"confidence": 1 - delta}
        kept = {**settings, "error_rate": rate}
        yield Cell(
            f"selective {name}, {n}", partial(drawn_selective, law, n, kept), 300
        )
        for share in (0.4, 1.0):
            asked = {**settings, "error_rate": None, "answered_share": share}
            yield Cell(
                f"share {share} {name}, {n}",
                partial(drawn_selective, law, n, asked),
                300,
            )
    for n, delta in [(100, 0.1), (400, 0.2)]:
        fitted = {"estimator": GaussianNB(), "confidence": 1 - delta}
        law = rare_class_law()
        yield Cell(
            f"selective fitted, {n}",
            partial(drawn_selective, law, n, {**fitted, "error_rate": 0.2}),
            150,
        )
    limits = [{2: 0.3}, {0: 0.05}, {2: 0.25, 1: 0.4}, {1: 0.6, 2: 0.8}]
    for limit, n, delta in itertools.product(limits, (80, 300, 900), (0.1, 0.3)):
        settings = {"max_class_error": limit, "confidence": 1 - delta}
        yield Cell(
            f"limits {limit}, {n}, {delta}",
            partial(drawn_limits, rare_class_law(), n, settings),
            200,
        )
    for make, n, limit in itertools.product(
        (rare_class_law, many_classes_law), (12, 60, 200), (0.1, 0.3)
    ):
        settings = {"max_class_error": limit, "confidence": 0.8, "abstain": True}
        yield Cell(
            f"limits of all, {make.__name__}, {n}, {limit}",
            partial(drawn_limits, make(), n, settings),
            200,
        )
    for name, n, delta in itertools.product(
        ("rare", "noisy", "few scores"), (20, 100, 400), (0.1, 0.3)
    ):
        law = rare_class_law() if name == "rare" else LAWS[name](0.2)
        yield Cell(
            f"certify {name}, {n}, {delta}",
            partial(drawn_certificate, law, n, 1 - delta),
            200,
        )
    for expected, share, power in itertools.product(
        (0.0, 0.02, 0.05), (1.0, 0.5), (0.5, 0.8)
    ):
        settings = {
            "bound": 0.1,
            "expected": expected,
            "answered_share": share,
            "power": power,
        }
        yield Cell(f"plan {settings}", partial(drawn_plan, settings), 200)


# --- promises that were false before ----------------------------------------------


def drawn_groups(rng, fit):
    """Large groups are right, small ones wrong: .275 of random rows of new groups."""

    def draw(n):
        small = rng.random(n) < 0.3
        wrong = rng.random(n) < np.where(small, 0.8, 0.05)
        groups = np.repeat(np.arange(n), np.where(small, 1, 15))
        atom = rng.integers(100, size=n)
        return atom[groups, None], (atom % 2 ^ wrong)[groups], groups

    law = binary_law("groups", np.arange(100), np.full(100, 0.275))
    X, y, groups = draw(80)
    model = SelectiveClassifier(
        law.model,
        error_rate=None,
        answered_share=1.0,
        confidence=0.9,
        random_state=fit,
    ).fit(X, y, groups=groups)
    (own,) = model.guarantees_
    assert own.unit == "group"
    X, y, groups = draw(80)
    (found, *_) = certify(model, X, y, groups=groups, confidence=0.9)
    return {
        "promise": known(0.275, own.bound, own.confidence),
        "certificate": known(0.275, found.bound, found.confidence),
    }


def drawn_average_of_groups(rng, fit):
    """Sets for a random row of a new group, where large groups are easy."""

    def draw(n):
        small = rng.random(n) < 0.4
        groups = np.repeat(np.arange(n), np.where(small, 1, 12))
        y = rng.integers(2, size=n)
        centre = np.where(small, 0, 3 * y)[:, None]
        X = (centre + rng.normal(size=(n, 2)))[groups]
        return X + 0.1 * rng.normal(size=X.shape), y[groups], groups

    X, y, groups = draw(60)
    model = ConformalClassifier(
        GaussianNB(), method="split", calibration_size=0.5, random_state=fit
    ).fit(X, y, groups=groups)
    X, y, groups = draw(40)
    order = rng.permutation(len(groups))
    some = order[np.unique(groups[order], return_index=True)[1]]
    (promise,) = model.guarantees_
    sets = model.predict_set(X[some], allow_empty=True)
    missed = ~sets[np.arange(len(some)), y[some]]
    return {"sets": Outcome(1 - promise.bound, missed.sum(), len(some), None)}


def test_linear_models_of_single_precision_err_no_more_than_promised():
    """Rows of a finite law, ever further from the origin: the truth is a sum."""
    rng = np.random.default_rng(SEED)
    for offset in 10 ** np.linspace(0, 6, 40):
        X = (rng.normal(size=(12, 3)) + offset).astype(np.float32)
        count = rng.integers(1, 50, size=(2, 12))
        rows, y = np.tile(np.arange(12), 2), np.repeat([0, 1], 12)
        moments = prudent.ClassMoments.from_arrays(
            X[rows].astype(np.float64), y, sample_weight=count.ravel()
        )
        many = np.repeat(np.arange(24), count.ravel())
        for model in (LinearDiscriminantAnalysis(), RidgeClassifier(alpha=1e-3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[rows][many], y[many])
            wrong = model.predict(X) != np.array([[0], [1]])
            errors = (wrong * count).sum(axis=1) / count.sum(axis=1)
            for promise in guarantees_of(model, moments):
                assert errors[promise.scope] <= promise.bound + 1e-12


def run(*arguments):
    """The command line; its exit code must be 0."""
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    assert end.value.code == 0


def common_and_rare(n, rng):
    """Two classes that overlap, and fifty rare ones that name themselves."""
    is_rare = rng.random(n) < 0.06
    code = np.where(is_rare, rng.integers(2, 52, size=n), rng.integers(2, size=n))
    place = rng.normal(size=n) + 2.4 * (code == 1)
    columns = {"place": place, "name": np.where(is_rare, code, 0)}
    columns |= {f"is {k}": (code == k).astype(int) for k in range(2, 52)}
    return pd.DataFrame(columns), np.char.mod("c%d", code)


@pytest.mark.slow
def test_a_promise_on_a_sample_of_a_table_holds_for_the_table(tmp_path):
    rng, false, fits = np.random.default_rng(SEED), 0, 25
    for fit in range(fits):
        frame, y = common_and_rare(8000, rng)
        frame.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
        options = ("--method", "logistic", "--sample", 1500, "--seed", fit)
        path = tmp_path / "model.prudent"
        promise = ("--promise", "error <= 10%", "--confidence", 0.9)
        data = (tmp_path / "table.csv", "--target", "y")
        run("fit", *data, *options, *promise, "-o", path)
        model, (new, truth) = prudent.load(path), common_and_rare(20_000, rng)
        answered = model.answers(new)
        wrong = int((model.predict(new)[answered] != truth[answered]).sum())
        (promised,) = model.guarantees_
        false += binom.sf(wrong - 1, answered.sum(), promised.bound) < REFUTED
    assert binomtest(false, fits, 0.1 + REFUTED, alternative="greater").pvalue > (
        LEVEL / N_CELLS
    )


def test_a_frame_of_columns_in_another_order_is_answered_alike(tmp_path):
    rng = np.random.default_rng(SEED)
    X, y = normals(600, rng)
    frame = pd.DataFrame({"a": X[:, 0], "b": 1000 * X[:, 1], "c": X.sum(axis=1)})
    frame.assign(y=np.array(["no", "yes"])[y]).to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "m.prudent"
    promise = ("--promise", "coverage >= 90%", "--method", "logistic", "--seed", SEED)
    run("fit", tmp_path / "t.csv", "--target", "y", *promise, "-o", path)
    model = prudent.load(path)
    X, y = normals(20_000, rng)
    new = pd.DataFrame({"a": X[:, 0], "b": 1000 * X[:, 1], "c": X.sum(axis=1)})
    sets = model.predict_set(new)
    np.testing.assert_array_equal(model.predict_set(new[["c", "a", "b"]]), sets)
    missed = int((~sets[np.arange(len(y)), y]).sum())
    (promised,) = model.guarantees_
    # Of this one model the rate may be above an average, but hardly twice as high.
    assert binom.sf(missed - 1, len(y), 2 * (1 - promised.bound)) > LEVEL


@pytest.mark.parametrize("method", ["full", "split"])
def test_a_doubled_table_is_warned_of_before_it_alarms(method):
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(100, 3))
    ConformalDetector(method=method, random_state=0).fit(X)
    with pytest.warns(PrudentWarning, match="more than chance explains"):
        ConformalDetector(method=method, random_state=0).fit(np.r_[X, X])


def test_nothing_is_left_out_of_a_sum_over_classes():
    law = rare_class_law()
    rng = np.random.default_rng(SEED)
    for fit in range(20):
        model = NeymanPearsonClassifier(
            law.model, max_class_error={2: 0.4}, random_state=fit
        ).fit(*law.draw(400, rng))
        predicted = model.predict(law.atoms)
        promised = error_rate_under_priors(model.guarantees_)
        assert promised.bound >= law.error_rate(predicted)
        assert promised.bound == 1


CELLS = [*conformal_cells(), *detector_cells(), *certification_cells()]
OTHERS = [
    Cell("groups", drawn_groups, 150),
    Cell("average of groups", drawn_average_of_groups, 150),
]
N_CELLS = len(CELLS) + len(OTHERS)


@pytest.mark.parametrize("cell", CELLS[::12] + OTHERS, ids=lambda cell: cell.name)
def test_cells_in_short(cell):
    audit(cell, max(10, cell.fits // 8))


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS + OTHERS, ids=lambda cell: cell.name)
def test_cells(cell):
    audit(cell, cell.fits)
