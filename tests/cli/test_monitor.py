"""`prudent monitor` as an operator drives it: every day, unattended."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

import prudent as library
from prudent import Guarantee, MinimaxProbabilityClassifier, PromiseMonitor
from prudent.cli import monitor
from prudent.cli.output import CommandError
from prudent.cli.watching import Watch

LABELS = np.array(["bad", "good"])


def draw(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + 3 * y[:, None] + shift, LABELS[y]


def lines_of(X, y):
    rows = zip(*X.T, y, strict=True)
    return "".join(f"{a:.6f},{b:.6f},{label}\n" for a, b, label in rows)


def named(X):
    return pd.DataFrame(X, columns=["a", "b"])


@pytest.fixture
def operator(prudent, tmp_path, monkeypatch):
    """A folder with a model, and a way to write the day's table."""
    monkeypatch.chdir(tmp_path)
    X, y = draw(400, 0)
    model = MinimaxProbabilityClassifier().fit(named(X), y)
    library.save(model, "model.prudent")

    class Operator:
        def table(self, name, n=100, seed=1, shift=0.0, labels="all"):
            X, y = draw(n, seed, shift)
            head = "a,b" if labels == "none" else "a,b,y"
            lines = [head]
            for i, (row, label) in enumerate(zip(X, y, strict=True)):
                cells = [f"{value:.6f}" for value in row]
                if labels != "none":
                    cells.append("" if labels == "some" and i % 4 == 0 else label)
                lines.append(",".join(cells))
            (tmp_path / name).write_text("\n".join(lines) + "\n")
            return name

        def run(self, data, *more, target=True, **options):
            arguments = ["monitor", "model.prudent", "--data", data]
            arguments += ["--target", "y"] if target else []
            return prudent(*arguments, *more, **options)

        def state(self):
            return json.loads((tmp_path / "watch.json").read_text())

    return Operator()


STATE = ("--state", "watch.json")


def patients(name, seed, shift=0.0):
    """A table of 60 patients, 20 rows each, all near the patient's own."""
    rng = np.random.default_rng(seed)
    own = np.repeat(rng.normal(size=60), 20) + shift
    frame = named(own[:, None] + 0.05 * rng.normal(size=(1200, 2)))
    frame["patient"] = np.repeat(np.arange(60), 20) + 100 * seed
    frame.to_csv(name, index=False)
    return name


def test_drift_is_looked_for_in_one_row_of_each_group(operator):
    """Twenty rows of one patient are one draw; as twenty they look like drift."""
    given = ("--reference", patients("old.csv", 0), "--groups", "patient")
    codes = [
        operator.run(patients(f"{day}.csv", day), *given, target=False).code
        for day in range(1, 9)
    ]
    assert codes == [0] * 8
    found = operator.run("1.csv", *given[:2], target=False)  # what they would say
    assert found.code == 8
    shifted = patients("far.csv", 1, shift=3.0)
    assert operator.run(shifted, *given, *STATE, target=False).code == 8
    state = operator.state()
    alarm_at = state["drift"]["alarm_at"]  # the k-th patient
    assert state["drift"]["n"] == 60
    assert 20 * (alarm_at - 1) < state["drift_row"] <= 20 * alarm_at


def test_one_row_of_each_group_is_not_compared_with_single_rows(operator):
    """Where the size of a group says something, the two differ without drift."""
    rows = np.random.default_rng(0).normal(size=(300, 2))
    detector = library.LowDensityRejector(random_state=0).fit(named(rows))
    library.save(detector, "model.prudent")
    table, groups = patients("1.csv", 1), ("--groups", "patient")
    refused = operator.run(table, *groups, target=False)
    assert refused.code == 2
    assert "holds scores of single rows" in refused.err
    reference = ("--reference", patients("old.csv", 0))
    for more in (reference, ("--no-drift",)):
        assert operator.run(table, *groups, *more, target=False).code == 0


HOURS = 24


def shifts(n, rng, swing=3.0):
    """Hourly rows of n shifts: a feature that follows the hour, and the shift."""
    hour = np.tile(np.arange(HOURS), n)
    cycle = swing * np.sin(2 * np.pi * hour / HOURS)
    return (rng.normal(size=n * HOURS) + cycle)[:, None], np.repeat(np.arange(n), HOURS)


class ErrsWhereTheFeatureSaysSo:
    """A model whose answer is its only feature; the truth is 0."""

    guarantees_ = (
        Guarantee(quantity="error rate", bound=0.05, sense="<=", unit="group"),
    )

    def predict(self, X):
        return X[:, 0]


def not_too_many(n_alarms, n):
    return binomtest(n_alarms, n, 0.05, alternative="greater").pvalue > 0.01


