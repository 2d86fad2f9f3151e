"""Capacities asked of a comparison: rows, verdicts and queues, as by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import make_classification

import prudent
from prudent.certification.planning import queue_in_words
from prudent.evaluation.columns import table_lines
from prudent.exceptions import InfeasibleError

X, Y = make_classification(
    1500, 6, n_informative=4, weights=[0.6], class_sep=1.2, random_state=0
)


def compared(promise, **settings):
    return prudent.compare(
        X, Y, promise=promise, methods=(), baselines=("lda", "qda"), cv=3, **settings
    )


def items(comparison, name):
    (row,) = [row for row in comparison.rows if row.method == name]
    return row, {item.guarantee.quantity: item for item in row.asked.items}


def text(comparison):
    return " ".join(" ".join(table_lines(comparison)).split())


def test_share_and_error_are_both_held_against_rows():
    comparison = compared("error <= 25% and answered >= 50%")
    row, checks = items(comparison, "qda")
    share, error = checks["answered share"], checks["selective error rate"]
    assert error.guarantee.bound == 0.25
    assert (share.guarantee.bound, share.guarantee.sense) == (0.5, ">=")
    assert share.n == 1500
    # Violations are rows without an answer; what is measured is the answered share.
    assert share.check.measured == pytest.approx(row.asked.decided)
    assert share.violations == pytest.approx(1500 * (1 - row.asked.decided))
    assert share.check.verdict == "kept"
    assert row.asked.kept in ("kept", "consistent")
    assert row.asked.is_inside
    said = text(comparison)
    assert "at least 50 % answered are promised" in said
    assert queue_in_words(share.guarantee) in said


def test_share_that_no_fold_proves_is_a_verdict_of_its_own():
    comparison = compared("error <= 5% and handed over <= 4%")
    for name in ("lda", "qda"):
        row, checks = items(comparison, name)
        assert set(checks) <= {"selective error rate"}
        assert row.asked.kept == ("share not proved" if checks else "nothing answered")
    said = text(comparison)
    assert "no method proves the share that was asked for" in said
    assert "Reachable on this table: error <= " in said
    assert "% and answered >= 96%" in said
    reached = comparison.frontier
    best = max(max(levels) for levels in reached.decided.values())
    assert best >= reached.least == 0.96


def test_the_explorer_says_that_rows_count_only_with_the_share():
    comparison = compared("error <= 5% and handed over <= 4%")
    page = comparison._repr_html_()
    assert "Rows count only where the share asked for is proved, too." in page
    section = page[page.index('id="frontier-title"') :]
    # What answers rows and does not prove the share hands not all of them over.
    heads = section.partition("<tbody>")[0]
    assert '<th scope="col">handed over</th>' not in heads
    assert '<th scope="col">handed over, or share not proved</th>' in heads
    table = section.partition("<tbody>")[2].partition("</tbody>")[0]
    lines = re.findall(r"<tr.*?</tr>", table, re.S)
    assert len(lines) == len(comparison.rows)
    assert any(row.asked.decided for row in comparison.rows)
    for line in lines:
        cells = re.findall(r"<t[hd].*?>(.*?)</t", line, re.S)
        _, answered, _, wrong = [re.sub("<.*?>", "", cell).strip() for cell in cells]
        # Nothing is answered with the share, so nothing is wrong.
        assert (answered[:3], wrong) == ("0.0", "\N{EN DASH}")
    # Folds that do not prove the share may answer rows all the same.
    assert any(row.asked.folds_decided for row in comparison.rows)
    assert "In some folds no row" not in text(comparison)
    usual = compared("error <= 25%")._repr_html_()
    assert "Rows count only where" not in usual


def test_where_no_limit_goes_with_the_share_what_can_be_had_without_it_is_named():
    random = np.random.default_rng(0)
    rows = random.normal(size=(1500, 4))
    # A third of the rows is certain, the labels of the others are coins.
    certain = np.abs(rows[:, 0]) > 1
    truth = np.where(certain, rows[:, 0] > 0, random.random(1500) < 0.5)
    labels = np.where(truth, "pos", "neg")

    def said_of(given, promise):
        settings = {"methods": (), "baselines": ("lda",), "cv": 3}
        return text(prudent.compare(rows, given, promise=promise, **settings))

    no_share = "no method proves the share that was asked for. "
    alone = "Reachable on this table: the same limit without a share (lda answers "
    said = said_of(labels, "error <= 10% and answered >= 98%")
    assert re.search(re.escape(no_share + alone) + r"[\d]+ % of the rows\)", said)
    said = said_of(labels, "missed pos <= 5% and flagged <= 5%")
    assert re.search(
        re.escape(no_share + alone) + r"\d+ % of the rows of other classes rightly\)",
        said,
    )
    # Errors below the limit, but too near to it to be proved of nearly all rows.
    rare = np.where(random.random(1500) < 0.09, "ill", "ok")
    said = said_of(rare, "error <= 10% and answered >= 98%")
    assert no_share + "Always answering 'ok' errs in " in said


def test_answered_share_alone_promises_the_error_that_it_costs():
    comparison = compared("answered >= 90%")
    row, checks = items(comparison, "qda")
    assert checks["answered share"].check.verdict == "kept"
    measured = checks["selective error rate"]
    assert 0 < measured.guarantee.bound < 1
    assert row.asked.decided > 0.9
    assert comparison.frontier is None
    assert "handed over <= 10% means at most 116 of 1000 rows" in text(comparison)


def test_flagged_share_counts_rows_called_like_the_class():
    comparison = compared("missed 1 <= 30% and flagged <= 60%")
    row, checks = items(comparison, "qda")
    flagged = checks["flagged share"]
    assert flagged.guarantee.scope == 1
    assert flagged.n == 1500
    frame = comparison.to_frame()
    (at,) = [
        i for i, name in enumerate(frame["method"].to_pylist()) if name == row.method
    ]
    assert frame["flagged_share"][at].as_py() == flagged.check.measured
    said = text(comparison)
    assert "of all rows (limit 60 %)" in said
    # The column of what is missed is not that of what is flagged.
    missed = checks["class error rate"].check.measured
    assert f"{100 * missed:.1f} % '1' {100 * flagged.check.measured:.1f} %" in said


def test_share_that_rows_cannot_prove_is_refused_before_any_fit():
    with pytest.raises(InfeasibleError, match=r"that needs [\d ]+ rows \(\d+ held out"):
        compared("answered >= 99.9%")


@pytest.mark.parametrize(
    ("promise", "held_out", "alone"),
    [
        ("error <= 20% and answered >= 99%", 368, "error <= 20%"),
        ("missed 1 <= 30% and flagged <= 0.9%", 409, "missed 1 <= 30%"),
    ],
)
def test_a_share_counts_rows_beside_what_is_promised_with_it(promise, held_out, alone):
    """0.99^368 = 0.025: half of the level is the share's."""
    small = slice(0, 600)
    with pytest.raises(InfeasibleError) as refused:
        prudent.compare(
            X[small], Y[small], promise=promise, methods=(), baselines=("lda",), cv=3
        )
    assert f"({held_out} held out)" in str(refused.value)
    assert f"ask for {alone!r}" in str(refused.value)


def test_best_is_chosen_by_the_errors_of_the_surest_share():
    model = prudent.BestClassifier(
        estimators=["lda", "qda"], promise="answered >= 90%", random_state=0
    ).fit(X, Y)
    quantities = {promise.quantity for promise in model.guarantees_}
    assert quantities == {"answered share", "selective error rate"}
