"""Watchers: wrong alarms over a whole life, delays, and updates that survive a kill."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import prudent as library
from prudent import (
    BinnedCalibrationClassifier,
    DriftMonitor,
    Guarantee,
    MinimaxProbabilityClassifier,
    NeymanPearsonClassifier,
    PromiseMonitor,
    SelectiveClassifier,
    ThresholdBands,
    certify,
)
from prudent.cli import main
from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.estimator_tools import counted_answers
from prudent.monitoring import broken_promises

STREAMS, ROWS = 10_000, 10_000
LABELS = np.array(["bad", "good"])
LONG = pytest.param(STREAMS, marks=pytest.mark.slow, id="long")
MONITORED = pytest.mark.parametrize("streams", [LONG, pytest.param(60, id="short")])


def held(alarms, streams, level=0.05):
    """Whether so many wrong alarms are no evidence against `level` (exact, 1e-4)."""
    return binom.sf(alarms - 1, streams, level) > 1e-4


def promise(quantity="error rate", bound=0.05, sense="<=", **more):
    return Guarantee(quantity=quantity, bound=bound, sense=sense, **more)


def on_average(k, m):
    return promise(
        "false alarm rate",
        k / (m + 1),
        average_over="training samples",
        evidence={"calibration rows": m, "rank": k},
    )


def unequal_groups(n_groups, rng):
    """Ten groups in eleven are pure; each eleventh is large and all wrong.

    The error of a random row of a new group is about 1/11, that of all rows far more.
    """
    is_bad = rng.random(n_groups) < 1 / 11
    sizes = np.where(is_bad, 40, rng.integers(1, 5, n_groups))
    groups = np.repeat(np.arange(n_groups), sizes)
    return is_bad[groups], groups


def test_true_promises_about_groups_are_rarely_called_broken():
    """Counted by all rows, every one of them would be."""
    by_group = promise(bound=1 / 11, unit="group")
    draws, rng = 145, np.random.default_rng(0)
    checked = watched = by_rows = uncertified = 0
    for _ in range(draws):
        broken, groups = unequal_groups(200, rng)
        truth = np.zeros(len(broken))
        found = by_group.check(broken, groups=groups)
        checked += found.verdict == "broken"
        monitor = PromiseMonitor(by_group).update_rows(truth, broken, groups=groups)
        watched += monitor.verdict == "broken"
        by_rows += promise(bound=1 / 11).check(broken.sum(), len(broken)).verdict == (
            "broken"
        )
        proved = certify(
            Always(), broken[:, None].astype(float), truth, groups=groups, claims="all"
        )[0]
        uncertified += proved.bound < 1 / 11
    assert held(checked, draws)
    assert held(watched, draws)
    assert held(uncertified, draws)
    assert by_rows > draws // 2


class Always(ClassifierMixin, BaseEstimator):
    """Errs where its only feature says so; 0 is the truth."""

    classes_ = np.array([0.0, 1.0])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


def constant(rate):
    return lambda rng: rng.random(ROWS) < rate


def swinging(b, rng):
    """Nights at half the bound, days at one and a half; the mean stays below."""
    rates = np.where(np.arange(ROWS) // 500 % 2 == 0, 0.5 * b, 1.5 * b)
    return rng.random(ROWS) < rates


def drawn_from_calibration(k, m, rng):
    rate = np.partition(rng.random(m), k - 1)[k - 1]
    return rng.random(ROWS) < rate


def drawn_with_ties(k, m, rng):
    """Scores on six values: alarms lie strictly below the k-th smallest."""
    cut = np.partition(rng.integers(0, 6, m), k - 1)[k - 1]
    return rng.integers(0, 6, ROWS) < cut


def drawn_with_confidence(m, rng):
    k = high_probability_rank(m, 0.1, 0.95)
    return drawn_from_calibration(k, m, rng)


RATES = {
    "rate .05": (promise(), "rate", constant(0.05)),
    "rate .001": (promise(bound=0.001), "rate", constant(0.001)),
    "rate .3": (promise(bound=0.3), "rate", constant(0.3)),
    "average": (promise(), "average", constant(0.05)),
    "average, swinging": (promise(), "average", lambda rng: swinging(0.05, rng)),
    "marginal 5/109": (
        on_average(5, 108), "rate", lambda rng: drawn_from_calibration(5, 108, rng)
    ),
    "marginal 1/20": (
        on_average(1, 19), "rate", lambda rng: drawn_from_calibration(1, 19, rng)
    ),
    "marginal, ties": (
        on_average(20, 60), "rate", lambda rng: drawn_with_ties(20, 60, rng)
    ),
    "marginal, counts": (
        on_average(5, 108), "average", lambda rng: drawn_from_calibration(5, 108, rng)
    ),
    "coverage": (promise("coverage", 0.9, ">="), "rate", constant(0.1)),
    "coverage at most": (promise("coverage", 0.9, "<="), "rate", constant(0.1)),
    "miss rate at least": (promise("miss rate", 0.8, ">="), "rate", constant(0.8)),
}  # fmt: skip


@MONITORED
@pytest.mark.parametrize("name", RATES)
def test_promises_that_hold_are_rarely_called_broken(name, streams):
    guarantee, watch, draw = RATES[name]
    alarms = 0
    for stream in range(streams):
        rng = np.random.default_rng([stream, 21])
        losses = draw(rng)[: ROWS if streams == STREAMS else 2000]
        monitor = PromiseMonitor(guarantee, watch=watch).update(losses)
        alarms += monitor.alarm_at_ is not None
    assert held(alarms, streams), f"{alarms} of {streams}"


@MONITORED
def test_promises_with_confidence_add_what_the_training_sample_may_cost(streams):
    guarantee = promise("false alarm rate", 0.1, confidence=0.95)
    alarms = 0
    for stream in range(streams):
        rng = np.random.default_rng([stream, 22])
        losses = drawn_with_confidence(100, rng)
        alarms += PromiseMonitor(guarantee).update(losses).alarm_at_ is not None
    assert held(alarms, streams, 0.1), f"{alarms} of {streams}"


@MONITORED
def test_the_trap(streams):
    """A promise on average watched as if it were about the model: correct, accused."""
    wrong = right = 0
    for stream in range(streams // 2):
        losses = drawn_from_calibration(5, 108, np.random.default_rng([stream, 23]))
        wrong += (
            PromiseMonitor(promise(bound=5 / 109)).update(losses).alarm_at_ is not None
        )
        right += PromiseMonitor(on_average(5, 108)).update(losses).alarm_at_ is not None
    assert wrong > 0.2 * (streams // 2)
    assert held(right, streams // 2)


@MONITORED
def test_batches_of_a_marginal_promise(streams):
    k, m = mean_rank(108, 0.05), 108
    alarms = 0
    for stream in range(streams):
        losses = drawn_from_calibration(k, m, np.random.default_rng([stream, 24]))
        monitor = PromiseMonitor(on_average(k, m))
        for batch in np.split(losses[:5000], 25):
            monitor.update(int(batch.sum()), n=len(batch))
        alarms += monitor.alarm_at_ is not None
    assert held(alarms, streams), f"{alarms} of {streams}"


@MONITORED
def test_several_promises_share_one_level(streams):
    """Dependent: the violations of one are among those of the next."""
    accused = 0
    for stream in range(streams):
        rows = np.random.default_rng([stream, 25]).random(3000)
        monitors = [
            PromiseMonitor(promise(bound=b), level=0.05 / 3).update(rows < b)
            for b in (0.02, 0.05, 0.2)
        ]
        accused += any(m.alarm_at_ is not None for m in monitors)
        assert broken_promises(monitors).any() == any(
            m.peak_e_value >= 60 for m in monitors
        )
    assert held(accused, streams), f"{accused} of {streams}"


def columns(rng, n):
    common = rng.normal(size=(n, 1))
    return common + 0.3 * rng.normal(size=(n, 8))


LAWS = {
    "normal, m = 19": (19, lambda rng, n: rng.normal(size=(n, 1))),
    "normal, m = 1000": (1000, lambda rng, n: rng.normal(size=(n, 1))),
    "cauchy": (100, lambda rng, n: rng.standard_cauchy(size=(n, 1))),
    "binary": (100, lambda rng, n: rng.integers(0, 2, size=(n, 1)) * 1.0),
    "integer": (100, lambda rng, n: rng.poisson(2.0, size=(n, 1)) * 1.0),
    "constant": (19, lambda rng, n: np.zeros((n, 1))),
    "8 dependent columns": (100, columns),
}


@MONITORED
@pytest.mark.parametrize("name", LAWS)
def test_streams_without_drift_rarely_raise_the_alarm(name, streams):
    m, draw = LAWS[name]
    streams = streams if name == "normal, m = 19" else streams // 4
    alarms = 0
    for stream in range(streams):
        rng = np.random.default_rng([stream, 26])
        monitor = DriftMonitor(random_state=stream).fit(draw(rng, m))
        alarms += monitor.update(draw(rng, ROWS)).alarm_at_ is not None
    assert held(alarms, streams), f"{alarms} of {streams}"


def rows_to_alarm(make, rate, streams, *, before=None, n_before=0, most=400_000):
    """Mean rows from the change to the alarm, of streams that had none before it."""
    delays = []
    for stream in range(streams):
        rng = np.random.default_rng([stream, 27])
        monitor = make()
        if n_before:
            monitor.update(rng.random(n_before) < before)
        if monitor.alarm_at_ is not None:
            continue
        chunk = 512
        while monitor.alarm_at_ is None and monitor.n_ - n_before < most:
            monitor.update(rng.random(chunk) < rate)
            chunk = min(2 * chunk, 65_536)
        delays.append((monitor.alarm_at_ or most) - n_before)
    return float(np.mean(delays))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "times", "sprt"),
    [(1.5, 1.27, 2900), (2, 1.24, 840), (5, 1.24, 90)],
)
def test_rows_to_the_alarm_by_counts(factor, times, sprt):
    """Multiples of the sequential test that knows the rate, at b = .01."""
    found = rows_to_alarm(
        lambda: PromiseMonitor(promise(bound=0.01), watch="average"),
        0.01 * factor,
        400,
    )
    assert found <= 1.15 * times * sprt


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "loss"), [(1.5, 1.08), (2, 1.10), (5, 1.32)])
def test_restarts_lose_little_at_the_start(factor, loss):
    b = 0.01
    counts = rows_to_alarm(
        lambda: PromiseMonitor(promise(bound=b), watch="average"), factor * b, 400
    )
    restarts = rows_to_alarm(lambda: PromiseMonitor(promise(bound=b)), factor * b, 400)
    assert restarts <= 1.15 * loss * counts


def rows_to_alarm_of_cusum(before, after, n_before, streams=3000):
    """Mean delay of the CUSUM that knows both rates, 5 % false alarms in `n_before`."""
    rng = np.random.default_rng(31)
    up, down = np.log(after / before), np.log((1 - after) / (1 - before))
    sums, peaks = np.zeros(streams), np.zeros(streams)
    for _ in range(n_before):
        steps = np.where(rng.random(streams) < before, up, down)
        sums = np.maximum(0, sums + steps)
        np.maximum(peaks, sums, out=peaks)
    limit = np.quantile(peaks, 0.95)
    sums, rows = sums[peaks < limit], []
    while len(sums):
        rows.append(len(sums))
        steps = np.where(rng.random(len(sums)) < after, up, down)
        sums = np.maximum(0, sums + steps)
        sums = sums[sums < limit]
    return sum(rows) / rows[0]


AFTER_A_GOOD_STRETCH = [
    (100, 1, {1.5: 2.3, 2: 1.8, 5: 1.6}),
    (1000, 1, {1.5: 1.8, 2: 1.8, 5: 1.7}),
    (1000, 0.5, {1.5: 9.2, 2: 4.7, 5: 2.7}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("stretch", "before", "times"), AFTER_A_GOOD_STRETCH)
def test_a_change_after_a_long_good_stretch(stretch, before, times):
    """Rows to the alarm in multiples of a CUSUM that knows both rates."""
    b = 0.05
    n_before = round(stretch / b)
    for factor, expected in times.items():
        found = rows_to_alarm(
            lambda: PromiseMonitor(promise(bound=b)),
            factor * b,
            300,
            before=before * b,
            n_before=n_before,
        )
        cusum = rows_to_alarm_of_cusum(before * b, factor * b, n_before)
        assert found <= 1.15 * expected * cusum, factor


@pytest.mark.slow
@pytest.mark.parametrize(("share", "times"), [(0.0, 1.5), (0.5, 1.15), (0.8, 1.3)])
def test_rows_to_a_certificate(share, times):
    """Of a rate of `share` b, b = .01, in multiples of the test that knows it."""
    oracle = {0.0: 300, 0.5: 1957, 0.8: 13954}[share]
    rows = []
    for stream in range(200):
        rng = np.random.default_rng([stream, 28])
        monitor = PromiseMonitor(promise(bound=0.01))
        while monitor.verdict == "consistent":
            n = max(1, monitor.n_ // 50)
            monitor.update(int((rng.random(n) < share * 0.01).sum()), n=n)
        if monitor.verdict == "kept":
            rows.append(monitor.n_)
    assert np.mean(rows) <= 1.15 * times * oracle


DRIFTS = {
    "shift .25": (lambda x: x + 0.25, 168, 388),
    "shift .5": (lambda x: x + 0.5, 57, 134),
    "shift 1": (lambda x: x + 1, 15, 31),
    "spread 1.5": (lambda x: 1.5 * x, 32, 78),
    "spread .5": (lambda x: 0.5 * x, 22, 49),
}


@pytest.mark.slow
@pytest.mark.parametrize("n_before", [0, 5000])
@pytest.mark.parametrize("name", [*DRIFTS, "5 % outliers"])
def test_rows_to_the_alarm_of_drift(name, n_before):
    """Median over 240 streams with 1000 reference rows, one column."""
    delays = []
    for stream in range(240):
        rng = np.random.default_rng([stream, 29])
        monitor = DriftMonitor(random_state=stream).fit(rng.normal(size=1000))
        monitor.update(rng.normal(size=n_before))
        new = rng.normal(size=5000)
        if name in DRIFTS:
            new = DRIFTS[name][0](new)
        else:
            new = np.where(rng.random(5000) < 0.05, 5.0, new)
        monitor.update(new)
        if monitor.alarm_at_ is None or monitor.alarm_at_ > n_before:
            delays.append((monitor.alarm_at_ or n_before + 5000) - n_before)
    expected = DRIFTS[name][1:] if name in DRIFTS else (106, 216)
    assert np.median(delays) <= 1.25 * expected[n_before > 0]


def day(k):
    """Name of a table of 40 labelled rows, another one each day."""
    rng = np.random.default_rng([k, 30])
    y = rng.integers(0, 2, 40)
    X = rng.normal(size=(40, 2)) + 3 * y[:, None]
    rows = [f"{a:.4f},{b:.4f},{LABELS[c]}" for (a, b), c in zip(X, y, strict=True)]
    Path(f"day-{k}.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    return f"day-{k}.csv"


def update(k, state):
    arguments = ["--data", day(k), "--target", "y", "--state", state]
    with redirect_stdout(StringIO()), pytest.raises(SystemExit) as end:
        main(["monitor", "model.prudent", *arguments, "--reference", "old.csv"])
    assert end.value.code == 0


def update_for_ever(state):
    k = len(json.loads(Path(state).read_text())["updates"])
    while True:
        update(k, state)
        k += 1


def without_times(state):
    found = json.loads(Path(state).read_text())
    for one in found["updates"]:
        del one["time"]
    return found


KILLS = pytest.param(200, marks=pytest.mark.slow, id="200")


@pytest.mark.parametrize("kills", [KILLS, pytest.param(6, id="6")])
def test_a_kill_of_the_command_leaves_its_update_whole_or_not_at_all(
    tmp_path, monkeypatch, kills
):
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("processes cannot be forked here")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = pd.DataFrame(rng.normal(size=(400, 2)) + 3 * y[:, None], columns=["a", "b"])
    model = MinimaxProbabilityClassifier().fit(X, LABELS[y])
    library.save(model, "model.prudent")
    Path(day(0)).rename("old.csv")
    update(0, "watch.json")
    start = time.perf_counter()
    update(1, "watch.json")
    one_update = time.perf_counter() - start
    sizes = [2]
    for _ in range(kills):
        process = multiprocessing.get_context("fork").Process(
            target=update_for_ever, args=("watch.json",)
        )
        process.start()
        time.sleep(one_update * rng.uniform(0.5, 4))
        process.kill()
        process.join()
        sizes.append(len(json.loads(Path("watch.json").read_text())["updates"]))
    assert sizes == sorted(sizes)
    update(sizes[-1], "watch.json")
    for k in range(sizes[-1] + 1):
        update(k, "never-killed.json")
    assert without_times("watch.json") == without_times("never-killed.json")


AT_ONCE = """
import sys
from pathlib import Path
from prudent.cli.output import CommandError
from prudent.cli.monitor import read_state, replace_state
path, name = Path(sys.argv[1]), sys.argv[2]
for i in range(100):
    state, before = read_state(path)
    state = state or {"format": 1, "updates": []}
    state["updates"].append(f"{name}-{i}")
    try:
        replace_state(path, state, before)
    except CommandError as error:
        assert error.code == 3, error
    else:
        print(f"{name}-{i}")
