"""Tables 1 and 2 of Lanckriet et al. (2002): iteration; stated and measured accuracy.

Table 2: random splits into 90 % training and 10 % test rows, in blocks of ten. `alpha`
is the worst-case accuracy that a fit states for its plug-in moments. Declared before
measuring: sigma of the Gaussian kernel exp(-|x - y|^2 / sigma) is the best of a grid of
multiples of the median squared distance, by `N_INNER` inner splits of the first
training part of each block; rho is 1e-3 and 1e-2 of the kernel's diagonal, and the
first of the two chooses sigma. C of the support vector machines: 1 linear, the best of
1, 10 and 100 Gaussian.

The last two tables were made after those columns had been seen. One has rho 1e-5, a
wider grid, and sigma once by the paper's rule (cross-validation over `N_PARTITIONS`
random partitions of the training set), once as the value whose mean alpha is the
printed one. The other has the rates of all constants, least and largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from experiments.benchmark_data import load
from experiments.cells import Scale, Tasks
from experiments.table import Table, against, with_reasons
from prudent import MinimaxProbabilityClassifier
from prudent.minimax import solve

#: name -> alpha and accuracy linear, alpha and accuracy Gaussian, best of Breiman,
#: support vector machine linear, Gaussian; percent as printed
PAPER = {
    "twonorm": (80.4, 95.8, 91.3, 95.7, 96.3, 95.1, 96.1),
    "breast_cancer_wisconsin": (84.4, 97.0, 89.1, 96.9, 96.8, 96.4, 96.5),
    "ionosphere": (65.5, 83.4, 89.3, 91.5, 93.7, 87.1, 94.1),
    "pima_diabetes": (32.2, 76.3, 32.5, 76.2, 76.1, 77.9, 77.9),
    "sonar": (67.0, 74.9, 99.9, 87.5, None, 76.1, 86.6),
}
LINEAR = ("linear alpha", "linear accuracy")
GAUSSIAN = ("Gaussian alpha", "Gaussian accuracy", "alpha at 1e-2", "accuracy at 1e-2")
MACHINES = ("SVML", "SVMG")
RHO = (1e-3, 1e-2)
MULTIPLES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
N_INNER, BLOCK = 3, 10
#: Of the last table: rho, sigma, and the partitions that choose it.
SMALL_RHO, N_PARTITIONS = 1e-5, 50
SIGMAS = tuple(m * 10.0**power for power in range(-1, 5) for m in (1, 2, 5))
#: Constants of Table 1's least-squares step.
DELTAS = (0.0, 1e-8, 1e-4, 1e-2, 1.0)
#: Test parts of the runs with fewer training rows, and their sets.
TEST_SIZES, FEWER_ROWS = (0.2, 0.3), ("ionosphere", "sonar")
#: Constants of the support vector machines of the last table.
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
REASONS = {
    "a": "alpha grows as the training rows get fewer, and meets the printed one from "
    "70 % (ionosphere) and 80 % (sonar) of them, as the notes say. The paper's alpha "
    "seems to belong to fewer training rows than the 90 % of its text.",
    "b": "twonorm is drawn anew, 300 rows; how many the paper drew is not stated. The "
    "best possible accuracy is 97.7, alpha of the true moments is 80.",
    "c": "the paper's splits are not published. They have an error of their own, "
    "about as large as ours.",
    "d": "alpha with a kernel depends on rho, which the paper does not state (Theorem "
    "6 with rho = 0 gives 100 on every set), and on sigma, which it tunes by "
    "cross-validation over 50 partitions of the training set, on a grid that it does "
    "not state. These columns choose sigma by three inner splits of one training part "
    "in ten, up to two medians. With a smaller rho and a wider grid the printed alpha "
    "is met: the table with rho = 1e-5.",
    "e": "the paper states neither rho, C nor the grid of sigma; the last table of "
    "this page has the rates of other values.",
    "f": "the printed pair belongs to another rho, which the paper does not state, or "
    "to other splits.",
    "g": "rho and the grid of sigma are not stated; with this rho cross-validation "
    "takes another sigma than the one of the printed alpha.",
}


def twonorm(n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Breiman (1998): two normal classes in 20 dimensions, means at -+a 1."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, 20)) + (2 * y[:, None] - 1) * 2 / np.sqrt(20)
    return X, y


def complete_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a data set without missing cells; pima normalised, as in the paper."""
    if name == "twonorm":
        return twonorm()
    X, y = load(name)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    return (X - X.mean(axis=0)) / X.std(axis=0) if name == "pima_diabetes" else X, y


