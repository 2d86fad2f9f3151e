"""Figure 6 of Carranza-Alarcon and Destercke (2019): regions of sets on iris.

Share of the plane (petal length and width) answered with one, two and three classes
by the precise linear rule, ILDA and IQDA.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from experiments.table import Table, main, save_picture
from prudent import ImpreciseDiscriminantAnalysis
from prudent.plots import SetRegionDisplay

PICTURE = "imprecise_regions.svg"
PANELS = (("LDA", "tied", 0.0), ("ILDA", "tied", 3.0), ("IQDA", "full", 3.0))


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Petal length and width of iris."""
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], y


def fitted(kind: str, imprecision: float) -> ImpreciseDiscriminantAnalysis:
    """One of the panels' models."""
    model = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=imprecision)
    return model.fit(*rows())


def run(quick: bool) -> Table:
    """Shares of a grid over the data's range."""
    if not quick:
        save_picture(draw(), PICTURE)
    X, _ = rows()
    n_points = 60 if quick else 300
    axes = [np.linspace(v.min() - 0.5, v.max() + 0.5, n_points) for v in X.T]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    table = []
    for name, kind, imprecision in PANELS:
        size = fitted(kind, imprecision).predict_set(grid).sum(axis=1)
        shares = [round(100 * float((size == n).mean()), 2) for n in (1, 2, 3)]
        table.append((name, imprecision, *shares))
    return Table(
        "Figure 6: share of the plane (percent) by size of the set, iris petals",
        ("model", "c", "one class", "two", "three"),
        table,
        (
            "The paper gives no number for this figure; the shapes agree: ILDA's "
            "borders are pieces of lines, IQDA's pieces of quadratics.",
        ),
        (PICTURE,),
    )


def draw() -> Figure:
    """The three panels."""
    figure = Figure(figsize=(10, 3.4), layout="tight")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for ax, (name, kind, imprecision) in zip(axes, PANELS, strict=True):
        SetRegionDisplay.from_estimator(fitted(kind, imprecision), *rows()).plot(ax)
        ax.set_title(f"{name}, c = {imprecision:g}")
    return figure


if __name__ == "__main__":
    main(run)
