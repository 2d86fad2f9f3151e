"""Exact limits of a promise in each subgroup, as a picture and as numbers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

import prudent
from prudent.core.binomial import clopper_pearson, fewest_rows
from prudent.plots import SubgroupDisplay


def people(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": random.normal(size=n),
            "old": random.random(n) < 0.3,
            "rare": random.random(n) < 0.015,
        }
    )
    noise = np.where(frame["old"], 1.5, 0.3)
    return frame, (frame["x"] + noise * random.normal(size=n) > 0).astype(int)


def test_small_subgroups_are_grey_with_the_rows_that_they_need():
    X, y = people(3000, 0)
    new, truth = people(900, 1)
    model = prudent.ConformalClassifier(
        LogisticRegression(), subgroups=["old", "rare"], random_state=0
    ).fit(X, y)
    ax = Figure().subplots()
    display = SubgroupDisplay.from_estimator(model, new, truth, ax=ax, name="mine")
    frame = {line["subgroup"]: line for line in display.frame().to_pylist()}
    assert list(frame) == ["old=False", "old=True", "rare=False", "rare=True"]
    for name, own in (("old=True", new["old"]), ("rare=True", new["rare"])):
        line = frame[name]
        sets = model.predict_set(new)[own]
        missed = int((~sets[np.arange(own.sum()), truth[own]]).sum())
        assert line["n"] == own.sum()
        assert line["measured"] == pytest.approx(1 - missed / own.sum())
        low, high = clopper_pearson(missed, own.sum(), level=0.05 / 4)
        assert (line["lower"], line["upper"]) == pytest.approx((1 - high, 1 - low))
    allowed = 1 - frame["rare=True"]["bound"]
    assert frame["rare=True"]["needed"] == fewest_rows(allowed, 0.95)
    assert frame["rare=True"]["n"] < frame["rare=True"]["needed"]
    notes = [text.get_text() for text in ax.texts]
    assert len(notes) == 1
    assert f"needs {frame['rare=True']['needed']}" in notes[0]
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert ticks == list(frame)
    assert any("mine: " in t.get_text() for t in ax.get_legend().get_texts())


def test_a_plain_promise_is_held_against_each_subgroup():
    X, y = people(4000, 2)
    new, truth = people(4000, 3)
    model = prudent.ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    display = SubgroupDisplay.from_predictions(
        truth,
        model.predict_set(new),
        model.guarantees_[0],
        subgroups=["old"],
        X=new,
        classes=model.classes_,
        ax=Figure().subplots(),
    )
    verdicts = {
        line["subgroup"]: line["verdict"] for line in display.frame().to_pylist()
    }
    assert verdicts["old=True"] == "broken"
    assert verdicts["old=False"] == "kept"
    assert verdicts[None] != "broken"


def test_of_a_comparison_and_in_its_report():
    X, y = people(1200, 4)
    found = prudent.compare(
        X[["x", "old"]],
        y,
        promise="coverage >= 90% in every class and old",
        methods=["lda"],
        baselines=(),
        cv=3,
    )
    display = SubgroupDisplay.from_comparison(found, ax=Figure().subplots())
    assert display.frame().num_rows == 4
    page = found._repr_html_()
    assert "In each subgroup" in page
    assert "1 with old=True" in page
    with pytest.raises(ValueError, match="method 'qda' made no promise"):
        SubgroupDisplay.from_comparison(found, method="qda")
    plain = prudent.compare(X[["x"]], y, methods=["lda"], baselines=(), cv=3)
    assert "In each subgroup" not in plain._repr_html_()
