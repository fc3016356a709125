"""Exponential and logarithm that compiled loops compute by vector instructions.

A call of the C library takes one number at a time, and ten times as long. A loop over the rows of
the logistic loss consists of little else. In Python these functions are those of ``math``.
"""

from __future__ import annotations

import math
from typing import Any

from numba.extending import overload, register_jitable

from ._jit import NO_ENTRY, bits, from_bits

# Below this, 2^k is subnormal and has fewer digits. No sum of losses notices a number that small.
_LEAST_EXPONENT = -708.0
# Added to a number, it leaves the nearest integer in the last bits.
_INTEGERS = 1.5 * 2.0**52
_INTEGERS_BITS = 0x4338 << 48
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
_LOG2 = math.log(2.0)
# log 2 in two parts. The high one times an integer of 11 bits is exact.
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# log(1 + f) = 2s + s·(A1·s² + A2·s⁴ + …) for s = f/(2 + f), |s| ≤ 0.1716 (Sun's fdlibm, e_log.c).
_A1, _A2, _A3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
_A4, _A5, _A6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
_A7 = 1.479819860511658591e-01

# The compiler may fuse a product with a sum, but must not reorder: the two parts of log 2 have to
# be subtracted one after the other.
_AS_WRITTEN: Any = {"fastmath": {"contract"}, "forceinline": True, **NO_ENTRY}


def exp(x: float) -> float:
    """e^x for x ≤ 0, and at least e^-708; compiled, off by less than two roundings."""
    return math.exp(max(x, _LEAST_EXPONENT))


def log(x: float) -> float:
    """log x for x > 0; compiled, off by less than four roundings."""
    return math.log(x)


def log1p(x: float) -> float:
    """log(1 + x) for 0 ≤ x ≤ 1; compiled, off by less than four roundings."""
    return math.log1p(x)


@overload(exp, jit_options=_AS_WRITTEN)
def _exp_of(x):
    def compiled(x):
        x = _LEAST_EXPONENT if x < _LEAST_EXPONENT else x
        shifted = x * (1.0 / _LOG2) + _INTEGERS
        k = shifted - _INTEGERS
        r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
        # The series of e^r − 1 for |r| ≤ ½·log 2.
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r * r + r
        power = from_bits((bits(shifted) + 1023) << 52)  # 2^k
        return p * power + power

    return compiled


@register_jitable(**_AS_WRITTEN)
def _log_series(s):
    """log((1 + s)/(1 − s))."""
    t = s * s
    p = _A7 * t + _A6
    p = p * t + _A5
    p = p * t + _A4
    p = p * t + _A3
    p = p * t + _A2
    p = p * t + _A1
    return p * t * s + 2.0 * s


@overload(log, jit_options=_AS_WRITTEN)
def _log_of(x):
    def compiled(x):
        # x = m·2^k with m from √½ to √2.
        k = (bits(x) - _ROOT_HALF_BITS) >> 52
        m = from_bits(bits(x) - (k << 52))
        power = from_bits(_INTEGERS_BITS + k) - _INTEGERS
        series = _log_series((m - 1.0) / (m + 1.0))
        return power * _LOG2_HIGH + (series + power * _LOG2_LOW)

    return compiled


@overload(log1p, jit_options=_AS_WRITTEN)
def _log1p_of(x):
    def compiled(x):
        halve = x > 0.41421356237309503  # 1 + x = 2·(1 + (x − 1)/2)
        s = (x - 1.0 if halve else x) / (x + 3.0 if halve else x + 2.0)
        return _log_series(s) + (_LOG2 if halve else 0.0)

    return compiled