def test_the_hours_of_a_shift_are_no_drift():
    """One shift a run; a fixed draw would show the same hour of each of them."""
    n_watches, n_drifted = 40, 0
    for seed in range(n_watches):
        rng = np.random.default_rng(seed)
        watch = Watch(f"{seed:07x}", 0.05, "rate", [])
        X, groups = shifts(300, rng)
        watch.compare_with(X, "", groups)
        for _ in range(60):
            X, groups = shifts(1, rng)
            watch.see(X, X, groups=groups)
        n_drifted += watch.drift.verdict == "drift"
    assert not_too_many(n_drifted, n_watches)


def test_a_hard_hour_of_a_shift_breaks_no_promise():
    model, n_watches, n_broken = ErrsWhereTheFeatureSaysSo(), 40, 0
    truth, groups = np.full(HOURS, 0.0, dtype=object), np.zeros(HOURS)
    shown = model.guarantees_[0].rows_that_count(HOURS, groups)
    for seed in range(n_watches):
        rng = np.random.default_rng(seed)
        watch = Watch.over(model, "0000000", 0.05, "rate")
        for _ in range(60):
            X = np.zeros((HOURS, 1))
            X[shown] = rng.random() < 0.04 * HOURS  # 0.04 of a random hour
            watch.count(model, X, truth, groups=groups)
        n_broken += watch.exit_code == 7
    assert not_too_many(n_broken, n_watches)


class ErrsInTheWard(ErrsWhereTheFeatureSaysSo):
    """Promises of the rows whose second feature is 1, and of ordinary ones."""

    guarantees_ = (
        Guarantee(
            **{"quantity": "error rate", "bound": 0.06, "sense": "<="},
            **{"unit": "group", "subgroup": "ward=s"},
        ),
        Guarantee(quantity="false alarm rate", bound=0.06, sense="<=", unit="group"),
    )

    def is_about(self, promise, X):
        return X[:, 1] == 1


def test_groups_that_are_partly_in_the_ward_weigh_by_their_rows_there():
    """Of half of the patients one row in ten is in the ward, half of these wrong.

    A random row of a random patient that is there is wrong with probability 1 / 22;
    among rows drawn from those in the ward it would be 1 / 4.
    """
    model, n_watches, n_broken, n_counted = ErrsInTheWard(), 40, np.zeros(2), 0
    groups = np.repeat(np.arange(150), 10)
    for seed in range(n_watches):
        rng = np.random.default_rng(seed)
        watch = Watch.over(model, f"{seed:07x}", 0.05, "rate")
        is_guest = np.repeat(rng.random(150) < 0.5, 10)
        in_ward = ~is_guest | (np.tile(np.arange(10), 150) == 0)
        # The answers of a detector: -1 is an alarm.
        answers = np.where(is_guest & (rng.random(1500) < 0.5), -1.0, 1.0)
        truth = np.where(in_ward, 1.0, 2.0).astype(object)
        X = np.column_stack([answers, in_ward])
        watch.count(model, X, truth, normal=1.0, groups=groups)
        of_ward, of_ordinary = (promise.monitor for promise in watch.promises)
        n_broken += [m.verdict == "broken" for m in (of_ward, of_ordinary)]
        n_counted += of_ward.n_
        assert of_ward.n_ == of_ordinary.n_
    assert not_too_many(int(n_broken[0]), n_watches)
    assert not_too_many(int(n_broken[1]), n_watches)
    assert 0.5 < n_counted / (150 * n_watches) < 0.6  # 0.55 of the patients


def test_the_alarm_of_a_promise_about_groups_is_a_row_that_was_looked_at():
    model, rng = ErrsWhereTheFeatureSaysSo(), np.random.default_rng(0)
    for _ in range(10):
        watch, wrong = Watch.over(model, "0000000", 0.05, "rate"), []
        while watch.exit_code == 0:
            X = rng.integers(0, 2, (HOURS, 1)).astype(float)
            truth, groups = np.full(HOURS, 0.0, dtype=object), np.arange(HOURS) // 8
            watch.count(model, X, truth, groups=groups, start=len(wrong))
            wrong.extend(X[:, 0])
        assert wrong[watch.promises[0].alarm_row - 1] == 1


def test_runs_over_shifts_of_equal_length(operator, monkeypatch):
    """A model that is wrong in one hour only, and features that follow the hour."""
    monkeypatch.setattr("prudent.cli.watching.Watch.seed", 0)
    hard = ErrsWhereTheFeatureSaysSo.guarantees_[0]
    model = library.load("model.prudent")
    model.guarantees_ = (hard,)
    library.save(model, "model.prudent")
    rng, shown = np.random.default_rng(0), hard.rows_that_count(HOURS, np.zeros(HOURS))

    def table(name, n):
        X, group = shifts(n, rng)
        frame = named(np.hstack([X, X]))
        is_wrong = np.arange(len(group)) % HOURS == shown
        is_good = (model.predict(frame) == "good") ^ is_wrong
        frame["y"], frame["shift"] = LABELS[is_good.astype(int)], group
        frame.to_csv(name, index=False)
        return name

    given = ("--groups", "shift", "--reference", table("old.csv", 300), *STATE)
    codes = {operator.run(table("day.csv", 1), *given).code for _ in range(20)}
    assert codes == {0}


