"""What people read: cells, sentences, and a table that fits."""

from dataclasses import replace

import numpy as np
import pytest

from prudent import Guarantee
from prudent.core.assumptions import Assumption
from prudent.core.checks import PromiseCheck
from prudent.evaluation.columns import cells, columns, figures, printed, table_lines
from prudent.evaluation.methods import METHODS
from prudent.evaluation.records import (
    ClassRate,
    Data,
    Failure,
    Findings,
    Frontier,
    MethodRow,
    Needs,
    RequestedPromise,
    Sets,
    Settings,
)
from prudent.evaluation.rows import in_order
from prudent.evaluation.words import (
    asked_for,
    failures,
    promise_text,
    recommended,
    seconds,
    to_be_had,
    verdict,
)


def checked(
    bound,
    *,
    violations=3,
    quantity="class error rate",
    sense="<=",
    scope="a",
    **other,
):
    guarantee = Guarantee(
        quantity=quantity, bound=bound, sense=sense, scope=scope, **other
    )
    return PromiseCheck(
        guarantee=guarantee,
        violations=violations,
        n=100,
        p_broken=0.5,
        p_kept=0.5,
        check=guarantee.check(violations, 100),
    )


def findings(*rows, promise="coverage >= 90% in every class"):
    settings = Settings(
        methods=tuple(row.method for row in rows),
        baselines=(),
        promise=promise,
        n_folds=5,
        n_repeats=1,
        random_state=0,
        n_jobs=1,
        time_limit=None,
        sample=None,
        command="prudent compare t",
    )
    data = Data(
        name="t",
        sha256="0",
        n_rows=100,
        features=("x",),
        classes=("a", "b"),
        class_counts=(50, 50),
    )
    return Findings(data=data, settings=settings, rows=rows, folds=(), versions={})


def holding(mean_size, n_classes=2):
    return Sets(
        mean_size=mean_size,
        undecided=0.0,
        coverage=0.9,
        size_counts=(0,) * (n_classes + 1),
        class_mean_size=(mean_size,) * n_classes,
        class_coverage=(0.9,) * n_classes,
    )


def needing(rows, label):
    return Needs(rows=rows, label=label, held_out=10, to_fit=rows // 2)


def covering(name, decided, kept="consistent", needs=None, *, is_inside=True, **other):
    items = tuple(
        checked(
            0.9,
            quantity="coverage",
            sense=">=",
            scope=scope,
            average_over="training samples",
        )
        for scope in "ab"
    )
    asked = RequestedPromise(
        kept=kept,
        useful=decided > 0,
        is_inside=is_inside,
        needs=needs,
        items=items if decided else (),
        decided=decided,
        wrong_when_decided=0.016 if decided else None,
        worst_covered=ClassRate(label="malignant", rate=0.912),
        sets=holding(2 - decided),
    )
    options = {"error": 0.032, "worst_class": ClassRate(label="a", rate=0.071)} | other
    return MethodRow(method=name, asked=asked, **options)


def by_column(row, found):
    return dict(zip(columns(found), cells(row, found), strict=True))


def test_row_under_a_promise_of_coverage():
    row = covering("calibrated", 0.97, fit_seconds=0.2)
    assert by_column(row, findings(row)) == {
        "method": "calibrated",
        "promise|kept?": "consistent",
        "decided": "97 %",
        "wrong when|decided": "1.6 %",
        "set|size": "1.03",
        "covered|(worst class)": "91.2 % malignant",
        "error": "0.032",
        "worst class|error": "0.071 a",
        "fit": "200 ms",
    }


def test_coverage_of_all_rows_is_that_of_all_rows():
    """Also of those in folds that had too few rows for the promise, or if all had."""
    promised = covering("lda", 0.9)
    counted = checked(
        0.8,
        quantity="coverage",
        sense=">=",
        scope=None,
        average_over="training samples",
    )
    some = replace(promised, asked=replace(promised.asked, items=(counted,)))
    none = replace(promised, asked=replace(promised.asked, items=()))
    found = findings(some, none)
    assert by_column(some, found)["covered"] == "90.0 %"
    assert by_column(none, found)["covered"] == "90.0 %"


def test_rows_that_are_missing_are_counted_in_the_row():
    row = covering("lda", 0.0, needs=needing(rows=38, label="x"))
    assert by_column(row, findings(row))["promise|kept?"] == "needs 38 rows\nof 'x'"
    row = covering("lda", 0.0, needs=needing(rows=442, label=None))
    assert by_column(row, findings(row))["promise|kept?"] == "needs 442 rows"


def test_rows_that_are_missing_do_not_hide_a_broken_promise():
    row = covering("lda", 0.5, kept="broken", needs=needing(rows=38, label="x"))
    assert by_column(row, findings(row))["promise|kept?"] == "broken"
    assert "Too few rows to rule out 'x'" in " ".join(verdict(findings(row)))


def test_row_without_a_promise_asked_for_shows_its_own():
    row = MethodRow(
        method="minimax",
        error=0.0266,
        error_interval=(0.01, 0.07),
        own=(checked(0.08), checked(0.142)),
        own_kept="kept",
        decided=1.0,
        fit_seconds=0.0041,
        predict_seconds=3e-7,
        notes=("sampled",),
        warnings=("x", "y"),
        no_difference_from="b",
    )
    shown = by_column(row, findings(row, promise="none"))
    assert shown["error|(95 % interval)"] == "0.027 (0.010–0.070)"
    assert shown["own promise"] == "error ≤ 0.142"
    assert shown["promise|kept?"] == "kept"
    assert shown["fit"] == "4.1 ms"
    assert shown["predict"] == "0.30 µs/row"
    assert shown["notes"] == "no difference from b shown; sampled; 2 warnings"


def test_plug_in_promise_is_labelled():
    promise = checked(0.2, assumptions=(Assumption.MOMENTS_PLUG_IN,))
    assert promise_text(promise) == "error ≤ 0.200 (plug-in)"


def test_coverage_is_promised_from_below():
    promise = checked(0.9, quantity="coverage", sense=">=")
    assert promise_text(promise) == "coverage ≥ 0.900"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.0 s"),
        (61.0, "61 s"),
        (0.0123, "12 ms"),
        (4e-8, "0.04 µs"),
        (0, "0.00 µs"),
    ],
)
def test_times_are_shown_in_the_largest_fitting_unit(value, text):
    assert seconds(value) == text


