"""The climb: losses of labelled rows, and the steps of the statistics that lower them.

A step is s <- s + lr G(s) with G = sum_i W_ik psi(x_i): mirror ascent of the
conditional log-likelihood with the log-partition function as mirror map, because s / M
is the mean parameter of the joint exponential family. With H the posteriors, Y the
one-hot labels and w the sample weights, the row weights W of a loss are

- log loss: W = w (Y - H);
- expected cost sum_b H_ib C[y_i, b]:
  W_ik = -w_i H_ik (C[y_i, k] - sum_b H_ib C[y_i, b]); C = 1 - I is the stochastic
  0-1 loss 1 - h(y_i | x_i), W = w H_y (Y - H).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.categorical import CategoricalFamily, recoded
from prudent.calibration.families import Family, Statistics
from prudent.calibration.gaussian import (
    COMPILED_FROM,
    ColumnMoments,
    check_ends,
    column_moments,
    ends_of_tiny_columns,
    merged_moments,
)
from prudent.calibration.model import Model, prepare
from prudent.core.guarantee import Guarantee
from prudent.core.rows import Block, LocalRows, Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

# --- losses ---------------------------------------------------------------------------


class Losses(NamedTuple):
    """Losses of a model, summed over weighted rows: those of blocks of rows add up."""

    objective: float  # what the line search lowers
    log_loss: float  # -w log h(y | x)
    #: w (1 - h(y | x)), the error of drawing the answer from the posterior; with
    #: costs the expected cost w sum_b h(b | x) C[y, b].
    risk: float
    cost: float  # of the predictions; the wrong weight without costs
    #: Weight of the rows of which the true class is not the first with the largest
    #: score (least expected cost).
    wrong: float
    weight: float  # of all rows

    @property
    def mean(self) -> Losses:
        """The same losses divided by the weight of the rows.

        Of the mean, `wrong` is the error rate and `log_loss` the mean of -log h(y | x).
        """
        return Losses(*(total / self.weight for total in self))


def all_losses(blocks: Iterable[Losses | None]) -> Losses | None:
    """Losses of the rows of several blocks; None where none has rows."""
    parts = [losses for losses in blocks if losses is not None]
    return Losses(*map(sum, zip(*parts, strict=True))) if parts else None


def log_residuals(scores: FloatArray, codes: IntArray, weight: FloatArray) -> Losses:
    """Turn log joints into row weights of the log loss, in place, and sum the losses.

    Parameters
    ----------
    scores : ndarray of shape (r, m)
        Log h(x_i, k) up to a constant of the row, C-ordered. Overwritten by W_ki = w_i
        (Y_ik - H_ik), Y the one-hot labels and H the posteriors.
    codes : ndarray of int, shape (m,)
        True class of each row, 0 to r - 1.
    weight : ndarray of shape (m,)
        Sample weights w >= 0.

    Returns
    -------
    Losses
        Without costs, so that `cost` is the weight of the rows that are wrong.
    """
    if scores.size < COMPILED_FROM:
        log_loss, wrong, risk = interpreted_residual_sums(scores, codes, weight)
    else:
        from prudent.calibration.kernels import log_residual_sums

        log_loss, wrong, risk = log_residual_sums(scores, codes, weight)
    return Losses(log_loss, log_loss, risk, wrong, wrong, float(weight.sum()))


def cost_residuals(
    scores: FloatArray, codes: IntArray, weight: FloatArray, costs: FloatArray
) -> Losses:
    """Turn log joints into the row weights of the expected cost, in place.

    The arguments are those of `log_residuals`, with costs (r, r) whose rows are the
    true class. The weights are W_ki = -w_i H_ik (C[y_i, k] - sum_b H_ib C[y_i, b]), and
    the objective is the expected cost sum_b H_ib C[y_i, b].
    """
    scores -= scores.max(axis=0)
    columns = np.arange(len(codes))
    picked = scores[codes, columns]
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    log_loss = float(weight @ (np.log(total) - picked))
    scores /= total
    decisions = (costs.T @ scores).argmin(axis=0)
    true_costs = costs.T[:, codes]
    expected = (scores * true_costs).sum(axis=0)
    scores *= weight * (expected - true_costs)
    risk = float(weight @ expected)
    return Losses(
        risk,
        log_loss,
        risk,
        float(weight @ costs[codes, decisions]),
        float(weight @ (decisions != codes)),
        float(weight.sum()),
    )


def interpreted_residual_sums(
    scores: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[float, float, float]:
    """The loops of `log_residuals` in NumPy, for what fits the cache.

    `scores` (r, m) become W in place. Returned are the sums over weighted rows of the
    log loss, of the error, and of 1 - h(y | x).
    """
    if len(scores) == 2:
        return _two_class_residual_sums(scores, codes, weight)
    true = codes, np.arange(len(codes))
    error = float(weight @ (scores.argmax(axis=0) != codes))
    scores -= scores.max(axis=0)
    picked = scores[true]
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    log_loss = float(weight @ (np.log(total) - picked))
    scores *= -weight / total
    gains = scores[true] + weight
    scores[true] = gains
    return log_loss, error, float(gains.sum())


def _two_class_residual_sums(
    scores: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[float, float, float]:
    """Two classes need one exponential a row, and their weights W add up to exactly 0.

    So the sums of one class are those of the other, but for the sign.
    """
    sign = 2 * codes - 1
    margin = sign * (scores[1] - scores[0])
    is_wrong = (margin < 0) | ((margin == 0) & (codes == 1))
    lesser = np.exp(-np.abs(margin))
    total = 1.0 + lesser
    log_loss = float(weight @ (np.log(total) + np.maximum(-margin, 0.0)))
    others = weight * np.where(margin >= 0, lesser, 1.0) / total
    scores[1] = sign * others
    scores[0] = -scores[1]
    return log_loss, float(weight @ is_wrong), float(others.sum())


# --- the rows of one block, to learn from or only to judge ----------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The rows of one block that are learned from, and those that are only judged.

    Trials are what a calibration maps its functions over: in memory there is a single
    one, on a cluster there is one for each block. None stands for no rows.
    """

    fitted: Block | None
    held_out: Block | None = None

    def prepared(self, family: Family, merges: bool) -> Self:
        """The same rows as the family takes them.

        With `merges`, equal rows of level codes become one row with the sum of their
        weights, where that at least halves their number.
        """
        fitted = self.fitted
        if merges and fitted is not None and isinstance(family, CategoricalFamily):
            fitted = _merged(fitted)
        return type(self)(_prepared(fitted, family), _prepared(self.held_out, family))

    def summary(
        self, n_classes: int, structure: Structure | None, learns_missing: bool
    ) -> tuple[IntArray, float, ColumnMoments, FloatArray] | None:
        """Counts, weight and spread of the fitted rows: what makes a family.

        Returns
        -------
        tuple or None
            Number of rows of each class (n_classes,), the sum of their weights, the
            moments of the columns, an empty list where `structure` is None, and the
            least and largest value of the columns (2, d) whose squares may underflow,
            NaN for the others. None for a block without rows.
        """
        block = self.fitted
        if block is None:
            return None
        moments, weight, ends = [], weights(block), np.zeros((2, 0))
        if structure is not None:
            X = numbers_of(block)
            moments = column_moments(
                X, weight, structure, learns_missing=learns_missing
            )
            ends = ends_of_tiny_columns(X, moments)
        n_rows = np.bincount(block.codes, minlength=n_classes)
        return n_rows, float(weight.sum()), moments, ends

    def apart(self, is_held_out: BoolArray) -> Trial:
        """The fitted rows split by a mask (m,): those it marks are held out."""
        if self.fitted is None:
            return self
        chosen = (np.flatnonzero(some) for some in (~is_held_out, is_held_out))
        return Trial(
            *(self.fitted.taken(rows) if len(rows) else None for rows in chosen)
        )

    def seen_levels(self, n_levels: IntArray) -> list[BoolArray]:
        """Which levels of each categorical feature occur among the fitted rows.

        One mask (n_levels[j],) for each feature j.
        """
        if self.fitted is None:
            return [np.zeros(n, dtype=bool) for n in n_levels]
        codes = getattr(self.fitted.X, "levels", self.fitted.X)
        return [
            np.bincount(codes[codes[:, j] >= 0, j], minlength=n)[:n] > 0
            for j, n in enumerate(n_levels)
        ]

    def recoded(self, seen: Sequence[BoolArray]) -> Trial:
        """The same rows, of which only these levels are known."""
        parts = self.fitted, self.held_out
        return Trial(*(p and replace(p, X=recoded(p.X, seen)) for p in parts))

    def count_wrong(self, model: Model) -> tuple[int, int]:
        """Held-out rows that the model gets wrong, and all of them."""
        if self.held_out is None:
            return 0, 0
        X, codes = self.held_out.X, self.held_out.codes
        return int(np.count_nonzero(model.decide(X) != codes)), len(codes)


