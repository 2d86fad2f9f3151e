"""Figures 1 to 3 of Lanckriet et al. (2002): touching ellipsoids, robust lines.

Figure 3 is one draw of ten rows a class. It is drawn here 1 500 times, and the draw
whose estimation errors are nearest to the paper's is shown.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.svm import SVC

from experiments.cells import Scale, Tasks
from experiments.table import Table, keep_last_legend, save_picture
from prudent import MinimaxProbabilityClassifier
from prudent.plots import MinimaxGeometryDisplay

MEANS = np.array([[0.0, 0.0], [0.0, 3.0]])
N_TRAINING, N_TEST, BLOCK = 10, 50, 100
#: rho_x, rho_y and nu^2 of the paper's draw
DRAWN = (0.87, 0.19, 0.59)
#: bound and accuracy of the plain and of the robust rule, accuracy of the SVM, percent
PRINTED = (95.6, 90.0, 76.8, 94.0, 92.0)
ELLIPSES = (
    [[0.0, 0.0], [5.0, 1.5]],
    [[[1.0, 0.5], [0.5, 0.8]], [[0.7, -0.4], [-0.4, 1.2]]],
)
NU = 0.5


def rows_of(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a draw, with labels."""
    rng = np.random.default_rng(seed)
    y, y_test = np.repeat([0, 1], N_TRAINING), np.repeat([0, 1], N_TEST)
    return (
        rng.normal(size=(len(y), 2)) + MEANS[y],
        rng.normal(size=(len(y_test), 2)) + MEANS[y_test],
        y,
        y_test,
    )


def errors_of(X: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
    """The estimation errors: rho of each class, nu^2."""
    rho, nu2 = [], 0.0
    for k in (0, 1):
        rows = X[y == k]
        rho.append(float(np.linalg.norm(np.cov(rows.T, bias=True) - np.eye(2))))
        nu2 = max(nu2, float(np.sum((rows.mean(axis=0) - MEANS[k]) ** 2)))
    return rho, nu2


def models(X: np.ndarray, y: np.ndarray) -> tuple[Any, Any, SVC]:
    """Plain rule, robust rule with the true estimation errors, linear SVM."""
    rho, nu2 = errors_of(X, y)
    plain = MinimaxProbabilityClassifier()
    robust = MinimaxProbabilityClassifier(
        mean_radius=float(np.sqrt(nu2)), covariance_radius=rho
    )
    return plain.fit(X, y), robust.fit(X, y), SVC(kernel="linear", C=1.0).fit(X, y)


def draw_of(seed: int) -> list[float]:
    """rho_x, rho_y, nu^2, then the five figures of `PRINTED`."""
    X, X_test, y, y_test = rows_of(seed)
    rho, nu2 = errors_of(X, y)
    plain, robust, machine = models(X, y)
    found = [*rho, nu2]
    for model in (plain, robust):
        # A plane that promises nothing still decides.
        found += [100 * model.gaussian_accuracy_, 100 * model.score(X_test, y_test)]
    return [*found, 100 * machine.score(X_test, y_test)]


def block_of(block: int, size: int) -> list[list[float]]:
    """A block of draws."""
    return [draw_of(seed) for seed in range(block * size, (block + 1) * size)]


def cells(scale: Scale) -> Tasks:
    """Draws by block."""
    n_blocks, size = (1, 40) if scale == "quick" else (15, BLOCK)
    return {f"draws/{b}": partial(block_of, b, size) for b in range(n_blocks)}


def tables(found: dict[str, Any]) -> list[Table]:
    """Figures 1, 2 and 3."""
    draws = np.array([draw for block in found.values() for draw in block])
    return [geometry(), lines(draws)]


def geometry() -> Table:
    """Figures 1 and 2 with the kappa of each."""
    plain = MinimaxProbabilityClassifier.from_moments(*ELLIPSES, [50, 50])
    robust = MinimaxProbabilityClassifier.from_moments(
        *ELLIPSES, [50, 50], mean_radius=NU
    )
    rows = []
    for title, model in (("Figure 1", plain), (f"Figure 2, nu = {NU:g}", robust)):
        rows.append((title, model.kappa_, 100 * model.worst_case_accuracy_))
    rows.append(("Figure 1 less Figure 2", plain.kappa_ - robust.kappa_, ""))
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, model in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), (plain, robust), strict=True
    ):
        MinimaxGeometryDisplay.from_estimator(model, ax=axes)
        axes.set_aspect("equal")
    keep_last_legend(figure)
    figure.axes[0].set_title("Figure 1: the kappa-ellipsoids touch")
    figure.axes[1].set_title("Figure 2: kappa + nu; nu dashed")
    return Table(
        "Figures 1 and 2: two ellipsoids that touch",
        ("picture", "kappa", "stated accuracy, percent"),
        rows,
        ("The paper's pictures have no numbers; its moments are not stated.",),
        (save_picture(figure, "minimax_figures12.svg"),),
        items=("Figure 1", "Figure 2"),
    )