def test_first_sentence_names_all_that_are_not_told_apart():
    found = findings(
        covering("calibrated", 0.97),
        covering("lda", 0.95, no_difference_from="calibrated"),
        covering("qda", 0.3),
    )
    first, *_ = verdict(found)
    assert first == (
        "Use calibrated: it decides 97 % of the rows, 1.6 % of them wrongly. No paired "
        "test tells lda from it."
    )


def test_only_a_test_shows_a_method_to_be_of_more_use():
    lda, best = covering("lda", 0.95), covering("best", 0.9, chooses=True)
    tested = replace(best, less_useful_than="lda")
    more = "A paired test shows lda to be of more use here: --method lda instead"
    assert more in verdict(findings(lda, tested))[0]
    # The others were held against the first row, which too few folds let be used.
    seldom = covering("seldom", 0.97)
    seldom = replace(seldom, asked=replace(seldom.asked, folds_decided=1, n_folds=5))
    first, *_ = verdict(findings(seldom, lda, best))
    assert first.startswith("Use best:")
    assert "paired test" not in first


def test_of_methods_not_told_apart_one_inside_its_limit_is_recommended():
    found = findings(
        covering("calibrated", 0.97, is_inside=False),
        covering("lda", 0.95, no_difference_from="calibrated"),
        covering("qda", 0.9),
    )
    assert recommended(found).method == "lda"
    assert verdict(found)[0].endswith("No paired test tells calibrated from it.")
    # Others were tested against the first, not against the one that is recommended.
    third = covering("qda", 0.94, no_difference_from="calibrated")
    three = findings(*found.rows[:2], third)
    assert verdict(three)[0] == verdict(found)[0]
    alone = findings(
        covering("calibrated", 0.97, is_inside=False), covering("qda", 0.9)
    )
    assert recommended(alone).method == "calibrated"
    assert "outside the limit, by no more than chance" in verdict(alone)[0]


@pytest.mark.parametrize(("size", "told_apart"), [(5.3, True), (2.9, False)])
def test_sets_none_of_which_decides_are_equal_only_if_as_large(size, told_apart):
    rows = []
    for name, mean_size in (("conformal", 2.9), ("boosting", size)):
        row = covering(name, 0.0)
        asked = replace(row.asked, useful=True, sets=holding(mean_size, 6))
        rows.append(replace(row, asked=asked))
    nothing = np.zeros(9, dtype=int)
    first, second = in_order(rows, {"conformal": nothing, "boosting": nothing})
    expected = None if told_apart else "conformal"
    assert (first.method, second.no_difference_from) == ("conformal", expected)


def test_a_method_that_had_rows_for_all_classes_goes_before_one_that_chooses():
    lacking = needing(rows=67, label="x")
    best = covering("best", 0.24, needs=lacking, chooses=True)
    conformal = covering("conformal", 0.7)
    assert recommended(findings(best, conformal)).method == "conformal"
    assert recommended(findings(best)).method == "best"
    asked = replace(best.asked, needs=None)
    chosen = replace(best, asked=asked, less_useful_than="conformal")
    both = findings(conformal, chosen)
    assert recommended(both).method == "best"
    assert "--method conformal instead, as another row picked" in verdict(both)[0]


def test_a_broken_promise_is_not_recommended():
    found = findings(covering("qda", 0.99, "broken"), covering("lda", 0.5))
    assert recommended(found).method == "lda"
    assert verdict(found)[0].startswith("Use lda: it decides 50 % of the rows")


