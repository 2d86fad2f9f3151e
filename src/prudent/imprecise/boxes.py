"""Gaussian classes whose means move in a box: exact bounds of the log joint.

In units of the feature scale, the mean of class k is m_k + M_k t with |t_j| <= 1,

- box "mean": M_k = (c / n_k) I, the means themselves move ((22) of the paper);
- box "natural": M_k = (c / n_k) S_k, the natural parameters move ((18)-(19)),

and the exponent is q(t) = z'Az / 2 - r g't + r^2 t'Bt / 2 with z = x - m_k, A the
inverse of S_k, r = c / n_k, and (g, B) = (Az, A) or (z, S_k). Then log joints lie in
[low_k - max q, up_k - min q], where low_k and up_k hold the prior and the
determinant. Class b is kept when up_b - min q_b >= max over a of low_a - max q_a.

The second class of boxes has independent features: every bound in closed form.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from prudent.core.linalg import MahalanobisFactors, check_positive_definite
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.criteria import TIE, tied_with

# --- classes with a matrix, one each or one in common ---------------------------------

_PRECISION = 1e-3  # relative gap of a dual; it steers bounds, it decides nothing
_MAX_STEPS = 60


class Boxes(NamedTuple):
    """Classes with matrices, one each or one in common, in scaled units.

    Questions go row by row through compiled code; see `kernels`.
    """

    mean: FloatArray  # (K, p)
    unit: FloatArray  # (K,) radius of the box at imprecision 1: 1 / n_k
    matrix: NDArray[np.intp]  # (K,) which of the M matrices is the class's
    factor: FloatArray  # (M, p, p) lower triangular U with A = U'U
    forms: FloatArray  # (1 or 2, M, p, p) B, and U again where the field is Az
    dual: FloatArray  # (M, p) Diag(dual) - B is positive semidefinite
    reach: FloatArray  # (M,) at least the maximum of t'Bt
    shares: FloatArray  # (p,) of the imprecision, feature by feature
    log_determinant: FloatArray  # (M,) log det S
    low: FloatArray  # (K,) log joints at the centres under the prior's lower bound
    up: FloatArray  # (K,) and under its upper bound; see `posed`
    max_nodes: int = 0  # branchings of the search per question

    @classmethod
    def build(
        cls,
        mean: FloatArray,
        covariances: FloatArray,
        matrix: NDArray[np.intp],
        weight: FloatArray,
        box: str,
        classes: NDArray[Any],
    ) -> Self:
        """Factor the M covariances and find their max-cut dual vectors.

        Raises
        ------
        SingularCovarianceError
            If a covariance is singular; the message names one of `classes`.
        """
        # One representative label a matrix, for messages.
        labels = classes[np.unique(matrix, return_index=True)[1]]
        lower = check_positive_definite(covariances, classes=labels)
        factor = np.array([dtrtri(L, lower=1)[0] for L in lower])
        natural = box == "natural"
        coupling = covariances if natural else factor.transpose(0, 2, 1) @ factor
        dual = np.array([max_cut_dual(B) for B in coupling])
        return cls(
            mean=np.ascontiguousarray(mean),
            unit=1.0 / weight,
            matrix=matrix,
            factor=np.ascontiguousarray(factor),
            forms=np.ascontiguousarray(
                coupling[None] if natural else [coupling, factor]
            ),
            dual=dual,
            reach=_reach(dual, coupling),
            shares=np.ones(mean.shape[1]),
            log_determinant=2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1),
            low=np.zeros(len(mean)),
            up=np.zeros(len(mean)),
        )

    @property
    def log_determinants(self) -> FloatArray:
        """Log determinant of the covariance of each class."""
        return self.log_determinant[self.matrix]

    @property
    def narrowest(self) -> FloatArray:
        """Least deviation of each feature (p,) in a class, given its other features."""
        return np.asarray(1.0 / np.linalg.norm(self.factor, axis=1).max(axis=0))

    def posed(self, low: FloatArray, up: FloatArray, max_nodes: int = 0) -> Self:
        """The boxes with a prior, (K,) and (K,), and a limit of the search.

        `low` and `up` are log joints at the class centres under the two bounds of the
        prior. Questions that meet the limit keep their class, and bounds are outer.
        """
        return self._replace(low=low, up=up, max_nodes=max_nodes)

    def with_shares(self, shares: FloatArray) -> Self:
        """Boxes in which feature j moves by its share (p,) of the imprecision.

        With C = Diag(shares), field and coupling become Cg and CBC; a dual of B times
        the squared shares is one of CBC.
        """
        forms = self.forms.copy()
        forms[0] *= np.outer(shares, shares)
        dual = self.dual * shares**2
        return self._replace(
            forms=forms, dual=dual, reach=_reach(dual, forms[0]), shares=shares
        )

    def move(self, corners: FloatArray, imprecision: float) -> FloatArray:
        """How far the means move at t (n, K, p): M_k t."""
        moved = imprecision * self.unit[:, None] * self.shares * corners
        if len(self.forms) == 1:  # natural: by S, whose factor is the inverse's
            for k, m in enumerate(self.matrix):
                white = np.linalg.solve(self.factor[m].T, moved[:, k].T)
                moved[:, k] = np.linalg.solve(self.factor[m], white).T
        return moved

    def half_widths(self, imprecision: float) -> FloatArray:
        """How far each mean can move in each feature, (K, p), in scaled units.

        With box "mean" it is r; with "natural" the box is a parallelotope M_k t, whose
        extent in a feature is the row of |M_k| summed.
        """
        width = imprecision * self.unit[:, None] * self.shares
        if len(self.forms) == 2:
            return width
        return np.array(
            [
                np.abs(np.linalg.inv(self.factor[m].T @ self.factor[m])) @ width[k]
                for k, m in enumerate(self.matrix)
            ]
        )

    def half_distances(self, points: FloatArray) -> FloatArray:
        """Half squared distances z'Az / 2 of rows (n, p) to every centre, (n, K).

        They are the exponent q where no mean moves.
        """
        if len(self.factor) == len(self.mean):
            centred = MahalanobisFactors(
                self.mean, np.zeros_like(self.mean), self.factor, self.log_determinant
            )
            return 0.5 * centred.squared_distances(points)
        # Matrices in common: one product a matrix, then differences.
        half = np.empty((len(points), len(self.mean)))
        for m, factor in enumerate(self.factor):
            white = points @ factor.T
            for k in np.flatnonzero(self.matrix == m):
                gap = white - factor @ self.mean[k]
                half[:, k] = 0.5 * np.einsum("ij,ij->i", gap, gap)
        return half

    def keep(self, points: FloatArray, imprecision: float) -> tuple[BoolArray, int]:
        """Classes that no other dominates, under 0-1 costs and maximality.

        Parameters
        ----------
        points : ndarray of shape (n, p)
            Rows in scaled coordinates.
        imprecision : float

        Returns
        -------
        kept : ndarray of bool, shape (n, K)
        unanswered : int
            Questions that met the node limit; their class is kept.
        """
        from prudent.imprecise.kernels import decide_rows

        half = self.half_distances(points)
        kept = np.empty(half.shape, dtype=np.bool_)
        rows = points, half, imprecision
        return kept, decide_rows(*self.state(), *rows, self.max_nodes, kept)

    def bounds(
        self, points: FloatArray, imprecision: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest log joint of rows (n, p) over the boxes.

        Returns
        -------
        lower, upper : ndarray of shape (n, K)
            low - max q and up - min q; outer bounds where the search met the node
            limit.
        unanswered : int
            How many did.
        """
        lower, upper, _, unanswered = self._search(points, imprecision, 0)
        return lower, upper, unanswered

    def extremes(
        self, points: FloatArray, imprecision: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """Moves of the means that make each row least and most probable.

        Two arrays (n, K, p) in scaled units: the corner of the box where q is largest
        and the point where it is smallest; and how many searches met the node limit.
        """
        *_, corners, unanswered = self._search(points, imprecision, len(points))
        farthest, nearest = (self.move(at, imprecision) for at in corners)
        return farthest, nearest, unanswered

    def _search(
        self, points: FloatArray, imprecision: float, n_corners: int
    ) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Bounds (n, K), the t of both for the first rows, and unanswered questions."""
        from prudent.imprecise.kernels import bound_rows

        half = self.half_distances(points)
        lower, upper = np.empty(half.shape), np.empty(half.shape)
        corners = np.zeros((2, n_corners, *self.mean.shape))
        rows, written = (points, half, imprecision), (lower, upper, corners)
        unanswered = bound_rows(*self.state(), *rows, self.max_nodes, *written)
        return lower, upper, corners, unanswered

    def critical(
        self, points: FloatArray, grid: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class (n, K), and unanswered questions.

        With a sorted `grid`, the value is only known to lie behind the right grid
        points, and is infinite beyond the last.
        """
        from prudent.imprecise.kernels import critical_rows

        half = self.half_distances(points)
        critical = np.empty(half.shape)
        steps = np.empty(0) if grid is None else grid
        unanswered = critical_rows(
            *self.state(), points, half, self.max_nodes, steps, critical
        )
        return critical, unanswered

    def state(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The arrays of the compiled code: `forms`, `wide` and `narrow`.

        What does not change with the row is filled in; see `kernels`.
        """
        from prudent.imprecise import kernels

        n_classes, n_features = self.mean.shape
        wide = np.zeros((kernels.WIDE, n_classes, n_features))
        wide[kernels.MEAN], wide[kernels.DUAL] = self.mean, self.dual[self.matrix]
        wide[kernels.SHARE] = self.shares
        narrow = np.zeros((kernels.NARROW, n_classes))
        narrow[kernels.UNIT], narrow[kernels.REACH] = self.unit, self.reach[self.matrix]
        narrow[kernels.MATRIX] = self.matrix
        narrow[kernels.LOW], narrow[kernels.UP] = self.low, self.up
        return self.forms, wide, narrow


def _reach(dual: FloatArray, coupling: FloatArray) -> FloatArray:
    """Upper bounds of the largest t'Bt over the cube |t_i| <= 1, one a matrix, (M,).

    The smaller of the sum of the dual and of the sum of all |B_ij|.
    """
    return np.minimum(dual.sum(axis=1), np.abs(coupling).sum(axis=(1, 2)))


def max_cut_dual(form: FloatArray) -> FloatArray:
    """Smallest diagonal d, in sum, with Diag(d) - `form` positive semidefinite.

    The sum is within 0.1 % of the least possible and at least the maximum of t'Bt over
    the cube |t_i| <= 1. Every principal block of d serves the same block of B.

    Newton's method on ``tau * sum(d) - log det(Diag(d) - B)``, whose minimiser
    is within p / tau of the optimum; gradient tau - diag(G), Hessian G * G
    (element by element) for G = (Diag(d) - B)^-1. About 15 steps of O(p^3). A last
    shift by the smallest eigenvalue makes the claim hold in floating point.
    """
    size = len(form)
    scale = max(float(np.trace(form)) / size, np.finfo(float).tiny)
    target = form / scale
    diagonal = np.abs(target).sum(axis=1) * 1.01 + 0.01
    tau = size / (_PRECISION * diagonal.sum())
    weight = min(1.0, tau)
    for _ in range(_MAX_STEPS):
        slack_inverse = np.linalg.inv(np.diag(diagonal) - target)
        gradient = weight - np.diag(slack_inverse)
        step = np.linalg.solve(slack_inverse * slack_inverse, -gradient)
        decrement = float(-gradient @ step)
        # Damped by 1 / (1 + sqrt(decrement)): stays feasible (self-concordance).
        diagonal = diagonal + step / (1.0 + np.sqrt(max(decrement, 0.0)))
        if decrement < 0.5:
            if weight >= tau:
                break
            weight = min(20.0 * weight, tau)
    lowest = float(np.linalg.eigvalsh(np.diag(diagonal) - target)[0])
    return scale * (diagonal - min(0.0, lowest) + 1e-13 * diagonal.max())


# --- independent features: every bound in closed form, (30)-(37) ----------------------


class DiagonalBoxes(NamedTuple):
    """Classes with independent features, in scaled units: all in closed form."""

    mean: FloatArray  # (K, p)
    precision: FloatArray  # (K, p) w
    extent: FloatArray  # (K, p) half widths of the box at imprecision 1
    low: FloatArray  # (K,) as of `Boxes`, like `up`
    up: FloatArray  # (K,)

    @classmethod
    def build(
        cls, mean: FloatArray, variance: FloatArray, weight: FloatArray, box: str
    ) -> Self:
        """Boxes of classes with the given variances (K, p), all > 0."""
        width = variance if box == "natural" else np.ones_like(variance)
        none = np.zeros(len(mean))
        return cls(mean, 1.0 / variance, width / weight[:, None], none, none)

    def posed(self, low: FloatArray, up: FloatArray, max_nodes: int = 0) -> Self:
        """The boxes with a prior, as `Boxes.posed`; nothing is searched."""
        return self._replace(low=low, up=up)

    @property
    def log_determinants(self) -> FloatArray:
        """Log determinant of the covariance of each class."""
        return -np.log(self.precision).sum(axis=1)

    @property
    def narrowest(self) -> FloatArray:
        """Least deviation of each feature (p,) in a class."""
        return np.asarray(1.0 / np.sqrt(self.precision.max(axis=0)))

    def with_shares(self, shares: FloatArray) -> Self:
        """Boxes in which feature j moves by its share (p,) of the imprecision."""
        # Natural boxes too: independent features move on their own.
        return self._replace(extent=self.extent * shares)

    def half_widths(self, imprecision: float) -> FloatArray:
        """How far each mean can move in each feature (K, p)."""
        return imprecision * self.extent

    def extremes(
        self, points: FloatArray, imprecision: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """Moves of the means (n, K, p) with least and largest density, (30)-(31).

        The corner farthest from the row, and the point of the box nearest to it.
        """
        gap = points[:, None, :] - self.mean
        radius = self.half_widths(imprecision)
        away = np.where(gap < 0, radius, -radius)
        return away, np.clip(gap, -radius, radius), 0

    def half_distances(self, points: FloatArray) -> FloatArray:
        """Exponent of every row and class at the centre of the boxes."""
        half = np.empty((len(points), len(self.mean)))
        for k in range(len(self.mean)):
            half[:, k] = _half_squares(points - self.mean[k], self.precision[k])
        return half

    def bounds(
        self, points: FloatArray, imprecision: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """Lower and upper log joints, (n, K), by sums of w (|z| +- r)^2 / 2.

        The distance |z| grows by the half width r at worst and shrinks by it at best,
        to 0 at least. No search is needed, so that no question stays open.
        """
        lower = np.empty((len(points), len(self.mean)))
        upper = np.empty_like(lower)
        for k, weight in enumerate(self.precision):
            gap = np.abs(points - self.mean[k])
            radius = imprecision * self.extent[k]
            lower[:, k] = self.low[k] - _half_squares(gap + radius, weight)
            nearest = np.maximum(gap - radius, 0.0)
            upper[:, k] = self.up[k] - _half_squares(nearest, weight)
        return lower, upper, 0

    def keep(self, points: FloatArray, imprecision: float) -> tuple[BoolArray, int]:
        """Undominated classes (n, K); no question stays open."""
        lower, upper, _ = self.bounds(points, imprecision)
        kept = tied_with(upper) >= lower.max(axis=1, keepdims=True)
        return kept & (upper > -np.inf), 0

    def critical(
        self, points: FloatArray, grid: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class (n, K), to round-off.

        The upper bound of class b is quadratic between the imprecisions at which the
        box reaches another coordinate of the row, the lower bounds are quadratic
        throughout: find the interval of the crossing, solve one quadratic.
        """
        low, up = self.low, self.up
        half = self.half_distances(points)
        critical = np.full(half.shape, np.inf)
        behind = up - half  # joint logs of the precise model
        lower = [_lower_terms(self, points, a) for a in range(len(low))]
        for b in np.flatnonzero(up > -np.inf).tolist():
            reached, pieces = _upper_pieces(self, points, b)
            critical[:, b] = 0.0
            tie = TIE * (1.0 + np.abs(behind[:, b]))
            for a in np.flatnonzero(low > -np.inf).tolist():
                lead = (low[a] - half[:, a]) - behind[:, b]
                constant, slope, curvature = pieces
                joins = _piecewise_crossing(
                    reached,
                    constant + (up[b] - low[a] + half[:, a, None]),
                    slope + lower[a][0][:, None],
                    curvature + lower[a][1],
                )
                joins[lead <= tie] = 0.0
                critical[:, b] = np.maximum(critical[:, b], joins)
        return critical, 0


def _half_squares(gap: FloatArray, precision: FloatArray) -> FloatArray:
    """Half the weighted sum of squares of each row (n,), in any unit of `gap`."""
    half: FloatArray = 0.5 * np.einsum("ij,ij->i", gap * precision, gap)
    return half


def _lower_terms(
    boxes: DiagonalBoxes, points: FloatArray, a: int
) -> tuple[FloatArray, float]:
    """Slope (n,) and curvature of the lower log joint of a class in the imprecision.

    lower_a(c) = low_a - half_a - c slope - c^2 curvature / 2 at imprecision c.
    """
    pull = boxes.precision[a] * boxes.extent[a]
    return np.abs(points - boxes.mean[a]) @ pull, float(pull @ boxes.extent[a])


def _upper_pieces(
    boxes: DiagonalBoxes, points: FloatArray, b: int
) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """The upper log joint of a class as a piecewise quadratic of the imprecision.

    At imprecision c, upper_b(c) - up_b = constant + c slope + c^2 curvature / 2 on each
    of p + 1 pieces. Returned are the ends (n, p) of the pieces, at which the box
    reaches the next coordinate of the row, and the three coefficients (n, p + 1).
    """
    gap = np.abs(points - boxes.mean[b])
    reached = gap / boxes.extent[b]
    order = np.argsort(reached, axis=1)
    gap = np.take_along_axis(gap, order, axis=1)
    precision, extent = boxes.precision[b][order], boxes.extent[b][order]

    def remaining(terms: FloatArray) -> FloatArray:
        sums = np.zeros((len(points), terms.shape[1] + 1))
        sums[:, :-1] = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
        return sums

    pieces = (
        -0.5 * remaining(precision * gap * gap),
        remaining(precision * gap * extent),
        -remaining(precision * extent**2),
    )
    return np.take_along_axis(reached, order, axis=1), pieces


def _piecewise_crossing(
    ends: FloatArray, constant: FloatArray, slope: FloatArray, curvature: FloatArray
) -> FloatArray:
    """First c >= 0 at which an increasing piecewise quadratic reaches 0, (n,).

    Infinite where it never does. `ends` (n, p) part the p + 1 pieces.
    """
    at_ends = constant[:, :-1] + ends * (slope[:, :-1] + 0.5 * ends * curvature[:, :-1])
    piece = (at_ends < 0.0).sum(axis=1)[:, None]
    constant, slope, curvature = (
        np.take_along_axis(terms, piece, axis=1)[:, 0]
        for terms in (constant, slope, curvature)
    )
    discriminant = np.maximum(slope**2 - 2.0 * curvature * constant, 0.0)
    divisor = slope + np.sqrt(discriminant)
    crossing = np.divide(
        -2.0 * constant, divisor, out=np.full(len(ends), np.inf), where=divisor > 0.0
    )
    return np.maximum(crossing, 0.0)
