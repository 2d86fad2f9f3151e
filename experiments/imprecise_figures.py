"""Figures 5, 6, 8, A.9 and A.10 of Carranza-Alarcon and Destercke (2019).

Figure 5: Example 3, two normal classes and c = 2. Figure 6: regions of sets on iris.
Figures 8, A.9, A.10: utility against imprecision, mean and standard deviation over
folds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from experiments.cells import Scale, Tasks
from experiments.imprecise_data import MODELS, SIZES, complete_rows
from experiments.table import Table, keep_last_legend, save_picture
from prudent import ImpreciseDiscriminantAnalysis, ImpreciseDiscriminantAnalysisCV
from prudent.plots import SetRegionDisplay

PANELS = (("LDA", "tied", 0.0), ("ILDA", "tied", 3.0), ("IQDA", "full", 3.0))
EXAMPLE_MEANS, EXAMPLE_C, EXAMPLE_N = np.array([[0.25, 0.5], [0.5, -1.0]]), 2.0, 25
NEW_POINT = np.array([-0.9, -0.1])
SHOWN = (0.01, 0.5, 1.0, 2.0, 3.5, 5.0)
GRID = np.unique(np.round(np.geomspace(0.01, 5, 40), 2))
UTILITIES = ("u65", "u80")
APPENDIX = {"A.9": tuple(SIZES)[:8], "A.10": tuple(SIZES)[8:]}


def iris_rows() -> tuple[np.ndarray, np.ndarray]:
    """Petal length and width of iris."""
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], y


def fitted(kind: str, imprecision: float) -> ImpreciseDiscriminantAnalysis:
    """One of the models of Figure 6."""
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=imprecision)
    return model.fit(*iris_rows())


def shares(kind: str, imprecision: float, n_points: int) -> list[float]:
    """Percent of the plane answered with one, two and three classes."""
    X, _ = iris_rows()
    axes = [np.linspace(v.min() - 0.5, v.max() + 0.5, n_points) for v in X.T]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    size = fitted(kind, imprecision).predict_set(grid).sum(axis=1)
    return [100 * float((size == n).mean()) for n in (1, 2, 3)]


def path(name: str, kind: str, scoring: str, fine: bool) -> dict[str, Any]:
    """Mean and standard deviation of a utility for each imprecision."""
    X, y = complete_rows(name)
    X = X[:, np.ptp(X, axis=0) > 0]
    model = ImpreciseDiscriminantAnalysisCV(
        imprecisions=None if fine else GRID,
        covariance_type=kind,
        scoring=scoring,
        cv=StratifiedKFold(10 if fine else 5, shuffle=True, random_state=1),
        max_nodes=1000,
    ).fit(X, y)
    results = model.cv_results_
    return {
        "c": results["imprecision"],
        "mean": results["mean_test_score"],
        "std": results["std_test_score"],
    }


def cells(scale: Scale) -> Tasks:
    """The paths by set, model and utility; the regions by model."""
    quick = scale == "quick"
    tasks: dict[str, Any] = {
        f"regions/{name}": partial(shares, kind, c, 60 if quick else 300)
        for name, kind, c in PANELS
    }
    for name in ("iris", "wine", "vehicle") if quick else SIZES:
        for kind in MODELS:
            for scoring in UTILITIES:
                key = f"path/{name}/{kind}/{scoring}"
                tasks[key] = partial(path, name, kind, scoring, False)
    for kind in MODELS:
        for scoring in UTILITIES:
            fine = "iris" if quick else "vowel"
            tasks[f"fine/{kind}/{scoring}"] = partial(path, fine, kind, scoring, True)
    return tasks


def tables(found: dict[str, Any]) -> list[Table]:
    """The figures in the paper's order."""
    fine, paths = {}, {}
    for key, value in found.items():
        kind, *rest = key.split("/")
        if kind == "fine":
            fine[tuple(rest)] = value
        elif kind == "path":
            paths[tuple(rest)] = value
    return [
        figure5(),
        figure6(found),
        figure8(fine),
        *(appendix(number, names, paths) for number, names in APPENDIX.items()),
    ]


