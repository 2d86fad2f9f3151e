"""Figures 2 and 3 of Nguyen et al. (2020): decision boundaries in the plane.

m_0 = (0, 1), S_0 = I; m_1 = (1, 0), S_1 = [[1, .5], [.5, 1]]: the population moments
in place of the paper's sample of 1000 rows, whose seed is not known.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import brentq

from experiments.table import Table, main
from prudent import OptimisticScoreClassifier
from prudent.exceptions import PrudentWarning

MEANS = [[0.0, 1.0], [1.0, 0.0]]
COVARIANCES = [np.eye(2), [[1.0, 0.5], [0.5, 1.0]]]
POINTS = [(0, 0), (1, 1), (-2, 1), (3, -1), (0.5, 3)]
HEIGHTS = (0.0, 0.5, 3.0)
RADII = [(0.5, 0.5), (0.7, 0.7), (0.1, 1.0), (1.0, 0.1)]


def classifier(likelihood: str, radii: tuple[float, float]):
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


def log_ratio(likelihood: str, radii: tuple[float, float], points) -> np.ndarray:
    """Log ratio of optimistic scores, without the tie break."""
    scores = classifier(likelihood, radii).optimistic_scores(points)
    return scores[:, 1] - scores[:, 0]


def boundary(likelihood: str, radii: tuple[float, float], x2: float) -> float:
    """x1 on the boundary at height x2."""
    model = classifier(likelihood, radii)
    return brentq(lambda x1: model.decision_function([[x1, x2]])[0], -3, 5, xtol=1e-12)


def run(quick: bool) -> Table:
    rows = []
    for likelihood in ("gaussian", "nonparametric"):
        for radii in RADII[:1] if quick else RADII:
            crossings = ("none",) * len(HEIGHTS)
            if radii[0] == radii[1]:
                crossings = [boundary(likelihood, radii, x2) for x2 in HEIGHTS]
            ratios = log_ratio(likelihood, radii, POINTS)
            rows.append((likelihood, radii, *ratios.tolist(), *crossings))
    return Table(
        "Figures 2 and 3: log ratio at five points; x1 on the boundary, threshold 1",
        (
            "likelihood",
            "radii",
            *(str(point) for point in POINTS),
            *(f"x2 = {x2:g}" for x2 in HEIGHTS),
        ),
        rows,
        (
            "The paper draws regions and prints no numbers. Figure 3 has threshold 1 "
            "here: the sample on which the paper tunes it is not known.",
            "Nonparametric, equal radii: the boundary is M_0 = M_1 for every radius; "
            "the paper's 'different shapes' can only be the region where both "
            "classes are within reach (ratio 1).",
        ),
    )


def draw(figure) -> None:
    """The picture: regions for both likelihoods and all radii."""
    x1, x2 = np.meshgrid(np.linspace(-4, 5, 100), np.linspace(-4, 5, 100))
    points = np.column_stack([x1.ravel(), x2.ravel()])
    panels = figure.subplots(2, len(RADII), sharex=True, sharey=True)
    for row, likelihood in zip(panels, ("gaussian", "nonparametric"), strict=True):
        for axes, radii in zip(row, RADII, strict=True):
            decided = classifier(likelihood, radii).decision_function(points) >= 0
            axes.contourf(
                x1,
                x2,
                decided.reshape(x1.shape),
                levels=[-0.5, 0.5, 1.5],
                colors=["#f4b6b0", "#b0c9f4"],
            )
            axes.plot(*np.transpose(MEANS), "ko", markersize=3)
            axes.set_title(f"{likelihood} {radii}", fontsize=7)


if __name__ == "__main__":
    main(run)
