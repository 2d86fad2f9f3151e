"""Displays keep the conventions of scikit-learn's, whatever they show."""

import inspect
import math

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import prudent
from prudent import plots
from prudent.plots.display import Display, thousands_on_axis

X, y = load_breast_cancer(return_X_y=True)
OLD, NEW = np.arange(300), np.arange(300, 569)


def selective():
    model = prudent.SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, random_state=0
    )
    return plots.SelectiveDisplay, "from_estimator", (model.fit(X[OLD], y[OLD]), *new())


def neyman_pearson():
    model = prudent.NeymanPearsonClassifier(
        LinearDiscriminantAnalysis(), max_class_error={0: 0.1}, random_state=0
    )
    fitted = model.fit(X[OLD], y[OLD])
    return plots.ClassErrorDisplay, "from_estimator", (fitted, *new())


def conformal():
    model = prudent.ConformalClassifier(random_state=0).fit(X[OLD], y[OLD])
    return plots.SetSizeDisplay, "from_estimator", (model, *new())


def detector():
    model = prudent.LowDensityRejector(random_state=0).fit(X[OLD][y[OLD] == 1])
    signs = np.where(y[NEW] == 1, 1, -1)
    return plots.DetectorScoreDisplay, "from_estimator", (model, X[NEW], signs)


def drift():
    monitor = prudent.DriftMonitor(random_state=0).fit(X[OLD]).update(X[NEW])
    return plots.DriftDisplay, "from_monitor", (monitor,)


def cost():
    compared = prudent.compare(X, y, methods=["minimax"], baselines=["lda"])
    return plots.CostCurveDisplay, "from_comparison", (compared,)


def monitor():
    promise = prudent.Guarantee(quantity="error rate", bound=0.1, sense="<=")
    seen = prudent.PromiseMonitor(promise).update([0, 1] * 20)
    return plots.MonitorDisplay, "from_monitor", (seen,)


def guarantee():
    model = prudent.MinimaxProbabilityClassifier().fit(X[OLD], y[OLD])
    return plots.GuaranteeDisplay, "from_estimator", (model, *new())


def subgroups():
    model = prudent.ConformalClassifier(
        LinearDiscriminantAnalysis(),
        subgroups=lambda rows: rows[:, :1] < [12, 15],
        random_state=0,
    )
    fitted = model.fit(X[OLD], y[OLD])
    return plots.SubgroupDisplay, "from_estimator", (fitted, *new())


def audit():
    detector_ = prudent.MinimaxOutlierDetector(false_alarm_rate=0.1)
    found = prudent.audit(detector_, laws=["line"], sizes=(60,), budget=10)
    return plots.AuditDisplay, "from_audit", (found,)


def new():
    return X[NEW], y[NEW]


MADE = (
    *(selective, neyman_pearson, conformal, detector, drift, cost, monitor),
    *(guarantee, subgroups, audit),
)


@pytest.fixture(scope="module", params=MADE, ids=lambda made: made.__name__)
def made(request):
    return request.param()


def test_the_class_method_draws_on_the_axes_given_and_returns_the_display(made):
    display_class, method, given = made
    ax = Figure().subplots()
    display = getattr(display_class, method)(*given, ax=ax)
    assert isinstance(display, display_class)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.has_data() or display.ax_.child_axes
    assert display.frame().num_rows > 0


def test_without_axes_a_new_figure_is_made(made):
    display_class, method, given = made
    pyplot.switch_backend("agg")
    before = len(pyplot.get_fignums())
    display = getattr(display_class, method)(*given)
    assert len(pyplot.get_fignums()) == before + 1
    display.plot()
    assert len(pyplot.get_fignums()) == before + 2
    pyplot.close("all")


def test_a_name_is_in_the_legend_and_keywords_reach_the_artists(made):
    display_class, method, given = made
    ax = Figure().subplots()
    getattr(display_class, method)(*given, ax=ax, name="mine", color="#123456")
    panels = [ax, *ax.child_axes]
    legends = [panel.get_legend() for panel in panels if panel.get_legend()]
    texts = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert any("mine" in text for text in texts)
    drawn = [*panels[0].lines, *panels[0].patches, *panels[0].collections]
    drawn += [line for panel in panels[1:] for line in panel.lines]
    colours = {_colour(artist) for artist in drawn}
    assert "#123456" in colours


def _colour(artist):
    from matplotlib.colors import to_hex

    get = getattr(artist, "get_color", None) or artist.get_facecolor
    value = np.atleast_1d(get())
    return to_hex(get()) if isinstance(get(), str) else to_hex(np.atleast_2d(value)[0])


