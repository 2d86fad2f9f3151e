"""LowDensityRejector: cuts, promises, parameters, degenerate input (B4-B6)."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC

from prudent import LowDensityRejector
from prudent.adversarial.density.detector import MeanLogitClassifier
from prudent.adversarial.density.model import GridReference
from prudent.core.assumptions import Assumption
from prudent.exceptions import InfeasibleError, PrudentWarning

EXCHANGEABLE = Assumption.EXCHANGEABLE_NORMAL


def normal_rows(n=300, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def quick(**params):
    """A detector whose classifier costs little."""
    return LowDensityRejector(
        **{"estimator": LogisticRegression(), "random_state": 0, **params}
    )


@pytest.fixture(scope="module")
def default():
    return LowDensityRejector(random_state=0).fit(normal_rows(1000))


# --- the cut ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "k", "bound"),
    [
        ({}, 4, 4 / 91),
        ({"false_alarm_rate": 0.1}, 9, 9 / 91),
        ({"calibration_size": 0.5}, 7, 7 / 151),
        ({"confidence": 0.95}, 1, 0.05),
        ({"exact": True, "false_alarm_rate": 10 / 91}, 10, 10 / 91),
    ],
)
def test_rank_and_promise(params, k, bound):
    detector = quick(**params).fit(normal_rows())
    (promise,) = detector.guarantees_
    n_held_out = round(300 * detector.calibration_size)
    assert (detector.n_calibration_, detector.k_) == (n_held_out, k)
    assert promise.quantity == "false alarm rate"
    assert promise.bound == pytest.approx(bound)
    careful = "confidence" in params
    expected = Assumption.INDEPENDENT if careful else EXCHANGEABLE
    assert promise.assumptions == (expected,)
    evidence = {"calibration rows": float(n_held_out), "rank": float(k)}
    assert dict(promise.evidence) == evidence
    assert promise.confidence == (0.95 if careful else None)
    assert promise.average_over == (None if careful else "training samples")


def test_exact_promise_carries_the_upper_of_its_two_ranks():
    detectors = [
        quick(exact=True, random_state=seed).fit(normal_rows(100)) for seed in range(20)
    ]  # (30 + 1) * 0.05 = 1.55
    assert {detector.k_ for detector in detectors} == {1, 2}
    assert {d.guarantees_[0].evidence["rank"] for d in detectors} == {2.0}


def test_a_frozen_estimator_leaves_the_calibration_rows_to_average_over():
    frozen = FrozenEstimator(LogisticRegression().fit(normal_rows(), [0, 1] * 150))
    (promise,) = quick(estimator=frozen).fit(normal_rows()).guarantees_
    assert promise.average_over == "calibration rows"
    assert "on average over calibration rows" in str(promise)
    assert promise.assumptions == (EXCHANGEABLE, Assumption.UNSEEN)


def test_held_out_groups_give_one_random_row_each():
    rows, groups = normal_rows(), np.repeat(np.arange(75), 4)
    detector = quick(false_alarm_rate=0.1).fit(rows, groups=groups)
    assert (detector.n_calibration_, detector.k_) == (23, 2)  # ceil(0.3 * 75)
    (promise,) = detector.guarantees_
    assert promise.assumptions == (Assumption.GROUPS,)
    assert promise.unit == "group"
    assert detector.with_false_alarm_rate(0.2).guarantees_[0].assumptions == (
        promise.assumptions
    )


def test_groups_must_be_one_label_a_row_and_two_groups():
    with pytest.raises(ValueError, match="one label for each of the 300 rows, got 3"):
        quick().fit(normal_rows(), groups=[1, 2, 3])
    with pytest.raises(ValueError, match="at least 2 groups"):
        quick().fit(normal_rows(), groups=np.zeros(300))


def test_repeated_rows_across_the_split_are_named():
    rows = np.repeat(normal_rows(100), 3, axis=0)
    with pytest.warns(PrudentWarning, match="held-out rows stand among the rows"):
        quick().fit(rows)
    quick().fit(rows, groups=np.repeat(np.arange(100), 3))  # no warning


def test_exact_rank_is_rounded_up_as_often_as_it_should():
    ranks = [
        quick(exact=True, random_state=seed).fit(normal_rows(100)).k_
        for seed in range(400)
    ]  # (30 + 1) * 0.05 = 1.55
    assert set(ranks) == {1, 2}
    assert abs(np.mean(ranks) - 1.55) <= 4 * np.sqrt(0.55 * 0.45 / 400)


def test_parameters_changed_after_the_fit_change_no_answer():
    detector, rows = quick().fit(normal_rows()), normal_rows(500, seed=1)
    alarms = detector.predict(rows)
    detector.set_params(false_alarm_rate=0.3, confidence=0.9, strategy="soft")
    np.testing.assert_array_equal(detector.predict(rows), alarms)
    assert detector.guarantees_ is detector.rule_.guarantees
    other = detector.with_false_alarm_rate(0.2)
    assert other.guarantees_[0].confidence is None  # as fitted
    assert other.guarantees_[0].bound == 18 / 91


def test_decision_predict_and_threshold_agree(default):
    rows = normal_rows(2000, seed=1)
    scores = default.score_samples(rows)
    np.testing.assert_array_equal(
        default.decision_function(rows), scores - default.offset_
    )
    np.testing.assert_array_equal(
        default.predict(rows), np.where(scores < default.threshold_, -1, 1)
    )
    assert default.offset_ == default.threshold_


def test_p_value_decides_as_predict(default):
    rows = normal_rows(2000, seed=1)
    rejected = default.p_value(rows) <= default.false_alarm_rate
    np.testing.assert_array_equal(rejected, default.predict(rows) == -1)


def test_p_values_of_the_calibration_scores_are_their_ranks():
    detector = quick(reference="gaussian").fit(normal_rows())
    lowest = detector.p_value([[50.0, 50.0]])[0]
    assert lowest == 1 / 91


def test_other_rates_need_no_refit_and_leave_the_detector_alone(default):
    before = default.threshold_
    rows = normal_rows(500, seed=2)
    other = default.with_false_alarm_rate(0.2)
    fresh = LowDensityRejector(random_state=0, false_alarm_rate=0.2).fit(
        normal_rows(1000)
    )
    assert (default.threshold_, default.false_alarm_rate) == (before, 0.05)
    assert other.threshold_ == fresh.threshold_
    assert other.guarantees_ == fresh.guarantees_
    np.testing.assert_array_equal(other.predict(rows), fresh.predict(rows))
    assert (other.predict(rows) <= default.predict(rows)).all()


def test_other_rate_outside_its_range_is_named(default):
    with pytest.raises(ValueError, match="false_alarm_rate"):
        default.with_false_alarm_rate(1.0)


def test_tied_scores_are_not_rejected():
    detector = quick(estimator=DummyClassifier(), reference="box").fit(normal_rows())
    assert (detector.predict(normal_rows(seed=1, n=50) / 9) == 1).all()


def test_a_row_scores_the_same_alone_and_in_a_batch(default):
    rows = normal_rows(300, seed=3)
    alone = [default.score_samples(row[None])[0] for row in rows]
    np.testing.assert_array_equal(default.score_samples(rows), alone)


# --- the density --------------------------------------------------------------------


def test_default_score_ranks_by_the_density(default):
    rows = normal_rows(4000, seed=4)
    distance = (rows**2).sum(axis=1)
    unlikely = distance > np.quantile(distance, 0.95)
    assert roc_auc_score(unlikely, -default.score_samples(rows)) > 0.97


def accepted_region(n_rows, rate=0.1):
    """Probability, volume and distance from the truth of what a detector accepts."""
    side = np.linspace(-5, 5, 201)
    cells = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    cell = (side[1] - side[0]) ** 2
    mass = np.exp(-0.5 * (cells**2).sum(axis=1)) / (2 * np.pi) * cell
    detector = LowDensityRejector(false_alarm_rate=rate, random_state=0)
    is_accepted = detector.fit(normal_rows(n_rows, seed=1)).predict(cells) == 1
    best = (cells**2).sum(axis=1) <= chi2(2).isf(rate)
    return (
        mass[is_accepted].sum(),
        is_accepted.sum() * cell,
        mass[is_accepted != best].sum(),
    )


def test_accepted_region_is_nearly_the_least_of_its_probability():
    """Definitions 26 to 29: of all regions as probable, a disc is the smallest."""
    mass, volume, difference = accepted_region(2000)
    least = np.pi * chi2(2).isf(1 - mass)
    assert 0.99 * least <= volume <= 1.1 * least
    assert difference < 0.05


def test_accepted_region_comes_nearer_to_the_truth_with_more_rows():
    """Theorem 40, as far as two sizes can show it."""
    assert accepted_region(4000)[2] < 0.7 * accepted_region(200)[2]


def test_default_classifier_tells_rows_from_far_ones(default):
    classes = default.estimator_.predict(np.array([[0.0, 0.0], [9.0, 9.0]]))
    np.testing.assert_array_equal(classes, [1, 0])


def test_score_is_the_log_density_when_the_classifier_is_right():
    """Normal rows against a normal reference: the log odds are a quadratic."""
    quadratic = make_pipeline(PolynomialFeatures(2), LogisticRegression(C=1e4))
    detector = quick(estimator=quadratic, reference="gaussian").fit(normal_rows(20_000))
    rows = normal_rows(1000, seed=4)
    truth = -0.5 * (rows**2).sum(axis=1) - np.log(2 * np.pi)
    np.testing.assert_allclose(detector.score_samples(rows), truth, atol=0.5)
    assert np.mean(detector.score_samples(rows) - truth) == pytest.approx(0, abs=0.03)


def test_without_the_density_of_the_artificial_rows_more_intruders_pass(
    benchmark_data,
):
    X, labels = benchmark_data("breast_cancer_wisconsin")
    X = X[complete := np.isfinite(X).all(axis=1)]
    names, counts = np.unique(labels[complete], return_counts=True)
    normal = labels[complete] == names[counts.argmax()]
    passed = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(X[normal])
        n_fit = 2 * len(rows) // 3
        detector = LowDensityRejector(
            estimator=MeanLogitClassifier(random_state=seed), random_state=seed
        ).fit(rows[:n_fit])
        density = detector._learned.density

        def ratio(Z, density=density):
            return density.log_odds(density.standardisation.apply(Z))

        for score in (density.score, ratio):
            cut = np.quantile(score(rows[n_fit:]), 0.05, method="lower")
            passed.append(np.mean(score(X[~normal]) >= cut))
    with_density, without = np.mean(np.reshape(passed, (-1, 2)), axis=0)
    assert with_density < 0.06
    assert without > 4 * with_density


class Normal:
    """Inflated normal in the units of the rows."""

    def __init__(self, scale, shift=0.0):
        self.scale, self.shift = np.asarray(scale, dtype=float), shift

    def sample(self, n, random_state):
        rng = np.random.default_rng(random_state)
        return self.shift + self.scale * rng.normal(size=(n, len(self.scale)))

    def log_density(self, X):
        z = (X - self.shift) / self.scale
        normaliser = np.log(self.scale * np.sqrt(2 * np.pi)).sum()
        return -0.5 * (z**2).sum(axis=1) - normaliser


def test_a_given_reference_works_in_the_units_of_the_rows():
    """The score is the log density of standardised rows, whatever the units."""
    units = np.array([1e-3, 1e4])
    quadratic = make_pipeline(PolynomialFeatures(2), LogisticRegression(C=1e4))
    detector = quick(estimator=quadratic, reference=Normal(1.5 * units, 7.0))
    detector.fit(normal_rows(20_000) * units + 7)
    rows = normal_rows(1000, seed=4)
    truth = -0.5 * (rows**2).sum(axis=1) - np.log(2 * np.pi)
    scores = detector.score_samples(rows * units + 7)
    np.testing.assert_allclose(scores, truth, atol=0.5)
    assert np.mean(scores - truth) == pytest.approx(0, abs=0.03)
    again = pickle.loads(pickle.dumps(clone(detector)))
    assert again.reference.shift == 7.0
    soft = quick(
        reference=Normal(1.5 * units), strategy="soft", divergence_bound=2.0
    ).fit(normal_rows() * units)  # fmt: skip
    assert soft.guarantees_[0].bound == 0.05


def test_rows_outside_a_given_reference_score_below_all_inside():
    class Disc(Normal):
        def log_density(self, X):
            inside = (np.abs(X) <= 6).all(axis=1)
            return np.where(inside, super().log_density(X), -np.inf)

    detector = quick(reference=Disc([2.0, 2.0])).fit(normal_rows())
    near, far = detector.score_samples([[0.0, 0.0], [7.0, 0.0]])
    assert far < -1e5 < near


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample": lambda n, random_state: np.ones((n, 3))}, "sample` must return"),
        ({"sample": lambda n, random_state: np.full((n, 2), np.nan)}, "finite rows"),
        ({"log_density": lambda X: np.zeros((len(X), 1))}, "below inf"),
        ({"log_density": lambda X: np.full(len(X), np.nan)}, "with nan"),
    ],
)
def test_answers_of_a_given_reference_are_checked(change, message):
    reference = Normal([1.5, 1.5])
    vars(reference).update(change)
    with pytest.raises(ValueError, match=message):
        quick(reference=reference).fit(normal_rows())
    with pytest.raises(TypeError, match="'sample' and 'log_density'"):
        quick(reference=3.0).fit(normal_rows())


@pytest.mark.parametrize("reference", ["box", "grid"])
def test_rows_outside_the_reference_score_below_all_inside(reference):
    detector = quick(reference=reference).fit(normal_rows(2000))
    far = detector.score_samples([[50.0, 0.0], [500.0, 0.0]])
    assert detector.score_samples(normal_rows(500) / 2).min() > -100
    assert -1e5 > far[0] > far[1]
    assert (detector.predict([[50.0, 0.0]]) == -1).all()


def test_grid_reports_missing_mass_and_warns():
    detector = quick(reference="grid", false_alarm_rate=0.01)
    with pytest.warns(PrudentWarning, match=r"lie in no cell .* reference='mixture'"):
        detector.fit(normal_rows(2000))
    assert detector.missing_mass_ > 0.005
    assert detector.cell_size_ > 0


def test_grid_has_the_least_cells_of_which_at_most_log_n_hold_one_row():
    """The heuristic of Remark 41, on a geometric grid of sizes."""
    for seed, n in enumerate((100, 1000, 5000)):
        rows, random = normal_rows(n, seed=seed), np.random.RandomState(seed)
        offset = random.random_sample(2)
        grid = GridReference.from_rows(rows, np.random.RandomState(seed))
        least, below = (
            np.unique(np.floor(rows / size - offset), axis=0, return_counts=True)[1]
            for size in (grid.size, grid.size / np.sqrt(2))
        )
        assert np.sum(least == 1) <= np.log(n) < np.sum(below == 1)
    # The size of the detector is in standard deviations of its training rows.
    detector = quick(reference="grid", calibration_size=0.5).fit(normal_rows(4000))
    assert 0.1 < detector.cell_size_ < 3


def test_cell_size_is_the_kernel_width_elsewhere():
    detector = quick().fit(normal_rows(400, d=3))
    assert detector.cell_size_ == pytest.approx(280 ** (-1 / 7))
    assert detector.missing_mass_ == 0


@pytest.mark.parametrize(
    "estimator",
    [LinearSVC(), make_pipeline(StandardScaler(), SVC()), RandomForestClassifier(20)],
)
def test_classifiers_with_margin_or_probability_will_do(estimator):
    detector = quick(estimator=estimator).fit(normal_rows())
    assert detector.predict([[30.0, 30.0]]) == -1
    assert type(detector.estimator_) is type(estimator)


# --- parameters and scikit-learn ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("false_alarm_rate", 0.0),
        ("false_alarm_rate", 1.0),
        ("calibration_size", 1.0),
        ("confidence", 0.0),
        ("reference", "uniform"),
        ("exact", "median"),
        ("strategy", "both"),
        ("divergence_bound", np.nan),
    ],
)
def test_parameter_outside_its_range_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(normal_rows())


def test_soft_needs_a_bound():
    with pytest.raises(ValueError, match="'soft'` needs `divergence_bound`"):
        quick(strategy="soft").fit(normal_rows())


def test_soft_keeps_its_rate_on_average_only():
    for params in ({"exact": True}, {"confidence": 0.9}):
        detector = quick(strategy="soft", divergence_bound=1.0, **params)
        with pytest.raises(ValueError, match="leave `confidence` and `exact` out"):
            detector.fit(normal_rows())


def test_an_exact_rate_holds_on_average_only():
    with pytest.raises(ValueError, match="`exact=True` attains the rate on average"):
        quick(exact=True, confidence=0.9).fit(normal_rows())


def test_estimator_without_scores_is_refused():
    with pytest.raises(TypeError, match="'predict_proba'.*'decision_function'"):
        quick(estimator=StandardScaler()).fit(normal_rows())


def test_same_random_state_same_detector():
    rows = normal_rows(50, seed=1)
    first, second = (
        LowDensityRejector(random_state=3).fit(normal_rows()) for _ in range(2)
    )
    np.testing.assert_array_equal(first.score_samples(rows), second.score_samples(rows))


@pytest.mark.parametrize("params", [{}, {"strategy": "soft", "divergence_bound": 2.0}])
def test_pickled_detector_answers_alike(params):
    detector = quick(**params).fit(normal_rows())
    rows = normal_rows(200, seed=1)
    copied = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(copied.predict(rows), detector.predict(rows))


def test_frames_keep_their_names():
    import pandas as pd
    import polars as pl

    rows = normal_rows()
    answers = [
        quick().fit(frame).predict(frame)
        for frame in (
            pd.DataFrame(rows, columns=["a", "b"]),
            pl.DataFrame(rows, ["a", "b"]),
        )
    ]
    np.testing.assert_array_equal(answers[0], quick().fit(rows).predict(rows))
    np.testing.assert_array_equal(answers[1], answers[0])


def test_works_in_a_grid_search():
    rows = np.concatenate([normal_rows(200), normal_rows(40, seed=1) * 9])
    labels = np.repeat([1, -1], (200, 40))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), quick()),
        {"lowdensityrejector__false_alarm_rate": [0.1, 0.5]},
        scoring="accuracy",
        cv=3,
    )
    assert search.fit(rows, labels).best_score_ > 0.6


def test_asking_before_fit():
    with pytest.raises(NotFittedError):
        quick().predict(normal_rows())
    with pytest.raises(NotFittedError):
        quick().with_false_alarm_rate(0.1)


# --- soft strategy ------------------------------------------------------------------


def soft(**params):
    return quick(strategy="soft", divergence_bound=2.0, **params)


def test_soft_answers_depend_on_the_row_alone():
    detector = soft().fit(normal_rows())
    rows = normal_rows(200, seed=1)
    batch = detector.predict(rows)
    np.testing.assert_array_equal(detector.predict(rows[::-1])[::-1], batch)
    np.testing.assert_array_equal(
        [detector.predict(row[None])[0] for row in rows[:20]], batch[:20]
    )
    assert {-1, 1} == set(batch)


@pytest.mark.parametrize(("rows", "needed"), [(63, 20), (66, 20)])
def test_soft_says_how_many_rows_it_takes_to_reject_anything(rows, needed):
    """19 held-out rows leave 20 * 0.05 - 1 = 0 to reject with, up to rounding."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector = soft(false_alarm_rate=0.05).fit(normal_rows()[:rows])
    told = [str(w.message) for w in caught if "nothing is rejected" in str(w.message)]
    assert len(told) == (detector.n_calibration_ < needed)
    assert (detector.rule_.scale > 0) == (detector.n_calibration_ >= needed)
    assert all(f"(at least {needed} are needed)" in text for text in told)