def test_sets_of_many_classes_are_recommended_by_their_size():
    row = covering("conformal", 0.0)
    asked = replace(
        row.asked, useful=True, items=(checked(0.9),), sets=holding(3.21, 28)
    )
    row = replace(row, asked=asked)
    assert verdict(findings(row))[0] == (
        "Use conformal: its sets hold 3.21 of 28 classes on average (0 % of the rows "
        "have one answer)."
    )
    assert by_column(row, findings(row))["set|size"] == "3.21"


@pytest.mark.parametrize(
    ("size", "classes", "is_short"),
    [(5.13, 10, False), (2.91, 6, False), (1.9, 6, True), (2.5, 10, True)],
)
def test_half_of_the_classes_is_no_short_list(size, classes, is_short):
    row = covering("conformal", 0.01)
    row = replace(row, asked=replace(row.asked, sets=holding(size, classes)))
    assert (recommended(findings(row)) is not None) == is_short


def curve(kind, decided, asked=0.05, about_rows=True, in_folds=None):
    levels = (0.05, 0.1, 0.2, 0.3)
    word = "error" if kind == "error" else "missed a"
    return Frontier(
        kind=kind,
        levels=levels,
        promises=tuple(f"{word} <= {100 * q:g}%" for q in levels),
        asked=asked,
        about_rows=about_rows,
        decided=decided,
        in_folds=in_folds or dict.fromkeys(decided, (1.0,) * 4),
        wrong=dict(decided),
        by_class={name: (shares, shares) for name, shares in decided.items()},
    )


def answering(name, decided, kept="consistent", **other):
    item = checked(0.05, quantity="selective error rate", scope=None)
    asked = RequestedPromise(
        kept=kept,
        useful=decided > 0,
        is_inside=True,
        items=(item,) if decided else (),
        decided=decided,
        wrong_when_decided=0.04 if decided else None,
        **other,
    )
    return MethodRow(method=name, asked=asked, error=0.2)


def test_a_promise_that_can_be_had_is_named_where_the_one_asked_for_is_not_reached():
    decided = {"lda": (0.0, 0.1, 0.3, 0.5), "boosting": (0.0, 0.12, 0.32, 0.4)}
    found = findings(
        *(answering(name, 0.0, "nothing answered") for name in decided),
        promise="error <= 5%",
    )
    found = replace(found, frontier=curve("error", decided))
    assert verdict(found)[0] == (
        "On this table no method can both keep this promise and decide. Reachable on "
        "this table: error <= 20% (boosting answers 32 %)."
    )


@pytest.mark.parametrize(
    ("in_folds", "said"),
    [
        ((0.0, 0.6, 1.0, 1.0), "error <= 20% (lda answers 60 %)."),
        ((0.0, 0.6, 0.8, 1.0), "error <= 20% (lda answers 60 %, and none in some "),
        ((0.0, 0.4, 0.6, 0.6), "error <= 20% (lda answers 60 %, and none in some "),
        ((0.0, 0.2, 0.4, 1.0), "error <= 30% (lda answers 90 %)."),
    ],
)
def test_a_promise_that_answers_in_few_folds_is_not_said_to_be_reachable(
    in_folds, said
):
    """The command that would be named next would then make no model."""
    decided = {"lda": (0.0, 0.4, 0.6, 0.9)}
    found = findings(answering("lda", 0.0, "nothing answered"), promise="error <= 5%")
    line = curve("error", decided, in_folds={"lda": in_folds})
    first, *_ = verdict(replace(found, frontier=line))
    assert f"Reachable on this table: {said}" in first


def test_what_breaks_the_promise_is_not_said_to_answer_nothing():
    rows = (
        answering("best", 0.13, "broken"),
        answering("lda", 0.0, "nothing answered"),
    )
    assert verdict(findings(*rows, promise="error <= 10%"))[0] == (
        "On this table no method that keeps this promise answers a row; best breaks it."
    )


def sets_curve(decided, wrong, asked=0.9):
    line = curve("coverage", decided, asked=asked, about_rows=False)
    return replace(
        line,
        levels=(0.7, 0.8, 0.85, 0.9),
        promises=tuple(f"coverage >= {q}%" for q in (70, 80, 85, 90)),
        wrong=wrong,
    )


def deciding(name, decided, wrong):
    """Under a promise about the sets of two classes."""
    row = answering(name, decided)
    return replace(row, asked=replace(row.asked, wrong_when_decided=wrong))


def test_answers_that_are_mostly_wrong_are_not_recommended():
    line = sets_curve({"lda": (0.5, 0.4, 0.3, 0.2)}, {"lda": (0.1, 0.3, 0.6, 0.7)})
    found = replace(findings(deciding("lda", 0.2, 0.7)), frontier=line)
    assert recommended(found) is None
    assert verdict(found)[0] == (
        "On this table, with this promise, no method decides more rows rightly than "
        "wrongly. Reachable on this table: coverage >= 80% (lda decides 40 %)."
    )