def test_a_month_of_days(operator):
    operator.table("old.csv", 500, seed=0)
    outcome = operator.run(operator.table("day.csv"), *STATE, "--reference", "old.csv")
    assert outcome.code == 0
    assert "level 0.05 for all    day.csv: 100 rows, 100 labelled; 100" in outcome.out
    assert "error of class 'bad' ≤ 0." in outcome.out
    assert "drift (2 columns)" in outcome.out
    for day in range(2, 6):
        outcome = operator.run(operator.table("day.csv", seed=day), *STATE)
        assert outcome.code == 0
    assert outcome.out.count("kept") == 2
    assert "none seen" in outcome.out
    state = operator.state()
    assert [update["rows"] for update in state["updates"]] == [100] * 5
    assert {p["monitor"]["level"] for p in state["promises"]} == {0.025}
    # the mean of both classes moves: errors of one class, and drift
    moved = operator.table("day.csv", seed=7, shift=-2.5)
    outcome = operator.run(moved, *STATE)
    assert outcome.code == 7
    assert "BROKEN since row" in outcome.out
    assert "DRIFT since row" in outcome.out
    # for ever
    outcome = operator.run(operator.table("day.csv", seed=8), *STATE)
    assert outcome.code == 7


def test_runs_with_a_state_equal_one_monitor(operator):
    losses = {label: [] for label in LABELS}
    model = library.load("model.prudent")
    for day in range(1, 4):
        operator.run(operator.table("day.csv", seed=day), *STATE)
        X, y = draw(100, day)
        wrong = model.predict(named(np.round(X, 6))) != y
        for label in LABELS:
            losses[label] += wrong[y == label].tolist()
    for guarantee, stored in zip(
        model.guarantees_, operator.state()["promises"], strict=True
    ):
        monitor = PromiseMonitor(guarantee, level=0.025)
        monitor.update(losses[guarantee.scope])
        assert monitor == PromiseMonitor.from_dict(stored["monitor"])


@pytest.mark.parametrize("late", [False, True])
def test_alarms_are_rows_of_the_stream_in_every_line(operator, late):
    """Promises of a class and drift count other rows, and name the same ones."""
    operator.table("old.csv", 500, seed=0)
    reference = ("--reference", "old.csv")
    days = [("one.csv", 1, 0.0), ("two.csv", 2, 0.0), ("bad.csv", 3, -2.5)]
    for name, seed, shift in days:
        if late:  # first the features, then the labels
            operator.table(name, seed=seed, shift=shift, labels="none")
            operator.run(name, *STATE, *reference, target=False)
        operator.table(name, seed=seed, shift=shift, labels="some")
        outcome = operator.run(name, *STATE, *reference)
        reference = ()
    assert outcome.code == 7
    assert "300 rows since" in outcome.out
    model = library.load("model.prudent")
    tables = [pd.read_csv(name) for name, *_ in days]
    stream = pd.concat(tables, ignore_index=True)
    state = operator.state()
    for guarantee, stored in zip(model.guarantees_, state["promises"], strict=True):
        monitor = PromiseMonitor.from_dict(stored["monitor"])
        of_class = np.flatnonzero(stream["y"] == guarantee.scope)
        assert monitor.n_ == len(of_class)
        if monitor.alarm_at_ is None:
            assert stored["alarm_row"] is None
            continue
        assert stored["alarm_row"] == of_class[monitor.alarm_at_ - 1] + 1
        assert f"BROKEN since row {stored['alarm_row']} (" in outcome.out
        assert 200 < stored["alarm_row"] <= 300
    assert any(stored["alarm_row"] for stored in state["promises"])
    assert state["drift_row"] == state["drift"]["alarm_at"] > 200
    assert f"DRIFT since row {state['drift_row']} (" in outcome.out


def test_confidences_are_summed_where_promises_do_not_hold_at_once(prudent, tmp_path):
    fit = ("fit", "breast_cancer", "--method", "lda", "-o", tmp_path / "m")
    promise = ("--promise", "coverage >= 80% in every class", "--confidence", "0.9")
    assert prudent(*fit, *promise).code == 0
    watched = ("monitor", tmp_path / "m", "--data", "breast_cancer")
    outcome = prudent(*watched, "--target", "diagnosis")
    assert "or that the promises are false, with at most 15 %." in outcome.out


def test_drift_alone_is_code_8(operator):
    operator.table("old.csv", 500, seed=0)
    wide = operator.table("day.csv", 300, seed=3, shift=30.0, labels="none")
    outcome = operator.run(wide, "--reference", "old.csv", target=False)
    assert outcome.code == 8
    assert outcome.out.count("not watched: no --target") == 2


