"""Displays keep the conventions of scikit-learn's, whatever they show."""

import inspect
import math
from collections.abc import Sequence
from functools import cache

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot, rcParams
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import prudent
from prudent import plots
from prudent.plots.display import Display, thousands_on_axis

X, y = load_breast_cancer(return_X_y=True)
X = X[:, [0, 1, 4]]
OLD, NEW = np.arange(300), np.arange(300, 569)
ORDINARY = np.where(y == 1, 1, -1)


class Arrays:
    """Rows and labels as NumPy arrays."""

    @staticmethod
    def rows(values):
        return values

    @staticmethod
    def labels(values):
        return values


class PandasFrames:
    """Rows and labels of pandas, whose index is not that of their places."""

    @staticmethod
    def rows(values):
        columns = [f"column {j}" for j in range(values.shape[1])]
        return pd.DataFrame(values, columns=columns, index=range(len(values), 0, -1))

    @staticmethod
    def labels(values):
        return pd.Series(values, index=range(len(values), 0, -1))


class PolarsFrames:
    """Rows and labels of polars."""

    @staticmethod
    def rows(values):
        columns = [f"column {j}" for j in range(values.shape[1])]
        return pl.DataFrame(dict(zip(columns, values.T, strict=True)))

    @staticmethod
    def labels(values):
        return pl.Series(values)


def fitted(model, given, rows=OLD, labels=y):
    return model.fit(given.rows(X[rows]), given.labels(labels[rows]))


def new(given, labels=y):
    return given.rows(X[NEW]), given.labels(labels[NEW])


@cache
def selective(given):
    model = prudent.SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, random_state=0
    )
    return fitted(model, given)


@cache
def neyman_pearson(given):
    model = prudent.NeymanPearsonClassifier(
        LinearDiscriminantAnalysis(), max_class_error={0: 0.1}, random_state=0
    )
    return fitted(model, given)


@cache
def conformal(given):
    model = prudent.ConformalClassifier(LinearDiscriminantAnalysis(), random_state=0)
    return fitted(model, given)


@cache
def rejector(given):
    model = prudent.LowDensityRejector(random_state=0)
    return model.fit(given.rows(X[OLD][y[OLD] == 1]))


@cache
def minimax(given):
    return fitted(prudent.MinimaxProbabilityClassifier(), given)


@cache
def imprecise(given):
    return fitted(prudent.ImpreciseDiscriminantAnalysis(imprecision=2.0), given)


@cache
def imprecise_cv(given):
    model = prudent.ImpreciseDiscriminantAnalysisCV(imprecisions=[0.5, 2.0], cv=3)
    return fitted(model, given)


@cache
def calibrated(given):
    return fitted(prudent.RiskCalibratedClassifier(max_iter=10, random_state=0), given)


@cache
def binned(given):
    model = prudent.BinnedCalibrationClassifier(
        LinearDiscriminantAnalysis(), n_bins=3, random_state=0
    )
    return fitted(model, given)


@cache
def logistic(given):
    return fitted(LogisticRegression(max_iter=2000), given)


@cache
def best(given):
    model = prudent.BestClassifier(
        ["lda", "qda"], promise="error <= 20%", random_state=0
    )
    return fitted(model, given)


@cache
def game(given):
    model = prudent.RejectionGame(divergence_bound=3)
    return model.fit(given.labels(np.array([0.01, 0.04, 0.15, 0.3, 0.5])))


def by_size(rows):
    return np.asarray(rows)[:, :1] < [12, 15]


@cache
def in_subgroups(given):
    model = prudent.ConformalClassifier(
        LinearDiscriminantAnalysis(), subgroups=by_size, random_state=0
    )
    return fitted(model, given)


@cache
def comparison(given):
    return prudent.compare(
        given.rows(X),
        given.labels(y),
        promise="error <= 20%",
        methods=["minimax"],
        baselines=["lda"],
        best=False,
    )


@cache
def comparison_of_subgroups(given):
    large = np.column_stack([X[:, 0], X[:, 0] > 14])
    return prudent.compare(
        pd.DataFrame(large, columns=["radius", "large"]),
        y,
        promise="coverage >= 90% in every class and large",
        methods=["lda"],
        baselines=(),
        cv=3,
    )