def test_a_method_that_decides_few_rows_rightly_is_not_denied():
    found = findings(deciding("lda", 0.2, 0.7), deciding("qda", 0.02, 0.1))
    assert recommended(found) is None
    start = "On this table, with this promise, no method answers more than 20 % of"
    assert verdict(found)[0].startswith(start)


def test_what_decides_most_but_wrongly_is_not_named_before_what_decides_rightly():
    line = sets_curve(
        {"lda": (0.8, 0.7, 0.6, 0.0), "qda": (0.5, 0.4, 0.3, 0.0)},
        {"lda": (0.5, 0.6, 0.7, None), "qda": (0.1, 0.1, 0.1, None)},
    )
    found = findings(answering("lda", 0.0, "nothing answered"))
    first, *_ = verdict(replace(found, frontier=line))
    assert "coverage >= 85% (qda decides 30 %)." in first


def test_wrong_answers_are_held_against_the_most_frequent_class():
    """Of two classes of 50 rows it errs in half of them."""
    line = sets_curve({"lda": (0.2,) * 4}, {"lda": (0.4,) * 4})
    found = replace(findings(deciding("lda", 0.2, 0.4)), frontier=line)
    assert "That is hardly better than always answering 'b'" in verdict(found)[0]
    data = replace(found.data, class_counts=(95, 5))
    first, *_ = verdict(replace(found, data=data))
    assert "That is worse than always answering 'a', which errs in 5.0 %" in first


def test_methods_that_decide_nothing_in_some_folds_are_named():
    line = curve(
        "error",
        {"lda": (0.3,) * 4, "qda": (0.2,) * 4, "majority": (0.0,) * 4},
        in_folds={"lda": (0.8,) * 4, "qda": (1.0,) * 4, "majority": (0.0,) * 4},
    )
    found = replace(
        findings(answering("lda", 0.3), promise="error <= 5%"), frontier=line
    )
    sentence = (
        "In some folds no row is answered by lda (1 of 5); a new fit may leave all "
        "rows open, too."
    )
    assert sentence in verdict(found)


def test_where_every_class_is_limited_there_are_no_others():
    line = curve("missed", {"lda": (0.0, 0.1, 0.6, 0.9)}, about_rows=False)
    found = findings(
        answering("lda", 0.0, "nothing answered"), promise="missed a <= 5%"
    )
    first, *_ = verdict(replace(found, frontier=line))
    assert "missed a <= 20% (lda: 60 % with one answer)." in first


def test_of_a_class_of_few_rows_no_fit_is_offered_that_may_lose_it():
    line = curve("missed", {"lda": (0.0, 0.1, 0.6, 0.9)}, about_rows=False)
    found = findings(
        answering("lda", 0.0, "nothing answered"), promise="missed a <= 5%"
    )
    data = replace(found.data, class_counts=(91, 9))
    first, *others = verdict(replace(found, frontier=line, data=data))
    assert "Reachable" not in first
    # Always answering 'a' covers 91 % of the rows: 90 % would say nothing.
    assert "Sets of labels can be had: ask for 'coverage >= 95%'." in others


def test_few_answers_are_said_as_they_are_with_what_answers_more():
    found = findings(answering("lda", 0.12), promise="error <= 5%")
    found = replace(found, frontier=curve("error", {"lda": (0.12, 0.3, 0.5, 0.6)}))
    assert verdict(found)[0] == (
        "Use lda: it answers 12 % of the rows, and 4.0 % of the answers are wrong "
        "(limit 5 %). More is answered under another promise: error <= 10% (lda "
        "answers 30 %)."
    )


def test_few_answers_with_more_errors_than_asked_are_not_recommended():
    row = answering("lda", 0.08)
    row = replace(row, asked=replace(row.asked, is_inside=False))
    found = findings(row, promise="error <= 5%")
    found = replace(found, frontier=curve("error", {"lda": (0.08, 0.1, 0.35, 0.5)}))
    assert recommended(found) is None
    assert verdict(found)[0] == (
        "On this table, with this promise, no method answers more than 8 % of the "
        "rows. Reachable on this table: error <= 20% (lda answers 35 %)."
    )


@pytest.mark.parametrize(("answered_in", "is_used"), [(5, True), (3, True), (2, False)])
def test_what_answers_in_few_folds_is_not_recommended(answered_in, is_used):
    """Fitted once more it would rather answer nothing."""
    row = answering("lda", 0.3, folds_decided=answered_in, n_folds=5)
    found = findings(row, promise="error <= 5%")
    assert (recommended(found) is not None) == is_used
    if is_used:
        doubt = (
            f"It answered rows in {answered_in} of 5 folds and none in the others: "
            "a fit may answer nothing."
        )
        assert (doubt in verdict(found)[0]) == (answered_in < 5)


