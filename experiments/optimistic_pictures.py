"""Draw Figures 1 to 3 of Nguyen et al. (2020) and the regions of iris for the docs."""

from __future__ import annotations

from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from experiments import optimistic_figure1, optimistic_figures23
from experiments.table import Table, main, save_picture
from prudent import OptimisticScoreClassifier
from prudent.plots import SetRegionDisplay


def figure1() -> Figure:
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    optimistic_figure1.draw(figure.subplots())
    return figure


def figures23() -> Figure:
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    optimistic_figures23.draw(figure)
    return figure


def regions() -> Figure:
    """Sets of iris at the full and at a tenth of the CLT radius."""
    X, y = load_iris(return_X_y=True)
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, scale in zip(figure.subplots(1, 2, sharey=True), (1.0, 0.1), strict=True):
        model = OptimisticScoreClassifier(radius_scale=scale).fit(X[:, :2], y)
        SetRegionDisplay.from_estimator(model, X[:, :2], y).plot(axes)
        axes.set_title(f"radius_scale={scale:g}")
    return figure


PICTURES = {
    "optimistic_figure1.svg": figure1,
    "optimistic_figures23.svg": figures23,
    "optimistic_regions.svg": regions,
}


def run(quick: bool) -> Table:
    names = list(PICTURES)[: 1 if quick else None]
    for name in names:
        save_picture(PICTURES[name](), name)
    return Table("Figures 1 to 3, drawn", (), (), pictures=names)


if __name__ == "__main__":
    main(run)