def towns(path, n, seed, n_towns=3000):
    """Write a table in which many towns are rare; most of it are two of them."""
    random = np.random.default_rng(seed)
    rare = [f"Alm {town}" for town in random.integers(0, n_towns, n)]
    common = random.choice(["Rome", "Paris"], n)
    names = np.where(random.random(n) < 0.3, rare, common)
    y = random.choice(["no", "yes"], n)
    x = random.normal(size=n) + 3 * (y == "yes")
    lines = [f"{a:.3f},{b},{c}" for a, b, c in zip(x, names, y, strict=True)]
    path.write_text("\n".join(["x,town,y", *lines]))


def test_words_that_the_reference_happens_to_lack_are_no_drift(
    prudent, tmp_path, monkeypatch
):
    # Coins follow from the file of the model, which differs in each run.
    monkeypatch.setattr("prudent.cli.watching.Watch.seed", 0)
    table, week = tmp_path / "table.csv", tmp_path / "week.csv"
    towns(table, 400, 0)
    model = tmp_path / "model.prudent"
    common = ("--target", "y", "--method", "logistic", "--promise", "error <= 20%")
    assert prudent("fit", table, *common, "-o", model).code == 0
    watch = ("monitor", model, "--reference", table, "--data", week, "--target", "y")
    towns(week, 600, 1)  # the same law, but villages are new
    same = prudent(*watch)
    assert same.code == 0, same.out
    told = "some words were not in the rows of the fit: they count as rare ones"
    assert same.err.count(f"note: {told}\n") == 1
    assert "Found unknown categories" not in same.err
    towns(week, 3000, 1, n_towns=1)
    other = prudent(*watch)
    assert other.code == 8
    assert "most: town" in other.out


def test_labels_that_the_model_has_not_learned_are_told(operator, prudent, tmp_path):
    """They are in no set, and belong to no class that is promised about."""
    X, y = draw(400, 0)
    (tmp_path / "old.csv").write_text("a,b,y\n" + lines_of(X, y))
    fit = ("fit", "old.csv", "--target", "y", "--method", "lda", "--quiet")
    for promise, n_counted in (("coverage >= 80%", 200), ("missed bad <= 40%", None)):
        asked = ("--promise", promise, "-o", "model.prudent")
        assert prudent(*fit, *asked).code == 0
        X, y = draw(200, 1)
        strange = np.where(np.arange(200) < 50, "new", y.astype(str))
        strange[0] = "old"
        (tmp_path / "new.csv").write_text("a,b,y\n" + lines_of(X, strange))
        outcome = operator.run("new.csv", "--json", "out.json")
        assert (
            "new.csv: 50 rows with a label that the model does not know ('old' and 1 "
            "more): promises about one class leave them out, those about all rows "
            "count them as wrong"
        ) in outcome.err
        (promise,) = json.loads((tmp_path / "out.json").read_text())["promises"]
        if n_counted is None:
            assert promise["n"] == (strange == "bad").sum()
        else:
            assert promise["n"] == n_counted
            assert promise["violations"] >= 50
        (tmp_path / "known.csv").write_text("a,b,y\n" + lines_of(X, y))
        assert "does not know" not in operator.run("known.csv").err


def test_codes_come_from_a_process_of_its_own(operator):
    operator.table("old.csv", 500, seed=0)
    operator.table("good.csv", seed=2)
    operator.table("moved.csv", seed=3, shift=-3.0)
    command = (sys.executable, "-m", "prudent", "monitor", "model.prudent", "--data")
    shared = ("--reference", "old.csv", "--quiet")
    for more, code in (
        (("good.csv", "--target", "y"), 0),
        (("moved.csv", "--target", "y"), 7),
        (("moved.csv",), 8),
    ):
        done = subprocess.run(
            [*command, *more, *shared], capture_output=True, check=False
        )
        assert done.returncode == code, done.stderr


def test_a_table_counted_twice(operator):
    operator.run(operator.table("new.csv"), *STATE)
    before = operator.state()
    outcome = operator.run("new.csv", *STATE)
    assert outcome.code == 3
    day = before["updates"][0]["time"][:10]
    assert outcome.err == (
        f"prudent: error: new.csv was counted on {day}. Give --again to count it "
        "twice\n"
    )
    assert operator.state() == before
    assert operator.run("new.csv", *STATE, "--again").code == 0
    assert len(operator.state()["updates"]) == 2


def test_standard_input_has_a_digest_too(operator, tmp_path):
    operator.table("new.csv")
    content = (tmp_path / "new.csv").read_bytes()
    assert operator.run("-", *STATE, stdin=content).code == 0
    assert operator.run("-", *STATE, stdin=content).code == 3
    assert operator.run("new.csv", *STATE).code == 3