def test_short_lists_that_decide_in_no_fold_are_not_doubted_for_it():
    row = covering("lda", 0.0)
    sets = holding(1.4, n_classes=9)
    asked = replace(row.asked, useful=True, sets=sets, folds_decided=0, n_folds=5)
    found = findings(replace(row, asked=asked))
    assert recommended(found) is not None
    assert "0 of 5 folds" not in verdict(found)[0]


def test_where_hardly_anything_can_be_promised_this_is_said():
    found = findings(answering("lda", 0.0, "nothing answered"), promise="error <= 5%")
    found = replace(found, frontier=curve("error", {"lda": (0.0, 0.0, 0.06, 0.15)}))
    assert verdict(found)[0].endswith(
        "The most that any promise of this kind gets here: error <= 30% (lda answers "
        "15 %; more rows or other columns may help)."
    )


def test_the_confidence_stands_above_a_table_without_answers():
    found = findings(answering("lda", 0.0, "nothing answered"), promise="error <= 5%")
    found = replace(found, frontier=curve("error", {"lda": (0.0,) * 4}))
    assert asked_for(found) == (
        "error ≤ 5%, with confidence 0.95 for all methods together"
    )
    best = replace(found.rows[0], method="best", chooses=True)
    assert asked_for(replace(found, rows=(*found.rows, best))) == (
        "error ≤ 5%, with confidence 0.95 for best, and for all others together"
    )


def test_verdicts_stand_on_one_line_where_there_is_room():
    found = findings(answering("lda", 0.0, "nothing answered"), promise="error <= 5%")
    assert any("nothing answered" in line for line in table_lines(found, 100))
    assert not any("nothing answered" in line for line in table_lines(found, 60))


def test_a_promise_that_the_most_frequent_class_keeps_leads_to_a_stricter_one():
    word = "no better than always the most frequent class"
    found = findings(answering("lda", 1.0, word), promise="error <= 30%")
    data = replace(found.data, class_counts=(80, 20))
    line = curve("error", {"lda": (0.1, 0.6, 0.9, 1.0)}, asked=0.3)
    found = replace(found, data=data, frontier=line)
    assert verdict(found)[0] == (
        "This promise says nothing on this table: always answering 'a' errs in 20.0 % "
        "of the rows. Reachable on this table: error <= 10% (lda answers 60 %)."
    )
    lines = table_lines(found, 80)
    at = next(i for i, line in enumerate(lines) if "no better than always" in line)
    assert lines[at + 1].strip() == "the most frequent class"


def test_what_limits_cost_is_one_line():
    row = answering("lda", 1.0, others_error=0.97)
    line = curve("missed", {"lda": (0.03, 0.26, 0.71, 0.8)}, about_rows=False)
    found = replace(findings(row, promise="missed a <= 5%"), frontier=line)
    assert (
        "What limits cost (lda): missed a <= 5%: 3 % of the others right, 10 %: 26 %, "
        "20 %: 71 %, 30 %: 80 %."
    ) in verdict(found)


@pytest.mark.parametrize(("decided", "said"), [(0.02, "2"), (0.049, "5")])
def test_methods_that_decide_hardly_anything_are_not_recommended(decided, said):
    first, *_ = verdict(findings(covering("lda", decided), covering("qda", 0.01)))
    assert first == (
        f"On this table, with this promise, no method decides more than {said} % of "
        "the rows."
    )


def doubtful(wrong, counts=(50, 50), decided=0.3):
    """Findings about a coverage whose single answers are wrong so often."""
    row = covering("conformal", decided)
    row = replace(row, asked=replace(row.asked, wrong_when_decided=wrong))
    found = findings(row)
    line = Frontier(
        kind="coverage",
        levels=(0.8, 0.9),
        promises=("coverage >= 80%", "coverage >= 90%"),
        asked=0.9,
        about_rows=False,
        decided={"conformal": (0.5, decided)},
        in_folds={"conformal": (1.0, 1.0)},
        wrong={"conformal": (wrong, wrong)},
        by_class={"conformal": ((0.5, decided),) * 2},
    )
    return replace(found, frontier=line, data=replace(found.data, class_counts=counts))


def test_answers_of_which_many_are_wrong_are_recommended_with_care():
    assert verdict(doubtful(0.27, (55, 45)))[0] == (
        "Use conformal with care: it decides 30 % of the rows, 27.0 % of them wrongly. "
        "The promise is about sets, of which many hold several labels; for one about "
        "single answers: --promise 'error <= 10%'."
    )


def test_of_few_rows_no_promise_is_named_that_they_cannot_carry():
    """29 rows without an error have to be held out, of a fit of 94."""
    found = doubtful(0.27, (55, 45))
    few = replace(found, data=replace(found.data, n_rows=90))
    assert verdict(few)[0].endswith("of which many hold several labels.")


def test_answers_as_bad_as_the_most_frequent_class_are_not_said_to_be_worse():
    first, *_ = verdict(doubtful(0.2504, (75, 25)))
    assert "That is no better than always answering 'a'" in first


