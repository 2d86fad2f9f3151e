"""One logarithm, in parts, for arrays and for the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

#: log 2 in two parts: a multiple of the first by an exponent is exact.
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

_MANTISSA = np.uint64(52)
_MANTISSA_BITS = np.uint64(0xFFFFFFFFFFFFF)
_TO_SQRT_HALF = np.uint64(0x95F6200000000)  # carries at sqrt(2)
_SQRT_HALF = np.uint64(0x3FE6A09E00000000)
#: Added to an integer's bits it makes the float64 2^52 + 2^51 + that integer.
_INTEGER = 6755399441055744.0
_INTEGER_BITS = np.uint64(np.float64(_INTEGER).view(np.uint64) - np.uint64(0x3FF))


def split_log(u: Any) -> tuple[Any, Any, Any]:
    """Split log u = k log 2 + f - tail, with 1 + f in [sqrt(1/2), sqrt(2)), u > 0.

    The logarithm of fdlibm (Sun Microsystems 1993): exponent, mantissa and an odd
    series in f/(2 + f). tail = f - log(1 + f) keeps full relative accuracy. Plain
    arithmetic: the same text serves NumPy arrays and vectorised machine code, whose
    shifts must be unsigned. log u is k LOG2_HIGH + (f - (tail - k LOG2_LOW)).
    """
    bits = np.float64(u).view(np.uint64) + _TO_SQRT_HALF
    k = np.uint64((bits >> _MANTISSA) + _INTEGER_BITS).view(np.float64) - _INTEGER
    f = np.uint64((bits & _MANTISSA_BITS) + _SQRT_HALF).view(np.float64) - 1.0
    half = 0.5 * f * f
    s = f / (2.0 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = 0.3999999999940941908 + s4 * (
        0.2222219843214978396 + s4 * 0.1531383769920937332
    )
    even = 0.6666666666666735130 + s4 * (
        0.2857142874366239149
        + s4 * (0.1818357216161805012 + s4 * 0.1479819860511658591)
    )
    return k, f, half - s * (half + (s4 * odd + s2 * even))