def test_labels_that_come_a_week_later(operator):
    """The rows were seen for drift; with their labels only these are counted."""
    operator.table("old.csv", 500, seed=0)
    reference = ("--reference", "old.csv")
    operator.table("rows.csv", labels="none")
    assert operator.run("rows.csv", *STATE, *reference, target=False).code == 0
    operator.table("labelled.csv")
    outcome = operator.run("labelled.csv", *STATE)
    assert outcome.code == 0
    assert "rows that were seen before, counted for their labels only" in outcome.err
    assert "labelled.csv: 100 rows, 100 labelled; 100 rows since" in outcome.out
    state = operator.state()
    assert state["drift"]["n"] == 100
    assert sum(p["monitor"]["n"] for p in state["promises"]) == 100
    # the same file, first without and then with its labels
    operator.table("both.csv", seed=5)
    assert operator.run("both.csv", *STATE, target=False).code == 0
    assert operator.run("both.csv", *STATE).code == 0
    assert operator.run("both.csv", *STATE).code == 3
    assert operator.run("both.csv", *STATE, target=False).code == 3


class AnswersOnes:
    """A model that answers the rows of a one."""

    guarantees_ = (Guarantee(quantity="answered share", bound=0.8, sense=">="),)
    classes_ = LABELS

    def predict_set(self, X):
        return np.hstack([X == 1, X < 0])


BINARY = SimpleNamespace(estimator=AnswersOnes(), last=None, rows=np.asarray)


def count(watch, X, labels=()):
    """Count a table of one binary column; no two are equal byte for byte."""
    truth = np.array([*labels, *[None] * (len(X) - len(labels))], dtype=object)
    digests = str(len(watch.updates)), X.tobytes().hex()
    rows = monitor.Rows("new.csv", *digests, X, X, truth, None)
    monitor._count(watch, BINARY, rows, None, drift=True, again=False)


def binary(n, rng, share=0.82):
    return (rng.random((n, 1)) < share).astype(float)


def test_new_rows_that_equal_earlier_ones_by_chance_are_counted():
    """Leaving out tables that came before leaves out the most frequent ones."""
    n_watches, n_tables, n_drifted, n_broken = 40, 200, 0, 0
    for seed in range(n_watches):
        rng = np.random.default_rng(seed)
        watch = Watch.over(BINARY.estimator, f"{seed:07x}", 0.05, "rate")
        watch.compare_with(binary(800, rng), "")
        for _ in range(n_tables):
            count(watch, binary(6, rng))
        n_drifted += watch.drift.verdict == "drift"
        n_broken += watch.promises[0].monitor.verdict == "broken"
        assert watch.n_rows == watch.drift.n_ == 6 * n_tables
    assert not_too_many(n_drifted, n_watches)
    assert not_too_many(n_broken, n_watches)


def test_each_table_gets_its_labels_once(capsys):
    watch = Watch.over(BINARY.estimator, "0000000", 0.05, "rate")
    watch.compare_with(binary(800, np.random.default_rng(0)), "")
    tables = [np.ones((3, 1)), np.zeros((5, 1)), np.ones((3, 1))]
    for X in tables:
        count(watch, X)
    looked, of_share = watch.drift, watch.promises[0].monitor
    assert watch.n_rows == looked.n_ == of_share.n_ == 11
    runs = []
    for X in tables:
        runs.append(watch.run_without_labels(X.tobytes().hex()))
        count(watch, X, ["good"])
    assert watch.n_rows == looked.n_ == of_share.n_ == 11
    assert "rows that were seen before" in capsys.readouterr().err
    assert runs == [0, 1, 2]
    assert [watch.n_rows_before(run) for run in range(3)] == [0, 3, 8]
    count(watch, tables[0], ["good"])  # with labels at once
    assert watch.n_rows == looked.n_ == of_share.n_ == 14
    assert capsys.readouterr().err == ""


def test_shares_of_answered_rows_need_no_labels(operator):
    """All rows count, once: not again when their labels come."""
    X, y = draw(400, 0)
    model = library.SelectiveClassifier(
        LogisticRegression(), error_rate=0.2, answered_share=0.3, random_state=0
    ).fit(named(X), y)
    library.save(model, "model.prudent")

    def counts():
        """Rows counted for the error rate, and for the share."""
        return [p["monitor"]["n"] for p in operator.state()["promises"]]

    operator.table("rows.csv", labels="none")
    outcome = operator.run("rows.csv", *STATE, target=False)
    assert outcome.code == 0, outcome.err
    assert [g.quantity for g in model.guarantees_][1] == "answered share"
    assert counts() == [0, 100]
    operator.table("labelled.csv", labels="some")
    assert operator.run("labelled.csv", *STATE).code == 0
    n_answered = model.answers(named(draw(100, 1)[0])).sum()
    assert counts()[1] == 100
    assert 0 < counts()[0] <= min(75, n_answered)
    assert operator.run("labelled.csv", *STATE, "--again").code == 0
    assert counts()[1] == 200
    # Some labels that came later, in a table of these rows alone.
    n_wrong_or_right = counts()[0]
    operator.table("late.csv", n=40, seed=1)
    outcome = operator.run("late.csv", *STATE, "--no-drift")
    assert "not watched now: --no-drift, for rows that were seen before" in outcome.out
    assert counts()[1] == 200
    assert counts()[0] > n_wrong_or_right