def test_answers_hardly_better_than_the_most_frequent_class_are_said_to_be_so():
    first, *_ = verdict(doubtful(0.19, (75, 25)))
    assert first.endswith(
        "That is hardly better than always answering 'a', which errs in 25.0 % of all "
        "rows."
    )
    assert "with care" in first


@pytest.mark.parametrize("wrong", [0.02, 0.15, 0.2])
def test_answers_about_as_right_as_promised_need_no_care(wrong):
    first, *_ = verdict(doubtful(wrong))
    assert first.startswith("Use conformal: ")
    assert "hardly" not in first


def test_few_wrong_answers_beside_a_rare_class_need_no_care():
    assert verdict(doubtful(0.019, (977, 23)))[0].startswith("Use conformal: ")


def test_no_reachable_promise_is_explained_by_the_errors_without_one():
    found = findings(answering("lda", 0.0, "nothing answered"), promise="error <= 20%")
    line = curve("error", {"lda": (0.0, 0.0, 0.0, 0.0)}, asked=0.2)
    data = replace(found.data, class_counts=(75, 25))
    found = replace(found, frontier=line, data=data)
    assert verdict(found)[0] == (
        "On this table no method can both keep this promise and decide. Without any "
        "promise the least error is 20.0 %, and always answering 'a' errs in 25.0 %: "
        "more rows or other columns may help."
    )


def test_no_share_at_all_is_not_called_more_than_nothing():
    row = covering("lda", 0.5)
    row = replace(row, asked=replace(row.asked, decided=0.0))
    assert verdict(findings(row))[0].startswith(
        "On this table, with this promise, no method decides a row."
    )


def test_own_promises_that_were_exceeded_by_chance_say_so():
    own = checked(0.04, violations=8, quantity="false alarm rate", scope="a")
    own = replace(own, check=replace(own.check, verdict="consistent"))
    found = findings(covering("rejection", 0.9, own=(own,), own_kept="consistent"))
    assert (
        "Promises these methods make by themselves: rejection – false alarm rate of "
        "'a' at most 0.04: exceeded, by no more than chance allows (0.08)."
    ) in verdict(found)


def test_an_own_coverage_just_below_its_bound_is_shown_apart_from_it():
    own = checked(0.9, quantity="coverage", sense=">=", scope=None)
    own = replace(own, check=replace(own.check, measured=0.8954, verdict="consistent"))
    row = covering("conformal", 0.9, own=(own,), own_kept="consistent")
    row = replace(row, asked=replace(row.asked, items=()))
    told = " ".join(verdict(findings(row)))
    assert "not reached, by no more than chance allows (0.895)" in told


@pytest.mark.parametrize(
    ("counts", "said"), [((9,) * 6, "of 9 rows"), ((9,) * 5 + (76,), "of 9 to 76 rows")]
)
def test_equal_classes_are_counted_once(counts, said):
    found = findings(covering("lda", 0.9))
    data = replace(found.data, classes=tuple("abcdef"), class_counts=counts)
    top, *_ = table_lines(replace(found, data=data))
    assert f"6 classes {said} ·" in top


def test_a_long_label_is_marked_where_it_is_cut():
    found = findings(covering("lda", 0.9))
    data = replace(found.data, classes=("a", "a label of two dozen letters and more"))
    top, *_ = table_lines(replace(found, data=data))
    assert "a 50, a label of two dozen le… 50 ·" in top


def test_own_promises_are_said_with_their_room():
    own = checked(
        0.22,
        violations=4,
        scope="malignant",
        assumptions=(Assumption.MOMENTS_PLUG_IN,),
    )
    found = findings(covering("minimax", 0.9, own=(own,), own_kept="kept"))
    assert (
        "Promises these methods make by themselves: minimax – error of 'malignant' at "
        "most 0.22, if means and covariances are as estimated: kept, with room (0.04)."
    ) in verdict(found)


def test_a_bound_that_is_not_reached_is_told_apart_from_what_was_measured():
    own = checked(
        0.91268,
        quantity="coverage",
        sense=">=",
        average_over="training samples",
    )
    own = replace(own, check=replace(own.check, measured=0.91241))
    found = findings(covering("conformal", 0.9, own=(own,), own_kept="consistent"))
    found = replace(found, settings=replace(found.settings, promise="none"))
    found = replace(found, rows=(replace(found.rows[0], asked=None),))
    (said,) = [line for line in verdict(found) if "by themselves" in line]
    assert "at least 0.913 on average over" in said
    assert "not reached, by no more than chance allows (0.912)" in said


def test_of_own_promises_the_broken_one_is_said_and_none_that_allows_all():
    wide = checked(0.4, violations=4, scope="wide")
    narrow = checked(0.05, violations=20, scope="narrow")
    narrow = replace(narrow, check=replace(narrow.check, verdict="broken"))
    found = findings(covering("lda", 0.9, own=(wide, narrow), own_kept="broken"))
    (said,) = [line for line in verdict(found) if "by themselves" in line]
    assert "error of 'narrow' at most 0.05" in said
    assert "'wide'" not in said
    idle = checked(1.0, violations=4, scope="a")
    found = findings(covering("lda", 0.9, own=(idle,), own_kept="consistent"))
    assert not any("by themselves" in line for line in verdict(found))


