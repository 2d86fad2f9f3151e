"""`detect --model-out`: detectors that can be deployed and watched."""

from __future__ import annotations

import csv
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from prudent import PromiseMonitor, load
from prudent.datasets import BUNDLED
from prudent.persistence import read_header


@pytest.fixture
def rows_file(table_file):
    def write(n, name="rows.csv", seed=0, shift=0.0):
        rows = np.random.default_rng(seed).normal(size=(n, 2)) + shift
        lines = "\n".join(f"{a:.6f},{b:.6f}" for a, b in rows)
        return table_file(f"a,b\n{lines}\n", name)

    return write


@pytest.mark.parametrize("method", ["minimax", "low-density"])
def test_enough_rows_give_a_promise_about_this_model(
    prudent, rows_file, tmp_path, method
):
    model = tmp_path / "model.prudent"
    outcome = prudent(
        "detect", rows_file(300), "--method", method, "--model-out", model
    )
    assert outcome.code == 0
    assert "The false alarm rate is at most 0.05 with confidence 0.95" in outcome.out
    assert f"model: {model}" in outcome.out
    detector = load(model)
    (promise,) = detector.guarantees_
    assert promise.confidence == 0.95
    assert promise.evidence["calibration rows"] >= 59
    assert PromiseMonitor(promise).null_ == "conditional"
    assert len(detector.calibration_scores_) == promise.evidence["calibration rows"]
    assert read_header(model).features == ["a", "b"]


@pytest.mark.parametrize("method", ["minimax", "low-density"])
def test_few_rows_give_an_average_and_say_so(prudent, rows_file, tmp_path, method):
    model = tmp_path / "model.prudent"
    outcome = prudent("detect", rows_file(90), "--method", method, "--model-out", model)
    assert outcome.code == 0
    assert "on average over" in outcome.out
    assert "may exceed it for ever" in outcome.out


def test_a_look_ends_with_the_command_that_keeps_the_detector(
    prudent, rows_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    looked = prudent("detect", rows_file(200), "--false-alarm", 0.1, "--seed", 3)
    (line,) = [s for s in looked.err.splitlines() if "to keep it" in s]
    words = shlex.split(line.partition("watch it:")[2])
    kept = prudent(*words[1:])
    assert kept.code == 0, kept.err
    assert "The false alarm rate is at most 0.1 with confidence 0.95" in kept.out
    assert "to keep it" not in kept.err
    watched = prudent(
        "monitor", "detector.prudent", "--data", rows_file(80, "n.csv", 1)
    )
    assert watched.code == 0


def test_figures_are_those_of_the_detector_that_is_written(prudent, tmp_path):
    table = pd.read_csv(BUNDLED["breast_cancer"].path)
    others = table[table.pop("diagnosis") == "malignant"]
    normal = ("detect", "breast_cancer", "--normal", "benign")
    model = tmp_path / "model.prudent"
    lines = {}
    for option in ((), ("--average",)):
        outcome = prudent(*normal, "--model-out", model, *option)
        (line,) = [s for s in outcome.out.splitlines() if s.startswith("357 ")]
        detected = np.mean(load(model).predict(others) == -1)
        assert f" {detected:.1%} (" in line
        low, high = re.search(r"% \((.*?)%–(.*?)%\)", line).groups()
        assert float(low) <= round(100 * detected, 1) <= float(high)
        changes = "With --model-out the promise is about the very detector"
        # Said before the table.
        assert (changes in outcome.out.split("normal rows")[0]) == (option == ())
        own = "false-alarm rate of the detector itself"
        assert (own in outcome.out) == (option == ())
        lines[option] = line
    assert lines[("--average",)] in prudent(*normal).out
    assert lines[()] != lines[("--average",)]


def test_confidence_of_a_detector_is_asked_for_or_refused(prudent, tmp_path):
    normal = ("detect", "breast_cancer", "--normal", "benign")
    model = tmp_path / "model.prudent"
    outcome = prudent(*normal, "--model-out", model, "--confidence", "0.8")
    assert outcome.code == 0
    assert "With --model-out" not in outcome.out
    assert load(model).guarantees_[0].confidence == 0.8
    outcome = prudent(*normal, "--confidence", "0.99999999")
    assert outcome.code == 6
    assert "286 normal rows are too few" in outcome.err
    assert prudent(*normal, "--confidence", "0.8", "--average").code == 2


def test_the_class_is_remembered(prudent, tmp_path):
    model = tmp_path / "model.prudent"
    arguments = ("detect", "breast_cancer", "--normal", "benign", "--model-out", model)
    outcome = prudent(*arguments)
    assert outcome.code == 0
    assert "false alarm rate of class 'benign' is at most 0.05" in outcome.out
    assert load(model).guarantees_[0].scope == "benign"


def test_flagged_rows_are_those_of_the_model(prudent, rows_file, tmp_path):
    model, flagged = tmp_path / "model.prudent", tmp_path / "flagged.csv"
    path = rows_file(300)
    assert prudent("detect", path, "-o", flagged, "--model-out", model).code == 0
    with flagged.open() as stream:
        outlier = [int(row["outlier"]) for row in csv.DictReader(stream)]
    X = pd.read_csv(path)
    np.testing.assert_array_equal(load(model).predict(X) == -1, np.array(outlier) == 1)


def test_unwritable_model_is_refused_before_any_work(prudent, rows_file, tmp_path):
    outcome = prudent("detect", rows_file(90), "--model-out", tmp_path / "no" / "m")
    assert outcome.code == 3
    assert "cannot write" in outcome.err


@pytest.mark.parametrize("method", ["minimax", "low-density", "conformal"])
def test_fit_writes_detectors_too(prudent, rows_file, tmp_path, method):
    model = tmp_path / "model.prudent"
    path = rows_file(300)
    options = ("--method", method, "--promise", "false alarm <= 10%", "-o", model)
    outcome = prudent("fit", path, *options)
    assert outcome.code == 0
    assert "The false alarm rate is at most 0.1 with confidence 0.95" in outcome.out
    (promise,) = load(model).guarantees_
    assert PromiseMonitor(promise).null_ == "conditional"
    predicted = prudent("predict", path, "-m", model)
    assert predicted.code == 0
    heading, *lines = predicted.out.split()
    assert heading == "prediction,score,alarm"  # the last as `apply` writes it
    answers = [line.split(",") for line in lines]
    assert len(answers) == 300
    assert all((label == "-1") == (alarm == "True") for label, _, alarm in answers)
    assert {alarm for _, _, alarm in answers} == {"True", "False"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "low-density", "--target", "diagnosis"), "--normal is missing"),
        (("--method", "lda", "--normal", "benign"), "detectors are minimax"),
        (
            ("--method", "low-density", "--normal", "benign", "--param", "a=1"),
            "no parameter 'a'",
        ),
        (("--method", "low-density", "--promise", "error <= 5%"), "is not for this"),
        (
            ("--method", "minimax", "--normal", "benign", "--select", "cv"),
            "not for det",
        ),
    ],
)
def test_what_a_detector_cannot_be_is_refused(prudent, tmp_path, arguments, words):
    outcome = prudent("fit", "breast_cancer", *arguments, "-o", tmp_path / "model")
    assert outcome.code == 2
    assert words in outcome.err
