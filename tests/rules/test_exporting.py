"""Rules of wrappers, exported and applied to files of what their models say."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import prudent as library
from prudent import Rule
from prudent.cli import main
from prudent.persistence import save

WRAPPERS = {
    "selective": library.SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.4, random_state=0
    ),
    "sure": library.SelectiveClassifier(GaussianNB(), error_rate=0.4, random_state=0),
    "missed": library.NeymanPearsonClassifier(
        GaussianNB(), max_class_error={1: 0.2}, random_state=0
    ),
    "abstain": library.NeymanPearsonClassifier(
        GaussianNB(), max_class_error=0.2, abstain=True, random_state=0
    ),
    "sets": library.ConformalClassifier(GaussianNB(), random_state=0),
    "by class": library.ConformalClassifier(
        LinearDiscriminantAnalysis(), condition="class", level=0.2, random_state=0
    ),
    "forest": library.ConformalClassifier(
        RandomForestClassifier(5, random_state=0), level=0.3, random_state=0
    ),
    "detector": library.ConformalDetector(method="split", random_state=0),
    "density": library.LowDensityRejector(random_state=0),
    "ellipsoid": library.MinimaxOutlierDetector(false_alarm_rate=0.1, random_state=0),
}


def rows(seed, n=400):
    """Draws around the rows of iris: near ties, and far rows that saturate."""
    random = np.random.default_rng(seed)
    X, y = load_iris(return_X_y=True)
    places = random.integers(0, len(y), n)
    spread = np.where(random.random((n, 1)) < 0.1, 8.0, 0.4)
    return np.round(X[places] + spread * random.normal(size=(n, 4)), 1), y[places]


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize("name", WRAPPERS)
def test_exported_rules_answer_as_the_wrapper_to_the_last_bit(name, tmp_path, capsys):
    X, y = rows(0)
    detects = not hasattr(WRAPPERS[name], "predict_set")
    columns = list("abcd")
    X = pd.DataFrame(X, columns=columns)
    model = WRAPPERS[name].fit(X) if detects else WRAPPERS[name].fit(X, y)
    save(model, tmp_path / "model.prudent")
    path = tmp_path / "rule.json"
    code = run("export", tmp_path / "model.prudent", "-o", path)
    assert code == 0, capsys.readouterr().err
    assert "Promised: " in capsys.readouterr().out
    new = pd.DataFrame(rows(1)[0], columns=columns)
    rule = Rule.from_json(path.read_text())
    if detects:
        scores = model.calibrated_scores(new)[:, None]
    else:
        scores = model.estimator_.predict_proba(new)
    with (tmp_path / "scores.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(rule.record["columns"])
        writer.writerows(scores.tolist())
    answers = tmp_path / "answers.csv"
    assert run("apply", path, tmp_path / "scores.csv", "-o", answers) == 0
    found = pd.read_csv(answers, dtype=str, keep_default_na=False)
    # The rule of the wrapper itself says what its scores are, too.
    own, exported = json.loads(model.rule_.to_json()), json.loads(path.read_text())
    assert {**own, "data": exported["data"]} == exported
    if detects:
        assert (found["alarm"] == "True").tolist() == (
            model.predict(new) == -1
        ).tolist()
        assert 0 < (found["alarm"] == "True").sum() < len(new)
    elif rule.kind == "sets":
        labels = np.array(list("012"))
        sets = ["|".join(labels[row].tolist()) for row in model.predict_set(new)]
        assert found["set"].tolist() == sets
        assert len(set(sets)) > 2
    elif rule.kind == "answers":
        assert (found["answered"] == "True").tolist() == model.answers(new).tolist()
        said = model.predict(new).astype(str)
        assert found["prediction"].tolist() == [
            label if answered else ""
            for label, answered in zip(said, model.answers(new), strict=True)
        ]
    else:
        assert found["prediction"].tolist() == model.predict(new).astype(str).tolist()


@pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            library.ConformalClassifier(GaussianNB(), ties="smoothed", random_state=0),
            "the coins of smoothed ties are thrown by all features",
        ),
        (library.ConformalClassifier(method="full"), "answers by no rule"),
        (
            library.ConformalClassifier(method="split", random_state=0),
            "not log joints or margins",
        ),
        (
            library.SelectiveClassifier(
                GaussianNB(), error_rate=0.4, scoring="margin", random_state=0
            ),
            "only scoring='max_probability'",
        ),
        (
            library.SelectiveClassifier(LinearSVC(), error_rate=0.4, random_state=0),
            "its scores are no probabilities",
        ),
        (GaussianNB(), "answers by no rule"),
    ],
)
def test_rules_that_nobody_else_can_apply_are_not_exported(
    model, message, tmp_path, capsys
):
    X, y = rows(0)
    save(model.fit(pd.DataFrame(X, columns=list("abcd")), y), tmp_path / "m.prudent")
    assert run("export", tmp_path / "m.prudent", "-o", tmp_path / "rule.json") == 4
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "rule.json").exists()


def test_a_rule_says_what_its_columns_are_made_into(tmp_path):
    X, y = rows(0)
    model = WRAPPERS["sets"].fit(X, y)
    record = {"scores": "log odds", "columns": ["0", "1", "2"]}
    from dataclasses import replace

    rule = replace(model.rule_, record=record)
    assert rule.to_json().count('"log odds"') == 1
    p = model.estimator_.predict_proba(X[:20])
    others = p[:, [1, 2, 0]] + p[:, [2, 0, 1]]
    expected = np.log(p) - np.log(others)
    np.testing.assert_allclose(rule.scored(p), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="must be one of"):
        Rule.from_json(rule.to_json().replace('"log odds"', '"log oods"'))