def example() -> tuple[np.ndarray, np.ndarray, ImpreciseDiscriminantAnalysis]:
    """Rows of Example 3 and the model in the units of the columns, as in the paper."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], EXAMPLE_N)
    X = rng.normal(size=(len(y), 2)) + EXAMPLE_MEANS[y]
    model = ImpreciseDiscriminantAnalysis(
        covariance_type="tied", imprecision=EXAMPLE_C, scale=None
    )
    return X, y, model.fit(X, y)


def figure5() -> Table:
    """Example 3: boxes of the means; the cautious area and LDA's band of rejection."""
    X, y, model = example()
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    least, _ = model.extremal_means(NEW_POINT[None])
    lower, upper = model.mean_bounds_
    for k, (mark, colour) in enumerate((("*", "C0"), ("v", "C3"))):
        for axes in (left, right):
            axes.plot(*X[y == k].T, mark, color=colour, ms=4, alpha=0.6)
        size = upper[k] - lower[k]
        left.add_patch(Rectangle(lower[k], *size, fill=False, color=colour))
        left.plot(*model.means_[k], "o", color=colour, ms=5)
        left.plot(*least[0, k], "x", color=colour, ms=8)
    left.plot(*NEW_POINT, "ko", ms=5)
    left.set_title("(a) sets of the means; a new row")
    inside, band, epsilon, area = cautious(model)
    right.contourf(*band[:2], inside, levels=[0.5, 1.5], colors=["#b39ddb"])
    right.contour(
        *band[:2], band[2], levels=[0.5 - epsilon, 0.5 + epsilon], colors="k",
        linestyles="--", linewidths=1,
    )  # fmt: skip
    right.set_title("(b) cautious area; band of LDA dashed")
    agree = f"{100 * area:.1f} %"
    return Table(
        "Figure 5: Example 3, c = 2",
        ("rows a class", "area with two answers", "band of LDA, epsilon", "in both"),
        [(EXAMPLE_N, f"{100 * inside.mean():.1f} %", f"{epsilon:.3f}", agree)],
        (
            "The paper states neither the number of rows nor a seed. The area is a "
            "share of the picture; the band has the same area, and its borders are "
            "parallel lines where those of the cautious area are broken.",
        ),
        (save_picture(figure, "imprecise_figure5.svg"),),
        items=("Figure 5",),
    )


def cautious(
    model: ImpreciseDiscriminantAnalysis,
) -> tuple[np.ndarray, tuple[np.ndarray, ...], float, float]:
    """The area with two answers, LDA's posterior, the band of equal area, overlap."""
    grid = np.linspace(-3.5, 3.5, 240)
    x1, x2 = np.meshgrid(grid, grid)
    points = np.column_stack([x1.ravel(), x2.ravel()])
    inside = (model.predict_set(points).sum(axis=1) == 2).reshape(x1.shape)
    precise = ImpreciseDiscriminantAnalysis(
        covariance_type="tied", imprecision=0.0, scale=None
    ).fit(*example()[:2])
    posterior = precise.predict_proba(points)[:, 1].reshape(x1.shape)
    doubt = np.abs(posterior - 0.5)
    epsilon = float(np.quantile(doubt, inside.mean()))
    both = np.mean(inside & (doubt <= epsilon)) / max(inside.mean(), 1e-9)
    return inside, (x1, x2, posterior), epsilon, float(both)