def fitted_moments(
    trials: Rows, n_classes: int, structure: Structure | None, *, learns_missing: bool
) -> tuple[IntArray, ColumnMoments, float]:
    """Rows to learn from, by class; the moments of their columns; their weight.

    There are no moments where `structure` is None, because the family needs none.
    Columns that vary, but whose squares underflow, are refused.
    """
    summaries = trials.map(Trial.summary, n_classes, structure, learns_missing)
    n_rows, totals, parts, ends = zip(
        *(summary for summary in summaries if summary is not None), strict=True
    )
    moments = merged_moments(parts)
    if moments:
        check_ends(moments, np.array(ends))
    return np.sum(n_rows, axis=0), moments, float(np.sum(totals))


def weights(block: Block) -> FloatArray:
    """Weight of each row of a block."""
    return np.ones(len(block.codes)) if block.weight is None else block.weight


def numbers_of(block: Block) -> NDArray[Any]:
    """Rows without their levels."""
    return getattr(block.X, "numbers", block.X)


def _prepared(block: Block | None, family: Family) -> Block | None:
    if block is None:
        return None
    return Block(prepare(family, block.X), block.codes, weights(block))


def _merged(block: Block) -> Block:
    """Equal rows as one with the sum of their weights, where that halves them."""
    groups = group_equal_rows(block.X, block.codes)
    _, first = np.unique(groups, return_index=True)
    if 2 * len(first) > len(groups):
        return block
    weight = np.bincount(groups, weights(block)).astype(np.float64)
    return Block(block.X[first], block.codes[first], weight)