@cache
def promise_monitor(given):
    promise = prudent.Guarantee(quantity="error rate", bound=0.1, sense="<=")
    wrong = given.labels(np.array([0, 1] * 20))
    return prudent.PromiseMonitor(promise).update(wrong)


@cache
def drift_monitor(given):
    monitor = prudent.DriftMonitor(random_state=0)
    return monitor.fit(given.rows(X[OLD])).update(given.rows(X[NEW]))


@cache
def audit(given):
    detector = prudent.MinimaxOutlierDetector(false_alarm_rate=0.1)
    return prudent.audit(detector, laws=["line"], sizes=(60,), budget=10)


def promise():
    return prudent.Guarantee(quantity="error rate", bound=0.1, sense="<=")


def scores(given):
    return given.labels(X[NEW, 0])


def right(given):
    return given.labels((X[NEW, 0] > 15) == (y[NEW] == 0))


def answers_at_rates(given):
    low = X[NEW, :1] < np.quantile(X[:, 0], [0.1, 0.3])
    return given.labels(ORDINARY[NEW]), given.rows(np.where(low, -1, 1)), [0.1, 0.3]


#: What each class method of each display is given: positional arguments and settings.
GIVEN = {
    ("AuditDisplay", "from_audit"): lambda g: ((audit(g),), {}),
    ("CalibrationPathDisplay", "from_estimator"): lambda g: (
        (calibrated(g), *new(g)),
        {},
    ),
    ("ChoiceDisplay", "from_estimator"): lambda g: ((best(g),), {}),
    ("ClassErrorDisplay", "from_estimator"): lambda g: (
        (neyman_pearson(g), *new(g)),
        {},
    ),
    ("ClassErrorDisplay", "from_predictions"): lambda g: ((new(g)[1], scores(g)), {}),
    ("CostCurveDisplay", "from_comparison"): lambda g: ((comparison(g),), {}),
    ("DetectorScoreDisplay", "from_estimator"): lambda g: (
        (rejector(g), *new(g, ORDINARY)),
        {},
    ),
    ("DetectorScoreDisplay", "from_predictions"): lambda g: (
        (new(g, ORDINARY)[1], scores(g)),
        {"cut": 12.0},
    ),
    ("DriftDisplay", "from_monitor"): lambda g: ((drift_monitor(g),), {}),
    ("FalseAlarmDisplay", "from_estimator"): lambda g: (
        (rejector(g), *new(g, ORDINARY)),
        {"false_alarm_rates": g.labels(np.array([0.3, 0.1]))},
    ),
    ("FalseAlarmDisplay", "from_predictions"): lambda g: (answers_at_rates(g), {}),
    ("GuaranteeDisplay", "from_comparison"): lambda g: ((comparison(g),), {}),
    ("GuaranteeDisplay", "from_estimator"): lambda g: ((minimax(g), *new(g)), {}),
    ("GuaranteeDisplay", "from_predictions"): lambda g: (
        (new(g)[1], new(g)[1], [promise()]),
        {},
    ),
    ("ImprecisionPathDisplay", "from_cross_validation"): lambda g: (
        (imprecise_cv(g),),
        {},
    ),
    ("ImprecisionPathDisplay", "from_estimator"): lambda g: (
        (imprecise(g), *new(g)),
        {"imprecisions": g.labels(np.array([4.0, 0.5]))},
    ),
    ("MinimaxGeometryDisplay", "from_estimator"): lambda g: ((minimax(g), *new(g)), {}),
    ("MonitorDisplay", "from_monitor"): lambda g: ((promise_monitor(g),), {}),
    ("ReliabilityDisplay", "from_estimator"): lambda g: ((binned(g),), {}),
    ("ReliabilityDisplay", "from_predictions"): lambda g: (
        (new(g)[1], g.labels(1 / X[NEW, 0])),
        {"label": 1},
    ),
    ("SecurityCurveDisplay", "from_estimator"): lambda g: (
        (game(g),),
        {
            "false_alarm_rates": g.labels(np.array([0.5, 0.1])),
            "known": g.labels(np.full(5, 0.2)),
        },
    ),
    ("SelectiveDisplay", "from_estimator"): lambda g: ((selective(g), *new(g)), {}),
    ("SelectiveDisplay", "from_predictions"): lambda g: (
        (new(g)[1], new(g)[1], scores(g)),
        {"limit": 0.1},
    ),
    ("SetRegionDisplay", "from_estimator"): lambda g: (
        (conformal(g), *new(g)),
        {"grid_size": 10},
    ),
    ("SetSizeDisplay", "from_estimator"): lambda g: ((conformal(g), *new(g)), {}),
    ("SetSizeDisplay", "from_predictions"): lambda g: (
        (new(g)[1], g.rows(X[NEW, :2] > 15), [0, 1]),
        {},
    ),
    ("SubgroupDisplay", "from_comparison"): lambda g: (
        (comparison_of_subgroups(Arrays),),
        {},
    ),
    ("SubgroupDisplay", "from_estimator"): lambda g: ((in_subgroups(g), *new(g)), {}),
    ("SubgroupDisplay", "from_predictions"): lambda g: (
        (new(g)[1], new(g)[1], promise()),
        {"subgroups": by_size, "X": new(g)[0]},
    ),
    ("ThresholdBandsDisplay", "from_estimator"): lambda g: (
        (logistic(g), *new(g)),
        {},
    ),
    ("ThresholdBandsDisplay", "from_predictions"): lambda g: (
        (right(g), scores(g)),
        {"kind": "answers"},
    ),
}


