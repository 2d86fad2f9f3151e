"""Laws whose truth is known, small and nasty, to draw rows from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.types import FloatArray

Rows = tuple[FloatArray, NDArray[Any]]
Draw = Callable[[int, np.random.Generator], Rows]
Noise = Callable[[np.random.Generator, tuple[int, int]], FloatArray]

INDEPENDENT = "independent rows"
NORMAL = "normal classes"
UNIMODAL = "unimodal classes"


@dataclass(frozen=True)
class Law:
    """A law of rows and labels, of which the truth is known.

    Parameters
    ----------
    name : str
        How it is called in the table of an audit.
    draw : callable
        (n, rng) -> (X, y): `n` rows and their labels, `rng` a NumPy Generator.
    truth : tuple of arrays (X, y, probabilities), default=None
        All rows of a finite law, of which every rate is then a sum. None: rates are
        counted on rows drawn afresh for each model, and their random error is allowed
        for.
    satisfies : collection of str, default=("independent rows",)
        Which assumptions hold: "independent rows", "normal classes", "unimodal
        classes" (which normal ones are, too).
    sizes : tuple of int, default=None
        Sizes of its own, in place of those an audit takes by default.
    has_several_classes : bool, default=False
        Whether the rows are of several classes. A detector sees them together: where
        its classes are normal or unimodal, the law of all rows need not be.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.auditing import Law
    >>> coin = Law.finite("coin", [[0.0], [0.0]], [0, 1], [0.5, 0.5])
    >>> coin.draw(3, np.random.default_rng(0))[1]
    array([1, 0, 0])
    """

    name: str
    draw: Draw
    truth: tuple[FloatArray, NDArray[Any], FloatArray] | None = None
    satisfies: tuple[str, ...] | frozenset[str] = (INDEPENDENT,)
    sizes: tuple[int, ...] | None = None
    has_several_classes: bool = False

    def holding(self, *, detects: bool) -> frozenset[str]:
        """Which assumptions hold, those that follow from others too.

        Where the method detects, they are about all rows together.
        """
        named = frozenset(self.satisfies)
        if detects and self.has_several_classes:
            return named - {NORMAL, UNIMODAL}
        return named | {UNIMODAL} if NORMAL in named else named

    @classmethod
    def finite(
        cls,
        name: str,
        X: ArrayLike,
        y: ArrayLike,
        probabilities: ArrayLike | None = None,
        **settings: Any,
    ) -> Law:
        """Law on finitely many rows; equally probable ones make a table a law.

        Parameters
        ----------
        name : str
            As for the class.
        X : array-like of shape (n_atoms, n_features)
            Rows.
        y : array-like of shape (n_atoms,)
            Their labels.
        probabilities : array-like of shape (n_atoms,), default=None
            They sum to 1; None: all equal.
        **settings
            `satisfies`, `sizes`, `has_several_classes`.

        Returns
        -------
        Law
        """
        rows, labels = np.asarray(X), np.asarray(y)
        if probabilities is None:
            chances = np.full(len(rows), 1 / len(rows))
        else:
            chances = np.asarray(probabilities, dtype=np.float64)
        if not (len(rows) == len(labels) == len(chances)) or np.any(chances < 0):
            raise ValueError(
                f"law {name!r}: `X`, `y` and `probabilities` must have one entry for "
                "each row, and no probability may be negative."
            )
        chances = chances / chances.sum()
        return cls(
            name,
            partial(_draw_atoms, rows, labels, chances),
            (rows, labels, chances),
            **settings,
        )


def _draw_atoms(
    rows: FloatArray,
    labels: NDArray[Any],
    chances: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> Rows:
    """Draw n rows of a finite law, with their labels."""
    chosen = rng.choice(len(rows), size=n, p=chances)
    return rows[chosen], labels[chosen]


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.standard_normal(shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.standard_t(2.5, shape)


def _contaminated(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    far = rng.random(shape[0]) < 0.05
    return rng.standard_normal(shape) * np.where(far, 20.0, 1.0)[:, None]


def _two_classes(
    n: int,
    rng: np.random.Generator,
    *,
    noise: Noise = _normal,
    columns: int = 3,
    share: float = 0.5,
    flipped: float = 0.0,
    matrix: FloatArray | None = None,
    shift: float = 0.0,
) -> Rows:
    """Noise, moved by 2 in the first column for class 1; then a linear map."""
    y = (rng.random(n) < share).astype(int)
    X = noise(rng, (n, columns))
    X[:, 0] += 2.0 * y
    y = np.where(rng.random(n) < flipped, 1 - y, y)
    return (X if matrix is None else X @ matrix) + shift, y


def _classes(name: str, *, normal: bool = False, **settings: Any) -> Law:
    holds = (INDEPENDENT, NORMAL) if normal else (INDEPENDENT,)
    return Law(name, partial(_two_classes, **settings), satisfies=holds)


def _ill_conditioned() -> FloatArray:
    """Three directions of sizes 1, 1e-3 and 1e-6, none along a column."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    return np.diag([1.0, 1e-3, 1e-6]) @ turn


