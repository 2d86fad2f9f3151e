"""The rare class missed in at most 5 %: held-out rows, the plug-in cut, and MAPIE.

On ten sets the rows outside the training part are the population, from which 1000
held-out rows are drawn with replacement, so that every true rate is known exactly.
MAPIE 1.6 controls the recall; a calibration that finds no threshold, after which its
`predict` raises an error, counts as one that flags every row.

python -m experiments.neyman_pearson_sets [--draws N]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.certification_sets import parts
from prudent import NeymanPearsonClassifier

SETS = (
    "adult", "banknote_authentication", "breast_cancer", "german_numer", "magic",
    "pima_diabetes", "pulsar", "qsar_biodegradation", "satellite", "segment",
)  # fmt: skip
LIMIT, CONFIDENCE, HELD_OUT = 0.05, 0.95, 1000
#: Scores of the rare class at and above the cut are answered with it.
Cut = Callable[[object, NDArray, NDArray], float]


def by_order_statistic(model: object, X: NDArray, y: NDArray) -> float:
    """The cut of `NeymanPearsonClassifier`."""
    rule = NeymanPearsonClassifier(
        FrozenEstimator(model), max_class_error={1: LIMIT}, confidence=CONFIDENCE
    )
    return float(rule.fit(X, y).thresholds_[1])


def by_plug_in(model: object, X: NDArray, y: NDArray) -> float:
    """The cut that misses 5 % of the held-out rows of the class."""
    scores = np.sort(model.predict_proba(X)[y == 1, 1])
    return float(scores[int(LIMIT * len(scores))])


def by_mapie(model: object, X: NDArray, y: NDArray) -> float:
    """Risk control of the recall; the largest of the thresholds found valid."""
    from mapie.risk_control import BinaryClassificationController

    controller = BinaryClassificationController(
        model.predict_proba,
        "recall",
        target_level=1 - LIMIT,
        confidence_level=CONFIDENCE,
        best_predict_param_choice="precision",
    )
    found = controller.calibrate(X, y).best_predict_param
    return 0.0 if found is None else float(found)


CUTS: dict[str, Cut] = {"order statistic": by_order_statistic, "plug-in": by_plug_in}


def measure(name: str, cuts: dict[str, Cut], draws: int) -> dict[str, NDArray]:
    """Broken promises, error of the other class, useless cuts and CPU seconds."""
    X, X_rest, y, y_rest = parts(name, 0)
    labels, count = np.unique(y_rest, return_counts=True)
    rare = labels[count.argmin()]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    model.fit(X, (y == rare).astype(int))
    truth = (y_rest == rare).astype(int)
    scores = model.predict_proba(X_rest)[:, 1]
    rng, found = np.random.default_rng(0), {cut: [] for cut in cuts}
    for _ in range(draws):
        drawn = rng.integers(len(truth), size=HELD_OUT)
        for cut, choose in cuts.items():
            start = time.process_time()
            threshold = choose(model, X_rest[drawn], truth[drawn])
            seconds = time.process_time() - start
            missed = (scores[truth == 1] < threshold).mean()
            other = (scores[truth == 0] >= threshold).mean()
            found[cut].append((missed > LIMIT, other, threshold <= 0, seconds))
    return {cut: np.array(rows, dtype=float) for cut, rows in found.items()}


def main() -> None:
    """Print a line for each set and rule, and the means over the sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    cuts = dict(CUTS)
    try:
        import mapie.risk_control  # noqa: F401
    except ImportError:
        print("MAPIE is not installed and left out")
    else:
        cuts["MAPIE"] = by_mapie
    all_sets: dict[str, list[NDArray]] = {cut: [] for cut in cuts}
    for name in options.sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = measure(name, cuts, options.draws)
        for cut, rows in found.items():
            all_sets[cut].append(rows)
            print(f"{name}: {cut} {line(rows)}", flush=True)
    for cut, rows in all_sets.items():
        print(f"all: {cut} {line(np.concatenate(rows))}")


def line(rows: NDArray) -> str:
    """Broken promises, other error, cuts that flag all, milliseconds a calibration."""
    broken, other, useless, seconds = rows.T
    return (
        f"broken {broken.sum():.0f} of {len(rows)}, error of the other class "
        f"{other.mean():.3f}, all flagged {useless.sum():.0f}, "
        f"{1000 * seconds.mean():.1f} ms"
    )


if __name__ == "__main__":
    main()