def test_too_few_rows_for_any_method_says_what_could_help():
    needs = needing(rows=593, label="malignant")
    found = findings(
        *(covering(n, 0.0, "nothing answered", needs) for n in ("lda", "qda"))
    )
    sentences = verdict(found)
    assert (
        sentences[0] == "On this table no method can both keep this promise and decide."
    )
    assert sentences[-1].startswith(
        "Too few rows to rule out 'malignant': that needs 593 rows of 'malignant' (10 "
        "held out); prudent fit, which trains on all of them, needs 296. What could "
    )


def test_a_need_at_a_shared_level_is_not_that_of_the_row_that_chooses():
    """What `prudent fit` needs for a row of the table it needs with --among."""
    lda = covering("lda", 0.0, "nothing answered", needing(rows=64, label=None))
    best = covering("best", 0.0, "nothing answered", chooses=True)
    found = replace(findings(best, lda), frontier=curve("error", {"lda": (0.0,) * 4}))
    (said,) = [line for line in verdict(found) if line.startswith("Too few rows")]
    assert said.startswith(
        "Too few rows for this promise by methods other than best, which has enough "
        "and decides nothing: that needs 64 rows (10 held out); prudent fit, which "
        "trains on all of them, needs 32 with --among 2. What could help: "
    )
    # The own need of the row that chooses has the level to itself.
    best = covering(
        "best", 0.0, "nothing answered", needing(rows=40, label=None), chooses=True
    )
    found = replace(findings(best, lda), frontier=curve("error", {"lda": (0.0,) * 4}))
    (said,) = [line for line in verdict(found) if line.startswith("Too few rows")]
    assert "that needs 40 rows (10 held out); prudent fit, which" in said
    assert "needs 20. What could help" in said


def test_leaving_rare_classes_out_is_no_help_where_a_subgroup_lacks_rows():
    of_class = needing(rows=40, label="a")
    of_part = replace(of_class, subgroup="sex=f", of_table=160)
    for needs, is_offered in ((of_class, True), (of_part, False)):
        found = findings(covering("lda", 0.0, "nothing answered", needs))
        found = replace(found, frontier=curve("coverage", {"lda": (0.0,) * 4}))
        help_ = verdict(found)[-1]
        assert ("--min-class-rows 40" in help_) == is_offered
    assert "40 rows of 'a with sex=f' (10 held out), in about 160 rows of a" in help_


def test_failures_are_one_line_each_under_the_table():
    failed = MethodRow(method="qda", failure=Failure(kind="error", text="no."))
    found = findings(covering("lda", 0.9), failed)
    assert failures(found) == ("qda: no.",)
    assert "qda: no." in table_lines(found)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_table_fits_the_terminal(width):
    long = "a class whose name is much too long for a table"
    rows = [
        covering(
            name,
            0.9,
            fit_seconds=1.0,
            worst_class=ClassRate(label=long, rate=0.5),
            needs=needing(rows=12345, label=long),
        )
        for name in ("calibrated", "RandomForestClassifier")
    ]
    found = findings(*rows)
    lines = table_lines(found, width)
    assert max(map(len, lines)) <= width
    missing = [
        name.replace("|", " ")
        for name in columns(found)
        if name.rpartition("|")[2] not in "".join(lines[2:6])
    ]
    said = " ".join(" ".join(lines).split())
    assert ("Left out for want of width" in said) == bool(missing)
    assert all(name in said.partition("Left out")[2] for name in missing)
    assert "wrong when decided" not in missing
    assert any(line.startswith("RandomForestClassifier") for line in lines)


def test_a_method_whose_sets_decide_nothing_says_why():
    def row(method, undecided):
        sets = Sets(
            mean_size=1.0 + undecided,
            undecided=undecided,
            coverage=0.99,
            size_counts=(0, 0, 0),
            class_mean_size=(1.0, 1.0),
            class_coverage=(0.99, 0.99),
        )
        worst = ClassRate(label="a", rate=0.1)
        return MethodRow(
            method=method,
            error=0.1,
            worst_class=worst,
            sets=sets,
            why_undecided=METHODS[method].why_undecided,
        )

    found = findings(row("optimistic", 1.0), row("imprecise", 0.4), promise="none")
    text = " ".join(verdict(found))
    assert "optimistic leaves 100 % of the rows undecided" in text
    assert "optimistic decides nothing: its balls of moments overlap" in text
    assert "--param optimistic.radius_scale=0.03" in text
    assert "imprecise decides nothing" not in text


