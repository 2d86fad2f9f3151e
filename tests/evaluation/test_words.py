"""What people read: cells, sentences, and a table that fits."""

from dataclasses import replace

import pytest

from prudent import Guarantee
from prudent.comparison.table import table_lines
from prudent.core.assumptions import Assumption
from prudent.evaluation.records import (
    Asked,
    ClassRate,
    Data,
    Failure,
    Findings,
    MethodRow,
    Needs,
    PromiseCheck,
    Sets,
    Settings,
)
from prudent.evaluation.words import (
    cells,
    columns,
    failures,
    promise_text,
    seconds,
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


def covering(name, decided, kept="consistent", needs=None, **other):
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
    asked = Asked(
        kept=kept,
        needs=needs,
        items=items if decided else (),
        decided=decided,
        wrong_when_decided=0.016 if decided else None,
        worst_covered=ClassRate(label="malignant", rate=0.912),
    )
    options = {"error": 0.032, "worst_class": ClassRate(label="a", rate=0.071)} | other
    return MethodRow(method=name, asked=asked, **options)


def by_column(row, found):
    return dict(zip(columns(found), cells(row, found), strict=True))


def test_row_under_a_promise_of_coverage():
    row = covering("calibrated", 0.97, fit_seconds=0.2)
    assert by_column(row, findings(row)) == {
        "method": "calibrated",
        "decided": "97 %",
        "wrong when|decided": "1.6 %",
        "covered|(worst class)": "91.2 % malignant",
        "promise|kept?": "consistent",
        "error": "0.032",
        "worst class|error": "0.071 a",
        "fit": "200 ms",
    }


def test_rows_that_are_missing_are_counted_in_the_row():
    row = covering("lda", 0.0, needs=Needs(rows=38, label="x"))
    assert by_column(row, findings(row))["promise|kept?"] == "needs 38 rows of 'x'"
    row = covering("lda", 0.0, needs=Needs(rows=442, label=None))
    assert by_column(row, findings(row))["promise|kept?"] == "needs 442 rows"


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
        "On this table, with this promise: calibrated and lda decide most rows (no "
        "difference shown by a paired test)."
    )


@pytest.mark.parametrize(("decided", "said"), [(0.02, "2"), (0.049, "5")])
def test_methods_that_decide_hardly_anything_are_not_recommended(decided, said):
    first, *_ = verdict(findings(covering("lda", decided), covering("qda", 0.01)))
    assert first == (
        f"On this table, with this promise, no method decides more than {said} % of "
        "the rows."
    )


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
        "Made without asking: minimax – error of 'malignant' at most 0.22, if means "
        "and covariances are as estimated: kept, with room (0.04)."
    ) in verdict(found)


def test_too_few_rows_for_any_method_says_what_could_help():
    needs = Needs(rows=593, label="malignant")
    found = findings(*(covering(n, 0.0, "vacuous", needs) for n in ("lda", "qda")))
    sentences = verdict(found)
    assert (
        sentences[0] == "On this table no method can both keep this promise and decide."
    )
    assert sentences[-1].startswith(
        "Too few rows for this promise: 593 rows of 'malignant' are needed."
    )


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
            needs=Needs(rows=12345, label=long),
        )
        for name in ("calibrated", "RandomForestClassifier")
    ]
    lines = table_lines(findings(*rows), width)
    assert max(map(len, lines)) <= width
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
        return MethodRow(method=method, error=0.1, worst_class=worst, sets=sets)

    found = findings(row("optimistic", 1.0), row("imprecise", 0.4), promise="none")
    text = " ".join(verdict(found))
    assert "optimistic leaves 100 % of the rows undecided" in text
    assert "optimistic decides nothing: its balls of moments overlap" in text
    assert "--param optimistic.radius_scale=0.03" in text
    assert "imprecise decides nothing" not in text