"""


def test_runs_at_once_lose_no_update_that_was_reported_as_counted(tmp_path):
    path = tmp_path / "watch.json"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(path), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c")
    ]
    reported = [line for p in processes for line in p.communicate()[0].split()]
    assert all(process.returncode == 0 for process in processes)
    assert sorted(json.loads(path.read_text())["updates"]) == sorted(reported)
    assert len(reported) >= 100


# Two classes; the score, which is all of a row, is the probability of "good".
SCORES = np.linspace(0.025, 0.975, 20)


class OfScores(ClassifierMixin, BaseEstimator):
    """Answers "good" from one half on, is sure by the distance from it."""

    def fit(self, X=None, y=None):
        self.classes_ = LABELS
        return self

    def predict_proba(self, X):
        good = np.asarray(X)[:, 0]
        return np.column_stack([1 - good, good])

    def predict(self, X):
        return LABELS[(np.asarray(X)[:, 0] >= 0.5).astype(int)]


def scored(n, rng):
    good = rng.choice(SCORES, n)
    return good[:, None], LABELS[(rng.random(n) < good).astype(int)]


def share_settings(quantity, rng):
    """A fitted model that promises the quantity, and its promises of it."""
    X, y = scored(400, rng)
    frozen = FrozenEstimator(OfScores().fit())
    if quantity == "answered share":
        model = SelectiveClassifier(frozen, error_rate=0.2, answered_share=0.4)
    elif quantity == "flagged share":
        model = NeymanPearsonClassifier(
            frozen, max_class_error={"good": 0.2}, flagged_share=0.75
        )
    else:
        model = BinnedCalibrationClassifier(frozen, n_bins=5)
    model.fit(X, y)
    return model, [g for g in model.guarantees_ if g.quantity == quantity]


@pytest.mark.parametrize("streams", [pytest.param(2000, marks=pytest.mark.slow), 100])
@pytest.mark.parametrize("quantity", ["answered share", "flagged share", "probability"])
@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
def test_promised_shares_and_probabilities_are_rarely_called_broken(quantity, streams):
    """Fit, then watch with level/P each: wrong alarms at most 5 % and 5 %."""
    rng = np.random.default_rng(37)
    alarms = wrong = promised = 0
    for _ in range(streams):
        model, promises = share_settings(quantity, rng)
        promised += bool(promises)
        X, y = scored(400, rng)
        broken = checked = False
        for promise in promises:
            level = 0.05 / len(promises)
            about = np.ones(len(y), dtype=bool)
            if promise.subgroup is not None:
                about = model.is_about(promise, X)
            said = counted_answers(quantity, model, X[about])
            monitor = PromiseMonitor(promise, level=level).update_rows(y[about], *said)
            broken |= monitor.verdict == "broken"
            monitor = monitor.guarantee.check(monitor.violations_, monitor.n_ or 1)
            checked |= monitor.verdict == "broken" and len(promises) == 1
        alarms, wrong = alarms + broken, wrong + checked
    # Not in vain: a score and its mirror image are equally sure, so places are few.
    assert promised > 0.4 * streams
    assert held(alarms, streams, 0.1)  # the level, and what the promise may fail
    assert held(wrong, streams, 0.1)


@pytest.mark.parametrize("quantity", ["answered share", "flagged share", "probability"])
@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
def test_broken_shares_and_probabilities_are_found_out(quantity):
    rng = np.random.default_rng(38)
    found = 0
    for _ in range(20):
        model, promises = share_settings(quantity, rng)
        X, y = scored(2000, rng)
        if quantity == "answered share":
            X[:] = rng.choice(SCORES[9:11], (len(X), 1))  # unsure rows only
        elif quantity == "flagged share":
            X[:] = SCORES[-1]
        else:
            y[:] = "bad"
        broken = False
        for promise in promises:
            about = np.ones(len(y), dtype=bool)
            if promise.subgroup is not None:
                about = model.is_about(promise, X)
            said = counted_answers(quantity, model, X[about])
            monitor = PromiseMonitor(promise, level=0.05 / len(promises))
            broken |= monitor.update_rows(y[about], *said).verdict == "broken"
        found += broken or not promises
    assert found == 20


def test_precision_is_watched_among_flagged_rows():
    """Bands promise it of a threshold chosen after looking."""
    rng = np.random.default_rng(39)
    alarms, streams = 0, 100
    for _ in range(streams):
        X, y = scored(600, rng)
        bands = ThresholdBands.from_scores(
            X[:, 0], y, kind="alarms", positive="good", confidence=0.9
        )
        threshold = rng.choice(SCORES)  # whatever was looked at
        (precision,) = [g for g in bands.at(threshold) if g.quantity == "precision"]
        X, y = scored(600, rng)
        said = LABELS[(X[:, 0] >= threshold).astype(int)]
        watched = PromiseMonitor(precision).update_rows(y, said)
        assert watched.n_ == (said == "good").sum()
        alarms += watched.verdict == "broken"
    assert held(alarms, streams, 0.15)
    false = PromiseMonitor(precision).update_rows(
        np.full(600, "bad"), np.full(600, "good")
    )
    assert false.verdict == "broken"
