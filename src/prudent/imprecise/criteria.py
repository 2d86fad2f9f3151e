"""Decisions from bounds of log likelihoods and a ball of priors, by every criterion.

Rows of `costs` (K, n_decisions) are the truth. Everything works on logs; weights are
exponentiated relative to their largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from prudent.core.classes import log_probabilities
from prudent.core.posterior import log_odds_bounds
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.prior import least_favourable_prior, prior_bounds

_TIE = 1e-9  # log odds, or relative differences of expected cost, this close are tied
_STEPS = 100  # of a search that ends in a handful


def dominance(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Which class a is more probable than which b in every model (n, K, K), 0-1 costs.

    From bounds of log joints, those of the prior included; ties do not count.
    """
    tie = np.where(np.isfinite(upper), _TIE * (1.0 + np.abs(upper)), 0.0)
    beaten = lower[:, :, None] > (upper + tie)[:, None, :]
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
        return (high > -np.inf) & (high + _TIE >= low.max(axis=1, keepdims=True))

    def dominance_by_cost(self, costs: FloatArray) -> BoolArray:
        """Which decision a costs less than which b in every model, entries (a, b).

        The smallest expectation of v is > 0, with v_k = d_k l_k where
        d_k = costs[k, b] - costs[k, a] > 0, else d_k u_k.
        """
        n_decisions = costs.shape[1]
        found = np.zeros((len(self.lower), n_decisions, n_decisions), dtype=np.bool_)
        for b in range(n_decisions):
            for a in range(n_decisions):
                gain = costs[:, b] - costs[:, a]
                if not (gain > 0).any():
                    continue
                exponent = np.where(gain > 0, self.lower, self.upper)
                relevant = np.where(gain != 0, exponent, -np.inf)
                exponent = exponent - relevant.max(axis=1, keepdims=True)
                values = np.where(gain != 0, gain * np.exp(exponent), 0.0)
                worst = least_favourable_prior(values, self.prior, self.radius)
                expected = (worst * values).sum(axis=1)
                found[:, a, b] = expected > _TIE * (np.abs(values) @ self.prior)
        return found

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
            cuts = [
                softmax(np.where(rank < cut, self.lower, self.upper) + precise, axis=1)
                @ cost
                for cut in range(len(cost) + 1)
            ]
            return np.max(cuts, axis=0)
        # Dinkelbach: the best model for the excess over a level raises the level.
        shift = self.upper.max(axis=1, keepdims=True)
        light, heavy = np.exp(self.lower - shift), np.exp(self.upper - shift)
        level = np.full(len(light), cost.min())
        for _ in range(_STEPS):
            excess = cost - level[:, None]
            likelihood = np.where(excess > 0, heavy, light)
            weight = likelihood * least_favourable_prior(
                -likelihood * excess, self.prior, self.radius
            )
            total = weight.sum(axis=1)
            raised = np.divide(weight @ cost, total, out=level.copy(), where=total > 0)
            if (raised <= level).all():
                break
            level = np.maximum(level, raised)
        return level

    def e_admissible(
        self, costs: FloatArray | None, candidates: BoolArray
    ) -> BoolArray:
        """Candidates (n, K) that are optimal for at least one of the posteriors.

        Candidates are maximal decisions; no other can be E-admissible. Under 0-1 costs
        (None), b is kept when the mass that the others must lose, so that none is more
        probable than b at its best, is within the radius; else by one linear program a
        row and candidate.
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
                kept[:, b] &= surplus.sum(axis=1) <= self.radius + _TIE
            return kept
        for i in np.flatnonzero(candidates.sum(axis=1) > 1):
            ends = np.stack([self.lower[i], self.upper[i]])
            light, heavy = np.exp(ends - self.upper[i].max())
            for d in np.flatnonzero(candidates[i]):
                excess = (costs[:, [d]] - costs).T
                kept[i, d] = self._is_feasible(excess, light, heavy)
        return kept

    def _is_feasible(
        self, excess: FloatArray, light: FloatArray, heavy: FloatArray
    ) -> bool:
        """Is there a prior pi in the ball and w in pi [light, heavy], excess w <= 0?

        Unknowns are w and, unless the prior is precise, what each probability gains and
        loses.
        """
        prior, size, n_rivals = self.prior, len(self.prior), len(excess)
        if self.radius == 0.0:
            box = np.stack([light * prior, heavy * prior], axis=1)
            answer = linprog(np.zeros(size), excess, np.zeros(n_rivals), bounds=box)
            return bool(answer.status != 2)  # 2: infeasible
        one, none = np.eye(size), np.zeros((n_rivals, size))
        low, high = np.diag(light), np.diag(heavy)
        gained, lost = np.ones((1, size)), np.zeros((1, size))
        at_most = np.block(
            [
                [excess, none, none],
                [-one, low, -low],
                [one, -high, high],
                [lost, gained, lost],
            ]
        )
        limits = np.concatenate([np.zeros(n_rivals), -light * prior, heavy * prior])
        answer = linprog(
            np.zeros(3 * size),
            at_most,
            np.append(limits, self.radius),
            np.block([[lost, gained, -gained]]),
            np.zeros(1),
            bounds=[(0.0, None)] * (2 * size) + [(0.0, mass) for mass in prior],
        )
        return bool(answer.status != 2)