def _two_points() -> Law:
    """Each class on two points of the first column: Chebyshev's bound is attained.

    Class 0 lies with .2 at 0 and .8 at -1.25: mean -1, deviation .5, and no law with
    these moments has more than 1 / (1 + 2^2) = .2 beyond 0.
    """
    first = np.array([0.0, -1.25, 0.0, 1.25])
    X = np.array([[x, side] for x in first for side in (-1.0, 1.0)])
    X[[0, 1], 0] += 1e-6  # beyond the plane in the middle, on either side
    X[[4, 5], 0] -= 1e-6
    y = np.repeat([0, 0, 1, 1], 2)
    return Law.finite("two points", X, y, np.repeat([0.1, 0.4, 0.1, 0.4], 2) / 2)


def _integer_grid() -> Law:
    """Two columns of five integers each, two classes: many ties."""
    side = np.arange(-2.0, 3.0)
    X = np.array([[a, b] for a in side for b in side])
    chance = np.exp(-0.5 * ((X[:, 0] - [[-0.7], [0.7]]) ** 2 + X[:, 1] ** 2))
    return Law.finite(
        "integer grid", np.r_[X, X], np.repeat([0, 1], len(X)), chance.ravel()
    )


def _line(name: str, atoms: int, share: float = 0.5, **settings: Any) -> Law:
    """Evenly spaced points, on which class 1 is ever more frequent."""
    x = np.linspace(-3.0, 3.0, atoms)
    odds = share / (1 - share) * np.exp(2 * x)
    chance = odds / (1 + odds)
    X = np.concatenate([x, x])[:, None]
    y = np.repeat([0, 1], atoms)
    return Law.finite(name, X, y, np.concatenate([1 - chance, chance]), **settings)


def _rare_categories(n: int, rng: np.random.Generator) -> Rows:
    """Numbered categories: five of class 0, a million of class 1; then a coin."""
    y = rng.integers(0, 2, n)
    name = np.where(y == 1, rng.integers(10, 10**6, n), rng.integers(0, 5, n))
    return np.column_stack([name, rng.integers(0, 2, n)]).astype(float), y


def _with_constant(n: int, rng: np.random.Generator) -> Rows:
    X, y = _two_classes(n, rng, columns=2)
    return np.column_stack([X, np.full(n, 7.0)]), y


def _duplicated(n: int, rng: np.random.Generator) -> Rows:
    """Every row five times; a new row is a plain one."""
    X, y = STANDARD["line"].draw(-(-n // 5), rng)
    order = rng.permutation(np.repeat(np.arange(len(y)), 5)[:n])
    return X[order], y[order]


def _standard() -> dict[str, Law]:
    """The standard laws by name; their order is that of a report."""
    grid_of_two = [[0.0], [0.0], [1.0], [1.0]]
    atoms = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.5], [0.3, 0.7], [5.0, 5.0]]
    laws = (
        _classes("normal", normal=True),
        _classes("ill-conditioned normal", normal=True, matrix=_ill_conditioned()),
        _classes("normal with offset 1e6", normal=True, shift=1e6),
        _classes("heavy tails", noise=_heavy),
        _two_points(),
        _classes("contaminated", noise=_contaminated),
        _line("line", 400, share=0.1),
        _integer_grid(),
        Law.finite(
            "six atoms", np.r_[atoms, atoms], np.repeat([0, 1], 6),
            [0.3, 0.1, 0.05, 0.06, 0.04, 0.01, 0.04, 0.1, 0.05, 0.2, 0.04, 0.01],
        ),
        Law.finite("binary column", grid_of_two, [0, 1, 0, 1], [0.5, 0.1, 0.1, 0.3]),
        Law("constant column", _with_constant),
        _classes("more columns than rows", normal=True, columns=64),
        _line("imbalance 1:100", 200, share=0.0003),
        _classes("label noise", flipped=0.3),
        Law("rare categories", _rare_categories),
        _line("floor of a rank", 12, sizes=(18, 19, 38, 63)),
        _classes("scale 1e-150", matrix=1e-150 * np.eye(3)),
        _classes("scale 1e150", matrix=1e150 * np.eye(3)),
    )  # fmt: skip
    return {law.name: replace(law, has_several_classes=True) for law in laws}


#: The standard laws by name, all of independent rows of two classes.
STANDARD: Mapping[str, Law] = MappingProxyType(_standard())
#: On request only, and reported apart: what every promise excludes.
ON_REQUEST: Mapping[str, Law] = MappingProxyType(
    {
        "duplicated rows": Law(
            "duplicated rows",
            _duplicated,
            STANDARD["line"].truth,
            satisfies=(),
            has_several_classes=True,
        )
    }
)