def test_labels_of_some_rows(operator):
    outcome = operator.run(operator.table("new.csv", labels="some"), *STATE)
    assert "100 rows, 75 labelled" in outcome.out
    assert sum(p["monitor"]["n"] for p in operator.state()["promises"]) == 75
    no_drift = operator.run(operator.table("new.csv", seed=4), *STATE, "--no-drift")
    assert no_drift.code == 0
    assert operator.state()["updates"][1]["drift"] is False


def test_labels_the_model_does_not_know_count_as_wrong(operator, tmp_path):
    guarantee = Guarantee(quantity="error rate", bound=0.5, sense="<=")
    model = library.load("model.prudent")
    model.guarantees_ = (guarantee,)
    library.save(model, "model.prudent")
    text = "a,b,y\n" + "0,0,new\n" * 30
    (tmp_path / "new.csv").write_text(text)
    assert operator.run("new.csv").code == 7


def test_a_model_replaced_underneath(operator):
    operator.run(operator.table("new.csv"), *STATE)
    before = operator.state()
    X, y = draw(400, 9)
    model = MinimaxProbabilityClassifier().fit(named(X), y)
    library.save(model, "model.prudent")
    outcome = operator.run(operator.table("new.csv", seed=2), *STATE)
    assert outcome.code == 4
    assert f"watch.json watches another model ({before['model'][:4]}.., this is " in (
        outcome.err
    )
    assert outcome.err.endswith("). Start a new state\n")
    assert operator.state() == before


@pytest.mark.parametrize(
    ("option", "value", "stored"),
    [("--level", "0.1", "0.05"), ("--watch", "average", "rate")],
)
def test_other_settings_than_stored(operator, option, value, stored):
    operator.run(operator.table("new.csv"), *STATE)
    outcome = operator.run(operator.table("new.csv", seed=2), *STATE, option, value)
    assert outcome.code == 2
    assert f"{option} {stored}" in outcome.err
    assert f"{option} {value}" in outcome.err


def test_settings_are_remembered(operator):
    more = ("--level", "0.2", "--watch", "average")
    operator.run(operator.table("new.csv"), *STATE, *more)
    assert operator.run(operator.table("new.csv", seed=2), *STATE).code == 0
    assert operator.run(operator.table("new.csv", seed=3), *STATE, *more).code == 0
    state = operator.state()
    assert (state["level"], state["watch"]) == (0.2, "average")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 1}', '{"a": 1}', "\x00", '"x"']
)
def test_a_damaged_state(operator, tmp_path, content):
    operator.run(operator.table("new.csv"), *STATE)
    whole = operator.state()
    (tmp_path / "watch.json").write_text(content)
    outcome = operator.run(operator.table("new.csv", seed=2), *STATE)
    assert outcome.code == 4
    assert "watch.json" in outcome.err
    cut = {**whole, "promises": whole["promises"][:1]}
    (tmp_path / "watch.json").write_text(json.dumps(cut))
    outcome = operator.run("new.csv", *STATE)
    assert outcome.code == 4
    assert "watch.json is damaged" in outcome.err


def test_a_state_of_a_newer_version(operator, tmp_path):
    operator.run(operator.table("new.csv"), *STATE)
    (tmp_path / "watch.json").write_text(json.dumps({**operator.state(), "format": 2}))
    outcome = operator.run(operator.table("new.csv", seed=2), *STATE)
    assert outcome.code == 4
    assert "the state has format 2, this is prudent" in outcome.err


def test_two_runs_at_once(operator, tmp_path, monkeypatch):
    """The second finds another state than it read, and counts nothing."""
    operator.run(operator.table("new.csv"), *STATE)
    read = monitor.read_state

    def overtaken(path):
        found = read(path)
        monkeypatch.setattr("prudent.cli.monitor.read_state", read)
        assert operator.run(operator.table("other.csv", seed=2), *STATE).code == 0
        return found

    monkeypatch.setattr("prudent.cli.monitor.read_state", overtaken)
    outcome = operator.run(operator.table("third.csv", seed=3), *STATE)
    assert outcome.code == 3
    assert outcome.err == (
        "prudent: error: watch.json changed while this ran. Run again\n"
    )
    assert len(operator.state()["updates"]) == 2
    assert operator.run("third.csv", *STATE).code == 0
    assert len(operator.state()["updates"]) == 3


