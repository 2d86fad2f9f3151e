import pytest

from prudent import Guarantee
from prudent.comparison.measurements import Sets
from prudent.comparison.result import MethodRow, PromiseCheck
from prudent.comparison.text import COLUMNS, cells, promise_text, seconds


def checked(bound, assumptions=(), quantity="class error rate", sense="<="):
    guarantee = Guarantee(
        quantity=quantity, bound=bound, sense=sense, assumptions=assumptions
    )
    return PromiseCheck(
        guarantee=guarantee, violations=3, n=100, check=guarantee.check(3, 100)
    )


def by_column(row):
    return dict(zip(COLUMNS, cells(row), strict=True))


def test_row_shows_error_with_interval_and_the_promise_of_the_worst_class():
    row = MethodRow(
        name="minimax",
        error=0.0266,
        error_interval=(0.01, 0.07),
        promises=(checked(0.08), checked(0.142)),
        kept="kept",
        fit_seconds=0.0041,
        predict_seconds=3e-7,
    )
    shown = by_column(row)
    assert shown["error (95% interval)"] == "0.027 (0.010–0.070)"
    assert shown["promise"] == "class error ≤ 0.142"
    assert shown["kept?"] == "kept"
    assert shown["fit"] == "4.1 ms"
    assert shown["predict"] == "0.30 µs/row"


def test_row_without_promise_says_none():
    shown = by_column(MethodRow(name="lda", error=0.1))
    assert (shown["promise"], shown["kept?"]) == ("none", "–")


def test_baseline_is_marked():
    assert cells(MethodRow(name="lda", error=0.1, is_baseline=True))[0] == (
        "lda (baseline)"
    )


def test_failed_row_shows_its_reason_and_no_figures():
    shown = cells(MethodRow(name="qda", failure="class 'x' is singular"))
    assert shown[:2] == ("qda", "FAILED  class 'x' is singular")
    assert set(shown[2:]) == {""}


def test_sets_show_size_and_share_of_undecided_rows():
    sets = Sets(
        mean_size=1.066,
        undecided=0.06,
        coverage=0.99,
        size_counts=(0, 94, 6),
        class_mean_size=(1, 1.1),
        class_coverage=(1, 0.98),
    )
    shown = by_column(MethodRow(name="a", error=0.1, sets=sets))
    assert (shown["set size"], shown["undecided"]) == ("1.07", "6 %")


def test_ties_notes_and_warnings_share_a_column():
    row = MethodRow(
        name="a", error=0.1, tied_with="b", notes=("sampled",), warnings=("x", "y")
    )
    assert cells(row)[-1] == "no difference from b shown; sampled; 2 warnings"


def test_plug_in_promise_is_labelled():
    promise = checked(0.2, assumptions=("plug-in moments are the true ones",))
    assert promise_text(promise) == "class error ≤ 0.200 (plug-in)"


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


def test_verdict_never_calls_a_tied_method_the_only_best(iris):
    from prudent import compare

    comparison = compare(*iris, methods=(), baselines=("lda", "logistic"))
    first, *_ = comparison.verdict()
    assert "no difference from it is shown for " in first


def test_table_says_that_all_figures_are_out_of_fold(iris):
    from prudent import compare

    comparison = compare(*iris, methods=(), baselines=("lda",))
    heading, columns, line = str(comparison).splitlines()
    assert "150 rows x 4 features, 3 classes" in heading
    assert "out of fold" in heading
    assert columns.startswith("method")
    assert line.startswith("lda (baseline)")
