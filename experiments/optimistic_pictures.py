"""Draw Figures 1 to 3 of Nguyen et al. (2020) and the regions of iris for the docs."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from experiments import optimistic_figure1, optimistic_figures23
from experiments.table import Table, main
from prudent import OptimisticScoreClassifier
from prudent.plots import SetRegionDisplay

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"


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


PICTURES = {"figure1": figure1, "figures23": figures23, "regions": regions}


def run(quick: bool) -> Table:
    rows = []
    with mpl.rc_context({"svg.hashsalt": "prudent"}):  # equal bytes on every run
        for name, draw in list(PICTURES.items())[: 1 if quick else None]:
            path = FOLDER / f"optimistic_{name}.svg"
            draw().savefig(path, metadata={"Date": None}, dpi=100)
            rows.append((path.name, path.stat().st_size))
    return Table("Pictures", ("file", "bytes"), rows)


if __name__ == "__main__":
    main(run)
