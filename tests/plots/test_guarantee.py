import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from prudent import (
    Guarantee,
    LowDensityRejector,
    MinimaxProbabilityClassifier,
    SelectiveClassifier,
    compare,
)
from prudent.core.binomial import clopper_pearson
from prudent.plots import GuaranteeDisplay
from prudent.plots.guarantees import KeptPromise


@pytest.fixture(scope="module")
def split():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X[:, :5], y, random_state=0)


@pytest.fixture(scope="module")
def fitted(split):
    seen, _, labels, _ = split
    return MinimaxProbabilityClassifier().fit(seen, labels)


def promise(bound, violations, n=100, quantity="error rate", sense="<="):
    guarantee = Guarantee(quantity=quantity, bound=bound, sense=sense)
    return KeptPromise(
        label="a", guarantee=guarantee, check=guarantee.check(violations, n), n=n
    )


def axes():
    return Figure().subplots()


def test_promises_of_an_estimator_are_held_against_the_rows_of_their_class(
    fitted, split
):
    _, fresh, _, truth = split
    frame = GuaranteeDisplay.from_estimator(fitted, fresh, truth).frame().to_pylist()
    wrong = fitted.predict(fresh) != truth
    for line, label in zip(frame, [0, 1], strict=True):
        rows = truth == label
        assert line["scope"] == str(label)
        assert line["bound"] == fitted.class_worst_case_error_[label]
        assert line["measured"] == pytest.approx(wrong[rows].mean())
        assert (line["lower"], line["upper"]) == clopper_pearson(
            wrong[rows].sum(), rows.sum(), level=0.025
        )


def test_a_selective_error_is_counted_on_the_answered_rows(split):
    seen, fresh, labels, truth = split
    model = SelectiveClassifier(
        MinimaxProbabilityClassifier(), error_rate=0.15, random_state=0
    ).fit(seen, labels)
    (line,) = GuaranteeDisplay.from_estimator(model, fresh, truth).frame().to_pylist()
    answered = model.answers(fresh)
    assert 0 < line["n"] == answered.sum() < len(truth)
    wrong = (model.predict(fresh) != truth)[answered]
    assert line["measured"] == pytest.approx(wrong.mean())


def test_false_alarms_of_a_detector_are_counted_on_ordinary_rows(split):
    seen, fresh, labels, truth = split
    detector = LowDensityRejector(random_state=0).fit(seen[labels == 1])
    ordinary = np.where(truth == 1, 1, -1)
    (line,) = (
        GuaranteeDisplay.from_estimator(detector, fresh, ordinary).frame().to_pylist()
    )
    assert line["n"] == (truth == 1).sum()
    alarms = detector.predict(fresh[truth == 1]) == -1
    assert line["measured"] == pytest.approx(alarms.mean())


def test_a_class_without_fresh_rows_is_left_out(fitted, split):
    _, fresh, _, truth = split
    ones = truth == 1
    display = GuaranteeDisplay.from_estimator(fitted, fresh[ones], truth[ones])
    assert display.frame()["scope"].to_pylist() == ["1"]


def test_different_lengths_are_refused(fitted, split):
    _, fresh, _, truth = split
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GuaranteeDisplay.from_estimator(fitted, fresh, truth[:-1])


def test_comparison_gives_the_promises_of_all_methods(split):
    X, y = split[0], split[2]
    comparison = compare(X, y, methods=("minimax",), baselines=("lda",), best=False)
    frame = GuaranteeDisplay.from_comparison(comparison).frame()
    promises = [p for row in comparison.rows for p in row.promises]
    assert frame["bound"].to_pylist() == [p.guarantee.bound for p in promises]
    assert set(frame["method"].to_pylist()) == {"minimax", "lda"}


def test_each_verdict_is_drawn_at_its_bound_and_measurement():
    display = GuaranteeDisplay([promise(0.2, 5), promise(0.1, 40)]).plot(axes())
    kept, broken = display.errorbars_
    assert kept.lines[0].get_xydata().tolist() == [[0.2, 0.05]]
    assert broken.lines[0].get_xydata().tolist() == [[0.1, 0.4]]
    assert broken.lines[0].get_color() == "#d62728"
    assert kept.lines[0].get_marker() != broken.lines[0].get_marker()


def test_error_bars_are_the_exact_interval():
    display = GuaranteeDisplay([promise(0.2, 5)]).plot(axes())
    (segment,) = display.errorbars_[0].lines[2][0].get_segments()
    np.testing.assert_allclose(segment[:, 1], clopper_pearson(5, 100))


def test_coverage_is_drawn_as_the_rate_of_misses():
    given = promise(0.9, 4, quantity="coverage", sense=">=")
    display = GuaranteeDisplay([given]).plot(axes())
    (point,) = display.errorbars_[0].lines[0].get_xydata()
    np.testing.assert_allclose(point, [0.1, 0.04])
    (segment,) = display.errorbars_[0].lines[2][0].get_segments()
    np.testing.assert_allclose(segment[:, 1], clopper_pearson(4, 100))


def test_frame_keeps_the_promise_as_it_was_made():
    given = promise(0.9, 4, quantity="coverage", sense=">=")
    assert GuaranteeDisplay([given]).frame()["bound"].to_pylist() == [0.9]


def test_no_promise_gives_an_empty_frame_and_an_empty_picture():
    display = GuaranteeDisplay([]).plot(axes())
    assert display.frame().num_rows == 0
    assert display.errorbars_ == []


def test_plot_makes_its_own_axes():
    from matplotlib import pyplot

    display = GuaranteeDisplay([promise(0.2, 5)]).plot()
    assert display.figure_ is display.ax_.figure
    pyplot.close(display.figure_)


def test_unknown_display_is_named():
    import prudent.plots

    with pytest.raises(AttributeError, match="no attribute 'PieDisplay'"):
        _ = prudent.plots.PieDisplay
