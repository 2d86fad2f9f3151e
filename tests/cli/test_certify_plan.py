"""`prudent certify` and `prudent plan`."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent import (
    MinimaxOutlierDetector,
    SelectiveClassifier,
    ThresholdBands,
    certify,
    certify_thresholds,
    load,
    save,
)

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :4]
NAMES = ["a", "b", "c", "d"]
WORDS = np.array(["malignant", "benign"])[Y]


def table(rows, labels):
    lines = [
        ",".join([*map(repr, row), str(label)])
        for row, label in zip(rows.tolist(), labels, strict=True)
    ]
    return "\n".join([",".join([*NAMES, "y"]), *lines]) + "\n"


@pytest.fixture
def model_file(tmp_path):
    pd = pytest.importorskip("pandas")
    model = SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, random_state=0
    ).fit(pd.DataFrame(X[:300], columns=NAMES), WORDS[:300])
    save(model, tmp_path / "model.prudent")
    return tmp_path / "model.prudent", model


@pytest.fixture
def new_rows(table_file):
    return table_file(table(X[300:], WORDS[300:]), "new.csv")


def test_certify_says_what_python_says(prudent, model_file, new_rows):
    path, model = model_file
    outcome = prudent("certify", new_rows, "-m", path, "--target", "y", "--json", "-")
    assert outcome.code == 0
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(X[300:], columns=NAMES)
    (promised,) = certify(model, rows, WORDS[300:])
    (found,) = json.loads(outcome.out)
    assert (found["sentence"], found["bound"]) == (str(promised), promised.bound)
    outcome = prudent(
        "certify", new_rows, "-m", path, "--target", "y", "--all", "--json", "-"
    )
    expected = certify(model, rows, WORDS[300:], claims="all")
    found = json.loads(outcome.out)
    assert [item["sentence"] for item in found] == [str(g) for g in expected]
    assert [item["bound"] for item in found] == [g.bound for g in expected]
    assert found[2]["scope"] == "benign"
    assert found[0]["assumptions"] == ["INDEPENDENT", "UNSEEN"]


def test_certify_in_words(prudent, model_file, new_rows):
    outcome = prudent(
        "certify", new_rows, "-m", model_file[0], "--target", "y", "--per-claim",
        "--all", "--confidence", 0.9,
    )  # fmt: skip
    assert outcome.code == 0
    assert "269 rows of" in outcome.out
    assert "selective error rate: at most" in outcome.out
    assert "of 269 missed)" in outcome.out
    assert "True each with confidence 0.9, assuming" in outcome.out
    assert "- the calibration rows were not used to fit, choose or tune" in outcome.out


def test_the_models_own_promise_is_checked(prudent, model_file, new_rows):
    path, model = model_file
    outcome = prudent("certify", new_rows, "-m", path, "--target", "y")
    (promise,) = model.guarantees_
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(X[300:], columns=NAMES)
    answered = model.answers(rows)
    wrong = int((model.predict(rows) != WORDS[300:])[answered].sum())
    found = promise.check(wrong, int(answered.sum()))
    said = f"Promised: selective error ≤ 0.100. On these rows {found.measured:.3f} ("
    assert said in outcome.out
    *_, verdict, note = outcome.out.rstrip().splitlines()
    assert verdict.endswith(f"{answered.sum()} rows): {found.verdict}")
    assert note.startswith("The verdict is one-sided at the level 0.05")


@pytest.mark.parametrize("method", ["lda", "optimistic", "selective", "words", "gaps"])
def test_rows_of_the_fit_are_refused_and_counted(prudent, table_file, tmp_path, method):
    def text(some, labels):
        lines = table(some, labels)
        if method == "words":  # a column of words in front, of moments by blocks too
            head, *rest = lines.splitlines()
            sides = [
                f"{'big' if float(line.split(',')[0]) > 14 else 'small'},"
                for line in rest
            ]
            lines = "\n".join(
                [f"size,{head}", *map("".join, zip(sides, rest, strict=True))]
            )
        return lines.replace("122.8,", ",") if method == "gaps" else lines

    rows = table_file(text(X[:300], WORDS[:300]), "train.csv")
    options = {
        "selective": ("--method", "lda", "--promise", "error <= 20%"),
        "words": ("--method", "optimistic"),
        "gaps": ("--method", "minimax"),
    }.get(method, ("--method", method))
    path, target = tmp_path / "fitted.prudent", ("--target", "y")
    assert prudent("fit", rows, *target, *options, "-o", path).code == 0
    outcome = prudent("certify", rows, "-m", path, *target)
    assert outcome.code == 3
    assert "300 of these 300 rows were in the fit of the model" in outcome.err
    assert outcome.out == ""
    mixed = table_file(text(X[260:], WORDS[260:]), "mixed.csv")
    outcome = prudent("certify", mixed, "-m", path, *target)
    assert "40 of these 309 rows were in the fit of the model" in outcome.err
    new = table_file(text(X[300:], WORDS[300:]), "new.csv")
    outcome = prudent("certify", new, "-m", path, *target)
    assert outcome.code == 0
    assert "no more are among the rows of the fit than chance explains" in outcome.out


def test_the_table_of_the_fit_is_no_proof_however_coarse(prudent, table_file, tmp_path):
    rows = table_file(table(np.sign(X - X.mean(axis=0))[:60], WORDS[:60]), "train.csv")
    path, target = tmp_path / "fitted.prudent", ("--target", "y")
    command = ("fit", rows, *target, "--method", "logistic", "-o", path)
    assert prudent(*command).code == 0
    outcome = prudent("certify", rows, "-m", path, *target)
    assert "train.csv is the table that the model was fitted to" in outcome.err
    assert "not new to the model" in outcome.out
    assert "kept" not in outcome.out
    outcome = prudent("certify", rows, "-m", path, *target, "--json", "-")
    assert "train.csv is the table that the model was fitted to" in outcome.err
    assert json.loads(outcome.out)


def test_rows_of_the_fit_hold_a_model_to_nothing(prudent, table_file, tmp_path):
    rows = table_file(table(X[:300], WORDS[:300]), "train.csv")
    path = tmp_path / "fitted.prudent"
    promise = ("--promise", "error <= 20%", "--method", "lda")
    assert prudent("fit", rows, "--target", "y", *promise, "-o", path).code == 0
    outcome = prudent("certify", rows, "-m", path, "--target", "y")
    assert "kept" not in outcome.out
    assert "Promised:" not in outcome.out
    others = table_file(table(X[300:], WORDS[300:]), "new.csv")
    assert "Promised:" in prudent("certify", others, "-m", path, "--target", "y").out


def test_promises_about_groups_are_counted_by_groups(prudent, table_file, tmp_path):
    pd = pytest.importorskip("pandas")
    model = SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.3, random_state=0
    ).fit(pd.DataFrame(X[:300], columns=NAMES), WORDS[:300], groups=np.arange(300) // 2)
    path = tmp_path / "grouped.prudent"
    save(model, path)
    lines = table(X[300:], WORDS[300:]).splitlines()
    patients = ["patient", *(f"p{i // 3}" for i in range(len(lines) - 1))]
    rows = table_file(
        "\n".join(f"{line},{p}" for line, p in zip(lines, patients, strict=True)) + "\n"
    )
    certifying = ("certify", rows, "-m", path, "--target", "y")
    watching = ("monitor", path, "--data", rows, "--target", "y")
    for command in (certifying, watching):
        outcome = prudent(*command)
        assert outcome.code == 2
        assert "about a random row of a new group. Give --groups" in outcome.err
    outcome = prudent(*certifying, "--groups", "patient", "--json", "-")
    (found,) = json.loads(outcome.out)
    assert found["assumptions"] == ["GROUPS", "UNSEEN"]
    assert found["evidence"]["calibration rows"] == len(set(patients)) - 1
    outcome = prudent(*watching, "--groups", "patient", "--json", "-")
    (watched,) = json.loads(outcome.out)["promises"]
    assert 0 < watched["n"] <= len(set(patients)) - 1
    outcome = prudent(*certifying, "--groups", "nobody")
    assert outcome.code == 3


def test_of_rows_that_belong_together_one_of_each_group_counts(
    prudent, model_file, table_file, tmp_path
):
    """Five copies of each row prove no more, whatever the model promises."""
    head, *lines = table(X[300:], WORDS[300:]).splitlines()
    copies = [f"{line},p{i}" for i, line in enumerate(lines) for _ in range(5)]
    rows = table_file("\n".join([f"{head},patient", *copies]) + "\n")
    certifying = ("certify", rows, "-m", model_file[0], "--target", "y")
    bands, page = tmp_path / "bands.csv", tmp_path / "page.html"
    outcome = prudent(
        *(*certifying, "--groups", "patient", "--by", "a:15"),
        *("--thresholds", bands, "--report", page),
    )
    assert outcome.code == 0
    answered = max(
        int(line.split(",")[3]) for line in bands.read_text().splitlines()[1:]
    )
    assert answered == len(lines)
    assert "of single rows: not held against rows that belong together." in outcome.out
    shown = [int(n) for n in re.findall(r"of (\d+) ", page.read_text())]
    assert max(shown) <= len(lines)


def test_limits_of_scores_take_no_options_that_they_know_nothing_of(
    prudent, table_file
):
    rows = table_file("s,y,p\n0.1,a,1\n0.9,b,1\n")
    scores = ("certify", rows, "--truth", "y", "--score", "s", "--positive", "b")
    for option in (("--groups", "p"), ("--by", "p"), ("--json", "-"), ("--all",)):
        outcome = prudent(*scores, "--thresholds", "out.json", *option)
        assert outcome.code == 2
        said = f"limits at all thresholds of scores know no {option[0]}: leave it out"
        assert said in outcome.err


def test_costs_are_certified(prudent, model_file, new_rows, table_file, tmp_path):
    costs = table_file(
        "truth,malignant,benign,ask\nmalignant,0,9,1\nbenign,1,0,1\n", "costs.csv"
    )
    out = tmp_path / "found.json"
    outcome = prudent(
        "certify", new_rows, "-m", model_file[0], "--target", "y", "--costs", costs,
        "--json", out,
    )  # fmt: skip
    assert outcome.code == 0
    last = json.loads(out.read_text())[-1]
    assert last["quantity"] == "expected cost"
    assert 0 < last["bound"] < 9
    assert "expected cost: at most" in outcome.out


def test_a_detector_is_certified(prudent, table_file, tmp_path):
    pd = pytest.importorskip("pandas")
    detector = MinimaxOutlierDetector(random_state=0)
    normal = np.flatnonzero(Y == 1)[:200]
    detector.fit(pd.DataFrame(X[normal], columns=NAMES))
    save(detector, tmp_path / "detector.prudent")
    new = np.setdiff1d(np.arange(len(X)), normal)
    rows = table_file(table(X[new], np.where(Y[new] == 1, 1, -1)))
    outcome = prudent(
        "certify", rows, "-m", tmp_path / "detector.prudent", "--target", "y", "--all"
    )
    assert "false alarm rate: at most" in outcome.out
    assert "miss rate: at most" in outcome.out
    assert f"Promised: false alarm ≤ {detector.guarantees_[0].bound:.3f}" in outcome.out


def test_a_detector_of_a_class_is_certified_by_the_label_that_its_promise_names(
    prudent, table_file, tmp_path
):
    pd = pytest.importorskip("pandas")
    labels = np.where(Y == 1, "ok", "odd")
    model = tmp_path / "detector.prudent"
    fitted = prudent(
        *("detect", table_file(table(X[:400], labels[:400]), "t.csv"), "--target", "y"),
        *("--normal", "ok", "--model-out", model),
    )
    assert fitted.code == 0, fitted.err
    new = table_file(table(X[400:], labels[400:]), "n.csv")
    outcome = prudent("certify", new, "-m", model, "--target", "y")
    assert outcome.code == 0, outcome.err
    alarms = load(model).predict(pd.DataFrame(X[400:], columns=NAMES)) == -1
    of_ok = labels[400:] == "ok"
    counted = f"({(alarms & of_ok).sum()} of {of_ok.sum()} wrong)"
    assert f"{counted}\n" in outcome.out
    numbers = table_file(table(X[400:], np.where(of_ok, 1, -1)), "m.csv")
    again = prudent("certify", numbers, "-m", model, "--target", "y")
    assert counted in again.out
    assert (
        counted
        in prudent("certify", new, "-m", model, "--target", "y", "--normal", "ok").out
    )


def test_a_detector_that_names_no_label_asks_for_it(prudent, table_file, tmp_path):
    pd = pytest.importorskip("pandas")
    detector = MinimaxOutlierDetector(random_state=0)
    detector.fit(pd.DataFrame(X[Y == 1][:200], columns=NAMES))
    model = tmp_path / "detector.prudent"
    save(detector, model)
    new = table_file(table(X[400:], np.where(Y[400:] == 1, "ok", "odd")))
    refused = prudent("certify", new, "-m", model, "--target", "y")
    assert refused.code == 2
    assert "--normal is missing: the truth of ordinary rows" in refused.err
    arguments = ("certify", new, "-m", model, "--target", "y", "--normal", "ok")
    assert "false alarm" in prudent(*arguments).out


def test_false_alarms_of_each_class_are_counted_by_its_sets(
    prudent, table_file, tmp_path
):
    train, new = table_file(table(X[:300], WORDS[:300]), "t.csv"), tmp_path / "n.csv"
    new.write_text(table(X[300:] * 3, WORDS[300:]))  # nothing like the training rows
    path, target = tmp_path / "r.prudent", ("--target", "y")
    prudent("fit", train, *target, "--method", "rejection", "-o", path)
    outcome = prudent("certify", new, "-m", path, *target)
    assert outcome.code == 0
    said = [line for line in outcome.out.splitlines() if "false alarm of" in line]
    assert len(said) == 2
    assert all(line.endswith(": broken") for line in said)
    assert "These 2 verdicts share the level 0.05 (Holm)" in outcome.out
    outcome = prudent("monitor", path, "--data", new, *target)
    assert outcome.code == 7
    assert outcome.out.count("BROKEN since row") == 2


def test_rows_without_labels_are_left_out(prudent, model_file, table_file):
    words = WORDS[300:].tolist()
    words[3] = ""
    rows = table_file(table(X[300:], words))
    outcome = prudent("certify", rows, "-m", model_file[0], "--target", "y")
    assert "268 rows of" in outcome.out
    assert "1 rows without a label are left out" in outcome.err


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("--target", "z"), 3, "z"),
        (("--confidence", "1"), 2, "--confidence must lie in (0, 1), got 1."),
        (("--costs", "nowhere.csv"), 3, "cannot read nowhere.csv"),
        (("-m", "nowhere.prudent"), 4, "cannot read nowhere.prudent"),
    ],
)
def test_refusals(prudent, model_file, new_rows, change, code, message):
    options = {"-m": model_file[0], "--target": "y", change[0]: change[1]}
    flat = [part for option in options.items() for part in option]
    outcome = prudent("certify", new_rows, *flat)
    assert outcome.code == code
    assert message in outcome.err


def test_unknown_labels_and_bad_costs(prudent, model_file, table_file, new_rows):
    rows = table_file(table(X[:3], ["benign", "odd", "benign"]))
    outcome = prudent("certify", rows, "-m", model_file[0], "--target", "y")
    assert outcome.code == 3
    assert "the label 'odd', which the model does not know" in outcome.err
    costs = table_file("truth,benign\nbenign,0\n", "costs.csv")
    outcome = prudent(
        "certify", new_rows, "-m", model_file[0], "--target", "y", "--costs", costs
    )
    assert outcome.code == 3
    assert "is no table of costs" in outcome.err


def test_plan_in_words(prudent):
    outcome = prudent("plan", "--answered-share", 0.6, "--claims", 2)
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].endswith("rows that the model has not seen")
    assert "of which about" in outcome.out
    assert "each with probability 0.6" in outcome.out
    assert "for 2 promises at once." in outcome.out


def test_plan_as_json(prudent, tmp_path):
    outcome = prudent("plan", "--expected", 0.01, "--json", "-")
    found = json.loads(outcome.out)
    assert found["rows"] == 124
    assert found["settings"]["expected"] == 0.01
    outcome = prudent("plan", "--json", tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["rows"] == 286
    assert outcome.out.startswith("286 rows")


def test_plan_refuses_what_cannot_be_certified(prudent):
    outcome = prudent("plan", "--expected", 0.05)
    assert outcome.code == 2
    assert "cannot be certified" in outcome.err


class TestThresholds:
    def test_json_says_what_python_says(self, prudent, model_file, new_rows, tmp_path):
        path, model = model_file
        out = tmp_path / "bands.json"
        args = ("certify", new_rows, "-m", path, "--target", "y")
        outcome = prudent(*args, "--thresholds", out)
        assert outcome.code == 0
        assert "limits at all thresholds of answers" in outcome.err
        assert "hold together with confidence 0.9" in outcome.err
        pd = pytest.importorskip("pandas")
        rows = pd.DataFrame(X[300:], columns=NAMES)
        bands = certify_thresholds(model, rows, WORDS[300:])
        assert json.loads(out.read_text()) == bands.to_dict()

    def test_alarms_of_a_class_as_csv(self, prudent, model_file, new_rows, tmp_path):
        path, model = model_file
        out = tmp_path / "bands.csv"
        outcome = prudent(
            *("certify", new_rows, "-m", path, "--target", "y"),
            *("--thresholds", out, "--positive", "malignant"),
        )
        assert outcome.code == 0
        pd = pytest.importorskip("pandas")
        rows = pd.DataFrame(X[300:], columns=NAMES)
        bands = certify_thresholds(model, rows, WORDS[300:], positive="malignant")
        written = pd.read_csv(out)
        expected = bands.frame().to_pandas()
        assert list(written) == list(expected)
        np.testing.assert_allclose(written, expected)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--positive", "malignant"], "--positive belongs to --thresholds FILE"),
            (
                ["--thresholds", "b.json", "--positive", "bad"],
                "--positive 'bad' is none of the classes benign, malignant",
            ),
        ],
    )
    def test_misuse(self, prudent, model_file, new_rows, more, message):
        path, _ = model_file
        outcome = prudent("certify", new_rows, "-m", path, "--target", "y", *more)
        assert outcome.code == 2
        assert message in outcome.err

    def test_answers_have_no_scores(self, prudent, table_file, tmp_path):
        file = table_file("y,said\na,a\nb,b\na,b\n", "answers.csv")
        outcome = prudent(
            *("certify", file, "--target", "y", "--predicted", "said"),
            *("--thresholds", tmp_path / "b.json"),
        )
        assert outcome.code == 2
        assert "--thresholds needs a model" in outcome.err
        assert not (tmp_path / "b.json").exists()


class TestScoresFile:
    """Scores of any model have limits at all thresholds, too."""

    rng = np.random.default_rng(37)
    truth = rng.random(400) < 0.3
    score = np.round(np.where(truth, rng.beta(4, 2, 400), rng.beta(2, 4, 400)), 6)

    @pytest.fixture
    def file(self, table_file):
        words = np.where(self.truth, "fraud", "fine")
        said = np.where(self.score > 0.5, "fraud", "fine")
        lines = [
            f"{y},{s:.6f},{1 - s:.6f},{p}"
            for y, s, p in zip(words, self.score, said, strict=True)
        ]
        text = "\n".join(["y,p_fraud,p_fine,said", *lines]) + "\n"
        return table_file(text, "scores.csv")

    def run(self, prudent, file, tmp_path, *options):
        out = tmp_path / "bands.json"
        outcome = prudent(
            *("certify", file, "--truth", "y", "--thresholds", out, *options)
        )
        assert outcome.code == 0, outcome.err
        assert "True all at once with confidence 0.95, assuming" in outcome.out
        return json.loads(out.read_text()), outcome

    def test_alarms_of_one_score(self, prudent, file, tmp_path):
        page = tmp_path / "explorer.html"
        found, outcome = self.run(
            *(prudent, file, tmp_path, "--score", "p_fraud"),
            *("--positive", "fraud", "--report", page),
        )
        words = np.where(self.truth, "fraud", "fine")
        bands = ThresholdBands.from_scores(
            self.score, words, kind="alarms", positive="fraud"
        )
        assert found == bands.to_dict()
        n = int(self.truth.sum())
        assert f"400 rows of {file}, {n} of them 'fraud'" in outcome.out
        text = page.read_text()
        assert "Every threshold of scores.csv" in text
        assert 'class="explorer"' in text

    def test_scores_of_each_class(self, prudent, file, tmp_path):
        found, _ = self.run(prudent, file, tmp_path, "--scores", "p_fine,p_fraud")
        assert (found["kind"], found["positive"]) == ("alarms", "fraud")
        other, _ = self.run(
            *(prudent, file, tmp_path, "--scores", "p_fine,p_fraud"),
            *("--positive", "fine"),
        )
        assert other["positive"] == "fine"

    def test_answers(self, prudent, file, tmp_path):
        found, _ = self.run(
            *(prudent, file, tmp_path, "--score", "p_fraud", "--predicted", "said")
        )
        wrong = (self.score > 0.5) != self.truth
        bands = ThresholdBands.from_scores(self.score, wrong, kind="answers")
        assert found == bands.to_dict()

    @pytest.mark.parametrize(
        ("options", "code", "message"),
        [
            (("--score", "p_fraud"), 2, "say where the scores are"),
            (("--scores", "p_fine,p_fraud", "--positive", "x"), 2, "'x' is none of"),
            (("--scores", "p_fine,p_fraud", "--classes", "a,b"), 3, "truth 'fine' has"),
            (
                ("--score", "p_fraud", "--predicted", "said", "--positive", "fraud"),
                2,
                "is of --positive LABEL, or of --predicted",
            ),
            (("--scores", "p_fine,nothing"), 3, "nothing"),
        ],
    )
    def test_misuse(self, prudent, file, tmp_path, options, code, message):
        outcome = prudent(
            *("certify", file, "--truth", "y", "--thresholds", tmp_path / "b.json"),
            *options,
        )
        assert outcome.code == code, outcome.err
        assert message in outcome.err

    def test_a_file_is_asked_for(self, prudent, file):
        outcome = prudent(
            *("certify", file, "--truth", "y", "--scores", "p_fine,p_fraud")
        )
        assert outcome.code == 2
        assert "give --thresholds FILE or --report FILE" in outcome.err


def test_capacities_are_certified_and_watched(prudent, new_rows, tmp_path):
    pd = pytest.importorskip("pandas")
    model = SelectiveClassifier(
        LinearDiscriminantAnalysis(),
        error_rate=0.2,
        answered_share=0.3,
        random_state=0,
    ).fit(pd.DataFrame(X[:300], columns=NAMES), WORDS[:300])
    assert len(model.guarantees_) == 2
    path = tmp_path / "capacity.prudent"
    save(model, path)
    outcome = prudent("certify", new_rows, "-m", path, "--target", "y")
    assert outcome.code == 0
    (line,) = [
        s for s in outcome.out.splitlines() if s.startswith("Promised: answered")
    ]
    share = model.answers(pd.DataFrame(X[300:], columns=NAMES)).mean()
    assert line.startswith(
        f"Promised: answered share ≥ 0.300. On these rows {share:.3f}"
    )
    assert line.endswith("rows): kept")
    state = tmp_path / "watch.json"
    outcome = prudent(
        *("monitor", path, "--data", new_rows, "--target", "y"),
        *("--state", state, "--json", "-"),
    )
    assert outcome.code in (0, 8)
    assert "answered share" in outcome.out