# --- folds of the rows of one block ---------------------------------------------------


def dealt_folds(
    keys: NDArray[Any],
    codes: IntArray,
    n_folds: int,
    seed: int,
    groups: NDArray[Any] | None = None,
) -> list[tuple[IntArray, IntArray]]:
    """Pairs (fit, test) of positions of the rows of each fold.

    Equal rows of a class, or those of a group, share a fold. There are `n_folds` at
    most, and as many as the class with the fewest distinct rows (groups) has of those;
    none if that is one. A fold that takes all rows of a class, as groups of several
    classes can make it, is left out.
    """
    if groups is None:
        units = group_equal_rows(keys, codes)
    else:
        units = np.unique(groups, return_inverse=True)[1]
    classes = np.unique(codes)
    n_units = [len(np.unique(units[codes == k])) for k in classes]
    n_folds = min(n_folds, *n_units)
    if n_folds < 2:
        return []
    fold = deal_folds(units, codes, n_folds, np.random.RandomState(seed))
    pairs = [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]
    return [pair for pair in pairs if len(np.unique(codes[pair[0]])) == len(classes)]


def group_equal_rows(keys: NDArray[np.generic], codes: IntArray) -> IntArray:
    """Number labelled rows so that the equal rows of a class share a number.

    `keys` (m, n_keys) are numbers that tell the rows apart. The numbers 0, 1, ...
    follow the sorted order of (class, row), whatever the order of the rows.
    """
    columns = [*keys.T[::-1], codes]
    order = np.lexsort(columns)
    differs = np.zeros(len(codes), dtype=bool)
    for column in columns:
        differs[1:] |= column[order][1:] != column[order][:-1]
    groups = np.empty(len(codes), dtype=np.intp)
    groups[order] = np.cumsum(differs)
    return groups