def test_the_legend_hides_no_data(made):
    display_class, method, given = made
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    getattr(display_class, method)(*given, ax=ax, name="mine")
    figure.draw_without_rendering()
    for panel in (ax, *ax.child_axes):
        if panel.get_legend() is not None:
            legend, data = (
                box.get_window_extent() for box in (panel.get_legend(), panel.patch)
            )
            assert not legend.shrunk(0.98, 0.98).overlaps(data)


@pytest.mark.parametrize("name", plots.__all__)
def test_every_class_method_takes_axes_a_name_and_keywords(name):
    display = getattr(plots, name)
    assert issubclass(display, Display)
    methods = [m for m in vars(display) if m.startswith("from_")]
    assert methods
    for method in methods:
        found = inspect.signature(getattr(display, method)).parameters
        assert {"ax", "name"} <= set(found)
        assert found["ax"].kind == found["name"].kind == inspect.Parameter.KEYWORD_ONLY
        assert any(p.kind == inspect.Parameter.VAR_KEYWORD for p in found.values())


def test_no_bar_lies_across_the_cut():
    scores = np.random.default_rng(0).normal(0.3, 1, 500)
    labels = np.where(scores > 1, -1, 1)
    display = plots.DetectorScoreDisplay.from_predictions(labels, scores, cut=0.1)
    edges = [
        (bar.get_x(), bar.get_x() + bar.get_width())
        for bars in display.bars_
        for bar in bars
    ]
    assert all(high <= 0.1 + 1e-9 or low >= 0.1 - 1e-9 for low, high in edges)
    below = sum(
        bar.get_height()
        for bars in display.bars_
        for bar in bars
        if bar.get_x() < 0.1 - 1e-9
    )
    assert below == (scores < 0.1).sum() == sum(display.frame()["flagged"].to_pylist())


def test_infinite_scores_are_drawn_at_the_ends():
    scores = [math.inf, -math.inf, 0.5, -0.5]
    display = plots.DetectorScoreDisplay.from_predictions([1, 1, 1, -1], scores)
    assert sum(bar.get_height() for bars in display.bars_ for bar in bars) == 4


def test_the_point_of_a_selective_classifier_is_what_it_does():
    display_class, _, (model, rows, labels) = selective()
    display = display_class.from_estimator(model, rows, labels)
    answered = model.answers(rows)
    wrong = model.predict(rows)[answered] != labels[answered]
    (x,), (y_,) = display.point_.get_data()
    assert x == pytest.approx(answered.mean())
    assert y_ == pytest.approx(wrong.mean())
    assert display.limit_line_.get_ydata()[0] == 0.1


def test_the_errors_at_the_threshold_are_those_of_the_model():
    display_class, _, (model, rows, labels) = neyman_pearson()
    display = display_class.from_estimator(model, rows, labels)
    answers = model.predict(rows)
    for line, label in zip(display.lines_, (0, 1), strict=True):
        at, error = line.get_data()
        place = np.searchsorted(at, display.threshold)
        assert error[place] == pytest.approx(
            (answers != labels)[labels == label].mean()
        )


def test_sets_are_counted_by_class_and_empty_ones_have_no_label():
    sets = np.array([[True, False], [False, False], [True, True], [False, True]])
    display = plots.SetSizeDisplay.from_predictions(
        ["a", "a", "b", "b"], sets, ["a", "b"], promised={"a": 0.9}
    )
    frame = display.frame().to_pydict()
    assert frame["coverage"] == [0.75, 0.5, 1.0]
    assert frame["mean size"] == [1.0, 0.5, 1.5]
    assert frame["promised"] == [None, 0.9, None]


def test_promises_are_held_against_answers_of_anything():
    promise = prudent.Guarantee(quantity="error rate", bound=0.5, sense="<=")
    display = plots.GuaranteeDisplay.from_predictions(
        [0, 1, 1, 0], [0, 1, 0, 0], [promise]
    )
    (line,) = display.frame().to_pylist()
    assert (line["measured"], line["n"]) == (0.25, 4.0)


def test_regions_without_a_class_are_not_the_first_class():
    rows, labels = load_iris(return_X_y=True)
    grid = np.linspace(0, 1, 4)
    sets = np.zeros((4, 4, 2), dtype=bool)
    sets[0, :, 1] = True
    display = plots.SetRegionDisplay(
        (grid, grid), sets, np.array(["a", "b"]), rows[:2, :2], labels[:2], ("x", "y")
    ).plot(Figure().subplots())
    drawn = np.asarray(display.regions_.get_array()).reshape(4, 4)
    assert set(drawn[0]) == {1}
    assert set(drawn[1:].ravel()) == {3}  # none, beyond "several"


@pytest.mark.parametrize(
    ("value", "text"), [(1300, "1 300"), (-1700, "-1 700"), (0.25, "0.25")]
)
def test_numbers_at_axes_have_their_digits_in_groups(value, text):
    assert thousands_on_axis(value) == text
