"""Figure 1 of El-Yaniv and Nisenson: type II error against the divergence bound.

Two families of targets on 50 events, false-alarm rate .05, 50 draws for each bound in
0.5, 1.0, ..., 12.5 bits. The paper plots means with error bars and prints no numbers.
One game more: both rules against the optimum for an intruder whose law is known.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import norm

from experiments.cells import Scale, Tasks
from experiments.table import Table, save_picture
from prudent import RejectionGame

N, RATE = 50, 0.05
EDGES = np.linspace(-10, 10, N + 1)
SHOWN = (0.01, 0.05, 0.1, 0.2, 0.4)


def random_target(bound: float, rng: np.random.Generator) -> np.ndarray:
    """Any pmf whose least probability is at most 2^-bound, drawn first."""
    least = rng.uniform(0, 2.0**-bound)
    rest = 1 - rng.uniform(size=N - 1)
    return np.append(least, rest * (1 - least) / rest.sum())


def _first_bin(deviation: float) -> float:
    return float(np.diff(norm.cdf(EDGES[:2] / deviation))[0])


def gaussian_target(bound: float, rng: np.random.Generator) -> np.ndarray:
    """Discretised N(0, sigma); the first bin has 1e-300 < p <= 2^-bound if possible."""
    smallest = brentq(lambda s: np.log(_first_bin(s)) - np.log(1e-300), 0.256, 1)
    largest = 10 * smallest
    if _first_bin(100.0) > 2.0**-bound:
        largest = brentq(lambda s: _first_bin(s) - 2.0**-bound, smallest, 5)
    half = np.diff(norm.cdf(EDGES / rng.uniform(smallest, largest)))[: N // 2]
    p = np.append(half, half[::-1])
    return p / p.sum()


FAMILIES = {"random pmf": random_target, "discretised Gaussian": gaussian_target}


def miss_rates(family: str, bound: float, n_draws: int, seed: int = 0) -> np.ndarray:
    """Type II error of the best hard and soft rule, one row a draw."""
    rng = np.random.default_rng((seed, round(2 * bound)))
    rows = []
    while len(rows) < n_draws:
        p = FAMILIES[family](bound, rng)
        if -np.log2(p.min()) < bound:
            continue  # no intruder is that far away
        curve = (
            RejectionGame(false_alarm_rate=RATE, divergence_bound=bound)
            .fit(p)
            .security_curve([RATE])
        )
        rows.append((curve.hard_miss_rates[0], curve.soft_miss_rates[0]))
    return np.array(rows)


def curves(bound: float = 8.0) -> dict[str, Any]:
    """Security curves of one random target, and the optimum for two known intruders."""
    p = random_target(bound, np.random.default_rng(1))
    game = RejectionGame(false_alarm_rate=RATE, divergence_bound=bound).fit(p)
    rates = np.linspace(0, 0.5, 101)
    curve = game.security_curve(rates)
    return {
        "rate": rates,
        "hard": curve.hard_miss_rates,
        "soft": curve.soft_miss_rates,
        "known mixture": curve.known_miss_rates(game.adversary_mixture_),
        "known intruder": curve.known_miss_rates(game.adversary_),
    }


def cells(scale: Scale) -> Tasks:
    """One cell a family and bound, and the curves."""
    quick = scale == "quick"
    bounds = (5.0, 8.0, 12.5) if quick else np.arange(0.5, 12.6, 0.5)
    tasks: dict[str, Any] = {
        f"{family}/{bound:g}": partial(miss_rates, family, bound, 10 if quick else 50)
        for family in FAMILIES
        for bound in bounds
    }
    return {**tasks, "curves": curves}


def tables(found: dict[str, Any]) -> list[Table]:
    """Figure 1 and the price of not knowing the intruder."""
    draws: dict[str, dict[float, np.ndarray]] = {family: {} for family in FAMILIES}
    for key, values in found.items():
        if key != "curves":
            family, bound = key.split("/")
            draws[family][float(bound)] = np.array(values)
    return [figure1(draws), price(found["curves"])]


def summary(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error."""
    return draws.mean(axis=0), draws.std(axis=0) / len(draws) ** 0.5


def figure1(draws: dict[str, dict[float, np.ndarray]]) -> Table:
    """Means with error bars, as numbers and as the paper's two panels."""
    rows = []
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, letter, (family, by_bound) in zip(
        panels, "ab", draws.items(), strict=True
    ):
        bounds = sorted(by_bound)
        for bound in bounds:
            mean, error = summary(by_bound[bound])
            n = len(by_bound[bound])
            better = int(np.sum(by_bound[bound][:, 1] < by_bound[bound][:, 0]))
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
            rows.append((family, bound, *cells, f"{better}/{n}"))
        means, errors = np.transpose([summary(by_bound[b]) for b in bounds], (1, 2, 0))
        for j, (name, style) in enumerate((("hard", "C0o-"), ("soft", "C1s-"))):
            axes.errorbar(
                bounds, means[j], errors[j], fmt=style, ms=3, capsize=2, label=name
            )
        axes.set(title=f"({letter}) {family}", xlabel="Λ (bits)", ylim=(0, 1.02))
    panels[0].set_ylabel("type II error")
    panels[0].legend()
    return Table(
        "Figure 1: type II error against the divergence bound (bits)",
        ("family", "bound", "hard", "soft", "soft strictly better"),
        rows,
        (
            "The paper draws means with error bars and prints no numbers; its caption "
            "says 0.5, 0.1, ..., 12.5 and means 0.5, 1.0, ..., 12.5.",
            "The Gaussian family does not agree with an independent run everywhere: "
            "the paper does not state its smallest standard deviation.",
        ),
        (save_picture(figure, "adversarial_figure1.svg"),),
        items=("Figure 1",),
    )


def price(found: dict[str, Any]) -> Table:
    """Both rules against the optimum for a known intruder."""
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    axes = figure.subplots()
    names = [name for name in found if name != "rate"]
    for name, style in zip(names, ("C0-", "C1-", "C2--", "C3:"), strict=True):
        axes.plot(found["rate"], found[name], style, label=name)
    axes.set(xlabel="false-alarm rate", ylabel="type II error", ylim=(0, 1.02))
    axes.legend()
    at = np.searchsorted(found["rate"], np.array(SHOWN) - 1e-9)
    rows = [[name, *np.array(found[name])[at].round(3).tolist()] for name in names]
    return Table(
        "Beyond the paper: the price of not knowing the intruder",
        ("type II error of", *(f"rate {rate:g}" for rate in SHOWN)),
        rows,
        (
            "A random target, Λ = 8 bits. *Known mixture*: the intruders' mixture that "
            f"is worst at the rate {RATE:g}, where by minimax the soft rule loses "
            "nothing to it; *known intruder*: one worst intruder of two events.",
        ),
        (save_picture(figure, "adversarial_price.svg"),),
    )