def splits(name: str, seeds: range) -> Iterator[list[np.ndarray]]:
    """Training and test part of each split."""
    X, y = complete_rows(name)
    for seed in seeds:
        yield train_test_split(X, y, test_size=0.1, random_state=seed)


def linear(name: str, n_splits: int) -> dict[str, list[float]]:
    """Alpha and accuracy of the linear rule, and accuracy of the linear SVM."""
    found: dict[str, list[float]] = {key: [] for key in (*LINEAR, "SVML")}
    for X, X_test, y, y_test in splits(name, range(n_splits)):
        model = MinimaxProbabilityClassifier().fit(X, y)
        found[LINEAR[0]].append(100 * model.worst_case_accuracy_)
        found[LINEAR[1]].append(100 * model.score(X_test, y_test))
        machine = SVC(kernel="linear", C=1.0, max_iter=1_000_000).fit(X, y)
        found["SVML"].append(100 * machine.score(X_test, y_test))
    return found


def best_of(makers: dict[Any, Callable[[], Any]], X: np.ndarray, y: np.ndarray) -> Any:
    """Key of the model with the best mean accuracy over inner splits."""
    scores = dict.fromkeys(makers, 0.0)
    for seed in range(N_INNER):
        A, B, a, b = train_test_split(X, y, test_size=0.1, random_state=1000 + seed)
        for key, make in makers.items():
            scores[key] += make().fit(A, a).score(B, b)
    return max(scores, key=scores.__getitem__)


def gaussian(name: str, block: int, size: int) -> dict[str, list[float]]:
    """Kernel columns of a block of splits, with the sigma of this block."""
    parts = list(splits(name, range(block * size, (block + 1) * size)))
    X, _, y, _ = parts[0]
    median = float(np.median(euclidean_distances(X, squared=True)))
    gammas = [1 / (multiple * median) for multiple in MULTIPLES]
    gamma = best_of({g: partial(minimax, g, RHO[0]) for g in gammas}, X, y)
    machines = {
        (g, C): partial(SVC, gamma=g, C=C) for g in gammas for C in (1.0, 10.0, 100.0)
    }
    machine = machines[best_of(machines, X, y)]
    found: dict[str, list[float]] = {key: [] for key in (*GAUSSIAN, "SVMG", "sigma")}
    for X, X_test, y, y_test in parts:
        for rho, keys in zip(RHO, (GAUSSIAN[:2], GAUSSIAN[2:]), strict=True):
            model = minimax(gamma, rho).fit(X, y)
            found[keys[0]].append(100 * model.worst_case_accuracy_)
            found[keys[1]].append(100 * model.score(X_test, y_test))
        found["SVMG"].append(100 * machine().fit(X, y).score(X_test, y_test))
    return {**found, "sigma": [1 / gamma]}


def small_radius(name: str, n_splits: int, n_partitions: int) -> dict[str, Any]:
    """Alpha and accuracy of every sigma at the small rho, and its inner accuracy.

    The inner partitions are those of the training part of the first split.
    """
    parts = list(splits(name, range(n_splits)))
    X, _, y, _ = parts[0]
    makers = [partial(minimax, 1 / sigma, SMALL_RHO) for sigma in SIGMAS]
    inner = np.zeros((n_partitions, len(SIGMAS)))
    for seed in range(n_partitions):
        A, B, a, b = train_test_split(X, y, test_size=0.1, random_state=1000 + seed)
        inner[seed] = [100 * make().fit(A, a).score(B, b) for make in makers]
    outer = np.zeros((2, n_splits, len(SIGMAS)))
    for i, (X, X_test, y, y_test) in enumerate(parts):
        models = [make().fit(X, y) for make in makers]
        outer[0, i] = [100 * model.worst_case_accuracy_ for model in models]
        outer[1, i] = [100 * model.score(X_test, y_test) for model in models]
    return {
        "inner": inner.mean(axis=0).tolist(),
        "alpha": outer[0].tolist(),
        "accuracy": outer[1].tolist(),
    }