def class_methods(display):
    return [method for method in vars(display) if method.startswith("from_")]


def test_every_class_method_of_every_display_is_tried_here():
    public = {
        (name, method)
        for name in plots.__all__
        for method in class_methods(getattr(plots, name))
    }
    assert set(GIVEN) == public


def draw(key, given=Arrays, **settings):
    name, method = key
    arguments, own = GIVEN[key](given)
    return getattr(getattr(plots, name), method)(*arguments, **own, **settings)


def taking(*names):
    """Those of the class methods that take all of these arguments."""
    return [
        key
        for key in GIVEN
        if set(names) <= set(signature(getattr(getattr(plots, key[0]), key[1])))
    ]


def signature(method):
    return inspect.signature(method).parameters


def identity(key):
    return ".".join(key)


#: Displays of one curve, which has the name of its model unless it is given one.
OF_A_CURVE = [
    (f"{name}Display", "from_estimator")
    for name in ("FalseAlarm", "Reliability", "Selective", "SetSize")
]

every = pytest.mark.parametrize("key", GIVEN, ids=identity)
of_estimators = pytest.mark.parametrize("key", taking("estimator"), ids=identity)
of_rows = pytest.mark.parametrize("key", taking("estimator", "X", "y"), ids=identity)
of_predictions = pytest.mark.parametrize("key", taking("y_true"), ids=identity)
every_class = pytest.mark.parametrize("name", plots.__all__)


@pytest.fixture(autouse=True)
def nothing_is_shown(monkeypatch):
    """Displays draw, and leave it to the caller to show."""

    def shown(*_, **__):
        raise AssertionError("a display shows nothing by itself")

    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", shown)
    monkeypatch.setattr(Figure, "show", shown)
    yield
    pyplot.close("all")


@every
def test_the_class_method_draws_on_the_axes_given_and_returns_the_display(key):
    ax = Figure().subplots()
    display = draw(key, ax=ax)
    assert isinstance(display, getattr(plots, key[0]))
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.has_data() or display.ax_.child_axes
    assert display.frame().num_rows > 0
    assert not pyplot.get_fignums()


@every
def test_without_axes_a_new_figure_is_made(key):
    display = draw(key)
    assert len(pyplot.get_fignums()) == 1
    assert display.plot() is display
    assert len(pyplot.get_fignums()) == 2
    assert display.figure_ is pyplot.gcf()


@every
def test_a_second_drawing_shows_the_same_with_the_name_it_had(key):
    first, second, third = (Figure().subplots() for _ in range(3))
    display = draw(key, ax=first, name="mine")
    numbers = display.frame()
    assert display.plot(second) is display
    assert display.ax_ is second
    assert artists(first) == artists(second)
    assert legend_of(first) == legend_of(second)
    display.plot(ax=third, name="yours")
    assert [text.replace("yours", "mine") for text in legend_of(third)] == legend_of(
        first
    )
    assert any("yours" in text for text in legend_of(third))
    assert display.frame().equals(numbers)


