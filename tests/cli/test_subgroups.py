"""Promises by subgroup on the command line: `--by`, and the words of a promise."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import prudent as library
from prudent.certification.certificates import unwrapped


def people(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "sex": random.choice(
                ["Female", "Male", "Other"], n, p=[0.45, 0.545, 0.005]
            ),
            "site": random.integers(1, 3, n),
            "x": random.normal(size=n).round(3),
        }
    )
    frame.loc[:3, "sex"] = None
    noise = np.where(frame["age"] > 60, 0.8, 0.3)
    frame["y"] = np.where(frame["x"] + noise * random.normal(size=n) > 0, "pos", "neg")
    return frame


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(2000, 0).to_csv("old.csv", index=False)
    new = people(600, 1)
    new.to_csv("new.csv", index=False)
    new.drop(columns="sex").to_csv("no_sex.csv", index=False)
    return new


def fit(prudent, promise, *more, method="logistic"):
    return prudent(
        *("fit", "old.csv", "--target", "y", "--method", method, "-o", "m"),
        *("--promise", promise, *more),
    )


WISHES = [
    ("coverage >= 80% in every class and sex", None, 8),
    ("coverage >= 80% in every class", "sex,age:30,60", 14),
    ("coverage >= 80%", "site*sex", 8),
    ("error <= 20% in every site", None, 3),
    ("missed pos <= 30% in every site and age:45", None, 4),
    ("missed pos <= 30%", "site*age:45", 4),
]


@pytest.mark.parametrize(("promise", "by", "n_promises"), WISHES)
@pytest.mark.parametrize("aside", [False, True])
def test_fit_predict_certify_monitor(prudent, tables, promise, by, n_promises, aside):
    more = ("--by", by) if by else ()
    more += ("--drop", "sex,site") if aside else ()
    fitted = fit(prudent, promise, *more)
    assert fitted.code == 0, fitted.err
    assert f"x {2 if aside else 4} features" in fitted.out
    model = library.load("m")
    assert len(model.guarantees_) == n_promises
    assumed = {a for g in model.guarantees_ for a in g.assumed}
    assert fitted.out.count("\n- ") == n_promises + len(assumed)
    # The same answers in Python, from a frame in another order.
    printed = prudent("predict", "new.csv", "-m", "m", "--set").out
    rows = pd.read_csv("new.csv")[["y", "x", "site", "sex", "age"]]
    sets = library.predict_set(model, rows)
    labels = np.array(model.classes_)
    wanted = ["|".join(labels[members]) for members in sets]
    assert [row["set"] for row in csv.DictReader(io.StringIO(printed))] == wanted
    certified = prudent("certify", "new.csv", "-m", "m", "--target", "y")
    assert certified.code == 0, certified.err
    assert " where " in certified.out
    asked = ("--by", by) if by else ()
    same = prudent("certify", "new.csv", "-m", "m", "--target", "y", *asked)
    assert same.code == 0
    assert same.out == certified.out
    watched = prudent("monitor", "m", "--data", "new.csv", "--target", "y")
    assert watched.code in (0, 7), watched.err
    assert f"{n_promises} promises" in watched.out
    seen = prudent("certify", "old.csv", "-m", "m", "--target", "y")
    assert "2 000 of these 2 000 rows were in the fit of the model" in seen.err


def test_a_table_without_the_column_is_refused(prudent, tables):
    assert fit(prudent, "coverage >= 80%", "--by", "sex", "--drop", "sex").code == 0
    for command in (
        ("predict", "no_sex.csv", "-m", "m"),
        ("certify", "no_sex.csv", "-m", "m", "--target", "y"),
        ("monitor", "m", "--data", "no_sex.csv", "--target", "y"),
    ):
        refused = prudent(*command)
        assert refused.code == 3
        assert "the promise is by sex, which the table lacks" in refused.err
    with pytest.raises(ValueError, match="by sex, which the table lacks"):
        library.load("m").predict_set(pd.read_csv("no_sex.csv"))


def test_missing_cells_of_a_column_kept_aside(prudent, tables):
    # Four rows of the fit lack their sex; a new one that does is of their subgroup.
    assert fit(prudent, "coverage >= 80%", "--by", "sex", "--drop", "sex").code == 0
    sets = prudent("predict", "new.csv", "-m", "m", "--missing", "error").out
    assert [line.split(",")[1] for line in sets.splitlines()[1:5]] == ["neg|pos"] * 4
    whole = prudent("predict", "new.csv", "-m", "m", "--missing", "drop-rows").out
    assert whole == sets


def test_rows_of_an_unseen_subgroup_are_noted(prudent, tables):
    assert fit(prudent, "error <= 20%", "--by", "site").code == 0
    tables.assign(site=7).head(5).to_csv("strange.csv", index=False)
    watched = prudent("monitor", "m", "--data", "strange.csv", "--target", "y")
    assert "5 rows of subgroups that the fit has not seen" in watched.err
    answers = prudent("predict", "strange.csv", "-m", "m").out.splitlines()
    assert set(answers[1:]) == {",False"}


@pytest.mark.parametrize(
    ("promise", "more", "sentence"),
    [
        ("error <= 9%", ("--by", "sexe"), "--by: no column 'sexe'; there are age, sex"),
        (
            "error <= 9%",
            ("--by", "age"),
            "--by: 'age' has 62 values: give bands, --by age:",
        ),
        ("error <= 9%", ("--by", "y"), "--by: 'y' is the target"),
        ("error <= 9%", ("--by", ","), "--by names no column"),
        ("error <= 9%", ("--by", "age:9,3"), "--by: the bands of 'age:9,3' must be"),
        ("error <= 9%", ("--by", "sex:30"), "--by: 'sex' has bands and holds no numb"),
        ("error <= 9% in every site", ("--by", "sex"), "by site, and by sex is asked"),
        ("none", ("--by", "sex"), "there is none to keep in every sex"),
        ("error <= 9% in every class and sex", (), "is none of"),
        ("false alarm <= 9%", ("--by", "sex"), "--by is not for detectors"),
    ],
)
def test_errors_in_one_sentence(prudent, tables, promise, more, sentence):
    method = "minimax" if promise.startswith("false") else "logistic"
    refused = fit(prudent, promise, *more, method=method)
    assert refused.code in (2, 3)
    assert sentence in refused.err
    assert refused.err.count("\n") == 1


def test_monitor_refuses_subgroups_without_a_promise(prudent, tables):
    assert fit(prudent, "error <= 20%", "--by", "site").code == 0
    arguments = ("monitor", "m", "--data", "new.csv", "--target", "y")
    assert prudent(*arguments, "--by", "site").code in (0, 7)
    refused = prudent(*arguments, "--by", "sex")
    assert refused.code == 2
    assert "m makes no promises by sex" in refused.err


def test_certify_answers_in_a_column_by_subgroup(prudent, tables):
    tables.assign(said=tables["y"]).to_csv("said.csv", index=False)
    arguments = ("certify", "said.csv", "--predicted", "said", "--target", "y")
    found = prudent(*arguments, "--by", "site,age:40")
    assert "error rate where site=1: at most" in found.out
    assert "error rate of class 'pos' where age>=40: at most" in found.out


def test_compare_by_subgroup_and_the_printed_commands(prudent, tables):
    arguments = ("compare", "old.csv", "--target", "y", "--methods", "minimax")
    arguments += ("--baselines", "lda", "--cv", "3", "--drop", "site")
    found = prudent(*arguments, "--by", "site,age:60", "--promise", "coverage >= 80%")
    assert found.code == 0, found.err
    assert "covered (worst" in found.out
    assert "asked: coverage ≥ 80% in every site and age:60" in found.out
    lines = found.out.splitlines()
    command = next(line for line in lines if line.startswith("To use it:"))
    words = shlex.split(command.removeprefix("To use it:"))
    assert words[words.index("--by") + 1] == "site,age:60"
    fitted = prudent(*words[1:])
    assert fitted.code == 0, fitted.err
    assert "coverage where site=2" in fitted.out
    again = next(line for line in lines if line.startswith("reproduce: "))
    repeated = prudent(*shlex.split(again.removeprefix("reproduce: "))[1:])
    assert repeated.out.splitlines()[:2] == lines[:2]
    refused = prudent(*arguments, "--by", "sexe", "--promise", "error <= 10%")
    assert refused.code == 3
    assert "--by: no column 'sexe'; there are age, sex, site" in refused.err


def test_plan_for_each_subgroup_the_rarest_first(prudent, tables):
    arguments = ("plan", "--data", "old.csv", "--by", "sex,age:60", "--bound", 0.1)
    found = prudent(*arguments)
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    plain = json.loads(prudent(*arguments, "--json", "-").out)["subgroups"]
    assert [line.split("  ")[0] for line in lines[1:7]] == [
        item["subgroup"] for item in plain
    ]
    shares = [item["share"] for item in plain]
    assert shares == sorted(shares)
    assert plain[-1]["subgroup"] == "age<60"
    for item in plain:
        # All rows and all six at once, and enough rows of them in 99 of 100 draws but
        # not one row less.
        assert item["rows"] == library.plan(bound=0.1, claims=7).rows
        n_rows = item["rows_of_table"]
        few = item["rows"] - 1
        assert binom.cdf(few, n_rows, item["share"]) <= 0.01
        assert binom.cdf(few, n_rows - 1, item["share"]) > 0.01
    assert "in 99 of 100 draws" in found.out
    assert "over all rows and in every subgroup at once" in found.out
    assert "0.02: 7 claims." in found.out
    assert "give both or neither" in prudent("plan", "--by", "sex").err
    assert "no column 'sexe'" in prudent(*arguments[:3], "--by", "sexe").err


@pytest.mark.parametrize(
    ("promised", "claims"), [(True, 1), (False, 4)], ids=["error", "every limit"]
)
def test_planned_rows_reach_the_power_of_the_certificate(
    prudent, tables, promised, claims
):
    # Answers in a column have four limits: of all that are given and of all rows, and
    # of two classes.
    asked = ("plan", "--data", "old.csv", "--by", "site", "--claims", claims)
    planned = json.loads(prudent(*asked, "--json", "-").out)
    settings = planned["settings"]
    if promised:
        fitted = fit(prudent, "error <= 20% in every site")
        assert fitted.code == 0, fitted.err
        given = ("-m", "m")
    else:
        tables.assign(answer=tables["y"]).to_csv("new.csv", index=False)
        given = ("--predicted", "answer", "--by", "site")
    certify = ("certify", "new.csv", *given, "--target", "y", "--json", "-")
    found = json.loads(prudent(*certify).out)
    assert {item["evidence"]["claims"] for item in found} == {settings["claims"]}
    level = (1 - settings["confidence"]) / found[0]["evidence"]["claims"]
    for n_rows in {item["rows"] for item in planned["subgroups"]}:
        # The limit of v wrong rows is `bound` or less where so few have that chance.
        chances = binom.cdf(np.arange(n_rows), n_rows, settings["bound"])
        allowed = int(np.flatnonzero(chances <= level)[-1])
        power = binom.cdf(allowed, n_rows, settings["expected"])
        assert power >= settings["power"]


def scores_of(model, rows, rule):
    """What the classifier inside says of rows, beside the columns of the table."""
    last, taken = unwrapped(model, rows)
    scores = pd.DataFrame(
        last.estimator_.predict_proba(taken), columns=rule.record["columns"]
    )
    return pd.concat([scores, rows.reset_index(drop=True)], axis=1)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize(("promise", "by", "n_promises"), WISHES)
def test_an_exported_rule_answers_as_its_model(
    prudent, tables, promise, by, n_promises
):
    tables.loc[50:54, "sex"] = "Alien"  # an unseen word, and none
    tables.loc[55:59, "sex"] = None
    tables.to_csv("new.csv", index=False)
    assert fit(prudent, promise, *(("--by", by) if by else ())).code == 0
    exported = prudent("export", "m", "-o", "rule.json")
    assert exported.code == 0, exported.err
    assert exported.out.count("Promised: ") == n_promises
    model, text = library.load("m"), Path("rule.json").read_text(encoding="utf-8")
    rule = library.Rule.from_json(text)
    assert f"{rule.to_json()}\n" == text
    rows = pd.read_csv("new.csv")
    scores_of(model, rows, rule).to_csv("scores.csv", index=False)
    answers = prudent("apply", "rule.json", "scores.csv")
    assert answers.code == 0, answers.err
    said = list(csv.DictReader(io.StringIO(answers.out)))
    if rule.kind == "sets":
        labels = np.array(model.classes_)
        sets = library.predict_set(model, rows)
        assert [row["set"] for row in said] == ["|".join(labels[s]) for s in sets]
        assert len({row["set"] for row in said}) == 3
    elif rule.kind == "answers":
        last, taken = unwrapped(model, rows)
        answered = last.answers(taken).tolist()
        assert [row["answered"] == "True" for row in said] == answered
        assert len(set(answered)) == 2
    else:
        assert [row["prediction"] for row in said] == model.predict(rows).tolist()
    # What is certified and watched is the same, too.
    found = [
        prudent("certify", "-m", file, data, "--target", "y").out.splitlines()
        for file, data in (("rule.json", "scores.csv"), ("m", "new.csv"))
    ]
    limits = [[line for line in lines if ": at " in line] for lines in found]
    assert limits[0] == limits[1]
    assert len(limits[0]) == n_promises
    watched = [
        prudent("monitor", file, "--data", data, "--target", "y", "--no-drift")
        for file, data in (("rule.json", "scores.csv"), ("m", "new.csv"))
    ]
    assert watched[0].out.splitlines()[2:-2] == watched[1].out.splitlines()[2:-2]
    unseen = [
        w.err.count("rows of subgroups that the fit has not seen") for w in watched
    ]
    assert unseen == [1, 1] if "sex" in f"{promise} {by}" else [0, 0]


def test_a_rule_by_subgroup_says_what_a_table_lacks(prudent, tables):
    promise = "coverage >= 80% in every sex and age:60 and site"
    assert fit(prudent, promise).code == 0
    assert prudent("export", "m", "-o", "rule.json").code == 0
    rule = library.Rule.from_json(Path("rule.json").read_text(encoding="utf-8"))
    scores = scores_of(library.load("m"), pd.read_csv("new.csv"), rule)
    for column in ("sex", "age", "site"):
        scores.drop(columns=column).to_csv("less.csv", index=False)
        refused = prudent("apply", "rule.json", "less.csv")
        assert refused.code == 3
        assert f"the promise is by {column}, which the table lacks" in refused.err
        assert refused.err.count("\n") == 1
    words = scores.astype({"age": object})
    words.loc[7, "age"] = "about 40"
    words.to_csv("words.csv", index=False)
    refused = prudent("apply", "rule.json", "words.csv")
    assert refused.code == 3
    assert "the rule parts 'age' by numbers, and the table holds words" in refused.err
    # A missing number is of no band that was seen: the full set.
    scores.loc[7, "age"] = None
    scores.to_csv("gap.csv", index=False)
    lines = prudent("apply", "rule.json", "gap.csv").out.splitlines()
    assert lines[8] == "neg|pos"
    fields = json.loads(rule.to_json())
    fields["columns"][0] = "sex"
    Path("odd.json").write_text(json.dumps(fields), encoding="utf-8")
    refused = prudent("apply", "odd.json", "gap.csv")
    assert refused.code == 4
    assert "the rule reads 'sex' as a score and as words" in refused.err


def test_a_word_that_others_write_for_missing_is_one_where_the_rule_knows_it(
    prudent, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=2000), "land": "NA"})
    frame.loc[::3, "land"] = "DE"  # NA is Namibia
    y = (frame["x"] + 0.5 * random.normal(size=2000) > 0).astype(int)
    inside = make_pipeline(
        ColumnTransformer([("x", "passthrough", ["x"])]), GaussianNB()
    )
    model = library.SelectiveClassifier(
        inside, error_rate=0.1, subgroups=["land"], random_state=0
    ).fit(frame, y)
    assert model.subgroups_ == ["land=DE", "land=NA"]
    Path("rule.json").write_text(model.rule_.to_json(), encoding="utf-8")
    new = frame.iloc[:300].copy()
    new.loc[5:9, "land"] = None
    scores_of(model, new, model.rule_).to_csv("new.csv", index=False)
    found = csv.DictReader(io.StringIO(prudent("apply", "rule.json", "new.csv").out))
    answered = np.array([row["answered"] == "True" for row in found])
    assert np.array_equal(answered, model.answers(new))
    assert answered[new["land"] == "NA"].any()
    assert not answered[5:10].any()


def test_the_card_lists_the_subgroups(prudent, tables):
    assert fit(prudent, "error <= 20%", "--by", "site,age:60").code == 0
    assert prudent("card", "m", "-o", "card.json").code == 0
    rows = Path("card.json").read_text(encoding="utf-8")
    for name in ("site=1", "site=2", "age<60", "age>=60"):
        assert name in rows


def test_certify_says_in_which_subgroup_a_promise_is_broken(prudent, tables):
    assert fit(prudent, "coverage >= 80%", "--by", "site,age:60").code == 0
    other = {"pos": "neg", "neg": "pos"}
    wrong = tables["y"].map(other).where(tables["site"] == 2, tables["y"])
    tables.assign(y=wrong).to_csv("turned.csv", index=False)
    printed = prudent("certify", "turned.csv", "-m", "m", "--target", "y").out
    verdicts = {
        line.split("where ")[1].split(" ")[0]: line.rsplit(": ", 1)[1]
        for line in printed.splitlines()
        if line.startswith("Promised: ")
    }
    assert verdicts["site=2"] == "broken"
    assert verdicts["site=1"] == "kept"
    assert "verdicts share the level 0.05 (Holm)" in printed


def test_a_subgroup_that_is_never_answered_is_named(prudent, table_file, tmp_path):
    """In every sex must not become in one sex unsaid."""
    random = np.random.default_rng(0)
    n = 1500
    x, sex = random.normal(size=n), random.integers(0, 2, n)
    y = np.where(sex == 1, x > 0, random.integers(0, 2, n)).astype(int)
    lines = [
        f"{a:.4f},{'MF'[s]},{label},{int(a > 0)},{abs(a):.4f}"
        for a, s, label in zip(x, sex, y, strict=True)
    ]
    table = table_file("\n".join(["x,sex,y,said,sure", *lines]), "t.csv")
    wish = ("--promise", "error <= 10% in every sex")
    drop = ("--drop", "said,sure")
    model = tmp_path / "m.prudent"
    fitted = prudent(
        *("fit", table, "--target", "y", "--method", "boosting", *wish, *drop),
        *("-o", model),
    )
    assert fitted.code == 0, fitted.err
    assert "no threshold certifies the error rate, never answered: sex=M" in fitted.err
    assert prudent("card", model, "-o", tmp_path / "card.md").code == 0
    card = (tmp_path / "card.md").read_text()
    assert "The rows of 1 subgroup are never answered" in card
    assert "| sex=M | never answered: no threshold proves the limit |" in card
    compared = prudent(
        *("compare", table, "--target", "y", "--methods", "minimax"),
        *("--baselines", "boosting", "--no-best", *wish, *drop),
    )
    assert "no row with sex=M is answered" in " ".join(compared.out.split())
    made = prudent(
        *("promise", table, "--truth", "y", "--predicted", "said", "--score", "sure"),
        *(*wish, "--unseen", "they are new", "-o", tmp_path / "rule.json"),
    )
    assert made.code == 0, made.err
    assert "never answered, for nothing is proved of them: sex=M" in made.err
