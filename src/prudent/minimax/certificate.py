"""What a plane does to a class of known moments, rounding of the plane included.

A plane is certified as it predicts: a row z goes to a side by the sign of the floating
point value of a'z - b. That value errs by at most u (|a|'|z| + |b|), and the moments
are known to within rounding themselves, so the certificate bounds

    P{ s (a'z - b) <= u (|a|'|z| + |b|) }

over all laws whose mean and covariance are those given up to rounding. With w = a'S a,
t = s (a'm - b) less the rounding at the mean and W = |a|'|z - m|, whose root mean
square is at most omega = |a|'sigma, Chebyshev's inequality for
(s a'(m - z) + u W + w / t)^2 gives

    P <= (1 + u omega k / sqrt(w (1 + k^2)))^2 / (1 + k^2),    k = t / sqrt(w),

which is Cantelli's bound where nothing rounds (u = 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from prudent.core.types import FloatArray

DOUBLE = np.finfo(np.float64)
#: Entry (i, j) of a covariance, and the mean of feature i, are trusted to this share of
#: sigma_i sigma_j and of sigma_i: the accuracy of accumulated moments.
MOMENT_ROUNDING = 1e-13
#: Relative rounding of an offset, in units of the arithmetic that predicts.
OFFSET_ROUNDINGS = 4
#: Rows further out than this many of their mean deviations count as errors.
NORMAL_REACH = 37.0


@dataclass(frozen=True, slots=True)
class ClassMargin:
    """A class seen along the normal of a plane, in the worst case of its moments.

    `center` is a'm, `deviation` the largest standard deviation of a'z (0 only where no
    feature of the plane varies), `radius` = nu, `doubt` the largest rounding of a'z at
    the mean, `reach` = |a|'sigma, which bounds the root mean square of |a|'|z - m|,
    `blur` the root mean square of what rounding adds beyond the mean, in deviations,
    `rounding` the relative rounding of an offset, and `overflow` bounds the probability
    of a row whose decision value is no number.
    """

    center: float
    deviation: float
    radius: float
    doubt: float
    reach: float
    blur: float
    rounding: float = OFFSET_ROUNDINGS * float(DOUBLE.eps)
    overflow: float = 0.0

    @classmethod
    def along(
        cls,
        normal: FloatArray,
        mean: FloatArray,
        mean_lo: FloatArray,
        covariance: FloatArray,
        radius: float = 0.0,
        factor: float = 1.0,
        *,
        size: FloatArray | None = None,
        arithmetic: np.finfo[Any] = DOUBLE,
    ) -> ClassMargin:
        """View a class, its mean as a pair, along a normal.

        `covariance` includes every additive radius, `radius` is nu >= 0 and `factor`
        gamma >= 1. `size` is the magnitude of what is multiplied by the rows, where the
        normal is a sum of it; `arithmetic` that of decision values as predicted.
        """
        width = math.sqrt(factor)
        if size is None:
            size = np.abs(normal)
        sigma = np.sqrt(np.diagonal(covariance))
        reach = width * float(size @ sigma)
        trusted = width * float(np.abs(normal) @ sigma)
        variance = max(factor * float(normal @ covariance @ normal), 0.0)
        deviation = math.sqrt(variance + MOMENT_ROUNDING * trusted * trusted)
        # Of a decision value, of this evaluation, and of the mean's last digits.
        n_roundings = 2 * len(normal) + 16
        unit = n_roundings * float(arithmetic.eps)
        at_mean = float(size @ np.abs(mean)) + radius * reach
        return cls(
            center=math.fsum(normal * mean) + float(normal @ mean_lo),
            deviation=deviation,
            radius=radius,
            doubt=unit * at_mean
            + MOMENT_ROUNDING * trusted
            + n_roundings * float(arithmetic.tiny),
            reach=reach,
            blur=unit * reach / deviation if deviation > 0 else 0.0,
            rounding=OFFSET_ROUNDINGS * float(arithmetic.eps),
            # Markov's inequality for the square of |a|'|z|, whose root mean square is
            # at most |a|'|m| + |a|'sigma.
            overflow=min(1.0, ((at_mean + reach) / float(arithmetic.max)) ** 2),
        )

    def kappa(self, offset: float, side: float, shift: float = 0.0) -> float:
        """Standard deviations between the class and a'z = offset, at least.

        `side` is 1 for a class that is predicted for a'z >= offset, else -1; `shift`
        is the magnitude of what the offset is the difference of, if it is one.
        """
        rounding = self.doubt + self.rounding * max(abs(offset), shift)
        ahead = side * (self.center - offset) - rounding
        if self.deviation > 0:
            return ahead / self.deviation - self.radius
        return math.inf if ahead > 0 else -math.inf

    def error(self, offset: float, side: float, shift: float = 0.0) -> float:
        """Largest probability of a row that is not predicted on its side."""
        kappa = self.kappa(offset, side, shift)
        return min(1.0, chebyshev(kappa, self.blur) + self.overflow)

    def normal_error(self, offset: float, side: float) -> float:
        """Largest probability of a row not on its side, if the class is normal.

        With t = s (a'm - b) >= 0 of the mean used and w the largest variance of a'z, a
        normal class whose mean is nu away at most, in its own metric, and whose
        variance is v <= w, lies beyond the plane with probability Phi(nu - t / sqrt(v))
        <= Phi(nu - t / sqrt(w)). What rounding adds is at most u W, where W/omega is a
        convex combination of absolute standard normals: P(W > x omega) <= 2 exp(-x^2/2)
        by Jensen's inequality for exp.
        """
        kappa = self.kappa(offset, side) - NORMAL_REACH * self.blur
        if not kappa + self.radius >= 0:
            return 1.0
        tail = float(ndtr(-kappa)) * (1 + 1e-12) + 2 * math.exp(-(NORMAL_REACH**2) / 2)
        return min(1.0, tail + self.overflow)

    def offset_for(self, rate: float) -> float:
        """Largest offset b such that at most `rate` of the class has a'z < b."""
        kappa = math.sqrt(max((1 + self.blur) ** 2 / rate - 1, 0.0))
        offset = self.center - self.doubt - self.deviation * (kappa + self.radius)
        return offset - self.rounding * abs(offset)

    def distances(self, scores: FloatArray, side: float) -> FloatArray:
        """Standard deviations, >= 0, of scores a'z beyond the mean, against `side`."""
        beyond = side * (self.center - scores) - self.doubt
        if self.deviation > 0:
            beyond = beyond / self.deviation - self.radius
        else:
            beyond = np.where(beyond > 0, np.inf, 0.0)
        return np.maximum(beyond, 0.0)


def chebyshev(kappa: float, blur: float = 0.0) -> float:
    """Largest probability beyond a plane `kappa` standard deviations away.

    `blur` is the root mean square of what rounding adds, in standard deviations.
    """
    if not kappa > 0:
        return 1.0
    if math.isinf(kappa):
        return 0.0
    widened = 1 + blur * kappa / math.hypot(1.0, kappa)
    return min(1.0, (widened / math.hypot(1.0, kappa)) ** 2)


def certified_radius(
    root: FloatArray,
    covariance: FloatArray,
    rate: float,
    radius: float = 0.0,
    factor: float = 1.0,
) -> float:
    """Length of root (z - m) that at most `rate` of a class exceeds, as computed.

    Markov's inequality for the squared length, whose mean is trace(root S root') up to
    rounding of moments and lengths: sqrt(n / rate) for an exact root of S^-1. The
    covariance includes every additive radius; `radius` is nu and `factor` gamma.
    """
    reach = np.abs(root) @ np.sqrt(np.diagonal(covariance))
    whitened = root @ covariance @ root.T
    unit = (2 * len(root) + 16) * float(DOUBLE.eps)
    doubt = MOMENT_ROUNDING * float(reach @ reach)
    spread = math.sqrt(float(np.trace(whitened)) + doubt)
    spread += unit * float(np.linalg.norm(reach))
    length = spread / math.sqrt(rate)
    if radius:
        length += radius * math.sqrt(float(np.linalg.eigvalsh(whitened)[-1]) + doubt)
    return math.sqrt(factor) * length * (1 + unit)