def panels(ax):
    """The axes, those within them and those that share their place."""
    return [ax, *ax.child_axes, *(a for a in ax.figure.axes if a is not ax)]


def artists(ax):
    return [
        (len(p.lines), len(p.patches), len(p.collections), len(p.texts))
        for p in panels(ax)
    ]


def legend_of(ax):
    legends = [panel.get_legend() for panel in panels(ax) if panel.get_legend()]
    titles = [legend.get_title().get_text() for legend in legends]
    return titles + [t.get_text() for legend in legends for t in legend.get_texts()]


@every
def test_the_name_is_in_the_legend_and_keywords_reach_the_artists(key):
    ax = Figure().subplots()
    draw(key, ax=ax, name="mine", color="#123456")
    assert any("mine" in text for text in legend_of(ax))
    drawn = [
        artist
        for panel in panels(ax)
        for artist in (*panel.lines, *panel.patches, *panel.collections)
    ]
    assert "#123456" in {colour_of(artist) for artist in drawn}


def colour_of(artist):
    get = getattr(artist, "get_color", None) or artist.get_facecolor
    colour = get()
    return (
        to_hex(colour) if isinstance(colour, str) else to_hex(np.atleast_2d(colour)[0])
    )


@every
def test_short_names_of_keywords_are_those_of_matplotlib(key):
    long, short = (Figure().subplots() for _ in range(2))
    draw(key, ax=long, color="#123456", linewidth=3)
    draw(key, ax=short, c="#123456", lw=3)
    colours = [
        [
            colour_of(artist)
            for panel in panels(ax)
            for artist in (*panel.lines, *panel.patches, *panel.collections)
        ]
        for ax in (long, short)
    ]
    assert colours[0] == colours[1]
    assert "#123456" in colours[1]


@pytest.mark.parametrize("key", OF_A_CURVE, ids=identity)
def test_a_curve_without_a_name_is_called_as_its_model(key):
    (estimator, *_), _ = GIVEN[key](Arrays)
    display = draw(key, ax=Figure().subplots())
    assert any(type(estimator).__name__ in text for text in legend_of(display.ax_))
    draw(key, ax=display.ax_, name="mine")
    display.plot(ax := Figure().subplots())
    assert any(type(estimator).__name__ in text for text in legend_of(ax))


@every
def test_every_line_that_a_display_keeps_has_its_name_in_the_legend(key):
    ax = Figure().subplots()
    display = draw(key, ax=ax, name="mine")
    for attribute, kept in vars(display).items():
        if not attribute.endswith(("line_", "lines_")) or kept is None:
            continue
        lines = [kept] if not isinstance(kept, Sequence) else kept
        named = {
            line.get_color() for line in lines if line.get_label() in legend_of(ax)
        }
        assert named == {line.get_color() for line in lines}, attribute


@every
def test_the_legend_hides_no_data(key):
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    draw(key, ax=ax, name="mine")
    figure.draw_without_rendering()
    for panel in panels(ax):
        if panel.get_legend() is not None:
            legend, data = (
                box.get_window_extent() for box in (panel.get_legend(), panel.patch)
            )
            assert not legend.shrunk(0.98, 0.98).overlaps(data)


@every
def test_the_settings_of_matplotlib_are_left_as_they_were(key):
    before = dict(rcParams)
    draw(key, ax=Figure().subplots())
    assert dict(rcParams) == before


@every
def test_what_is_drawn_is_left_as_it_was(key):
    (source, *_), _ = GIVEN[key](Arrays)
    before = joblib.hash(source)
    draw(key, ax=Figure().subplots())
    assert joblib.hash(source) == before