def lines(draws: np.ndarray) -> Table:
    """Figure 3 as a distribution, and one draw."""
    nearest = int(np.argmin(np.abs(draws[:, :3] - DRAWN).sum(axis=1)))
    values = draws[:, 3:]
    names = (
        *("plain bound", "plain accuracy", "robust bound", "robust accuracy"),
        "SVM accuracy",
    )
    quantiles = np.quantile(values, (0.05, 0.5, 0.95), axis=0)
    rows = [
        (
            name,
            paper,
            *(f"{v:.1f}" for v in (*quantiles[:, j], values[:, j].mean())),
            f"{100 * np.mean(values[:, j] <= paper):.0f} %",
            f"{values[nearest, j]:.1f}",
        )
        for j, (name, paper) in enumerate(zip(names, PRINTED, strict=True))
    ]
    gain = values[:, 3] - values[:, 1]
    plain = 100 * np.mean(values[:, 0] > values[:, 1])
    robust = 100 * np.mean(values[:, 2] > values[:, 3])
    return Table(
        f"Figure 3: {len(draws)} draws of ten rows a class, percent",
        (
            *("figure", "paper, one draw", "5 % of draws", "median", "95 %", "mean"),
            *("draws at or below the paper", "the draw shown"),
        ),
        rows,
        (
            f"The plain bound exceeds the test accuracy in {plain:.0f} % of the draws, "
            f"the robust one in {robust:.0f} %.",
            f"The robust rule is better by {gain.mean():.1f} points on average; by the "
            f"paper's 4 points or more in {100 * np.mean(gain >= 4):.0f} % of the "
            "draws. The paper shows one draw and does not state its seed.",
            f"The draw shown is number {nearest}: rho_x, rho_y and nu^2 are "
            "{:.2f}, {:.2f}, {:.2f} for the paper's ".format(*draws[nearest, :3])
            + "{:.2f}, {:.2f}, {:.2f}. ".format(*DRAWN)
            + "Bounds are those for normal classes, as in the paper.",
        ),
        (save_picture(picture(nearest), "minimax_figure3.svg"),),
        items=("Figure 3",),
    )


def picture(seed: int) -> Figure:
    """Rows and the three lines of a draw, with the paper's marks."""
    X, X_test, y, y_test = rows_of(seed)
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    marks = (("k+", "bx"), ("ms", "go"))
    for k, (training, test) in enumerate(marks):
        axes.plot(*X[y == k].T, training, fillstyle="none", label=f"training {'xy'[k]}")
        axes.plot(
            *X_test[y_test == k].T,
            test,
            fillstyle="none",
            ms=3,
            label=f"test {'xy'[k]}",
        )
    styles = (("r:", "minimax"), ("r-", "robust minimax"), ("k--", "SVM"))
    for model, (style, label) in zip(models(X, y), styles, strict=True):
        line(axes, model.coef_[0], float(model.intercept_[0]), style, label)
    axes.set(xlim=(-4, 4), ylim=(-3, 6), xlabel="x1", ylabel="x2")
    axes.legend(fontsize=7, ncols=2)
    return figure


def line(axes: Axes, w: np.ndarray, b: float, style: str, label: str) -> None:
    """w x + b = 0 over the width of the picture."""
    x1 = np.array([-4.0, 4.0])
    axes.plot(x1, -(w[0] * x1 + b) / w[1], style, label=label)
