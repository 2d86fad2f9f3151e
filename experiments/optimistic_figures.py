"""Figures 1 to 3 of Nguyen et al. (2020).

Figure 1: n times the divergence against its limit law; d = 20 independent
(chi2(1) - 1)/sqrt(2) features, limit 190 chi2(1) variables plus 20 copies of
(4 + sqrt 13) chi2(1) + (4 - sqrt 13) chi2(1). Figures 2 and 3: decision boundaries in
the plane; numbers from the population moments, pictures from a drawn sample.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq
from sklearn.datasets import load_iris

from experiments.cells import Scale, Tasks
from experiments.table import Table, keep_last_legend, save_picture
from prudent import OptimisticScoreClassifier
from prudent.exceptions import PrudentWarning
from prudent.optimistic import clt_radius, moment_divergence, moment_radius
from prudent.plots import SetRegionDisplay

D, SIZES, LEVELS = 20, (30, 50, 100, 300), (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = np.linspace(200, 600, 81)
MEANS = np.array([[0.0, 1.0], [1.0, 0.0]])
COVARIANCES = np.array([np.eye(2), [[1.0, 0.5], [0.5, 1.0]]])
POINTS = [(0, 0), (1, 1), (-2, 1), (3, -1), (0.5, 3)]
HEIGHTS = (0.0, 0.5, 3.0)
RADII = [(0.5, 0.5), (0.7, 0.7), (0.1, 1.0), (1.0, 0.1)]
LIKELIHOODS = ("gaussian", "nonparametric")


def rows_of_the_law(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of Figure 1."""
    return (rng.chisquare(1, size=(n, D)) - 1) / np.sqrt(2)


def scaled_divergences(n: int, n_samples: int, seed: int = 0) -> np.ndarray:
    """n D of the sample moments (divided by n) from the true ones."""
    rng = np.random.default_rng((seed, n))
    values = np.empty(n_samples)
    for i in range(n_samples):
        X = rows_of_the_law(n, rng)
        nominal = X.mean(axis=0), np.cov(X.T, bias=True)
        values[i] = n * moment_divergence(*nominal, np.zeros(D), np.eye(D))
    return values


def limit_draws(n_samples: int, seed: int = 1) -> np.ndarray:
    """Draws of the limit law."""
    rng = np.random.default_rng(seed)
    root = np.sqrt(13)
    return (
        rng.chisquare(190, n_samples)
        + (4 + root) * rng.chisquare(20, n_samples)
        + (4 - root) * rng.chisquare(20, n_samples)
    )


def summary(values: np.ndarray) -> dict[str, Any]:
    """Quantiles, and the histogram that the picture needs."""
    return {
        "n": len(values),
        "quantiles": np.quantile(values, LEVELS),
        "density": np.histogram(values, BINS, density=True)[0],
    }


def of_size(n: int, n_samples: int) -> dict[str, Any]:
    """Summary of n D for n rows."""
    return summary(scaled_divergences(n, n_samples))


def of_limit(n_samples: int) -> dict[str, Any]:
    """Summary of the limit law."""
    return summary(limit_draws(n_samples))


def classifier(
    likelihood: str, radii: tuple[float, float]
) -> OptimisticScoreClassifier:
    """Rule with threshold 1 from the population moments."""
    with warnings.catch_warnings():
        # Figure 3 shows what the warning about unequal radii is about
        warnings.simplefilter("ignore", PrudentWarning)
        return OptimisticScoreClassifier.from_moments(
            MEANS,
            COVARIANCES,
            [1000, 1000],
            likelihood=likelihood,
            radius=radii,
            covariance="empirical",
            threshold=1.0,
        )


def log_ratio(likelihood: str, radii: tuple[float, float], points: Any) -> np.ndarray:
    """Log ratio of optimistic scores, without the tie break."""
    scores = classifier(likelihood, radii).optimistic_scores(points)
    return scores[:, 1] - scores[:, 0]


