"""Figure 8 of Carranza-Alarcon and Destercke (2019): utility against imprecision.

Mean and standard deviation over ten folds of u65 and u80 on vowel, for the four
models; the curves rise with the first imprecision and fall when sets grow too large.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.benchmark_data import load
from experiments.table import Table, main
from prudent import ImpreciseDiscriminantAnalysisCV
from prudent.plots import ImprecisionPathDisplay

MODELS = {"tied": "ILDA", "full": "IQDA", "diag": "INDA", "identity": "IEDA"}
SHOWN = (0.01, 0.5, 1.0, 2.0, 3.5, 5.0)


def path(kind: str, scoring: str, quick: bool) -> ImpreciseDiscriminantAnalysisCV:
    """The scores of 500 imprecisions, one fit a fold."""
    X, y = load("vowel")
    return ImpreciseDiscriminantAnalysisCV(
        covariance_type=kind,
        scoring=scoring,
        cv=StratifiedKFold(3 if quick else 10, shuffle=True, random_state=1),
    ).fit(X, y)


def run(quick: bool) -> Table:
    """Scores at six imprecisions, and the best of 500."""
    rows = []
    for kind, name in MODELS.items():
        for scoring in ("u65", "u80"):
            model = path(kind, scoring, quick)
            grid = model.cv_results_["imprecision"]
            mean = 100 * model.cv_results_["mean_test_score"]
            at = np.searchsorted(grid, SHOWN)
            best = f"{mean.max():.1f} at {model.imprecision_:g}"
            rows.append((name, scoring, *mean[at].round(1), best))
    return Table(
        "Figure 8: utility (percent) against imprecision on vowel",
        ("model", "score", *[f"c = {c:g}" for c in SHOWN], "best"),
        rows,
        ("Drawn by `python -m experiments.imprecise_figure8 --draw FILE`.",),
    )


def draw(file: Path, quick: bool) -> None:
    """One panel a model, both utilities with a band of one standard deviation."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True)
    for ax, (kind, name) in zip(axes.flat, MODELS.items(), strict=True):
        for scoring in ("u65", "u80"):
            model = path(kind, scoring, quick)
            ImprecisionPathDisplay.from_cross_validation(model).plot(ax)
        ax.set_title(name)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    if "--draw" in sys.argv:
        draw(Path(sys.argv[sys.argv.index("--draw") + 1]), "--quick" in sys.argv)
    else:
        main(run)
