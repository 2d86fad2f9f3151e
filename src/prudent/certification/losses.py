"""Upper limit of a mean loss from bets against it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.binomial import check_fraction

# No bet risks more than this share of what could be lost.
LARGEST_BET = 0.9
BISECTIONS = 60


def mean_upper_limit(
    losses: ArrayLike,
    *,
    level: float = 0.05,
    random_state: int | np.random.RandomState | None = 0,
) -> float:
    """Upper confidence limit of the mean of independent losses in [0, 1].

    Parameters
    ----------
    losses : array-like of shape (n,)
        Independent draws from one law on [0, 1]. For losses that can only be 0 and 1
        the exact binomial limit is sharper.
    level : float, default=0.05
        Largest probability that the true mean exceeds the limit, in (0, 1).
    random_state : int, RandomState or None, default=0
        Orders the losses: a file sorted by class is not in random order.

    Returns
    -------
    float
        In (0, 1]; 1 if no mean can be refuted.

    Raises
    ------
    ValueError
        If there is no loss or one outside [0, 1], or `level` is out of range.

    Notes
    -----
    A mean mu is refuted if the wealth prod (1 - min(lambda_i, 0.9 / (1 - mu))
    (x_i - mu)) ever reaches 1 / level, lambda_i = sqrt(2 log(1/level) / (n v_{i-1}))
    with v the running variance. Under a true mean the wealth is a martingale, so
    Ville's inequality bounds the error; it rises with mu, so bisection finds the limit.

    References
    ----------
    I. Waudby-Smith and A. Ramdas (2024), Estimating means of bounded random variables
    by betting, Journal of the Royal Statistical Society B 86, section 4.

    Examples
    --------
    >>> from prudent.certification import mean_upper_limit
    >>> round(mean_upper_limit([0.0] * 80 + [0.1] * 15 + [1.0] * 5), 3)
    0.129
    """
    x = np.asarray(losses, dtype=np.float64).ravel()
    bad = x[~((x >= 0) & (x <= 1))]
    if not len(x) or len(bad):
        shown = f"{bad[0]:g}" if len(bad) else "none"
        raise ValueError(f"losses must be at least one number in [0, 1], got {shown}.")
    check_fraction("level", level)
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    x = random_state.permutation(x)
    n, needed = len(x), math.log(1 / level)
    seen = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (seen + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (seen + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bets = np.sqrt(2 * needed / (n * before))

    def refuted(mu: float) -> bool:
        stakes = np.minimum(bets, LARGEST_BET / (1 - mu))
        return bool(np.cumsum(np.log1p(-stakes * (x - mu))).max() >= needed)

    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if refuted(middle):
            high = middle
        else:
            low = middle
    return high
