"""Decisions from bounds of log likelihoods and a ball of priors, by every criterion.

Rows of `costs` (K, n_decisions) are the truth. Everything works on logs; weights are
exponentiated relative to their largest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from prudent.core.classes import PRIOR_TOLERANCE, log_odds_bounds, log_probabilities
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown

TIE = 1e-9  # log odds this close are tied; of log joints, relatively
_REMAINDER = 1e-14  # of a probability whose mass the ball can move: none
_IMPOSSIBLE = -1e300  # log of a weight that no row has
_LARGEST_LOG = 20.0  # of an entry of a linear program: it refuses 1e15
_STEPS = 100  # of a search that ends in a handful


def tied_with(upper: FloatArray) -> FloatArray:
    """The largest log joints that are tied with those given: u + 1e-9 (1 + |u|)."""
    return upper + np.where(np.isfinite(upper), TIE * (1.0 + np.abs(upper)), 0.0)


def dominance(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Which class a is more probable than which b in every model (n, K, K), 0-1 costs.

    From bounds of log joints, those of the prior included; ties do not count.
    """
    beaten = lower[:, :, None] > tied_with(upper)[:, None, :]
    return beaten & ~np.eye(lower.shape[1], dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class CredalSet:
    """Posteriors w / sum w of every row, with w_k = pi_k f_k.

    Classes have separate means, so the likelihoods f_k move freely between exp(lower_k)
    and exp(upper_k); the prior pi lies within a total variation of `radius` of its
    centre `prior`, 0 when it is precise.
    """

    lower: FloatArray  # (n, K)
    upper: FloatArray  # (n, K)
    prior: FloatArray  # (K,)
    radius: float

    def log_odds_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Logits of the least and largest posterior of each class (n, K), attained.

        All of the radius is best spent on class k itself: what it loses goes to the
        rival of the largest likelihood, what it gains comes from those of the largest
        ones. Moving mass among rivals changes the odds less.
        """
        lower, upper, prior, radius = self.lower, self.upper, self.prior, self.radius
        if radius == 0.0:
            log_prior = log_probabilities(prior)
            return log_odds_bounds(lower + log_prior, upper + log_prior)
        least, most = np.empty_like(lower), np.empty_like(lower)
        ends = zip(*prior_bounds(prior, radius), strict=True)
        for k, (smallest, largest) in enumerate(ends):
            others = np.delete(np.arange(len(prior)), k)
            gaining = logsumexp(upper[:, others], axis=1, b=prior[others])
            strongest = upper[:, others].max(axis=1) + np.log(radius)
            rivals = np.logaddexp(gaining, strongest)
            least[:, k] = log_probabilities(smallest) + lower[:, k] - rivals
            if prior[k] + radius >= 1.0:
                most[:, k] = np.inf
                continue
            order = others[np.argsort(-lower[:, others], axis=1, kind="stable")]
            mass = prior[order]
            before = np.cumsum(mass, axis=1) - mass
            kept = mass - np.clip(radius - before, 0.0, mass)
            losing = logsumexp(np.take_along_axis(lower, order, axis=1), axis=1, b=kept)
            most[:, k] = np.log(largest) + upper[:, k] - losing
        return least, most

    def interval_undominated(self) -> BoolArray:
        """Classes whose largest posterior reaches every smallest one (n, K).

        Interval dominance on posteriors: a superset of the maximal classes.
        """
        low, high = self.log_odds_bounds()
        return (high > -np.inf) & (high + TIE >= low.max(axis=1, keepdims=True))

    def dominance_by_cost(self, costs: FloatArray) -> BoolArray:
        """Which decision a costs less than which b in every model, entries (a, b).

        With d_k = costs[k, b] - costs[k, a], the smallest expectation of v is > 0,
        where v_k = d_k l_k if d_k > 0, else d_k u_k.
        """
        n_decisions = costs.shape[1]
        preferred = np.zeros(
            (len(self.lower), n_decisions, n_decisions), dtype=np.bool_
        )
        for b in range(n_decisions):
            for a in range(n_decisions):
                gain = costs[:, b] - costs[:, a]
                if (gain > 0).any():
                    preferred[:, a, b] = self._gains_surely(gain)
        return preferred

    def _gains_surely(self, gain: FloatArray) -> BoolArray:
        """Is the smallest expectation of a gain (K,) over all models positive (n,)?

        What is won and what is lost are compared under the worst prior by their logs:
        no gain is too small to count beside another, however far apart the likelihoods.
        """
        bounds = np.where(gain > 0, self.lower, self.upper)
        parts = self._log_weights(gain, bounds) + log_probabilities(np.abs(gain))
        largest = parts.max(axis=1)
        largest[largest == -np.inf] = 0.0
        parts = np.exp(parts - largest[:, None])
        won, lost = parts @ (gain > 0), parts @ (gain < 0)
        tie = TIE * (1.0 + np.abs(largest))
        return np.asarray(won > (1.0 + tie) * lost, dtype=np.bool_)

    def _log_weights(self, gain: FloatArray, bounds: FloatArray) -> FloatArray:
        """Logs of pi f (n, K) for the prior in the ball with the least expected gain.

        `gain` is (K,) or (n, K), `bounds` the logs of the likelihoods f. The prior
        depends on the order of gain f alone, which is found from signs and logs.
        """
        size = log_probabilities(np.abs(gain)) + bounds
        possible = size > -np.inf
        smallest = np.min(size, axis=1, keepdims=True, where=possible, initial=0.0)
        ranks = np.zeros_like(size)
        np.multiply(np.sign(gain), size - smallest + 1.0, out=ranks, where=possible)
        worst = least_favourable_prior(ranks, self.prior, self.radius)
        return log_probabilities(worst) + bounds

    def expected_cost_bounds(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest posterior expected cost of each decision, attained."""
        most = np.stack([self._largest_mean(cost) for cost in costs.T], axis=1)
        least = np.stack([self._largest_mean(cost) for cost in -costs.T], axis=1)
        return -least, most

    def _largest_mean(self, cost: FloatArray) -> FloatArray:
        """Largest posterior expectation (n,) of a cost (K,)."""
        if self.radius == 0.0:  # heavy where dear, light where cheap: best of all cuts
            precise = log_probabilities(self.prior)
            rank = np.argsort(np.argsort(cost, kind="stable"))
            cuts = np.stack(
                [
                    softmax(np.where(rank < cut, self.lower, self.upper) + precise, 1)
                    for cut in range(len(cost) + 1)
                ]
            )
            return np.asarray((cuts @ cost).max(axis=0))
        # Dinkelbach: the best model for the excess over a level raises the level.
        level = np.full(len(self.lower), -np.inf)
        excess = np.tile(cost - cost.min(), (len(self.lower), 1))
        for _ in range(_STEPS):
            bounds = np.where(excess > 0, self.upper, self.lower)
            mean = softmax(self._log_weights(-excess, bounds), axis=1) @ cost
            if not (mean > level).any():
                break
            level = np.maximum(level, mean)
            excess = cost - level[:, None]
        return level

    def e_admissible(
        self, costs: FloatArray | None, candidates: BoolArray
    ) -> BoolArray:
        """Candidates (n, K) that are optimal for at least one of the posteriors.

        Candidates are maximal decisions; no other can be E-admissible. Under 0-1 costs
        (None), b is kept when the mass that the others must lose, so that none is more
        probable than b at its best, is within the radius; else by `_is_admissible`.
        """
        kept = candidates.copy()
        if costs is None:
            best = self.upper + log_probabilities(
                np.minimum(self.prior + self.radius, 1.0)
            )
            for b in range(len(self.prior)):
                room = np.exp(np.minimum(best[:, [b]] - self.lower, 0.0))
                surplus = np.maximum(self.prior - room, 0.0)
                surplus[:, b] = 0.0
                kept[:, b] &= surplus.sum(axis=1) <= self.radius + TIE
            return kept
        for i in np.flatnonzero(candidates.sum(axis=1) > 1):
            row = replace(self, lower=self.lower[[i]], upper=self.upper[[i]])
            for d in np.flatnonzero(candidates[i]):
                gains = np.delete(costs[:, [d]] - costs, d, axis=1).T
                kept[i, d] = row._is_admissible(gains)
        return kept

    def _is_admissible(self, gains: FloatArray) -> bool:
        """Is there a model of the only row under which no rival gains on average?

        `gains` (n_rivals, K) are those of deciding a rival instead. If there is none,
        some mixture of the rivals gains under every model, since their weights are a
        convex set. Mixtures and the models that are worst for them are found in turn.
        """
        worst = np.stack([self._least_gains(gain, gains) for gain in gains])
        n_rivals = len(gains)
        for _ in range(_STEPS):
            # The mixture with the largest of the least gains in the models found.
            balanced, units = _balanced(worst)
            answer = linprog(
                np.append(np.zeros(n_rivals), -1.0),
                np.column_stack([-balanced, np.ones(len(worst))]),
                np.zeros(len(worst)),
                np.append(np.ones(n_rivals), 0.0)[None],
                np.ones(1),
                bounds=[(0.0, None)] * n_rivals + [(None, None)],
            )
            if -answer.fun <= TIE:
                return True
            gain = (units * answer.x[:n_rivals]) @ gains
            if self._gains_surely(gain)[0]:
                return False
            least = self._least_gains(gain, gains)
            if (least == worst).all(axis=1).any():
                return True
            worst = np.vstack([worst, least])
        return True

    def _least_gains(self, gain: FloatArray, gains: FloatArray) -> FloatArray:
        """All gains (n_rivals,) in the model of the only row with the least of one.

        They are in units of their largest part.
        """
        bounds = np.where(gain > 0, self.lower, self.upper)
        parts = log_probabilities(np.abs(gains)) + self._log_weights(gain, bounds)
        largest = parts.max(initial=_IMPOSSIBLE)
        least: FloatArray = (np.sign(gains) * np.exp(parts - largest)).sum(axis=1)
        return least


def _balanced(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows and columns in units in which their entries are 1 in geometric mean.

    It comes with the units of the columns, up to a common one. No sum over columns
    changes its sign, and a linear program sees what is small in the units before.
    """
    logs = np.ma.log(np.abs(matrix))  # without the zeros
    logs -= logs.mean(axis=1, keepdims=True)
    columns = logs.mean(axis=0)
    sizes = np.exp(np.minimum(logs - columns, _LARGEST_LOG))
    units = np.exp(columns.min() - columns)
    return np.sign(matrix) * sizes.filled(0.0), units.filled(1.0)


# --- the total-variation ball round a prior, (44)-(46) --------------------------------


def prior_bounds(prior: ArrayLike, radius: float) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest probability of each class in a ball of priors.

    Parameters
    ----------
    prior : array-like of shape (n_classes,)
        Centre P: numbers >= 0 of sum 1.
    radius : float
        Largest total variation (half the L1 distance) from P, >= 0.

    Returns
    -------
    lower, upper : ndarray of shape (n_classes,)
        max(0, P - radius) and min(1, P + radius).

    Raises
    ------
    ValueError
        If `prior` holds no probabilities or `radius` is not a number >= 0.

    Notes
    -----
    With radius c / n and the class frequencies for P these are (44)-(45) of
    Carranza-Alarcon and Destercke (2019), whose two sides are exchanged in print. Of
    any event A the bounds are max(0, P(A) - radius) and min(1, P(A) + radius).

    Examples
    --------
    >>> from prudent.imprecise import prior_bounds
    >>> lower, upper = prior_bounds([0.7, 0.3], 0.4)
    >>> lower.round(12).tolist(), upper.round(12).tolist()
    ([0.3, 0.0], [1.0, 0.7])
    """
    centre, radius = _checked(prior, radius)
    return np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)


def lower_expectation(
    values: ArrayLike, prior: ArrayLike, radius: float
) -> FloatArray | float:
    """Smallest expectation of each row of values over a ball of priors.

    Parameters
    ----------
    values : array-like of shape (..., n_classes)
        v, one finite value a class.
    prior : array-like of shape (n_classes,)
        Centre P: numbers >= 0 of sum 1.
    radius : float
        Total variation allowed, >= 0.

    Returns
    -------
    ndarray of shape (...)
        The expectation after moving mass `radius` from the classes with the
        largest v, each at most its own P, to the class with the smallest. The
        largest expectation is ``-lower_expectation(-values, prior, radius)``.

    Raises
    ------
    ValueError
        If `prior` holds no probabilities, `radius` is not a number >= 0, or `values`
        are not finite with one value a class.

    Notes
    -----
    Equal to the Choquet integral that Carranza-Alarcon and Destercke (2019), section
    6, use with (46), and to the linear program over all events; the box of
    single-class bounds (47) is the same up to three classes, and looser beyond.

    Examples
    --------
    >>> from prudent.imprecise import lower_expectation
    >>> prior = [0.25, 0.15, 0.1, 0.5]
    >>> round(float(lower_expectation([1, -2, 0.5, -0.25], prior, 0.2)), 12)
    -0.725
    """
    centre, radius = _checked(prior, radius)
    given = np.asarray(values, dtype=np.float64)
    if given.shape[-1:] != centre.shape or not np.isfinite(given).all():
        raise ValueError(
            f"`values` must be finite, of shape (..., {len(centre)}), one a class of "
            f"`prior`, got shape {given.shape}."
        )
    return (least_favourable_prior(given, centre, radius) * given).sum(axis=-1)


def least_favourable_prior(
    values: FloatArray, prior: FloatArray, radius: float
) -> FloatArray:
    """The prior in the ball with the smallest expectation of each row of values."""
    order = np.argsort(-values, axis=-1, kind="stable")
    mass = prior[order]
    before = np.cumsum(mass, axis=-1) - mass
    moved = np.clip(radius - before, 0.0, mass)
    # What the rounding of these sums leaves of a class is nothing.
    moved = np.where((moved > 0.0) & (mass - moved <= _REMAINDER), mass, moved)
    # The class of the least value, last in order, gets what the others lose.
    moved[..., -1] -= moved.sum(axis=-1)
    worst = np.empty_like(mass)
    np.put_along_axis(worst, order, mass - moved, axis=-1)
    return worst


def _checked(prior: ArrayLike, radius: float) -> tuple[FloatArray, float]:
    """Centre (K,) and radius of a ball of priors, or a ValueError."""
    centre = np.asarray(prior, dtype=np.float64)
    fits = centre.ndim == 1 and len(centre) > 0 and bool((centre >= 0).all())
    if not (fits and abs(centre.sum() - 1.0) <= PRIOR_TOLERANCE):
        raise ValueError(
            f"`prior` must hold numbers >= 0 that sum to 1, got {centre.tolist()}."
        )
    if not radius >= 0:
        raise ValueError(f"`radius` must be a number >= 0, got {shown(radius)}.")
    return centre, float(radius)