def test_two_first_runs_at_once(tmp_path):
    path = tmp_path / "watch.json"
    monitor.replace_state(path, {"format": 1}, None)
    with pytest.raises(CommandError, match="watch.json changed while this ran"):
        monitor.replace_state(path, {"format": 1}, None)


def test_a_full_disk(operator, tmp_path, monkeypatch):
    operator.run(operator.table("new.csv"), *STATE)
    before = operator.state()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("prudent.cli.monitor.os.fsync", full)
    outcome = operator.run(operator.table("new.csv", seed=2), *STATE)
    assert outcome.code == 3
    assert "cannot write watch.json: No space left on device. No row was counted" in (
        outcome.err
    )
    assert operator.state() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "model.prudent",
        "new.csv",
        "watch.json",
    ]


def test_bad_rows_count_nothing(operator, tmp_path):
    operator.run(operator.table("new.csv"), *STATE)
    before = operator.state()
    (tmp_path / "bad.csv").write_text("a,b,y\n1,2,good\n1,inf,bad\n")
    assert operator.run("bad.csv", *STATE).code == 3
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    outcome = operator.run("bad.csv", *STATE)
    assert outcome.code == 3
    assert "no column 'y'" in outcome.err
    assert operator.state() == before


def test_a_model_without_promise_or_reference(operator):
    model = library.load("model.prudent")
    model.guarantees_ = ()
    library.save(model, "model.prudent")
    outcome = operator.run(operator.table("new.csv"))
    assert outcome.code == 4
    assert outcome.err == (
        "prudent: error: model.prudent makes no promise and holds no reference rows. "
        "Give --reference\n"
    )
    assert operator.run("new.csv", "--reference", "new.csv").code == 0


def test_promises_that_cannot_be_watched_say_why(operator):
    model = library.load("model.prudent")
    model.guarantees_ = (
        Guarantee(quantity="coverage", bound=0.9, sense=">=",
                  average_over="training samples"),
        *model.guarantees_[:1],
    )  # fmt: skip
    library.save(model, "model.prudent")
    outcome = operator.run(operator.table("new.csv"), *STATE)
    assert outcome.code == 0
    assert (
        "not watched: the promise holds on average over training samples, by a law "
        "that is not known. Fit with --confidence\n"
    ) in outcome.out
    watched = [p["monitor"] for p in operator.state()["promises"]]
    assert watched[0] is None
    assert watched[1]["level"] == 0.05
    assert "drift: not watched, give --reference" in outcome.out


def test_other_reference_rows_than_stored(operator):
    operator.table("old.csv", 300, seed=0)
    operator.table("other.csv", 300, seed=9)
    operator.run(operator.table("new.csv"), *STATE, "--reference", "old.csv")
    again = operator.run(
        operator.table("new.csv", seed=2), *STATE, "--reference", "old.csv"
    )
    assert again.code == 0
    outcome = operator.run("new.csv", *STATE, "--reference", "other.csv")
    assert outcome.code == 2
    assert "watch.json compares with other reference rows" in outcome.err


def test_many_reference_rows_are_drawn_from(operator):
    operator.table("old.csv", 3000, seed=0)
    outcome = operator.run(operator.table("new.csv"), *STATE, "--reference", "old.csv")
    assert "2 000 of 3 000 reference rows are drawn" in outcome.err


@pytest.mark.parametrize("level", ["0", "1"])
def test_level_out_of_range(operator, level):
    outcome = operator.run(operator.table("new.csv"), "--level", level)
    assert outcome.code == 2
    assert "--level must lie in (0, 1)" in outcome.err


def test_json_is_all_that_is_printed(operator, tmp_path):
    operator.table("old.csv", 500, seed=0)
    outcome = operator.run(
        operator.table("new.csv"), *STATE, "--json", "-", "--reference", "old.csv"
    )
    found = json.loads(outcome.out)
    assert found["exit_code"] == outcome.code == 0
    assert [p["scope"] for p in found["promises"]] == ["bad", "good"]
    for promise in found["promises"]:
        assert promise["verdict"] in ("kept", "consistent")
        assert promise["interval"][0] <= promise["measured"] <= promise["interval"][1]
    assert {c["column"] for c in found["drift"]["columns"]} == {"a", "b"}
    outcome = operator.run(
        operator.table("new.csv", seed=2), *STATE, "--json", "found.json"
    )
    assert json.loads((tmp_path / "found.json").read_text())["rows"] == 200
    assert "promise" in outcome.out


def test_report_is_one_offline_page(operator, tmp_path):
    operator.table("old.csv", 500, seed=0)
    moved = operator.table("moved.csv", 300, seed=3, shift=-2.5)
    outcome = operator.run(
        moved, *STATE, "--reference", "old.csv", "--report", "out.html"
    )
    assert outcome.code == 7
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 3
    assert "error of class &#39;bad&#39;" in page
    assert 'class="broken"' in page
    assert 'class="drift"' in page
    # The table of what is watched is wider than half a page.
    assert '<section id="result" class="wide"' in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 150_000
    assert "Mean position" in page