def deal_folds(
    groups: IntArray, codes: IntArray, n_folds: int, random: np.random.RandomState
) -> IntArray:
    """Fold of each row; rows of a group share one, classes spread evenly.

    The groups 0, 1, ... are permuted within each class and dealt round robin, so that
    with groups of equal rows neither their order nor repetition changes the folds. A
    group of several classes counts for the rarest of them.
    """
    rarest_first = np.argsort(np.bincount(codes)[codes], kind="stable")
    _, first = np.unique(groups[rarest_first], return_index=True)
    class_of_group = codes[rarest_first[first]]
    dealt = np.concatenate(
        [
            random.permutation(np.flatnonzero(class_of_group == k))
            for k in np.unique(codes)
        ]
    )
    fold_of_group = np.empty(len(first), dtype=np.intp)
    fold_of_group[dealt] = np.arange(len(dealt)) % n_folds
    return fold_of_group[groups]


# --- the objective --------------------------------------------------------------------


class Iterate(NamedTuple):
    """One evaluated model on the way.

    `direction` is G = sum_i W_ik psi(x_i), shaped like the statistics; it is None where
    the caller did not ask for it, as `held_out` is where no rows are held out.
    """

    statistics: Statistics
    parameters: Any
    losses: Losses  # on the rows it is fitted to
    held_out: Losses | None
    direction: Statistics | None

    def curve_point(self, step: float) -> tuple[float, float, float, float]:
        """Mean log loss, error and risk, and the lr that led here."""
        mean = self.losses.mean
        return mean.log_loss, mean.wrong, mean.risk, step


