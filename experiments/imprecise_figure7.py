"""Figure 7 of Carranza-Alarcon and Destercke (2019): what sets do on hard rows.

On the rows answered with several classes: how often the set holds the truth, against
the accuracy of the precise model on the same rows. Cells come from Table 4's file.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments.imprecise_table4 import MODELS, Cell, cells
from experiments.table import Table, main, save_picture

PICTURE = "imprecise_figure7.svg"


def run(quick: bool) -> Table:
    """Mean of both axes over the data sets, per model."""
    found = [cell for cell in cells(quick) if np.isfinite(cell.set_coverage)]
    if not quick:
        save_picture(draw(found), PICTURE)
    rows = []
    for kind, name in MODELS.items():
        of_model = [cell for cell in found if cell.model == kind]
        precise = np.mean([cell.set_precise for cell in of_model])
        coverage = np.array([cell.set_coverage for cell in of_model])
        above = f"{(coverage > 80).sum()} of {len(coverage)}"
        rows.append((name, round(precise, 1), round(coverage.mean(), 1), above))
    return Table(
        "Figure 7: rows answered with several classes, mean over data sets (percent)",
        ("model", "precise accuracy", "truth in set", "data sets above 80 %"),
        rows,
        ("The paper draws this; it reads: truth in the set most often above 80 %.",),
        (PICTURE,),
    )


def draw(found: list[Cell]) -> Figure:
    """One panel a model, one point a data set."""
    figure = Figure(figsize=(10, 3.2), layout="tight")
    axes = figure.subplots(1, 4, sharex=True, sharey=True)
    for ax, (kind, name) in zip(axes, MODELS.items(), strict=True):
        for cell in found:
            if cell.model == kind:
                ax.plot(cell.set_precise, cell.set_coverage, "o", color="C0")
                ax.annotate(cell.data, (cell.set_precise, cell.set_coverage), size=6)
        ax.plot([20, 100], [20, 100], color="0.7")
        ax.set(title=name, xlabel="precise accuracy (percent)")
    axes[0].set_ylabel("truth in the set (percent)")
    return figure


if __name__ == "__main__":
    main(run)
