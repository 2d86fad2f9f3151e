"""False discovery rate and power of `detector.select`, simulated and on five sets.

Simulated: every number of calibration rows, of rows of a batch and share of unusual
rows; z is the excess of the measured rate over the promise in standard errors. On the
sets the most frequent class is ordinary and one row in ten of a batch is of another
class; each repetition has detector, calibration rows and batch of its own. Flagging
p-values of at most 5 % stands beside. "Learned" is `select_unusual`, of the rows that
the detectors are fitted to.

python -m experiments.selection_sets [--simulations N] [--repetitions N] [--batch N]
    [--detectors NAME ...]
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmark_data import load
from prudent import (
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    select_unusual,
)
from prudent.core.selection import select_rows

RATE, CONFIDENCE = 0.1, 0.9
RULES: dict[str, dict[str, Any]] = {
    "one": {},
    "storey": {"null_share": "storey"},
    "given calibration": {"confidence": CONFIDENCE},
}
SETS = ("pulsar", "satellite", "banknote_authentication", "optdigits", "magic")
DETECTORS = {
    "minimax": partial(MinimaxOutlierDetector, covariance="ledoit_wolf"),
    "low density": LowDensityRejector,
    "conformal": partial(ConformalDetector, method="split"),
    "learned": None,
}
MOST_ROWS = 1000


def p_values(calibration: NDArray, scores: NDArray) -> NDArray:
    """Share of calibration rows and the row itself that score no higher."""
    below = np.searchsorted(np.sort(calibration), scores, side="right")
    return (1 + below) / (len(calibration) + 1)


def shares(mask: NDArray, unusual: NDArray) -> tuple[float, float]:
    """Share of wrong ones among the rows selected, and of unusual rows found."""
    wrong = (mask & ~unusual).sum() / max(1, mask.sum())
    return float(wrong), float((mask & unusual).sum() / max(1, unusual.sum()))


def simulate(n_simulations: int) -> None:
    """Normal scores, unusual ones three standard deviations lower."""
    rng = np.random.default_rng(0)
    worst = dict.fromkeys(RULES, -np.inf)
    for m, n, share in itertools.product(
        (50, 200, 1000), (20, 100, 500), (0, 0.1, 0.3)
    ):
        unusual = np.arange(n) < round(share * n)
        found = {rule: [] for rule in RULES}
        for _ in range(n_simulations):
            p = p_values(rng.normal(size=m), rng.normal(size=n) - 3 * unusual)
            for rule, options in RULES.items():
                mask = select_rows(p, m, rate=RATE, **options).mask
                found[rule].append(shares(mask, unusual))
        cells = []
        for rule, rows in found.items():
            rate, power = np.mean(rows, axis=0)
            error = np.std(rows, axis=0)[0] / np.sqrt(n_simulations)
            # "storey" promises the rate itself, the others that times ordinary rows.
            promised = RATE * (1 if rule == "storey" else 1 - unusual.mean())
            z = (rate - promised) / error if error else -np.inf
            worst[rule] = max(worst[rule], z)
            cells.append(f"{rule} {rate:.3f}/{power:.2f}")
        print(f"m {m}, n {n}, unusual {share:.0%}: {'; '.join(cells)}", flush=True)
    print("largest z:", ", ".join(f"{rule} {z:.2f}" for rule, z in worst.items()))


def one_repetition(
    X: NDArray, y: NDArray, make: Any, n_rows: int, seed: int
) -> list[float]:
    """Rates and powers of a selection and of p <= 0.05 on one batch."""
    rng = np.random.default_rng(seed)
    labels, count = np.unique(y, return_counts=True)
    ordinary = rng.permutation(X[y == labels[count.argmax()]])
    others = rng.permutation(X[y != labels[count.argmax()]])
    n_fit = min(len(ordinary) // 2, MOST_ROWS)
    n_unusual = n_rows // 10
    rows = ordinary[n_fit : n_fit + n_rows - n_unusual]
    unusual = np.arange(len(rows) + n_unusual) >= len(rows)
    batch = np.vstack([rows, others[:n_unusual]])
    if make is None:
        found = select_unusual(ordinary[:n_fit], batch, random_state=seed)
    else:
        found = make(random_state=seed).fit(ordinary[:n_fit]).select(batch)
    flagged = found.p_values <= 0.05
    return [*shares(found.mask, unusual), *shares(flagged, unusual)]


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--detectors", nargs="+", default=list(DETECTORS))
    options = parser.parse_args()
    simulate(options.simulations)
    for name, kind in itertools.product(SETS, options.detectors):
        X, y = load(name)
        repetitions = options.repetitions // (10 if kind == "low density" else 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = np.array(
                [
                    one_repetition(X, y, DETECTORS[kind], options.batch, seed)
                    for seed in range(repetitions)
                ]
            )
        rate, power, plain_rate, plain_power = cells.mean(axis=0)
        error = cells[:, 0].std() / np.sqrt(len(cells))
        print(
            f"{name}, {kind}: {rate:.3f} ± {error:.3f} / {power:.2f}; "
            f"p <= .05: {plain_rate:.2f} / {plain_power:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
