"""`prudent card`: one page about a promise."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator

from prudent import (
    Assumption,
    ConformalClassifier,
    Guarantee,
    MinimaxProbabilityClassifier,
    PromiseMonitor,
    SelectiveClassifier,
    save,
)
from prudent.cli.card import _rows_counted
from prudent.report.card import (
    HEADINGS,
    SAME_SOURCE_OF_FIT,
    SAME_SOURCE_OF_GROUPS,
    in_everyday_words,
    promise_card,
)
from prudent.report.card_page import as_html, as_markdown

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :4]
NAMES = ["a", "b", "c", "d"]
WORDS = np.array(["malignant", "benign"])[Y]


@pytest.fixture
def files(tmp_path, table_file):
    pd = pytest.importorskip("pandas")
    model = SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, random_state=0
    ).fit(pd.DataFrame(X[:300], columns=NAMES), WORDS[:300])
    save(model, tmp_path / "model.prudent")
    frame = pd.DataFrame(X[300:], columns=NAMES).assign(y=WORDS[300:])
    return tmp_path / "model.prudent", table_file(frame.to_csv(index=False), "new.csv")


def test_the_card_of_a_model_from_fit_to_monitor(prudent, files, tmp_path):
    model, new = files
    prudent("certify", new, "-m", model, "--truth", "y", "--json", tmp_path / "c.json")
    prudent(
        *("monitor", model, "--data", new, "--truth", "y"),
        *("--state", tmp_path / "w.json"),
    )
    (tmp_path / "owner.toml").write_text('purpose = "triage"\ncontact = "a <b> & c"\n')
    args = (
        *("card", model, "--certificate", tmp_path / "c.json"),
        *("--state", tmp_path / "w.json", "--owner", tmp_path / "owner.toml"),
    )
    for name in ("card.json", "card.html", "card.md", "again.json", "again.html"):
        outcome = prudent(*args, "-o", tmp_path / name)
        assert (outcome.code, outcome.err) == (0, "")
        assert "Of the rows it answers, at most 10 in 100 are wrong." in outcome.out
    card = json.loads((tmp_path / "card.json").read_text())
    assert list(card) == ["schema", *HEADINGS, "foot"]
    assert card["schema"] == "prudent.card/1"
    assert card["confidence"] == (
        "Such proofs fail in at most 5 of 100 cases, on average."
    )
    assert card["assumption"][0].startswith("New rows come from the same source")
    assert len(card["assumption"]) == 1
    assert card["watched"]["last verdict"] == "not contradicted"
    assert card["watched"]["level"] == 0.05
    assert card["owner"] == {
        "purpose": "triage",
        "decides": "",
        "oversight": "",
        "contact": "a <b> & c",
    }
    assert card["recheck"] == "prudent certify NEW_ROWS -m model.prudent --truth COLUMN"
    # No promise is about a class; 29 rows without an error would prove one.
    assert [(line["about"], line["status"]) for line in card["table"]] == [
        ("all rows", "promised"),
        ("all rows", "proved by new rows"),
        ("class 'benign'", "needs 29 rows"),
        ("class 'malignant'", "needs 29 rows"),
    ]
    assert (card["table"][0]["sense"], card["table"][0]["limit"]) == ("<=", 0.1)
    assert card["void_if"][-1] == (
        "some kind of row becomes more frequent than it was: if twice as frequent "
        "among the rows it answers, at most 10 in 100 becomes at most 20 in 100"
    )
    # The same files give the same bytes.
    for suffix in ("json", "html"):
        again = (tmp_path / f"again.{suffix}").read_bytes()
        assert again == (tmp_path / f"card.{suffix}").read_bytes()
    page = (tmp_path / "card.html").read_text()
    assert "a &lt;b&gt; &amp; c" in page
    assert "No statement of conformity." in page
    # Not cut on a phone.
    assert '<tr><th scope="col">whom</th><th scope="col">status</th>' in page
    text = (tmp_path / "card.md").read_text()
    for heading in HEADINGS.values():
        assert f"## {heading}\n" in text
        assert f"<h2>{heading}</h2>" in page


@pytest.mark.parametrize(
    ("regulator", "asked"),
    [
        (
            "eu",
            {
                "promise": "accuracy levels (Art. 15)",
                "confidence": "accuracy levels (Art. 15)",
                "for_whom": "limits, persons and groups (Annex IV)",
                "assumption": "limits, persons and groups (Annex IV)",
                "not_promised": "limits, persons and groups (Annex IV)",
                "handed_over": None,
                "evidence": "testing",
                "table": "accuracy levels (Art. 15); limits, persons and groups "
                "(Annex IV)",
                "void_if": "limits, persons and groups (Annex IV)",
                "watched": "monitoring",
                "recheck": "monitoring",
                "owner": None,
            },
        ),
        (
            "fda",
            {
                **dict.fromkeys(HEADINGS),
                "promise": "acceptance criteria",
                "evidence": "sample size",
                "table": "subgroups",
                "void_if": "monitoring, changes",
                "watched": "monitoring, changes",
                "recheck": "monitoring, changes",
            },
        ),
    ],
)
def test_headings_name_what_a_regulator_asks_for(
    prudent, files, tmp_path, regulator, asked
):
    model, _ = files
    for suffix in ("json", "html", "md"):
        outcome = prudent(
            *("card", model, "--headings", regulator),
            *("-o", tmp_path / f"card.{suffix}"),
        )
        assert outcome.code == 0, outcome.err
    headings = json.loads((tmp_path / "card.json").read_text())["headings"]
    assert headings == {
        name: heading if asked[name] is None else f"{heading}: {asked[name]}"
        for name, heading in HEADINGS.items()
    }
    page = (tmp_path / "card.html").read_text()
    text = (tmp_path / "card.md").read_text()
    for heading in headings.values():
        assert f"<h2>{heading}</h2>" in page
        assert f"## {heading}\n" in text
    assert "No statement of conformity." in page
    assert prudent("card", model, "--headings", "uk", "-o", "card.md").code == 2


def test_the_card_of_a_rule(prudent, table_file, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    score = np.round(rng.normal(size=300) + 2 * truth, 6)
    lines = [f"{'yes' if t else 'no'},{s}" for t, s in zip(truth, score, strict=True)]
    file = table_file("\n".join(["y,score", *lines]) + "\n", "scores.csv")
    rule = tmp_path / "rule.json"
    outcome = prudent(
        *("promise", file, "--truth", "y", "--score", "score", "--positive", "yes"),
        *("--promise", "coverage >= 90%", "--unseen", "hold-out of May", "-o", rule),
    )
    assert outcome.code == 0, outcome.err
    outcome = prudent("card", rule, "-o", tmp_path / "card.json")
    assert outcome.code == 0, outcome.err
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["confidence"] == "On average; this model may do worse."
    assert card["for_whom"]["rows that proved it"] == "hold-out of May"
    assert card["for_whom"]["table"] == "scores.csv"
    assert card["evidence"]["table rows"] == 300
    assert card["watched"] == "not watched"
    assert set(card["owner"].values()) == {""}


@pytest.mark.parametrize(
    ("promise", "sentence"),
    [
        (
            {"quantity": "coverage", "bound": 0.9, "sense": ">=", "scope": "x"},
            "Of the rows of class 'x', at least 90 in 100 have their label among those "
            "named.",
        ),
        (
            {"quantity": "class error rate", "bound": 0.025, "scope": 1},
            "Of the rows of class '1', at most 2.5 in 100 get another label.",
        ),
        (
            {"quantity": "false alarm rate", "bound": 0.01},
            "Of the ordinary rows, at most 1 in 100 raise an alarm.",
        ),
        (
            {"quantity": "error rate", "bound": 0.1, "subgroup": "sex=Female"},
            "Of all rows with sex=Female, at most 10 in 100 are answered wrong.",
        ),
        (
            {
                "quantity": "probability",
                "bound": 0.2,
                "scope": "yes",
                "subgroup": "score in (0.1, 0.3)",
            },
            "Of the rows with score in (0.1, 0.3), at most 20 in 100 are of class "
            "'yes'.",
        ),
        (
            {"quantity": "expected cost", "bound": 1.5},
            "On average a row costs at most 1.5.",
        ),
    ],
)
def test_everyday_words(promise, sentence):
    assert in_everyday_words(Guarantee(**{"sense": "<=", **promise})) == sentence


def test_other_assumptions_keep_their_sentences():
    model = MinimaxProbabilityClassifier().fit(X, Y)
    card = promise_card(model.guarantees_)
    assert card["confidence"] == "Certain, where what it rests on is true."
    assert any("plug-in estimates" in sentence for sentence in card["assumption"])
    assert all(sentence.endswith(".") for sentence in card["assumption"])
    for page in (as_html(card), as_markdown(card)):
        assert "plug-in estimates" in page


def test_promises_by_class_have_a_line_each():
    fitted = LinearDiscriminantAnalysis().fit(X[::2], WORDS[::2])
    model = ConformalClassifier(FrozenEstimator(fitted), condition="class")
    card = promise_card(model.fit(X[1::2], WORDS[1::2]).guarantees_)
    assert [line["about"] for line in card["table"]] == [
        "class 'benign'",
        "class 'malignant'",
    ]


def test_numbers_as_labels_are_written_as_in_the_terminal(
    prudent, table_file, tmp_path
):
    pd = pytest.importorskip("pandas")
    model = ConformalClassifier(condition="class", random_state=0)
    model.fit(pd.DataFrame(X[:300], columns=NAMES), Y[:300])
    save(model, tmp_path / "model.prudent")
    frame = pd.DataFrame(X[300:], columns=NAMES).assign(y=Y[300:])
    new = table_file(frame.to_csv(index=False), "new.csv")
    certified = prudent(
        *("certify", new, "-m", tmp_path / "model.prudent", "--truth", "y"),
        *("--json", tmp_path / "c.json"),
    )
    assert "coverage of class '0': at least" in certified.out
    args = ("card", tmp_path / "model.prudent", "--certificate", tmp_path / "c.json")
    outcome = prudent(*args, "-o", tmp_path / "card.html")
    assert outcome.code == 0, outcome.err
    page = (tmp_path / "card.html").read_text()
    assert "class &#x27;0&#x27;" in page
    assert not re.search(r"class \d", page)


def certificate(**fields):
    """A certificate of one promise, with other fields."""
    promise = {"quantity": "coverage", "bound": 0.4, "sense": ">=", "confidence": 0.95}
    return json.dumps([promise | fields])


def test_printed_limits_are_rounded_so_that_they_stay_true():
    """Rounded to nearest, .0123449 would be promised as .01234."""
    at_most = Guarantee(quantity="error rate", bound=0.0123449, sense="<=")
    at_least = Guarantee(quantity="coverage", bound=0.9123478, sense=">=")
    page = as_markdown(promise_card([at_most, at_least]))
    assert "| at most 1.24\u00a0% |" in page
    assert "| at least 91.23\u00a0% |" in page
    assert "at most 1.24 in 100" in in_everyday_words(at_most)
    assert "at least 91.23 in 100" in in_everyday_words(at_least)
    # 0.29 * 100 is 28.999999999999996, and 0.07 + 0.005 is more than 0.075.
    for bound, said in ((0.29, "29"), (0.07 + 0.005, "7.5"), (0.0, "0"), (1.0, "100")):
        plain = Guarantee(quantity="error rate", bound=bound, sense="<=")
        assert f"at most {said} in 100" in in_everyday_words(plain)
    cost = Guarantee(quantity="expected cost", bound=-1.23456, sense="<=")
    assert "costs at most -1.234." in in_everyday_words(cost)


def test_classes_and_subgroups_without_a_promise_have_a_line_too():
    error = Guarantee(
        quantity="error rate", bound=0.05, sense="<=", confidence=0.95, scope=None
    )
    by_sex = Guarantee(
        quantity="error rate", bound=0.05, sense="<=", subgroup="sex=Female"
    )
    seen = [
        {"about": "sex=Female", "rows": 90, "wrong": 3},
        {"about": "sex=Male", "rows": 80, "wrong": 4},
        {"about": "class 'a'", "rows": 12, "wrong": 1},
        {"about": "class 'b'"},
        {"about": "age<30", "rows": 7, "needs": 31},
    ]
    card = promise_card([error, by_sex], seen=seen)
    assert [
        (line["about"], line["counted"], line["rows"], line["limit"], line["status"])
        for line in card["table"]
    ] == [
        ("all rows", None, None, 0.05, "promised"),
        ("sex=Female", None, None, 0.05, "promised"),
        ("sex=Male", 4, 80, None, "seen only"),
        ("class 'a'", 1, 12, None, "needs 59 rows"),
        ("class 'b'", None, None, None, "needs 59 rows"),
        ("age<30", None, 7, None, "needs 31 rows"),
    ]
    page = as_markdown(card)
    assert "| sex=Male | not promised: seen only | wrong answers | 4 of 80 (5" in page
    assert "The rows of 1 subgroup are never answered" in page
    many = promise_card([error], seen=[{"about": f"class {i}"} for i in range(40)])
    assert len(many["table"]) == 14
    assert many["table"][-1]["about"] == "28 more"
    for page in (as_html(many), as_markdown(many)):
        assert "28 more" in page


def test_shares_are_said_of_all_rows():
    flagged = Guarantee(
        quantity="flagged share",
        bound=0.04,
        sense="<=",
        scope="fraud",
        evidence={"calibration rows": 500, "flagged": 10},
    )
    assert in_everyday_words(flagged) == (
        "Of all rows, at most 4 in 100 are flagged as 'fraud'."
    )
    (line,) = promise_card([flagged])["table"]
    assert (line["about"], line["counted"], line["rows"]) == ("all rows", 10, 500)


class TestCertificatePage:
    def test_of_a_model_with_every_threshold(self, prudent, files, tmp_path):
        model, new = files
        page = tmp_path / "certificate.html"
        outcome = prudent(
            *("certify", new, "-m", model, "--truth", "y", "--report", page),
            *("--thresholds", tmp_path / "bands.json"),
        )
        assert outcome.code == 0, outcome.err
        assert f"report: {page}" in outcome.err
        text = page.read_text()
        for heading in HEADINGS.values():
            assert f"<h2>{heading}</h2>" in text
        assert "Of the rows it answers, at most 10 in 100 are wrong." in text
        assert "proved by new rows" in text
        assert "There are 269 of them." in text
        assert "Nobody watches it" in text
        assert "prudent certify NEW_ROWS -m model.prudent --truth COLUMN" in text
        assert "class &#x27;benign&#x27;" in text
        assert "seen only" in text
        # The explorer reads what --thresholds wrote.
        written = (tmp_path / "bands.json").read_text()
        assert len(written) < 15_000
        kept = re.search(r'<script type="application/json">(.*?)</script>', text)[1]
        assert json.loads(kept) == json.loads(written)
        assert "@page { size: A4" in text
        assert (
            "with probability\n95\u00a0%, together with the card above with 90\u00a0%"
        ) in text
        assert "http" not in text
        again = prudent(
            *("certify", new, "-m", model, "--truth", "y"),
            *("--report", tmp_path / "plain.html"),
        )
        assert again.code == 0
        assert "explorer" not in (tmp_path / "plain.html").read_text()

    def test_says_what_the_new_rows_say_of_the_promise(self, prudent, files, tmp_path):
        model, new = files
        page = tmp_path / "certificate.html"
        command = ("certify", new, "-m", model, "--truth", "y", "--report", page)
        outcome = prudent(*command)
        verdict = re.search(r"rows\): (\w+)$", outcome.out, re.MULTILINE)[1]
        said = {
            "kept": "Kept: the new rows prove the promise.",
            "consistent": "Not contradicted: the new rows neither prove nor refute the "
            "promise.",
        }
        assert f'<p class="{verdict}">{said[verdict]}</p>' in page.read_text()
        # With labels exchanged nearly every answer is wrong.
        turned = new.with_name("turned.csv")
        text = new.read_text().replace("benign", "x").replace("malignant", "benign")
        turned.write_text(text.replace(",x", ",malignant"))
        outcome = prudent(*("certify", turned, *command[2:]))
        assert outcome.out.splitlines()[-2].endswith("broken")
        assert "Broken: the new rows refute the promise." in page.read_text()

    def test_begins_at_the_threshold_of_the_model(self, prudent, files, tmp_path):
        model, new = files
        page = tmp_path / "certificate.html"
        outcome = prudent(
            *("certify", new, "-m", model, "--truth", "y", "--report", page),
            *("--thresholds", tmp_path / "bands.json"),
        )
        wrong, answered = re.search(r"\((\d+) of (\d+) wrong\)", outcome.out).groups()
        limits = json.loads((tmp_path / "bands.json").read_text())
        text = page.read_text()
        position = re.search(r'data-name="position">([^<]+)<', text)[1]
        place = list(map(str, limits["threshold"])).index(position)
        assert limits["violations"][place] == [int(wrong), int(answered)]
        assert "Shown first is the model's own threshold" in text

    def test_of_answers(self, prudent, table_file, tmp_path):
        file = table_file("y,said\n" + "a,a\nb,b\n" * 40, "answers.csv")
        page = tmp_path / "answers.html"
        outcome = prudent(
            *("certify", file, "--truth", "y", "--predicted", "said"),
            *("--report", page),
        )
        assert outcome.code == 0, outcome.err
        text = page.read_text()
        assert "Of all rows, at most" in text
        assert "--predicted COLUMN" in text


def test_new_rows_may_prove_some_promises_and_refute_others():
    promises = [
        Guarantee(quantity="class error rate", bound=0.1, sense="<=", scope=label)
        for label in ("a", "b")
    ]
    card = promise_card(promises)
    said = {
        ("kept", "kept"): "Kept: the new rows prove the 2 promises.",
        ("kept", "consistent"): "Not contradicted: the new rows prove 1 of the 2 "
        "promises, and refute none.",
        ("kept", "broken"): "Broken: the new rows refute the promise about class "
        "&#x27;b&#x27;.",
    }
    for verdicts, sentence in said.items():
        page = as_html(card, checked=list(zip(promises, verdicts, strict=True)))
        assert sentence in page
    assert "the new rows" not in as_html(card)


def error_of_answers(n_rows, answered, wrong, bound=0.05, **fields):
    """A promise about answered rows, with what was counted."""
    evidence = {"calibration rows": n_rows, "answered": answered, "wrong": wrong}
    return Guarantee(
        **{"quantity": "selective error rate", "sense": "<=", "confidence": 0.95},
        **{"bound": bound, "assumptions": ("INDEPENDENT",), "evidence": evidence},
        **fields,
    )


class TestWhoDecidesTheRest:
    def test_nobody_is_named(self):
        card = promise_card([error_of_answers(99, 84, 0)])
        page = as_markdown(card)
        assert (
            "The rows that it does not answer are for a person to decide, and nobody "
            'is named here. To name who does, write decides = "..." into the file that '
            "prudent card --owner reads."
        ) in page
        # The threshold was set by these rows, so that they prove no limit.
        assert "it left 15 of 99 open (15.2\u00a0%). Of new ones it may be more" in page
        assert card["handed_over"]["limits"] is None

    def test_new_rows_give_limits(self):
        proved = error_of_answers(120, 108, 1, bound=0.0432)
        card = promise_card(
            [error_of_answers(99, 84, 0)],
            certificate=[proved],
            owner={"decides": "the pathologist on duty."},
        )
        page = as_markdown(card)
        assert (
            "The rows that it does not answer are decided by the pathologist on duty."
        ) in page
        assert (
            "it left 12 of 120 open (10.0\u00a0%); among all rows like these it is "
            "between 5.3\u00a0% and 16.8\u00a0%, with confidence 95\u00a0%."
        ) in page
        low, high = card["handed_over"]["limits"]
        assert (round(low, 4), round(high, 4)) == (0.0527, 0.1682)
        # What new rows have proved is counted as new without a promise beside it too.
        alone = promise_card([], certificate=[proved])
        assert alone["handed_over"]["limits"] == [low, high]

    @pytest.mark.parametrize(
        ("quantity", "sense", "sentence"),
        [
            ("coverage", ">=", "The rows where it names several labels, or none, are"),
            ("false alarm rate", "<=", "What follows an alarm is for a person"),
            ("error rate", "<=", "The rows that get no answer, if there are any, are"),
        ],
    )
    def test_of_other_promises(self, quantity, sense, sentence):
        promise = Guarantee(quantity=quantity, bound=0.9, sense=sense)
        assert sentence in as_markdown(promise_card([promise]))

    def test_a_share_of_answers_that_is_promised(self):
        share = Guarantee(quantity="answered share", bound=0.8, sense=">=")
        page = as_markdown(promise_card([error_of_answers(900, 744, 9), share]))
        assert "That at most 20 in 100 rows are left open is promised." in page
        assert "it left 156 of 900 open" in page
        assert "may be more" not in page

    def test_a_rule_by_subgroups_may_never_answer_some_of_them(self):
        by_site = error_of_answers(400, 300, 3, subgroup="site=a")
        page = as_markdown(promise_card([error_of_answers(873, 765, 9), by_site]))
        assert (
            "if there were too few to prove anything about, are never answered" in page
        )

    def test_a_model_that_answers_too_few_rows_was_not_counted(self):
        promise = Guarantee(quantity="selective error rate", bound=0.1, sense="<=")
        page = as_markdown(promise_card([promise]))
        assert "prudent certify counts it on new rows" in page


def test_every_line_is_a_sentence_without_jargon():
    promise = error_of_answers(99, 84, 0)
    evidence = {**promise.evidence, "pointwise level": 0.0386911, "claims": 1}
    watched = {
        "level": 0.05,
        "last verdict": "not contradicted",
        "rows counted": 1100,
        "date": "2026-11-23T23:07:19+00:00",
    }
    card = promise_card([replace(promise, evidence=evidence)], watched=watched)
    for page in (as_html(card), as_markdown(card)):
        for jargon in (
            "pointwise",
            "claims",
            "selective",
            "level:",
            "calibration",
            "<=",
        ):
            assert jargon not in page
        assert "proved by 99 rows that the model was not fitted to" in page
        assert "has counted 1\u00a0100 new rows, the last on 2026-11-23" in page
        assert "ever says otherwise is at most 5\u00a0%" in page
    # The figures are there for who wants to check them.
    (behind,) = card["evidence"]["promises"]
    assert behind["evidence"]["pointwise level"] == 0.0386911


def test_a_coverage_is_counted_as_it_is_limited():
    coverage = Guarantee(
        quantity="coverage",
        bound=0.955,
        sense=">=",
        evidence={"calibration rows": 2500, "wrong": 86},
    )
    page = as_markdown(promise_card([coverage]))
    assert "2\u00a0414 of 2\u00a0500 (96.6\u00a0%) | at least 95.5\u00a0% |" in page


def test_what_new_rows_have_proved_stands_below_what_is_promised():
    by_class = [
        Guarantee(quantity="class error rate", bound=0.1, sense="<=", scope=scope)
        for scope in "ab"
    ]
    proved = [replace(promise, bound=0.08) for promise in by_class]
    lines = promise_card(by_class, certificate=proved)["table"]
    assert [(line["about"][-2], line["status"]) for line in lines] == [
        ("a", "promised"),
        ("a", "proved by new rows"),
        ("b", "promised"),
        ("b", "proved by new rows"),
    ]


def test_a_promise_that_is_the_same_for_many_classes_is_said_at_once():
    coverage = {"quantity": "coverage", "bound": 0.9, "sense": ">="}
    card = promise_card([Guarantee(**coverage, scope=k) for k in range(10)])
    assert card["promise"] == [
        "Of the rows of each of the 10 classes, at least 90 in 100 have their label "
        "among those named."
    ]
    assert len(card["table"]) == 10


def test_rows_of_all_classes_were_counted_by_a_monitor():
    """A promise in every class counts each row once, one over all rows all of them."""

    def monitor(n, scope, quantity="coverage"):
        about = Guarantee(quantity=quantity, bound=0.9, sense=">=", scope=scope)
        return {**PromiseMonitor(about).to_dict(), "n": n}

    by_class = [monitor(57, "a"), monitor(60, "b"), monitor(102, "c")]
    assert _rows_counted(by_class) == 219
    assert _rows_counted([monitor(219, None), *by_class]) == 219
    assert _rows_counted([monitor(219, None)]) == 219


def test_classes_whose_promise_is_the_same_are_named_where_others_have_another():
    coverage = {"quantity": "coverage", "sense": ">="}
    alike = [Guarantee(**coverage, bound=0.8, scope=label) for label in ("a", "b", "4")]
    card = promise_card([*alike, Guarantee(**coverage, bound=0.95, scope="d")])
    together, alone = card["promise"]
    assert together.startswith("Of the rows of each of the 3 classes 'a', 'b', '4', at")
    assert alone.startswith("Of the rows of class 'd', at least 95 in 100 have")


def test_rows_of_the_fit_that_proved_a_promise_were_not_used_for_that_alone():
    model = ConformalClassifier().fit(X[:100], WORDS[:100])
    card = promise_card(model.guarantees_)
    assert card["assumption"] == [SAME_SOURCE_OF_FIT]
    assert "nothing else" not in as_markdown(card)
    assert "proved by the 100 rows of the fit itself" in as_markdown(card)


def test_a_promise_about_groups_rests_on_groups():
    error = error_of_answers(80, 70, 0, unit="group")
    of_groups = replace(error, assumptions=(Assumption.GROUPS,))
    card = promise_card([of_groups], certificate=[replace(of_groups, bound=0.04)])
    assert card["assumption"] == [SAME_SOURCE_OF_GROUPS]
    page = as_markdown(card)
    assert "proved by 80 groups that" in page
    assert "Of the new groups, one row of each, it left 10 of 80 open" in page


def test_a_broken_promise_is_said_to_be_broken_first():
    watched = {"level": 0.05, "last verdict": "broken", "rows counted": 9, "date": ""}
    card = promise_card([error_of_answers(99, 84, 0)], watched=watched)
    page = as_html(card)
    warning = "BROKEN: new rows contradict what follows. Do not rely on it."
    assert page.index(warning) < page.index("Of the rows it answers, at most 5 in 100")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_no_sheet_is_left_half_empty(tmp_path):
    """A table longer than what is left of a sheet begins on it all the same."""
    error = {"quantity": "error rate", "bound": 0.1, "sense": "<=", "confidence": 0.95}
    proved = [Guarantee(**error, subgroup=f"ward={ward}") for ward in range(44)]
    page = tmp_path / "card.html"
    page.write_text(as_html(promise_card([Guarantee(**error)], certificate=proved)))
    assert sheets_of(page, tmp_path) == 2


def sheets_of(page, folder):
    """Sheets of paper that a page takes in Chromium."""
    printed = page.with_suffix(".pdf")
    subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={folder / 'profile'}", "--no-pdf-header-footer"),
            *(f"--print-to-pdf={printed}", page.as_uri()),
        ],
        capture_output=True,
        check=True,
        timeout=120,
    )
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed.read_bytes()))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_the_card_prints_on_one_sheet(prudent, files, tmp_path):
    """And the page of a certificate on two, the second being that of all thresholds."""
    model, new = files
    card, page = tmp_path / "card.html", tmp_path / "certificate.html"
    assert prudent("card", model, "-o", card).code == 0
    outcome = prudent(
        *("certify", new, "-m", model, "--truth", "y", "--report", page),
        *("--thresholds", tmp_path / "bands.json"),
    )
    assert outcome.code == 0, outcome.err
    assert sheets_of(card, tmp_path) == 1
    assert sheets_of(page, tmp_path) == 2


def test_false_alarms_are_of_ordinary_rows():
    promise = Guarantee(quantity="false alarm rate", bound=0.05, sense="<=")
    (line,) = promise_card([promise])["table"]
    assert line["about"] == "ordinary rows"


def test_the_command_that_checks_again_works_once_its_blanks_are_filled(
    prudent, table_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    rows = "".join(f"{a:.4f},{b:.4f}\n" for a, b in random.normal(size=(120, 2)))
    ordinary = table_file(f"a,b\n{rows}", "normal.csv")
    rows = "".join(f"{a:.4f},{b:.4f},ok\n" for a, b in random.normal(size=(80, 2)))
    new = table_file(f"a,b,state\n{rows}", "new.csv")
    name = "my detector.prudent"
    assert prudent("detect", ordinary, "--model-out", name).code == 0
    assert prudent("card", name, "-o", "card.json").code == 0
    recheck = json.loads((tmp_path / "card.json").read_text())["recheck"]
    filled = {"NEW_ROWS": str(new), "COLUMN": "state", "LABEL": "ok"}
    words = [filled.get(word, word) for word in shlex.split(recheck)[1:]]
    checked = prudent(*words)
    assert checked.code == 0, checked.err
    assert "false alarm rate: at most" in checked.out
    page = as_markdown(json.loads((tmp_path / "card.json").read_text()))
    assert "COLUMN its column of true labels, LABEL the one of ordinary rows." in page


class TestMisuse:
    def test_no_promise(self, prudent, tmp_path):
        pd = pytest.importorskip("pandas")
        plain = LinearDiscriminantAnalysis().fit(pd.DataFrame(X, columns=NAMES), WORDS)
        save(plain, tmp_path / "plain.prudent")
        outcome = prudent("card", tmp_path / "plain.prudent", "-o", tmp_path / "c.md")
        assert outcome.code == 4
        assert "card: no promise in this file; add --certificate" in outcome.err
        assert not (tmp_path / "c.md").exists()

    @pytest.mark.parametrize(
        ("option", "text", "message"),
        [
            ("--certificate", "{", "is no certificate"),
            ("--certificate", '["a"]', "is no certificate"),
            ("--certificate", certificate(subgroup=-1e308), "is no certificate"),
            ("--certificate", certificate(assumptions=[-1]), "is no certificate"),
            ("--certificate", certificate(scope=[]), "is no certificate"),
            ("--certificate", certificate(scope={}), "is no certificate"),
            ("--certificate", certificate(bound=10**300), "is no certificate"),
            ("--certificate", certificate(bound=10**400), "is no certificate"),
            (
                "--certificate",
                certificate(evidence={"calibration rows": "1" * 400}),
                "is no certificate",
            ),
            ("--certificate", "[" * 10**5, "is no certificate"),
            ("--certificate", certificate(evidence={"wrong": "nan"}), "no certificate"),
            ("--certificate", certificate(evidence={"wrong": 1e308}), "no certificate"),
            ("--owner", "purpose = 3\n", "'purpose' is none of"),
            ("--owner", "boss = 'me'\n", "'boss' is none of"),
            ("--owner", "=", "is no TOML"),
            ("--state", "{}", "is damaged, or is no state"),
            ("--state", '{"format": 1}', "is no state of prudent monitor"),
        ],
    )
    def test_broken_files(self, prudent, files, tmp_path, option, text, message):
        model, _ = files
        (tmp_path / "input").write_text(text)
        outcome = prudent(
            "card", model, option, tmp_path / "input", "-o", tmp_path / "card.md"
        )
        assert outcome.code == 4
        assert message in outcome.err
        assert not (tmp_path / "card.md").exists()

    def test_state_of_promises_that_cannot_be_watched(self, prudent, tmp_path):
        pd = pytest.importorskip("pandas")
        table = tmp_path / "new.csv"
        pd.DataFrame(X, columns=NAMES).assign(y=WORDS).to_csv(table, index=False)
        full = ConformalClassifier(model="gaussian", method="full")
        model, state = tmp_path / "full.prudent", tmp_path / "w.json"
        save(full.fit(pd.DataFrame(X, columns=NAMES), WORDS), model)
        rows = ("--data", table, "--truth", "y", "--state", state)
        assert prudent("monitor", model, *rows, "--reference", table).code in (0, 8)
        outcome = prudent("card", model, "--state", state, "-o", tmp_path / "c.json")
        assert (outcome.code, outcome.err) == (0, "")
        card = json.loads((tmp_path / "c.json").read_text())
        assert card["watched"] == "not watched"

    def test_state_of_another_model(self, prudent, files, tmp_path):
        model, new = files
        args = ("--data", new, "--truth", "y", "--state", tmp_path / "w.json")
        prudent("monitor", model, *args)
        other = tmp_path / "other.prudent"
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=NAMES)
        save(ConformalClassifier(random_state=0).fit(frame, WORDS), other)
        outcome = prudent(
            *("card", other, "--state", tmp_path / "w.json"),
            *("-o", tmp_path / "card.md"),
        )
        assert outcome.code == 4
        assert "watches another model than" in outcome.err
        assert not (tmp_path / "card.md").exists()

    def test_kind_of_page(self, prudent, files, tmp_path):
        outcome = prudent("card", files[0], "-o", tmp_path / "card.pdf")
        assert outcome.code == 2
        assert "a card is .html, .md, .json" in outcome.err


@pytest.mark.parametrize(
    ("quantity", "sense", "about", "sentence"),
    [
        (
            "selective error rate",
            "<=",
            {"subgroup": "sex=Female"},
            "Of the rows with sex=Female that it answers, at most 5 in 100 are wrong.",
        ),
        (
            "selective error rate",
            "<=",
            {"scope": "ill"},
            "Of the rows of class 'ill' that it answers, at most 5 in 100 are wrong.",
        ),
        (
            "precision",
            ">=",
            {"scope": "ill", "subgroup": "sex=Female"},
            "Of the rows with sex=Female flagged as 'ill', at least 5 in 100 are what "
            "they are flagged as.",
        ),
        (
            "expected cost",
            "<=",
            {"subgroup": "sex=Female"},
            "On average a row with sex=Female costs at most 0.05.",
        ),
    ],
)
def test_sentences_name_whom_they_are_about_before_what_is_done(
    quantity, sense, about, sentence
):
    promise = Guarantee(quantity=quantity, bound=0.05, sense=sense, **about)
    assert in_everyday_words(promise) == sentence
