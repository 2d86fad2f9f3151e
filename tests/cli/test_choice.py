"""`prudent fit --method best`, and `--among` for a method picked from a table."""

import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from prudent import SelectiveClassifier, load
from prudent.evaluation.choice import chosen_in

X, Y = load_breast_cancer(return_X_y=True)
PROMISE = ("--promise", "error <= 5%")
COVERAGE = ("--method", "lda", "--promise", "coverage >= 80%")
CHOICE = ("--method", "best", "--candidates", "logistic,lda,qda")


@pytest.fixture
def data(tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame["kind"] = np.where(Y == 0, "malignant", "benign")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture
def fit(prudent, data, tmp_path):
    def run(*options):
        where = ("--target", "kind", "-o", tmp_path / "model.prudent")
        return prudent("fit", data, *where, *options)

    return run


def test_the_line_says_who_was_chosen_by_which_rows(fit, tmp_path):
    outcome = fit(*CHOICE, *PROMISE)
    assert outcome.code == 0
    assert (
        "best of 3: qda (expected to answer 0.95; logistic 0.95); 398 rows chose it, "
        "171 others prove it" in outcome.out
    )
    model = load(tmp_path / "model.prudent")
    assert isinstance(model, SelectiveClassifier)
    (guarantee,) = model.guarantees_
    assert (guarantee.confidence, guarantee.evidence["candidates"]) == (0.95, 3)
    assert (model.n_answered_, model.n_wrong_) == (160, 2)
    assert chosen_in(model).best_name_ == "qda"


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ("coverage >= 90%", "expected sets of 1."),
        ("missed malignant <= 10%", "expected error of the other classes 0."),
        ("missed malignant <= 20% and benign <= 20%", "expected sets of 1."),
        ("none", "expected error 0.0"),
    ],
)
def test_every_promise_has_its_words(fit, promise, words):
    outcome = fit(*CHOICE, "--promise", promise)
    assert outcome.code == 0
    assert words in outcome.out
    assert ("others prove it" in outcome.out) == (promise != "none")


def test_one_candidate_has_no_second(fit):
    outcome = fit("--method", "best", "--candidates", "lda", *PROMISE)
    assert "best of 1: lda (expected to answer 0.85); 398 rows" in outcome.out


def test_candidates_that_a_time_limit_leaves_out_are_named(fit):
    outcome = fit(*CHOICE, *PROMISE, "--time-limit", "1e-6")
    assert outcome.code == 0
    assert "lda: not judged within 1e-06 s; qda: not judged" in outcome.err
    assert "best of 3: logistic" in outcome.out


def test_a_method_picked_from_a_table_shares_the_level(fit, tmp_path):
    options = ("--method", "lda", "--promise", "error <= 4%")
    assert fit(*options).code == 0
    alone = load(tmp_path / "model.prudent")
    assert fit(*options, "--among", 11).code == 0
    shared = load(tmp_path / "model.prudent")
    assert shared.confidence == pytest.approx(1 - 0.05 / 11)
    assert shared.n_answered_ < alone.n_answered_
    (guarantee,) = shared.guarantees_
    assert (guarantee.confidence, guarantee.evidence["methods"]) == (0.95, 11)


def test_a_coverage_shared_among_methods_is_about_the_model(fit, tmp_path):
    assert fit(*COVERAGE, "--among", 4).code == 0
    (guarantee,) = load(tmp_path / "model.prudent").guarantees_
    assert guarantee.confidence == 0.95
    assert guarantee.average_over is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "lda", "--among", 0), "--among takes a whole number >= 1, got 0"),
        (("--method", "lda", "--among", 3), "--among is for promises with a conf"),
        (
            (*COVERAGE, "--average", "--among", 3),
            "--among is for promises with a confidence",
        ),
        (("--method", "lda", "--candidates", "qda"), "are for --method best"),
        (("--method", "lda", "--time-limit", 1), "are for --method best"),
        (("--method", "best", "--time-limit", 0), "takes seconds > 0, got 0"),
        (("--method", "best", "--candidates", "qdda"), "got 'qdda'"),
        (("--method", "best", "--candidates", "lda,lda"), "repeat a name"),
    ],
)
def test_wrong_options_are_refused_before_any_work(fit, options, message):
    outcome = fit(*options)
    assert outcome.code == 2
    assert message in outcome.err


ASKED = ("--methods", "minimax", "--baselines", "majority,lda,qda", *PROMISE)


@pytest.fixture
def compared(prudent, data, tmp_path, monkeypatch):
    """Compare; returns what is printed, and the arguments of the command to use it."""
    monkeypatch.chdir(tmp_path)

    def run(*options):
        outcome = prudent("compare", data, "--target", "kind", *options)
        assert outcome.code == 0, outcome.err
        (line,) = [s for s in outcome.out.splitlines() if s.startswith("To use it:")]
        return outcome.out, shlex.split(line.removeprefix("To use it:"))[1:]

    return run


def test_the_choice_of_a_table_is_among_its_methods_as_they_were_set(compared, prudent):
    printed, words = compared(*ASKED, "--param", "minimax.covariance=0.2")
    assert "Another row picked from this table: add --among 5." in printed
    assert words[words.index("--method") + 1] == "best"
    assert words[words.index("--candidates") + 1] == "minimax,lda,qda"
    assert "--among" not in words
    fitted = prudent(*words)
    assert fitted.code == 0, fitted.err
    choice = chosen_in(load("model.prudent"))
    assert dict(choice.estimators)["minimax"].covariance == 0.2
    (guarantee,) = load("model.prudent").guarantees_
    assert (guarantee.confidence, guarantee.evidence["candidates"]) == (0.95, 3)


def test_a_row_picked_from_a_table_shares_the_level_by_the_command_printed(
    compared, prudent
):
    options = ("--param", "qda.standardscaler__with_mean=False", "--confidence", "0.9")
    printed, words = compared(*ASKED, "--no-best", *options)
    assert "best" not in printed.replace("--no-best", "")
    assert words[words.index("--among") + 1] == "4"
    assert words[words.index("--confidence") + 1] == "0.9"
    assert words[words.index("--param") + 1] == "standardscaler__with_mean=False"
    fitted = prudent(*words)
    assert fitted.code == 0, fitted.err
    model = load("model.prudent")
    assert model.confidence == pytest.approx(1 - 0.1 / 4)
    (guarantee,) = model.guarantees_
    assert (guarantee.confidence, guarantee.evidence["methods"]) == (0.9, 4)
    (reproduce,) = [s for s in printed.splitlines() if s.startswith("reproduce:")]
    assert " --no-best " in reproduce
    again = prudent(*shlex.split(reproduce)[2:], "--no-timings")
    assert again.code == 0, again.err


def test_parameters_of_a_choice_are_those_of_its_candidates(fit):
    outcome = fit(*CHOICE, *PROMISE, "--param", "minimax.covariance=0.2")
    assert outcome.code == 2
    assert "'minimax', which is not among" in outcome.err
    outcome = fit(*CHOICE, *PROMISE, "--param", "cv=2")
    assert outcome.code == 2
    assert "--param takes METHOD.NAME=VALUE" in outcome.err