def test_one_list_of_columns_serves_people_and_programs():
    rows = (covering("lda", 0.97, cost=0.5), covering("qda", 0.9, cost=0.25))
    found = findings(*rows)
    numbers = figures(found)
    assert numbers.column("cost").to_pylist() == [0.5, 0.25]
    assert numbers.column("decided").to_pylist() == [0.97, 0.9]
    assert numbers.column("set_size").to_pylist() == [1.03, 1.1]
    assert "cost" in columns(found)
    assert "cost" not in columns(findings(covering("lda", 0.97)))  # none was given
    for title, cell in by_column(rows[0], found).items():
        (column,) = [c for c in printed(found) if c.title == title]
        assert column.text(rows[0]) == cell


def test_a_wide_terminal_has_a_wide_table_and_sentences_that_can_be_read():
    long = "a class whose name is much too long for a table"
    needs = needing(rows=12345, label=long)
    found = findings(*(covering(n * 40, 0.9, needs=needs) for n in "ab"))
    lines = table_lines(found, 200)
    assert max(map(len, lines[:3])) <= 100 < max(map(len, lines)) <= 200


def test_labels_that_are_figures_are_quoted():
    row = covering("lda", 0.9, worst_class=ClassRate(label="1", rate=0.5))
    found = findings(row)
    found = replace(found, data=replace(found.data, classes=("0", "1")))
    assert "0.500 '1'" in by_column(row, found).values()
    assert "'0' 50, '1' 50" in table_lines(found)[0]
    assert "Least error of the worst class: lda 0.500 '1'." in " ".join(verdict(found))


def test_the_table_comes_with_its_key():
    lines = table_lines(findings(covering("lda", 0.9, "consistent")))
    assert (
        "consistent: not contradicted; the rows neither prove nor refute the promise."
    ) in lines
    assert (
        "error, worst class error and fit describe the plain method, answering every "
        "row."
    ) in lines
    assert "consistent" not in "".join(
        table_lines(findings(covering("lda", 0.9, "kept")))
    )


def test_the_key_says_that_the_fit_of_a_row_that_chooses_is_not_of_the_plain_method():
    plain = covering("lda", 0.9, fit_seconds=0.006)
    best = covering("best", 0.9, chooses=True, fit_seconds=0.6)
    also = "fit of best also counts its choice and its promise."
    assert also in table_lines(findings(plain, best))
    assert also not in table_lines(findings(plain))
    assert also not in table_lines(findings(plain, replace(best, fit_seconds=None)))
    assert also not in table_lines(findings(plain, best), width=70)  # fit is left out


def test_of_many_classes_the_smallest_sets_are_named_where_no_row_is_decided():
    lda = covering("lda", 0.02)
    lda = replace(lda, asked=replace(lda.asked, sets=holding(3.2, 5)))
    qda = covering("qda", 0.01)
    qda = replace(qda, asked=replace(qda.asked, sets=holding(2.9, 5)))
    found = findings(lda, qda)
    five = tuple("abcde")
    data = replace(found.data, classes=five, class_counts=(20,) * 5)
    first, *_ = verdict(replace(found, data=data))
    assert first.endswith(
        "no method decides more than 2 % of the rows. Sets alone can be had: those of "
        "qda hold 2.90 of 5 classes on average (--method qda)."
    )
    row, promise = to_be_had(replace(found, data=data), "coverage >= 90%")
    assert (row.method, promise) == ("qda", "coverage >= 90%")


def test_with_groups_the_most_frequent_class_is_that_of_the_rows_tested():
    """One row of each of 50 groups: always 'a' errs in 20 % of them, not in half."""
    found = doubtful(0.3, (50, 50))
    tested = tuple(
        replace(row, confusion=((40.0, 0.0), (4.0, 6.0))) for row in found.rows
    )
    first, *_ = verdict(replace(found, rows=tested))
    assert (
        "That is worse than always answering 'a', which errs in 20.0 % of the rows "
        "tested." in first
    )
    # 50 groups cannot hold out the 29 that an error of 10 % needs.
    assert "error <=" not in first


def test_no_row_decided_of_many_classes_ends_with_rows_and_sets():
    """All but one method need rows, and that one decides nothing, either."""
    five = tuple("abcde")
    needs = needing(rows=67, label="a")
    short = covering("lda", 0.0, "nothing answered", needs)
    idle = covering("conformal", 0.0, "consistent")
    idle = replace(idle, asked=replace(idle.asked, useful=False, sets=holding(4.29, 5)))
    found = findings(idle, short)
    found = replace(
        found, data=replace(found.data, classes=five, class_counts=(20,) * 5)
    )
    first, *others = verdict(found)
    assert "those of conformal hold 4.29 of 5 classes on average" in first
    assert any(
        line.startswith("Too few rows to rule out 'a': that needs 67")
        for line in others
    )


def test_no_error_is_advised_that_every_method_is_far_from():
    found = doubtful(0.27, (55, 45))
    far = tuple(replace(row, error=0.31) for row in found.rows)
    assert "error <= 10%" in verdict(found)[0]
    assert "error <=" not in verdict(replace(found, rows=far))[0]