@every
@pytest.mark.parametrize("given", [PandasFrames, PolarsFrames])
def test_data_frames_give_the_numbers_of_arrays(key, given):
    plain, framed = (
        draw(key, kind, ax=Figure().subplots()).frame() for kind in (Arrays, given)
    )
    names = framed.column_names
    assert plain.num_columns == len(names)
    for column, other in zip(plain.columns, framed.columns, strict=True):
        if column.type in ("double", "float"):
            np.testing.assert_allclose(column.to_numpy(), other.to_numpy())
        else:
            texts = [str(value).removeprefix("column ") for value in other.to_pylist()]
            assert texts == [str(value) for value in column.to_pylist()]


@every
def test_a_subclass_makes_displays_of_its_own_class(key):
    name, method = key
    own = type("Own", (getattr(plots, name),), {})
    arguments, settings = GIVEN[key](Arrays)
    made = getattr(own, method)(*arguments, **settings, ax=Figure().subplots())
    assert type(made) is own


@of_estimators
def test_a_model_that_is_not_fitted_is_refused(key):
    name, method = key
    (estimator, *rest), settings = GIVEN[key](Arrays)
    with pytest.raises(NotFittedError):
        getattr(getattr(plots, name), method)(clone(estimator), *rest, **settings)
    assert not pyplot.get_fignums()


@of_estimators
def test_a_model_of_another_sort_is_refused(key):
    """By its name, before anything is drawn."""
    name, method = key
    (_, *rest), settings = GIVEN[key](Arrays)
    other = LinearRegression().fit(X[OLD], y[OLD])
    with pytest.raises((TypeError, ValueError), match="LinearRegression"):
        getattr(getattr(plots, name), method)(other, *rest, **settings)
    assert not pyplot.get_fignums()


@of_rows
def test_a_pipeline_is_shown_by_its_last_step(key):
    """What a model promises, and its threshold, are found behind other steps."""
    name, method = key
    (estimator, rows, labels), settings = GIVEN[key](Arrays)
    same = FunctionTransformer().fit(rows)
    pipeline = Pipeline([("same", same), ("model", estimator)])
    make = getattr(getattr(plots, name), method)
    direct, inside = (
        make(model, rows, labels, ax=Figure().subplots(), **settings)
        for model in (estimator, pipeline)
    )
    assert inside.frame().equals(direct.frame())
    assert legend_of(inside.ax_) == legend_of(direct.ax_)


@of_rows
def test_lists_are_rows_and_labels_too(key):
    name, method = key
    (estimator, rows, labels), settings = GIVEN[key](Arrays)
    make = getattr(getattr(plots, name), method)
    of_arrays, of_lists = (
        make(estimator, *given, ax=Figure().subplots(), **settings).frame()
        for given in ((rows, labels), (rows.tolist(), labels.tolist()))
    )
    assert of_arrays.equals(of_lists)


@of_rows
def test_rows_and_labels_of_different_lengths_are_refused(key):
    name, method = key
    (estimator, rows, labels), settings = GIVEN[key](Arrays)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        getattr(getattr(plots, name), method)(estimator, rows, labels[1:], **settings)
    assert not pyplot.get_fignums()


@of_predictions
def test_predictions_and_labels_of_different_lengths_are_refused(key):
    name, method = key
    (labels, *rest), settings = GIVEN[key](Arrays)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        getattr(getattr(plots, name), method)(labels[1:], *rest, **settings)
    assert not pyplot.get_fignums()


@every_class
def test_what_is_shown_comes_first_and_every_setting_has_its_name(name):
    display = getattr(plots, name)
    assert issubclass(display, Display)
    assert class_methods(display)
    for method in class_methods(display):
        parameters = list(signature(getattr(display, method)).values())
        *_, axes, named, look = parameters
        assert (axes.name, named.name, look.kind) == ("ax", "name", look.VAR_KEYWORD)
        assert "Returns\n" in getattr(display, method).__doc__
        for parameter in parameters[:-1]:
            is_data = parameter.default is parameter.empty or parameter.name in "Xy"
            assert parameter.kind == parameter.KEYWORD_ONLY or is_data
        if method == "from_predictions":
            assert parameters[0].name == "y_true"
        if method == "from_estimator":
            assert parameters[0].name == "estimator"
    for parameter in signature(display).values():
        is_setting = parameter.default is not parameter.empty
        assert not is_setting or parameter.kind == parameter.KEYWORD_ONLY
    own = list(signature(display.plot).values())
    assert [p.name for p in own] == ["self", "ax", "name", "kwargs"]
    assert own[2].kind == own[2].KEYWORD_ONLY