def boundary(likelihood: str, radii: tuple[float, float], x2: float) -> float:
    """x1 on the boundary at height x2."""
    model = classifier(likelihood, radii)
    return brentq(lambda x1: model.decision_function([[x1, x2]])[0], -3, 5, xtol=1e-12)


def drawn() -> tuple[np.ndarray, np.ndarray]:
    """A sample of 1000 rows a class, as in the paper; its seed is not known."""
    rng = np.random.default_rng(0)
    rows = [
        rng.multivariate_normal(m, S, size=1000)
        for m, S in zip(MEANS, COVARIANCES, strict=True)
    ]
    return np.concatenate(rows), np.repeat([0, 1], 1000)


def fitted(likelihood: str, radii: tuple[float, float]) -> OptimisticScoreClassifier:
    """Rule of the drawn sample: tau = 1 for equal radii, else tuned by (13)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        return OptimisticScoreClassifier(
            likelihood=likelihood,
            radius=radii,
            covariance="empirical",
            threshold=1.0 if radii[0] == radii[1] else "tuned",
        ).fit(*drawn())


def plane(likelihood: str, radii: tuple[float, float]) -> dict[str, Any]:
    """Numbers of one panel."""
    crossings = ["none"] * len(HEIGHTS)
    if radii[0] == radii[1]:
        crossings = [boundary(likelihood, radii, x2) for x2 in HEIGHTS]
    return {
        "ratios": log_ratio(likelihood, radii, POINTS),
        "crossings": crossings,
        "tau": float(np.exp(fitted(likelihood, radii).log_threshold_)),
    }


def cells(scale: Scale) -> Tasks:
    """Figure 1 by number of rows, the planes by likelihood and radii."""
    n_samples = 200 if scale == "quick" else 10_000
    tasks: dict[str, Any] = {f"n = {n}": partial(of_size, n, n_samples) for n in SIZES}
    tasks["limit"] = partial(of_limit, 40 * n_samples)
    for likelihood in LIKELIHOODS:
        for radii in RADII:
            key = f"plane/{likelihood}/{radii[0]:g} {radii[1]:g}"
            tasks[key] = partial(plane, likelihood, radii)
    return tasks


def tables(found: dict[str, Any]) -> list[Table]:
    """Figure 1; Figures 2 and 3; the regions of iris that the guide shows."""
    planes = {k: v for k, v in found.items() if k.startswith("plane/")}
    return [
        figure1({k: v for k, v in found.items() if k not in planes}),
        planes_of(planes),
    ]


def figure1(found: dict[str, Any]) -> Table:
    """Quantiles and overlaid histograms."""
    names = ["limit", *(f"n = {n}" for n in SIZES)]
    rows = [(name, *np.round(found[name]["quantiles"], 1).tolist()) for name in names]
    X = rows_of_the_law(1000, np.random.default_rng(2))
    rows.append(
        (
            "moment_radius, 1000 rows",
            *(f"{1000 * moment_radius(X, q):.1f}" for q in LEVELS),
        )
    )
    rows.append(
        ("clt_radius (Gaussian)", *(f"{clt_radius(D, 1, q):.1f}" for q in LEVELS))
    )
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    middle = (BINS[1:] + BINS[:-1]) / 2
    for axes, n in zip(
        figure.subplots(1, len(SIZES), sharex=True, sharey=True), SIZES, strict=True
    ):
        density = found[f"n = {n}"]["density"]
        axes.stairs(density, BINS, fill=True, color="C1", alpha=0.7)
        axes.plot(middle, found["limit"]["density"], "C0-")
        axes.set(title=f"n = {n}", xlabel="n D")
    figure.axes[0].set_ylabel("density")
    return Table(
        f"Figure 1: quantiles of n D, {found['n = 30']['n']} samples each",
        ("", *(str(level) for level in LEVELS)),
        rows,
        (
            "The paper draws histograms and prints no numbers. Exact limit: 272.705, "
            "313.172, 345.620, 382.070, 442.244.",
        ),
        (save_picture(figure, "optimistic_figure1.svg"),),
        items=("Figure 1",),
    )


def planes_of(found: dict[str, Any]) -> Table:
    """Log ratios and boundaries, and both pictures."""
    rows = []
    for key, value in found.items():
        _, likelihood, radii = key.split("/")
        rows.append(
            (
                likelihood,
                radii.replace(" ", ", "),
                *(f"{ratio:.4f}" for ratio in value["ratios"]),
                *(x if x == "none" else f"{x:.4f}" for x in value["crossings"]),
                f"{value['tau']:.4f}",
            )
        )
    save_picture(regions(), "optimistic_regions.svg")
    return Table(
        "Figures 2 and 3: log ratio at five points; x1 on the boundary, threshold 1",
        (
            *("likelihood", "radii", *(str(point) for point in POINTS)),
            *(f"x2 = {x2:g}" for x2 in HEIGHTS),
            "tau of the drawn sample",
        ),
        rows,
        (
            "The paper draws regions and prints no numbers. Ratios and boundaries are "
            "those of the population moments with threshold 1; the pictures are of a "
            "drawn sample of 1000 rows a class, whose seed the paper does not state, "
            "and Figure 3 has the threshold that is best on it.",
            "Nonparametric, equal radii: where a class is out of reach the boundary is "
            "M_0 = M_1 for every radius. Points that both classes reach have ratio 1 "
            "and belong to class 1 by the paper's rule, R >= 1, which the pictures "
            "follow: there are none at radius 0.5 and some at 0.7, hence the paper's "
            "'different shapes'. `predict` gives such points to the nearer class.",
        ),
        (
            save_picture(picture(RADII[:2], "Figure 2"), "optimistic_figure2.svg"),
            save_picture(picture(RADII[2:], "Figure 3"), "optimistic_figure3.svg"),
        ),
        items=("Figure 2", "Figure 3"),
    )


def picture(pairs: list[tuple[float, float]], title: str) -> Figure:
    """Regions of both likelihoods for two pairs of radii."""
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    shown = [(likelihood, radii) for likelihood in LIKELIHOODS for radii in pairs]
    for axes, (likelihood, radii) in zip(panels, shown, strict=True):
        region(axes, fitted(likelihood, radii))
        axes.set_title(f"{likelihood} {radii}", fontsize=8)
    figure.suptitle(title, fontsize=9)
    return figure


def region(axes: Axes, model: OptimisticScoreClassifier) -> None:
    """Partition by the paper's rule, means, and contours of the class densities."""
    grid = np.linspace(-4, 5, 90)
    x1, x2 = np.meshgrid(grid, grid)
    points = np.column_stack([x1.ravel(), x2.ravel()])
    decided = ratio_decides(model, points).reshape(x1.shape)
    axes.contourf(
        x1, x2, decided, levels=[-0.5, 0.5, 1.5], colors=["#e58f86", "#86aee5"]
    )
    circle = np.column_stack(
        [f(np.linspace(0, 2 * np.pi, 90)) for f in (np.cos, np.sin)]
    )
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        for size in (1, 2):
            outline = mean + size * circle @ np.linalg.cholesky(covariance).T
            axes.plot(*outline.T, "w--", lw=1)
    axes.plot(*model.means_.T, "ko", ms=4)


def ratio_decides(model: OptimisticScoreClassifier, points: np.ndarray) -> np.ndarray:
    """Whether the paper's rule gives class 1: log ratio >= log threshold, ties too."""
    scores = model.optimistic_scores(points)
    return scores[:, 1] - scores[:, 0] >= model.log_threshold_


def regions() -> Figure:
    """Sets of iris at the full and at a tenth of the CLT radius, for the guide."""
    X, y = load_iris(return_X_y=True)
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, scale in zip(figure.subplots(1, 2, sharey=True), (1.0, 0.1), strict=True):
        model = OptimisticScoreClassifier(radius_scale=scale).fit(X[:, :2], y)
        SetRegionDisplay.from_estimator(model, X[:, :2], y, ax=axes)
        axes.set_title(f"radius_scale={scale:g}")
    keep_last_legend(figure)
    return figure
