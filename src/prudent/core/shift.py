"""How much a rate can grow when future rows follow another law, within a divergence.

For laws P of the held-out and Q of the future rows with D(Q, P) <= r, an event of
probability p under P has probability at most q(p) = max{q : d(q, p) <= r} under Q,
where d is the divergence of two Bernoulli laws: data processing gives "at most", and
Q = (q/p) P on the event, ((1-q)/(1-p)) P off it attains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from prudent.core.binomial import check_fraction
from prudent.core.validation import shown

# Below this a power series replaces differences that would cancel.
SMALL = 0.01
# exp of more overflows.
LARGEST_EXPONENT = 700.0

DIVERGENCES = (
    "kl",
    "reverse_kl",
    "chi2",
    "reverse_chi2",
    "hellinger",
    "total_variation",
    "likelihood_ratio",
    "renyi",
)


def worst_rate(
    p: float, divergence: str, radius: float, order: float | None = None
) -> float:
    """Largest probability, in [p, 1], under a shifted law of an event of probability p.

    `divergence` says how far the laws are apart, natural logarithms: "kl" is D(Q || P)
    of the future law Q from the held-out law P, "chi2" sum Q^2/P - 1, each "reverse"
    the same exchanged; "hellinger" 1 - sum sqrt(PQ); "total_variation" half the sum of
    absolute differences; "likelihood_ratio" the largest Q/P; "renyi" Renyi's of
    `order`, of order 1 "kl". Concave and increasing in p, increasing in `radius`.
    """
    check_shift(divergence, radius, order)
    check_fraction("p", p, "[0, 1]")
    p, r = float(p), float(radius)
    if p == 1:
        return 1.0
    closed = _CLOSED.get(divergence)
    if closed is not None:
        return min(1.0, max(p, closed(p, r)))
    if p == 0:
        return _from_nothing(divergence, r, order)
    return _largest(p, r, lambda q: _divergence(q, p, divergence, order))


def bernoulli_divergence(
    q: float, p: float, divergence: str, order: float | None = None
) -> float:
    """Divergence, perhaps infinite, of a Bernoulli law of rate q from one of rate p."""
    check_shift(divergence, 1.0, order)
    for name, rate in (("q", q), ("p", p)):
        check_fraction(name, rate, "[0, 1]")
    return _divergence(float(q), float(p), divergence, order)


def check_shift(divergence: str, radius: float, order: float | None) -> None:
    """Refuse a divergence that is not known, or a radius or order out of range."""
    if divergence not in DIVERGENCES:
        raise ValueError(
            f"`divergence` must be one of {list(DIVERGENCES)}, got {divergence!r}."
        )
    least = 1 if divergence == "likelihood_ratio" else 0
    if not isinstance(radius, Real) or not radius >= least:
        raise ValueError(
            f"`radius` must be >= {least} for {divergence!r}, got {shown(radius)}."
        )
    if divergence == "renyi":
        if order is None or not 0 < order < math.inf:
            raise ValueError(f"'renyi' needs `order` in (0, inf), got {order}.")
    elif order is not None:
        raise ValueError(f"`order` belongs to 'renyi' only, got {order}.")


def _divergence(q: float, p: float, divergence: str, order: float | None) -> float:
    if divergence == "renyi":
        return _renyi(q, p, float(order or 1))
    return _BERNOULLI[divergence](q, p)


def _renyi(q: float, p: float, a: float) -> float:
    """Log sum q_i^a p_i^(1-a) / (a-1), and at a = 1 its limit, Kullback-Leibler."""
    if q == p:
        return 0.0
    # q - p is exact where it is small, 1 - q and 1 - p are not.
    pairs = ((q, p, q - p), (1 - q, 1 - p, p - q))
    if a >= 1 and any(y == 0 < x for x, y, _ in pairs):
        return math.inf
    if (a - 1) * max(_log_ratio(*pair) for pair in pairs) > LARGEST_EXPONENT:
        return _sum_of_powers(q, p, a) / (a - 1)
    excess = sum(_excess(*pair, a) for pair in pairs)
    if a == 1:
        return excess
    if (a - 1) * excess < -0.5:
        return _sum_of_powers(q, p, a) / (a - 1)
    return math.log1p((a - 1) * excess) / (a - 1)


def _log_ratio(x: float, y: float, difference: float) -> float:
    """log(x / y), by log1p where the two are close."""
    if x == 0 or y == 0:
        return math.inf if x else -math.inf
    if abs(difference) < y / 2:
        return math.log1p(difference / y)
    return math.log(x) - math.log(y)


def _excess(x: float, y: float, difference: float, a: float) -> float:
    """Y ((1+u)^a - 1 - a u) / (a-1) with 1 + u = x / y: >= 0, without cancellation."""
    if y == 0:  # a < 1: the mass x off the support of y adds nothing to the powers
        return a * x / (1 - a) if x else 0.0
    if x == 0:
        return y
    u = difference / y
    if abs(u) * max(1.0, a) < SMALL:
        term, total = a / 2 * u * u, 0.0
        for k in range(2, 11):
            total += term
            term *= u * (a - k) / (k + 1)
        return y * total
    ratio = _log_ratio(x, y, difference)
    grown = ratio if a == 1 else math.expm1((a - 1) * ratio) / (a - 1)
    return x * grown - difference


def _sum_of_powers(q: float, p: float, a: float) -> float:
    """Log sum x^a y^(1-a), in logarithms."""
    pairs = ((q, p), (1 - q, 1 - p))
    logs = [a * math.log(x) + (1 - a) * math.log(y) for x, y in pairs if x and y]
    if not logs:
        return -math.inf
    largest = max(logs)
    return largest + math.log(sum(math.exp(value - largest) for value in logs))


def _quotient(numerator: float, denominator: float) -> float:
    """Quotient of two numbers >= 0, with 0 / 0 = 0."""
    if denominator == 0:
        return 0.0 if numerator == 0 else math.inf
    return numerator / denominator


def _chi2(q: float, p: float) -> float:
    """Divergence (q - p)^2 / (p (1 - p)) of two Bernoulli laws."""
    return _quotient(abs(q - p), p) * _quotient(abs(q - p), 1 - p)


def _hellinger(q: float, p: float) -> float:
    """Half the sum of (sqrt q_i - sqrt p_i)^2 over both outcomes."""
    # sqrt(q) - sqrt(p) = (q - p) / (sqrt(q) + sqrt(p)) does not cancel.
    pairs = ((q, p), (1 - q, 1 - p))
    roots = [_quotient(q - p, math.sqrt(x) + math.sqrt(y)) for x, y in pairs]
    return (roots[0] ** 2 + roots[1] ** 2) / 2


def _likelihood_ratio(q: float, p: float) -> float:
    """Largest likelihood ratio, max(q / p, (1 - q) / (1 - p))."""
    return max(1.0, _quotient(q, p), _quotient(1 - q, 1 - p))


_BERNOULLI: dict[str, Callable[[float, float], float]] = {
    "kl": lambda q, p: _renyi(q, p, 1.0),
    "reverse_kl": lambda q, p: _renyi(p, q, 1.0),
    "chi2": _chi2,
    "reverse_chi2": lambda q, p: _chi2(p, q),
    "hellinger": _hellinger,
    "total_variation": lambda q, p: abs(q - p),
    "likelihood_ratio": _likelihood_ratio,
}


def _worst_chi2(p: float, r: float) -> float:
    """Largest q with (q - p)^2 / (p (1 - p)) <= r."""
    return 1.0 if r * p >= 1 - p else p + math.sqrt(r * p * (1 - p))


def _worst_reverse_chi2(p: float, r: float) -> float:
    """Largest q with (q - p)^2 / (q (1 - q)) <= r: the root of a quadratic."""
    if r > 1:  # r^2 may overflow
        root = 1 + math.sqrt(1 + 4 * p * (1 - p) / r)
        return (2 * p / r + root) / (2 / r + 2)
    return (2 * p + r + math.sqrt(r * r + 4 * r * p * (1 - p))) / (2 * (1 + r))


def _worst_hellinger(p: float, r: float) -> float:
    """Largest q within r: with p = sin^2 u it is sin^2(u + 2 asin sqrt(r / 2))."""
    angle = math.asin(math.sqrt(p)) + 2 * math.asin(math.sqrt(min(r, 2.0) / 2))
    return 1.0 if angle >= math.pi / 2 else math.sin(angle) ** 2


_CLOSED: dict[str, Callable[[float, float], float]] = {
    "chi2": _worst_chi2,
    "reverse_chi2": _worst_reverse_chi2,
    "hellinger": _worst_hellinger,
    "total_variation": lambda p, r: p + r,
    "likelihood_ratio": lambda p, r: r * p,
}


def _from_nothing(divergence: str, r: float, order: float | None) -> float:
    """Worst rate of an event that the held-out law never shows."""
    if divergence == "reverse_kl":
        return -math.expm1(-r)
    if divergence == "renyi" and order is not None and order < 1:
        return -math.expm1(-r * (1 - order) / order)
    return 0.0


def _largest(p: float, r: float, distance: Callable[[float], float]) -> float:
    """Largest q in [p, 1] with distance <= r, from above to the neighbouring float."""
    if distance(1.0) <= r:
        return 1.0
    low, high = p, 1.0
    while True:
        middle = (
            math.sqrt(low) * math.sqrt(high) if high > 4 * low else (low + high) / 2
        )
        if not low < middle < high:
            return high if r > 0 else p
        if distance(middle) <= r:
            low = middle
        else:
            high = middle
