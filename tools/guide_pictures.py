"""Draw the pictures of the guide that no paper has: docs/images/guide_*.svg."""

import re
from pathlib import Path

import numpy as np
from matplotlib import rc_context, style
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from prudent import Guarantee, PromiseMonitor, SelectiveClassifier
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


def stream(rng, n, noise):
    """Rows of one feature whose label is harder to tell where the noise is large."""
    rows = rng.normal(size=(n, 1))
    return rows, (rows[:, 0] + noise * rng.normal(size=n) > 0).astype(int)


def time(ax):
    """True errors of promises proved by random rows and by the latest ones."""
    rng, errors = np.random.default_rng(0), {"at random": [], "the latest": []}
    later = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]  # equally probable
    positive = norm.cdf(later[:, 0] / 0.7)
    for _ in range(100):
        X, y = stream(rng, 1000, np.where(np.arange(1000) < 700, 0.3, 0.7))
        for held_out, true in errors.items():
            model = SelectiveClassifier(
                LogisticRegression(), error_rate=0.1, random_state=0
            )
            times = {"time": np.arange(1000)} if held_out == "the latest" else {}
            model.fit(X, y, **times)
            answered = model.answers(later)
            wrong = np.abs(model.predict(later) - positive)[answered]
            true.append(wrong.mean() if answered.any() else 0.0)
    bins = np.arange(0, 0.3, 0.01)
    for (held_out, true), colour in zip(errors.items(), (RED, BLUE), strict=True):
        false = int((np.array(true) > 0.1).sum())
        label = f"held out {held_out}: {false} of 100 false"
        ax.hist(true, bins=bins, color=colour, alpha=0.6, label=label)
    ax.axvline(0.1, color=GREY, linestyle="--", label="promised: at most")
    ax.set(xlabel="true error of the answers after the change", ylabel="streams of 100")
    legend_beside(ax)


def choosing(ax):
    """How often 95 % limits of single thresholds are false somewhere on the curve."""
    page = (FOLDER.parent / "user_guide" / "choosing.rst").read_text(encoding="utf-8")
    body = page.split(".. list-table::")[1].split("\n\n")[1]
    rows, false = (re.findall(r"- (\d+)", line) for line in body.split("   * ")[1:])
    ax.plot([int(n) for n in rows], [int(n) for n in false], "o", color=BLUE)
    ax.axhline(5, color=RED, linestyle="--", label="what one expects")
    ax.set(
        xlabel="rows behind the curve", ylabel="samples with a false limit, %",
        ylim=(0, 100), xlim=(0, None),
    )  # fmt: skip
    legend_beside(ax)


def table(title):
    """Heads and lines of the table of other libraries whose title starts so."""
    page = (FOLDER.parent / "peers.rst").read_text(encoding="utf-8")
    body = page.split(f"\n{title}")[1].split(".. list-table::")[1].split("\n\n")[1]
    return [
        [
            cell.strip().removeprefix("- ").replace("\N{NO-BREAK SPACE}", " ")
            for cell in row.strip().splitlines()
        ]
        for row in body.split("   * ")[1:]
    ]


def name_rows(ax, names):
    """Names at the lines of a dot plot, the first one above."""
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()


def alarms(ax):
    """False alarms of each detector on each table of the page of other libraries."""
    head, *lines = table("Detectors asked for")
    sets = slice(head.index("milliseconds") + 1, None)
    for place, line in enumerate(lines):
        rates = [float(cell) for cell in line[sets]]
        ax.plot(rates, [place] * len(rates), "o", color=BLUE, alpha=0.6, markersize=4)
    ax.axvline(0.05, color=RED, linestyle="--")
    name_rows(ax, [line[0] for line in lines])
    ax.set(xlabel="false alarms on fresh ordinary rows; dashed: the 5 % asked for")


