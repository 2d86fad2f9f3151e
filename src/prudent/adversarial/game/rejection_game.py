"""The rejection game as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from prudent._compat import Interval, StrOptions
from prudent.adversarial.game.laws import (
    DIVERGENCES,
    Divergence,
    DivergenceName,
    OwnDivergence,
    cell_probabilities,
    check_distributions,
    check_probabilities,
    check_unit_interval,
    frequencies,
    level_masses,
)
from prudent.adversarial.game.learn import learn
from prudent.adversarial.game.model import SecurityCurve
from prudent.adversarial.game.solver import critical_divergence
from prudent.core.assumptions import Assumption
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown


class RejectionGame(BaseEstimator):
    """Optimal rejection on a finite event space against a constrained adversary.

    Ordinary events follow a known distribution p. An intruder sees p and the rejection
    rule and then picks any distribution Q at divergence >= `divergence_bound` from p.
    The rule rejects intruders at the highest rate that can be forced, and ordinary
    events at `false_alarm_rate` at most. No deterministic rule does better.

    Parameters
    ----------
    false_alarm_rate : float or None, default=0.05
        Largest probability of rejecting an ordinary event, in [0, 1]; None with
        `miss_rate`.
    divergence_bound : float or None, default=1.0
        Least divergence of an intruder from p, in units of log `base` for kl; None or
        <= 0: any intruder, and every event is rejected alike. None with `adversaries`.
        It is measured on the events of positive probability; one who also plays others
        is rejected there.
    divergence : {"kl", "l2", "chi2", "hellinger"} or callable, default="kl"
        sum q log(q / p), sum (q - p)^2, sum q^2 / p - 1, or 1 - sum sqrt(p q). A
        function of one's own takes distributions q of shape (n_laws, n_events) and
        p > 0 of shape (n_events,), returns (n_laws,) numbers, and is convex in q: the
        game is then a linear programme, for a hundred events or two.
    base : float, default=2.0
        Base of the logarithm of kl, > 1.
    strategy : {"soft", "hard"}, default="soft"
        Randomised rule, or the best deterministic one: reject the least probable
        events, within a tie those of lowest index first.
    tie_tol : float, default=1e-12
        Events whose probabilities lie closer, relative to their size, are treated
        alike, in [0, 1). What that costs shows in `gap_`.
    adversaries : array-like of shape (n_intruders, n_events) or None, default=None
        Distributions of which the intruder picks one, in place of the bound. The
        game is then a linear programme, for the hard strategy one in whole numbers:
        for hundreds of events.
    miss_rate : float or None, default=None
        The dual game: largest probability that an intruder passes, in [0, 1], at the
        least false-alarm rate.

    Attributes
    ----------
    rejection_ : ndarray of shape (n_events,)
        Probability of rejecting each event; 1 for events of probability 0.
    rejection_rate_ : float
        Rejection rate z of the best intruder, in [0, 1].
    miss_rate_ : float
        1 - z.
    false_alarm_rate_ : float
        Probability of rejecting an ordinary event, sum of r p.
    upper_bound_ : float
        Certified upper bound of the rejection rate of any rule of this strategy.
    gap_ : float
        max(0, `upper_bound_` - z).
    n_levels_ : int
        Number of distinct positive probabilities, those within `tie_tol` as one.
    is_trivial_ : bool
        Whether rejecting every event alike is an optimal randomised rule.
    adversary_ : ndarray of shape (n_events,)
        A best intruder against `rejection_`: at most two events.
    adversary_mixture_ : ndarray of shape (n_events,)
        Mixture of best intruders against which no randomised rule does better than
        `upper_bound_`; `adversary_` for the hard strategy.
    guarantees_ : tuple of Guarantee
        False-alarm rate and miss rate.

    Raises
    ------
    ValueError
        If `p` is not a probability vector or a parameter is outside its range; if a
        `divergence` of one's own is not convex, or comes with `from_levels`; if
        `adversaries` comes with a `divergence_bound`, or `miss_rate` with a
        `false_alarm_rate`: pass None for these.
    InfeasibleError
        If no intruder is as far as `divergence_bound` from p.

    See Also
    --------
    LowDensityRejector : One class of continuous data.

    Notes
    -----
    By duality z = max_r min_Q sum r q with sum r p <= delta is the least
    (delta + v) / (1 - U(v) + v) over v >= 0, U(v) the unserved demand of a transport
    problem that one greedy pass solves: one sort and about 20 passes of O(n_levels).

    **Guarantee.** Both rates hold for the rule as returned, those of the soft
    strategy on average over its coins, if p is known exactly and the intruder keeps
    its distance or is on the list. Estimated probabilities (`from_counts`,
    `from_density`: "plug-in density") make the miss rate optimistic.

    References
    ----------
    R. El-Yaniv and M. Nisenson, On the foundations of adversarial single-class
    classification, sections 5, 6 and 8 (Theorems 10, 19, 23, 45 and 46).

    Examples
    --------
    >>> from prudent import RejectionGame
    >>> game = RejectionGame(false_alarm_rate=0.05, divergence_bound=3)
    >>> game.fit([0.01, 0.02, 0.03, 0.05, 0.09, 0.12, 0.18, 0.5]).rejection_rate_
    0.12255533951...
    >>> game.rejection_.round(3)
    array([0.35 , 0.255, 0.21 , 0.167, 0.133, 0.123, 0.   , 0.   ])
    >>> game.reject([0, 7, 8], key="secret")
    array([False, False,  True])
    """

    _parameter_constraints: Mapping[str, Any] = {
        "false_alarm_rate": [Interval(Real, 0, 1, closed="both"), None],
        "divergence_bound": [Interval(Real, None, None, closed="neither"), None],
        "divergence": [StrOptions(set(DIVERGENCES)), callable],
        "base": [Interval(Real, 1, None, closed="neither")],
        "strategy": [StrOptions({"soft", "hard"})],
        "tie_tol": [Interval(Real, 0, 1, closed="left")],
        "adversaries": ["array-like", None],
        "miss_rate": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        *,
        false_alarm_rate: float | None = 0.05,
        divergence_bound: float | None = 1.0,
        divergence: DivergenceName | OwnDivergence = "kl",
        base: float = 2.0,
        strategy: Literal["soft", "hard"] = "soft",
        tie_tol: float = 1e-12,
        adversaries: ArrayLike | None = None,
        miss_rate: float | None = None,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.divergence_bound = divergence_bound
        self.divergence = divergence
        self.base = base
        self.strategy = strategy
        self.tie_tol = tie_tol
        self.adversaries = adversaries
        self.miss_rate = miss_rate

    def fit(self, p: ArrayLike) -> Self:
        """Solve the game for a target distribution.

        Parameters
        ----------
        p : array-like of shape (n_events,)
            Probabilities >= 0; their sum may be off 1 by 1e-8.

        Returns
        -------
        self : RejectionGame
        """
        probability = check_probabilities(p)
        return self._solve(probability, probability, known=Assumption.EVENTS_KNOWN)

    @classmethod
    def from_counts(
        cls, counts: ArrayLike, smoothing: float = 0.0, **params: Any
    ) -> Self:
        """Game for the observed frequencies (counts + smoothing) / total.

        Parameters
        ----------
        counts : array-like of shape (n_events,)
            How often each event was seen, >= 0.
        smoothing : float, default=0.0
            Added to every count, >= 0.
        **params
            Constructor parameters.
        """
        p = frequencies(counts, smoothing)
        known = Assumption.EVENTS_PLUG_IN
        if smoothing > 0:
            known = Assumption.EVENTS_SMOOTHED
        return cls(**params)._solve(p, p, known=known, smoothing=smoothing)

    @classmethod
    def from_levels(cls, values: ArrayLike, masses: ArrayLike, **params: Any) -> Self:
        """Game for levels of equally probable events; answers are per level.

        Parameters
        ----------
        values : array-like of shape (n_levels,)
            Probability of one event of each level, > 0.
        masses : array-like of shape (n_levels,)
            Probability of the whole level: value times number of events, which
            need not be whole. They sum to 1.
        **params
            Constructor parameters; the hard strategy rejects whole levels.
        """
        value, mass = level_masses(values, masses)
        return cls(**params)._solve(value, mass, known=Assumption.EVENTS_KNOWN)

    @classmethod
    def from_density(
        cls, density: ArrayLike, cell_volumes: ArrayLike, **params: Any
    ) -> Self:
        """Game whose events are cells, p = density x volume, normalised.

        The promises hold at the resolution of the cells.

        Parameters
        ----------
        density : array-like of shape (n_cells,)
            Mean density in each cell, >= 0.
        cell_volumes : array-like of shape (n_cells,) or float
            Volumes, > 0.
        **params
            Constructor parameters.
        """
        p = cell_probabilities(density, cell_volumes)
        return cls(**params)._solve(p, p, known=Assumption.EVENTS_PLUG_IN)

    def rejection_probability(self, events: ArrayLike) -> FloatArray:
        """Probability of rejecting each event; 1 outside 0..n_events - 1.

        Parameters
        ----------
        events : array-like of int
            Event numbers (level numbers after `from_levels`).

        Returns
        -------
        ndarray of the shape of `events`
        """
        return self._model.rejection_probability(self._numbers(events))

    def reject(
        self,
        events: ArrayLike,
        random_state: Any = None,
        key: int | str | bytes | None = None,
    ) -> BoolArray:
        """Draw the decisions.

        Parameters
        ----------
        events : array-like of int
            Event numbers; those outside 0..n_events - 1 are rejected.
        random_state : int, RandomState or None, default=None
            Source of independent coins. An intruder may then try again.
        key : int, str or bytes, default=None
            Secret of a keyed hash of the event, used in place of `random_state`:
            the same event gets the same answer in any batch, order or process.

        Returns
        -------
        ndarray of bool, of the shape of `events`
            True = rejected.
        """
        if key is not None and random_state is not None:
            raise ValueError("give `random_state` or `key`, not both.")
        numbers = self._numbers(events)
        return self._model.reject(numbers, check_random_state(random_state), key)

    def worst_case(
        self, rejection: ArrayLike | None = None
    ) -> tuple[float, FloatArray]:
        """Least rejected admissible intruder against any rule.

        Parameters
        ----------
        rejection : array-like of shape (n_events,), default=None
            Rejection probabilities in [0, 1]; None: `rejection_`. Events of
            probability 0 count as rejected whatever the rule says.

        Returns
        -------
        value : float
            The rate at which it is rejected.
        q : ndarray of shape (n_events,)
            Its distribution: on at most two events, or one of `adversaries`.
        """
        check_is_fitted(self)
        rule, n = self.rejection_, len(self.rejection_)
        if rejection is not None:
            sentence = f"`rejection` must be {n} probabilities"
            rule = check_unit_interval(rejection, sentence, n)
        return self._model.intruders.worst_case(rule)

    def security_curve(self, false_alarm_rates: ArrayLike) -> SecurityCurve:
        """Best miss rates for many false-alarm rates, of both strategies.

        Parameters
        ----------
        false_alarm_rates : array-like of shape (n_rates,)
            In [0, 1].

        Returns
        -------
        SecurityCurve
        """
        check_is_fitted(self)
        sentence = "`false_alarm_rates` must be a vector of numbers"
        rates = check_unit_interval(false_alarm_rates, sentence)
        return self._model.security_curve(rates)

    def min_false_alarm(self, miss_rate: float) -> float:
        """Least false-alarm rate of a randomised rule with this miss rate.

        Parameters
        ----------
        miss_rate : float
            Largest probability that an intruder passes, in [0, 1].
        """
        check_is_fitted(self)
        if not 0 <= miss_rate <= 1:
            raise ValueError(f"`miss_rate` must lie in [0, 1], got {shown(miss_rate)}.")
        return self._model.intruders.least_rate(1 - miss_rate, "soft")

    def critical_divergence(self) -> float:
        """Largest `divergence_bound` at which nothing beats a uniform rejection.

        Of the divergences that have a name.
        """
        check_is_fitted(self)
        divergence = self._divergence()
        if not isinstance(divergence, Divergence):
            raise ValueError(
                "the critical divergence is known for the divergences that have a "
                f"name, {', '.join(DIVERGENCES)}: `divergence` is a function."
            )
        return critical_divergence(*self._target, divergence)

    def _numbers(self, events: ArrayLike) -> NDArray[Any]:
        """Event numbers as an array of integers, or a TypeError."""
        check_is_fitted(self)
        numbers = np.asarray(events)
        if numbers.dtype.kind not in "iu":
            raise TypeError(f"`events` must be integers, got dtype {numbers.dtype}.")
        return numbers

    def _divergence(self) -> Divergence | OwnDivergence:
        if callable(self.divergence):
            return self.divergence
        return Divergence(self.divergence, self.base)

    def _solve(
        self,
        value: FloatArray,
        mass: FloatArray,
        *,
        known: Assumption,
        smoothing: float = 0.0,
    ) -> Self:
        """Solve the game and store its rule, its rates and its promises."""
        self._validate_params()
        self._model, self.guarantees_ = learn(
            value,
            mass,
            known=known,
            smoothing=smoothing,
            divergence=self._divergence(),
            divergence_bound=self.divergence_bound,
            adversaries=self._checked_adversaries(value, mass),
            strategy=self.strategy,
            tie_tol=self.tie_tol,
            false_alarm_rate=self.false_alarm_rate,
            miss_rate=self.miss_rate,
        )
        model, rule = self._model, self._model.rule
        self._target = value, mass
        self.n_levels_ = model.n_levels
        self.rejection_ = rule.rejection
        self.rejection_rate_ = rule.value
        self.miss_rate_ = 1 - rule.value
        self.false_alarm_rate_ = model.false_alarm_rate
        self.upper_bound_ = rule.upper_bound
        self.gap_ = model.gap
        self.is_trivial_ = rule.is_trivial
        self.adversary_ = rule.adversary
        self.adversary_mixture_ = rule.mixture
        return self

    def _checked_adversaries(
        self, value: FloatArray, mass: FloatArray
    ) -> FloatArray | None:
        """The given intruders, if the settings go together with each other and them."""
        if (self.false_alarm_rate is None) == (self.miss_rate is None):
            raise ValueError(
                "one of `false_alarm_rate` and `miss_rate` is given and the other is "
                f"None, got {shown(self.false_alarm_rate)} and {shown(self.miss_rate)}."
            )
        adversaries = self.adversaries
        if adversaries is not None:
            if self.divergence_bound is not None:
                raise ValueError(
                    "`adversaries` takes the place of `divergence_bound`: pass "
                    "divergence_bound=None with it, got "
                    f"{shown(self.divergence_bound)}."
                )
            adversaries = check_distributions(adversaries, len(mass), "adversaries")
        if callable(self.divergence) and value is not mass:
            raise ValueError(
                "a `divergence` of one's own measures distributions over events: use "
                "`fit` with the probability of each event, not `from_levels`."
            )
        return adversaries