def test_soft_coins_differ_between_fits():
    rows = normal_rows(500, seed=1)
    answers = [
        soft(random_state=seed).fit(normal_rows()).predict(rows) for seed in (1, 2)
    ]
    assert (answers[0] != answers[1]).any()


def test_soft_has_no_threshold_and_promises_false_alarms_only():
    detector = soft().fit(normal_rows())
    assert np.isnan(detector.threshold_)
    assert np.isnan(detector.offset_)
    assert detector.k_ == 0
    (promise,) = detector.guarantees_
    assert (promise.quantity, promise.bound) == ("false alarm rate", 0.05)
    assert promise.average_over == "training samples"
    assert dict(promise.evidence) == {"calibration rows": 90.0}  # no known law


def test_soft_rejects_low_density_more_often():
    detector = LowDensityRejector(
        strategy="soft", divergence_bound=11, false_alarm_rate=0.3, random_state=0
    ).fit(normal_rows(1000))
    rows = normal_rows(4000, seed=1)
    rejected = detector.predict(rows) < 0
    order = np.argsort(detector.score_samples(rows))
    assert rejected[order[:400]].mean() > rejected[order[-400:]].mean() + 0.3


def test_soft_other_rates_play_the_game_anew():
    detector = soft().fit(normal_rows(1000))
    rows = normal_rows(2000, seed=1)
    fresh = soft(false_alarm_rate=0.3).fit(normal_rows(1000))
    other = detector.with_false_alarm_rate(0.3)
    np.testing.assert_array_equal(other.predict(rows), fresh.predict(rows))
    assert detector.predict(rows).mean() > other.predict(rows).mean()