@dataclass(frozen=True, eq=False)
class Objective:
    """Labelled rows, the family that explains them, the loss to lower, and the steps.

    What is lowered is the log loss or, with `costs`, the expected cost, plus lambda
    times the negative joint log-likelihood with `generative_weight` lambda.
    """

    rows: Rows  # blocks of `Trial`, their rows as the family has prepared them
    family: Family
    n_classes: int
    costs: FloatArray | None = None  # (r, r); None lowers the log loss
    generative_weight: float = 0.0  # lambda of G + lambda (s(X, Y) - s)
    #: Leave the classes that are not true out of G (discriminative frequency
    #: estimate): the statistics grow.
    strengthens_only: bool = False
    learning_rate: float = 0.1  # lr0, of the first step
    freeze: bool = False  # refuse what would leave the valid cone, do not halve
    line_search: bool = True  # reject a step that raises the objective and halve lr
    adaptive: bool = False  # then lr <- min(1.2 lr, 4 lr0, 1 / (1 + lambda))

    @classmethod
    def from_block(
        cls, family: Family, block: Block, n_classes: int, **options: Any
    ) -> Self:
        """Objective over the prepared rows of one block."""
        return cls(LocalRows([Trial(block)]), family, n_classes, **options)

    def closed_form(self) -> Statistics:
        """The statistics of the labels themselves, s(X, Y) = sum_i w_i Y_ik psi(x_i).

        They are where a calibration starts: the closed-form fit.
        """
        return add_up(self.rows.map(_label_sums, self.family, self.n_classes))

    def drawn(self, start: str, seed: int, draw: int) -> Statistics:
        """Statistics s(X, Q) to start from elsewhere.

        With "random" every row draws its Q uniformly from the simplex; with "bootstrap"
        the rows of a class, in each block, are drawn with replacement. Equal seeds,
        draws and blocks give equal statistics.
        """
        keys = [(start, seed, draw, i) for i in range(self.rows.n_blocks)]
        return add_up(
            self.rows.map(_label_sums, self.family, self.n_classes, each=keys)
        )

    def evaluate(
        self,
        statistics: Statistics,
        batch: IntArray | None = None,
        *,
        with_direction: bool = True,
    ) -> Iterate:
        """Work out the model with these statistics and its losses, in one pass.

        Parameters
        ----------
        statistics : list of ndarray
            Of every class, valid.
        batch : ndarray of int or None
            Positions of the rows behind the direction, which is scaled up to all rows;
            only for rows in a single block. The losses are always those of all rows.
        with_direction : bool
            Whether to sum G, which costs about as much as the losses.
        """
        parameters = self.family.parameters(statistics)
        sums = self.rows.map(_evaluate, self, parameters, batch, with_direction)
        fitted, directions, held_out = zip(*sums, strict=True)
        losses = all_losses(fitted)
        assert losses is not None  # every fit has rows
        direction = add_up(directions) if with_direction else None
        return Iterate(statistics, parameters, losses, all_losses(held_out), direction)

    def score(self, block: Block, parameters: Any) -> tuple[Losses, FloatArray]:
        """Losses of prepared rows, and their weights W in the next step.

        Returns
        -------
        losses : Losses
        weights : ndarray of shape (r, m)
            G is sum_i W_ki psi(x_i).

        Raises
        ------
        ValueError
            If `log_joint` of the family returns another shape than (m, r).
        """
        codes, weight = block.codes, weights(block)
        log_joint = np.asarray(self.family.log_joint(block.X, parameters))
        if log_joint.shape != (len(codes), self.n_classes):
            raise ValueError(
                f"{type(self.family).__name__}.log_joint must return shape "
                f"{(len(codes), self.n_classes)}, got {log_joint.shape}."
            )
        scores = np.ascontiguousarray(log_joint.T)
        generative = 0.0
        if self.generative_weight:  # first, because the residuals overwrite the scores
            own = scores[codes, np.arange(len(codes))]
            if hasattr(self.family, "row_constant"):
                own = own + self.family.row_constant(block.X, parameters)
            generative = -float(weight @ own)
        if self.costs is None:
            losses = log_residuals(scores, codes, weight)
        else:
            losses = cost_residuals(scores, codes, weight, self.costs)
        if self.strengthens_only:
            true = codes, np.arange(len(codes))
            gains = scores[true]
            scores[:] = 0.0
            scores[true] = gains
        if self.generative_weight:
            total = losses.objective + self.generative_weight * generative
            losses = losses._replace(objective=total)
        return losses, scores

    def __getstate__(self) -> dict[str, Any]:
        # What travels to the blocks: everything but the blocks.
        return {**self.__dict__, "rows": None}


def batches_of_epochs(
    n_rows: int, batch_size: int, random: np.random.RandomState
) -> Iterator[IntArray]:
    """Endless batches: each epoch deals all rows once in a new order."""
    while True:
        order = random.permutation(n_rows)
        for start in range(0, n_rows, batch_size):
            yield order[start : start + batch_size]


# What happens to one block; without rows its sums are None.


def _label_sums(
    trial: Trial,
    family: Family,
    n_classes: int,
    key: tuple[Any, ...] | None = None,
) -> Statistics | None:
    """Statistics of the labels of one block, or of a start drawn by a key.

    The key is how to draw it, and numbers. None without rows.
    """
    block = trial.fitted
    if block is None:
        return None
    codes, weight = block.codes, weights(block)
    if key is None or key[0] == "bootstrap":
        if key is not None:
            weight = _redrawn(codes, weight, np.random.default_rng(key[1:]))
        Q = np.zeros((n_classes, len(codes))).T
        Q[np.arange(len(codes)), codes] = weight
    else:
        random = np.random.default_rng(key[1:])
        Q = random.dirichlet(np.ones(n_classes), size=len(codes))
        Q *= weight[:, np.newaxis]
    return family.statistics(block.X, Q)