def matched(name: str, n_splits: int) -> dict[str, Any]:
    """The sigma whose mean alpha is the printed one, by bisection, and what it gives.

    Alpha falls with sigma beyond the sigma of the largest alpha, where it begins.
    """
    parts = list(splits(name, range(n_splits)))
    X, _, y, _ = parts[0]
    by_sigma = {
        sigma: minimax(1 / sigma, SMALL_RHO).fit(X, y).worst_case_accuracy_
        for sigma in SIGMAS
    }
    low, high = np.log(max(by_sigma, key=by_sigma.__getitem__)), np.log(SIGMAS[-1])
    for _ in range(12):
        middle = (low + high) / 2
        outer = []
        for X, X_test, y, y_test in parts:
            model = minimax(np.exp(-middle), SMALL_RHO).fit(X, y)
            accuracy = 100 * model.score(X_test, y_test)
            outer.append((100 * model.worst_case_accuracy_, accuracy))
        alpha, accuracies = np.transpose(outer)
        above = alpha.mean() > PAPER[name][2]
        low, high = (middle, high) if above else (low, middle)
    return {
        "sigma": float(np.exp(middle)),
        "alpha": alpha.tolist(),
        "accuracy": accuracies.tolist(),
    }


def fewer_rows(name: str, n_splits: int) -> list[float]:
    """Mean alpha of the linear rule for each larger test part."""
    X, y = complete_rows(name)
    alphas = np.empty((len(TEST_SIZES), n_splits))
    for i, size in enumerate(TEST_SIZES):
        for seed in range(n_splits):
            A, _, a, _ = train_test_split(X, y, test_size=size, random_state=seed)
            model = MinimaxProbabilityClassifier().fit(A, a)
            alphas[i, seed] = 100 * model.worst_case_accuracy_
    return alphas.mean(axis=1).tolist()


def machines(name: str, n_splits: int) -> dict[str, list[float]]:
    """Mean accuracy of support vector machines for each of their constants."""
    X, y = complete_rows(name)
    median = float(np.median(euclidean_distances(X, squared=True)))
    linear_kernel: dict[str, Any] = {"kernel": "linear", "max_iter": 100_000}
    makers = {
        "SVML": [partial(SVC, C=C, **linear_kernel) for C in PENALTIES],
        "SVMG": [
            partial(SVC, gamma=1 / (multiple * median), C=C)
            for multiple in MULTIPLES
            for C in PENALTIES
        ],
    }
    rates = {key: np.zeros(len(made)) for key, made in makers.items()}
    for X, X_test, y, y_test in splits(name, range(n_splits)):
        for key, made in makers.items():
            rates[key] += [
                100 * make().fit(X, y).score(X_test, y_test) for make in made
            ]
    return {key: (values / n_splits).tolist() for key, values in rates.items()}


def minimax(gamma: float, rho: float) -> MinimaxProbabilityClassifier:
    """Kernel rule with the covariance radius rho."""
    return MinimaxProbabilityClassifier(
        kernel="rbf", gamma=gamma, covariance_radius=rho
    )


def table1(gap: np.ndarray, Sx: np.ndarray, Sy: np.ndarray, delta: float) -> float:
    """Kappa after 1000 steps of the paper's Table 1 with its constant delta."""
    start = gap / (gap @ gap)
    F = np.linalg.svd(gap[None])[2][1:].T
    beta = eta = 1.0
    for _ in range(1000):
        M = F.T @ (Sx / beta + Sy / eta) @ F + delta * np.eye(F.shape[1])
        a = start - F @ np.linalg.solve(M, F.T @ (Sx / beta + Sy / eta) @ start)
        beta, eta = np.sqrt(a @ Sx @ a), np.sqrt(a @ Sy @ a)
    return 1 / (beta + eta)


