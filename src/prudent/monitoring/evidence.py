"""Evidence against a rate from counts alone, valid however often one looks.

The e-value of K violations in n rows against "the rate is at most b" is the
likelihood ratio to b of a rate p whose reciprocal is uniform on (1, 1/b):

    E(K, n; b) = b/(1-b) int_b^1 p^(K-2) (1-p)^(n-K) dp / [b^K (1-b)^(n-K)].

While the promise holds, E is a nonnegative supermartingale that starts at 1, so it
ever reaches 1/level with probability at most `level` (Ville 1939).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincc, digamma, polygamma, xlogy

from prudent.core.types import FloatArray
from prudent.monitoring.kernels import beta_fraction

# Below it the integral underflows, and the continued fraction converges fast.
LEAST_TAIL = 1e-280
LEAST_RATE = 1e-300
SERIES_FROM = 32.0
NEAR_ZERO, SMALL = 1e-6, 1e-3
EULER = 0.5772156649015329
ZETA_TWO = math.pi**2 / 6
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def log_evidence(violations: float, n: float, bound: float) -> float:
    """Log e-value against "the rate is at most `bound`", K = `violations` in n rows.

    Rises with K, falls with `bound` on (0, K/n), is at most 0 wherever K <= n b;
    fractional losses only lower its mean.
    """
    if n == 0 or bound == 1:
        return 0.0
    if bound == 0:
        return math.inf if violations > 0 else -math.log1p(n)
    return _log_evidence(violations, n, bound, 1 - bound)


def log_evidence_within(violations: float, n: float, bound: float) -> float:
    """Log e-value against "the rate is at least `bound`": proof that it is below."""
    if n == 0 or bound == 0:
        return 0.0
    if bound == 1:
        return math.inf if violations < n else -math.log1p(n)
    return _log_evidence(n - violations, n, 1 - bound, bound)


def largest_log_evidence(
    violations: FloatArray, n: FloatArray, bound: float
) -> FloatArray:
    """What `log_evidence` cannot exceed: n KL(K/n || b) where K > n b, else 0."""
    others = n - violations
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = xlogy(violations, violations / (n * bound)) + xlogy(
            others, others / (n * (1 - bound))
        )
    return np.where(violations > n * bound, divergence, 0.0)


def _log_evidence(violations: float, n: float, bound: float, rest: float) -> float:
    """Log E with `bound` + `rest` = 1, neither of them 0."""
    x, y = violations - 1, n - violations + 1
    is_early = y * bound < 1
    if abs(x) < NEAR_ZERO and is_early:
        return (
            _log_first_violation(x, y, bound) - x * math.log(bound) - y * math.log(rest)
        )
    # The complement is a difference from 1 that has few digits where x is small.
    if x > SMALL or (x > 0 and is_early):
        tail = float(betaincc(x, y, bound))
        if tail > LEAST_TAIL:
            return (
                math.log(bound / rest)
                + math.log(tail)
                + _log_beta_against(x, y, violations, n, bound, rest)
            )
    # int_b^1 = b^x (1-b)^y F / y: all powers cancel against those of E.
    return math.log(beta_fraction(float(y), float(x), float(rest)) / y)


def _log_beta_against(
    x: float, y: float, violations: float, n: float, bound: float, rest: float
) -> float:
    """Log B(x, y) - K log b - (n - K) log(1 - b), its large terms taken together."""
    total = x + y
    gap = x - total * bound
    return (
        violations * math.log1p(gap / (total * bound))
        + (n - violations) * math.log1p(-gap / (total * rest))
        + (x - violations - 0.5) * math.log(x)
        + (y - (n - violations) - 0.5) * math.log(y)
        - (total - n - 0.5) * math.log(total)
        + HALF_LOG_TWO_PI
        + _stirling_error(x)
        + _stirling_error(y)
        - _stirling_error(total)
    )


def _log_first_violation(x: float, y: float, bound: float) -> float:
    """Log of int_b^1 p^(x-1) (1-p)^(y-1) dp for x = 0, or a rounding off, y b < 1.

    The fraction would take 1/sqrt(b) steps here. The part of p^(x-1) is
    elementary; the rest is the whole integral less a series in b.
    """
    whole = -(float(digamma(y)) + EULER)
    whole += x / 2 * (whole**2 + ZETA_TWO - float(polygamma(1, y)))
    power = -math.log(bound) if x == 0 else -math.expm1(x * math.log(bound)) / x
    term, j, series = 1.0, 0, 0.0
    while j == 0 or abs(term) > 1e-18 * abs(series):
        j += 1
        term *= -(y - j) * bound / j
        series += term / (x + j)
    return math.log(power + whole - bound**x * series)


def _stirling_error(x: float) -> float:
    """Log Gamma(x) - [(x - 1/2) log x - x + log(2 pi) / 2]."""
    if x < SERIES_FROM:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_TWO_PI
    r = 1 / (x * x)
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / x


def log_beta_ratio(
    x: float, y: float, violations: float, others: float, rate: float
) -> float:
    """Log of B(x + v, y + w) / B(x, y) over p^v (1-p)^w, for x, y > 0.

    The chance under the urn (x, y) of v violations and w other rows in one given
    order, against their chance at the constant rate p.
    """
    n, total = violations + others, x + y
    return (
        violations * math.log((x + violations) / ((total + n) * rate))
        + others * math.log((y + others) / ((total + n) * (1 - rate)))
        + (x - 0.5) * math.log1p(violations / x)
        + (y - 0.5) * math.log1p(others / y)
        - (total - 0.5) * math.log1p(n / total)
        + (_stirling_error(x + violations) - _stirling_error(x))
        + (_stirling_error(y + others) - _stirling_error(y))
        - (_stirling_error(total + n) - _stirling_error(total))
    )


def log_evidence_marginal(
    violations: float, n: float, rank: int, calibration_rows: int, bound: float
) -> float:
    """Log e-value against a rate of at most `bound` on average over calibration rows.

    The smaller of two: against a rate of at most b for ever, and against the urn, in
    which the next row violates with probability (k + K) / (m + 1 + n) as the rate of
    one model is drawn from Beta(k, m + 1 - k); b >= k / (m + 1).
    """
    alone = log_evidence(violations, n, bound)
    if n == 0 or rank < 1:
        return alone
    if rank >= calibration_rows:
        return 0.0
    # One position above the rank: E then rises with K, which carries ties.
    cut = (rank + 1) / (calibration_rows + 1)
    urn = log_evidence(violations, n, cut) - log_beta_ratio(
        rank, calibration_rows + 1 - rank, violations, n - violations, cut
    )
    return min(urn, alone)


def rate_limits(violations: float, n: float, *, level: float) -> tuple[float, float]:
    """Limits of a constant rate, valid at all n at once with probability 1 - level.

    Rates that neither e-value refutes at level / 2; (0, 1) for n = 0.
    """
    target = math.log(2 / level)
    return (
        _lower_limit(violations, n, target),
        1 - _lower_limit(n - violations, n, target),
    )


def _lower_limit(violations: float, n: float, target: float) -> float:
    """Largest q < K/n with log E(K, n; q) >= target: bisection on log q."""
    if violations <= 0:
        return 0.0
    # Below one violation E stays under 1/(1 - K) and the fraction gets slow.
    low, high = LEAST_RATE if violations > 1 - NEAR_ZERO else 1e-10, violations / n
    if log_evidence(violations, n, low) < target:
        return 0.0
    while high - low > 4e-16 * high:
        middle = math.sqrt(low * high) if low < high / 2 else (low + high) / 2
        if not low < middle < high:
            break
        if log_evidence(violations, n, middle) >= target:
            low = middle
        else:
            high = middle
    return low