def _redrawn(
    codes: IntArray, weight: FloatArray, random: np.random.Generator
) -> FloatArray:
    """Weights of a bootstrap sample within each class, whose total stays.

    A weight stands for so many rows, such as equal rows that were merged into one.
    """
    drawn = np.zeros(len(codes))
    for k in np.unique(codes):
        own = np.flatnonzero(codes == k)
        total = weight[own].sum()
        n_draws = max(1, round(total))
        counts = random.multinomial(n_draws, weight[own] / total)
        drawn[own] = counts * (total / n_draws)
    return drawn


def _evaluate(
    trial: Trial,
    objective: Objective,
    parameters: Any,
    batch: IntArray | None,
    with_direction: bool,
) -> tuple[Losses | None, Statistics | None, Losses | None]:
    """Losses of the fitted rows, their direction, and losses of the held-out rows.

    Each is None where there are no such rows, or where nobody asked for it.
    """
    held_out = None
    if trial.held_out is not None:
        held_out, _ = objective.score(trial.held_out, parameters)
    if trial.fitted is None:
        return None, None, held_out
    losses, residuals = objective.score(trial.fitted, parameters)
    if not with_direction:
        return losses, None, held_out
    rows = trial.fitted.X
    if batch is not None:
        weight = weights(trial.fitted)
        residuals = weight.sum() / weight[batch].sum() * residuals[:, batch]
        rows = rows[batch]
    return losses, objective.family.statistics(rows, residuals.T), held_out


def add_up(statistics: Iterable[Statistics | None]) -> Statistics:
    """Sums in the order given, which is that of the rows: the same bits always."""
    present = [block for block in statistics if block is not None]
    return [reduce(add, parts) for parts in zip(*present, strict=True)]


# --- the ascent -----------------------------------------------------------------------


