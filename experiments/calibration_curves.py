"""Error curves of Appendix D (Figures 1 to 3), 128 iterations, drawn to an image.

The paper's mnist features are absent; optdigits, the same digits at 8 x 8 pixels,
stands in.

python -m experiments.calibration_curves [--quick]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.calibration_data import in_bins, table_one
from experiments.calibration_tables import LIKELIHOOD, posterior
from experiments.table import Table, main, save_picture

PICTURE = "calibration_curves.svg"
PANELS = (("NB", "categorical"), ("QDA", "full"), ("LR", "tied_diag"))
SHOWN = (1, 2, 4, 8, 16, 32, 64, 128)


def curves(quick: bool) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Training error after each iteration, by panel and method."""
    X, y = table_one("iris" if quick else "optdigits")
    shown = {}
    for panel, family in PANELS:
        rows = in_bins(X) if family == "categorical" else X
        settings = {"family": family, "max_iter": 128}
        shown[panel] = {
            "RC, ML": LIKELIHOOD(rows, y, **settings).error,
            "RC, MAP": posterior(rows, y, **settings).error,
        }
        if family == "tied_diag":
            shown[panel]["GD"] = LIKELIHOOD(rows, y, method="gd", **settings).error
    return shown


def draw(panels: dict[str, dict[str, NDArray[np.float64]]]) -> None:
    """One panel for each classifier, as the paper's figures."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(10, 3.2), sharex=True)
    for ax, (title, methods) in zip(axes, panels.items(), strict=True):
        for name, error in methods.items():
            ax.plot(np.arange(1, len(error) + 1), error, label=name)
        ax.set(title=title, xlabel="iteration", ylim=(0, None))
    axes[0].set_ylabel("training error")
    axes[-1].legend()
    figure.tight_layout()
    save_picture(figure, PICTURE)


def run(quick: bool) -> Table:
    """Errors at a few iterations; the full run draws all of them."""
    panels = curves(quick)
    if not quick:
        draw(panels)
    rows = [
        [panel, name, *(f"{error[t - 1]:.3f}" for t in SHOWN)]
        for panel, methods in panels.items()
        for name, error in methods.items()
    ]
    return Table(
        "Appendix D, Figures 1 to 3: training error along 128 iterations",
        ("classifier", "method", *map(str, SHOWN)),
        rows,
        (
            "The paper draws curves and prints no numbers. Its mnist features are "
            "absent; optdigits stands in.",
        ),
        (PICTURE,),
    )


if __name__ == "__main__":
    main(run)