def figure6(found: dict[str, Any]) -> Table:
    """Shares of the plane, and the three panels."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    rows = []
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (name, kind, c) in zip(panels, PANELS, strict=True):
        SetRegionDisplay.from_estimator(fitted(kind, c), *iris_rows(), ax=axes)
        axes.set_title(f"{name}, c = {c:g}")
        rows.append((name, c, *(f"{v:.2f}" for v in found[f"regions/{name}"])))
    keep_last_legend(figure)
    return Table(
        "Figure 6: share of the plane (percent) by size of the set, iris petals",
        ("model", "c", "one class", "two", "three"),
        rows,
        (
            "The paper gives no number for this figure; the shapes agree: ILDA's "
            "borders are pieces of lines, IQDA's pieces of quadratics.",
        ),
        (save_picture(figure, "imprecise_regions.svg"),),
        items=("Figure 6",),
    )


def curve(axes: Axes, value: dict[str, Any], label: str, band: bool = True) -> None:
    """One utility against c."""
    thin = slice(None, None, max(1, len(value["c"]) // 100))
    c, mean, std = (100 * np.array(value[k][thin]) for k in ("c", "mean", "std"))
    (line,) = axes.plot(c / 100, mean, label=label, lw=1)
    if band:
        axes.fill_between(
            c / 100, mean - std, mean + std, color=line.get_color(), alpha=0.2
        )


def figure8(paths: dict[tuple[str, ...], dict[str, Any]]) -> Table:
    """Both utilities of the four models on vowel."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    panels = dict(zip(MODELS, figure.subplots(2, 2, sharex=True).flat, strict=True))
    rows = []
    for (kind, scoring), value in paths.items():
        curve(panels[kind], value, scoring)
        panels[kind].set(title=MODELS[kind], xlabel="c", ylabel="utility, percent")
        panels[kind].legend()
        grid, mean = np.array(value["c"]), 100 * np.array(value["mean"])
        at = np.searchsorted(grid, SHOWN)
        best = f"{mean.max():.1f} at {grid[mean.argmax()]:g}"
        rows.append((MODELS[kind], scoring, *(f"{m:.1f}" for m in mean[at]), best))
    return Table(
        "Figure 8: utility (percent) against imprecision on vowel",
        ("model", "score", *[f"c = {c:g}" for c in SHOWN], "best"),
        rows,
        (
            "The paper draws curves and prints no numbers. Bands: one standard "
            "deviation of the folds.",
        ),
        (save_picture(figure, "imprecise_vowel.svg"),),
        items=("Figure 8",),
    )


def appendix(
    number: str, names: Iterable[str], paths: dict[tuple[str, ...], dict[str, Any]]
) -> Table:
    """Figure A.9 or A.10: u65 on the left, u80 on the right, one row a set."""
    names = [name for name in names if (name, "tied", "u65") in paths]
    figure = Figure(figsize=(9, 1.9 * max(len(names), 1)), layout="constrained")
    panels = figure.subplots(max(len(names), 1), 2, sharex=True, squeeze=False)
    rows = []
    for line, name in zip(panels, names, strict=False):
        for axes, scoring in zip(line, UTILITIES, strict=True):
            for kind, model in MODELS.items():
                curve(axes, paths[name, kind, scoring], model, band=False)
            axes.set_title(f"{name}, {scoring}", fontsize=8)
        line[0].set_ylabel("percent")
        for scoring in UTILITIES:
            cells = []
            for kind in MODELS:
                value = paths[name, kind, scoring]
                mean = 100 * np.array(value["mean"])
                best = value["c"][int(mean.argmax())]
                cells.append(f"{mean.max():.1f} at {best:g}")
            rows.append((name, scoring, *cells))
    for axes in panels[-1]:
        axes.set_xlabel("c")
    panels[0][0].legend(fontsize=7)
    return Table(
        f"Figure {number}: utility against imprecision, other sets",
        ("data", "score", *(f"{model}: best, at c" for model in MODELS.values())),
        rows,
        (
            "The paper draws curves and prints no numbers; five stratified folds here, "
            "and c in standard deviations of the columns.",
        ),
        (
            save_picture(
                figure, f"imprecise_figure{number.replace('.', '').lower()}.svg"
            ),
        ),
        items=(f"Figure {number}",),
    )