#: At a smaller log loss the classes are separated and the climb has no end.
_SEPARATED = 1e-10
_MAX_HALVINGS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The rule of the iterate that was kept, and the path on which it lies."""

    model: Model
    statistics: Statistics  # of the kept iterate
    best_iteration: int  # its number of accepted updates t
    n_evaluations: int  # those rejected by the line search included
    n_frozen: int  # accepted updates that were not full steps
    curves: FloatArray  # (4, T + 1): log loss, error, risk, lr after t updates
    criterion: tuple[Any, ...]  # of each t; the first minimum is kept
    guarantees: tuple[Guarantee, ...] = ()


def ascend(
    objective: Objective,
    start: Statistics,
    criterion: Callable[[int, Iterate], Any],
    *,
    max_evaluations: int,
    max_updates: float = float("inf"),
    labels: Statistics | None = None,
    batches: Iterator[IntArray] | None = None,
    watch: Callable[[], bool] = lambda: False,
) -> Learned:
    """Calibrate from valid statistics `start` and keep the first best iterate.

    s <- s + lr (G(s) + lambda (s(X, Y) - s)), where a step that raises the objective is
    taken back, and repeated with half its lr. The path ends when the classes are
    separated, after `max_evaluations` models, or after `max_updates` accepted steps.

    Parameters
    ----------
    objective : Objective
    start : list of ndarray
    criterion : callable
        Of (t, accepted iterate); the iterate of its least value is kept.
    labels : list of ndarray or None
        s(X, Y), where the generative weight lambda pulls; None is `start`.
    batches : iterator or None
        Positions of the rows behind each step; None takes all.
    watch : callable
        Called after each evaluation; True ends the path.

    Returns
    -------
    Learned
        With a model of all classes, without costs or promises.
    """
    labels = start if labels is None else labels
    share = objective.generative_weight
    limit = 1.0 / (1.0 + share)
    # Beyond this limit the pull back to s(X, Y) alone would overshoot.
    lr0 = objective.learning_rate
    step = min(lr0, limit) if share else lr0
    values: list[Any] = []
    points: list[tuple[float, ...]] = []
    best, n_frozen, n_evaluations, ceiling = 0, 0, 0, float("inf")
    batch = None if batches is None else next(batches)
    statistics, is_full = start, True
    while True:
        n_evaluations += 1
        goes_on = n_evaluations < max_evaluations
        tried = objective.evaluate(statistics, batch, with_direction=goes_on)
        mean = tried.losses.mean
        is_rejected = mean.objective > ceiling
        if not is_rejected:
            values.append(criterion(len(values), tried))
            if len(values) == 1 or values[-1] < values[best]:
                best, kept = len(values) - 1, tried
            points.append(tried.curve_point(step))
            n_frozen += not is_full
        if watch() or len(values) > max_updates or tried.direction is None:
            break
        if is_rejected:
            step /= 2
        elif mean.log_loss >= _SEPARATED:
            if objective.adaptive and len(values) > 1:
                step = min(1.2 * step, 4 * lr0, limit)
            if objective.line_search:
                ceiling = mean.objective + 1e-12 * abs(mean.objective)
            accepted = tried.statistics
            direction = _pull(tried.direction, share, labels, accepted)
            batch = None if batches is None else next(batches)
        else:
            break
        statistics, is_full = _move(objective, accepted, direction, step)
    all_classes = np.ones(objective.n_classes, dtype=bool)
    return Learned(
        model=Model(objective.family, kept.parameters, all_classes),
        statistics=kept.statistics,
        best_iteration=best,
        n_evaluations=n_evaluations,
        n_frozen=n_frozen,
        curves=np.array(points).T,
        criterion=tuple(values),
    )


def step_on_batch(
    objective: Objective, statistics: Statistics, labels: Statistics
) -> tuple[tuple[float, ...], Statistics, bool]:
    """One step that takes the rows of `objective` as a sample of all rows so far.

    `statistics` are the calibrated ones of all rows so far, the batch included, and
    `labels` their s(X, Y). Returns the point of the curves before the step, judged on
    the batch, the statistics after it, and whether it was taken in full.
    """
    before = objective.evaluate(statistics)
    assert before.direction is not None
    scale = labels[0].sum() / before.losses.weight
    direction = [scale * g for g in before.direction]
    direction = _pull(direction, objective.generative_weight, labels, statistics)
    lr = objective.learning_rate
    after, is_full = _move(objective, statistics, direction, lr)
    return before.curve_point(lr), after, is_full


def _pull(
    direction: Statistics, share: float, labels: Statistics, statistics: Statistics
) -> Statistics:
    """G + lambda (s(X, Y) - s)."""
    if not share:
        return direction
    triples = zip(direction, labels, statistics, strict=True)
    return [g + share * (full - s) for g, full, s in triples]


def _move(
    objective: Objective, statistics: Statistics, direction: Statistics, step: float
) -> tuple[Statistics, bool]:
    """Valid statistics after a step, and whether it was taken in full."""
    family = objective.family
    proposed = [s + step * g for s, g in zip(statistics, direction, strict=True)]
    if family.is_valid(proposed).all():
        return proposed, True
    if not objective.freeze:
        return _halve(family, statistics, direction, step), False
    # The paper's rule: keep single counts where there are any, else the whole.
    if hasattr(family, "freeze"):
        proposed = family.freeze(statistics, proposed)
        if family.is_valid(proposed).all():
            return proposed, False
    return statistics, False


def _halve(
    family: Family, statistics: Statistics, direction: Statistics, step: float
) -> Statistics:
    """Halve the step of each invalid class, or of all if they are tied."""
    steps = np.full(len(statistics[0]), float(step))
    for halving in range(_MAX_HALVINGS + 1):
        proposed = [
            s + steps.reshape(-1, *[1] * (s.ndim - 1)) * g
            for s, g in zip(statistics, direction, strict=True)
        ]
        valid = family.is_valid(proposed)
        if getattr(family, "tied", False):
            valid = np.full(len(steps), valid.all())
        if valid.all():
            break
        # The old statistics are valid, whatever rounding does near the boundary.
        steps[~valid] *= 0.5 if halving < _MAX_HALVINGS - 1 else 0.0
    return proposed
