"""Draw the pictures of the guide that no paper has: docs/images/guide_*.svg."""

from pathlib import Path

import numpy as np
from matplotlib import rc_context, style
from matplotlib.figure import Figure
from scipy.stats import norm

from prudent import Guarantee, PromiseMonitor
from prudent.core.binomial import upper_limit
from prudent.plots import MonitorDisplay
from prudent.plots.display import BLUE, GREY, RED, STYLE_FILE, legend_beside

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SIZE = (6.4, 3.0)
PLAIN = {"svg.hashsalt": "prudent", "svg.fonttype": "none"}
NO_DATE = {"Date": None, "Creator": None, "Format": None, "Type": None}


def certification(ax):
    """What may be said of the error after so many wrong answers among 200."""
    n, wrong = 200, np.arange(16)
    limits = [upper_limit(k, n, level=0.05) for k in wrong.tolist()]
    ax.plot(wrong, limits, "o-", color=BLUE, markersize=4, label="certified: at most")
    ax.plot(wrong, wrong / n, "--", color=GREY, label="seen")
    ax.set(xlabel=f"wrong answers among {n} new rows", ylabel="error", ylim=(0, None))
    legend_beside(ax)


def monitoring(ax):
    """A model that keeps 5 % for 500 rows, and errs in 15 % from there on."""
    rates = np.where(np.arange(900) < 500, 0.04, 0.15)
    losses = (np.random.default_rng(1).random(900) < rates).astype(float)
    promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    MonitorDisplay.from_monitor(PromiseMonitor(promise).update(losses), ax=ax)


def audits(ax):
    """True rates of 2000 detectors that cut at the plain quantile of 20 scores."""
    rows = np.random.default_rng(0).normal(size=(2000, 20))
    truth = 2 * norm.sf(np.quantile(np.abs(rows), 0.9, axis=1))
    ax.hist(truth, bins=np.arange(0, 0.51, 0.02), color=BLUE, alpha=0.6, label="models")
    ax.axvline(0.1, color=RED, linestyle="--", label="promised on average")
    ax.axvline(truth.mean(), color=GREY, label=f"true on average: {truth.mean():.3f}")
    ax.set(xlabel="true false-alarm rate of the model", ylabel="models of 2000")
    legend_beside(ax)


def alarms(ax):
    """False alarms of each detector on each table of the page of other libraries."""
    page = (FOLDER.parent / "peers.rst").read_text(encoding="utf-8")
    table = page.split("~~~\n\n.. list-table::")[1].split("\n\n")[1]
    head, *lines = [
        [cell.strip().removeprefix("- ") for cell in row.strip().splitlines()]
        for row in table.split("   * ")[1:]
    ]
    sets = slice(head.index("milliseconds") + 1, None)
    for place, line in enumerate(lines):
        rates = [float(cell) for cell in line[sets]]
        ax.plot(rates, [place] * len(rates), "o", color=BLUE, alpha=0.6, markersize=4)
    ax.axvline(0.05, color=RED, linestyle="--")
    ax.set_yticks(range(len(lines)), [line[0] for line in lines])
    ax.invert_yaxis()
    ax.set(xlabel="false alarms on fresh ordinary rows; dashed: the 5 % asked for")


def main():
    """Draw and save them."""
    for draw in (certification, monitoring, audits, alarms):
        with style.context(STYLE_FILE), rc_context(PLAIN):
            figure = Figure(SIZE, layout="constrained")
            draw(figure.subplots())
            figure.savefig(FOLDER / f"guide_{draw.__name__}.svg", metadata=NO_DATE)


if __name__ == "__main__":
    main()
