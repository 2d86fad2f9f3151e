"""Figure 8 of Carranza-Alarcon and Destercke (2019): utility against imprecision.

Mean and standard deviation over ten folds of u65 and u80 on vowel, for the four
models; the curves rise with the first imprecision and fall when sets grow too large.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import StratifiedKFold

from experiments.benchmark_data import load
from experiments.table import Table, main, save_picture
from prudent import ImpreciseDiscriminantAnalysisCV
from prudent.plots import ImprecisionPathDisplay

PICTURE = "imprecise_vowel.svg"
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
    paths = {
        (kind, scoring): path(kind, scoring, quick)
        for kind in MODELS
        for scoring in ("u65", "u80")
    }
    if not quick:
        save_picture(draw(paths), PICTURE)
    rows = []
    for (kind, scoring), model in paths.items():
        grid = model.cv_results_["imprecision"]
        mean = 100 * model.cv_results_["mean_test_score"]
        at = np.searchsorted(grid, SHOWN)
        best = f"{mean.max():.1f} at {model.imprecision_:g}"
        rows.append((MODELS[kind], scoring, *mean[at].round(1), best))
    return Table(
        "Figure 8: utility (percent) against imprecision on vowel",
        ("model", "score", *[f"c = {c:g}" for c in SHOWN], "best"),
        rows,
        ("The paper draws curves and prints no numbers.",),
        (PICTURE,),
    )


def draw(paths: dict[tuple[str, str], ImpreciseDiscriminantAnalysisCV]) -> Figure:
    """One panel a model, both utilities with a band of one standard deviation."""
    figure = Figure(figsize=(9, 7), layout="tight")
    axes = dict(zip(MODELS, figure.subplots(2, 2, sharex=True).flat, strict=True))
    for (kind, _), model in paths.items():
        ImprecisionPathDisplay.from_cross_validation(model).plot(axes[kind])
        axes[kind].set_title(MODELS[kind])
    return figure


if __name__ == "__main__":
    main(run)