def iteration() -> dict[str, list[float]]:
    """Relative error of kappa for each delta, ten random problems of ten dimensions."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(10):
        gap, roots = rng.normal(size=10), rng.normal(size=(2, 10, 10))
        Sx, Sy = roots @ roots.transpose(0, 2, 1) / 10
        kappa = solve(gap, Sx, Sy).kappa
        errors.append([table1(gap, Sx, Sy, delta) / kappa - 1 for delta in DELTAS])
    return {"mean": np.mean(errors, axis=0), "worst": np.abs(errors).max(axis=0)}


def cells(scale: Scale) -> Tasks:
    """Linear columns by set, kernel columns by block of splits."""
    n_blocks, size = (1, 3) if scale == "quick" else (5, BLOCK)
    tasks: dict[str, Callable[[], Any]] = {"iteration": iteration}
    for name in PAPER:
        tasks[f"{name}/linear"] = partial(linear, name, n_blocks * size)
        for block in range(n_blocks):
            tasks[f"{name}/gaussian/{block}"] = partial(gaussian, name, block, size)
        n_partitions = 3 if scale == "quick" else N_PARTITIONS
        tasks[f"small radius/{name}"] = partial(
            small_radius, name, n_blocks * size, n_partitions
        )
        tasks[f"matched/{name}"] = partial(matched, name, n_blocks * size)
        tasks[f"machines/{name}"] = partial(machines, name, n_blocks * size)
    for name in FEWER_ROWS:
        tasks[f"fewer rows/{name}"] = partial(fewer_rows, name, n_blocks * size)
    return tasks


def columns_of(found: dict[str, Any], name: str) -> dict[str, list[float]]:
    """All values of each column of a set."""
    columns: dict[str, list[float]] = {}
    for key, value in found.items():
        if key.split("/")[0] == name:
            for column, values in value.items():
                columns.setdefault(column, []).extend(values)
    return columns


def tables(found: dict[str, Any]) -> list[Table]:
    """Table 1, Table 2, and Table 2 with other constants."""
    return [first(found["iteration"]), second(found), third(found), fourth(found)]


def first(errors: dict[str, list[float]]) -> Table:
    """What the iteration of Table 1 ends at."""
    rows = [
        (f"{delta:g}", f"{mean:+.1e}", f"{worst:.1e}")
        for delta, mean, worst in zip(
            DELTAS, errors["mean"], errors["worst"], strict=True
        )
    ]
    return Table(
        "Table 1: where its iteration ends",
        ("delta", "mean relative error of kappa", "largest"),
        rows,
        (
            "The table is an algorithm; the library solves for an exact root instead. "
            "Here it ran 1 000 steps on ten random problems of ten dimensions. Its "
            "constant delta does not vanish, so a large one ends at another point.",
        ),
        items=("Table 1",),
    )


def second(found: dict[str, Any]) -> Table:
    """All columns of Table 2."""
    rows, n_splits, below = [], 0, np.zeros(3, dtype=int)
    pairs = (LINEAR, GAUSSIAN[:2], GAUSSIAN[2:])
    for name, paper in PAPER.items():
        columns = columns_of(found, name)
        below += [np.mean(columns[a]) < np.mean(columns[b]) for a, b in pairs]
        n_splits = len(columns["SVMG"])

        def cell(key: str, theirs: float | None, reason: str, c=columns) -> str:
            values = np.array(c[key])
            error = float(values.std() / np.sqrt(len(values)))
            return against(float(values.mean()), theirs, error, reason)

        own, kernel = ("b", "b") if name == "twonorm" else ("a", "e")
        rows.append(
            (
                name,
                cell(LINEAR[0], paper[0], own),
                cell(LINEAR[1], paper[1], "b" if own == "b" else "c"),
                cell(GAUSSIAN[0], paper[2], "d"),
                cell(GAUSSIAN[1], paper[3], kernel),
                cell(GAUSSIAN[2], paper[2], "d"),
                cell(GAUSSIAN[3], paper[3], kernel),
                "none" if paper[4] is None else f"{paper[4]} (quoted)",
                cell("SVML", paper[5], kernel),
                cell("SVMG", paper[6], kernel),
                "{:.3g} to {:.3g}".format(min(columns["sigma"]), max(columns["sigma"])),
            )
        )
    fewer = [
        f"{name} {alpha:.1f} from {1 - size:.0%} of the rows"
        for name in FEWER_ROWS
        for size, alpha in zip(TEST_SIZES, found[f"fewer rows/{name}"], strict=True)
    ]
    table = Table(
        f"Table 2: {n_splits} random splits 90/10, percent",
        ("data", *LINEAR, *GAUSSIAN, "BPB", *MACHINES, "our sigma"),
        rows,
        (
            f"Alpha lies below the measured accuracy on {below[0]} of 5 sets linear, "
            f"on {below[1]} with the kernel at rho = 1e-3, on {below[2]} at 1e-2.",
            "Gaussian columns: rho is 1e-3 of the kernel's diagonal, then 1e-2, "
            "declared before measuring. BPB is the best result of Breiman (1998), a "
            "constant.",
            f"Linear alpha with fewer training rows: {', '.join(fewer)}.",
        ),
        items=("Table 2",),
    )
    return with_reasons(table, REASONS)


def third(found: dict[str, Any]) -> Table:
    """Gaussian columns at the small rho: sigma by cross-validation, and by alpha."""
    rows = []
    for name, paper in PAPER.items():
        tuned, there = found[f"small radius/{name}"], found[f"matched/{name}"]
        best = int(np.argmax(tuned["inner"]))
        pairs = [np.array(tuned[key])[:, best] for key in ("alpha", "accuracy")]
        row, other = [name], "b" if name == "twonorm" else "f"
        for sigma, columns, reason in (
            (SIGMAS[best], pairs, "g"),
            (there["sigma"], [there["alpha"], there["accuracy"]], other),
        ):
            row.append(f"{float(f'{sigma:.3g}'):g}")
            for values, theirs in zip(columns, paper[2:4], strict=True):
                error = float(np.std(values) / np.sqrt(len(values)))
                row.append(against(float(np.mean(values)), theirs, error, reason))
        rows.append(tuple(row))
    others = [
        f"{name} at sigma {sigma:g} "
        + " / ".join(
            f"{np.mean(found[f'small radius/{name}'][key], axis=0)[i]:.1f}"
            for key in ("alpha", "accuracy")
        )
        for name, sigma in (("sonar", 1.0), ("pima_diabetes", 2000.0))
        for i in [SIGMAS.index(sigma)]
    ]
    table = Table(
        f"Table 2, Gaussian kernel with rho = {SMALL_RHO:g}, percent",
        (
            *("data", "sigma tuned", "alpha", "accuracy"),
            *("sigma of the printed alpha", "alpha there", "accuracy there"),
        ),
        rows,
        (
            f"The same {len(pairs[0])} splits. Tuned: of {len(SIGMAS)} values from "
            f"{SIGMAS[0]:g} to {SIGMAS[-1]:g} the best mean accuracy over "
            f"{N_PARTITIONS} random partitions of the first training part, the paper's "
            "rule. Of the printed alpha: chosen after the fact, by bisection, to ask "
            "whether the printed pair exists; rho was chosen after the columns of "
            "Table 2 had been seen.",
            f"Round values of sigma: {', '.join(others)}.",
        ),
    )
    return with_reasons(table, REASONS)


def fourth(found: dict[str, Any]) -> Table:
    """Least and largest accuracy over constants that the paper does not state."""
    rows = []
    for name, paper in PAPER.items():
        kernel = np.mean(found[f"small radius/{name}"]["accuracy"], axis=0)
        columns = (kernel, *(found[f"machines/{name}"][key] for key in MACHINES))
        cells = [
            f"{np.min(values):.1f} to {np.max(values):.1f} / {theirs}"
            for values, theirs in zip(columns, (paper[3], *paper[5:]), strict=True)
        ]
        rows.append((name, *cells))
    return Table(
        "Table 2: accuracy over the constants that the paper leaves out, percent",
        ("data", *(f"{c}: least to largest / paper" for c in ("kernel", *MACHINES))),
        rows,
        (
            f"Means of the same splits. Kernel: rho {SMALL_RHO:g}, {len(SIGMAS)} "
            f"values of sigma from {SIGMAS[0]:g} to {SIGMAS[-1]:g}. Machines: C "
            f"{', '.join(f'{C:g}' for C in PENALTIES)}, the Gaussian one with "
            f"{len(MULTIPLES)} values of sigma from {MULTIPLES[0]:g} to "
            f"{MULTIPLES[-1]:g} medians of the squared distance.",
        ),
    )