def test_soft_bound_beyond_the_estimated_density_is_named():
    with pytest.raises(InfeasibleError, match="`divergence_bound`=500"):
        quick(strategy="soft", divergence_bound=500).fit(normal_rows())


# --- degenerate input (B6) ----------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_must_be_finite(bad):
    rows = normal_rows()
    rows[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        quick().fit(rows)


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="1 sample"):
        quick().fit([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("params", "needed"),
    [({}, 19), ({"confidence": 0.95}, 59),
     ({"strategy": "soft", "divergence_bound": 0.0}, 20)],
)  # fmt: skip
def test_too_few_calibration_rows_reject_nothing_and_say_how_many(params, needed):
    with pytest.warns(PrudentWarning, match=f"at least {needed} are needed"):
        detector = quick(**params).fit(normal_rows(50))
    assert (detector.predict(normal_rows(50) * 99) == 1).all()
    assert detector.k_ == 0
    if detector.strategy == "hard":
        assert detector.threshold_ == -np.inf
        assert detector.decision_function([[0.0, 0.0]]) == np.inf


def test_constant_column_is_ignored_until_a_row_differs():
    rows = np.insert(normal_rows(), 1, 7.0, axis=1)
    with pytest.warns(PrudentWarning, match="constant"):
        detector = quick().fit(rows)
    np.testing.assert_array_equal(detector.constant_features_, [1])
    same, rounded, differs, far = detector.score_samples(
        [[0, 7, 0], [0, 7 + 1e-13, 0], [0, 7.1, 0], [0, 1e300, 0]]
    )
    assert same == rounded
    assert np.isfinite(far)
    assert far < differs < -1e6 < same
    assert detector.predict([[0, 7.1, 0]]) == -1


def test_equal_rows_are_kept_and_others_rejected():
    rows = np.full((100, 3), 0.1)
    with pytest.warns(PrudentWarning, match="constant"):
        detector = LowDensityRejector(random_state=0).fit(rows)
    np.testing.assert_array_equal(
        detector.predict([[0.1, 0.1, 0.1], [0.1, 0.1, 0.2]]), [1, -1]
    )
    assert detector.estimator_ is None
    assert detector.k_ == 1


def test_two_rows_are_enough_to_fit():
    with pytest.warns(PrudentWarning):
        detector = quick().fit(normal_rows(2))
    assert detector.n_calibration_ == 1


def test_more_columns_than_rows():
    detector = LowDensityRejector(random_state=0).fit(normal_rows(80, d=120))
    assert np.isfinite(detector.score_samples(normal_rows(10, d=120, seed=1))).all()


def test_huge_rows_have_finite_scores(default):
    scores = default.score_samples([[1e308, -1e308], [1e200, 0], [1e6, 0]])
    assert np.isfinite(scores).all()
    assert (default.predict([[1e308, -1e308]]) == -1).all()


@pytest.mark.parametrize("scale", [1e160, 1e-200, 1e300, 1e-305])
@pytest.mark.parametrize("reference", ["mixture", "box", "grid"])
def test_columns_of_any_scale_are_told_alike(scale, reference):
    """A power of two changes nothing at all, another scale rounding errors."""
    detectors = {
        unit: quick(reference=reference).fit(normal_rows() * unit)
        for unit in (1.0, 2.0 ** np.round(np.log2(scale)), scale)
    }
    fresh = np.r_[normal_rows(100, seed=1), [[1e3, 1e3]]]
    one, power, other = (
        detector.decision_function(fresh * unit) for unit, detector in detectors.items()
    )
    np.testing.assert_array_equal(power, one)
    np.testing.assert_allclose(other, one, atol=2e-4)
    assert other[-1] < 0


def test_a_constant_column_of_any_scale_is_left_without_overflow():
    rows = np.insert(normal_rows(), 1, 1e-310, axis=1)
    with pytest.warns(PrudentWarning, match="constant"):
        detector = quick().fit(rows)
    same, far = detector.score_samples([[0, 1e-310, 0], [0, -1e308, 0]])
    assert far < -1e6 < same
    assert np.isfinite(far)


@pytest.mark.filterwarnings("ignore:.*held-out rows stand among")
@pytest.mark.parametrize(
    "params",
    [
        {"estimator": None},
        {"reference": "grid"},
        {"reference": "box", "estimator": LinearSVC()},
        {"reference": "gaussian", "calibration_size": 0.7},
    ],
    ids=["default", "grid", "box", "gaussian"],
)
def test_rows_score_alike_in_any_batch(params):
    """Also far ones, whose scores are large, and ties with the cut."""
    rng = np.random.default_rng(0)
    atoms = rng.standard_t(1, size=(8, 6)) * np.geomspace(1e-6, 1e6, 6)
    rows = atoms[rng.choice(8, 400)]
    rows[:200] += rng.standard_t(1, size=(200, 6)) * np.geomspace(1e-6, 1e6, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        detector = quick(**params).fit(rows)
    asked = np.r_[rows[100:300], rows[:80] * 1e3, rows[:80] * 1e12]
    whole = detector.score_samples(asked)
    alone = np.concatenate([detector.score_samples(row[None]) for row in asked])
    np.testing.assert_array_equal(alone, whole)
    for size in (7, 64, 201):
        parts = np.array_split(asked, range(size, len(asked), size))
        pieces = np.concatenate([detector.score_samples(part) for part in parts])
        np.testing.assert_array_equal(pieces, whole)
    order = rng.permutation(len(asked))
    np.testing.assert_array_equal(detector.score_samples(asked[order]), whole[order])


def test_duplicated_rows_do_not_raise_the_rate():
    rows = np.repeat(normal_rows(60), 10, axis=0)
    with pytest.warns(PrudentWarning, match="held-out rows stand among"):
        detector = quick(reference="gaussian").fit(rows)
    assert np.mean(detector.predict(rows) < 0) <= 0.05