def test_the_page_tells_the_two_rows_of_an_alarm_apart(operator, prudent, tmp_path):
    """Of all rows, and of those counted, which the axis of its figure shows."""
    X, y = draw(400, 0)
    (tmp_path / "old.csv").write_text("a,b,y\n" + lines_of(X, y))
    fit = ("fit", "old.csv", "--target", "y", "--method", "lda", "--quiet")
    assert prudent(*fit, "--promise", "error <= 10%", "-o", "model.prudent").code == 0
    X, y = draw(300, 1)
    unlabelled = np.where(np.arange(300) % 3 == 0, "", y[::-1])
    (tmp_path / "new.csv").write_text("a,b,y\n" + lines_of(X, unlabelled))
    outcome = operator.run("new.csv", *STATE, "--report", "out.html")
    assert outcome.code == 7
    (promise,) = operator.state()["promises"]
    row, place = promise["alarm_row"], promise["monitor"]["alarm_at"]
    page = (tmp_path / "out.html").read_text().replace("\xa0", " ")
    assert place < row
    assert (
        f"Broken since row {row} of all rows: row {place} of the rows counted" in page
    )
    assert f'<p class="verdict">Broken since row {row}</p>' in page
    assert re.search(r"<text[^>]*>rows counted</text>", page)
    table = page[page.index("What is watched") :]
    heads = re.findall(r"<th[^>]*>(.*?)</th>", table.partition("</thead>")[0])
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", table.partition("<tbody>")[2])
    heads, cells = (
        [re.sub("<.*?>", "", text).strip() for text in texts]
        for texts in (heads, cells)
    )
    shown = dict(zip(heads, cells, strict=False))
    assert [*shown][:4] == ["promise", "verdict", "since", "rows counted"]
    assert shown["verdict"] == "broken"
    assert shown["since"].startswith(f"row {row} (")
    assert shown["rows counted"] == f"{promise['monitor']['n']}"
    assert float(shown["e-value"]) >= 20
    # One sentence on wrong alarms, that of the terminal: two levels are said at once.
    (said,) = (line for line in outcome.out.splitlines() if "ever says" in line)
    assert said.endswith("or that the promise is false, with at most 10 %.")
    assert page.count(said) == 1
    assert "ever called broken" not in page
    # An alarm may come from the order of the lines alone.
    for shown_to in (outcome.out, page):
        assert "Rows count in the order of the file" in shown_to


@pytest.fixture
def detector_model(prudent, tmp_path, monkeypatch):
    """A detector written by detect, with or without the name of its class."""
    monkeypatch.chdir(tmp_path)

    def make(*more):
        X, y = draw(900, 0)
        lines = [f"{a:.6f},{b:.6f},{c}" for (a, b), c in zip(X, y, strict=True)]
        if not more:
            lines = [line.rsplit(",", 1)[0] for line in lines if line.endswith("good")]
        head = "a,b,y\n" if more else "a,b\n"
        (tmp_path / "rows.csv").write_text(head + "\n".join(lines) + "\n")
        made = prudent("detect", "rows.csv", *more, "--model-out", "model.prudent")
        assert made.code == 0

    return make


def test_a_detector_by_its_scores(operator, detector_model, tmp_path):
    """Its reference is in the model; false alarms need labels."""
    detector_model("--target", "y", "--normal", "good")
    X, _ = draw(400, 1)
    ordinary = "\n".join(f"{a:.6f},{b:.6f},good" for a, b in X[X.sum(axis=1) > 3])
    (tmp_path / "new.csv").write_text(f"a,b,y\n{ordinary}\n")
    outcome = operator.run("new.csv", *STATE, target=False)
    assert "drift (score)" in outcome.out
    assert "false alarm of class 'good' ≤ 0.050" in outcome.out
    assert "not watched: no --target" in outcome.out
    outcome = operator.run("new.csv", *STATE)
    assert "or that the promise is false, with at most 10 %." in outcome.out
    assert operator.state()["promises"][0]["monitor"]["n"] == ordinary.count("good")
    outcome = operator.run("new.csv", *STATE, "--again", "--reference", "new.csv")
    assert outcome.code == 2
    assert "compares with the calibration scores of the model" in outcome.err


def test_a_detector_that_does_not_name_its_class(operator, detector_model):
    detector_model()
    operator.table("new.csv")
    outcome = operator.run("new.csv")
    assert "not watched: no --normal, the label of ordinary rows" in outcome.out
    outcome = operator.run("new.csv", *STATE, "--normal", "good")
    counted = operator.state()["promises"][0]["monitor"]["n"]
    assert counted == (draw(100, 1)[1] == "good").sum()