@every
def test_every_parameter_of_a_class_method_is_described_once_and_in_order(key):
    name, method = key
    made = getattr(getattr(plots, name), method)
    described = inspect.getdoc(made).split("Parameters\n----------\n")[1]
    described = described.split("\n\n")[0].splitlines()
    heads = [line.split(" :")[0] for line in described if not line.startswith(" ")]
    names = [part.lstrip("*") for head in heads for part in head.split(", ")]
    assert names == list(signature(made))


def test_a_display_of_ones_own_has_what_all_displays_have():
    class RowsDisplay(Display):
        """Rows, as a line."""

        @classmethod
        def from_rows(cls, rows, **kwargs):
            """Count rows.

            Parameters
            ----------
            rows : array-like

            Raises
            ------
            ValueError
                Never.
            """
            display = cls()
            display.rows = rows
            return display.plot(**kwargs)

        def frame(self):
            return self.rows

        def _draw(self, ax, look):
            ax.plot(self.rows, **{"label": self.name_, **look})

    ax = Figure().subplots()
    display = RowsDisplay.from_rows([1, 2], ax=ax, name="mine", color="#123456")
    assert legend_of(ax) == ["", "mine"]
    assert ax.lines[0].get_color() == "#123456"
    assert display.frame() == [1, 2]
    assert list(signature(RowsDisplay.from_rows)) == ["rows", "ax", "name", "kwargs"]
    text = inspect.getdoc(RowsDisplay.from_rows)
    assert text.index("rows : ") < text.index("ax : ") < text.index("RowsDisplay")
    assert text.endswith("ValueError\n    Never.")


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
    model, (rows, labels) = selective(Arrays), new(Arrays)
    display = plots.SelectiveDisplay.from_estimator(model, rows, labels)
    answered = model.answers(rows)
    wrong = model.predict(rows)[answered] != labels[answered]
    (x,), (y_,) = display.point_.get_data()
    assert x == pytest.approx(answered.mean())
    assert y_ == pytest.approx(wrong.mean())
    assert display.limit_line_.get_ydata()[0] == 0.1


def test_the_errors_at_the_threshold_are_those_of_the_model():
    model, (rows, labels) = neyman_pearson(Arrays), new(Arrays)
    display = plots.ClassErrorDisplay.from_estimator(model, rows, labels)
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


def test_false_alarms_are_counted_on_ordinary_rows_whatever_flags_them():
    model, (rows, labels) = rejector(Arrays), new(Arrays, ORDINARY)
    rates = [0.3, 0.1]
    answers = [model.with_false_alarm_rate(rate).predict(rows) for rate in rates]
    by_model, by_answers = (
        plots.FalseAlarmDisplay.from_estimator(
            model, rows, labels, false_alarm_rates=rates
        ),
        plots.FalseAlarmDisplay.from_predictions(
            labels, np.column_stack(answers), rates
        ),
    )
    assert by_model.frame().equals(by_answers.frame())
    measured = [np.mean(answer[labels == 1] == -1) for answer in answers[::-1]]
    assert by_answers.frame()["measured"].to_pylist() == measured


@pytest.mark.parametrize(
    ("labels", "answers", "message"),
    [
        ([1, -1], [1, -1], r"a column for each of the 1 false-alarm rates, got shape"),
        ([1, -1], [[1], [0]], "must be 1 for ordinary rows and -1 for others"),
        ([-1, -1], [[1], [1]], "no row is ordinary: `y_true` is 1 nowhere"),
    ],
)
def test_answers_of_no_detector_are_refused(labels, answers, message):
    with pytest.raises(ValueError, match=message):
        plots.FalseAlarmDisplay.from_predictions(labels, answers, [0.1])


@pytest.mark.parametrize("display", ["CalibrationPath", "MinimaxGeometry"])
def test_rows_without_labels_are_refused(display):
    model = {"CalibrationPath": calibrated, "MinimaxGeometry": minimax}[display]
    made = getattr(plots, f"{display}Display")
    with pytest.raises(ValueError, match="`y`"):
        made.from_estimator(model(Arrays), X[NEW])