def sizes(ax):
    """Our sets over MAPIE's on each of ten tables, for each number of training rows."""
    _, *lines = table("On each of them")
    asked = "asked for the same 90 %"
    for place, (_, *cells) in enumerate(lines):
        for at_90, at_95 in zip(cells[::2], cells[1::2], strict=True):
            if "/" not in at_90:
                continue
            ours, theirs = (float(part.split()[0]) for part in at_90.split("/"))
            is_larger = "larger" in at_90
            colour, marker = (RED, "X") if is_larger else (BLUE, "o")
            label = (
                f"{asked}, ours larger" if is_larger else f"{asked}, ours not larger"
            )
            ax.plot(ours / theirs, place - 0.15, marker, color=colour, label=label)
            promised = float(at_95.split("/")[1].split()[0])
            style = {"marker": "|", "color": GREY, "markeredgewidth": 2}
            label = "both promise 90 %"
            ax.plot(ours / promised, place + 0.2, linestyle="", label=label, **style)
    ax.axvline(1, color=GREY, linestyle="--")
    name_rows(ax, [line[0] for line in lines])
    ax.set(xlabel="labels in our sets / in those of MAPIE's cross")
    found = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    legend_beside(ax, handles=[*found.values()], labels=[*found])


def errors(ax):
    """Errors of each method on each table, and their means."""
    head, *lines = table("Error out of fold")
    by_name = {line[0]: [float(cell) for cell in line[1:]] for line in lines[:-1]}
    means = by_name.pop("mean")
    order = sorted(range(len(means)), key=means.__getitem__)
    for place, j in enumerate(order):
        here = [row[j] for row in by_name.values()]
        label = "a table" if place == 0 else None
        ax.plot(here, [place] * len(here), "o", color=BLUE, alpha=0.5, label=label)
        label = "mean" if place == 0 else None
        ax.plot(means[j], place, "D", color=RED, label=label)
    name_rows(ax, [head[1:][j] for j in order])
    ax.set(xlabel="error out of fold", xlim=(0, None))
    legend_beside(ax)


def sets(ax):
    """Coverage and size of set-valued answers, of a promise of 90 % or of none."""
    head, *lines = table("Set-valued answers")
    ax.set_axis_off()
    left, right = ax.inset_axes((0, 0, 0.47, 1)), ax.inset_axes((0.53, 0, 0.47, 1))
    for panel, name in ((left, "coverage"), (right, "size")):
        values = [float(line[head.index(name)]) for line in lines]
        panel.plot(values, range(len(lines)), "o", color=BLUE)
        panel.set(xlabel=f"{name}, mean of six tables", ylim=(len(lines) - 0.5, -0.5))
        panel.grid(axis="y", alpha=0.3)
    left.axvline(0.9, color=RED, linestyle="--")
    left.set_yticks(range(len(lines)), [line[0] for line in lines])
    right.set_yticks(range(len(lines)), [""] * len(lines))


def answers(ax):
    """How much more than SGR the boundary answers on each table, by held-out rows."""
    head, *lines = table("Answered on each table")
    for held_out, cells, marker, colour in zip(
        head[1:], list(zip(*lines, strict=True))[1:], "os^", (BLUE, GREY, RED),
        strict=True,
    ):  # fmt: skip
        shares = [[float(part) for part in c.split("/")] for c in cells if "/" in c]
        more = [ours - theirs for ours, theirs in shares]
        places = [place for place, cell in enumerate(cells) if "/" in cell]
        ax.plot(more, places, marker, color=colour, alpha=0.7, label=held_out)
    ax.figure.set_size_inches(SIZE[0], 4.6)
    ax.axvline(0, color=GREY, linestyle="--")
    name_rows(ax, [line[0] for line in lines])
    ax.set(xlabel="share answered, ours less SGR's, at the same promise")
    legend_beside(ax)


PICTURES = (
    *(certification, monitoring, audits, time, choosing, alarms, sizes, errors, sets),
    answers,
)


def main():
    """Draw and save them."""
    for draw in PICTURES:
        with style.context(STYLE_FILE), rc_context(PLAIN):
            figure = Figure(SIZE, layout="constrained")
            draw(figure.subplots())
            figure.savefig(FOLDER / f"guide_{draw.__name__}.svg", metadata=NO_DATE)


if __name__ == "__main__":
    main()
