"""The row `best` of a comparison: chosen inside each training part."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import prudent
from prudent import BestClassifier
from prudent.comparison.protocol import Protocol
from prudent.core.selection import holm
from prudent.evaluation.evaluate import make_folds
from prudent.evaluation.methods import candidates
from prudent.evaluation.words import recommended
from prudent.exceptions import InfeasibleError, PrudentWarning

X, Y = load_breast_cancer(return_X_y=True)
NAMES = ("majority", "logistic", "lda", "qda")


def rows_of(comparison):
    return {row.method: row for row in comparison.rows}


@pytest.fixture(scope="module")
def compared():
    return prudent.compare(X, Y, promise="error <= 5%", methods=(), baselines=NAMES)


def test_it_promises_at_the_full_level_and_the_others_share_theirs(compared):
    rows = rows_of(compared)
    assert set(rows) == {*NAMES, "best"}
    (best,), (lda,) = rows["best"].asked.items, rows["lda"].asked.items
    assert best.guarantee.confidence == pytest.approx(0.95)
    assert lda.guarantee.confidence == pytest.approx(1 - 0.05 / 4)


def test_the_other_rows_are_those_of_a_comparison_without_it(compared):
    alone = prudent.compare(
        X, Y, promise="error <= 5%", methods=(), baselines=NAMES, best=False
    )
    for name, row in rows_of(alone).items():
        assert rows_of(compared)[name].asked == row.asked


def test_promises_over_draws_that_the_choice_looked_at_are_not_stated():
    """A candidate holds its rows out of those by which it was chosen."""
    random = np.random.default_rng(0)
    y = np.arange(240) % 2
    plain = prudent.compare(
        *(random.normal(size=(240, 3)) + 3 * y[:, None], y),
        methods=["rejection"],
        baselines=(),
        best=True,
    )
    own = {name: row.own for name, row in rows_of(plain).items()}
    assert [item.guarantee.quantity for item in own["rejection"]] == [
        "false alarm rate",
        "false alarm rate",
    ]
    assert own["best"] == ()


def test_it_is_the_choice_of_each_training_part(compared):
    (note,) = rows_of(compared)["best"].notes
    chosen = []
    for fold in make_folds(Y, 5, 1, random_state=0):
        best = BestClassifier(
            list(NAMES[1:]), promise="error <= 5%", cv=3, random_state=0
        ).fit(X[fold.train], Y[fold.train])
        chosen.append(best.best_name_)
    for name in set(chosen):
        n = chosen.count(name)
        assert f"{name} in {n}" in note
    assert "majority" not in note


def test_the_table_ends_with_what_needs_no_fresh_rows(compared):
    text = " ".join(str(compared).split())
    assert "best chooses inside its training part: its promise needs no fresh" in text
    assert "To use it: prudent fit ... --method best." in text
    assert "Another row picked from this table: add --among 5." in text


def test_a_coverage_on_average_of_another_row_is_certified_by_fresh_rows():
    found = prudent.compare(X, Y, methods=(), baselines=NAMES[1:], cv=2)
    text = " ".join(str(found).split())
    assert "best chooses inside its training part: its promise needs no fresh" in text
    assert (
        "Another row picked from this table is certified by fresh rows (prudent "
        "certify)." in text
    )


def test_it_is_what_is_recommended_and_what_the_report_begins_with(compared):
    rows = rows_of(compared)
    (note,) = rows["best"].notes
    first, *_ = compared.verdict()
    share = f"{100 * rows['best'].asked.decided:.0f} %"
    assert first.startswith(f"Use best: it answers {share} of the rows")
    assert f"best: {note}." in compared.verdict()
    page = compared._repr_html_()
    assert page.index("Use best: it answers") < page.index("<table")


def test_one_that_breaks_its_promise_is_not_recommended(compared):
    rows = tuple(
        replace(row, asked=replace(row.asked, kept="broken")) if row.chooses else row
        for row in compared.rows
    )
    assert recommended(replace(compared, rows=rows)).method == "qda"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"best": False}, False),
        ({"promise": "none"}, False),
        ({"promise": "none", "best": True}, True),
        ({"baselines": ("majority", "lda")}, False),  # nothing to choose from
        ({"baselines": ("majority", "lda"), "best": True}, True),
    ],
)
def test_it_is_there_where_there_is_something_to_choose_for_a_promise(
    options, expected
):
    settings = {"methods": (), "baselines": NAMES[2:], "cv": 2}
    found = prudent.compare(X[::2], Y[::2], **settings | options)
    assert ("best" in rows_of(found)) == expected


def test_without_a_promise_it_is_chosen_by_its_errors_and_says_who():
    found = prudent.compare(
        *(X, Y), methods=(), baselines=NAMES[1:], promise="none", best=True, cv=2
    )
    assert " in " in rows_of(found)["best"].notes[0]


@pytest.mark.parametrize("n_rows", [2000, 2001])
def test_beyond_2000_rows_it_has_to_be_asked_for(n_rows):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    rows = rng.normal(size=(n_rows, 2)) + y[:, None]
    found = prudent.compare(
        *(rows, y), methods={"a": GaussianNB(), "b": GaussianNB()}, baselines=(), cv=2
    )
    assert ("best" in rows_of(found)) == (n_rows == 2000)


def test_a_method_of_ones_own_called_best_is_one_method_more():
    mine = {"best": GaussianNB(), "other": GaussianNB()}
    options = {"methods": mine, "baselines": (), "promise": "error <= 10%"}
    with pytest.raises(ValueError, match="give yours another name"):
        prudent.compare(X, Y, **options)
    rows = rows_of(prudent.compare(X, Y, **options, best=False))
    for row in rows.values():
        (item,) = row.asked.items
        assert item.guarantee.confidence == pytest.approx(0.975)
        assert not row.chooses


def test_where_the_shared_level_lacks_rows_it_still_runs_and_the_others_need_them():
    methods = {"methods": (), "baselines": NAMES[1:]}
    promise = {"promise": "missed 0 <= 4%"}
    with pytest.raises(InfeasibleError, match="or add `best`, which does not"):
        prudent.compare(X, Y, **methods, **promise, best=False)
    rows = rows_of(prudent.compare(X, Y, **methods, **promise))
    (item,) = rows.pop("best").asked.items
    assert item.guarantee.confidence == pytest.approx(0.95)
    for row in rows.values():
        assert row.asked.items == ()
        assert row.asked.needs.rows > 212  # that the table has of this class


def test_rows_that_it_lacks_are_counted_at_the_full_level():
    rows = rows_of(
        prudent.compare(
            X,
            Y,
            methods=(),
            baselines=NAMES[1:],
            promise="coverage >= 95% in every class",
            confidence=0.95,
        )
    )
    needs = {name: row.asked.needs.rows for name, row in rows.items()}
    assert needs.pop("best") < min(needs.values())


def test_all_verdicts_of_the_table_are_one_family_of_p_values(compared):
    rows = compared.to_dict()["rows"]
    items = [item for row in rows for item in (*row["asked"]["items"], *row["own"])]
    broken = holm([item["p_broken"] for item in items]) <= 0.05
    kept = holm([item["p_kept"] for item in items]) <= 0.05
    assert [item["kept"] for item in items] == [
        "broken" if b else "kept" if k else "consistent"
        for b, k in zip(broken, kept, strict=True)
    ]
    for item in items:
        allowed = item["bound"] if item["sense"] == "<=" else 1 - item["bound"]
        n, v = item["n"], item["violations"]
        assert item["p_broken"] == pytest.approx(binom.sf(v - 1, n, allowed))
        assert item["p_kept"] == pytest.approx(binom.cdf(v, n, allowed))


def test_candidates_that_a_time_limit_leaves_out_are_named():
    method = Protocol(time_limit=1e-5, best=True).with_best(candidates(NAMES[1:]), 500)
    with pytest.warns(PrudentWarning, match="lda: not judged within 1e-06 s; qda: "):
        method[-1].estimator(0).fit(X, Y)
